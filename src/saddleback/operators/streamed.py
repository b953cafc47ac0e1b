"""A dense matrix that does not fit in memory, read in tiles while the last one is worked on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .. import _native
from ..functions._base import Columns, Indices, Vector
from ._base import Operator, one_by_one
from .dense import Dense
from .stores import Chunked, File, Store, Tile

TILE = 8 << 20
"""Bytes of a tile at the most: what the cache of a processor holds, so that work on it costs no further reading."""

TILES = 16
"""Tiles, of which two are in memory at a time, that the memory bound has room for."""

PACKED, MATRIX = 0.5, 0.25
"""Shares of the memory bound for columns that are packed, and for a matrix that is made of them. The rest is for tiles,
vectors and the interpreter."""


class Budget:
    """How many bytes may be held, and how many are."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.held = 0.0

    def fits(self, size: float) -> bool:
        """Return whether there is room for so much more."""
        return self.held + size <= self.limit

    def hold(self, array: NDArray[Any]) -> NDArray[Any]:
        """Count an array for as long as it lives."""
        self.held += array.nbytes
        finalize(array, self._release, array.nbytes)
        return array

    def _release(self, size: float) -> None:
        self.held -= size


class Piece(NamedTuple):
    """A part of the matrix in memory: which of its rows and columns, and the entries."""

    rows: Indices | slice
    columns: Indices
    block: Dense


class Streamed(Operator):
    """A dense matrix in a file or a Zarr array, of which only some is ever in memory.

    Parameters
    ----------
    source : an ``.npy`` file or a folder with a Zarr array, by name; a memory map of a whole file; or a Zarr array.
        Column-major files and arrays whose chunks are a few columns wide are read column by column, where a method
        asks for some of them; row-major ones are read as a whole for every product.
    memory : bytes that a solve may take, all in all.

    Attributes
    ----------
    reads : how often the matrix was read so far, as a sum of the shares of it that were.
    """

    explicit = True

    def __init__(self, source: Any, memory: float = 1e9) -> None:
        if isinstance(memory, bool) or not isinstance(memory, (int, float, np.number)) or not memory > 0:
            raise ValueError(f"memory={memory!r}: expected a positive number of bytes, such as 1e9")
        store = _store(source, int(memory / TILES))
        self._begin(store, np.arange(store.shape[0]), np.arange(store.shape[1]), memory, Budget(PACKED * memory), [0])
        if store.reads_columns:
            self.panels = np.append(np.arange(0, self.shape[1], self._width()), self.shape[1])

    def _begin(
        self, store: Store, rows: Indices, columns: Indices, memory: float, budget: Budget, count: list[int]
    ) -> None:
        self.store, self.rows, self.columns = store, rows, columns
        self.memory, self.budget, self.count = memory, budget, count
        self.room = MATRIX * memory
        self.all_rows = rows.size == store.shape[0] and np.array_equal(rows, np.arange(rows.size))
        self.shape = (rows.size, columns.size)
        self.stored = rows.size * columns.size
        self.reads_columns = self.is_matrix = store.reads_columns
        self.panels = np.array([0, columns.size])

    def _width(self) -> int:
        """Return how many columns a tile has, where it has all rows."""
        return int(self.store.tiles(np.arange(self.store.shape[1]), self._tile())[0].columns.size)

    def _tile(self) -> int:
        return int(min(TILE, self.memory / TILES))

    @property
    def reads(self) -> float:
        """How often the matrix was read so far."""
        m, n = self.store.shape
        return self.count[0] / (m * n * self.store.dtype.itemsize)

    def pieces(self, columns: Columns | None = None) -> Iterator[Piece]:
        """Yield all rows of some columns, all by default, a tile at a time, while the next one is read.

        The places of the columns are those in what was asked for. A block is gone when the next one comes.
        """
        asked = self.columns if columns is None else self.columns[columns]
        order = np.argsort(asked, kind="stable")
        rising = asked[order]
        tiles = self.store.tiles(np.unique(rising), self._tile()) if rising.size else []
        for tile, block in self._ahead(tiles):
            a, b = np.searchsorted(rising, [tile.columns[0], tile.columns[-1] + 1])
            if b - a != tile.columns.size:  # a column that was asked for more than once
                block = block[:, np.searchsorted(tile.columns, rising[a:b])]
            if self.all_rows:
                yield Piece(tile.rows, order[a:b], Dense(block))
                continue
            here = np.flatnonzero((self.rows >= tile.rows.start) & (self.rows < tile.rows.stop))
            if here.size:
                yield Piece(here, order[a:b], Dense(block[self.rows[here] - tile.rows.start]))

    def _ahead(self, tiles: Sequence[Tile]) -> Iterator[tuple[Tile, NDArray[Any]]]:
        """Yield tiles with their entries, each while the next one is read."""
        if not tiles:
            return
        buffers = [np.empty(max(map(self.store.needs, tiles)), dtype=np.uint8) for _ in range(2)]
        with ThreadPoolExecutor(1) as reader:
            coming = reader.submit(self.store.read, tiles[0], buffers[0])
            for i, tile in enumerate(tiles):
                block, read = coming.result()
                self.count[0] += read
                if i + 1 < len(tiles):
                    coming = reader.submit(self.store.read, tiles[i + 1], buffers[(i + 1) % 2])
                yield tile, _floating(block)

    def _load(self, runs: Sequence[Indices]) -> Iterator[Operator]:
        tiles = [Tile(slice(0, self.store.shape[0]), self.columns[run]) for run in runs]
        for _, block in self._ahead(tiles):
            yield Dense(block if self.all_rows else block[self.rows])

    def matvec(self, x: Vector) -> Vector:
        some = np.flatnonzero(x)
        return self.columns_matvec(some, x[some])

    def rmatvec(self, y: Vector) -> Vector:
        return self.columns_rmatvec(np.arange(self.shape[1]), y)

    def columns_matvec(self, columns: Columns, x: Vector) -> Vector:
        total = np.zeros(self.shape[0])
        for rows, own, block in self.pieces(columns):
            total[rows] += block.matvec(x[own])
        return total

    def columns_rmatvec(self, columns: Columns, y: Vector) -> Vector:
        columns = one_by_one(columns)
        result = np.zeros(columns.size)
        for rows, own, block in self.pieces(columns):
            result[own] += block.rmatvec(np.ascontiguousarray(y[rows]))
        return result

    def sums(self, power: int) -> tuple[Vector, Vector]:
        of_columns, of_rows = np.zeros(self.shape[1]), np.zeros(self.shape[0])
        for rows, own, block in self.pieces():
            columns, across = block.sums(power)
            of_columns[own] += columns
            of_rows[rows] += across
        return of_columns, of_rows

    def survey(self, y: Vector) -> None:
        of_columns, of_rows, product = np.zeros(self.shape[1]), np.zeros(self.shape[0]), np.zeros(self.shape[1])
        for rows, own, block in self.pieces():
            columns, across, here = _native.dense_survey(np.asfortranarray(block.array), np.ascontiguousarray(y[rows]))
            of_columns[own] += columns
            of_rows[rows] += across
            product[own] += here
        self.squares, self.surveyed = (of_columns, of_rows), (y, product)

    def not_finite(self) -> tuple[list[int], float] | None:
        """Return where the first entry is that is not finite, and its value."""
        for rows, own, block in self.pieces():
            bad = np.argwhere(~np.isfinite(block.array))
            if bad.size:
                row, column = bad[0]
                return [int(np.arange(self.shape[0])[rows][row]), int(own[column])], float(block.array[row, column])
        return None

    def squares_rmatvec(self, y: Vector) -> Vector:
        result = np.zeros(self.shape[1])
        for rows, own, block in self.pieces():
            result[own] += block.squares_rmatvec(y[rows])
        return result

    def largest(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        of_columns, of_rows = np.zeros(self.shape[1]), np.zeros(self.shape[0])
        for here, own, block in self.pieces():
            down, across = block.largest(columns[own], rows[here])
            of_columns[own] = np.maximum(of_columns[own], down)
            of_rows[here] = np.maximum(of_rows[here], across)
        return of_columns, of_rows

    def absolute_products(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        of_columns, of_rows = np.zeros(self.shape[1]), np.zeros(self.shape[0])
        for here, own, block in self.pieces():
            down, across = block.absolute_products(columns[own], rows[here])
            of_columns[own] += down
            of_rows[here] += across
        return of_columns, of_rows

    def block_row_sums(self, columns: Columns) -> Vector:
        total = np.zeros(self.shape[0])
        for rows, own, block in self.pieces(columns):
            total[rows] += block.block_row_sums(np.arange(own.size))
        return total

    def dense_columns(self, columns: Indices) -> Vector:
        self._afford(8.0 * self.shape[0] * columns.size)
        return self._in_memory(columns, np.dtype(np.float64))

    def _afford(self, size: float) -> None:
        """Raise where a matrix of so many bytes is more than the memory bound has room for."""
        if size > self.room:
            raise MemoryError(
                f"a matrix of {size / 1e9:.2g} GB is needed, and memory={self.memory:.2g} leaves {self.room / 1e9:.2g} "
                "for it: allow more, or use method='sp-bcd', which needs none"
            )

    def _in_memory(self, columns: Indices, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return some columns."""
        result = np.empty((self.shape[0], columns.size), dtype=dtype, order="F")
        for rows, own, block in self.pieces(columns):
            result[np.ix_(np.arange(self.shape[0])[rows], own)] = block.array
        return result

    def compressed(self) -> Any:
        self._afford(12.0 * self.stored)  # eight bytes for an entry and four for its place
        return super().compressed()

    def gram(self, columns: Indices, weight: Vector) -> Vector:
        self._afford(8.0 * columns.size**2)
        asked, places = np.unique(self.columns[columns], return_inverse=True)
        wide = asked.size if self.store.reads_columns else self.store.shape[1]
        height = max(1, self._tile() // max(1, wide * self.store.dtype.itemsize))
        m = self.store.shape[0]
        tiles = [Tile(slice(a, min(a + height, m)), asked) for a in range(0, m, height)] if columns.size else []
        weights = np.zeros(m)
        weights[self.rows] = weight
        total = np.zeros((columns.size, columns.size))
        for tile, block in self._ahead(tiles):
            total += Dense(block[:, places]).gram(np.arange(columns.size), weights[tile.rows])
        return total

    def outer(self, weight: Vector) -> Vector:
        self._afford(8.0 * self.shape[0] ** 2)
        if not self.reads_columns:
            return super().outer(weight)
        return np.asarray(sum(block.outer(weight[own]) for _, own, block in self.pieces()))

    def times(self, matrix: Any) -> Vector:
        result = np.zeros((self.shape[0], matrix.shape[1]))
        of_columns = sparse.csr_array(matrix)
        for rows, own, block in self.pieces():
            result[rows] += np.asarray(block.array @ of_columns[own])
        return result

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        if self.budget.fits(rows.size * columns.size * _floating_type(self.store.dtype).itemsize):
            return self._view(rows, columns)._packed(np.arange(columns.size), False)
        return self._view(rows, columns)

    def pack(self, columns: Indices, single: bool) -> Operator:
        if columns.size and not (columns.min() >= 0 and columns.max() < self.shape[1]):
            raise ValueError(f"a column lies outside of the {self.shape[1]} that there are")
        itemsize = 4 if single else _floating_type(self.store.dtype).itemsize
        if self.budget.fits(self.shape[0] * columns.size * itemsize):
            return self._packed(columns, single)
        return self._view(np.arange(self.shape[0]), columns)

    def _packed(self, columns: Indices, single: bool) -> Operator:
        dtype = np.dtype(np.float32) if single else _floating_type(self.store.dtype)
        return Dense(self.budget.hold(self._in_memory(columns, dtype)))

    def _view(self, rows: Indices, columns: Indices) -> Streamed:
        """Return the matrix between some rows and columns, as much on disk as this one."""
        view = object.__new__(Streamed)
        view._begin(self.store, self.rows[rows], self.columns[columns], self.memory, self.budget, self.count)
        if self.reads_columns:
            view.panels = np.append(np.arange(0, columns.size, self._width()), columns.size)
        return view


def _floating_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)


def _floating(block: NDArray[Any]) -> NDArray[Any]:
    return block.astype(_floating_type(block.dtype), copy=False)


def is_zarr(source: Any) -> bool:
    """Return whether an object is a Zarr array, without importing Zarr."""
    return type(source).__module__.partition(".")[0] == "zarr" and hasattr(source, "chunks")


def _store(source: Any, tile: int) -> Store:
    """Return the store that a source names, or raise where it is no dense matrix of real numbers."""
    if isinstance(source, (str, PathLike)):
        source = _opened(Path(source))
    if is_zarr(source):
        _check(source)
        return Chunked.of(source, tile)
    if isinstance(source, np.memmap):
        _check(source)
        return File.of(source, "source")
    raise TypeError(
        f"source is {type(source).__name__}: expected a .npy file, a memory map of one, or a Zarr array; a matrix in "
        "memory needs no Streamed"
    )


def _opened(path: Path) -> Any:
    if path.is_dir():
        try:
            import zarr
        except ImportError:
            raise ImportError("a Zarr array needs zarr: pip install 'saddleback[zarr]'") from None
        return zarr.open_array(path, mode="r")
    if not path.is_file():
        raise FileNotFoundError(f"source={str(path)!r} is neither a file nor a folder")
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise ValueError(f"source={str(path)!r} is not a whole .npy file as numpy.save writes it ({error})") from None


def _check(source: Any) -> None:
    if len(source.shape) != 2 or 0 in source.shape:
        raise ValueError(f"source has the shape {tuple(source.shape)}: expected a matrix with rows and columns")
    dtype = np.dtype(source.dtype)
    if dtype.kind not in "biuf" or not dtype.isnative:
        raise TypeError(f"source has dtype {dtype}: expected real numbers in the byte order of this machine")
