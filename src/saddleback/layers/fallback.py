"""The fallback: block passes continue from a method that takes more steps than it should.

The multipliers take 20 to 200 Newton steps where the solution has few nonzeros compared with the rows. Where it has
many, a step settles only a few of them, and the steps are too many and too expensive; block passes get there sooner.
Nothing tells in advance which of the two a problem is. So a run that has taken twice the usual number of steps, or
whose method has given up, goes on with block passes from the best pair of points so far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..certificates.candidates import Candidates, evaluate
from ..common.rebuildable import stored
from ..methods.contract import Layer, Method, Start, State
from ..methods.multipliers import USUAL_STEPS
from ..methods.report import Report
from ..methods.spbcd import SPBCD
from ..model.model import Model
from .restarts import Restarted
from .working_set import WorkingSet


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
        self._mirror(state, 0.0)
        return state

    def advance(self, state: FallbackState, passes: float) -> FallbackState:
        before = state.running.passes
        state.running = self._present(state).advance(state.running, passes)
        self._mirror(state, before)
        taken = state.running.report().newton_steps or 0
        if state.earlier is None and (state.ended or taken > 2 * USUAL_STEPS):
            self._continue(state, state.ended or f"{taken} Newton steps")
        return state

    def _present(self, state: FallbackState) -> Method[Any]:
        return self.method if state.earlier is None else self.after(state.model)

    @staticmethod
    def _mirror(state: FallbackState, before: float) -> None:
        """Copy the point and the work of the running method into the state."""
        running = state.running
        state.x, state.y, state.wants_certificate = running.x, running.y, running.wants_certificate
        state.ended, state.expected = running.ended, running.expected
        running.wants_certificate = False
        state.passes += running.passes - before

    def _continue(self, state: FallbackState, reason: str) -> None:
        """Go on with block passes from the best pair that the method offers."""
        offer = self.method.candidates(state.running)
        state.passes += 0.5 * (len(offer.primal) + len(offer.dual))
        _, primal, dual = evaluate(state.model, offer)
        state.earlier = state.running.report()
        state.notes.append(f"block passes from pass {state.passes:.0f} on: {reason}")
        start = replace(state.start, x=primal.x.copy(), y=dual.y.copy(), u=None)
        state.running = self._present(state).init(state.model, start)
        self._mirror(state, 0.0)

    def adapt(self, state: FallbackState, error: float) -> FallbackState:
        state.running = self._present(state).adapt(state.running, error)
        return state

    def candidates(self, state: FallbackState) -> Candidates:
        return self._present(state).candidates(state.running)
