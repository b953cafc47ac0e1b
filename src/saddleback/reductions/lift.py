r"""The multiclass hinge becomes a loss that is a sum over single rows, with one more variable per row.

Since :math:`\max_k z_k = \min_t t + \sum_k \max(0, z_k - t)`, the loss of ``functions/multiclass.py`` is

.. math::

    s (\max_k (d_k + u_k) - u_z) = \min_t \sum_k \ell_k(u_k - t), \qquad
    \ell_k(v) = s \max(0, d_k + v) - s\, 1[k = z]\, v,

with :math:`d_k = 1[k \ne z]`. The dual points of both problems are the same. The methods for losses with kinks
(multipliers, the finish) need sums over single rows, and take a hundredth of the time of the block method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ..common.arrays import Vector, constant
from ..functions import Zero
from ..functions.calculus import BlockSum, parts_of
from ..functions.multiclass import MaximumLoss
from ..functions.piecewise import PiecewiseQuadratic
from ..functions.points import DensePoint, Point
from ..model.index_map import IndexMap
from ..model.model import Model
from ..operators import Compressed, Operator, Stacked
from ..operators.stacked import parts_of as blocks_of
from .contract import Reduction

BYTES = 12.0
"""Memory of an entry of a sparse matrix."""


@dataclass(frozen=True)
class Lifted(Reduction):
    """The problem of x and t. ``original`` is the problem before, and ``loss`` its loss."""

    model: Model
    original: Model
    loss: MaximumLoss

    def kept(self) -> IndexMap:
        m, n = self.model.A.shape
        return IndexMap((m, n), np.arange(m), np.arange(n))

    def restore_x(self, x: Point, u: Callable[[], Vector]) -> Point:
        return DensePoint(self._own_columns(x.vector()))

    def restore_u(self, x: Point, u: Vector) -> Vector:
        restored: Vector = u + self.loss.spread(x.vector()[self.original.A.shape[1] :])
        return restored

    def restore_y(self, y: Point) -> Point:
        return y

    def restore_ray(self, dx: Vector, dy: Vector) -> tuple[Vector, Vector]:
        return self._own_columns(dx), dy

    def reduce_x(self, x: Vector) -> Vector:
        """Return x with the best t, the largest entry of each row."""
        return np.concatenate([x, self.loss.maximum(self.loss.rows(self.original.A.matvec(x)))])

    def reduce_y(self, y: Vector) -> Vector:
        return y

    def _own_columns(self, vector: Vector) -> Vector:
        return vector[: self.original.A.shape[1]]


def lift_maximum(model: Model) -> Reduction | None:
    """Return the problem with one more variable per row; None if the loss is not a multiclass hinge."""
    traits, loss = model.A.traits, model.g
    in_memory = traits.device is None and traits.holders is None and traits.panels is None
    if not (isinstance(loss, MaximumLoss) and in_memory and traits.splits and traits.entries_known):
        return None
    if model.penalty_form is None or BYTES * traits.stored > traits.budget:
        return None
    count, size = loss.target.shape
    level = Compressed(sparse.csc_array(-sparse.kron(sparse.eye_array(count), np.ones((size, 1)))))
    operators = [*map(_flat, blocks_of(model.A)), level]
    functions = [*(part for part, _ in parts_of(model.f)), Zero().bind((count,))]
    weight, target = loss.spread(loss.weight), loss.target.ravel()
    kink = target - 1.0
    rows = PiecewiseQuadratic(kink, kink, constant(0.0, kink.size), -weight * target, weight * (1.0 - target))
    f = BlockSum(functions, [A.shape[1] for A in operators], [True] * len(operators))
    return Lifted(replace(model, f=f, A=Stacked(operators), g=rows.conjugate()), model, loss)


def _flat(A: Operator) -> Operator:
    """Return an operator on a flat variable."""
    return A if A.traits.tasks == 1 else Compressed(sparse.csc_array(A.entries(compressed=True)))
