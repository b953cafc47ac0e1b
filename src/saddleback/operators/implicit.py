"""Sparse matrices that are not stored: products are formulas, and the entries are made when somebody needs them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

from scipy import sparse

from ..common.arrays import Columns, Flags, Indices, Vector
from ..common.cached import cached_property
from ..common.rounded import Rounded
from .contract import Operator, Side, Weights, chosen, spread
from .sparse import Compressed

Stored = TypeVar("Stored", bound=Operator)


class Implicit(Operator):
    """A sparse matrix with formulas for its products and its sums.

    Methods that read single columns, rows or entries get them from the sparse form. It is made once, on demand.
    """

    @abstractmethod
    def tosparse(self) -> Any:
        """Return the matrix as a CSC array of float64."""

    @abstractmethod
    def _product(self, x: Vector) -> Vector:
        """Return A x."""

    @abstractmethod
    def _adjoint(self, y: Vector) -> Vector:
        """Return A'y."""

    @abstractmethod
    def _sums_of_powers(self, power: float) -> tuple[Vector, Vector]:
        """Return the sums of |A|^power over each column and over each row."""

    @cached_property
    def compressed(self) -> Compressed:
        """The sparse form, by columns."""
        return self._with_traits(Compressed(self.tosparse()))

    def _with_traits(self, stored: Stored) -> Stored:
        stored.traits = self.traits  # the norm is known here only
        return stored

    def matvec(self, x: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        return chosen(self._product(x), rows) if columns is None else self.compressed.matvec(x, columns)

    def rmatvec(self, y: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        if columns is None:
            return self._adjoint(spread(y, rows, self.shape[0]))
        return self.compressed.rmatvec(y, columns)

    def matvec_rounded(self, x: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        return self.compressed.matvec_rounded(x, radius, precise)

    def rmatvec_rounded(self, y: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        return self.compressed.rmatvec_rounded(y, radius, precise)

    def times(self, matrix: Any) -> Vector:
        return self.compressed.times(matrix)

    def rmatmat(self, Y: Vector, columns: Indices | None = None) -> Vector:
        return super().rmatmat(Y) if columns is None else self.compressed.rmatmat(Y, columns)

    def _sums(self, power: float, columns: Columns | None, weights: Weights | None) -> tuple[Vector, Vector]:
        if columns is None and weights is None:
            return self._sums_of_powers(power)
        return self.compressed.sums(power, columns, weights)

    def entries(self, columns: Indices | None = None, compressed: bool = False) -> Any:
        return self.compressed.entries(columns, compressed)

    def short_rows(self) -> tuple[sparse.csr_array, Flags]:
        return self.compressed.short_rows()

    def gram(self, weight: Vector | None, columns: Indices | None = None, side: Side = "columns") -> Any:
        return self.compressed.gram(weight, columns, side)

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        return self.compressed.restrict(rows, columns)

    def pack(self, columns: Indices, single: bool = False, beside: float = 0.0) -> Operator:
        return self.compressed.pack(columns, single, beside)

    def ordered(self, by: Side) -> Operator:
        return self._with_traits(self.compressed.ordered(by))
