r"""A block under an identity becomes part of the loss.

With :math:`A_1 = s I` the minimum over :math:`x_1` of :math:`f_1(x_1) + g(s x_1 + v)` is a function of v alone, the
infimal convolution whose conjugate is :math:`g^*(y) + f_1^*(-s y)`. If both of these belong to the family of
``functions/piecewise.py``, so does their sum, and the dual variable stays the same. Two kinds of blocks are eliminated,
after which the loss is smooth.

A quadratic block, :math:`f_1(x_1) = \langle c, x_1 \rangle + \tfrac12 \sum q x_1^2`:
    an equality becomes a squared loss, an absolute loss Huber's. At the gradient y of the new loss
    :math:`x_1 = -(s y + c) / q`.

A kink or bound at 0 (L1, non-negative), under a squared loss :math:`\tfrac12 \sum w (u - b)^2`:
    this becomes Huber's loss. :math:`x_1` is the prox of :math:`f_1` at :math:`(b - v) / s`.

Of the three blocks of robust PCA one remains, of the same size as the data.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..common.arrays import Vector, is_one_value, map_constants, squeeze_constant
from ..functions.calculus import BlockSum, parts_of
from ..functions.contract import Convex
from ..functions.piecewise import ConjugatePiecewise, PiecewiseQuadratic
from ..functions.points import BlockPoint, Point
from ..model.index_map import IndexMap
from ..model.model import Model
from ..operators import Stacked
from .contract import Reduction


@dataclass(frozen=True)
class Elimination(Reduction):
    """The problem without one block of x, which is a function of the others.

    ``block`` is its index, ``penalty`` its penalty, ``dual`` the conjugate of the penalty and ``before`` the conjugate
    of the original loss.
    """

    eliminates = True
    model: Model
    block: int
    segment: slice
    scale: float
    size: int
    penalty: Convex
    dual: PiecewiseQuadratic
    before: PiecewiseQuadratic

    @staticmethod
    @abstractmethod
    def applies(dual: PiecewiseQuadratic, before: PiecewiseQuadratic) -> bool:
        """Return whether a block is of this kind."""

    @abstractmethod
    def _eliminated(self, u: Vector) -> Vector:
        """Return the eliminated block, given Ax of the others."""

    def kept(self) -> IndexMap:
        columns = np.delete(np.arange(self.size), self.segment)
        return IndexMap((self.model.A.shape[0], self.size), np.arange(self.model.A.shape[0]), columns)

    def reduce_x(self, x: Vector) -> Vector:
        return np.concatenate([x[: self.segment.start], x[self.segment.stop :]])

    def reduce_y(self, y: Vector) -> Vector:
        return y

    def restore_x(self, x: Point, u: Callable[[], Vector]) -> Point:
        stretches = [x.segment(own) for _, own in parts_of(self.model.f)]
        stretches.insert(self.block, self._eliminated(u()))
        return BlockPoint(stretches)

    def restore_u(self, x: Point, u: Vector) -> Vector:
        own = self._eliminated(u)
        own *= self.scale
        own += u
        return own

    def restore_y(self, y: Point) -> Point:
        return y

    def restore_ray(self, dx: Vector, dy: Vector) -> tuple[Vector, Vector]:
        nothing = np.zeros(self.segment.stop - self.segment.start)
        return np.concatenate([dx[: self.segment.start], nothing, dx[self.segment.start :]]), dy


class QuadraticEliminated(Elimination):
    """The elimination of a block with a quadratic penalty."""

    @staticmethod
    def applies(dual: PiecewiseQuadratic, before: PiecewiseQuadratic) -> bool:
        return bool(np.any(dual.quadratic[:1]))  # all coordinates are quadratic or none is

    def _eliminated(self, u: Vector) -> Vector:
        slope = self.model.g.subgradient(u)
        slope *= -self.scale
        slope *= squeeze_constant(self.dual.quadratic)
        slope += squeeze_constant(self.dual.left)
        return slope


class KinkEliminated(Elimination):
    """The elimination of a block with a kink or a bound at 0, under a squared loss."""

    @staticmethod
    def applies(dual: PiecewiseQuadratic, before: PiecewiseQuadratic) -> bool:
        return before.is_paraboloid() and bool(
            np.all(squeeze_constant(dual.lower) <= 0) and np.all(squeeze_constant(dual.upper) >= 0)
        )

    def _eliminated(self, u: Vector) -> Vector:
        rest = self.before.left - u
        if self.scale != 1.0:
            rest /= self.scale
        step = map_constants(lambda q: q / self.scale**2, self.before.quadratic)
        if not is_one_value(self.before.upper):  # a row of weight 0 leaves the block at 0
            rest[self.before.upper == 0] = 0.0
        return self.penalty.prox(rest, step)


def eliminate_identities(model: Model) -> Reduction | None:
    """Return the problem without the blocks that can become part of its loss; None if there are none or no others.

    Quadratic blocks are eliminated first, since this may give a squared loss.
    """
    f, A, before = model.f, model.A, model.g_star
    if not (isinstance(f, BlockSum) and isinstance(A, Stacked) and len(f.functions) > 1):
        return None
    if not isinstance(before, PiecewiseQuadratic):
        return None
    duals = [_conjugate_member(part) for part in f.functions]
    for kind in (QuadraticEliminated, KinkEliminated):
        for j, (dual, operator) in enumerate(zip(duals, A.parts, strict=True)):
            if dual is None or operator.traits.identity_scales is None or not kind.applies(dual, before):
                continue
            scale = operator.traits.identity_scales[0]
            g = before.plus_member(dual.of_multiple(-scale)).conjugate()
            least = (
                -f.functions[j].conjugate().value(np.zeros(A.shape[0])) if np.any(squeeze_constant(dual.left)) else 0.0
            )
            smaller = replace(model, f=f.without(j), A=A.without(j), g=g, constant=model.constant + least)
            found = kind(smaller, j, f.stretches[j], scale, A.shape[1], f.functions[j], dual, before)
            further = eliminate_identities(smaller)
            return found if further is None else found.then(further)
    return None


def _conjugate_member(function: Convex) -> PiecewiseQuadratic | None:
    """Return the conjugate, up to a constant, if it belongs to the family."""
    match function:
        case PiecewiseQuadratic():
            return function.conjugate_member()
        case ConjugatePiecewise():
            return function.of
        case _:
            return None
