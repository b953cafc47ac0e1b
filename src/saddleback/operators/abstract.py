"""Linear operators of which only products are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..functions._base import Columns, Indices, Vector
from ._base import Operator


class Abstract(Operator):
    """A ``scipy.sparse.linalg.LinearOperator``: nothing is known of its entries but their products."""

    explicit = False
    entries_known = False

    def __init__(self, operator: Any) -> None:
        self.operator = operator
        self.shape = (int(operator.shape[0]), int(operator.shape[1]))
        self.stored = self.shape[0] * self.shape[1]

    def matvec(self, x: Vector) -> Vector:
        return np.array(self.operator.matvec(x), dtype=np.float64).ravel()  # a copy: it may be x itself

    def rmatvec(self, y: Vector) -> Vector:
        return np.array(self.operator.rmatvec(y), dtype=np.float64).ravel()

    def columns_matvec(self, columns: Columns, x: Vector) -> Vector:
        everywhere = np.zeros(self.shape[1])
        everywhere[columns] = x
        return self.matvec(everywhere)

    def columns_rmatvec(self, columns: Columns, y: Vector) -> Vector:
        return self.rmatvec(y)[columns]

    def sums(self, power: int) -> tuple[Vector, Vector]:
        raise _unknown_entries(f"the sums of |A|^{power}")

    def squares_rmatvec(self, y: Vector) -> Vector:
        raise _unknown_entries("sums of squares")

    def largest(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        raise _unknown_entries("largest entries")

    def absolute_products(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        raise _unknown_entries("products with |A|")

    def block_row_sums(self, columns: Columns) -> Vector:
        raise _unknown_entries("sums over columns")

    def dense_columns(self, columns: Indices) -> Vector:
        return np.column_stack([self.columns_matvec(columns[i : i + 1], np.ones(1)) for i in range(columns.size)])

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        raise _unknown_entries("single rows or columns")


def _unknown_entries(what: str) -> TypeError:
    return TypeError(f"A is a LinearOperator, whose entries are not known: {what} cannot be had; give A as an array")
