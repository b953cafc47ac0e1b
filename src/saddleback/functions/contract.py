"""The contract of the functions f and g.

A function here is closed, convex, and acts on a flat float64 vector. The certificate needs the conjugate of a function
as much as a method needs its prox: ``conjugate()`` returns it, as a function of the same kind. Optional properties,
each of which one part of the library needs, are in ``traits.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from ..common.arrays import Blocks, Indices, Step, Vector
from ..common.rounded import ASSUMED, Rounded
from .excess import Bounds, Contact, Excess, Side, assumed_side, finite
from .normal_form import NormalForm

# A point counts as inside a domain when it is this close to it, relative to its own size: the distance that rounding
# puts between a projection and the set it projects on.
ROUNDING = 1e-12


class Ray(NamedTuple):
    """The growth of a function along a direction.

    The direction is split into a part inside the recession cone and the rest. ``value`` is the recession function at
    the first part; ``violation`` is the rest, along which the function is infinite or grows faster than linearly;
    ``size`` is the sum of the absolute values of the terms of ``value``, which bounds its rounding error.
    """

    value: float
    violation: Vector
    size: float = 0.0


class Domain(ABC):
    """The closure of the set where a function is finite."""

    @property
    def everything(self) -> bool:
        """Whether it is known to be the whole space."""
        return False

    @abstractmethod
    def project(self, x: Vector) -> Vector:
        """Return the nearest point of the set, or another one near x if that costs less; x itself if it is inside."""

    @abstractmethod
    def largest_multiple(self, x: Vector) -> float:
        """Return the largest t in [0, 1] with t x in the set; nan if there is none, or none is known."""

    @abstractmethod
    def has_zero(self) -> bool:
        """Return whether 0 is in the set."""

    def box(self, size: int) -> tuple[Vector, Vector]:
        """Return the ends of each coordinate; nan where the set is not known to be a product of intervals."""
        return np.full(size, np.nan), np.full(size, np.nan)

    def hull(self, size: int) -> tuple[Vector, Vector]:
        """Return bounds on each coordinate of the set; infinite where none is known."""
        lower, upper = self.box(size)
        return np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper)


class Convex(ABC):
    r"""A closed convex function :math:`f`.

    ``step`` is one over a proximal strength, a scalar or one value per coordinate:
    :math:`\mathrm{prox}(v) = \arg\min_x f(x) + \tfrac12 \sum_d (x_d - v_d)^2 / s_d`.
    """

    diagonal_steps: bool = True
    """Whether the prox has a closed form if steps differ from coordinate to coordinate.

    If not, ``step`` is a number or an array of equal values.
    """

    @abstractmethod
    def blocks(self) -> Blocks:
        """Return the finest partition of the coordinates over which the function is a sum."""

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The set where the function is finite."""

    @abstractmethod
    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        """Return f(factor x), without the infinite values outside of the domain: 0 if f is an indicator."""

    def value(self, x: Vector) -> float:
        """Return f(x), infinite outside the domain."""
        inside = self.domain.project(x)
        if inside is not x and np.any(np.abs(x - inside) > ROUNDING * (1.0 + np.abs(inside))):
            return np.inf
        return self.finite_value(inside)

    @abstractmethod
    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        """Return argmin_x f(x) + 1/2 sum (x - v)^2 / step.

        If some blocks are given, v, step and the result hold their coordinates only, one block after the other.
        """

    def subgradient(self, x: Vector) -> Vector:
        """Return argmax_y <x, y> - f*(y): the gradient of a smooth f, infinite outside the domain."""
        raise TypeError(f"{type(self).__name__} has no subgradient in closed form")

    @abstractmethod
    def recession(self, direction: Vector) -> Ray:
        """Return how f grows along a direction, lim f(x + t d) / t."""

    @abstractmethod
    def conjugate(self) -> Convex:
        """Return f*(y) = sup_x <x, y> - f(x)."""

    def excess(self, point: Vector, radius: Vector | None, slope: Rounded) -> Excess:
        """Return bounds on f(p) + f*(s) - <p, s>, for every p within the radius of a point and every s in ``slope``."""
        at = Rounded.around(point, radius)
        if not finite(at, slope):
            return Contact.unknown().excess()
        with np.errstate(all="ignore"):
            known = self.contact(at, slope)
        return self._assumed_excess(point, radius, slope) if known is None else known.excess()

    def contact(self, point: Rounded, slope: Rounded) -> Contact | None:
        """Return what is proved of all points and slopes within their errors, which are finite; None if nothing is.

        Sums of coordinates that have a single value in the domain of f* (``fixed_sums``) are taken to have it: the
        certificate balances them.
        """
        return None

    @property
    def bounds_rounding(self) -> bool:
        """Whether the function has an excess of its own, with bounds on its rounding."""
        own = type(self)
        return own.contact is not Convex.contact or own.excess is not Convex.excess

    def _assumed_excess(self, point: Vector, radius: Vector | None, slope: Rounded) -> Excess:
        """Return the excess under the assumption that values are right up to 2^-40 of their size: nothing is proved."""
        conjugate = self.conjugate()
        inside, of_slope = conjugate.near(slope.high, point)
        value = self.near(point, slope.high)[1]
        product = float(point @ inside)
        reach = slope.error + np.abs(slope.low)
        moved = float(np.abs(point) @ reach) + (0.0 if radius is None else float(radius @ np.abs(inside)))
        size = abs(value) + abs(of_slope) + float(np.abs(point) @ np.abs(inside))
        gap = max(value + of_slope - product, 0.0)
        return (
            Contact(
                gap=gap + moved + ASSUMED * size,
                exact=gap,
                value=Bounds.around(value, ASSUMED * abs(value), abs(value)),
                conjugate=Bounds.around(of_slope, ASSUMED * abs(of_slope) + moved, abs(of_slope)),
                point=Side(inside=False),
                slope=assumed_side(conjugate.domain, slope, inside, point),
            )
            .excess()
            ._replace(assumed=True)
        )

    def near(self, x: Vector, subgradient: Vector) -> tuple[Vector, float]:
        """Return a point near x where the value is known, and that value; for most functions, the projection of x.

        ``subgradient`` is an approximate subgradient at x, for functions that are known by their prox alone.
        """
        inside = self.domain.project(x)
        return inside, self.finite_value(inside)

    def restrict_blocks(self, blocks: Indices) -> Convex:
        """Return the function of some blocks alone, their coordinates one block after the other.

        A function that is a single block is complete without this.
        """
        if np.array_equal(blocks, np.arange(len(self.blocks()))):
            return self
        raise TypeError(f"{type(self).__name__} cannot be restricted to some of its blocks")

    def normal_form(self) -> NormalForm | None:
        """Return the function as data; None if only its methods are known."""
        return None
