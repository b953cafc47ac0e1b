"""Frames with categories in the columns of a model that was fitted to files: "city=Paris" is 1 where city is Paris."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

SIGN = "="
"""What separates the name of a column from a category in the name of a feature."""


def has_categories(X: Any, names: Sequence[str]) -> bool:
    """Return whether X is a frame that has categories where a model has one feature per category."""
    columns = getattr(X, "columns", None)
    return columns is not None and not set(names) <= set(columns) and any(SIGN in name for name in names)


def _prefixes(name: str) -> list[str]:
    """Return the parts of a name before a sign, the longest first: the name of a column may have the sign itself."""
    return [name[:place] for place in range(len(name) - 1, -1, -1) if name[place] == SIGN]


def encoded(X: Any, names: Sequence[str]) -> Any:
    """Return a frame as a sparse matrix with the given features; a category that none of them has is an error."""
    columns = set(X.columns)
    numbers: list[tuple[str, int]] = []
    categories: dict[str, dict[str, int]] = {}
    for place, name in enumerate(names):
        column = next((part for part in _prefixes(name) if part in columns), "")
        value = name[len(column) + 1 :]
        if name in columns:
            numbers.append((name, place))
        elif column in columns:
            categories.setdefault(column, {})[value] = place
        else:
            raise ValueError(f"X has no column {name!r}, which the model was fitted with")
    rows = len(X)
    entries = [
        (np.arange(rows), np.full(rows, place), np.asarray(X[name], dtype=np.float64)) for name, place in numbers
    ]
    for column, places in categories.items():
        labels, codes = np.unique(np.asarray(X[column]).astype(str), return_inverse=True)
        unknown = [str(label) for label in labels if label not in places]
        if unknown:
            raise ValueError(
                f"X has the category {unknown[0]!r} in column {column!r}, which was not in the data of the fit: "
                f"expected one of {list(places)[:20]}"
            )
        entries.append((np.arange(rows), np.array([places[label] for label in labels])[codes], np.ones(rows)))
    for (name, _), (_, _, own) in zip(numbers, entries, strict=False):
        if not np.all(np.isfinite(own)):
            raise ValueError(f"X has values that are not finite in column {name!r}: expected finite numbers")
    at_row, at_place, values = (np.concatenate(each) for each in zip(*entries, strict=True))
    return sparse.csr_array((values, (at_row, at_place)), shape=(rows, len(names)))
