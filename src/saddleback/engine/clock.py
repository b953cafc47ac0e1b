"""The clock of a run, and how far a method goes between two looks at it."""

from __future__ import annotations

import time

import numpy as np

from ..methods import State
from ..model.model import Model
from ..places.mpi.communicator import Communicator

SLICE_GROWTH = 0.04
SLICE_WORK = 1 << 26
"""A method runs for max(1, SLICE_GROWTH * passes) passes, and at most that many multiply-adds, before the clock and the
keyboard are looked at again. Never for a time: where a slice ends shows in the last bits."""

VISITS = 1 << 22
"""Most visits of blocks in one call of a method, for the memory that their draws take."""


class Clock:
    """Wall time since the start, and whether the limit has passed: for all processes, on the clock of the first.

    ``before`` are the seconds of a run that this one goes on with; the limit does not count them.
    """

    def __init__(self, limit: float | None, team: Communicator) -> None:
        self.team = team
        self.begin = time.perf_counter()
        self.limit = np.inf if limit is None else limit
        self.before = 0.0

    def seconds(self) -> float:
        """Return the time since the start, that of earlier runs included."""
        return self.before + time.perf_counter() - self.begin

    def left(self) -> float:
        """Return the seconds until the limit, at least 0, on the clock of this process."""
        return float(max(self.limit - (time.perf_counter() - self.begin), 0.0))

    def expired(self) -> bool:
        """Return whether the limit has passed."""
        return self.limit < np.inf and self.team.broadcast(time.perf_counter() - self.begin >= self.limit)


def slice_passes(state: State, model: Model) -> float:
    """Return how far to go before the clock is looked at: a function of the problem and of the work so far alone."""
    report = state.report()
    blocks = report.n_blocks or len(model.blocks)
    iterations = blocks / (report.blocks_per_iteration or blocks)
    work = 2 * model.A.traits.stored / len(model.strata.members) + iterations * model.A.shape[0]
    return min(max(1.0, SLICE_GROWTH * state.passes), SLICE_WORK / work, VISITS / blocks)
