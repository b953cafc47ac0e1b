"""Problems as cone programs, which CVXPY gives to Clarabel or SCS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .answer import MANY, Answer, Solver
from .task import Task
from .two_slopes import SLOPES, slopes, weights

Minimise = Callable[[Any], Any]
"""Solves a problem of CVXPY in place."""


def clarabel(tol: float) -> Minimise:
    """Return Clarabel with a tolerance."""
    return lambda problem: problem.solve("CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)


def scs(tol: float) -> Minimise:
    """Return SCS with a tolerance."""
    return lambda problem: problem.solve("SCS", eps_abs=tol, eps_rel=tol, max_iters=MANY)


class Rows(NamedTuple):
    """A loss in CVXPY: its value, and the constraint whose multipliers, times ``sign``, are the dual point."""

    value: Any
    constraint: Any
    sign: Any


def two_slopes(task: Task, x: Any) -> Rows:
    """Return a loss with two slopes per row."""
    import cvxpy as cp

    rows = slopes(task)
    below, above = (cp.Variable(task.shape[0], nonneg=True) for _ in range(2))
    return Rows(rows.under @ below + rows.over @ above, task["A"] @ x + below - above == rows.b, 1.0)


def hinge(task: Task, x: Any) -> Rows:
    """Return the sum of max(0, 1 - label (Ax)_i)."""
    import cvxpy as cp

    missing = cp.Variable(task.shape[0], nonneg=True)
    return Rows(cp.sum(missing), _margins(task, x, missing), -task["labels"])


def mean_hinge(task: Task, x: Any) -> Rows:
    """Return the mean of max(0, 1 - label (Ax)_i)."""
    total = hinge(task, x)
    return total._replace(value=total.value / task.shape[0])


def squared_hinge(task: Task, x: Any) -> Rows:
    """Return half the sum of max(0, 1 - label (Ax)_i)^2."""
    import cvxpy as cp

    missing = cp.Variable(task.shape[0])
    return Rows(cp.sum_squares(missing) / 2, _margins(task, x, missing), -task["labels"])


def _margins(task: Task, x: Any, missing: Any) -> Any:
    import cvxpy as cp

    return missing + cp.multiply(task["labels"], task["A"] @ x) >= 1


def norm1(task: Task, x: Any) -> Any:
    """Return an L1 penalty, without the intercept."""
    import cvxpy as cp

    return weights(task) @ cp.abs(x)


def half_square(task: Task, x: Any) -> Any:
    """Return alpha / 2 times the squared norm, without the intercept."""
    import cvxpy as cp

    return task["alpha"] / 2 * cp.sum_squares(x[: task.shape[1] - int(task["intercept"])])


def group_norms(task: Task, x: Any) -> Any:
    """Return a group penalty, with the square root of its size as the weight of a group."""
    import cvxpy as cp

    ends = np.cumsum(task["groups"])
    norms = [cp.norm2(x[end - size : end]) for end, size in zip(ends, task["groups"], strict=True)]
    return task["alpha"] * np.sqrt(task["groups"]) @ cp.hstack(norms)


Part = Callable[[Task, Any], Any]

OBJECTIVES: dict[str, tuple[Part, Part]] = {
    **dict.fromkeys(SLOPES, (two_slopes, norm1)),
    "hinge": (hinge, norm1),
    "squared-hinge": (squared_hinge, norm1),
    "svm": (hinge, half_square),
    "svm-intercept": (hinge, half_square),
    "group-hinge": (mean_hinge, group_norms),
}
"""Loss and penalty of each kind of task."""


def penalised_loss(minimiser: Callable[[float], Minimise]) -> Solver:
    """Return the solver of tasks with a loss and a penalty."""

    def solve(task: Task, tol: float) -> Answer:
        import cvxpy as cp

        loss, penalty = OBJECTIVES[task.kind]
        x = cp.Variable(task.shape[1])
        rows: Rows = loss(task, x)
        minimiser(tol)(cp.Problem(cp.Minimize(rows.value + penalty(task, x)), [rows.constraint]))
        return Answer(x.value, rows.sign * rows.constraint.dual_value)

    return solve


def linear_program(minimiser: Callable[[float], Minimise]) -> Solver:
    """Return the solver of linear programs."""

    def solve(task: Task, tol: float) -> Answer:
        import cvxpy as cp

        x = cp.Variable(task.shape[1])
        rows, bounds = _rows(task, x), _bounds(task, x)
        constraints = [*(constraint for _, _, constraint in rows), *bounds]
        minimiser(tol)(cp.Problem(cp.Minimize(task["c"] @ x), constraints))
        y = np.zeros(task.shape[0])
        for mine, sign, constraint in rows:
            y[mine] += sign * constraint.dual_value
        return Answer(x.value, y)

    return solve


def _rows(task: Task, x: Any) -> list[tuple[Any, float, Any]]:
    """Return the constraints on Ax: which rows, the sign of their multipliers in y, and the constraint."""
    A, low, high = task["A"].tocsr(), task["row_lower"], task["row_upper"]
    equal, at_least, at_most = low == high, (low < high) & np.isfinite(low), (low < high) & np.isfinite(high)
    rows = [
        (equal, 1.0, A[equal] @ x == low[equal]),
        (at_least, -1.0, A[at_least] @ x >= low[at_least]),
        (at_most, 1.0, A[at_most] @ x <= high[at_most]),
    ]
    return [row for row in rows if np.any(row[0])]


def _bounds(task: Task, x: Any) -> list[Any]:
    below, above = task["lower"], task["upper"]
    return [x[np.isfinite(below)] >= below[np.isfinite(below)], x[np.isfinite(above)] <= above[np.isfinite(above)]]
