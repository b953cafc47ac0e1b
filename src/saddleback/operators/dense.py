"""Dense arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..common.arrays import Columns, Indices, Vector, contiguous
from ..common.cached import cached_property
from ..common.rounded import Rounded
from ..machine.tiled_blas import product
from .contract import Operator, Side, Weights, compressed_by_panels, powers
from .gram import PANEL, gram, slices
from .traits import Traits


class Dense(Operator):
    """A 2-D array of float32 or float64, in any order."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.shape = (array.shape[0], array.shape[1])
        self.traits = Traits(array.size)

    @cached_property
    def native(self) -> _native.Matrix:
        """The array as the compiled core takes it."""
        return _native.Matrix(self.array)

    def _columnar(self) -> bool:
        return bool(self.array.strides[0] == self.array.itemsize)

    def matvec(self, x: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        if columns is not None:
            return np.asarray(self.array[:, columns] @ x, dtype=np.float64)
        if rows is not None:
            return np.asarray(self.array[rows] @ x, dtype=np.float64)
        return self.native.matvec(x)

    def rmatvec(self, y: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        if rows is not None:
            return np.asarray(y @ self.array[rows], dtype=np.float64)
        if columns is None:
            return self.native.rmatvec(y)
        if isinstance(columns, slice):
            return _native.Matrix(self.array[:, columns]).rmatvec(y)
        if not self._columnar():
            return np.asarray(y @ self.array[:, columns], dtype=np.float64)
        return self.native.columns_rmatvec(columns, y)

    def matvec_rounded(self, x: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        return Rounded(*self.native.matvec_rounded(*contiguous(x, radius), precise))

    def rmatvec_rounded(self, y: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        return Rounded(*self.native.rmatvec_rounded(*contiguous(y, radius), precise))

    def matmat(self, X: Vector, columns: Indices | None = None) -> Vector:
        if columns is None and self.array.dtype == np.float64:
            return np.asarray(product(self.array, X))
        every = np.arange(self.shape[1]) if columns is None else columns
        parts = (product(self.entries(every[own]), X[own]) for own in slices(every.size, self.shape[0]))
        return sum(parts, np.zeros((self.shape[0], X.shape[1])))

    def rmatmat(self, Y: Vector, columns: Indices | None = None) -> Vector:
        if columns is None and self.array.dtype == np.float64:
            return np.asarray(product(self.array.T, Y))
        every = np.arange(self.shape[1]) if columns is None else columns
        parts = [product(self.entries(every[own]).T, Y) for own in slices(every.size, self.shape[0])]
        return np.concatenate([np.zeros((0, Y.shape[1])), *parts])

    def scan(self, y: Vector) -> None:
        """Find the sums of squares and A'y in one reading, if that is possible."""
        if self._columnar():
            columns, rows, adjoint = self.native.scan(y)
            self._squares, self.first_adjoint = (columns, rows), (y, adjoint)

    def _sums(self, power: float, columns: Columns | None, weights: Weights | None) -> tuple[Vector, Vector]:
        if weights is not None:
            return self._largest(*weights) if power == np.inf else self._weighted_sums(power, *weights)
        if columns is None:
            return self.native.sums(int(power))
        some = powers(self.array[:, columns], power)
        return some.sum(axis=0, dtype=np.float64), some.sum(axis=1, dtype=np.float64)

    def _panels(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield contiguous panels of columns that fit a temporary copy, and where each begins."""
        width = max(1, PANEL // self.shape[0])
        return ((start, self.array[:, start : start + width]) for start in range(0, self.shape[1], width))

    def _weighted_sums(self, power: float, columns: Vector | None, rows: Vector | None) -> tuple[Vector, Vector]:
        of_columns, of_rows = [np.empty(0)], np.zeros(0 if columns is None else self.shape[0])
        for start, panel in self._panels():
            some = powers(panel, power)
            if rows is not None:
                of_columns.append(rows @ some)
            if columns is not None:
                of_rows += some @ columns[start : start + panel.shape[1]]
        return np.concatenate(of_columns), of_rows

    def _largest(self, columns: Vector | None, rows: Vector | None) -> tuple[Vector, Vector]:
        assert columns is not None
        assert rows is not None
        of_columns, of_rows = [], np.zeros(self.shape[0])
        for start, panel in self._panels():
            scaled = np.abs(panel) * rows[:, None] * columns[start : start + panel.shape[1]]
            of_columns.append(scaled.max(axis=0))
            np.maximum(of_rows, scaled.max(axis=1), out=of_rows)
        return np.concatenate(of_columns), of_rows

    def entries(self, columns: Indices | None = None, compressed: bool = False) -> Any:
        if compressed:
            return compressed_by_panels(self, columns)
        if columns is None:
            return self.array.astype(np.float64)
        return self.array[:, columns].astype(np.float64, copy=False)

    def gram(self, weight: Vector | None, columns: Indices | None = None, side: Side = "columns") -> Any:
        if side == "rows":
            weight = np.ones(self.shape[1]) if weight is None else weight
            panels = slices(self.shape[1], self.shape[0])
            return gram((self.array[:, own].T for own in panels), (weight[own] for own in panels))
        weight = np.ones(self.shape[0]) if weight is None else weight
        every = columns is None or np.array_equal(columns, np.arange(self.shape[1]))
        panels = slices(self.shape[0], self.shape[1] if columns is None else columns.size)
        parts = (self.array[rows] if every else self.array[rows][:, columns] for rows in panels)
        return gram(parts, (weight[rows] for rows in panels))

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        if rows.size == self.shape[0]:
            if columns.size and np.array_equal(columns, np.arange(columns[0], columns[0] + columns.size)):
                return Dense(self.array[:, columns[0] : columns[-1] + 1])  # neighbours need no copy
            return Dense(np.take(self.array.T, columns, axis=0).T)
        return Dense(self.array.T[np.ix_(columns, rows)].T)  # the other rows and columns are never copied

    def pack(self, columns: Indices, single: bool = False, beside: float = 0.0) -> Operator:
        return Dense(self.native.columns(columns, single).arrays[0])

    def ordered(self, by: Side) -> Operator:
        if by == "rows":
            return Dense(np.ascontiguousarray(self.array))
        return self if self._columnar() else Dense(np.asfortranarray(self.array))
