"""The process of a library, seen from the benchmark."""

from __future__ import annotations

import json
import selectors
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from .worker.answer import Answer

BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from worker.main import main; del sys.path[0]; main(sys.argv[2])"
"""Imports the worker as a top-level package: the interpreter need not have saddleback installed."""

START_SECONDS = 120.0
"""Seconds that an interpreter may take to start, or to read a task."""

SLICES = 100


class TimedOut(Exception):
    """A request took longer than its limit."""


class Failed(Exception):
    """The library raised an error, or its process died."""


class Process:
    """The process of one library; after a ``TimedOut`` it is closed.

    Parameters
    ----------
    peer : name of the library.
    python : interpreter in which it is installed.
    """

    def __init__(self, peer: str, python: str) -> None:
        self.peer = peer
        self.folder = Path()
        self.child = subprocess.Popen(
            [python, "-c", BOOT, str(Path(__file__).parent), peer],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # libraries print a lot; failures come back as replies
            text=True,
        )

    def versions(self) -> dict[str, str] | None:
        """Return the versions of the library's packages; None if one is not installed."""
        found: dict[str, str] | None = self._ask(START_SECONDS, do="versions")["versions"]
        return found

    def load(self, folder: Path) -> None:
        """Let the process read the task in a folder."""
        self.folder = folder
        self._ask(START_SECONDS, do="load", folder=str(folder))

    def solve(self, tol: float, cap: float) -> tuple[float, Answer]:
        """Return the seconds that it took to solve the task with a tolerance of the library, and the answer."""
        reply = self._ask(cap, do="solve", tol=tol)
        x = self._answer("x")
        if x is None:
            raise Failed("it gave no answer")
        return reply["seconds"], Answer(x, self._answer("y"), reply["info"])

    def close(self) -> None:
        """End the process."""
        self.child.kill()
        self.child.communicate()

    def _ask(self, seconds: float, **request: Any) -> dict[str, Any]:
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        try:
            print(json.dumps(request), file=self.child.stdin, flush=True)
        except BrokenPipeError:
            raise Failed("its process has ended") from None
        with selectors.DefaultSelector() as selector:
            selector.register(self.child.stdout, selectors.EVENT_READ)
            # waits in slices, so that a suspend of the machine counts as one slice only
            if not any(selector.select(seconds / SLICES) for _ in range(SLICES)):
                self.close()
                raise TimedOut
        line = self.child.stdout.readline()
        if not line:
            raise Failed("its process has ended")
        reply: dict[str, Any] = json.loads(line)
        if "failed" in reply:
            raise Failed(reply["failed"])
        return reply

    def _answer(self, name: str) -> Any:
        path = self.folder / f"{self.peer}.{name}.answer"
        return np.load(path) if path.exists() else None
