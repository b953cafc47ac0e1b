"""A matrix whose columns are spread over processes.

Vectors are the same on all processes, and so are the results of all operations here. Each process multiplies with its
columns, and the results are summed (A x) or concatenated (A'y). All processes have to call the same operation.
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
from ...operators.contract import Operator, Side, Weights, one_by_one
from ...operators.dense import Dense
from ...operators.gram import square
from ...operators.memory import bytes_in_memory
from ...operators.sparse import Compressed
from ...operators.stacked import hstack
from ...operators.traits import Holders, gathered
from .communicator import MPICommunicator

DENSE = 0.5
"""Columns with at least this share of stored entries are collected as a dense matrix."""


class Sharded(Operator):
    """A matrix of which this process holds some columns.

    Parameters
    ----------
    local : the columns of this process.
    places : for every process, the indices of its columns in the whole matrix, in the order in which it holds them.
    ranks : the processes.
    """

    def __init__(self, local: Operator, places: Sequence[Indices], ranks: MPICommunicator) -> None:
        self.local = local
        self.places = places
        self.ranks = ranks
        self.sizes = np.array([own.size for own in places])
        self.order = np.concatenate(places)
        self.shape = (local.shape[0], self.order.size)
        self.holder = np.empty(self.order.size, dtype=np.int64)
        self.holder[self.order] = np.repeat(np.arange(ranks.size), self.sizes)
        told = ranks.all((local.traits, local.first_adjoint is not None))
        self.traits = gathered([traits for traits, _ in told], Holders(self.holder, ranks.size, ranks.rank))
        if local.first_adjoint is not None and all(found for _, found in told):
            y, product = local.first_adjoint
            self.first_adjoint = y, self.together(product)

    @property
    def own(self) -> Indices:
        """Indices of the columns of this process in the whole matrix."""
        return self.places[self.ranks.rank]

    @cached_property
    def _local_place(self) -> Indices:
        """For every column of this process, its index in ``local``; other entries have no meaning."""
        place = np.zeros(self.order.size, dtype=np.int64)
        place[self.own] = np.arange(self.own.size)
        return place

    def together(self, part: Vector) -> Vector:
        """Return one value per column, given the values that each process has for its columns."""
        whole = np.empty(self.order.size)
        whole[self.order] = self.ranks.gather(part, self.sizes)
        return whole

    def here(self, columns: Columns) -> tuple[NDArray[np.bool_], Indices]:
        """Return which of the columns this process holds, and their indices in ``local``."""
        columns = one_by_one(columns)
        mine = self.holder[columns] == self.ranks.rank
        return mine, self._local_place[columns[mine]]

    def some_together(self, columns: Columns, part: Vector, width: int = 1) -> Vector:
        """Return ``width`` values for each of some columns, given those that each process has for its columns."""
        columns = one_by_one(columns)
        holder = self.holder[columns]
        whole = np.empty((columns.size, width))
        sizes = np.bincount(holder, minlength=self.ranks.size)
        whole[np.argsort(holder, kind="stable")] = self.ranks.gather(part, sizes * width).reshape(-1, width)
        return whole

    # --- products -------------------------------------------------------------------------------------------------

    def matvec(self, x: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        if columns is None:
            return self.ranks.sum(self.local.matvec(x[self.own], rows=rows))
        mine, local = self.here(columns)
        return self.ranks.sum(self.local.matvec(x[mine], local) if local.size else np.zeros(self.shape[0]))

    def rmatvec(self, y: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        if columns is None:
            return self.together(self.local.rmatvec(y, rows=rows))
        local = self.here(columns)[1]
        return self.some_together(columns, self.local.rmatvec(y, local) if local.size else np.empty(0)).ravel()

    def times(self, matrix: Any) -> Vector:
        return self.ranks.sum(np.ascontiguousarray(self.local.times(sparse.csr_array(matrix)[self.own])))

    # --- entries --------------------------------------------------------------------------------------------------

    def _sums(self, power: float, columns: Columns | None, weights: Weights | None) -> tuple[Vector, Vector]:
        if columns is not None:
            local = self.here(columns)[1]
            nobody = np.empty(0), np.zeros(self.shape[0])
            of_columns, of_rows = self.local.sums(power, local) if local.size else nobody
            return self.some_together(columns, of_columns).ravel(), self.ranks.sum(of_rows.copy())
        by_column, by_row = weights or (None, None)
        own = None if by_column is None else by_column[self.own]
        of_columns, of_rows = self.local.sums(power, weights=None if weights is None else (own, by_row))
        if weights is None or by_row is not None:
            of_columns = self.together(of_columns)
        if weights is None or by_column is not None:
            of_rows = (self.ranks.largest if power == np.inf else self.ranks.sum)(of_rows.copy())
        return of_columns, of_rows

    def entries(self, columns: Indices | None = None, compressed: bool = False) -> Any:
        columns = np.arange(self.shape[1]) if columns is None else columns
        local = self.here(columns)[1]
        if compressed:
            own = self.local.entries(local, compressed=True) if local.size else sparse.csc_matrix((self.shape[0], 0))
            everywhere = sparse.hstack(self.ranks.all(own), format="csc")
            by_rank = np.argsort(self.holder[columns], kind="stable")
            return sparse.csc_matrix(everywhere[:, np.argsort(by_rank)])
        part = self.local.entries(local).T.ravel() if local.size else np.empty(0)
        return self.some_together(columns, part, self.shape[0]).T

    def gram(self, weight: Vector | None, columns: Indices | None = None, side: Side = "columns") -> Any:
        if weight is None and side == "rows":
            parts = self.ranks.all(self.local.gram(None, side="rows"))
            return sum(parts) if all(part.ndim == 1 for part in parts) else sum(square(part) for part in parts)
        if side == "columns":
            return super().gram(weight, columns)
        assert weight is not None
        return self.ranks.sum(np.ascontiguousarray(self.local.gram(weight[self.own], side="rows").T)).T

    # --- parts ----------------------------------------------------------------------------------------------------

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        place = np.full(self.order.size, -1)
        place[columns] = np.arange(columns.size)
        kept = [place[own] for own in self.places]
        local = np.flatnonzero(kept[self.ranks.rank] >= 0)
        part = self.local.restrict(rows, local) if local.size else nothing(rows.size)
        return Sharded(part, [own[own >= 0] for own in kept], self.ranks)

    def pack(self, columns: Indices, single: bool = False, beside: float = 0.0) -> Operator:
        holder = self.holder[columns]
        places = [np.flatnonzero(holder == rank) for rank in range(self.ranks.size)]
        local = self._local_place[columns[places[self.ranks.rank]]]
        part = self.local.pack(local, single, beside) if local.size else nothing(self.shape[0])
        return Sharded(part, places, self.ranks)

    def ordered(self, by: Side) -> Operator:
        other = copy(self)  # keeps all cached sums, since not all processes may take part in computing them again
        other.local = self.local.ordered(by)
        return other


@hstack.register
def _(first: Sharded, second: Operator) -> Operator:
    assert isinstance(second, Sharded)
    pairs = zip(first.places, second.places, strict=True)
    places = [np.concatenate([own, added + first.shape[1]]) for own, added in pairs]
    return Sharded(hstack(first.local, second.local), places, first.ranks)


@bytes_in_memory.register
def _(A: Sharded) -> float:
    return bytes_in_memory(A.local)


def collected(A: Operator) -> Operator:
    """Return an operator with the same entries, all of them in this process."""
    if A.traits.holders is None:
        return A
    m, n = A.shape
    return Compressed(A.entries(compressed=True)) if A.traits.stored < DENSE * m * n else Dense(A.entries())


def nothing(rows: int) -> Operator:
    """Return an operator without columns."""
    return Compressed(sparse.csc_array((rows, 0), dtype=np.float64))
