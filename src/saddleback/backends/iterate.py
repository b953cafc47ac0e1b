"""What the kernels read and write, and the half of an iteration that arrays do for every loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..functions._base import Function, Vector
from ..steps import Strengths

if TYPE_CHECKING:
    from ..methods._base import Averages


class Iterate(Protocol):
    """The point that an iteration changes in place, with u = Ax and the sums of all points so far."""

    x: Vector
    y: Vector
    u: Vector
    averages: Averages


def dual_half(g: Function, strengths: Strengths, extrapolation: float, change: Vector, at: Iterate) -> None:
    """Take the dual step after x has changed Ax by ``change``, and add the new point to the sums."""
    step = 1.0 / strengths.dual
    at.u += change
    at.y[:] = g.prox_conjugate(at.y + step * (at.u + extrapolation * change), step)
    at.averages.x += at.x
    at.averages.y += at.y
