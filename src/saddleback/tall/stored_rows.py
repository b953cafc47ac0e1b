"""Rows of a dense matrix in a file or a Zarr array, of which only some chunks are in memory at any time."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..common.arrays import Indices, Vector
from ..places.files.operator import Streamed, check_matrix, floating, is_zarr, opened
from ..places.files.stores import Chunked, File, Store, Tile, is_whole_map, window
from .rows import CHUNK_BYTES, Chunk, Rows, one_per_row

LARGEST_CHUNK = 4 * CHUNK_BYTES
"""Largest size of a row of chunks of a Zarr array as float64: chunks are read whole."""


class _Window(NamedTuple):
    """Neighbouring rows, and some columns, of a matrix."""

    store: Store
    start: int
    rows: int
    columns: Indices


class StoredRows(Rows):
    """The rows of a dense matrix in a file or a Zarr array.

    Chunks are read with explicit requests: the pages of a memory map would count as memory of the process.

    Parameters
    ----------
    source : str, Path, memmap, Zarr array or Streamed
        The name of an ``.npy`` file or of the folder of a Zarr array; a memory map of a file, or slices of one; a Zarr
        array; or a ``Streamed`` matrix. Rows of row-major files are read fastest.
    target : array
        One value per row.
    weight : array, optional
        One value per row.
    names : sequence of str, optional
        Names of the columns; "0", "1", ... by default.
    """

    def __init__(self, source: Any, target: Any, weight: Any = None, names: Sequence[Any] | None = None) -> None:
        self._store, self._start, rows, self._columns = _located(source)
        self.names = tuple(map(str, range(self._columns.size) if names is None else names))
        if len(self.names) != self._columns.size:
            raise ValueError(
                f"names has {len(self.names)} names: expected one for each of {self._columns.size} columns"
            )
        self.target = one_per_row("target", target, rows)
        self.weight: Vector | None = None if weight is None else one_per_row("weight", weight, rows)
        height = _height(self._store, self._columns.size)
        lead = -self._start % height  # rows before the first whole chunk of Zarr
        self._bounds = np.unique([0, *range(min(lead, rows), rows, height), rows])
        self.lengths = tuple(np.diff(self._bounds).tolist())

    def chunk(self, number: int) -> Chunk:
        first, end = (int(bound) for bound in self._bounds[number : number + 2])
        tile = Tile(slice(self._start + first, self._start + end), self._columns)
        panel, _ = self._store.read(tile, np.empty(self._store.needs(tile), dtype=np.uint8))
        weight = None if self.weight is None else self.weight[first:end]
        return Chunk(number, first, floating(panel), self.target[first:end], weight)


def _located(source: Any) -> _Window:
    """Return the store of a matrix, and the rows and columns of it that are meant."""
    if isinstance(source, (str, PathLike)):
        source = opened(Path(source))
    if isinstance(source, Streamed):
        return _consecutive(source.store, source.rows, source.columns)
    if not isinstance(source, np.memmap) and not is_zarr(source):
        raise TypeError(
            f"source is {type(source).__name__}: expected a .npy file, a memory map of one, a Zarr array or a Streamed "
            "matrix; a matrix in memory needs ArrayRows"
        )
    check_matrix(source)
    if is_zarr(source):
        return _Window(Chunked.of(source, 0), 0, source.shape[0], np.arange(source.shape[1]))
    if is_whole_map(source) and source.mode != "c":  # changes of a copy-on-write map are not in the file
        return _Window(File.of(source, "source"), 0, source.shape[0], np.arange(source.shape[1]))
    part = window(source)
    if part is None:
        raise ValueError("source is a memory map that does not show rows and columns of a file: expected slices")
    return _consecutive(File.of(part.whole, "source"), part.rows, part.columns)


def _consecutive(store: Store, rows: Indices, columns: Indices) -> _Window:
    if np.any(np.diff(rows) != 1):
        raise ValueError("source shows some rows of a file only: expected neighbouring rows; give the others weight 0")
    return _Window(store, int(rows[0]), rows.size, columns)


def _height(store: Store, columns: int) -> int:
    """Return the number of rows of a chunk: for Zarr a multiple of those of its own chunks, which are read whole."""
    row_bytes = 8 * (columns if store.reads_columns else store.shape[1])
    height = max(1, CHUNK_BYTES // row_bytes)
    chunks = getattr(store, "chunks", (1, 1))
    unit = min(chunks[0], store.shape[0])
    if unit > height and unit * row_bytes > LARGEST_CHUNK:
        raise ValueError(
            f"source is a Zarr array of {store.shape[0]} x {store.shape[1]} with chunks of {chunks[0]} x {chunks[1]}: "
            f"expected chunks of at most {LARGEST_CHUNK // row_bytes} rows, to be read a few rows at a time; store it "
            "with other chunks"
        )
    return int(max(1, height // unit) * unit)
