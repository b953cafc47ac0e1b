"""Problem -> smaller problem, and the way back.

An empty row of A has a constant argument 0, so its dual variable is a subgradient of the loss at 0; an empty column has
no influence on Ax, so its variable is a minimiser of its penalty. Both are set once and left out of the iterations.

Rows of A that are equal, under losses that are equal up to a weight, see the same argument: one row with the sum of
their weights does for all of them, and each has its share of the dual variable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .functions._base import Indices, Restrictable, Vector
from .methods import Kept
from .problem import Model
from .result import Status

WORTHWHILE = 0.9
"""Share of the rows that may be left for their merging to pay."""


@dataclass(frozen=True)
class Reduction:
    """A smaller problem, and how its points become points of the original.

    Attributes
    ----------
    model : the smaller problem.
    rows, columns : of the original, that are still there.
    x, y : values of the variables that are not.
    place, share : the row of the smaller problem that each of ``rows`` became part of, and its part of y there.
    passes : what it took.
    status : set where what was left out already decides: an empty row that cannot be satisfied.
    """

    model: Model
    rows: Indices
    columns: Indices
    x: Vector
    y: Vector
    place: Indices
    share: Vector
    passes: float = 0.0
    status: Status | None = None

    def kept(self) -> Kept:
        """Return which rows and columns are left."""
        first = np.unique(self.place, return_index=True)[1]
        return Kept((self.y.size, self.x.size), self.rows[first], self.columns)

    def reduce_x(self, x: Vector) -> Vector:
        """Return the entries of x that are kept."""
        return x[self.columns]

    def reduce_y(self, y: Vector) -> Vector:
        """Return the dual point of the smaller problem."""
        return np.bincount(self.place, y[self.rows], self.model.A.shape[0]).astype(np.float64)

    # Where nothing was left out a point is returned as it is.

    def restore_x(self, x: Vector) -> Vector:
        """Return the point of the original problem."""
        return x if x.size == self.x.size else _among(self.x, self.columns, x)

    def restore_y(self, y: Vector) -> Vector:
        """Return the dual point of the original problem."""
        return y if y.size == self.y.size else _among(self.y, self.rows, self.share * y[self.place])

    def restore_z(self, z: Vector) -> Vector:
        """Return -A'y of the original problem: 0 in the columns that were left out, which are empty."""
        return z if z.size == self.x.size else _among(np.zeros_like(self.x), self.columns, z)

    def restore_ray(self, dx: Vector, dy: Vector) -> tuple[Vector, Vector]:
        """Return directions of the original problem: what was left out stays where it is."""
        x, y = np.zeros_like(self.x), np.zeros_like(self.y)
        x[self.columns] = dx
        y[self.rows] = self.share * dy[self.place]
        return x, y

    def restore_u(self, u: Vector) -> Vector:
        """Return Ax of the original problem: 0 in the rows that were left out."""
        return u if u.size == self.y.size else _among(np.zeros_like(self.y), self.rows, u[self.place])


def _among(others: Vector, places: Indices, values: Vector) -> Vector:
    full = others.copy()
    full[places] = values
    return full


def drop_empty(model: Model) -> Reduction:
    """Return the problem without empty rows and columns."""
    m, n = model.A.shape
    rows, columns = np.arange(m), np.arange(n)
    x, y = np.zeros(n), np.zeros(m)
    if not model.A.entries_known:
        return _left(model, rows, columns, x, y, 0.0)
    column_sums, row_sums = model.A.squares
    if not (np.all(column_sums) and np.all(row_sums)):
        column_sums, row_sums = model.A.sums(1)  # the squares of tiny entries are 0
    f, g = model.f, model.g
    status = None
    row_sums = np.repeat(row_sums.reshape(-1, model.A.tasks).sum(axis=1), model.A.tasks)
    if isinstance(g, Restrictable) and not np.all(row_sums):
        empty, rows = np.flatnonzero(row_sums == 0), np.flatnonzero(row_sums)
        y[empty] = g.conjugate_minimiser()[empty]
        if not np.all(np.isfinite(y)):
            status = Status.INFEASIBLE
        g = g.restrict(rows) if rows.size else g
    if isinstance(f, Restrictable) and not np.all(column_sums):
        # a column along which the penalty falls for ever stays: whether the rest is feasible decides what that means
        settled = (column_sums == 0) & np.isfinite(minimiser := f.minimiser())
        settled = np.repeat(settled.reshape(-1, model.A.tasks).all(axis=1), model.A.tasks)
        columns = np.flatnonzero(~settled)
        x[settled] = minimiser[settled]
        f = f.restrict(columns) if columns.size else f
    y = np.where(np.isfinite(y), y, 0.0)
    if status is not None or (rows.size == m and columns.size == n) or not (rows.size and columns.size):
        return _left(model, np.arange(m), np.arange(n), x, y, 0.5, status)
    return _left(replace(model, f=f, A=model.A.restrict(rows, columns), g=g), rows, columns, x, y, 0.5)


def _left(
    model: Model, rows: Indices, columns: Indices, x: Vector, y: Vector, passes: float, status: Status | None = None
) -> Reduction:
    return Reduction(model, rows, columns, x, y, np.arange(rows.size), np.ones(rows.size), passes, status)


def merge_rows(reduction: Reduction) -> Reduction:
    """Return the reduction followed by the merging of equal rows, where there are enough of them."""
    model = reduction.model
    if not (isinstance(model.g, Restrictable) and model.A.entries_known and model.A.tasks == 1):
        return reduction
    passes, generator = reduction.passes + 0.5, np.random.default_rng(0)
    # equal rows have equal products with any vector, and others hardly ever with two
    product = model.A.matvec(generator.standard_normal(model.A.shape[1]))
    if np.unique(product).size > WORTHWHILE * product.size:
        return replace(reduction, passes=passes)
    passes += 0.5
    other = model.A.matvec(generator.standard_normal(model.A.shape[1]))
    first, place = _distinct(np.column_stack([model.g.kind(), other, product]))
    if first.size > WORTHWHILE * place.size:
        return replace(reduction, passes=passes)
    weights = model.g.weights()
    total = np.bincount(place, weights)
    g = model.g.restrict(first).repeated(total / weights[first])
    smaller = replace(model, A=model.A.restrict(first, np.arange(model.A.shape[1])), g=g)
    return replace(reduction, model=smaller, place=place, share=weights / total[place], passes=passes)


def _distinct(rows: Vector) -> tuple[Indices, Indices]:
    """Return the first of all equal rows, in their order, and for each row which of these it equals."""
    order = np.lexsort(rows.T)
    ordered = rows[order]
    new = np.concatenate([[True], np.any(ordered[1:] != ordered[:-1], axis=1)])
    label = np.empty(order.size, dtype=np.int64)
    label[order] = np.cumsum(new) - 1
    first = order[new]
    rank = np.empty_like(first)
    rank[np.argsort(first)] = np.arange(first.size)
    return np.sort(first), rank[label]
