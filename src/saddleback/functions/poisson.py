"""The Poisson loss with a log link, for counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector, multiple
from ..common.cached import cached_property
from ..common.checks import finite
from ..places.torch import device_of
from .conjugates import Conjugate
from .contract import Ray
from .domains import Everywhere, Interval
from .enclosures import self_concordant_reach, within
from .losses import Loss
from .traits import Enclosed, Kinked, Lipschitz, Movable, Scaled, Smooth, SumOverCoordinates, SumOverRows

NEWTON_STEPS = 60


class Poisson(Loss):
    """exp(u) - b u with counts b: up to a constant, the negative log-likelihood of Poisson counts with mean exp(u).

    Parameters
    ----------
    counts : array-like
        Count of every row, at least 0. Counts need not be integers.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(self, counts: ArrayLike, sample_weight: ArrayLike | None = None, scale: float = 1.0) -> None:
        self.device = device_of(counts)
        self.counts = np.atleast_1d(finite("counts", counts))
        if self.counts.size and self.counts.min() < 0:
            raise ValueError(f"counts has the value {self.counts.min():g}: expected numbers that are at least 0")
        self.shape = self.counts.shape
        self._weigh(sample_weight, scale)

    def bind(self, shape: tuple[int, ...]) -> PoissonLoss:
        self._fits(shape)
        return PoissonLoss(self.counts.ravel(), self._weights(shape))


class PoissonLoss(SumOverRows, Smooth, Lipschitz, Kinked, Scaled, Movable, Enclosed):
    r""":math:`\sum_i s_i (e^{u_i} - b_i u_i)`. Its gradient is not Lipschitz, so that methods treat it by its prox."""

    domain = Everywhere()

    def __init__(self, counts: Vector, weight: Vector) -> None:
        self.counts = counts
        self.weight = weight

    def blocks(self) -> Blocks:
        return Blocks.scalars(self.counts.size)

    def restrict(self, keep: Indices) -> PoissonLoss:
        return PoissonLoss(self.counts[keep], self.weight[keep])

    def restrict_blocks(self, blocks: Indices) -> PoissonLoss:
        return self.restrict(blocks)

    def moved(self, place: ToDevice) -> PoissonLoss:
        return PoissonLoss(place(self.counts), place(self.weight))

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        u = np.where(self.weight > 0, multiple(x, factor), 0.0)
        with np.errstate(over="ignore"):  # the value is infinite beyond the range of float64
            return float(self.weight @ (np.exp(u) - self.counts * u))

    def subgradient(self, x: Vector) -> Vector:
        return self.weight * (np.exp(x) - self.counts)

    def subgradient_scale(self) -> Vector:
        return self.weight * np.sqrt(np.maximum(self.counts, 1.0))

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        r"""Solve :math:`u + t e^u = v + t b` with t = step * weight.

        With p = u + log t and z = v + t b + log t it is :math:`p + e^p = z`. The left side is convex and increasing:
        Newton's method never overshoots from a point above the root, which min(z, log z) is for z > 1, and z otherwise.
        """
        if blocks is not None:
            return self.restrict(blocks).prox(v, step)
        reach = step * self.weight
        counted = reach > 0
        log_reach = np.log(np.where(counted, reach, 1.0))
        z = v + reach * self.counts + log_reach
        point = np.where(z > 1.0, np.log(np.maximum(z, 1.0)), z)
        for _ in range(NEWTON_STEPS):
            exponential = np.exp(point)
            change = (point + exponential - z) / (1.0 + exponential)
            point = point - change
            if np.all(np.abs(change) <= 4e-16 * (1.0 + np.abs(point))):
                break
        root: Vector = np.where(counted, point - log_reach, v)
        return root

    def recession(self, direction: Vector) -> Ray:
        down = np.minimum(direction, 0.0)
        value = -float((self.weight * self.counts) @ down)
        return Ray(value, np.where(self.weight > 0, direction - down, 0.0), value)

    def minimiser(self) -> Vector:
        with np.errstate(divide="ignore"):
            return np.where(self.weight > 0, np.log(self.counts), 0.0)

    def conjugate(self) -> PoissonConjugate:
        return PoissonConjugate(self)

    def curvature_at(self, x: Vector) -> Vector:
        return self.weight * np.exp(x)

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        gradient = self.subgradient(x)
        return gradient, gradient

    def rise(self, distance: float) -> float:
        r"""Bound the rise by :math:`e^d - 1 - d \le e^d d^2 / 2` in the row where it is largest."""
        with np.errstate(over="ignore"):
            return float(np.max(self.weight * self.counts) * np.exp(distance) * distance**2 / 2.0)

    def enclosure(self, slope: Vector, excess: float) -> tuple[Vector, Vector]:
        mean = slope + self.weight * self.counts
        known = (self.weight > 0) & (mean > 0)
        centre = np.log(np.where(known, mean, 1.0)) - np.log(np.where(known, self.weight, 1.0))
        low = centre - self_concordant_reach(excess, mean)
        # above the minimum the curvature only grows; at a mean of 0 the loss itself is the excess
        with np.errstate(divide="ignore", invalid="ignore"):
            at_zero = np.log(excess / self.weight)
        high = centre + within(np.full(mean.size, excess), np.zeros(mean.size), mean)
        high = np.where(known, high, np.where(self.weight > 0, at_zero, np.inf))
        return np.where(known, low, -np.inf), high

    def curvature_between(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        with np.errstate(over="ignore", invalid="ignore"):
            least, most = self.curvature_at(lower), self.curvature_at(upper)
        return least, np.where(self.weight > 0, most, 0.0)

    def distance_to_kink(self, u: Vector) -> Vector:
        return np.zeros_like(u)

    def row_weights(self) -> Vector:
        return np.where(self.weight > 0, self.weight, 1.0)

    def row_signature(self) -> Vector:
        return np.stack([self.counts, self.weight / self.row_weights()], 1)

    def with_row_weights(self, factors: Vector) -> PoissonLoss:
        return PoissonLoss(self.counts, self.weight * factors)


class PoissonConjugate(Conjugate[PoissonLoss], SumOverCoordinates, Scaled):
    r"""The conjugate of the Poisson loss, :math:`\sum_i c_i \log(c_i / s_i) - c_i`.

    Here :math:`c_i = y_i + s_i b_i \ge 0`. A row of weight 0 has the single point y = 0.
    """

    @cached_property
    def domain(self) -> Interval:
        weight = self.of.weight
        return Interval(-weight * self.of.counts, np.where(weight > 0, np.inf, 0.0))

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        weight = self.of.weight
        mean = np.maximum(self.domain.project(multiple(x, factor)) + weight * self.of.counts, 0.0)
        # a difference of logarithms, since the quotient may underflow
        logarithm = np.log(np.where(mean > 0, mean, 1.0)) - np.log(np.where(weight > 0, weight, 1.0))
        return float(np.sum(mean * logarithm - mean))

    def recession(self, direction: Vector) -> Ray:
        return Ray(0.0, direction)

    def restrict(self, keep: Indices) -> PoissonConjugate:
        return PoissonConjugate(self.of.restrict(keep))

    def minimiser(self) -> Vector:
        return self.of.weight * (1.0 - self.of.counts)

    def subgradient_scale(self) -> Vector:
        return np.maximum(np.log(np.maximum(self.of.counts, 1.0)), 1.0)
