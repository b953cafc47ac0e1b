"""Which columns of a table are the target, the weights and the columns of X, and the chunk that they make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from ...common.checks import distinct_names
from ..columns import Columns
from ..rows import Chunk
from .column_types import NARROW, comparable, is_category, is_number
from .features import Category, Feature, Number, labels_in, sorted_labels, values_of, with_dictionary
from .source import Source

MOST_CATEGORIES = 5000
"""Largest number of columns of X that are made of categories: a tall problem has few columns."""

Place = Callable[[int], str]

Parts = Callable[[str], Iterator[pa.Array]]
"""Returns the parts of the column with a name, in order."""


@dataclass(frozen=True)
class Choice:
    """The columns of a table that are used, with their types.

    Attributes
    ----------
    schema : names and types of all columns.
    target, weights : their names.
    columns : names of the columns that become X.
    """

    schema: pa.Schema
    target: str
    weights: str | None
    columns: tuple[str, ...]

    @classmethod
    def of(cls, schema: pa.Schema, target: str, weights: str | None, columns: Sequence[str] | None) -> Choice:
        """Return a choice of existing columns of the right types, or raise."""
        _check_name("target", target, schema)
        if weights is not None:
            _check_name("weights", weights, schema)
        taken = {target, weights}
        if columns is None:
            columns = [name for name in schema.names if name not in taken | _indices(schema)]
        if isinstance(columns, str) or not isinstance(columns, (list, tuple)) or not columns:
            raise ValueError(f"columns={columns!r}: expected a list of names, with at least one that is not the target")
        for name in columns:
            _check_name("columns", name, schema)
        twice = sorted({name for name in columns if columns.count(name) > 1 or name in taken})
        if twice:
            raise ValueError(f"columns has {twice[0]!r} twice, or it is the target or the weights: leave it out")
        found = cls(schema, target, weights, tuple(columns))
        found._check_types()
        return found

    def _check_types(self) -> None:
        for name in self.used:
            kind = self.schema.field(name).type
            role = {self.target: "target", self.weights: "weights"}.get(name, "columns")
            if is_number(kind) or (role != "weights" and is_category(kind)):
                continue
            expected = "numbers" if role == "weights" else "numbers, booleans, text or categories"
            remedy = "leave it out of columns, or cast it" if role == "columns" else "cast it"
            raise TypeError(f"{role}: column {name!r} has the type {kind}: expected {expected}; {remedy}")

    @property
    def used(self) -> tuple[str, ...]:
        """Names of all columns that are read."""
        return (*self.columns, self.target, *([self.weights] if self.weights else []))

    @property
    def categories(self) -> list[str]:
        """Names of the columns of categories."""
        return [name for name in self.columns if is_category(self.schema.field(name).type)]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row as float64, with the columns of entries if X is sparse."""
        return len(self.used) * (12 if self.categories else 8)

    def check_same(self, other: Source, first: Source) -> None:
        """Raise if another table does not have the same columns."""
        for name in self.used:
            if other.schema.names.count(name) != 1:
                raise ValueError(
                    f"{other.name} has no single column {name!r}, which {first.name} has: expected files of one table; "
                    "leave this file or this column out"
                )
            kinds = [source.schema.field(name).type for source in (other, first)]
            if comparable(kinds[0]) != comparable(kinds[1]):
                raise ValueError(
                    f"column {name!r} has the type {kinds[0]} in {other.name} and {kinds[1]} in {first.name}: expected "
                    "one type; cast it in one of the files"
                )

    def labels(self, batches: Iterable[pa.RecordBatch], place: Place) -> dict[str, set[Any]]:
        """Return the categories in some rows."""
        found: dict[str, set[Any]] = {name: set() for name in self.categories}
        row = 0
        for batch in batches:
            here = {name: labels_in(_complete(batch.column(name), name, row, place)) for name in found}
            self.merge(found, here)
            row += batch.num_rows
        return found

    @staticmethod
    def merge(labels: dict[str, set[Any]], others: dict[str, set[Any]]) -> None:
        """Add categories, or raise if there are so many that X would not have few columns."""
        for name, values in others.items():
            labels[name] |= values
        if sum(map(len, labels.values())) > MOST_CATEGORIES:
            name = max(labels, key=lambda name: len(labels[name]))
            raise ValueError(
                f"columns: more than {MOST_CATEGORIES} categories, of which column {name!r} has at least "
                f"{len(labels[name])}: leave it out of columns, or put its rare categories together"
            )

    def layout(self, labels: dict[str, set[Any]]) -> Layout:
        """Return the layout of X, given all categories."""
        features: list[Feature] = []
        start = 0
        for name in self.columns:
            feature = Category(name, start, sorted_labels(labels[name])) if name in labels else Number(name, start)
            features.append(feature)
            start += len(feature.names)
        distinct_names("columns", (name for feature in features for name in feature.names))
        kinds = [str(self.schema.field(name).type) for name in self.columns if name not in labels]
        dtype = np.dtype(np.float32 if all(kind in NARROW for kind in kinds) else np.float64)
        text = is_category(self.schema.field(self.target).type)
        return Layout(tuple(features), self.target, self.weights, dtype, bool(labels), text)


@dataclass(frozen=True)
class Layout:
    """How batches of a table become a chunk.

    Attributes
    ----------
    features : the columns of the table that become X, in order.
    target, weights : names of these columns.
    dtype : the type of the entries of X.
    sparse : whether X is sparse.
    text : whether the target has text or categories.
    """

    features: tuple[Feature, ...]
    target: str
    weights: str | None
    dtype: np.dtype[Any]
    sparse: bool
    text: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of X."""
        return tuple(name for feature in self.features for name in feature.names)

    def chunk(self, number: int, first: int, rows: int, batches: Iterable[pa.RecordBatch], place: Place) -> Chunk:
        """Return a chunk of rows that come in batches; ``place`` names a row of it in messages."""
        read = list(batches)

        def column(name: str) -> Iterator[pa.Array]:
            row = 0
            for batch in read:
                yield _complete(batch.column(name), name, row, place)
                row += batch.num_rows

        X = self._compressed(rows, column) if self.sparse else self._apart(column)
        target = _one([values_of(part, self.text) for part in column(self.target)])
        weight = _one([values_of(part, False) for part in column(self.weights)]) if self.weights else None
        return Chunk(number, first, X, target, None if weight is None else weight.astype(np.float64, copy=False))

    def _apart(self, column: Parts) -> Columns:
        """Return a matrix of numbers: a column that was read at once, and has the right type, is not copied."""
        numbers = (_one([values_of(part, False) for part in column(feature.name)]) for feature in self.features)
        return Columns([np.ascontiguousarray(each, dtype=self.dtype) for each in numbers])

    def _compressed(self, rows: int, column: Parts) -> Any:
        """Return the matrix with one entry per row and feature, whose indices are in order as the features are."""
        width = len(self.features)
        entries, places = np.empty((rows, width), self.dtype), np.empty((rows, width), np.int32)
        for j, feature in enumerate(self.features):
            row = 0
            for part in column(feature.name):
                here = slice(row, row + len(part))
                feature.write(part, entries[here, j], places[here, j])
                row = here.stop
        starts = np.arange(0, rows * width + 1, width, dtype=np.int32)
        X = sparse.csr_array((entries.reshape(-1), places.reshape(-1), starts), shape=(rows, len(self.names)))
        X.has_canonical_format = True
        return X


def _one(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the parts of a column as one array, without a copy if there is a single one."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _complete(column: pa.Array, name: str, row: int, place: Place) -> pa.Array:
    """Return a column, or raise if a value is missing; ``row`` is its first row in the chunk."""
    if isinstance(column, pa.DictionaryArray):
        column = with_dictionary(column)
    if column.null_count:
        missing = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise ValueError(
            f"column {name!r} has no value in {place(row + missing)}: expected a value in every row; leave out such "
            "rows, or fill them"
        )
    return column


def _check_name(argument: str, name: Any, schema: pa.Schema) -> None:
    """Raise if a name is not that of exactly one column."""
    count = schema.names.count(name)
    if count > 1:
        raise ValueError(f"{argument}={name!r}: the table has {count} columns of this name: rename them")
    if count == 0:
        close = get_close_matches(str(name), schema.names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"expected one of {schema.names[:20]}"
        raise ValueError(f"{argument}={name!r}: the table has no such column: {hint}")


def _indices(schema: pa.Schema) -> set[str]:
    """Return the columns in which pandas has stored the index of a frame: they are not data."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return {name for name in index if isinstance(name, str)}
