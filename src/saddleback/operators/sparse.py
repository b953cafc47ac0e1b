"""Sparse matrices, by columns and by rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .. import _native
from ..common.arrays import Columns, Indices, Vector
from ..common.cached import cached_property
from .contract import Operator, one_by_one
from .gram import by_rows
from .traits import Traits

if TYPE_CHECKING:
    from ..places.torch.device import Device


class Compressed(Operator):
    """A sparse matrix by columns, with float32 or float64 values.

    The sums that ``as_operator`` takes check the indices once; products need not look at them again.
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.traits = Traits(int(matrix.nnz))

    def _parts(self) -> tuple[Any, Any, Any]:
        return self.matrix.indptr, self.matrix.indices, self.matrix.data

    @cached_property
    def _entries(self) -> _native.Matrix:
        return _native.Matrix(*self._parts(), self.shape[0])

    def matvec(self, x: Vector) -> Vector:
        return self._entries.matvec(x)

    def rmatvec(self, y: Vector) -> Vector:
        return self._entries.rmatvec(y)

    def columns_matvec(self, columns: Columns, x: Vector) -> Vector:
        return np.asarray(self.matrix[:, columns] @ x, dtype=np.float64)

    def columns_rmatvec(self, columns: Columns, y: Vector) -> Vector:
        return self._entries.columns_rmatvec(one_by_one(columns), y)

    def columns_rtimes(self, columns: Indices, matrix: Vector) -> Vector:
        return np.asarray(self.matrix[:, columns].T @ matrix, dtype=np.float64)

    def sums(self, power: int) -> tuple[Vector, Vector]:
        return self._entries.sums(power)

    def survey(self, y: Vector) -> None:
        columns, rows, product = self._entries.scan(y)
        self.squares, self.surveyed = (columns, rows), (y, product)

    def squares_rmatvec(self, y: Vector) -> Vector:
        indptr, indices, data = self._parts()
        return _native.Matrix(indptr, indices, np.square(data, dtype=np.float64), self.shape[0]).rmatvec(y)

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

    def block_row_sums(self, columns: Columns) -> Vector:
        return np.asarray(abs(self.matrix[:, columns]).sum(axis=1), dtype=np.float64).ravel()

    def dense_columns(self, columns: Indices) -> Vector:
        return np.asarray(self.matrix[:, columns].toarray(), dtype=np.float64)

    def compressed(self) -> Any:
        return sparse.csc_matrix(self.matrix, dtype=np.float64)

    def gram(self, columns: Indices, weight: Vector) -> Vector:
        every = np.array_equal(columns, np.arange(self.shape[1]))
        indptr, indices, data = self._rows if every else by_rows(self.matrix[:, columns])
        triangle = _native.csr_gram(indptr, indices, data, columns.size, weight)
        return triangle.reshape((columns.size, columns.size), order="F")

    def outer(self, weight: Vector) -> Vector:
        m = self.shape[0]
        return _native.csr_gram(*self._rows_of_transpose, m, weight).reshape((m, m), order="F")

    @cached_property
    def _rows(self) -> tuple[Indices, Indices, Vector]:
        return by_rows(self.matrix)

    @cached_property
    def _rows_of_transpose(self) -> tuple[Indices, Indices, Vector]:
        return by_rows(self.matrix.T)

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
        indptr, indices, data = self._entries.columns(columns, single).arrays
        packed = sparse.csc_array((self.shape[0], columns.size), dtype=data.dtype)
        packed.indptr, packed.indices, packed.data = indptr, indices, data  # valid, and not to be looked through again
        return Compressed(packed)

    def native(self) -> list[Any]:
        return [self._entries]

    def _placed(self, device: Device) -> Operator:
        from ..places.torch.operator import sparse_on_device

        return sparse_on_device(self.matrix, device.device)


class Transposed(Operator):
    """A row-compressed matrix, read as the transpose of a column-compressed one until a method needs its columns."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.across = Compressed(matrix.T)
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.traits = self.across.traits
        self.by_columns: Operator | None = None

    def matvec(self, x: Vector) -> Vector:
        return self.across.rmatvec(x)

    def rmatvec(self, y: Vector) -> Vector:
        return self.across.matvec(y)

    def columns_matvec(self, columns: Columns, x: Vector) -> Vector:
        return self.columnar().columns_matvec(columns, x)

    def columns_rmatvec(self, columns: Columns, y: Vector) -> Vector:
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

    def block_row_sums(self, columns: Columns) -> Vector:
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

    def _placed(self, device: Device) -> Operator:
        from ..places.torch.operator import sparse_on_device

        return sparse_on_device(self.matrix, device.device)
