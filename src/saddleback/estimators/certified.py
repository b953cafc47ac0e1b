"""The common part of all estimators: options of the solve, warnings, and attributes on the quality of the fit."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

import saddleback as sb

from .._native import MOST_THREADS
from ..common.checks import number, shown
from ..engine.clock import Clock
from ..machine.cpus import available
from ..places.mpi.communicator import SERIAL

OF_OTHERS = {
    "C": "the penalty is measured by alpha, which is 1 / (C * n_samples)",
    "comm": "it belongs to the linear models without cross-validation",
    "copy_X": "X is never changed",
    "memory": "the bound belongs to the data, as in fit(sb.Streamed(path, memory=...), y)",
    "precompute": "which products are kept is for the solver to decide",
    "selection": "the order of the columns is for the solver to decide",
    "normalize": "scale the columns first, with StandardScaler",
    "sample_weight": "it is an argument of fit",
    "solver": "the solver is chosen by the problem",
    "solver_options": "the solver is chosen by the problem; tol and the limit on passes are its only options",
}
"""Parameters of other libraries that have no meaning here, with the reason and what to do instead."""

OTHER_NAMES = {
    "lam": "alpha",
    "lambda_": "alpha",
    "lambda1": "alpha",
    "q": "quantile",
    "tau": "quantile",
    "threads": "n_jobs",
    "timeout": "time_limit",
}
"""Parameters that have another name here."""

LIMITS_ON_WORK = ("max_iter", "max_passes")
"""The two names of the limit on passes: that of scikit-learn, in models that follow it, and that of ``solve``."""


def explained(init: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor whose error says why it does not accept a parameter."""
    parameters = signature(init).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return init  # a subclass that passes unknown parameters on
    known = [*parameters][1:]

    @wraps(init)
    def explaining(self: Any, *args: Any, **parameters: Any) -> None:
        for name in parameters:
            if name not in known:
                close = [limit for limit in LIMITS_ON_WORK if name in LIMITS_ON_WORK and limit in known]
                close = close or [own for own in (OTHER_NAMES.get(name),) if own in known]
                close = close or get_close_matches(name, known, n=1)
                reason = OF_OTHERS.get(name) or (f"did you mean {close[0]}?" if close else f"it has {', '.join(known)}")
                advice = "; leave it out" if name in OF_OTHERS else ""
                raise TypeError(f"{type(self).__name__} has no parameter {name}: {reason}{advice}")
        init(self, *args, **parameters)

    return explaining


class Certified(BaseEstimator):
    """Base of the estimators: parameters that limit a solve, and attributes on its accuracy."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__:
            cls.__init__ = explained(cls.__init__)  # type: ignore[method-assign]

    tol: float
    time_limit: float | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: Any = False
    comm: Any = None
    device: Any = None

    passes_parameter = "max_iter"
    """The parameter that limits the passes."""

    def _clock(self) -> Clock:
        """Return the clock of a call, which all solves of the call share; raise if a limit of the call is none."""
        limit = self.time_limit
        if limit is not None and (not isinstance(limit, (int, float, np.number)) or not limit > 0):
            raise ValueError(f"time_limit={shown(limit)}: expected None or a positive number of seconds")
        passes = getattr(self, self.passes_parameter)
        if not isinstance(passes, (int, float, np.number)) or not passes > 0:
            raise ValueError(f"{self.passes_parameter}={shown(passes)}: expected a positive number of passes")
        jobs = self.n_jobs
        if jobs is not None and (not isinstance(jobs, (int, np.integer)) or jobs == 0 or jobs > MOST_THREADS):
            raise ValueError(
                f"n_jobs={shown(jobs)}: expected None, a number from 1 to {MOST_THREADS}, or -1 for all that are "
                "available"
            )
        return Clock(None if limit is None else number("time_limit", limit), SERIAL)

    def _options(self, clock: Clock, parts: int = 1) -> dict[str, Any]:
        """Return the options of ``solve`` for the next of some parts of what is left of a call."""
        return {
            "tol": self.tol,
            "max_passes": getattr(self, self.passes_parameter),
            "time_limit": clock.share(parts),
            "seed": seed_of(self.random_state),
            "threads": self._threads(),
            "progress": bool(self.verbose),
            "comm": self.comm,
            "device": self.device,
        }

    def _threads(self) -> int | None:
        """Return how many threads a solve may use."""
        if self.n_jobs is None or self.n_jobs > 0:
            return self.n_jobs
        return max(1, available() + 1 + self.n_jobs)

    def _warn(self, results: Sequence[sb.Result]) -> None:
        """Warn of the least accurate result, if it is not optimal."""
        told = self._shortfall(furthest(results))
        if told:
            warnings.warn(f"{type(self).__name__}: {told}", ConvergenceWarning, stacklevel=calling_level())

    def _cut_short(self, done: int, asked: int, what: str) -> None:
        """Warn that the time limit has ended a call of several parts."""
        warnings.warn(
            f"{type(self).__name__}: time_limit={self.time_limit:g} was enough for {done} of {asked} {what}",
            ConvergenceWarning,
            stacklevel=calling_level(),
        )

    def _shortfall(self, result: sb.Result) -> str:
        """Return how far a result is from the requested accuracy, and what to do; empty if it is optimal."""
        if result.status.solved:
            return ""
        if result.status is sb.Status.INTERRUPTED:
            return (
                f"the fit was interrupted at a certified relative gap of {result.relative_gap:.1e}, where "
                f"tol={self.tol:.1e} was asked. The model is the best point so far"
            )
        said = result.message.replace("max_passes", self.passes_parameter)
        return said.replace("relative gap", "certified relative gap", 1)

    def _stop_if_interrupted(self, results: Sequence[sb.Result]) -> None:
        """Raise KeyboardInterrupt if Ctrl-C ended a solve in a fit that scikit-learn runs.

        A search over models has to stop as a whole, and would continue if `fit` returned.
        """
        interrupted = any(result.status is sb.Status.INTERRUPTED for result in results)
        if interrupted and caller().partition(".")[0] in ("sklearn", "joblib"):
            raise KeyboardInterrupt

    def _judgement(self, results: Sequence[sb.Result]) -> None:
        """Set the attributes on the accuracy of the fit."""
        results = [replace(result, problem=None) for result in results]  # a model does not keep its data
        single = len(results) == 1
        gaps = np.array([result.certificate.gap for result in results])
        passes = np.array([result.passes for result in results])
        self.result_ = results[0] if single else list(results)
        self.certificate_ = results[0].certificate if single else [result.certificate for result in results]
        self.dual_gap_ = float(gaps[0]) if single else gaps
        self.n_passes_ = float(passes[0]) if single else passes
        iterations = np.maximum(1, np.ceil(passes)).astype(int)
        self.n_iter_ = int(iterations[0]) if single else iterations


def calling_level() -> int:
    """Return the level, for ``warnings.warn``, of the line outside of this library that called the fit."""
    return _outside()[0] - 1


def caller() -> str:
    """Return the module outside of this library that called the fit."""
    return _outside()[1]


def _outside() -> tuple[int, str]:
    """Return the distance in frames to the first caller outside of this library, and its module."""
    level, frame, own = 0, sys._getframe(0), __name__.partition(".")[0]
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] == own:
        level, frame = level + 1, frame.f_back
    return level, str(frame.f_globals["__name__"])


def furthest(results: Sequence[sb.Result]) -> sb.Result:
    """Return the least certain result: one without a solution before one at a limit before an optimal one."""
    ranks = {sb.Status.OPTIMAL: 0, sb.Status.ROUNDING_LIMIT: 1, sb.Status.DIVERGED: 2}
    return max(results, key=lambda result: (ranks.get(result.status, 1), result.certificate.error))


def seed_of(random_state: Any) -> int:
    """Return a seed; 0 for None, since every seed leads to the same certified answer."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
