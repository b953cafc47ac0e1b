"""A session holds what all solves of a path share; a task takes one problem from its start to its result."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any

import numpy as np

from ..certificates.rays import explanation, ray_of_empty_rows
from ..certificates.shares import shares
from ..checkpoints import Checkpoint, CheckpointWriter, compare, described, fingerprint, going_on, restore, writable
from ..common.arrays import Vector
from ..common.checks import SQUARABLE, one_of
from ..functions.points import DensePoint
from ..linear_programs.program import as_linear_program, prices
from ..machine.threads import limited
from ..methods import Method, Start, drawn_blocks
from ..model.model import Model
from ..operators.deferred_points import zeros
from ..places.mpi.communicator import communicator_of
from ..places.mpi.distribute import Shard, gathered
from ..places.torch import open_device
from ..problem import Problem
from ..reductions import Reduction, Unchanged, Units, in_canonical_units, merge_rows, reduce_problem
from ..result import Result, Status, counted
from .clock import Clock
from .diagnosis import culprit, diagnose, message, proofs, spread
from .incumbent import Incumbent
from .info import info_of
from .interrupts import Interrupts
from .options import NAMES, Options
from .progress import progress_bar
from .registry import make, refuse, resolve
from .run import LIMITS, UNSOLVABLE, Contents, Limits, Run, run_until


class Session:
    """The processes, threads and numpy error state of all solves with the same options.

    Attributes
    ----------
    clock : Clock
        The time of the call; all solves together end at its limit.
    stopped : bool
        Whether a callback has returned True.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.team = communicator_of(options.comm)
        self.stopped = False
        self.plan: tuple[dict[str, Any], Method[Any], float] | None = None
        self.units: tuple[dict[str, Any], Units] | None = None
        self._open = ExitStack()
        with self.team:
            options.check()
        self.clock = Clock(options.time_limit, self.team)

    def __enter__(self) -> Session:
        with self.team:
            threads = self.team.threads(self.options.threads)
        self._open.enter_context(self.team)
        self._open.enter_context(limited(threads))
        # numbers that overflow in a method fail its tests, and the certificate reports what is known
        self._open.enter_context(np.errstate(all="ignore"))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.__exit__(kind, error, at)

    def solve(
        self, problem: Problem | Shard, x0: Any = None, y0: Any = None, trusted: bool = False, **told: Any
    ) -> Result:
        """Solve a problem, starting from x0 and y0, and certify the answer.

        A start that is ``trusted`` is certified before the method begins. ``told`` joins the settings of the result.
        """
        task = Task(self, problem, x0, y0)
        team, options = self.team, self.options
        with Interrupts(team) as interrupts:
            run = task.begin(trusted)  # before the bar is drawn: a checkpoint may be refused
            with progress_bar(options.progress and team.rank == 0, options.tol) as show:
                while task.status is None:
                    task.advance(interrupts)
                    show(run.passes, run.incumbent.certificate)
                    self.stopped |= task.call_back()
                    task.decide(self.stopped)
                task.close()
            interrupted = interrupts.requested
        return task.result(interrupted, told)


class Task:
    """One problem on its way from its start to its result.

    Attributes
    ----------
    problem, model :
        The problem as the user wrote it.
    given :
        The same before it was moved to a device; None if its columns are on several processes.
    reduction :
        The smaller problem that is solved, and the map from its solutions to those of the user's problem.
    method :
        The method with its options and layers.
    status :
        How the run has ended; None while it continues.
    """

    run: Run
    status: Status | None = None
    halted: Status | None = None
    """Why the method stopped before its next certificate was due, if it did."""

    def __init__(self, session: Session, problem: Problem | Shard, x0: Any, y0: Any) -> None:
        self.options = options = session.options
        self.start = x0, y0
        self.team = team = session.team
        if team.size > 1:
            compare(team, described(problem) | replace(options, x0=x0, y0=y0).same_everywhere())
        path = writable(options.checkpoint) if team.rank == 0 else options.checkpoint  # the first process writes
        problem = gathered(problem, team)
        self.drawn = drawn_blocks(options.blocks_per_iteration, problem.n_blocks)
        self.clock = Clock(session.clock.share(), team)
        self.limits = Limits(options.tol, options.max_passes, self.clock)
        place = problem.tensors if options.device is None else open_device(options.device)
        if place is not None and options.checkpoint is not None and problem.model.A.traits.identity_scales is not None:
            raise TypeError(
                "checkpoint: with all blocks identities the vectors lie on the device; leave checkpoint or device out"
            )
        self.given = problem if team.size == 1 else None
        self.problem = problem if place is None else problem.placed(place)
        model = self.problem.model.with_memory()
        self.units = self._in_units(session, model)
        self.model = self.units.model
        self.method, self.reduction = self._planned(session)
        self.known = _known(self.model, self.reduction)
        self.mark = self._mark(repr(place)) if options.keeps_a_file else {}
        self.writer = CheckpointWriter(path, options.checkpoint_every, self.clock, self.mark, self.known, team)

    def _in_units(self, session: Session, model: Model) -> Units:
        """Return the problem in the units of its run: those of the problem before, if only the penalty differs."""
        if self.options.of_method:
            return Units(model)  # options of a method may be strengths, which have units
        if session.units is not None and session.units[0] is model.of_data:
            return session.units[1].with_penalty_of(model)
        method = self.options.method
        units = in_canonical_units(model, may_use_highs=isinstance(method, str) and method in ("auto", "highs"))
        session.units = model.of_data, units
        return units

    def _planned(self, session: Session) -> tuple[Method[Any], Reduction]:
        """Return the method for the problem, and the reduction of the problem for the method.

        Problems that share what is known of A and the loss differ in their alphas alone. If the one before was solved
        as it was, so is this one, by the same method.
        """
        if session.plan is not None and session.plan[0] is self.model.of_data:
            return session.plan[1], Unchanged(self.model, session.plan[2])
        method, reduction = self._new_plan()
        if reduction.model is self.model:
            session.plan = self.model.of_data, method, reduction.passes
        return method, reduction

    def _new_plan(self) -> tuple[Method[Any], Reduction]:
        options, drawn = self.options, self.drawn
        reduction = reduce_problem(self.model, _eliminates(options, drawn))
        of_method = dict(options.of_method)
        chosen = resolve(options.method, of_method, reduction.model, drawn, options.tol, options.layers)
        method = make(chosen, of_method, NAMES, options.layers)
        refuse(method, reduction.model, drawn)
        if options.layers and method.merges_rows:
            reduction = reduction.then(merge_rows(reduction.model))
        return method.for_model(reduction.model), reduction

    def _mark(self, device: str) -> dict[str, Any]:
        """Return what a checkpoint says of the problem and the options, which have to be the same to go on from it."""
        shared = ("tol", "seed", "blocks_per_iteration", "eliminate", "layers")
        asked = {"method": self.method.name, "device": device} | {name: getattr(self.options, name) for name in shared}
        return fingerprint(self.problem, asked | dict(self.options.of_method))

    def begin(self, trusted: bool) -> Run:
        """Return a new run, or the one that a checkpoint holds."""
        resume, clock = self.options.resume, self.clock
        stored = Checkpoint() if resume is None else restore(resume, self.mark, self.known, self.team, Contents)
        if stored.run is not None:
            self.run = stored.run
            with going_on(resume):
                self.run.resume(self.model, self.reduction, clock)
                if self.run.pending_error is not None:
                    self.run.adapt(self.method, self.options.check_every)
            return self.run
        options = self.options
        point = stored.point or warm_start(self.problem, self.units, self.reduction, *self.start)
        kept = self.reduction.kept() if options.of_method else None  # for explicit strengths alone
        start = Start(point.x, point.y, self.drawn, options.seed, point.weight, kept, options.tol, seconds=clock.left())
        state = self.method.init(self.reduction.model, start)
        due = 0.0 if trusted else self.method.warmup_passes
        self.run = Run(state, Incumbent(self.model, self.reduction), self.model.memories(), due)
        if stored.past is not None:
            with going_on(resume):
                self.run.inherit_counts(stored.past, clock)
        return self.run

    def advance(self, interrupts: Interrupts) -> None:
        """Advance the method until a certificate is due, and compute the certificate."""
        run, method = self.run, self.method
        with going_on(self.options.resume):
            self.halted = run_until(method, run, self.limits, self.reduction.model, interrupts, self.writer)
            self.team.check_identical(run.state.x, run.state.y)
            run.measure(method, self.halted, self.clock)

    def call_back(self) -> bool:
        """Call the user's callback; return whether that of any process asks the run to stop."""
        callback = self.options.callback
        wants = callback is not None and bool(callback(info_of(self.problem, self.units, self.run, self.clock)))
        return self.team.any(wants)

    def decide(self, stopped: bool) -> None:
        """Set the status of the run if this certificate ends it; otherwise let the method adapt to it."""
        run = self.run
        with going_on(self.options.resume):
            self.status = run.verdict(self.reduction.status or self.halted, self.limits)
            if self.status is None and stopped:
                self.status = Status.INTERRUPTED
            elif self.status is None:
                run.adapt(self.method, self.options.check_every)

    def close(self) -> None:
        """Write the last checkpoint, and bring the best pair of points into the form in which it is returned."""
        run = self.run
        assert self.status is not None
        if self.status in (*LIMITS, Status.INTERRUPTED):
            self.writer.close(run)
        with going_on(self.options.resume):
            self.status = run.close(self.status, self.options.tol, self.clock)
        self.best = run.incumbent
        if self.units.rows is not None:
            self.best = run.incumbent.in_units_of(self.problem.model, self.units)
            if self.status.solved:  # numbers that overflow, or have too few digits, may do so in the user's units alone
                self.status = self.best.certificate.status(self.options.tol) or Status.ROUNDING_LIMIT
        self.best.probe()

    def result(self, interrupted: bool, told: dict[str, Any]) -> Result:
        """Return the result; ``interrupted`` if Ctrl-C was pressed, even if that was too late to stop the run."""
        problem, run = self.problem, self.run
        assert self.status is not None
        status = Status.INTERRUPTED if interrupted else self.status
        ray = self._ray(status)
        said = self._message(status, ray)
        x, y = self.best.point()
        stated = prices(problem.model, x, y) if status.solved else None
        return Result(
            x=problem.shape_x(x),
            y=problem.shape_y(y.vector()),
            status=status,
            message=said,
            certificate=self.best.certificate,
            passes=run.passes,
            seconds=self.clock.seconds(),
            history=run.history,
            method=run.name_of(self.method),
            settings=run.state.report().as_dict() | told,
            shadow_prices=None if stated is None else problem.shape_y(stated.shadow_prices),
            reduced_costs=None if stated is None else problem.shape_x(DensePoint(stated.reduced_costs)),
            is_vertex=None if stated is None else stated.is_vertex,
            ray=ray if ray is None else _shaped_ray(problem, status, ray),
            terms=shares(problem, self.best.gap),
            problem=self.given,
        )

    def _ray(self, status: Status) -> Vector | None:
        """Return the ray that proves that there is no solution; None if the status claims no such thing."""
        if status not in UNSOLVABLE:
            return None
        proof = self.run.incumbent.proof
        if proof is None:
            return ray_of_empty_rows(self.problem.model)
        return self.units.restored_ray(proof.ray, status is Status.INFEASIBLE)

    def _message(self, status: Status, ray: Vector | None) -> str:
        run, tol = self.run, self.options.tol
        proof = None if ray is None else explanation(self.problem, status, ray)
        method = run.name_of(self.method)
        work = f"{counted(run.passes)} passes of {method}"
        said = message(status, self.best.certificate, tol, work, method, proof)
        if self.status is not status and self.status is not None:
            said += f" The run had already ended: {self.status.value}"
        if status.solved and as_linear_program(self.problem.model) is not None:
            said += proofs(self.best.certificate)
        if status in LIMITS:
            said += culprit(self.problem, self.best.gap, tol)
            reached = self.best.certificate, tol, run.history, run.weights, run.state.report()
            said += " " + diagnose(status, *reached, self.drawn is not None, spread(self.model.A))
            if self.reduction.eliminates:
                said += " Blocks were made part of the loss; eliminate=False leaves them."
            said += _unproved(run.incumbent.detector.suspected)
        return said + (self.writer.advice() if status in (*LIMITS, Status.INTERRUPTED) else "")


def warm_start(problem: Problem, units: Units, reduction: Reduction, x0: Any, y0: Any) -> Start:
    """Return the start in the reduced problem, from points or from the result of a similar problem."""
    weight = 1.0
    if isinstance(x0, Result):
        weight = float(x0.settings.get("primal_weight", weight))
        x0, y0 = x0.x, x0.y if y0 is None else y0
    A = reduction.model.A
    x, y = zeros(A, A.shape[1]), zeros(A, A.shape[0])
    if x0 is not None:
        x[:] = reduction.reduce_x(units.reduced_x(problem.flatten_x(x0, "x0", SQUARABLE).vector()))
    if y0 is not None:
        y[:] = reduction.reduce_y(units.reduced_y(problem.flatten_y(y0, "y0", SQUARABLE)))
    return Start(x, y, weight=weight)


def _eliminates(options: Options, drawn: int | None) -> bool:
    """Return whether blocks under an identity are made part of the loss."""
    one_of("eliminate", options.eliminate, "auto", True, False)
    automatic = isinstance(options.method, str) and options.method == "auto" and drawn is None
    return options.eliminate is True or (options.eliminate == "auto" and automatic)


def _known(model: Model, reduction: Reduction) -> dict[str, Any]:
    """Return the objects that exist before a run begins, by name: a checkpoint refers to them without holding them."""
    smaller = reduction.model
    found: dict[str, Any] = {"model": model, "reduction": reduction, "smaller": smaller}
    for name, each in (("model", model), ("smaller", smaller)):
        found |= {f"{name}.f": each.f, f"{name}.A": each.A, f"{name}.g": each.g}
    return found


def _shaped_ray(problem: Problem, status: Status, ray: Vector) -> Any:
    return problem.shape_y(ray) if status is Status.INFEASIBLE else problem.shape_x(DensePoint(ray))


def _unproved(suspected: Status | None) -> str:
    """Return a sentence on what the iterates suggest but no ray has proved."""
    if suspected is None:
        return ""
    what = "no point is feasible" if suspected is Status.INFEASIBLE else "the objective has no bound"
    return f" The iterates suggest that {what}, but no ray was found that proves it."
