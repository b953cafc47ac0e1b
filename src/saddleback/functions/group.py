r"""Group norms under a diagonal metric, by the secular equation.

.. math::

    f(x) = \sum_g \lambda_g \|x_g\|_2 + \sum_d s_d(x_d),

with the two slopes :math:`s_d` of ``piecewise.py`` (an infinite left slope is a sign constraint).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector
from ..common.checks import shown
from .contract import ROUNDING, Compiled, Function, Kinks, Ray, Slopes
from .kinks import Box, least_alpha
from .piecewise import shrink

Groups = int | Sequence[int] | Sequence[Sequence[int]]

NEWTON_STEPS = 60


def shrink_norms(pull: Vector, strength: Vector, weight: Vector, start: Indices) -> Vector:
    r"""Minimise :math:`\lambda_g \|x_g\| + \tfrac12 \sum_i h_i x_i^2 - b_i x_i` for every group at once.

    The minimiser is 0 if :math:`\|b\| \le \lambda`, and otherwise :math:`x_i = b_i \rho / (h_i \rho + \lambda)` with
    :math:`\rho = \|x\|` the root of :math:`\phi(\rho) = \sum_i (b_i / (h_i \rho + \lambda))^2 = 1`. Newton on
    :math:`\phi^{-1/2}`, which is concave and increasing, converges from the left without overshooting, and in one step
    where h is constant within the group.

    Parameters
    ----------
    pull : b, groups one after the other.
    strength : h, positive.
    weight : lambda, one per group.
    start : where each group begins in ``pull``.
    """
    sizes = np.diff(np.append(start, pull.size))
    norm = np.sqrt(np.add.reduceat(pull * pull, start))
    excess = np.maximum(norm - weight, 0.0)
    active = excess > 0
    unit = 1.0 / np.maximum.reduceat(strength, start)
    rho = excess * unit
    wide = np.repeat(weight, sizes)
    for _ in range(NEWTON_STEPS):
        scale = strength * np.repeat(rho, sizes) + wide
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(pull == 0, 0.0, pull / scale)
        squares = np.where(active, np.add.reduceat(ratio * ratio, start), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = np.where(pull == 0, 0.0, ratio * ratio * strength / scale)
        slope = np.add.reduceat(slopes, start)
        # phi^{-1/2} = 1 linearised: rho += (phi^{-1/2} - 1) / (-phi^{-3/2} sum ...)
        change = np.where(active, (squares**1.5 - squares) / np.where(active, slope, 1.0), 0.0)
        rho = rho + change
        if np.all(np.abs(change) <= 4 * np.finfo(float).eps * norm * unit):  # what the excess leaves of the digits
            break
    wide_rho = np.repeat(rho, sizes)
    result: Vector = pull * wide_rho / np.where(wide_rho > 0, strength * wide_rho + wide, 1.0)
    return result


def partition(groups: Groups, n: int) -> Blocks:
    """Return the blocks that ``groups`` describes: a size, a list of sizes, or a list of index lists."""
    if getattr(groups, "ndim", None) == 0:
        groups = groups.item()  # type: ignore[union-attr]
    if isinstance(groups, (int, np.integer)):
        if groups < 1 or n % groups:
            raise ValueError(f"groups={groups} does not divide the {n} columns: give a divisor or a list of sizes")
        return Blocks.scalars(n, int(groups))
    members = [np.atleast_1d(np.asarray(g)) for g in groups] if isinstance(groups, Iterable) else []
    labels = "; for one label per column, pass [np.flatnonzero(labels == k) for k in np.unique(labels)]"
    hint = labels if len(members) == n else ""
    if not members or any(g.size == 0 or g.dtype.kind not in "iu" for g in members):
        raise ValueError(
            f"groups={shown(groups)}: expected an int, a list of sizes, or a list of non-empty lists of indices of "
            "columns" + hint
        )
    if all(np.ndim(g) == 0 for g in groups):
        start = np.concatenate([[0], np.cumsum(np.concatenate(members))])
        if np.any(np.diff(start) < 1):
            raise ValueError(f"groups has a size of {np.diff(start).min()}: expected sizes that are at least 1{hint}")
        if start[-1] != n:
            raise ValueError(f"groups has sizes that sum to {start[-1]}, but there are {n} columns to partition{hint}")
        return Blocks(None, start.astype(np.int64))
    order = np.concatenate(members).astype(np.int64)
    if order.size != n or not np.array_equal(np.sort(order), np.arange(n)):
        raise ValueError(
            f"groups must partition the {n} columns: it lists {order.size} indices, {np.unique(order).size} of them "
            f"distinct, from {order.min()} to {order.max()}; every column must be in exactly one group"
        )
    return Blocks(order, np.concatenate([[0], np.cumsum([g.size for g in members])]).astype(np.int64))


class GroupNorms(Function):
    """Group norms over a known partition, with two slopes per coordinate."""

    def __init__(self, partition_: Blocks, weight: Vector, left: Vector, right: Vector) -> None:
        self.partition = partition_
        self.weight = weight
        self.left = left
        self.right = right

    def blocks(self) -> Blocks:
        return self.partition

    def placed(self, place: ToDevice) -> GroupNorms:
        partition_ = Blocks(place(self.partition.order), place(self.partition.start))
        return GroupNorms(partition_, *map(place, (self.weight, self.left, self.right)))

    def _norms(self, x: Vector) -> Vector:
        ordered = x[self.partition.order]
        return np.sqrt(np.add.reduceat(ordered * ordered, self.partition.start[:-1]))

    # --- the function -------------------------------------------------------------------------------------------

    def value(self, x: Vector) -> float:
        if np.any(np.abs(x - self.project(x)) > ROUNDING * (1.0 + np.abs(x))):
            return np.inf
        return self.finite_value(x)

    def finite_value(self, x: Vector) -> float:
        slope = np.where(x > 0, self.right, np.where(np.isfinite(self.left), self.left, 0.0))
        return float(self.weight @ self._norms(x) + slope @ x)

    def project(self, x: Vector) -> Vector:
        return np.where(np.isneginf(self.left), np.maximum(x, 0.0), x)

    def prox(self, v: Vector, step: Step) -> Vector:
        order = self.partition.order
        strength = 1.0 / np.full_like(v, step)[order]
        pull = shrink(strength * v[order], self.left[order], self.right[order])
        result = np.empty_like(v)
        result[order] = shrink_norms(pull, strength, self.weight, self.partition.start[:-1])
        return result

    def prox_blocks(self, blocks: Indices, v: Vector, step: Vector) -> Vector:
        columns = self.partition.columns(blocks)
        strength = 1.0 / step
        pull = shrink(strength * v, self.left[columns], self.right[columns])
        sizes = self.partition.sizes[blocks]
        return shrink_norms(pull, strength, self.weight[blocks], np.cumsum(sizes) - sizes)

    def recession(self, direction: Vector) -> Ray:
        inside = self.project(direction)
        slope = np.where(inside > 0, self.right, np.where(inside < 0, self.left, 0.0))
        norms = float(self.weight @ self._norms(inside))
        terms = slope * inside
        return Ray(norms + float(np.sum(terms)), direction - inside, norms + float(np.sum(np.abs(terms))))

    def subgradient(self, x: Vector) -> Vector:
        norms = self._norms(x)
        share = np.divide(self.weight, norms, out=np.zeros_like(norms), where=norms > 0)
        factor = np.empty_like(x)
        factor[self.partition.order] = np.repeat(share, self.partition.sizes)
        at_zero = np.clip(0.0, self.left, self.right)
        return np.where(x > 0, self.right, np.where(x < 0, self.left, at_zero)) + factor * x

    # --- its conjugate: the indicator of box + ball, group by group -----------------------------------------------

    def project_conjugate(self, y: Vector) -> Vector:
        pull = shrink(y, self.left, self.right)
        norms = self._norms(pull)
        shorten = np.ones_like(norms)
        np.divide(self.weight, norms, out=shorten, where=norms > self.weight)
        factor = np.empty_like(y)
        factor[self.partition.order] = np.repeat(shorten, self.partition.sizes)
        return np.where(factor < 1.0, (y - pull) + factor * pull, y)

    def conjugate(self, y: Vector) -> float:
        norms = self._norms(shrink(y, self.left, self.right))
        return 0.0 if np.all(norms <= self.weight + ROUNDING * (1.0 + self._norms(y))) else np.inf

    def conjugate_recession(self, direction: Vector) -> Ray:
        leaving = np.where(np.isneginf(self.left), np.maximum(direction, 0.0), direction)
        return Ray(0.0, leaving)

    def scaling(self, y: Vector) -> float:
        """Newton from the right on the convex t -> ||shrink(t y)||_g - weight, group by group."""
        start = self.partition.start[:-1]
        order = self.partition.order
        ordered = y[order]
        left, right = self.left[order], self.right[order]
        at_zero = np.sqrt(np.add.reduceat(shrink(np.zeros_like(ordered), left, right) ** 2, start))
        slack = ROUNDING * self._norms(y)
        t = np.ones(len(self.partition))
        for _ in range(NEWTON_STEPS):
            pull = shrink(np.repeat(t, self.partition.sizes) * ordered, left, right)
            norm = np.sqrt(np.add.reduceat(pull * pull, start))
            outside = norm > self.weight + t * slack
            if not np.any(outside):
                return float(t.min())
            if np.any(at_zero > self.weight):
                return np.nan
            slope = np.add.reduceat(pull * ordered, start) / np.where(outside, norm, 1.0)
            t = np.maximum(np.where(outside, t - (norm - self.weight) / np.where(outside, slope, 1.0), t), 0.0)
        return 0.0 if np.all(at_zero <= self.weight) else np.nan

    def unpenalised(self) -> Indices:
        bare = np.empty(self.left.size, dtype=bool)
        bare[self.partition.order] = np.repeat(self.weight == 0, self.partition.sizes)
        return np.flatnonzero(bare & (self.left == self.right))

    def plus(self, piece: Slopes) -> GroupNorms:
        left = np.where(piece.lower == 0, -np.inf, self.left + piece.left)
        return GroupNorms(self.partition, self.weight, left, self.right + piece.right)

    # --- what layers, steps and backends ask ----------------------------------------------------------------------

    def finite_everywhere(self) -> bool:
        return bool(np.all(np.isfinite(self.left)))

    def zero_slack(self, z: Vector) -> Vector | None:
        slack = self.weight - self._norms(shrink(z, self.left, self.right))
        return np.where(self.weight > 0, slack, -np.inf) if np.any(self.weight > 0) else None

    def kinks(self, z: Vector, rest: GroupNorms) -> Kinks:
        boxes = Box(rest.left, rest.right), Box(self.left, self.right)
        return least_alpha(z, *boxes, self.weight - rest.weight, self.partition)

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        low = np.where(x > tolerance, self.right, self.left)
        high = np.where(x < -tolerance, self.left, self.right)
        bare = np.empty(x.size, dtype=bool)
        bare[self.partition.order] = np.repeat(self.weight == 0, self.partition.sizes)
        return np.where(bare, low, np.nan), np.where(bare, high, np.nan)

    def restrict_blocks(self, blocks: Indices) -> GroupNorms:
        columns = self.partition.columns(blocks)
        start = np.concatenate([[0], np.cumsum(self.partition.sizes[blocks])])
        partition_ = Blocks(None, start)
        return GroupNorms(partition_, self.weight[blocks], self.left[columns], self.right[columns])

    def beside(self, other: Function) -> GroupNorms | None:
        if not isinstance(other, GroupNorms):
            return None
        mine, theirs, size = self.partition, other.partition, self.left.size
        contiguous = mine.contiguous and theirs.contiguous
        order = None if contiguous else np.concatenate([mine.order, theirs.order + size])
        return GroupNorms(
            Blocks(order, np.concatenate([mine.start, theirs.start[1:] + size])),
            np.concatenate([self.weight, other.weight]),
            np.concatenate([self.left, other.left]),
            np.concatenate([self.right, other.right]),
        )

    def typical_slope(self) -> Vector:
        per_column = np.empty(self.left.size)
        per_column[self.partition.order] = np.repeat(self.weight / np.sqrt(self.partition.sizes), self.partition.sizes)
        return per_column + np.abs(self.right)

    def compiled(self) -> Compiled:
        slopes = Slopes.zero(self.left.size)._replace(left=self.left, right=self.right)
        return Compiled(slopes, self.weight)
