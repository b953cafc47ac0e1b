r"""A loss of x itself becomes part of the penalty.

With an identity among the rows of A, :math:`f(x) + g_1(x) + g_2(A_2 x)` is a problem with the penalty
:math:`f + g_1` and fewer rows. This is so for signals and images: the loss compares x with its data point by point, and
A_2 holds differences. The smaller problem has penalised columns, so that its dual has no equations.

A squared loss is added to any penalty of the family in ``functions/piecewise.py``. Without another penalty, a loss with
one kink at b, or an interval, is a member of the family as a function of x - b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..common.arrays import Vector, constant, map_constants
from ..functions.normal_form import PiecewiseParameters
from ..functions.piecewise import ConjugatePiecewise, PiecewiseQuadratic
from ..functions.points import DensePoint, Point
from ..functions.row_sum import without_rows
from ..model.index_map import IndexMap
from ..model.model import Model
from ..operators import Above, Compressed, Operator
from .contract import Reduction


@dataclass(frozen=True)
class Absorbed(Reduction):
    """The problem of the other rows, with x - shift in the place of x.

    ``rows`` are the rows of the absorbed loss, and ``loss`` is the conjugate of the loss.
    """

    model: Model
    rows: slice
    shift: Vector
    loss: PiecewiseQuadratic

    def kept(self) -> IndexMap:
        others, n = self.model.A.shape
        m = others + n
        return IndexMap((m, n), np.delete(np.arange(m), self.rows), np.arange(n))

    def reduce_x(self, x: Vector) -> Vector:
        return x - self.shift

    def reduce_y(self, y: Vector) -> Vector:
        return np.delete(y, self.rows)

    def restore_x(self, x: Point, u: Callable[[], Vector]) -> Point:
        return DensePoint(x.vector() + self.shift)

    def restore_u(self, x: Point, u: Vector) -> Vector:
        own = x.vector() + self.shift
        return self._with_own(own, u + self.model.A.matvec(np.ascontiguousarray(self.shift)))

    def restore_y(self, y: Point) -> Point:
        """Return y with the slope of the absorbed loss at the x that is best for -A_2'y."""
        slope = -self.model.A.rmatvec(y.vector())
        assert isinstance(self.model.f, PiecewiseQuadratic)
        if np.all(self.loss.quadratic > 0):
            slope = (self.model.f.maximiser(slope) - self.loss.left) / self.loss.quadratic
        return DensePoint(self._with_own(slope, y.vector()))

    def restore_ray(self, dx: Vector, dy: Vector) -> tuple[Vector, Vector]:
        """Return the ray with the absorbed rows; a squared loss is finite everywhere and contradicts nothing."""
        own = np.where(self.loss.quadratic > 0, 0.0, -self.model.A.rmatvec(dy))
        return dx, self._with_own(own, dy)

    def _with_own(self, own: Vector, others: Vector) -> Vector:
        """Return the vector of all rows."""
        return np.concatenate([others[: self.rows.start], own, others[self.rows.start :]])


def absorb_identity(model: Model) -> Reduction | None:
    """Return the problem with a loss of x itself in its penalty; None if there is no such loss."""
    A, f, g = model.A, model.f, model.g
    if not (isinstance(A, Above) and isinstance(f, PiecewiseQuadratic) and len(A.rows) > 1):
        return None
    part = next((i for i, row in enumerate(A.rows) if row is not None and _is_identity(row)), None)
    if part is None or all(row is None for i, row in enumerate(A.rows) if i != part):
        return None
    rows = A.stretches[part]
    own, others = without_rows(g, rows)
    if not isinstance(own, ConjugatePiecewise) or others is None:
        return None
    found = _with_curvature(f, own.of) or _around_kinks(f, own.of)
    if found is None:
        return None
    penalty, shift, constant = found
    smaller = A.without(part)
    if np.any(shift):
        if not isinstance(others, ConjugatePiecewise):
            return None
        moved = -smaller.matvec(shift)
        nothing = PiecewiseParameters.zero(moved.size)
        others = others.of.plus_member(PiecewiseQuadratic(*nothing._replace(left=moved, right=moved))).conjugate()
    reduced = replace(model, f=penalty, A=smaller, g=others, constant=model.constant + constant)
    return Absorbed(reduced, rows, shift, own.of)


def _is_identity(A: Operator) -> bool:
    """Return whether a sparse matrix is the identity."""
    if not isinstance(A, Compressed) or A.shape[0] != A.shape[1] or A.traits.stored != A.shape[0]:
        return False
    every = np.arange(A.shape[0])
    matrix = A.matrix
    return bool(
        np.all(matrix.data == 1) and np.array_equal(matrix.indices, every) and np.all(np.diff(matrix.indptr) == 1)
    )


Absorption = tuple[PiecewiseQuadratic, Vector, float]


def _with_curvature(f: PiecewiseQuadratic, loss: PiecewiseQuadratic) -> Absorption | None:
    """Return f plus a squared loss, no shift, and a constant; None for other losses."""
    if not loss._parabola:
        return None
    curvature = map_constants(lambda quadratic: 1.0 / quadratic, loss.quadratic)
    nothing = PiecewiseParameters.zero(curvature.size)
    linear = -loss.left * curvature
    piece = PiecewiseQuadratic(*nothing._replace(left=linear, right=linear, quadratic=curvature))
    return f.plus_member(piece), constant(0.0, curvature.size), 0.5 * float(np.sum(loss.left**2 * curvature))


def _around_kinks(f: PiecewiseQuadratic, loss: PiecewiseQuadratic) -> Absorption | None:
    """Return a loss with one kink per row, or an interval, as a function of x - shift; None for other losses."""
    if f._has_kink or f._has_quadratic or np.any(f.left) or not f.domain.everything:
        return None
    left, right, quadratic, lower, upper = loss.parameters()
    unbounded = np.isinf(lower) & np.isinf(upper)
    kink = (left == right) & (quadratic == 0)
    if not np.all(kink | ((quadratic == 0) & unbounded) | ((left == right) & unbounded)):
        return None
    curvature = np.divide(1.0, quadratic, out=np.zeros(left.size), where=quadratic > 0)
    straight = quadratic == 0
    penalty = PiecewiseQuadratic(
        np.where(kink & np.isfinite(lower), lower, 0.0),
        np.where(kink & np.isfinite(upper), upper, 0.0),
        curvature,
        np.where(straight & np.isneginf(lower), 0.0, -np.inf),
        np.where(straight & np.isposinf(upper), right - left, np.inf),
    )
    return penalty, left, 0.0
