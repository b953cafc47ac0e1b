"""The stores of streamed matrices (files in column or row order, Zarr arrays), and how to read them in tiles."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from mmap import ALLOCATIONGRANULARITY
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...common.arrays import Indices, Vector
from ...common.damage import damage
from .read_at import open_to_read, read_at

PROBES = 16
"""Number of entries by which a memory map and the file of its name are compared."""


class Tile(NamedTuple):
    """Entries that are read together: neighbouring rows, and some columns."""

    rows: slice
    columns: Indices


class Store(ABC):
    """A dense matrix outside of memory.

    Attributes
    ----------
    shape, dtype : shape and type of the matrix.
    reads_columns : whether some columns can be read without the others.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    reads_columns: bool

    @abstractmethod
    def tiles(self, columns: Indices, size: int) -> list[Tile]:
        """Return tiles of at most ``size`` bytes that cover all rows of some columns, which are in increasing order.

        A tile has at least one column, or one row, or one chunk, even if that is larger.
        """

    @property
    @abstractmethod
    def smallest(self) -> int:
        """The bytes of the smallest possible tile."""

    def needs(self, tile: Tile) -> int:
        """Return the bytes of the buffer into which a tile is read."""
        columns = tile.columns.size if self.reads_columns else self.shape[1]
        return int((tile.rows.stop - tile.rows.start) * columns * self.dtype.itemsize)

    @abstractmethod
    def read(self, tile: Tile, buffer: NDArray[np.uint8]) -> tuple[NDArray[Any], int]:
        """Return the entries of a tile, in the buffer if possible, and the number of bytes read."""


def groups(columns: Indices, width: int) -> list[Indices]:
    """Return neighbouring entries in groups of a width."""
    return [columns[a : a + width] for a in range(0, columns.size, width)]


@dataclass(frozen=True)
class File(Store):
    """An array in a file, beginning at an offset."""

    path: Path
    offset: int
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    reads_columns: bool
    handle: int

    @classmethod
    def of(cls, array: np.memmap[Any, Any], name: str) -> File:
        """Return the store of a whole memory map; nothing is read through the map: its pages would count as memory."""
        if array.filename is None:
            raise TypeError(f"{name} is a memory map without a file: expected one of np.load(path, mmap_mode='r')")
        by_columns = bool(array.flags.f_contiguous)
        store = cls._open(Path(array.filename), array.offset, array.shape, array.dtype, by_columns)
        flat = (array.T if by_columns else array).reshape(-1)
        for place in np.unique(np.linspace(0, flat.size - 1, PROBES).astype(np.int64)).tolist():
            entry = bytearray(array.dtype.itemsize)
            read_at(store.handle, memoryview(entry), array.offset + place * array.dtype.itemsize)
            if entry != flat[place].tobytes():
                raise ValueError(f"{name} is a memory map of {store.path}, which is another file by now: map it again")
        return store

    @classmethod
    def _open(cls, path: Path, offset: int, shape: tuple[int, int], dtype: np.dtype[Any], reads_columns: bool) -> File:
        return cls(path, offset, shape, dtype, reads_columns, open_to_read(path))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._open, (
            self.path,
            self.offset,
            self.shape,
            self.dtype,
            self.reads_columns,
        )  # the copy opens the file again

    def __del__(self) -> None:
        os.close(self.handle)

    @property
    def smallest(self) -> int:
        return self.shape[0 if self.reads_columns else 1] * self.dtype.itemsize

    def tiles(self, columns: Indices, size: int) -> list[Tile]:
        rows, itemsize = self.shape[0], self.dtype.itemsize
        if self.reads_columns:
            width = max(1, size // (rows * itemsize))
            return [Tile(slice(0, rows), group) for group in groups(columns, width)]
        height = max(1, size // (self.shape[1] * itemsize))
        return [Tile(slice(a, min(a + height, rows)), columns) for a in range(0, rows, height)]

    def read(self, tile: Tile, buffer: NDArray[np.uint8]) -> tuple[NDArray[Any], int]:
        itemsize = self.dtype.itemsize
        if not self.reads_columns:
            height, width = tile.rows.stop - tile.rows.start, self.shape[1]
            whole = self._fill(buffer, 0, tile.rows.start * width, height * width).view(self.dtype)
            panel = whole.reshape(height, width)
            some = panel if tile.columns.size == width else panel[:, tile.columns]
            return some, whole.nbytes
        rows, size = tile.rows.stop - tile.rows.start, tile.columns.size
        cut = np.diff(tile.columns) != 1 if rows == self.shape[0] else np.ones(size - 1, dtype=bool)
        ends = [0, *(np.flatnonzero(cut) + 1).tolist(), size]
        for a, b in pairwise(ends):  # runs of neighbouring columns in the file
            first = int(tile.columns[a]) * self.shape[0] + tile.rows.start
            self._fill(buffer, a * rows * itemsize, first, (b - a) * rows)
        whole = buffer[: size * rows * itemsize].view(self.dtype)
        return whole.reshape(size, rows).T, whole.nbytes

    def _fill(self, buffer: NDArray[np.uint8], at: int, first: int, count: int) -> NDArray[np.uint8]:
        """Read ``count`` entries, beginning with the entry ``first``, into the buffer at ``at``."""
        itemsize = self.dtype.itemsize
        part = buffer[at : at + count * itemsize]
        view, done = part.data, 0
        while done < part.size:
            got = read_at(self.handle, view[done:], self.offset + first * itemsize + done)
            if got == 0:
                raise OSError(f"{self.path} ends before its last entry: it was truncated")
            done += got
        return part


@dataclass(frozen=True)
class Chunked(Store):
    """A Zarr array, read in pieces of whole chunks."""

    array: Any
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    chunks: tuple[int, int]
    reads_columns: bool

    @classmethod
    def of(cls, array: Any, size: int) -> Chunked:
        """Return the store of an array; it is read by columns if a column of chunks has at most ``size`` bytes."""
        dtype, chunks = np.dtype(array.dtype), tuple(array.chunks)
        return cls(array, tuple(array.shape), dtype, chunks, array.shape[0] * chunks[1] * dtype.itemsize <= size)

    @property
    def smallest(self) -> int:
        return int(np.prod(np.minimum(self.chunks, self.shape))) * self.dtype.itemsize

    def tiles(self, columns: Indices, size: int) -> list[Tile]:
        (rows, _), (height, width) = self.shape, self.chunks
        wide = max(1, size // (rows * width * self.dtype.itemsize)) * width if self.reads_columns else width
        ends = np.flatnonzero(np.diff(columns // wide)) + 1
        return [
            Tile(slice(a, min(a + (rows if self.reads_columns else height), rows)), group)
            for group in np.split(columns, ends)
            for a in range(0, rows, rows if self.reads_columns else height)
        ]

    def read(self, tile: Tile, buffer: NDArray[np.uint8]) -> tuple[NDArray[Any], int]:
        columns = tile.columns
        together = bool(np.all(np.diff(columns) == 1))
        where = slice(int(columns[0]), int(columns[-1]) + 1) if together else columns
        with damage(f"the Zarr array {getattr(self.array, 'store_path', self.array.name)}"):
            panel = np.asarray(self.array.oindex[tile.rows, where])
        chunks = np.unique(columns // self.chunks[1]).size  # each is read whole
        width = min(chunks * self.chunks[1], self.shape[1])
        return np.asfortranarray(panel), panel.shape[0] * width * self.dtype.itemsize


@dataclass(frozen=True)
class Centred(Store):
    """A store minus one number per column, which is subtracted when entries are read, as float32 or float64."""

    inner: Store
    centre: Vector
    floats: np.dtype[Any]
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    reads_columns: bool

    @classmethod
    def of(cls, inner: Store, centre: Vector, floats: np.dtype[Any]) -> Centred:
        """Return a centred store, which is read like another one."""
        return cls(inner, centre, floats, inner.shape, inner.dtype, inner.reads_columns)

    @property
    def smallest(self) -> int:
        return self.inner.smallest

    def tiles(self, columns: Indices, size: int) -> list[Tile]:
        return self.inner.tiles(columns, size)

    def read(self, tile: Tile, buffer: NDArray[np.uint8]) -> tuple[NDArray[Any], int]:
        panel, read = self.inner.read(tile, buffer)
        less = panel.astype(self.floats, copy=False)
        np.subtract(less, self.centre[tile.columns], out=less, casting="same_kind")
        return less, read


class Window(NamedTuple):
    """Rows and columns of the matrix of a whole file."""

    whole: Any
    rows: Indices
    columns: Indices


def window(array: np.memmap[Any, Any]) -> Window | None:
    """Return the rows and columns of a file that a memory map, or a slice of one, shows; None for any other part."""
    whole: Any = array
    while isinstance(whole, np.memmap) and not is_whole_map(whole):
        whole = whole.base
    if not isinstance(whole, np.memmap) or array.ndim != 2 or whole.ndim != 2 or 0 in array.shape:
        return None
    if array.dtype != whole.dtype or whole.mode == "c":  # changes of a copy-on-write map are not in the file
        return None
    return _window(array, whole) or _window(array, whole.T)


def _window(array: Any, whole: Any) -> Window | None:
    """Return which rows and columns of a whole map another map shows; None if it shows something else."""
    between, places = _address(array) - _address(whole), [np.arange(0), np.arange(0)]
    for axis in sorted((0, 1), key=lambda axis: -whole.strides[axis]):
        first, between = divmod(between, whole.strides[axis])
        step, rest = divmod(array.strides[axis], whole.strides[axis])
        if rest and array.shape[axis] > 1:
            return None
        places[axis] = first + step * np.arange(array.shape[axis])
        if places[axis].min() < 0 or places[axis].max() >= whole.shape[axis]:
            return None
    return Window(whole, *places) if between == 0 else None


def is_whole_map(array: Any) -> bool:
    """Return whether a memory map is the whole map of its file: a slice only knows the offset of the whole map."""
    if array._mmap is None or not (array.flags.f_contiguous or array.flags.c_contiguous):
        return False
    return bool(len(array._mmap) == array.nbytes + array.offset % ALLOCATIONGRANULARITY)


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])
