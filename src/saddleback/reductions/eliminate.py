r"""A quadratic block under an identity becomes part of the loss.

With :math:`f_1(x_1) = \langle c, x_1 \rangle + \tfrac12 \sum q x_1^2` and :math:`A_1 = s I`, the minimum over
:math:`x_1` of :math:`f_1(x_1) + g(s x_1 + v)` is a function of v alone, the infimal convolution whose conjugate is

.. math::

    g^*(y) + f_1^*(-s y) = g^*(y) + \langle s c / q, y \rangle + \tfrac12 \sum (s^2 / q)\, y^2 + \text{constant},

so that an equality becomes a squared loss, an absolute loss Huber's, and in general the loss becomes smooth. The dual
variable stays what it was, and :math:`x_1 = -(s y + c) / q` at the gradient y of the new loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..functions._base import Quadratic, Vector
from ..functions.calculus import BlockSum
from ..functions.coordinate import compact
from ..methods import Kept
from ..operators import Stacked
from ..problem import Model
from ._base import Reduction


@dataclass(frozen=True)
class Elimination(Reduction):
    """The problem without one stretch of x, whose values are known where the others are."""

    model: Model
    stretch: slice
    scale: float
    quadratic: Quadratic
    size: int

    def kept(self) -> Kept:
        columns = np.delete(np.arange(self.size), self.stretch)
        return Kept((self.model.A.shape[0], self.size), np.arange(self.model.A.shape[0]), columns)

    def reduce_x(self, x: Vector) -> Vector:
        return np.delete(x, self.stretch)

    def reduce_y(self, y: Vector) -> Vector:
        return y

    def restore_x(self, x: Vector, u: Vector) -> Vector:
        return np.insert(x, self.stretch.start, self._eliminated(u))

    def restore_u(self, u: Vector) -> Vector:
        return u + self.scale * self._eliminated(u)

    def restore_y(self, y: Vector) -> Vector:
        return y

    def restore_z(self, z: Vector, y: Vector) -> Vector:
        return np.insert(z, self.stretch.start, -self.scale * y)

    def restore_ray(self, dx: Vector, dy: Vector) -> tuple[Vector, Vector]:
        return np.insert(dx, self.stretch.start, np.zeros(self.stretch.stop - self.stretch.start)), dy

    def _eliminated(self, u: Vector) -> Vector:
        linear, curvature = (compact(parameter) for parameter in self.quadratic)
        slope = self.model.g.subgradient(u)
        slope *= -self.scale
        slope -= linear
        return np.divide(slope, curvature, out=slope)


def eliminate_quadratic(model: Model) -> Reduction | None:
    """Return the problem without its quadratic blocks under identities; None where it has none, or nothing else."""
    f, A = model.f, model.A
    if not (isinstance(f, BlockSum) and isinstance(A, Stacked) and len(f.parts) > 1):
        return None
    for j, (part, operator) in enumerate(zip(f.parts, A.parts, strict=True)):
        quadratic, scales = part.as_quadratic(), operator.identity_scales
        if quadratic is None or scales is None:
            continue
        scale = scales[0]
        linear, curvature = (compact(parameter) for parameter in quadratic)
        g = model.g.with_conjugate_plus(
            np.broadcast_to(scale * linear / curvature, quadratic.linear.shape),
            np.broadcast_to(scale**2 / curvature, quadratic.linear.shape),
        )
        if g is None:
            return None
        smaller = replace(model, f=f.without(j), A=A.without(j), g=g)
        found = Elimination(smaller, f.stretches[j], scale, quadratic, A.shape[1])
        further = eliminate_quadratic(smaller)
        return found if further is None else found.then(further)
    return None
