"""Traits: optional properties of functions, each of which one part of the library needs.

A function has a trait if its class derives from it. The helpers in this file return a default for all other functions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from ..common.arrays import Blocks, Indices, ToDevice, Vector, length
from ..common.canonical_units import FIXED
from .contract import Convex
from .kinks import Kinks
from .normal_form import PiecewiseParameters


class Smooth(ABC):
    """A function with second derivatives, which descent and Newton's method need."""

    def curvature(self) -> Vector | None:
        """Return the Lipschitz constant of the gradient per coordinate; None if there is none."""
        return None

    @abstractmethod
    def curvature_at(self, x: Vector) -> Vector:
        """Return the second derivatives at x, or upper bounds of them, per coordinate."""

    def hessian_at(self, x: Vector) -> Vector:
        """Return the second derivatives at x: one per coordinate, or an array of q x q matrices, one per block of q."""
        return self.curvature_at(x)


class Lipschitz(ABC):
    """A function whose change under a displacement of u is bounded, which the certificate needs."""

    @abstractmethod
    def rise(self, distance: float) -> float:
        """Return a bound on f - min f at that distance from a minimiser, without the constraints."""

    def rise_within(self, distances: Vector) -> float:
        """Return the same bound if no coordinate moves by more than its distance."""
        return self.rise(length(distances))


class Kinked:
    """A function with kinks that hold x at 0, which working sets and alpha_max need."""

    def zero_slack(self, z: Vector) -> Vector | None:
        """Return, per block, the distance of z from making the block leave 0; -inf if the block has no kink at 0.

        None if f has no kinks at all, or is not a sum over its blocks.
        """
        return None

    def kinks(self, z: Vector, rest: Any) -> Kinks:
        """Return the kinks that hold x at 0 in alpha p + r, where f = p + r and ``rest`` is r."""
        return Kinks.none(z.size)

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        """Return the ends of the interval of slopes at x per coordinate; nan if the slopes are not an interval.

        Coordinates within the tolerance of a kink or a bound count as being on it.
        """
        return np.full(x.size, np.nan), np.full(x.size, np.nan)


class Coupled(ABC):
    """A function that holds parts of x at 0 although it is not a sum over these parts, which working sets need."""

    @abstractmethod
    def parts_at_zero(self) -> Blocks | None:
        """Return the parts of x that may each be 0, a partition finer than the blocks; None if they are the blocks."""

    @abstractmethod
    def restrict_parts(self, parts: Indices) -> Convex:
        """Return the function of some parts, in increasing order and one after the other, with all others at 0."""

    @abstractmethod
    def distance_from_leaving(self, z: Vector, lengths: Vector) -> Vector:
        """Return per part how far y may move from a point with -A'y = z, so that the part stays at 0.

        ``lengths`` are those of the parts of A: the part of z moves by at most as many times as far as y. Let S be the
        parts with a distance of at most d. If y moves by less than d and z is then feasible for the function of S
        alone, it is feasible for all parts.
        """


class Ties(NamedTuple):
    """Entries of x with equal absolute values, along which a function is linear if they remain equal.

    Attributes
    ----------
    entries : the entries that are not 0.
    group : the tie of each of these entries.
    sign : the sign of each of them.
    slope : the slope of the function along each tie, if all its entries grow away from 0 by the same amount.
    """

    entries: Indices
    group: Indices
    sign: Vector
    slope: Vector


class Tied(ABC):
    """A function that holds entries of x at equal absolute values, which Newton's method needs."""

    @abstractmethod
    def ties(self, x: Vector) -> Ties:
        """Return the ties at x."""

    @abstractmethod
    def holds_entries(self) -> bool:
        """Return whether zeros and ties hold most entries of a solution; otherwise Newton's system is too large."""


class SumOverCoordinates(Convex):
    """A sum over single coordinates, which reductions need to leave some of them out."""

    @abstractmethod
    def restrict(self, keep: Indices) -> SumOverCoordinates:
        """Return the function of the kept coordinates alone."""

    @abstractmethod
    def minimiser(self) -> Vector:
        """Return a point of minimum value per coordinate; infinite or nan if it is not attained."""


class SumOverRows(SumOverCoordinates):
    """A loss that is a sum over rows, so that rows can be merged, sampled or left out."""

    @abstractmethod
    def restrict(self, keep: Indices) -> SumOverRows:
        """Return the function of the kept rows alone."""

    @abstractmethod
    def distance_to_kink(self, u: Vector) -> Vector:
        """Return the distance of u from the nearest point at which the slope changes, per row; 0 if it changes at u."""

    @abstractmethod
    def row_weights(self) -> Vector:
        """Return the weight of each row: the functions of rows with equal signatures differ only by this factor."""

    @abstractmethod
    def row_signature(self) -> Vector:
        """Return a matrix with one row of numbers per row of A: equal rows mean equal functions up to their weights."""

    @abstractmethod
    def with_row_weights(self, factors: Vector) -> SumOverRows:
        """Return the function with each row multiplied by a factor."""


class Addable(ABC):
    """A function to which slopes and bounds can be added, which sums of penalties need."""

    @abstractmethod
    def plus(self, piece: PiecewiseParameters) -> Convex:
        """Return the sum with a function of the family in ``piecewise.py``; its ``Term`` says which are allowed."""


class Joinable(ABC):
    """A function that can be joined with another one, which MPI processes need to join their penalties."""

    @abstractmethod
    def hstack(self, other: Convex) -> Convex | None:
        """Return this function of x_1 plus another function of x_2; None if the two are of different kinds."""


class Remembers(ABC):
    """A function that keeps data from one call to make the next one faster. Results differ only by rounding."""

    @abstractmethod
    def with_memory(self) -> Convex:
        """Return a copy with a memory for one run; a function that runs or threads share has no memory."""

    @abstractmethod
    def memories(self) -> Sequence[Any]:
        """Return the memory: a checkpoint restores a function and its memory separately."""


class Scaled(ABC):
    """A function that knows the typical size of its subgradients, which step sizes and units need."""

    @abstractmethod
    def subgradient_scale(self) -> Vector | float:
        """Return the typical size of a subgradient at a solution, per coordinate."""


class KnownByProx(ABC):
    """The conjugate of a function that has only a prox, for the certificate."""

    @abstractmethod
    def near(self, x: Vector, subgradient: Vector) -> tuple[Vector, float]:
        """Return a point near x where the value is known, and that value, given an approximate subgradient at x."""


class Movable(ABC):
    """A function whose parameters can be moved to a device."""

    @abstractmethod
    def moved(self, place: ToDevice) -> Convex:
        """Return the function with its parameters on a device; its arguments then lie there too."""


class InUnits(ABC):
    """A function of numbers that may be in other units: powers of two, one per block."""

    def unit_indices(self) -> Indices:
        """Return the index of the unit of each coordinate, or FIXED; by default coordinates of a block share one."""
        indices: Indices = self.blocks().of_columns
        return indices

    @abstractmethod
    def in_units(self, unit: Vector) -> Convex:
        """Return x -> f(unit * x)."""

    @abstractmethod
    def blocks(self) -> Blocks:
        """Return the blocks of the function."""


class Enclosed(ABC):
    """A function that knows the points near a line below it, which bounds on all optima need.

    The excess of f at x for a slope z is f(x) + f*(z) - <x, z>. Slopes are known up to intervals, some of whose points
    are in the domain of f*, and all ends are rounded outwards.
    """

    @abstractmethod
    def enclosure(self, low: Vector, high: Vector, excess: float) -> tuple[Vector, Vector]:
        """Return the ends of an interval per coordinate that contain each x near a line, for all slopes in [low, high].

        These are the x whose excess is at most ``excess``.
        """

    def longest(self, low: Vector, high: Vector, excess: float) -> Vector | None:
        """Return the largest norm of each block of such an x; None if it is not known from the blocks themselves."""
        return None

    def with_slopes(self, low: Vector, high: Vector) -> tuple[Vector, Vector]:
        """Return the ends of an interval per coordinate that contain each x with a subgradient in [low, high]."""
        return unbounded(low.size)

    def curvature_between(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        """Return bounds on the second derivative between two ends, per coordinate: at least and at most.

        The latter is infinite if there may be a kink. Both are right up to a few roundings.
        """
        return np.zeros(lower.size), np.full(lower.size, np.inf)


def unbounded(size: int) -> tuple[Vector, Vector]:
    """Return the ends of intervals without bounds."""
    return np.full(size, -np.inf), np.full(size, np.inf)


def enclosure(function: Convex, low: Vector, high: Vector, excess: float) -> tuple[Vector, Vector]:
    """Return ends that contain each x whose excess is at most ``excess``; infinite if they are not known."""
    return function.enclosure(low, high, excess) if isinstance(function, Enclosed) else unbounded(low.size)


def with_slopes(function: Convex, low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """Return ends that contain each x with a subgradient in [low, high]; infinite if they are not known."""
    return function.with_slopes(low, high) if isinstance(function, Enclosed) else unbounded(low.size)


def curvature_between(function: Convex, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
    """Return bounds on the second derivative between two ends; those of a smooth function everywhere by default."""
    if isinstance(function, Enclosed):
        return function.curvature_between(lower, upper)
    most = curvature(function)
    return np.zeros(lower.size), np.full(lower.size, np.inf if most is None else most)


def subgradient_scale(function: Convex) -> Vector | float:
    """Return the typical size of a subgradient at a solution, per coordinate; 0 if it is not known."""
    return function.subgradient_scale() if isinstance(function, Scaled) else 0.0


def moved(function: Convex, place: ToDevice) -> Convex:
    """Return the function with its parameters on a device."""
    if not isinstance(function, Movable):
        raise TypeError(f"{type(function).__name__} cannot be moved to a device: leave device at None")
    return function.moved(place)


def curvature(function: Convex) -> Vector | None:
    """Return the Lipschitz constant of the gradient per coordinate; None if the function is not smooth."""
    return function.curvature() if isinstance(function, Smooth) else None


def curvature_at(function: Convex, x: Vector) -> Vector:
    """Return the second derivatives at x, or upper bounds of them, per coordinate."""
    if not isinstance(function, Smooth):
        raise TypeError(f"{type(function).__name__} has no second derivatives")
    return function.curvature_at(x)


def hessian_at(function: Convex, x: Vector) -> Vector:
    """Return the second derivatives at x: one per coordinate, or an array of q x q matrices, one per block of q."""
    if not isinstance(function, Smooth):
        raise TypeError(f"{type(function).__name__} has no second derivatives")
    return function.hessian_at(x)


def is_smooth(function: Convex) -> bool:
    """Return whether a function has a Lipschitz gradient; ``subgradient`` returns it."""
    return curvature(function) is not None


def unit_indices(function: Convex, size: int) -> Indices:
    """Return the index of the unit of each coordinate of a function, FIXED for those without a choice of units."""
    return function.unit_indices() if isinstance(function, InUnits) else np.full(size, FIXED)


def in_units(function: Convex, unit: Vector) -> Convex:
    """Return x -> f(unit * x): f itself if it has no choice of units."""
    return function.in_units(unit) if isinstance(function, InUnits) else function


def rise_within(function: Convex, distances: Vector) -> float:
    """Return a bound on f - min f if no coordinate moves by more than its distance; 0 if none is known."""
    return function.rise_within(distances) if isinstance(function, Lipschitz) else 0.0


def rise(function: Convex, distance: float) -> float:
    """Return a bound on f - min f at that distance from a minimiser; 0 if none is known."""
    return function.rise(distance) if isinstance(function, Lipschitz) else 0.0


def zero_slack(function: Convex, z: Vector) -> Vector | None:
    """Return, per block, the distance of z from making the block leave 0; None if the function has no kinks."""
    return function.zero_slack(z) if isinstance(function, Kinked) else None


def couples(function: Convex) -> TypeGuard[Coupled]:
    """Return whether the parts of x that may each be 0 are finer than the blocks."""
    return parts_at_zero(function) is not None


def parts_at_zero(function: Convex) -> Blocks | None:
    """Return the parts of x that may each be 0; None if they are the blocks."""
    return function.parts_at_zero() if isinstance(function, Coupled) else None


def restrict_parts(function: Convex, parts: Indices) -> Convex:
    """Return the function of some of these parts, one after the other, with all others at 0."""
    return function.restrict_parts(parts) if couples(function) else function.restrict_blocks(parts)


def distance_from_leaving(function: Convex, z: Vector, lengths: Vector) -> Vector:
    """Return per part how far y may move, so that the part stays at 0; -inf if the function cannot tell it."""
    if couples(function):
        return function.distance_from_leaving(z, lengths)
    slack = zero_slack(function, z)
    return np.full(lengths.size, -np.inf) if slack is None else slack / lengths


def kinks(function: Convex, z: Vector, rest: Convex) -> Kinks:
    """Return the kinks that hold x at 0 in alpha p + r."""
    return function.kinks(z, rest) if isinstance(function, Kinked) else Kinks.none(z.size)


def subdifferential(function: Convex, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
    """Return the ends of the interval of slopes at x per coordinate; nan if they are not known."""
    if isinstance(function, Kinked):
        return function.subdifferential(x, tolerance)
    unknown = np.full(x.size, np.nan)
    return unknown, unknown


def with_memory(function: Convex) -> Convex:
    """Return the function with a memory for one run, if it uses one."""
    return function.with_memory() if isinstance(function, Remembers) else function


def memories(function: Convex) -> Sequence[Any]:
    """Return the memories of a function."""
    return function.memories() if isinstance(function, Remembers) else []
