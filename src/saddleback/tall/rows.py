"""The rows of a tall problem: chunk after chunk, from wherever they lie.

A tall problem has far more rows than columns, and what it needs of them are sums over rows: numbers, vectors of the
length of x, and one matrix of that size. So a place for rows has one task, to visit every chunk and to add up what the
visits return. Nothing per row is kept between two readings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .. import _native
from ..common.arrays import Indices, Vector
from ..machine.threads import limited

CHUNK_BYTES = 1 << 25
"""Size of a chunk that is read at once, as float64: small against any memory, large against the time to ask for it."""


BLOCK_BYTES = 1 << 22
"""Size of the rows that are worked on at once: they stay in the cache of a core from one operation to the next."""


class Sum(Protocol):
    """What a visit returns: something that can be added to what other visits have returned."""

    def __add__(self: S, other: S) -> S:
        """Return the sum over the rows of both."""
        ...


S = TypeVar("S", bound=Sum)


@dataclass(frozen=True)
class Chunk:
    """Some consecutive rows.

    Attributes
    ----------
    number : number of the chunk.
    first : number of its first row, counted over all chunks.
    X : rows by columns; an array of float32 or float64 numbers, ``Columns``, or a sparse matrix with contiguous rows.
    target : one value per row.
    weight : one value per row, or None.
    """

    number: int
    first: int
    X: Any
    target: NDArray[Any]
    weight: Vector | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def part(self, rows: slice | Indices) -> Chunk:
        """Return some of the rows; ``first`` keeps its meaning for slices only."""
        weight = None if self.weight is None else self.weight[rows]
        first = self.first + (rows.start if isinstance(rows, slice) else 0)
        return replace(self, first=first, X=self.X[rows], target=self.target[rows], weight=weight)


Visit = Callable[[Chunk], S]
"""What is done with one chunk. It has to be possible to pickle it, since chunks may lie with other processes."""


class Rows(ABC):
    """Rows of a table with a target and perhaps a weight per row, in chunks.

    Attributes
    ----------
    names : tuple of str
        The names of the columns.
    lengths : tuple of int
        The number of rows of each chunk.
    """

    names: tuple[str, ...]
    lengths: tuple[int, ...]

    checked = False
    """Whether all entries are known to be finite."""

    named = True
    """Whether the columns have names of their own, and not only numbers."""

    local = True
    """Whether visits are made in this process, so that they can tell of their progress."""

    together = False
    """Whether several processes read them together."""

    @abstractmethod
    def chunk(self, number: int) -> Chunk:
        """Return a chunk, from any thread. Its entries may not be finite: whoever visits it will notice."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self.lengths)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.names)

    def place(self, number: int, row: int) -> str:
        """Return the place of a row of a chunk, for messages."""
        return f"row {sum(self.lengths[:number]) + row}"

    def read(self, visit: Visit[S]) -> S:
        """Visit all chunks once, and return the sum of what the visits return, added in the order of the chunks."""
        return self.read_some(visit, range(len(self.lengths)))

    def survey(self, visit: Visit[S]) -> S:
        """Return the result of a first reading; a second call with the same visit returns it again."""
        known: tuple[Any, Any] | None = self.__dict__.get("_survey")
        if known is None or known[0] != visit:
            known = self.__dict__["_survey"] = visit, self.read(visit)
        found: S = known[1]
        return found

    def forget_survey(self) -> None:
        """Forget the result of the first reading, to free its memory."""
        self.__dict__.pop("_survey", None)

    def read_some(self, visit: Visit[S], numbers: Iterable[int]) -> S:
        """Visit some chunks, by several threads: while one reads, another one computes."""
        return reduce(add, in_order(lambda number: visit(self.chunk(number)), numbers, _native.thread_limit()))


def in_order(task: Callable[[int], S], numbers: Iterable[int], threads: int) -> Iterator[S]:
    """Return the results of a task in order. At most one more chunk than there are threads is in memory."""
    if threads == 1:
        yield from map(task, numbers)
        return

    def limited_task(number: int) -> S:
        with limited(1):
            return task(number)

    left = iter(numbers)
    running: deque[Future[S]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for number in left:
                running.append(pool.submit(limited_task, number))
                if len(running) > threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()


def block_height(columns: int) -> int:
    """Return the number of rows that are worked on at once."""
    return max(256, BLOCK_BYTES // (8 * columns))


def blocks(chunk: Chunk, columns: int) -> Iterator[tuple[int, Chunk]]:
    """Return the rows of a chunk in parts that fit into the cache, each with the number of its first row."""
    height = block_height(columns)
    for start in range(0, len(chunk), height):
        yield start, chunk.part(slice(start, min(start + height, len(chunk))))


def joined(chunks: list[Chunk]) -> Chunk:
    """Return rows of several chunks as one."""
    parts = [chunk.X for chunk in chunks]
    X = sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)
    weights = [np.ones(len(chunk)) if chunk.weight is None else chunk.weight for chunk in chunks]
    weight = None if all(chunk.weight is None for chunk in chunks) else np.concatenate(weights)
    return Chunk(0, 0, X, np.concatenate([chunk.target for chunk in chunks]), weight)


def merged(rows: Chunk, y: Vector) -> tuple[Chunk, Vector]:
    """Return rows and their slopes with equal rows as one, which has the sum of their weights and slopes.

    Sparse rows are compared by random sums of their entries, which are equal for different rows only by accident.
    """
    entries = (
        rows.X @ np.random.default_rng(0).standard_normal((rows.X.shape[1], 2)) if sparse.issparse(rows.X) else rows.X
    )
    table = np.column_stack([entries, rows.target])
    _, first, place = np.unique(table, axis=0, return_index=True, return_inverse=True)
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    total, slopes = (np.bincount(place.reshape(-1), each, first.size).astype(np.float64) for each in (weight, y))
    return replace(rows.part(first), weight=total), slopes


def one_per_row(name: str, values: Any, rows: int) -> NDArray[Any]:
    """Return values as an array, or raise if they are not one per row."""
    array = np.asarray(values)
    if array.shape != (rows,):
        raise ValueError(f"{name} has the shape {array.shape}: expected one value for each of the {rows} rows")
    return array


class ArrayRows(Rows):
    """The rows of an array.

    Parameters
    ----------
    X : array
        Rows by columns, in memory. It is neither copied nor changed.
    target : array
        One value per row.
    weight : array, optional
        One value per row.
    names : sequence of str, optional
        Names of the columns; "0", "1", ... by default.
    checked : bool, default False
        Whether all entries are known to be finite, so that they need not be checked.
    """

    def __init__(
        self, X: Any, target: NDArray[Any], weight: Vector | None = None, names: Any = None, checked: bool = False
    ) -> None:
        if len(getattr(X, "shape", ())) != 2:
            raise TypeError(f"X is {type(X).__name__}: expected an array or a sparse matrix of rows by columns")
        self.X, self.target = X, one_per_row("target", target, X.shape[0])
        self.weight: Vector | None = None if weight is None else one_per_row("weight", weight, X.shape[0])
        self.named, self.checked = names is not None, checked
        rows, columns = X.shape
        self.names = tuple(str(j) for j in range(columns)) if names is None else tuple(map(str, names))
        height = max(1, CHUNK_BYTES // (8 * max(columns, 1)))
        self._starts = np.append(np.arange(0, rows, height), rows)
        self.lengths = tuple(np.diff(self._starts).tolist())

    def chunk(self, number: int) -> Chunk:
        first, end = (int(bound) for bound in self._starts[number : number + 2])
        weight = None if self.weight is None else self.weight[first:end]
        return Chunk(number, first, self.X[first:end], self.target[first:end], weight)
