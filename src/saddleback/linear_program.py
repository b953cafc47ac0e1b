"""Linear programs: how they are recognised, and what their solutions say beside x and y."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from .functions._base import Indices, Vector
from .functions.points import Point
from .operators import Operator
from .problem import Model

ACTIVE = 1e-9
"""A bound is active up to this distance, relative to 1 and the size of the bound."""

MOST_TESTED = 200_000
"""Entries of the matrix whose rank decides whether a point is a vertex, beyond which that is not tested."""

DEPENDENT = 1e-11
"""Pivots below this, relative to the largest, are 0 up to rounding."""


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

    The functions themselves say so: f is linear between its bounds, and the conjugate of g has no bounds but 0, so
    that g is 0 on an interval and infinite elsewhere.
    """
    if not model.f.is_linear():
        return None
    penalty, loss = model.f.compiled(), model.g.conjugate_slopes()
    if penalty is None or loss is None or np.any(loss.quadratic):
        return None
    below, above = loss.lower == -np.inf, loss.upper == np.inf
    if not np.all((below | (loss.lower == 0)) & (above | (loss.upper == 0))):
        return None
    f = penalty.slopes
    return LinearProgram(
        f.left, f.lower, f.upper, np.where(below, loss.left, -np.inf), np.where(above, loss.right, np.inf)
    )


def at_hand(A: Operator) -> bool:
    """Return whether all entries of A are in the memory of this process."""
    return A.entries_known and A.reads_columns and A.holders is None and A.panels is None and not A.tensors()


@dataclass(frozen=True)
class Prices:
    """The dual answer of a linear program in the usual sign, and whether x is a vertex; see ``Result``."""

    shadow_prices: Vector
    reduced_costs: Vector
    is_vertex: bool | None


def prices(model: Model, x: Point, y: Point) -> Prices | None:
    """Return the prices that y states, or None for a problem that is not a linear program."""
    program = as_linear_program(model)
    if program is None:
        return None
    dual = y.vector()
    return Prices(-dual, program.cost + model.A.rmatvec(dual), is_vertex(model, program, x.vector()))


def is_vertex(model: Model, program: LinearProgram, x: Vector) -> bool | None:
    """Return whether x is a vertex, or None where that is not tested.

    With F the variables strictly between their bounds and B the rows that are active, x is a vertex if and only if
    A_BF has independent columns, that is, if [I, A_BF; A_BF', 0] is not singular.
    """
    if not at_hand(model.A):
        return None
    u = model.A.matvec(x)
    between = np.flatnonzero(~(_near(x, program.lower) | _near(x, program.upper)))
    rows = np.flatnonzero(_near(u, program.row_lower) | _near(u, program.row_upper))
    if between.size > rows.size:
        return False
    if not between.size:
        return True
    if model.A.sums(0)[0][between].sum() > MOST_TESTED:
        return None
    return _independent(model.A, rows, between)


def _near(point: Vector, bound: Vector) -> NDArray[np.bool_]:
    finite = np.isfinite(bound)
    return finite & (np.abs(point - np.where(finite, bound, 0.0)) <= ACTIVE * (1.0 + np.abs(bound)))


def _independent(A: Operator, rows: Indices, columns: Indices) -> bool:
    block = sparse.csr_matrix(A.compressed()[:, columns])[rows]
    lengths = np.sqrt(np.asarray(block.multiply(block).sum(axis=0))).ravel()
    if not np.all(lengths > 0):
        return False
    block = block @ sparse.diags(1.0 / lengths)
    system = sparse.block_array([[sparse.identity(rows.size), block], [block.T, None]], format="csc")
    try:
        pivots = np.abs(splu(system).U.diagonal())
    except RuntimeError:  # exactly singular
        return False
    return bool(pivots.min() > DEPENDENT * pivots.max())


def import_highspy(purpose: str) -> Any:
    """Return the module ``highspy``, or raise with the way to install it."""
    try:
        import highspy
    except ImportError:
        raise ImportError(f"{purpose} needs highspy: pip install 'saddleback[lp]'") from None
    return highspy
