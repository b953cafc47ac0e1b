"""The only loop: advance a method, judge what it offers, decide whether to stop."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from ..certificates.rays import explanation, ray_of_empty_rows
from ..checkpoints import Keeper, Kept, compare, described, fingerprint, going_on, restore, writable
from ..common.arrays import Vector
from ..common.cached import cached_property
from ..common.checks import SQUARABLE, number, one_of, shown
from ..functions.points import Point, Whole
from ..linear_programs.program import prices
from ..machine.threads import check_threads, limited
from ..methods import Method, Start, drawn_blocks
from ..methods.contract import positive_number
from ..places.mpi.communicator import team_of
from ..places.mpi.distribute import Shard, gathered
from ..places.torch import open_device
from ..problem import Model, Problem
from ..reductions import Reduction, merge_rows, reduce_problem
from ..result import Certificate, Result, Status
from .clock import Clock
from .diagnosis import diagnose, message, spread
from .incumbent import Judge
from .interrupts import Interrupts
from .progress import progress_bar
from .registry import METHODS, make, refuse, resolve
from .run import LIMITS, UNSOLVABLE, Contents, Limits, Run, run_until


class Iterate(NamedTuple):
    """The point at which a method is, in the shapes of the problem."""

    x: Any
    y: Any


@dataclass(frozen=True)
class Info:
    """What a callback is told at every certificate: the work so far, and the best pair of points.

    ``judging_passes`` and ``judging_seconds`` are the part of the work that went into certificates, so that what is
    left is that of the method, however often it is looked at. ``x`` and ``y`` are the best points so far, ``current``
    is the iterate of the method as it is now; all are made when they are asked for, which has to be during the call.
    On several processes each may ask for them alone, except for ``current`` where blocks were made part of the loss
    (``eliminate``): that takes a product with A, so that either all processes ask for it or none.
    """

    passes: float
    seconds: float
    certificate: Certificate
    judging_passes: float
    judging_seconds: float
    point: Callable[[], tuple[Any, Any]] = field(repr=False)
    iterate: Callable[[], tuple[Any, Any]] = field(repr=False)

    @cached_property
    def x(self) -> Any:
        """The best x so far, in the problem's own shape."""
        return self.point()[0]

    @cached_property
    def y(self) -> Any:
        """The best y so far."""
        return self.point()[1]

    @cached_property
    def current(self) -> Iterate:
        """The iterate of the method: neither the best one, nor moved into any domain or scaled."""
        return Iterate(*self.iterate())


def solve(
    problem: Problem | Shard,
    method: str | Method[Any] = "auto",
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
    layers: bool = True,
    **options: Any,
) -> Result:
    """Solve a problem and certify the answer.

    Parameters
    ----------
    problem : what to solve. With ``comm``, a function ``shard(rank, size)`` may give each process the problem of its
        own columns instead, all under the same loss: the problem is that of all columns side by side.
    method : one of ``saddleback.methods()``; "auto" is "descent" for a smooth loss, "alternating" where every block
        of A is an identity too, "highs" for a linear program, or "r2hpdhg" if it is large or not in memory, and
        "sp-bcd" for all others, with everything chosen for you; ``result.method`` tells which. An object of a subclass
        of ``saddleback.methods.Method`` is a method of your own (docs/methods.md), or one of the catalogue with its
        options as fields.
    tol : the result is ``OPTIMAL`` when relative gap, primal and dual infeasibility, and the perturbation of the
        problem that explains these, are all at most this; 0 runs to a limit.
    max_passes : most work, in visits of all columns.
    time_limit : most wall time, in seconds.
    blocks_per_iteration : K, how many of the J blocks an iteration of "sp-bcd" updates; "auto" takes as many as
        possible without slowing convergence. To choose it is to choose "sp-bcd", unless another method that draws
        blocks is asked for.
    seed : of the draws. The same seed gives the same result, bit by bit, at any number of threads.
    threads : most threads to use. By default those that this process may keep busy: the CPUs of its affinity, the CPU
        quota of its container, ``OMP_NUM_THREADS``, ``OPENBLAS_NUM_THREADS`` and what joblib leaves to a worker,
        whichever is least. At most 1024. The BLAS uses one thread meanwhile.
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
    layers : whether restarts, working sets and the finish may be put around the method, as it allows. False is the bare
        method on the rows as they are given, to compare it with others.
    **options : of the method. "sp-bcd" has ``step`` ("norm", "l1", or a pair of strengths for x and y), ``restarts``,
        ``working_set`` and ``finish`` ("auto", True or False), ``backend`` ("auto", "numpy", "native" or "torch") and
        ``dual`` ("auto", "eager" or "lazy"). Those of the others are in docs/methods.md, and with their formulas in the
        classes of ``saddleback.methods``.

    Returns
    -------
    Result
        The best pair of points seen, with its certificate; after a finish, entries of x beside a kink or a bound are
        put on it where that keeps the tolerance. Ctrl-C gives a result too. Its status is then ``INTERRUPTED``, even if
        the run came to its end before it could be stopped: a loop over several solves can look for it.
        A second Ctrl-C raises KeyboardInterrupt, during the same solve or within 0.4 seconds.
    """
    team = team_of(comm)
    with team:
        _check_arguments(tol, max_passes, time_limit, seed, threads, callback, check_every)
        one_of("layers", layers, True, False)
        one_of("progress", progress, True, False)
        _check_checkpoints(checkpoint_every, resume, x0, y0)
        if not (checkpoint is None and resume is None):
            _check_resumable(method)
        if team.size > 1:
            plain = {"method": repr(method), "layers": layers, "eliminate": eliminate}
            plain |= {"tol": tol, "max_passes": max_passes, "seed": seed}
            plain |= {"blocks_per_iteration": blocks_per_iteration, "check_every": check_every, "device": device}
            given = {"time_limit": time_limit, "checkpoint": checkpoint, "resume": resume}  # their values may differ
            plain |= {name: None if value is None else "given" for name, value in given.items()}
            begin = {"x0": (x0.x, x0.y) if isinstance(x0, Result) else x0, "y0": y0}
            compare(team, described(problem) | plain | begin | options)
        kept_in = writable(checkpoint) if team.rank == 0 else checkpoint  # the first process writes
        problem = gathered(problem, team)
        threads = team.threads(threads)
    drawn = drawn_blocks(blocks_per_iteration, problem.n_blocks)
    clock = Clock(time_limit, team)
    limits = Limits(tol, max_passes, clock)
    place = problem.tensors if device is None else open_device(device)
    if place is not None and checkpoint is not None and problem.model.A.traits.identity_scales is not None:
        raise TypeError(
            "checkpoint: with all blocks identities the vectors lie on the device; leave checkpoint or device out"
        )
    # what overflows on the way is no news: it fails its test, and the certificate says what is known
    with team, limited(threads), np.errstate(all="ignore"):
        problem = problem if place is None else problem.placed(place)
        model = problem.model.with_memory()
        reduction = reduce_problem(model, _wants_elimination(eliminate, method, drawn))
        chosen = make(resolve(method, options, reduction.model, drawn), options, OPTIONS, layers)
        refuse(chosen, reduction.model, drawn)
        if layers and chosen.merges_rows:
            reduction = reduction.then(merge_rows(reduction.model))
        chosen = chosen.for_model(reduction.model)
        asked = {"method": chosen.name, "tol": tol, "seed": seed, "blocks_per_iteration": blocks_per_iteration}
        asked |= {"eliminate": eliminate, "device": repr(place), "layers": layers}
        mark = fingerprint(problem, asked | options) if checkpoint or resume else {}
        known = _known(model, reduction)
        stored = Kept() if resume is None else restore(resume, mark, known, team, Contents)
        start = stored.point or warm_start(problem, reduction, x0, y0)
        with Interrupts(team) as interrupts, progress_bar(progress and team.rank == 0, tol) as show:
            if stored.run is not None:
                run: Run = stored.run
                with going_on(resume):
                    run.go_on(model, reduction, clock)
                    if run.unheard is not None:
                        run.hear(chosen, check_every)
            else:
                if options:  # for explicit strengths alone
                    start = replace(start, kept=reduction.kept())
                state = chosen.init(
                    reduction.model, replace(start, drawn=drawn, seed=seed, tol=tol, seconds=clock.left())
                )
                run = Run(state, Judge(model, reduction), model.memories(), chosen.opening)
                del state
                if stored.past is not None:
                    with going_on(resume):
                        run.take_over(stored.past, clock)
            del start  # vectors that the run has replaced would be kept
            keeper = Keeper(kept_in, checkpoint_every, clock, mark, known, team)
            status: Status | None = None
            while status is None:
                with going_on(resume):
                    halted = run_until(chosen, run, limits, reduction.model, interrupts, keeper)
                    team.agree_on(run.state.x, run.state.y)
                    run.measure(chosen, halted, clock)
                show(run.passes, run.judge.certificate)
                told = team.any(callback is not None and bool(callback(_info(problem, run, clock))))
                with going_on(resume):
                    status = run.verdict(reduction.status or halted, limits)
                    if status is None and told:
                        status = Status.INTERRUPTED
                    elif status is None:
                        run.hear(chosen, check_every)
            if status in (*LIMITS, Status.INTERRUPTED):
                keeper.close(run)
            with going_on(resume):
                status = run.close(status, tol, clock)
            run.judge.probe()
            ended, status = status, Status.INTERRUPTED if interrupts.requested else status
        ray = _ray(problem, run, status)
        proof = None if ray is None else explanation(problem, status, ray)
        said = message(status, run.judge.certificate, tol, run.passes, run.name_of(chosen), proof)
        if ended is not status:
            said += f" It had come to its end: {ended.value}"
        if status in LIMITS:
            reached = run.judge.certificate, tol, run.history, run.weights
            apart = spread(problem.model.A)
            said += " " + diagnose(status, *reached, run.state.report(), drawn is not None, apart)
            said += " Blocks were made part of the loss; eliminate=False leaves them." if reduction.eliminates else ""
            said += _unproved(run.judge.unsolvable.suspected)
        if status in (*LIMITS, Status.INTERRUPTED):
            said += keeper.advice()
    x, y = run.judge.point()
    stated = prices(problem.model, x, y) if status is Status.OPTIMAL else None
    return Result(
        x=problem.shape_x(x),
        y=problem.shape_y(y.vector()),
        status=status,
        message=said,
        certificate=run.judge.certificate,
        passes=run.passes,
        seconds=clock.seconds(),
        history=run.history,
        method=run.name_of(chosen),
        settings=run.state.report().as_dict(),
        shadow_prices=None if stated is None else problem.shape_y(stated.shadow_prices),
        reduced_costs=None if stated is None else problem.shape_x(Whole(stated.reduced_costs)),
        is_vertex=None if stated is None else stated.is_vertex,
        ray=ray if ray is None else _shaped_ray(problem, status, ray),
    )


def _ray(problem: Problem, run: Run, status: Status) -> Vector | None:
    """Return the proof that there is no solution; None under every other status."""
    if status not in UNSOLVABLE:
        return None
    return ray_of_empty_rows(problem.model) if run.judge.proof is None else run.judge.proof.ray


def _shaped_ray(problem: Problem, status: Status, ray: Vector) -> Any:
    return problem.shape_y(ray) if status is Status.INFEASIBLE else problem.shape_x(Whole(ray))


def _unproved(suspected: Status | None) -> str:
    """Return what the iterates suggest, and no ray has proved."""
    if suspected is None:
        return ""
    what = "no point is feasible" if suspected is Status.INFEASIBLE else "the objective has no bound"
    return f" The iterates suggest that {what}, but no ray was found that proves it."


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
        x[:] = reduction.reduce_x(problem.flatten_x(x0, "x0", SQUARABLE).vector())
    if y0 is not None:
        y[:] = reduction.reduce_y(problem.flatten_y(y0, "y0", SQUARABLE))
    return Start(x, y, weight=weight)


def _wants_elimination(choice: Any, method: str | Method[Any], drawn: int | None) -> bool:
    one_of("eliminate", choice, "auto", True, False)
    return choice is True or (choice == "auto" and isinstance(method, str) and method == "auto" and drawn is None)


def _info(problem: Problem, run: Run, clock: Clock) -> Info:
    judging = run.judging

    def shaped(point: Callable[[], tuple[Point, Point]]) -> Callable[[], tuple[Any, Any]]:
        def made() -> tuple[Any, Any]:
            x, y = point()
            return problem.shape_x(Whole(x.vector().copy())), problem.shape_y(y.vector().copy())

        return made

    best, iterate = run.judge.point_of_now(), partial(run.judge.restored, run.state.x, run.state.y)
    work = run.passes, clock.seconds(), run.judge.certificate, judging.passes, judging.seconds
    return Info(*work, shaped(best), shaped(iterate))


def _known(model: Model, reduction: Reduction) -> dict[str, Any]:
    """Return what is there before a run begins, by name: a checkpoint refers to it, and does not hold it."""
    smaller = reduction.model
    found: dict[str, Any] = {"model": model, "reduction": reduction, "smaller": smaller}
    for name, each in (("model", model), ("smaller", smaller)):
        found |= {f"{name}.f": each.f, f"{name}.A": each.A, f"{name}.g": each.g}
    return found


def _check_resumable(method: Any) -> None:
    """Refuse to write or read the state of a method that this library does not know."""
    if isinstance(method, Method) and type(method) not in METHODS.values():
        raise TypeError(
            f"checkpoint and resume with method={method.name!r}: only the states of the methods in sb.methods() can be "
            "written to a file; leave checkpoint and resume out, and pass x0=result to go on from a result"
        )


def _check_checkpoints(every: float, resume: Any, x0: Any, y0: Any) -> None:
    if not number("checkpoint_every", every) >= 0:
        raise ValueError(f"checkpoint_every={every!r}: expected a number of seconds that is at least 0")
    if resume is not None and not isinstance(resume, (str, os.PathLike)):
        raise TypeError(f"resume={shown(resume)}: expected the name of a file")
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
    if not 0 <= number("tol", tol) < np.inf:
        raise ValueError(f"tol={tol}: expected a number that is at least 0")
    if not number("max_passes", max_passes) > 0:
        raise ValueError(f"max_passes={max_passes}: expected a positive number")
    if check_every is not None:
        positive_number("check_every", check_every)
    if time_limit is not None and not number("time_limit", time_limit) > 0:
        raise ValueError(f"time_limit={time_limit}: expected None or a positive number of seconds")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback={shown(callback)}: expected a function of one argument")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed={shown(seed)}: expected an integer that is at least 0")
    check_threads(threads)
