"""The threads of a solve: a limited number of threads of the library, and one thread of the BLAS.

All parallel work is done by the pool of the compiled core, whose limit belongs to the thread that calls it. The BLAS
and LAPACK run with one thread during any solve, regardless of ``threads``. So two solves at the same time never need
different limits, results do not depend on how a BLAS divides its work, and no thread of a BLAS spins on a core that
another process needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from .. import _native
from ..common.checks import shown
from .blas_threads import single_threaded
from .cpus import available

_native.set_process_threads(available())  # for computations outside of a solve


def check_threads(threads: int | None) -> None:
    """Raise a ValueError if ``threads`` is not a number of threads that a solve can use, nor None."""
    if threads is None:
        return
    if not isinstance(threads, (int, np.integer)) or not 1 <= threads <= _native.MOST_THREADS:
        raise ValueError(f"threads={shown(threads)}: expected None or an integer from 1 to {_native.MOST_THREADS}")


@contextmanager
def limited(threads: int | None) -> Iterator[None]:
    """Use at most ``threads`` threads, or all available ones for None; calls of the BLAS use one."""
    check_threads(threads)
    before = _native.set_threads(threads or available())
    try:
        with single_threaded():
            yield
    finally:
        _native.set_threads(before)
