"""The clock of a run, and how many passes a method makes before the clock is read again."""

from __future__ import annotations

import time

import numpy as np

from ..methods import State
from ..model.model import Model
from ..places.mpi.communicator import Communicator

SLICE_GROWTH = 0.04
SLICE_WORK = 1 << 26
"""A method runs for max(1, SLICE_GROWTH * passes) passes, and at most SLICE_WORK multiply-adds, before the clock and
the keyboard are checked again. A slice is never a time span: the last bits of the result depend on where it ends."""

VISITS = 1 << 22
"""Largest number of block visits per call of a method: it limits the memory of the draws."""


LEAST_SECONDS = 1e-6
"""Time limit of a part of the work if the others have used up the time: it ends at its first certificate."""


class Clock:
    """Wall time since the start, and whether the limit has passed; the clock of the first process decides for all.

    ``before`` is the time of the run that this one resumes; it does not count towards the limit.
    """

    def __init__(self, limit: float | None, team: Communicator) -> None:
        self.team = team
        self.begin = time.perf_counter()
        self.limit = np.inf if limit is None else limit
        self.before = 0.0

    def seconds(self) -> float:
        """Return the time since the start, including that of the resumed run."""
        return self.before + time.perf_counter() - self.begin

    def left(self) -> float:
        """Return the seconds until the limit, at least 0, on the clock of this process."""
        return float(max(self.limit - (time.perf_counter() - self.begin), 0.0))

    def share(self, parts: int = 1) -> float | None:
        """Return the time limit of the next of some parts of what is left of the work; None without a limit."""
        return None if self.limit == np.inf else max(self.left() / parts, LEAST_SECONDS)

    def part(self, parts: int) -> Clock:
        """Return the clock of the next of some parts of what is left of the work."""
        return Clock(self.share(parts), self.team)

    def expired(self) -> bool:
        """Return whether the limit has passed."""
        return self.limit < np.inf and self.team.broadcast(time.perf_counter() - self.begin >= self.limit)


def slice_passes(state: State, model: Model) -> float:
    """Return the passes until the clock is read again; they depend only on the problem and on the work so far."""
    report = state.report()
    blocks = report.n_blocks or len(model.blocks)
    iterations = blocks / (report.blocks_per_iteration or blocks)
    traits = model.A.traits
    processes = 1 if traits.holders is None else traits.holders.processes
    work = 2 * traits.stored / processes + iterations * model.A.shape[0]
    return min(max(1.0, SLICE_GROWTH * state.passes), SLICE_WORK / work, VISITS / blocks)
