"""Figure 2 of the paper: the group Lasso with hinge loss on MEMset Donor sites."""

from __future__ import annotations

from functools import partial
from typing import Any

import saddleback as sb

from ..datasets import GroupHingeData, load_memset, make_group_hinge
from .experiment import RESTARTED, Contender, Curve, Outcome, Panel, Picture, Say, Settings, Table
from .search import best_of
from .tables import optima_table
from .trace import Optimum, Trace, certified_optimum, trace

ALPHAS = (1e-4, 1e-5, 1e-6)
DRAWN = (1, 3, 9, 21, 63)
SMOOTHING = 5e-4
"""The paper's epsilon, in the problem of ``problem_of``, whose y is between 0 and 1."""

QUICK_SITES, QUICK_BUDGET, QUICK_EVERY = 300, 60.0, 4.0
FULL_SITES, FULL_BUDGET, FULL_EVERY = 8415, 300.0, 10.0
"""Sites of each kind, passes, and passes between records."""

STEPS = (0.3, 1.0, 3.0, 10.0, 30.0)
"""Step sizes of FOBOS, which are divided by N."""


def contenders(samples: int) -> list[Contender]:
    """Return the methods of the first two columns of the figure, then the repaired one and the default."""
    return [
        Contender("OSGA", "osga"),
        Contender("FOBOS", "fobos", {}, None, ("step", [step / samples for step in STEPS])),
        Contender("FISTA, smoothed", "fista", {"smoothing": SMOOTHING}),
        Contender("PDCP", "pdhg"),
        *(Contender(f"SP-BCD, K = {K}", "sp-bcd-published", blocks=K) for K in DRAWN),
        Contender("repaired with restarts, K = 1", "sp-bcd", {**RESTARTED, "step": "l1"}, 1),
        Contender("default of saddleback", "auto"),
    ]


def sites(settings: Settings) -> tuple[GroupHingeData, str]:
    """Return the real sites if there is a folder of data, otherwise simulated ones, and a word for them."""
    each = QUICK_SITES if settings.quick else FULL_SITES
    if settings.data is None:
        return make_group_hinge(2 * each), "simulated sites"
    return load_memset(settings.data, each), "MEMset Donor"


def problem_of(data: GroupHingeData, alpha: float) -> sb.Problem:
    """Return N times the paper's problem, so that y is between 0 and 1.

    The paper divides A by N instead. This divides all strengths by N, and gives the same iterates.
    """
    return sb.Problem(sb.GroupL2(alpha * data.labels.size, data.groups), data.A, sb.Hinge(data.labels))


def run(settings: Settings, say: Say) -> Outcome:
    """Run the experiment once for each lambda."""
    data, source = sites(settings)
    N = data.labels.size
    budget, every = (QUICK_BUDGET, QUICK_EVERY) if settings.quick else (FULL_BUDGET, FULL_EVERY)
    marks = (budget / 10, budget / 3, budget)
    rows: list[list[Any]] = []
    searched: list[tuple[Any, ...]] = []
    panels = []
    optima: dict[str, Optimum] = {}
    for alpha in ALPHAS:
        problem = problem_of(data, alpha)
        best = optima[f"lambda = {alpha:.0e}"] = certified_optimum(problem, 1e-8)
        optimum = best.value
        say(f"Group Lasso, {source}, lambda {alpha:.0e}: optimum {optimum / N:.9g}, certified to {best.error:.0e}")
        attempt = partial(trace, problem, budget=budget, every=every)
        traces = {}
        for row in contenders(N):
            chosen, tried = best_of(row, attempt, partial(_final, optimum=optimum), say)
            searched += [(f"{alpha:.0e}", row.label, value, cost) for value, cost in tried]
            found = attempt(chosen)
            traces[row.label] = found
            rows.append([f"{alpha:.0e}", row.label, *_figures(found, optimum, marks)])
            say(f"  {row.label}: {rows[-1][4]:.1e} above, certified {rows[-1][5]:.1e}, {rows[-1][6]:.1f} s")
        panels.append(_panels(f"lambda = {alpha:.0e}", traces, optimum))
    table = Table(
        "group-lasso",
        f"Group Lasso with hinge loss, {source}, N = {N}: relative suboptimality by passes",
        (
            "lambda",
            "method",
            *(f"after {mark:.0f}" for mark in marks),
            "certified gap then",
            "seconds",
        ),
        rows,
        "The paper prints no figures for this experiment, only curves. Passes are of the iterations, seconds of the "
        "method with its setup; certificates are in neither.",
    )
    searches = Table(
        "group-lasso-search",
        "Group Lasso: what was searched with hindsight (step of FOBOS)",
        ("lambda", "method", "value", "suboptimality"),
        searched,
    )
    return Outcome(
        [table, searches, optima_table("group-lasso", f"Group Lasso, {source}", optima, N)],
        [Picture("group-lasso", panels)],
    )


def _final(found: Trace, optimum: float) -> float:
    return float(found.suboptimality(optimum)[-1])


def _figures(found: Trace, optimum: float, marks: tuple[float, ...]) -> list[float]:
    error = found.suboptimality(optimum)
    return [
        *(found.after(mark, error) for mark in marks),
        found.after(marks[-1], found.gap),
        found.after(marks[-1], found.seconds),
    ]


def _panels(title: str, traces: dict[str, Trace], optimum: float) -> list[Panel]:
    by_draw = {f"SP-BCD, K = {K}" for K in DRAWN}
    compared = [label for label in traces if label not in by_draw or label == "SP-BCD, K = 3"]
    up = "relative suboptimality"

    def curves(labels: list[str], across: str) -> list[Curve]:
        return [Curve(each, getattr(traces[each], across), traces[each].suboptimality(optimum)) for each in labels]

    return [
        Panel(title, "passes", up, curves(compared, "passes")),
        Panel(title, "seconds", up, curves(compared, "seconds")),
        Panel(title, "passes", up, curves([label for label in traces if label in by_draw], "passes")),
    ]
