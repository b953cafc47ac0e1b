"""Checks the user's A once, and makes an operator of it."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..common.arrays import Vector
from ..common.checks import unmasked
from ..places.files.operator import Streamed, is_zarr
from ..places.torch import device_of
from .contract import Operator
from .dense import Dense
from .linear_operator import HOW_TO, Abstract
from .mapped_input import WatchedMap, check_mapped
from .sparse import Compressed, Transposed
from .sparse_input import Watched, canonical, watch

SEVERAL = (
    "several matrices are a list with one per penalty of a list, side by side, or one per loss of a list, one above "
    "the other"
)
"""How to give several matrices."""

Scanned = TypeVar("Scanned", Dense, Compressed, Streamed)


def as_operator(source: Any, name: str, y: Vector | None = None) -> Operator:
    """Return the user's A as an operator; raise if it is not finite, real and two-dimensional.

    All entries are read once for this check. If possible, the same reading computes A'y.
    """
    if is_zarr(source):
        source = Streamed(source)
    if isinstance(source, Streamed):
        return _streamed(source, name, y)
    if isinstance(source, Operator):
        return source  # it was checked when it was made
    if sparse.issparse(source):
        return _compressed(source, name, y)
    if device_of(source) is not None:
        from ..places.torch.operator import from_tensor

        return from_tensor(source, name)
    if hasattr(source, "matvec") or hasattr(source, "rmatvec") or callable(source):
        return _abstract(source, name)
    unmasked(name, source)
    check_mapped(source, name)
    try:
        array = np.asarray(source)
    except ValueError:
        raise TypeError(
            f"{name} is a {type(source).__name__} that makes no matrix: expected an array, a sparse matrix or a "
            f"LinearOperator; {SEVERAL}"
        ) from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} has dtype {array.dtype}: expected real numbers; convert it with astype(float) first")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(f"{name} has {array.ndim} dimensions: expected a matrix; {SEVERAL}")
    if array.size == 0:
        raise ValueError(f"{name} is empty, with shape {array.shape}: expected at least one row and one column")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    contiguous = array.strides[0] == array.itemsize or array.strides[1] == array.itemsize
    if not contiguous or not array.flags.aligned or any(stride % array.itemsize for stride in array.strides):
        array = np.array(array, order="F")
    return _finite(_scan(Dense(array), y), array, name)


def _abstract(source: Any, name: str) -> Operator:
    """Return the operator of an object with a ``shape`` of two sizes, ``matvec`` and ``rmatvec``."""
    missing = [part for part in ("shape", "matvec", "rmatvec") if not hasattr(source, part)]
    if isinstance(source, type):
        raise TypeError(f"{name} is the class {source.__name__}: pass an object of it")
    if missing:
        kind = type(source).__name__
        raise TypeError(f"{name} is of type {kind} and lacks {', '.join(missing)}: expected a matrix, or {HOW_TO}")
    shape = tuple(source.shape or ())
    if len(shape) != 2 or not all(isinstance(size, (int, np.integer)) and size > 0 for size in shape):
        raise ValueError(f"{name} has the shape {shape}: expected the number of rows and of columns, both positive")
    if np.dtype(getattr(source, "dtype", None) or float).kind == "c":
        raise TypeError(f"{name} is a complex LinearOperator: expected real numbers")
    return Abstract(source, name)


def watched(source: Any, operator: Operator) -> Watched | WatchedMap | None:
    """Return a watch on the user's A, if it is a sparse matrix or memory map that the operator reads without a copy."""
    if isinstance(source, np.memmap) and isinstance(operator, Dense):
        return WatchedMap(source)
    if not isinstance(operator, (Compressed, Transposed)) or not sparse.issparse(source):
        return None
    return watch(source, operator.matrix)


def _streamed(operator: Streamed, name: str, y: Vector | None) -> Operator:
    _scan(operator, y)
    if not np.all(np.isfinite(operator.sums(2)[0])) and (found := operator.not_finite()) is not None:
        where, value = found
        raise ValueError(f"{name} has the value {value} at {where}: expected finite numbers")
    return operator


def _compressed(source: Any, name: str, y: Vector | None) -> Operator:
    matrix = canonical(source, name)
    try:
        if matrix.format != "csc":
            return _finite(Transposed(matrix), matrix.data, name)
        return _finite(_scan(Compressed(matrix), y), matrix.data, name)
    except MemoryError:
        raise MemoryError(f"{name} has the shape {matrix.shape}: vectors of these sizes do not fit in memory") from None


def _scan(operator: Scanned, y: Vector | None) -> Scanned:
    """Return the operator after a reading of all entries, which also computes A'y if there is a y."""
    if y is not None and y.size == operator.shape[0]:
        operator.scan(y)
    return operator


def _finite(operator: Operator, values: NDArray[Any], name: str) -> Operator:
    """Return the operator, or raise if it has NaN or inf among its values."""
    if not np.all(np.isfinite(operator.sums(2)[0])):  # the fastest check of all entries, and kept for later
        _check_finite(values, name)
    return operator


def _check_finite(values: NDArray[Any], name: str) -> None:
    """Raise if values has NaN or inf. A sum is finite if all values are, and needs no temporary array."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum(dtype=np.float64)
    if not np.isfinite(total) and not np.all(np.isfinite(values)):
        bad = np.argwhere(~np.isfinite(values))[0].tolist()
        where = f"at {bad}" if values.ndim == 2 else f"among its stored entries, number {bad[0]}"
        raise ValueError(f"{name} has the value {values[tuple(bad)]} {where}: expected finite numbers")
