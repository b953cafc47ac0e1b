"""Linear programs: how they are recognised, and their prices and vertices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

from ..common.arrays import Vector
from ..functions.normal_form import NormalForm, Piecewise
from ..functions.points import Point
from ..model.model import Model
from ..operators import Operator

ACTIVE = 1e-9
"""A bound is active up to this distance, relative to 1 and the size of the bound."""

MOST_STORED, MOST_FACTORED = 10_000_000, 200_000_000
"""Whether a point is a vertex is decided by the rank of a block of A. The columns of the block as an array may have
MOST_STORED entries; so may the entries of a square block times its side, for a sparse factorisation. The products of a
dense factorisation may be MOST_FACTORED. Beyond that it is not tested: it would take a large part of a solve."""

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
    """Return the linear program that a problem states, or None if it is not one.

    This is read from the functions: f is linear between its bounds, and g is 0 on an interval per row and infinite
    elsewhere.
    """
    # the penalty first: under identities, where it hardly ever is a program's, the parameters of the loss are large
    if not _is_straight(model.penalty_form) or not _is_straight(model.loss_form):
        return None
    f, loss = model.penalty_form.parameters, model.loss_form.parameters
    below, above = loss.lower == -np.inf, loss.upper == np.inf
    if not np.all((below | (loss.lower == 0)) & (above | (loss.upper == 0))):
        return None
    only_right, only_left = f.lower >= 0, f.upper <= 0  # bounds that leave one of the two slopes
    if not np.all(only_right | only_left | (f.left == f.right)):
        return None
    return LinearProgram(
        np.where(only_right, f.right, f.left),
        f.lower,
        f.upper,
        np.where(below, loss.left, -np.inf),
        np.where(above, loss.right, np.inf),
    )


def _is_straight(form: NormalForm | None) -> TypeGuard[NormalForm]:
    """Return whether a function has slopes and bounds only."""
    return form is not None and all(
        isinstance(atom, Piecewise) and not np.any(atom.parameters.quadratic) for atom in form.atoms
    )


def at_hand(A: Operator) -> bool:
    """Return whether all entries of A are in the memory of this process."""
    return A.traits.at_hand


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
    """Return whether x is a vertex, or None if that is not tested.

    With F the variables strictly between their bounds and B the rows that are active, a feasible x is a vertex if and
    only if A_BF has independent columns.
    """
    if not at_hand(model.A):
        return None
    u = model.A.matvec(x)
    if not (_within(x, program.lower, program.upper) and _within(u, program.row_lower, program.row_upper)):
        return False
    between = np.flatnonzero(~(_near(x, program.lower) | _near(x, program.upper)))
    rows = np.flatnonzero(_near(u, program.row_lower) | _near(u, program.row_upper))
    if between.size > rows.size:
        return False
    if not between.size:
        return True
    if u.size * between.size > MOST_STORED:
        return None
    return _independent(model.A.entries(between)[rows])


def _within(point: Vector, lower: Vector, upper: Vector) -> bool:
    inside = (point >= lower) & (point <= upper)
    return bool(np.all(inside | _near(point, lower) | _near(point, upper)))


def _near(point: Vector, bound: Vector) -> NDArray[np.bool_]:
    finite = np.isfinite(bound)
    return finite & (np.abs(point - np.where(finite, bound, 0.0)) <= ACTIVE * (1.0 + np.abs(bound)))


def _independent(block: Vector) -> bool | None:
    """Return whether the columns of a block are independent, or None if that takes too long."""
    lengths = np.linalg.norm(block, axis=0)
    if not np.all(lengths > 0):
        return False
    block = block / lengths
    rows, columns = block.shape
    if rows == columns and np.count_nonzero(block) * rows <= MOST_STORED:
        try:
            pivots = np.abs(splu(sparse.csc_matrix(block)).U.diagonal())
        except RuntimeError:  # exactly singular
            return False
    elif rows * columns**2 <= MOST_FACTORED:
        pivots = np.abs(np.diag(linalg.qr(block, mode="r", pivoting=True)[0]))
    else:
        return None
    return bool(pivots.min() > DEPENDENT * pivots.max())


def import_highspy(purpose: str) -> Any:
    """Return the module ``highspy``, or raise an error that says how to install it."""
    try:
        import highspy
    except ImportError:
        raise ImportError(f"{purpose} needs highspy: pip install 'saddleback[lp]'") from None
    return highspy
