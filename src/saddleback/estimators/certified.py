"""What every estimator owes to a solve: its options, a warning where it fell short, and how well it was fitted."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

import saddleback as sb


class Certified(BaseEstimator):
    """Base of the estimators: parameters that limit a solve, attributes that judge it."""

    tol: float
    n_jobs: int | None = None
    random_state: Any = None
    verbose: Any = False
    comm: Any = None

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
        }

    def _threads(self) -> int | None:
        """Return how many threads a solve may use."""
        return free_threads() if self.n_jobs is None else int(joblib.effective_n_jobs(self.n_jobs))

    def _warn(self, results: Sequence[sb.Result]) -> None:
        """Warn of the result furthest from what was asked, if one is."""
        if any(result.status is sb.Status.INTERRUPTED for result in results):
            raise KeyboardInterrupt  # solve gives back what it has, but no one asked for half a model
        worst = furthest(results)
        if worst.status is not sb.Status.OPTIMAL:
            name, passes = self.passes_parameter, getattr(self, self.passes_parameter)
            warnings.warn(
                f"{type(self).__name__} reached a certified relative gap of {worst.relative_gap:.1e}, where "
                f"tol={self.tol:.1e} was asked: raise {name} (now {passes}), or tol if that gap is enough. "
                + worst.message,
                ConvergenceWarning,
                stacklevel=3,
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


def furthest(results: Sequence[sb.Result]) -> sb.Result:
    """Return the result that is least certain, one that reached its tolerance only where all did."""
    return max(results, key=lambda result: (result.status is not sb.Status.OPTIMAL, result.certificate.error))


def free_threads() -> int | None:
    """Return how many threads to use unless told: None for all cores, one inside of a joblib worker."""
    return 1 if get_active_backend()[0].nesting_level else None


def _seed(random_state: Any) -> int:
    """Return a seed: 0 for None, as every seed leads to the same certified answer."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
