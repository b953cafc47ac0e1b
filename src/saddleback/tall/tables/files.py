"""Tables in Parquet and Arrow files."""

from __future__ import annotations

import hashlib
import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from .arrow_messages import batch_headers
from .column_types import is_text
from .source import Source, overlapping, trimmed

BUFFER = 1 << 18
"""Bytes of a column of a Parquet file that are read at once, so that a large row group is never held as a whole."""

ENDING = 1 << 16
"""Bytes at the end of a file, where it describes its contents, that are compared when it is opened again."""

_opened = threading.local()
"""The file that a thread has read last, and its reader: the footer of a file with many groups takes long to read."""


class State(NamedTuple):
    """What a file system says of a file; it changes if the file is written or replaced."""

    inode: int | None
    size: int | None
    time: int | None


class TableFile(Source):
    """A table in a file, which may not change as long as its rows are read."""

    def __init__(self, path: str, filesystem: pyarrow.fs.FileSystem, name: str) -> None:
        self.path, self.filesystem, self.name = path, filesystem, name
        self._state = self._state_now()
        try:
            self._describe()
            self._ending = self._ending_now()
        except pa.ArrowMemoryError:
            raise
        except (pa.ArrowException, ValueError, OSError) as error:
            raise ValueError(f"path: {path} cannot be read ({error}): write the file again") from None

    def _state_now(self) -> State:
        info, inode = self.filesystem.get_file_info(self.path), None
        if isinstance(self.filesystem, pyarrow.fs.LocalFileSystem):
            with suppress(OSError):
                inode = os.stat(self.path).st_ino
        return State(inode, info.size, info.mtime_ns)

    def _ending_now(self) -> bytes:
        with self._open() as file:
            size = file.size()
            file.seek(max(size - ENDING, 0))
            return hashlib.sha256(file.read()).digest()

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Raise if the file cannot be read, or changes before the end of a block."""
        try:
            if self._state_now() != self._state:
                raise self._changed()
            yield
        except pa.ArrowMemoryError:
            raise
        except (pa.ArrowException, ValueError, OSError) as error:
            if self._state_now() != self._state:
                raise self._changed() from None
            raise ValueError(f"{self.path} cannot be read ({error}): write the file again") from None
        if self._state_now() != self._state:
            raise self._changed()

    @abstractmethod
    def _describe(self) -> None:
        """Read what the file says about itself: its schema and the lengths of its groups."""

    def _open(self) -> Any:
        """Return the file for reading, without a memory map, whose pages would count as memory."""
        return self.filesystem.open_input_file(self.path)

    def _reader(self, make: Callable[[], Any], lengths: Callable[[Any], tuple[int, ...]]) -> Any:
        """Return the reader of the file in this thread; it is made if the thread has read another file since."""
        if getattr(_opened, "source", None) is not self:
            reader = make()
            if lengths(reader) != self.lengths or self._ending_now() != self._ending:
                raise self._changed()
            _opened.source, _opened.reader = self, reader
        return _opened.reader

    def _changed(self) -> ValueError:
        return ValueError(
            f"{self.path} is another file by now, or was changed: make the rows of it again, and leave the file as it "
            "is until the fit ends"
        )


class ParquetFile(TableFile):
    """A table in a Parquet file, whose groups are its row groups."""

    sequential = True

    def _describe(self) -> None:
        with pq.ParquetFile(self._open()) as file:
            self.schema, self.lengths = file.schema_arrow, _row_groups(file)

    def _make(self) -> pq.ParquetFile:
        text = [field.name for field in self.schema if is_text(field.type)]
        return pq.ParquetFile(self._open(), read_dictionary=text, pre_buffer=False, buffer_size=BUFFER)

    def batches(self, first: int, rows: int, columns: Sequence[str], height: int) -> Iterator[pa.RecordBatch]:
        groups, skipped = overlapping(self.lengths, first, rows)
        with self._unchanged():
            reader = self._reader(self._make, _row_groups)
            some = reader.iter_batches(min(height, rows), row_groups=groups, columns=list(columns), use_threads=False)
            yield from trimmed(some, skipped, rows)


class ArrowFile(TableFile):
    """A table in an Arrow IPC file, also known as Feather, whose groups are its record batches.

    Of a local file without compression, some rows are copied from a memory map, which is closed at once. All others are
    read with one request per batch, which has to fit in memory.
    """

    def _describe(self) -> None:
        with self._open() as source, pa.ipc.open_file(source) as file:
            self.schema, headers = file.schema, batch_headers(source) if file.num_record_batches else []
        self.lengths = tuple(header.rows for header in headers)
        local = isinstance(self.filesystem, pyarrow.fs.LocalFileSystem)
        self.sequential = self.whole = not local or any(header.compressed for header in headers)

    def _file(self, columns: Sequence[str]) -> pa.ipc.RecordBatchFileReader:
        if not self.sequential:
            return pa.ipc.open_file(pa.memory_map(self.path))
        fields = [self.schema.get_field_index(name) for name in columns]
        return pa.ipc.open_file(self._open(), options=pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False))

    def batches(self, first: int, rows: int, columns: Sequence[str], height: int) -> Iterator[pa.RecordBatch]:
        groups, skipped = overlapping(self.lengths, first, rows)
        with self._unchanged(), self._file(columns) as file:
            if file.num_record_batches != len(self.lengths) or self._ending_now() != self._ending:
                raise self._changed()
            batches = (file.get_batch(group).select(list(columns)) for group in groups)
            yield from trimmed(batches, skipped, rows)


def _row_groups(file: pq.ParquetFile) -> tuple[int, ...]:
    metadata = file.metadata
    return tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))


KINDS: dict[bytes, type[TableFile]] = {b"PAR1": ParquetFile, b"ARRO": ArrowFile}
"""The kinds of files by their first bytes."""
