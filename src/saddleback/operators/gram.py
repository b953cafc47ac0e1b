"""Gram matrices, computed one panel at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..common.arrays import Indices, Vector
from ..machine.tiled_blas import add_gram

PANEL = 1 << 22
"""Largest number of entries in a temporary dense copy."""


def slices(size: int, other: int) -> list[slice]:
    """Return slices of one axis of a matrix, such that each panel fits a temporary copy."""
    width = max(1, PANEL // max(other, 1))
    return [slice(first, first + width) for first in range(0, size, width)]


def by_rows(matrix: Any) -> tuple[Indices, Indices, Vector]:
    """Return a sparse matrix in compressed rows, in the form that the native kernels need."""
    rows = sparse.csr_array(matrix)
    rows.sum_duplicates()
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data.astype(np.float64)


def gram(panels: Iterable[NDArray[Any]], weights: Iterable[Vector]) -> Vector:
    """Return the sum of P' diag(w) P over panels of rows, in the lower triangle."""
    total: Vector | None = None
    for panel, weight in zip(panels, weights, strict=True):
        if total is None:
            total = np.zeros((panel.shape[1], panel.shape[1]), order="F")
        if total.size:
            total = add_gram(total, panel, weight)
    assert total is not None
    return total


def square(normal: Any) -> Any:
    """Return the full matrix, given its diagonal or its lower triangle."""
    if normal.ndim == 1:
        return sparse.diags(normal, format="csc")
    return normal if sparse.issparse(normal) else np.tril(normal) + np.tril(normal, -1).T
