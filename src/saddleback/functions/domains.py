"""Sets on which functions are finite."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from ..common.arrays import Indices, Vector, anywhere, is_one_value, squeeze_constant
from ..common.cached import cached_property
from ..common.chunks import chunked_flatnonzero, chunked_map, double
from ..common.rounded import Rounded
from ..common.sums import Equations
from .contract import ROUNDING, Domain
from .points import BlockPoint

BISECTIONS = 60


class PartlyFixed(ABC):
    """A set in which some coordinates, or sums of them, have one value only: the penalty is linear along them."""

    @abstractmethod
    def project(self, x: Vector) -> Vector:
        """Return the nearest point of the set."""

    @abstractmethod
    def fixed(self) -> Indices:
        """Return the coordinates that have the same value in the whole set."""

    def fixed_sums(self, size: int) -> Equations:
        """Return the sums of coordinates that have the same value in the whole set, fixed coordinates among them."""
        own = np.asarray(self.fixed())
        return Equations.entries(own, self.project(np.zeros(size))[own]) if own.size else Equations.none()

    def sums_inside(self, slope: Rounded) -> Equations:
        """Return equations by which a slope has all sums well inside that are bounded by 0; none if it has.

        No multiple of a slope would have. The fixed sums of the same coordinates follow from these equations. Bounds of
        single coordinates are not among them: ``box`` tells these.
        """
        return Equations.none()


def fixed(domain: Domain) -> Indices:
    """Return the coordinates that have the same value in the whole set."""
    return domain.fixed() if isinstance(domain, PartlyFixed) else np.zeros(0, dtype=np.int64)


def fixed_sums(domain: Domain, size: int) -> Equations:
    """Return the sums of coordinates that have the same value in the whole set."""
    return domain.fixed_sums(size) if isinstance(domain, PartlyFixed) else Equations.none()


def sums_inside(domain: Domain, slope: Rounded) -> Equations:
    """Return equations by which a slope has all sums well inside that are bounded by 0; none if it has."""
    return domain.sums_inside(slope) if isinstance(domain, PartlyFixed) else Equations.none()


def slack(domain: Domain, x: Vector) -> Vector:
    """Return, per coordinate, how far x can move inside a set: 0 at a bound, 1 without bounds."""
    return domain.slack(x) if isinstance(domain, Interval) else np.ones_like(x)


class Everywhere(Domain):
    """The whole space."""

    everything = True

    def project(self, x: Vector) -> Vector:
        return x

    def largest_multiple(self, x: Vector) -> float:
        return 1.0

    def has_zero(self) -> bool:
        return True

    def box(self, size: int) -> tuple[Vector, Vector]:
        return np.full(size, -np.inf), np.full(size, np.inf)


class Interval(Domain, PartlyFixed):
    """lower <= x <= upper; bounds may be equal or infinite."""

    def __init__(self, lower: Vector, upper: Vector) -> None:
        self.lower = lower
        self.upper = upper

    def panel(self, own: slice) -> Interval:
        """Return the set of neighbouring coordinates, in float64."""
        return Interval(double(self.lower[own]), double(self.upper[own]))

    @cached_property
    def everything(self) -> bool:
        return not (anywhere(lambda low: low > -np.inf, self.lower) or anywhere(lambda up: up < np.inf, self.upper))

    def project(self, x: Vector) -> Vector:
        return double(self.lower) if self.lower is self.upper else self._project(x)  # a single point needs no memory

    @chunked_map
    def _project(self, x: Vector) -> Vector:
        if self.everything:
            return x
        inside = np.clip(x, squeeze_constant(self.lower), squeeze_constant(self.upper))
        return x if np.array_equal(inside, x) else inside

    def largest_multiple(self, x: Vector) -> float:
        if self.everything:
            return 1.0
        outside = chunked_flatnonzero(lambda x, low, high: (x > high) | (x < low), x, self.lower, self.upper)
        far, up, down = x[outside], self.upper[outside], self.lower[outside]
        beyond = np.maximum(far - up, down - far) > ROUNDING * np.abs(far)
        if not beyond.any():
            return 1.0
        if not self.has_zero():
            return np.nan
        bound = np.where(far > 0, up, down)
        return float(np.min(bound[beyond] / far[beyond]))

    def has_zero(self) -> bool:
        return self._has_zero

    def box(self, size: int) -> tuple[Vector, Vector]:
        return self.lower, self.upper

    @cached_property
    def _has_zero(self) -> bool:
        return not (anywhere(lambda low: low > 0, self.lower) or anywhere(lambda up: up < 0, self.upper))

    def fixed(self) -> Indices:
        low, high = self.lower, self.upper
        apart = low.size and is_one_value(low, high) and low[0] != high[0]
        return np.zeros(0, dtype=np.int64) if apart else np.flatnonzero(low == high)

    def slack(self, x: Vector) -> Vector:
        """Return the distance to the nearer end, relative to the length of the interval."""
        room = np.minimum(x - self.lower, self.upper - x)
        with np.errstate(invalid="ignore"):
            length = self.upper - self.lower
        length = np.where(np.isfinite(length), length, 1.0)
        return np.where(np.isfinite(room), np.clip(room / np.maximum(length, 1e-300), 0.0, 1.0), 1.0)


class KnownByValue(Domain):
    """The domain of a user's function, of which only values are known; ``value`` is None if they are not known."""

    def __init__(self, size: int, value: Callable[[Vector], float] | None) -> None:
        self.size = size
        self.value = value

    def project(self, x: Vector) -> Vector:
        return x

    def largest_multiple(self, x: Vector) -> float:
        return np.nan if self.value is None else largest_finite_multiple(self.value, x)

    def has_zero(self) -> bool:
        return self.value is None or bool(np.isfinite(self.value(np.zeros(self.size))))


class Translated(Domain, PartlyFixed):
    """A set moved by a vector."""

    def __init__(self, base: Domain, by: Vector, value: Callable[[Vector], float]) -> None:
        self.base = base
        self.by = by
        self.value = value

    def project(self, x: Vector) -> Vector:
        return self.base.project(x - self.by) + self.by

    def largest_multiple(self, x: Vector) -> float:
        known = not np.isnan(self.base.largest_multiple(x - self.by))
        return largest_finite_multiple(self.value, x) if known else np.nan

    def has_zero(self) -> bool:
        multiple = self.base.largest_multiple(-self.by)
        unknown = np.isnan(multiple) and self.base.has_zero()  # a known set with 0 has a multiple of every point
        return bool(multiple == 1.0 or unknown)

    def fixed(self) -> Indices:
        return fixed(self.base)

    def fixed_sums(self, size: int) -> Equations:
        return fixed_sums(self.base, size).moved(self.by)

    def sums_inside(self, slope: Rounded) -> Equations:
        return sums_inside(self.base, slope.plus(Rounded.around(-self.by))).moved(self.by)


@singledispatch
def bounded(domain: Domain, size: int) -> NDArray[np.bool_]:
    """Return whether each of ``size`` coordinates has a bound: all or none, unless more is known about the set."""
    return np.full(size, not domain.everything)


@bounded.register
def _(domain: Interval, size: int) -> NDArray[np.bool_]:
    return np.isfinite(domain.lower) | np.isfinite(domain.upper)


class Product(Domain, PartlyFixed):
    """A product of sets, each of neighbouring coordinates."""

    def __init__(self, sets: Sequence[tuple[Domain, slice]]) -> None:
        self.sets = sets

    @cached_property
    def everything(self) -> bool:
        return all(each.everything for each, _ in self.sets)

    def project(self, x: Vector) -> Vector:
        return x if self.everything else BlockPoint([each.project(x[own]) for each, own in self.sets]).vector()

    def largest_multiple(self, x: Vector) -> float:
        return common_multiple((each, x[own]) for each, own in self.sets)

    def has_zero(self) -> bool:
        return all(each.has_zero() for each, _ in self.sets)

    def box(self, size: int) -> tuple[Vector, Vector]:
        low, high = zip(*(each.box(own.stop - own.start) for each, own in self.sets), strict=True)
        return np.concatenate(low), np.concatenate(high)

    def hull(self, size: int) -> tuple[Vector, Vector]:
        low, high = zip(*(each.hull(own.stop - own.start) for each, own in self.sets), strict=True)
        return np.concatenate(low), np.concatenate(high)

    def fixed(self) -> Indices:
        return np.concatenate([fixed(each) + own.start for each, own in self.sets])

    def fixed_sums(self, size: int) -> Equations:
        return Equations.joined([fixed_sums(each, own.stop - own.start).after(own.start) for each, own in self.sets])

    def sums_inside(self, slope: Rounded) -> Equations:
        return Equations.joined([sums_inside(each, slope.part(own)).after(own.start) for each, own in self.sets])


@bounded.register
def _(domain: Product, size: int) -> NDArray[np.bool_]:
    return np.concatenate([bounded(each, own.stop - own.start) for each, own in domain.sets])


def common_multiple(points: Iterable[tuple[Domain, Vector]]) -> float:
    """Return the largest t in [0, 1] such that t x is in the set of each x; nan if there is none, or none is known."""
    sets, multiples = [], []
    for domain, x in points:  # one point at a time: each may be as large as the data
        sets.append(domain)
        multiples.append(domain.largest_multiple(x))
        del x
    t = float(np.min(np.asarray(multiples)))  # nan if one of the sets has none
    # a set without 0 may hold x and no smaller multiple of it
    return t if t == 1.0 or all(domain.has_zero() for domain in sets) else np.nan


def largest_finite_multiple(value: Callable[[Vector], float], x: Vector) -> float:
    """Return the largest t in [0, 1] with a finite value at t x, by bisection; nan if there is none."""
    if np.isfinite(value(x)):
        return 1.0
    if not np.isfinite(value(np.zeros_like(x))):
        return np.nan
    inside, outside = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (inside + outside)
        if np.isfinite(value(middle * x)):
            inside = middle
        else:
            outside = middle
    return inside
