"""What a library returns for a task."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .task import Task

MANY = 1_000_000
"""A limit on iterations that no solve reaches: the tolerance ends it."""


@dataclass(frozen=True)
class Answer:
    """The answer of a library: x, its y if it returns one, and what it reports.

    For a path x has one column per alpha; for a cross-validation the last entry of x is the chosen alpha.
    """

    x: Any
    y: Any = None
    info: Mapping[str, Any] = field(default_factory=dict)


Solver = Callable[[Task, float], Answer]
"""Solves a task with one of the tolerances of a library.

All of it is timed, so it contains only conversions of data that the library makes itself, or that its users have to
make. The import at its head costs nothing after the untimed first call.
"""


def chosen(model: Any, task: Task) -> Answer:
    """Return the coefficients that a fitted cross-validation has chosen, followed by their alpha."""
    return Answer(np.append(model.coef_, model.alpha_ * task.shape[0]), info={"alpha": float(model.alpha_)})


def cores() -> int:
    """Return the number of cores, for libraries that use one thread unless they are told otherwise."""
    return os.cpu_count() or 1
