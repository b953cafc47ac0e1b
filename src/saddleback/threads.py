"""How many threads a solve may use, ours and those of the BLAS under numpy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from . import _native
from .operators import Operator


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def limited(threads: int | None, A: Operator) -> Iterator[None]:
    """Use at most so many threads, all cores for None.

    Where our kernels do the work the BLAS gets one thread: its idle workers spin for milliseconds after every call, on
    the cores that the kernels need. Elsewhere (a singular value decomposition, say) it may have them all.
    """
    ours = threads or _native.hardware_threads()
    before = _native.set_threads(ours)
    try:
        with _libraries().limit(limits=1 if A.explicit else ours, user_api="blas"):
            yield
    finally:
        _native.set_threads(before)
