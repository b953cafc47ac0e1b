"""The BLAS of numpy and scipy on one thread, while any solve needs it.

The limit of a BLAS belongs to the process. It is set when the first holder enters, and restored when the last one
leaves.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@cache
def libraries() -> list[Any]:
    """Return the BLAS libraries of this process, as threadpoolctl knows them."""
    from threadpoolctl import ThreadpoolController

    found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


class _Single:
    """The number of holders of the limit, in all threads and in this one."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a signal handler may fork while this thread holds it
        self.count = 0
        self.before: list[int] = []
        self.here = threading.local()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the limit."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> None:
        with self.lock:
            if self.count == 0:
                self.before = [library.num_threads for library in libraries()]
            for library in libraries():  # also if it is held already: another thread may have raised it
                _set(library, 1)
            self.count += 1
            self.here.depth = self.depth() + 1

    def _leave(self) -> None:
        with self.lock:
            self.here.depth -= 1
            self._hold(self.count - 1)

    def _hold(self, count: int) -> None:
        """Hold the limit for this number of callers; restore it if there are none."""
        self.count = count
        if count == 0:
            for library, threads in zip(libraries(), self.before, strict=True):
                _set(library, threads)

    def depth(self) -> int:
        """Return how often this thread holds the limit, counting nested contexts."""
        return int(getattr(self.here, "depth", 0))

    def in_child(self) -> None:
        """Correct the count in a forked process, in which only this thread exists."""
        self.lock = threading.RLock()
        if self.count > 0:
            self._hold(self.depth())


def _set(library: Any, threads: int) -> None:
    """Set how many threads a library uses.

    New versions of threadpoolctl obey only the first thread that sets a limit on OpenBLAS, as long as that thread
    lives. Here several threads set it one after the other.
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


@contextmanager
def single_threaded() -> Iterator[None]:
    """Let the BLAS use one thread."""
    if _single.depth() > 0:  # this thread holds the limit already
        yield
        return
    with _single.held():
        yield
