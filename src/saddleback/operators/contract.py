"""The contract of an operator.

An operator acts on flat float64 vectors and gives float64 results, whatever it stores. It never changes its data, and
copies them only if it has to. Most methods read columns, so data that come row-major are brought into column order
once, by ``ordered``, when a method starts.

Everything else that the library does with operators is written in terms of this contract: ``hstack`` and ``parts_of``
in ``stacked.py``, points that are products in ``deferred_points.py``, kernels and other storage in ``places/``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

from ..common.arrays import Columns, Flags, Indices, Vector
from ..common.cached import cached_property
from ..common.rounded import Rounded
from .gram import PANEL, gram
from .traits import Traits

Side: TypeAlias = Literal["columns", "rows"]
Weights: TypeAlias = tuple[Vector | None, Vector | None]


class Operator(ABC):
    """A linear map from R^n to R^m; ``shape`` is (m, n), ``traits`` is what is known before any product."""

    shape: tuple[int, int]
    traits: Traits

    first_adjoint: tuple[Vector, Vector] | None = None
    """Some y with its A'y, if that was found in the same reading as the sums of squares."""

    @abstractmethod
    def matvec(self, x: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        """Return A x as a new vector.

        With ``columns``, x has one entry per given column, and is 0 in all others. With ``rows``, only these rows of
        A x are returned. At most one of the two is given.
        """

    @abstractmethod
    def rmatvec(self, y: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        """Return A'y as a new vector: only in some columns, or for a y that has one entry per given row."""

    def matmat(self, X: Vector, columns: Indices | None = None) -> Vector:
        """Return A X for a matrix X, in one reading of A if that saves time; with ``columns``, A_S X."""
        return np.stack([self.matvec(column, columns) for column in np.ascontiguousarray(X.T)], axis=1)

    def rmatmat(self, Y: Vector, columns: Indices | None = None) -> Vector:
        """Return A'Y for a matrix Y, in one reading of A if that saves time; with ``columns``, A_S'Y."""
        return np.stack([self.rmatvec(column, columns) for column in np.ascontiguousarray(Y.T)], axis=1)

    def products(self, x: Vector, *ys: Vector) -> tuple[Vector, list[Vector]]:
        """Return A x, and A'y for every y, in one reading of A if that saves time."""
        return self.matvec(x), [self.rmatvec(y) for y in ys]

    def matvec_rounded(self, x: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        """Return A x for every x within a radius, with a bound on the rounding; ``precise`` asks for more digits.

        By default the bound is that of sums in any order, and there are no more digits.
        """
        size = self.sums(1, weights=(np.abs(x), None))[1]
        moved = None if radius is None else self.sums(1, weights=(radius, None))[1]
        return Rounded.of_products(self.matvec(x), self.shape[1], size, moved)

    def rmatvec_rounded(self, y: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        """Return A'y for every y within a radius, as ``matvec_rounded``."""
        size = self.sums(1, weights=(None, np.abs(y)))[0]
        moved = None if radius is None else self.sums(1, weights=(None, radius))[0]
        return Rounded.of_products(self.rmatvec(y), self.shape[0], size, moved)

    def short_rows(self) -> tuple[sparse.csr_array, Flags]:
        """Return the rows with few entries, as a matrix in which the other rows are empty, and which rows these are."""
        return sparse.csr_array(self.shape), np.zeros(self.shape[0], dtype=bool)

    def times(self, matrix: Any) -> Vector:
        """Return the product of A with a sparse matrix, as a dense matrix."""
        return np.asarray(self.entries() @ matrix)

    def sums(
        self, power: float, columns: Columns | None = None, weights: Weights | None = None
    ) -> tuple[Vector, Vector]:
        """Return the sums of |A|^power over each column and over each row, for the powers 0 (nonzeros), 1 and 2.

        Parameters
        ----------
        power : float
            With ``weights`` it may be inf, for the largest |a_ij| c_j r_i of each column and each row.
        columns : slice or array of int, optional
            Sum over these columns only. Not together with ``weights``.
        weights : tuple of (array or None, array or None), optional
            A weight c per column and a weight r per row, for (|A|^power)' r and |A|^power c. If c is None the sums of
            the rows are not computed and empty; likewise r and those of the columns.
        """
        if power == 2 and columns is None and weights is None:
            return self._squares
        return self._sums(power, columns, weights)

    @cached_property
    def _squares(self) -> tuple[Vector, Vector]:
        return self._sums(2, None, None)

    @abstractmethod
    def _sums(self, power: float, columns: Columns | None, weights: Weights | None) -> tuple[Vector, Vector]:
        """Compute ``sums``, which caches the sums of squares."""

    @abstractmethod
    def entries(self, columns: Indices | None = None, compressed: bool = False) -> Any:
        """Return some columns, by default all, as a dense array of float64, or as a CSC matrix of float64."""

    def gram(self, weight: Vector | None, columns: Indices | None = None, side: Side = "columns") -> Any:
        """Return A_S' diag(weight) A_S over some columns S, or A diag(weight) A' for ``side="rows"``.

        The weights are not negative, and 1 if they are None. The result is the lower triangle of a dense matrix, and
        lies where the weights do. ``gram(None, side="rows")`` may also be a sparse matrix, or a vector if A A' is
        diagonal.
        """
        weight = np.ones(self.shape[side == "rows"]) if weight is None else weight
        if side == "columns":
            return gram([self.entries(columns)], [weight])
        return gram([self.times(sparse.diags_array(np.sqrt(weight))).T], [np.ones(self.shape[1])])

    @abstractmethod
    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        """Return the operator between some rows and columns."""

    def pack(self, columns: Indices, single: bool = False, beside: float = 0.0) -> Operator:
        """Return some columns in separate memory, in float32 if ``single`` and that saves memory.

        If memory is bounded, ``beside`` bytes of it are already in use; columns that do not fit into the rest are not
        copied.
        """
        return self.restrict(np.arange(self.shape[0]), columns)

    def ordered(self, by: Side) -> Operator:
        """Return an operator with the same entries whose columns, or rows, are contiguous in memory."""
        return self

    def loaded(self, runs: Sequence[Indices]) -> Iterator[Operator]:
        """Yield one run of columns after the other in memory; each is valid until the next one is requested.

        A run lies within a panel. If columns cannot be read without the others, a run is not copied.
        """
        if self.traits.reads_columns:
            return self._load(runs)
        every = np.arange(self.shape[0])
        return (self if run.size == self.shape[1] else self.restrict(every, run) for run in runs)

    def _load(self, runs: Sequence[Indices]) -> Iterator[Operator]:
        return (self.pack(run) for run in runs)


def one_by_one(columns: Columns) -> Indices:
    """Return columns as their indices."""
    return np.arange(columns.start, columns.stop) if isinstance(columns, slice) else columns


def powers(values: Any, power: float) -> Any:
    """Return |values|^power entry by entry, for the powers 0, 1 and 2."""
    if power == 1:
        return np.abs(values)
    return np.square(values, dtype=np.float64) if power == 2 else (values != 0).astype(np.float64)


def chosen(product: Vector, rows: Indices | None) -> Vector:
    """Return a product in some rows, by default all."""
    return product if rows is None else product[rows]


def spread(y: Vector, rows: Indices | None, size: int) -> Vector:
    """Return a vector of all rows that is y in some of them, by default all, and 0 in the others."""
    if rows is None:
        return y
    everywhere = np.zeros(size)
    everywhere[rows] = y
    return everywhere


def compressed_by_panels(A: Operator, columns: Indices | None) -> Any:
    """Return some columns as a CSC matrix, made from a few dense columns at a time."""
    columns = np.arange(A.shape[1]) if columns is None else columns
    width = max(1, PANEL // A.shape[0])
    panels = np.split(columns, np.arange(width, columns.size, width))
    return sparse.hstack([sparse.csc_matrix(A.entries(panel)) for panel in panels], format="csc")
