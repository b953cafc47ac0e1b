r"""Least squares on as many rows as there are columns.

If a loss depends only on the sum of squared residuals, rows may be rotated: with the triangular factor R of [X, y] and
any orthonormal Q, the problem with QR has the same objective at the same coefficients. R is the Cholesky factor of the
Gram matrix if that keeps enough digits: if no column, and not y either, is nearly a combination of the columns before
it. Otherwise [X, y] itself is factored, so that R is exact for data that differ from the given ones only by rounding.
The rows of R have very different lengths, and some are empty; a cosine transform as Q makes their lengths similar.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.fft import dct

from ..common.arrays import Vector
from ..machine.blas_threads import single_threaded
from ..machine.tiled_blas import cholesky
from ..operators.gram import gram

TALL = 2
"""Smallest ratio of rows to columns for which a reduction of the rows pays."""

COLUMNS = 8
"""Largest ratio of columns to the number of problems for which the factorisation pays."""

PANEL = 1 << 18
"""Entries that are factored together, such that they stay in the cache."""

INDEPENDENT = 1e-3
"""Smallest distance of a column from the span of those before it, relative to its length, for a Cholesky factor.

The Gram matrix has relative errors of about 1e-16, and those of a square of this distance are then about 1e-10."""


def pays(rows: int, columns: int, problems: int) -> bool:
    """Return whether a number of problems with the same X is solved faster after a rotation."""
    return rows >= TALL * columns and columns <= COLUMNS * problems


def rotated(parts: Sequence[Vector], weight: Vector | None) -> Vector:
    """Return a square matrix whose columns have the same weighted inner products as those of the parts side by side."""
    factor = _by_gram_matrix(parts, weight)
    if factor is None:
        factor = _by_rows(parts, weight)
    return np.asfortranarray(dct(factor, axis=0, norm="ortho"))


def _by_gram_matrix(parts: Sequence[Vector], weight: Vector | None) -> Vector | None:
    """Return R as a Cholesky factor; None if it would have too few digits."""
    products = gram(*zip(*_panels(parts, weight), strict=True))
    lower = cholesky(products)
    if lower is None or np.any(lower.diagonal() < INDEPENDENT * np.sqrt(products.diagonal())):
        return None
    return np.tril(lower).T


def _by_rows(parts: Sequence[Vector], weight: Vector | None) -> Vector:
    """Return R by orthogonal transformations of the rows, one panel after another."""
    factor = np.empty((0, sum(part.shape[1] for part in parts)))
    with single_threaded():  # panels are so small that threads would wait for each other
        for panel, own in _panels(parts, weight):
            scaled = np.concatenate([factor, np.sqrt(own)[:, None] * panel])
            factor = np.asarray(np.linalg.qr(scaled, mode="r"))
    return factor


def _panels(parts: Sequence[Vector], weight: Vector | None) -> Iterator[tuple[Vector, Vector]]:
    """Yield panels of rows of the parts side by side, with the weights of the rows."""
    rows, columns = parts[0].shape[0], sum(part.shape[1] for part in parts)
    height = max(TALL * columns, PANEL // columns)
    for start in range(0, rows, height):
        own = slice(start, start + height)
        panel = np.concatenate([part[own] for part in parts], axis=1, dtype=np.float64)
        yield panel, np.ones(len(panel)) if weight is None else weight[own]
