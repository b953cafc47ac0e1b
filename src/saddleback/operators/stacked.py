"""Operators side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce, singledispatch
from typing import Any

import numpy as np
from scipy import sparse

from ..common.arrays import Columns, Flags, Indices, Vector
from ..common.rounded import Rounded
from .above import Above, cross_gram
from .contract import Operator, Side, Weights
from .gram import square
from .memory import bytes_in_memory
from .traits import side_by_side


class Stacked(Operator):
    """Operators side by side: [A_1, ..., A_J]."""

    def __init__(self, parts: Sequence[Operator]) -> None:
        self.parts = parts
        self.start = np.concatenate([[0], np.cumsum([part.shape[1] for part in parts])])
        self.shape = (parts[0].shape[0], int(self.start[-1]))
        self.traits = side_by_side([part.traits for part in parts], [part.shape[1] for part in parts])

    def without(self, part: int) -> Stacked:
        """Return the operators without one of them."""
        return Stacked([other for i, other in enumerate(self.parts) if i != part])

    def _split(self, x: Vector) -> list[Vector]:
        return np.split(x, self.start[1:-1])

    def _with_split(self, x: Vector) -> Iterator[tuple[Operator, Vector]]:
        return zip(self.parts, self._split(x), strict=True)

    def _own(self, columns: Columns) -> Iterator[tuple[Operator, Any, Any]]:
        """Yield each part that holds some of the columns, which of the columns, and their indices in the part."""
        for i, part in enumerate(self.parts):
            if isinstance(columns, slice):
                first, last = max(columns.start, self.start[i]), min(columns.stop, self.start[i + 1])
                if first < last:
                    yield (
                        part,
                        slice(first - columns.start, last - columns.start),
                        slice(first - self.start[i], last - self.start[i]),
                    )
                continue
            mine = (columns >= self.start[i]) & (columns < self.start[i + 1])
            if np.any(mine):
                yield part, mine, columns[mine] - self.start[i]

    def matvec(self, x: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        if columns is not None:
            images = [part.matvec(x[mine], local) for part, mine, local in self._own(columns)]
            return reduce(np.add, images) if images else np.zeros(self.shape[0])
        if rows is not None:
            return np.asarray(np.sum([part.matvec(own, rows=rows) for part, own in self._with_split(x)], axis=0))
        return summed_products(self.parts, self._split(x))

    def rmatvec(self, y: Vector, columns: Columns | None = None, rows: Indices | None = None) -> Vector:
        if columns is not None:
            return self._columns_rmatvec(y, columns)
        if len(self.parts) == 1 or rows is not None:
            products = [part.rmatvec(y, rows=rows) for part in self.parts]
            return products[0] if len(products) == 1 else np.concatenate(products)
        result = np.empty_like(y, shape=self.shape[1])
        for part, a, b in zip(self.parts, self.start[:-1], self.start[1:], strict=True):
            result[a:b] = part.rmatvec(y)
        return result

    def _columns_rmatvec(self, y: Vector, columns: Columns) -> Vector:
        if isinstance(columns, slice):
            products = [part.rmatvec(y, local) for part, _, local in self._own(columns)]
            return products[0] if len(products) == 1 else np.concatenate(products)
        result = np.empty(columns.size)
        for part, mine, local in self._own(columns):
            result[mine] = part.rmatvec(y, local)
        return result

    def products(self, x: Vector, *ys: Vector) -> tuple[Vector, list[Vector]]:
        found = [part.products(own, *ys) for part, own in self._with_split(x)]
        zs = zip(*(zs for _, zs in found), strict=True)
        return reduce(np.add, [u for u, _ in found]), [np.concatenate(z) for z in zs]

    def matvec_rounded(self, x: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        radii = [None] * len(self.parts) if radius is None else self._split(radius)
        own = zip(self.parts, self._split(x), radii, strict=True)
        return reduce(Rounded.plus, [part.matvec_rounded(each, within, precise) for part, each, within in own])

    def rmatvec_rounded(self, y: Vector, radius: Vector | None = None, precise: bool = False) -> Rounded:
        return Rounded.joined([part.rmatvec_rounded(y, radius, precise) for part in self.parts])

    def times(self, matrix: Any) -> Vector:
        rows = sparse.csr_array(matrix)
        own = zip(self.parts, self.start[:-1], self.start[1:], strict=True)
        return np.asarray(np.sum([part.times(rows[a:b]) for part, a, b in own], axis=0))

    def _sums(self, power: float, columns: Columns | None, weights: Weights | None) -> tuple[Vector, Vector]:
        if columns is not None:
            pairs = [part.sums(power, local) for part, _, local in self._own(columns)]
            of_columns = np.empty(sum(own.size for own, _ in pairs))
            for (own, _), (_, mine, _) in zip(pairs, self._own(columns), strict=True):
                of_columns[mine] = own
            return of_columns, reduce(np.add, [rows for _, rows in pairs])
        if weights is not None:
            return self._weighted_sums(power, *weights)
        down, across = zip(*(part.sums(power) for part in self.parts), strict=True)
        scales = self.traits.identity_scales
        if scales is None:
            return np.concatenate(down), reduce(np.add, across)
        powers = [abs(scale) ** power for scale in scales]
        of_rows = np.broadcast_to(float(sum(powers)), (self.shape[0],))
        if min(powers) == max(powers):
            return np.broadcast_to(float(powers[0]), (self.shape[1],)), of_rows
        return np.concatenate(down), of_rows

    def _weighted_sums(self, power: float, columns: Vector | None, rows: Vector | None) -> tuple[Vector, Vector]:
        own = [None] * len(self.parts) if columns is None else self._split(columns)
        pairs = [part.sums(power, weights=(each, rows)) for part, each in zip(self.parts, own, strict=True)]
        together: Callable[..., Any] = np.max if power == np.inf else np.sum
        return np.concatenate([c for c, _ in pairs]), np.asarray(together([r for _, r in pairs], axis=0))

    def entries(self, columns: Indices | None = None, compressed: bool = False) -> Any:
        columns = np.arange(self.shape[1]) if columns is None else columns
        if compressed and columns.size:
            found = [(part.entries(local, compressed=True), mine) for part, mine, local in self._own(columns)]
            places = np.concatenate([np.flatnonzero(mine) for _, mine in found])
            joined = sparse.hstack([matrix for matrix, _ in found], format="csc")
            return joined if np.all(np.diff(places) > 0) else joined[:, np.argsort(places)]
        if compressed:
            return sparse.csc_matrix((self.shape[0], 0))
        result = np.empty((self.shape[0], columns.size))
        for part, mine, local in self._own(columns):
            result[:, mine] = part.entries(local)
        return result

    def short_rows(self) -> tuple[sparse.csr_array, Flags]:
        found = [part.short_rows() for part in self.parts]
        short = np.logical_and.reduce([own for _, own in found])
        return sparse.diags_array(short.astype(float)) @ sparse.hstack([rows for rows, _ in found], format="csr"), short

    def gram(self, weight: Vector | None, columns: Indices | None = None, side: Side = "columns") -> Any:
        if weight is None and side == "rows":
            parts = [part.gram(None, side="rows") for part in self.parts]
            return sum(parts) if all(part.ndim == 1 for part in parts) else sum(square(part) for part in parts)
        # parts of different kinds are combined on the host
        weight = np.ones(self.shape[0]) if weight is None else np.asarray(weight)
        if side == "rows":
            own = self._with_split(weight)
            return np.asarray(np.sum([part.gram(each, side="rows") for part, each in own], axis=0))
        return self._gram(weight, np.arange(self.shape[1]) if columns is None else columns)

    def _gram(self, weight: Vector, columns: Indices) -> Vector:
        total = np.zeros((columns.size,) * 2, order="F")
        own = [(part, np.flatnonzero(mine), local) for part, mine, local in self._own(columns)]
        for i, (part, mine, local) in enumerate(own):
            total[np.ix_(mine, mine)] = part.gram(weight, local)
            for other, theirs, far in own[:i]:
                cross = cross_gram(part, local, other, far, weight)
                total[np.ix_(mine, theirs)], total[np.ix_(theirs, mine)] = cross, cross.T
        return total

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        return Stacked([part.restrict(rows, local) for part, _, local in self._own(columns)])

    def pack(self, columns: Indices, single: bool = False, beside: float = 0.0) -> Operator:
        of_part = np.searchsorted(self.start, columns, side="right") - 1
        runs = np.split(np.arange(columns.size), np.flatnonzero(np.diff(of_part)) + 1)
        own = [(of_part[run[0]], run) for run in runs]
        return Stacked([self.parts[i].pack(columns[run] - self.start[i], single, beside) for i, run in own])

    def ordered(self, by: Side) -> Operator:
        parts = [part.ordered(by) for part in self.parts]
        return self if all(new is old for new, old in zip(parts, self.parts, strict=True)) else Stacked(parts)

    def _load(self, runs: Sequence[Indices]) -> Iterator[Operator]:
        homes = [int(np.searchsorted(self.start, run[0], side="right")) - 1 for run in runs]
        mine = {i: [run - self.start[i] for run, home in zip(runs, homes, strict=True) if home == i] for i in homes}
        coming = {i: self.parts[i].loaded(own) for i, own in mine.items()}
        return (next(coming[i]) for i in homes)


def parts_of(A: Operator) -> Sequence[Operator]:
    """Return the operators, side by side, that make up an operator."""
    parts: Sequence[Operator] | None = getattr(A, "parts", None)
    return [A] if parts is None else parts


def leaves(A: Operator) -> list[Operator]:
    """Return the operators, side by side or one above the other, that make up an operator."""
    return [
        leaf
        for part in parts_of(A)
        for leaf in ([row for row, _ in part.present] if isinstance(part, Above) else [part])
    ]


def row_stretches(A: Operator) -> list[slice]:
    """Return the neighbouring rows that belong to one row of operators each: all rows if there is only one."""
    first = parts_of(A)[0]
    return first.stretches if isinstance(first, Above) else [slice(0, A.shape[0])]


def columns_in(A: Operator, stretch: int) -> int:
    """Return how many columns have an operator in one of the ``row_stretches``."""
    return sum(part.shape[1] for part in parts_of(A) if not isinstance(part, Above) or part.rows[stretch] is not None)


@singledispatch
def hstack(first: Operator, second: Operator) -> Operator:
    """Return [A, B]."""
    return Stacked([*parts_of(first), *parts_of(second)])


def summed_products(parts: Sequence[Operator], xs: Sequence[Vector]) -> Vector:
    """Return A x for operators side by side, given the part of x for each."""
    if any(isinstance(part, Above) for part in parts):
        total = np.zeros_like(xs[0], shape=parts[0].shape[0])
        for part, own in zip(parts, xs, strict=True):  # blocks of zeros cost nothing
            for block, rows in part.present if isinstance(part, Above) else [(part, slice(None))]:
                total[rows] += block.matvec(own)
        return total
    total = parts[0].matvec(xs[0])
    for part, own in zip(parts[1:], xs[1:], strict=True):
        total += own if part.traits.identity_scales == (1.0,) else part.matvec(own)
    return total


@bytes_in_memory.register
def _(A: Stacked) -> float:
    return sum(bytes_in_memory(part) for part in A.parts)
