"""Values of functions and of their conjugates with 60 digits, as oracles: written from the definitions alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import singledispatch
from itertools import accumulate, pairwise

import numpy as np

from saddleback.functions.by_columns import Rearranged
from saddleback.functions.calculus import BlockSum, Tilted, TiltedConjugate
from saddleback.functions.conjugates import Conjugate
from saddleback.functions.contract import Convex
from saddleback.functions.expectile import ExpectileLoss
from saddleback.functions.group import GroupNorms
from saddleback.functions.isotonic import NonDecreasing
from saddleback.functions.kullback_leibler import DivergenceLoss
from saddleback.functions.linf import MaxNorms
from saddleback.functions.logistic import LogisticLoss
from saddleback.functions.multiclass import SoftmaxLoss, SumOverClasses
from saddleback.functions.norm import WeightedNorm
from saddleback.functions.nuclear import NuclearNorm
from saddleback.functions.ordered import SortedResiduals
from saddleback.functions.piecewise import PiecewiseQuadratic
from saddleback.functions.slope import SortedL1
from saddleback.functions.total_variation import LineVariation
from saddleback.functions.tweedie import TweedieLoss

SIXTY_DIGITS = Context(prec=60, Emin=-999999, Emax=999999)

INFINITE = Decimal("Infinity")
SLACK = Decimal(10) ** -45
"""More than the rounding of this file."""

Numbers = list[Decimal]


def exactly(values: object) -> Numbers:
    """Return numbers as they are stored."""
    return [Decimal(float(value)) for value in np.asarray(values).ravel()]


def dot(a: Sequence[Decimal], b: Sequence[Decimal]) -> Decimal:
    """Return an inner product."""
    return sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))


def length(a: Sequence[Decimal]) -> Decimal:
    """Return a Euclidean length."""
    return dot(a, a).sqrt()


@dataclass(frozen=True)
class Exact:
    """A function and its conjugate. ``nearest`` returns the nearest slope of the domain, if that is known here.

    ``sums`` are coordinates, of which the sum of a slope has to be a number, and ``of_points`` the same of points.
    """

    value: Callable[[Numbers], Decimal]
    conjugate: Callable[[Numbers], Decimal]
    nearest: Callable[[Numbers], Numbers] | None = None
    sums: tuple[tuple[list[int], Decimal], ...] = ()
    of_points: tuple[tuple[list[int], Decimal], ...] = ()


@singledispatch
def exact(function: Convex) -> Exact | None:
    """Return the oracle of a function; None if there is none here."""
    return None


@exact.register
def _(function: Conjugate) -> Exact | None:
    known = exact(function.of)
    return None if known is None else Exact(known.conjugate, known.value, of_points=known.sums)


def over_coordinates(
    value: Callable[..., Decimal],
    conjugate: Callable[..., Decimal],
    ends: Callable[..., Sequence[Decimal]],
    *columns: object,
) -> Exact:
    """Return the oracle of a sum, given those of a coordinate with its parameters and the ends of its slopes."""
    rows = list(zip(*(exactly(column) for column in columns), strict=True))

    def total(each: Callable[..., Decimal], x: Numbers) -> Decimal:
        return sum((each(*pair) for pair in zip(x, rows, strict=True)), Decimal(0))

    def nearest(s: Numbers) -> Numbers:
        return [min(max(own, ends(row)[0]), ends(row)[1]) for own, row in zip(s, rows, strict=True)]

    return Exact(lambda x: total(value, x), lambda s: total(conjugate, s), nearest)


@exact.register
def _(function: PiecewiseQuadratic) -> Exact:
    def value(x, row):
        left, right, q, low, high = row
        slope = right if x > 0 else left
        return (slope * x if x else Decimal(0)) + q * x * x / 2 if low <= x <= high else INFINITE

    def touching(s, row):
        """Return the maximiser of s x - F(x), whose derivative falls: it is 0 at one of two roots, or between."""
        left, right, q, low, high = row
        if s > right:
            x = (s - right) / q if q else INFINITE
        elif s < left:
            x = (s - left) / q if q else -INFINITE
        else:
            x = Decimal(0)
        x = min(max(x, low), high)
        if (x > 0 and s <= right) or (x < 0 and s >= left):
            return x  # a bound beyond 0
        return x

    def conjugate(s, row):
        x = touching(s, row)
        return INFINITE if x.is_infinite() else s * x - value(x, row)

    def ends(row):
        left, right, q, low, high = row
        return (
            left if q == 0 and low == -INFINITE else -INFINITE,
            right if q == 0 and high == INFINITE else INFINITE,
        )

    return over_coordinates(value, conjugate, ends, *function.parameters())


def x_log(x: Decimal, y: Decimal) -> Decimal:
    """Return x log(x / y); 0 for x = 0."""
    return x * (x / y).ln() if x else Decimal(0)


@exact.register
def _(function: LogisticLoss) -> Exact:
    def value(u, row):
        return row[1] * (1 + (-row[0] * u).exp()).ln()

    def conjugate(y, row):
        label, weight = row
        if weight == 0:
            return INFINITE if y else Decimal(0)
        p = -label * y / weight
        return weight * (x_log(p, Decimal(1)) + x_log(1 - p, Decimal(1))) if 0 <= p <= 1 else INFINITE

    def ends(row):
        return sorted([Decimal(0), -row[0] * row[1]])

    return over_coordinates(value, conjugate, ends, function.labels, function.weight)


@exact.register
def _(function: ExpectileLoss) -> Exact:
    sides = (function.side(np.full_like(function.b, sign)) for sign in (-1.0, 1.0))

    def value(u, row):
        b, below, above = row
        return (above if u > b else below) * (u - b) ** 2 / 2

    def conjugate(y, row):
        b, below, above = row
        side = above if y > 0 else below
        return b * y + (y * y / side / 2 if side else INFINITE) if y else Decimal(0)

    def ends(row):
        return -INFINITE if row[1] else Decimal(0), INFINITE if row[2] else Decimal(0)

    return over_coordinates(value, conjugate, ends, function.b, *sides)


@exact.register
def _(function: TweedieLoss) -> Exact:
    up, down = exactly([function.up, function.down])

    def integral(rate, u):
        return (rate * u).exp() / rate if rate else u

    def slope(u, b):
        return (up * u).exp() - (b * (-down * u).exp() if b else 0)

    def value(u, row):
        b, weight = row
        return weight * (integral(up, u) + (b * integral(down, -u) if b else 0)) if weight else Decimal(0)

    def conjugate(y, row):
        b, weight = row
        low, high = ends(row)
        if not low <= y <= high:
            return INFINITE
        if weight == 0:
            return Decimal(0)
        ratio = y / weight
        if not down:
            return weight * (x_log(ratio + b, Decimal(1)) - (ratio + b))
        if not up:
            return weight * (x_log(1 - ratio, b) - (1 - ratio))
        if ratio == 0 and b == 0:
            return Decimal(0)
        u, width = Decimal(0), Decimal(2) ** 14  # bisection, then Newton's method
        while width > Decimal(2) ** -40:
            u, width = u + (width if slope(u, b) < ratio else -width), width / 2
        for _ in range(6):
            u -= (slope(u, b) - ratio) / (up * (up * u).exp() + b * down * (-down * u).exp())
        return y * u - value(u, row)

    def ends(row):
        b, weight = row
        low = (-INFINITE if b else Decimal(0)) if down else -weight * b
        return (low if weight else Decimal(0)), ((INFINITE if up else weight) if weight else Decimal(0))

    return over_coordinates(value, conjugate, ends, function.b, function.weight)


@exact.register
def _(function: DivergenceLoss) -> Exact:
    def value(u, row):
        b, weight = row
        if weight == 0:
            return Decimal(0)
        if u < 0 or (u == 0 and b):
            return INFINITE
        return weight * (u - (b * u.ln() if b else 0))

    def conjugate(y, row):
        b, weight = row
        if weight == 0:
            return INFINITE if y else Decimal(0)
        if y > weight or (y == weight and b):
            return INFINITE
        return weight * b * ((weight * b / (weight - y)).ln() - 1) if b else Decimal(0)

    def ends(row):
        return -INFINITE if row[1] else Decimal(0), row[1]

    return over_coordinates(value, conjugate, ends, function.b, function.weight)


@exact.register
def _(function: GroupNorms) -> Exact:
    weight, left, right, q = map(exactly, (function.weight, function.left, function.right, function.quadratic))
    groups = [own.tolist() for own in function.partition]

    def value(x):
        total = Decimal(0)
        for own, strength in zip(groups, weight, strict=True):
            total += strength * length([x[j] for j in own])
            for j in own:
                slope = right[j] if x[j] > 0 else left[j]
                total += (slope * x[j] if x[j] else 0) + q[j] * x[j] ** 2 / 2
        return total

    def beyond(s, own):
        """Return what is left of a slope outside of the box; a sum of x and a slope there is that of the box."""
        return [s[j] - min(max(s[j], left[j]), right[j]) for j in own]

    def conjugate(s):
        total = Decimal(0)
        for own, strength in zip(groups, weight, strict=True):
            pull = beyond(s, own)
            if length(pull) <= strength:
                continue
            if not q[own[0]]:
                return INFINITE
            low, high = Decimal(0), length(pull) / min(q[j] for j in own)  # the length of x, by bisection
            for _ in range(200):
                middle = (low + high) / 2
                longer = sum((b / (q[j] * middle + strength)) ** 2 for j, b in zip(own, pull, strict=True)) > 1
                low, high = (middle, high) if longer else (low, middle)
            x = [b * low / (q[j] * low + strength) if b else Decimal(0) for j, b in zip(own, pull, strict=True)]
            squares = sum(q[j] * each**2 for j, each in zip(own, x, strict=True)) / 2
            total += dot(pull, x) - squares - strength * length(x)
        return total

    def nearest(s):
        result = list(s)
        for own, strength in zip(groups, weight, strict=True):
            pull = beyond(s, own)
            norm = length(pull)
            if norm > strength and not q[own[0]]:
                for j, each in zip(own, pull, strict=True):
                    result[j] = s[j] - each + each * strength / norm * (1 - Decimal(10) ** -50)
        return result

    return Exact(value, conjugate, nearest)


@exact.register
def _(function: WeightedNorm) -> Exact:
    b, weight = exactly(function.b), exactly(function.weight)
    scale = Decimal(function.scale)

    def value(u):
        return scale * sum(w * (x - t) ** 2 for x, t, w in zip(u, b, weight, strict=True)).sqrt()

    def conjugate(y):
        if any(each and not w for each, w in zip(y, weight, strict=True)):
            return INFINITE
        inside = sum(each * each / w for each, w in zip(y, weight, strict=True) if w) <= scale * scale
        return dot(b, y) if inside else INFINITE

    return Exact(value, conjugate)


@exact.register
def _(function: MaxNorms) -> Exact:
    weight, groups = exactly(function.weight), [own.tolist() for own in function.partition]

    def value(x):
        return sum(w * max(abs(x[j]) for j in own) for own, w in zip(groups, weight, strict=True))

    def conjugate(s):
        inside = all(sum(abs(s[j]) for j in own) <= w for own, w in zip(groups, weight, strict=True))
        return Decimal(0) if inside else INFINITE

    return Exact(value, conjugate)


@exact.register
def _(function: SortedL1) -> Exact:
    weights = exactly(function.weights)

    def conjugate(s):
        sums = accumulate(sorted(map(abs, s), reverse=True))
        inside = all(own <= end for own, end in zip(sums, accumulate(reversed(weights)), strict=True))
        return Decimal(0) if inside else INFINITE

    return Exact(lambda x: dot(weights, sorted(map(abs, x))), conjugate)


@exact.register
def _(function: SortedResiduals) -> Exact:
    b, scores = exactly(function.b), exactly(function.scores)

    def value(u):
        return dot(scores, sorted(x - t for x, t in zip(u, b, strict=True)))

    def conjugate(y):
        sums, ends = list(accumulate(sorted(y, reverse=True))), list(accumulate(reversed(scores)))
        inside = sums[-1] == ends[-1] and all(own <= end for own, end in zip(sums, ends, strict=True))
        return dot(b, y) if inside else INFINITE

    return Exact(value, conjugate)


@exact.register
def _(function: LineVariation) -> Exact | None:
    if not function.bare:
        return None
    alpha, linear = Decimal(function.alpha), exactly(function.linear)

    def value(x):
        return alpha * sum(abs(b - a) for a, b in pairwise(x)) + dot(linear, x)

    def conjugate(s):
        sums = list(accumulate(own - c for own, c in zip(s, linear, strict=True)))
        return Decimal(0) if abs(sums[-1]) <= SLACK and max(map(abs, sums)) <= alpha + SLACK else INFINITE

    return Exact(value, conjugate, sums=((list(range(len(linear))), sum(linear)),))


@exact.register
def _(function: NonDecreasing) -> Exact:
    def conjugate(s):
        sums = list(accumulate(s))
        return Decimal(0) if abs(sums[-1]) <= SLACK and min(sums) >= -SLACK else INFINITE

    return Exact(
        lambda x: Decimal(0) if x == sorted(x) else INFINITE,
        conjugate,
        sums=((list(range(function.size)), Decimal(0)),),
    )


@exact.register
def _(function: NuclearNorm) -> Exact:
    (weight,), shape = exactly(function.alpha), function.shape
    assert min(shape) == 2

    def moments(x):
        """Return the sum of the squares of both singular values, and their product."""
        x = np.array(x, dtype=object).reshape(shape)
        a, b = x if shape[0] == 2 else x.T
        squares = dot(a, a), dot(b, b)
        return sum(squares), max(squares[0] * squares[1] - dot(a, b) ** 2, Decimal(0)).sqrt()

    def value(x):
        squares, product = moments(x)
        return weight * (squares + 2 * product).sqrt()

    def conjugate(s):
        squares, product = moments(s)
        largest = (squares + max(squares**2 - 4 * product**2, Decimal(0)).sqrt()) / 2
        return Decimal(0) if largest <= weight**2 + SLACK else INFINITE

    return Exact(value, conjugate)


@exact.register
def _(function: SumOverClasses) -> Exact | None:
    if not function._single:
        return None
    q, weight = function.target.shape[1], exactly(function.weight)
    classes = np.argmax(function.target, axis=1).tolist()
    smooth = isinstance(function, SoftmaxLoss)

    def value(u):
        total = Decimal(0)
        for i, (w, z) in enumerate(zip(weight, classes, strict=True)):
            row = u[i * q : (i + 1) * q]
            if smooth:
                total += w * (sum((each - row[z]).exp() for each in row)).ln()
            else:
                total += w * max(each - row[z] + (k != z) for k, each in enumerate(row))
        return total

    def conjugate(y):
        total = Decimal(0)
        for i, (w, z) in enumerate(zip(weight, classes, strict=True)):
            row = y[i * q : (i + 1) * q]
            if w == 0:
                total += INFINITE if any(row) else 0
                continue
            shares = [own / w + (k == z) for k, own in enumerate(row)]
            if abs(sum(row)) > SLACK or min(shares) < 0:
                return INFINITE
            total += w * (sum(x_log(p, Decimal(1)) for p in shares) if smooth else shares[z] - 1)
        return total

    sums = tuple((list(range(i * q, (i + 1) * q)), Decimal(0)) for i in range(len(weight)))
    return Exact(value, conjugate, sums=sums)


@exact.register
def _(function: Tilted) -> Exact | None:
    known, linear = exact(function.base), exactly(function.linear)
    if known is None:
        return None

    def untilted(s):
        return [own - c for own, c in zip(s, linear, strict=True)]

    sums = tuple((own, total + sum(linear[j] for j in own)) for own, total in known.sums)
    return Exact(lambda x: known.value(x) + dot(linear, x), lambda s: known.conjugate(untilted(s)), sums=sums)


@exact.register
def _(function: TiltedConjugate) -> Exact | None:
    known = exact(function.of)
    return None if known is None else Exact(known.conjugate, known.value, of_points=known.sums)


@exact.register
def _(function: Rearranged) -> Exact | None:
    known, order = exact(function.base), function.order.tolist()
    if known is None:
        return None
    return Exact(
        lambda x: known.value([x[j] for j in order]),
        lambda s: known.conjugate([s[j] for j in order]),
        sums=tuple(([order[j] for j in own], total) for own, total in known.sums),
    )


@exact.register
def _(function: BlockSum) -> Exact | None:
    parts = [(exact(part), own) for part, own in function.parts()]
    if any(known is None for known, _ in parts):
        return None
    sums = [([j + at.start for j in own], total) for known, at in parts for own, total in known.sums]
    return Exact(
        lambda x: sum(known.value(x[own]) for known, own in parts),
        lambda s: sum(known.conjugate(s[own]) for known, own in parts),
        sums=tuple(sums),
    )
