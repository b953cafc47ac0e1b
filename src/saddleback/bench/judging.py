"""The error of an answer: the same certificate for every library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import saddleback as sb

from .worker.task import Task


def problem_of(task: Task) -> sb.Problem:
    """Return the problem that a task states."""
    penalty, loss = TERMS[task.kind](task)
    return sb.Problem(penalty, task["A"], loss)


def penalised(task: Task) -> Any:
    """Return 1 for every column of a regression, 0 for its intercept."""
    weights = np.ones(task.shape[1])
    weights[task.shape[1] - int(task["intercept"]) :] = 0.0
    return weights


TERMS: dict[str, Callable[[Task], tuple[Any, Any]]] = {
    "lasso": lambda task: (sb.L1(task["alpha"]), sb.Squared(task["b"])),
    "group-lasso": lambda task: (
        sb.GroupL2(task["alpha"], int(task["group_size"]), task["weights"]),
        sb.Squared(task["b"]),
    ),
    "quantile": lambda task: (
        sb.L1(task["alpha"], weights=penalised(task)),
        sb.Pinball(task["b"], task["quantile"]),
    ),
    "group-hinge": lambda task: (
        sb.GroupL2(task["alpha"], task["groups"].tolist()),
        sb.Hinge(task["labels"], scale=1 / task.shape[0]),
    ),
    "lp": lambda task: (
        sb.Linear(task["c"]) + sb.Box(task["lower"], task["upper"]),
        sb.Interval(task["row_lower"], task["row_upper"]),
    ),
}
"""Penalty and loss of each kind of task."""

SMOOTH = ("lasso", "group-lasso")
"""Kinds with a squared loss: its gradient at x is the dual point for every library."""


class Judge:
    """Computes the errors of the answers to one task, and keeps the best bound that any of them proved."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.bound = -np.inf

    def error(self, x: Any, y: Any = None) -> float:
        """Return the relative gap of an answer, or its infeasibility if that is larger; for a path, the largest.

        Under a smooth loss the gradient at x is a dual point too, and the better one counts. Under other losses, an
        answer without a dual point is compared with the best bound so far; without a bound the error is infinite.
        """
        if not np.all(np.isfinite(x)) or (y is not None and not np.all(np.isfinite(y))):
            return np.inf
        if self.task.kind == "path":
            duals = [None] * x.shape[1] if y is None else y.T
            points = zip(self.task["alphas"], x.T, duals, strict=True)
            return max(self._smooth_error(problem_of(self.task.at(alpha)), *point) for alpha, *point in points)
        if self.task.kind == "lasso-cv":
            return self._smooth_error(problem_of(self.task.at(x[-1])), x[:-1], None)
        problem = problem_of(self.task)
        if self.task.kind in SMOOTH:
            return self._smooth_error(problem, x, y)
        certificate = sb.certify(problem, x, np.zeros(self.task.shape[0]) if y is None else y)
        if y is None:
            value = certificate.primal_value
            gap = abs(value - self.bound) / max(abs(value), abs(self.bound))
            return max(gap, certificate.primal_infeasibility) if np.isfinite(self.bound) else np.inf
        if certificate.dual_infeasibility == 0:
            self.bound = max(self.bound, certificate.dual_value)
        return certificate.error

    def _smooth_error(self, problem: sb.Problem, x: Any, y: Any) -> float:
        gradient = self.task["A"] @ x - self.task["b"]
        return min(sb.certify(problem, x, dual).error for dual in (gradient, y) if dual is not None)
