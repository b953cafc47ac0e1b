"""The first reading: it checks the targets, and draws a sample of the rows. The second one checks all entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..common.arrays import Indices
from ..common.checks import LARGEST
from .rows import Chunk, Rows, blocks

MOST_CLASSES = 1000
"""Largest number of classes; a target with more values is taken for a number."""

TARGET, WEIGHT = -1, -2
"""What stands for a column in an error about a target or a weight."""


class BadEntry(ValueError):
    """An entry that cannot be computed with: number of the chunk, row in it, column and value."""

    def __init__(self, number: int, row: int, column: int, value: float) -> None:
        super().__init__(number, row, column, value)
        self.number, self.row, self.column, self.value = number, row, column, value

    def expected(self) -> str:
        """Return what would be right."""
        if not np.isfinite(self.value):
            return "finite numbers; remove or fill in such rows first"
        if self.column == WEIGHT and self.value < 0:
            return "weights of at least 0"
        if self.column == WEIGHT:
            return f"0, or weights from {1 / LARGEST:.0e} to {LARGEST:.0e}"
        return f"numbers of at most {LARGEST:.0e} in size, which can be computed with; change the units"


@dataclass(frozen=True)
class Sample:
    """A rule for which rows to keep: a random share of each chunk, the same at each reading."""

    share: float
    seed: int

    def keep(self, chunk: Chunk) -> Indices:
        """Return the rows to keep."""
        counted = np.arange(len(chunk)) if chunk.weight is None else np.flatnonzero(chunk.weight > 0)
        count = min(int(np.ceil(self.share * counted.size)), counted.size)
        draw = np.random.default_rng((self.seed, chunk.number))
        return counted[np.sort(draw.choice(counted.size, count, replace=False))] if count else counted


@dataclass
class Survey:
    """What has to be known of the rows before the first step.

    Attributes
    ----------
    weight : sum of the weights, or the number of rows.
    sample : a sample of the rows, whose weights make up for the others.
    labels : the weight of each distinct value of the target, if these were asked for.
    smallest : the smallest target, if it is a number.
    """

    weight: float
    sample: list[Chunk]
    labels: Counter[Any]
    smallest: float

    def __add__(self, other: Survey) -> Survey:
        labels, smallest = Counter(self.labels), min(self.smallest, other.smallest)
        labels.update(other.labels)  # a sum would leave out those of weight 0
        return Survey(self.weight + other.weight, self.sample + other.sample, labels, smallest)


@dataclass(frozen=True)
class Look:
    """The visit of the first reading: check the targets, and draw a sample.

    ``labelled`` says that the targets are classes, and ``checked`` that the entries are known to be finite. Only those
    of the sample are looked at: whoever evaluates all rows notices the others, in sums that are not finite.
    """

    sample: Sample
    labelled: bool = False
    checked: bool = False

    def __call__(self, chunk: Chunk) -> Survey:
        """Return what is known after a visit of a chunk."""
        check_targets(chunk, self.labelled)
        rows = self.sample.keep(chunk)
        part = chunk.part(rows)
        if not self.checked and not np.all(usable(part.X.data if sparse.issparse(part.X) else part.X)):
            check_entries(chunk)
        counted = len(chunk) if chunk.weight is None else np.count_nonzero(chunk.weight)
        factor = counted / max(rows.size, 1)
        weight = np.full(rows.size, factor) if part.weight is None else part.weight * factor
        total = float(len(chunk)) if chunk.weight is None else float(chunk.weight.sum())
        labels = _counted(chunk) if self.labelled else Counter()
        smallest = np.inf if self.labelled else float(np.min(chunk.target))
        return Survey(total, [replace(part, weight=weight)], labels, smallest)


def _counted(chunk: Chunk) -> Counter[Any]:
    """Return the distinct targets of a chunk with their weights."""
    values, codes = _distinct(chunk.target)
    if any(value != value for value in values.tolist()):
        raise ValueError(f"the target has missing values in chunk {chunk.number}: expected a class in every row")
    if values.size > MOST_CLASSES:
        raise ValueError(
            f"the target has more than {MOST_CLASSES} different values, such as {values[0]!r}: expected classes; "
            "for numbers use a regressor"
        )
    return Counter(dict(zip(values.tolist(), np.bincount(codes, chunk.weight).tolist(), strict=True)))


def _distinct(target: NDArray[Any]) -> tuple[NDArray[Any], Indices]:
    """Return the distinct values of a target, and the place of each value among them; small integers are not sorted."""
    if target.dtype.kind in "iu" and target.size:
        low = int(target.min())
        if int(target.max()) - low < MOST_CLASSES:
            codes = target.astype(np.int64) - low
            occurs = np.bincount(codes) > 0
            return np.flatnonzero(occurs) + low, (np.cumsum(occurs) - 1)[codes]
    values, codes = np.unique(target, return_inverse=True)
    return values, codes


def check_targets(chunk: Chunk, labelled: bool = False) -> None:
    """Raise if a target or a weight of a chunk is not finite or too large, or a weight is negative or too small."""
    if not labelled and chunk.target.dtype.kind not in "biuf":
        raise ValueError(
            f"the target has values such as {chunk.target[0]!r}: expected numbers; for classes use a classifier"
        )
    numbers = {WEIGHT: chunk.weight, TARGET: None if labelled else chunk.target}
    for column, values in numbers.items():
        if values is None:
            continue
        fine = usable(values)
        if column == WEIGHT:
            fine &= (values == 0) | (values >= 1 / LARGEST)
        if not np.all(fine):
            row = int(np.argmin(fine))
            raise BadEntry(chunk.number, row, column, float(values[row]))


def usable(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which numbers are finite, and not too large to be computed with."""
    fine: NDArray[np.bool_] = np.isfinite(values)
    if values.dtype == np.float64:  # numbers of other types are smaller
        fine &= np.abs(values) <= LARGEST
    return fine


def check_entries(chunk: Chunk) -> None:
    """Raise if an entry of the rows of a chunk is not finite or too large."""
    for start, block in blocks(chunk, chunk.X.shape[1]):
        X = block.X.toarray() if sparse.issparse(block.X) else block.X
        if not np.all(fine := usable(X)):
            at = np.argwhere(~fine)[0]
            raise BadEntry(chunk.number, start + int(at[0]), int(at[1]), float(X[tuple(at)]))


@contextmanager
def named_error(rows: Rows) -> Iterator[None]:
    """Raise the error of an entry with the name of its column and its place."""
    try:
        yield
    except BadEntry as error:
        names = {TARGET: "the target", WEIGHT: "the weight"}
        what = names.get(error.column) or f"column {rows.names[error.column]!r}"
        where = rows.place(error.number, error.row)
        raise ValueError(f"{what} has the value {error.value} in {where}: expected {error.expected()}") from None
