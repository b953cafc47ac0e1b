"""Table 1 and figure 1 of the paper: robust PCA."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import saddleback as sb

from ..common.arrays import Vector
from ..datasets import RobustPCAData, make_robust_pca
from .experiment import PLAIN, Contender, Curve, Outcome, Panel, Picture, Runs, Say, Settings, Table
from .search import best_of
from .tables import optima_table
from .trace import Optimum, Trace, certified_optimum, trace

BLOCKS = 3
RESIDUAL = 1e-3
"""Frobenius norm of X_1 + X_2 + X_3 - B at which a run ends: every row of the paper's table ends just below it."""

QUICK, FULL = (60, 150, 3), (2000, 5000, 100)
SEARCHED = (200, 500, 10)
"""Rows, columns and rank. Values are chosen with hindsight on the size SEARCHED, which has the same units: the identity
blocks and 1/2 ||X_1||^2 set the scale of rho, not the size of B."""

MOST = 255
"""Largest number of iterations."""

LOOKS = 5
"""Passes between records at full size, where a record costs several passes: counts are multiples of it."""

TOLERANCE = 1e-6
"""Certified error at which the default method ends, in a separate row."""

RHO = (0.3, 0.5, 0.7, 1.0, 2.0, 3.0)


def contenders() -> list[Contender]:
    """Return the rows of the table, then the repaired method and the steps that the paper prints."""

    def paper(iterations: int, seconds: int, residual: float) -> dict[str, float]:
        return {"iterations": iterations, "seconds": seconds, "residual": residual * 1e-4}

    pdmm = {1: paper(125, 927, 9.92), 2: paper(73, 750, 4.55), 3: paper(67, 834, 8.56)}
    spbcd = {1: paper(104, 784, 7.63), 2: paper(48, 492, 6.17), 3: paper(42, 553, 6.72)}
    weights = [rho / np.sqrt(BLOCKS) for rho in RHO]
    return [
        # what the script behind the paper's row computes: docs/methods.md
        Contender("ADMM", "pdhg", {"extrapolation": 0.0}, None, ("primal_weight", weights), paper(149, 2191, 9.71)),
        Contender("GSADMM", "gs-admm", {}, None, ("rho", RHO), paper(23, 448, 8.69)),
        Contender("PDCP", "pdhg", paper=paper(59, 911, 7.80)),
        *(Contender(f"PDMM{K}", "pdmm", {}, K, ("rho", RHO), pdmm[K]) for K in pdmm),
        *(Contender(f"SP-BCD{K}, sigma = 3", "sp-bcd-published", {}, K, paper=spbcd[K]) for K in spbcd),
        *(Contender(f"SP-BCD{K}, sigma = {K}", "sp-bcd-published", {"step": (1.0, float(K))}, K) for K in (1, 2)),
        *(Contender(f"repaired, K = {K}", "sp-bcd", {**PLAIN, "step": "l1"}, K) for K in spbcd),
    ]


def problem_of(data: RobustPCAData) -> sb.Problem:
    """Return the paper's problem: three blocks that add up to B."""
    penalties = [sb.SquaredL2(1.0), sb.L1(data.sparse_alpha), sb.Nuclear(data.nuclear_alpha, data.B.shape)]
    return sb.Problem(penalties, [sb.Identity()] * BLOCKS, sb.Equality(data.B))


def run(settings: Settings, say: Say) -> Outcome:
    """Run the experiment."""
    size = QUICK if settings.quick else FULL
    rows, searched = _search(settings, say)
    traces: dict[str, list[tuple[Trace, float]]] = {row.label: [] for row in rows}
    defaults: list[tuple[sb.Result, float]] = []
    decompositions: list[float] = []
    optima: dict[str, Optimum] = {}
    for seed in range(settings.runs):
        data = make_robust_pca(*size, seed)
        problem = problem_of(data)
        best = optima[f"seed {seed}"] = certified_optimum(problem, 1e-7)
        say(f"Robust PCA {size[0]} x {size[1]}, seed {seed}: optimum {best.value:.9g}, certified to {best.error:.0e}")
        defaults.append((sb.solve(problem, tol=TOLERANCE, threads=1), best.value))
        decompositions.append(_decomposition(data.B))
        say(f"  default: certified {defaults[-1][0].certificate.error:.0e} in {defaults[-1][0].seconds:.1f} s")
        for row in rows:
            found = _attempt(problem, data, row, seed, _share(row) if settings.quick else LOOKS)
            traces[row.label].append((found, best.value))
            say(f"  {row.label}: residual {found.residual[-1]:.1e} after {found.passes.size - 1} iterations")
    table = Table(
        "rpca",
        f"Robust PCA, {size[0]} x {size[1]}, rank {size[2]}: until the residual is {RESIDUAL:.0e}, "
        f"{settings.runs} run(s)",
        (
            "method",
            "paper: iterations",
            "paper: seconds",
            "paper: residual",
            "iterations",
            "passes",
            "seconds",
            "residual",
            "objective above optimum",
            "certified gap",
        ),
        [*(_row(row, traces[row.label]) for row in rows), _default_row(defaults), _decomposition_row(decompositions)],
        "The objective is relative and, as in the paper, that of points that violate the constraint, so that it may be "
        f"below the optimum. ∞: diverged, or not within {MOST} iterations. Seconds exclude certificates, except for "
        "the default method, which runs to a certificate instead of a residual and includes them.",
    )
    return Outcome([table, searched, optima_table("rpca", "Robust PCA", optima)], [_picture(traces)])


def _attempt(problem: sb.Problem, data: RobustPCAData, row: Contender, seed: int, every: float) -> Trace:
    """Run a method until the residual is small, with ``every`` passes between two records."""
    unit = 1.0 + float(np.linalg.norm(data.B))
    enough = partial(_small, unit=unit)
    return trace(problem, row, MOST * _share(row), every - 0.5 * _share(row), seed, enough, unit)


def _searched(problem: sb.Problem, data: RobustPCAData, row: Contender) -> Trace:
    return _attempt(problem, data, row, 0, _share(row))


def _share(row: Contender) -> float:
    """Return the passes of an iteration."""
    return (row.blocks or BLOCKS) / BLOCKS


def _small(certificate: Any, unit: float) -> bool:
    return bool(unit * certificate.primal_infeasibility < RESIDUAL)


def _passes(found: Trace) -> float:
    return float(found.passes[-1]) if found.residual[-1] < RESIDUAL else float("inf")


def _decomposition(B: Vector) -> float:
    """Return the seconds of a full singular value decomposition on one core."""
    with threadpool_limits(1, user_api="blas"):
        begin = perf_counter()
        np.linalg.svd(B, full_matrices=False)
        return perf_counter() - begin


def _search(settings: Settings, say: Say) -> tuple[list[Contender], Table]:
    """Return the contenders with the best values on a small problem, and a table of all values tried."""
    size = QUICK if settings.quick else SEARCHED
    data = make_robust_pca(*size, 0)
    problem = problem_of(data)
    chosen, tried = [], []
    for row in contenders():
        share = _share(row)
        best, costs = best_of(row, partial(_searched, problem, data), _passes, say)
        chosen.append(best)
        tried += [(row.label, row.search[0], value, cost / share) for value, cost in costs if row.search is not None]
    title = f"Robust PCA: what was searched with hindsight, on {size[0]} x {size[1]}, rank {size[2]}"
    return chosen, Table("rpca-search", title, ("method", "option", "value", "iterations"), tried)


def _row(row: Contender, runs: list[tuple[Trace, float]]) -> list[Any]:
    return [
        row.label,
        *(row.paper.get(column) for column in ("iterations", "seconds", "residual")),
        Runs([_passes(found) / _share(row) for found, _ in runs]),
        Runs([_passes(found) for found, _ in runs]),
        Runs([float(found.seconds[-1]) for found, _ in runs]),
        Runs([float(found.residual[-1]) for found, _ in runs]),
        Runs([float(found.objective[-1] / optimum - 1) for found, optimum in runs]),
        Runs([float(found.gap[-1]) for found, _ in runs]),
    ]


def _default_row(runs: list[tuple[sb.Result, float]]) -> list[Any]:
    certificates = [(result.certificate, optimum) for result, optimum in runs]
    return [
        f"default, to a certified {TOLERANCE:.0e}",
        *[None] * 4,
        Runs([result.passes for result, _ in runs]),
        Runs([result.seconds for result, _ in runs]),
        Runs([c.primal_infeasibility for c, _ in certificates]),
        Runs([c.primal_value / optimum - 1 for c, optimum in certificates]),
        Runs([c.relative_gap for c, _ in certificates]),
    ]


def _decomposition_row(seconds: list[float]) -> list[Any]:
    return ["one full decomposition of B", *[None] * 5, Runs(seconds), *[None] * 3]


def _picture(traces: dict[str, list[tuple[Trace, float]]]) -> Picture:
    first = {label: runs[0] for label, runs in traces.items() if not runs[0][0].diverged}

    def panel(up: str, across: str, series: Callable[[Trace, float], Vector]) -> Panel:
        curves = [Curve(label, getattr(found, across), series(found, P)) for label, (found, P) in first.items()]
        return Panel("Robust PCA", across, up, curves)

    def residual(found: Trace, optimum: float) -> Vector:
        return found.residual

    shown = (("residual", residual), ("relative distance of the objective", Trace.suboptimality))
    return Picture("rpca", [[panel(up, across, series) for across in ("passes", "seconds")] for up, series in shown])
