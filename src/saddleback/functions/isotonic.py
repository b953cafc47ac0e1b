r"""Vectors whose entries do not fall, as a constraint.

.. math::

    f(x) = 0 \text{ if } x_1 \le x_2 \le \dots \le x_n, \qquad
    f^*(z) = 0 \text{ if } z_1 + \dots + z_k \ge 0 \text{ for all } k, \text{ and } z_1 + \dots + z_n = 0,

and infinite otherwise: the indicators of a cone and of its polar cone. The prox is ``pool``, for any steps.
"""

from __future__ import annotations

import numpy as np

from .. import _native
from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector, constant, here, squeeze_constant
from ..common.checks import positive_multiple
from ..common.rounded import UNIT, Rounded
from ..common.sums import Equations, Sums
from .conjugates import Ball, Indicator
from .contract import ROUNDING, Convex, Domain, Ray
from .domains import PartlyFixed
from .excess import Contact, assumed_side, contact_of_jumps, running_sums
from .normal_form import PiecewiseParameters
from .penalties import Penalty
from .piecewise import PiecewiseQuadratic
from .traits import InUnits, Movable

INSIDE = 16.0
"""Multiple of its rounding to which a sum is moved, so that it is not below 0 afterwards."""


class Isotonic(Penalty):
    """0 if x_1 <= x_2 <= ... <= x_n, infinite otherwise.

    Its prox is isotonic regression, in a time proportional to the number of entries. For entries that do not rise, give
    A with its columns in reverse order.

    Examples
    --------
    >>> import saddleback as sb
    >>> sb.Isotonic().prox([1.0, 3.0, 2.0, 5.0], 1.0)
    array([1. , 2.5, 2.5, 5. ])
    """

    def times(self, factor: float) -> Isotonic:
        positive_multiple(self.name, factor)
        return self

    def bind(self, shape: tuple[int, ...]) -> NonDecreasing:
        size = int(np.prod(shape))
        if shape[:1] != (size,):
            raise ValueError(f"Isotonic is a function of a vector, but its variable has shape {shape}: use a vector")
        return NonDecreasing(size)


class NonDecreasing(Convex, InUnits, Movable):
    """The function at the top of this module; ``place`` puts what is computed on the host where the vectors are."""

    def __init__(self, size: int, place: ToDevice = here) -> None:
        self.size = size
        self.place = place

    def blocks(self) -> Blocks:
        return Blocks.single(self.size)

    def moved(self, place: ToDevice) -> NonDecreasing:
        return NonDecreasing(self.size, place)

    def in_units(self, unit: Vector) -> NonDecreasing:
        """Return the function itself: a multiple of a sequence that does not decrease is another one."""
        return self

    @property
    def domain(self) -> NonDecreasingCone:
        return NonDecreasingCone(self)

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        return 0.0

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        steps = np.atleast_1d(np.asarray(squeeze_constant(step), dtype=np.float64))
        weight = np.ones(1) if steps.min() == steps.max() else 1.0 / steps
        x: Vector = self.place(_native.pool(np.ascontiguousarray(v, dtype=np.float64), weight))
        return x

    def recession(self, direction: Vector) -> Ray:
        return Ray(0.0, direction - self.domain.project(direction))

    def contact(self, point: Rounded, slope: Rounded) -> Contact:
        """Return the contact: that of jumps that are not negative, and the cumulated sums of the slope."""
        rising = PiecewiseParameters.zero(self.size - 1)._replace(lower=constant(0.0, self.size - 1))
        known = contact_of_jumps(PiecewiseQuadratic(*rising), point, slope)
        if known.point.inside:
            return known
        return known._replace(point=assumed_side(self.domain, point, self.domain.project(point.high), slope.high))

    def conjugate(self) -> Indicator:
        return Indicator(self, PolarCone(self))


class NonDecreasingCone(Domain):
    """x_1 <= ... <= x_n."""

    def __init__(self, of: NonDecreasing) -> None:
        self.of = of

    def project(self, x: Vector) -> Vector:
        return x if np.all(x[1:] >= x[:-1]) else self.of.prox(x, 1.0)

    def largest_multiple(self, x: Vector) -> float:
        host = np.asarray(x)
        fall = float(np.max(host[:-1] - host[1:], initial=0.0))
        return 1.0 if fall <= ROUNDING * float(np.max(np.abs(host))) else 0.0

    def has_zero(self) -> bool:
        return True


class PolarCone(Ball, PartlyFixed):
    """Sums z_1 + ... + z_k that are at least 0, and 0 at the end."""

    def __init__(self, of: NonDecreasing) -> None:
        self.of = of

    def holds(self, x: Vector) -> bool:
        host = np.asarray(x)
        sums, rounding = np.cumsum(host), ROUNDING * float(np.sum(np.abs(host)))
        return bool(abs(sums[-1]) <= rounding and np.all(sums >= -rounding))

    def project(self, x: Vector) -> Vector:
        return x if self.holds(x) else x - self.of.prox(x, 1.0)  # Moreau

    def largest_multiple(self, x: Vector) -> float:
        return 1.0 if self.holds(x) else 0.0

    def has_zero(self) -> bool:
        return True

    def fixed(self) -> Indices:
        return np.arange(1 if self.of.size == 1 else 0)

    def fixed_sums(self, size: int) -> Equations:
        return Equations.total(np.zeros(size))

    def sums_inside(self, slope: Rounded) -> Equations:
        """Return equations for the sums between one cumulated sum that may be below 0 and the next.

        What is clearly below 0 goes to 0, where entries may all be 0 exactly, and what rounding may put there above it.
        """
        sums = running_sums(slope).part(slice(None, -1))
        at, reach = sums.high + sums.low, sums.error + UNIT * sums.size
        if not np.any(at < reach):
            return Equations.none()
        near = np.flatnonzero(at < 2 * INSIDE * reach)
        inside = np.where(at < -reach, 0.0, INSIDE * reach)[near]
        ends = np.concatenate([[0.0], inside, [0.0]])
        value = np.diff(ends)
        own = value - ends[1:]
        lost = (ends[1:] - (value - own)) - (ends[:-1] + own)
        ranges = Sums(np.arange(self.of.size), np.concatenate([[0], near + 1, [self.of.size]]))
        return Equations(ranges, value, np.abs(lost))
