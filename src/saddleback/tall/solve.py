r"""Solve a tall problem in a few readings of its rows.

1. *Sample.* The first reading checks the targets and draws about :math:`m^{2/3} n^{1/3}` of the m rows. The solution of
   the sample is the start.
2. *Read.* A reading evaluates all rows at x. It gives the objective, an upper bound of the minimum. Each loss is at
   least its tangent. So the tangents of most rows and the losses of the few rows that are kept add up to a function
   below the objective. The minimum of this *reduced problem*, which is solved in memory, is a lower bound.
3. *Step.* If the loss has linear pieces, the rows that are kept are those close to a kink. The tangents of the others
   are exact as long as none of them crosses a kink, and the solution of the reduced problem is the next x (Portnoy and
   Koenker, 1997). If the loss is smooth, the rows that are kept are a sample, and the next x minimises penalty and loss
   with the second-order expansion of the latter: a Newton step.

A quantile regression takes three or four readings, of which the last confirms the answer.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificates.certificate import NOTHING
from ..certificates.sides import ROUNDED, floor, relative_gap
from ..checkpoints import Checkpoint, CheckpointWriter, compare, restore, writable
from ..common.arrays import Vector
from ..common.rebuildable import stored
from ..engine.clock import Clock
from ..engine.diagnosis import message
from ..engine.info import Info
from ..engine.interrupts import Interrupts
from ..engine.options import Options
from ..engine.session import Session
from ..model.model import RESOLVED, infimum
from ..result import Certificate, History, Result, Status
from .evaluation import Evaluate, Evaluation, bound
from .frame import weighted_gram
from .problem import TallProblem
from .progress import Silent, reading_bar
from .reduced import Solved, newton_step, reduced
from .rows import joined
from .start import Start
from .survey import named_error

INNER = 0.1
"""Gap of a problem in memory, relative to the gap at which the run ends."""

SUPERLINEAR = 1e-4
"""The same for a smooth loss, whose solution takes hardly longer if it is more accurate."""

NARROWEST, WIDER, MARGIN = 0.05, 4.0, 3.0
"""Smallest factor by which the width falls from one reading to the next, the factor by which it grows after a step
that has failed, and its margin of safety."""

CLOSER = 0.25
"""Distance from the solution after a step with the mean curvature, relative to that before it."""

ENOUGH = 1000.0
"""Rows of a sample per column from which it gives the curvature. The error of a Newton step is then at most some 3 % of
its length, the root of columns per rows, and the error of the objective 0.1 % of what it was."""

ESTIMATED = 4
"""Number of readings with a curvature that a sample gives; most runs take fewer."""

MOST_READINGS = 100
"""Readings after which a run ends: something is wrong then, since a run takes less than ten."""


UNREAD = ("method", "blocks_per_iteration", "y0", "eliminate", "check_every", "device", "layers")
"""Options of ``solve`` that have no meaning for a tall problem."""


def solve_tall(problem: TallProblem, options: Options) -> Result:
    """Solve a tall problem with the options of ``solve``."""
    defaults = Options()
    given = [name for name in UNREAD if getattr(options, name) is not getattr(defaults, name)] + [*options.of_method]
    if given:
        raise ValueError(f"{given[0]} has no meaning for a TallProblem: leave it out")
    with (
        Session(options) as session,
        Interrupts(session.team) as interrupts,
        named_error(problem.rows),
        ExitStack() as opened,
    ):
        team = session.team
        path = writable(options.checkpoint) if team.rank == 0 else options.checkpoint
        if team.size > 1:
            compare(team, {"rows": problem.rows.n_rows, "penalty": repr(problem.penalty)} | options.same_everywhere())
        clock = session.clock
        problem = problem.spread(team)
        told = options.progress and team.rank == 0 and problem.rows.local
        bar = opened.enter_context(reading_bar(told, problem.rows.n_rows))
        start = Start(problem, options.seed)
        run = Run(problem, options, clock, bar, start)
        mark = run.mark(start)
        writer = CheckpointWriter(path, options.checkpoint_every, clock, mark, {}, team)
        known = Checkpoint() if options.resume is None else restore(options.resume, mark, {}, team, Contents)
        run.begin(known.run or known.point, start)
        del start  # its memory is needed for the rows that are kept
        problem.rows.forget_survey()
        while run.status is None:
            run.advance()
            bar.certified(run.certificate)
            stopped = options.callback is not None and bool(options.callback(run.info()))
            run.decide(interrupts.requested or team.any(stopped))
            if writer.due() or run.status not in (None, Status.OPTIMAL):
                writer.save(run.state)
        return run.result(interrupts.requested, writer.advice())


@stored
@dataclass(frozen=True)
class Best:
    """The best point so far, its objective, and the floor of the relative gap there."""

    x: Vector
    value: float
    floor: float


@stored
@dataclass
class State:
    """What a run knows between two readings.

    Attributes
    ----------
    x : where the next reading evaluates the rows.
    best : the best point so far.
    width : how far from a kink, in units of its leverage, a row may be to be kept.
    widest : the largest width whose rows fit into memory.
    lower : the best lower bound of the minimum.
    proof : the certificate of this bound in its reduced problem.
    gap : objective minus lower bound at the last reading.
    exact : whether the curvature of a smooth loss is summed over all rows.
    readings : readings of all rows so far.
    """

    x: Vector
    best: Best
    width: float
    widest: float = np.inf
    lower: float = -np.inf
    proof: Certificate | None = None
    gap: float = np.inf
    exact: bool = False
    readings: int = 0
    seconds: float = 0.0
    history: History = field(default_factory=History)

    def contents(self) -> Contents:
        """Return what a checkpoint holds."""
        return Contents(self, self, None)


@stored
@dataclass
class Contents:
    """What a checkpoint holds; it is the same for any number of processes."""

    run: State
    point: State
    past: None


class Run:
    """One solve, from its first reading to its result.

    Attributes
    ----------
    state : what is known between two readings.
    frame : the columns of x.
    smooth : whether the loss is smooth.
    certificate : the certificate of the best point and the best bound.
    status : how the run has ended; None while it continues.
    """

    state: State
    certificate: Certificate
    status: Status | None = None

    def __init__(self, problem: TallProblem, options: Options, clock: Clock, bar: Silent, start: Start) -> None:
        self.problem, self.options, self.clock, self.bar = problem, options, clock, bar
        self.frame, self.smooth, self.sampled_rows = start.frame, problem.smooth, start.size
        self.f = problem.penalty.bind((problem.rows.n_columns,))
        self.least_penalty = infimum(self.f.conjugate(), np.zeros(problem.rows.n_columns))

    def mark(self, start: Start) -> dict[str, Any]:
        """Return what has to be the same if a run resumes from a checkpoint."""
        rows = self.problem.rows
        return start.mark() | {
            "the number of rows and columns": f"{rows.n_rows} x {rows.n_columns}",
            "the intercept": self.problem.intercept,
            "the penalty": self.f.finite_value(self.f.domain.project(np.cos(np.arange(rows.n_columns)))),
            "tol": self.options.tol,
            "seed": self.options.seed,
            "memory": self.problem.memory,
        }

    def begin(self, known: State | None, start: Start) -> None:
        """Continue from a state, or start from x0 or from the solution of the sample."""
        if known is not None:
            self.state, self.clock.before = known, known.seconds
            return
        frame, x0 = self.frame, self.options.x0
        self.state = state = State(np.zeros(frame.size), Best(np.zeros(frame.size), np.inf, 0.0), 0.0)
        state.readings = 1  # the survey
        if x0 is None:
            solved = start.solve(INNER, self.options.tol, **self._limits())
            state.x = self._inside(solved.x)
            if start.is_whole:
                self._bounded(solved)
        else:
            state.x = self._inside(frame.from_given(x0.x if isinstance(x0, Result) else x0))
        if not self.smooth:
            state.width, state.widest = start.widths(state.x)

    def _limits(self) -> dict[str, Any]:
        return {"seed": self.options.seed, "time_limit": self.clock.share()}

    def _inside(self, x: Vector) -> Vector:
        """Return x with its coefficients in the domain of the penalty."""
        n = self.frame.centre.size
        return np.concatenate([self.f.domain.project(x[:n]), x[n:]])

    def advance(self) -> None:
        """Read the rows once, and find the next point."""
        state = self.state
        x, sample = state.x, self.problem.sample(self.options.seed) if self.smooth else None
        rows, most = self.problem.rows, self.problem.rows_in_memory / self.problem.rows.n_rows
        state.readings += 1
        width = min(state.width, state.widest)
        state.exact |= self.smooth and (self.sampled_rows < ENOUGH * self.frame.size or state.readings > ESTIMATED)
        visit = Evaluate(self.problem.loss, self.frame, x, state.exact, sample, width, most)
        at = rows.read(self.bar.counted(visit, state.readings))
        value = self.f.finite_value(x[: self.frame.centre.size]) + at.value
        fell = value <= state.best.value and bool(np.isfinite(value) and np.all(np.isfinite(at.pull)))
        if fell:
            state.best = Best(x, value, _floor(at, value))
        if state.proof is None:
            state.lower = self.least_penalty + at.lowest  # what y = 0 proves
        before, state.gap = state.gap, value - state.lower
        self._certify()
        if self.certificate.error > self.options.tol:
            if self.smooth:
                self._newton(at, value, fell)
            else:
                self._follow(at, value, fell, before)
            self._certify()

    def _follow(self, at: Evaluation, value: float, fell: bool, gap_before: float) -> None:
        """Go to the solution of the reduced problem, or near it if the rows close to kinks do not fit into memory."""
        state = self.state
        if not at.kept:
            state.width, state.widest = WIDER * state.width, WIDER * state.widest
        elif state.width > state.widest:
            step, _ = newton_step(self.problem, self.frame, at.pull, self._mean_curvature(at), state.x)
            state.x = self._inside(step) if fell else 0.5 * (state.best.x + state.x)
            state.width *= CLOSER
        else:
            self._go_to_solution(at, value, fell, gap_before)

    def _go_to_solution(self, at: Evaluation, value: float, fell: bool, gap_before: float) -> None:
        state = self.state
        solved = self._reduced(at, value, INNER)
        state.x = self._inside(solved.x)
        if solved.solved and fell:
            # the objective is about quadratic: the distance from the solution falls as the root of the gap
            ratio = MARGIN * np.sqrt(max(state.gap, 0.0) / gap_before) if 0 < gap_before < np.inf else 1.0
            state.width *= float(np.clip(ratio, NARROWEST, 1.0))
        else:
            state.width *= WIDER
            state.x = 0.5 * (state.best.x + state.x) if solved.solved else state.best.x

    def _mean_curvature(self, at: Evaluation) -> NDArray[np.float64]:
        """Return the curvature of the loss in the mean over the width: each kept row adds the jump of its slope."""
        rows, width = joined([chunk for chunk, _ in at.kept]), min(self.state.width, self.state.widest)
        design = self.frame.design(rows.X)
        reach = 2.0 * width * self.frame.leverage(design)
        jumps = bound(self.problem.loss, rows).row_weights()
        return weighted_gram(design, np.divide(jumps, reach, out=np.zeros_like(reach), where=reach > 0))

    def _newton(self, at: Evaluation, value: float, fell: bool) -> None:
        """Take a Newton step; if it falls by less than the tolerance, find out how good the present point is."""
        state = self.state
        if not fell:
            # a sample may miss what rare rows add to the curvature
            state.x = 0.5 * (state.best.x + state.x) if state.exact else state.best.x
            state.exact = True
            return
        curvature = (
            at.curvature if at.curvature.size else at.curvature_of_sample(self.problem.loss, self.frame, state.x)
        )
        step, fall = newton_step(self.problem, self.frame, at.pull, curvature, state.x)
        if fall <= self.options.tol * max(abs(value), state.best.floor):
            self._reduced(at, value, SUPERLINEAR)
        state.x = self._inside(step)

    def _reduced(self, at: Evaluation, value: float, accuracy: float) -> Solved:
        """Return the solution of the reduced problem, and use the bound that it proves."""
        small, y = reduced(self.problem, self.frame, at, self.state.x, self.smooth)
        gap = accuracy * self.options.tol * abs(value)
        solved = small.solve(self.state.x, y, gap, value, **self._limits())
        self._bounded(solved)
        return solved

    def _bounded(self, solved: Solved) -> None:
        """Use the bound of a problem in memory, if the certificate is better with it.

        A bound whose dual point is not feasible may be above the minimum. The certificate counts its infeasibility.
        """
        state = self.state
        now, then = self._certificate(solved.bound, solved.proof), self._certificate(state.lower, state.proof)
        if (now.error, -solved.bound) < (then.error, -state.lower):
            state.lower, state.proof = solved.bound, solved.proof

    def _certify(self) -> None:
        self.certificate = self._certificate(self.state.lower, self.state.proof)

    def _certificate(self, lower: float, proof: Certificate | None) -> Certificate:
        """Return the certificate of the best point with a bound, and the certificate that proves the bound."""
        value = self.state.best.value
        return Certificate(
            primal_value=value,
            dual_value=lower,
            gap=value - lower,
            relative_gap=relative_gap(value - lower, max(abs(value), abs(lower)), self.state.best.floor),
            primal_infeasibility=0.0,
            dual_infeasibility=0.0 if proof is None else proof.dual_infeasibility,
            perturbation=0.0 if proof is None else proof.perturbation,
        )

    def info(self) -> Info:
        """Return the argument of a callback."""
        state, frame = self.state, self.frame
        work = state.readings, self.clock.seconds(), self.certificate, 0.0, 0.0
        return Info(*work, lambda: (frame.to_given(state.best.x), None), lambda: (frame.to_given(state.x), None))

    def decide(self, stopped: bool) -> None:
        """Set the status if the last reading ends the run."""
        state, options = self.state, self.options
        state.history.add(state.readings, self.clock.seconds(), self.certificate)
        if self.certificate.error <= options.tol:
            self.status = Status.OPTIMAL
        elif stopped:
            self.status = Status.INTERRUPTED
        elif self.clock.expired():
            self.status = Status.TIME_LIMIT
        elif state.readings >= min(options.max_passes, MOST_READINGS):
            self.status = Status.MAX_PASSES

    def result(self, interrupted: bool, advice: str) -> Result:
        """Return the result, with advice on how to continue a run that has not ended."""
        state, status = self.state, Status.INTERRUPTED if interrupted else self.status
        assert status is not None
        said = message(status, self.certificate, self.options.tol, f"{state.readings} readings of all rows", "readings")
        return Result(
            x=self.frame.to_given(state.best.x),
            y=None,
            status=status,
            message=said if status is Status.OPTIMAL else f"{said}{self._remedy(status)}{advice}",
            certificate=self.certificate,
            passes=float(state.readings),
            seconds=self.clock.seconds(),
            history=state.history,
            method="readings",
            settings={"readings": state.readings, "sampled_rows": self.sampled_rows, "width": state.width},
        )

    def _remedy(self, status: Status) -> str:
        """Return what helps a run that has ended at its limit of readings."""
        if status is not Status.MAX_PASSES or self.state.readings < MOST_READINGS:
            return ""
        return f" With more memory than memory={self.problem.memory:g} a reading keeps more rows, and fewer are needed."


def _floor(at: Evaluation, value: float) -> float:
    """Return the floor of the relative gap, as for a problem in memory."""
    of_y, of_z, of_data = np.sqrt(at.squares)
    least = floor(at.rise, max(of_z, of_data), of_y, abs(value))
    explained = at.rise * NOTHING / RESOLVED
    return max(least, explained / ROUNDED) if abs(value) <= explained else least
