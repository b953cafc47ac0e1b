"""Linear programs: how they are recognised, and the way to the library that has the simplex method for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .functions._base import Vector
from .problem import Model


@dataclass(frozen=True)
class LinearProgram:
    """min cost'x with lower <= x <= upper and row_lower <= Ax <= row_upper; bounds may be infinite."""

    cost: Vector
    lower: Vector
    upper: Vector
    row_lower: Vector
    row_upper: Vector


def as_linear_program(model: Model) -> LinearProgram | None:
    """Return the linear program that a problem states, or None where it is not one.

    The functions themselves say so: f by one slope a coordinate and nothing but bounds, g by a conjugate that has no
    bounds but 0, so that g is 0 on an interval and infinite elsewhere.
    """
    penalty, loss = model.f.compiled(), model.g.conjugate_slopes()
    if penalty is None or penalty.callables or penalty.logistic or np.any(penalty.group_weight) or loss is None:
        return None
    f = penalty.slopes
    if np.any(f.left != f.right) or np.any(f.quadratic):
        return None
    below, above = loss.lower == -np.inf, loss.upper == np.inf
    if np.any(loss.quadratic) or not np.all((below | (loss.lower == 0)) & (above | (loss.upper == 0))):
        return None
    return LinearProgram(
        f.left, f.lower, f.upper, np.where(below, loss.left, -np.inf), np.where(above, loss.right, np.inf)
    )


def import_highspy(purpose: str) -> Any:
    """Return the module ``highspy``, or raise with the way to install it."""
    try:
        import highspy
    except ImportError:
        raise ImportError(f"{purpose} needs highspy: pip install 'saddleback[lp]'") from None
    return highspy
