"""Several MPI processes get the same results as one process, and end together.

Most tests run in separate processes, started by the ``mpiexec`` that is installed with mpi4py.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from mpi_programs import KEPT, MODELS, PROBLEMS, TOL, regression, target
from scipy import sparse
from sklearn.base import clone

import saddleback as sb
from saddleback.common.arrays import Blocks
from saddleback.places.mpi.distribute import division
from saddleback.places.native.descent_kernel import NativeDescentKernel
from saddleback.places.numpy.descent_kernel import ArrayDescentKernel
from saddleback.steps.sampling import KNice, Strata
from saddleback.steps.strengths import measure_norms, norm_strengths

pytest.importorskip("mpi4py")
HERE = Path(__file__).parent
BESIDE = Path(sys.executable).parent / "mpiexec"
MPIEXEC = str(BESIDE) if BESIDE.exists() else shutil.which("mpiexec")
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")


def start(processes, *command, timeout=180):
    """Run a command on the given number of processes, and return it with its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI", "PMIX"))}
    return subprocess.run(
        [MPIEXEC, "-n", str(processes), *map(str, command)],
        capture_output=True, text=True, timeout=timeout, env=environment, check=False,
    )  # fmt: skip


def told(processes, *programs):
    """Return the output of programs of ``mpi_programs.py``."""
    done = start(processes, sys.executable, HERE / "mpi_programs.py", *programs)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def two():
    """The output of all programs on two processes, from one run."""
    return told(2, "answers", "ways", "estimators", "operators", "decisions", "refused")


def assert_as_alone(answers):
    assert set(answers) == set(PROBLEMS)
    for name, found in answers.items():
        method = found["method"].split(" + ")[0]  # one process may have another default: HiGHS, or the multipliers
        alone = sb.solve(sb.Problem(*PROBLEMS[name]()), method, tol=TOL)
        assert (found["status"], found["error"] <= TOL) == ("OPTIMAL", True), name
        assert found["value"] == pytest.approx(alone.certificate.primal_value, rel=2 * TOL), name
        assert found["method"] == alone.method, name
        assert tuple(found["shape"]) == np.shape(alone.x), name


def test_the_result_is_that_of_one_process(two):
    assert_as_alone(two["answers"])


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 3, 4])
def test_the_result_is_the_same_on_any_number_of_processes(processes):
    assert_as_alone(told(processes, "answers")["answers"])


def test_other_options_give_the_same_result(two):
    alone = {
        name: sb.solve(sb.Problem(*PROBLEMS[name]()), tol=TOL).certificate.primal_value
        for name in ("lasso", "group_hinge", "linear_program", "several_losses")
    }
    name = {
        "shard of groups": "group_hinge",
        "shard of several losses": "several_losses",
        "linear program, sp-bcd": "linear_program",
    }
    for way, found in two["ways"].items():
        assert found["status"] == "OPTIMAL", way
        assert found["value"] == pytest.approx(alone[name.get(way, "lasso")], rel=2 * TOL), way


def test_estimators_fit_the_same_models(two):
    """Two processes and one process agree, with data in memory and in files."""
    X, y = regression()
    assert set(two["estimators"]) == set(MODELS)
    for name, model in MODELS.items():
        alone = clone(model).fit(X, target(name, y)).certificate_.primal_value
        for found in two["estimators"][name]:
            assert found["status"] == "OPTIMAL", name
            assert found["value"] == pytest.approx(alone, rel=2 * TOL), name


def test_a_distributed_operator_equals_the_operator(two):
    assert two["operators"] == 336


def test_clock_interrupts_and_callbacks_count_for_all(two):
    expected = {"clock": "TIME_LIMIT", "interrupt": "INTERRUPTED", "callback": "INTERRUPTED"}
    assert two["decisions"] == expected | {"one that looks": "MAX_PASSES"}


def test_problems_that_cannot_be_distributed_are_rejected_on_all_processes(two):
    messages = two["refused"]
    assert "differ in their values" in messages["losses"]
    assert "differ in X" in messages["samples"]
    assert "shard(0, 2) is ndarray" in messages["no problem"]
    assert "expected one penalty" in messages["lists"]
    assert "problem is NoneType" in messages["nothing"]
    assert "by a function shard(rank, size)" in messages["own penalty"]
    assert "dual='lazy'" in messages["lazy"]
    assert "no matrix" in messages["identity"]
    assert "differ in tol (1e-05 on the first process, 1e-06 on process 1)" in messages["tol"]
    assert "restarts (True on the first process, False on process 1)" in messages["option"]
    assert "time_limit (given on the first process, left out on process 1)" in messages["limit"]
    assert "differ in x0" in messages["start"]
    assert "differ in the data of the loss:" in messages["data"]
    assert "problem (a function on the first process, a Problem on process 1)" in messages["kinds"]
    assert messages["the same"] == ""


@pytest.mark.parametrize(
    ("name", "said"), [("fails", "rank 1 of 2 has failed (OSError: the disk of rank 1 is gone)"), ("dies", "signal 9")]
)
def test_a_process_that_fails_ends_the_others(name, said, tmp_path):
    done = start(2, sys.executable, HERE / "mpi_programs.py", name, tmp_path / "time")
    ended = time.time()
    assert done.returncode != 0
    assert said in done.stdout + done.stderr
    assert ended - float((tmp_path / "time").read_text()) < 10


@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_run_resumes_from_its_checkpoint(processes, tmp_path):
    """It has the same bits on the same number of processes, and the same result on another number, including one."""
    ends = told(2, "kept", tmp_path)["kept"]
    for name, (passes, x, y, status, _) in told(processes, "resumed", tmp_path)["resumed"].items():
        assert status == "OPTIMAL"
        if processes == 2:
            assert [passes, x, y] == ends[name]
    for name, options in KEPT.items():
        problem = sb.Problem(*PROBLEMS[name]())
        alone = sb.solve(problem, resume=tmp_path / name, **options)
        assert alone.status is sb.Status.OPTIMAL
        assert np.all(np.diff(alone.history.passes) > 0)
        assert alone.objective == pytest.approx(sb.solve(problem, **options).objective, rel=2 * options["tol"])


def test_a_process_holds_its_own_columns(tmp_path):
    A = np.random.default_rng(0).standard_normal((8000, 1000)).T.astype(np.float64)  # 64 MB, in column order
    np.save(tmp_path / "A.npy", A)
    found = told(2, "memory", tmp_path / "A.npy")["memory"]
    assert found["status"] == "OPTIMAL"
    assert found["largest"] < 0.85 * A.nbytes


def test_command_line(tmp_path):
    penalty, A, loss = PROBLEMS["lasso"]()
    np.savez(tmp_path / "lasso.npz", A=np.ascontiguousarray(A), b=loss.b, alpha=penalty.alpha)
    command = [Path(sys.executable).parent / "saddleback", "solve", tmp_path / "lasso.npz", "--json"]
    done = start(2, *command, "--out", tmp_path / "x.csv")
    assert done.returncode == 0, done.stderr
    alone = sb.solve(sb.Problem(penalty, A, loss))
    assert json.loads(done.stdout)["objective"] == pytest.approx(alone.certificate.primal_value, rel=2e-6)
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 2 + A.shape[1] + A.shape[0]  # names and status


def test_the_suite_runs_on_two_processes():
    """Both processes run the same tests of the solve; ``make test-backends`` runs more of them."""
    options = ["-p", "no:cacheprovider", "--backend", "mpi", "-x", "-m", "not slow"]
    done = start(2, sys.executable, "-m", "pytest", *options, HERE / "test_solve.py")
    assert done.returncode == 0, done.stdout


# --- without other processes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [1, 2, 3])
@pytest.mark.parametrize("sizes", [[6], [3, 3], [4, 1, 2]])
def test_strengths_satisfy_the_inequality_of_stratified_draws(sizes, K, rng):
    """E ||sum_S At_j z_j||^2 <= p^2 ||z||^2 for the draws of all strata together, with their exact probabilities."""
    n, ends = sum(sizes), np.cumsum(sizes)
    strata = Strata([np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True)])
    K = min(K, strata.size)
    A = rng.standard_normal((5, n)) + 1.0
    model = sb.Problem(sb.L1(1.0), A, sb.Absolute(np.zeros(5))).model
    model.__dict__["strata"] = strata
    strengths = norm_strengths(model, measure_norms(model), K)
    At = A / np.sqrt(strengths.primal) / np.sqrt(strengths.dual)[:, None]
    p, size = K / strata.size, strata.size
    same = np.repeat(np.arange(len(sizes)), sizes)
    pairs = np.where(same[:, None] == same, p * (K - 1) / max(size - 1, 1), p * p)
    np.fill_diagonal(pairs, p)
    largest = np.linalg.eigvalsh(pairs * (At.T @ At))[-1]
    assert largest <= p * p
    assert largest > 0.2 * p * p  # and the inequality is not too loose


@pytest.mark.parametrize("descent", [ArrayDescentKernel, NativeDescentKernel])
@pytest.mark.parametrize("penalty", [sb.L1(0.3), sb.GroupL2(0.3, 2)])
def test_parallel_descent_steps_only_as_far_as_the_objective_falls(descent, penalty, rng):
    """If two processes have the same columns, each takes the whole step, and together they take half of it."""
    A, b = np.asfortranarray(rng.standard_normal((20, 6))), rng.standard_normal(20)
    model = sb.Problem(penalty, A, sb.Squared(b)).model

    def as_if_two(numbers):
        numbers *= 2.0

    kernel = descent(model, 2, as_if_two)
    x, u, y = np.zeros(6), np.zeros(20), -b
    values = [0.5 * b @ b]
    for _ in range(100):
        kernel.sweep(2, x, u, y)
        values.append(model.g.value(u) + 2 * model.f.value(x))
        np.testing.assert_allclose(u, 2 * A @ x, atol=1e-12)
        np.testing.assert_allclose(y, u - b, atol=1e-12)
    assert np.all(np.diff(values) <= 1e-12)
    alone = sb.solve(sb.Problem(penalty, 2 * A, sb.Squared(b)).with_alpha(0.6), tol=1e-10)
    assert values[-1] == pytest.approx(alone.certificate.primal_value, rel=1e-6)


def test_processes_draw_independently_and_equally_many_blocks():
    strata = Strata([np.arange(10), np.arange(10, 14)], own=1)
    other = Strata(strata.members, own=0)
    assert (strata.size, strata.drawn(7), strata.share(5), strata.expected(5)) == (10, 5, 0.5, 7)
    mine, theirs = (KNice.of(s, 5, 0).draw(400) for s in (strata, other))
    assert mine.shape == theirs.shape
    assert not np.array_equal(mine, theirs)
    assert np.bincount(mine.ravel(), minlength=10) == pytest.approx(200, abs=60)


def test_a_partition_does_not_split_blocks():
    blocks = Blocks(None, np.array([0, 5, 6, 7, 12]))
    same = np.ones(12)
    assert [part.tolist() for part in division(blocks, same, 2)] == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    assert [part.size for part in division(blocks, np.repeat([9.0, 1.0], [5, 7]), 2)] == [5, 7]
    assert np.concatenate(division(blocks, same, 6)).tolist() == list(range(12))
    assert [part.size for part in division(Blocks.scalars(12), same, 2, tasks=4)] == [4, 8]


def test_column_files(tmp_path, rng):
    A = rng.standard_normal((6, 9)) * (rng.random((6, 9)) < 0.6)
    np.save(tmp_path / "by_column.npy", np.asfortranarray(A))
    np.save(tmp_path / "by_row.npy", np.ascontiguousarray(A))
    np.savez(tmp_path / "by_row.npz", A=np.ascontiguousarray(A), b=A[:, 0])
    np.savez_compressed(tmp_path / "by_column.npz", A=np.asfortranarray(A))
    sparse.save_npz(tmp_path / "packed.npz", sparse.csc_matrix(A), compressed=True)
    sparse.save_npz(tmp_path / "plain.npz", sparse.csc_array(A), compressed=False)
    paths = [path for path in tmp_path.iterdir() if path.suffix in (".npy", ".npz")]
    for path in paths:
        file = sb.ColumnFile(path)
        assert file.shape == A.shape
        parts = [file[file.share(rank, 4)] for rank in range(4)]
        parts = [part.toarray() if sparse.issparse(part) else np.asarray(part) for part in parts]
        np.testing.assert_array_equal(np.hstack(parts), A)
        with pytest.raises(ValueError, match="neighbours"):
            file[::2]
    assert isinstance(sb.ColumnFile(tmp_path / "by_column.npy")[2:4], np.memmap)


def test_a_zarr_array_is_a_column_file(tmp_path, rng):
    zarr = pytest.importorskip("zarr")
    A = rng.standard_normal((6, 9))
    array = zarr.open_array(str(tmp_path / "A.zarr"), mode="w", shape=A.shape, chunks=(6, 2), dtype="f8")
    array[:] = A
    np.testing.assert_array_equal(sb.ColumnFile(tmp_path / "A.zarr")[3:8], A[:, 3:8])


def test_files_without_columns(tmp_path):
    np.save(tmp_path / "vector.npy", np.ones(3))
    sparse.save_npz(tmp_path / "rows.npz", sparse.csr_matrix(np.eye(3)))
    np.savez(tmp_path / "other.npz", B=np.eye(3))
    np.savez(tmp_path / "objects.npz", A=np.array([[None]], dtype=object))
    (tmp_path / "A.txt").write_text("1 2")
    for name, said in (
        ("vector.npy", "1 dimensions"),
        ("rows.npz", "csr"),
        ("other.npz", "neither"),
        ("objects.npz", "objects"),
        ("A.txt", "no known ending"),
    ):
        with pytest.raises(ValueError, match=said):
            sb.ColumnFile(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        sb.ColumnFile(tmp_path / "nowhere.npy")
    whole = tmp_path / "cut.npz"
    np.savez(whole, A=np.asfortranarray(np.random.default_rng(0).standard_normal((30, 30))))
    assert sb.ColumnFile(whole)[29:30].shape == (30, 1)


def test_comm_has_to_be_a_communicator():
    penalty, A, loss = PROBLEMS["lasso"]()
    with pytest.raises(TypeError, match="comm is str"):
        sb.solve(sb.Problem(penalty, A, loss), comm="world")
    with pytest.raises(TypeError, match="a function needs comm="):
        sb.solve(lambda rank, size: sb.Problem(penalty, A, loss))
