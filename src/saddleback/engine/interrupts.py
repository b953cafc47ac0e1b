"""Ctrl-C as a request: the run ends at its next safe point, with the best result so far."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType
from typing import Any

from ..places.mpi.communicator import Communicator

AGAIN = 0.4
"""Seconds within which a second Ctrl-C raises KeyboardInterrupt even if the first one has ended another run: so that a
loop over many short runs, which does not look at their status, can be left."""


class Interrupts:
    """While entered, notes Ctrl-C instead of raising; a second one raises as usual.

    One that is entered inside another shares its notes: Ctrl-C during a path ends the run that is at work, and the
    path. A Ctrl-C that nobody has asked about before the end is raised then, so that none is lost.

    Only the main thread may handle signals, and only it receives Ctrl-C: elsewhere this does nothing. Where several
    processes run together, a request to any of them is one to all.
    """

    _last = -float("inf")
    """When the last Ctrl-C came, to any of them."""

    def __init__(self, team: Communicator) -> None:
        self._team = team
        self._shared = self
        self._noted = self._told = False
        self._previous: Any = None
        self._active = False

    @property
    def requested(self) -> bool:
        """Whether the run is to end; all processes have to ask at the same time."""
        noted = self._shared._noted
        self._shared._told |= noted
        return self._team.any(noted)

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            owner = getattr(handler, "__self__", None)
            if isinstance(owner, Interrupts):
                self._shared = owner
            elif handler is signal.default_int_handler:
                self._active = True
                self._previous = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._active:
            signal.signal(signal.SIGINT, self._previous)
            if self._noted and not self._told and kind is None:
                raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        again, Interrupts._last = self._noted or now - Interrupts._last < AGAIN, now
        self._noted = True
        if again:
            self._told = True
            signal.default_int_handler(number, frame)
