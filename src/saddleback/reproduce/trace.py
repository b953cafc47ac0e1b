"""A run of one method on one problem: its objective, residual and certified gap during the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import saddleback as sb

from .experiment import Contender

Series = NDArray[np.float64]

UNLIMITED = 1e9
"""Passes that no run reaches: the callback ends the run, and counts only the work of the method."""


@dataclass(frozen=True)
class Trace:
    """A run, recorded at regular intervals of passes.

    Attributes
    ----------
    diverged : whether the run diverged.
    setup : passes before the first iteration, for norms and factorisations; the paper does not count them.
    passes : passes of the iterations, without the setup and without certificates.
    seconds : seconds of the method, with the setup and without certificates.
    objective : objective at the best point so far, the iterate or the average since the last record, without the
        infinite values of violated constraints.
    residual : norm of the violation of the constraints at that point; 0 without constraints.
    gap, error : certified relative gap of the best pair so far, and its certified error.
    """

    diverged: bool
    setup: float
    passes: Series
    seconds: Series
    objective: Series
    residual: Series
    gap: Series
    error: Series

    def suboptimality(self, optimum: float) -> Series:
        """Return the distance of the objective from the optimum, relative to the optimum."""
        return np.abs(self.objective - optimum) / abs(optimum)

    def after(self, passes: float, series: Series) -> float:
        """Return the value of a series at the last record within a number of passes."""
        within = np.flatnonzero(self.passes <= passes + 1e-6)
        return float(series[within[-1] if within.size else 0])

    def passes_until(self, series: Series, target: float) -> float:
        """Return the passes at the first record at which a series is at most a target; infinite if there is none."""
        found = np.flatnonzero(series <= target)
        return float(self.passes[found[0]]) if found.size else float("inf")


def trace(
    problem: sb.Problem,
    contender: Contender,
    budget: float,
    every: float = 1.0,
    seed: int = 0,
    enough: Callable[[sb.Certificate], bool] | None = None,
    unit: float = 1.0,
) -> Trace:
    """Run a method for a number of passes on one core, and record its progress at regular intervals.

    Parameters
    ----------
    problem, contender : the problem and the method.
    budget : passes of the iterations.
    every : passes between records; the passes of one iteration for a record after each.
    seed : seed of the draws.
    enough : returns whether a certificate is good enough to stop before the budget is used.
    unit : the residual at a primal infeasibility of 1: 1 + ||b||.
    """
    rows: list[tuple[float, ...]] = []

    def record(info: Any) -> bool:
        c = info.certificate
        work, seconds = info.passes - info.judging_passes, info.seconds - info.judging_seconds
        rows.append((work, seconds, c.primal_value, unit * c.primal_infeasibility, c.relative_gap, c.error))
        return work - rows[0][0] >= budget or (enough is not None and enough(c))

    result = sb.solve(
        problem,
        contender.method,
        tol=0,
        max_passes=UNLIMITED,
        seed=seed,
        threads=1,
        callback=record,
        check_every=every,
        **contender.arguments(),
    )
    work, *series = np.array(rows).T
    return Trace(result.status is sb.Status.DIVERGED, float(work[0]), work - work[0], *series)


@dataclass(frozen=True)
class Optimum:
    """The optimum of a problem, its certified error, and the passes and seconds that it took."""

    value: float
    error: float
    passes: float
    seconds: float


def certified_optimum(problem: sb.Problem, tol: float = 1e-9) -> Optimum:
    """Return the optimum of a problem, computed by the default method on one core."""
    result = sb.solve(problem, tol=tol, threads=1)
    c = result.certificate
    return Optimum((c.primal_value + c.dual_value) / 2, c.error, result.passes, result.seconds)
