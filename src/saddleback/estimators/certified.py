"""What every estimator owes to a solve: its options, a warning where it fell short, and how well it was fitted."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

import saddleback as sb

from ..cpus import available
from ..run import LIMITS

OF_OTHERS = {
    "comm": "it belongs to the linear models without cross-validation",
    "copy_X": "X is never changed",
    "memory": "the bound belongs to the data, as in fit(sb.Streamed(path, memory=...), y)",
    "precompute": "which products are kept is for the solver to decide",
    "selection": "the order of the columns is for the solver to decide",
    "solver": "the solver is chosen by the problem",
    "solver_options": "the solver is chosen by the problem; tol and the limit on passes are its only options",
}
"""Parameters of scikit-learn's models that say how to compute, not what: why each has no meaning here."""

LIMITS_ON_WORK = ("max_iter", "max_passes")
"""Two names for the most passes: that of scikit-learn, where a model of it is followed, and that of ``solve``."""


def explained(init: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that says why it does not take a parameter, where Python would say only that it does not."""
    parameters = signature(init).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return init  # a subclass that passes on what it does not know
    known = [*parameters][1:]

    @wraps(init)
    def explaining(self: Any, *args: Any, **parameters: Any) -> None:
        for name in parameters:
            if name not in known:
                close = [limit for limit in LIMITS_ON_WORK if name in LIMITS_ON_WORK and limit in known]
                close = close or get_close_matches(name, known, n=1)
                reason = OF_OTHERS.get(name) or (f"did you mean {close[0]}?" if close else f"it has {', '.join(known)}")
                advice = "; leave it out" if name in OF_OTHERS else ""
                raise TypeError(f"{type(self).__name__} has no parameter {name}: {reason}{advice}")
        init(self, *args, **parameters)

    return explaining


class Certified(BaseEstimator):
    """Base of the estimators: parameters that limit a solve, attributes that judge it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__:
            cls.__init__ = explained(cls.__init__)  # type: ignore[method-assign]

    tol: float
    n_jobs: int | None = None
    random_state: Any = None
    verbose: Any = False
    comm: Any = None
    device: Any = None

    passes_parameter = "max_iter"
    """The parameter that limits the passes."""

    def _options(self) -> dict[str, Any]:
        """Return the options of ``solve``."""
        passes = getattr(self, self.passes_parameter)
        if not isinstance(passes, (int, float, np.number)) or not passes > 0:
            raise ValueError(f"{self.passes_parameter}={passes!r}: expected a positive number of passes")
        return {
            "tol": self.tol,
            "max_passes": passes,
            "seed": _seed(self.random_state),
            "threads": self._threads(),
            "progress": bool(self.verbose),
            "comm": self.comm,
            "device": self.device,
        }

    def _threads(self) -> int | None:
        """Return how many threads a solve may use."""
        if self.n_jobs is None or self.n_jobs > 0:
            return self.n_jobs
        if self.n_jobs == 0:
            raise ValueError("n_jobs=0: expected None, a positive number of threads, or -1 for all that are available")
        return max(1, available() + 1 + self.n_jobs)

    def _warn(self, results: Sequence[sb.Result], obstacle: str = "") -> None:
        """Warn of what stands in the way of a solution, where that is known; else of the result furthest from one."""
        if any(result.status is sb.Status.INTERRUPTED for result in results):
            raise KeyboardInterrupt  # solve gives back what it has, but no one asked for half a model
        worst = furthest(results)
        told = f": {obstacle}" if obstacle else self._shortfall(worst)
        if told:
            warnings.warn(type(self).__name__ + told, ConvergenceWarning, stacklevel=calling_level())

    def _shortfall(self, result: sb.Result) -> str:
        """Return how far a result is from what was asked, and what to do; empty where it is there."""
        if result.status is sb.Status.OPTIMAL:
            return ""
        if result.status not in LIMITS:
            return f": {result.message}"
        name, passes = self.passes_parameter, getattr(self, self.passes_parameter)
        gap, error = result.relative_gap, result.certificate.error
        figure = f"relative gap of {gap:.1e}" + ("" if gap == error else f" and an error of {error:.1e}")
        return (
            f" reached a certified {figure}, where tol={self.tol:.1e} was asked: raise {name} (now {passes}), or tol "
            "if that is enough. " + result.message.replace("max_passes", name)
        )

    def _judgement(self, results: Sequence[sb.Result]) -> None:
        """Set the attributes that tell how well the model was fitted."""
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
    """Return the level, for ``warnings.warn``, of the line outside of this library that asked for a fit."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] == __name__.partition(".")[0]:
        level, frame = level + 1, frame.f_back
    return level


def furthest(results: Sequence[sb.Result]) -> sb.Result:
    """Return the result that is least certain, one that reached its tolerance only where all did."""
    return max(results, key=lambda result: (result.status is not sb.Status.OPTIMAL, result.certificate.error))


def _seed(random_state: Any) -> int:
    """Return a seed: 0 for None, as every seed leads to the same certified answer."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
