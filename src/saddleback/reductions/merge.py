"""Merges equal rows.

Equal rows of A whose losses are equal up to a weight have the same argument. One row with the sum of their weights
replaces all of them, and each gets its share of the dual variable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..common.arrays import Indices, Vector
from ..functions.points import DensePoint, Point
from ..functions.traits import SumOverRows
from ..model.index_map import IndexMap
from ..model.model import Model
from ..result import Status
from .contract import Reduction, Unchanged

WORTHWHILE = 0.9
"""Rows are merged if at most this share of them is left."""


@dataclass(frozen=True)
class Merged(Reduction):
    """The problem with one row in place of all equal rows.

    Attributes
    ----------
    first : for each row of the smaller problem, the first of the rows that it replaces.
    place, share : for each original row, its row in the smaller problem, and its share of y there.
    """

    model: Model
    first: Indices
    place: Indices
    share: Vector
    passes: float = 0.0
    status: Status | None = None

    def kept(self) -> IndexMap:
        columns = self.model.A.shape[1]
        return IndexMap((self.place.size, columns), self.first, np.arange(columns))

    def reduce_x(self, x: Vector) -> Vector:
        return x

    def reduce_y(self, y: Vector) -> Vector:
        return np.bincount(self.place, y, self.model.A.shape[0]).astype(np.float64)

    def restore_x(self, x: Point, u: Callable[[], Vector]) -> Point:
        return x

    def restore_u(self, x: Point, u: Vector) -> Vector:
        return u[self.place]

    def restore_y(self, y: Point) -> Point:
        return DensePoint(self._shared(y.vector()))

    def restore_ray(self, dx: Vector, dy: Vector) -> tuple[Vector, Vector]:
        return dx, self._shared(dy)

    def _shared(self, y: Vector) -> Vector:
        return self.share * y[self.place]


def merge_rows(model: Model) -> Reduction:
    """Return the problem with equal rows merged, if there are enough of them."""
    if not (isinstance(model.g, SumOverRows) and model.A.traits.entries_known and model.A.traits.tasks == 1):
        return Unchanged(model)
    generator, lengths = np.random.default_rng(0), np.sqrt(model.A.sums(2)[0])
    units = np.divide(1.0, lengths, out=np.ones_like(lengths), where=lengths > 0)
    # equal rows have equal products with any vector, and other rows almost never with two random ones
    product = model.A.matvec(units * generator.standard_normal(units.size))
    if np.unique(product).size > WORTHWHILE * product.size:
        return Unchanged(model, 0.5)
    other = model.A.matvec(units * generator.standard_normal(units.size))
    first, place = _distinct(np.column_stack([model.g.row_signature(), other, product]))
    if first.size > WORTHWHILE * place.size:
        return Unchanged(model, 1.0)
    weights = model.g.row_weights()
    total = np.bincount(place, weights)
    g = model.g.restrict(first).with_row_weights(total / weights[first])
    smaller = replace(model, A=model.A.restrict(first, np.arange(model.A.shape[1])), g=g)
    return Merged(smaller, first, place, weights / total[place], 1.0)


def _distinct(rows: Vector) -> tuple[Indices, Indices]:
    """Return the first row of each set of equal rows, in order, and for each row the index of its set."""
    order = np.lexsort(rows.T)
    ordered = rows[order]
    new = np.concatenate([[True], np.any(ordered[1:] != ordered[:-1], axis=1)])
    label = np.empty(order.size, dtype=np.int64)
    label[order] = np.cumsum(new) - 1
    first = order[new]
    rank = np.empty_like(first)
    rank[np.argsort(first)] = np.arange(first.size)
    return np.sort(first), rank[label]
