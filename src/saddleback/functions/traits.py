"""What only some functions can tell, and only one part of the library asks.

A function has a trait if its class derives from it. The functions of this file answer for all the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..common.arrays import Indices, ToDevice, Vector
from .contract import Convex
from .kinks import Kinks
from .normal_form import PiecewiseParameters


class Smooth(ABC):
    """Descent and Newton's method ask for second derivatives."""

    def curvature(self) -> Vector | None:
        """Return the Lipschitz constant of the gradient per coordinate; None if there is none."""
        return None

    @abstractmethod
    def curvature_at(self, x: Vector) -> Vector:
        """Return the second derivatives at x, or upper bounds of them, per coordinate."""


class Lipschitz(ABC):
    """The certificate asks what a displacement of u is worth."""

    @abstractmethod
    def rise(self, distance: float) -> float:
        """Return a bound on f - min f at that distance from a minimiser, constraints left out."""


class Kinked:
    """Working sets and alpha_max ask what holds x at 0."""

    def zero_slack(self, z: Vector) -> Vector | None:
        """Return, per block, how far z is from making it leave 0; -inf if 0 is no kink of f there.

        None if f has no kinks at all, or cannot be taken apart into its blocks.
        """
        return None

    def kinks(self, z: Vector, rest: Any) -> Kinks:
        """Return what holds x at 0 in alpha p + r, where f is p + r, the same at alpha = 1, and ``rest`` is r."""
        return Kinks.none(z.size)

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        """Return the ends of the interval of slopes at x per coordinate; nan if it is no interval.

        Coordinates that are as close to a kink or a bound as the tolerance count as being there.
        """
        return np.full(x.size, np.nan), np.full(x.size, np.nan)


class SumOverCoordinates(Convex):
    """A sum over single coordinates, some of which a reduction leaves out."""

    @abstractmethod
    def restrict(self, keep: Indices) -> SumOverCoordinates:
        """Return the function of the kept coordinates alone."""

    @abstractmethod
    def minimiser(self) -> Vector:
        """Return a point of minimum value per coordinate; infinite or nan if it is not attained."""


class SumOverRows(SumOverCoordinates):
    """A loss that is a sum over rows, of which some are merged, sampled, or left for later."""

    @abstractmethod
    def restrict(self, keep: Indices) -> SumOverRows:
        """Return the function of the kept rows alone."""

    @abstractmethod
    def distance_to_kink(self, u: Vector) -> Vector:
        """Return how far each row is from where its slope changes; 0 if it changes at u."""

    @abstractmethod
    def row_weights(self) -> Vector:
        """Return how much each row counts: two with the same signature differ by this factor only."""

    @abstractmethod
    def row_signature(self) -> Vector:
        """Return numbers per row, in a matrix; equal rows belong to equal functions, up to their weights."""

    @abstractmethod
    def with_row_weights(self, factors: Vector) -> SumOverRows:
        """Return the function with each row multiplied by a factor."""


class Addable(ABC):
    """A sum of penalties asks for a function with more slopes and bounds."""

    @abstractmethod
    def plus(self, piece: PiecewiseParameters) -> Convex:
        """Return the sum with a member of the family in ``piecewise.py``; its ``Term`` says which ones it accepts."""


class Joinable(ABC):
    """Processes ask for the penalties of all of them as one."""

    @abstractmethod
    def hstack(self, other: Convex) -> Convex | None:
        """Return the function of (x_1, x_2) that adds another one of x_2; None if the two are of different kinds."""


class Remembers(ABC):
    """A function that remembers, from call to call, what makes the next one faster. Results differ by rounding only."""

    @abstractmethod
    def with_memory(self) -> Convex:
        """Return the function for one run. What is shared between runs or threads has no memory."""

    @abstractmethod
    def memories(self) -> Sequence[Any]:
        """Return what it remembers: a checkpoint restores a function and its memory separately."""


class Scaled(ABC):
    """Steps and units ask how large points are at a solution."""

    @abstractmethod
    def subgradient_scale(self) -> Vector | float:
        """Return a vector of the size that a subgradient has at a solution."""


class KnownByProx(ABC):
    """The certificate asks for a value of the conjugate of a function that is known by its prox only."""

    @abstractmethod
    def near(self, x: Vector, subgradient: Vector) -> tuple[Vector, float]:
        """Return a point near x where the value is known, and that value, given what ought to be a subgradient at x."""


class Movable(ABC):
    """A device asks for functions whose parameters lie there."""

    @abstractmethod
    def moved(self, place: ToDevice) -> Convex:
        """Return the function with its parameters on a device, where its arguments then lie."""


def subgradient_scale(function: Convex) -> Vector | float:
    """Return a vector of the size that a subgradient has at a solution; 0 if that is not known."""
    return function.subgradient_scale() if isinstance(function, Scaled) else 0.0


def near(function: Convex, x: Vector, subgradient: Vector) -> tuple[Vector, float]:
    """Return a point near x where the value is known, and that value: the projection on the domain in most cases."""
    if isinstance(function, KnownByProx):
        return function.near(x, subgradient)
    inside = function.domain.project(x)
    return inside, function.finite_value(inside)


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


def is_smooth(function: Convex) -> bool:
    """Return whether a function has a Lipschitz gradient, which ``subgradient`` then gives."""
    return curvature(function) is not None


def rise(function: Convex, distance: float) -> float:
    """Return a bound on f - min f at that distance from a minimiser; 0 if none is known."""
    return function.rise(distance) if isinstance(function, Lipschitz) else 0.0


def zero_slack(function: Convex, z: Vector) -> Vector | None:
    """Return, per block, how far z is from making it leave 0; None if nothing holds it there."""
    return function.zero_slack(z) if isinstance(function, Kinked) else None


def kinks(function: Convex, z: Vector, rest: Convex) -> Kinks:
    """Return what holds x at 0 in alpha p + r."""
    return function.kinks(z, rest) if isinstance(function, Kinked) else Kinks.none(z.size)


def subdifferential(function: Convex, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
    """Return the ends of the interval of slopes at x per coordinate; nan if they are not known."""
    if isinstance(function, Kinked):
        return function.subdifferential(x, tolerance)
    unknown = np.full(x.size, np.nan)
    return unknown, unknown


def with_memory(function: Convex) -> Convex:
    """Return the function for one run."""
    return function.with_memory() if isinstance(function, Remembers) else function


def memories(function: Convex) -> Sequence[Any]:
    """Return what a function remembers."""
    return function.memories() if isinstance(function, Remembers) else []
