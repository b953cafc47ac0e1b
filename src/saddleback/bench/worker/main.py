"""The process of one library: it reads requests from its input, one JSON object per line, and answers each with one.

Run as ``python -c BOOT FOLDER PEER`` (``process.BOOT``), so that it works in an interpreter without saddleback.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from .answer import Answer
from .peers import PEERS, Peer
from .task import Task


class Desk:
    """Holds the current task, and times the library on it."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.folder = Path()
        self.task = Task("none", {})

    def versions(self) -> dict[str, Any]:
        """Return the versions of the library's packages; None if one of them is not installed."""
        try:
            return {"versions": {package: metadata.version(package) for package in self.peer.packages}}
        except metadata.PackageNotFoundError:
            return {"versions": None}

    def load(self, folder: str) -> dict[str, Any]:
        """Read the task that later requests refer to."""
        self.folder = Path(folder)
        self.task = Task.load(self.folder)
        return {}

    def solve(self, tol: float) -> dict[str, Any]:
        """Solve the task with a tolerance, write the answer to the folder of the task, and return the seconds."""
        solver = self.peer.solvers[self.task.kind]
        start = time.perf_counter()
        answer = solver(self.task, tol)
        seconds = time.perf_counter() - start
        self._write(answer)
        return {"seconds": seconds, "info": dict(answer.info)}

    def _write(self, answer: Answer) -> None:
        for name, value in (("x", answer.x), ("y", answer.y)):
            path = self.folder / f"{self.peer.name}.{name}.answer"
            path.unlink(missing_ok=True)
            if value is not None:
                with path.open("wb") as stream:
                    np.save(stream, np.asarray(value, dtype=np.float64))


def main(name: str) -> None:
    """Answer requests until the input ends."""
    # the output of libraries must not mix with the answers
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    desk = Desk(PEERS[name])
    for line in sys.stdin:
        request = json.loads(line)
        reply: dict[str, Any]
        try:
            reply = getattr(desk, request.pop("do"))(**request)
        except Exception as error:
            reply = {"failed": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(reply), file=answers, flush=True)
