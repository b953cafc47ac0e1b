"""A problem of CVXPY with the values of its variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interop import from_cvxpy
from .stated import Known


def program(model: Any, X: Any, y: Any, weight: Any) -> list[Any]:
    """Read a problem of CVXPY; its variables have the values that a solver gave them."""
    values = [variable.value for variable in model.variables()]
    if any(value is None for value in values):
        raise ValueError("the variables of the cvxpy.Problem have no values: call its solve() first")
    problem = from_cvxpy(model)
    shaped = [np.reshape(value, shape) for value, shape in zip(values, problem.x_shapes, strict=True)]
    return [(problem, shaped if problem.is_list else shaped[0])]


MODELS = {"Problem": Known(program)}
