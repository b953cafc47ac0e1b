"""Matrices in files, of which a process reads the columns that it needs and no others."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from scipy import sparse

READ_AT_ONCE = 1 << 24
"""Bytes of an archive that are looked at at a time."""


class ColumnFile:
    """A matrix in a file: ``file[a:b]`` is an array or a sparse matrix of the columns a to b - 1.

    Parameters
    ----------
    path : a dense matrix in ``.npy``, which is memory-mapped, and should be in column order (``order="F"``) so that a
        column need not be looked for all over the file; the folder of a Zarr array, which needs zarr; or a CSC matrix
        in ``.npz`` as ``scipy.sparse.save_npz`` writes it. An ``.npz`` file with a dense matrix, named ``A``, does too.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "A.npy")
    >>> np.save(path, np.asfortranarray(np.arange(12.0).reshape(3, 4)))
    >>> file = ColumnFile(path)
    >>> file[file.share(1, 2)].tolist()
    [[2.0, 3.0], [6.0, 7.0], [10.0, 11.0]]
    """

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        if path.is_dir():
            self._read: _Zarr | _Mapped | _Archive = _Zarr(path)
        elif path.suffix == ".npy":
            self._read = _Mapped(path)
        elif path.suffix == ".npz":
            self._read = _Archive(path)
        elif not path.exists():
            raise FileNotFoundError(f"{path}: no such file")
        else:
            raise ValueError(f"{path.name} has no known ending: expected .npy, .npz, or the folder of a Zarr array")
        self.shape: tuple[int, int] = self._read.shape

    def share(self, rank: int, size: int) -> slice:
        """Return the columns of one of ``size`` processes, where each gets as many."""
        n = self.shape[1]
        return slice(rank * n // size, (rank + 1) * n // size)

    def __getitem__(self, columns: slice) -> Any:
        first, stop, step = columns.indices(self.shape[1])
        if step != 1 or stop <= first:
            raise ValueError(f"columns {columns.start}:{columns.stop}:{columns.step}: expected some neighbours, a:b")
        return self._read.columns(first, stop)


class _Mapped:
    """A ``.npy`` file."""

    def __init__(self, path: Path) -> None:
        self.array = np.load(path, mmap_mode="r")
        self.shape = _matrix_shape(self.array.shape, path)

    def columns(self, first: int, stop: int) -> Any:
        own = self.array[:, first:stop]
        return own if self.array.flags.f_contiguous else np.array(own, order="F")


class _Zarr:
    """A Zarr array, of which the chunks are read that hold some of the columns."""

    def __init__(self, path: Path) -> None:
        try:
            import zarr
        except ImportError:
            raise ImportError(f"{path.name} is a folder, as of a Zarr array: to read it, pip install zarr") from None
        self.array = zarr.open_array(str(path), mode="r")
        self.shape = _matrix_shape(tuple(self.array.shape), path)

    def columns(self, first: int, stop: int) -> Any:
        return np.asfortranarray(self.array[:, first:stop])


class _Archive:
    """An ``.npz`` file: its members are read from where the columns begin to where they end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with zipfile.ZipFile(path) as archive:
            members = set(archive.namelist())
        self.dense = "A.npy" in members
        if self.dense:
            with self._open("A") as member:
                self.shape = _matrix_shape(member.shape, path)
        elif {"indptr.npy", "indices.npy", "data.npy", "shape.npy", "format.npy"} <= members:
            layout = self._entries("format").item()
            if layout not in (b"csc", "csc"):
                raise ValueError(f"{path.name} has a matrix in {layout!r}: expected 'csc', so that columns can be read")
            rows, columns = self._entries("shape").tolist()
            self.shape = rows, columns
            self.start = self._entries("indptr")
        else:
            raise ValueError(f"{path.name} has neither a matrix A nor what scipy.sparse.save_npz writes")

    def columns(self, first: int, stop: int) -> Any:
        rows = self.shape[0]
        if not self.dense:
            begin, end = int(self.start[first]), int(self.start[stop])
            entries = self._entries("data", begin, end), self._entries("indices", begin, end)
            return sparse.csc_matrix((*entries, self.start[first : stop + 1] - begin), shape=(rows, stop - first))
        with self._open("A") as member:
            if member.in_column_order:
                member.skip(first * rows)
                return member.read((stop - first) * rows).reshape((rows, stop - first), order="F")
            own = np.empty((rows, stop - first), member.dtype, order="F")
            strip = max(1, READ_AT_ONCE // (self.shape[1] * member.dtype.itemsize))
            for row in range(0, rows, strip):  # all rows pass by, and what is not ours is left out
                height = min(strip, rows - row)
                own[row : row + height] = member.read(height * self.shape[1]).reshape(height, -1)[:, first:stop]
            return own

    @contextmanager
    def _open(self, name: str) -> Iterator[_Member]:
        with zipfile.ZipFile(self.path) as archive, archive.open(f"{name}.npy") as stream:
            yield _Member(stream, f"{name!r} in {self.path.name}")

    def _entries(self, name: str, first: int = 0, stop: int | None = None) -> Any:
        with self._open(name) as member:
            member.skip(first)
            return member.read((member.size if stop is None else stop) - first)


class _Member:
    """An array in an archive, read from its first entry on in the order in which it is stored."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self.stream = stream
        self.name = name
        header = npy.read_array_header_1_0 if npy.read_magic(stream) == (1, 0) else npy.read_array_header_2_0
        self.shape, self.in_column_order, self.dtype = header(stream)
        self.size = int(np.prod(self.shape))
        if self.dtype.hasobject:
            raise ValueError(f"{name} holds objects: expected numbers")

    def skip(self, entries: int) -> None:
        """Leave out so many entries."""
        left = entries * self.dtype.itemsize
        while left > 0:
            left -= len(self._bytes(left))

    def read(self, entries: int) -> Any:
        """Return the next entries."""
        part = np.empty(entries, self.dtype)
        target, filled = part.view(np.uint8), 0
        while filled < target.size:
            piece = self._bytes(target.size - filled)
            target[filled : filled + len(piece)] = np.frombuffer(piece, np.uint8)
            filled += len(piece)
        return part

    def _bytes(self, most: int) -> bytes:
        piece = self.stream.read(min(most, READ_AT_ONCE))
        if not piece:
            raise ValueError(f"{self.name} ends too soon: the file is not complete")
        return piece


def _matrix_shape(shape: tuple[int, ...], path: Path) -> tuple[int, int]:
    if len(shape) != 2:
        raise ValueError(f"{path.name} has {len(shape)} dimensions: expected a matrix")
    return shape[0], shape[1]
