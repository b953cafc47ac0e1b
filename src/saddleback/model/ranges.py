"""The range of data that can be computed with: squares, and their products, must not overflow or underflow.

The parameters of penalties and losses are checked when they are given (``common/checks.py``), and the products of a
``LinearOperator`` when they are computed. This module checks A, and the sizes of x and y that follow from all data.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from ..common.arrays import Vector
from ..common.checks import LARGEST, SQUARABLE
from ..common.chunks import inner, panels
from ..functions.contract import Convex
from ..functions.piecewise import PiecewiseQuadratic
from ..functions.traits import subgradient_scale
from ..operators import Operator
from .layout import Layout


def check_range(layout: Layout, loss: Convex, slopes: Sequence[Vector]) -> None:
    """Raise if the lengths of A, of the data of the loss or of a solution are outside the range of floating point.

    Parameters
    ----------
    layout : the operators, with the names of the blocks of A.
    loss : the loss.
    slopes : the gradients of its terms at 0, where they are known.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        column = max(_longest_column(cell.fitted, cell.name) for cell in layout.cells)
        targets = loss.conjugate()
        length = length_of(targets, layout.operators[0].shape[0])
        if length > LARGEST or (length < 1.0 / LARGEST and np.any(subgradient_scale(targets))):
            raise ValueError(_message("the data of the loss", "a vector", length))
        if column > 0 and length > 0 and np.isfinite(column):
            _check_point(
                "x", length / column, f"the data of the loss has the length {length:.0e} and columns of A {column:.0e}"
            )
        largest = max((float(np.max(np.abs(slope))) for slope in slopes), default=0.0)
        if largest > 0:
            _check_point("y", largest, f"the gradient of the loss at 0 has entries up to {largest:.0e}")


def _longest_column(A: Operator, name: str) -> float:
    """Return the length of the longest column, infinite if it is not known; raise if its square over- or underflows."""
    if not A.traits.entries_known:
        return np.inf
    length = float(np.sqrt(np.max(A.sums(2)[0], initial=0.0)))
    if length > LARGEST or (length < 1.0 / LARGEST and np.any(A.matvec(np.ones(A.shape[1])))):
        raise ValueError(_message(name, "a column", length))
    return length


def length_of(loss_conjugate: Convex, rows: int) -> float:
    """Return ||b||, the length of the targets of a loss, from the size of the subgradients of its conjugate.

    Not by the BLAS, whose threads would still be spinning, on the cores that it needs, when a solve begins.
    """
    if not isinstance(loss_conjugate, PiecewiseQuadratic):
        size = np.broadcast_to(subgradient_scale(loss_conjugate), (rows,))
        return sqrt(inner(size, size))
    parts = (loss_conjugate.panel(own).subgradient_scale() for own in panels(loss_conjugate.left))
    return sqrt(sum(inner(part, part) for part in parts))


def _message(name: str, what: str, length: float) -> str:
    size = "more than 1e150" if length == np.inf else f"{length:.0e}" if length > 0 else "less than 1e-150"
    flow = "overflow" if length > 1 else "underflow"
    return (
        f"{name} has {what} of length {size}, whose squares {flow}: expected lengths from {1 / LARGEST:.0e} to "
        f"{LARGEST:.0e}; change the units"
    )


def _check_point(which: str, size: float, why: str) -> None:
    """Raise if the squares of the entries of x or y would overflow or underflow."""
    if not 1 / SQUARABLE <= size <= SQUARABLE:
        flow = "overflow" if size > 1 else "underflow"
        raise ValueError(
            f"{why}: {which} would have entries of {size:.0e}, whose squares {flow}; expected sizes from "
            f"{1 / SQUARABLE:.0e} to {SQUARABLE:.0e}; change the units of A or of the loss"
        )
