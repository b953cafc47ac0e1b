"""Dense products and Cholesky factors on the threads of this library, one tile per call of the BLAS.

Each function contains the line of numpy or scipy that computes the same without compiled code. A BLAS with several
threads could be used instead. But its threads spin while they wait, which takes ten times as long as one thread if
another process needs a core; and its bits depend on the number of threads.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, cython_blas, cython_lapack, lapack

from .. import _native
from .blas_threads import libraries, single_threaded

Matrix = NDArray[Any]

WORTH = 1 << 20
"""Multiplications from which a product is divided into tiles."""


@cache
def tiled() -> bool:
    """Return whether the compiled core can call the BLAS of scipy, from several threads with one BLAS thread each.

    An OpenBLAS on OpenMP has a limit per thread, and would use all CPUs in each thread of the library.
    """
    if any(getattr(library, "threading_layer", "") == "openmp" for library in libraries()):
        return False
    routines = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}
    try:
        _native.use_blas(routines)
    except (KeyError, ValueError):  # a routine is missing, or has integers of another size
        return False
    return True


def product(A: Any, B: Any, out: Matrix | None = None) -> Any:
    """Return A B for two matrices on the host or on a device; written to ``out`` if it is given."""
    fits = out is None or (_is_stored(out) and out.flags.c_contiguous and out.dtype == A.dtype)
    if not fits or not _in_tiles(A, B):
        return A @ B if out is None else np.matmul(A, B, out=out)
    out = np.empty((A.shape[0], B.shape[1]), A.dtype) if out is None else out
    with single_threaded():
        _native.product(A, B, out)
    return out


def outer(A: Any) -> Any:
    """Return A A' for a matrix on the host or on a device."""
    if not _in_tiles(A, A.T):
        return A @ A.T
    out = np.empty((A.shape[0], A.shape[0]), A.dtype)
    with single_threaded():
        _native.product(A, A.T, out, symmetric=True)
    return out


def add_gram(total: Matrix, panel: Matrix, weight: Matrix) -> Matrix:
    """Return the lower triangle of C + P' diag(w) P for w >= 0, given that of C, which is overwritten."""
    if tiled():
        with single_threaded():
            _native.add_gram(panel if _is_stored(panel) else np.asfortranarray(panel), weight, total)
        return total
    scaled = np.multiply(np.sqrt(weight)[:, None], panel, order="F")
    return np.asarray(blas.dsyrk(1.0, scaled, trans=1, lower=1, beta=1.0, c=total, overwrite_c=1))


def cholesky(matrix: Matrix) -> Matrix | None:
    """Return L with A = LL' in the lower triangle, given the lower triangle of A.

    Entries above the diagonal are undefined. None if A is not positive definite, or not finite.
    """
    if tiled():
        factor = np.array(matrix, dtype=np.float64, order="F")
        with single_threaded():
            failed = _native.cholesky(factor)
    else:
        factor, failed = lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=0)
    return factor if not failed and np.all(np.isfinite(np.diagonal(factor))) else None


def _in_tiles(A: Any, B: Any) -> bool:
    """Return whether a product is large, and its matrices can be read by the compiled core."""
    large = A.shape[0] * A.shape[1] * B.shape[1] >= WORTH
    return bool(large) and _is_stored(A) and _is_stored(B) and A.dtype == B.dtype and tiled()


def _is_stored(A: Any) -> bool:
    """Return whether this is an array of floats with contiguous rows or contiguous columns."""
    if not isinstance(A, np.ndarray) or A.dtype not in (np.float64, np.float32) or A.size == 0:
        return False
    (down, across), (m, n) = A.strides, A.shape
    by_columns = (down == A.itemsize or m == 1) and (n == 1 or across >= A.itemsize * m)
    by_rows = (across == A.itemsize or n == 1) and (m == 1 or down >= A.itemsize * n)
    return bool(by_columns or by_rows)
