"""What the kernels read and write, and the two halves of an iteration on arrays."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..functions._base import Function, Indices, Vector
from ..problem import Model
from ..steps import Strengths

if TYPE_CHECKING:
    from ..methods._base import Averages


class Iterate(Protocol):
    """The point that an iteration changes in place, with u = Ax and the sums of all points so far."""

    x: Vector
    y: Vector
    u: Vector
    averages: Averages


def primal_half(model: Model, drawn: Indices, strengths: Strengths, at: Iterate) -> Vector:
    """Take the primal step of the drawn blocks against y, and return by how much it changes Ax."""
    changes = []
    for columns, blocks in model.blocks.pieces(drawn):
        step = 1.0 / strengths.primal[columns]
        before = at.x[columns]
        after = model.f.prox_blocks(blocks, before - step * model.A.columns_rmatvec(columns, at.y), step)
        changes.append(model.A.columns_matvec(columns, after - before))
        at.x[columns] = after
    return reduce(np.add, changes)


def touched_rows(model: Model, drawn: Indices) -> Indices:
    """Return the rows in which the drawn blocks have entries."""
    return np.flatnonzero(model.A.block_row_sums(model.blocks.columns(drawn)))


def dual_half(g: Function, strengths: Strengths, extrapolation: float, change: Vector, at: Iterate) -> None:
    """Take the dual step after x has changed Ax by ``change``, and add the new point to the sums."""
    step = 1.0 / strengths.dual
    at.u += change
    at.y[:] = g.prox_conjugate(at.y + step * (at.u + extrapolation * change), step)
    at.averages.x += at.x
    at.averages.y += at.y
