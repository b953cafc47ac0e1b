"""The forms in which users pass a matrix: dtypes, orders, strides, sparse formats, files, operators, tensors."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import saddleback as sb

Matrix = NDArray[np.float64]


@dataclass
class Stored:
    """A matrix as the user gives it, its entries, and the arrays that must not change."""

    given: Any
    entries: Matrix
    name: str
    arrays: list[NDArray[Any]] = field(default_factory=list)


def dense(A: Matrix, rng: np.random.Generator) -> Stored:
    """Return an array in a random layout."""
    wide = np.zeros((2 * A.shape[0] + 1, 3 * A.shape[1] + 1))
    wide[1::2, 1::3] = A
    backwards = np.ascontiguousarray(A[::-1, ::-1])
    raw = np.zeros(A.nbytes + 1, dtype=np.uint8)
    unaligned = raw[1:].view(np.float64).reshape(A.shape)
    unaligned[...] = A
    read_only = A.copy()
    read_only.flags.writeable = False
    layouts: dict[str, tuple[Any, NDArray[Any]]] = {
        "C": (c := np.ascontiguousarray(A), c),
        "F": (f := np.asfortranarray(A), f),
        "strided": (wide[1::2, 1::3], wide),
        "reversed": (backwards[::-1, ::-1], backwards),
        "unaligned": (unaligned, raw),
        "read-only": (read_only, read_only),
        "big-endian": (big := A.astype(">f8"), big),
        "longdouble": (long := A.astype(np.longdouble), long),
        "lists": (A.tolist(), c),
    }
    name = str(rng.choice(list(layouts)))
    given, array = layouts[name]
    return Stored(given, A, name, [array])


def narrow(A: Matrix, rng: np.random.Generator) -> Stored:
    """Return an array of a type with fewer digits, and its rounded entries."""
    order = "C" if rng.random() < 0.5 else "F"
    dtype = np.dtype(str(rng.choice(["f4", "f4", "f4", "f2", "i1", "i4", "i8", "u1", "?"])))
    largest = np.abs(A).max(initial=0.0)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            given = A.astype(dtype, order=order)
        if not np.all(np.isfinite(given)):
            given = A.astype("f8", order=order)
    else:
        whole = np.round(A * (3.0 / largest if largest > 0 else 1.0))
        given = (np.abs(whole) if dtype.kind in "u?" else whole).astype(dtype, order=order)
    return Stored(given, given.astype(np.float64), f"{dtype} {order}", [given])


def compressed(A: Matrix, rng: np.random.Generator) -> Stored:
    """Return a sparse matrix in a random format, which may have duplicates, explicit zeros and 64-bit indices."""
    form = str(rng.choice(["csc", "csr", "csc", "csr", "coo", "lil", "dok", "dia", "bsr"]))
    kept = A if rng.random() < 0.5 else A * (rng.random(A.shape) < 0.4)
    if rng.random() < 0.2:
        with np.errstate(over="ignore"):
            single = kept.astype(np.float32).astype(np.float64)
        kept = single if np.all(np.isfinite(single)) else kept
    single_precision = bool(np.all(kept == kept.astype(np.float32)))
    matrix = (sparse.csc_array if rng.random() < 0.5 else sparse.csc_matrix)(kept)
    matrix = matrix.astype(np.float32) if single_precision and rng.random() < 0.5 else matrix
    name = form
    if rng.random() < 0.25 and form in ("csc", "csr", "coo") and matrix.nnz:
        matrix, name = _untidy(matrix, rng), name + " untidy"
    matrix = matrix.asformat(form)
    if form in ("csc", "csr") and rng.random() < 0.3:
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
        name += " int64"
    parts = (getattr(matrix, part, None) for part in ("data", "indices", "indptr", "row", "col", "offsets"))
    arrays = [part for part in parts if isinstance(part, np.ndarray) and part.dtype != object]
    if rng.random() < 0.2:
        for array in arrays:
            array.flags.writeable = False
    return Stored(matrix, np.asarray(matrix.toarray(), dtype=np.float64), name, arrays)


def _untidy(matrix: Any, rng: np.random.Generator) -> Any:
    """Return the matrix in COO format with explicit zeros, and with entries split into halves, in random order."""
    coo = matrix.tocoo()
    half = coo.data / 2
    row = np.concatenate([coo.row, coo.row, rng.integers(0, matrix.shape[0], 2)])
    col = np.concatenate([coo.col, coo.col, rng.integers(0, matrix.shape[1], 2)])
    data = np.concatenate([half, coo.data - half, np.zeros(2, half.dtype)])
    order = rng.permutation(data.size)
    row, col, data = row[order], col[order], data[order]
    if rng.random() < 0.3:
        return sparse.coo_matrix((data, (row, col)), shape=matrix.shape)
    by_column = np.argsort(col, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(col, minlength=matrix.shape[1]))])
    return sparse.csc_matrix((data[by_column], row[by_column], indptr), shape=matrix.shape)


def operator(A: Matrix, rng: np.random.Generator) -> Stored:
    """Return a LinearOperator."""
    c = np.ascontiguousarray(A)
    return Stored(aslinearoperator(c), A, "LinearOperator", [c])


def in_a_file(A: Matrix, rng: np.random.Generator) -> Stored:
    """Return a memory map, or a matrix that is read in tiles."""
    order = "F" if rng.random() < 0.5 else "C"
    with tempfile.TemporaryDirectory(prefix="saddleback-fuzz-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "A.npy"
        np.save(path, np.asarray(A, order=order))
        mapped = np.load(path, mmap_mode="r")
        if rng.random() < 0.5:  # the map and the open file remain valid after the file is deleted
            return Stored(mapped, A, f"memory map {order}", [mapped])
        return Stored(sb.Streamed(mapped), A, f"Streamed {order}", [mapped])


def tensor(A: Matrix, rng: np.random.Generator) -> Stored:
    """Return a dense or sparse tensor on the CPU device of torch."""
    import torch

    torch.set_num_threads(1)
    c = np.ascontiguousarray(A)
    given = torch.from_numpy(c)
    if rng.random() < 0.3:
        return Stored(given.to_sparse_csr(), A, "torch csr", [c])
    return Stored(given, A, "torch", [c])


FORMS: list[tuple[float, Callable[[Matrix, np.random.Generator], Stored]]] = [
    (0.42, dense),
    (0.16, narrow),
    (0.30, compressed),
    (0.06, operator),
    (0.05, in_a_file),
    (0.01, tensor),
]


def store(A: Matrix, rng: np.random.Generator) -> Stored:
    """Return a matrix in a random form."""
    shares = np.array([share for share, _ in FORMS])
    return FORMS[rng.choice(len(FORMS), p=shares / shares.sum())][1](A, rng)
