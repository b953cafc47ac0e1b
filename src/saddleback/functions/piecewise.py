r"""The one-dimensional family to which nearly all built-in functions belong.

.. math::

    F(x) = \sum_d s_d(x_d) + \tfrac{q_d}{2} x_d^2 + \iota_{[l_d, u_d]}(x_d), \qquad
    s_d(x) = \begin{cases} \text{right}_d\, x & x \ge 0 \\ \text{left}_d\, x & x \le 0 \end{cases}
    \qquad \text{left} \le \text{right}.

L1, elastic net, boxes and linear terms are members of it, and so is the *conjugate* of every separable loss in
``losses.py`` except for the logistic loss. The absolute loss is the conjugate of ``b y`` on ``[-1, 1]``, and an
interval constraint is that of the two slopes ``lower`` and ``upper``. So one prox and one conjugate serve penalties and
losses, here and in the native kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _native
from ..common.arrays import (
    Blocks,
    Indices,
    Parameter,
    Step,
    ToDevice,
    Vector,
    anywhere,
    concat_constants,
    constant,
    is_one_value,
    map_constants,
    multiple,
    squeeze_constant,
    take,
)
from ..common.cached import cached_property
from ..common.chunks import chunked_map, chunked_sum, double, inner
from ..common.rounded import UNIT, Rounded
from .conjugates import Conjugate
from .contract import ROUNDING, Convex, Ray
from .domains import Interval
from .enclosures import MARGIN, reach, steepness, upwards
from .excess import Bounds, Excess
from .kinks import Box, Kinks, least_alpha
from .normal_form import NormalForm, Piecewise, PiecewiseParameters
from .traits import (
    Addable,
    Enclosed,
    InUnits,
    Joinable,
    Kinked,
    Lipschitz,
    Movable,
    Scaled,
    Smooth,
    SumOverCoordinates,
    SumOverRows,
)


def shrink(v: Vector, left: Parameter, right: Parameter) -> Vector:
    """Return v moved towards 0 by the slope on its side: v - clip(v, left, right)."""
    taken = np.clip(v, left, right)
    return np.subtract(v, taken, out=taken)


class PiecewiseQuadratic(SumOverCoordinates, Lipschitz, Kinked, Scaled, InUnits, Movable, Addable, Joinable, Enclosed):
    """A member of the family: five parameters, one value per coordinate."""

    def __init__(self, left: Vector, right: Vector, quadratic: Vector, lower: Vector, upper: Vector) -> None:
        self.left = left
        self.right = right
        self.quadratic = quadratic
        self.lower = lower
        self.upper = upper

    def parameters(self) -> PiecewiseParameters:
        """Return the five parameters together."""
        return PiecewiseParameters(self.left, self.right, self.quadratic, self.lower, self.upper)

    def contiguous(self) -> PiecewiseParameters:
        """Return the parameters as contiguous arrays, as the kernels need them."""
        return self.parameters().contiguous()

    def blocks(self) -> Blocks:
        return Blocks.scalars(self.left.size)

    def restrict(self, keep: Indices) -> PiecewiseQuadratic:
        return self._each(lambda parameter: take(parameter, keep))

    def restrict_blocks(self, blocks: Indices) -> PiecewiseQuadratic:
        return self.restrict(blocks)

    def panel(self, own: slice) -> PiecewiseQuadratic:
        """Return the function of neighbouring coordinates, in float64."""
        return self._each(lambda parameter: double(parameter[own]))

    def moved(self, place: ToDevice) -> PiecewiseQuadratic:
        return self._each(lambda parameter: place(double(parameter)))

    def in_units(self, unit: Vector) -> PiecewiseQuadratic:
        left = self.left * unit
        right = left if self.right is self.left else self.right * unit
        return PiecewiseQuadratic(left, right, self.quadratic * unit * unit, self.lower / unit, self.upper / unit)

    def _each(self, change: Callable[[Vector], Vector]) -> PiecewiseQuadratic:
        """Return the function with changed parameters; two slopes that are the same array stay the same array."""
        left, right, *rest = self.parameters()
        changed = change(left)
        return PiecewiseQuadratic(changed, changed if right is left else change(right), *map(change, rest))

    # --- the function -------------------------------------------------------------------------------------------

    @cached_property
    def domain(self) -> Interval:
        return Interval(self.lower, self.upper)

    value = chunked_sum(Convex.value)

    @chunked_sum
    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        x = multiple(x, factor)
        if not self._has_kink:
            return _inner(self.left, x) + 0.5 * self.quadratic_form(x)
        at = (x != 0).nonzero()[0]  # an infinite slope times 0 counts as 0, and most of x is often 0
        point = x[at]
        slope = np.where(point > 0, take(self.right, at), take(self.left, at))
        curved = 0.5 * (self.quadratic[at] @ (point * point)) if self._has_quadratic else 0.0
        return float(slope @ point + curved)

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        return self._prox(v, step) if blocks is None else self.restrict(blocks)._prox(v, step)

    @chunked_map
    def _prox(self, v: Vector, step: Step) -> Vector:
        step, left, right, quadratic, lower, upper = map(squeeze_constant, (step, *self.parameters()))
        free = shrink(v, step * left, step * right)
        if self._has_quadratic:
            free /= 1.0 + step * quadratic
        return free if self.domain.everything else np.clip(free, lower, upper, out=free)

    def recession(self, direction: Vector) -> Ray:
        straight = self.quadratic == 0
        upwards = (direction > 0) & straight & (self.upper == np.inf)
        downwards = (direction < 0) & straight & (self.lower == -np.inf)
        inside = np.where(upwards | downwards, direction, 0.0)
        slope = np.where(inside > 0, self.right, np.where(inside < 0, self.left, 0.0))
        terms = slope * inside
        return Ray(float(np.sum(terms)), direction - inside, float(np.sum(np.abs(terms))))

    def subgradient(self, x: Vector) -> Vector:
        """Return the slope on the side of x, the smallest one at 0."""
        at_zero = np.clip(0.0, self.left, self.right)
        return np.where(x > 0, self.right, np.where(x < 0, self.left, at_zero)) + self.quadratic * x

    def subgradient_scale(self) -> Vector:
        return map_constants(_largest_finite, self.left, self.right)

    def rise(self, distance: float) -> float:
        """Return J d + K d^2 / 2: a slope is 0 at the minimiser, then jumps by J at most and grows by K d."""
        jump = map_constants(_finite_jump, self.left, self.right)
        return _length(jump) * distance + 0.5 * float(np.max(squeeze_constant(self.quadratic))) * distance**2

    def minimiser(self) -> Vector:
        return self.maximiser(np.zeros(self.left.size))

    @chunked_sum
    def quadratic_form(self, x: Vector) -> float:
        """Return <q, x^2>, twice the quadratic part."""
        return _inner_square(self.quadratic, x) if self._has_quadratic else 0.0

    def conjugate(self) -> ConjugatePiecewise:
        return ConjugatePiecewise(self)

    def normal_form(self) -> NormalForm:
        return NormalForm((Piecewise(self.parameters()),))

    # --- its conjugate ------------------------------------------------------------------------------------------

    @chunked_map
    def maximiser(self, y: Vector) -> Vector:
        """Return argmax_x <x, y> - F(x), a subgradient of the conjugate; infinite if it is not attained."""
        if self._parabola:
            return (y - squeeze_constant(self.left)) / squeeze_constant(self.quadratic)
        left, right, quadratic, lower, upper = map(squeeze_constant, self.parameters())
        excess = shrink(y, left, right) if self._has_kink else y - left
        if self._strictly_quadratic:
            free = np.divide(excess, quadratic, out=excess)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                free = np.where(excess == 0.0, 0.0, excess / self.quadratic)
        return free if self.domain.everything else np.clip(free, lower, upper, out=free)

    @chunked_sum
    def conjugate_value(self, y: Vector) -> float:
        """Return F*(y)."""
        if self._parabola:
            excess = y - squeeze_constant(self.left)
            return 0.5 * inner(excess, excess / squeeze_constant(self.quadratic))
        inside = self.conjugate_domain.project(y)
        if inside is not y and np.any(np.abs(y - inside) > ROUNDING * (1.0 + np.abs(inside))):
            return np.inf
        x = self.maximiser(inside)
        return inner(inside, x) - self.finite_value(x)

    @chunked_sum
    def finite_conjugate_value(self, y: Vector, factor: float) -> float:
        """Return F*(factor y), without the infinite values outside of its domain."""
        y = multiple(y, factor)
        if self._parabola:
            return self.conjugate_value(y)
        if not self._has_kink:
            return self.conjugate_value(self.conjugate_domain.project(y))
        low, high = self._zero_interval  # F* is 0 there: nearly everywhere for a sparse penalty
        rest = ((y < low) | (y > high)).nonzero()[0]
        if rest.size == 0:
            return 0.0
        part = self.restrict(rest)
        return part.conjugate_value(part.conjugate_domain.project(y[rest]))

    @chunked_map
    def conjugate_prox(self, v: Vector, step: Step) -> Vector:
        """Return the prox of the conjugate, without the rounding error of Moreau's difference."""
        y = self._prox(v / step, 1.0 / step)
        slope = np.where(y > 0, self.right, self.left)
        attained = (y != 0) & (y > self.lower) & (y < self.upper)
        flat = (y == 0) & (self.left == self.right) & (self.lower < 0) & (self.upper > 0)
        with np.errstate(invalid="ignore"):
            exact = slope + self.quadratic * y
        return np.where(attained | flat, exact, v - step * y)

    @cached_property
    def conjugate_domain(self) -> Interval:
        """The domain of the conjugate."""
        if self.left.size and is_one_value(self.quadratic, self.lower, self.upper):
            straight = self.quadratic[0] == 0
            return Interval(
                self.left if straight and self.lower[0] == -np.inf else constant(-np.inf, self.left.size),
                self.right if straight and self.upper[0] == np.inf else constant(np.inf, self.left.size),
            )
        straight = self.quadratic == 0
        low = np.where(straight & (self.lower == -np.inf), self.left, -np.inf)
        high = np.where(straight & (self.upper == np.inf), self.right, np.inf)
        return Interval(low, high)

    # the flags below save computations that a function does not need

    @cached_property
    def _has_kink(self) -> bool:
        return self.left is not self.right and bool((squeeze_constant(self.left) != squeeze_constant(self.right)).any())

    @cached_property
    def _has_quadratic(self) -> bool:
        return anywhere(lambda quadratic: quadratic != 0, self.quadratic)

    @cached_property
    def _strictly_quadratic(self) -> bool:
        return not anywhere(lambda quadratic: quadratic <= 0, self.quadratic)

    @cached_property
    def _parabola(self) -> bool:
        return self._strictly_quadratic and not self._has_kink and self.domain.everything

    @cached_property
    def _zero_interval(self) -> tuple[Vector, Vector]:
        """The interval of y per coordinate for which 0 is the maximiser of <x, y> - F(x); may be empty."""
        if self.left.size > 1 and is_one_value(*self.parameters()):
            low, high = self.restrict(np.array([0]))._zero_interval
            return constant(low[0], self.left.size), constant(high[0], self.left.size)
        admitted = (self.lower <= 0) & (self.upper >= 0)
        return np.where(admitted, self.left, np.inf), np.where(admitted, self.right, -np.inf)

    # --- points near a line below it ----------------------------------------------------------------------------

    def excess(self, point: Vector, radius: Vector | None, slope: Rounded) -> Excess:
        return self._excess(point, radius, slope, conjugate=False)

    def excess_of_conjugate(self, point: Vector, radius: Vector | None, slope: Rounded) -> Excess:
        """Return the excess of f*: that of f with point and slope in each other's place."""
        return self._excess(point, radius, slope, conjugate=True)

    def _excess(self, point: Vector, radius: Vector | None, slope: Rounded, conjugate: bool) -> Excess:
        nothing = np.zeros(1) if radius is None else _short(radius)
        high, (low, error, size) = np.ascontiguousarray(slope.high), map(_short, slope[1:])
        parameters = [_short(parameter) for parameter in self.parameters()]
        numbers, value, of_conjugate, decided = _native.piecewise_excess(
            parameters, np.ascontiguousarray(point), nothing, high, low, error, size, conjugate
        )
        gap, exact, missed, infeasibility, multiple = numbers
        # the terms of these sums are not negative: the order in which they are added does not matter
        margin = 1.0 + (point.size + 4) * UNIT
        return Excess(
            gap * margin if gap < np.inf else np.inf,
            exact if exact < np.inf else np.inf,
            _bounds(*value, point.size),
            _bounds(*of_conjugate, point.size),
            missed * margin if missed < np.inf else np.inf,
            infeasibility,
            multiple,
            *decided,
        )

    def enclosure(self, low: Vector, high: Vector, excess: float) -> tuple[Vector, Vector]:
        return -self.of_multiple(-1.0)._highest(-low, excess), self._highest(high, excess)

    def _highest(self, slope: Vector, excess: float) -> Vector:
        """Return the largest x whose excess for a slope is at most ``excess``, which grows with the slope."""
        z = self.conjugate_domain.project(slope)
        x, q = self.maximiser(z), self.quadratic
        start = np.maximum(x, 0.0)
        to_zero = np.maximum(np.minimum(self.upper, 0.0) - x, 0.0)
        pieces = (
            (to_zero, steepness(self.left, q * x, z), q),
            (np.maximum(self.upper - start, 0.0), steepness(self.right, q * start, z), q),
        )
        return np.minimum(upwards(x, reach(excess, pieces), np.where(q > 0, np.abs(x), 0.0)), self.upper)

    def with_slopes(self, low: Vector, high: Vector) -> tuple[Vector, Vector]:
        return -self.of_multiple(-1.0)._highest_with(-low), self._highest_with(high)

    def _highest_with(self, slope: Vector) -> Vector:
        """Return the largest x that has the slope as a subgradient, or that has a smaller one."""
        excess = slope - np.clip(slope, self.left, self.right)
        free = np.where((excess > 0) | (slope >= self.right), np.inf, np.where(excess < 0, -np.inf, 0.0))
        bent = (self.quadratic > 0) & (excess != 0)
        ratio = np.divide(excess, self.quadratic, out=np.zeros_like(excess), where=bent)
        curved = np.where(bent, np.nextafter(upwards(ratio, 0.0, np.abs(ratio)), np.inf), 0.0)
        return np.clip(np.where(self.quadratic > 0, curved, free), self.lower, self.upper)

    def curvature_between(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        kinked = (self.left < self.right) & (lower <= 0) & (upper >= 0)
        ended = (lower < self.lower) | (upper > self.upper)
        return np.array(self.quadratic), np.where(kinked | ended, np.inf, self.quadratic)

    # --- sums, and conjugates within the family -----------------------------------------------------------------

    def plus(self, piece: PiecewiseParameters) -> PiecewiseQuadratic:
        total = self.plus_member(PiecewiseQuadratic(*piece))
        lower, upper = total.lower, total.upper
        if np.any(lower > upper):
            at = int(np.argmax(lower > upper))
            raise ValueError(f"the bounds that are added leave nothing at index {at}: {lower[at]} > {upper[at]}")
        return total

    def plus_member(self, other: PiecewiseQuadratic) -> PiecewiseQuadratic:
        """Return the sum with another member of the family."""
        left = _sum(self.left, other.left)
        alike = self.left is self.right and other.left is other.right
        return PiecewiseQuadratic(
            left,
            left if alike else _sum(self.right, other.right),
            _sum(self.quadratic, other.quadratic),
            map_constants(np.maximum, self.lower, other.lower),
            map_constants(np.minimum, self.upper, other.upper),
        )

    def conjugate_member(self) -> PiecewiseQuadratic | None:
        """Return the conjugate, up to a constant, if it belongs to the family too."""
        if self._parabola:
            linear = map_constants(lambda c, q: -c / q, self.left, self.quadratic)
            curvature = map_constants(lambda q: 1.0 / q, self.quadratic)
            return PiecewiseQuadratic(linear, linear, curvature, self.lower, self.upper)
        ends = map_constants(_are_none_or_zero, self.lower, self.upper)
        if self._has_quadratic or not np.all(squeeze_constant(ends)):
            return None
        none = constant(0.0, self.left.size)
        return PiecewiseQuadratic(none, none, none, *self.slopes_at_zero())

    def as_loss(self) -> Convex:
        """Return the same function as the conjugate of a member of the family, in which form kernels read a loss.

        It is this function itself if its conjugate does not belong to the family.
        """
        left, right, quadratic, lower, upper = self.parameters()
        none, free = np.zeros(left.size), np.full(left.size, np.inf)
        flat = (left == 0) & (right == 0)
        slopes = (quadratic == 0) & _are_none_or_zero(lower, upper)
        interval = (quadratic == 0) & flat
        parabola = (quadratic > 0) & flat & np.isinf(lower) & np.isinf(upper)
        if not np.all(slopes | interval | parabola):
            return self
        low, high = self.slopes_at_zero()
        below, above = np.isfinite(lower), np.isfinite(upper)
        dual = PiecewiseQuadratic(
            np.select([slopes, interval & below, interval & above], [none, lower, upper], none),
            np.select([slopes, interval & above, interval & below], [none, upper, lower], none),
            np.divide(1.0, quadratic, out=np.zeros(left.size), where=parabola),
            np.select([slopes, interval], [low, np.where(below, -free, 0.0)], -free),
            np.select([slopes, interval], [high, np.where(above, free, 0.0)], free),
        )
        return dual.conjugate()

    def of_multiple(self, factor: float) -> PiecewiseQuadratic:
        """Return x -> F(factor x), for a factor that is not 0."""
        sides = (self.left, self.right) if factor > 0 else (self.right, self.left)
        ends = (self.lower, self.upper) if factor > 0 else (self.upper, self.lower)
        left = map_constants(lambda c: factor * c, sides[0])
        return PiecewiseQuadratic(
            left,
            left if sides[0] is sides[1] else map_constants(lambda c: factor * c, sides[1]),
            map_constants(lambda q: factor**2 * q, self.quadratic),
            *(map_constants(lambda end: end / factor, end) for end in ends),
        )

    def is_paraboloid(self) -> bool:
        """Return whether every coordinate has only a slope and a curvature, or is fixed at 0."""

        def plain(q: Any, low: Any, high: Any) -> Any:
            return ((q > 0) & np.isinf(low) & np.isinf(high)) | ((low == 0) & (high == 0))

        known = map_constants(plain, self.quadratic, self.lower, self.upper)
        return not self._has_kink and bool(np.all(squeeze_constant(known)))

    def hstack(self, other: Convex) -> PiecewiseQuadratic | None:
        if not isinstance(other, PiecewiseQuadratic):
            return None
        pairs = zip(self.parameters(), other.parameters(), strict=True)
        return PiecewiseQuadratic(*(concat_constants(a, b) for a, b in pairs))

    # --- its kinks ------------------------------------------------------------------------------------------------

    def slopes_at_zero(self) -> Box:
        """Return the interval of slopes at 0; infinite on the side of a bound at 0."""
        return Box(
            map_constants(lambda low, slope: np.where(low >= 0, -np.inf, slope), self.lower, self.left),
            map_constants(lambda high, slope: np.where(high <= 0, np.inf, slope), self.upper, self.right),
        )

    def kinks(self, z: Vector, rest: PiecewiseQuadratic) -> Kinks:
        unit = self.slopes_at_zero()
        return least_alpha(z, rest.slopes_at_zero(), unit, np.zeros(z.size), self.blocks())

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        low = np.where(x > tolerance, self.right, self.left) + self.quadratic * x
        high = np.where(x < -tolerance, self.left, self.right) + self.quadratic * x
        return (
            np.where(x <= self.lower + tolerance, -np.inf, low),
            np.where(x >= self.upper - tolerance, np.inf, high),
        )

    def zero_slack(self, z: Vector) -> Vector | None:
        if self._kinks is None:
            return None
        low, high = map(squeeze_constant, self._kinks)
        return np.minimum(high - z, z - low)

    @cached_property
    def _kinks(self) -> tuple[Vector, Vector] | None:
        """The interval of slopes for which a coordinate stays at 0; (inf, -inf) if it has no kink at 0.

        None if no coordinate has a kink at 0.
        """
        slopes = self.slopes_at_zero()

        def has_kink(left: Any, right: Any, lower: Any, upper: Any) -> Any:
            return (left < right) & (lower <= 0) & (upper >= 0)

        kinked = map_constants(has_kink, *slopes, self.lower, self.upper)
        if not np.any(squeeze_constant(kinked)):
            return None
        return (
            map_constants(lambda has, slope: np.where(has, slope, np.inf), kinked, slopes[0]),
            map_constants(lambda has, slope: np.where(has, slope, -np.inf), kinked, slopes[1]),
        )


class ConjugatePiecewise(Conjugate[PiecewiseQuadratic], SumOverRows, Smooth, Lipschitz, Kinked, Scaled, Enclosed):
    """The conjugate of a member of the family: a separable loss, defined by its conjugate."""

    def restrict(self, keep: Indices) -> ConjugatePiecewise:
        return self.of.restrict(keep).conjugate()

    @property
    def domain(self) -> Interval:
        return self.of.conjugate_domain

    def value(self, x: Vector) -> float:
        return self.of.conjugate_value(x)

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        if not self.of._has_quadratic and self.of.domain.everything:
            return 0.0  # an interval or an equality: 0 inside of its domain
        return self.of.finite_conjugate_value(x, factor)

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        return (self.of if blocks is None else self.of.restrict(blocks)).conjugate_prox(v, step)

    def recession(self, direction: Vector) -> Ray:
        bound = np.where(direction > 0, self.of.upper, self.of.lower)
        inside = np.where(np.isfinite(bound), direction, 0.0)
        terms = np.where(inside == 0.0, 0.0, bound) * inside
        return Ray(float(np.sum(terms)), direction - inside, float(np.sum(np.abs(terms))))

    def subgradient(self, x: Vector) -> Vector:
        return self.of.maximiser(x)

    def subgradient_scale(self) -> Vector:
        return map_constants(_largest_finite, self.of.lower, self.of.upper)

    def minimiser(self) -> Vector:
        """Return the minimiser, which is a subgradient of F at 0, since F is closed."""
        dual = self.of
        low = np.where(dual.lower >= 0, -np.inf, dual.left)
        high = np.where(dual.upper <= 0, np.inf, dual.right)
        feasible = (dual.lower <= 0) & (dual.upper >= 0)
        return np.where(feasible, np.clip(0.0, low, high), np.nan)

    def curvature(self) -> Vector | None:
        return self._curvature

    @cached_property
    def _curvature(self) -> Vector | None:
        dual = self.of
        smooth = dual._strictly_quadratic or bool(np.all((dual.quadratic > 0) | (dual.lower == dual.upper)))
        return map_constants(_inverse, dual.quadratic) if smooth else None

    def curvature_at(self, x: Vector) -> Vector:
        dual = self.of
        if dual._parabola:
            return np.full_like(x, 1.0 / squeeze_constant(dual.quadratic))
        y = dual.maximiser(x)
        curved = (y != 0) | (dual.left == dual.right)
        curved &= (y > dual.lower) & (y < dual.upper)
        return np.divide(1.0, dual.quadratic, out=np.zeros_like(x), where=curved & (dual.quadratic > 0))

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        # the slopes at x are the y at which x is a slope of the dual: 0 between its two slopes, a bound beyond them
        dual, y = self.of, self.of.maximiser(x)
        between = np.clip(0.0, dual.lower, dual.upper)
        low = np.where(x > dual.right + tolerance, dual.upper, np.where(x > dual.left + tolerance, between, dual.lower))
        high = np.where(
            x < dual.left - tolerance, dual.lower, np.where(x < dual.right - tolerance, between, dual.upper)
        )
        curved = dual.quadratic > 0
        return np.where(curved, y, low), np.where(curved, y, high)

    def rise(self, distance: float) -> float:
        """Return min(L d, K d^2 / 2) with the Lipschitz constants L of the curved rows and K of their slopes, plus L d.

        The last L is that of the rows with kinks. A row with neither is a constraint.
        """
        curved, kinked, curvature = self._lipschitz
        parabola = 0.5 * curvature * distance**2
        return (parabola if curved == np.inf else min(curved * distance, parabola)) + kinked * distance

    def rise_within(self, distances: Vector) -> float:
        dual, slope = self.of, self._steepest
        line = np.where(slope < np.inf, slope, 0.0) * distances
        parabola = 0.5 * map_constants(_inverse, dual.quadratic) * distances**2
        curved = np.where(slope < np.inf, np.minimum(line, parabola), parabola)
        return float(np.sum(np.where(dual.quadratic > 0, curved, line)))

    @cached_property
    def _steepest(self) -> Vector:
        """The largest slope of each row; infinite for a constraint or a parabola."""
        return map_constants(_larger, self.of.lower, self.of.upper)

    @cached_property
    def _lipschitz(self) -> tuple[float, float, float]:
        """Lipschitz constants of the curved rows and of those with kinks alone, and of the slopes of the former."""
        dual, slope = self.of, self._steepest
        curved = map_constants(lambda slope, q: np.where(q > 0, slope, 0.0), slope, dual.quadratic)
        kinked = map_constants(
            lambda slope, q: np.where((q == 0) & (slope < np.inf), slope, 0.0), slope, dual.quadratic
        )
        return _length(curved), _length(kinked), float(np.max(map_constants(_inverse, dual.quadratic)))

    def distance_to_kink(self, u: Vector) -> Vector:
        # the slope is a bound of the dual, or 0 between its two slopes
        dual, y = self.of, self.of.maximiser(u)
        with np.errstate(invalid="ignore"):
            below = dual.left + dual.quadratic * dual.lower - u
            above = u - dual.right - dual.quadratic * dual.upper
        between = np.minimum(u - dual.left, dual.right - u)
        flat = np.where(y <= dual.lower, below, np.where(y >= dual.upper, above, np.where(y == 0, between, 0.0)))
        return np.where(dual.lower == dual.upper, np.inf, np.maximum(np.nan_to_num(flat), 0.0))

    def excess(self, point: Vector, radius: Vector | None, slope: Rounded) -> Excess:
        return self.of.excess_of_conjugate(point, radius, slope)

    def enclosure(self, low: Vector, high: Vector, excess: float) -> tuple[Vector, Vector]:
        mirrored = self.of.of_multiple(-1.0).conjugate()
        return -mirrored._highest(-low, excess), self._highest(high, excess)

    def _highest(self, slope: Vector, excess: float) -> Vector:
        """Return the largest u whose excess for a slope y is at most ``excess``, which grows with y.

        The slope of the loss grows from y to 0, stays there between the two slopes of the dual, and grows to a bound.
        """
        dual = self.of
        y = dual.domain.project(slope)
        above, inverse = np.maximum(y, 0.0), _inverse(dual.quadratic)
        to_zero = np.where(y < 0, np.minimum(dual.upper, 0.0) - y, 0.0)
        flat = np.where((y < 0) & (dual.upper >= 0), dual.right - dual.left, 0.0)
        curved = dual.quadratic > 0
        with np.errstate(invalid="ignore"):
            to_bound = np.where(curved, dual.quadratic * np.maximum(dual.upper - above, 0.0), 0.0)
        pieces = (
            (dual.quadratic * to_zero, np.zeros_like(y), inverse),
            (flat, -np.minimum(y, 0.0), np.zeros_like(y)),
            (to_bound, above - y, inverse),
            (np.full_like(y, np.inf), (dual.upper - y) * (1.0 - MARGIN), np.zeros_like(y)),
        )
        end, bent = np.where(y < 0, dual.left, dual.right), dual.quadratic * y
        size = np.where(bent != 0, np.abs(end) + np.abs(bent), 0.0)
        return upwards(end + bent, reach(excess, pieces), size)

    def curvature_between(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        dual, most = self.of, _inverse(self.of.quadratic)
        with np.errstate(invalid="ignore"):
            first, last = dual.quadratic * dual.lower, dual.quadratic * dual.upper
            begins = lower - dual.left >= first * (1.0 + MARGIN * np.sign(first))
            ends = upper - dual.right <= last * (1.0 - MARGIN * np.sign(last))
        inside = begins & ends & ((dual.left == dual.right) | (upper <= dual.left) | (lower >= dual.right))
        straight = (dual.quadratic == 0) & (dual.lower < dual.upper)
        return np.where(inside, most, 0.0), np.where(straight, np.inf, most)

    # c F is conjugate to c F*(y / c): bounds grow with c, the quadratic term falls

    def row_weights(self) -> Vector:
        dual = self.of
        with np.errstate(invalid="ignore"):
            length = dual.upper - dual.lower
        curved = np.divide(1.0, dual.quadratic, out=np.ones_like(length), where=dual.quadratic > 0)
        return np.where(np.isfinite(length) & (length > 0), length, curved)

    def row_signature(self) -> Vector:
        dual, weight = self.of, self.row_weights()
        shares = _shortened(np.stack([dual.quadratic * weight, dual.lower / weight, dual.upper / weight], 1))
        return np.column_stack([dual.left, dual.right, shares])

    def with_row_weights(self, factors: Vector) -> ConjugatePiecewise:
        left, right, quadratic, lower, upper = self.of.parameters()
        return PiecewiseQuadratic(left, right, quadratic / factors, lower * factors, upper * factors).conjugate()


def _short(parameter: Vector) -> Vector:
    """Return a parameter as a contiguous array in float64, with a single entry if it has one value."""
    return np.ascontiguousarray(parameter[:1] if is_one_value(parameter) else parameter, dtype=np.float64)


def _bounds(high: float, low: float, error: float, size: float, count: int) -> Bounds:
    """Return the bounds on a sum of some terms with twice the digits of a double."""
    relative = (count + 4) * UNIT
    within = (error + abs(low) + relative * relative * size) * (1 + relative) + UNIT * abs(high)
    return Bounds.around(high, within, size * (1 + relative)).known()


def _larger(first: Any, second: Any) -> Any:
    """Return the larger absolute value."""
    return np.abs(first) if first is second else np.maximum(np.abs(first), np.abs(second))


def _length(vector: Vector) -> float:
    """Return the Euclidean length; an array of stride 0 is evaluated once."""
    if vector.size and is_one_value(vector):
        return float(np.sqrt(vector.size) * abs(vector[0]))
    return float(np.linalg.norm(vector))


def _finite_jump(left: Any, right: Any) -> Any:
    """Return the difference of two slopes; 0 if it is infinite."""
    return np.where(np.isfinite(right - left), right - left, 0.0)


def _largest_finite(first: Any, second: Any) -> Any:
    """Return the larger absolute value; 0 if it is infinite."""
    largest = _larger(first, second)
    return largest if np.all(np.isfinite(largest)) else np.where(np.isfinite(largest), largest, 0.0)


def _are_none_or_zero(lower: Any, upper: Any) -> Any:
    """Return whether bounds are infinite or 0."""
    return (np.isinf(lower) | (lower == 0)) & (np.isinf(upper) | (upper == 0))


def _sum(first: Vector, second: Vector) -> Vector:
    """Return the sum of two parameters; one of them itself if the other is 0."""
    for one, other in ((first, second), (second, first)):
        if is_one_value(one) and not np.any(one[:1]):
            return other
    return map_constants(np.add, first, second)


def _inner(parameter: Vector, x: Vector) -> float:
    """Return <parameter, x>."""
    if x.size and parameter.strides == (0,):
        return float(parameter[0] * np.sum(x)) if parameter[0] else 0.0
    return inner(parameter, x)


def _inner_square(parameter: Vector, x: Vector) -> float:
    """Return <parameter, x^2>."""
    if x.size and parameter.strides == (0,):
        return float(parameter[0]) * inner(x, x)
    return inner(parameter, x * x)


def _inverse(quadratic: Vector) -> Vector:
    """Return one over each value; 0 for 0."""
    return np.divide(1.0, quadratic, out=np.zeros_like(quadratic), where=quadratic > 0)


def _shortened(values: Vector) -> Vector:
    """Return values without their last eight bits, which a division by a weight may have changed."""
    mantissa, exponent = np.frexp(values)
    shortened: Vector = np.ldexp(np.round(mantissa * 2.0**45), exponent - 45)
    return shortened
