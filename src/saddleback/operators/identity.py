"""Multiples of the identity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..common.arrays import Columns, Indices, Vector
from ..common.checks import LARGEST, number
from ..functions.points import Point
from .contract import Operator
from .dense import Dense
from .traits import Traits

if TYPE_CHECKING:
    from ..places.torch.device import Device


class Identity:
    """The identity, or a multiple of it, on a variable of the loss's shape."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = number("scale", scale)
        if not 1 / LARGEST <= abs(self.scale) <= LARGEST:
            raise ValueError(
                f"scale={scale!r}: expected a finite number from {1 / LARGEST:.0e} to {LARGEST:.0e} in size, not 0"
            )


class ScaledIdentity(Operator):
    """scale times the identity, on vectors that lie where ``like`` does."""

    def __init__(self, size: int, scale: float, like: Vector | None = None) -> None:
        self.like = np.empty(0) if like is None else like
        self.shape = (size, size)
        self.scale = scale
        self.traits = Traits(size, splits=False, identity_scales=(scale,))

    def matvec(self, x: Vector) -> Vector:
        return self.scale * x

    def image(self, x: Point) -> Vector:
        return x.vector() if self.scale == 1.0 else self.matvec(x.vector())

    def rmatvec(self, y: Vector) -> Vector:
        return self.scale * y

    def rimage(self, y: Vector) -> Vector:
        return y if self.scale == 1.0 else self.rmatvec(y)

    def columns_matvec(self, columns: Columns, x: Vector) -> Vector:
        if x.size == self.shape[0] and isinstance(columns, slice):
            return self.matvec(x)
        result = np.zeros(self.shape[0])
        result[columns] = self.scale * x
        return result

    def columns_rmatvec(self, columns: Columns, y: Vector) -> Vector:
        return self.scale * y[columns]

    def sums(self, power: int) -> tuple[Vector, Vector]:
        equal = np.broadcast_to(abs(self.scale) ** power, (self.shape[0],))
        return equal, equal

    def squares_rmatvec(self, y: Vector) -> Vector:
        return self.scale**2 * y

    def largest(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        diagonal = abs(self.scale) * columns * rows
        return diagonal, diagonal

    def absolute_products(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        return abs(self.scale) * rows, abs(self.scale) * columns

    def block_row_sums(self, columns: Columns) -> Vector:
        result = np.zeros(self.shape[0])
        result[columns] = abs(self.scale)
        return result

    def dense_columns(self, columns: Indices) -> Vector:
        result = np.zeros((self.shape[0], columns.size))
        result[columns, np.arange(columns.size)] = self.scale
        return result

    def compressed(self) -> Any:
        return sparse.csc_matrix(self.scale * sparse.identity(self.shape[0]))

    def normal(self) -> Any:
        return np.full(self.shape[0], self.scale**2)

    def rows_matvec(self, rows: Indices, x: Vector) -> Vector:
        return self.scale * x[rows]

    def zeros(self, size: int) -> Vector:
        if isinstance(self.like, np.ndarray):
            return np.zeros(size)  # which takes no memory until it is written to, as zeros_like does
        return np.zeros_like(self.like, shape=size)

    def _placed(self, device: Device) -> Operator:
        return ScaledIdentity(self.shape[0], self.scale, device.place(self.like))

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        return Dense(self.dense_columns(columns)[rows])
