"""The two halves of an iteration on arrays."""

from __future__ import annotations

from functools import reduce

import numpy as np

from ..common.arrays import Indices, Vector
from ..functions.contract import Convex
from ..model.model import Model
from ..steps.strengths import Strengths
from .contract import Iterate


def primal_half(model: Model, drawn: Indices, strengths: Strengths, at: Iterate) -> Vector:
    """Take the primal step of the drawn blocks for the current y, and return the change of Ax."""
    if drawn.size == 0:
        return np.zeros_like(at.u)
    changes = []
    for columns, blocks in model.blocks.pieces(drawn):
        step = 1.0 / strengths.primal[columns]
        before = at.x[columns]
        after = model.f.prox(before - step * model.A.rmatvec(at.y, columns), step, blocks)
        changes.append(model.A.matvec(after - before, columns))
        at.x[columns] = after
    return reduce(np.add, changes)


def existing(model: Model, drawn: Indices) -> Indices:
    """Return the draws that are blocks: a process with fewer blocks than others also draws indices without a block."""
    return drawn[drawn < len(model.blocks)]


def touched_rows(model: Model, drawn: Indices) -> Indices:
    """Return the rows in which the drawn blocks have entries."""
    return np.flatnonzero(model.A.sums(1, model.blocks.columns(drawn))[1])


def dual_half(g_star: Convex, strengths: Strengths, extrapolation: float, change: Vector, at: Iterate) -> None:
    """Take the dual step after x has changed Ax by ``change``, and add the new point to the sums."""
    step = 1.0 / strengths.dual
    at.u += change
    at.y[:] = g_star.prox(at.y + step * (at.u + extrapolation * change), step)
    at.averages.x += at.x
    at.averages.y += at.y
