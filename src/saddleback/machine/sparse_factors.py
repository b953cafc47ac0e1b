"""Factors of sparse normal matrices T' diag(w) T + diag(d): the pattern is analysed once, and the values change.

If the columns of T can be ordered such that the matrix has a narrow band, as for differences along a line, its factor
takes a few operations per column. Otherwise the columns get an order of minimum degree, and the factor is computed by
supernodes. Each class contains, in a comment or as a fallback, the lines of scipy that compute the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import spilu, splu

from .. import _native
from ..common.arrays import Indices, Vector
from .blas_threads import single_threaded
from .tiled_blas import tiled

Solve = Callable[[Vector], Vector]

WIDEST = max(_native.BAND_WIDTHS)
"""Widest band that is factored as a band; supernodes are faster for wider ones."""

EMPTY = 1e-8
"""Diagonal entry in the place of 0, relative to the median entry: the border of a system may determine the variable."""

CANCELLED = 1e-11
"""Least pivot, relative to its entry of the diagonal, that a factor in doubles may have. Some five digits are left
then, and refinement finds the others."""

FULL = 0.05
"""Share of the entries of a matrix that are not 0 from which its factor counts as full."""

SMALL = 2000
"""Size up to which an order of minimum degree is computed in any case: it costs little."""

WIDE = 0.1
"""Width of the band, relative to the size, from which larger matrices count as full. Without a good order of the band
there is hardly ever an order with little fill, and the search for one takes long."""


class Normal(ABC):
    """The matrix T' diag(w) T + diag(d) for one T and any w and d.

    Attributes
    ----------
    bytes : memory of T, the matrix and its factor.
    visits : entries that are read or written one by one.
    multiplications : multiplications inside dense panels, which are much faster.
    solve_visits : entries that are read for a solution.
    """

    bytes: float
    visits: float
    multiplications: float
    solve_visits: float

    def __init__(self, T: Any, order: Indices | None) -> None:
        rows = sparse.csr_array(T) if order is None else sparse.csr_array(T)[:, order]
        rows.sort_indices()
        self.order = order
        self.rows = rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data.astype(np.float64)
        self.bytes = float(sum(array.nbytes for array in self.rows))
        counts = np.diff(rows.indptr).astype(np.float64)
        self.pairs = float(counts @ (counts + 1.0)) / 2.0

    def factored(self, weight: Vector, diagonal: Vector, shift: float = 0.0) -> Solve | None:
        """Return a function that solves the system for w and d; None if the matrix is not positive definite.

        ``shift`` is added to the diagonal of the matrix, relative to its entries. A diagonal entry of 0 becomes small.
        """
        order = self.order
        solve = self._factored(weight, np.ascontiguousarray(diagonal if order is None else diagonal[order]), shift)
        return solve if solve is None or order is None else _reordered(solve, order)

    @abstractmethod
    def _factored(self, weight: Vector, diagonal: Vector, shift: float) -> Solve | None:
        """Return what ``factored`` does, for columns in the order of the factor."""


def _shifted(own: Vector, shift: float) -> Vector:
    """Return the diagonal of a matrix with its shift, and small entries in the place of 0."""
    shifted = own * (1.0 + shift) if shift else own
    return np.where(own == 0, EMPTY * (float(np.median(own)) or 1.0), shifted) if np.any(own == 0) else shifted


def _reordered(solve: Solve, order: Indices) -> Solve:
    def solved(right: Vector) -> Vector:
        result = np.empty_like(right)
        result[order] = solve(right[order])
        return result

    return solved


class Banded(Normal):
    """A matrix with a narrow band: ``scipy.linalg.cholesky_banded`` and ``cho_solve_banded`` compute the same.

    The weights of an interior point may differ by a factor of 1e20, and the differences of third order of a long piece
    of a signal are very nearly dependent. If elimination cancels nearly all digits of a pivot, all is computed again
    with twice the digits.
    """

    def __init__(self, T: Any, order: Indices | None, width: int) -> None:
        super().__init__(T, order)
        self.width = min(each for each in _native.BAND_WIDTHS if each >= width)
        size = float(T.shape[1])
        self.band = _native.BandRows(*self.rows, T.shape[1], self.width)
        del self.rows  # the band has a copy of them
        self.bytes += 8.0 * T.shape[0] + 16.0 * size * (self.width + 1)
        self.visits = self.pairs + size * (self.width + 1) * (self.width + 2) / 2.0
        self.multiplications = 0.0
        self.solve_visits = 2.0 * size * (self.width + 1)

    def _factored(self, weight: Vector, diagonal: Vector, shift: float) -> Solve | None:
        for gram, least in ((self.band.gram, CANCELLED), (self.band.precise_gram, 0.0)):
            matrix = gram(weight, diagonal)
            kept = 0.0 if shift else matrix.factor()
            if kept == 0.0:  # now with the shift, and entries in the place of zeros on the diagonal
                matrix = gram(weight, diagonal)
                own = matrix.diagonal()
                at = np.flatnonzero(own == 0) if shift == 0 else np.arange(own.size)
                matrix.set_diagonal(at, _shifted(own, shift)[at])
                kept = matrix.factor() if at.size else 0.0
            if kept > least:
                return matrix.solve
            del matrix  # before the one with twice the digits is formed
        return None


class Supernodal(Normal):
    """A matrix whose factor has few entries."""

    def __init__(self, T: Any, order: Indices, pattern: _native.SparsePattern, lower: Any) -> None:
        super().__init__(T, order)
        self.pattern, self.lower = pattern, lower
        self.bytes += 8.0 * (2.0 * self.lower.nnz + pattern.entries)
        self.visits = 2.0 * self.pairs + 2.0 * pattern.entries
        self.multiplications = pattern.multiplications
        self.solve_visits = 2.0 * pattern.entries

    def _factored(self, weight: Vector, diagonal: Vector, shift: float) -> Solve | None:
        values, at = self.pattern.gram(*self.rows, weight, diagonal), self.lower.indptr[:-1]
        values[at] = _shifted(values[at], shift)
        if not tiled():
            return self._by_superlu(values)
        with single_threaded():
            factor = self.pattern.factor(values)
        return None if factor is None else factor.solve

    def _by_superlu(self, values: Vector) -> Solve | None:
        lower = sparse.csc_array((values, self.lower.indices, self.lower.indptr), shape=self.lower.shape)
        matrix = sparse.csc_matrix(lower + sparse.tril(lower, -1).T)
        try:
            found = splu(matrix, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        except RuntimeError:  # exactly singular
            return None
        pivots = found.U.diagonal()
        return found.solve if np.all((pivots > 0) & np.isfinite(pivots)) else None


def normal_matrix(T: Any, most: float) -> Normal | None:
    """Return the normal matrix of a sparse T in an order with little fill; None if its factor has too many entries.

    Parameters
    ----------
    T : sparse matrix
    most : float
        The most entries that the factor may have.
    """
    T = sparse.csr_array(T)
    T.sort_indices()
    size = T.shape[1]
    if (width := _band_width(T)) <= WIDEST:
        return Banded(T, None, width)
    pattern = sparse.csc_array(_ones(T).T @ _ones(T))
    order = np.asarray(reverse_cuthill_mckee(sparse.csr_matrix(pattern), symmetric_mode=True), dtype=np.int64)
    if (width := _band_width(T[:, order])) <= WIDEST:
        return Banded(T, order, width)
    if pattern.nnz > FULL * size**2 or (size > SMALL and width > WIDE * size):
        return None
    order = minimum_degree(pattern)
    order = order[_pattern(pattern, order)[0].postorder()]
    own, lower = _pattern(pattern, order)
    return Supernodal(T, order, own, lower) if own.analyse(int(min(most, 2**62))) else None


def _ones(T: Any) -> Any:
    """Return the pattern of a matrix, as a matrix of ones."""
    return sparse.csr_array((np.ones(T.nnz, dtype=np.float32), T.indices, T.indptr), shape=T.shape)


def _band_width(T: Any) -> int:
    """Return the largest distance between two columns in the same row, for rows in any order."""
    rows = np.flatnonzero(np.diff(T.indptr))
    if rows.size == 0:
        return 0
    first = np.minimum.reduceat(T.indices, T.indptr[rows])
    last = np.maximum.reduceat(T.indices, T.indptr[rows])
    return int(np.max(last - first))


def minimum_degree(pattern: Any) -> Indices:
    """Return an order of minimum degree for a symmetric pattern.

    That is the order of SuperLU. An incomplete factorisation that keeps next to nothing is the cheapest way to it.
    """
    size = pattern.shape[0]
    off = sparse.csc_matrix(pattern).astype(np.float64)
    off.data[:] = -1.0
    matrix = off + sparse.diags(np.asarray(off.shape[0] * 2.0).repeat(size), format="csc")
    found = spilu(
        sparse.csc_matrix(matrix),
        drop_tol=1.0,
        fill_factor=1.0,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.argsort(found.perm_c).astype(np.int64)


def _pattern(pattern: Any, order: Indices) -> tuple[_native.SparsePattern, Any]:
    """Return the lower triangle of a symmetric pattern in another order, its whole diagonal included."""
    permuted = pattern[:, order][order] + sparse.identity(order.size, format="csc")
    lower = sparse.csc_array(sparse.tril(permuted, format="csc"))
    lower.sort_indices()
    return _native.SparsePattern(lower.indptr.astype(np.int64), lower.indices.astype(np.int64)), lower
