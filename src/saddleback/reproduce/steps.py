"""Which strengths are valid, and which of them are fast: the paper left this as future work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import saddleback as sb

from ..datasets import make_lasso, make_robust_pca
from .counterexamples import COUPLED, HADAMARD, NEAR_DIAGONAL, counterexamples, expected_gap, mean_square_radius
from .experiment import PLAIN, RESTARTED, Contender, Outcome, Say, Settings, Table
from .group_lasso import problem_of as problem_of_sites
from .group_lasso import sites
from .rpca import problem_of
from .trace import trace

TOLERANCE = 1e-4
"""Certified error to reach."""

EVERY = 4.0
"""Passes between records."""


def rules(drawn: int) -> list[tuple[Contender, str]]:
    """Return every rule, and whether it is proved to be valid."""
    return [
        (Contender("published, l1", "sp-bcd-published", {}, drawn), "no"),
        (Contender("published, Remark", "sp-bcd-published", {"step": "remark"}, drawn), "no"),
        (Contender("repaired, l1", "sp-bcd", {**PLAIN, "step": "l1"}, drawn), "yes"),
        (Contender("repaired, norm", "sp-bcd", {**PLAIN, "step": "norm"}, drawn), "yes"),
        (Contender("l1, restarts, weight", "sp-bcd", {**RESTARTED, "step": "l1"}, drawn), "yes"),
        (Contender("norm, restarts, weight", "sp-bcd", {**RESTARTED, "step": "norm"}, drawn), "yes"),
    ]


def applications(settings: Settings) -> Iterator[tuple[str, sb.Problem, tuple[int, ...]]]:
    """Yield the three applications, each with the values of K to try."""
    m, n, d = (200, 1000, 100) if settings.quick else (1000, 5000, 500)
    lasso = make_lasso(m, n, d)
    yield f"Lasso {m} x {n}", sb.Problem(sb.L1(lasso.alpha), lasso.A, sb.Squared(lasso.b)), (n // 500, n // 50)
    m, n, d = (40, 100, 2) if settings.quick else (200, 500, 10)
    yield f"robust PCA {m} x {n}", problem_of(make_robust_pca(m, n, d)), (1, 2, 3)
    data, source = sites(Settings(quick=True, data=settings.data))
    yield f"group hinge, {source}, N = {data.labels.size}", problem_of_sites(data, 1e-3), (1, 9)


def run(settings: Settings, say: Say) -> Outcome:
    """Run the experiment."""
    return Outcome([_exact(settings), _validity(settings, say), _speed(settings, say)])


def _exact(settings: Settings) -> Table:
    """Return exact results: an expectation over all draws, and spectral radii of mean squares."""
    rows: list[list[Any]] = []
    for T in (4, 8) if settings.quick else (4, 8, 12):
        gap, bound = expected_gap(T)
        rows.append([f"C1, T = {T}", "expected gap, bound of Theorem 1", gap, bound])
    for name, A in (("C2, .1", NEAR_DIAGONAL), ("C2, .5", COUPLED), ("C3", HADAMARD)):
        radii = [mean_square_radius(A, method) for method in ("sp-bcd-published", "sp-bcd")]
        rows.append([name, "mean-square radius, published and repaired", *radii])
    columns = ("counterexample", "what", "first", "second")
    note = "C1: Theorem 1 says that the first is at most the second. C2, C3: above 1 the variance grows without bound."
    return Table("steps-exact", "Theorem 1, checked exactly", columns, rows, note)


def _validity(settings: Settings, say: Say) -> Table:
    budget = 300.0 if settings.quick else 3000.0
    rows: list[list[Any]] = []
    for case in counterexamples():
        contenders = [each for each, _ in rules(case.drawn)]
        if case.options:
            contenders.insert(0, Contender("as printed", "sp-bcd-published", case.options, case.drawn))
        cells: dict[str, str] = {}
        for each in contenders:
            cells[each.label] = _outcome(case.problem, each, budget)[1]
        as_printed = cells.pop("as printed", cells["published, l1"])
        rows.append([case.name, as_printed, *cells.values()])
        say(f"  {case.name}: {', '.join(rows[-1][1:])}")
    headings = ("counterexample", "as the paper prints it", *(each.label for each, _ in rules(1)))
    note = f"Passes to a certified error of {TOLERANCE:.0e}, or what happened within {budget:.0f} passes."
    return Table("steps-validity", "Strengths on the counterexamples", headings, rows, note)


def _speed(settings: Settings, say: Say) -> Table:
    budget = 150.0 if settings.quick else 300.0
    rows: list[list[Any]] = []
    for name, problem, draws in applications(settings):
        for K in draws:
            cells = [_outcome(problem, each, budget) for each, _ in rules(K)]
            fastest = min(range(len(cells)), key=lambda number: cells[number][0])
            winner = rules(K)[fastest][0].label if np.isfinite(cells[fastest][0]) else None
            rows.append([name, K, *(shown for _, shown in cells), winner])
            say(f"  {name}, K = {K}: {', '.join(shown for _, shown in cells)}")
    headings = ("application", "K", *(f"{each.label} (proved: {proved})" for each, proved in rules(1)), "fastest")
    note = f"Passes to a certified error of {TOLERANCE:.0e}, or what happened within {budget:.0f} passes."
    return Table("steps-speed", "Strengths on the three applications", headings, rows, note)


def _outcome(problem: sb.Problem, contender: Contender, budget: float) -> tuple[float, str]:
    """Return the passes to the tolerance, infinite if it was not reached, and the text for the table."""
    found = trace(problem, contender, budget, EVERY, enough=lambda certificate: certificate.error <= TOLERANCE)
    if found.diverged:
        return float("inf"), "diverged"
    if found.error[-1] <= TOLERANCE:
        return float(found.passes[-1]), f"{found.passes[-1]:.0f}"
    return float("inf"), f"error {found.error[-1]:.0e}"
