r"""The one-dimensional family behind nearly the whole catalogue.

.. math::

    F(x) = \sum_d s_d(x_d) + \tfrac{q_d}{2} x_d^2 + \iota_{[l_d, u_d]}(x_d), \qquad
    s_d(x) = \begin{cases} \text{right}_d\, x & x \ge 0 \\ \text{left}_d\, x & x \le 0 \end{cases}
    \qquad \text{left} \le \text{right}.

L1, elastic net, boxes and linear terms are members of it, and so is the *conjugate* of every separable loss but the
logistic one: the absolute loss is the conjugate of ``b y`` on ``[-1, 1]``, an interval constraint that of the two
slopes ``lower`` and ``upper``. One prox and one conjugate therefore serve penalties and losses, here and in the
native kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..common.arrays import (
    Blocks,
    Indices,
    Parameter,
    Step,
    ToDevice,
    Vector,
    concat_constants,
    constant,
    is_one_value,
    map_constants,
    squeeze_constant,
)
from ..common.cached import cached_property
from ..common.chunks import chunked_flatnonzero, chunked_map, chunked_sum, double, inner, panels
from .contract import ROUNDING, Compiled, Function, Kinks, Ray, Restrictable, Slopes
from .kinks import Box, least_alpha


def shrink(v: Vector, left: Parameter, right: Parameter) -> Vector:
    """Return v moved towards 0 by the slope on its side: v - clip(v, left, right)."""
    taken = np.clip(v, left, right)
    return np.subtract(v, taken, out=taken)


class Coordinate(Restrictable):
    """A member of the family: five parameters, one value a coordinate."""

    def __init__(self, left: Vector, right: Vector, quadratic: Vector, lower: Vector, upper: Vector) -> None:
        self.left = left
        self.right = right
        self.quadratic = quadratic
        self.lower = lower
        self.upper = upper

    def slopes(self) -> Slopes:
        """Return the five parameters together."""
        return Slopes(self.left, self.right, self.quadratic, self.lower, self.upper)

    def contiguous(self) -> Slopes:
        """Return them as kernels read them."""
        return Slopes(*(np.ascontiguousarray(parameter, dtype=np.float64) for parameter in self.slopes()))

    def blocks(self) -> Blocks:
        return Blocks.scalars(self.left.size)

    def restrict(self, keep: Indices) -> Coordinate:
        return self._each(lambda parameter: parameter[keep])

    def panel(self, own: slice) -> Coordinate:
        """Return the function of neighbouring coordinates, in float64."""
        return self._each(lambda parameter: double(parameter[own]))

    def placed(self, place: ToDevice) -> Coordinate:
        return self._each(lambda parameter: place(double(parameter)))

    def _each(self, change: Callable[[Vector], Vector]) -> Coordinate:
        """Return the function with its parameters changed, two slopes that are the same one once."""
        left, right, *rest = self.slopes()
        changed = change(left)
        return Coordinate(changed, changed if right is left else change(right), *map(change, rest))

    # --- the function -------------------------------------------------------------------------------------------

    @chunked_sum
    def value(self, x: Vector) -> float:
        inside = self.project(x)
        if inside is not x and np.any(np.abs(x - inside) > ROUNDING * (1.0 + np.abs(inside))):
            return np.inf
        return self.finite_value(inside)

    @chunked_sum
    def finite_value(self, x: Vector) -> float:
        if not self._kinked:
            return _inner(self.left, x) + 0.5 * self.bend(x)
        at = np.flatnonzero(x != 0)  # an infinite slope times 0 is 0, and most of x often is
        point = x[at]
        slope = np.where(point > 0, self.right[at], self.left[at])
        bend = 0.5 * (self.quadratic[at] @ (point * point)) if self._bent else 0.0
        return float(slope @ point + bend)

    @chunked_map
    def project(self, x: Vector) -> Vector:
        if not self._bounded:
            return x
        inside = np.clip(x, squeeze_constant(self.lower), squeeze_constant(self.upper))
        return x if np.array_equal(inside, x) else inside

    @chunked_map
    def prox(self, v: Vector, step: Step) -> Vector:
        step, left, right, quadratic, lower, upper = map(squeeze_constant, (step, *self.slopes()))
        free = shrink(v, step * left, step * right)
        if self._bent:
            free /= 1.0 + step * quadratic
        return np.clip(free, lower, upper, out=free) if self._bounded else free

    def prox_blocks(self, blocks: Indices, v: Vector, step: Vector) -> Vector:
        return self.restrict(blocks).prox(v, step)

    def recession(self, direction: Vector) -> Ray:
        straight = self.quadratic == 0
        upwards = (direction > 0) & straight & (self.upper == np.inf)
        downwards = (direction < 0) & straight & (self.lower == -np.inf)
        inside = np.where(upwards | downwards, direction, 0.0)
        slope = np.where(inside > 0, self.right, np.where(inside < 0, self.left, 0.0))
        terms = slope * inside
        return Ray(float(np.sum(terms)), direction - inside, float(np.sum(np.abs(terms))))

    def subgradient(self, x: Vector) -> Vector:
        """Return the slope on the side of x, the least one at 0."""
        at_zero = np.clip(0.0, self.left, self.right)
        return np.where(x > 0, self.right, np.where(x < 0, self.left, at_zero)) + self.quadratic * x

    def minimiser(self) -> Vector:
        return self.maximiser(np.zeros(self.left.size))

    @chunked_sum
    def finite_value_of_multiple(self, x: Vector, t: float) -> float:
        """Return F(t x) with the indicator of its domain left out."""
        return self.finite_value(x if t == 1.0 else t * x)

    @chunked_sum
    def bend(self, x: Vector) -> float:
        """Return <q, x^2>, twice the quadratic part."""
        return _inner_square(self.quadratic, x) if self._bent else 0.0

    # --- its conjugate ------------------------------------------------------------------------------------------

    @chunked_map
    def maximiser(self, y: Vector) -> Vector:
        """Return argmax_x <x, y> - F(x), a subgradient of the conjugate; infinite where it is not attained."""
        left, right, quadratic, lower, upper = map(squeeze_constant, self.slopes())
        excess = shrink(y, left, right) if self._kinked else y - left
        if self._curved:
            free = np.divide(excess, quadratic, out=excess)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                free = np.where(excess == 0.0, 0.0, excess / self.quadratic)
        return np.clip(free, lower, upper, out=free) if self._bounded else free

    @chunked_sum
    def conjugate(self, y: Vector) -> float:
        if self._parabola:
            excess = y - squeeze_constant(self.left)
            return 0.5 * inner(excess, excess / squeeze_constant(self.quadratic))
        inside = y if self._conjugate_everywhere else self.project_conjugate(y)
        if not self._conjugate_everywhere and np.any(np.abs(y - inside) > ROUNDING * (1.0 + np.abs(inside))):
            return np.inf
        x = self.maximiser(inside)
        return inner(inside, x) - self.finite_value(x)

    @chunked_map
    def conjugate_prox(self, v: Vector, step: Step) -> Vector:
        """Return the prox of the conjugate, exact where Moreau's difference would leave a rounding error."""
        y = self.prox(v / step, 1.0 / step)
        slope = np.where(y > 0, self.right, self.left)
        attained = (y != 0) & (y > self.lower) & (y < self.upper)
        flat = (y == 0) & (self.left == self.right) & (self.lower < 0) & (self.upper > 0)
        with np.errstate(invalid="ignore"):
            exact = slope + self.quadratic * y
        return np.where(attained | flat, exact, v - step * y)

    @cached_property
    def conjugate_bounds(self) -> tuple[Vector, Vector]:
        """The interval that is the domain of the conjugate, coordinate by coordinate."""
        if self.left.size and is_one_value(self.quadratic, self.lower, self.upper):
            straight = self.quadratic[0] == 0
            return (
                self.left if straight and self.lower[0] == -np.inf else constant(-np.inf, self.left.size),
                self.right if straight and self.upper[0] == np.inf else constant(np.inf, self.left.size),
            )
        straight = self.quadratic == 0
        low = np.where(straight & (self.lower == -np.inf), self.left, -np.inf)
        high = np.where(straight & (self.upper == np.inf), self.right, np.inf)
        return low, high

    # What a function does not use need not be computed: the flags below are for that alone.

    @cached_property
    def _kinked(self) -> bool:
        return self.left is not self.right and bool(np.any(squeeze_constant(self.left) != squeeze_constant(self.right)))

    @cached_property
    def _bent(self) -> bool:
        return bool(np.any(squeeze_constant(self.quadratic)))

    @cached_property
    def _linear(self) -> bool:
        return not (self._kinked or self._bent or self._bounded)

    @cached_property
    def _curved(self) -> bool:
        return bool(np.all(squeeze_constant(self.quadratic) > 0))

    @cached_property
    def _parabola(self) -> bool:
        return self._curved and not (self._kinked or self._bounded)

    @cached_property
    def _conjugate_everywhere(self) -> bool:
        low, high = self.conjugate_bounds
        if low.size and is_one_value(low, high):
            return bool(low[0] == -np.inf and high[0] == np.inf)
        return bool(np.all(low == -np.inf) and np.all(high == np.inf))

    @cached_property
    def _bounded(self) -> bool:
        return bool(np.any(squeeze_constant(self.lower) > -np.inf) or np.any(squeeze_constant(self.upper) < np.inf))

    @cached_property
    def _settled(self) -> tuple[Vector, Vector]:
        """The interval of y for which 0 is the maximiser of <x, y> - F(x), coordinate by coordinate; may be empty."""
        if self.left.size > 1 and is_one_value(*self.slopes()):
            low, high = self.restrict(np.array([0]))._settled
            return constant(low[0], self.left.size), constant(high[0], self.left.size)
        admitted = (self.lower <= 0) & (self.upper >= 0)
        return np.where(admitted, self.left, np.inf), np.where(admitted, self.right, -np.inf)

    def conjugate_near(self, y: Vector, x: Vector) -> tuple[Vector, float]:
        # where 0 is the maximiser the conjugate is 0, and that is nearly everywhere under a sparsity penalty
        if not self._kinked:
            inside = self.project_conjugate(y)
            return inside, self.conjugate(inside)
        low, high = self._settled
        rest = np.flatnonzero((y < low) | (y > high))
        if rest.size == 0:
            return y, 0.0
        part = self.restrict(rest)
        inside = part.project_conjugate(y[rest])
        point = y.copy()
        point[rest] = inside
        return point, part.conjugate(inside)

    @chunked_sum
    def conjugate_scaled(self, y: Vector, t: float, x: Vector) -> float:
        if not (self._bent or self._bounded):  # slopes alone: the conjugate is 0 wherever it is finite
            return 0.0
        return super().conjugate_scaled(y, t, x)

    def project_conjugate(self, y: Vector) -> Vector:
        if self._conjugate_everywhere:
            return y
        low, high = self.conjugate_bounds
        return double(low) if low is high else np.clip(y, low, high)  # a single point is there already

    def conjugate_recession(self, direction: Vector) -> Ray:
        bound = np.where(direction > 0, self.upper, self.lower)
        inside = np.where(np.isfinite(bound), direction, 0.0)
        terms = np.where(inside == 0.0, 0.0, bound) * inside
        return Ray(float(np.sum(terms)), direction - inside, float(np.sum(np.abs(terms))))

    def conjugate_minimiser(self) -> Vector:
        """Return the least of the conjugate: F is closed, so that is a subgradient of F at 0."""
        low = np.where(self.lower >= 0, -np.inf, self.left)
        high = np.where(self.upper <= 0, np.inf, self.right)
        feasible = (self.lower <= 0) & (self.upper >= 0)
        return np.where(feasible, np.clip(0.0, low, high), np.nan)

    def scaling(self, y: Vector) -> float:
        return ray_scaling(y, *self.conjugate_bounds)

    def unpenalised(self) -> Indices:
        return _where_equal(*self.conjugate_bounds)

    def bounded_below(self) -> bool:
        low, high = self.conjugate_bounds  # exactly: the slopes may be in any unit
        return bool(np.all(squeeze_constant(low) <= 0) and np.all(squeeze_constant(high) >= 0))

    def plus(self, piece: Slopes) -> Coordinate:
        total = self.plus_member(Coordinate(*piece))
        lower, upper = total.lower, total.upper
        if np.any(lower > upper):
            at = int(np.argmax(lower > upper))
            raise ValueError(f"the bounds that are added leave nothing at index {at}: {lower[at]} > {upper[at]}")
        return total

    # --- what layers, steps and backends ask ----------------------------------------------------------------------

    def is_linear(self) -> bool:
        return not np.any(squeeze_constant(self.quadratic)) and np.array_equal(
            squeeze_constant(self.left), squeeze_constant(self.right)
        )

    def finite_everywhere(self) -> bool:
        return not self._bounded

    def strong_convexity(self) -> float:
        return float(self.quadratic.min())

    def conjugate_member(self) -> Coordinate | None:
        if self._parabola:
            linear = map_constants(lambda c, q: -c / q, self.left, self.quadratic)
            curvature = map_constants(lambda q: 1.0 / q, self.quadratic)
            return Coordinate(linear, linear, curvature, self.lower, self.upper)
        ends = map_constants(_are_none_or_zero, self.lower, self.upper)
        if self._bent or not np.all(squeeze_constant(ends)):
            return None
        none = constant(0.0, self.left.size)
        return Coordinate(none, none, none, *self.slopes_at_zero())

    def of_multiple(self, factor: float) -> Coordinate:
        """Return x -> F(factor x), for a factor that is not 0."""
        sides = (self.left, self.right) if factor > 0 else (self.right, self.left)
        ends = (self.lower, self.upper) if factor > 0 else (self.upper, self.lower)
        left = map_constants(lambda c: factor * c, sides[0])
        return Coordinate(
            left,
            left if sides[0] is sides[1] else map_constants(lambda c: factor * c, sides[1]),
            map_constants(lambda q: factor**2 * q, self.quadratic),
            *(map_constants(lambda end: end / factor, end) for end in ends),
        )

    def plus_member(self, other: Coordinate) -> Coordinate:
        """Return the sum with another member of the family."""
        left = _sum(self.left, other.left)
        alike = self.left is self.right and other.left is other.right
        return Coordinate(
            left,
            left if alike else _sum(self.right, other.right),
            _sum(self.quadratic, other.quadratic),
            map_constants(np.maximum, self.lower, other.lower),
            map_constants(np.minimum, self.upper, other.upper),
        )

    def is_paraboloid(self) -> bool:
        """Return whether every coordinate has a slope and a curvature and nothing else, or is held at 0."""

        def plain(q: Any, low: Any, high: Any) -> Any:
            return ((q > 0) & np.isinf(low) & np.isinf(high)) | ((low == 0) & (high == 0))

        return not self._kinked and bool(
            np.all(squeeze_constant(map_constants(plain, self.quadratic, self.lower, self.upper)))
        )

    def slopes_at_zero(self) -> Box:
        """Return the interval of slopes at 0: a bound there holds whatever pulls against it."""
        return Box(
            map_constants(lambda low, slope: np.where(low >= 0, -np.inf, slope), self.lower, self.left),
            map_constants(lambda high, slope: np.where(high <= 0, np.inf, slope), self.upper, self.right),
        )

    def kinks(self, z: Vector, rest: Coordinate) -> Kinks:
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
        low, high = self._kinks
        return np.minimum(high - z, z - low)

    @cached_property
    def _kinks(self) -> tuple[Vector, Vector] | None:
        """The interval of slopes against which a coordinate stays at 0; (inf, -inf) where 0 is no kink.

        None where it is one for no coordinate.
        """
        left, right = self.slopes_at_zero()
        kinked = (left < right) & (self.lower <= 0) & (self.upper >= 0)
        if not np.any(kinked):
            return None
        return np.where(kinked, left, np.inf), np.where(kinked, right, -np.inf)

    def restrict_blocks(self, blocks: Indices) -> Coordinate:
        return self.restrict(blocks)

    def beside(self, other: Function) -> Coordinate | None:
        if not isinstance(other, Coordinate):
            return None
        return Coordinate(*(concat_constants(a, b) for a, b in zip(self.slopes(), other.slopes(), strict=True)))

    def typical_slope(self) -> Vector:
        return map_constants(_largest_finite, self.left, self.right)

    def distance_to_kink(self, x: Vector) -> Vector:
        bounds = np.minimum(np.abs(x - self.lower), np.abs(x - self.upper))
        kinks = np.where(self.left < self.right, np.abs(x), np.inf)
        return np.where(self.quadratic > 0, 0.0, np.minimum(bounds, kinks))

    def weights(self) -> Vector:
        jump = self.right - self.left
        return np.where(np.isfinite(jump) & (jump > 0), jump, np.where(self.quadratic > 0, self.quadratic, 1.0))

    def kind(self) -> Vector:
        slopes = np.stack([self.left, self.right, self.quadratic], 1)
        return np.column_stack([_shortened(slopes / self.weights()[:, None]), self.lower, self.upper])

    def repeated(self, counts: Vector) -> Coordinate:
        return Coordinate(self.left * counts, self.right * counts, self.quadratic * counts, self.lower, self.upper)

    def compiled(self) -> Compiled:
        return Compiled(self.contiguous(), np.zeros(self.left.size))


def _larger(first: Any, second: Any) -> Any:
    """Return the larger absolute value."""
    return np.abs(first) if first is second else np.maximum(np.abs(first), np.abs(second))


def _length(vector: Vector) -> float:
    """Return the Euclidean length, of a single value from that alone."""
    if vector.size and is_one_value(vector):
        return float(np.sqrt(vector.size) * abs(vector[0]))
    return float(np.linalg.norm(vector))


def _largest_finite(first: Any, second: Any) -> Any:
    """Return the larger absolute value, 0 where it is infinite."""
    largest = _larger(first, second)
    return largest if np.all(np.isfinite(largest)) else np.where(np.isfinite(largest), largest, 0.0)


def _are_none_or_zero(lower: Any, upper: Any) -> Any:
    """Return whether bounds are infinite or 0."""
    return (np.isinf(lower) | (lower == 0)) & (np.isinf(upper) | (upper == 0))


def _where_equal(first: Vector, second: Vector) -> Indices:
    """Return the coordinates in which two parameters are equal."""
    apart = first.size and is_one_value(first, second) and first[0] != second[0]
    return np.empty(0, dtype=np.int64) if apart else np.flatnonzero(first == second)


def _sum(first: Vector, second: Vector) -> Vector:
    """Return the sum of two parameters, the first itself where the second is nothing."""
    return first if is_one_value(second) and not np.any(second[:1]) else map_constants(np.add, first, second)


def _inner(parameter: Vector, x: Vector) -> float:
    """Return <parameter, x>."""
    if x.size and is_one_value(parameter):
        return float(parameter[0] * np.sum(x)) if parameter[0] else 0.0
    return inner(parameter, x)


def _inner_square(parameter: Vector, x: Vector) -> float:
    """Return <parameter, x^2>."""
    if x.size and is_one_value(parameter):
        return float(parameter[0]) * inner(x, x)
    return inner(parameter, x * x)


def _inverse(quadratic: Vector) -> Vector:
    """Return one over each value, 0 for 0."""
    return np.divide(1.0, quadratic, out=np.zeros_like(quadratic), where=quadratic > 0)


def _shortened(values: Vector) -> Vector:
    """Return values without their last eight bits: a weight that is divided out leaves some of them behind."""
    mantissa, exponent = np.frexp(values)
    shortened: Vector = np.ldexp(np.round(mantissa * 2.0**45), exponent - 45)
    return shortened


def ray_scaling(y: Vector, low: Vector, high: Vector) -> float:
    """Return the largest t in [0, 1] with low <= t y <= high, or nan where even t = 0 is outside."""
    outside = chunked_flatnonzero(lambda y, low, high: (y > high) | (y < low), y, low, high)
    far, up, down = y[outside], high[outside], low[outside]
    beyond = np.maximum(far - up, down - far) > ROUNDING * np.abs(far)
    if not np.any(beyond):
        return 1.0
    if np.any(squeeze_constant(high) < 0) or np.any(squeeze_constant(low) > 0):
        return np.nan
    bound = np.where(far > 0, up, down)
    return float(np.min(bound[beyond] / far[beyond]))


def interval_room(y: Vector, low: Vector, high: Vector) -> Vector:
    """Return the distance to the nearer end of an interval, relative to its length; 1 where it has no end."""
    room = np.minimum(y - low, high - y)
    length = np.where(np.isfinite(high - low), high - low, 1.0)
    return np.where(np.isfinite(room), np.clip(room / np.maximum(length, 1e-300), 0.0, 1.0), 1.0)


class ConjugateOfCoordinate(Restrictable):
    """The conjugate of a member of the family: a separable loss, known by its dual.

    Every method is the mirror image of one of ``Coordinate``; nothing is computed here.
    """

    def __init__(self, dual: Coordinate) -> None:
        self.dual = dual

    def blocks(self) -> Blocks:
        return self.dual.blocks()

    def restrict(self, keep: Indices) -> ConjugateOfCoordinate:
        return ConjugateOfCoordinate(self.dual.restrict(keep))

    def placed(self, place: ToDevice) -> ConjugateOfCoordinate:
        return ConjugateOfCoordinate(self.dual.placed(place))

    @cached_property
    def smooth(self) -> bool:  # type: ignore[override]
        dual = self.dual
        return dual._curved or bool(np.all((dual.quadratic > 0) | (dual.lower == dual.upper)))

    def value(self, x: Vector) -> float:
        return self.dual.conjugate(x)

    def finite_value(self, x: Vector) -> float:
        if self.dual._linear:  # an equality, which is 0 where it holds
            return 0.0
        return self.dual.conjugate(x if self.dual._conjugate_everywhere else self.project(x))

    def project(self, x: Vector) -> Vector:
        return self.dual.project_conjugate(x)

    def prox(self, v: Vector, step: Step) -> Vector:
        return self.dual.conjugate_prox(v, step)

    def prox_blocks(self, blocks: Indices, v: Vector, step: Vector) -> Vector:
        return self.restrict(blocks).prox(v, step)

    def recession(self, direction: Vector) -> Ray:
        return self.dual.conjugate_recession(direction)

    def minimiser(self) -> Vector:
        return self.dual.conjugate_minimiser()

    def subgradient(self, x: Vector) -> Vector:
        return self.dual.maximiser(x)

    def conjugate(self, y: Vector) -> float:
        return self.dual.value(y)

    def conjugate_near(self, y: Vector, x: Vector) -> tuple[Vector, float]:
        inside = self.dual.project(y)
        return inside, self.dual.finite_value(inside)

    def conjugate_scaled(self, y: Vector, t: float, x: Vector) -> float:
        return self.dual.finite_value_of_multiple(y, t)

    def project_conjugate(self, y: Vector) -> Vector:
        return self.dual.project(y)

    def conjugate_recession(self, direction: Vector) -> Ray:
        return self.dual.recession(direction)

    def conjugate_minimiser(self) -> Vector:
        return self.dual.minimiser()

    def scaling(self, y: Vector) -> float:
        return ray_scaling(y, self.dual.lower, self.dual.upper) if self.dual._bounded else 1.0

    def unpenalised(self) -> Indices:
        return _where_equal(self.dual.lower, self.dual.upper)

    def bounded_below(self) -> bool:
        return bool(np.all(squeeze_constant(self.dual.lower) <= 0) and np.all(squeeze_constant(self.dual.upper) >= 0))

    def prox_conjugate(self, v: Vector, step: Step) -> Vector:
        return self.dual.prox(v, step)

    def prox_conjugate_blocks(self, blocks: Indices, v: Vector, step: Vector) -> Vector:
        return self.dual.prox_blocks(blocks, v, step)

    def best_scaling(self, y: Vector, limit: float) -> float:
        curvature = self.dual.bend(y)
        if curvature == 0.0:
            return limit
        slope = self.dual.finite_value(y) - 0.5 * curvature
        return float(np.clip(-slope / curvature, 0.0, limit))

    def conjugate_room(self, y: Vector) -> Vector:
        return interval_room(y, self.dual.lower, self.dual.upper)

    def conjugate_member(self) -> Coordinate:
        return self.dual

    def finite_everywhere(self) -> bool:
        low, high = self.dual.conjugate_bounds
        return bool(np.all(np.isinf(squeeze_constant(low))) and np.all(np.isinf(squeeze_constant(high))))

    def curvature(self) -> Vector | None:
        return self._curvature if self.smooth else None

    @cached_property
    def _curvature(self) -> Vector:
        return map_constants(_inverse, self.dual.quadratic)

    def curvature_at(self, x: Vector) -> Vector:
        if self.dual._parabola:
            return np.broadcast_to(1.0 / squeeze_constant(self.dual.quadratic), x.shape).copy()
        y = self.dual.maximiser(x)
        curved = (y != 0) | (self.dual.left == self.dual.right)
        curved &= (y > self.dual.lower) & (y < self.dual.upper)
        return np.divide(1.0, self.dual.quadratic, out=np.zeros_like(x), where=curved & (self.dual.quadratic > 0))

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        # the slopes at x are the y where x is a slope of the dual: 0 between its two slopes, a bound beyond them
        dual, y = self.dual, self.dual.maximiser(x)
        between = np.clip(0.0, dual.lower, dual.upper)
        low = np.where(x > dual.right + tolerance, dual.upper, np.where(x > dual.left + tolerance, between, dual.lower))
        high = np.where(
            x < dual.left - tolerance, dual.lower, np.where(x < dual.right - tolerance, between, dual.upper)
        )
        curved = dual.quadratic > 0
        return np.where(curved, y, low), np.where(curved, y, high)

    def typical_point(self) -> Vector:
        return self.dual.typical_slope()

    def typical_length(self, size: int) -> float:
        lengths = (np.linalg.norm(self.dual.panel(own).typical_slope()) for own in panels(self.dual.left))
        return float(np.linalg.norm([float(length) for length in lengths]))

    def typical_slope(self) -> Vector:
        return map_constants(_largest_finite, self.dual.lower, self.dual.upper)

    def rise(self, distance: float) -> float:
        """Return min(L d, K d^2 / 2) with the Lipschitz constants L of the curved rows and K of their slopes, plus L d.

        The last L is that of the rows with kinks. A row with neither is a constraint.
        """
        curved, kinked, bend = self._lipschitz
        parabola = 0.5 * bend * distance**2
        return (parabola if curved == np.inf else min(curved * distance, parabola)) + kinked * distance

    @cached_property
    def _lipschitz(self) -> tuple[float, float, float]:
        """Lipschitz constants of the curved rows and of those with kinks alone, and of the slopes of the former."""
        dual = self.dual
        slope = map_constants(_larger, dual.lower, dual.upper)
        curved = map_constants(lambda slope, q: np.where(q > 0, slope, 0.0), slope, dual.quadratic)
        kinked = map_constants(
            lambda slope, q: np.where((q == 0) & (slope < np.inf), slope, 0.0), slope, dual.quadratic
        )
        return _length(curved), _length(kinked), float(np.max(map_constants(_inverse, dual.quadratic)))

    def distance_to_kink(self, x: Vector) -> Vector:
        # the slope is a bound of the dual, or 0 between its two slopes
        dual, y = self.dual, self.dual.maximiser(x)
        with np.errstate(invalid="ignore"):
            below = dual.left + dual.quadratic * dual.lower - x
            above = x - dual.right - dual.quadratic * dual.upper
        between = np.minimum(x - dual.left, dual.right - x)
        flat = np.where(y <= dual.lower, below, np.where(y >= dual.upper, above, np.where(y == 0, between, 0.0)))
        return np.where(dual.lower == dual.upper, np.inf, np.maximum(np.nan_to_num(flat), 0.0))

    # c F is conjugate to c F*(y / c): bounds grow with c, the quadratic term falls

    def weights(self) -> Vector:
        dual = self.dual
        with np.errstate(invalid="ignore"):
            length = dual.upper - dual.lower
        curved = np.divide(1.0, dual.quadratic, out=np.ones_like(length), where=dual.quadratic > 0)
        return np.where(np.isfinite(length) & (length > 0), length, curved)

    def kind(self) -> Vector:
        dual, weight = self.dual, self.weights()
        shares = _shortened(np.stack([dual.quadratic * weight, dual.lower / weight, dual.upper / weight], 1))
        return np.column_stack([dual.left, dual.right, shares])

    def repeated(self, counts: Vector) -> ConjugateOfCoordinate:
        left, right, quadratic, lower, upper = self.dual.slopes()
        return ConjugateOfCoordinate(Coordinate(left, right, quadratic / counts, lower * counts, upper * counts))

    def conjugate_slopes(self) -> Slopes:
        return self.dual.contiguous()

    def compiled(self) -> Compiled:
        return self.dual.compiled()
