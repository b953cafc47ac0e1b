"""Rows that lie in a Dask cluster, or in any array or DataFrame of Dask.

Rows stay where they are. A reading sends the visit to the workers, which visit one chunk per task and add up what the
visits return. Only the sum comes back. What a lost worker had is computed again by the others.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import cache, reduce
from itertools import accumulate
from operator import add
from typing import Any, Generic

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from ..common.cached import cached_property
from ..machine.threads import limited
from .rows import Chunk, Rows, S, Visit

FAN_IN = 8
"""Number of results that one task adds up: few enough for the memory of a worker, many enough for a low tree."""

ADVICE = "compute them with X.compute_chunk_sizes(), or make X with df.to_dask_array(lengths=True)"


def is_dask(X: Any) -> bool:
    """Return whether X is an array, a DataFrame or a Series of Dask, without importing Dask."""
    return _is_array(X) or _is_frame(X) or _is_loaded(X, "dask.dataframe", "Series")


def _is_array(X: Any) -> bool:
    return _is_loaded(X, "dask.array", "Array")


def _is_frame(X: Any) -> bool:
    return _is_loaded(X, "dask.dataframe", "DataFrame")


def _is_loaded(X: Any, module: str, kind: str) -> bool:
    """Return whether X has a type of a module; if the module has not been imported, it cannot."""
    expected = getattr(sys.modules.get(module), kind, None)
    return expected is not None and isinstance(X, expected)


def import_dask() -> Any:
    """Return the module dask with dask.array, or raise an error that says what to install."""
    try:
        import dask
        import dask.array
    except ImportError as error:
        raise ImportError(f"rows in Dask need it: pip install 'saddleback[dask]' ({error})") from None
    return dask


class DaskRows(Rows):
    """The rows of an array or of a DataFrame of Dask.

    A chunk is a block of rows of the array, or a partition of the DataFrame. They are not persisted: if X is larger
    than the memory of the cluster, each reading computes it again, for example from files. If X has been persisted, it
    is used where it is. With a ``dask.distributed.Client`` its workers do the work, otherwise the threads of this
    process or what ``dask.config`` names.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        Rows by columns. Columns of categories become one column of zeros and ones per category, with the name
        "column=category", and the chunks are then sparse.
    target : str, array or Series
        One value per row: the name of a column of X, or an array or Series, of Dask or in memory.
    weight : str, array or Series, optional
        One value per row, as ``target``.
    names : sequence, optional
        Names of the columns. Of an array: "0", "1", ... by default. Of a DataFrame: the columns to use, by default all
        but the target and the weight.
    lengths : sequence of int, optional
        Numbers of rows of the partitions of a DataFrame, if they are known. Otherwise one column is read to count them.
    """

    local = False

    def __init__(
        self, X: Any, target: Any, weight: Any = None, names: Sequence[Any] | None = None, lengths: Any = None
    ) -> None:
        import_dask()
        if target is None:
            raise TypeError("target is None: expected one value per row, or the name of a column of X")
        self._client = _client()
        given = {"target": target, "weight": weight}
        self._is_frame = _is_frame(X)
        self.named = self._is_frame or names is not None
        if self._is_frame:
            self._table: _Table = _frame_table(X, target, weight, names)
            X = X[self._table.needed()]
            heights = self._heights(X) if lengths is None else tuple(map(int, lengths))
            if len(heights) != X.npartitions:
                raise ValueError(f"lengths has {len(heights)} values: expected one per partition, {X.npartitions}")
        elif _is_array(X):
            heights = _array_heights(X, "X", 2)
            self._table = _array_table(X, names)
            X = X.rechunk({1: -1})
        else:
            raise TypeError(f"X is {type(X).__name__}: expected an array or a DataFrame of Dask")
        if not sum(heights):
            raise ValueError("X has no rows: expected at least one")
        self.names = self._table.names()
        target, weight = (self._collection(name, value, heights) for name, value in given.items())
        self._kept = (X, target, weight)  # what has been persisted is held as long as these live
        self._blocks = [None if thing is None else _parts(thing) for thing in self._kept]
        self._parts = [part for part, height in enumerate(heights) if height]  # partitions may be empty
        self.lengths = tuple(heights[part] for part in self._parts)

    @cached_property
    def _firsts(self) -> list[int]:
        return [0, *accumulate(self.lengths)]

    def chunk(self, number: int) -> Chunk:
        found: Chunk = self.read_some(_itself, [number])
        return found

    def place(self, number: int, row: int) -> str:
        return f"row {row} of partition {self._parts[number]}" if self._is_frame else super().place(number, row)

    def read_some(self, visit: Visit[S], numbers: Iterable[int]) -> S:
        """Visit some chunks, one per task, and add up on the workers, in a tree that depends on the numbers alone."""
        from dask.delayed import Delayed
        from dask.highlevelgraph import HighLevelGraph

        # A graph of plain tasks, as one layer: with a Delayed per task the client would need four times as long.
        token = uuid.uuid4().hex  # of its own, so that no other reading is mistaken for this one
        graph: dict[Any, Any] = {}
        job = f"visit-{token}"
        _put(graph, job, _Job(visit, self._table).itself)  # part of the graph: Dask can send it again
        keys: list[Any] = []
        for number in numbers:
            part = self._parts[number]
            where = (number, self._firsts[number], self.lengths[number])
            blocks = (None if blocks is None else _key(blocks[part].key) for blocks in self._blocks)
            keys.append((f"chunk-{token}", number))
            _put(graph, keys[-1], _run, _key(job), *where, *blocks)
        if not keys:
            raise ValueError("no chunk was named to read: expected at least one")
        level = 0
        while len(keys) > 1:
            groups = [keys[first : first + FAN_IN] for first in range(0, len(keys), FAN_IN)]
            keys = [(f"sum-{token}", level, group) for group in range(len(groups))]
            for key, group in zip(keys, groups, strict=True):
                _put(graph, key, _added, *map(_key, group))
            level += 1
        layer = f"read-{token}"
        whole = HighLevelGraph.from_collections(layer, graph, [blocks[0] for blocks in self._blocks if blocks])
        total: S = self._compute(Delayed(keys[0], whole, layer=layer))
        return total

    def _compute(self, thing: Any) -> Any:
        """Return the value of something lazy, by the cluster if there is one."""
        import dask

        client = self._client
        if client is None:
            return dask.compute(thing)[0]
        try:
            if client.status == "closed":  # without this, another scheduler would take over
                raise CancelledError
            with _large_graphs():
                return client.compute(thing).result()
        except Exception as error:
            if _is_lost(client, error):
                raise ConnectionError(
                    f"the scheduler of the Dask cluster at {_address(client)} is lost, or the Client was closed: start "
                    "them again, and make X anew"
                ) from error
            raise

    def _heights(self, frame: Any) -> tuple[int, ...]:
        """Return the number of rows of each partition of a DataFrame or a Series; of a file, it reads one column."""
        from dask import delayed

        narrow = frame[[frame.columns[0]]] if frame.ndim == 2 else frame
        found = self._compute(delayed([delayed(len)(part) for part in _parts(narrow)]))
        return tuple(map(int, found))

    def _collection(self, name: str, value: Any, heights: tuple[int, ...]) -> Any:
        """Return the target or the weights with the chunks of X; None for none, or if they are a column of X."""
        import dask.array as da

        if value is None or getattr(self._table, name) is not None:
            return None
        if _is_loaded(value, "dask.dataframe", "Series"):
            found = self._heights(value)
            if found == heights:
                return value
            value = _as_array(value, found)
        if _is_array(value):
            found = _array_heights(value, name, 1)
            _check_size(name, sum(found), sum(heights))
            return value.rechunk((heights,))
        array = np.asarray(value)
        if array.ndim != 1:
            raise ValueError(f"{name} has {array.ndim} dimensions: expected one value per row")
        _check_size(name, array.size, sum(heights))
        lazy = da.from_array(array, chunks=(heights,), name=False)
        if self._client is not None:
            with _large_graphs():  # sent once; the scheduler keeps it for workers that take the place of others
                lazy = self._client.persist(lazy)
        return lazy


def predicted(X: Any, function: Any, dtype: DTypeLike = np.float64, outputs: int | None = None) -> Any:
    """Return predictions for an array or a DataFrame of Dask, lazily.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        Rows by columns; the numbers of rows need not be known.
    function : callable
        Returns the predictions for some rows, an array in memory or a DataFrame of pandas.
    dtype : dtype
        Type of the predictions.
    outputs : int, optional
        Number of predictions per row; None for a vector of predictions.

    Returns
    -------
    predictions : dask.array.Array
        One prediction per row, or rows by outputs.
    """
    like = np.empty((0,) if outputs is None else (0, outputs), dtype=dtype)
    function = _OfRows(function, like)
    if _is_frame(X):
        return X.map_partitions(function, meta=like)
    if not _is_array(X):
        raise TypeError(f"X is {type(X).__name__}: expected an array or a DataFrame of Dask")
    X = X.rechunk({1: -1})
    if outputs is None:
        return X.map_blocks(function, dtype=like.dtype, drop_axis=1, meta=like)
    return X.map_blocks(function, dtype=like.dtype, chunks=(X.chunks[0], (outputs,)), meta=like)


@dataclass(frozen=True)
class _OfRows:
    """A function of some rows, which is not called for a block without rows."""

    function: Any
    empty: Any

    def __call__(self, block: Any) -> Any:
        return self.function(block) if len(block) else self.empty


def in_blocks(values: Any) -> Any:
    """Return a Series of Dask as an array of Dask, whose numbers of rows need not be known; arrays as they are."""
    if not _is_loaded(values, "dask.dataframe", "Series"):
        return values
    dtype = values.dtype if isinstance(values.dtype, np.dtype) else np.dtype(object)  # text has a type of pandas
    return values.map_partitions(np.asarray, meta=np.empty(0, dtype))


def mean_of(values: Any, weight: Any = None) -> float:
    """Return the mean of an array of Dask, with a weight per value if there is any."""
    import dask

    if weight is None:
        return float(dask.compute(values.mean())[0])
    weight = in_blocks(weight)
    total, whole = dask.compute((values * weight).sum(), weight.sum())
    return float(total / whole)


# Tasks of a graph


def _parts(thing: Any) -> list[Any]:
    """Return the blocks of a collection of Dask, lazily; of a DataFrame, the partitions as the user sees them.

    Otherwise Dask puts partitions of files together if only some columns are read, and would do so in another way for
    the target and for the count of the rows.
    """
    import dask

    if _is_array(thing):
        return list(np.ravel(thing.to_delayed()))
    with dask.config.set({"optimization.tune.active": False}):
        parts = list(thing.to_delayed())
    return parts if len(parts) == thing.npartitions else list(thing.to_delayed(optimize_graph=False))


def _as_array(series: Any, heights: Sequence[int]) -> Any:
    """Return a Series of Dask as an array of Dask."""
    import dask
    import dask.array as da

    like = np.empty(0, series.dtype if isinstance(series.dtype, np.dtype) else object)
    values = map(dask.delayed(np.asarray), _parts(series))
    return da.concatenate(
        [da.from_delayed(value, (height,), meta=like) for value, height in zip(values, heights, strict=True)]
    )


def _put(graph: dict[Any, Any], key: Any, function: Any, *arguments: Any) -> None:
    """Put a task into a graph."""
    spec = _task_spec()
    graph[key] = (function, *arguments) if spec is None else spec.Task(key, function, *arguments)


def _key(key: Any) -> Any:
    """Return a key as an argument of a task, which stands for the value."""
    spec = _task_spec()
    return key if spec is None else spec.TaskRef(key)


@cache
def _task_spec() -> Any:
    """Return the module with Dask's classes of tasks; None before Dask 2024.12, whose tasks are tuples.

    Later ones also read tuples, but do not find the keys of persisted collections in them.
    """
    try:
        from dask import _task_spec as spec
    except ImportError:
        return None
    return spec


# What runs on the workers


@dataclass(frozen=True)
class _Job(Generic[S]):
    """A visit, and how the blocks of Dask become a chunk."""

    visit: Visit[S]
    table: _Table

    def itself(self) -> _Job[S]:
        """Return this job: as a task of its own, it is sent once and not with every chunk."""
        return self


def _run(job: _Job[S], number: int, first: int, length: int, block: Any, target: Any, weight: Any) -> S:
    """Visit a chunk. Dask runs several such tasks at once, so each has one thread."""
    X = job.table.matrix(block)
    target, weight = job.table.values(block, target, weight)
    for name, found in (
        ("X", X.shape[0]),
        ("target", len(target)),
        ("weight", length if weight is None else len(weight)),
    ):
        if found != length:
            raise ValueError(
                f"{name} has {found} rows in chunk {number}, where {length} were counted: expected the same rows in "
                "each reading; persist it, or write it to a file, if computing it again gives other rows"
            )
    with limited(1):
        return job.visit(Chunk(number, first, X, target, weight))


def _added(*parts: Any) -> Any:
    return reduce(add, parts)


def _itself(chunk: Chunk) -> Any:
    return chunk


@dataclass(frozen=True)
class _Column:
    """A column of X.

    Attributes
    ----------
    name : its name in the DataFrame, or its number in an array.
    label : its name for the user.
    categories : an Index of pandas with the categories; None if it is a column of numbers.
    """

    name: Any
    label: str
    categories: Any = None


@dataclass(frozen=True)
class _Table:
    """How a block of rows becomes X, target and weight.

    Attributes
    ----------
    columns : the columns of X.
    dtype : type of the entries of X.
    of_frame : whether blocks are DataFrames of pandas.
    target, weight : names of columns, or None if these lie elsewhere.
    """

    columns: tuple[_Column, ...]
    dtype: Any
    of_frame: bool = False
    target: Any = None
    weight: Any = None

    def needed(self) -> list[Any]:
        """Return the names of all columns that are read, without repetition."""
        names = [column.name for column in self.columns]
        return names + [name for name in (self.target, self.weight) if name is not None and name not in names]

    def names(self) -> tuple[str, ...]:
        """Return the names of the columns of X."""
        return tuple(
            label
            for column in self.columns
            for label in (
                [column.label]
                if column.categories is None
                else [f"{column.label}={category}" for category in column.categories]
            )
        )

    def values(self, block: Any, target: Any, weight: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return the target and the weights of a block."""
        target = block[self.target] if target is None else target
        weight = block[self.weight] if weight is None and self.weight is not None else weight
        return np.asarray(target), None if weight is None else np.asarray(weight, dtype=np.float64)

    def matrix(self, block: Any) -> Any:
        """Return X of a block: an array with contiguous rows, or a sparse matrix by rows."""
        if self.of_frame:
            is_number = all(column.categories is None for column in self.columns)
            return self._numbers(block, self.columns) if is_number else self._one_hot(block)
        if hasattr(block, "tocsr"):
            return block.tocsr().astype(self.dtype, copy=False)
        return np.ascontiguousarray(block, dtype=self.dtype)

    def _numbers(self, block: Any, columns: Sequence[_Column]) -> NDArray[Any]:
        """Return columns of numbers as an array; missing ones are NaN."""
        part = block[[column.name for column in columns]]
        return np.ascontiguousarray(part.to_numpy(dtype=self.dtype, na_value=np.nan))

    def _one_hot(self, block: Any) -> Any:
        """Return numbers and categories as a sparse matrix with one entry per row and column of the block."""
        shape = (len(block), len(self.columns))
        index = np.int32 if max(shape[0] * shape[1], len(self.names())) < 2**31 else np.int64
        entries, indices = np.ones(shape, self.dtype), np.empty(shape, index)
        numbers = [place for place, column in enumerate(self.columns) if column.categories is None]
        entries[:, numbers] = self._numbers(block, [self.columns[place] for place in numbers])
        start = 0
        for place, column in enumerate(self.columns):
            if column.categories is None:
                indices[:, place] = start
                start += 1
                continue
            codes = _codes(block[column.name], column.categories)
            entries[codes < 0, place] = np.nan  # as a missing number, so that it is noticed
            indices[:, place] = start + np.maximum(codes, 0)
            start += len(column.categories)
        ends = np.arange(0, entries.size + 1, shape[1], dtype=index)
        return sparse.csr_matrix((entries.ravel(), indices.ravel(), ends), shape=(shape[0], start))


def _codes(values: Any, categories: Any) -> NDArray[Any]:
    """Return the number of the category of each value, or -1 for a missing one."""
    if not values.cat.categories.equals(categories):  # the same in another order, or some of them
        values = values.cat.set_categories(categories)
    return np.asarray(values.cat.codes)


# What is checked when rows are made


def _array_table(X: Any, names: Sequence[Any] | None) -> _Table:
    labels = [str(j) for j in range(X.shape[1])] if names is None else [str(name) for name in names]
    if len(labels) != X.shape[1]:
        raise ValueError(f"names has {len(labels)} values: expected one per column of X, {X.shape[1]}")
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X has dtype {X.dtype}: expected real numbers; convert it with astype(float) first")
    return _Table(tuple(_Column(j, label) for j, label in enumerate(labels)), _real_type([X.dtype]))


def _frame_table(X: Any, target: Any, weight: Any, names: Sequence[Any] | None) -> _Table:
    present = list(X.columns)
    if len(set(present)) < len(present):
        raise ValueError("X has several columns with the same name: expected different names")
    own = {name: value if np.isscalar(value) else None for name, value in (("target", target), ("weight", weight))}
    chosen = [name for name in present if name not in own.values()] if names is None else list(names)
    missing = [name for name in (*chosen, *own.values()) if name is not None and name not in present]
    if missing:
        raise ValueError(f"X has no column {missing[0]!r}: expected names among {', '.join(map(str, present[:9]))}")
    if not chosen:
        raise ValueError("X has no columns besides the target and the weight: expected at least one")
    types = X.dtypes
    columns = tuple(_Column(name, str(name), _categories(X, name, types[name])) for name in chosen)
    numbers = [types[column.name] for column in columns if column.categories is None]
    return _Table(columns, _real_type([getattr(dtype, "numpy_dtype", dtype) for dtype in numbers]), True, **own)


def _categories(X: Any, name: Any, dtype: Any) -> Any:
    """Return the categories of a column, or None for a column of numbers; raise an error for any other column."""
    if dtype == "category":
        if not X[name].cat.known:
            raise ValueError(f"X has unknown categories in column {name!r}: call X = X.categorize() first")
        return X[name].cat.categories
    if getattr(dtype, "numpy_dtype", dtype).kind in "biuf":
        return None
    raise TypeError(
        f"X has the type {dtype} in column {name!r}: expected numbers or categories; for strings call "
        f"X = X.categorize(columns=[{name!r}]) first, or leave it out"
    )


def _real_type(dtypes: Sequence[Any]) -> Any:
    """Return float32 if it is the common type in numpy, and float64 for all others."""
    common = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
    return np.float32 if common in (np.float16, np.float32) else np.float64


def _array_heights(array: Any, name: str, dimensions: int) -> tuple[int, ...]:
    """Return the number of rows of each block of an array, or raise if they are not known."""
    if array.ndim != dimensions:
        expected = "rows by columns" if dimensions == 2 else "one value per row"
        raise ValueError(f"{name} has {array.ndim} dimensions: expected {expected}")
    if any(np.isnan(size) for sizes in array.chunks for size in sizes):
        raise ValueError(f"{name} has chunks of unknown sizes: {ADVICE.replace('X', name)}")
    return tuple(map(int, array.chunks[0]))


def _check_size(name: str, found: int, rows: int) -> None:
    if found != rows:
        raise ValueError(f"{name} has {found} values: expected one per row of X, {rows}")


# The cluster


def _client() -> Any:
    """Return the client of the cluster in use; None if there is none, or if ``dask.config`` names another scheduler."""
    import dask

    distributed = sys.modules.get("distributed")
    if distributed is None or dask.config.get("scheduler", None) not in (None, "dask.distributed", "distributed"):
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None


def _large_graphs() -> Any:
    """Return a context without the warning about large graphs: a visit or a target in memory has to be sent once."""
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"})


def _is_lost(client: Any, error: Exception) -> bool:
    """Return whether an error means that the scheduler no longer answers."""
    from distributed.comm import CommClosedError

    if client.status != "running":
        return True
    return isinstance(error, CommClosedError) or "scheduler-connection-lost" in str(getattr(error, "reason", ""))


def _address(client: Any) -> str:
    return str(getattr(client.scheduler, "address", "no address"))
