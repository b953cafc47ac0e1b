"""Streamed matrices: all operations of a dense matrix, with little of it in memory, and every reading counted."""

from __future__ import annotations

import copy
import os
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optional import optional
from profiles import examples
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import saddleback as sb
from saddleback.engine.registry import make
from saddleback.methods import Start
from saddleback.operators import Dense, Stacked, Streamed, Tasks, as_operator
from saddleback.operators.memory import bytes_in_memory
from saddleback.places.files import read_at
from saddleback.places.files.operator import with_memory

zarr = optional("zarr")

RNG = np.random.default_rng(2)
A = RNG.standard_normal((37, 53)) * (RNG.random((37, 53)) < 0.8)
TINY = 16 * 37 * 8 * 5.0
"""Memory for tiles of five columns."""


def stored(folder: Path, kind: str, matrix: Any) -> Any:
    """Return a matrix on disk, in a form that ``Streamed`` accepts."""
    layout, _, dtype = kind.partition(" ")
    matrix = matrix.astype(dtype or "f8")
    if layout.startswith("zarr"):
        chunks = {"zarr-columns": (matrix.shape[0], 3), "zarr-rows": (4, matrix.shape[1]), "zarr-tiles": (10, 9)}[
            layout
        ]
        array = zarr.create_array(folder / kind, shape=matrix.shape, chunks=chunks, dtype=matrix.dtype)
        array[:] = matrix
        return folder / kind
    path = folder / f"{kind}.npy"
    np.save(path, np.asfortranarray(matrix) if layout == "column-major" else np.ascontiguousarray(matrix))
    return path


KINDS = ["column-major", "row-major", "zarr-columns", "zarr-rows", "zarr-tiles", "column-major f4", "zarr-tiles f4"]


@pytest.fixture(params=KINDS)
def streamed(request, tmp_path):
    return Streamed(stored(tmp_path, request.param, A), memory=TINY)


def assert_like_dense(found: Any, matrix: Any, rng: Any, tolerance: float) -> None:
    """Compare the whole contract of an operator with the same matrix in memory."""
    dense = Dense(np.asfortranarray(matrix))
    (m, n), close = matrix.shape, {"rtol": 0, "atol": tolerance}
    x, y = rng.standard_normal(n), rng.standard_normal(m)
    sparse_x = np.where(np.arange(n) % 7 == 3, x, 0.0)
    some = rng.choice(n, min(n, 6), replace=False)
    rows = np.sort(rng.choice(m, min(m, 5), replace=False))
    u, v = rng.uniform(0.5, 2.0, n), rng.uniform(0.5, 2.0, m)
    other = sparse.csc_array(rng.standard_normal((n, 2)))
    assert found.shape == (m, n)
    for call in (
        lambda op: op.matvec(x),
        lambda op: op.matvec(sparse_x),
        lambda op: op.matvec(np.zeros(n)),
        lambda op: op.rmatvec(y),
        lambda op: op.matvec(x[some], some),
        lambda op: op.rmatvec(y, some),
        lambda op: op.rmatvec(y, np.repeat(some, 2)),
        lambda op: op.sums(2, weights=(None, v))[0],
        lambda op: op.sums(1, some)[1],
        lambda op: op.entries(some[:2]),
        lambda op: np.tril(op.gram(v, some)),
        lambda op: op.gram(v, some[:0]),
        lambda op: op.matvec(x, rows=rows),
        lambda op: op.rmatvec(y[rows], rows=rows),
        lambda op: op.times(other),
        lambda op: op.pack(some, False).entries(np.arange(some.size)),
        lambda op: op.ordered("columns").matvec(x),
        lambda op: op.ordered("rows").matvec(x),
        lambda op: op.products(x, y, v)[0],
        lambda op: np.stack(op.products(x, y, v)[1]),
    ):
        np.testing.assert_allclose(call(found), call(dense), **close)
    for pair in (
        lambda op: op.sums(0),
        lambda op: op.sums(1),
        lambda op: op.sums(2),
        lambda op: op.sums(np.inf, weights=(u, v)),
        lambda op: op.sums(1, weights=(u, v)),
    ):
        for one, another in zip(pair(found), pair(dense), strict=True):
            np.testing.assert_allclose(one, another, **close)
    runs = [some[some < n - 1], np.arange(min(n, 3))]
    for run, loaded in zip(runs, found.loaded(runs), strict=True):
        np.testing.assert_allclose(loaded.rmatvec(y), matrix[:, run].T @ y, **close)


def test_every_product(streamed, rng):
    assert_like_dense(streamed, A, rng, 1e-5 if streamed.store.dtype == np.float32 else 1e-12)


def test_parts_that_stay_on_disk(streamed, rng):
    """Rows and columns that are too many to be packed are a view, and a part of a view is a view."""
    rows, columns = np.flatnonzero(rng.random(37) < 0.8), rng.permutation(53)[:44]
    view = streamed.pack(columns, False, TINY / 3 - 1000).restrict(rows, np.arange(columns.size))
    assert isinstance(view, Streamed)
    tolerance = 1e-5 if streamed.store.dtype == np.float32 else 1e-12
    assert_like_dense(view, A[np.ix_(rows, columns)], rng, tolerance)
    again = view.restrict(np.arange(3), np.arange(2))
    assert isinstance(again, Dense)
    assert np.allclose(again.entries(np.arange(2)), A[np.ix_(rows[:3], columns[:2])], atol=tolerance)


def test_side_by_side(tmp_path, rng):
    parts = [Streamed(stored(tmp_path, "column-major", A), memory=TINY), as_operator(np.ones((37, 1)), "A")]
    both = Stacked(parts)
    whole = np.column_stack([A, np.ones(37)])
    assert_like_dense(both, whole, rng, 1e-12)
    assert list(both.traits.panels) == [*parts[0].traits.panels, 54]
    runs = [np.arange(a, b) for a, b in zip(both.traits.panels[:-1], both.traits.panels[1:], strict=True)][::-1]
    for run, loaded in zip(runs, both.loaded(runs), strict=True):
        assert np.allclose(loaded.entries(np.arange(run.size)), whole[:, run])


@examples(20)
@given(st.integers(1, 9), st.integers(1, 12), st.sampled_from(KINDS), st.integers(0, 2000))
def test_any_shape_and_memory(m, n, kind, more):
    import tempfile

    rng = np.random.default_rng(m * 100 + n)
    matrix = rng.integers(-3, 4, (m, n)).astype(np.float64)
    with tempfile.TemporaryDirectory() as folder:
        source = stored(Path(folder), kind, matrix)
        with pytest.raises(ValueError, match="needs at least") as refused:
            Streamed(source, memory=1)
        least = int(re.search(r"at least (\d+) bytes", str(refused.value))[1])
        found = Streamed(source, memory=least + more)
        x, y = rng.standard_normal(n), rng.standard_normal(m)
        np.testing.assert_allclose(found.matvec(x), matrix @ x, atol=1e-12)
        np.testing.assert_allclose(found.rmatvec(y), matrix.T @ y, atol=1e-12)
        np.testing.assert_allclose(found.sums(1)[1], np.abs(matrix).sum(axis=1), atol=1e-12)


def test_readings_are_counted(tmp_path):
    """A product reads the file once, a product with some columns reads only these, and a scan also computes A'y."""
    found = Streamed(stored(tmp_path, "column-major", A), memory=TINY)
    y = np.ones(37)
    found.scan(y)
    assert found.reads == 1.0
    assert np.allclose(found.first_adjoint[1], A.T @ y)
    found.rmatvec(y)
    assert found.reads == 2.0
    found.matvec(np.where(np.arange(53) < 10, 1.0, 0.0))
    assert found.reads == pytest.approx(2.0 + 10 / 53)
    by_rows = Streamed(stored(tmp_path, "row-major", A), memory=TINY)
    by_rows.matvec(np.where(np.arange(53) < 10, 1.0, 0.0))
    assert by_rows.reads == 1.0
    by_rows.products(np.ones(53), y, 2 * y)
    assert by_rows.reads == 2.0
    chunks = Streamed(stored(tmp_path, "zarr-columns", A), memory=TINY)
    chunks.rmatvec(y, np.array([4]))
    assert chunks.reads == pytest.approx(3 / 53)


def test_a_run_remembers_its_last_product(tmp_path, rng):
    """It does so within one run only, and also if a caller changes the returned array."""
    shared = Streamed(stored(tmp_path, "column-major", A), memory=TINY)
    found, y = with_memory(shared), rng.standard_normal(37)
    product = found.rmatvec(y)
    product[:], expected = np.nan, A.T @ y
    assert np.allclose(found.rmatvec(y.copy()), expected)
    assert found.reads == shared.reads == 1.0
    y[3] += 1e-9
    assert not np.array_equal(found.rmatvec(y), expected)
    shared.rmatvec(y)
    assert found.reads == 3.0


def test_repr_of_a_streamed_matrix(tmp_path):
    """It contains the storage order, which largely determines the speed."""
    shown = [repr(Streamed(stored(tmp_path, kind, A), memory=TINY)) for kind in ("column-major", "row-major")]
    assert shown[0] == f"Streamed(37 x 53 float64, read by columns, memory={TINY:.3g})"
    assert "as a whole" in shown[1]


@pytest.mark.parametrize("loss", [sb.Squared, sb.Huber])
def test_two_readings_suffice_if_few_columns_are_nonzero(loss, tmp_path, rng):
    """One reading checks all entries, and one computes A'y, which equals that of the certificate in all bits."""
    matrix = rng.standard_normal((200, 4000))
    b = matrix[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(200)
    found = Streamed(stored(tmp_path, "column-major", matrix), memory=3e6)
    problem = sb.Problem(sb.L1(0.3 * sb.alpha_max(sb.L1(1.0), matrix, loss(b))), found, loss(b))
    result = sb.solve(problem, tol=1e-7)
    assert result.status is sb.Status.OPTIMAL
    assert found.reads < 2.2
    assert result.certificate == sb.certify(problem, result.x, result.y)


def test_the_packed_columns_depend_only_on_the_sizes(tmp_path):
    """They do not depend on the free memory, so that a run can be repeated."""
    found = Streamed(stored(tmp_path, "column-major", A), memory=TINY)
    fitting = int(TINY / 3) // (37 * 8)
    packed = [found.pack(np.arange(fitting), False) for _ in range(4)]
    assert all(isinstance(each, Dense) for each in packed)
    assert isinstance(found.pack(np.arange(fitting + 1), False), Streamed)
    assert found.pack(np.arange(fitting + 1), True).array.dtype == np.float32
    assert isinstance(found.pack(np.arange(2), True, bytes_in_memory(packed[0])), Streamed)
    assert isinstance(found.pack(np.arange(2), True, bytes_in_memory(packed[0]) / 2), Dense)
    with pytest.raises(MemoryError, match="allow more"):
        found.entries(np.arange(53))
    with pytest.raises(MemoryError, match="allow more"):
        found.entries(compressed=True)


B = A[:, ::9].sum(axis=1) + 0.3 * RNG.standard_normal(37)
WIDE = RNG.standard_normal((40, 700))
WIDE_B = WIDE[:, ::70].sum(axis=1) + 0.1 * RNG.standard_normal(40)

PROBLEMS = {
    "lasso": lambda M, b: sb.Problem(sb.L1(2.0), M, sb.Squared(b)),
    "quantile": lambda M, b: sb.Problem(sb.L1(1.0), M, sb.Pinball(b, 0.3)),
    "dense hinge": lambda M, b: sb.Problem(sb.SquaredL2(1.0), M, sb.Hinge(np.sign(b))),
    "groups": lambda M, b: sb.Problem(
        sb.GroupL2(0.5, [list(range(i, M.shape[1], 10)) for i in range(10)]), M, sb.Huber(b)
    ),
    "intercept": lambda M, b: sb.Problem([sb.ElasticNet(1.0, 0.8), sb.Zero()], [M, np.ones(b.size)], sb.Squared(b)),
    "tasks": lambda M, b: sb.Problem(sb.GroupL2(20.0, 1), M, sb.Squared(np.column_stack([b, -b]))),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [("lasso", "zarr-columns"), ("intercept", "zarr-tiles")]
    + [(name, "column-major") for name in PROBLEMS]
    + [pytest.param(name, "row-major", marks=pytest.mark.slow) for name in PROBLEMS],
)
def test_the_same_optimum(name, kind, tmp_path):
    """With and without working sets, in memory or not, the optimum is between the bounds of the certificate."""
    expected = sb.solve(PROBLEMS[name](WIDE, WIDE_B), tol=1e-6).objective
    found = Streamed(stored(tmp_path, kind, WIDE), memory=1e5)
    result = sb.solve(PROBLEMS[name](found, WIDE_B), tol=1e-4)
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.dual_value <= (1 + 1e-6) * expected <= (1 + 2e-6) * result.objective


@pytest.mark.parametrize(("method", "options"), [("descent", {}), ("sp-bcd", {"restarts": False})])
def test_an_iteration_reads_its_panels_once(method, options, tmp_path):
    """Without a working set, the sweeps count exactly what they read."""
    found = Streamed(stored(tmp_path, "column-major", WIDE), memory=1e5)
    problem = sb.Problem(sb.ElasticNet(0.5, 0.1), found, sb.Squared(WIDE_B))
    chosen = make(method, {"working_set": False, "finish": False} | options).for_model(problem.model)
    state = chosen.init(problem.model, Start(np.zeros(700), np.zeros(40)))
    before, passes = found.reads, state.passes
    while state.passes < passes + 6:
        state = chosen.advance(state, 1.0)
    assert state.report().backend == "streamed"
    assert found.reads - before <= 1.1 * (state.passes - passes)


def test_a_streamed_run_resumes_from_its_checkpoint(tmp_path):
    from test_checkpoints import check_resumed

    path = stored(tmp_path, "column-major", WIDE)
    for name, options in (("lasso", {}), ("quantile", {"finish": False}), ("dense hinge", {"finish": False})):

        def make(name: str = name) -> sb.Problem:
            return PROBLEMS[name](Streamed(path, memory=1e5), WIDE_B)

        assert check_resumed(tmp_path / "run", make, (1, 4), max_passes=60, **options) >= 1


@pytest.mark.parametrize(
    ("source", "memory", "error", "words"),
    [
        (lambda p: np.ones((3, 3)), 1e9, TypeError, "needs no Streamed"),
        (lambda p: p / "none.npy", 1e9, FileNotFoundError, "neither a file nor a folder"),
        (lambda p: p / "text.npy", 1e9, ValueError, "not a whole .npy file"),
        (lambda p: p / "cut.npy", 1e9, ValueError, "not a whole .npy file"),
        (lambda p: p / "cube.npy", 1e9, ValueError, "expected a matrix"),
        (lambda p: p / "complex.npy", 1e9, TypeError, "expected real numbers"),
        (lambda p: np.load(p / "good.npy", mmap_mode="c"), 1e9, ValueError, "does not show rows and columns of a file"),
        (lambda p: p / "good.npy", 0, ValueError, "4 x 3 needs at least 768 bytes"),
        (lambda p: p / "good.npy", 767, ValueError, "needs at least 768 bytes"),
        (lambda p: p / "good.npy", 0.5, ValueError, "whole number of bytes"),
        (lambda p: p / "good.npy", np.inf, ValueError, "whole number of bytes"),
        (lambda p: p / "good.npy", "1e9", ValueError, "whole number of bytes"),
    ],
)
def test_bad_sources_are_reported(source, memory, error, words, tmp_path):
    (tmp_path / "text.npy").write_text("nothing")
    np.save(tmp_path / "good.npy", np.ones((4, 3)))
    np.save(tmp_path / "cube.npy", np.ones((4, 3, 2)))
    np.save(tmp_path / "complex.npy", np.ones((4, 3)) * 1j)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "good.npy").read_bytes()[:-8])
    with pytest.raises(error, match=words):
        Streamed(source(tmp_path), memory=memory)


@pytest.mark.parametrize("kind", ["column-major", "row-major", "zarr-tiles"])
def test_an_entry_that_is_not_finite_is_named(kind, tmp_path):
    bad = A.copy()
    bad[7, 30] = np.nan
    with pytest.raises(ValueError, match=r"A has the value nan at \[7, 30\]"):
        sb.Problem(sb.L1(1.0), Streamed(stored(tmp_path, kind, bad), memory=TINY), sb.Squared(B))


def test_a_file_that_shrinks_is_reported(tmp_path):
    path = stored(tmp_path, "column-major", A)
    found = Streamed(path, memory=TINY)
    os.truncate(path, path.stat().st_size - 100)
    with pytest.raises(OSError, match="truncated"):
        found.rmatvec(np.ones(37))


def test_memory_maps_and_zarr_arrays_are_accepted_directly(tmp_path):
    """The operating system reads a memory map as needed; a Zarr array is streamed."""
    path = stored(tmp_path, "column-major", A)
    mapped = np.load(path, mmap_mode="r")
    assert isinstance(sb.Problem(sb.L1(1.0), mapped, sb.Squared(B)).model.A, Dense)
    assert isinstance(sb.Problem(sb.L1(1.0), Streamed(mapped), sb.Squared(B)).model.A, Streamed)
    array = zarr.open_array(stored(tmp_path, "zarr-columns", A), mode="r")
    assert isinstance(sb.Problem(sb.L1(1.0), array, sb.Squared(B)).model.A, Streamed)


BOUNDED = """
import sys
import numpy as np, saddleback as sb
path, bound, kind = sys.argv[1], float(sys.argv[2]), sys.argv[3]
A = sb.Streamed(path, memory=bound)
x = np.where(np.arange(A.shape[1]) % 700 == 0, 1.0, 0.0)
b = A.matvec(x) + np.random.default_rng(0).standard_normal(A.shape[0])
loss = sb.Squared(b) if kind == "lasso" else sb.Pinball(b, 0.3)
largest = np.abs(A.rmatvec(-b if kind == "lasso" else np.where(b > 0, -0.3, 0.7))).max()
result = sb.solve(sb.Problem(sb.L1(0.3 * largest), A, loss), tol=1e-5)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(result.status.name, int(peak.split()[1]) * 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is told by /proc")
@pytest.mark.parametrize("kind", ["lasso", "quantile"])
def test_a_file_of_four_times_the_memory_is_solved_within_it(kind, tmp_path):
    bound = 3e8
    shape = (5000, 31_000)
    matrix = np.lib.format.open_memmap(tmp_path / "A.npy", "w+", np.float64, shape, fortran_order=True)
    rng = np.random.default_rng(0)
    for first in range(0, shape[1], 1000):
        matrix[:, first : first + 1000] = rng.standard_normal((1000, shape[0])).T
    size = matrix.nbytes
    del matrix
    assert size >= 4 * bound
    told = subprocess.run(
        [sys.executable, "-c", BOUNDED, str(tmp_path / "A.npy"), str(bound), kind],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    status, peak = told.stdout.split()
    assert status == "OPTIMAL"
    assert int(peak) <= bound


@pytest.mark.slow
def test_a_working_set_may_outgrow_the_memory(tmp_path, rng):
    """Packed columns are used together with columns that stay in the file, also after a checkpoint."""
    from test_checkpoints import check_resumed

    A = rng.standard_normal((120, 2000))
    b = A @ np.where(np.arange(2000) % 40 == 0, 1.0, 0.0) + rng.standard_normal(120)
    np.save(tmp_path / "A.npy", np.asfortranarray(A))

    def make() -> sb.Problem:
        return sb.Problem(sb.L1(10.0), sb.Streamed(tmp_path / "A.npy", memory=3 * 130 * 120 * 8), sb.Squared(b))

    assert check_resumed(tmp_path / "run", make, (1, 2, 3), check_every=0.5) >= 2
    result = sb.solve(make())
    assert result.status is sb.Status.OPTIMAL
    plain = sb.solve(sb.Problem(sb.L1(10.0), A, sb.Squared(b)))
    assert result.certificate.primal_value == pytest.approx(plain.certificate.primal_value, rel=2e-6)


def test_a_system_that_cannot_read_at_a_place(tmp_path, rng, monkeypatch):
    """Windows has no ``preadv``: several threads then move one position, and may get less than they ask for."""
    monkeypatch.delattr(os, "preadv", raising=False)
    monkeypatch.setattr(read_at, "MOST", 100)  # bytes: parts of columns
    for kind in ("column-major", "row-major"):
        streamed = Streamed(stored(tmp_path, kind, A), memory=TINY)
        X, Y = rng.standard_normal((8, A.shape[1])), rng.standard_normal((8, A.shape[0]))
        with ThreadPoolExecutor(4) as pool:
            forward = list(pool.map(streamed.matvec, X))
            back = list(pool.map(streamed.rmatvec, Y))
        np.testing.assert_allclose(forward, X @ A.T, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(back, Y @ A, rtol=1e-12, atol=1e-12)


def test_copies_open_their_own_file(tmp_path, rng):
    A = rng.standard_normal((6, 4))
    np.save(tmp_path / "A.npy", np.asfortranarray(A))
    streamed = sb.Streamed(tmp_path / "A.npy", memory=1e6)
    for other in (copy.deepcopy(streamed), pickle.loads(pickle.dumps(streamed))):
        assert np.allclose(other.matvec(np.ones(4)), A.sum(axis=1))
        del other
        with (tmp_path / "zeros").open("wb+") as file:
            file.write(bytes(A.nbytes + 200))
            assert np.allclose(streamed.matvec(np.ones(4)), A.sum(axis=1))


@pytest.mark.parametrize("kind", ["column-major", "row-major", "zarr-tiles", "column-major f4", "zarr-columns i4"])
def test_columns_are_centred_while_reading(kind, tmp_path, rng):
    """This also holds for parts of the matrix and for centring twice, and the data that were read do not change."""
    whole = np.round(8 * A) if kind.endswith("i4") else A
    plain, centre = Streamed(stored(tmp_path, kind, whole), memory=TINY), rng.standard_normal(53)
    tolerance = 1e-5 if kind.endswith("f4") else 1e-10
    assert_like_dense(plain.centred(centre), whole - centre, rng, tolerance)
    rows = np.arange(37)[::-3]
    assert_like_dense(plain.centred(centre).of_rows(rows).centred(-2 * centre), (whole + centre)[rows], rng, tolerance)
    assert np.allclose(plain.rmatvec(np.ones(37)), whole.sum(axis=0), atol=100 * tolerance)


def test_rows_are_loaded_in_the_given_order(tmp_path, rng):
    """A list of all rows may have them in another order."""
    A = rng.standard_normal((6, 40))
    np.save(tmp_path / "A.npy", np.asfortranarray(A))
    turned = sb.Streamed(tmp_path / "A.npy", memory=5000).restrict(np.arange(6)[::-1], np.arange(40))
    assert isinstance(turned, sb.Streamed)
    assert np.allclose(turned.matvec(np.ones(40)), A[::-1].sum(axis=1))
    panels = list(turned.loaded([np.arange(3), np.array([7, 9])]))
    assert np.array_equal(panels[1].entries(np.arange(2)), A[::-1][:, [7, 9]])


def test_a_memory_map_of_a_file_that_was_replaced_is_rejected(tmp_path, rng):
    A = np.asfortranarray(rng.standard_normal((40, 30)))
    np.save(tmp_path / "A.npy", A)
    held = np.load(tmp_path / "A.npy", mmap_mode="r")
    np.save(tmp_path / "new.npy", 100.0 * A)
    (tmp_path / "new.npy").replace(tmp_path / "A.npy")
    with pytest.raises(ValueError, match="another file by now: map it again"):
        sb.Streamed(held)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_tiles_are_counted_when_they_are_processed(tmp_path, dtype):
    np.save(tmp_path / "A.npy", np.asfortranarray(np.ones((1000, 4000), dtype=dtype)))
    A = sb.Streamed(tmp_path / "A.npy", memory=2e6)
    tiles = A.store.tiles(np.arange(4000), A._tile())
    assert max(8 * 1000 * tile.columns.size for tile in tiles) <= 2e6 / 16


def test_a_matrix_in_a_file_beside_a_linear_operator(tmp_path: Path, rng: np.random.Generator) -> None:
    A, B, b = rng.standard_normal((20, 6)), rng.standard_normal((20, 4)), rng.standard_normal(20)
    np.save(tmp_path / "A.npy", np.asfortranarray(A))
    mixed = sb.Problem([sb.L1(0.5)] * 2, [sb.Streamed(tmp_path / "A.npy"), aslinearoperator(B)], sb.Absolute(b))
    whole = sb.solve(sb.Problem([sb.L1(0.5)] * 2, [A, B], sb.Absolute(b)), tol=1e-8)
    result = sb.solve(mixed, tol=1e-6)
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.primal_value == pytest.approx(whole.certificate.primal_value, rel=1e-5)


def test_a_map_of_a_truncated_file_is_rejected(tmp_path):
    """Reading it would end the process."""
    path = tmp_path / "A.npy"
    np.save(path, np.ones((4000, 3)))
    A, b = np.load(path, mmap_mode="r"), np.ones(4000)
    problem = sb.Problem(sb.L1(0.1), A, sb.Squared(b))
    sb.solve(problem)
    os.truncate(path, 10_000)
    for use in (
        lambda: sb.solve(problem),
        lambda: sb.certify(problem, np.zeros(3), b),
        lambda: sb.Problem(sb.L1(0.1), A[:, :2], sb.Squared(b)),
    ):
        with pytest.raises(ValueError, match=r"A is a memory map of .*A\.npy, which was truncated"):
            use()


@pytest.mark.parametrize("method", ["auto", "sp-bcd"])
def test_scattered_groups_of_a_matrix_variable_beside_single_entries(tmp_path, method):
    """Single entries of a matrix variable are blocks smaller than a row, so that a panel of whole rows is too wide."""
    b = RNG.standard_normal((37, 2))
    given, beside = A[:, :12], A[:, 20:24]
    penalty = [sb.GroupL2(0.1, [[0, 3, 6], [1, 2, 4, 5], [7, 8, 9, 10, 11]]), sb.L1(0.1)]
    path = stored(tmp_path, "column-major", given)
    found = sb.solve(sb.Problem(penalty, [Streamed(path, memory=TINY), beside], sb.Squared(b)), method=method)
    expected = sb.solve(sb.Problem(penalty, [given, beside], sb.Squared(b)))
    assert found.status is sb.Status.OPTIMAL
    assert found.certificate.primal_value == pytest.approx(expected.certificate.primal_value, rel=1e-5)


@given(st.lists(st.integers(0, 23), min_size=1, max_size=24, unique=True))
@examples(30)
def test_any_columns_of_a_matrix_variable_can_be_loaded(columns):
    tasks, run = Tasks(Dense(np.asfortranarray(A[:, :8])), 3), np.array(columns)
    (loaded,) = tasks.loaded([run])
    np.testing.assert_array_equal(loaded.entries(np.arange(run.size)), tasks.entries(run))
