"""The function ``solve``; its loop is in ``engine/session.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..methods import Method
from ..places.mpi.communicator import communicator_of
from ..places.mpi.distribute import Shard
from ..problem import Problem
from ..result import Result
from ..tall.problem import TallProblem
from .info import Info
from .options import Options
from .session import Session


def solve(
    problem: Problem | TallProblem | Shard,
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
    problem : Problem, TallProblem or callable
        What to solve. With ``comm`` it may be a function ``shard(rank, size)`` that returns the problem of the columns
        of one process, all with the same loss; the problem to solve then has all these columns side by side. If it
        returns a ``TallProblem``, the problem to solve has the rows of all processes.
    method : str or Method, default "auto"
        One of ``saddleback.methods()``. "auto" is "descent" for a smooth loss, or "alternating" if also every block of
        A is an identity; "highs" for a linear program, or "r2hpdhg" if it is large or not in memory; "dual-fista"
        for strongly convex penalties and differences, as in images; "multipliers" if loss and penalty both have kinks
        and A is a matrix, without groups; and "sp-bcd" otherwise. If options are given, it is a method that has them.
        ``result.method`` names it. An object of a subclass of ``saddleback.methods.Method`` is your own method
        (docs/methods.md), or one of the catalogue with its options as fields.
    tol : float, default 1e-6
        The result is ``OPTIMAL`` when the relative gap, the primal and dual infeasibility, and the perturbation of the
        problem that explains these, are all at most ``tol``. With 0 the run ends at a limit.
    max_passes : float, default 10_000
        Most work, in passes: visits of all columns.
    time_limit : float, optional
        Most wall time, in seconds.
    blocks_per_iteration : int or "auto", default "auto"
        K, how many of the J blocks an iteration of "sp-bcd" updates. "auto" takes as many as possible without slowing
        convergence. A number selects "sp-bcd", unless ``method`` is another method that draws blocks.
    seed : int, default 0
        Seed of the draws. The same seed gives the same result, bit by bit, at any number of threads.
    threads : int, optional
        Most threads to use, at most 1024. By default it is what this process may keep busy, the smallest of: the CPUs
        of its affinity, the CPU quota of its container, ``OMP_NUM_THREADS``, ``OPENBLAS_NUM_THREADS`` and what joblib
        leaves to a worker. The BLAS uses one thread during a solve.
    callback : callable, optional
        Called with an ``Info`` at every certificate; returning True stops the run.
    progress : bool, default False
        Whether to show a progress bar.
    x0, y0 : array-like, list of array-like or Result, optional
        Where to start, in the shapes of the problem; 0 by default. x0 may be the ``Result`` of a similar problem, which
        gives both points and the primal weight. "descent" computes y from x.
    eliminate : bool or "auto", default "auto"
        Whether blocks under an identity are made part of the loss: blocks with a quadratic penalty, which makes the
        loss smooth, and under a squared loss blocks with a kink or a bound at 0. Losses of x itself become part of the
        penalty, ``TotalVariation1D`` under a loss with kinks becomes a loss of differences, and overlapping groups that
        are mostly 0 become disjoint groups of copies. "auto" does so for method "auto" if ``blocks_per_iteration`` is
        "auto". The result and the certificate are those of the given problem.
    check_every : float, optional
        Passes between certificates. By default they are 8 passes apart at first, and then further and further, so that
        certificates are a small part of the work. A Newton step of "descent" may ask for one earlier; without one, its
        first comes after 24 passes.
    checkpoint : str or path, optional
        A file to write the run to, every ``checkpoint_every`` seconds and when Ctrl-C, a callback or a limit stops it.
        If the file cannot be written, the run continues with a warning.
    checkpoint_every : float, default 60.0
        Seconds between checkpoints.
    resume : str or path, optional
        A file that ``checkpoint`` has written, for the same problem and options. The run continues from there and ends
        with the same bits as without the interruption. Limits, ``threads`` and ``check_every`` may differ.
        ``max_passes`` and ``result.seconds`` count from the first start, ``time_limit`` from the resumption.
    comm : mpi4py communicator, optional
        Such as ``MPI.COMM_WORLD``: its processes, each with some of the columns of A, solve the problem together. All
        call ``solve`` with the same arguments, and all get the whole result.
    device : str, optional
        Where A lies and is worked on: "cuda", "cpu" or another device of torch. By default A stays on the host, or on
        the device of a tensor.
    layers : bool, default True
        Whether restarts, working sets, multipliers of constraints, the fallback and the finish may be put around the
        method. False runs the method alone on the given rows, to compare it with others.
    **options : dict
        Options of the method. "sp-bcd" has ``step`` ("norm", "l1", or a pair of strengths for x and y), ``restarts``,
        ``working_set`` and ``finish`` ("auto", True or False), ``backend`` ("auto", "numpy", "native" or "torch") and
        ``dual`` ("auto", "eager" or "lazy"). Those of other methods are in docs/methods.md, and with their formulas in
        the classes of ``saddleback.methods``.

    Returns
    -------
    Result
        The best pair of points of the run, with its certificate. After a finish, entries of x next to a kink or a bound
        are put on it if that keeps the tolerance. Ctrl-C returns a result too, with the status ``INTERRUPTED`` even if
        the run ended before it could be stopped, so that a loop over several solves can look for it. A second Ctrl-C
        during the same solve, or within 0.4 seconds, raises KeyboardInterrupt.
    """
    if not isinstance(problem, (Problem, TallProblem)) and not callable(problem):  # before the options that follow it
        raise TypeError(
            f"problem is {type(problem).__name__}: expected a saddleback.Problem, as in "
            "solve(Problem(penalty, A, loss))"
        )
    given = Options(
        method=method,
        tol=tol,
        max_passes=max_passes,
        time_limit=time_limit,
        blocks_per_iteration=blocks_per_iteration,
        seed=seed,
        threads=threads,
        callback=callback,
        progress=progress,
        x0=x0,
        y0=y0,
        eliminate=eliminate,
        check_every=check_every,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
        comm=comm,
        device=device,
        layers=layers,
        of_method=options,
    )
    whole = _made(problem, comm)
    if isinstance(whole, TallProblem):
        from ..tall.solve import solve_tall  # it calls this function for its problems in memory

        return solve_tall(whole, given)
    with Session(given) as session:
        return session.solve(whole, x0, y0)


def _made(problem: Any, comm: Any) -> Any:
    """Return the problem, from the rows of all processes if a function returns those of one process."""
    team = communicator_of(comm)
    if team.size == 1 or not callable(problem):
        return problem
    with team:
        part = problem(team.rank, team.size)
    return part.of_all(team) if isinstance(part, TallProblem) else lambda rank, size: part
