r"""The excess of a function over a line below it, with bounds that are theorems in floating point.

For a point p and a slope s the excess is

.. math:: E(p, s) = f(p) + f^*(s) - \langle p, s \rangle \ge 0,

by the inequality of Fenchel and Young. The gap of a certificate is the sum of the excesses of all functions: it is a
sum of terms that are not negative, so that nothing cancels. Where s is outside of the domain of f*, the excess is
that of the nearest slope in the domain, and what is missing is reported beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..common.arrays import Blocks, Vector
from ..common.rounded import TINY, UNIT, Rounded

if TYPE_CHECKING:
    from .contract import Convex, Domain

LIBM = 8 * UNIT
"""Relative error of exp, expm1, log and log1p of numpy: 4 units in the last place, which is assumed."""

LOST = 2.0**-1060
"""More than underflow takes from the few products of one number."""

SHORTEST = 2.0**-900
"""Numbers that are smaller may have lost digits to underflow in products and exponentials."""

FORGIVEN = 4 * UNIT
"""Violation, relative to the terms of its own product, that is their rounding."""

PROJECTED = 1e-12
"""Distance that rounding puts between a projection and the set, relative to the size of both: assumed."""

STRETCH = 1024
"""Numbers that are added one after the other."""


class Bounds(NamedTuple):
    """Bounds on the sum of some numbers, and the sum of their absolute values."""

    low: float
    high: float
    size: float

    @classmethod
    def around(cls, value: float, error: float, size: float) -> Bounds:
        """Return the bounds on a value with an error."""
        return cls(value - error - UNIT * abs(value), value + error + UNIT * abs(value), size)

    def known(self) -> Bounds:
        """Return the bounds; infinite ones in place of what is not a number."""
        return ANYTHING if any(map(math.isnan, self)) else self


NOTHING = Bounds(0.0, 0.0, 0.0)
ANYTHING = Bounds(-math.inf, math.inf, math.inf)


class Excess(NamedTuple):
    """What is known of f(p) + f*(s) - <p, s>, for all points p within a radius and all slopes s within an error.

    Attributes
    ----------
    gap : an upper bound on the excess at the slope of the domain of f* that is nearest to s.
    exact : the same without radius, errors and rounding: the difference is what rounding adds.
    value, conjugate : bounds on f(p) and on f* at the nearest slope.
    missed : an upper bound on the sum of |p| times the distance of s from the domain of f*.
    infeasibility : the largest distance of s from the domain of f*, relative to the size of the slope and of the end of
        the domain, over all coordinates whose distance is more than the rounding of their own product.
    multiple : the largest t in [0, 1] such that t s is proved to be in the domain of f*, as far as scaling can do that:
        coordinates with a single feasible slope, and slopes that leave the domain at 0, do not count.
    point_inside : whether every p within the radius is proved to be in the domain of f.
    slope_inside : whether every s within the error is proved to be in the domain of f*.
    rounded : whether s is in the domain of f* up to the rounding of its own products.
    assumed : whether the rounding of the function is assumed, so that nothing is proved, with whatever products.
    """

    gap: float
    exact: float
    value: Bounds
    conjugate: Bounds
    missed: float = 0.0
    infeasibility: float = 0.0
    multiple: float = 1.0
    point_inside: bool = True
    slope_inside: bool = True
    rounded: bool = True
    assumed: bool = False


def up(value: float, roundings: int = 4) -> float:
    """Return an upper bound on a sum of numbers that are not negative, after some relative roundings."""
    return value * (1.0 + (roundings + 2) * UNIT)


def total(parts: Iterable[Excess]) -> Excess:
    """Return the excess of a sum of functions of different coordinates."""
    known = list(parts)
    if len(known) == 1:
        return known[0]
    count = len(known)

    def sum_of(name: str) -> Bounds:
        each: list[Bounds] = [getattr(part, name) for part in known]
        low, high = math.fsum(one.low for one in each), math.fsum(one.high for one in each)
        size = up(sum(one.size for one in each), count)
        return Bounds(low - UNIT * abs(low), high + UNIT * abs(high), size)

    return Excess(
        gap=up(sum(part.gap for part in known), count),
        exact=sum(part.exact for part in known),
        value=sum_of("value"),
        conjugate=sum_of("conjugate"),
        missed=up(sum(part.missed for part in known), count),
        infeasibility=max(part.infeasibility for part in known),
        multiple=min(part.multiple for part in known),
        point_inside=all(part.point_inside for part in known),
        slope_inside=all(part.slope_inside for part in known),
        rounded=all(part.rounded for part in known),
        assumed=any(part.assumed for part in known),
    )


class Side(NamedTuple):
    """What is known of vectors on one side of a line, and the domain of the function on that side.

    The fields are those of ``Excess`` about the slope; ``clearly`` is what is missed without errors.
    """

    inside: bool = True
    missed: float = 0.0
    clearly: float = 0.0
    infeasibility: float = 0.0
    multiple: float = 1.0
    rounded: bool = True


UNKNOWN = Side(False, math.inf, math.inf, 1.0, 1.0, False)
"""What is known of vectors that are not finite."""


def assumed_side(domain: Domain, vector: Rounded, inside: Vector, other: Vector) -> Side:
    """Return how a vector lies to a set, of which the nearest point is known up to rounding: nothing is proved."""
    missed = np.abs(vector.high - inside)
    distance = float(np.linalg.norm(missed))
    length = float(np.linalg.norm(vector.size)) + float(np.linalg.norm(inside))
    multiple = domain.largest_multiple(vector.high)
    counted = distance > PROJECTED * length
    return Side(
        inside=False,
        missed=float(np.abs(other) @ missed),
        infeasibility=distance / length if counted else 0.0,
        multiple=multiple if multiple > 0 else 1.0,  # no multiple but 0 is feasible, or none is
        rounded=not counted,
    )


class Contact(NamedTuple):
    """How close a function f and its conjugate come to points p and slopes s: their excess, seen from either side.

    ``gap`` and ``exact`` do not contain what is missed. ``point`` is about the domain of f, ``slope`` about that of f*,
    and ``summed`` says whether the sums of the slope that have a single value in it are proved to have that.
    """

    gap: float
    exact: float
    value: Bounds
    conjugate: Bounds
    point: Side
    slope: Side
    summed: bool = True

    def swapped(self) -> Contact:
        """Return the contact of f*, of which s is the point and p the slope."""
        point = self.slope._replace(inside=self.slope.inside and self.summed)
        return Contact(self.gap, self.exact, self.conjugate, self.value, point, self.point)

    def excess(self) -> Excess:
        """Return the excess of f."""
        side = self.slope
        if not math.isfinite(self.gap + side.missed):
            side = side._replace(missed=math.inf, inside=False)
        return Excess(
            self.gap if math.isfinite(self.gap) else math.inf,
            self.exact + side.clearly,
            self.value.known(),
            self.conjugate.known(),
            side.missed,
            side.infeasibility,
            side.multiple,
            self.point.inside,
            side.inside,
            side.rounded,
        )

    @classmethod
    def unknown(cls) -> Contact:
        """Return what is known of vectors that are not finite."""
        return cls(math.inf, math.inf, ANYTHING, ANYTHING, UNKNOWN, UNKNOWN)


class Near(NamedTuple):
    """Numbers with bounds on their errors."""

    value: Vector
    error: Vector

    @property
    def most(self) -> Vector:
        """Upper bounds on the absolute values."""
        return (np.abs(self.value) + self.error) * (1 + 2 * UNIT)

    def ends(self) -> tuple[Vector, ...]:
        """Return both ends of the intervals, rounded outwards; the numbers themselves if all are exact."""
        if not np.any(self.error):
            return (self.value,)
        low, high = np.nextafter(self.value - self.error, -np.inf), np.nextafter(self.value + self.error, np.inf)
        exact = self.error == 0
        return np.where(exact, self.value, low), np.where(exact, self.value, high)

    def between(self, low: Vector, high: Vector) -> Near:
        """Return the points of intervals that are nearest to the numbers."""
        return Near(np.clip(self.value, low, high), self.error)


def finite(*vectors: Rounded) -> bool:
    """Return whether all numbers are finite."""
    return all(bool(np.isfinite(part).all()) for vector in vectors for part in vector)


def collapsed(vector: Rounded) -> Near:
    """Return a vector without its low digits, which count as errors."""
    value = vector.high + vector.low
    error = vector.error + np.where(vector.low != 0, UNIT * np.abs(value), 0.0)
    return Near(value, error * (1 + 4 * UNIT))


def sum_up(terms: Vector) -> float:
    """Return an upper bound on a sum of numbers that are not negative."""
    return up(float(np.sum(terms)), terms.size)


def exact_sum(*vectors: Vector) -> float:
    """Return the sum of all numbers with a single rounding; infinite, or nan, if it is not a number."""
    every = np.concatenate(vectors)
    if not np.isfinite(every).all():
        return float(np.sum(every))
    try:
        return math.fsum(every.tolist())
    except OverflowError:
        return math.nan


def bounds_of(terms: Near) -> Bounds:
    """Return bounds on the sum of some numbers."""
    return bounds_between(terms.value, (terms.value, -terms.error), (terms.value, terms.error))


def bounds_between(terms: Vector, low: Sequence[Vector], high: Sequence[Vector]) -> Bounds:
    """Return the bounds that are exact sums of some vectors; ``terms`` gives the size."""
    least, most = exact_sum(*low), exact_sum(*high)
    return Bounds(least - UNIT * abs(least), most + UNIT * abs(most), sum_up(np.abs(terms))).known()


def linear_bounds(coefficients: Vector, vector: Near) -> Bounds:
    """Return bounds on an inner product."""
    with np.errstate(all="ignore"):
        terms, moved = coefficients * vector.value, np.abs(coefficients) * vector.error
        lost = np.where((coefficients != 0) & ((vector.value != 0) | (vector.error > 0)), 2 * TINY, 0.0)
        return bounds_of(Near(terms, (moved + UNIT * np.abs(terms)) * (1 + 4 * UNIT) + lost))


def both(first: Side, second: Side) -> Side:
    """Return how the two halves of a vector lie to a product of sets."""
    return Side(
        first.inside and second.inside,
        up(first.missed + second.missed),
        first.clearly + second.clearly,
        max(first.infeasibility, second.infeasibility),
        min(first.multiple, second.multiple),
        first.rounded and second.rounded,
    )


def convex_bounds(function: Callable[[Vector], Near], ends: Sequence[Vector]) -> Bounds:
    """Return bounds on the sum of convex functions of one variable each, over intervals.

    A convex function is largest at an end, and falls from the middle to one end by no more than it would if it were a
    line through the middle and the other end.
    """
    if len(ends) == 1:
        return bounds_of(function(ends[0]))
    low, high = ends
    middle = low + 0.5 * (high - low)
    left, centre, right = function(low), function(middle), function(high)
    most = np.maximum(left.value + left.error, right.value + right.error)
    least = centre.value - centre.error
    before, after = middle - low, high - middle
    rises = np.maximum(most + UNIT * np.abs(most) - least, 0.0) * (1 + 8 * UNIT)
    shares = [
        np.divide(one, other, out=np.where(one > 0, np.inf, 0.0), where=other > 0)
        for one, other in ((before, after), (after, before))
    ]
    fall = np.where(rises > 0, np.maximum(*shares), 0.0) * rises
    return bounds_between(centre.value, (least, -UNIT * np.abs(least), -fall), (most, UNIT * np.abs(most)))


def all_bounds(*parts: Bounds) -> Bounds:
    """Return bounds on the sum of numbers of which bounds are known."""
    low, high, size = (sum(each) for each in zip(*parts, strict=True))
    margin = len(parts) * UNIT
    return Bounds(
        low - margin * sum(abs(part.low) for part in parts),
        high + margin * sum(abs(part.high) for part in parts),
        up(size, len(parts)),
    ).known()


def side_of_interval(vector: Rounded, low: Vector, high: Vector, other: Vector) -> Side:
    """Return how vectors lie to intervals.

    Parameters
    ----------
    vector : the vectors.
    low, high : the ends.
    other : upper bounds on the absolute values on the other side, by which what is missed counts.
    """
    above, below = beyond(vector, high), beyond(vector.negated(), -low)
    above_most, below_most = above.value + above.error, below.value + below.error
    violation = np.maximum(np.maximum(above_most, below_most), 0.0) * (1 + 2 * UNIT)
    out = np.flatnonzero(violation > 0)
    if not out.size:
        return Side()
    upwards = above_most[out] >= below_most[out]
    violation, end = violation[out], np.where(upwards, high[out], low[out])
    clearly = np.maximum(np.where(upwards, above.value[out], below.value[out]), 0.0)
    reach = collapsed(vector.part(out)).most
    side = outside(violation, clearly, np.abs(end), vector.size[out], reach, (low < high)[out])
    missed, lost = other[out] * violation, TINY * float(np.count_nonzero(other[out]))
    return side._replace(missed=sum_up(missed) + lost, clearly=float(np.sum(other[out] * clearly)))


def outside(violation: Vector, clearly: Vector, end: Vector, size: Vector, reach: Vector, scalable: Any = True) -> Side:
    """Return the side of vectors that are not proved to be inside, without what is missed.

    Parameters
    ----------
    violation, clearly : how far they are beyond an end, with and without errors.
    end : the size of that end.
    size : the size of the terms of the vectors.
    reach : upper bounds on what has to be scaled to the end.
    scalable : whether a multiple may be inside.
    """
    counted = clearly > FORGIVEN * size
    unit = end + size
    share = np.divide(violation, unit, out=np.ones_like(unit), where=(unit > 0) & (violation < unit))
    scaled = (end > 0) & (reach > 0) & scalable
    shares = np.divide(end, reach, out=np.ones_like(end), where=scaled) * (1 - 16 * UNIT)
    return Side(
        inside=False,
        infeasibility=float(np.max(share[counted], initial=0.0)),
        multiple=float(np.min(shares[scaled], initial=1.0)),
        rounded=not counted.any(),
    )


def beyond(vector: Rounded, end: Vector) -> Near:
    """Return how far vectors are above an end; -inf for an infinite one."""
    bounded = np.isfinite(end)
    off = collapsed(vector.plus(Rounded.around(np.where(bounded, -end, 0.0))))
    return Near(np.where(bounded, off.value, -np.inf), np.where(bounded, off.error, 0.0))


def split_at_box(vector: Rounded, low: Vector, high: Vector) -> tuple[Rounded, Rounded]:
    """Return, for each vector, the nearest point of a box and what is left."""
    above, below = beyond(vector, high), beyond(vector.negated(), -low)
    at = vector.high + vector.low
    upwards, downwards = at > high, at < low
    out = upwards | downwards
    end = np.where(upwards, high, np.where(downwards, low, 0.0))
    rest = vector.plus(Rounded.around(-end))
    may = np.maximum(np.maximum(above.value + above.error, below.value + below.error), 0.0) * (1 + 2 * UNIT)
    left_over = np.where(out, rest.error, may)  # a vector inside may leave the box within its error
    back = np.maximum(rest.error - np.abs(rest.high) * (1 - 4 * UNIT), 0.0) * (1 + 4 * UNIT)
    back = np.where(rest.low != 0, rest.error, back)
    size = vector.size + np.abs(end)
    return (
        Rounded(
            np.where(out, end, vector.high),
            np.where(out, 0.0, vector.low),
            np.where(out, back, (vector.error + may) * (1 + 2 * UNIT)),
            size,
        ),
        Rounded(np.where(out, rest.high, 0.0), np.where(out, rest.low, 0.0), left_over, size),
    )


def relative_entropy(mass: Vector, other: Vector, logarithm: Vector) -> tuple[Vector, Vector]:
    r"""Return :math:`c\,(q - 1 - \log q)` with the quotient q = other / mass, and what its rounding scales with.

    Both may have relative errors of 12 roundings, and the result has at most 24 of the second number: they change it by
    their product with c |q - 1|, which is small if both are nearly equal. Without mass it is ``other``. If ``other``
    has nearly underflowed, its digits are lost, and its ``logarithm`` stands for it.
    """
    some, lost = mass > 0, other < SHORTEST
    own = np.log(np.where(some, mass, 1.0))
    quotient = np.divide(other, mass, out=np.ones_like(other), where=some)
    off = quotient - 1.0
    close = np.abs(off) <= 0.5
    of_quotient = np.where(close, np.log1p(np.where(close, off, 0.0)), np.log(np.where(close | lost, 1.0, quotient)))
    of_quotient = np.where(lost, logarithm - own, of_quotient)
    terms = np.where(lost, np.abs(logarithm) + np.abs(own), np.abs(of_quotient))
    size = mass * (np.abs(off) + terms + 8 * UNIT)
    return np.where(some, mass * (off - of_quotient), other), np.where(some, size, other)


# --- sums over blocks -----------------------------------------------------------------------------------------------


def in_order(blocks: Blocks, values: Vector) -> Vector:
    """Return the values of all blocks, one block after the other."""
    return values if blocks.contiguous else values[blocks.order]


def block_sums(blocks: Blocks, values: Vector) -> tuple[Vector, Vector]:
    """Return the sum of the values of each block, and with how many additions on the way from each value.

    Long blocks are added in stretches, so that their rounding grows with the square root of their length.
    """
    start, sizes, ordered = blocks.start[:-1], blocks.sizes, in_order(blocks, values)
    if sizes.max(initial=0) <= STRETCH:
        return np.add.reduceat(ordered, start), sizes.astype(np.float64)
    stretches = np.union1d(start, np.arange(0, ordered.size, STRETCH))
    sums = np.add.reduceat(np.add.reduceat(ordered, stretches), np.searchsorted(stretches, start))
    return sums, STRETCH + sizes / STRETCH + 2.0


def lengths(blocks: Blocks, values: Vector) -> Near:
    """Return the Euclidean length of each block; it is scaled by a power of two, so that no square is out of range."""
    largest = np.maximum.reduceat(in_order(blocks, np.abs(values)), blocks.start[:-1])
    exponent = np.frexp(largest)[1]
    squares, additions = block_sums(blocks, np.ldexp(values, -blocks.spread(exponent)) ** 2)
    length = np.ldexp(np.sqrt(squares), exponent)
    return Near(length, (0.5 * additions + 4.0) * UNIT * length + np.where(length > 0, TINY, 0.0))


def running_sums(vector: Rounded) -> Rounded:
    """Return the sums of the first entries, with twice the digits: the rounding of each addition is known exactly."""
    high = np.cumsum(vector.high)
    before = np.append(0.0, high[:-1])
    steps = Rounded.around(before).plus(Rounded.around(vector.high))
    lost = (steps.high - high) + steps.low
    low = np.cumsum(lost + vector.low)
    count = np.arange(1.0, high.size + 1.0)
    rounding = (count + 4.0) * UNIT * np.cumsum(np.abs(lost) + np.abs(vector.low))
    growth = 1 + (count + 4.0) * UNIT
    return Rounded(high, low, (np.cumsum(vector.error) + rounding) * growth, np.cumsum(vector.size) * growth)


def differences(vector: Rounded) -> Rounded:
    """Return each entry but the first less the one before it."""
    return vector.part(slice(1, None)).plus(vector.part(slice(None, -1)).negated())


class Gauge(NamedTuple):
    """What is known of the norms of slopes, one per block, and of the balls that are the domain.

    Attributes
    ----------
    most : upper bounds on the norms of all slopes within their errors.
    least : lower bounds on the norms without errors.
    end : lower bounds on the radii of the balls.
    size : the norms of the sizes of the slopes.
    """

    most: Vector
    least: Vector
    end: Vector
    size: Vector


def contact_of_norms(point: Near, slope: Near, blocks: Blocks, norms: Near, moved: Vector, gauge: Gauge) -> Contact:
    r"""Return the contact of norms, one per block, with slopes in the balls of their dual norms.

    The excess of a block is :math:`\|p\| - \langle p, s \rangle`. A slope outside of its ball is scaled to it.

    Parameters
    ----------
    point, slope : the points and slopes.
    blocks : the blocks.
    norms : the norms of the points, without the errors of the points.
    moved : upper bounds on how far these errors change the norms.
    gauge : the dual norms of the slopes.
    """
    products, additions = block_sums(blocks, point.value * slope.value)
    sizes = block_sums(blocks, np.abs(point.value * slope.value))[0]
    change = block_sums(
        blocks, np.abs(point.value) * slope.error + point.error * np.abs(slope.value) + point.error * slope.error
    )[0]
    live = ((point.value != 0) | (point.error > 0)) & ((slope.value != 0) | (slope.error > 0))
    lost = 4 * TINY * block_sums(blocks, live.astype(np.float64))[0]
    growth = 1 + (additions + 8) * UNIT
    error = (norms.error + moved + (additions + 4) * UNIT * sizes + change + lost) * growth
    own = norms.value - products
    out = gauge.most > gauge.end
    factor = np.divide(gauge.end, gauge.most, out=np.ones_like(own), where=out)
    clear = np.divide(gauge.end, gauge.least, out=np.ones_like(own), where=gauge.least > gauge.end)
    cut = np.where(out, (1 - factor) + 2 * UNIT, 0.0)  # of the slopes, and so of the products
    gap = np.maximum(own + error + cut * np.maximum(products + error, 0.0) + 4 * UNIT * np.abs(own), 0.0)
    exact = np.maximum(own + (1 - clear) * products, 0.0)
    values = bounds_of(Near(norms.value, (norms.error + moved) * (1 + 2 * UNIT)))
    side = Side()
    if out.any():
        violation = np.maximum(gauge.most - gauge.end, 0.0) * (1 + 2 * UNIT)
        clearly = np.maximum(gauge.least - gauge.end, 0.0)
        side = outside(*(each[out] for each in (violation, clearly, gauge.end, gauge.size, gauge.most)))
        missed = sum_up(np.where(out, cut * ((sizes + change) * growth + lost) + lost, 0.0))
        side = side._replace(missed=missed, clearly=float(np.sum((1 - clear) * sizes)))
    return Contact(sum_up(gap), float(np.sum(exact)), values, NOTHING, Side(), side)


def contact_of_jumps(function: Convex, point: Rounded, slope: Rounded) -> Contact:
    """Return the contact of a function of the jumps from each entry to the next.

    If the entries of the slope add to 0, its product with the point is that of the jumps with the cumulated sums of the
    slope, with the opposite sign.
    """
    jumps, sums = collapsed(differences(point)), running_sums(slope)
    radius = jumps.error if np.any(jumps.error) else None
    known = function.excess(jumps.value, radius, sums.part(slice(None, -1)).negated())
    return Contact(
        known.gap,
        known.exact,
        known.value,
        NOTHING,
        Side(known.point_inside),
        Side(known.slope_inside, known.missed, 0.0, known.infeasibility, known.multiple, known.rounded),
        summed=not any(np.any(part[-1:]) for part in sums[:3]),
    )


def largest_proved(guess: float, inside: Callable[[float], bool]) -> float:
    """Return the largest multiple of a few below a guess that is proved to be inside; 1 if there is none."""
    if not guess > 0:
        return 1.0
    return next((t for t in (guess * (1 - 4.0**k * 2.0**-50) for k in range(25)) if inside(t)), 1.0)
