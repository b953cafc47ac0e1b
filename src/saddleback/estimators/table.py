"""X of an estimator: samples by features, dense or sparse in memory, or in a file that is read panel by panel.

The X of a user becomes a table here, and nowhere else. Fits and predictions use only the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import validate_data

import saddleback as sb

from ..common.arrays import Indices, Vector
from ..common.cached import cached_property
from ..common.checks import in_range, unmasked
from ..operators import as_operator
from ..operators.sparse_input import canonical
from ..places.files.operator import is_streamed
from ..places.torch import on_host
from ..tall.dask_rows import is_dask
from .refusals import explained

Keys = NDArray[np.uint64]

PANEL = 1 << 20
"""Entries of X that are processed together."""

SMALL = 1 << 25
"""Largest size, in bytes as float64, of an X in a file that is read into memory: a few percent of the memory bound."""

SAMPLE = 16
"""Number of rows and of columns whose entries are compared."""

NEAR = 1e-5
"""Largest relative distance of a mean from the first entry of its column for which the column may be constant."""


class Table(ABC):
    """Samples by features.

    Attributes
    ----------
    matrix : the matrix for ``sb.Problem``.
    shape, dtype : shape and type of the matrix; float32 or float64.
    """

    matrix: Any
    shape: tuple[int, int]
    dtype: Any

    dense = False
    """Whether it is an array in memory."""

    in_memory = True
    """Whether products read no file."""

    def __init__(self, matrix: Any) -> None:
        self.matrix, self.shape, self.dtype = matrix, matrix.shape, matrix.dtype

    @abstractmethod
    def keys(self, factors: Keys, others: Keys) -> Keys:
        """Return one number per sample, equal for equal samples: the sum of its features, as bits, times factors.

        ``others`` are added; they are the numbers of the other data that have to be equal.
        """

    @abstractmethod
    def equal(self, one: Indices, other: Indices) -> bool:
        """Return whether samples with the same keys are equal, pair by pair."""

    @abstractmethod
    def rows(self, kept: Indices) -> Table:
        """Return some of the samples."""

    @abstractmethod
    def columns(self, kept: Indices) -> Table:
        """Return some of the features, in memory."""

    def for_folds(self) -> Any:
        """Return a stand-in for X that scikit-learn's splitters accept."""
        return self.matrix

    def uncentred(self) -> Any:
        """Return the matrix without centring, checked to be finite."""
        return self.matrix  # checked when the table was made

    @abstractmethod
    def sample(self) -> NDArray[Any]:
        """Return some of the entries, by which processes compare their X."""

    @abstractmethod
    def centred(self, weight: Vector | None, exactly: bool) -> tuple[Any, Vector | None]:
        """Return the matrix minus one centre per column, and the centres; the matrix and None if that is too expensive.

        Centres are the weighted means, and for a constant column its exact value, so that nothing is left of it. If
        ``exactly``, the means of the centred columns are 0 up to the rounding of these columns.
        """

    @abstractmethod
    def __matmul__(self, coef: NDArray[Any]) -> NDArray[Any]:
        """Return the product with coefficients, which have one column per target."""


class Dense(Table):
    """An array in memory."""

    dense = True

    def keys(self, factors: Keys, others: Keys) -> Keys:
        keys = others.copy()
        for panel in _panels(*self.shape):
            keys[panel] += bits(self.matrix[panel]) @ factors
        return keys

    def equal(self, one: Indices, other: Indices) -> bool:
        parts = _panels(one.size, self.shape[1])
        return all(np.array_equal(self.matrix[one[part]], self.matrix[other[part]]) for part in parts)

    def sample(self) -> NDArray[Any]:
        return np.asarray(self.matrix[np.ix_(*(_some(size) for size in self.shape))])

    def rows(self, kept: Indices) -> Dense:
        return Dense(self.matrix[kept])

    def columns(self, kept: Indices) -> Dense:
        return Dense(np.asfortranarray(self.matrix[:, kept]))

    def centred(self, weight: Vector | None, exactly: bool) -> tuple[Any, Vector | None]:
        X, centre = self.matrix, self._means(weight)
        for column in np.flatnonzero(np.abs(centre - X[0]) <= NEAR * np.abs(X[0])):
            if np.all(X[:, column] == X[0, column]):
                centre[column] = X[0, column]
        less = Dense(np.subtract(X, centre, out=np.empty(X.shape, X.dtype, order="F"), casting="same_kind"))
        if exactly:  # subtract once more what the rounding of large means has left
            rest = less._means(weight)
            centre += rest
            less.matrix -= rest.astype(X.dtype)
        return less.matrix, centre

    def _means(self, weight: Vector | None) -> Vector:
        """Return the weighted means of the columns in float64, without a float64 copy of X."""
        if weight is None:
            return np.asarray(np.mean(self.matrix, axis=0, dtype=np.float64))
        return np.asarray(np.einsum("i,ij->j", weight, self.matrix) / weight.sum())

    def __matmul__(self, coef: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.matrix @ coef)


class Sparse(Table):
    """A sparse matrix, by columns in a fit. It is never made dense, and therefore not centred."""

    @cached_property
    def _by_rows(self) -> Any:
        return self.matrix.tocsr()

    def keys(self, factors: Keys, others: Keys) -> Keys:
        keys = others.copy()
        np.add.at(keys, self.matrix.indices, bits(self.matrix.data) * np.repeat(factors, np.diff(self.matrix.indptr)))
        return keys

    def equal(self, one: Indices, other: Indices) -> bool:
        return bool((self._by_rows[one] != self._by_rows[other]).nnz == 0)

    def sample(self) -> NDArray[Any]:
        return np.asarray(self.matrix.data[_some(self.matrix.nnz)])

    def rows(self, kept: Indices) -> Sparse:
        return Sparse(self._by_rows[kept].tocsc())

    def columns(self, kept: Indices) -> Sparse:
        return Sparse(self.matrix[:, kept])

    def centred(self, weight: Vector | None, exactly: bool) -> tuple[Any, Vector | None]:
        return self.matrix, None

    def __matmul__(self, coef: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.matrix @ coef)


class OnDisk(Table):
    """A dense matrix that stays in its file. One reading computes the centres and checks that entries are finite."""

    matrix: sb.Streamed
    in_memory = False

    def keys(self, factors: Keys, others: Keys) -> Keys:
        return np.arange(self.shape[0], dtype=np.uint64)  # all different: a comparison would take many passes

    def equal(self, one: Indices, other: Indices) -> bool:
        return np.array_equal(one, other)

    def uncentred(self) -> Any:
        return as_operator(self.matrix, "X")

    def for_folds(self) -> Any:
        return np.empty((self.shape[0], 0))

    def sample(self) -> NDArray[Any]:
        return np.empty(0)  # a row-major file would be read as a whole

    def rows(self, kept: Indices) -> OnDisk:
        return OnDisk(self.matrix.of_rows(kept))

    def columns(self, kept: Indices) -> Dense:
        return Dense(self.matrix.entries(kept))

    def centred(self, weight: Vector | None, exactly: bool) -> tuple[Any, Vector | None]:
        share = np.full(self.shape[0], 1.0 / self.shape[0]) if weight is None else weight / weight.sum()
        # relative to one of its entries, the mean of a column is exact up to its spread, and 0 for a constant column
        entry, rest, seen = np.zeros(self.shape[1]), np.zeros(self.shape[1]), np.zeros(self.shape[1], dtype=bool)
        for rows, own, block in self.matrix.pieces():
            entry[own] = np.where(seen[own], entry[own], block.array[0])
            seen[own] = True
            np.subtract(block.array, entry[own], out=block.array, casting="same_kind")
            rest[own] += block.rmatvec(np.ascontiguousarray(share[rows]))
        self._check(rest)
        centre = entry + rest
        less = self.matrix.centred(entry).centred(rest) if exactly else self.matrix.centred(centre)
        return less, centre

    def _check(self, products: NDArray[Any]) -> None:
        """Raise if products are not finite because an entry is not."""
        if not np.all(np.isfinite(products)) and (found := self.matrix.not_finite()) is not None:
            where, value = found
            raise ValueError(f"X has the value {value} at {where}: expected finite numbers")

    def __matmul__(self, coef: NDArray[Any]) -> NDArray[Any]:
        """Return the product; columns with coefficient 0 are not read."""
        columns = np.asarray(coef, dtype=np.float64).reshape(self.shape[1], -1)
        some = np.flatnonzero(np.any(columns, axis=1))
        product = np.zeros((self.shape[0], columns.shape[1]))
        for rows, own, block in self.matrix.pieces(some):
            for k, column in enumerate(columns[some[own]].T):
                product[rows, k] += block.matvec(np.ascontiguousarray(column))
        self._check(product)
        return product.reshape(-1, *coef.shape[1:]).astype(np.result_type(self.dtype, coef.dtype), copy=False)


def checked(model: Any, X: Any, y: Any, least_samples: int, **of_y: Any) -> tuple[Table, Any]:
    """Check the arguments of ``fit``, return them as a table and targets, and set the feature names of the model.

    Parameters
    ----------
    model : the estimator.
    X, y : the arguments.
    least_samples : smallest number of samples.
    of_y : options of ``validate_data`` for y.
    """
    X, y = _given(X), on_host(unmasked("y", y))
    if not is_streamed(X):
        types = [np.float64, np.float32]
        least = {"ensure_min_samples": least_samples}
        with explained(X, y):
            X, y = validate_data(model, X, y, accept_sparse="csc", dtype=types, **least, **of_y)
        in_range("X", X.data if sparse.issparse(X) else X)
        return _in_memory(X), y
    table = OnDisk(_streamed(X))
    validate_data(model, table, y, skip_check_array=True)
    y = validate_data(model, y=y, reset=False, **of_y)
    with explained(table, y):
        check_consistent_length(table, y)
    if table.shape[0] < least_samples:
        raise ValueError(f"X has {table.shape[0]} samples: {type(model).__name__} needs {least_samples} or more")
    return table, y


def checked_samples(model: Any, X: Any) -> Table:
    """Return new samples for a fitted model as a table."""
    X = _given(X)
    if not is_streamed(X):
        with explained(X):
            return _in_memory(validate_data(model, X, accept_sparse=("csr", "csc"), reset=False))
    table = OnDisk(_streamed(X))
    validate_data(model, table, reset=False, skip_check_array=True)
    return table


def bits(values: NDArray[Any]) -> Keys:
    """Return the bits of numbers as float64, equal for 0 and -0, with the high half mixed into the low one."""
    plain: Keys = np.add(values, 0.0, dtype=np.float64).view(np.uint64)
    mixed: Keys = plain ^ (plain >> np.uint64(32))
    return mixed


def _in_memory(X: Any) -> Table:
    return Sparse(X) if sparse.issparse(X) else Dense(X)


def _some(size: int) -> Indices:
    """Return a few indices, including the first and the last."""
    return np.unique(np.linspace(0, max(size - 1, 0), min(size, SAMPLE)).astype(np.int64))


def _given(X: Any) -> Any:
    """Return X on the host, and in memory if its file is small; raise if it is the name of a file."""
    if isinstance(X, (str, PathLike)):
        raise TypeError(f"X is the name {str(X)!r}: pass np.load(X, mmap_mode='r'), or sb.Streamed(X)")
    if is_dask(X):
        raise TypeError("X is a collection of Dask: expected data in memory; call X.compute() if it fits there")
    X = on_host(unmasked("X", X))
    if sparse.issparse(X):
        canonical(X, "X")  # raises before scikit-learn and scipy use an index out of range
    small = is_streamed(X) and not isinstance(X, sb.Streamed) and 8 * X.shape[0] * X.shape[1] <= SMALL
    return np.asarray(X) if small else X


def _streamed(X: Any) -> sb.Streamed:
    return X if isinstance(X, sb.Streamed) else sb.Streamed(X)


def _panels(rows: int, columns: int) -> list[slice]:
    height = max(1, PANEL // columns)
    return [slice(start, start + height) for start in range(0, rows, height)]
