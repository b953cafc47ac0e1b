"""The logistic loss, whose prox needs a Newton iteration."""

from __future__ import annotations

import numpy as np

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector
from .contract import ROUNDING, Compiled, Ray, Restrictable, Slopes
from .piecewise import interval_room

NEWTON_STEPS = 60


class LogisticLoss(Restrictable):
    r""":math:`\sum_i s_i \log(1 + e^{-z_i u_i})`.

    Its conjugate at :math:`y_i = -z_i s_i p_i`, p in [0, 1], is :math:`s_i (p_i \log p_i + (1 - p_i) \log(1 - p_i))`.
    """

    smooth = True

    def __init__(self, labels: Vector, weight: Vector) -> None:
        self.labels = labels
        self.weight = weight

    def blocks(self) -> Blocks:
        return Blocks.scalars(self.labels.size)

    def restrict(self, keep: Indices) -> LogisticLoss:
        return LogisticLoss(self.labels[keep], self.weight[keep])

    def placed(self, place: ToDevice) -> LogisticLoss:
        return LogisticLoss(place(self.labels), place(self.weight))

    # --- the function -------------------------------------------------------------------------------------------

    def value(self, x: Vector) -> float:
        return self.finite_value(x)

    def finite_value(self, x: Vector) -> float:
        return float(self.weight @ np.logaddexp(0.0, -self.labels * x))

    def project(self, x: Vector) -> Vector:
        return x

    def subgradient(self, x: Vector) -> Vector:
        return -self.labels * self.weight * sigmoid(-self.labels * x)

    def prox(self, v: Vector, step: Step) -> Vector:
        r"""Solve for the margin: :math:`m = z v + t\, \sigma(-m)` with t = step * weight.

        The difference of the two sides increases in m and changes its curvature at m = 0 only, so that Newton started
        at the point of [z v, z v + t] nearest to 0 comes to the root from one side without overshooting.
        """
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

    def prox_blocks(self, blocks: Indices, v: Vector, step: Vector) -> Vector:
        return self.restrict(blocks).prox(v, step)

    def recession(self, direction: Vector) -> Ray:
        value = float(self.weight @ np.maximum(0.0, -self.labels * direction))
        return Ray(value, np.zeros_like(direction), value)

    def minimiser(self) -> Vector:
        return np.where(self.weight > 0, self.labels * np.inf, 0.0)

    # --- its conjugate ------------------------------------------------------------------------------------------

    def conjugate(self, y: Vector) -> float:
        inside = self.project_conjugate(y)
        if np.any(np.abs(y - inside) > ROUNDING * (1.0 + np.abs(inside))):
            return np.inf
        probability = np.divide(-self.labels * inside, self.weight, out=np.zeros_like(inside), where=self.weight > 0)
        return -float(self.weight @ entropy(probability))

    def project_conjugate(self, y: Vector) -> Vector:
        return -self.labels * np.clip(-self.labels * y, 0.0, self.weight)

    def conjugate_recession(self, direction: Vector) -> Ray:
        return Ray(0.0, direction)

    def conjugate_minimiser(self) -> Vector:
        return -0.5 * self.labels * self.weight

    def scaling(self, y: Vector) -> float:
        share = -self.labels * y
        if np.any(share < -ROUNDING * np.abs(y)):
            return 0.0
        outside = share > self.weight * (1.0 + ROUNDING)
        return float(np.min(self.weight[outside] / share[outside], initial=1.0))

    def unpenalised(self) -> Indices:
        return np.flatnonzero(self.weight == 0)

    def conjugate_room(self, y: Vector) -> Vector:
        return interval_room(-self.labels * y, np.zeros_like(y), self.weight)

    # --- what steps and backends ask ----------------------------------------------------------------------------

    def curvature(self) -> Vector:
        return 0.25 * self.weight

    def curvature_at(self, x: Vector) -> Vector:
        probability = sigmoid(x)
        return self.weight * probability * (1.0 - probability)

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        gradient = self.subgradient(x)
        return gradient, gradient

    def finite_everywhere(self) -> bool:
        return True

    def typical_point(self) -> Vector:
        return np.ones_like(self.labels)

    def typical_slope(self) -> Vector:
        return self.weight

    def rise(self, distance: float) -> float:
        # its infimum is not attained, but no slope is larger
        return float(np.linalg.norm(self.weight)) * distance

    def distance_to_kink(self, x: Vector) -> Vector:
        return np.zeros_like(x)

    def weights(self) -> Vector:
        return np.where(self.weight > 0, self.weight, 1.0)

    def kind(self) -> Vector:
        return np.stack([self.labels, self.weight / self.weights()], 1)

    def repeated(self, counts: Vector) -> LogisticLoss:
        return LogisticLoss(self.labels, self.weight * counts)

    def compiled(self) -> Compiled:
        return Compiled(Slopes.zero(self.labels.size), np.zeros(self.labels.size), logistic=(self.labels, self.weight))


def sigmoid(x: Vector) -> Vector:
    """Return 1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def entropy(p: Vector) -> Vector:
    """Return -(p log p + (1 - p) log(1 - p)), 0 at both ends."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * np.log(p), 0.0) + np.where(p < 1, (1.0 - p) * np.log1p(-p), 0.0)
    return -terms
