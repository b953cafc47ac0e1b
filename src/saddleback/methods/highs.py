"""HiGHS: the simplex method of Huangfu and Hall (2018) for a linear program, certified like any other method.

Its vertex comes with a dual point. If there is no solution, two programs that always have one give the rays that prove
it. If the answer of HiGHS does not reach the tolerance, r2hpdhg continues from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..certificates.candidates import Candidates
from ..common.arrays import Vector
from ..common.rebuildable import derived, stored
from ..linear_programs.highs import Answer, Program, Running, conflict, falling, in_range, stated
from ..linear_programs.program import as_linear_program
from ..model.model import Model
from .contract import Method, Start, State, all_blocks
from .r2hpdhg import R2HPDHG, R2HPDHGState
from .report import Report

POLL = 0.05
"""Seconds after which control returns to the loop, which checks the clock and the keyboard, while HiGHS runs on."""

ITERATION = 0.5
"""Passes that a simplex iteration counts: at most one product with A', and often much less if the rows are sparse."""

OPTIMUM, CONFLICT, FALLING, DONE = "optimum", "conflict", "falling", "done"
QUESTIONS: dict[str, Callable[[Program], Program]] = {OPTIMUM: lambda p: p, CONFLICT: conflict, FALLING: falling}
"""The programs that HiGHS solves: the problem, then those that prove that it is infeasible or unbounded."""


@stored
@dataclass(kw_only=True)
class HighsState(State):
    """The last answer of HiGHS as (x, y), and what came with it.

    Attributes
    ----------
    asked, running : the name of the program that HiGHS solves, and its run.
    iterations : iterations of the simplex method so far.
    seconds : time that is left to HiGHS.
    points, rays : feasible points, and directions of x and y that may prove that there is no solution.
    outcome : how HiGHS ended on the problem itself.
    after : state of the method that continues from the answer; None before that.
    """

    model: Model
    start: Start
    asked: str = OPTIMUM
    running: Running | None = None
    iterations: int = 0
    seconds: float
    points: list[Vector]
    rays: list[tuple[Vector, Vector]]
    outcome: str = "not run"
    after: R2HPDHGState | None = None

    def report(self) -> Report:
        own = replace(self.choices, highs=self.outcome)
        if self.after is None:
            return own
        return replace(own.updated(self.after.report()), continued_by=[R2HPDHG.name])


@dataclass(frozen=True)
class Highs(Method[HighsState]):
    """The simplex method of HiGHS, for linear programs: no options. HiGHS chooses its starting vertex.

    If the answer of HiGHS is not accurate enough, r2hpdhg continues from it, even with ``layers=False``. Then
    ``result.method`` is "highs + r2hpdhg".
    """

    name = "highs"
    layers = ("finish",)
    warmup_passes = 1.0

    def missing(self, model: Model) -> str | None:
        if model.A.traits.holders is not None:
            return "its columns are spread over processes, and HiGHS runs in one; leave comm out"
        if as_linear_program(model) is None:
            return (
                "it is not a linear program, which has Linear, Box or their sum as its penalty and Interval or "
                "Equality as its loss"
            )
        if not in_range(stated(model)):
            return "HiGHS takes 1e20 for infinite and 1e-9 for 0, and not all numbers are in between in canonical units"
        return None

    def init(self, model: Model, start: Start) -> HighsState:
        return HighsState(
            x=start.x.copy(),
            y=start.y.copy(),
            choices=all_blocks(model, restarts=0, primal_weight=start.weight),
            model=model,
            start=start,
            seconds=start.seconds,
            points=[],
            rays=[],
        )

    def advance(self, state: HighsState, passes: float) -> HighsState:
        if state.asked == DONE:
            return self._go_on(state, passes)
        if state.running is None:
            state.running = at_work(state.model, state.asked, state.start.tol, state.seconds)
        answer = state.running.answer(POLL)
        if answer is not None:
            self._take(state, answer)
        return state

    @staticmethod
    def _take(state: HighsState, answer: Answer) -> None:
        """Store an answer; then plan the next program, or ask for a certificate."""
        n, m = state.x.size, state.y.size
        state.iterations += answer.iterations
        state.seconds = max(state.seconds - answer.seconds, 0.0)
        state.running = None
        if state.asked == OPTIMUM:
            state.outcome = answer.state
            if answer.x is not None and answer.y is not None:
                state.x, state.y = answer.x, answer.y
            undecided = answer.state in ("infeasible", "unbounded", "undecided")
            state.asked = CONFLICT if undecided else DONE
        elif state.asked == CONFLICT:
            if answer.x is not None and answer.y is not None:
                state.points.append(answer.x[:n])
                state.rays.append((np.zeros(n), answer.y))
            state.asked = DONE if state.outcome == "infeasible" else FALLING
        else:
            if answer.x is not None:
                state.rays.append((answer.x, np.zeros(m)))
            state.asked = DONE
        if state.asked == DONE:
            state.wants_certificate, state.expected = True, 0.0
            state.passes += max(ITERATION * state.iterations, 1.0)  # not earlier: passes trigger the certificate

    def _go_on(self, state: HighsState, passes: float) -> HighsState:
        method = R2HPDHG()
        if state.after is None:
            after = method.init(state.model, replace(state.start, x=state.x, y=state.y, u=None))
            after.passes += state.passes
            state.after = after
        state.after.wants_certificate = False
        state.after = method.advance(state.after, passes)
        state.wants_certificate, state.expected = state.after.wants_certificate, state.after.expected
        state.x, state.y, state.passes = state.after.x, state.after.y, state.after.passes
        return state

    def candidates(self, state: HighsState) -> Candidates:
        if state.after is not None:
            return R2HPDHG().candidates(state.after)
        points = [(x.copy(), None) for x in (state.x, *state.points)]
        return Candidates(points, [(state.y.copy(), None)], state.rays)


@derived
def at_work(model: Model, asked: str, tol: float, seconds: float) -> Running:
    """Return a run of HiGHS on one of its programs."""
    return Running(QUESTIONS[asked](stated(model)), tol, seconds)
