"""Programs that ``test_mpi.py`` starts with ``mpiexec -n N python mpi_programs.py NAME...``, and their problems.

The return value of a program is printed as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import clone

import saddleback as sb
import saddleback.estimators as se
from saddleback.datasets import make_group_hinge, make_lasso
from saddleback.operators import Stacked, as_operator
from saddleback.operators.stacked import hstack
from saddleback.places.mpi.communicator import MPICommunicator
from saddleback.places.mpi.distribute import gathered


def lasso():
    data = make_lasso(120, 600, 20)
    return sb.L1(data.alpha), data.A, sb.Squared(data.b)


def sparse_logistic():
    rng = np.random.default_rng(1)
    A = sparse.random(150, 500, 0.05, random_state=1, format="csc")
    return sb.L1(0.3), A, sb.Logistic(np.where(rng.random(150) < 0.5, 1, -1))


def group_lasso():
    rng = np.random.default_rng(8)
    A = rng.standard_normal((60, 120)) + rng.standard_normal((60, 1))  # exchanges are too far apart at first
    return sb.GroupL2(20.0, 4), A, sb.Squared(A[:, :8].sum(axis=1) + rng.standard_normal(60))


def group_hinge():
    """Groups whose columns are not neighbours, so that processes hold them in another order than the user."""
    sites = make_group_hinge(150)
    rng = np.random.default_rng(2)
    order = rng.permutation(sites.A.shape[1])
    place = np.argsort(order)
    groups, start = [], 0
    for size in sites.groups:
        groups.append(np.sort(place[start : start + size]).tolist())
        start += size
    return sb.GroupL2(5e-3, groups), sites.A.tocsc()[:, order], sb.Hinge(sites.labels, scale=1 / len(sites.labels))


def quantile():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((300, 40))
    return sb.L1(5.0), A, sb.Pinball(A[:, :4].sum(axis=1) + rng.standard_normal(300), 0.3)


def linear_program():
    rng = np.random.default_rng(4)
    A = rng.uniform(size=(20, 33))
    return sb.Linear(rng.uniform(size=33)) + sb.Box(0, 1), A, sb.Interval(A @ rng.uniform(size=33) - 0.1, np.inf)


def regression():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((80, 30))
    return X, 3 + X[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(80)


def several_tasks():
    rng = np.random.default_rng(5)
    return sb.GroupL2(0.5, 1), rng.standard_normal((30, 12)), sb.Squared(rng.standard_normal((30, 3)))


def several_losses():
    rng = np.random.default_rng(9)
    A, C = rng.standard_normal((40, 12)), sparse.csc_array(rng.standard_normal((3, 12)))
    return sb.L1(0.5, np.linspace(0.5, 2, 12)), [A, C], [sb.Absolute(A[:, 0]), sb.Interval(0.5, np.full(3, 1.0))]


def one_block():
    rng = np.random.default_rng(6)
    return sb.Nuclear(0.5, (4, 5)), rng.standard_normal((30, 20)), sb.Squared(rng.standard_normal(30))


PROBLEMS = {
    make.__name__: make
    for make in (
        lasso, sparse_logistic, group_lasso, group_hinge, quantile, linear_program, several_tasks, several_losses,
        one_block,
    )
}  # fmt: skip
TOL = 1e-6


def report(result):
    """Return a summary of a result, after a check that all processes have the same result."""
    ys = result.y if isinstance(result.y, list) else [result.y]
    points = np.concatenate([np.ravel(part) for part in (*result.x, *ys)]).tobytes()
    everywhere = COMM.allgather((points, result.status, result.passes))
    assert all(there == everywhere[0] for there in everywhere)
    return {
        "status": result.status.name,
        "method": result.method,
        "value": result.certificate.primal_value,
        "error": result.certificate.error,
        "shape": np.shape(result.x) if isinstance(result.x, np.ndarray) else None,
    }


def answers():
    """Solve every problem, with the whole problem on each process."""
    return {name: report(sb.solve(sb.Problem(*make()), tol=TOL, comm=COMM)) for name, make in PROBLEMS.items()}


def ways():
    """Solve with options other than the default: shards, other methods, backends and seeds."""
    penalty, A, loss = lasso()

    def shard(rank, size):
        own = slice(rank * A.shape[1] // size, (rank + 1) * A.shape[1] // size)
        return sb.Problem(penalty, A[:, own], loss)

    def groups(rank, size):
        """Return the shard of a process: whole groups, whose columns are not neighbours."""
        norm, B, hinge = group_hinge()
        own = norm.groups[rank * len(norm.groups) // size : (rank + 1) * len(norm.groups) // size]
        columns = np.sort(np.concatenate(own))
        return sb.Problem(sb.GroupL2(5e-3, [np.searchsorted(columns, g).tolist() for g in own]), B[:, columns], hinge)

    def of_several_losses(rank, size):
        """Return the shard of a process, whose penalty has weights for its columns."""
        norm, (B, C), losses = several_losses()
        own = slice(rank * B.shape[1] // size, (rank + 1) * B.shape[1] // size)
        return sb.Problem(sb.L1(norm.alpha, norm.weights[own]), [B[:, own], C[:, own]], losses)

    program, B, interval = linear_program()

    def found(problem, **options):
        return report(sb.solve(problem, tol=TOL, comm=COMM, **options))

    first, again = (sb.solve(shard, tol=TOL, comm=COMM, method="sp-bcd") for _ in range(2))
    assert np.array_equal(first.x, again.x)  # the same bits, on the same number of processes
    several = sb.solve(of_several_losses, tol=TOL, comm=COMM)
    assert np.isclose(sum(share.value for share in several.terms.values()), several.objective, rtol=1e-9)
    return {
        "shard": found(shard),
        "shard of groups": found(groups),
        "shard of several losses": report(several),
        "sp-bcd": found(shard, method="sp-bcd"),
        "sp-bcd, 1 block": found(shard, blocks_per_iteration=1, max_passes=2000),
        "sp-bcd, numpy": found(shard, method="sp-bcd", backend="numpy"),
        "sp-bcd, l1": found(shard, step="l1", working_set=False),
        "descent, numpy": found(shard, method="descent", backend="numpy"),
        "pure-cd": found(shard, method="pure-cd"),
        "pdhg": found(shard, method="pdhg"),
        "two threads": found(shard, threads=2),
        "linear program, sp-bcd": found(sb.Problem(program, B, interval), method="sp-bcd"),
    }


MODELS = {
    "SparseRegressor": se.SparseRegressor(alpha=0.01, tol=TOL),
    "SparseClassifier": se.SparseClassifier("logistic", "group", alpha=0.01, groups=3, tol=TOL),
    "ElasticNet": se.ElasticNet(0.1, tol=TOL),
    "GroupLasso": se.GroupLasso(0.1, groups=3, tol=TOL),
    "MultiTaskLasso": se.MultiTaskLasso(0.1, tol=TOL),
    "QuantileRegressor": se.QuantileRegressor(alpha=0.05, tol=TOL),
    "SparseSVC": se.SparseSVC(0.05, tol=TOL),
}


def target(name, y):
    """Return the targets of a model."""
    return y > 3 if name in ("SparseClassifier", "SparseSVC") else np.column_stack([y, -y]) if "Task" in name else y


def estimators():
    """Fit models on all processes, with data in memory and in files, by columns and by rows."""
    X, y = regression()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for order in "FC":
            np.save(f"{folder}/{order}.npy", np.asarray(X, order=order))
        maps = [np.load(f"{folder}/{order}.npy", mmap_mode="r") for order in "FC"]
        for name, model in MODELS.items():
            fits = [clone(model).set_params(comm=COMM).fit(data, target(name, y)) for data in (X, *maps)]
            found[name] = [report(fit.result_) for fit in fits]
    return found


def operators():
    """Compare every operation of a distributed operator with that of the same operator in one process."""
    rng = np.random.default_rng(0)
    m, n = 7, 11
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.7)
    split = np.arange(n) < 4
    wholes = {
        "dense": as_operator(A, "A"),
        "sparse": as_operator(sparse.csc_matrix(A), "A"),
        "stacked": Stacked([as_operator(A[:, split], "A"), as_operator(sparse.csr_matrix(A[:, ~split]), "A")]),
    }
    x, y = rng.standard_normal(n), rng.standard_normal(m)
    some, rows, weight = np.array([9, 0, 5, 4]), np.array([1, 2, 6]), rng.random(n)
    checked = 0
    for whole in wholes.values():
        problem = sb.Problem(sb.L1(1.0), whole, sb.Squared(y))
        spread = gathered(problem, MPICommunicator(COMM)).model.A
        assert whole.traits.holders is None
        assert spread.traits.holders is not None
        pairs = [(whole.ordered("columns"), spread.ordered("columns"))]
        pairs.append((whole.restrict(rows, np.arange(n)), spread.restrict(rows, np.arange(n))))
        pairs.append((whole.ordered("columns").pack(some, False), spread.ordered("columns").pack(some, False)))
        pairs.append(
            (
                hstack(pairs[-1][0], whole.ordered("columns").pack(some[:1], False)),
                hstack(pairs[-1][1], spread.ordered("columns").pack(some[:1], False)),
            )
        )
        for here, there in pairs:
            u, z = x[: here.shape[1]], y[: here.shape[0]]
            last = np.array([here.shape[1] - 1, 1])
            at = np.arange(here.shape[0])[1:]
            w = weight[: here.shape[1]]
            both = [
                (op.matvec(u), op.rmatvec(z), op.matvec(u[:2], last), op.rmatvec(z, last),
                 op.matvec(u, rows=at), op.rmatvec(z[1:], rows=at), *op.sums(2), *op.sums(0), *op.sums(1),
                 op.sums(2, weights=(None, z**2))[0], op.sums(2, weights=(w, None))[1],
                 *op.sums(np.inf, weights=(abs(u), abs(z))), *op.sums(1, weights=(abs(u), abs(z))), *op.sums(1, last),
                 op.entries(last), op.entries(compressed=True).toarray(), op.entries(last, compressed=True).toarray(),
                 np.tril(op.gram(w, side="rows")),
                 np.tril(op.gram(z**2, last)), op.times(sparse.diags_array(w)), op.ordered("rows").matvec(u, rows=at),
                 np.array([op.traits.stored, op.traits.splits, op.traits.entries_known, op.traits.tasks]))
                for op in (here, there)
            ]  # fmt: skip
            for a, b in zip(*both, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
                checked += 1
    return checked


def decisions():
    """A time limit, Ctrl-C and a callback stop all processes at the same iteration."""
    problem = sb.Problem(*quantile())

    def interrupt(info, sent=[]):  # noqa: B006
        if COMM.rank == COMM.size - 1 and not sent:
            sent.append(os.kill(os.getpid(), signal.SIGINT))

    def look(info):
        if COMM.rank == 1:
            assert info.current.x.shape == info.x.shape

    options = {"tol": 0, "max_passes": 1e9, "finish": False, "comm": COMM}
    return {
        "clock": report(sb.solve(problem, time_limit=0.2 if COMM.rank == 0 else 1e6, **options))["status"],
        "interrupt": report(sb.solve(problem, callback=interrupt, **options))["status"],
        "callback": report(sb.solve(problem, callback=lambda info: COMM.rank == 1, **options))["status"],
        "one that looks": report(sb.solve(problem, callback=look, max_passes=50, comm=COMM))["status"],
    }


class OwnPenalty:
    """An L1 norm that is given only by its prox."""

    separable = True

    def value(self, x):
        return np.abs(x).sum()

    def prox(self, v, step):
        return np.sign(v) * np.maximum(np.abs(v) - step, 0)


def message(problem, options):
    """Return the message of the error that a problem causes."""
    try:
        sb.solve(problem, comm=COMM, **options)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def refused():
    """An error that occurs on all processes is raised as in a single process."""
    penalty, A, loss = lasso()
    messages = {}
    for name, problem, options in (
        ("losses", lambda rank, size: sb.Problem(penalty, A, sb.Squared(loss.b + rank)), {}),
        ("no problem", lambda rank, size: A, {}),
        ("lists", lambda rank, size: sb.Problem([penalty], [A], loss), {}),
        ("nothing", None, {}),
        ("own penalty", sb.Problem(OwnPenalty(), A, loss), {"method": "sp-bcd"}),
        ("lazy", sb.Problem(penalty, A, loss), {"method": "sp-bcd", "dual": "lazy"}),
        ("identity", sb.Problem([sb.L1(1.0)], [sb.Identity()], loss), {}),
        ("tol", sb.Problem(penalty, A, loss), {"tol": 10.0 ** -(5 + COMM.rank)}),
        ("option", sb.Problem(penalty, A, loss), {"method": "sp-bcd", "restarts": COMM.rank == 0}),
        ("limit", sb.Problem(penalty, A, loss), {"time_limit": None if COMM.rank else 5.0}),
        ("start", sb.Problem(penalty, A, loss), {"x0": np.full(A.shape[1], float(COMM.rank))}),
        ("data", sb.Problem(penalty, A, sb.Squared(loss.b + COMM.rank)), {}),
        ("kinds", sb.Problem(penalty, A, loss) if COMM.rank else lambda rank, size: sb.Problem(penalty, A, loss), {}),
    ):
        messages[name] = message(problem, options)
    try:
        se.Lasso(0.1, comm=COMM).fit(A + COMM.rank, loss.b)  # after centring, X is the same
    except ValueError as error:
        messages["samples"] = str(error)
    penalty.bind((A.shape[1],))
    if COMM.rank == 0:  # earlier computations of one process make no difference
        sb.certify(sb.Problem(penalty, A, loss), np.zeros(A.shape[1]), np.zeros(A.shape[0]))
    messages["the same"] = message(sb.Problem(penalty, A, loss), {"max_passes": 10, "threads": 1 + COMM.rank})
    return messages


def note_the_time():
    """Write the time at which a process ends to the file that the last argument names."""
    Path(sys.argv[-1]).write_text(repr(time.time()))


def fails():
    """One process raises an error while it makes its shard, and the others wait for it."""

    def shard(rank, size):
        if rank == 1:
            note_the_time()
            raise OSError("the disk of rank 1 is gone")
        return sb.Problem(*lasso())

    sb.solve(shard, comm=COMM)


def dies():
    """One process is killed in the middle of a run."""

    def die(info):
        if COMM.rank == 1 and info.passes > 20:
            note_the_time()
            os.kill(os.getpid(), signal.SIGKILL)

    sb.solve(sb.Problem(*quantile()), tol=0, max_passes=1e9, finish=False, callback=die, comm=COMM)


KEPT = {
    "quantile": {"method": "sp-bcd", "finish": False, "tol": 1e-5},
    "group_lasso": {"tol": 1e-9},
}


def kept():
    """Stop runs midway, each with a checkpoint in a folder; return the results of runs without a stop."""
    folder = Path(sys.argv[-1])
    ends = {}
    for name, options in KEPT.items():
        problem = sb.Problem(*globals()[name]())
        whole = sb.solve(problem, comm=COMM, **options)
        sb.solve(
            problem,
            comm=COMM,
            checkpoint=folder / name,
            callback=lambda info, end=whole: info.passes > end.passes / 2,
            **options,
        )
        ends[name] = [whole.passes, whole.x.tolist(), whole.y.tolist()]
    return ends


def resumed():
    """Resume the runs of ``kept``."""
    ends = {}
    for name, options in KEPT.items():
        problem = sb.Problem(*globals()[name]())
        result = sb.solve(problem, comm=COMM, resume=Path(sys.argv[-1]) / name, **options)
        ends[name] = [result.passes, result.x.tolist(), result.y.tolist(), result.status.name, len(result.history)]
    return ends


def memory():
    """Return the largest amount of memory that a process needs for a solve with its columns of a file."""
    path = Path(sys.argv[-1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    file = sb.ColumnFile(path)
    b = np.random.default_rng(0).standard_normal(file.shape[0])

    def shard(rank, size):
        return sb.Problem(sb.L1(60.0), file[file.share(rank, size)], sb.Squared(b))

    result = sb.solve(shard, comm=COMM, max_passes=20)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"largest": max(COMM.allgather(1024 * used)), "status": result.status.name}


if __name__ == "__main__":
    from mpi4py import MPI

    COMM = MPI.COMM_WORLD
    told = {name: globals()[name]() for name in sys.argv[1:] if name in globals()}
    if COMM.rank == 0:
        print("\n" + json.dumps(told), flush=True)
