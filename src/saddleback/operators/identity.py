"""Multiples of the identity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..common.arrays import Columns, Flags, Indices, Vector
from ..common.checks import LARGEST, number
from ..common.rounded import Rounded
from .contract import Operator, Side, Weights, chosen, spread
from .dense import Dense
from .traits import Traits

if TYPE_CHECKING:
    from ..places.torch.device import Device


class Identity:
    """The identity, or a multiple of it, on a variable of the shape of the loss.

    Parameters
    ----------
    scale : float, default 1.0
        Factor of the identity.
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = number("scale", scale)
        if not 1 / LARGEST <= abs(self.scale) <= LARGEST:
            raise ValueError(
                f"scale={scale!r}: expected a finite number from {1 / LARGEST:.0e} to {LARGEST:.0e} in size, not 0"
            )


class ScaledIdentity(Operator):
    """scale times the identity, on vectors that lie on a device or, by default, in the memory of the host."""

    def __init__(self, size: int, scale: float, device: Device | None = None) -> None:
        self.shape = (size, size)
        self.scale = scale
        self.traits = Traits(size, splits=False, identity_scales=(scale,), device=device)

    def matvec(self, x: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        if columns is None or (x.size == self.shape[0] and isinstance(columns, slice)):
            return self.scale * chosen(x, rows)
        result = np.zeros(self.shape[0])
        result[columns] = self.scale * x
        return result

    def rmatvec(self, y: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        return self.scale * (spread(y, rows, self.shape[0]) if columns is None else y[columns])

    def matvec_rounded(self, x: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        return Rounded.around(x, radius).times(self.scale)

    def rmatvec_rounded(self, y: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        return Rounded.around(y, radius).times(self.scale)

    def _sums(self, power: float, columns: Columns | None, weights: Weights | None) -> tuple[Vector, Vector]:
        if weights is not None:
            return self._weighted_sums(power, *weights)
        equal = np.broadcast_to(abs(self.scale) ** power, (self.shape[0],))
        if columns is None:
            return equal, equal
        of_rows = np.zeros(self.shape[0])
        of_rows[columns] = abs(self.scale) ** power
        return equal[columns], of_rows

    def _weighted_sums(self, power: float, columns: Vector | None, rows: Vector | None) -> tuple[Vector, Vector]:
        if power == np.inf:
            assert columns is not None
            assert rows is not None
            diagonal = abs(self.scale) * columns * rows
            return diagonal, diagonal
        factor = float(abs(self.scale) ** power)
        return np.empty(0) if rows is None else factor * rows, np.empty(0) if columns is None else factor * columns

    def entries(self, columns: Indices | None = None, compressed: bool = False) -> Any:
        if compressed:
            whole = sparse.csc_matrix(self.scale * sparse.identity(self.shape[0]))
            return whole if columns is None else whole[:, columns]
        columns = np.arange(self.shape[1]) if columns is None else columns
        result = np.zeros((self.shape[0], columns.size))
        result[columns, np.arange(columns.size)] = self.scale
        return result

    def short_rows(self) -> tuple[sparse.csr_array, Flags]:
        return sparse.csr_array(self.entries(compressed=True)), np.ones(self.shape[0], dtype=bool)

    def gram(self, weight: Vector | None, columns: Indices | None = None, side: Side = "columns") -> Any:
        if weight is None and side == "rows":
            return np.full(self.shape[0], self.scale**2)
        return super().gram(weight, columns, side)

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        return Dense(self.entries(columns)[rows])
