r"""Least squares on as many rows as there are columns.

Where a loss depends on the sum of squares of the residuals alone, rows may be rotated: with the triangular factor R of
[X, y] and any orthonormal Q, the problem of QR has the same objective at the same coefficients. It is a factorisation
of [X, y] itself, not of its products, so that R is exact for data that differ from those given by rounding alone. The
rows of R are of very different lengths, and some are empty; a cosine transform for Q makes them alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.fft import dct

from ..common.arrays import Vector

TALL = 4
"""Rows, relative to columns, from which on fewer of them are worth having."""

COLUMNS = 2
"""Columns, relative to the number of problems that are solved with them, up to which a factorisation pays."""

PANEL = 1 << 18
"""Entries that are factored together: what stays in the cache."""


def pays(rows: int, columns: int, problems: int) -> bool:
    """Return whether as many problems with the same rows and columns are solved faster after a rotation."""
    return rows >= TALL * columns and columns <= COLUMNS * problems


def rotated(parts: Sequence[Vector], weight: Vector | None) -> Vector:
    """Return a square matrix with the same weighted products between columns as these have side by side."""
    rows, columns = parts[0].shape[0], sum(part.shape[1] for part in parts)
    height = max(TALL * columns, PANEL // columns)
    factor = np.empty((0, columns))
    for start in range(0, rows, height):
        own = slice(start, start + height)
        panel = np.concatenate([part[own] for part in parts], axis=1, dtype=np.float64)
        if weight is not None:
            panel *= np.sqrt(weight[own, None])
        factor = np.asarray(np.linalg.qr(np.concatenate([factor, panel]), mode="r"))
    return np.asfortranarray(dct(factor, axis=0, norm="ortho"))
