"""Square parts of a matrix that are not singular: how they are chosen, and how their inverse follows a change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ..common.arrays import Indices, Vector

Matrix = NDArray[np.float64]

DEPENDENT = 1e-11
"""Pivots below this, relative to the largest entry of their row or column, are 0 up to rounding."""

ROOM = 64
"""Rows and columns that can be added to an inverse before its memory is doubled."""

SMALLEST_PIVOT = 1e-9
"""An exchange with a smaller pivot would leave nothing of the inverse."""


class LostBasis(Exception):
    """The inverse of a basis is not accurate, or no column can enter."""


def independent(block: Matrix, weight: Vector) -> tuple[Indices, Indices]:
    """Return rows and columns, as many of each as the rank, of a square part of a block that is not singular.

    Columns of large weight are preferred. Gaussian elimination of the block, or of its transpose if it has more columns
    than rows, chooses the largest pivot on the longer side: columns by their weighted entries, or rows. The shorter
    side keeps its order, and what depends on the others shows as a pivot of 0. Such a pivot uses up a row or column
    that another one may need. So these are put last, and what the others leave of them is eliminated with pivots from
    all of it.

    Parameters
    ----------
    block : ndarray of shape (r, k)
    weight : ndarray of shape (k,)
        Positive.
    """
    rows, columns = block.shape
    across = columns > rows
    by_weight = np.argsort(-weight, kind="stable")
    scaled = np.asfortranarray((block * weight).T if across else (block * weight)[:, by_weight])
    size = np.abs(scaled).max(axis=0, initial=0.0)
    order = np.arange(min(rows, columns))
    if not order.size:
        return order, order
    factors, places = _eliminated(scaled)
    good = np.abs(factors.diagonal()) > DEPENDENT * size
    if not good.all():
        order = np.concatenate([order[good], order[~good]])
        factors, places = _eliminated(scaled[:, order])
        good = np.abs(factors.diagonal()) > DEPENDENT * size[order]
    rank = order.size if good.all() else int(np.argmin(good))
    rest = scaled[np.ix_(places[rank:], order[rank:])] - factors[rank:, :rank] @ factors[:rank, rank:]
    rows_left, columns_left = _complete_pivots(rest / np.where(size > 0, size, 1.0)[order[rank:]])
    short = order[np.append(np.arange(rank), rank + columns_left)]
    long = places[np.append(np.arange(rank), rank + rows_left)]
    return (short, long) if across else (long, by_weight[short])


def _eliminated(matrix: Matrix) -> tuple[Matrix, Indices]:
    """Return the factors of a matrix with at least as many rows as columns, and the order of its rows in them."""
    factors, swaps, _ = lapack.dgetrf(matrix)
    order = np.arange(matrix.shape[0])
    for i, j in enumerate(swaps):
        order[i], order[j] = order[j], order[i]
    return factors, order


def _complete_pivots(matrix: Matrix) -> tuple[Indices, Indices]:
    """Return rows and columns of a square part that is not singular, by elimination with the largest of all entries."""
    rows, columns = [], []
    while matrix.size:
        i, j = np.unravel_index(int(np.argmax(np.abs(matrix))), matrix.shape)
        if not abs(matrix[i, j]) > DEPENDENT:
            break
        rows.append(i)
        columns.append(j)
        matrix = matrix - np.outer(matrix[:, j], matrix[i] / matrix[i, j])
        matrix[i], matrix[:, j] = 0.0, 0.0
    return np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64)


class Inverse:
    """The inverse of a square matrix, of which a column is exchanged or to which a row and a column are added.

    Attributes
    ----------
    of : the inverse; its rows belong to the columns of the matrix.
    """

    def __init__(self, matrix: Matrix) -> None:
        self.size = matrix.shape[0]
        self._memory = np.empty((self.size + ROOM, self.size + ROOM))
        self.renew(matrix)

    @property
    def of(self) -> Matrix:
        """The inverse itself."""
        return self._memory[: self.size, : self.size]

    def renew(self, matrix: Matrix) -> None:
        """Compute it again from the matrix."""
        if not matrix.size:
            return
        factors, swaps, singular = lapack.dgetrf(matrix)
        inverse, failed = lapack.dgetri(factors, swaps)
        if singular or failed or not np.all(np.isfinite(inverse)):
            raise LostBasis
        self.of[:] = inverse

    def exchange(self, place: int, column: Vector) -> None:
        """Put another column into a place of the matrix."""
        change = self.of @ column
        pivot = change[place]
        if not abs(pivot) > SMALLEST_PIVOT * np.abs(change).max():
            raise LostBasis
        row = self.of[place] / pivot
        change[place] -= 1.0
        self.of[:] -= np.outer(change, row)

    def border(self, row: Vector, column: Vector, corner: float) -> None:
        """Add a row below the matrix, and a column at its end."""
        change, across = self.of @ column, row @ self.of
        pivot = corner - row @ change
        if not abs(pivot) > SMALLEST_PIVOT * (abs(corner) + np.abs(row) @ np.abs(change)):
            raise LostBasis
        self.of[:] += np.outer(change, across / pivot)
        last = self.size
        if last == self._memory.shape[0]:
            before, self._memory = self._memory, np.empty((2 * last, 2 * last))
            self._memory[:last, :last] = before
        self.size += 1
        self.of[:last, last], self.of[last, :last], self.of[last, last] = -change / pivot, -across / pivot, 1.0 / pivot
