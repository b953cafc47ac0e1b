"""How many threads a solve may use, ours and those of the BLAS under numpy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from . import _native
from .operators import Operator


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class _Open:
    """Solves under way in this process: the limits are process-wide, and the last to end restores them."""

    lock = Lock()
    count = 0
    native = 0
    allowed = 1
    blas: Any = None


@contextmanager
def limited(threads: int | None, A: Operator) -> Iterator[None]:
    """Use at most so many threads, all cores for None.

    Where our kernels do the work the BLAS gets one thread: its idle workers spin for milliseconds after every call, on
    the cores that the kernels need. Elsewhere (a singular value decomposition, say) it may have them all.
    """
    ours = threads or _native.hardware_threads()
    with _Open.lock:
        before = _native.set_threads(ours)
        _Open.allowed = ours
        if _Open.count == 0:
            _Open.native = before
            _Open.blas = _libraries().limit(limits=1 if A.explicit else ours, user_api="blas")
        _Open.count += 1
    try:
        yield
    finally:
        with _Open.lock:
            _Open.count -= 1
            if _Open.count == 0:
                _native.set_threads(_Open.native)
                _Open.blas.restore_original_limits()


WORTH_THREADS = 300
"""Size of a matrix from which on its factorisation gains by threads."""


@contextmanager
def blas_threads(size: int) -> Iterator[None]:
    """Give the BLAS all threads of the solve for the factorisation of a matrix, in which our kernels rest."""
    if size < WORTH_THREADS:
        yield
        return
    with _libraries().limit(limits=_Open.allowed, user_api="blas"):
        yield
