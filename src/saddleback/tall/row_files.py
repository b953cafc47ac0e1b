"""Rows of tables with named columns: Parquet and Arrow files, and frames in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, groupby
from operator import add
from os import PathLike
from typing import TYPE_CHECKING, Any

from .. import _native
from .rows import CHUNK_BYTES, Chunk, Rows, S, Visit, in_order

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset

    from .tables.layout import Choice
    from .tables.source import Source

LARGEST_GROUP = 4
"""A group of rows with up to this many times the size of a chunk is read as one chunk, as it is stored; a larger one is
read in parts, one after the other."""


@dataclass(frozen=True)
class Part:
    """The rows of a table that make a chunk.

    Attributes
    ----------
    source : the table.
    start : the first row, counted in the table.
    rows : number of rows.
    run : number of the run; the parts of a run are read fastest one after the other.
    """

    source: Source
    start: int
    rows: int
    run: int


class TableRows(Rows):
    """The rows of tables that have the same columns.

    Parameters
    ----------
    sources : sequence of Source
        The tables, one after the other.
    target : str
        Name of the column of the target.
    weights : str or None
        Name of the column of weights.
    columns : sequence of str or None
        Names of the columns that become X; all others by default.
    """

    def __init__(self, sources: Sequence[Source], target: str, weights: str | None, columns: Any) -> None:
        from .tables.layout import Choice

        choice = Choice.of(sources[0].schema, target, weights, columns)
        for other in sources[1:]:
            choice.check_same(other, sources[0])
        if not any(source.n_rows for source in sources):
            raise ValueError("the table has no rows: expected at least one")
        self._columns, height = choice.used, max(1, CHUNK_BYTES // choice.row_bytes)
        for source in sources:
            _check_groups(source, LARGEST_GROUP * height)
        self._parts = tuple(_parts(sources, height))
        self.lengths = tuple(part.rows for part in self._parts)
        self._firsts = tuple(accumulate(self.lengths, initial=0))
        self._layout = choice.layout(self._labels(choice))
        self.names = self._layout.names

    def chunk(self, number: int) -> Chunk:
        """Return a chunk, from any thread; in a large row group of Parquet, what precedes it is read as well."""
        return next(self._chunks([number]))

    def place(self, number: int, row: int) -> str:
        """Return the place of a row of a chunk, for messages; rows are counted from 0 in every file."""
        part = self._parts[number]
        return part.source.place(part.start + row)

    def read_some(self, visit: Visit[S], numbers: Iterable[int]) -> S:
        """Visit some chunks, by several threads, each of which reads the parts of a large group one after the other."""
        runs = self._runs(numbers)

        def visit_run(run: int) -> S:
            return reduce(add, map(visit, self._chunks(runs[run])))

        return reduce(add, in_order(visit_run, range(len(runs)), _native.thread_limit()))

    def _runs(self, numbers: Iterable[int]) -> list[list[int]]:
        """Return numbers of chunks in lists, each of neighbours in one run."""
        places = groupby(enumerate(numbers), key=lambda item: (self._parts[item[1]].run, item[1] - item[0]))
        return [[number for _, number in items] for _, items in places]

    def _chunks(self, run: Sequence[int]) -> Iterator[Chunk]:
        """Yield neighbouring chunks of a run, whose rows are read once."""
        batches = _Cut(self._batches(run, self._columns))
        for number in run:
            rows = self.lengths[number]
            yield self._layout.chunk(number, self._firsts[number], rows, batches.take(rows), self._placing(number))

    def _batches(self, run: Sequence[int], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        part, lengths = self._parts[run[0]], [self.lengths[number] for number in run]
        return part.source.batches(part.start, sum(lengths), columns, max(lengths))

    def _placing(self, number: int) -> Any:
        return lambda row: self.place(number, row)

    def _labels(self, choice: Choice) -> dict[str, set[Any]]:
        """Return all categories; only their columns are read."""
        found: dict[str, set[Any]] = {name: set() for name in choice.categories}
        if not found:
            return found
        runs = self._runs(range(len(self._parts)))

        def of_run(run: int) -> Any:
            return choice.labels(self._batches(runs[run], choice.categories), self._placing(runs[run][0]))

        for labels in in_order(of_run, range(len(runs)), _native.thread_limit()):
            choice.merge(found, labels)
        return found


class RowFiles(TableRows):
    """Rows in Parquet or Arrow files, which are read in chunks and never held as a whole.

    Columns of numbers are columns of X. A column of text or categories becomes one column "name=value" of zeros and
    ones for each value that occurs, in order, and X is sparse. To find the values, these columns are read once.

    Parameters
    ----------
    path : str, Path, list of these, or pyarrow.dataset.Dataset
        A file, a folder with all its files that end in .parquet, .pq, .arrow, .feather or .ipc, a pattern such as
        ``"data/*.parquet"``, a list of these, or a dataset. Names of folders are not read as columns.
    target : str
        Name of the column of the target: numbers, booleans, text or categories.
    weights : str, optional
        Name of the column of weights of the rows.
    columns : sequence of str, optional
        Names of the columns that become X. By default all others, except the index of a frame of pandas.

    Attributes
    ----------
    names : tuple of str
        The names of the columns of X.
    lengths : tuple of int
        The number of rows of each chunk. A row group or record batch of ordinary size is a chunk, small ones of a file
        are put together, and large ones are read in parts.
    """

    def __init__(
        self,
        path: str | PathLike[str] | Sequence[str | PathLike[str]] | pyarrow.dataset.Dataset,
        target: str,
        weights: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        require_pyarrow("RowFiles")
        from .tables.finding import find

        super().__init__(find(path), target, weights, columns)


class FrameRows(TableRows):
    """Rows of a frame in memory, whose columns become columns of X as those of files do.

    Parameters
    ----------
    data : pandas.DataFrame, polars.DataFrame or pyarrow.Table
        The frame, or any object that offers its columns to Arrow. Columns are shared where their storage allows it.
    target : str or array
        Name of the column of the target, or one value per row.
    weights : str or array, optional
        Name of the column of weights, or one value per row.
    columns : sequence of str, optional
        Names of the columns that become X; all others by default.
    """

    def __init__(self, data: Any, target: Any, weights: Any = None, columns: Sequence[str] | None = None) -> None:
        require_pyarrow("FrameRows")
        from .tables.frames import as_table, with_column
        from .tables.source import InMemory

        named = [name for name in (target, weights) if isinstance(name, str)]
        table = as_table(data, None if columns is None else [*columns, *named])
        table, target = with_column(table, "target", target)
        table, weights = with_column(table, "weights", weights)
        super().__init__([InMemory(table)], target, weights, columns)


def require_pyarrow(purpose: str) -> None:
    """Raise an error that says how to install pyarrow, if it is missing."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError(f"{purpose} needs pyarrow: pip install 'saddleback[parquet]'") from None


class _Cut:
    """Batches of rows, cut where chunks end."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._rest: pa.RecordBatch | None = None

    def take(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the next rows."""
        while rows:
            batch = next(self._batches) if self._rest is None else self._rest
            part = batch.slice(0, rows)
            rows -= part.num_rows
            self._rest = batch.slice(part.num_rows) if part.num_rows < batch.num_rows else None
            yield part


def _parts(sources: Sequence[Source], height: int) -> Iterator[Part]:
    """Yield the parts of tables: groups of ordinary size as they are, small ones together, and large ones in pieces."""
    run = 0
    for source in sources:
        start = 0
        for rows in _together(source.lengths, height):
            pieces = [rows] if source.sequential and rows <= LARGEST_GROUP * height else _pieces(rows, height)
            for piece in pieces:
                yield Part(source, start, piece, run)
                start += piece
                run += not source.sequential
            run += 1


def _check_groups(source: Source, most: int) -> None:
    """Raise if a group is so large that it should not be in memory as a whole, and has to be."""
    largest = max(source.lengths, default=0)
    if source.whole and largest > most:
        raise ValueError(
            f"{source.name} has a compressed record batch of {largest} rows, which would be in memory as a whole: "
            f"expected at most {most} rows; write it again with smaller batches (chunksize of "
            "pyarrow.feather.write_feather), without compression, or as Parquet"
        )


def _together(lengths: Iterable[int], height: int) -> Iterator[int]:
    """Yield sums of the lengths of neighbouring groups that have at most ``height`` rows together."""
    total = 0
    for length in lengths:
        if total and total + length > height:
            yield total
            total = 0
        total += length
    if total:
        yield total


def _pieces(rows: int, height: int) -> list[int]:
    """Return lengths of at most ``height`` that differ by at most 1."""
    count = -(-rows // height)
    return [rows // count + (i < rows % count) for i in range(count)]
