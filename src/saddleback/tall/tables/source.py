"""The contract of a table whose rows can be read in parts, and the table in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import pyarrow as pa


class Source(ABC):
    """A table of named columns. It can be pickled, and read by several threads at once.

    Attributes
    ----------
    name : the name in messages; empty for a table in memory.
    schema : names and types of the columns.
    lengths : numbers of rows of the groups in which the table is stored.
    sequential : whether rows within a group can only be reached by reading all rows of the group before them.
    whole : whether even a large group is read as a whole for any of its rows.
    """

    name: str
    schema: pa.Schema
    lengths: tuple[int, ...]
    sequential: bool
    whole: bool = False

    @abstractmethod
    def batches(self, first: int, rows: int, columns: Sequence[str], height: int) -> Iterator[pa.RecordBatch]:
        """Yield some rows of some columns in batches, which have about ``height`` rows if the storage has a choice."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self.lengths)

    def place(self, row: int) -> str:
        """Return the place of a row, for messages."""
        return f"row {row} of {self.name}" if self.name else f"row {row}"


class InMemory(Source):
    """A table in memory."""

    name, sequential = "", False

    def __init__(self, table: pa.Table) -> None:
        self.table, self.schema, self.lengths = table, table.schema, (table.num_rows,)

    def batches(self, first: int, rows: int, columns: Sequence[str], height: int) -> Iterator[pa.RecordBatch]:
        yield from self.table.select(list(columns)).slice(first, rows).to_batches()


def overlapping(lengths: Sequence[int], first: int, rows: int) -> tuple[list[int], int]:
    """Return the groups that have some of the given rows, and the number of rows of these groups before the first."""
    starts = list(accumulate(lengths, initial=0))
    groups = [
        group
        for group, (start, length) in enumerate(zip(starts, lengths, strict=False))
        if start < first + rows and first < start + length
    ]
    return groups, first - starts[groups[0]]


def trimmed(batches: Iterable[pa.RecordBatch], skipped: int, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield rows of batches without the first ``skipped``, and no more than ``rows``."""
    for batch in batches:
        part = batch.slice(skipped, rows)
        skipped = max(0, skipped - batch.num_rows)
        rows -= part.num_rows
        if part.num_rows:
            yield part
        if rows == 0:
            return
