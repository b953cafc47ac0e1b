"""Removes empty rows and columns.

The argument of an empty row of A is always 0, so its dual variable is a subgradient of the loss at 0. An empty column
has no influence on Ax, so its variable is a minimiser of its penalty. Both are set once and left out of the iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..common.arrays import Indices, Vector
from ..functions.points import DensePoint, Point
from ..functions.traits import SumOverCoordinates
from ..model.index_map import IndexMap
from ..model.model import Model
from ..result import Status
from .contract import Reduction, Unchanged


@dataclass(frozen=True)
class WithoutEmpty(Reduction):
    """The problem of the rows and columns that are kept; x and y hold the values of the others.

    ``status`` is INFEASIBLE if an empty row cannot be satisfied.
    """

    model: Model
    rows: Indices
    columns: Indices
    x: Vector
    y: Vector
    passes: float = 0.0
    status: Status | None = None

    def kept(self) -> IndexMap:
        return IndexMap((self.y.size, self.x.size), self.rows, self.columns)

    def reduce_x(self, x: Vector) -> Vector:
        return x[self.columns]

    def reduce_y(self, y: Vector) -> Vector:
        return y[self.rows]

    # if nothing was removed, a point is returned unchanged

    def restore_x(self, x: Point, u: Callable[[], Vector]) -> Point:
        return x if self.columns.size == self.x.size else DensePoint(_among(self.x, self.columns, x.vector()))

    def restore_u(self, x: Point, u: Vector) -> Vector:
        return u if u.size == self.y.size else _among(np.zeros_like(self.y), self.rows, u)

    def restore_y(self, y: Point) -> Point:
        return y if self.rows.size == self.y.size else DensePoint(_among(self.y, self.rows, y.vector()))

    def restore_ray(self, dx: Vector, dy: Vector) -> tuple[Vector, Vector]:
        return _among(np.zeros_like(self.x), self.columns, dx), _among(np.zeros_like(self.y), self.rows, dy)


def _among(others: Vector, places: Indices, values: Vector) -> Vector:
    full = others.copy()
    full[places] = values
    return full


def drop_empty(model: Model) -> Reduction:
    """Return the problem without empty rows and columns."""
    if not model.A.traits.entries_known or model.A.traits.identity_scales is not None:
        return Unchanged(model)
    m, n = model.A.shape
    rows, columns = np.arange(m), np.arange(n)
    x, y = np.zeros(n), np.zeros(m)
    column_sums, row_sums = model.A.sums(2)
    if not (np.all(column_sums) and np.all(row_sums)):
        column_sums, row_sums = model.A.sums(1)  # the squares of tiny entries are 0
    f, g, constant = model.f, model.g, model.constant
    status = None
    row_sums = np.repeat(row_sums.reshape(-1, model.A.traits.tasks).sum(axis=1), model.A.traits.tasks)
    g_star = model.g_star
    if isinstance(g, SumOverCoordinates) and isinstance(g_star, SumOverCoordinates) and not np.all(row_sums):
        empty, rows = np.flatnonzero(row_sums == 0), np.flatnonzero(row_sums)
        y[empty] = g_star.minimiser()[empty]
        if not np.all(np.isfinite(y)):
            status = Status.INFEASIBLE
        if rows.size:
            constant += g.restrict(empty).finite_value(np.zeros(empty.size))
            g = g.restrict(rows)
    if isinstance(f, SumOverCoordinates) and not np.all(column_sums):
        # an unbounded column stays: the problem is unbounded only if the rest is feasible
        settled = (column_sums == 0) & np.isfinite(minimiser := f.minimiser())
        settled = np.repeat(settled.reshape(-1, model.A.traits.tasks).all(axis=1), model.A.traits.tasks)
        columns = np.flatnonzero(~settled)
        x[settled] = minimiser[settled]
        if columns.size:
            constant += f.restrict(np.flatnonzero(settled)).finite_value(minimiser[settled])
            f = f.restrict(columns)
    if rows.size == m and columns.size == n:
        return Unchanged(model, 0.5)
    y = np.where(np.isfinite(y), y, 0.0)
    if status is not None or not (rows.size and columns.size):
        return WithoutEmpty(model, np.arange(m), np.arange(n), x, y, 0.5, status)
    smaller = replace(model, f=f, A=model.A.restrict(rows, columns), g=g, constant=constant)
    return WithoutEmpty(smaller, rows, columns, x, y, 0.5)
