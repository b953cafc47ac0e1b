"""The logistic loss, whose prox needs a Newton iteration."""

from __future__ import annotations

import numpy as np

from ..common.arrays import Indices, Step, Vector, multiple
from ..common.cached import cached_property
from ..common.rounded import UNIT
from .contract import Ray
from .curved import CurvedConjugate, CurvedRows
from .domains import Everywhere, Interval
from .enclosures import MARGIN, self_concordant_reach, upwards
from .excess import LOST, Near, relative_entropy
from .normal_form import LogisticEntropy, NormalForm
from .traits import Enclosed

NEWTON_STEPS = 60


class LogisticLoss(CurvedRows, Enclosed):
    r""":math:`\sum_i s_i \log(1 + e^{-z_i u_i})`."""

    domain = Everywhere()

    def __init__(self, labels: Vector, weight: Vector) -> None:
        self.labels = labels
        self.weight = weight

    def parameters(self) -> tuple[Vector, ...]:
        return (self.labels,)

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        return float(self.weight @ np.logaddexp(0.0, -self.labels * multiple(x, factor)))

    def subgradient(self, x: Vector) -> Vector:
        return -self.labels * self.weight * sigmoid(-self.labels * x)

    def subgradient_scale(self) -> Vector:
        return self.weight

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        r"""Solve for the margin: :math:`m = z v + t\, \sigma(-m)` with t = step * weight.

        The difference of the two sides increases in m and changes its curvature only at m = 0. So Newton's method from
        the point of [z v, z v + t] nearest to 0 approaches the root from one side without overshooting.
        """
        if blocks is not None:
            return self.restrict(blocks).prox(v, step)
        margin = self.labels * v
        reach = step * self.weight
        point = np.clip(0.0, margin, margin + reach)
        for _ in range(NEWTON_STEPS):
            probability = sigmoid(-point)
            residual = point - margin - reach * probability
            change = residual / (1.0 + reach * probability * (1.0 - probability))
            point = point - change
            if np.all(np.abs(change) <= 4e-16 * (1.0 + np.abs(point))):
                break
        root: Vector = self.labels * point
        return root

    def recession(self, direction: Vector) -> Ray:
        value = float(self.weight @ np.maximum(0.0, -self.labels * direction))
        return Ray(value, np.zeros_like(direction), value)

    def minimiser(self) -> Vector:
        return np.where(self.weight > 0, self.labels * np.inf, 0.0)

    def conjugate(self) -> Entropy:
        return Entropy(self)

    def curvature(self) -> Vector:
        return 0.25 * self.weight

    def curvature_at(self, x: Vector) -> Vector:
        small = np.exp(-np.abs(x))
        return self.weight * small / np.square(1.0 + small)

    def rise(self, distance: float) -> float:
        # the infimum is not attained, but no slope exceeds the weight
        return float(np.linalg.norm(self.weight)) * distance

    def rise_within(self, distances: Vector) -> float:
        return float(self.weight @ distances)

    def enclosure(self, low: Vector, high: Vector, excess: float) -> tuple[Vector, Vector]:
        # the margin falls as the slope w p of its loss grows
        slopes = -self.labels * low, -self.labels * high
        least, most = (
            self._furthest(np.maximum(*slopes), excess, -1.0),
            self._furthest(np.minimum(*slopes), excess, 1.0),
        )
        ends = self.labels * least, self.labels * most
        return np.minimum(*ends), np.maximum(*ends)

    def _furthest(self, slope: Vector, excess: float, side: float) -> Vector:
        """Return the end of the margins on one side, for slopes w p."""
        share = np.divide(slope, self.weight, out=np.full(slope.shape, np.nan), where=self.weight > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            p = np.clip(share * (1.0 - side * MARGIN), 0.0, 1.0)
            logs = np.log1p(-p), np.log(p)
            curvature = self.weight * p * (1.0 - p) * (1.0 - MARGIN)
            distance = self_concordant_reach(excess, curvature)
            end = side * upwards(side * (logs[0] - logs[1]), distance, np.abs(logs[0]) + np.abs(logs[1]))
        return np.where(np.isnan(end), side * np.inf, end)

    def curvature_between(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        ends = self.curvature_at(lower), self.curvature_at(upper)
        return np.minimum(*ends), np.where((lower <= 0) & (upper >= 0), 0.25 * self.weight, np.maximum(*ends))

    # the excess of a row is s times the divergence of the probability p = -z y / s from that at the margin z u

    def row_values(self, u: Vector) -> Near:
        margin = self.labels * u
        return self._near(np.log1p(np.exp(-np.abs(margin))) + np.maximum(-margin, 0.0), 0.0)

    def row_conjugates(self, y: Vector) -> Near:
        terms, size = _entropy_terms(*self._shares(y))
        return self._near(terms, size)

    def row_excess(self, u: Vector, y: Vector) -> Near:
        margin = self.labels * u
        own, rest = self._shares(y)
        terms, size = relative_entropy(own, sigmoid(-margin), -np.logaddexp(0.0, margin))
        other_terms, other_size = relative_entropy(rest, sigmoid(margin), -np.logaddexp(0.0, -margin))
        return self._near(terms + other_terms, size + other_size)

    def _shares(self, y: Vector) -> tuple[Vector, Vector]:
        """Return p and 1 - p, each with a relative error of two roundings; 0 and 1 in rows of weight 0."""
        weight = np.where(self.weight > 0, self.weight, 1.0)
        size = np.where(self.weight > 0, np.abs(y), 0.0)
        return size / weight, (weight - size) / weight

    def _near(self, terms: Vector, size: Vector | float) -> Near:
        """Return terms times the weight, with 24 roundings of their size: three times that of a logarithm."""
        error = 24 * UNIT * (np.abs(terms) + size) * self.weight
        return Near(self.weight * terms, np.where(self.weight > 0, error + LOST * (1.0 + self.weight), 0.0))


class Entropy(CurvedConjugate[LogisticLoss]):
    r"""The conjugate of the logistic loss.

    At :math:`y_i = -z_i s_i p_i`, p in [0, 1], it is :math:`s_i (p_i \log p_i + (1 - p_i) \log(1 - p_i))`.
    """

    @cached_property
    def domain(self) -> Interval:
        end = -self.of.labels * self.of.weight
        return Interval(np.minimum(end, 0.0), np.maximum(end, 0.0))

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        weight = self.of.weight
        inside = self.domain.project(multiple(x, factor))
        probability = np.divide(-self.of.labels * inside, weight, out=np.zeros_like(inside), where=weight > 0)
        return -float(weight @ entropy(probability))

    def recession(self, direction: Vector) -> Ray:
        return Ray(0.0, direction)

    def minimiser(self) -> Vector:
        return -0.5 * self.of.labels * self.of.weight

    def subgradient_scale(self) -> Vector:
        return np.ones_like(self.of.labels)

    def normal_form(self) -> NormalForm:
        return NormalForm((LogisticEntropy(self.of.labels, self.of.weight),))


def sigmoid(x: Vector) -> Vector:
    """Return 1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def _entropy_terms(p: Vector, rest: Vector) -> tuple[Vector, Vector]:
    """Return p log p + (1 - p) log(1 - p), given both shares, and the size of what roundings of it are relative to."""
    lesser = np.minimum(p, rest)
    first = lesser * np.log(np.where(lesser > 0, lesser, 1.0))
    return first + (1.0 - lesser) * np.log1p(-lesser), lesser - first


def entropy(p: Vector) -> Vector:
    """Return -(p log p + (1 - p) log(1 - p)), 0 at both ends."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * np.log(p), 0.0) + np.where(p < 1, (1.0 - p) * np.log1p(-p), 0.0)
    return -terms
