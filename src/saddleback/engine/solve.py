"""The only entry to a solve; ``engine/session.py`` has the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..methods import Method
from ..places.mpi.distribute import Shard
from ..problem import Problem
from ..result import Result
from .info import Info
from .options import Options
from .session import Session


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
    with Session(given) as session:
        return session.solve(problem, x0, y0)
