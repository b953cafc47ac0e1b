"""A dense matrix that does not fit in memory: it is read in tiles, each while the kernels work on the one before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from functools import partial, reduce
from os import PathLike
from pathlib import Path
from queue import SimpleQueue
from tokenize import TokenError
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ... import _native
from ...common.arrays import Columns, Indices, Vector
from ...common.rebuildable import stored
from ...common.rounded import Rounded
from ...operators.above import Above
from ...operators.contract import Operator, Side, Weights, chosen, compressed_by_panels, one_by_one, spread
from ...operators.dense import Dense
from ...operators.memory import bytes_in_memory
from ...operators.stacked import Stacked, leaves, parts_of
from ...operators.traits import Traits
from .stores import Centred, Chunked, File, Store, Tile, window

TILE = 8 << 20
"""Largest size of a tile in bytes: it fits into the cache of a processor."""

TILES = 16
"""Tiles that the memory bound has room for."""

WORKERS, AHEAD = 4, 3
"""Tiles in memory at a time: WORKERS if each thread reads a tile and works on it, and AHEAD that are read in advance if
one thread works on a tile while others are read."""

REREAD_COST = 64
"""Number of passes over some columns in memory that take as long as reading the whole file for them."""

VECTORS = 12
"""Smallest number of vectors of the size of x, and of the size of y, in a run."""

PACKED, MATRIX = 1 / 3, 0.25
"""Shares of the memory bound for packed columns, and for a matrix made of them. While one working set replaces another,
both are in memory; the smaller has at most half the size of the other. The rest is for tiles, vectors and the
interpreter."""

T = TypeVar("T")
Rows: TypeAlias = Indices | slice


class Piece(NamedTuple):
    """A part of the matrix in memory: its rows, its columns and its entries."""

    rows: Rows
    columns: Indices
    block: Dense


@stored
@dataclass
class Product:
    """The last A'y of a run, which the certificate of the result needs again."""

    y: Vector = field(default_factory=lambda: np.empty(0))
    found: Vector = field(default_factory=lambda: np.empty(0))


class Streamed(Operator):
    """A dense matrix in a file or a Zarr array, of which only a part is in memory at any time.

    Parameters
    ----------
    source : str, Path, memmap or Zarr array
        The name of an ``.npy`` file or of the folder of a Zarr array; a memory map of a file, or slices of one; or a
        Zarr array. From column-major files, and from arrays whose chunks are a few columns wide, single columns are
        read. Row-major files are read as a whole for every product.
    memory : float, default 1e9
        Bytes that a solve may use in total. This number and the sizes alone decide what is packed in memory and what
        stays in the file, so that a repeated run is the same.

    Attributes
    ----------
    reads : float
        How often the matrix was read so far; reading a part counts as that fraction.
    """

    last: Product | None = None

    def __init__(self, source: Any, memory: float = 1e9) -> None:
        if isinstance(memory, bool) or not isinstance(memory, (int, float, np.number)) or memory != memory // 1:
            raise ValueError(f"memory={memory!r}: expected a whole number of bytes, such as 1e9")
        store, rows, columns = _store(source, memory)
        least = 8 * VECTORS * sum(store.shape) + WORKERS * store.smallest
        if memory < least:
            raise ValueError(
                f"memory={memory!r}: a matrix of {store.shape[0]} x {store.shape[1]} needs at least {least} bytes for "
                f"{VECTORS} vectors of each side and {WORKERS} tiles; allow more"
            )
        self._begin(store, rows, columns, memory, PACKED * memory, [0])

    def _begin(
        self, store: Store, rows: Indices, columns: Indices, memory: float, packed: float, count: list[int]
    ) -> None:
        self.store, self.rows, self.columns = store, rows, columns
        self.memory, self.most_packed, self.count = memory, packed, count
        self.all_rows = rows.size == store.shape[0] and np.array_equal(rows, np.arange(rows.size))
        self.shape = (rows.size, columns.size)
        stored, whole = rows.size * columns.size, np.array([0, columns.size])
        if store.reads_columns:
            panels = np.append(np.arange(0, columns.size, self._width()), columns.size)
            self.traits = Traits(stored, panels=panels, budget=MATRIX * memory)
            return
        launch_cost = min(stored // REREAD_COST, int(packed / 2) // 8)
        self.traits = Traits(stored, panels=whole, budget=MATRIX * memory, reads_columns=False, launch_cost=launch_cost)

    def _width(self) -> int:
        """Return the number of columns of a tile that has all rows."""
        return int(self.store.tiles(np.arange(self.store.shape[1]), self._tile())[0].columns.size)

    def _tile(self) -> int:
        return _tile_bytes(self.memory, self.store.dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the entries in memory; integers become float64."""
        return _floating_type(self.store.dtype)

    def __repr__(self) -> str:
        order = "read by columns" if self.traits.reads_columns else "read as a whole, as row-major files are"
        return f"Streamed({self.shape[0]} x {self.shape[1]} {self.store.dtype}, {order}, memory={self.memory:.3g})"

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        raise TypeError(
            "a streamed matrix is never an array as a whole: sb.Problem and the linear models of saddleback.estimators "
            "take it as it is; for anything else, load it with np.load"
        )

    @property
    def reads(self) -> float:
        """How often the matrix was read so far."""
        m, n = self.store.shape
        return self.count[0] / (m * n * self.store.dtype.itemsize)

    def pieces(self, columns: Columns | None = None) -> Iterator[Piece]:
        """Yield some columns, by default all, one tile at a time, while the next tiles are read.

        The column indices of a piece refer to ``columns``. Its entries are valid until the next piece is requested.
        """
        tiles, piece = self._cut(columns)
        for tile, block in self._ahead(tiles):
            found = piece(tile, block)
            if found is not None:
                yield found

    def each(self, work: Callable[[Piece], T], columns: Columns | None = None) -> Iterator[tuple[Rows, Indices, T]]:
        """Yield the result of ``work`` on each tile of some columns, by default all, in order, with rows and columns.

        Each of several threads reads a tile and works on it while it is in the cache, so that reading and work overlap.
        """
        tiles, piece = self._cut(columns)
        workers = min(WORKERS, len(tiles), max(2, _native.thread_limit()))
        if not tiles:
            return
        buffers: SimpleQueue[NDArray[np.uint8]] = SimpleQueue()
        for _ in range(workers):
            buffers.put(self._buffer(tiles))

        def visit(tile: Tile) -> tuple[int, tuple[Rows, Indices, T] | None]:
            buffer = buffers.get()
            try:
                block, read = self.store.read(tile, buffer)
                found = piece(tile, floating(block))
                return read, None if found is None else (found.rows, found.columns, work(found))
            finally:
                buffers.put(buffer)

        with ThreadPoolExecutor(workers, initializer=_share, initargs=(_native.thread_limit(), workers)) as pool:
            for read, done in _in_turn(pool, [partial(visit, tile) for tile in tiles], workers + 1):
                self.count[0] += read
                if done is not None:
                    yield done

    def _cut(self, columns: Columns | None) -> tuple[list[Tile], Callable[[Tile, NDArray[Any]], Piece | None]]:
        """Return the tiles that have some columns, and a function that makes a piece of such a tile."""
        asked = self.columns if columns is None else self.columns[columns]
        order = np.argsort(asked, kind="stable")
        rising = asked[order]
        once = rising[np.append(True, np.diff(rising) > 0)] if rising.size else rising

        def piece(tile: Tile, block: NDArray[Any]) -> Piece | None:
            a, b = np.searchsorted(rising, [tile.columns[0], tile.columns[-1] + 1])
            if b - a != tile.columns.size:  # a column that was requested more than once
                block = block[:, np.searchsorted(tile.columns, rising[a:b])]
            if self.all_rows:
                return Piece(tile.rows, order[a:b], Dense(block))
            here = np.flatnonzero((self.rows >= tile.rows.start) & (self.rows < tile.rows.stop))
            return Piece(here, order[a:b], Dense(block[self.rows[here] - tile.rows.start])) if here.size else None

        return (self.store.tiles(once, self._tile()) if once.size else []), piece

    def _buffer(self, tiles: Sequence[Tile]) -> NDArray[np.uint8]:
        """Return a buffer for the largest of some tiles."""
        return np.empty(max(map(self.store.needs, tiles)), dtype=np.uint8)

    def _ahead(self, tiles: Sequence[Tile]) -> Iterator[tuple[Tile, NDArray[Any]]]:
        """Yield tiles with their entries, while a thread reads the next ones."""
        if not tiles:
            return
        buffers = [self._buffer(tiles) for _ in range(AHEAD)]
        reading = [partial(self.store.read, tile, buffers[i % AHEAD]) for i, tile in enumerate(tiles)]
        left = _native.reserve_threads(1)
        try:
            with ThreadPoolExecutor(1) as reader:
                for tile, (block, read) in zip(tiles, _in_turn(reader, reading, AHEAD), strict=True):
                    self.count[0] += read
                    yield tile, floating(block)
        finally:
            _native.reserve_threads(left)

    def _load(self, runs: Sequence[Indices]) -> Iterator[Operator]:
        tiles = [Tile(slice(0, self.store.shape[0]), self.columns[run]) for run in runs]
        for _, block in self._ahead(tiles):
            yield Dense(block if self.all_rows else np.asfortranarray(block[self.rows]))

    def matvec(self, x: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        if columns is None:
            columns = np.flatnonzero(x != 0)
            x = x[columns]
        total = np.zeros(self.shape[0])
        for own, _, part in self.each(lambda piece: piece.block.matvec(x[piece.columns]), columns):
            total[own] += part
        return chosen(total, rows)

    def rmatvec(self, y: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        y = spread(y, rows, self.shape[0])
        if columns is None and self.last is not None and np.array_equal(y, self.last.y):
            return self.last.found.copy()
        some = np.arange(self.shape[1]) if columns is None else one_by_one(columns)
        found = np.zeros(some.size)
        for _, own, part in self.each(lambda piece: piece.block.rmatvec(np.ascontiguousarray(y[piece.rows])), some):
            found[own] += part
        if columns is None and self.last is not None:
            self.last.y, self.last.found = y.copy(), found.copy()
        return found

    def products(self, x: Vector, *ys: Vector) -> tuple[Vector, list[Vector]]:
        def work(piece: Piece) -> tuple[Vector, list[Vector]]:
            there = [piece.block.rmatvec(np.ascontiguousarray(y[piece.rows])) for y in ys]
            return piece.block.matvec(x[piece.columns]), there

        u, zs = np.zeros(self.shape[0]), [np.zeros(self.shape[1]) for _ in ys]
        for rows, own, (across, there) in self.each(work):
            u[rows] += across
            for z, part in zip(zs, there, strict=True):
                z[own] += part
        return u, zs

    def matvec_rounded(self, x: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        """Return A x with bounds on the rounding, in one reading."""

        def work(piece: Piece) -> Rounded:
            own = None if radius is None else radius[piece.columns]
            return piece.block.matvec_rounded(x[piece.columns], own, precise)

        return _total(self.shape[0], ((rows, part) for rows, _, part in self.each(work)))

    def rmatvec_rounded(self, y: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        """Return A'y with bounds on the rounding, in one reading."""

        def work(piece: Piece) -> Rounded:
            own = None if radius is None else radius[piece.rows]
            return piece.block.rmatvec_rounded(y[piece.rows], own, precise)

        return _total(self.shape[1], ((own, part) for _, own, part in self.each(work)))

    def adjoint_then_forward(self, y: Vector, between: Callable[[Indices, Vector], Vector]) -> Vector:
        """Return A f(A'y) for a function f(columns, products) of each column alone, in one reading by columns."""
        if not self.traits.reads_columns:
            return self.matvec(between(np.arange(self.shape[1]), self.rmatvec(y)))

        def work(piece: Piece) -> Vector:
            products = piece.block.rmatvec(np.ascontiguousarray(y[piece.rows]))
            return piece.block.matvec(between(piece.columns, products))

        total = np.zeros(self.shape[0])
        for rows, _, part in self.each(work):
            total[rows] += part
        return total

    def _sums(self, power: float, columns: Columns | None, weights: Weights | None) -> tuple[Vector, Vector]:
        by_column, by_row = weights or (None, None)

        def work(piece: Piece) -> tuple[Vector, Vector]:
            if weights is None:
                return piece.block.sums(power) if columns is None else piece.block.sums(power, slice(None))
            own = None if by_column is None else by_column[piece.columns]
            return piece.block.sums(power, weights=(own, None if by_row is None else by_row[piece.rows]))

        add = np.maximum if power == np.inf else np.add
        some = self.shape[1] if columns is None else one_by_one(columns).size
        of_columns, of_rows = np.zeros(some), np.zeros(self.shape[0])
        for rows, own, (down, across) in self.each(work, columns):
            if down.size:
                of_columns[own] = add(of_columns[own], down)
            if across.size:
                of_rows[rows] = add(of_rows[rows], across)
        unwanted = np.empty(0)
        wanted = weights is None or by_row is not None, weights is None or by_column is not None
        return of_columns if wanted[0] else unwanted, of_rows if wanted[1] else unwanted

    def scan(self, y: Vector) -> None:
        """Find the sums of squares and A'y in one reading."""
        product = np.zeros(self.shape[1])

        def work(piece: Piece) -> tuple[Vector, Vector, Vector]:
            array = np.asfortranarray(piece.block.array)
            return _native.Matrix(array).scan(np.ascontiguousarray(y[piece.rows]))

        of_columns, of_rows = np.zeros(self.shape[1]), np.zeros(self.shape[0])
        for rows, own, (columns, across, here) in self.each(work):
            of_columns[own] += columns
            of_rows[rows] += across
            product[own] += here
        self._squares, self.first_adjoint = (of_columns, of_rows), (y, product)

    def not_finite(self) -> tuple[list[int], float] | None:
        """Return the place and the value of the first entry that is not finite."""
        for rows, own, block in self.pieces():
            bad = np.argwhere(~np.isfinite(block.array))
            if bad.size:
                row, column = bad[0]
                return [int(np.arange(self.shape[0])[rows][row]), int(own[column])], float(block.array[row, column])
        return None

    def entries(self, columns: Indices | None = None, compressed: bool = False) -> Any:
        size = self.shape[0] * (self.shape[1] if columns is None else columns.size)
        self._afford((12.0 if compressed else 8.0) * size)  # eight bytes per entry, and four for its row
        if compressed:
            return compressed_by_panels(self, columns)
        return self._copied(np.arange(self.shape[1]) if columns is None else columns, np.dtype(np.float64))

    def _afford(self, size: float) -> None:
        """Raise if a matrix of ``size`` bytes does not fit into the memory bound."""
        if size > (budget := self.traits.budget):
            raise MemoryError(
                f"a matrix of {size / 1e9:.2g} GB is needed, and memory={self.memory:.2g} leaves {budget / 1e9:.2g} "
                "for it: allow more, or use method='sp-bcd', which needs none"
            )

    def _copied(self, columns: Indices, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return some columns."""
        result = np.empty((columns.size, self.shape[0]), dtype=dtype)

        def take(piece: Piece) -> None:
            rows = piece.rows
            where = (piece.columns, rows) if isinstance(rows, slice) else np.ix_(piece.columns, rows)
            result[where] = piece.block.array.T

        for _ in self.each(take, columns):
            pass
        return result.T

    def gram(self, weight: Vector | None, columns: Indices | None = None, side: Side = "columns") -> Any:
        if side == "rows":
            return self._outer(np.ones(self.shape[1]) if weight is None else weight)
        weight = np.ones(self.shape[0]) if weight is None else weight
        return self._gram(weight, np.arange(self.shape[1]) if columns is None else columns)

    def _gram(self, weight: Vector, columns: Indices) -> Vector:
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
            total += Dense(block[:, places]).gram(weights[tile.rows])
        return total

    def _outer(self, weight: Vector) -> Any:
        self._afford(8.0 * self.shape[0] ** 2)
        if not self.traits.reads_columns:
            return super().gram(weight, side="rows")
        return np.asarray(sum(block.gram(weight[own], side="rows") for _, own, block in self.pieces()))

    def times(self, matrix: Any) -> Vector:
        result = np.zeros((self.shape[0], matrix.shape[1]))
        of_columns = sparse.csr_array(matrix)
        for rows, own, block in self.pieces():
            result[rows] += np.asarray(block.array @ of_columns[own])
        return result

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        view = self._view(rows, columns)
        return view._packed(_floating_type(self.store.dtype))

    def pack(self, columns: Indices, single: bool = False, beside: float = 0.0) -> Operator:
        if columns.size and not (columns.min() >= 0 and columns.max() < self.shape[1]):
            raise ValueError(f"a column lies outside of the {self.shape[1]} that there are")
        view = self._view(np.arange(self.shape[0]), columns)
        view.most_packed -= beside
        return view._packed(np.dtype(np.float32) if single else _floating_type(self.store.dtype))

    def _packed(self, dtype: np.dtype[Any]) -> Operator:
        """Return the matrix in memory, if it fits into the budget."""
        if self.traits.stored * dtype.itemsize > self.most_packed:
            return self
        return Dense(self._copied(np.arange(self.shape[1]), dtype))

    def centred(self, centre: Vector) -> Streamed:
        """Return the matrix minus one number per column; it stays on disk like this one."""
        other = self.of_rows(np.arange(self.shape[0]))
        everywhere = np.zeros(self.store.shape[1])
        everywhere[self.columns] = centre
        other.store = Centred.of(self.store, everywhere, self.dtype)
        return other

    def of_rows(self, rows: Indices) -> Streamed:
        """Return some rows of the matrix; they stay on disk like this one."""
        return self._view(rows, np.arange(self.shape[1]))

    def _view(self, rows: Indices, columns: Indices) -> Streamed:
        """Return some rows and columns of the matrix; they stay on disk like this one."""
        view = object.__new__(Streamed)
        view._begin(self.store, self.rows[rows], self.columns[columns], self.memory, self.most_packed, self.count)
        return view


def _total(size: int, parts: Iterable[tuple[Rows, Rounded]]) -> Rounded:
    """Return the sum of vectors that each have some of the entries."""
    total = Rounded(*np.zeros((4, size)))
    for own, part in parts:
        for vector, sums in zip(total, total.part(own).plus(part), strict=True):
            vector[own] = sums
    return total


def adjoint_then_forward(A: Operator, y: Vector, between: Callable[[Indices, Vector], Vector]) -> Vector:
    """Return A f(A'y) for a function f(columns, products) of each column alone, with one reading of files."""
    parts = parts_of(A)
    first = np.cumsum([0, *(part.shape[1] for part in parts)])

    def within(part: Operator, start: int) -> Vector:
        def own(columns: Indices, products: Vector) -> Vector:
            return between(start + columns, products)

        if isinstance(part, Streamed):
            return part.adjoint_then_forward(y, own)
        return part.matvec(own(np.arange(part.shape[1]), part.rmatvec(y)))

    return reduce(np.add, [within(part, start) for part, start in zip(parts, first[:-1].tolist(), strict=True)])


def with_memory(A: Operator) -> Operator:
    """Return an operator for one run, in which matrices in files remember their last A'y."""
    if isinstance(A, Streamed):
        other = copy(A)
        other.last = Product()
        return other
    if isinstance(A, Above):
        return A.each(with_memory)
    parts = [with_memory(part) for part in A.parts] if isinstance(A, Stacked) else []
    if not isinstance(A, Stacked) or all(new is old for new, old in zip(parts, A.parts, strict=True)):
        return A
    stacked = copy(A)  # with all that is known
    stacked.parts = parts
    return stacked


def memories(A: Operator) -> list[Product]:
    """Return what an operator remembers in a run, for a checkpoint."""
    return [part.last for part in leaves(A) if isinstance(part, Streamed) and part.last is not None]


@bytes_in_memory.register
def _(A: Streamed) -> float:
    return 0.0


def _share(limit: int, workers: int) -> None:
    """Set the limit of a thread that works together with other threads of a solve, which may use ``limit`` threads."""
    _native.set_threads(limit)
    _native.reserve_threads(workers)


def _in_turn(pool: ThreadPoolExecutor, tasks: Sequence[Callable[[], T]], most: int) -> Iterator[T]:
    """Yield the results of tasks in order; at most ``most`` tasks run ahead of the one that is waited for."""
    begun: deque[Future[T]] = deque()
    for task in tasks:
        begun.append(pool.submit(task))
        if len(begun) == most:
            yield begun.popleft().result()
    while begun:
        yield begun.popleft().result()


def _floating_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)


def floating(block: NDArray[Any]) -> NDArray[Any]:
    """Return entries as floating-point numbers; float32 and float64 stay as they are."""
    return block.astype(_floating_type(block.dtype), copy=False)


def is_zarr(source: Any) -> bool:
    """Return whether an object is a Zarr array, without importing Zarr."""
    return type(source).__module__.partition(".")[0] == "zarr" and hasattr(source, "chunks")


def is_streamed(source: Any) -> bool:
    """Return whether an object is a dense matrix in a file that can be streamed."""
    if isinstance(source, np.memmap):
        return window(source) is not None and source.dtype.kind in "biuf" and source.dtype.isnative
    return isinstance(source, Streamed) or is_zarr(source)


def _tile_bytes(memory: float, dtype: np.dtype[Any]) -> int:
    """Return the bytes of a tile in its file: entries narrower than float64 take more in memory."""
    return int(min(TILE, memory / TILES) * dtype.itemsize / 8)


def _store(source: Any, memory: float) -> tuple[Store, Indices, Indices]:
    """Return the store of a source, and rows and columns in it; raise if it is not a dense real matrix."""
    if isinstance(source, (str, PathLike)):
        source = opened(Path(source))
    if is_zarr(source):
        check_matrix(source)
        return (
            Chunked.of(source, _tile_bytes(memory, np.dtype(source.dtype))),
            np.arange(source.shape[0]),
            np.arange(source.shape[1]),
        )
    if isinstance(source, np.memmap):
        check_matrix(source)
        part = window(source)
        if part is None:
            raise ValueError(
                "source is a memory map that does not show rows and columns of a file: expected slices; without "
                "Streamed it is taken as an array in memory"
            )
        return File.of(part.whole, "source"), part.rows, part.columns
    raise TypeError(
        f"source is {type(source).__name__}: expected a .npy file, a memory map of one, or a Zarr array; a matrix in "
        "memory needs no Streamed"
    )


def opened(path: Path) -> Any:
    """Return a memory map of an .npy file, or the Zarr array of a folder."""
    if path.is_dir():
        try:
            import zarr
        except ImportError:
            raise ImportError("a Zarr array needs zarr: pip install 'saddleback[zarr]'") from None
        return zarr.open_array(path, mode="r")
    if not path.is_file():
        raise FileNotFoundError(f"source={str(path)!r} is neither a file nor a folder")
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, OverflowError, SyntaxError, TokenError, EOFError, OSError) as error:
        raise ValueError(f"source={str(path)!r} is not a whole .npy file as numpy.save writes it ({error})") from None


def check_matrix(source: Any) -> None:
    """Raise if a source is not a dense real matrix."""
    if len(source.shape) != 2 or 0 in source.shape:
        raise ValueError(f"source has the shape {tuple(source.shape)}: expected a matrix with rows and columns")
    dtype = np.dtype(source.dtype)
    if dtype.kind not in "biuf" or not dtype.isnative:
        raise TypeError(f"source has dtype {dtype}: expected real numbers in the byte order of this machine")
