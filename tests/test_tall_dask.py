"""Rows in Dask have the sums of the same rows in memory, on any number of workers, also if a worker is lost."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import saddleback as sb
from saddleback.tall.dask_rows import DaskRows, import_dask, is_dask, predicted
from saddleback.tall.rows import ArrayRows

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

ROWS = 600


@pytest.fixture(autouse=True)
def quiet():
    """Dask warns in its log about each worker that ends."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)


@pytest.fixture
def data():
    """Multiples of 1/8, whose sums are exact in any order."""
    rng = np.random.default_rng(0)
    X, target, weight = rng.integers(-40, 40, (ROWS, 6)) / 8, rng.integers(0, 9, ROWS) / 4, rng.integers(1, 5, ROWS) / 2
    return X, target, weight


def cluster(workers, processes=False):
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=processes,
        dashboard_address=":0", worker_dashboard_address=":0",
    )  # fmt: skip


@pytest.fixture
def client():
    with cluster(2) as two, distributed.Client(two) as connected:
        yield connected


@dataclass(frozen=True)
class Moments:
    """Sums over rows, and lists of what was visited."""

    gram: np.ndarray
    sums: np.ndarray
    numbers: tuple
    rows: tuple

    def __add__(self, other):
        return Moments(
            self.gram + other.gram, self.sums + other.sums, self.numbers + other.numbers, self.rows + other.rows
        )

    @classmethod
    def of(cls, chunk):
        X = chunk.X.toarray() if sparse.issparse(chunk.X) else chunk.X
        weighted = X if chunk.weight is None else X * chunk.weight[:, None]
        rows = tuple(range(chunk.first, chunk.first + len(chunk)))
        return cls(X.T @ weighted, weighted.T @ chunk.target, (chunk.number,), rows)


def assert_same(rows, *data):
    """Sums over rows are those of arrays, and every row was visited once, in order."""
    found, expected = rows.read(Moments.of), ArrayRows(*data).read(Moments.of)
    assert np.array_equal(found.gram, expected.gram)
    assert np.array_equal(found.sums, expected.sums)
    assert found.rows == expected.rows
    assert found.numbers == tuple(range(len(rows.lengths)))


# Arrays


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
def test_sums_are_those_of_arrays_on_any_number_of_workers(data, workers):
    X, target, weight = data
    lazy = da.from_array(X, chunks=(50, 4))  # 12 chunks: the tree has two levels
    if not workers:
        assert_same(DaskRows(lazy, da.from_array(target, chunks=77), weight), *data)
        return
    with cluster(workers) as some, distributed.Client(some):
        rows = DaskRows(lazy, da.from_array(target, chunks=77), weight)
        assert_same(rows, *data)
        assert_same(rows, *data)
        assert rows.lengths == (50,) * 12


LOADS = []


def load(block):
    LOADS.append(len(block))
    return block


def test_persisted_arrays_are_used_where_they_are(data, client):
    X, target, _ = data
    LOADS.clear()
    lazy = da.from_array(X, chunks=(100, 6)).map_blocks(load, meta=np.empty((0, 0)))
    kept = client.persist(lazy)
    rows = DaskRows(kept, client.persist(da.from_array(target, chunks=100)))
    del kept
    assert_same(rows, X, target)
    assert_same(rows, X, target)
    assert len(LOADS) == 6

    LOADS.clear()
    lazy = da.from_array(X, chunks=(200, 6)).map_blocks(load, meta=np.empty((0, 0)))
    rows = DaskRows(lazy, target)
    assert_same(rows, X, target)
    assert_same(rows, X, target)
    assert len(LOADS) == 6  # three for each reading


def uneven(chunk):
    return np.sum(chunk.X @ np.linspace(0.1, 0.7, 6)) + 1e16 * (chunk.number == 5)


def test_repeated_readings_have_the_same_bits(data, client):
    X, target, _ = data
    rows = DaskRows(da.from_array(X, chunks=(13, 6)), target)
    with dask.config.set(scheduler="threads"):
        locally = DaskRows(da.from_array(X, chunks=(13, 6)), target)
    assert len({float(one.read(uneven)) for one in (rows, rows, locally, locally)}) == 1


def test_single_chunks_and_some_chunks(data):
    X, target, weight = data
    rows = DaskRows(da.from_array(X, chunks=(200, 6)), target, weight, names="abcdef")
    chunk = rows.chunk(1)
    assert (chunk.number, chunk.first, rows.place(1, 3)) == (1, 200, "row 203")
    assert np.array_equal(chunk.X, X[200:400])
    assert np.array_equal(chunk.target, target[200:400])
    assert np.array_equal(chunk.weight, weight[200:400])
    assert rows.names == tuple("abcdef")
    assert rows.read_some(Moments.of, [2, 0]).numbers == (2, 0)
    with pytest.raises(ValueError, match="no chunk was named to read"):
        rows.read_some(Moments.of, [])


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("f4", "f4"), ("f8", "f8"), ("f2", "f4"), ("i8", "f8"), ("i2", "f8"), ("u1", "f8"), ("?", "f8")],
)
def test_numbers_become_float32_or_float64(data, dtype, expected):
    X, target, _ = data
    block = DaskRows(da.from_array(X.astype(dtype), chunks=(300, 3)), target).chunk(1).X
    assert block.dtype == np.dtype(expected)
    assert block.flags.c_contiguous
    assert np.array_equal(block, X.astype(dtype)[300:].astype(expected))


def test_sparse_blocks_stay_sparse(data):
    X, target, _ = data
    lazy = da.from_array(X, chunks=(150, 6)).map_blocks(sparse.csc_matrix, meta=sparse.csc_matrix((0, 0)))
    rows = DaskRows(lazy, target)
    assert rows.chunk(0).X.format == "csr"
    assert_same(rows, X, target)


def test_targets_may_be_words(data):
    words = np.array(["yes", "no"])[np.arange(ROWS) % 2]
    rows = DaskRows(da.from_array(data[0], chunks=(100, 6)), words)
    assert rows.chunk(1).target.tolist() == words[100:200].tolist()


def test_refused_arrays(data):
    X, target, weight = data
    lazy = da.from_array(X, chunks=(100, 6))
    unknown = lazy[lazy[:, 0] > 0]
    with pytest.raises(ValueError, match=r"X has chunks of unknown sizes: .*X\.compute_chunk_sizes\(\)"):
        DaskRows(unknown, target)
    with pytest.raises(ValueError, match=r"target has chunks of unknown sizes: .*target\.compute_chunk_sizes\(\)"):
        DaskRows(lazy, unknown[:, 0])
    with pytest.raises(ValueError, match="X has 1 dimensions: expected rows by columns"):
        DaskRows(lazy[:, 0], target)
    with pytest.raises(ValueError, match="target has 2 dimensions: expected one value per row"):
        DaskRows(lazy, lazy)
    with pytest.raises(ValueError, match="weight has 2 dimensions: expected one value per row"):
        DaskRows(lazy, target, X)
    with pytest.raises(ValueError, match="target has 0 dimensions"):
        DaskRows(lazy, "y")
    for short in (target[:-1], da.from_array(target[:-1], chunks=100)):
        with pytest.raises(ValueError, match="target has 599 values: expected one per row of X, 600"):
            DaskRows(lazy, short)
    with pytest.raises(ValueError, match="weight has 1 values"):
        DaskRows(lazy, target, weight[:1])
    with pytest.raises(ValueError, match="names has 2 values: expected one per column of X, 6"):
        DaskRows(lazy, target, names=["a", "b"])
    with pytest.raises(ValueError, match="X has no rows"):
        DaskRows(lazy[:0], target[:0])
    with pytest.raises(TypeError, match="X has dtype complex128: expected real numbers"):
        DaskRows(lazy * 1j, target)
    with pytest.raises(TypeError, match="target is None: expected one value per row"):
        DaskRows(lazy, None)
    with pytest.raises(TypeError, match="X is ndarray: expected an array or a DataFrame of Dask"):
        DaskRows(X, target)


def refuses_nan(chunk):
    if np.isnan(chunk.X).any():
        raise ValueError(f"X has a NaN in chunk {chunk.number}")
    return len(chunk)


@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_an_error_of_a_visit_is_raised(data, where, request):
    if where == "cluster":
        request.getfixturevalue("client")
    X, target, _ = data
    X[333, 2] = np.nan
    rows = DaskRows(da.from_array(X, chunks=(100, 6)), target)
    with pytest.raises(ValueError, match=r"^X has a NaN in chunk 3$"):
        rows.read(refuses_nan)
    assert rows.read(len) == ROWS  # the cluster is as before


# DataFrames


@pytest.fixture
def frame(data):
    X, target, weight = data
    table = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    table["small"] = (8 * X[:, 3]).astype(np.int16)
    table["flag"] = X[:, 4] > 0
    table["colour"] = pd.Categorical(np.array(["red", "green", "blue"])[np.arange(ROWS) % 3], ["red", "green", "blue"])
    table["size"] = pd.Categorical.from_codes(np.arange(ROWS) % 2, [10, 20])
    return table.assign(y=target, w=weight)


def dense(frame, columns):
    """X with one column per category, by pandas."""
    parts = [
        pd.get_dummies(frame[c], prefix=c, prefix_sep="=") if c in ("colour", "size") else frame[[c]] for c in columns
    ]
    return pd.concat(parts, axis=1).astype(float)


def test_a_data_frame_has_names_and_sums(frame, client):
    lazy = dd.from_pandas(frame, npartitions=5, sort=False)
    numbers = ["b", "a", "small", "flag"]
    rows = DaskRows(lazy, "y", "w", names=numbers)
    assert rows.names == tuple(numbers)
    assert rows.lengths == tuple(len(part) for part in lazy.partitions)
    assert rows.chunk(0).X.flags.c_contiguous
    assert_same(rows, frame[numbers].to_numpy(float), frame.y.to_numpy(), frame.w.to_numpy())


def test_persisted_data_frames_are_used_where_they_are(frame, client):
    LOADS.clear()
    lazy = dd.from_pandas(frame, npartitions=3, sort=False)
    kept = client.persist(lazy.map_partitions(load, meta=lazy._meta))
    rows = DaskRows(kept, "y", names=["a", "colour"])
    del kept
    for _ in range(2):
        assert_same(rows, dense(frame, ["a", "colour"]).to_numpy(), frame.y.to_numpy())
    assert len(LOADS) == 3


def test_categories_become_columns(frame):
    rows = DaskRows(dd.from_pandas(frame, npartitions=4, sort=False), "y", "w")
    expected = dense(frame, ["a", "b", "c", "small", "flag", "colour", "size"])
    assert rows.names == tuple(expected.columns)
    assert rows.names[-5:] == ("colour=red", "colour=green", "colour=blue", "size=10", "size=20")
    assert_same(rows, expected.to_numpy(), frame.y.to_numpy(), frame.w.to_numpy())
    chunk = rows.chunk(2)
    assert chunk.X.format == "csr"
    assert chunk.X.has_sorted_indices
    assert chunk.X.indices.dtype == np.int32
    assert chunk.X.nnz == 7 * len(chunk)
    only = DaskRows(dd.from_pandas(frame, npartitions=2), "y", names=["colour"])
    assert_same(only, dense(frame, ["colour"]).to_numpy(), frame.y.to_numpy())


def test_categories_in_another_order_and_missing_ones(frame):
    parts = [frame[:300], frame[300:]]
    lazy = dd.from_pandas(frame, npartitions=2, sort=False)
    turned = parts[1].assign(colour=parts[1]["colour"].cat.reorder_categories(["blue", "red", "green"]))
    mixed = lazy.map_partitions(lambda part: turned if part.index[0] == 300 else part, meta=lazy._meta)
    rows = DaskRows(mixed, "y", names=["a", "colour"])
    assert_same(rows, dense(frame, ["a", "colour"]).to_numpy(), frame.y.to_numpy())

    frame.loc[5, "colour"] = None
    X = DaskRows(dd.from_pandas(frame, npartitions=2), "y", names=["a", "colour"]).chunk(0).X
    assert np.flatnonzero(np.isnan(X.data)).tolist() == [11]  # noticed as a missing number would be


@pytest.mark.parametrize(
    ("types", "expected"),
    [(["f4", "f4"], "f4"), (["f4", "i2"], "f4"), (["f4", "i4"], "f8"), (["i8", "?"], "f8"),
     (["f4", "Int16"], "f4"), (["Float64", "boolean"], "f8")],
)  # fmt: skip
def test_columns_have_the_common_type(types, expected):
    table = pd.DataFrame({str(j): pd.Series([0, 1, 1], dtype=kind) for j, kind in enumerate(types)})
    rows = DaskRows(dd.from_pandas(table.assign(y=1.0), npartitions=1), "y")
    assert rows.chunk(0).X.dtype == np.dtype(expected)
    assert rows.chunk(0).X.tolist() == [[0, 0], [1, 1], [1, 1]]


def test_missing_numbers_are_nan():
    table = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [1, 2, 3], "y": [1.0, 2, 3]})
    X = DaskRows(dd.from_pandas(table, npartitions=1), "y").chunk(0).X
    assert np.array_equal(X, [[1, 1], [np.nan, 2], [3, 3]], equal_nan=True)


def test_empty_partitions_are_left_out(frame):
    lazy = dd.from_pandas(frame.assign(row=np.arange(ROWS)), npartitions=4, sort=False)
    some = lazy[(lazy["row"] < 150) | (lazy["row"] >= 320)]
    rows = DaskRows(some, "y", names=["a", "b"])
    assert rows.lengths == (150, 130, 150)
    kept = pd.concat([frame[:150], frame[320:]])
    assert_same(rows, kept[["a", "b"]].to_numpy(), kept.y.to_numpy())
    chunk = rows.chunk(1)
    assert (chunk.first, rows.place(chunk.number, 7)) == (150, "row 7 of partition 2")


def test_targets_beside_a_data_frame(frame):
    lazy = dd.from_pandas(frame, npartitions=4, sort=False)
    X, y, w = lazy[["a", "b"]], lazy["y"], frame.w.to_numpy()
    other = dd.from_pandas(frame["y"], npartitions=3, sort=False)
    for target in (y, other, frame["y"], frame.y.to_numpy(), y.to_dask_array(lengths=True)):
        assert_same(DaskRows(X, target, w), frame[["a", "b"]].to_numpy(), frame.y.to_numpy(), w)
    assert_same(
        DaskRows(da.from_array(frame[["a"]].to_numpy(), chunks=70), y), frame[["a"]].to_numpy(), frame.y.to_numpy()
    )


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask, about itself
def test_columns_of_files_that_are_not_needed_are_not_read(frame, tmp_path, client):
    dd.from_pandas(frame, npartitions=3, sort=False).to_parquet(tmp_path)
    reads = dd.read_parquet(tmp_path)
    other = dd.from_pandas(frame, npartitions=4, sort=False)
    rows = DaskRows(reads, "y", names=["b", "a"])
    assert_same(rows, frame[["b", "a"]].to_numpy(), frame.y.to_numpy())
    assert set(rows._blocks[0][0].compute().columns) == {"a", "b", "y"}
    assert rows.lengths == (200,) * 3  # Dask would put them together, each column in its own way
    assert_same(DaskRows(reads[["a"]], reads["y"]), frame[["a"]].to_numpy(), frame.y.to_numpy())
    assert_same(
        DaskRows(reads[["a"]], other["y"], other["w"]), frame[["a"]].to_numpy(), frame.y.to_numpy(), frame.w.to_numpy()
    )
    assert np.array_equal(predicted(reads[["a"]], lambda part: part["a"].to_numpy()).compute(), frame.a)


def test_names_need_not_be_strings(data):
    X, target, _ = data
    table = pd.DataFrame(X).assign(y=target)
    table.columns = [*range(6), 99]
    rows = DaskRows(dd.from_pandas(table, npartitions=3), 99)
    assert rows.names == tuple("012345")
    assert_same(rows, X, target)


def test_known_lengths_are_not_counted(frame):
    lazy = dd.from_pandas(frame, npartitions=2, sort=False)
    rows = DaskRows(lazy, "y", names=["a"], lengths=[300, 300])
    assert_same(rows, frame[["a"]].to_numpy(), frame.y.to_numpy())
    with pytest.raises(ValueError, match="lengths has 1 values: expected one per partition, 2"):
        DaskRows(lazy, "y", lengths=[600])
    wrong = DaskRows(lazy, "y", names=["a"], lengths=[200, 400])
    with pytest.raises(
        ValueError, match=r"X has 300 rows in chunk \d, where [24]00 were counted: expected the same rows"
    ):
        wrong.read(len)


def test_refused_data_frames(frame):
    lazy = dd.from_pandas(frame, npartitions=2)
    words = lazy.assign(word=lazy["colour"].astype(str))
    with pytest.raises(TypeError, match=r"in column 'word': .* X = X\.categorize\(columns=\['word'\]\)"):
        DaskRows(words, "y")
    unknown = lazy.assign(colour=lazy["colour"].astype(object).astype("category"))
    with pytest.raises(ValueError, match=r"unknown categories in column 'colour': call X = X\.categorize\(\)"):
        DaskRows(unknown, "y")
    DaskRows(unknown.categorize(), "y")
    with pytest.raises(TypeError, match=r"datetime64.* in column 'when': expected numbers or categories"):
        DaskRows(lazy.assign(when=pd.Timestamp("2024-01-01")), "y")
    with pytest.raises(ValueError, match="X has no column 'z': expected names among a, b, c"):
        DaskRows(lazy, "z")
    with pytest.raises(ValueError, match="X has no column 'z'"):
        DaskRows(lazy, "y", names=["a", "z"])
    with pytest.raises(ValueError, match="X has no columns besides the target"):
        DaskRows(lazy[["y"]], "y")
    with pytest.raises(ValueError, match="target has 599 values"):
        DaskRows(lazy[["a"]], frame.y.to_numpy()[:-1])
    with pytest.raises(ValueError, match="several columns with the same name"):
        DaskRows(lazy.rename(columns={"b": "a"}), "y")


# The cluster


class Counted:
    """A visit that counts in a folder how often it is unpickled."""

    def __init__(self, folder):
        self.folder, self.vector = folder, np.ones(2_000_000)

    def __setstate__(self, state):
        self.__dict__.update(state)
        (Path(self.folder) / f"{os.getpid()}-{time.monotonic_ns()}").touch()

    def __call__(self, chunk):
        return float(self.vector[: len(chunk)] @ chunk.target)


class Deadly:
    """A visit that kills its process at one chunk, the first time."""

    def __init__(self, mark):
        self.mark = mark

    def __call__(self, chunk):
        time.sleep(0.02)
        if chunk.number == 10 and not Path(self.mark).exists():
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Moments.of(chunk)


@pytest.mark.slow  # worker processes take long to start and to close on a busy machine
@pytest.mark.parametrize("persist", [False, True])
def test_a_killed_worker_changes_no_sum(data, tmp_path, persist):
    """What it had is computed again: its chunks, the target that came from here, the visit, and its sums."""
    X, target, _ = data
    with cluster(2, processes=True) as two, distributed.Client(two) as client:
        lazy = da.from_array(X, chunks=(40, 6))
        rows = DaskRows(client.persist(lazy) if persist else lazy, target)
        found, expected = rows.read(Deadly(tmp_path / "mark")), ArrayRows(X, target).read(Moments.of)
        client.wait_for_workers(2, timeout=60)  # a cluster that starts a worker is slow to close
        assert (tmp_path / "mark").exists()
        assert np.array_equal(found.gram, expected.gram)
        assert np.array_equal(found.sums, expected.sums)
        assert found.rows == expected.rows


class DeadlyLoss:
    """The absolute loss, which kills the first worker that evaluates it."""

    def __init__(self, mark):
        self.mark = mark

    def __call__(self, target, *, sample_weight):
        if in_a_worker() and not Path(self.mark).exists():
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return sb.Absolute(target, sample_weight=sample_weight)


def in_a_worker():
    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True


@pytest.mark.slow
def test_a_worker_that_is_killed_during_a_solve_changes_nothing_but_the_time(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 5))
    target = X[:, 0] + rng.standard_t(2, 100_000)
    with cluster(2, processes=True) as two, distributed.Client(two) as client:
        rows = DaskRows(da.from_array(X, chunks=(5_000, 5)), target)
        expected, found = (
            sb.solve(sb.TallProblem(sb.L1(100.0), rows, loss)) for loss in (sb.Absolute, DeadlyLoss(tmp_path / "mark"))
        )
        client.wait_for_workers(2, timeout=60)
    assert (tmp_path / "mark").exists()
    assert (found.status, found.passes) == (sb.Status.OPTIMAL, expected.passes)
    # two undisturbed solves differ as much: how numpy adds up depends on where in memory a chunk arrives
    np.testing.assert_allclose(np.concatenate(found.x), np.concatenate(expected.x), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_a_visit_is_sent_to_each_worker_once(data, tmp_path):
    X, target, _ = data
    with cluster(2, processes=True) as two, distributed.Client(two):
        rows = DaskRows(da.from_array(X, chunks=(25, 6)), target)
        assert rows.read(Counted(tmp_path)) == target.sum()
        assert len(list(tmp_path.iterdir())) <= 3  # by the scheduler and each worker, not for each chunk


def slow(chunk):
    time.sleep(0.5)
    return len(chunk)


SCHEDULER = """
import sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", protocol="tcp")
    print(cluster.scheduler_address, flush=True)
    time.sleep(120)
"""


def test_a_lost_scheduler_is_an_error_that_says_so(data, tmp_path):
    X, target, _ = data
    (tmp_path / "scheduler.py").write_text(SCHEDULER)
    environment = os.environ | {"PYTHONPATH": os.path.dirname(__file__)}
    command = [sys.executable, str(tmp_path / "scheduler.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            address = process.stdout.readline().strip()
            with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
                with distributed.Client(address) as client:
                    rows = DaskRows(da.from_array(X, chunks=(50, 6)), target)
                    client.loop.call_later(1.5, process.kill)
                    with pytest.raises(ConnectionError, match=f"scheduler of the Dask cluster at {address} is lost"):
                        rows.read(slow)
                with pytest.raises(ConnectionError, match="or the Client was closed: start them again"):
                    rows.read(slow)
        finally:
            process.kill()


# Predictions, and Dask that is not there


def test_predictions_are_lazy(data, frame):
    X, _, _ = data
    coef = np.arange(6.0)
    heights = []

    def function(block):
        heights.append(len(block))
        return np.asarray(block) @ coef

    lazy = predicted(da.from_array(X, chunks=(100, 4)), function)
    assert (lazy.shape, lazy.dtype, heights) == ((ROWS,), np.float64, [])
    assert np.array_equal(lazy.compute(), X @ coef)
    assert heights == [100] * 6

    several = predicted(da.from_array(X, chunks=(100, 4)), lambda block: block[:, :2] > 0, bool, 2)
    assert (several.shape, several.dtype) == ((ROWS, 2), np.dtype(bool))
    assert np.array_equal(several.compute(), X[:, :2] > 0)

    table = dd.from_pandas(frame[["a", "b"]], npartitions=3, sort=False)
    words = predicted(table, lambda part: np.where(part["b"] > 0, "up", "down"), "U4")
    assert isinstance(words, da.Array)
    assert words.dtype == np.dtype("U4")
    assert np.array_equal(words.compute(), np.where(frame.b > 0, "up", "down"))
    assert predicted(table, lambda part: part.to_numpy(), outputs=2).compute().shape == (ROWS, 2)
    assert predicted(da.from_array(X, chunks=100)[X[:, 0] > 0], lambda block: block[:, 0]).compute().min() > 0
    with pytest.raises(TypeError, match="X is ndarray"):
        predicted(X, function)


def test_what_is_dask(data, frame):
    X, _, _ = data
    table = dd.from_pandas(frame, npartitions=2)
    assert all(map(is_dask, (da.from_array(X), table, table["a"])))
    assert not any(map(is_dask, (X, frame, frame["a"], None, dask.delayed(X))))
    code = "import sys, saddleback.tall.dask_rows as rows; print(rows.is_dask([1]), 'dask' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_without_dask_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=r"pip install 'saddleback\[dask\]'"):
        import_dask()
