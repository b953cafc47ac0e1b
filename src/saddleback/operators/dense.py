"""Dense arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..common.arrays import Columns, Indices, Vector
from ..common.cached import cached_property
from ..machine.tiled_blas import product
from .contract import Operator
from .gram import PANEL, gram, slices
from .traits import Traits

if TYPE_CHECKING:
    from ..places.torch.device import Device


class Dense(Operator):
    """A 2-D array of float32 or float64, in any order."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.shape = (array.shape[0], array.shape[1])
        self.traits = Traits(array.size)

    @property
    def in_memory(self) -> float:
        return float(self.array.nbytes)

    @cached_property
    def _entries(self) -> _native.Matrix:
        return _native.Matrix(self.array)

    def matvec(self, x: Vector) -> Vector:
        return self._entries.matvec(x)

    def rmatvec(self, y: Vector) -> Vector:
        return self._entries.rmatvec(y)

    def columns_matvec(self, columns: Columns, x: Vector) -> Vector:
        return np.asarray(self.array[:, columns] @ x, dtype=np.float64)

    def columns_rmatvec(self, columns: Columns, y: Vector) -> Vector:
        if isinstance(columns, slice):
            return _native.Matrix(self.array[:, columns]).rmatvec(y)
        if not self._columnar():
            return np.asarray(y @ self.array[:, columns], dtype=np.float64)
        return self._entries.columns_rmatvec(columns, y)

    def columns_rtimes(self, columns: Indices, matrix: Vector) -> Vector:
        panels = slices(columns.size, self.shape[0])
        return np.concatenate([product(self.dense_columns(columns[own]).T, matrix) for own in panels])

    def _columnar(self) -> bool:
        return bool(self.array.strides[0] == self.array.itemsize)

    def sums(self, power: int) -> tuple[Vector, Vector]:
        return self._entries.sums(power)

    def survey(self, y: Vector) -> None:
        if self._columnar():
            columns, rows, product = self._entries.scan(y)
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

    def block_row_sums(self, columns: Columns) -> Vector:
        return np.asarray(np.abs(self.array[:, columns]).sum(axis=1, dtype=np.float64))

    def dense_columns(self, columns: Indices) -> Vector:
        return self.array[:, columns].astype(np.float64)

    def gram(self, columns: Indices, weight: Vector) -> Vector:
        panels = slices(self.shape[0], columns.size)
        every = np.array_equal(columns, np.arange(self.shape[1]))
        parts = (self.array[rows] if every else self.array[rows][:, columns] for rows in panels)
        return gram(parts, (weight[rows] for rows in panels))

    def outer(self, weight: Vector) -> Vector:
        panels = slices(self.shape[1], self.shape[0])
        return gram((self.array[:, columns].T for columns in panels), (weight[columns] for columns in panels))

    def rows_matvec(self, rows: Indices, x: Vector) -> Vector:
        return np.asarray(self.array[rows] @ x, dtype=np.float64)

    def rows_rmatvec(self, rows: Indices, y: Vector) -> Vector:
        return np.asarray(y @ self.array[rows], dtype=np.float64)

    def rowwise(self) -> Operator:
        return Dense(np.ascontiguousarray(self.array))

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        if rows.size == self.shape[0]:
            if columns.size and np.array_equal(columns, np.arange(columns[0], columns[0] + columns.size)):
                return Dense(self.array[:, columns[0] : columns[-1] + 1])  # neighbours need no copy
            return Dense(np.take(self.array.T, columns, axis=0).T)
        return Dense(self.array.T[np.ix_(columns, rows)].T)  # what is left out is never copied

    def pack(self, columns: Indices, single: bool) -> Operator:
        return Dense(self._entries.columns(columns, single).arrays[0])

    def columnar(self) -> Operator:
        return self if self._columnar() else Dense(np.asfortranarray(self.array))

    def native(self) -> list[Any]:
        return [self._entries]

    def _placed(self, device: Device) -> Operator:
        from ..places.torch.operator import dense_on_device

        return dense_on_device(self.array, device.device)
