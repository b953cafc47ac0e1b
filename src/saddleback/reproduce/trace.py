"""One method on one problem: its objective, residual and certified gap along the way."""

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
"""Passes that no run reaches: the callback ends it, by the work of the method alone."""


@dataclass(frozen=True)
class Trace:
    """A run, looked at after every so many passes.

    Attributes
    ----------
    diverged : whether the run ended so.
    setup : passes before the first iteration, for norms and factorisations; the paper does not count them.
    passes : of the iterations, without the setup and without certificates.
    seconds : of the method, setup included, certificates not.
    objective : at the best point so far, the iterate or the average since the last look; indicators left out.
    residual : norm of the violation of the constraints there; 0 without constraints.
    gap, error : certified relative gap of the best pair so far, and the largest of its errors.
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
        """Return how far the objective is above the optimum, relative to it."""
        return np.abs(self.objective - optimum) / abs(optimum)

    def after(self, passes: float, series: Series) -> float:
        """Return the value of a series at the last look within so many passes."""
        within = np.flatnonzero(self.passes <= passes + 1e-6)
        return float(series[within[-1] if within.size else 0])

    def passes_until(self, series: Series, target: float) -> float:
        """Return the passes at the first look where a series is at most a target; infinite without one."""
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
    """Run a method for a number of its own passes on one core, and record what it has every so many passes.

    Parameters
    ----------
    problem, contender : what to solve and by what.
    budget : passes of the iterations.
    every : passes between looks; the share of an iteration for one look each.
    seed : of the draws.
    enough : a certificate at which to stop before that.
    unit : what a primal infeasibility of 1 is as a residual: 1 + ||b||.
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
    """The optimum of a problem, the error that certifies it, and what it took."""

    value: float
    error: float
    passes: float
    seconds: float


def certified_optimum(problem: sb.Problem, tol: float = 1e-9) -> Optimum:
    """Return the optimum of a problem as the default method finds it, on one core."""
    result = sb.solve(problem, tol=tol, threads=1)
    c = result.certificate
    return Optimum((c.primal_value + c.dual_value) / 2, c.error, result.passes, result.seconds)
