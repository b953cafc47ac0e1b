"""Operators one above the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from .. import _native
from ..common.arrays import Columns, Flags, Indices, Vector
from ..common.cached import cached_property
from ..common.rounded import Rounded
from .contract import Operator, Side, Weights
from .dense import Dense
from .memory import bytes_in_memory
from .sparse import Compressed, Transposed
from .traits import one_above_the_other

LARGEST = 5e7
"""Most bytes of a matrix that is copied so that the compiled kernels can read it."""


class Above(Operator):
    """Operators one above the other, [A_1; ...; A_R]: the columns of one block of variables under several losses.

    Parameters
    ----------
    parts : sequence of (Operator or None)
        The operators, with the same number of columns; None is a block of zeros. At least one is an operator.
    heights : sequence of int
        Number of rows of each part.
    """

    def __init__(self, parts: Sequence[Operator | None], heights: Sequence[int]) -> None:
        self.rows = parts
        self.heights = heights
        ends = np.cumsum([0, *heights]).tolist()
        self.stretches = [slice(a, b) for a, b in pairwise(ends)]
        self.present = [(part, own) for part, own in zip(parts, self.stretches, strict=True) if part is not None]
        self.shape = (ends[-1], self.present[0][0].shape[1])
        self.traits = one_above_the_other([part.traits for part, _ in self.present])

    @cached_property
    def native(self) -> _native.Matrix:
        """The matrices as the compiled core takes them, if all are in memory, with contiguous columns."""
        parts = [part.native for part, _ in self.present if isinstance(part, Dense | Compressed | Transposed)]
        return _native.Matrix(parts, [own.start for _, own in self.present], self.shape[0])

    def each(self, change: Callable[[Operator], Operator]) -> Above:
        """Return the operators after a change of each; itself if none of them changes."""
        parts = [None if part is None else change(part) for part in self.rows]
        return (
            self if all(new is old for new, old in zip(parts, self.rows, strict=True)) else Above(parts, self.heights)
        )

    def other_rows(self, part: int) -> list[Operator | None]:
        """Return all parts but one."""
        return [other for i, other in enumerate(self.rows) if i != part]

    def without(self, part: int) -> Operator:
        """Return the operators without one of them."""
        parts = self.other_rows(part)
        heights = [height for i, height in enumerate(self.heights) if i != part]
        return parts[0] if len(parts) == 1 and parts[0] is not None else Above(parts, heights)

    def _by_part(self, rows: Indices) -> Iterator[tuple[Operator, Any, Indices]]:
        """Yield each part that has some of the rows, which of the rows, and their indices in the part."""
        for part, own in self.present:
            mine = (rows >= own.start) & (rows < own.stop)
            if np.any(mine):
                yield part, mine, rows[mine] - own.start

    def matvec(self, x: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        if rows is not None:
            result = np.zeros(rows.size)
            for part, mine, local in self._by_part(rows):
                result[mine] = part.matvec(x, rows=local)
            return result
        result = np.zeros_like(x, shape=self.shape[0])
        for part, own in self.present:
            result[own] = part.matvec(x, columns)
        return result

    def rmatvec(self, y: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        if rows is not None:
            products = [part.rmatvec(y[mine], rows=local) for part, mine, local in self._by_part(rows)]
            return reduce(np.add, products) if products else np.zeros(self.shape[1])
        total: Vector = reduce(np.add, [part.rmatvec(y[own], columns) for part, own in self.present])
        return total

    def matvec_rounded(self, x: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        zeros = (Rounded.around(np.zeros(height)) for height in self.heights)
        parts = (
            nothing if part is None else part.matvec_rounded(x, radius, precise)
            for part, nothing in zip(self.rows, zeros, strict=True)
        )
        return Rounded.joined(list(parts))

    def rmatvec_rounded(self, y: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        parts = (
            part.rmatvec_rounded(y[own], None if radius is None else radius[own], precise) for part, own in self.present
        )
        return reduce(Rounded.plus, parts)

    def times(self, matrix: Any) -> Vector:
        result = np.zeros((self.shape[0], matrix.shape[1]))
        for part, own in self.present:
            result[own] = part.times(matrix)
        return result

    def _sums(self, power: float, columns: Columns | None, weights: Weights | None) -> tuple[Vector, Vector]:
        together = np.maximum if power == np.inf else np.add
        of_columns, of_rows = [], np.zeros(self.shape[0])
        for part, own in self.present:
            if weights is None:
                down, of_rows[own] = part.sums(power, columns)
            else:
                down, across = part.sums(power, None, (weights[0], None if weights[1] is None else weights[1][own]))
                if weights[0] is not None:
                    of_rows[own] = across
            of_columns.append(down)
        return reduce(together, of_columns), of_rows if weights is None or weights[0] is not None else np.empty(0)

    def entries(self, columns: Indices | None = None, compressed: bool = False) -> Any:
        width = self.shape[1] if columns is None else columns.size
        if compressed:
            blocks = [
                sparse.csc_matrix((height, width)) if part is None else part.entries(columns, compressed=True)
                for part, height in zip(self.rows, self.heights, strict=True)
            ]
            return sparse.vstack(blocks, format="csc")
        result = np.zeros((self.shape[0], width), order="F")
        for part, own in self.present:
            result[own] = part.entries(columns)
        return result

    def short_rows(self) -> tuple[sparse.csr_array, Flags]:
        found = [
            (sparse.csr_array((height, self.shape[1])), np.ones(height, dtype=bool))
            if part is None
            else part.short_rows()
            for part, height in zip(self.rows, self.heights, strict=True)
        ]
        return sparse.vstack([rows for rows, _ in found], format="csr"), np.concatenate([short for _, short in found])

    def gram(self, weight: Vector | None, columns: Indices | None = None, side: Side = "columns") -> Any:
        if side == "columns":
            parts = [part.gram(None if weight is None else weight[own], columns) for part, own in self.present]
            return reduce(np.add, parts)
        return super().gram(np.ones(self.shape[1]) if weight is None else np.asarray(weight), columns, side)

    def cross_gram(self, weight: Vector, columns: Indices, other: Above, others: Indices) -> Vector:
        """Return A_S' diag(weight) B_T for some columns S of this operator and T of another one with the same rows."""
        total = np.zeros((columns.size, others.size))
        for mine, theirs, own in zip(self.rows, other.rows, self.stretches, strict=True):
            if mine is not None and theirs is not None:
                total += cross_gram(mine, columns, theirs, others, weight[own])
        return total

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        parts: list[Operator | None] = []
        heights = []
        if np.any(np.diff(np.searchsorted([own.stop for own in self.stretches], rows, side="right")) < 0):
            return Compressed(sparse.csc_array(self.entries(columns, compressed=True).tocsr()[rows]))
        for part, own in zip(self.rows, self.stretches, strict=True):
            local = rows[(rows >= own.start) & (rows < own.stop)] - own.start
            parts.append(None if part is None or local.size == 0 else part.restrict(local, columns))
            heights.append(local.size)
        if all(part is None for part in parts):
            return Compressed(sparse.csc_matrix((rows.size, columns.size)))
        return one_matrix(Above(parts, heights))

    def pack(self, columns: Indices, single: bool = False, beside: float = 0.0) -> Operator:
        """Return some columns in separate memory, in float64, since ``one_matrix`` joins the parts in it."""
        return one_matrix(self.each(lambda part: part.pack(columns, False, beside)))

    def ordered(self, by: Side) -> Operator:
        parts = self.each(lambda part: part.ordered(by))
        return one_matrix(parts) if by == "columns" else parts

    def _load(self, runs: Sequence[Indices]) -> Iterator[Operator]:
        coming = [None if part is None else part.loaded(runs) for part in self.rows]
        for _ in runs:
            yield Above([None if part is None else next(part) for part in coming], self.heights)

    def rmatmat(self, Y: Vector, columns: Indices | None = None) -> Vector:
        total: Vector = reduce(np.add, [part.rmatmat(Y[own], columns) for part, own in self.present])
        return total


def cross_gram(first: Operator, columns: Indices, second: Operator, others: Indices, weight: Vector) -> Vector:
    """Return A_S' diag(weight) B_T for some columns S of A and T of B, which have the same rows."""
    if isinstance(first, Above) and isinstance(second, Above) and first.heights == second.heights:
        return first.cross_gram(weight, columns, second, others)
    if columns.size <= others.size:
        return second.rmatmat(weight[:, None] * first.entries(columns), others).T
    return first.rmatmat(weight[:, None] * second.entries(others), columns)


def one_matrix(A: Above) -> Operator:
    """Return operators one above the other as one matrix, if all are dense or all are sparse; otherwise A itself."""
    if bytes_in_memory(A) > min(LARGEST, A.traits.budget):
        return A
    parts = [part for part, _ in A.present]
    if len(parts) == len(A.rows) and all(isinstance(part, Dense) for part in parts):
        return Dense(A.entries())
    if all(isinstance(part, Compressed | Transposed) for part in parts):
        return Compressed(sparse.csc_array(A.entries(compressed=True)))
    return A


@bytes_in_memory.register
def _(A: Above) -> float:
    return sum(bytes_in_memory(part) for part, _ in A.present)
