"""Sparse matrices, by columns and by rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .. import _native
from ..common.arrays import Columns, Flags, Indices, Vector, contiguous
from ..common.cached import cached_property
from ..common.rounded import Rounded
from .contract import Operator, Side, Weights, chosen, one_by_one, powers, spread
from .gram import by_rows
from .traits import Traits

SHORT = 8
"""Most entries of a short row."""


class Compressed(Operator):
    """A sparse matrix by columns, with float32 or float64 values.

    The sums in ``as_operator`` check the indices once; products need not check them again.
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.traits = Traits(int(matrix.nnz))

    @cached_property
    def native(self) -> _native.Matrix:
        """The matrix as the compiled core takes it."""
        return _native.Matrix(self.matrix.indptr, self.matrix.indices, self.matrix.data, self.shape[0])

    def matvec(self, x: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        if columns is not None:
            return np.asarray(self.matrix[:, columns] @ x, dtype=np.float64)
        return chosen(self.native.matvec(x), rows)

    def rmatvec(self, y: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        if columns is not None:
            return self.native.columns_rmatvec(one_by_one(columns), y)
        return self.native.rmatvec(spread(y, rows, self.shape[0]))

    def matvec_rounded(self, x: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        return Rounded(*self.native.matvec_rounded(*contiguous(x, radius), precise))

    def rmatvec_rounded(self, y: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        return Rounded(*self.native.rmatvec_rounded(*contiguous(y, radius), precise))

    def rmatmat(self, Y: Vector, columns: Indices | None = None) -> Vector:
        if columns is None:
            return super().rmatmat(Y)  # on several threads
        return np.asarray(self.matrix[:, columns].T @ Y, dtype=np.float64)

    def times(self, matrix: Any) -> Vector:
        return np.asarray((self.matrix @ matrix).toarray(), dtype=np.float64)

    def scan(self, y: Vector) -> None:
        """Find the sums of squares and A'y in one reading."""
        columns, rows, product = self.native.scan(y)
        self._squares, self.first_adjoint = (columns, rows), (y, product)

    def _sums(self, power: float, columns: Columns | None, weights: Weights | None) -> tuple[Vector, Vector]:
        if weights is not None:
            return self._largest(*weights) if power == np.inf else self._weighted_sums(power, *weights)
        if columns is None:
            return self.native.sums(int(power))
        some = abs(self.matrix[:, columns])
        if power != 1:
            some = some.astype(np.float64).power(2) if power == 2 else (some != 0).astype(np.float64)
        of_columns, of_rows = (np.asarray(some.sum(axis=axis), dtype=np.float64).ravel() for axis in (0, 1))
        return of_columns, of_rows

    def _weighted_sums(self, power: float, columns: Vector | None, rows: Vector | None) -> tuple[Vector, Vector]:
        of_columns = of_rows = np.empty(0)
        if power == 1:
            absolute = abs(self.matrix)
            of_columns = of_columns if rows is None else np.asarray(absolute.T @ rows)
            return of_columns, of_rows if columns is None else np.asarray(absolute @ columns)
        matrix = self.matrix
        some = _native.Matrix(matrix.indptr, matrix.indices, powers(matrix.data, power), self.shape[0])
        of_columns = of_columns if rows is None else some.rmatvec(rows)
        return of_columns, of_rows if columns is None else some.matvec(columns)

    def _largest(self, columns: Vector | None, rows: Vector | None) -> tuple[Vector, Vector]:
        assert columns is not None
        assert rows is not None
        indices = self.matrix.indices
        own = np.repeat(np.arange(self.shape[1]), np.diff(self.matrix.indptr))
        scaled = np.abs(self.matrix.data) * columns[own] * rows[indices]
        of_columns, of_rows = np.zeros(self.shape[1]), np.zeros(self.shape[0])
        np.maximum.at(of_columns, own, scaled)
        np.maximum.at(of_rows, indices, scaled)
        return of_columns, of_rows

    def entries(self, columns: Indices | None = None, compressed: bool = False) -> Any:
        some = self.matrix if columns is None else self.matrix[:, columns]
        if compressed:
            return sparse.csc_matrix(some, dtype=np.float64)
        return np.asarray(some.toarray(), dtype=np.float64)

    def short_rows(self) -> tuple[sparse.csr_array, Flags]:
        rows = sparse.csr_array(self.matrix, dtype=np.float64)
        short = np.diff(rows.indptr) <= SHORT
        return (rows if np.all(short) else sparse.diags_array(short.astype(float)) @ rows), short

    def gram(self, weight: Vector | None, columns: Indices | None = None, side: Side = "columns") -> Any:
        if weight is None and side == "rows":
            return (self.matrix.astype(np.float64) @ self.matrix.T.astype(np.float64)).tocsc()
        weight = np.ones(self.shape[0]) if weight is None else weight
        if side == "rows":
            size, rows = self.shape[0], self._rows_of_transpose
        else:
            every = columns is None or np.array_equal(columns, np.arange(self.shape[1]))
            size = self.shape[1] if columns is None else columns.size
            rows = self._rows if every else by_rows(self.matrix[:, columns])
        return _native.csr_gram(*rows, size, weight).reshape((size, size), order="F")

    @cached_property
    def _rows(self) -> tuple[Indices, Indices, Vector]:
        return by_rows(self.matrix)

    @cached_property
    def _rows_of_transpose(self) -> tuple[Indices, Indices, Vector]:
        return by_rows(self.matrix.T)

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        packed = self.matrix[:, columns]
        return Compressed(packed if rows.size == self.shape[0] else packed[rows].tocsc())

    def pack(self, columns: Indices, single: bool = False, beside: float = 0.0) -> Operator:
        indptr, indices, data = self.native.columns(columns, single).arrays
        packed = sparse.csc_array((self.shape[0], columns.size), dtype=data.dtype)
        packed.indptr, packed.indices, packed.data = indptr, indices, data  # already valid: scipy need not check them
        return Compressed(packed)

    def ordered(self, by: Side) -> Operator:
        return Transposed(self.matrix.tocsr()) if by == "rows" else self


class Transposed(Operator):
    """A row-compressed matrix, read as the transpose of a column-compressed one until a method needs its columns."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.across = Compressed(matrix.T)
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.traits = self.across.traits

    @cached_property
    def by_columns(self) -> Compressed:
        """The same matrix by columns."""
        return Compressed(self.matrix.tocsc())

    @property
    def native(self) -> _native.Matrix:
        """The matrix by columns, as the compiled core takes it."""
        return self.by_columns.native

    def matvec(self, x: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        return self.across.rmatvec(x, rows) if columns is None else self.by_columns.matvec(x, columns)

    def rmatvec(self, y: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        return self.across.matvec(y, rows) if columns is None else self.by_columns.rmatvec(y, columns)

    def matvec_rounded(self, x: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        return self.across.rmatvec_rounded(x, radius, precise)

    def rmatvec_rounded(self, y: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        return self.across.matvec_rounded(y, radius, precise)

    def _sums(self, power: float, columns: Columns | None, weights: Weights | None) -> tuple[Vector, Vector]:
        if columns is not None or (weights is not None and power == 2):
            return self.by_columns.sums(power, columns, weights)
        rows, of_columns = self.across.sums(power, None, None if weights is None else weights[::-1])
        return of_columns, rows

    def entries(self, columns: Indices | None = None, compressed: bool = False) -> Any:
        return self.by_columns.entries(columns, compressed)

    def short_rows(self) -> tuple[sparse.csr_array, Flags]:
        return self.by_columns.short_rows()

    def gram(self, weight: Vector | None, columns: Indices | None = None, side: Side = "columns") -> Any:
        if weight is None and side == "rows":
            return self.by_columns.gram(None, side="rows")
        return super().gram(weight, columns, side)

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        return self.by_columns.restrict(rows, columns)

    def ordered(self, by: Side) -> Operator:
        return self if by == "rows" else self.by_columns


class BothWays(Transposed):
    """A sparse matrix by rows and by columns, so that products of both kinds read it in the order of their results."""

    def rmatvec(self, y: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        return self.by_columns.rmatvec(y, columns, rows)

    def rmatvec_rounded(self, y: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        return self.by_columns.rmatvec_rounded(y, radius, precise)


def both_ways(A: Operator) -> Operator:
    """Return a sparse matrix by rows and by columns; any other operator is returned unchanged."""
    return BothWays(A.matrix.tocsr()) if isinstance(A, Compressed | Transposed) else A
