"""The loss of expectile regression, with a square of its own on either side of the target."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..common.arrays import Indices, Step, Vector, multiple
from ..common.cached import cached_property
from .conjugates import Conjugate
from .contract import Ray
from .curved import CurvedRows
from .domains import Everywhere, Interval
from .losses import TargetLoss
from .terms import broadcast_parameter
from .traits import Scaled, SumOverCoordinates


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


class ExpectileLoss(CurvedRows):
    r""":math:`\sum_i s_i c_i (u_i - b_i)^2 / 2`, with c = q below b and 1 - q above."""

    domain = Everywhere()

    def __init__(self, b: Vector, below: Vector, weight: Vector) -> None:
        self.b = b
        self.below = below
        self.weight = weight

    def parameters(self) -> tuple[Vector, ...]:
        return self.b, self.below

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


class ExpectileConjugate(Conjugate[ExpectileLoss], SumOverCoordinates, Scaled):
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

    def restrict(self, keep: Indices) -> ExpectileConjugate:
        return ExpectileConjugate(self.of.restrict(keep))

    def minimiser(self) -> Vector:
        return self.of.subgradient(np.zeros_like(self.of.b))

    def subgradient_scale(self) -> Vector:
        return np.abs(self.of.b)
