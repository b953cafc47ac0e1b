"""The Kullback-Leibler divergence of counts from their means, as in imaging."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..common.arrays import Indices, Step, Vector, multiple
from ..common.cached import cached_property
from ..common.checks import nonnegative
from ..common.rounded import UNIT
from ..places.torch import device_of
from .contract import Ray
from .curved import CurvedConjugate, CurvedRows
from .domains import Interval
from .excess import LOST, Near, relative_entropy
from .losses import Loss


class KullbackLeibler(Loss):
    """u - b log(u) for u > 0, and u for u >= 0 where b = 0: the divergence of b from u, up to a constant.

    This is also the negative log-likelihood of Poisson counts b with mean u, as in images with few photons. ``Poisson``
    has the mean exp(u).

    Parameters
    ----------
    b : array-like
        Count of every row, at least 0. Counts need not be integers.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default. A row of weight 0 has no constraint either.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(self, b: ArrayLike, sample_weight: ArrayLike | None = None, scale: float = 1.0) -> None:
        self.device = device_of(b)
        self.b = np.atleast_1d(nonnegative("b", b))
        self.shape = self.b.shape
        self._weigh(sample_weight, scale)

    def bind(self, shape: tuple[int, ...]) -> DivergenceLoss:
        self._fits(shape)
        return DivergenceLoss(self.b.ravel(), self._weights(shape))


class DivergenceLoss(CurvedRows):
    r""":math:`\sum_i s_i (u_i - b_i \log u_i)` for u >= 0."""

    def __init__(self, b: Vector, weight: Vector) -> None:
        self.b = b
        self.weight = weight

    def parameters(self) -> tuple[Vector, ...]:
        return (self.b,)

    @cached_property
    def domain(self) -> Interval:
        return Interval(np.where(self.weight > 0, 0.0, -np.inf), np.full_like(self.weight, np.inf))

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        u = np.where(self.weight > 0, multiple(x, factor), 0.0)
        counted = (self.weight > 0) & (self.b > 0)
        with np.errstate(divide="ignore"):  # infinite at and below 0, even inside of the closure of the domain
            logarithm = np.log(np.where(counted, np.maximum(u, 0.0), 1.0))
        return float(self.weight @ (u - self.b * logarithm))

    def subgradient(self, x: Vector) -> Vector:
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(x > 0, 1.0 - self.b / x, np.where((x == 0) & (self.b == 0), 1.0, -np.inf))
            return np.where(self.weight > 0, self.weight * slope, 0.0)

    def subgradient_scale(self) -> Vector:
        return self.weight / np.sqrt(np.maximum(self.b, 1.0))

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        r"""Return the root :math:`u \ge 0` of :math:`u^2 - c u = t b` with t = step * weight and c = v - t."""
        if blocks is not None:
            return self.restrict(blocks).prox(v, step)
        reach = step * self.weight
        centre = v - reach
        size = np.abs(centre) + np.sqrt(centre * centre + 4.0 * reach * self.b)
        # for a negative c the product of the two roots avoids a difference of nearly equal numbers
        small = 2.0 * reach * self.b / np.where(size > 0, size, 1.0)
        return np.where(self.weight > 0, np.where(centre > 0, 0.5 * size, small), v)

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        slope = self.subgradient(np.where(self.b > 0, x, np.maximum(x, 0.0)))
        at_bound = (self.weight > 0) & (self.b == 0) & (x <= tolerance)
        return np.where(at_bound, -np.inf, slope), slope

    def recession(self, direction: Vector) -> Ray:
        value = float(self.weight @ np.maximum(direction, 0.0))
        return Ray(value, np.where(self.weight > 0, np.minimum(direction, 0.0), 0.0), value)

    def minimiser(self) -> Vector:
        return np.where(self.weight > 0, self.b, 0.0)

    def conjugate(self) -> DivergenceConjugate:
        return DivergenceConjugate(self)

    def curvature_at(self, x: Vector) -> Vector:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.weight * self.b > 0, self.weight * self.b / np.maximum(x, 0.0) ** 2, 0.0)

    def rise(self, distance: float) -> float:
        r"""Bound the rise from b by :math:`d^2 / (2 (b - d))` where b > d, and by d elsewhere.

        In the latter rows it is the rise for larger u. For smaller ones they count as constraints, since their value is
        infinite at that distance.
        """
        curved, slopes = self._rises(distance)
        return 0.5 * float(np.max(curved)) * distance**2 + float(np.linalg.norm(slopes)) * distance

    def rise_within(self, distances: Vector) -> float:
        curved, slopes = self._rises(distances)
        return float(0.5 * curved @ distances**2 + slopes @ distances)

    def _rises(self, distance: Vector | float) -> tuple[Vector, Vector]:
        room = self.b - distance
        curved = np.where(room > 0, self.weight / np.where(room > 0, room, 1.0), 0.0)
        return curved, np.where(room > 0, 0.0, self.weight)

    # the excess of a row is s times the divergence of b from u (1 - y / s)

    def row_values(self, u: Vector) -> Near:
        part = self.b * np.log(np.where(self.b > 0, np.maximum(u, 0.0), 1.0))
        return self._near(u - part, np.abs(u) + np.abs(part))

    def row_conjugates(self, y: Vector) -> Near:
        logarithm = np.log(np.where(self.b > 0, self.b / self._rest(y), 1.0))
        return self._near(self.b * (logarithm - 1.0), self.b * (np.abs(logarithm) + 1.0))

    def row_excess(self, u: Vector, y: Vector) -> Near:
        rest = self._rest(y)
        u_log, rest_log = (np.log(np.where(self.b > 0, np.maximum(factor, 0.0), 1.0)) for factor in (u, rest))
        return self._near(*relative_entropy(self.b, u * rest, u_log + rest_log))

    def _rest(self, y: Vector) -> Vector:
        """Return 1 - y / s, with a relative error of two roundings; 1 in rows of weight 0."""
        return np.where(self.weight > 0, (self.weight - y) / np.where(self.weight > 0, self.weight, 1.0), 1.0)

    def _near(self, terms: Vector, size: Vector) -> Near:
        """Return terms times the weight, with 24 roundings of their size: three times that of a logarithm."""
        known = self.weight > 0
        error = self.weight * (24 * UNIT * size + LOST) + LOST
        return Near(np.where(known, self.weight * terms, 0.0), np.where(known, error, 0.0))


class DivergenceConjugate(CurvedConjugate[DivergenceLoss]):
    r""":math:`\sum_i s_i b_i (\log(s_i b_i / (s_i - y_i)) - 1)` for y <= s.

    A row of weight 0 has the single point y = 0.
    """

    @cached_property
    def domain(self) -> Interval:
        return Interval(np.where(self.of.weight > 0, -np.inf, 0.0), self.of.weight)

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        weight, total = self.of.weight, self.of.weight * self.of.b
        rest = weight - self.domain.project(multiple(x, factor))
        counted = total > 0
        with np.errstate(divide="ignore"):  # infinite at the end of the domain
            logarithm = np.log(np.where(counted, total, 1.0)) - np.log(np.where(counted, rest, 1.0))
        return float(np.sum(np.where(counted, total * (logarithm - 1.0), 0.0)))

    def recession(self, direction: Vector) -> Ray:
        return Ray(0.0, np.where(self.of.weight > 0, np.maximum(direction, 0.0), direction))

    def minimiser(self) -> Vector:
        return np.where(self.of.weight * self.of.b > 0, -np.inf, 0.0)

    def subgradient_scale(self) -> Vector:
        return np.where(self.of.b > 0, self.of.b, 1.0)
