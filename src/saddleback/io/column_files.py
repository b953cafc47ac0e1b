"""Matrices in files, of which a process reads the columns that it needs and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..common.damage import damage
from ..operators.sparse_input import SparseArrays, canonical
from .archives import READ_AT_ONCE, Archive


class ColumnFile:
    """A matrix in a file: ``file[a:b]`` is an array or a sparse matrix of the columns a to b - 1.

    Parameters
    ----------
    path : str or Path
        A dense matrix in ``.npy``, which is memory-mapped and should be in column order (``order="F"``), so that each
        column is in one piece; the folder of a Zarr array, which needs zarr; or a CSC matrix in ``.npz`` as
        ``scipy.sparse.save_npz`` writes it. An ``.npz`` file with a dense matrix named ``A`` is possible too.

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
            self._read: _Zarr | _Mapped | _Stored = _Zarr(path)
        elif path.suffix == ".npy":
            self._read = _Mapped(path)
        elif path.suffix == ".npz":
            self._read = _Stored(path)
        elif not path.exists():
            raise FileNotFoundError(f"{path}: no such file")
        else:
            raise ValueError(f"{path.name} has no known ending: expected .npy, .npz, or the folder of a Zarr array")
        self.shape: tuple[int, int] = self._read.shape

    def share(self, rank: int, size: int) -> slice:
        """Return the columns of one of ``size`` processes; all get about the same number."""
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
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not a file")
        with damage(path.name, "expected an array as numpy.save writes it"):
            self.array = np.load(path, mmap_mode="r")
        self.shape = _matrix_shape(self.array.shape, path)

    def columns(self, first: int, stop: int) -> Any:
        own = self.array[:, first:stop]
        return own if self.array.flags.f_contiguous else np.array(own, order="F")


class _Zarr:
    """A Zarr array; only the chunks that hold some of the columns are read."""

    def __init__(self, path: Path) -> None:
        try:
            import zarr
        except ImportError:
            raise ImportError(f"{path.name} is a folder, as of a Zarr array: to read it, pip install zarr") from None
        with damage(path.name, "expected the folder of a Zarr array"):
            self.array = zarr.open_array(str(path), mode="r")
        self.name, self.shape = path.name, _matrix_shape(tuple(self.array.shape), path)

    def columns(self, first: int, stop: int) -> Any:
        with damage(self.name):
            return np.asfortranarray(self.array[:, first:stop])


class _Stored:
    """An ``.npz`` file: its members are read from the first to the last of the columns."""

    def __init__(self, path: Path) -> None:
        self.archive = Archive(path)
        self.dense = "A" in self.archive.names
        if self.dense:
            with self.archive.member("A") as member:
                self.shape = _matrix_shape(member.shape, path)
        elif {"indptr", "indices", "data", "shape", "format"} <= set(self.archive.names):
            layout = self.archive.array("format")
            if layout not in (b"csc", "csc"):
                raise ValueError(f"{path.name} has a matrix in {layout!r}: expected 'csc', so that columns can be read")
            self.shape = _matrix_shape(tuple(np.ravel(self.archive.array("shape")).tolist()), path)
            self.start = self._places(path)
        else:
            raise ValueError(f"{path.name} has neither a matrix A nor what scipy.sparse.save_npz writes")

    def _places(self, path: Path) -> Any:
        """Return where the columns begin in a CSC matrix; raise if parts of the file cannot be read."""
        start = np.asarray(self.archive.array("indptr"))
        with self.archive.member("data") as member:
            stored = member.size
        whole = start.dtype.kind in "iu" and start.shape == (self.shape[1] + 1,) and start[0] == 0
        if not whole or np.any(start[1:] < start[:-1]) or start[-1] > stored:
            raise ValueError(
                f"'indptr' in {path.name} does not rise from 0 to the {stored} stored entries in {self.shape[1]} steps"
            )
        return start

    def columns(self, first: int, stop: int) -> Any:
        rows = self.shape[0]
        if not self.dense:
            begin, end = int(self.start[first]), int(self.start[stop])
            data, indices = (self._entries(name, begin, end) for name in ("data", "indices"))
            start = self.start[first : stop + 1] - begin
            return canonical(SparseArrays("csc", (rows, stop - first), data, indices, start), "A")
        with self.archive.member("A") as member:
            if member.in_column_order:
                member.skip(first * rows)
                return member.read((stop - first) * rows).reshape((rows, stop - first), order="F")
            own = np.empty((rows, stop - first), member.dtype, order="F")
            strip = max(1, READ_AT_ONCE // (self.shape[1] * member.dtype.itemsize))
            for row in range(0, rows, strip):  # all rows are read, and the other columns are dropped
                height = min(strip, rows - row)
                own[row : row + height] = member.read(height * self.shape[1]).reshape(height, -1)[:, first:stop]
            return own

    def _entries(self, name: str, first: int, stop: int) -> Any:
        with self.archive.member(name) as member:
            member.skip(first)
            return member.read(stop - first)


def _matrix_shape(shape: tuple[int, ...], path: Path) -> tuple[int, int]:
    if len(shape) != 2:
        raise ValueError(f"{path.name} has {len(shape)} dimensions: expected a matrix")
    if any(size < 1 for size in shape):
        raise ValueError(f"{path.name} has the shape {shape}: expected at least one row and one column")
    return int(shape[0]), int(shape[1])
