"""Cholesky factors on the host, or on the device where the matrix lies."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from scipy.linalg import lapack

from ..common.arrays import Vector
from .tiled_blas import cholesky


def factor(matrix: Any) -> Any:
    """Return the Cholesky factor of a matrix, given its lower triangle; None if it is not positive definite."""
    if isinstance(matrix, np.ndarray):
        return cholesky(matrix)
    with suppress(np.linalg.LinAlgError):
        found = np.linalg.cholesky(matrix)
        return found if np.all(np.isfinite(np.diagonal(found))) else None
    return None


def solved(lower: Any, right: Vector) -> Vector:
    """Return the solution of a system for a Cholesky factor and a right-hand side on the host."""
    if not right.size:
        return right
    if isinstance(lower, np.ndarray):
        return np.asarray(lapack.dpotrs(lower, right, lower=1)[0])
    return np.asarray(lower.cholesky_solve(right))
