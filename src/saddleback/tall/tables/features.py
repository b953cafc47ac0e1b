"""How columns of a table become columns of X: numbers as they are, categories as one column of zeros and ones each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Codes = NDArray[np.int32]


@dataclass(frozen=True)
class Feature(ABC):
    """A column of a table that becomes one or more columns of X, of which every row has one entry.

    Attributes
    ----------
    name : the name in the table.
    start : the first column of X.
    """

    name: str
    start: int

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The names of its columns of X."""

    @abstractmethod
    def write(self, column: pa.Array, entries: NDArray[Any], places: Codes) -> None:
        """Write the entries of some rows of a sparse X, and their columns of X."""


class Number(Feature):
    """A column of numbers."""

    @property
    def names(self) -> list[str]:
        return [self.name]

    def write(self, column: pa.Array, entries: NDArray[Any], places: Codes) -> None:
        entries[:] = column.to_numpy(zero_copy_only=False)
        places[:] = self.start


@dataclass(frozen=True)
class Category(Feature):
    """A column of categories, one column of X for each.

    Attributes
    ----------
    values : the categories in order.
    """

    values: pa.Array

    @property
    def names(self) -> list[str]:
        return [f"{self.name}={value}" for value in self.values.to_pylist()]

    def write(self, column: pa.Array, entries: NDArray[Any], places: Codes) -> None:
        encoded = with_dictionary(column)
        labels = encoded.dictionary.cast(self.values.type)  # files may have different types of text
        order = pc.index_in(labels, value_set=self.values).fill_null(-1).to_numpy(zero_copy_only=False)
        codes = order[_codes(encoded)]
        if codes.size and codes.min() < 0:  # all categories were found when the rows were made
            unknown = encoded[int(codes.argmin())].as_py()
            raise ValueError(f"column {self.name!r} has the new category {unknown!r}: its file was changed meanwhile")
        entries[:] = 1
        np.add(codes, self.start, out=places)


def with_dictionary(column: pa.Array) -> pa.DictionaryArray:
    """Return a column of categories as codes with a dictionary that has no null."""
    if not isinstance(column, pa.DictionaryArray):
        return column.dictionary_encode()
    return column.dictionary_decode().dictionary_encode() if column.dictionary.null_count else column


def labels_in(column: pa.Array) -> set[Any]:
    """Return the categories that occur in a column; its dictionary may have others."""
    encoded = with_dictionary(column)
    occurs = np.bincount(_codes(encoded).astype(np.int64, copy=False), minlength=len(encoded.dictionary)) > 0
    return set(compress(encoded.dictionary.to_pylist(), occurs))


def sorted_labels(found: set[Any]) -> pa.Array:
    """Return categories in order, as ``Category`` has them."""
    return pa.array(sorted(found))


def values_of(column: pa.Array, text: bool) -> NDArray[Any]:
    """Return the values of a column; equal texts are one object."""
    if not text:
        return np.asarray(column.to_numpy(zero_copy_only=False))
    encoded = with_dictionary(column)
    return np.asarray(encoded.dictionary.to_numpy(zero_copy_only=False)[_codes(encoded)])


def _codes(encoded: pa.DictionaryArray) -> NDArray[Any]:
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False))
