"""The loss of expectile regression, with a square of its own on either side of the target."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..common.arrays import Indices, Step, Vector, multiple
from ..common.cached import cached_property
from ..common.rounded import UNIT
from .contract import Ray
from .curved import CurvedConjugate, CurvedRows
from .domains import Everywhere, Interval
from .excess import LOST, Near
from .losses import TargetLoss
from .terms import broadcast_parameter
from .traits import InUnits


class Expectile(TargetLoss):
    """q r^2 / 2 if r = b - u >= 0, (1 - q) r^2 / 2 otherwise, with q the expectile.

    The constant with the least loss is the q-expectile of b (Newey and Powell, 1987). With q = 1/2 that is the mean.

    Parameters
    ----------
    b : array-like
        Target of every row; one column per task if x is a matrix.
    expectile : float or array-like, default 0.5
        The expectile q, from 0 to 1; one value for all rows, or one per row. With 0 or 1 only one side counts.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(
        self, b: ArrayLike, expectile: ArrayLike = 0.5, sample_weight: ArrayLike | None = None, scale: float = 1.0
    ) -> None:
        super().__init__(b, sample_weight, scale)
        self.expectile = self._per_row("expectile", expectile, high=1.0)

    def bind(self, shape: tuple[int, ...]) -> ExpectileLoss:
        self._fits(shape)
        share = np.array(broadcast_parameter("expectile", self.expectile, shape))
        return ExpectileLoss(np.asarray(self.b.ravel(), dtype=np.float64), share, self._weights(shape))


class ExpectileLoss(CurvedRows, InUnits):
    r""":math:`\sum_i s_i c_i (u_i - b_i)^2 / 2`, with c = q below b and 1 - q above."""

    domain = Everywhere()

    def __init__(self, b: Vector, below: Vector, weight: Vector) -> None:
        self.b = b
        self.below = below
        self.weight = weight

    def parameters(self) -> tuple[Vector, ...]:
        return self.b, self.below

    def in_units(self, unit: Vector) -> ExpectileLoss:
        return ExpectileLoss(self.b / unit, self.below, self.weight * unit * unit)

    def side(self, sign: Vector) -> Vector:
        """Return the curvature, with the weight, on the side of a displacement from b, or of a slope."""
        return self.weight * np.where(sign < 0, self.below, 1.0 - self.below)

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        r = multiple(x, factor) - self.b
        return 0.5 * float(np.sum(self.side(r) * r * r))

    def subgradient(self, x: Vector) -> Vector:
        r = x - self.b
        return self.side(r) * r

    def subgradient_scale(self) -> Vector:
        return np.zeros_like(self.b)  # it is the size of the residuals, as for a squared loss

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        if blocks is not None:
            return self.restrict(blocks).prox(v, step)
        r = v - self.b
        return self.b + r / (1.0 + step * self.side(r))

    def recession(self, direction: Vector) -> Ray:
        return Ray(0.0, np.where(self.side(direction) > 0, direction, 0.0))

    def minimiser(self) -> Vector:
        return self.b

    def conjugate(self) -> ExpectileConjugate:
        return ExpectileConjugate(self)

    def curvature(self) -> Vector:
        return self.weight * np.maximum(self.below, 1.0 - self.below)

    def curvature_at(self, x: Vector) -> Vector:
        return self.side(x - self.b)

    def rise(self, distance: float) -> float:
        return 0.5 * float(np.max(self.curvature())) * distance**2

    def rise_within(self, distances: Vector) -> float:
        return 0.5 * float(self.curvature() @ distances**2)

    # with r = u - b, the excess of a row is c (r - y / c)^2 / 2 if r and y have the same sign, and otherwise
    # c r^2 / 2 + y^2 / (2 c') + |r y|, where c and c' belong to the sides of r and y

    def shift(self) -> Vector:
        return self.b

    def row_values(self, u: Vector) -> Near:
        values = 0.5 * self.side(u) * u * u
        return Near(values, 4 * UNIT * values + _lost(values))

    def row_conjugates(self, y: Vector) -> Near:
        square, linear = self._conjugate_square(y), self.b * y
        size = square + np.abs(linear)
        return Near(square + linear, 6 * UNIT * size + _lost(size))

    def row_excess(self, u: Vector, y: Vector) -> Near:
        curvature = self.side(u)
        touching = np.divide(y, curvature, out=np.zeros_like(y), where=curvature > 0)
        off = u - touching
        same = np.sign(u) * np.sign(y) > 0
        apart = 0.5 * curvature * u * u + self._conjugate_square(y) + np.abs(u * y)
        near = 0.5 * curvature * off * off
        error = 4 * curvature * UNIT * np.abs(touching) * (np.abs(off) + UNIT * np.abs(touching))
        terms = np.where(same, near, apart)
        return Near(terms, 8 * UNIT * terms + np.where(same, error, 0.0) + _lost(np.abs(u) + np.abs(y)))

    def _conjugate_square(self, y: Vector) -> Vector:
        """Return y^2 / (2 c); 0 on a side with the curvature 0, where y is 0."""
        curvature = self.side(y)
        return np.divide(0.5 * y * y, curvature, out=np.zeros_like(y), where=curvature > 0)


class ExpectileConjugate(CurvedConjugate[ExpectileLoss]):
    r""":math:`\sum_i b_i y_i + y_i^2 / (2 s_i c_i)`, with c = q for y < 0 and 1 - q for y > 0.

    On a side with the curvature 0 it is infinite.
    """

    @cached_property
    def domain(self) -> Interval:
        sign = np.ones_like(self.of.b)
        return Interval(*(np.where(self.of.side(side) > 0, side * np.inf, 0.0) for side in (-sign, sign)))

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        y, curvature = self.domain.project(multiple(x, factor)), self.of.side(x)
        return float(np.sum(self.of.b * y + 0.5 * y * y / np.where(curvature > 0, curvature, 1.0)))

    def recession(self, direction: Vector) -> Ray:
        return Ray(0.0, direction)

    def minimiser(self) -> Vector:
        return self.of.subgradient(np.zeros_like(self.of.b))

    def subgradient_scale(self) -> Vector:
        return np.abs(self.of.b)


def _lost(size: Vector) -> Vector:
    """Return what underflow may have taken from terms that are not all 0."""
    return np.where(size > 0, LOST, 0.0)
