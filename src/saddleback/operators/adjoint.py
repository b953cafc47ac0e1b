"""The operator -A' of the dual problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..common.arrays import Columns, Indices, Vector
from ..common.rounded import Rounded
from .contract import Operator, Side, Weights, one_by_one


class Adjoint(Operator):
    """The operator -A', whose products are those of A."""

    def __init__(self, A: Operator) -> None:
        self.A = A
        self.shape = (A.shape[1], A.shape[0])
        self.traits = replace(A.traits, splits=False, panels=None, reads_columns=False, identity_scales=None)

    def matvec(self, x: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        own = None if columns is None else one_by_one(columns)
        return -self.A.rmatvec(x, columns=rows, rows=own)

    def rmatvec(self, y: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        own = None if columns is None else one_by_one(columns)
        return -self.A.matvec(y, columns=rows, rows=own)

    def matvec_rounded(self, x: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        return self.A.rmatvec_rounded(x, radius, precise).negated()

    def rmatvec_rounded(self, y: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        return self.A.matvec_rounded(y, radius, precise).negated()

    def _sums(self, power: float, columns: Columns | None, weights: Weights | None) -> tuple[Vector, Vector]:
        if columns is not None:
            part = self.A.restrict(one_by_one(columns), one_by_one(slice(0, self.A.shape[1])))
            return part.sums(power)[::-1]
        return self.A.sums(power, weights=None if weights is None else weights[::-1])[::-1]

    def entries(self, columns: Indices | None = None, compressed: bool = False) -> Any:
        whole = -self.A.entries(None, compressed).T
        part = whole if columns is None else whole[:, columns]
        return part.tocsc() if compressed else part

    def gram(self, weight: Vector | None, columns: Indices | None = None, side: Side = "columns") -> Any:
        other: Side = "rows" if side == "columns" else "columns"
        return super().gram(weight, columns, side) if columns is not None else self.A.gram(weight, None, other)

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        return Adjoint(self.A.restrict(columns, rows))
