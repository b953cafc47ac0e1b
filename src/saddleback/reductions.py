"""Problem -> smaller problem, and the way back.

An empty row of A has a constant argument 0, so its dual variable is a subgradient of the loss at 0; an empty column has
no influence on Ax, so its variable is a minimiser of its penalty. Both are set once and left out of the iterations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .functions._base import Indices, Restrictable, Vector
from .methods import Kept
from .problem import Model
from .result import Status


@dataclass(frozen=True)
class Reduction:
    """A smaller problem, and how its points become points of the original.

    ``status`` is set where what was left out already decides: an empty row that cannot be satisfied.
    """

    model: Model
    rows: Indices
    columns: Indices
    x: Vector
    y: Vector
    passes: float = 0.0
    status: Status | None = None

    def kept(self) -> Kept:
        """Return which rows and columns are left."""
        return Kept((self.y.size, self.x.size), self.rows, self.columns)

    def reduce_x(self, x: Vector) -> Vector:
        """Return the entries of x that are kept."""
        return x[self.columns]

    def reduce_y(self, y: Vector) -> Vector:
        """Return the entries of y that are kept."""
        return y[self.rows]

    def restore_x(self, x: Vector) -> Vector:
        """Return the point of the original problem."""
        full = self.x.copy()
        full[self.columns] = x
        return full

    def restore_y(self, y: Vector) -> Vector:
        """Return the dual point of the original problem."""
        full = self.y.copy()
        full[self.rows] = y
        return full

    def restore_z(self, z: Vector) -> Vector:
        """Return -A'y of the original problem: 0 in the columns that were left out, which are empty."""
        full = np.zeros_like(self.x)
        full[self.columns] = z
        return full

    def restore_u(self, u: Vector) -> Vector:
        """Return Ax of the original problem: 0 in the rows that were left out."""
        full = np.zeros_like(self.y)
        full[self.rows] = u
        return full


def drop_empty(model: Model) -> Reduction:
    """Return the problem without empty rows and columns."""
    m, n = model.A.shape
    rows, columns = np.arange(m), np.arange(n)
    x, y = np.zeros(n), np.zeros(m)
    if not model.A.entries_known:
        return Reduction(model, rows, columns, x, y)
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
        return Reduction(model, np.arange(m), np.arange(n), x, y, 0.5, status)
    return Reduction(replace(model, f=f, A=model.A.restrict(rows, columns), g=g), rows, columns, x, y, 0.5)
