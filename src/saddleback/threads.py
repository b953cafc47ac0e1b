"""The threads of a solve: at most as many of ours as it may use, and a BLAS that uses one.

All parallel work is done by the pool of the compiled core, whose limit belongs to the thread that calls it. The BLAS
and LAPACK run with one thread while any solve is under way, whatever ``threads`` says. So two solves at the same time
never want different limits, results do not depend on how a BLAS divides its work, and no thread of a BLAS spins on a
core that somebody else needs.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from . import _native
from .cpus import available

_native.set_process_threads(available())  # for what is computed outside of a solve


@contextmanager
def limited(threads: int | None) -> Iterator[None]:
    """Work on at most ``threads`` threads, those that are available for None; calls of the BLAS use one."""
    before = _native.set_threads(threads or available())
    try:
        with _single.held():
            yield
    finally:
        _native.set_threads(before)


class _Single:
    """The limit of one thread on the BLAS, held from the first solve that is under way to the last."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a signal handler may fork while this thread holds it
        self.count = 0
        self.before: list[int] = []
        self.here = threading.local()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the limit for a solve."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> None:
        with self.lock:
            if self.count == 0:
                self.before = [library.num_threads for library in _blas()]
            for library in _blas():  # also where it is held: another thread may have raised it meanwhile
                _set(library, 1)
            self.count += 1
            self.here.depth = self._depth() + 1

    def _leave(self) -> None:
        with self.lock:
            self.here.depth -= 1
            self._hold(self.count - 1)

    def _hold(self, count: int) -> None:
        """Hold the limit for this number of solves, and give it back for none."""
        self.count = count
        if count == 0:
            for library, threads in zip(_blas(), self.before, strict=True):
                _set(library, threads)

    def _depth(self) -> int:
        """Return how many solves, one inside of the other, this thread has under way."""
        return int(getattr(self.here, "depth", 0))

    def in_child(self) -> None:
        """Go on in a process that was forked: of the threads that were solving only this one is there."""
        self.lock = threading.RLock()
        if self.count > 0:
            self._hold(self._depth())


@cache
def _blas() -> list[Any]:
    """Return the BLAS libraries of this process."""
    from threadpoolctl import ThreadpoolController

    found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


def _set(library: Any, threads: int) -> None:
    """Set how many threads a library uses.

    New versions of threadpoolctl heed only the first thread that sets a limit on OpenBLAS, as long as that thread
    lives. Here several threads set it in turn.
    """
    if library.num_threads != threads:
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        library.set_num_threads(threads)
        release(force=True)


_single = _Single()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=lambda: _single.lock.acquire(),
        after_in_parent=lambda: _single.lock.release(),
        after_in_child=lambda: _single.in_child(),
    )
