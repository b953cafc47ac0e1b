"""The only loop: advance a method, judge what it offers, decide whether to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np

from .checkpoints import Keeper, fingerprint, restore, writable
from .device import open_device
from .diagnosis import diagnose, spread
from .interrupts import Interrupts
from .judge import SETTLING, Judge
from .methods import Method, Start, State, diverged, drawn_blocks
from .methods._base import positive_number
from .problem import Model, Problem
from .progress import progress_bar
from .ranks import Team, team_of
from .reductions import Reduction, merge_rows, reduce_problem
from .registry import make, refuse, resolve
from .result import Certificate, History, Result, Status
from .sharding import Shard, gathered
from .threads import limited

SLICE_GROWTH = 0.04
SLICE_WORK = 1 << 26
"""A method runs for max(1, SLICE_GROWTH * passes) passes, and at most that many multiply-adds, before the clock and the
keyboard are looked at again. Never for a time: where a slice ends shows in the last bits."""

FIRST_CHECK = 8.0
GROWTH = 0.15
"""A certificate is taken every max(FIRST_CHECK, GROWTH * passes) passes: a few percent of the work of a long run."""

TRIES = 4
"""How often a finish that has reached the tolerance tries to put x where kinks hold it, a step later each time: a point
with no room below the tolerance cannot be moved."""

VISITS = 1 << 22
"""Most visits of blocks in one call of a method, for the memory that their draws take."""


@dataclass(frozen=True)
class Info:
    """What a callback is told at every certificate: the work so far, and the best pair of points.

    ``judging_passes`` and ``judging_seconds`` are the part of the work that went into certificates, so that what is
    left is that of the method, however often it is looked at. ``x`` and ``y`` are made when they are asked for.
    """

    passes: float
    seconds: float
    certificate: Certificate
    judging_passes: float
    judging_seconds: float
    point: Callable[[], tuple[Any, Any]] = field(repr=False)

    @cached_property
    def x(self) -> Any:
        """The best x so far, in the problem's own shape."""
        return self.point()[0]

    @cached_property
    def y(self) -> Any:
        """The best y so far."""
        return self.point()[1]


def solve(
    problem: Problem | Shard,
    method: str = "auto",
    tol: float = 1e-6,
    max_passes: float = 10_000,
    time_limit: float | None = None,
    blocks_per_iteration: Any = "auto",
    seed: int = 0,
    threads: int | None = None,
    callback: Callable[[Info], bool | None] | None = None,
    progress: bool = False,
    x0: Any = None,
    y0: Any = None,
    eliminate: Any = "auto",
    check_every: float | None = None,
    checkpoint: Any = None,
    checkpoint_every: float = 60.0,
    resume: Any = None,
    comm: Any = None,
    device: Any = None,
    **options: Any,
) -> Result:
    """Solve a problem and certify the answer.

    Parameters
    ----------
    problem : what to solve. With ``comm``, a function ``shard(rank, size)`` may give each process the problem of its
        own columns instead, all under the same loss: the problem is that of all columns side by side.
    method : one of ``saddleback.methods()``; "auto" is "descent" for a smooth loss, "alternating" where every block
        of A is an identity too, "r2hpdhg" for a linear program and "sp-bcd" for all others, with everything chosen
        for you; ``result.method`` tells which.
    tol : the result is ``OPTIMAL`` when relative gap, primal and dual infeasibility, and what the infeasibilities may
        hide, are all at most this; 0 runs to a limit.
    max_passes : most work, in visits of all columns.
    time_limit : most wall time, in seconds.
    blocks_per_iteration : K, how many of the J blocks an iteration of "sp-bcd" updates; "auto" takes as many as cost
        nothing. To choose it is to choose "sp-bcd", unless another method that draws blocks is asked for.
    seed : of the draws. The same seed gives the same result, bit by bit, at any number of threads; with a finish, whose
        factorisations the BLAS makes, at the same number of them.
    threads : most threads to use; all cores by default.
    callback : called with an ``Info`` at every certificate; returning True stops the run.
    progress : show a progress bar.
    x0, y0 : where to start, in the problem's shapes; 0 by default. x0 may be the ``Result`` of a similar problem, which
        gives both, and the primal weight that it has found. "descent" takes y from x.
    eliminate : whether blocks under an identity are made part of the loss: those with a quadratic penalty, which makes
        it smooth, and under a squared loss those with a kink or a bound at 0. "auto" does so for method "auto" if
        ``blocks_per_iteration`` is left to it. The result has all blocks, and the certificate is that of the problem
        as given.
    check_every : passes between certificates, for a history as fine as that. By default every 8 passes at first, then
        ever less often, so that certificates are a small part of the work.
    checkpoint : a file to write the run to, every ``checkpoint_every`` seconds and when it is stopped by Ctrl-C, a
        callback or a limit. A file that cannot be written is no reason to end the run: that is a warning.
    resume : a file that ``checkpoint`` has written, for the same problem and options: the run goes on from there and
        ends with the same bits as if it had never stopped. Limits, ``threads`` and ``check_every`` may be others;
        ``max_passes`` and ``result.seconds`` count from the first beginning, ``time_limit`` from here.
    comm : an mpi4py communicator, such as ``MPI.COMM_WORLD``: its processes, of which each holds some of the columns
        of A, solve the problem together. All call ``solve`` with the same arguments, and all get the whole result.
    device : where A lies and is worked on: "cuda", "cpu" or another device of torch. By default it stays where it was
        given: on the host, or on the device of a tensor.
    **options : of the method. "sp-bcd" has ``step`` ("norm", "l1", or a pair of strengths for x and y), ``restarts``,
        ``working_set`` and ``finish`` ("auto", True or False), ``backend`` ("auto", "numpy", "native" or "torch") and
        ``dual`` ("auto", "eager" or "lazy"). Those of the others are in docs/methods.md, and with their formulas in the
        classes of ``saddleback.methods``.

    Returns
    -------
    Result
        The best pair of points seen, with its certificate. Ctrl-C gives it too.
    """
    _check_arguments(tol, max_passes, time_limit, seed, threads, callback, check_every)
    _check_checkpoints(checkpoint_every, resume, x0, y0)
    team = team_of(comm)
    with team:
        kept_in = writable(checkpoint) if team.rank == 0 else checkpoint  # the first process writes
        problem = gathered(problem, team)
        threads = team.threads(threads)
    drawn = drawn_blocks(blocks_per_iteration, problem.n_blocks)
    clock = Clock(time_limit, team)
    place = problem.tensors if device is None else open_device(device)
    if place is not None and checkpoint is not None and problem.model.A.identity_scales is not None:
        raise TypeError(
            "checkpoint: with all blocks identities the vectors lie on the device; leave checkpoint or device out"
        )
    with team, limited(threads, problem.model.A):
        problem = problem if place is None else problem.placed(place)
        model = problem.model.with_memory()
        reduction = reduce_problem(model, _wants_elimination(eliminate, method, drawn))
        chosen = make(resolve(method, options, reduction.model, drawn), options, OPTIONS)
        refuse(chosen, reduction.model, drawn)
        if chosen.merges_rows:
            reduction = reduction.then(merge_rows(reduction.model))
        asked = {"method": chosen.name, "tol": tol, "seed": seed, "blocks_per_iteration": blocks_per_iteration}
        mark = fingerprint(problem, asked | {"eliminate": eliminate} | options) if checkpoint or resume else {}
        known = _known(model, reduction)
        status: Status | None = None
        settled = False
        with Interrupts(team) as interrupts, progress_bar(progress and team.rank == 0, tol) as show:
            stored = None if resume is None else restore(resume, mark, known, team)
            if stored is not None and stored.run is not None:
                run: Run = stored.run
                run.go_on(model, clock)
                if run.unheard is not None:
                    run.hear(chosen, check_every)
            else:
                kept = reduction.kept() if options else None  # for explicit strengths alone
                start = warm_start(problem, reduction, x0, y0) if stored is None else Start(**stored.point)
                state = chosen.init(reduction.model, replace(start, drawn=drawn, seed=seed, kept=kept, tol=tol))
                del start
                run = Run(state, Judge(model, reduction), model.memories(), chosen.opening)
                if stored is not None:
                    run.take_over(stored.past, clock)
            keeper = Keeper(kept_in, checkpoint_every, clock, mark, known, team)
            judge, history, judging = run.judge, run.history, run.judging
            while status is None:
                halted = run_until(chosen, run, max_passes, reduction.model, clock, interrupts, keeper)
                state = run.state
                team.agree_on(state.x, state.y)
                if halted is not Status.DIVERGED:
                    with judging.counted(state, judge, clock):
                        judge.look_at(chosen.candidates(state))
                passes, seconds = state.passes + judge.passes, clock.seconds()
                history.add(passes, seconds, judge.certificate)
                if "primal_weight" in state.settings:
                    run.weights.append((passes, state.settings["primal_weight"]))
                show(passes, judge.certificate)
                told = callback is not None and bool(callback(_info(problem, judge, passes, seconds, judging)))
                ask = team.any(told)
                with judging.counted(state, judge, clock):
                    status = (
                        reduction.status
                        or halted
                        or stop(judge.certificate, tol, passes, max_passes, clock)
                        or judge.ray_status(state.x, state.y, passes)
                    )
                if status is Status.OPTIMAL:
                    status = stop(judge.confirm(), tol, passes, max_passes, clock)
                if status is Status.OPTIMAL and "finish_steps" in state.settings and run.tries < TRIES:
                    run.tries, settled = run.tries + 1, judge.settle(tol, SETTLING[:1])
                    status = status if settled else None
                run.unheard = passes, judge.certificate.error
                if ask and not (reduction.status or halted):
                    status = Status.INTERRUPTED
                elif status is None:
                    run.hear(chosen, check_every)
            if status in (*LIMITS, Status.INTERRUPTED) and not keeper.closed:
                keeper.keep(run)
        if "finish_steps" in state.settings and not settled:
            judge.settle(tol)
        certificate = judge.confirm()
        if status in LIMITS and tol > 0 and certificate.error <= tol:
            status = Status.OPTIMAL  # what rounding had hidden from the run
        passes = state.passes + judge.passes
        history.notes = state.notes
        said = message(status, certificate, tol, passes, chosen.name)
        if status in LIMITS:
            apart = spread(problem.model.A)
            reached = certificate, tol, history, run.weights
            said += " " + diagnose(status, *reached, state.settings, drawn is not None, apart)
            said += " Blocks were made part of the loss; eliminate=False leaves them." if reduction.eliminates else ""
        if status in (*LIMITS, Status.INTERRUPTED):
            said += keeper.advice()
    x, y = judge.point()
    return Result(
        x=problem.shape_x(x),
        y=problem.shape_y(y),
        status=status,
        message=said,
        certificate=certificate,
        passes=passes,
        seconds=clock.seconds(),
        history=history,
        method=chosen.name,
        settings=state.settings,
    )


OPTIONS = list(signature(solve).parameters)[1:-1]
"""What ``solve`` itself takes besides the options of a method."""


def warm_start(problem: Problem, reduction: Reduction, x0: Any, y0: Any) -> Start:
    """Return where to start in the problem that is solved, from points or from the result of a similar problem."""
    weight = 1.0
    if isinstance(x0, Result):
        weight = float(x0.settings.get("primal_weight", weight))
        x0, y0 = x0.x, x0.y if y0 is None else y0
    A = reduction.model.A
    x, y = A.zeros(A.shape[1]), A.zeros(A.shape[0])
    if x0 is not None:
        x[:] = reduction.reduce_x(problem.flatten_x(x0, "x0"))
    if y0 is not None:
        y[:] = reduction.reduce_y(problem.flatten_y(y0, "y0"))
    return Start(x, y, weight=weight)


class Clock:
    """Wall time since the start, and whether the limit has passed: for all processes, on the clock of the first.

    ``before`` are the seconds of a run that this one goes on with; the limit does not count them.
    """

    def __init__(self, limit: float | None, team: Team) -> None:
        self.team = team
        self.begin = time.perf_counter()
        self.limit = np.inf if limit is None else limit
        self.before = 0.0

    def seconds(self) -> float:
        """Return the time since the start, that of earlier runs included."""
        return self.before + time.perf_counter() - self.begin

    def expired(self) -> bool:
        """Return whether the limit has passed."""
        return self.limit < np.inf and self.team.told(self.seconds() - self.before >= self.limit)


@dataclass
class Judging:
    """The part of the work and of the time that went into certificates."""

    passes: float = 0.0
    seconds: float = 0.0

    @contextmanager
    def counted(self, state: State, judge: Judge, clock: Clock) -> Iterator[None]:
        """Add what is done inside."""
        passes, seconds = state.passes + judge.passes, clock.seconds()
        yield
        self.passes += state.passes + judge.passes - passes
        self.seconds += clock.seconds() - seconds


@dataclass
class Run:
    """All that a run remembers from one slice to the next, and a checkpoint holds.

    Attributes
    ----------
    state : of the method.
    judge : with the best pair so far.
    memories : what the functions of the problem remember.
    due : passes of the method at which the next certificate is taken.
    weights : passes and primal weights at the certificates so far.
    unheard : passes and error of the last certificate, until the method has heard of it.
    tries : how often x was to be settled.
    seconds : at the last checkpoint.
    """

    state: State
    judge: Judge
    memories: list[Any]
    due: float = 0.0
    history: History = field(default_factory=History)
    judging: Judging = field(default_factory=Judging)
    weights: list[tuple[float, float]] = field(default_factory=list)
    unheard: tuple[float, float] | None = None
    tries: int = 0
    seconds: float = 0.0

    def contents(self) -> dict[str, Any]:
        """Return the run, and beside it what one on another number of processes may begin with."""
        weight = float(self.state.settings.get("primal_weight", 1.0))
        past = {"passes": self.state.passes, "judged": self.judge.passes, "seconds": self.seconds}
        return {
            "run": self,
            "point": {"x": self.state.x, "y": self.state.y, "weight": weight},
            "past": past | {"history": self.history, "weights": self.weights},
        }

    def take_over(self, past: dict[str, Any], clock: Clock) -> None:
        """Go on with what a run of other processes has counted."""
        self.state.passes += past["passes"]
        self.judge.passes = past["judged"]
        self.due += past["passes"]
        self.history, self.weights = past["history"], past["weights"]
        clock.before = past["seconds"]

    def hear(self, method: Method[Any], check_every: float | None) -> None:
        """Tell the method of the last certificate, and plan the next."""
        assert self.unheard is not None
        passes, error = self.unheard
        self.unheard = None
        method.judged(self.state, error)
        self.due = self.state.passes + (check_every or max(FIRST_CHECK, GROWTH * passes))
        self.state.ripe = False

    def go_on(self, model: Model, clock: Clock) -> None:
        """Give the functions of the problem their memories back, and the clock its time."""
        for memory, stored in zip(model.memories(), self.memories, strict=True):
            vars(memory).update(vars(stored))
        self.memories = model.memories()
        clock.before = self.seconds


def run_until(
    method: Method[Any],
    run: Run,
    max_passes: float,
    model: Model,
    clock: Clock,
    interrupts: Interrupts,
    keeper: Keeper,
) -> Status | None:
    """Advance in slices until a certificate is due, or the method has something to judge.

    Returns early, with the reason, on Ctrl-C or divergence.
    """
    passes = min(run.due, max_passes - run.judge.passes)
    while run.state.passes < passes and not (run.state.ripe or clock.expired() or interrupts.requested):
        state = run.state = method.advance(run.state, min(slice_passes(run.state, model), passes - run.state.passes))
        if diverged(state.x, state.y):
            return Status.DIVERGED
        if keeper.due():
            keeper.keep(run)
    if clock.expired() or interrupts.requested or run.state.passes + run.judge.passes >= max_passes:
        keeper.keep(run)  # as it is before its last judgement, which no run without limits would have made here
        keeper.closed = True
    return Status.INTERRUPTED if interrupts.requested else None


def slice_passes(state: State, model: Model) -> float:
    """Return how far to go before the clock is looked at: a function of the problem and of the work so far alone."""
    blocks = int(state.settings["n_blocks"])
    iterations = blocks / int(state.settings["blocks_per_iteration"])
    work = 2 * model.A.stored / len(model.strata.members) + iterations * model.A.shape[0]
    return min(max(1.0, SLICE_GROWTH * state.passes), SLICE_WORK / work, VISITS / blocks)


def stop(certificate: Certificate, tol: float, passes: float, max_passes: float, clock: Clock) -> Status | None:
    """Return why to stop now, or None to go on."""
    if tol > 0 and certificate.error <= tol:
        return Status.OPTIMAL
    if clock.expired():
        return Status.TIME_LIMIT
    return Status.MAX_PASSES if passes >= max_passes else None


LIMITS = (Status.MAX_PASSES, Status.TIME_LIMIT)

ADVICE = {
    Status.INFEASIBLE: "Check the bounds and targets of the constraints.",
    Status.UNBOUNDED: "Add a penalty or bounds on x, or check the sign of the linear term.",
    Status.INTERRUPTED: "Pass x0=result to go on from here.",
}


def message(status: Status, certificate: Certificate, tol: float, passes: float, method: str) -> str:
    """Return what happened, how far the result is, and what to do where that does not depend on the run."""
    figures = [
        f"relative gap {certificate.relative_gap:.1e}",
        f"primal infeasibility {certificate.primal_infeasibility:.1e}",
        f"dual infeasibility {certificate.dual_infeasibility:.1e}",
    ]
    if certificate.strict_error > 0:
        figures.append(f"hidden by the infeasibilities up to {certificate.strict_error:.1e}")
    how_far = f"After {passes:.4g} passes of {method}: {', '.join(figures)} (tolerance {tol:.1e})."
    advice = ADVICE.get(status)
    if status is Status.DIVERGED:
        advice = (
            "Check x0, y0 and functions of your own for values that are not finite."
            if method in ("sp-bcd", "pure-cd", "r2hpdhg")
            else "Use method='sp-bcd', whose strengths are sound."
        )
    return " ".join(part for part in (status.value, how_far, advice) if part)


def _wants_elimination(choice: Any, method: str, drawn: int | None) -> bool:
    if choice is not True and choice is not False and choice != "auto":
        raise ValueError(f"eliminate={choice!r}: expected 'auto', True or False")
    return choice is True or (choice == "auto" and method == "auto" and drawn is None)


def _info(problem: Problem, judge: Judge, passes: float, seconds: float, judging: Judging) -> Info:
    point = judge.point_of_now()

    def shaped() -> tuple[Any, Any]:
        x, y = point()
        return problem.shape_x(x.copy()), problem.shape_y(y.copy())

    return Info(passes, seconds, judge.certificate, judging.passes, judging.seconds, shaped)


def _known(model: Model, reduction: Reduction) -> dict[str, Any]:
    """Return what is there before a run begins, by name: a checkpoint refers to it, and does not hold it."""
    smaller = reduction.model
    found: dict[str, Any] = {"model": model, "reduction": reduction, "smaller": smaller}
    for name, each in (("model", model), ("smaller", smaller)):
        found |= {f"{name}.f": each.f, f"{name}.A": each.A, f"{name}.g": each.g}
    return found


def _check_checkpoints(every: float, resume: Any, x0: Any, y0: Any) -> None:
    if isinstance(every, bool) or not isinstance(every, (int, float, np.number)) or not every >= 0:
        raise ValueError(f"checkpoint_every={every!r}: expected a number of seconds that is at least 0")
    if resume is not None and not (x0 is None and y0 is None):
        raise ValueError("resume with x0 or y0: the checkpoint holds where to go on from; leave them out")


def _check_arguments(
    tol: float,
    max_passes: float,
    time_limit: float | None,
    seed: int,
    threads: int | None,
    callback: Callable[[Info], bool | None] | None,
    check_every: float | None,
) -> None:
    for name, value in (("tol", tol), ("max_passes", max_passes), ("time_limit", time_limit)):
        if not isinstance(value, (int, float, np.number)) and not (name == "time_limit" and value is None):
            raise TypeError(f"{name}={value!r}: expected a number")
    if not 0 <= tol < np.inf:
        raise ValueError(f"tol={tol}: expected a number that is at least 0")
    if not max_passes > 0:
        raise ValueError(f"max_passes={max_passes}: expected a positive number")
    if check_every is not None:
        positive_number("check_every", check_every)
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit={time_limit}: expected None or a positive number of seconds")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback={callback!r}: expected a function of one argument")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed={seed!r}: expected an integer that is at least 0")
    if threads is not None and (not isinstance(threads, (int, np.integer)) or threads < 1):
        raise ValueError(f"threads={threads!r}: expected None or an integer that is at least 1")
