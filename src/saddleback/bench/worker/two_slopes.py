"""Losses with two slopes per row, as all solvers of linear and cone programs need them.

The loss of a row is ``under * (b - u)`` below b and ``over * (u - b)`` above it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .task import Task


class Slopes(NamedTuple):
    """The kink and the two slopes of each row, both at least 0."""

    b: Any
    under: Any
    over: Any


def slopes(task: Task) -> Slopes:
    """Return the losses of the rows of a task."""
    return SLOPES[task.kind](task)


def penalised(task: Task) -> Any:
    """Return 1 for every column, and 0 for an intercept, which is the last one."""
    found = np.ones(task.shape[1])
    found[task.shape[1] - int(task["intercept"]) :] = 0.0
    return found


def weights(task: Task) -> Any:
    """Return the weight of every |x_j|."""
    return task["alpha"] * penalised(task)


def _constant(task: Task, under: float, over: float) -> Slopes:
    rows = task.shape[0]
    return Slopes(task["b"], np.full(rows, under), np.full(rows, over))


SLOPES: dict[str, Callable[[Task], Slopes]] = {
    "absolute": lambda task: _constant(task, 1.0, 1.0),
    "quantile": lambda task: _constant(task, task["quantile"], 1.0 - task["quantile"]),
    "hinge": lambda task: Slopes(task["labels"], (task["labels"] > 0) * 1.0, (task["labels"] < 0) * 1.0),
}
"""The kinds of task with an L1 penalty and two slopes per row: linear programs."""
