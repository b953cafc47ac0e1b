"""A matrix variable under a matrix A."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..common.arrays import Columns, Indices, Vector
from .contract import Operator, one_by_one
from .dense import Dense
from .gram import square
from .traits import repeated

if TYPE_CHECKING:
    from ..places.torch.device import Device


class Tasks(Operator):
    """A acting on every column of a matrix variable: the Kronecker product of A with an identity."""

    def __init__(self, single: Operator, tasks: int) -> None:
        self.single = single
        self.tasks = tasks
        self.shape = (single.shape[0] * tasks, single.shape[1] * tasks)
        self.traits = repeated(single.traits, tasks)

    def matvec(self, x: Vector) -> Vector:
        return np.stack([self.single.matvec(task) for task in self._split(x)], axis=1).ravel()

    def rmatvec(self, y: Vector) -> Vector:
        return np.stack([self.single.rmatvec(task) for task in self._split(y)], axis=1).ravel()

    def forget(self) -> None:
        self.single.forget()

    def columns_matvec(self, columns: Columns, x: Vector) -> Vector:
        columns = one_by_one(columns)
        result = np.zeros((self.single.shape[0], self.tasks))
        for task in range(self.tasks):
            mine = columns % self.tasks == task
            if np.any(mine):
                result[:, task] = self.single.columns_matvec(columns[mine] // self.tasks, x[mine])
        return result.ravel()

    def columns_rmatvec(self, columns: Columns, y: Vector) -> Vector:
        columns = one_by_one(columns)
        result = np.empty(columns.size)
        for task, part in enumerate(self._split(y)):
            mine = columns % self.tasks == task
            if np.any(mine):
                result[mine] = self.single.columns_rmatvec(columns[mine] // self.tasks, part)
        return result

    def sums(self, power: int) -> tuple[Vector, Vector]:
        columns, rows = self.single.sums(power)
        return np.repeat(columns, self.tasks), np.repeat(rows, self.tasks)

    def squares_rmatvec(self, y: Vector) -> Vector:
        return np.stack([self.single.squares_rmatvec(task) for task in self._split(y)], axis=1).ravel()

    def largest(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        return self._by_task(self.single.largest, columns, rows)

    def absolute_products(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        return self._by_task(self.single.absolute_products, columns, rows)

    def _by_task(
        self, measure: Callable[[Vector, Vector], tuple[Vector, Vector]], columns: Vector, rows: Vector
    ) -> tuple[Vector, Vector]:
        pairs = [measure(c, r) for c, r in zip(self._split(columns), self._split(rows), strict=True)]
        of_columns, of_rows = (np.stack(side, axis=1).ravel() for side in zip(*pairs, strict=True))
        return of_columns, of_rows

    def block_row_sums(self, columns: Columns) -> Vector:
        columns = one_by_one(columns)
        result = np.zeros((self.single.shape[0], self.tasks))
        for task in range(self.tasks):
            result[:, task] = self.single.block_row_sums(columns[columns % self.tasks == task] // self.tasks)
        return result.ravel()

    def dense_columns(self, columns: Indices) -> Vector:
        result = np.zeros((self.single.shape[0], self.tasks, columns.size))
        for position, column in enumerate(columns):
            entry = self.single.dense_columns(np.array([column // self.tasks]))
            result[:, column % self.tasks, position] = entry[:, 0]
        return result.reshape(self.shape[0], columns.size)

    def compressed(self) -> Any:
        return sparse.kron(self.single.compressed(), sparse.identity(self.tasks), format="csc")

    def normal(self) -> Any:
        return sparse.kron(square(self.single.normal()), sparse.eye(self.tasks), "csc")

    def rows_matvec(self, rows: Indices, x: Vector) -> Vector:
        result = np.empty(rows.size)
        for task, part in enumerate(self._split(x)):
            mine = rows % self.tasks == task
            result[mine] = self.single.rows_matvec(rows[mine] // self.tasks, part)
        return result

    def rows_rmatvec(self, rows: Indices, y: Vector) -> Vector:
        mine = [rows % self.tasks == task for task in range(self.tasks)]
        return np.stack([self.single.rows_rmatvec(rows[m] // self.tasks, y[m]) for m in mine], axis=1).ravel()

    def rowwise(self) -> Operator:
        return Tasks(self.single.rowwise(), self.tasks)

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        return Tasks(
            self.single.restrict(rows[:: self.tasks] // self.tasks, columns[:: self.tasks] // self.tasks), self.tasks
        )

    @property
    def in_memory(self) -> float:
        return self.single.in_memory

    @property
    def rounding(self) -> float:
        return self.single.rounding

    def measure(self, kind: str, vector: Vector, product: Vector) -> None:
        self.single.measure(kind, self._split(vector)[0], self._split(product)[0])

    def leaving(self, size: float) -> Operator:
        return Tasks(self.single.leaving(size), self.tasks)

    def _load(self, runs: Sequence[Indices]) -> Iterator[Operator]:
        places = [self._places(run) for run in runs]
        for (_, inside), single in zip(places, self.single.loaded([rows for rows, _ in places]), strict=True):
            whole = Tasks(single, self.tasks)
            yield whole if inside is None else Dense(whole.dense_columns(inside))

    def _places(self, run: Indices) -> tuple[Indices, Indices | None]:
        """Return the rows of x that a run of columns belongs to, and where it lies in these: None if it is all of them.

        Blocks under a penalty of single entries are parts of a row.
        """
        rows = run[:: self.tasks] // self.tasks
        if np.array_equal(run, (rows[:, None] * self.tasks + np.arange(self.tasks)).ravel()):
            return rows, None
        rows, inverse = np.unique(run // self.tasks, return_inverse=True)
        return rows, inverse * self.tasks + run % self.tasks

    def columnar(self) -> Operator:
        single = self.single.columnar()
        return self if single is self.single else Tasks(single, self.tasks)

    def _placed(self, device: Device) -> Operator:
        return Tasks(self.single.placed(device), self.tasks)

    def _split(self, flat: Vector) -> list[Vector]:
        return [np.ascontiguousarray(column) for column in flat.reshape(-1, self.tasks).T]
