r"""Least squares on as many rows as there are columns.

If a loss depends only on the sum of squared residuals, rows may be rotated: with the triangular factor R of [X, y] and
any orthonormal Q, the problem with QR has the same objective at the same coefficients. [X, y] itself is factored, not
its Gram matrix, so that R is exact for data that differ from the given ones only by rounding. The rows of R have very
different lengths, and some are empty; a cosine transform as Q makes their lengths similar.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.fft import dct

from ..common.arrays import Vector
from ..machine.blas_threads import single_threaded

TALL = 2
"""Smallest ratio of rows to columns for which a reduction of the rows pays."""

COLUMNS = 8
"""Largest ratio of columns to the number of problems for which the factorisation pays."""

PANEL = 1 << 18
"""Entries that are factored together, such that they stay in the cache."""


def pays(rows: int, columns: int, problems: int) -> bool:
    """Return whether a number of problems with the same X is solved faster after a rotation."""
    return rows >= TALL * columns and columns <= COLUMNS * problems


def rotated(parts: Sequence[Vector], weight: Vector | None) -> Vector:
    """Return a square matrix whose columns have the same weighted inner products as those of the parts side by side."""
    rows, columns = parts[0].shape[0], sum(part.shape[1] for part in parts)
    height = max(TALL * columns, PANEL // columns)
    factor = np.empty((0, columns))
    for start in range(0, rows, height):
        own = slice(start, start + height)
        panel = np.concatenate([part[own] for part in parts], axis=1, dtype=np.float64)
        if weight is not None:
            panel *= np.sqrt(weight[own, None])
        with single_threaded():  # panels are so small that threads would wait for each other
            factor = np.asarray(np.linalg.qr(np.concatenate([factor, panel]), mode="r"))
    return np.asfortranarray(dct(factor, axis=0, norm="ortho"))
