r"""Group norms under a diagonal metric, by the secular equation.

.. math::

    f(x) = \sum_g \lambda_g \|x_g\|_2 + \sum_d s_d(x_d) + \tfrac{q_d}{2} x_d^2,

with the two slopes :math:`s_d` of ``piecewise.py`` (an infinite left slope is a sign constraint). The :math:`q_d` of a
group are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .. import _native
from ..common.arrays import (
    Blocks,
    Indices,
    Step,
    ToDevice,
    Vector,
    anywhere,
    constant,
    is_one_value,
    map_constants,
    multiple,
    squeeze_constant,
)
from ..common.cached import cached_property
from ..common.checks import shown
from ..common.rounded import SHORT, TINY, UNIT, Rounded
from .conjugates import Ball, Conjugate, Indicator
from .contract import ROUNDING, Convex, Ray
from .domains import Interval, PartlyFixed
from .enclosures import MARGIN, upwards
from .excess import (
    NOTHING,
    Bounds,
    Contact,
    Excess,
    Gauge,
    Near,
    all_bounds,
    collapsed,
    contact_of_norms,
    largest_proved,
    lengths,
    side_of_interval,
    split_at_box,
    up,
)
from .kinks import Box, Kinks, least_alpha
from .normal_form import GroupNorm, NormalForm, PiecewiseParameters
from .piecewise import PiecewiseQuadratic, shrink
from .traits import Addable, Enclosed, InUnits, Joinable, Kinked, Lipschitz, Movable, Scaled, Smooth

Groups = int | Sequence[int] | Sequence[Sequence[int]] | Blocks

NEWTON_STEPS = 60

SMALLEST = float(np.finfo(np.float64).tiny)


def shrink_norms(pull: Vector, strength: Vector, weight: Vector, start: Indices) -> Vector:
    r"""Minimise :math:`\lambda_g \|x_g\| + \tfrac12 \sum_i h_i x_i^2 - b_i x_i` for every group at once.

    The minimiser is 0 if :math:`\|b\| \le \lambda`, and otherwise :math:`x_i = b_i \rho / (h_i \rho + \lambda)` with
    :math:`\rho = \|x\|` the root of :math:`\phi(\rho) = \sum_i (b_i / (h_i \rho + \lambda))^2 = 1`. Newton on
    :math:`\phi^{-1/2}`, which is concave and increasing, converges from the left without overshooting, and in one step
    if h is constant within the group.

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
    """Return the blocks that ``groups`` describes: a size, a list of sizes, a list of index lists, or blocks."""
    if isinstance(groups, Blocks):
        if groups.start[-1] != n:
            raise ValueError(f"groups is a partition of {groups.start[-1]} entries: expected {n}")
        return groups
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
            f"groups must partition the {n} columns: {_not_partitioned(order, n)}; every column must be in exactly one "
            "group"
        )
    return Blocks(order, np.concatenate([[0], np.cumsum([g.size for g in members])]).astype(np.int64))


def _not_partitioned(order: Indices, n: int) -> str:
    """Return what is wrong with the indices of all groups: one out of range, a repeated or a missing one."""
    outside = order[(order < 0) | (order >= n)]
    if outside.size:
        return f"it lists column {outside[0]}, and they are numbered from 0 to {n - 1}"
    counts = np.bincount(order, minlength=n)
    if np.any(counts > 1):
        return f"it lists column {np.argmax(counts > 1)} more than once"
    return f"it does not list column {np.argmax(counts == 0)}"


def partition_of_entries(columns: Blocks, shape: tuple[int, ...]) -> Blocks:
    """Return the partition of all entries of a variable whose groups hold whole rows of it."""
    tasks = int(np.prod(shape[1:], dtype=int))
    if tasks == 1:
        return columns
    return Blocks((columns.order[:, None] * tasks + np.arange(tasks)).ravel(), columns.start * tasks)


def checked_weights(weights: Vector, groups: Blocks) -> Vector:
    """Return the weights of groups, or raise if there is not one for each group."""
    if weights.shape != (len(groups),):
        raise ValueError(f"weights has shape {weights.shape}: expected one value for each of {len(groups)} groups")
    return weights


class GroupNorms(Convex, Lipschitz, Kinked, Scaled, InUnits, Movable, Addable, Joinable, Enclosed):
    """Group norms over a known partition, with two slopes and a square per coordinate.

    Parameters
    ----------
    partition_ : the groups.
    weight : lambda, one per group.
    left, right : the slopes on either side of 0; -inf on the left of a coordinate that must not be negative.
    below : the finite slopes on the left, without the sign constraint; ``left`` by default.
    quadratic : the factors q of the squares; 0 by default.
    """

    def __init__(
        self,
        partition_: Blocks,
        weight: Vector,
        left: Vector,
        right: Vector,
        below: Vector | None = None,
        quadratic: Vector | None = None,
    ) -> None:
        self.partition = partition_
        self.weight = weight
        self.left = left
        self.right = right
        self.below = left if below is None else below
        self.quadratic = constant(0.0, left.size) if quadratic is None else quadratic

    def blocks(self) -> Blocks:
        return self.partition

    def moved(self, place: ToDevice) -> GroupNorms:
        return GroupNorms(self.partition.moved(place), place(self.weight), *map(place, self._of_coordinates()))

    def in_units(self, unit: Vector) -> GroupNorms:
        left, right, below, quadratic = (own * unit for own in self._of_coordinates())
        return GroupNorms(
            self.partition, self.weight * self.partition.of_blocks(unit), left, right, below, quadratic * unit
        )

    def _of_coordinates(self) -> tuple[Vector, ...]:
        """Return the parameters with one value per coordinate."""
        return self.left, self.right, self.below, self.quadratic

    @cached_property
    def has_squares(self) -> bool:
        """Whether a coordinate has a square."""
        return anywhere(lambda quadratic: quadratic != 0, self.quadratic)

    @cached_property
    def radius(self) -> Vector:
        """How far the slopes of a group reach beyond its box: its weight, or infinitely far if it has squares."""
        if not self.has_squares:
            return self.weight
        return np.where(self.quadratic[self.partition.order[self.partition.start[:-1]]] > 0, np.inf, self.weight)

    def norms(self, x: Vector) -> Vector:
        """Return the norm of each group."""
        return np.sqrt(self.partition.sums(x * x))

    def per_coordinate(self, of_groups: Vector) -> Vector:
        """Return a value per coordinate, given one per group."""
        return self.partition.spread(of_groups)

    @cached_property
    def domain(self) -> Interval:
        lower = map_constants(lambda left: np.where(np.isneginf(left), 0.0, -np.inf), self.left)
        return Interval(lower, map_constants(lambda left: np.full_like(left, np.inf), self.left))

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        x = multiple(x, factor)
        slope = np.where(x > 0, self.right, self.below)
        squares = 0.5 * float(self.quadratic @ (x * x)) if self.has_squares else 0.0
        return float(self.weight @ self.norms(x) + slope @ x) + squares

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        if blocks is not None:
            columns, sizes = self.partition.columns(blocks), self.partition.sizes[blocks]
            strength = 1.0 / np.asarray(step)
            pull = shrink(strength * v, self.left[columns], self.right[columns])
            total = strength + self.quadratic[columns] if self.has_squares else strength
            return shrink_norms(pull, total, self.weight[blocks], np.cumsum(sizes) - sizes)
        order = self.partition.order
        strength = 1.0 / np.full_like(v, step)[order]
        pull = shrink(strength * v[order], self.left[order], self.right[order])
        total = strength + self.quadratic[order] if self.has_squares else strength
        result = np.empty_like(v)
        result[order] = shrink_norms(pull, total, self.weight, self.partition.start[:-1])
        return result

    def recession(self, direction: Vector) -> Ray:
        inside = self.domain.project(np.where(self.quadratic > 0, 0.0, direction) if self.has_squares else direction)
        slope = np.where(inside > 0, self.right, np.where(inside < 0, self.left, 0.0))
        norms = float(self.weight @ self.norms(inside))
        terms = slope * inside
        return Ray(norms + float(np.sum(terms)), direction - inside, norms + float(np.sum(np.abs(terms))))

    def subgradient(self, x: Vector) -> Vector:
        norms = self.norms(x)
        share = np.divide(self.weight, norms, out=np.zeros_like(norms), where=norms > 0)
        at_zero = np.clip(0.0, self.left, self.right)
        slope = np.where(x > 0, self.right, np.where(x < 0, self.left, at_zero))
        return slope + (self.per_coordinate(share) + self.quadratic) * x

    def subgradient_scale(self) -> Vector:
        return self.per_coordinate(self.weight / np.sqrt(self.partition.sizes)) + np.abs(self.right)

    def rise(self, distance: float) -> float:
        slope = np.maximum(np.abs(self.below), np.abs(self.right))
        line = float(np.linalg.norm(self.weight) + np.linalg.norm(slope)) * distance
        return line + 0.5 * float(np.max(squeeze_constant(self.quadratic))) * distance**2

    def rise_within(self, distances: Vector) -> float:
        slope = np.maximum(np.abs(self.below), np.abs(self.right))
        lines = self.weight @ self.norms(distances) + np.sum(slope * distances)
        return float(lines + 0.5 * np.sum(self.quadratic * distances**2))

    def conjugate(self) -> Conjugate[Any]:
        return GroupConjugate(self) if self.has_squares else GroupIndicator(self, BoxPlusBall(self))

    def plus(self, piece: PiecewiseParameters) -> GroupNorms:
        left = np.where(piece.lower == 0, -np.inf, self.left + piece.left)
        quadratic = map_constants(np.add, self.quadratic, piece.quadratic)
        self._check_squares(quadratic)
        slopes = left, self.right + piece.right, self.below + piece.left
        return GroupNorms(self.partition, self.weight, *slopes, quadratic)

    def _check_squares(self, quadratic: Vector) -> None:
        """Raise an error if a group has squares in some of its columns only: its conjugate has no such formula here."""
        if is_one_value(quadratic):
            return
        parts = self.partition.sums((quadratic > 0).astype(np.float64)) / self.partition.sizes
        found = np.flatnonzero((parts > 0) & (parts < 1))
        if found.size:
            raise ValueError(
                f"weights of ElasticNet are 0 for some columns of group {found[0]}, and greater for others: expected "
                "that a group has squares in all of its columns or in none; put the others into a separate group"
            )

    def zero_slack(self, z: Vector) -> Vector | None:
        slack = self.weight - self.norms(shrink(z, self.left, self.right))
        return np.where(self.weight > 0, slack, -np.inf) if np.any(self.weight > 0) else None

    def kinks(self, z: Vector, rest: GroupNorms) -> Kinks:
        boxes = Box(rest.left, rest.right), Box(self.left, self.right)
        return least_alpha(z, *boxes, self.weight - rest.weight, self.partition)

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        low = np.where(x > tolerance, self.right, self.left) + self.quadratic * x
        high = np.where(x < -tolerance, self.left, self.right) + self.quadratic * x
        bare = self.per_coordinate(self.weight == 0)
        return np.where(bare, low, np.nan), np.where(bare, high, np.nan)

    def longest(self, low: Vector, high: Vector, excess: float) -> Vector:
        # the excess of a group is at least (weight - ||shrink(z)||) ||x||, since z - shrink(z) is a slope at 0
        slack = self._slack(low, high)
        most = np.divide(excess, slack, out=np.full(slack.size, np.inf), where=slack > 0)
        longest: Vector = upwards(most, 0.0, most)
        return longest

    def _slack(self, low: Vector, high: Vector) -> Vector:
        """Return a lower bound on weight - ||shrink(z)|| per group, not below 0, for all slopes z in [low, high]."""
        farthest = np.maximum(*(np.abs(shrink(end, self.left, self.right)) for end in (low, high)))
        rounding = (self.partition.sizes + 8) * UNIT
        norms = self.norms(farthest) * (1.0 + rounding) + SHORT * (self.partition.sums(farthest) > 0)
        slack: Vector = np.maximum((self.weight - norms) * (1.0 - MARGIN), 0.0)
        return slack

    # --- points near a line below it ----------------------------------------------------------------------------

    def contact(self, point: Rounded, slope: Rounded) -> Contact:
        """Return the contact: the slope is split into one of the slopes and squares, and one of the norms.

        The excess of a sum is at most the sum of the excesses of its parts at slopes that add to the slope, and equal
        to it at the best split.
        """
        low, high = self.domain.box(self.left.size)
        inside, pull, gauge = self._split(slope)
        pieces, of_norms = self._parts(collapsed(point).between(low, high), inside, pull, gauge)
        conjugate, side = NOTHING, of_norms.slope
        if self.has_squares:  # what the split gives is too large by no more than the excess at any point
            touching = np.clip(self.conjugate().subgradient(slope.high), low, high)
            others = self._parts(Near(touching, np.zeros_like(touching)), inside, pull, gauge)
            least, most, size = pieces.conjugate
            conjugate = Bounds(least - up(sum(part.gap for part in others)) - UNIT * abs(least), most, size).known()
        if not side.inside and self.has_box:
            side = side._replace(multiple=self._multiple(slope))
        return Contact(
            up(pieces.gap + of_norms.gap),
            pieces.exact + of_norms.exact,
            all_bounds(pieces.value, of_norms.value),
            conjugate,
            side_of_interval(point, low, high, collapsed(slope).most),
            side,
        )

    def _split(self, slope: Rounded) -> tuple[Rounded, Near, Gauge]:
        """Return the slopes of both parts, and the lengths of the latter.

        Without squares the first is the nearest point of the box. With squares the second is fixed, and the first takes
        the errors.
        """
        blocks = self.partition
        inside, beyond = split_at_box(slope, self.left, self.right)
        pull = collapsed(beyond)
        least, most = lengths(blocks, pull.value), lengths(blocks, pull.most)
        gauge = Gauge(
            most=most.value + most.error,
            least=np.maximum(least.value - least.error, 0.0),
            end=self.weight,
            size=lengths(blocks, beyond.size).value,
        )
        if not self.has_squares:
            return inside, pull, gauge
        curved, flat = self.quadratic > 0, self.radius < np.inf
        taken = self._slopes_of_norms(slope.high, pull.value)
        rest = slope.plus(Rounded.around(-taken))
        return (
            Rounded(*(np.where(curved, *pair) for pair in zip(rest, inside, strict=True))),
            Near(np.where(curved, taken, pull.value), np.where(curved, 0.0, pull.error)),
            gauge._replace(most=np.where(flat, gauge.most, 0.0), least=np.where(flat, gauge.least, 0.0)),
        )

    def _slopes_of_norms(self, slope: Vector, pull: Vector) -> Vector:
        """Return slopes of the norms where the function touches a line, which are proved to be in the balls."""
        touching = self.conjugate().subgradient(slope)
        moved = self.norms(touching) > 0
        direction = np.where(self.per_coordinate(moved.astype(np.float64)) > 0, touching, pull)
        length = lengths(self.partition, direction).most
        target = np.where(moved, self.weight, np.minimum(self.weight, length))
        share = np.divide(target, length, out=np.zeros_like(length), where=length > 0)
        result: Vector = self.per_coordinate(share * (1 - (self.partition.sizes + 8) * UNIT)) * direction
        return result

    def _parts(self, x: Near, inside: Rounded, pull: Near, gauge: Gauge) -> tuple[Excess, Contact]:
        """Return what is known of the slopes and squares, and of the norms, at their own slopes."""
        free, blocks = PiecewiseParameters.zero(self.left.size), self.partition
        pieces = PiecewiseQuadratic(self.left, self.right, self.quadratic, free.lower, free.upper)
        norms, moved = lengths(blocks, x.value), self.weight * lengths(blocks, x.error).most
        error = self.weight * (norms.error * (1 + 4 * UNIT) + UNIT * norms.value)
        error += np.where((self.weight > 0) & (norms.value > 0), 2 * TINY, 0.0)
        return (
            pieces.excess(x.value, x.error if np.any(x.error) else None, inside),
            contact_of_norms(x, pull, blocks, Near(self.weight * norms.value, error), moved, gauge),
        )

    @cached_property
    def has_box(self) -> bool:
        """Whether the box of slopes is more than 0."""
        return anywhere(lambda slope: slope != 0, self.left) or anywhere(lambda slope: slope != 0, self.right)

    def _multiple(self, slope: Rounded) -> float:
        """Return the largest multiple of a slope that is proved to be in the domain of the conjugate."""

        def inside(t: float) -> bool:
            pull = collapsed(split_at_box(slope.times(t), self.left, self.right)[1])
            norms = lengths(self.partition, pull.most)
            return bool(np.all(norms.value + norms.error <= self.radius))

        return largest_proved(self.conjugate().domain.largest_multiple(slope.high), inside)

    def enclosure(self, low: Vector, high: Vector, excess: float) -> tuple[Vector, Vector]:
        beyond = np.maximum(self.left - low, high - self.right)
        slack = self.per_coordinate(self._slack(low, high))
        # if no slope is outside of the box, the slopes of each coordinate add to its slack
        inside = self.per_coordinate(self.partition.sums(np.maximum(beyond, 0.0))) == 0
        ends = []
        for room, allowed in ((low - self.left, np.isfinite(self.left)), (self.right - high, True)):
            with np.errstate(divide="ignore", invalid="ignore"):
                end = excess / (slack + np.where(inside, np.maximum(room, 0.0), 0.0))
            end = upwards(end, 0.0, end)
            ends.append(np.where(allowed, np.where(np.isnan(end), np.inf, end), 0.0))
        return -ends[0], ends[1]

    def with_slopes(self, low: Vector, high: Vector) -> tuple[Vector, Vector]:
        # a group is 0 if no slope is longer than its weight, and a coordinate of it has a sign only beyond the box
        zero = self.per_coordinate(self._slack(low, high)) > 0
        return (
            np.where(zero | (low > self.left), 0.0, -np.inf),
            np.where(zero | (high < self.right), 0.0, np.inf),
        )

    def restrict_blocks(self, blocks: Indices) -> GroupNorms:
        columns = self.partition.columns(blocks)
        start = np.concatenate([[0], np.cumsum(self.partition.sizes[blocks])])
        return GroupNorms(
            Blocks(None, start), self.weight[blocks], *(parameter[columns] for parameter in self._of_coordinates())
        )

    def rearranged(self, order: Indices) -> GroupNorms:
        """Return the function whose value at x is that of this one at x[order]."""
        inverse = np.argsort(order)
        return GroupNorms(
            Blocks(order[self.partition.order], self.partition.start),
            self.weight,
            *(parameter[inverse] for parameter in self._of_coordinates()),
        )

    def hstack(self, other: Convex) -> GroupNorms | None:
        if not isinstance(other, GroupNorms):
            return None
        mine, theirs, size = self.partition, other.partition, self.left.size
        contiguous = mine.contiguous and theirs.contiguous
        order = None if contiguous else np.concatenate([mine.order, theirs.order + size])
        pairs = zip(self._of_coordinates(), other._of_coordinates(), strict=True)
        return GroupNorms(
            Blocks(order, np.concatenate([mine.start, theirs.start[1:] + size])),
            np.concatenate([self.weight, other.weight]),
            *map(np.concatenate, pairs),
        )

    def normal_form(self) -> NormalForm:
        none = PiecewiseParameters.zero(self.left.size)
        parameters = none._replace(left=self.left, right=self.right, quadratic=self.quadratic)
        return NormalForm((GroupNorm(parameters, self.weight),))


class GroupConjugate(Conjugate[GroupNorms], Smooth):
    r"""The conjugate of group norms with squares.

    It is :math:`\max(0, \|b\| - \lambda)^2 / (2 q)` per group, with :math:`b = \mathrm{shrink}(z)`: the value of
    :math:`\langle z, x \rangle - f(x)` at the x that ``shrink_norms`` returns for the strengths q. In groups without
    squares it is the indicator of ``BoxPlusBall``.
    """

    @cached_property
    def domain(self) -> BoxPlusBall:
        return BoxPlusBall(self.of)

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        inside = self.domain.project(multiple(x, factor))
        point = self.subgradient(inside)
        return float(inside @ point) - self.of.finite_value(point)

    def subgradient(self, x: Vector) -> Vector:
        of, order = self.of, self.of.partition.order
        curved = of.quadratic[order] > 0
        pull = np.where(curved, shrink(x, of.left, of.right)[order], 0.0)
        strength = np.where(curved, of.quadratic[order], 1.0)
        result = np.empty_like(x)
        result[order] = shrink_norms(pull, strength, of.weight, of.partition.start[:-1])
        return result

    def recession(self, direction: Vector) -> Ray:
        return Ray(0.0, self.of.domain.project(direction))  # the support function of a cone

    def curvature(self) -> Vector | None:
        quadratic = self.of.quadratic
        return None if anywhere(lambda q: q <= 0, quadratic) else map_constants(lambda q: 1.0 / q, quadratic)

    def curvature_at(self, x: Vector) -> Vector:
        quadratic = self.of.quadratic
        return np.divide(1.0, quadratic, out=np.zeros_like(x), where=quadratic > 0)


class GroupIndicator(Indicator):
    """The indicator of ``BoxPlusBall``, whose prox is its projection if all steps are equal."""

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        if blocks is None and getattr(squeeze_constant(step), "size", 1) == 1:
            return self.ball.project(v)
        return super().prox(v, step, blocks)


class BoxPlusBall(Ball, PartlyFixed):
    """The sums of a point of the box of slopes and a point of the ball with the radius of the norms, per group."""

    def __init__(self, norms: GroupNorms) -> None:
        self.of = norms

    @cached_property
    def everything(self) -> bool:
        return bool(np.all(np.isinf(self.of.radius)))

    def holds(self, x: Vector) -> bool:
        norms = self.of.norms(shrink(x, self.of.left, self.of.right))
        return bool(np.all(norms <= self.of.radius + ROUNDING * (self.of.radius + self.of.norms(x))))

    def project(self, x: Vector) -> Vector:
        if self.everything:
            return x
        if isinstance(x, np.ndarray) and not self.of.has_box:
            return self._on_balls(x)
        pull = shrink(x, self.of.left, self.of.right) if self.of.has_box else x
        norms = self.of.norms(pull)
        factor = self.of.per_coordinate(np.minimum(norms, self.of.radius) / np.maximum(norms, SMALLEST))
        if not self.of.has_box:
            factor *= x
            return factor
        return np.where(factor < 1.0, (x - pull) + factor * pull, x)

    def _on_balls(self, x: Vector) -> Vector:
        """Return what the lines above compute, in one reading of x."""
        groups, radius = self.of.partition, np.ascontiguousarray(squeeze_constant(self.of.radius))
        order = None if groups.contiguous else np.ascontiguousarray(groups.order, dtype=np.int64)
        start = np.ascontiguousarray(groups.start, dtype=np.int64)
        return _native.project_on_balls(np.ascontiguousarray(x, dtype=np.float64), order, start, radius)

    def largest_multiple(self, x: Vector) -> float:
        """Newton from the right on the convex t -> ||shrink(t x)||_g - weight, group by group.

        Without a box the function is linear, and has the root weight / ||x||_g.
        """
        groups, weight = self.of.partition, self.of.radius
        if not self.of.has_box:
            length = self.of.norms(x) * (1.0 - ROUNDING)
            short = np.minimum(length, weight) / np.maximum(length, SMALLEST)
            return float(np.where(length > weight, short, 1.0).min())
        start, order = groups.start[:-1], groups.order
        ordered = x[order]
        left, right = self.of.left[order], self.of.right[order]
        at_zero = np.sqrt(np.add.reduceat(shrink(np.zeros_like(ordered), left, right) ** 2, start))
        slack = ROUNDING * self.of.norms(x)
        t = np.ones(len(groups))
        for _ in range(NEWTON_STEPS):
            pull = shrink(np.repeat(t, groups.sizes) * ordered, left, right)
            norm = np.sqrt(np.add.reduceat(pull * pull, start))
            outside = norm > weight + t * slack
            if not np.any(outside):
                return float(t.min())
            if np.any(at_zero > weight):
                return np.nan
            slope = np.add.reduceat(pull * ordered, start) / np.where(outside, norm, 1.0)
            t = np.maximum(np.where(outside, t - (norm - weight) / np.where(outside, slope, 1.0), t), 0.0)
        return 0.0 if np.all(at_zero <= weight) else np.nan

    def has_zero(self) -> bool:
        return self.holds(np.zeros_like(self.of.left))

    def fixed(self) -> Indices:
        return np.flatnonzero(self.of.per_coordinate(self.of.radius == 0) & (self.of.left == self.of.right))
