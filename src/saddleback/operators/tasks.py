"""A matrix variable under a matrix A."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..common.arrays import Columns, Indices, Vector
from ..common.rounded import Rounded
from .contract import Operator, Side, Weights, one_by_one
from .dense import Dense
from .gram import square
from .memory import bytes_in_memory
from .traits import repeated


class Tasks(Operator):
    """A acting on every column of a matrix variable: the Kronecker product of A with an identity."""

    def __init__(self, single: Operator, tasks: int) -> None:
        self.single = single
        self.tasks = tasks
        self.shape = (single.shape[0] * tasks, single.shape[1] * tasks)
        self.traits = repeated(single.traits, tasks)

    def _split(self, flat: Vector) -> list[Vector]:
        return [np.ascontiguousarray(column) for column in flat.reshape(-1, self.tasks).T]

    def _of_tasks(self, indices: Indices) -> Iterator[tuple[int, Any, Indices]]:
        """Yield, for every task, which of some rows or columns belong to it, and their indices in the matrix."""
        for task in range(self.tasks):
            mine = indices % self.tasks == task
            yield task, mine, indices[mine] // self.tasks

    def matvec(self, x: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        if rows is not None:
            return self._some(self.single.matvec, x, rows, "rows")
        if columns is None:
            return self.single.matmat(x.reshape(-1, self.tasks)).ravel()
        own_rows, inside = self._places(one_by_one(columns))
        if inside is None:
            return self.single.matmat(x.reshape(-1, self.tasks), own_rows).ravel()
        result = np.zeros((self.single.shape[0], self.tasks))
        for task, mine, own in self._of_tasks(one_by_one(columns)):
            if own.size:
                result[:, task] = self.single.matvec(x[mine], own)
        return result.ravel()

    def rmatvec(self, y: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        if columns is not None:
            own_rows, inside = self._places(one_by_one(columns))
            if inside is None:
                return self.single.rmatmat(y.reshape(-1, self.tasks), own_rows).ravel()
            return self._some(self.single.rmatvec, y, one_by_one(columns), "columns")
        if rows is None:
            return self.single.rmatmat(y.reshape(-1, self.tasks)).ravel()
        parts = [self.single.rmatvec(y[mine], rows=own) for _, mine, own in self._of_tasks(rows)]
        return np.stack(parts, axis=1).ravel()

    def _some(self, product: Any, vector: Vector, indices: Indices, kind: Side) -> Vector:
        """Return the products of a vector with some rows, or columns, of each task."""
        parts, result = self._split(vector), np.empty(indices.size)
        for task, mine, own in self._of_tasks(indices):
            if own.size:
                result[mine] = product(parts[task], **{kind: own})
        return result

    def matvec_rounded(self, x: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        return self._rounded(self.single.matvec_rounded, x, radius, precise)

    def rmatvec_rounded(self, y: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        return self._rounded(self.single.rmatvec_rounded, y, radius, precise)

    def _rounded(self, product: Any, vector: Vector, radius: Vector | None, precise: bool) -> Rounded:
        """Return the products of each task with bounds on their rounding."""
        radii = [None] * self.tasks if radius is None else self._split(radius)
        parts = [product(own, within, precise) for own, within in zip(self._split(vector), radii, strict=True)]
        return Rounded(*(np.stack(each, axis=1).ravel() for each in zip(*parts, strict=True)))

    def _sums(self, power: float, columns: Columns | None, weights: Weights | None) -> tuple[Vector, Vector]:
        if columns is not None:
            return self._sums_of_columns(power, one_by_one(columns))
        if weights is None:
            of_columns, of_rows = self.single.sums(power)
            return np.repeat(of_columns, self.tasks), np.repeat(of_rows, self.tasks)
        of_task = zip(*([None] * self.tasks if side is None else self._split(side) for side in weights), strict=True)
        pairs = [self.single.sums(power, weights=(c, r)) for c, r in of_task]
        of_columns, of_rows = (np.stack(side, axis=1).ravel() for side in zip(*pairs, strict=True))
        return of_columns, of_rows

    def _sums_of_columns(self, power: float, columns: Indices) -> tuple[Vector, Vector]:
        of_columns, of_rows = np.empty(columns.size), np.zeros((self.single.shape[0], self.tasks))
        for task, mine, own in self._of_tasks(columns):
            of_columns[mine], of_rows[:, task] = self.single.sums(power, own)
        return of_columns, of_rows.ravel()

    def entries(self, columns: Indices | None = None, compressed: bool = False) -> Any:
        if compressed:
            whole = sparse.kron(self.single.entries(compressed=True), sparse.identity(self.tasks), format="csc")
            return whole if columns is None else whole[:, columns]
        columns = np.arange(self.shape[1]) if columns is None else columns
        result = np.zeros((self.single.shape[0], self.tasks, columns.size))
        for position, column in enumerate(columns):
            entry = self.single.entries(np.array([column // self.tasks]))
            result[:, column % self.tasks, position] = entry[:, 0]
        return result.reshape(self.shape[0], columns.size)

    def gram(self, weight: Vector | None, columns: Indices | None = None, side: Side = "columns") -> Any:
        if weight is not None or side == "columns":
            return super().gram(weight, columns, side)
        return sparse.kron(square(self.single.gram(None, side="rows")), sparse.eye(self.tasks), "csc")

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        (own_rows, of_rows), (own_columns, of_columns) = self._places(rows), self._places(columns)
        whole = Tasks(self.single.restrict(own_rows, own_columns), self.tasks)
        if of_rows is None and of_columns is None:
            return whole
        part = whole.entries(of_columns)
        return Dense(part if of_rows is None else part[of_rows])

    def pack(self, columns: Indices, single: bool = False, beside: float = 0.0) -> Operator:
        return Tasks(self.single.pack(columns[:: self.tasks] // self.tasks, False, beside), self.tasks)

    def ordered(self, by: Side) -> Operator:
        single = self.single.ordered(by)
        return self if single is self.single else Tasks(single, self.tasks)

    def _load(self, runs: Sequence[Indices]) -> Iterator[Operator]:
        places = [self._places(run) for run in runs]
        for (_, inside), single in zip(places, self.single.loaded([rows for rows, _ in places]), strict=True):
            whole = Tasks(single, self.tasks)
            yield whole if inside is None else Dense(whole.entries(inside))

    def _places(self, run: Indices) -> tuple[Indices, Indices | None]:
        """Return the rows of x, or of Ax, to which a run belongs, and its indices in these rows; None for all of them.

        If the penalty has single entries as blocks, a run may be part of a row.
        """
        rows = run[:: self.tasks] // self.tasks
        if np.array_equal(run, (rows[:, None] * self.tasks + np.arange(self.tasks)).ravel()):
            return rows, None
        rows, inverse = np.unique(run // self.tasks, return_inverse=True)
        return rows, inverse * self.tasks + run % self.tasks


@bytes_in_memory.register
def _(A: Tasks) -> float:
    return bytes_in_memory(A.single)
