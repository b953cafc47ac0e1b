"""Rows from what a user has: files, frames, arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..places.files.operator import is_streamed
from .row_files import FrameRows, RowFiles
from .rows import ArrayRows, Rows
from .stored_rows import StoredRows

Maker: TypeAlias = Callable[[Any, Any, Any, Any], Rows]

ZARR = ("zarr.json", ".zarray")
"""Files that the folder of a Zarr array has."""


def as_rows(data: Any, target: Any = None, weights: Any = None, columns: Sequence[str] | None = None) -> Rows:
    """Return the rows of files, of a frame or of an array.

    Parameters
    ----------
    data : path, list of paths, dataset, frame, array or Rows
        Parquet or Arrow files as for ``RowFiles``; an ``.npy`` file, a memory map, a Zarr array or ``Streamed`` as for
        ``StoredRows``; a frame of pandas or polars or a table of pyarrow as for ``FrameRows``; an array or a sparse
        matrix in memory; or rows, which are returned as they are.
    target : str or array
        The name of a column of files or of a frame, or one value per row of a frame or an array.
    weights : str or array, optional
        The same for the weights of the rows.
    columns : sequence of str, optional
        Names of the columns of files or of a frame that become X, by default all others. For arrays, the names of their
        columns.

    Returns
    -------
    Rows
        The rows in chunks.
    """
    if isinstance(data, Rows):
        if not (target is None and weights is None and columns is None):
            raise ValueError("target, weights and columns belong to the rows of data already: expected none of them")
        return data
    if target is None:
        raise ValueError("target is missing: expected the name of a column, or one value per row")
    for kind in type(data).__mro__:
        maker = MAKERS.get((kind.__module__.partition(".")[0], kind.__name__))
        if maker is not None:
            return maker(data, target, weights, columns)
    if hasattr(data, "__arrow_c_stream__"):
        return FrameRows(data, target, weights, columns)
    raise TypeError(
        f"data is {type(data).__name__}: expected files, a DataFrame of pandas or polars, a Table or Dataset of "
        "pyarrow, an array, a Zarr array or a Streamed matrix"
    )


def _from_path(path: str | PathLike[str], target: Any, weights: Any, columns: Any) -> Rows:
    here = Path(path)
    stored = here.suffix == ".npy" or any((here / name).is_file() for name in ZARR)
    return (StoredRows if stored else RowFiles)(path, target, weights, columns)


def _from_array(array: Any, target: Any, weights: Any, names: Any) -> Rows:
    if is_streamed(array):
        return StoredRows(array, target, weights, names)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(f"data has the shape {array.shape} and dtype {array.dtype}: expected a matrix of real numbers")
    floats = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    return ArrayRows(floats, *_vectors(floats, target, weights), names)


def _from_sparse(matrix: Any, target: Any, weights: Any, names: Any) -> Rows:
    return _from_array(matrix.tocsr(), target, weights, names)


def _vectors(array: Any, target: Any, weights: Any) -> tuple[Any, Any]:
    """Return the target and the weights of an array, or raise if they do not have one value per row."""
    found = [None if values is None else np.asarray(values) for values in (target, weights)]
    for name, values in zip(("target", "weights"), found, strict=True):
        if values is not None and values.shape != array.shape[:1]:
            raise ValueError(
                f"{name} has the shape {values.shape}: expected one value for each of the {array.shape[0]} rows"
            )
    return found[0], found[1]


MAKERS: dict[tuple[str, str], Maker] = {
    ("builtins", "str"): _from_path,
    ("pathlib", "PurePath"): _from_path,
    ("builtins", "list"): RowFiles,
    ("builtins", "tuple"): RowFiles,
    ("pyarrow", "Dataset"): RowFiles,
    ("pyarrow", "Table"): FrameRows,
    ("pyarrow", "RecordBatch"): FrameRows,
    ("pandas", "DataFrame"): FrameRows,
    ("polars", "DataFrame"): FrameRows,
    ("numpy", "ndarray"): _from_array,
    ("scipy", "sparray"): _from_sparse,
    ("scipy", "spmatrix"): _from_sparse,
    ("zarr", "Array"): StoredRows,
    ("saddleback", "Streamed"): StoredRows,
}
"""The rows of each kind of data, by its package and the name of its class, so that no package has to be imported."""
