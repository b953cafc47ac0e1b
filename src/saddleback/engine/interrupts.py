"""Ctrl-C requests the end of a run: it stops at its next safe point and returns the best result so far."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType
from typing import Any

from ..places.mpi.communicator import Communicator

AGAIN = 0.4
"""Seconds within which a second Ctrl-C raises KeyboardInterrupt even if the first one ended another run. This lets a
user leave a loop over many short runs that does not check their status."""


class Interrupts:
    """A context in which the first Ctrl-C is recorded instead of raised; a second one raises as usual.

    A context inside another one shares its record: Ctrl-C during a path ends the current run and the path. If nobody
    has read ``requested`` after a Ctrl-C, the end of the context raises it, so that none is lost.

    Only the main thread may handle signals, and only it receives Ctrl-C: in other threads this does nothing. With
    several processes, a request to one of them is a request to all.
    """

    _last = -float("inf")
    """Time of the last Ctrl-C in any context."""

    _active: Interrupts | None = None
    """The one that handles Ctrl-C."""

    def __init__(self, team: Communicator) -> None:
        self._team = team
        self._shared = self
        self._noted = self._told = False
        self._previous: Any = None

    @property
    def requested(self) -> bool:
        """Whether the run has to end; all processes have to read it at the same time."""
        noted = self._shared._noted
        self._shared._told |= noted
        return self._team.any(noted)

    @property
    def noted(self) -> bool:
        """Whether Ctrl-C has been pressed on this process; somebody else has to read ``requested``."""
        return self._shared._noted

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            if Interrupts._active is not None:
                self._shared = Interrupts._active
            elif signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                Interrupts._active = self
                self._previous = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if Interrupts._active is self:
            Interrupts._active = None
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
