"""What losses that are sums over rows share if they do not belong to the family in ``piecewise.py``."""

from __future__ import annotations

from abc import abstractmethod
from itertools import product
from typing import Any, Generic, TypeVar

import numpy as np

from ..common.arrays import Blocks, Indices, ToDevice, Vector
from ..common.rounded import UNIT, Rounded
from .conjugates import Conjugate
from .domains import Interval
from .excess import Contact, Near, collapsed, convex_bounds, side_of_interval, sum_up
from .traits import Kinked, Lipschitz, Movable, Scaled, Smooth, SumOverCoordinates, SumOverRows

Own = TypeVar("Own", bound="CurvedRows")
OfRows = TypeVar("OfRows", bound="CurvedRows")


class CurvedRows(SumOverRows, Smooth, Lipschitz, Kinked, Scaled, Movable):
    r""":math:`\sum_i s_i\, \ell(u_i; p_i)` with weights s and parameters p, and a slope that changes everywhere.

    A subclass is made from its parameters, one value per row each, and then the weight; or it has its own ``_made``.
    """

    weight: Vector

    @abstractmethod
    def parameters(self) -> tuple[Vector, ...]:
        """Return the parameters, without the weight."""

    def _made(self: Own, *parameters: Vector) -> Own:
        """Return the loss with other parameters, the weight last."""
        return type(self)(*parameters)

    def blocks(self) -> Blocks:
        return Blocks.scalars(self.weight.size)

    def restrict(self: Own, keep: Indices) -> Own:
        return self._made(*(parameter[keep] for parameter in (*self.parameters(), self.weight)))

    def restrict_blocks(self: Own, blocks: Indices) -> Own:
        return self.restrict(blocks)

    def moved(self: Own, place: ToDevice) -> Own:
        return self._made(*map(place, (*self.parameters(), self.weight)))

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        gradient = self.subgradient(x)
        return gradient, gradient

    def distance_to_kink(self, u: Vector) -> Vector:
        return np.zeros_like(u)

    def row_weights(self) -> Vector:
        return np.where(self.weight > 0, self.weight, 1.0)

    def row_signature(self) -> Vector:
        return np.stack([*self.parameters(), self.weight / self.row_weights()], 1)

    def with_row_weights(self: Own, factors: Vector) -> Own:
        return self._made(*self.parameters(), self.weight * factors)

    # --- points near a line below it ----------------------------------------------------------------------------

    @abstractmethod
    def row_values(self, u: Vector) -> Near:
        """Return the values of the rows at exact points, where u is less ``shift``; infinite outside of the domain."""

    @abstractmethod
    def row_conjugates(self, y: Vector) -> Near:
        """Return the values of the conjugate at exact points of its domain."""

    @abstractmethod
    def row_excess(self, u: Vector, y: Vector) -> Near:
        """Return the excess of the rows at exact points of both domains, where u is less ``shift``."""

    def shift(self) -> Vector | None:
        """Return the targets of a loss that depends on u less a target alone."""
        return None

    def proved_slopes(self) -> Interval:
        """Return the domain of the conjugate, rounded inwards."""
        return self.conjugate().domain

    @abstractmethod
    def conjugate(self) -> CurvedConjugate[Any]:
        pass

    def contact(self, point: Rounded, slope: Rounded) -> Contact:
        """Return the contact: the excess of a row is convex in u and in y, so that it is largest at a corner."""
        size = self.weight.size
        shift, (lower, upper), slopes = self.shift(), self.domain.box(size), self.proved_slopes()
        moved = point if shift is None else point.plus(Rounded.around(-shift))
        u, y, at = collapsed(point), collapsed(slope), collapsed(moved)
        low, high = self.conjugate().domain.box(size)
        own = (lower, upper) if shift is None else (np.full(size, -np.inf), np.full(size, np.inf))
        points = [np.clip(end, *own) for end in at.ends()]
        inside = [np.clip(end, low, high) for end in y.ends()]
        corners = [self.row_excess(*corner) for corner in product(points, inside)]
        gap = np.max([np.maximum(at_corner.value + at_corner.error, 0.0) for at_corner in corners], axis=0)
        centre = self.row_excess(np.clip(at.value, *own), np.clip(y.value, low, high)).value
        return Contact(
            sum_up(gap * (1 + 4 * UNIT)),
            float(np.sum(np.maximum(centre, 0.0))),
            convex_bounds(self.row_values, at.ends()),
            convex_bounds(self.row_conjugates, inside),
            side_of_interval(point, lower, upper, y.most),
            side_of_interval(slope, slopes.lower, slopes.upper, u.most),
        )


class CurvedConjugate(Conjugate[OfRows], SumOverCoordinates, Scaled, Generic[OfRows]):
    """The conjugate of such a loss."""

    @property
    @abstractmethod
    def domain(self) -> Interval:
        pass

    def restrict(self, keep: Indices) -> CurvedConjugate[OfRows]:
        return self.of.restrict(keep).conjugate()
