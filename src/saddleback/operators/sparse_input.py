"""Checks of the user's sparse matrices.

scipy accepts a matrix with wrong index arrays, and its kernels then read and write outside of memory. Here every array
is checked before any index is used: its type, its length, and that each index is in range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .. import _native
from ..common.checks import unmasked

Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""Rows, columns and values of the stored entries; or indptr, indices and data."""


class SparseArrays(NamedTuple):
    """The arrays of a CSC or CSR matrix, not checked yet."""

    format: str
    shape: tuple[int, int]
    data: Any
    indices: Any
    indptr: Any


def canonical(source: Any, name: str) -> Any:
    """Return a sparse matrix as a CSR array if it is stored by rows, as a CSC array otherwise.

    The values are float32 or float64, the row indices of each column increase (in a CSR array, the column indices of
    each row). The arrays are those of ``source`` if none of them has to be converted, and copies otherwise.

    Parameters
    ----------
    source : a sparse matrix or array of scipy, in any format, or ``SparseArrays``.
    name : what the user calls it, for errors.
    """
    shape = _shape(source, name)
    if source.format in ("csc", "csr"):
        return _of_compressed(source, shape, name)
    if source.format == "bsr":
        return _of_blocks(source, shape, name)
    if source.format not in _TRIPLETS:
        raise TypeError(f"{name} has the sparse format {source.format!r}: convert it with tocsc() first")
    return _of_triplets(*_TRIPLETS[source.format](source, shape, name), shape, name)


@dataclass(frozen=True)
class Watched:
    """A sparse matrix that is used without a copy, and a digest of its state when it was checked."""

    source: Any
    shape: tuple[int, ...]
    parts: tuple[NDArray[Any], ...]
    digests: tuple[int, ...]

    def changed(self) -> bool:
        """Return whether its shape, arrays or entries have changed since."""
        now = tuple(getattr(self.source, part, None) for part in _PARTS)
        if self.source.shape != self.shape or any(a is not b for a, b in zip(now, self.parts, strict=True)):
            return True
        return _digests(self.parts) != self.digests


def watch(source: Any, matrix: Any) -> Watched | None:
    """Return a watch on a source whose arrays ``canonical`` has returned in ``matrix``; None if they were copied."""
    if not _shares(source, matrix):
        return None
    parts = tuple(getattr(matrix, part) for part in _PARTS)
    return Watched(source, source.shape, parts, _digests(parts))


_PARTS = ("indptr", "indices", "data")


def _shares(source: Any, matrix: Any) -> bool:
    """Return whether a matrix shares the arrays of a source."""
    return all(getattr(source, part, None) is getattr(matrix, part) for part in _PARTS)


def _digests(parts: tuple[NDArray[Any], ...]) -> tuple[int, ...]:
    return tuple(_native.digest(part) for part in parts)


# --- the arrays of a format -------------------------------------------------------------------------------------------


def _shape(source: Any, name: str) -> tuple[int, int]:
    shape = tuple(source.shape)
    if len(shape) != 2:
        raise ValueError(f"{name} has {len(shape)} dimensions: expected a matrix")
    if not all(isinstance(size, (int, np.integer)) and size >= 0 for size in shape):
        raise ValueError(f"{name} has the shape {shape}: expected two positive integers")
    if 0 in shape:
        raise ValueError(f"{name} is empty, with shape {shape}: expected at least one row and one column")
    return int(shape[0]), int(shape[1])


def _array(value: Any, name: str, dimensions: int = 1) -> NDArray[Any]:
    value = unmasked(name, value)
    try:
        array: NDArray[Any] = np.asanyarray(value)
    except ValueError:
        raise ValueError(f"{name} is a {type(value).__name__} that makes no array: expected numbers") from None
    if array.ndim != dimensions:
        raise ValueError(f"{name} has {array.ndim} dimensions: expected {dimensions}")
    return array


def _indices(value: Any, name: str) -> NDArray[Any]:
    array = _array(value, name)
    if array.dtype.kind not in "iu" and array.size > 0:
        raise TypeError(f"{name} has dtype {array.dtype}: expected integers")
    if array.dtype.kind == "u" and array.size > 0 and int(array.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"{name} has the value {array.max()}: expected at most {np.iinfo(np.int64).max}")
    return array if array.dtype in (np.int32, np.int64) else array.astype(np.int64)


def _values(value: Any, name: str, dimensions: int = 1) -> NDArray[Any]:
    array = _array(value, name, dimensions)
    if array.dtype.kind not in "biuf":
        owner = name.removesuffix(".data")
        raise TypeError(f"{owner} has dtype {array.dtype}: expected real numbers; convert it with astype(float) first")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _of_compressed(source: Any, shape: tuple[int, int], name: str) -> Any:
    """Return a CSC or CSR matrix."""
    indptr, indices = (_indices(getattr(source, part, None), f"{name}.{part}") for part in _PARTS[:2])
    data = _values(getattr(source, "data", None), f"{name}.data")
    major, minor = reversed(shape) if source.format == "csc" else shape
    parts, increasing = _checked(indptr, indices, data, major, minor, name)
    matrix = (sparse.csc_array if source.format == "csc" else sparse.csr_array)(shape, dtype=data.dtype)
    matrix.indptr, matrix.indices, matrix.data = parts  # already checked: scipy need not check them again
    if increasing and _shares(source, matrix):
        matrix.has_canonical_format = True
        return matrix
    matrix = matrix.copy()  # all of them: a change of an array shared with the user would not be noticed
    matrix.sum_duplicates()
    return matrix


def _of_blocks(source: Any, shape: tuple[int, int], name: str) -> Any:
    """Return a BSR matrix, whose entries are small dense blocks, as a CSC matrix."""
    data = _values(getattr(source, "data", None), f"{name}.data", 3)
    height, width = data.shape[1:]
    if 0 in (height, width) or shape[0] % height or shape[1] % width:
        raise ValueError(f"{name}.data has blocks of {height} x {width}, which do not divide its shape {shape}")
    indptr, indices = (_indices(getattr(source, part, None), f"{name}.{part}") for part in _PARTS[:2])
    grid = shape[0] // height, shape[1] // width
    (indptr, indices, stored), _ = _checked(indptr, indices, np.arange(float(len(data))), *grid, name)
    own = np.repeat(np.arange(grid[0]), np.diff(indptr))
    down, across = np.indices((height, width))
    rows = own[:, None, None] * height + down
    columns = indices[:, None, None] * width + across
    return _of_triplets(rows.ravel(), columns.ravel(), data[: stored.size].ravel(), shape, name)


def _of_triplets(
    rows: NDArray[Any], columns: NDArray[Any], values: NDArray[Any], shape: tuple[int, int], name: str
) -> Any:
    """Return the matrix with these entries as a CSC matrix; entries in the same place are added."""
    if not rows.size == columns.size == values.size:
        raise ValueError(f"{name} has {rows.size} row indices, {columns.size} column indices and {values.size} values")
    for what, found, size in (("row", rows, shape[0]), ("column", columns, shape[1])):
        if bad := _outside(found, size):
            raise ValueError(f"{name} has the {what} index {bad}: expected 0 to {size - 1}")
    matrix = sparse.coo_array((values, (rows, columns)), shape=shape).tocsc()
    matrix.sum_duplicates()
    return matrix


def _coo(source: Any, shape: tuple[int, int], name: str) -> Arrays:
    coords = getattr(source, "coords", None)
    places = [_indices(place, f"{name}.coords[{axis}]") for axis, place in enumerate(coords or ())]
    if len(places) != 2:
        raise ValueError(f"{name}.coords has {len(places)} arrays: expected 2")
    return places[0], places[1], _values(getattr(source, "data", None), f"{name}.data")


def _lil(source: Any, shape: tuple[int, int], name: str) -> Arrays:
    lists, values = (_array(getattr(source, part, None), f"{name}.{part}") for part in ("rows", "data"))
    if not lists.size == values.size == shape[0]:
        raise ValueError(f"{name}.rows has {lists.size} lists and {name}.data {values.size}: expected {shape[0]}")
    for row, pair in enumerate(zip(lists, values, strict=True)):
        if not all(isinstance(own, list) for own in pair) or len(pair[0]) != len(pair[1]):
            raise ValueError(
                f"{name} has in row {row} other column indices than values: expected two lists of one length"
            )
    columns, data = ([entry for own in part for entry in own] for part in (lists, values))
    rows = np.repeat(np.arange(shape[0]), [len(own) for own in lists])
    return rows, _indices(columns, f"{name}.rows"), _values(data, f"{name}.data")


def _dok(source: Any, shape: tuple[int, int], name: str) -> Arrays:
    keys = np.asarray(list(source.keys()), dtype=object)
    if keys.size == 0:
        keys = np.empty((0, 2), dtype=np.int64)
    if keys.ndim != 2 or keys.shape[1] != 2:
        raise ValueError(f"{name} has the key {keys[0]}: expected pairs of a row and a column")
    rows, columns = (_indices(part.tolist(), f"{name}.keys()") for part in keys.T)
    return rows, columns, _values(list(source.values()), f"{name}.data")


def _dia(source: Any, shape: tuple[int, int], name: str) -> Arrays:
    data = _values(getattr(source, "data", None), f"{name}.data", 2)
    offsets = _indices(getattr(source, "offsets", None), f"{name}.offsets")
    if offsets.size != data.shape[0] or np.unique(offsets).size != offsets.size:
        raise ValueError(
            f"{name} has {data.shape[0]} diagonals and the offsets {offsets.tolist()}: expected as many, all different"
        )
    # column j of the data belongs to column j of the matrix; entries outside of the matrix are ignored
    columns = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    rows = columns - offsets[:, None]
    inside = (rows >= 0) & (rows < shape[0]) & (columns < shape[1]) & (data != 0)
    return rows[inside], columns[inside], data[inside]


_TRIPLETS: dict[str, Callable[[Any, tuple[int, int], str], Arrays]] = {
    "coo": _coo,
    "lil": _lil,
    "dok": _dok,
    "dia": _dia,
}


# --- what they must be ------------------------------------------------------------------------------------------------


def _checked(
    indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any], major: int, minor: int, name: str
) -> tuple[Arrays, bool]:
    """Return compressed arrays in the form of the native kernels, and whether the indices of each column increase.

    Raise an error that says what is wrong if an index is out of range.
    """
    if indptr.size != major + 1:
        raise ValueError(f"{name}.indptr has {indptr.size} entries: expected {major + 1}, one more than it compresses")
    if indices.size != data.size:
        raise ValueError(f"{name}.indices has {indices.size} entries and {name}.data {data.size}: expected the same")
    if indptr.dtype != indices.dtype:
        indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
    indptr, indices, data = (np.require(part, requirements=["C", "A"]) for part in (indptr, indices, data))
    if indptr[0] != 0:
        raise ValueError(f"{name}.indptr begins with {indptr[0]}: expected 0")
    sound, increasing = _native.Matrix(indptr, indices, data, minor).check()
    if not sound:
        raise ValueError(_fault(indptr, indices, minor, name))
    stored = int(indptr[-1])
    if stored < data.size:  # scipy allows room for more entries
        indices, data = indices[:stored], data[:stored]
    return (indptr, indices, data), increasing


def _fault(indptr: NDArray[Any], indices: NDArray[Any], minor: int, name: str) -> str:
    """Return what is wrong with invalid compressed arrays."""
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if falls.size:
        at = int(falls[0])
        return f"{name}.indptr falls from {indptr[at]} to {indptr[at + 1]} at position {at + 1}: expected it to rise"
    if indptr[-1] > indices.size:
        return f"{name}.indptr ends with {indptr[-1]}: expected at most {indices.size}, the number of stored entries"
    at = int(np.flatnonzero((indices < 0) | (indices >= minor))[0])
    return f"{name}.indices has the value {indices[at]} at position {at}: expected 0 to {minor - 1}"


def _outside(indices: NDArray[Any], size: int) -> str:
    """Return an index that is out of range, as text, or nothing."""
    bad = indices[(indices < 0) | (indices >= size)]
    return str(bad[0]) if bad.size else ""
