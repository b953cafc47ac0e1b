"""What losses that are sums over rows share if they do not belong to the family in ``piecewise.py``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

import numpy as np

from ..common.arrays import Blocks, Indices, ToDevice, Vector
from .traits import Kinked, Lipschitz, Movable, Scaled, Smooth, SumOverRows

Own = TypeVar("Own", bound="CurvedRows")


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
