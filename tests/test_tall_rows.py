"""Rows of tall problems from files, frames and arrays: all chunks together are the table, in every storage."""

from __future__ import annotations

import os
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from scipy import sparse

import saddleback as sb
from saddleback.tall import row_files, stored_rows
from saddleback.tall import rows as rows_module
from saddleback.tall.columns import Columns
from saddleback.tall.from_user import as_rows
from saddleback.tall.row_files import FrameRows, RowFiles
from saddleback.tall.rows import ArrayRows
from saddleback.tall.stored_rows import StoredRows

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
ds = pytest.importorskip("pyarrow.dataset")
feather = pytest.importorskip("pyarrow.feather")
pq = pytest.importorskip("pyarrow.parquet")
zarr = pytest.importorskip("zarr")

CITIES = ["Kassel", "Århus", "Zürich", "a=b"]


@dataclass
class Collected:
    """All chunks of some rows, in order."""

    chunks: list

    def __add__(self, other):
        return Collected(self.chunks + other.chunks)


def collect(chunk):
    return Collected([chunk])


def everything(rows):
    """Return X, target and weight of all rows, after a check of the numbers of the chunks."""
    chunks = rows.read(collect).chunks
    assert [chunk.number for chunk in chunks] == list(range(len(rows.lengths)))
    assert [len(chunk) for chunk in chunks] == list(rows.lengths)
    assert [chunk.first for chunk in chunks] == np.cumsum([0, *rows.lengths])[:-1].tolist()
    return joined(chunks)


def joined(chunks):
    dense = [chunk.X.toarray() if sparse.issparse(chunk.X) else chunk.X for chunk in chunks]
    assert all(chunk.X.dtype in (np.float32, np.float64) for chunk in chunks)
    weight = None if chunks[0].weight is None else np.concatenate([chunk.weight for chunk in chunks])
    return np.vstack(dense), np.concatenate([chunk.target for chunk in chunks]), weight


def same(found, X, target, weight=None):
    np.testing.assert_array_equal(found[0], X)
    np.testing.assert_array_equal(found[1], target)
    assert (found[2] is None) == (weight is None)
    if weight is not None:
        np.testing.assert_array_equal(found[2], weight)


def frame_of(rng, n, text=True):
    frame = pd.DataFrame(
        {
            "f4": rng.standard_normal(n).astype(np.float32),
            "f8": rng.standard_normal(n),
            "i1": rng.integers(-100, 100, n).astype(np.int8),
            "i8": rng.integers(-(10**9), 10**9, n),
            "flag": rng.random(n) < 0.5,
            "y": rng.standard_normal(n),
            "w": rng.random(n),
        }
    )
    if text:
        frame.insert(1, "city", rng.choice(CITIES, n))
        frame.insert(4, "size", pd.Categorical(rng.choice(["S", "M"], n), categories=["S", "M", "XL"]))
    return frame


def one_hot(frame, columns):
    """Return X and its names as pandas makes them."""
    parts = []
    for name in columns:
        if frame[name].dtype.kind in "biuf":
            parts.append(frame[[name]].astype(float))
        else:
            parts.append(pd.get_dummies(frame[name].astype(object), prefix=name, prefix_sep="=", dtype=float))
    table = pd.concat(parts, axis=1)
    return table.to_numpy(), tuple(table.columns)


@pytest.fixture
def small_chunks(monkeypatch):
    """Make chunks of a few rows."""

    def set_bytes(size):
        for module in (row_files, stored_rows, rows_module):
            monkeypatch.setattr(module, "CHUNK_BYTES", size)
        monkeypatch.setattr(stored_rows, "LARGEST_CHUNK", 4 * size)

    set_bytes(2000)
    return set_bytes


def write_parquet(frame, path, rows, **options):
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=rows, **options)


def write_arrow(frame, path, rows, compression="uncompressed"):
    feather.write_feather(
        pa.Table.from_pandas(frame, preserve_index=False), path, compression=compression, chunksize=rows
    )


WRITERS = {
    "parquet": write_parquet,
    "parquet v1, plain": lambda frame, path, rows: write_parquet(
        frame, path, rows, use_dictionary=False, version="1.0", compression="none", store_schema=False
    ),
    "parquet, small pages": lambda frame, path, rows: write_parquet(frame, path, rows, data_page_size=64),
    "arrow": write_arrow,
    "arrow, compressed": lambda frame, path, rows: write_arrow(frame, path, min(rows, 60), "lz4"),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("group", [3, 60, 1000])
def test_all_chunks_together_are_the_table(tmp_path, rng, small_chunks, writer, text, group):
    frame = frame_of(rng, 300, text)
    WRITERS[writer](frame, tmp_path / "t", group)
    rows = RowFiles(tmp_path / "t", "y", "w")
    X, names = one_hot(frame, [name for name in frame if name not in ("y", "w")])
    same(everything(rows), X, frame["y"], frame["w"])
    assert rows.names == names
    assert rows.n_columns == X.shape[1]
    assert rows.n_rows == 300


@pytest.mark.parametrize("text", [False, True])
def test_any_chunk_can_be_read_alone_by_several_threads_and_after_pickling(tmp_path, rng, small_chunks, text):
    frame = frame_of(rng, 400, text)
    write_parquet(frame[:300], tmp_path / "a.parquet", 250)  # the first group is read in parts
    write_parquet(frame[300:], tmp_path / "b.parquet", 7)
    rows = RowFiles(tmp_path, "y")
    whole = everything(rows)
    same(whole, one_hot(frame, [name for name in frame if name != "y"])[0], frame["y"])
    order = rng.permutation(np.repeat(np.arange(len(rows.lengths)), 3)).tolist()
    for other in (rows, pickle.loads(pickle.dumps(rows))):
        with ThreadPoolExecutor(8) as pool:
            chunks = list(pool.map(other.chunk, order))
        same(joined([chunks[order.index(k)] for k in range(len(rows.lengths))]), *whole[:2])
    some = [k for k in range(len(rows.lengths)) if k % 3]
    same(
        joined(rows.read_some(collect, some).chunks),
        np.vstack([whole[0][a : a + n] for a, n in spans(rows, some)]),
        np.concatenate([whole[1][a : a + n] for a, n in spans(rows, some)]),
    )


def spans(rows, numbers):
    starts = np.cumsum([0, *rows.lengths]).tolist()
    return [(starts[k], rows.lengths[k]) for k in numbers]


def test_chunks_are_small_and_a_large_row_group_is_read_once(tmp_path, rng, small_chunks, monkeypatch):
    frame = frame_of(rng, 3000, text=False)
    write_parquet(frame, tmp_path / "t.parquet", 1500)
    rows = RowFiles(tmp_path / "t.parquet", "y", "w")
    assert max(rows.lengths) <= 2000 // (8 * 7)
    read = []
    inner = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda *args, **kw: read.append(kw["row_groups"]) or inner(*args, **kw)
    )
    rows.read(collect)
    assert sorted(read) == [[0], [1]]


def test_row_groups_of_ordinary_size_are_chunks_and_small_ones_are_put_together(tmp_path, rng, small_chunks):
    frame = frame_of(rng, 320, text=False)  # a chunk has at most 2000 / (8 * 7) = 35 rows
    write_parquet(frame, tmp_path / "t.parquet", 100)
    assert RowFiles(tmp_path / "t.parquet", "y", "w").lengths == (100, 100, 100, 20)
    write_parquet(frame, tmp_path / "t.parquet", 10)
    assert RowFiles(tmp_path / "t.parquet", "y", "w").lengths == (30,) * 10 + (20,)


@examples(25)
@given(
    st.data(),
    st.integers(1, 60),
    st.integers(1, 70),
    st.sampled_from(["parquet", "arrow", "arrow, compressed"]),
    st.sampled_from([60, 200, 1 << 20]),
)
def test_types_and_sizes_of_row_groups(tmp_path_factory, data, n, group, writer, size):
    kinds = data.draw(st.lists(st.sampled_from(sorted(MAKE)), min_size=1, max_size=5))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    frame = pd.DataFrame({f"{kind} {j}": MAKE[kind](rng, n) for j, kind in enumerate(kinds)})
    names = list(frame)
    frame["y"] = MAKE[data.draw(st.sampled_from(sorted(MAKE)))](rng, n)
    path = tmp_path_factory.mktemp("t") / "t"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_files, "CHUNK_BYTES", size)
        patch.setattr(row_files, "LARGEST_GROUP", 4 if writer == "parquet" else 1000)
        WRITERS[writer](frame, path, group)
        rows = RowFiles(path, "y")
        X, expected = one_hot(frame, names)
        same(everything(rows), X, frame["y"].to_numpy())
    assert rows.names == expected
    chunk = rows.chunk(0)
    narrow = all(frame[name].dtype.kind not in "iuf" or kind in NARROW for name, kind in zip(names, kinds, strict=True))
    assert chunk.X.dtype == (np.float32 if narrow else np.float64)
    if sparse.issparse(chunk.X):
        again = sparse.csr_array((chunk.X.data, chunk.X.indices, chunk.X.indptr), shape=chunk.X.shape)
        assert again.has_canonical_format
        assert chunk.X.format == "csr"
    else:
        assert isinstance(chunk.X, Columns)


MAKE = {
    "float32": lambda rng, n: rng.standard_normal(n).astype(np.float32),
    "float64": lambda rng, n: rng.standard_normal(n),
    "float16": lambda rng, n: rng.standard_normal(n).astype(np.float16),
    "int8": lambda rng, n: rng.integers(-128, 128, n).astype(np.int8),
    "uint16": lambda rng, n: rng.integers(0, 1 << 16, n).astype(np.uint16),
    "int32": lambda rng, n: rng.integers(-(1 << 31), 1 << 31, n).astype(np.int32),
    "uint64": lambda rng, n: rng.integers(0, 1 << 50, n).astype(np.uint64),
    "bool": lambda rng, n: rng.random(n) < 0.5,
    "text": lambda rng, n: rng.choice(CITIES, n).astype(object),
    "categorical": lambda rng, n: pd.Categorical(rng.choice(CITIES, n), categories=[*CITIES[::-1], "never"]),
}
NARROW = {"float32", "float16", "int8", "uint16"}


def test_files_with_different_dictionaries_and_kinds_of_text(tmp_path):
    tables = [
        pa.table({"c": pa.array(["b", "a"]).dictionary_encode(), "y": [1.0, 2.0]}),
        pa.table({"c": pa.array(["c", "b"]), "y": [3.0, 4.0]}),
        pa.table({"c": pa.array(["a", "c"], pa.large_string()), "y": [5.0, 6.0]}),
    ]
    for number, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{number}.parquet")
        feather.write_feather(table, tmp_path / f"{number + 3}.feather")
    rows = RowFiles(tmp_path, "y")
    assert rows.names == ("c=a", "c=b", "c=c")
    X = np.eye(3)[[1, 0, 2, 1, 0, 2]]
    same(everything(rows), np.vstack([X, X]), np.tile(np.arange(1.0, 7.0), 2))


def test_dictionaries_of_numbers_and_with_nulls(tmp_path):
    numbers = pa.array([10, 2, 10]).dictionary_encode()
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 2, 0]), pa.array(["u", None, "v"]))
    rows = as_rows(pa.table({"k": numbers, "c": codes, "y": [0, 1, 2]}), "y")
    assert rows.names == ("k=2", "k=10", "c=u", "c=v")
    same(everything(rows), [[0, 1, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0]], [0, 1, 2])
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["u", None]))
    with pytest.raises(ValueError, match=r"column 'c' has no value in row 1: "):
        as_rows(pa.table({"c": hidden, "y": [0, 1, 2]}), "y")


@pytest.mark.parametrize("kind", ["text", "categorical", "bool", "int8"])
def test_targets_of_classes(tmp_path, rng, small_chunks, kind):
    frame = pd.DataFrame({"x": rng.standard_normal(500), "label": MAKE[kind](rng, 500)})
    write_parquet(frame, tmp_path / "t.parquet", 30)
    target = everything(RowFiles(tmp_path / "t.parquet", "label"))[1]
    np.testing.assert_array_equal(target, frame["label"].to_numpy())
    assert target.dtype.kind in {"text": "O", "categorical": "O", "bool": "b", "int8": "i"}[kind]


def test_paths_of_all_kinds(tmp_path, rng):
    frame = frame_of(rng, 90)
    (tmp_path / "deep").mkdir()
    (tmp_path / "_hidden.parquet").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("no data")
    names = ["a.parquet", "b.pq", "deep/c.arrow"]
    for name, part in zip(names, (frame[:30], frame[30:60], frame[60:]), strict=True):
        (write_arrow if name.endswith("arrow") else write_parquet)(part, tmp_path / name, 20)
    X = one_hot(frame, [name for name in frame if name != "y"])[0]
    paths = [tmp_path / name for name in names]
    for path in (tmp_path, str(tmp_path), paths, tuple(map(str, paths)), [f"{tmp_path}/[ab].*", tmp_path / "deep"]):
        same(everything(RowFiles(path, "y")), X, frame["y"])
    same(everything(RowFiles(tmp_path / "[ab].*", "y")), X[:60], frame["y"][:60])
    same(everything(RowFiles(ds.dataset(list(map(str, paths[:2]))), "y")), X[:60], frame["y"][:60])
    same(everything(RowFiles(ds.dataset(pa.Table.from_pandas(frame)), "y")), X, frame["y"])
    numbers = pa.table({"x": [1.0, 2.0], "y": [3.0, 4.0]})
    pq.write_table(numbers, tmp_path / "deep" / "d.parquet")
    feather.write_feather(numbers, tmp_path / "deep" / "e.feather")
    kinds = [ds.dataset(tmp_path / "deep" / "d.parquet"), ds.dataset(tmp_path / "deep" / "e.feather", format="ipc")]
    same(everything(RowFiles(ds.dataset(kinds), "y")), [[1], [2], [1], [2]], [3, 4, 3, 4])


@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
def test_files_of_polars(tmp_path, rng, small_chunks, compression):
    frame = frame_of(rng, 100)
    pl.from_pandas(frame).write_parquet(tmp_path / "a.parquet", row_group_size=30)
    pl.from_pandas(frame).write_ipc(tmp_path / "b.arrow", compression=compression, record_batch_size=40)
    X = one_hot(frame, [name for name in frame if name not in ("y", "w")])[0]
    for name in ("a.parquet", "b.arrow"):
        same(everything(RowFiles(tmp_path / name, "y", "w")), X, frame["y"], frame["w"])
        np.testing.assert_array_equal(everything(RowFiles(tmp_path / name, "city"))[1], frame["city"])
    assert RowFiles(tmp_path, "y", "w").n_rows == 200


def test_the_order_of_columns_is_that_of_the_argument_and_names_may_have_dots(tmp_path, rng):
    frame = pd.DataFrame(rng.standard_normal((20, 4)), columns=["a.b", "a", "y", "unused"])
    write_parquet(frame, tmp_path / "t.parquet", 5)
    write_arrow(frame, tmp_path / "t.arrow", 5)
    for name in ("t.parquet", "t.arrow"):
        rows = RowFiles(tmp_path / name, "y", columns=["a", "a.b"])
        same(everything(rows), frame[["a", "a.b"]], frame["y"])
        assert rows.names == ("a", "a.b")


def test_the_index_of_pandas_is_not_data(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]}, index=[7, 5])
    frame.to_parquet(tmp_path / "t.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "t.parquet").names
    assert RowFiles(tmp_path / "t.parquet", "y").names == ("x",)


def test_the_place_of_a_row(tmp_path, rng, small_chunks):
    frame = frame_of(rng, 400)
    write_parquet(frame[:100], tmp_path / "a.parquet", 30)
    write_parquet(frame[100:], tmp_path / "b.parquet", 300)
    rows = RowFiles(tmp_path, "y")
    chunk = rows.chunk(len(rows.lengths) - 1)
    assert rows.place(chunk.number, len(chunk) - 1) == "row 299 of b.parquet"
    assert as_rows(frame, "y").place(0, 3) == "row 3"


FRAMES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "record batch": lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_in_memory(rng, small_chunks, kind):
    frame = frame_of(rng, 200)
    data = FRAMES[kind](frame)
    X, names = one_hot(frame, [name for name in frame if name not in ("y", "w")])
    rows = as_rows(data, "y", "w")
    assert isinstance(rows, FrameRows)
    assert rows.names == names
    assert len(rows.lengths) > 5
    same(everything(rows), X, frame["y"], frame["w"])
    same(everything(pickle.loads(pickle.dumps(rows))), X, frame["y"], frame["w"])
    own = as_rows(data, frame["y"].to_numpy() + 1, frame["w"], ["i1", "flag"])
    same(everything(own), frame[["i1", "flag"]], frame["y"] + 1, frame["w"])


def test_a_pandas_frame_may_have_columns_that_are_not_asked_for():
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [0, 1], "mixed": [{1}, "b"]})
    same(everything(as_rows(frame, "y", columns=["x"])), [[1.0], [2.0]], [0, 1])
    with pytest.raises(TypeError, match=r"data: .*column mixed.*: expected one type in a column; cast it"):
        as_rows(frame, "y")


def stored(folder, kind, matrix):
    if kind.startswith("zarr"):
        chunks = {"zarr": (7, matrix.shape[1]), "zarr, tiles": (9, 3)}[kind]
        array = zarr.create_array(folder / "z", shape=matrix.shape, chunks=chunks, dtype=matrix.dtype)
        array[:] = matrix
        return folder / "z"
    np.save(folder / "m.npy", np.asfortranarray(matrix) if kind == "column-major" else matrix)
    return folder / "m.npy"


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
@pytest.mark.parametrize("kind", ["row-major", "column-major", "zarr", "zarr, tiles"])
def test_stored_matrices(tmp_path, rng, small_chunks, kind, dtype):
    matrix = (10 * rng.standard_normal((120, 8))).astype(dtype)
    target, weight = rng.standard_normal(120), rng.random(120)
    path = stored(tmp_path, kind, matrix)
    lazily = zarr.open_array(path, mode="r") if kind.startswith("zarr") else np.load(path, mmap_mode="r")
    for source in (path, str(path), lazily, sb.Streamed(path)):
        rows = as_rows(source, target, weight)
        assert isinstance(rows, StoredRows)
        assert rows.names == tuple("01234567")
        assert len(rows.lengths) > 3
        same(everything(rows), matrix, target, weight)
        same(everything(pickle.loads(pickle.dumps(rows))), matrix, target, weight)
    with ThreadPoolExecutor(8) as pool:
        chunks = list(pool.map(rows.chunk, list(range(len(rows.lengths))) * 3))
    same(joined(chunks[: len(rows.lengths)]), matrix, target, weight)
    assert chunks[0].X.dtype == (np.float32 if dtype == np.float32 else np.float64)


@pytest.mark.parametrize("kind", ["row-major", "column-major"])
def test_slices_of_memory_maps(tmp_path, rng, small_chunks, kind):
    matrix = rng.standard_normal((120, 8))
    lazily = np.load(stored(tmp_path, kind, matrix), mmap_mode="r")
    rows = as_rows(lazily[13:90, 1:7:2], np.arange(77), columns=["a", "b", "c"])
    assert rows.names == ("a", "b", "c")
    same(everything(rows), matrix[13:90, 1:7:2], np.arange(77))
    with pytest.raises(ValueError, match="expected neighbouring rows"):
        as_rows(lazily[::2], np.arange(60))
    changed = np.load(tmp_path / "m.npy", mmap_mode="c")
    changed[0] = 0
    assert isinstance(as_rows(changed, np.arange(120)), ArrayRows)
    with pytest.raises(ValueError, match="does not show rows and columns of a file"):
        StoredRows(changed, np.arange(120))


def test_rows_of_a_streamed_zarr_array_begin_within_a_chunk(tmp_path, rng, small_chunks):
    matrix = rng.standard_normal((120, 8))
    part = sb.Streamed(stored(tmp_path, "zarr", matrix)).of_rows(np.arange(5, 100))
    same(everything(StoredRows(part, np.arange(95))), matrix[5:100], np.arange(95))


def test_arrays_in_memory_and_rows_as_they_are(rng):
    X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    for data in (X, np.asfortranarray(X), sparse.csc_array(X), sparse.coo_matrix(X)):
        rows = as_rows(data, y)
        assert isinstance(rows, ArrayRows)
        same(everything(rows), X, y)
    assert as_rows(rows) is rows
    whole = as_rows(np.arange(6).reshape(3, 2), [1, 2, 3], [1.0, 0.0, 2.0])
    same(everything(whole), [[0, 1], [2, 3], [4, 5]], [1, 2, 3], [1, 0, 2])


def test_memory_of_a_reading_is_small(tmp_path, small_chunks):
    small_chunks(1 << 16)
    table = pa.table({f"x{j}": np.arange(200_000.0) for j in range(10)})  # 16 MB, in one group
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=200_000, use_dictionary=False, data_page_size=1 << 16)
    feather.write_feather(table, tmp_path / "t.arrow", compression="uncompressed", chunksize=200_000)
    del table
    for name in ("t.parquet", "t.arrow"):
        rows = RowFiles(tmp_path / name, "x0")
        before = pa.total_allocated_bytes()
        chunks = rows._chunks(range(len(rows.lengths)))
        held = [pa.total_allocated_bytes() - before for chunk in chunks if np.asarray(chunk.X).nbytes <= 1 << 16]
        assert len(held) == len(rows.lengths)
        assert max(held) < 8e6, name  # buffers of 1/4 MB per column, and a page of each


@pytest.fixture
def table(tmp_path, rng):
    """A folder with two files."""
    frame = frame_of(rng, 60)
    write_parquet(frame[:30], tmp_path / "part-0.parquet", 10)
    write_parquet(frame[30:], tmp_path / "part-1.parquet", 10)
    return tmp_path, frame


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "Y"}, "target='Y': the table has no such column: expected one of ['f4', 'city', "),
        ({"target": "fag"}, "target='fag': the table has no such column: did you mean 'flag'?"),
        ({"weights": "ww"}, "weights='ww': the table has no such column: did you mean 'w'?"),
        ({"columns": ["f4", "f88"]}, "columns='f88': the table has no such column: did you mean 'f8'?"),
        ({"target": 3}, "target=3: the table has no such column"),
        ({"columns": "f4"}, "columns='f4': expected a list of names"),
        ({"columns": []}, "columns=[]: expected a list of names, with at least one that is not the target"),
        ({"columns": ["f4", "f4"]}, "columns has 'f4' twice, or it is the target or the weights: leave it out"),
        ({"columns": ["f4", "y"]}, "columns has 'y' twice, or it is the target or the weights: leave it out"),
    ],
)
def test_names_that_do_not_fit(table, arguments, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        RowFiles(table[0], **{"target": "y", **arguments})
    assert str(error.value).startswith(message)


def test_types_that_cannot_be_used(tmp_path):
    table = pa.table(
        {
            "x": [1.0],
            "z": [1.0],
            "list": [[1]],
            "struct": [{"a": 1}],
            "when": pa.array([0], pa.timestamp("s")),
            "price": pa.array([1], pa.decimal128(5, 2)),
            "c": ["a"],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    for name, kind in [
        ("list", "list<"),
        ("struct", "struct<"),
        ("when", "timestamp["),
        ("price", "decimal128(5, 2)"),
    ]:
        with pytest.raises(TypeError) as error:
            RowFiles(tmp_path, "x", columns=[name])
        assert str(error.value).startswith(f"columns: column {name!r} has the type {kind}")
        assert str(error.value).endswith(
            "expected numbers, booleans, text or categories; leave it out of columns, or cast it"
        )
        with pytest.raises(TypeError, match=rf"target: column '{name}' has the type .*; cast it"):
            RowFiles(tmp_path, name, columns=["x"])
    with pytest.raises(TypeError, match=r"columns: column 'list' has the type"):
        RowFiles(tmp_path, "x")
    with pytest.raises(TypeError, match=r"weights: column 'c' has the type string: expected numbers; cast it"):
        RowFiles(tmp_path, "x", "c", columns=["z"])
    with pytest.raises(ValueError, match=r"columns=\[\]: expected a list of names, with at least one"):
        as_rows(table.select(["x"]), "x")
    twice = pa.Table.from_arrays([pa.array([1.0])] * 3, names=["x", "x", "y"])
    with pytest.raises(ValueError, match=r"columns='x': the table has 2 columns of this name: rename them"):
        as_rows(twice, "y")


def test_files_that_do_not_fit_together(table):
    folder, frame = table
    write_parquet(frame.drop(columns="f8"), folder / "part-2.parquet", 10)
    with pytest.raises(ValueError, match=r"part-2.parquet has no single column 'f8', which part-0.parquet has: "):
        RowFiles(folder, "y")
    assert RowFiles(folder, "y", columns=["f4"]).n_rows == 120
    write_parquet(frame.astype({"f8": np.float32}), folder / "part-2.parquet", 10)
    with pytest.raises(
        ValueError, match=r"column 'f8' has the type float in part-2.parquet and double in part-0.parquet: expected one"
    ):
        RowFiles(folder, "y")
    write_parquet(frame.astype({"city": "category", "f4": str}), folder / "part-2.parquet", 10)
    with pytest.raises(ValueError, match=r"column 'f4' has the type (large_)?string in part-2.parquet and float in"):
        RowFiles(folder, "y")
    assert RowFiles(folder, "y", columns=["city"]).n_rows == 120


def test_paths_that_have_no_table(tmp_path):
    for path in (tmp_path / "missing.parquet", tmp_path / "*.parquet"):
        with pytest.raises(ValueError, match=r"path='.*' matches no file: expected Parquet or Arrow files"):
            RowFiles(path, "y")
    with pytest.raises(ValueError, match=r"path='.*' has no file with one of the endings \['.arrow', '.feather'"):
        RowFiles(str(tmp_path), "y")
    with pytest.raises(ValueError, match="path is an empty list: expected at least one file"):
        RowFiles([], "y")
    with pytest.raises(TypeError, match="path is int: expected a file, a folder, a pattern"):
        RowFiles(3, "y")
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    with pytest.raises(
        ValueError, match=r"path: .*t.csv is neither a Parquet nor an Arrow file \(it begins with b'x,y"
    ):
        RowFiles(tmp_path / "t.csv", "y")
    pq.write_table(pa.table({"x": pa.array([], pa.float64()), "y": pa.array([], pa.float64())}), tmp_path / "e.parquet")
    with pytest.raises(ValueError, match="the table has no rows: expected at least one"):
        RowFiles(tmp_path / "e.parquet", "y")
    for name, start in (("cut.parquet", b"PAR1"), ("cut.arrow", b"ARROW1\0\0")):
        (tmp_path / name).write_bytes(start + bytes(100))
        with pytest.raises(ValueError, match=rf"path: .*{name} cannot be read \(.*\): write the file again"):
            RowFiles(tmp_path / name, "y")


def test_datasets_that_cannot_be_read_as_they_are(tmp_path):
    pq.write_to_dataset(pa.table({"x": [1.0, 2.0], "y": [1.0, 2.0], "k": [1, 2]}), tmp_path / "d", partition_cols=["k"])
    with pytest.raises(ValueError, match=r"path is a dataset with \['k'\] in the names of its folders"):
        RowFiles(ds.dataset(tmp_path / "d", partitioning="hive"), "y")
    assert RowFiles(ds.dataset(tmp_path / "d"), "y").names == ("x",)
    assert RowFiles(tmp_path / "d", "y").names == ("x",)
    pq.write_table(pa.table({"x": [1.0, 2.0], "y": [1.0, 2.0]}), tmp_path / "t.parquet", row_group_size=1)
    whole = ds.dataset(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="filtered"):
        RowFiles(whole.filter(ds.field("x") > 1), "y")
    fragment = next(whole.get_fragments()).subset(row_group_ids=[1])
    some = ds.FileSystemDataset([fragment], whole.schema, ds.ParquetFileFormat())
    with pytest.raises(ValueError, match=r"path: the dataset has some row groups of t.parquet only: expected whole"):
        RowFiles(some, "y")


@pytest.mark.parametrize("name", ["f8", "y", "w", "flag"])
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_missing_values_are_named_with_their_place(tmp_path, rng, small_chunks, name, kind):
    frame = frame_of(rng, 500)
    WRITERS[kind](frame[:300], tmp_path / f"a.{kind}", 40)
    gap = frame[300:].astype({name: object})
    gap.loc[471, name] = None
    WRITERS[kind](gap, tmp_path / f"b.{kind}", 200)
    rows = RowFiles(tmp_path, "y", "w")
    message = (
        rf"column '{name}' has no value in row 171 of b.{kind}: expected a value in every row; leave out such rows"
    )
    with pytest.raises(ValueError, match=message):
        rows.read(collect)
    number = int(np.searchsorted(np.cumsum(rows.lengths), 471, side="right"))
    with pytest.raises(ValueError, match=message):
        rows.chunk(number)


@pytest.mark.parametrize("kind", ["text", "categorical"])
def test_missing_categories_are_found_at_once(tmp_path, rng, small_chunks, kind):
    frame = pd.DataFrame({"c": MAKE[kind](rng, 500), "y": np.arange(500.0)})
    frame.loc[399, "c"] = None
    write_parquet(frame, tmp_path / "t.parquet", 500)
    with pytest.raises(ValueError, match=r"column 'c' has no value in row 399 of t.parquet"):
        RowFiles(tmp_path, "y")
    with pytest.raises(ValueError, match=r"column 'c' has no value in row 399: "):
        as_rows(frame, "y")


def test_too_many_categories(monkeypatch):
    monkeypatch.setattr("saddleback.tall.tables.layout.MOST_CATEGORIES", 50)
    table = pa.table({"c": list("ab") * 50, "id": [f"user {i}" for i in range(100)], "y": np.arange(100.0)})
    with pytest.raises(
        ValueError,
        match=r"columns: more than 50 categories, of which column 'id' has at least 100: leave it out of col",
    ):
        as_rows(table, "y")
    assert as_rows(table, "y", columns=["c"]).names == ("c=a", "c=b")


def test_a_large_compressed_batch_is_refused(tmp_path, rng, small_chunks):
    write_arrow(frame_of(rng, 300), tmp_path / "t.arrow", 300, "zstd")
    with pytest.raises(
        ValueError, match=r"t.arrow has a compressed record batch of 300 rows.*expected at most \d+ rows"
    ):
        RowFiles(tmp_path, "y")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_files_that_are_replaced(tmp_path, rng, small_chunks, kind):
    WRITERS[kind](frame_of(rng, 300), tmp_path / f"t.{kind}", 30)
    rows = RowFiles(tmp_path, "y", columns=["f4", "city"])
    WRITERS[kind](frame_of(rng, 20), tmp_path / f"t.{kind}", 10)
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match=r"is another file by now, or was changed"):
        pool.submit(rows.chunk, 1).result()
    assert everything(RowFiles(tmp_path, "y"))[0].shape[0] == 20


@pytest.mark.parametrize("how", ["renamed", "in place", "in place with the old time"])
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_files_that_are_replaced_by_equal_numbers_of_rows(tmp_path, rng, small_chunks, kind, how):
    """Two data sets would be mixed in one certificate."""
    path, other = tmp_path / f"t.{kind}", tmp_path / "other"
    frame = frame_of(rng, 300)
    WRITERS[kind](frame, path, 30)
    rows = RowFiles(path, "y", columns=["f4", "city"])
    rows.chunk(0)
    times = path.stat()
    WRITERS[kind](frame.assign(y=frame["y"] + 1.0), other, 30)
    if how == "renamed":
        other.replace(path)
    else:
        path.write_bytes(other.read_bytes())
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + ("old" not in how)))
    with pytest.raises(ValueError, match="is another file by now, or was changed"):
        ThreadPoolExecutor(1).submit(rows.chunk, 1).result()
    if "old" not in how:
        with pytest.raises(ValueError, match="is another file by now, or was changed"):
            rows.chunk(1)
    assert everything(RowFiles(path, "y"))[0].shape[0] == 300


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_file_that_is_cut_while_it_is_read_is_named(tmp_path, rng, small_chunks, kind):
    path = tmp_path / f"t.{kind}"
    WRITERS[kind](frame_of(rng, 300), path, 30)
    rows = RowFiles(path, "y", columns=["f4"])
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(ValueError, match=rf"t.{kind} is another file by now, or was changed"):
        rows.chunk(0)
    path.unlink()
    with pytest.raises(ValueError, match=rf"t.{kind} is another file by now, or was changed"):
        rows.chunk(0)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_garbled_files_are_named(tmp_path, rng, small_chunks, kind):
    """Whatever bytes are wrong, the file has rows or its error names it."""
    path = tmp_path / f"t.{kind}"
    WRITERS[kind](frame_of(rng, 300), path, 100)
    whole, refused = path.read_bytes(), []
    for place in range(40):
        garbled = bytearray(whole)
        at = len(whole) - 12 - 20 * place if place < 30 else int(rng.integers(8, len(whole)))
        garbled[at : at + 8] = rng.bytes(8)
        path.write_bytes(garbled)
        try:
            everything(RowFiles(path, "y", columns=["f4", "city"]))
        except (ValueError, TypeError) as error:
            refused.append(str(error))
    assert refused
    for said in refused:  # a name or a type of a column may have been changed
        assert f"t.{kind}" in said or "column" in said


def test_a_damaged_chunk_of_zarr_is_named(tmp_path, rng):
    X, y = rng.standard_normal((1000, 3)), rng.standard_normal(1000)
    array = zarr.create_array(tmp_path / "damaged.zarr", shape=X.shape, chunks=(100, 3), dtype=float)
    array[:] = X
    chunks = [file for file in (tmp_path / "damaged.zarr").rglob("*") if file.is_file() and "json" not in file.name]
    for file in chunks:
        file.write_bytes(b"no zstd")
    with pytest.raises(ValueError, match=r"damaged.zarr.* cannot be read"):
        everything(as_rows(tmp_path / "damaged.zarr", y))


def test_arguments_of_arrays_and_stored_matrices(tmp_path, small_chunks):
    X, y = np.zeros((1000, 3)), np.zeros(1000)
    np.save(tmp_path / "m.npy", X)
    cases = [
        (
            lambda: as_rows(X, y[1:]),
            ValueError,
            r"target has the shape \(999,\): expected one value for each of the 1000",
        ),
        (lambda: as_rows(X, y, y[1:]), ValueError, r"weights has the shape \(999,\)"),
        (
            lambda: as_rows(X[0], y),
            ValueError,
            r"data has the shape \(3,\) and dtype float64: expected a matrix of real",
        ),
        (lambda: as_rows(X), ValueError, "target is missing: expected the name of a column, or one value per row"),
        (
            lambda: as_rows(as_rows(X, y), y),
            ValueError,
            "target, weights and columns belong to the rows of data already",
        ),
        (lambda: as_rows(object(), y), TypeError, "data is object: expected files, a DataFrame of pandas or polars"),
        (lambda: as_rows(tmp_path / "m.npy", y[1:]), ValueError, r"target has the shape \(999,\)"),
        (lambda: as_rows(tmp_path / "m.npy", y, y[1:]), ValueError, r"weight has the shape \(999,\)"),
        (
            lambda: as_rows(tmp_path / "m.npy", y, columns=["a"]),
            ValueError,
            "names has 1 names: expected one for each of 3",
        ),
        (lambda: as_rows(tmp_path / "n.npy", y), FileNotFoundError, "is neither a file nor a folder"),
        (
            lambda: StoredRows(X, y),
            TypeError,
            "source is ndarray: expected a .npy file.*a matrix in memory needs ArrayRows",
        ),
        (
            lambda: as_rows(pd.DataFrame(X), y[1:]),
            ValueError,
            r"target has the shape \(999,\): expected the name of a col",
        ),
    ]
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()
    tall = zarr.create_array(tmp_path / "z", shape=X.shape, chunks=(1000, 1), dtype=float)
    with pytest.raises(
        ValueError, match=r"Zarr array of 1000 x 3 with chunks of 1000 x 1: expected chunks of at most 333"
    ):
        as_rows(tall, y)


def test_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"RowFiles needs pyarrow: pip install 'saddleback\[parquet\]'"):
        RowFiles("t.parquet", "y")
    with pytest.raises(ImportError, match=r"FrameRows needs pyarrow: pip install 'saddleback\[parquet\]'"):
        as_rows(pd.DataFrame({"x": [1.0]}), "x")
