"""The fallback: block passes continue from a method that takes more steps than it should.

The multipliers take 20 to 200 Newton steps if the solution has few nonzeros compared with the rows. If it has many,
hundreds of steps are needed, each of them is expensive, and block passes are faster. Which of the two a problem is
shows only during a run. If a run has taken several times the usual number of steps, or if its method has given up,
block passes continue from the best pair of points so far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..certificates.candidates import Candidates
from ..common.rebuildable import stored
from ..methods.contract import Layer, Method, Start, State
from ..methods.multipliers import USUAL_STEPS
from ..methods.report import Report
from ..methods.spbcd import SPBCD
from ..model.model import Model
from .handover import best_of
from .restarts import Restarted
from .working_set import WorkingSet

OVERRUN = 3
"""How many times the usual number of Newton steps are too many."""


@stored
@dataclass(kw_only=True)
class FallbackState(State):
    """The state of the method that is running; ``earlier`` is the report of the first method once it was left."""

    model: Model
    start: Start
    running: Any
    earlier: Report | None = None

    def report(self) -> Report:
        running: Report = self.running.report()
        if self.earlier is None:
            return running
        return replace(self.earlier.updated(running), continued_by=[SPBCD.name])


@dataclass(frozen=True)
class Fallback(Layer[FallbackState]):
    """A method that is followed by block passes if it takes too many Newton steps."""

    @staticmethod
    def after(model: Model) -> Method[Any]:
        """Return the method that continues."""
        return WorkingSet(Restarted(SPBCD())).for_model(model)

    def init(self, model: Model, start: Start) -> FallbackState:
        running = self.method.init(model, start)
        state = FallbackState(x=start.x, y=start.y, model=model, start=start, running=running)
        state.follow(running, 0.0)
        return state

    def advance(self, state: FallbackState, passes: float) -> FallbackState:
        before = state.running.passes
        state.running = self._present(state).advance(state.running, passes)
        state.follow(state.running, before)
        state.ended = state.running.ended
        taken = state.running.report().newton_steps or 0
        if state.earlier is None and (state.ended or taken > OVERRUN * USUAL_STEPS):
            self._leave(state, state.ended or f"{taken} Newton steps are too many")
        return state

    def _present(self, state: FallbackState) -> Method[Any]:
        return self.method if state.earlier is None else self.after(state.model)

    def _leave(self, state: FallbackState, reason: str) -> None:
        """Continue with block passes from the best pair that the method offers."""
        start, error, passes = best_of(self.method, state.running, state.model, replace(state.start, weight=1.0))
        state.passes += passes
        if error <= state.start.tol and not state.ended:  # the method has just found a solution
            state.wants_certificate = True
            return
        state.earlier = state.running.report()
        state.notes.append(f"block passes from pass {state.passes:.0f} on: {reason}")
        state.running = self._present(state).init(state.model, start)
        state.follow(state.running, 0.0)
        state.ended = state.running.ended

    def adapt(self, state: FallbackState, error: float) -> FallbackState:
        state.running = self._present(state).adapt(state.running, error)
        return state

    def candidates(self, state: FallbackState) -> Candidates:
        return self._present(state).candidates(state.running)
