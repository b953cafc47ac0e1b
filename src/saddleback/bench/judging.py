"""The error of an answer: the same certificate for every library. And its sparsity."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

import saddleback as sb

from .worker.task import Task
from .worker.two_slopes import penalised

ALMOST_ZERO = 1e-6
"""Largest coefficient, relative to the largest one of x, that counts as 0 if a library returns no exact zeros."""


def problem_of(task: Task) -> sb.Problem:
    """Return the problem that a task states."""
    return sb.Problem(*ARGUMENTS[task.kind](task))


def _l1(task: Task) -> sb.L1:
    return sb.L1(task["alpha"], weights=penalised(task) if task["intercept"] else None)


def _svm_intercept(task: Task) -> tuple[Any, Any, Any]:
    A = task["A"]
    return [sb.SquaredL2(task["alpha"]), sb.Zero()], [A[:, :-1], A[:, -1:]], sb.Hinge(task["labels"])


ARGUMENTS: dict[str, Callable[[Task], tuple[Any, Any, Any]]] = {
    "lasso": lambda task: (sb.L1(task["alpha"]), task["A"], sb.Squared(task["b"])),
    "group-lasso": lambda task: (
        sb.GroupL2(task["alpha"], int(task["group_size"]), task["weights"]),
        task["A"],
        sb.Squared(task["b"]),
    ),
    "absolute": lambda task: (_l1(task), task["A"], sb.Absolute(task["b"])),
    "quantile": lambda task: (_l1(task), task["A"], sb.Pinball(task["b"], task["quantile"])),
    "hinge": lambda task: (_l1(task), task["A"], sb.Hinge(task["labels"])),
    "squared-hinge": lambda task: (_l1(task), task["A"], sb.SquaredHinge(task["labels"])),
    "svm": lambda task: (sb.SquaredL2(task["alpha"]), task["A"], sb.Hinge(task["labels"])),
    "svm-intercept": _svm_intercept,
    "group-hinge": lambda task: (
        sb.GroupL2(task["alpha"], task["groups"].tolist()),
        task["A"],
        sb.Hinge(task["labels"], scale=1 / task.shape[0]),
    ),
    "lp": lambda task: (
        sb.Linear(task["c"]) + sb.Box(task["lower"], task["upper"]),
        task["A"],
        sb.Interval(task["row_lower"], task["row_upper"]),
    ),
}
"""The arguments of ``Problem`` for each kind of task: penalty, matrix and loss."""

SMOOTH = ("lasso", "group-lasso", "squared-hinge")
"""Kinds with a smooth loss: its gradient at x is a dual point for every library."""


class Judge:
    """Computes the errors of the answers to one task, and keeps the best bound that any of them proved."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.bound = -np.inf

    def nonzeros(self, x: Any, exact: bool) -> int:
        """Return the number of coefficients that are not 0, without an intercept; for a path, at its last alpha.

        Parameters
        ----------
        x : the answer of a library.
        exact : whether the library returns exact zeros. If not, ``ALMOST_ZERO`` counts as 0.
        """
        x = (
            x[:, -1]
            if self.task.kind == "path"
            else x[: self.task.shape[1] - int(self.task.values.get("intercept", 0))]
        )
        sizes = np.abs(x)
        return int(np.count_nonzero(sizes > (0.0 if exact else ALMOST_ZERO * sizes.max(initial=0.0))))

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
            return max(_smooth_error(problem_of(self.task.at(alpha)), *point) for alpha, *point in points)
        if self.task.kind == "lasso-cv":
            return _smooth_error(problem_of(self.task.at(x[-1])), x[:-1], None)
        problem = problem_of(self.task)
        if self.task.kind in SMOOTH:
            return _smooth_error(problem, x, y)
        x = problem.model.f.domain.project(np.asarray(x, dtype=np.float64))  # an interior point may be 1e-11 outside
        certificate = sb.certify(problem, _shaped(problem, x), np.zeros(self.task.shape[0]) if y is None else y)
        if y is None:
            value = certificate.primal_value
            gap = abs(value - self.bound) / max(abs(value), abs(self.bound))
            return max(gap, certificate.primal_infeasibility) if np.isfinite(self.bound) else np.inf
        if certificate.dual_infeasibility == 0:
            self.bound = max(self.bound, certificate.dual_value)
        return certificate.error


def _smooth_error(problem: sb.Problem, x: Any, y: Any) -> float:
    gradient = problem.model.g.subgradient(problem.A @ x)
    return min(sb.certify(problem, x, dual).error for dual in (gradient, y) if dual is not None)


def _shaped(problem: sb.Problem, x: Any) -> Any:
    """Return x as the problem has it: one array, or a list with one per matrix."""
    ends = list(accumulate(prod(shape) for shape in problem.x_shapes))
    return np.split(x, ends[:-1]) if problem.is_list else x
