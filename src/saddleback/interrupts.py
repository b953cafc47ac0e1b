"""Ctrl-C as a request: the run ends at its next safe point, with the best result so far."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

from .ranks import Team


class Interrupts:
    """While entered, notes Ctrl-C instead of raising; a second one raises as usual.

    Only the main thread may handle signals, and only it receives Ctrl-C: elsewhere this does nothing. Where several
    processes run together, a request to any of them is one to all.
    """

    def __init__(self, team: Team) -> None:
        self._team = team
        self._noted = False
        self._previous: Any = None
        self._active = False

    @property
    def requested(self) -> bool:
        """Whether the run is to end; all processes have to ask at the same time."""
        return self._team.any(self._noted)

    def __enter__(self) -> Interrupts:
        self._active = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self._active:
            self._previous = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._active:
            signal.signal(signal.SIGINT, self._previous)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._noted:
            signal.default_int_handler(number, frame)
        self._noted = True
