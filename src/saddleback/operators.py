"""What A may be: one contract over dense arrays, sparse matrices, identities and linear operators.

An operator acts on flat float64 vectors and gives float64 results, whatever it stores. It never copies its data when
it need not and never changes it. What it stores is only ever read column by column, so data that comes row-major is
brought into column order once, by ``columnar``, when a method starts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import blas

from . import _native
from .functions._base import Indices, Vector

PANEL = 1 << 22
"""Entries of a dense matrix that a temporary copy may hold."""


class Operator(ABC):
    """A linear map from R^n to R^m; ``shape`` is (m, n)."""

    shape: tuple[int, int]
    explicit: bool
    """True where single columns can be had, so that a penalty may split them into blocks."""

    entries_known: bool = True
    """True where sums over entries can be had."""

    stored: int
    """How many entries a product reads."""

    tasks: int = 1
    """How many neighbouring rows, and columns, can only be kept or left out together."""

    surveyed: tuple[Vector, Vector] | None = None
    """A y with its A'y, where that was had in the same reading as ``squares``."""

    identity_scales: Sequence[float] | None = None
    """The scales of the identities, side by side, of which the operator consists; None where it is anything else."""

    @abstractmethod
    def matvec(self, x: Vector) -> Vector:
        """Return A x."""

    @abstractmethod
    def rmatvec(self, y: Vector) -> Vector:
        """Return A' y."""

    @abstractmethod
    def columns_matvec(self, columns: Indices, x: Vector) -> Vector:
        """Return the sum of the given columns, each times its entry of x."""

    @abstractmethod
    def columns_rmatvec(self, columns: Indices, y: Vector) -> Vector:
        """Return the inner products of the given columns with y."""

    @abstractmethod
    def sums(self, power: int) -> tuple[Vector, Vector]:
        """Return the column sums and the row sums of |A|^power, for power 0 (entries that are not 0), 1 or 2."""

    @abstractmethod
    def squares_rmatvec(self, y: Vector) -> Vector:
        """Return (A * A)' y, the column sums of squares under row weights y."""

    @abstractmethod
    def largest(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        """Return the largest entry of every column and of every row of |A|, scaled by a weight a column and a row."""

    @abstractmethod
    def absolute_products(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        """Return |A|' rows and |A| columns."""

    @abstractmethod
    def block_row_sums(self, columns: Indices) -> Vector:
        """Return the sum of |A| over the given columns, row by row."""

    @abstractmethod
    def dense_columns(self, columns: Indices) -> Vector:
        """Return the given columns as a dense m x k array."""

    def compressed(self) -> Any:
        """Return all entries as a CSC matrix of float64."""
        width = max(1, PANEL // self.shape[0])
        panels = np.split(np.arange(self.shape[1]), np.arange(width, self.shape[1], width))
        return sparse.hstack([sparse.csc_matrix(self.dense_columns(panel)) for panel in panels], format="csc")

    def gram(self, columns: Indices, weight: Vector) -> Vector:
        """Return A_S' diag(weight) A_S over some columns S, for weights >= 0: the lower triangle of a dense matrix."""
        return _gram([self.dense_columns(columns)], [weight])

    def outer(self, weight: Vector) -> Vector:
        """Return A diag(weight) A' for weights >= 0: the lower triangle of a dense matrix."""
        return _gram([self.times(sparse.diags_array(np.sqrt(weight))).T], [np.ones(self.shape[1])])

    def times(self, matrix: Any) -> Vector:
        """Return A times a sparse matrix, as a dense one."""
        return np.asarray(self.dense_columns(np.arange(self.shape[1])) @ matrix)

    def normal(self) -> Any:
        """Return A A': a vector where it is diagonal, a sparse matrix, or the lower triangle of a dense one."""
        return self.outer(np.ones(self.shape[1]))

    def rows_matvec(self, rows: Indices, x: Vector) -> Vector:
        """Return A x in the given rows; what is read of A are these rows after ``rowwise``."""
        return self.matvec(x)[rows]

    def rows_rmatvec(self, rows: Indices, y: Vector) -> Vector:
        """Return the sum of the given rows, each times its entry of y."""
        everywhere = np.zeros(self.shape[0])
        everywhere[rows] = y
        return self.rmatvec(everywhere)

    def rowwise(self) -> Operator:
        """Return an operator with the same entries whose rows are contiguous in memory."""
        return self

    @abstractmethod
    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        """Return the operator between the kept rows and columns."""

    def pack(self, columns: Indices, single: bool) -> Operator:
        """Return some columns in memory of their own, in float32 where ``single`` and that saves memory."""
        return self.restrict(np.arange(self.shape[0]), columns)

    def columnar(self) -> Operator:
        """Return an operator with the same entries whose columns are contiguous in memory."""
        return self

    @cached_property
    def squares(self) -> tuple[Vector, Vector]:
        """The column sums and the row sums of the squared entries."""
        return self.sums(2)

    def survey(self, y: Vector) -> None:
        """Find ``squares`` and, where that takes no further reading, A'y."""
        _ = self.squares

    def native(self) -> list[Any]:
        """Return the matrices, side by side, as the native kernels take them; empty where they cannot."""
        return []


def _slices(size: int, other: int) -> list[slice]:
    """Return slices of one axis of a matrix whose panels fit a temporary copy."""
    width = max(1, PANEL // max(other, 1))
    return [slice(first, first + width) for first in range(0, size, width)]


def _by_rows(matrix: Any) -> tuple[Indices, Indices, Vector]:
    """Return a sparse matrix in compressed rows, as the native kernels take it."""
    rows = sparse.csr_array(matrix)
    rows.sum_duplicates()
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data.astype(np.float64)


def _gram(panels: Iterable[NDArray[Any]], weights: Iterable[Vector]) -> Vector:
    """Return the sum of P' diag(w) P over panels of rows, in the lower triangle."""
    total: Vector | None = None
    for panel, weight in zip(panels, weights, strict=True):
        scaled = np.asfortranarray(np.sqrt(weight)[:, None] * panel)
        if total is None:
            total = np.zeros((panel.shape[1], panel.shape[1]), order="F")
        if total.size:
            total = blas.dsyrk(1.0, scaled, trans=1, lower=1, beta=1.0, c=total, overwrite_c=1)
    assert total is not None
    return total


class Dense(Operator):
    """A 2-D array of float32 or float64, in any order."""

    explicit = True

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.shape = (array.shape[0], array.shape[1])
        self.stored = array.size

    def matvec(self, x: Vector) -> Vector:
        return _native.dense_matvec(self.array, x)

    def rmatvec(self, y: Vector) -> Vector:
        return _native.dense_rmatvec(self.array, y)

    def columns_matvec(self, columns: Indices, x: Vector) -> Vector:
        return np.asarray(self.array[:, columns] @ x, dtype=np.float64)

    def columns_rmatvec(self, columns: Indices, y: Vector) -> Vector:
        if not self._columnar():
            return np.asarray(y @ self.array[:, columns], dtype=np.float64)
        return _native.dense_columns_rmatvec(self.array, columns, y)

    def _columnar(self) -> bool:
        return bool(self.array.strides[0] == self.array.itemsize)

    def sums(self, power: int) -> tuple[Vector, Vector]:
        return _native.dense_sums(self.array, power)

    def survey(self, y: Vector) -> None:
        if self._columnar():
            columns, rows, product = _native.dense_survey(self.array, y)
            self.squares, self.surveyed = (columns, rows), (y, product)

    def squares_rmatvec(self, y: Vector) -> Vector:
        return np.concatenate([y @ np.square(panel, dtype=np.float64) for _, panel in self._panels()])

    def _panels(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield contiguous panels of columns, and where each begins: what fits a temporary copy."""
        width = max(1, PANEL // self.shape[0])
        return ((start, self.array[:, start : start + width]) for start in range(0, self.shape[1], width))

    def largest(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        of_columns, of_rows = [], np.zeros(self.shape[0])
        for start, panel in self._panels():
            scaled = np.abs(panel) * rows[:, None] * columns[start : start + panel.shape[1]]
            of_columns.append(scaled.max(axis=0))
            np.maximum(of_rows, scaled.max(axis=1), out=of_rows)
        return np.concatenate(of_columns), of_rows

    def absolute_products(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        of_columns, of_rows = [], np.zeros(self.shape[0])
        for start, panel in self._panels():
            absolute = np.abs(panel)
            of_columns.append(rows @ absolute)
            of_rows += absolute @ columns[start : start + panel.shape[1]]
        return np.concatenate(of_columns), of_rows

    def block_row_sums(self, columns: Indices) -> Vector:
        return np.asarray(np.abs(self.array[:, columns]).sum(axis=1, dtype=np.float64))

    def dense_columns(self, columns: Indices) -> Vector:
        return self.array[:, columns].astype(np.float64)

    def gram(self, columns: Indices, weight: Vector) -> Vector:
        panels = _slices(self.shape[0], columns.size)
        every = np.array_equal(columns, np.arange(self.shape[1]))
        parts = (self.array[rows] if every else self.array[rows][:, columns] for rows in panels)
        return _gram(parts, (weight[rows] for rows in panels))

    def outer(self, weight: Vector) -> Vector:
        panels = _slices(self.shape[1], self.shape[0])
        return _gram((self.array[:, columns].T for columns in panels), (weight[columns] for columns in panels))

    def rows_matvec(self, rows: Indices, x: Vector) -> Vector:
        return np.asarray(self.array[rows] @ x, dtype=np.float64)

    def rows_rmatvec(self, rows: Indices, y: Vector) -> Vector:
        return np.asarray(y @ self.array[rows], dtype=np.float64)

    def rowwise(self) -> Operator:
        return Dense(np.ascontiguousarray(self.array))

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        if rows.size == self.shape[0]:
            return Dense(np.take(self.array.T, columns, axis=0).T)
        return Dense(self.array.T[np.ix_(columns, rows)].T)  # what is left out is never copied

    def pack(self, columns: Indices, single: bool) -> Operator:
        return Dense(_native.dense_columns(self.array, columns, single))

    def columnar(self) -> Operator:
        return self if self._columnar() else Dense(np.asfortranarray(self.array))

    def native(self) -> list[Any]:
        return [self.array]


class Compressed(Operator):
    """A sparse matrix by columns, with float32 or float64 values.

    The sums that ``as_operator`` takes check the indices once; products need not look at them again.
    """

    explicit = True

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.stored = int(matrix.nnz)

    def _parts(self) -> tuple[Any, Any, Any]:
        return self.matrix.indptr, self.matrix.indices, self.matrix.data

    def matvec(self, x: Vector) -> Vector:
        return _native.csc_matvec(*self._parts(), self.shape[0], x, trusted=True)

    def rmatvec(self, y: Vector) -> Vector:
        return _native.csc_rmatvec(*self._parts(), self.shape[0], y, trusted=True)

    def columns_matvec(self, columns: Indices, x: Vector) -> Vector:
        return np.asarray(self.matrix[:, columns] @ x, dtype=np.float64)

    def columns_rmatvec(self, columns: Indices, y: Vector) -> Vector:
        return _native.csc_columns_rmatvec(*self._parts(), self.shape[0], columns, y, trusted=True)

    def sums(self, power: int) -> tuple[Vector, Vector]:
        return _native.csc_sums(*self._parts(), self.shape[0], power)

    def survey(self, y: Vector) -> None:
        columns, rows, product = _native.csc_survey(*self._parts(), self.shape[0], y)
        self.squares, self.surveyed = (columns, rows), (y, product)

    def squares_rmatvec(self, y: Vector) -> Vector:
        indptr, indices, data = self._parts()
        return _native.csc_rmatvec(indptr, indices, np.square(data, dtype=np.float64), self.shape[0], y)

    def largest(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        indptr, indices, data = self._parts()
        own = np.repeat(np.arange(self.shape[1]), np.diff(indptr))
        scaled = np.abs(data) * columns[own] * rows[indices]
        of_columns, of_rows = np.zeros(self.shape[1]), np.zeros(self.shape[0])
        np.maximum.at(of_columns, own, scaled)
        np.maximum.at(of_rows, indices, scaled)
        return of_columns, of_rows

    def absolute_products(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        absolute = abs(self.matrix)
        return np.asarray(absolute.T @ rows), np.asarray(absolute @ columns)

    def block_row_sums(self, columns: Indices) -> Vector:
        return np.asarray(abs(self.matrix[:, columns]).sum(axis=1), dtype=np.float64).ravel()

    def dense_columns(self, columns: Indices) -> Vector:
        return np.asarray(self.matrix[:, columns].toarray(), dtype=np.float64)

    def compressed(self) -> Any:
        return sparse.csc_matrix(self.matrix, dtype=np.float64)

    def gram(self, columns: Indices, weight: Vector) -> Vector:
        every = np.array_equal(columns, np.arange(self.shape[1]))
        indptr, indices, data = self._rows if every else _by_rows(self.matrix[:, columns])
        triangle = _native.csr_gram(indptr, indices, data, columns.size, weight)
        return triangle.reshape((columns.size, columns.size), order="F")

    def outer(self, weight: Vector) -> Vector:
        m = self.shape[0]
        return _native.csr_gram(*self._rows_of_transpose, m, weight).reshape((m, m), order="F")

    @cached_property
    def _rows(self) -> tuple[Indices, Indices, Vector]:
        return _by_rows(self.matrix)

    @cached_property
    def _rows_of_transpose(self) -> tuple[Indices, Indices, Vector]:
        return _by_rows(self.matrix.T)

    def times(self, matrix: Any) -> Vector:
        return np.asarray((self.matrix @ matrix).toarray(), dtype=np.float64)

    def normal(self) -> Any:
        return (self.matrix.astype(np.float64) @ self.matrix.T.astype(np.float64)).tocsc()

    def rowwise(self) -> Operator:
        return Transposed(self.matrix.tocsr())

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        packed = self.matrix[:, columns]
        return Compressed(packed if rows.size == self.shape[0] else packed[rows].tocsc())

    def pack(self, columns: Indices, single: bool) -> Operator:
        indptr, indices, data = _native.csc_columns(*self._parts(), columns, single)
        packed = sparse.csc_array((self.shape[0], columns.size), dtype=data.dtype)
        packed.indptr, packed.indices, packed.data = indptr, indices, data  # valid, and not to be looked through again
        return Compressed(packed)

    def native(self) -> list[Any]:
        return [(*self._parts(), self.shape[1])]


class Transposed(Operator):
    """A row-compressed matrix, read as the transpose of a column-compressed one until a method needs its columns."""

    explicit = True

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.across = Compressed(matrix.T)
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.stored = self.across.stored
        self.by_columns: Operator | None = None

    def matvec(self, x: Vector) -> Vector:
        return self.across.rmatvec(x)

    def rmatvec(self, y: Vector) -> Vector:
        return self.across.matvec(y)

    def columns_matvec(self, columns: Indices, x: Vector) -> Vector:
        return self.columnar().columns_matvec(columns, x)

    def columns_rmatvec(self, columns: Indices, y: Vector) -> Vector:
        return self.columnar().columns_rmatvec(columns, y)

    def sums(self, power: int) -> tuple[Vector, Vector]:
        rows, columns = self.across.sums(power)
        return columns, rows

    def squares_rmatvec(self, y: Vector) -> Vector:
        return self.columnar().squares_rmatvec(y)

    def largest(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        of_rows, of_columns = self.across.largest(rows, columns)
        return of_columns, of_rows

    def absolute_products(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        of_rows, of_columns = self.across.absolute_products(rows, columns)
        return of_columns, of_rows

    def block_row_sums(self, columns: Indices) -> Vector:
        return self.columnar().block_row_sums(columns)

    def dense_columns(self, columns: Indices) -> Vector:
        return self.columnar().dense_columns(columns)

    def compressed(self) -> Any:
        return self.columnar().compressed()

    def normal(self) -> Any:
        return self.columnar().normal()

    def rows_matvec(self, rows: Indices, x: Vector) -> Vector:
        return self.across.columns_rmatvec(rows, x)

    def rows_rmatvec(self, rows: Indices, y: Vector) -> Vector:
        return self.across.columns_matvec(rows, y)

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        return self.columnar().restrict(rows, columns)

    def columnar(self) -> Operator:
        if self.by_columns is None:
            self.by_columns = Compressed(self.matrix.tocsc())
        return self.by_columns

    def native(self) -> list[Any]:
        return self.columnar().native()


class ScaledIdentity(Operator):
    """scale times the identity."""

    explicit = False

    def __init__(self, size: int, scale: float) -> None:
        self.shape = (size, size)
        self.stored = size
        self.scale = scale
        self.identity_scales = [scale]

    def matvec(self, x: Vector) -> Vector:
        return self.scale * x

    def rmatvec(self, y: Vector) -> Vector:
        return self.scale * y

    def columns_matvec(self, columns: Indices, x: Vector) -> Vector:
        result = np.zeros(self.shape[0])
        result[columns] = self.scale * x
        return result

    def columns_rmatvec(self, columns: Indices, y: Vector) -> Vector:
        return self.scale * y[columns]

    def sums(self, power: int) -> tuple[Vector, Vector]:
        ones = np.full(self.shape[0], abs(self.scale) ** power)
        return ones, ones

    def squares_rmatvec(self, y: Vector) -> Vector:
        return self.scale**2 * y

    def largest(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        diagonal = abs(self.scale) * columns * rows
        return diagonal, diagonal

    def absolute_products(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        return abs(self.scale) * rows, abs(self.scale) * columns

    def block_row_sums(self, columns: Indices) -> Vector:
        result = np.zeros(self.shape[0])
        result[columns] = abs(self.scale)
        return result

    def dense_columns(self, columns: Indices) -> Vector:
        return self.scale * np.eye(self.shape[0])[:, columns]

    def compressed(self) -> Any:
        return sparse.csc_matrix(self.scale * sparse.identity(self.shape[0]))

    def normal(self) -> Any:
        return np.full(self.shape[0], self.scale**2)

    def rows_matvec(self, rows: Indices, x: Vector) -> Vector:
        return self.scale * x[rows]

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        return Dense(self.dense_columns(columns)[rows])


class Abstract(Operator):
    """A ``scipy.sparse.linalg.LinearOperator``: nothing is known of its entries but their products."""

    explicit = False
    entries_known = False

    def __init__(self, operator: Any) -> None:
        self.operator = operator
        self.shape = (int(operator.shape[0]), int(operator.shape[1]))
        self.stored = self.shape[0] * self.shape[1]

    def matvec(self, x: Vector) -> Vector:
        return np.asarray(self.operator.matvec(x), dtype=np.float64).ravel()

    def rmatvec(self, y: Vector) -> Vector:
        return np.asarray(self.operator.rmatvec(y), dtype=np.float64).ravel()

    def columns_matvec(self, columns: Indices, x: Vector) -> Vector:
        everywhere = np.zeros(self.shape[1])
        everywhere[columns] = x
        return self.matvec(everywhere)

    def columns_rmatvec(self, columns: Indices, y: Vector) -> Vector:
        return self.rmatvec(y)[columns]

    def sums(self, power: int) -> tuple[Vector, Vector]:
        raise _unknown_entries(f"the sums of |A|^{power}")

    def squares_rmatvec(self, y: Vector) -> Vector:
        raise _unknown_entries("sums of squares")

    def largest(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        raise _unknown_entries("largest entries")

    def absolute_products(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        raise _unknown_entries("products with |A|")

    def block_row_sums(self, columns: Indices) -> Vector:
        raise _unknown_entries("sums over columns")

    def dense_columns(self, columns: Indices) -> Vector:
        return np.column_stack([self.columns_matvec(columns[i : i + 1], np.ones(1)) for i in range(columns.size)])

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        raise _unknown_entries("single rows or columns")


def _unknown_entries(what: str) -> TypeError:
    return TypeError(f"A is a LinearOperator, whose entries are not known: {what} cannot be had; give A as an array")


class Tasks(Operator):
    """A acting on every column of a matrix variable: the Kronecker product of A with an identity."""

    def __init__(self, single: Operator, tasks: int) -> None:
        self.single = single
        self.tasks = tasks
        self.shape = (single.shape[0] * tasks, single.shape[1] * tasks)
        self.stored = single.stored * tasks
        self.explicit = single.explicit
        self.entries_known = single.entries_known

    def matvec(self, x: Vector) -> Vector:
        return np.stack([self.single.matvec(task) for task in self._split(x)], axis=1).ravel()

    def rmatvec(self, y: Vector) -> Vector:
        return np.stack([self.single.rmatvec(task) for task in self._split(y)], axis=1).ravel()

    def columns_matvec(self, columns: Indices, x: Vector) -> Vector:
        result = np.zeros((self.single.shape[0], self.tasks))
        for task in range(self.tasks):
            mine = columns % self.tasks == task
            if np.any(mine):
                result[:, task] = self.single.columns_matvec(columns[mine] // self.tasks, x[mine])
        return result.ravel()

    def columns_rmatvec(self, columns: Indices, y: Vector) -> Vector:
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

    def block_row_sums(self, columns: Indices) -> Vector:
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
        return sparse.kron(_square(self.single.normal()), sparse.eye(self.tasks), "csc")

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

    def columnar(self) -> Operator:
        single = self.single.columnar()
        return self if single is self.single else Tasks(single, self.tasks)

    def _split(self, flat: Vector) -> list[Vector]:
        return [np.ascontiguousarray(column) for column in flat.reshape(-1, self.tasks).T]


class Stacked(Operator):
    """Operators side by side: [A_1, ..., A_J]."""

    def __init__(self, parts: Sequence[Operator]) -> None:
        self.parts = parts
        self.start = np.concatenate([[0], np.cumsum([part.shape[1] for part in parts])])
        self.shape = (parts[0].shape[0], int(self.start[-1]))
        self.stored = sum(part.stored for part in parts)
        self.explicit = all(part.explicit for part in parts)
        self.tasks = max(part.tasks for part in parts)
        self.entries_known = all(part.entries_known for part in parts)
        scales = [part.identity_scales for part in parts]
        if all(known is not None for known in scales):
            self.identity_scales = [scale for known in scales if known is not None for scale in known]

    def without(self, part: int) -> Stacked:
        """Return the operators without one of them."""
        return Stacked([other for i, other in enumerate(self.parts) if i != part])

    def _stretches(self, x: Vector) -> list[Vector]:
        return np.split(x, self.start[1:-1])

    def _own(self, columns: Indices) -> Iterator[tuple[Operator, NDArray[np.bool_], Indices]]:
        """Yield each part that holds some of the columns, which of them, and their places in it."""
        for i, part in enumerate(self.parts):
            mine = (columns >= self.start[i]) & (columns < self.start[i + 1])
            if np.any(mine):
                yield part, mine, columns[mine] - self.start[i]

    def matvec(self, x: Vector) -> Vector:
        total = np.zeros(self.shape[0])
        for part, own in zip(self.parts, self._stretches(x), strict=True):
            total += part.matvec(own)
        return total

    def rmatvec(self, y: Vector) -> Vector:
        result = np.empty(self.shape[1])
        for part, a, b in zip(self.parts, self.start[:-1], self.start[1:], strict=True):
            result[a:b] = part.rmatvec(y)
        return result

    def columns_matvec(self, columns: Indices, x: Vector) -> Vector:
        products = (part.columns_matvec(local, x[mine]) for part, mine, local in self._own(columns))
        return np.asarray(np.sum(list(products), axis=0))

    def columns_rmatvec(self, columns: Indices, y: Vector) -> Vector:
        result = np.empty(columns.size)
        for part, mine, local in self._own(columns):
            result[mine] = part.columns_rmatvec(local, y)
        return result

    def sums(self, power: int) -> tuple[Vector, Vector]:
        columns, rows = zip(*(part.sums(power) for part in self.parts), strict=True)
        return np.concatenate(columns), np.sum(rows, axis=0)

    def squares_rmatvec(self, y: Vector) -> Vector:
        return np.concatenate([part.squares_rmatvec(y) for part in self.parts])

    def largest(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        pairs = [part.largest(own, rows) for part, own in zip(self.parts, self._stretches(columns), strict=True)]
        return np.concatenate([c for c, _ in pairs]), np.asarray(np.max([r for _, r in pairs], axis=0))

    def absolute_products(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        pairs = [
            part.absolute_products(own, rows) for part, own in zip(self.parts, self._stretches(columns), strict=True)
        ]
        return np.concatenate([c for c, _ in pairs]), np.asarray(np.sum([r for _, r in pairs], axis=0))

    def block_row_sums(self, columns: Indices) -> Vector:
        return np.asarray(np.sum([part.block_row_sums(local) for part, _, local in self._own(columns)], axis=0))

    def dense_columns(self, columns: Indices) -> Vector:
        result = np.empty((self.shape[0], columns.size))
        for part, mine, local in self._own(columns):
            result[:, mine] = part.dense_columns(local)
        return result

    def compressed(self) -> Any:
        return sparse.hstack([part.compressed() for part in self.parts], format="csc")

    def normal(self) -> Any:
        parts = [part.normal() for part in self.parts]
        return sum(parts) if all(part.ndim == 1 for part in parts) else sum(_square(part) for part in parts)

    def rows_matvec(self, rows: Indices, x: Vector) -> Vector:
        products = (part.rows_matvec(rows, own) for part, own in zip(self.parts, self._stretches(x), strict=True))
        return np.asarray(np.sum(list(products), axis=0))

    def rows_rmatvec(self, rows: Indices, y: Vector) -> Vector:
        return np.concatenate([part.rows_rmatvec(rows, y) for part in self.parts])

    def rowwise(self) -> Operator:
        return Stacked([part.rowwise() for part in self.parts])

    def outer(self, weight: Vector) -> Vector:
        own = zip(self.parts, self._stretches(weight), strict=True)
        return np.asarray(np.sum([part.outer(stretch) for part, stretch in own], axis=0))

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        return Stacked([part.restrict(rows, local) for part, _, local in self._own(columns)])

    def pack(self, columns: Indices, single: bool) -> Operator:
        of_part = np.searchsorted(self.start, columns, side="right") - 1
        runs = np.split(np.arange(columns.size), np.flatnonzero(np.diff(of_part)) + 1)
        homes = [of_part[run[0]] for run in runs]
        return Stacked(
            [self.parts[i].pack(columns[run] - self.start[i], single) for i, run in zip(homes, runs, strict=True)]
        )

    def columnar(self) -> Operator:
        parts = [part.columnar() for part in self.parts]
        return self if all(new is old for new, old in zip(parts, self.parts, strict=True)) else Stacked(parts)

    def native(self) -> list[Any]:
        matrices = [part.native() for part in self.parts]
        return [matrix for part in matrices for matrix in part] if all(matrices) else []


def _square(normal: Any) -> Any:
    """Return the whole matrix for what ``normal`` gives as a diagonal or a triangle."""
    if normal.ndim == 1:
        return sparse.diags(normal, format="csc")
    return normal if sparse.issparse(normal) else np.tril(normal) + np.tril(normal, -1).T


class Identity:
    """The identity, or a multiple of it, on a variable of the loss's shape."""

    def __init__(self, scale: float = 1.0) -> None:
        if not isinstance(scale, (int, float, np.number)) or not np.isfinite(scale) or scale == 0:
            raise ValueError(f"scale={scale!r}: expected a finite number that is not 0")
        self.scale = float(scale)


def as_operator(source: Any, name: str, y: Vector | None = None) -> Operator:
    """Return what the user gave for A as an operator; raise where it is not finite, real and two-dimensional.

    All entries are looked at once, and where that is all it takes A'y is found on the way.
    """
    if sparse.issparse(source):
        return _compressed(source, name, y)
    if hasattr(source, "matvec") and hasattr(source, "rmatvec"):
        if np.dtype(source.dtype or float).kind == "c":
            raise TypeError(f"{name} is a complex LinearOperator: expected real numbers")
        return Abstract(source)
    try:
        array = np.asarray(source)
    except ValueError:
        raise TypeError(
            f"{name} is a {type(source).__name__} that makes no matrix: expected an array, a sparse matrix or a "
            "LinearOperator; with several of them, give as many penalties in a list too"
        ) from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} has dtype {array.dtype}: expected real numbers, float32 or float64")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(f"{name} has {array.ndim} dimensions: expected a matrix")
    if array.size == 0:
        raise ValueError(f"{name} is empty, with shape {array.shape}: expected at least one row and one column")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    contiguous = array.strides[0] == array.itemsize or array.strides[1] == array.itemsize
    if not contiguous or not array.flags.aligned or any(stride % array.itemsize for stride in array.strides):
        array = np.array(array, order="F")
    return _finite(Dense(array), array, name, y)


def _compressed(source: Any, name: str, y: Vector | None) -> Operator:
    if source.dtype.kind not in "biuf":
        raise TypeError(f"{name} has dtype {source.dtype}: expected real numbers, float32 or float64")
    if 0 in source.shape:
        raise ValueError(f"{name} is empty, with shape {source.shape}: expected at least one row and one column")
    matrix = source if source.format in ("csc", "csr") else source.tocsc()
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.indptr.dtype != matrix.indices.dtype:
        indices = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
        matrix = type(matrix)((matrix.data, *indices), shape=matrix.shape)
        matrix.indices, matrix.indptr = indices
    operator = Compressed(matrix) if matrix.format == "csc" else Transposed(matrix)
    return _finite(operator, matrix.data, name, y)


def _finite(operator: Operator, values: NDArray[Any], name: str, y: Vector | None) -> Operator:
    """Return the operator, or raise where it has NaN or inf among its values."""
    if y is not None and y.size == operator.shape[0]:
        operator.survey(y)
    if not np.all(np.isfinite(operator.squares[0])):  # by far the fastest look at all entries, and kept for later
        _check_finite(values, name)
    return operator


def _check_finite(values: NDArray[Any], name: str) -> None:
    """Raise where values has NaN or inf. A sum is finite if they all are, and costs no temporary."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum(dtype=np.float64)
    if not np.isfinite(total) and not np.all(np.isfinite(values)):
        bad = np.argwhere(~np.isfinite(values))[0].tolist()
        where = f"at {bad}" if values.ndim == 2 else f"among its stored entries, number {bad[0]}"
        raise ValueError(f"{name} has the value {values[tuple(bad)]} {where}: expected finite numbers")
