"""Points that a problem makes of others: kept as these, where making them again costs less than their memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..common.arrays import Vector
from ..common.rebuildable import stored
from ..functions.contract import Function
from ..functions.points import Point, Whole
from . import Operator


@stored
@dataclass(frozen=True)
class Image(Point):
    """A x."""

    A: Operator
    x: Point

    def vector(self) -> Vector:
        """Return the product."""
        return self.A.image(self.x)


def image(A: Operator, x: Point) -> Point:
    """Return A x: as that under identities, which make it again in no time."""
    return Whole(A.image(x)) if A.traits.identity_scales is None else Image(A, x)


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

    g: Function
    u: Point
    factor: float = 1.0

    def vector(self) -> Vector:
        """Return the multiple of the gradient."""
        y = self.g.subgradient(self.u.vector())
        y *= self.factor
        return y

    def times(self, factor: float) -> Gradient:
        """Return a multiple, which needs no memory beside its own."""
        return replace(self, factor=factor * self.factor)
