"""Points that are stored as the expression that produces them, if computing them again costs less than their memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..common.arrays import Vector
from ..common.rebuildable import stored
from ..functions.contract import Convex
from ..functions.points import DensePoint, Point
from .contract import Operator
from .stacked import parts_of, summed_products


def zeros(A: Operator, size: int) -> Vector:
    """Return zeros on the device of the vectors of an operator: the vectors of identities may lie on a device."""
    device = A.traits.device
    return np.zeros(size) if device is None or A.traits.identity_scales is None else device.zeros(size)


def forward(A: Operator, x: Point) -> Vector:
    """Return A x, which may be x itself and must not be changed."""
    if A.traits.identity_scales == (1.0,):
        return x.vector()
    parts = parts_of(A)
    if len(parts) == 1:
        return A.matvec(x.vector())
    widths = [part.shape[1] for part in parts]
    ends = np.cumsum(widths).tolist()
    return summed_products(parts, [x.segment(slice(b - width, b)) for b, width in zip(ends, widths, strict=True)])


def adjoint(A: Operator, y: Vector) -> Vector:
    """Return A'y, which may be y itself and must not be changed."""
    return y if A.traits.identity_scales == (1.0,) else A.rmatvec(y)


@stored
@dataclass(frozen=True)
class Image(Point):
    """A x."""

    A: Operator
    x: Point

    def vector(self) -> Vector:
        """Return the product."""
        return forward(self.A, self.x)


def image(A: Operator, x: Point) -> Point:
    """Return A x, under identities as an expression, which takes no time to compute again."""
    return DensePoint(forward(A, x)) if A.traits.identity_scales is None else Image(A, x)


@stored
@dataclass(frozen=True)
class Slope(Point):
    """-A'y."""

    A: Operator
    y: Point

    def vector(self) -> Vector:
        """Return the product."""
        z = self.A.rmatvec(self.y.vector())
        return np.negative(z, out=z)


@stored
@dataclass(frozen=True)
class Gradient(Point):
    """The gradient of a smooth loss at u, times a factor."""

    g: Convex
    u: Point
    factor: float = 1.0

    def vector(self) -> Vector:
        """Return the multiple of the gradient."""
        y = self.g.subgradient(self.u.vector())
        y *= self.factor
        return y

    def times(self, factor: float) -> Gradient:
        """Return a multiple, which needs no further memory."""
        return replace(self, factor=factor * self.factor)
