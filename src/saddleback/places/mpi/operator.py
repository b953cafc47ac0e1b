"""A matrix whose columns are spread over processes.

Vectors are the same on all processes, and so is what every operation here returns; each multiplies with its own columns
and the results are added up (A x) or put together (A'y). All processes have to ask for the same at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...common.arrays import Columns, Indices, Vector
from ...common.cached import cached_property
from ...operators.contract import Operator, one_by_one
from ...operators.dense import Dense
from ...operators.gram import square
from ...operators.sparse import Compressed
from ...operators.traits import Holders, gathered
from .communicator import Ranks

DENSE = 0.5
"""Share of entries that are stored from which on columns are collected as a dense matrix."""


class Sharded(Operator):
    """Columns of which this process has some.

    Parameters
    ----------
    local : the columns of this process.
    places : for every process, where its columns stand in the whole, in the order in which it holds them.
    ranks : the processes.
    """

    def __init__(self, local: Operator, places: Sequence[Indices], ranks: Ranks) -> None:
        self.local = local
        self.places = places
        self.ranks = ranks
        self.sizes = np.array([own.size for own in places])
        self.order = np.concatenate(places)
        self.shape = (local.shape[0], self.order.size)
        self.holder = np.empty(self.order.size, dtype=np.int64)
        self.holder[self.order] = np.repeat(np.arange(ranks.size), self.sizes)
        told = ranks.all((local.traits, local.surveyed is not None))
        self.traits = gathered([traits for traits, _ in told], Holders(self.holder, ranks.size, ranks.rank))
        if local.surveyed is not None and all(surveyed for _, surveyed in told):
            y, product = local.surveyed
            self.surveyed = y, self.together(product)

    @property
    def own(self) -> Indices:
        """Where the columns of this process stand in the whole."""
        return self.places[self.ranks.rank]

    @cached_property
    def _local_place(self) -> Indices:
        """For every column of this process, its place there; what stands elsewhere means nothing."""
        place = np.zeros(self.order.size, dtype=np.int64)
        place[self.own] = np.arange(self.own.size)
        return place

    def together(self, part: Vector) -> Vector:
        """Return one value for every column, from those that each process has for its own."""
        whole = np.empty(self.order.size)
        whole[self.order] = self.ranks.gather(part, self.sizes)
        return whole

    def here(self, columns: Columns) -> tuple[NDArray[np.bool_], Indices]:
        """Return which of the columns are held here, and where."""
        columns = one_by_one(columns)
        mine = self.holder[columns] == self.ranks.rank
        return mine, self._local_place[columns[mine]]

    def some_together(self, columns: Columns, part: Vector, width: int = 1) -> Vector:
        """Return ``width`` values for each of some columns, from those that each process has for its own."""
        columns = one_by_one(columns)
        holder = self.holder[columns]
        whole = np.empty((columns.size, width))
        sizes = np.bincount(holder, minlength=self.ranks.size)
        whole[np.argsort(holder, kind="stable")] = self.ranks.gather(part, sizes * width).reshape(-1, width)
        return whole

    # --- products -------------------------------------------------------------------------------------------------

    def matvec(self, x: Vector) -> Vector:
        return self.ranks.sum(self.local.matvec(x[self.own]))

    def rmatvec(self, y: Vector) -> Vector:
        return self.together(self.local.rmatvec(y))

    def columns_matvec(self, columns: Columns, x: Vector) -> Vector:
        mine, local = self.here(columns)
        return self.ranks.sum(self.local.columns_matvec(local, x[mine]) if local.size else np.zeros(self.shape[0]))

    def columns_rmatvec(self, columns: Columns, y: Vector) -> Vector:
        local = self.here(columns)[1]
        part = self.local.columns_rmatvec(local, y) if local.size else np.empty(0)
        return self.some_together(columns, part).ravel()

    def rows_matvec(self, rows: Indices, x: Vector) -> Vector:
        return self.ranks.sum(self.local.rows_matvec(rows, x[self.own]))

    def rows_rmatvec(self, rows: Indices, y: Vector) -> Vector:
        return self.together(self.local.rows_rmatvec(rows, y))

    def times(self, matrix: Any) -> Vector:
        return self.ranks.sum(np.ascontiguousarray(self.local.times(sparse.csr_array(matrix)[self.own])))

    # --- entries --------------------------------------------------------------------------------------------------

    @cached_property
    def squares(self) -> tuple[Vector, Vector]:
        columns, rows = self.local.squares
        return self.together(columns), self.ranks.sum(rows.copy())

    def sums(self, power: int) -> tuple[Vector, Vector]:
        columns, rows = self.local.sums(power)
        return self.together(columns), self.ranks.sum(rows.copy())

    def squares_rmatvec(self, y: Vector) -> Vector:
        return self.together(self.local.squares_rmatvec(y))

    def largest(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        of_columns, of_rows = self.local.largest(columns[self.own], rows)
        return self.together(of_columns), self.ranks.largest(of_rows.copy())

    def absolute_products(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        of_columns, of_rows = self.local.absolute_products(columns[self.own], rows)
        return self.together(of_columns), self.ranks.sum(of_rows.copy())

    def block_row_sums(self, columns: Columns) -> Vector:
        local = self.here(columns)[1]
        return self.ranks.sum(self.local.block_row_sums(local) if local.size else np.zeros(self.shape[0]))

    def dense_columns(self, columns: Indices) -> Vector:
        local = self.here(columns)[1]
        part = self.local.dense_columns(local).T.ravel() if local.size else np.empty(0)
        return self.some_together(columns, part, self.shape[0]).T

    def compressed(self) -> Any:
        everywhere = sparse.hstack(self.ranks.all(self.local.compressed()), format="csc")
        return sparse.csc_matrix(everywhere[:, np.argsort(self.order)])

    def outer(self, weight: Vector) -> Vector:
        return self.ranks.sum(np.ascontiguousarray(self.local.outer(weight[self.own]).T)).T

    def normal(self) -> Any:
        parts = self.ranks.all(self.local.normal())
        return sum(parts) if all(part.ndim == 1 for part in parts) else sum(square(part) for part in parts)

    # --- parts ----------------------------------------------------------------------------------------------------

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        place = np.full(self.order.size, -1)
        place[columns] = np.arange(columns.size)
        kept = [place[own] for own in self.places]
        local = np.flatnonzero(kept[self.ranks.rank] >= 0)
        part = self.local.restrict(rows, local) if local.size else nothing(rows.size)
        return Sharded(part, [own[own >= 0] for own in kept], self.ranks)

    def pack(self, columns: Indices, single: bool) -> Operator:
        holder = self.holder[columns]
        places = [np.flatnonzero(holder == rank) for rank in range(self.ranks.size)]
        local = self._local_place[columns[places[self.ranks.rank]]]
        part = self.local.pack(local, single) if local.size else nothing(self.shape[0])
        return Sharded(part, places, self.ranks)

    @property
    def in_memory(self) -> float:
        return self.local.in_memory

    def leaving(self, size: float) -> Operator:
        other = copy(self)
        other.local = self.local.leaving(size)
        return other

    def beside(self, other: Operator) -> Operator:
        assert isinstance(other, Sharded)
        places = [
            np.concatenate([own, added + self.shape[1]]) for own, added in zip(self.places, other.places, strict=True)
        ]
        return Sharded(self.local.beside(other.local), places, self.ranks)

    def collected(self) -> Operator:
        m, n = self.shape
        if self.traits.stored < DENSE * m * n:
            return Compressed(self.compressed())
        return Dense(self.dense_columns(np.arange(n)))

    def rowwise(self) -> Operator:
        return self._around(self.local.rowwise())

    def columnar(self) -> Operator:
        return self._around(self.local.columnar())

    def _around(self, local: Operator) -> Operator:
        """Return the same with the columns of this process held in another way, and all that is known about it.

        Nothing is asked of the others, of which some may have nothing to change.
        """
        other = copy(self)
        other.local = local
        return other


def nothing(rows: int) -> Operator:
    """Return an operator without columns."""
    return Compressed(sparse.csc_array((rows, 0), dtype=np.float64))
