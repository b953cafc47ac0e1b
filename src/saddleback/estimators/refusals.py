"""Messages about data that scikit-learn refuses: which columns they are, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples

from ..common.arrays import Indices
from .groups import shown

NAMED = 10
"""Largest number of columns with counts in a message."""


@contextmanager
def explained(X: Any, y: Any = None) -> Iterator[None]:
    """Say more of the refused data in an error of scikit-learn, which does not name columns."""
    try:
        yield
    except (TypeError, ValueError) as error:
        told = _reason(str(error), X, y)
        if told is None:
            raise
        raise ValueError(told) from None


def _reason(said: str, X: Any, y: Any) -> str | None:
    """Return what is wrong with X or with the length of y; None if there is nothing to add."""
    if said.startswith("Found input variables with inconsistent numbers"):
        return (
            f"y has {_num_samples(y)} values, and X has {_num_samples(X)} samples: expected as many targets as samples"
        )
    if said.startswith("Input X contains"):
        return f"{said.partition(chr(10))[0].rstrip('.')}{_where(X)}"
    texts = _texts(X)
    if texts and (hasattr(X, "columns") or said.startswith("could not convert string")):
        return (
            f"X has columns that are not numbers, {shown(texts)}: expected numbers. Encode categories, as in "
            "pd.get_dummies(X, dtype=float), or use fit_formula(formula, table), which encodes them; leave out other "
            "columns"
        )
    return None


def _where(X: Any) -> str:
    """Return in which rows and columns X is not finite, and what to do."""
    values = check_array(X, accept_sparse=True, dtype=np.float64, ensure_all_finite=False)
    rows, columns = _not_finite(values)
    names = getattr(X, "columns", range(values.shape[1]))
    found, counts = np.unique(columns, return_counts=True)
    listed = ", ".join(f"{names[j]!r} ({count})" for j, count in zip(found[:NAMED], counts, strict=False))
    return (
        f" in {np.unique(rows).size} of {values.shape[0]} rows, by column: {listed}{', ...' * (found.size > NAMED)}. "
        "Remove these rows, fill the values in, as with sklearn.impute.SimpleImputer, or leave out the columns"
    )


def _not_finite(values: Any) -> tuple[Indices, Indices]:
    """Return the rows and columns of the entries that are not finite."""
    if not sparse.issparse(values):
        rows, columns = np.nonzero(~np.isfinite(values))
        return rows, columns
    entries = values.tocoo()
    odd = ~np.isfinite(entries.data)
    return entries.row[odd], entries.col[odd]


def _texts(X: Any) -> list[Any]:
    """Return the columns of a frame, or of an array of objects, that are not numbers."""
    columns = getattr(X, "columns", None)
    if columns is not None:
        return [name for name in columns if not _is_numeric(X[name])]
    if getattr(getattr(X, "dtype", None), "kind", "") == "O" and X.ndim == 2:
        return [j for j in range(X.shape[1]) if not _is_numeric(X[:, j])]
    return []


def _is_numeric(column: Any) -> bool:
    try:
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return np.asarray(column).dtype.kind not in "mM"
