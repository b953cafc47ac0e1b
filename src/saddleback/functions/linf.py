r"""Largest absolute values as penalties, over all entries or by group, and the L1 balls that they support.

.. math::

    f(x) = \sum_g w_g \max_{i \in g} |x_i|, \qquad
    f^*(z) = 0 \text{ if } \sum_{i \in g} |z_i| \le w_g \text{ for all } g,

and infinite otherwise. The prox cuts the entries of a group off at a level (``levels``), and the projection on the L1
balls takes what is cut off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector, length, multiple
from ..common.checks import LARGEST_PRODUCT, SQUARABLE, nonnegative, positive_multiple, scalar
from ..common.rounded import TINY, UNIT, Rounded
from .conjugates import Ball, Indicator
from .contract import ROUNDING, Convex, Ray
from .domains import Everywhere, PartlyFixed
from .excess import Contact, Gauge, Near, block_sums, collapsed, contact_of_norms
from .group import Groups, checked_weights, partition, partition_of_entries
from .kinks import Kinks
from .penalties import Penalty, Regulariser
from .traits import InUnits, Kinked, Lipschitz, Movable, Scaled


class LInf(Regulariser):
    """alpha * max_j |x_j|.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = scalar("alpha", alpha, largest=LARGEST_PRODUCT)

    def bind(self, shape: tuple[int, ...]) -> MaxNorms:
        return MaxNorms(Blocks.single(int(np.prod(shape))), np.array([self.alpha]))


class GroupLInf(Regulariser):
    """alpha * sum_g weights_g max_{j in g} |x_j|.

    The coefficients of a group are 0 together, and several of them have its largest absolute value.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    groups : int, list of int, list of lists of int, or groups of Differences
        A size (consecutive groups of that size), a list of sizes (consecutive groups), a list of index lists that
        partition the columns, or ``Differences.groups``. If x is a matrix, a group holds whole rows of it.
    weights : array-like, optional
        One value per group, at least 0; all 1 by default.
    """

    def __init__(self, alpha: float, groups: Groups, weights: ArrayLike | None = None) -> None:
        self.alpha = scalar("alpha", alpha, largest=LARGEST_PRODUCT)
        self.groups = groups
        self.weights = None if weights is None else nonnegative("weights", weights)

    def weights_of(self, columns: Blocks) -> Vector:
        """Return the weights of the groups."""
        return np.ones(len(columns)) if self.weights is None else checked_weights(self.weights, columns)

    def bind(self, shape: tuple[int, ...]) -> MaxNorms:
        columns = partition(self.groups, shape[0])
        return MaxNorms(partition_of_entries(columns, shape), self.alpha * self.weights_of(columns))


class L1Ball(Penalty):
    """0 if sum_j |x_j| <= radius, infinite otherwise.

    Parameters
    ----------
    radius : float
        Largest sum of the absolute values, at least 0.
    """

    def __init__(self, radius: float) -> None:
        self.radius = scalar("radius", radius, largest=SQUARABLE)

    def times(self, factor: float) -> L1Ball:
        positive_multiple(self.name, factor)
        return self

    def bind(self, shape: tuple[int, ...]) -> Indicator:
        return LInf(self.radius).bind(shape).conjugate()


class MaxNorms(Convex, Lipschitz, Kinked, Scaled, InUnits, Movable):
    """The function at the top of this module.

    Parameters
    ----------
    partition_ : the groups.
    weight : w, one per group.
    """

    domain = Everywhere()

    def __init__(self, partition_: Blocks, weight: Vector) -> None:
        self.partition = partition_
        self.weight = weight

    def blocks(self) -> Blocks:
        return self.partition

    def moved(self, place: ToDevice) -> MaxNorms:
        return MaxNorms(self.partition.moved(place), place(self.weight))

    def in_units(self, unit: Vector) -> MaxNorms:
        return MaxNorms(self.partition, self.weight * self.partition.of_blocks(unit))

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        return float(self.weight @ self._largest(np.abs(multiple(x, factor))))

    def _largest(self, size: Vector) -> Vector:
        groups = self.partition
        return np.maximum.reduceat(size if groups.contiguous else size[groups.order], groups.start[:-1])

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        drawn = self if blocks is None else self.restrict_blocks(blocks)
        level = levels(np.abs(v), 1.0 / np.full_like(v, step), drawn.weight, drawn.partition)
        wide = drawn.partition.spread(level)
        return np.clip(v, -wide, wide)

    def subgradient(self, x: Vector) -> Vector:
        """Return a subgradient that gives equal shares to the largest entries of a group."""
        size = np.abs(x)
        largest = (size == self.partition.spread(self._largest(size))) & (size > 0)
        share = self.weight / np.maximum(self.partition.sums(np.where(largest, 1.0, 0.0)), 1.0)
        return np.where(largest, np.sign(x), 0.0) * self.partition.spread(share)

    def subgradient_scale(self) -> Vector:
        return self.partition.spread(self.weight / self.partition.sizes)

    def rise(self, distance: float) -> float:
        return length(self.weight) * distance

    def rise_within(self, distances: Vector) -> float:
        return float(self.weight @ self._largest(distances))

    def recession(self, direction: Vector) -> Ray:
        value = self.finite_value(direction)
        return Ray(value, np.zeros_like(direction), value)

    def conjugate(self) -> Indicator:
        return Indicator(self, L1Balls(self))

    def contact(self, point: Rounded, slope: Rounded) -> Contact:
        x, z, groups = collapsed(point), collapsed(slope), self.partition
        values = self.weight * self._largest(np.abs(x.value))
        sums, additions = block_sums(groups, np.abs(z.value))
        errors, rounding = block_sums(groups, z.error)[0], (additions + 4) * UNIT
        gauge = Gauge(
            most=(sums + errors) * (1 + rounding),
            least=sums * (1 - rounding),
            end=self.weight,
            size=block_sums(groups, slope.size)[0],
        )
        moved = self.weight * self._largest(x.error) * (1 + 4 * UNIT)
        lost = np.where((self.weight > 0) & (self._largest(x.most) > 0), TINY, 0.0)
        return contact_of_norms(x, z, groups, Near(values, UNIT * values + lost), moved + lost, gauge)

    def zero_slack(self, z: Vector) -> Vector | None:
        slack = self.weight - self.partition.sums(np.abs(z))
        return np.where(self.weight > 0, slack, -np.inf) if np.any(self.weight > 0) else None

    def kinks(self, z: Vector, rest: Any) -> Kinks:
        held = self.weight > 0
        weight = np.where(held, self.weight, 1.0)
        alpha = np.where(held, self.partition.sums(np.abs(z)) / weight, 0.0)
        part = np.where(self.partition.spread(self.weight) > 0, self.partition.of_columns, -1)
        return Kinks(alpha, np.where(part >= 0, np.sign(z) / self.partition.spread(weight), 0.0), part)

    def restrict_blocks(self, blocks: Indices) -> MaxNorms:
        start = np.concatenate([[0], np.cumsum(self.partition.sizes[blocks])])
        return MaxNorms(Blocks(None, start), self.weight[blocks])


class L1Balls(Ball, PartlyFixed):
    """sum_{i in g} |y_i| <= w_g for every group."""

    symmetric = True

    def __init__(self, of: MaxNorms) -> None:
        self.of = of

    def project(self, x: Vector) -> Vector:
        return project_on_l1_balls(x, self.of.weight, self.of.partition)

    def largest_multiple(self, x: Vector) -> float:
        total = self.of.partition.sums(np.abs(x))
        beyond = total > self.of.weight
        return float(np.min(np.where(beyond, self.of.weight / np.where(beyond, total, 1.0), 1.0)))

    def holds(self, x: Vector) -> bool:
        return bool(np.all(self.of.partition.sums(np.abs(x)) <= self.of.weight * (1.0 + ROUNDING)))

    def has_zero(self) -> bool:
        return True

    def fixed(self) -> Indices:
        return np.flatnonzero(self.of.partition.spread(self.of.weight == 0))


def project_on_l1_balls(x: Vector, radius: Vector, groups: Blocks) -> Vector:
    """Return the nearest point with sum_{i in g} |y_i| <= radius_g for every group; x itself if it is inside."""
    level = levels(np.abs(x), np.ones_like(x), radius, groups)
    wide = groups.spread(level)
    return x - np.clip(x, -wide, wide) if np.any(level) else x


def levels(size: Vector, strength: Vector, weight: Vector, groups: Blocks) -> Vector:
    """Return the level t of each group with sum_i h_i max(size_i - t, 0) = weight; 0 if the sum is smaller at 0.

    The level rises until the entries above it are those that it was computed from, which takes finitely many steps
    (Michelot, 1986). It stops if rounding makes it fall, as next to the ball. A group of weight 0 has an infinite one.

    Parameters
    ----------
    size : the absolute values of the entries.
    strength : h, positive.
    weight : one per group.
    groups : the groups.
    """
    count = groups.sums(np.ones_like(size))
    total, mass = groups.sums(strength * size), groups.sums(strength)
    while True:
        level = np.maximum((total - weight) / mass, 0.0)
        above = size > groups.spread(level)
        left = groups.sums(np.where(above, 1.0, 0.0))
        fewer = (left > 0) & (left < count)
        if not np.any(fewer):
            return np.where(weight > 0, level, np.inf)
        counted = np.where(above, strength, 0.0)
        total = np.where(fewer, groups.sums(counted * size), total)
        mass = np.where(fewer, groups.sums(counted), mass)
        count = np.where(fewer, left, count)
