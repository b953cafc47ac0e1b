"""What f and g may be: the contract that every function of the catalogue keeps.

A function here is closed, convex and acts on a flat float64 vector. It is described from both sides, because the
certificate needs its conjugate as much as a method needs its prox. The rest of the library only ever uses what is
declared in this file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector
from .points import Held, Whole

if TYPE_CHECKING:
    from .piecewise import Coordinate
    from .user import UserFunction

# A point counts as inside a domain when it is this close to it, relative to its own size: the distance that rounding
# puts between a projection and the set it projects on.
ROUNDING = 1e-12


class Ray(NamedTuple):
    """How a function grows along a direction: the recession value, and what of the direction leaves its cone.

    ``value`` is the recession function at the part of the direction that stays in the recession cone; ``violation``
    is the part that does not, along which the function grows faster than linearly or is infinite; ``size`` is the sum
    of the absolute values of the terms of ``value``, which bounds its rounding error.
    """

    value: float
    violation: Vector
    size: float = 0.0


class Kinks(NamedTuple):
    r"""What holds x at 0 in f = alpha p + r, part by part, at a slope z.

    Attributes
    ----------
    alpha : for every part, the least alpha with z in the subdifferential of f at 0.
    slope : a subgradient in z of the alpha of its part, one value a coordinate: alpha(z') >= alpha + <slope, z' - z>.
    part : the part that each coordinate belongs to; -1 where alpha adds no kink, and nothing need hold x at 0.
    """

    alpha: Vector
    slope: Vector
    part: Indices

    @classmethod
    def none(cls, size: int) -> Kinks:
        """Return what holds nothing."""
        return cls(np.zeros(0), np.zeros(size), np.full(size, -1))


class Function(ABC):
    r"""A closed convex function :math:`f` with its prox and its conjugate.

    ``step`` is one over a proximal strength, a scalar or one value a coordinate:
    :math:`\mathrm{prox}(v) = \arg\min_x f(x) + \tfrac12 \sum_d (x_d - v_d)^2 / s_d`.
    """

    scalar_step: bool = False
    """True where the prox has a closed form only if one step serves all coordinates."""

    even: bool = False
    """True where it is known that f(-x) = f(x)."""

    smooth: bool = False
    """True where f has a Lipschitz gradient, which ``subgradient`` then gives."""

    @abstractmethod
    def blocks(self) -> Blocks:
        """Return the finest partition of the coordinates over which the function is a sum."""

    def apart(self) -> Sequence[tuple[Function, slice]]:
        """Return the functions, each of a stretch of x, of which this one is the sum: itself where it is none."""
        return [(self, slice(None))]

    def user_functions(self) -> Sequence[tuple[UserFunction, slice, Vector | float]]:
        """Return the functions inside this one that are the user's own code.

        Each comes with its stretch of x and the linear term that was added to it.
        """
        return []

    # --- the function -------------------------------------------------------------------------------------------

    @abstractmethod
    def value(self, x: Vector) -> float:
        """Return f(x), infinite outside the domain."""

    @abstractmethod
    def finite_value(self, x: Vector) -> float:
        """Return f(x) with the indicator of its domain left out."""

    @abstractmethod
    def project(self, x: Vector) -> Vector:
        """Return the point of the domain that is nearest to x."""

    @abstractmethod
    def prox(self, v: Vector, step: Step) -> Vector:
        """Return argmin_x f(x) + 1/2 sum (x - v)^2 / step."""

    @abstractmethod
    def prox_blocks(self, blocks: Indices, v: Vector, step: Vector) -> Vector:
        """Return the prox on some blocks only; v and step hold their coordinates one block after the other."""

    def prox_point(self, v: Vector, step: Step) -> Held:
        """Return the prox in the form in which it takes the least memory."""
        return Whole(self.prox(v, step))

    def block_prox_point(self, block: int, v: Vector, step: Vector) -> Held:
        """Return the prox on one block in such a form."""
        return Whole(self.prox_blocks(np.array([block]), v, step))

    @abstractmethod
    def recession(self, direction: Vector) -> Ray:
        """Return how f grows along a direction, lim f(x + t d) / t."""

    def subgradient(self, x: Vector) -> Vector:
        """Return argmax_y <x, y> - f*(y): the gradient of a smooth f, infinite outside the domain."""
        raise TypeError(f"{type(self).__name__} has no subgradient in closed form")

    # --- its conjugate ------------------------------------------------------------------------------------------

    @abstractmethod
    def conjugate(self, y: Vector) -> float:
        """Return f*(y) = sup_x <x, y> - f(x), infinite outside its domain."""

    @abstractmethod
    def project_conjugate(self, y: Vector) -> Vector:
        """Return the point of the domain of f* that is nearest to y."""

    @abstractmethod
    def conjugate_recession(self, direction: Vector) -> Ray:
        """Return how f* grows along a direction; this is the support function of the domain of f."""

    @abstractmethod
    def scaling(self, y: Vector) -> float:
        """Return the largest t in [0, 1] with t y in the domain of f*, or nan where there is none."""

    @abstractmethod
    def unpenalised(self) -> Indices:
        """Return the coordinates along which f is linear, where the domain of f* is a single point."""

    def bounded_below(self) -> bool:
        """Return whether f has a finite infimum, -f*(0)."""
        return bool(np.isfinite(self.conjugate(np.zeros(self.blocks().order.size))))

    def conjugate_near(self, y: Vector, x: Vector) -> tuple[Vector, float]:
        """Return a point near y where the conjugate is known, and its value there.

        For a function whose conjugate has a formula this is the projection on the domain of f*. A function known by
        its prox alone finds the point from x, the place where y ought to be a subgradient.
        """
        inside = self.project_conjugate(y)
        return inside, self.conjugate(inside)

    def conjugate_scaled(self, y: Vector, t: float, x: Vector) -> float:
        """Return f*(t y) for a t with which t y is in the domain; x as in ``conjugate_near``."""
        return self.conjugate_near(y if t == 1.0 else t * y, x)[1]

    def prox_conjugate(self, v: Vector, step: Step) -> Vector:
        """Return the prox of f*, by Moreau: v - step * prox(v / step, 1 / step)."""
        return v - step * self.prox(v / step, 1.0 / step)

    def prox_conjugate_blocks(self, blocks: Indices, v: Vector, step: Vector) -> Vector:
        """Return the prox of f* on some blocks only."""
        return v - step * self.prox_blocks(blocks, v / step, 1.0 / step)

    def best_scaling(self, y: Vector, limit: float) -> float:
        """Return the t in [0, limit] that is best for -f*(t y), or ``limit`` where that is not known."""
        return limit

    def conjugate_room(self, y: Vector) -> Vector:
        """Return how freely each coordinate of y can move in the domain of f*: 0 at a bound, 1 where there is none."""
        return np.ones_like(y)

    def plus(self, piece: Slopes) -> Function:
        """Return the sum with a member of the family of ``piecewise.py``; its ``Term`` says which ones it accepts."""
        raise TypeError(f"nothing can be added to {type(self).__name__}")

    # --- what layers, steps and backends ask ----------------------------------------------------------------------

    def with_memory(self) -> Function:
        """Return the function for one run: it may remember, from call to call, what makes the next one faster.

        Results differ by rounding only. What is shared between runs or threads has no memory.
        """
        return self

    def placed(self, place: ToDevice) -> Function:
        """Return the function with its parameters where ``place`` puts them, which is where its arguments then lie."""
        raise TypeError(f"{type(self).__name__} cannot be moved to a device: leave device at None")

    def memories(self) -> list[Any]:
        """Return what the function remembers: for a checkpoint, which brings back a function and its memory apart."""
        return []

    def conjugate_member(self) -> Coordinate | None:
        """Return f*, but for a constant, where it belongs to the family of ``piecewise.py``."""
        return None

    def is_linear(self) -> bool:
        """Return whether f is known to be linear on its domain."""
        return False

    def finite_everywhere(self) -> bool:
        """Return whether the domain of f is the whole space, so that nothing is infeasible."""
        return False

    def strong_convexity(self) -> float:
        """Return a mu for which f - mu / 2 ||x||^2 is still convex, the largest that is known."""
        return 0.0

    def zero_slack(self, z: Vector) -> Vector | None:
        """Return, for every block, how far z is from making it leave 0; -inf where 0 is no kink of f.

        None where f has no kinks at all, or cannot be taken apart into its blocks.
        """
        return None

    def kinks(self, z: Vector, rest: Any) -> Kinks:
        """Return what holds x at 0 in alpha p + r, where f is p + r, the same at alpha = 1, and ``rest`` is r."""
        return Kinks.none(z.size)

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        """Return the ends of the interval of slopes at x, coordinate by coordinate; nan where it is no interval.

        Coordinates that are as close to a kink or a bound as the tolerance count as being there.
        """
        unknown = np.full(x.size, np.nan)
        return unknown, unknown

    def restrict_blocks(self, blocks: Indices) -> Function:
        """Return the function of some blocks alone, their coordinates one block after the other."""
        raise TypeError(f"{type(self).__name__} cannot be restricted to some of its blocks")

    def beside(self, other: Function) -> Function | None:
        """Return f and another function, each of its own stretch of one vector, as one; None where that is no kind."""
        return None

    def admissible(self, strength: Vector) -> Vector:
        """Return the least strengths, at least the given ones, under which the prox has a closed form."""
        return np.full_like(strength, strength.max()) if self.scalar_step else strength

    def curvature(self) -> Vector | None:
        """Return the Lipschitz constant of the gradient, row by row, where the function is smooth."""
        return None

    def curvature_at(self, x: Vector) -> Vector:
        """Return the second derivatives at x of a smooth function that separates over its coordinates."""
        raise TypeError(f"{type(self).__name__} has no second derivatives")

    def typical_point(self) -> Vector | float:
        """Return a point of the size that the argument of f has at a solution, for the units of the steps."""
        return 0.0

    def typical_length(self, size: int) -> float:
        """Return the length of that point, which has so many coordinates."""
        return float(np.linalg.norm(np.broadcast_to(self.typical_point(), (size,))))

    def typical_slope(self) -> Vector | float:
        """Return a point of the size that a subgradient of f has at a solution, for the units of the steps."""
        return 0.0

    def rise(self, distance: float) -> float:
        """Return a bound on f - min f at that distance from a minimiser, constraints left out; 0 if none is known."""
        return 0.0

    def conjugate_slopes(self) -> Slopes | None:
        """Return the parameters of f* where it belongs to the family of ``piecewise.py``."""
        return None

    def compiled(self) -> Compiled | None:
        """Return what the native kernels need, or None where the function lives on the array path."""
        return None


class Slopes(NamedTuple):
    """Parameters, one per coordinate, of the family in ``piecewise.py``."""

    left: Vector
    right: Vector
    quadratic: Vector
    lower: Vector
    upper: Vector

    @classmethod
    def zero(cls, size: int) -> Slopes:
        """Return the parameters of the function 0."""
        none, free = np.zeros(size), np.full(size, np.inf)
        return cls(none, none, none, -free, free)


@dataclass(frozen=True)
class Callable1D:
    """Address of a compiled coordinatewise prox, ``double (double v, double step[, void *data])``."""

    address: int
    data: int
    takes_data: bool


@dataclass(frozen=True)
class Compiled:
    """A function as the native kernels know it.

    ``slopes`` describes the coordinates, ``group_weight`` the norm of each block (0 for none), ``callables`` the ranges
    of coordinates that have a prox of their own, and ``logistic`` holds labels and weights in place of all that.
    """

    slopes: Slopes
    group_weight: Vector
    callables: tuple[tuple[int, int, Callable1D], ...] = ()
    logistic: tuple[Vector, Vector] | None = None


class Restrictable(Function):
    """A function that is a sum over single coordinates, so that some of them can be left out."""

    @abstractmethod
    def restrict(self, keep: Indices) -> Restrictable:
        """Return the function of the kept coordinates alone."""

    @abstractmethod
    def minimiser(self) -> Vector:
        """Return a point of least value, coordinate by coordinate; infinite where it is not attained."""

    @abstractmethod
    def conjugate_minimiser(self) -> Vector:
        """Return a point of least conjugate value, a subgradient of f at 0; infinite where there is none."""

    @abstractmethod
    def distance_to_kink(self, x: Vector) -> Vector:
        """Return how far each coordinate is from where its slope changes; 0 where it changes at x."""

    @abstractmethod
    def weights(self) -> Vector:
        """Return how much each coordinate counts: where two have the same ``kind`` they differ by this factor alone."""

    @abstractmethod
    def kind(self) -> Vector:
        """Return a row of numbers for every coordinate; equal rows belong to equal functions, up to their weights."""

    @abstractmethod
    def repeated(self, counts: Vector) -> Restrictable:
        """Return the function in which each coordinate counts so many times."""
