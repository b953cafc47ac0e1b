"""A run: what it remembers from one slice to the next, when certificates are computed, and what ends it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..certificates.candidates import Candidates
from ..checkpoints import CheckpointWriter
from ..common.rebuildable import stored
from ..crossover import Work
from ..methods import Method, Start, State, diverged
from ..methods.interior import structure_of
from ..model.model import Model
from ..operators.deferred_points import zeros
from ..reductions import Reduction
from ..result import Certificate, History, Status
from .clock import Clock, slice_passes
from .incumbent import SETTLING, Incumbent
from .interrupts import Interrupts

FIRST_CHECK = 8.0
GROWTH = 0.15
"""A certificate is computed every max(FIRST_CHECK, GROWTH * passes) passes: a few percent of the work of a long run."""

TRIES = 4
"""How often a finish that has reached the tolerance tries to move x onto its kinks and bounds, one step later each
time: a point whose error is just below the tolerance cannot be moved."""

HALVED, LATER = 0.5, 1.25
"""After a proved certificate that is not good enough, the next one is due when the error without bounds on rounding has
fallen to the former share, or the passes have grown by the latter factor."""

LIMITS = (Status.MAX_PASSES, Status.TIME_LIMIT)
UNSOLVABLE = (Status.INFEASIBLE, Status.UNBOUNDED)


class Limits(NamedTuple):
    """What ends a run: the tolerance, the limit on passes or the limit on time."""

    tol: float
    max_passes: float
    clock: Clock

    def reached(self, certificate: Certificate, passes: float) -> Status | None:
        """Return why to stop now, or None to continue."""
        if self.tol > 0 and certificate.within(self.tol):
            return Status.OPTIMAL
        return self.spent(passes)

    def spent(self, passes: float) -> Status | None:
        """Return the limit that has been reached, or None."""
        if self.clock.expired():
            return Status.TIME_LIMIT
        return None if passes < self.max_passes else Status.MAX_PASSES  # also if passes is nan


@stored
@dataclass
class Judging:
    """The part of the work and of the time that went into certificates."""

    passes: float = 0.0
    seconds: float = 0.0

    def add(self, passes: float, seconds: float) -> None:
        """Add work and time."""
        self.passes += passes
        self.seconds += seconds


@stored
@dataclass
class Run:
    """Everything that a run remembers from one slice to the next; a checkpoint holds all of it.

    Attributes
    ----------
    state : state of the method.
    incumbent : the best pair so far, with its certificate.
    memories : what the functions and the operator of the problem remember.
    due : passes of the method at which the next certificate is computed.
    weights : passes and primal weights at the certificates so far.
    pending_error : passes and error of the last certificate, until ``adapt`` passes it to the method.
    finishing : whether an interior point has run; such a method ends close to kinks and bounds, not on them.
    tries, settled : attempts to move x onto its kinks and bounds, and whether one succeeded.
    seconds : time of the run at the last checkpoint.
    refused : error without bounds on rounding, and passes, at which the proved certificate was last not good enough.
    """

    state: State
    incumbent: Incumbent
    memories: list[Any]
    due: float = 0.0
    history: History = field(default_factory=History)
    judging: Judging = field(default_factory=Judging)
    weights: list[tuple[float, float]] = field(default_factory=list)
    pending_error: tuple[float, float] | None = None
    finishing: bool = False
    tries: int = 0
    settled: bool = False
    seconds: float = 0.0
    refused: tuple[float, float] = (np.inf, 0.0)

    def name_of(self, method: Method[Any]) -> str:
        """Return the name of the method for the result, followed by the methods that continued from its point."""
        after = self.state.report().continued_by or []
        return " + ".join([method.name, *after, *(["finish"] if self.finishing and method.name != "finish" else [])])

    @property
    def passes(self) -> float:
        """The work so far, certificates included."""
        return self.state.passes + self.incumbent.passes

    def contents(self) -> Contents:
        """Return what a checkpoint holds: the run, and its point and counts for another number of processes."""
        weight = self.state.report().primal_weight
        past = Past(self.state.passes, self.incumbent.passes, self.seconds, self.history, self.weights)
        return Contents(self, Start(self.state.x, self.state.y, weight=1.0 if weight is None else weight), past)

    def inherit_counts(self, past: Past, clock: Clock) -> None:
        """Continue the counts of a run on another number of processes."""
        if not all(0 <= number < np.inf for number in (past.passes, past.judged, past.seconds)):
            raise ValueError("its passes or seconds are negative or not finite")
        self.state.passes += past.passes
        self.incumbent.passes = past.judged
        self.due += past.passes
        self.history, self.weights = past.history, past.weights
        clock.before = past.seconds

    def measure(self, method: Method[Any], halted: Status | None, clock: Clock) -> None:
        """Compute a certificate of the points that the method offers; after a divergence it offers none."""
        passes, seconds = self.passes, clock.seconds()
        if halted is not Status.DIVERGED:
            self.incumbent.update(method.candidates(self.state))
        elif not self.history.passes.size:  # there is no certificate yet, and every result needs one
            self.incumbent.update(_origin(self.incumbent.reduction.model))
        self.judging.add(self.passes - passes, clock.seconds() - seconds)
        report = self.state.report()
        self.finishing = report.finish_steps is not None
        if self.finishing and self.history.finish_begins is None:
            self.history.finish_begins = self.passes
        self.history.add(self.passes, clock.seconds(), self.incumbent.certificate)
        if report.primal_weight is not None:
            self.weights.append((self.passes, report.primal_weight))

    def verdict(self, halted: Status | None, limits: Limits) -> Status | None:
        """Return how the run ends after this certificate, or None if it continues."""
        passes = self.passes
        estimate = self.incumbent.certificate
        status = halted or limits.reached(estimate, passes)
        answered = status is None and limits.tol > 0 and self.state.expected == 0  # the estimate may be in other units
        if status is Status.OPTIMAL or answered:
            status = self._decided(estimate, limits)
        if status is None:
            seconds = limits.clock.seconds()
            status = self.incumbent.search_for_proof(self.state.x, self.state.y, passes, limits.tol, limits.clock)
            self.judging.add(self.passes - passes, limits.clock.seconds() - seconds)
        if status is None and limits.tol > 0 and self.incumbent.may_be_rounding:
            status = self._decided(estimate, limits)
        if status is Status.OPTIMAL and self.finishing and self.tries < TRIES:
            self.tries += 1
            self.settled = self.incumbent.settle(limits.tol, SETTLING[:1]) or self._cross_over(limits.tol, ends=False)
            status = status if self.settled else None
        self.pending_error = passes, estimate.error
        return status

    def _decided(self, estimate: Certificate, limits: Limits) -> Status | None:
        """Return how the run ends by its proved certificate; after a refusal only if something has changed since."""
        error, passes = self.refused
        if estimate.error > HALVED * error and self.passes < LATER * passes:
            return limits.spent(self.passes)
        certificate = self.incumbent.confirm()
        status = limits.reached(certificate, self.passes)
        if status is None and certificate.limited(limits.tol):
            return Status.ROUNDING_LIMIT
        if status is not Status.OPTIMAL:
            self.refused = estimate.error, self.passes
        return status

    def close(self, status: Status, tol: float, clock: Clock) -> Status:
        """Bring the best pair into the form in which it is returned; return the status that its certificate allows."""
        # the vectors of the method take memory, which the last certificate needs
        passes, notes, counts = self.state.passes, self.state.notes, self.state.report()
        self.state = State(x=np.empty(0), y=np.empty(0), passes=passes, notes=notes, choices=counts)
        if self.finishing and not self.settled:
            self.incumbent.settle(tol)
        certificate = self.incumbent.confirm()
        if certificate.error <= tol:
            self._cross_over(tol, ends=True)
            certificate = self.incumbent.confirm()
        self.incumbent.keep_confirmed()
        self.history.end(self.passes, clock.seconds(), certificate)
        self.history.notes = self.state.notes
        if status in LIMITS and tol > 0:  # rounding had hidden it during the run
            return certificate.status(tol) or status
        return status

    def _cross_over(self, tol: float, ends: bool) -> bool:
        """Move x to a vertex of the face on which it lies; return whether it is at one.

        ``ends`` says whether the run ends here in any case, also without a vertex.
        """
        counts = self.state.report()
        steps = counts.finish_steps or 0
        structure = structure_of(self.incumbent.reduction.model) if steps else None
        factored = 0.0 if structure is None else steps * structure.passes(self.incumbent.reduction.model.A)
        work = Work(self.passes + factored, steps, counts.newton_steps or 0, structure is not None)
        crossing = self.incumbent.cross_over(tol, work)
        if crossing.said and (crossing.at_vertex or ends):
            self.state.notes.append(crossing.said)
        return crossing.at_vertex

    def adapt(self, method: Method[Any], check_every: float | None) -> None:
        """Pass the error of the last certificate to the method, and plan the next certificate."""
        assert self.pending_error is not None
        passes, error = self.pending_error
        self.pending_error = None
        self.incumbent.forget()
        self.state = method.adapt(self.state, error)
        self.due = self.state.passes + (check_every or max(FIRST_CHECK, GROWTH * passes))
        self.state.wants_certificate = False

    def resume(self, model: Model, reduction: Reduction, clock: Clock) -> None:
        """Check a run from a checkpoint, then restore the memories of the functions and the time of the clock."""
        self._check(model, reduction)
        for memory, kept in zip(model.memories(), self.memories, strict=True):
            vars(memory).update(vars(kept))
        self.memories = model.memories()
        clock.before = self.seconds

    def _check(self, model: Model, reduction: Reduction) -> None:
        """Raise if the file holds impossible values that decide when the run ends or what is certified."""
        work, judged = (self.state.passes, self.due), (self.incumbent.passes, self.judging.passes)
        if not all(0 <= number < np.inf for number in (*work, *judged, self.seconds, self.judging.seconds)):
            raise ValueError("its passes or seconds are negative or not finite")
        if (self.state.y.shape, self.state.x.shape) != tuple((size,) for size in reduction.model.A.shape):
            raise ValueError(f"its points have the shapes {self.state.x.shape} and {self.state.y.shape}")
        report = self.state.report()
        counts = report.n_blocks, report.blocks_per_iteration
        if not all(count is None or count >= 1 for count in counts):
            raise ValueError("its numbers of blocks are not positive")
        if [type(memory) for memory in self.memories] != [type(memory) for memory in model.memories()]:
            raise TypeError("what its functions remember belongs to other functions")
        self.incumbent.check(model, reduction)


@stored
@dataclass(frozen=True)
class Past:
    """Counts of a run on another number of processes: its passes, those of its certificates, and its history."""

    passes: float
    judged: float
    seconds: float
    history: History
    weights: list[tuple[float, float]]


@stored
@dataclass(frozen=True)
class Contents:
    """What a checkpoint holds: the run, and the point and counts for a run on another number of processes."""

    run: Run
    point: Start
    past: Past


def _origin(model: Model) -> Candidates:
    """Return x = 0 and y = 0 as candidates."""
    rows, columns = model.A.shape
    return Candidates([(zeros(model.A, columns), None)], [(zeros(model.A, rows), None)])


def run_until(
    method: Method[Any],
    run: Run,
    limits: Limits,
    model: Model,
    interrupts: Interrupts,
    writer: CheckpointWriter,
) -> Status | None:
    """Advance in slices until a certificate is due, or the method asks for one.

    Returns early, with the reason, after Ctrl-C or a divergence.
    """
    clock = limits.clock
    most = limits.max_passes - run.incumbent.passes
    while run.state.passes < min(run.due, most) and not (
        run.state.wants_certificate or clock.expired() or interrupts.requested
    ):
        ahead = min(slice_passes(run.state, model), run.due - run.state.passes)
        if run.state.passes + ahead > most:
            writer.close(run)  # before the shortened slice, which a run without this limit would not make
            ahead = most - run.state.passes
        state = run.state = method.advance(run.state, ahead)
        if diverged(model, state.x, state.y):
            return Status.DIVERGED
        if writer.due():
            writer.save(run)
    if clock.expired() or interrupts.requested or run.passes >= limits.max_passes:
        writer.close(run)  # before the last certificate, which a run without limits would not compute here
    return Status.INTERRUPTED if interrupts.requested else None
