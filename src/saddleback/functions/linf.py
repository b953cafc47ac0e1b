"""The largest absolute value as a penalty."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector, multiple
from ..common.checks import LARGEST_PRODUCT, scalar
from .conjugates import Ball, Indicator
from .contract import ROUNDING, Convex, Ray
from .domains import Everywhere
from .kinks import Kinks
from .penalties import Regulariser
from .traits import Kinked, Lipschitz, Movable, Scaled


class LInf(Regulariser):
    """alpha * max_j |x_j|.

    Its prox has a single step for all entries.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = scalar("alpha", alpha, largest=LARGEST_PRODUCT)

    def bind(self, shape: tuple[int, ...]) -> MaxNorm:
        return MaxNorm(self.alpha, int(np.prod(shape)))


class MaxNorm(Convex, Lipschitz, Kinked, Scaled, Movable):
    r""":math:`\alpha \max_j |x_j|`."""

    domain = Everywhere()
    diagonal_steps = False

    def __init__(self, alpha: float, size: int) -> None:
        self.alpha = alpha
        self.size = size

    def blocks(self) -> Blocks:
        return Blocks.single(self.size)

    def moved(self, place: ToDevice) -> MaxNorm:
        return self

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        return self.alpha * float(np.max(np.abs(multiple(x, factor))))

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        """Return v minus step times the projection of v / step on the ball of the conjugate (Moreau)."""
        one = float(np.max(step))
        return v - one * project_on_l1_ball(v / one, self.alpha)

    def subgradient(self, x: Vector) -> Vector:
        size = np.abs(x)
        largest = (size == np.max(size)) & (size > 0)
        share = self.alpha / max(int(np.count_nonzero(largest)), 1)
        return np.where(largest, np.where(x > 0, share, -share), 0.0)

    def subgradient_scale(self) -> float:
        return self.alpha / self.size

    def rise(self, distance: float) -> float:
        return self.alpha * distance

    def recession(self, direction: Vector) -> Ray:
        value = self.finite_value(direction)
        return Ray(value, np.zeros_like(direction), value)

    def conjugate(self) -> Indicator:
        return Indicator(self, L1Ball(self.alpha, self.size))

    def zero_slack(self, z: Vector) -> Vector:
        return np.array([self.alpha - float(np.sum(np.abs(z)))])

    def kinks(self, z: Vector, rest: Any) -> Kinks:
        slope = np.where(z > 0, 1.0, np.where(z < 0, -1.0, 0.0))
        return Kinks(np.array([float(np.sum(np.abs(z)))]), slope, np.zeros(z.size, dtype=np.int64))


class L1Ball(Ball):
    r""":math:`\sum_j |y_j| \le r`."""

    symmetric = True

    def __init__(self, radius: float, size: int) -> None:
        self.radius = radius
        self.size = size

    def project(self, x: Vector) -> Vector:
        return project_on_l1_ball(x, self.radius)

    def largest_multiple(self, x: Vector) -> float:
        length = float(np.sum(np.abs(x)))
        return 1.0 if length <= self.radius else self.radius / length

    def holds(self, x: Vector) -> bool:
        return float(np.sum(np.abs(x))) <= self.radius * (1.0 + ROUNDING)

    def has_zero(self) -> bool:
        return True

    def fixed(self) -> Indices:
        return np.arange(self.size if self.radius == 0 else 0)


def project_on_l1_ball(x: Vector, radius: float) -> Vector:
    """Return the nearest point with sum |y| <= radius; x itself if it is inside.

    All entries shrink by one threshold. It rises until the entries above it are those that it was computed from, which
    takes finitely many steps (Michelot, 1986). It stops if rounding makes it fall, as for an x next to the ball.
    """
    size = np.abs(x)
    total, count = float(np.sum(size)), x.size
    if total <= radius:
        return x
    if radius == 0:
        return np.zeros_like(x)
    while True:
        threshold = max((total - radius) / count, 0.0)
        above = size > threshold
        left = int(np.count_nonzero(above))
        if left == 0 or left >= count:
            break
        total, count = float(np.sum(np.where(above, size, 0.0))), left
    shrunk: Vector = x - np.clip(x, -threshold, threshold)
    return shrunk
