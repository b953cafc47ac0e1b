"""Operators side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..common.arrays import Columns, Indices, Vector
from ..functions.points import Point, Whole
from .contract import Operator
from .gram import square
from .traits import side_by_side

if TYPE_CHECKING:
    from ..places.torch.device import Device


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

    @property
    def in_memory(self) -> float:
        return sum(part.in_memory for part in self.parts)

    @property
    def rounding(self) -> float:
        return max(part.rounding for part in self.parts)

    def leaving(self, size: float) -> Operator:
        return Stacked([part.leaving(size) for part in self.parts])

    def with_memory(self) -> Operator:
        other = copy(self)  # with all that is known
        other.parts = [part.with_memory() for part in self.parts]
        other.remembers = any(part.remembers for part in other.parts)
        return other if other.remembers else self

    def memories(self) -> list[Any]:
        return [memory for part in self.parts for memory in part.memories()]

    def forget(self) -> None:
        for part in self.parts:
            part.forget()

    def side_by_side(self) -> Sequence[Operator]:
        return self.parts

    def _stretches(self, x: Vector) -> list[Vector]:
        return np.split(x, self.start[1:-1])

    def _sum(self, stretches: Sequence[Vector]) -> Vector:
        """Return A x, given the stretches of x."""
        total = self.parts[0].matvec(stretches[0])
        for part, own in zip(self.parts[1:], stretches[1:], strict=True):
            total += part.image(Whole(own))
        return total

    def _own(self, columns: Columns) -> Iterator[tuple[Operator, Any, Any]]:
        """Yield each part that holds some of the columns, which of them, and their places in it."""
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

    def matvec(self, x: Vector) -> Vector:
        return self._sum(self._stretches(x))

    def image(self, x: Point) -> Vector:
        if len(self.parts) == 1:
            return self.parts[0].image(x)
        return self._sum([x.stretch(slice(a, b)) for a, b in zip(self.start[:-1], self.start[1:], strict=True)])

    def rmatvec(self, y: Vector) -> Vector:
        if len(self.parts) == 1:
            return self.parts[0].rmatvec(y)
        result = np.empty_like(y, shape=self.shape[1])
        for part, a, b in zip(self.parts, self.start[:-1], self.start[1:], strict=True):
            result[a:b] = part.rmatvec(y)
        return result

    def products(self, x: Vector, *ys: Vector) -> tuple[Vector, list[Vector]]:
        found = [part.products(own, *ys) for part, own in zip(self.parts, self._stretches(x), strict=True)]
        zs = zip(*(zs for _, zs in found), strict=True)
        return reduce(np.add, [u for u, _ in found]), [np.concatenate(z) for z in zs]

    def there_and_back(self, y: Vector, between: Callable[[Indices, Vector], Vector]) -> Vector:
        def within(first: int) -> Callable[[Indices, Vector], Vector]:
            return lambda own, products: between(first + own, products)

        own = zip(self.parts, self.start[:-1], strict=True)
        return reduce(np.add, [part.there_and_back(y, within(first)) for part, first in own])

    def rimage(self, y: Vector) -> Vector:
        return self.parts[0].rimage(y) if len(self.parts) == 1 else self.rmatvec(y)

    def columns_matvec(self, columns: Columns, x: Vector) -> Vector:
        return reduce(np.add, [part.columns_matvec(local, x[mine]) for part, mine, local in self._own(columns)])

    def columns_rmatvec(self, columns: Columns, y: Vector) -> Vector:
        if isinstance(columns, slice):
            products = [part.columns_rmatvec(local, y) for part, _, local in self._own(columns)]
            return products[0] if len(products) == 1 else np.concatenate(products)
        result = np.empty(columns.size)
        for part, mine, local in self._own(columns):
            result[mine] = part.columns_rmatvec(local, y)
        return result

    def sums(self, power: int) -> tuple[Vector, Vector]:
        columns, rows = zip(*(part.sums(power) for part in self.parts), strict=True)
        if self.traits.identity_scales is not None:
            powers = [abs(scale) ** power for scale in self.traits.identity_scales]
            of_rows = np.broadcast_to(float(sum(powers)), (self.shape[0],))
            if min(powers) == max(powers):
                return np.broadcast_to(float(powers[0]), (self.shape[1],)), of_rows
            return np.concatenate(columns), of_rows
        return np.concatenate(columns), reduce(np.add, rows)

    def squares_rmatvec(self, y: Vector) -> Vector:
        return np.concatenate([part.squares_rmatvec(y) for part in self.parts])

    def largest(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        pairs = [part.largest(own, rows) for part, own in zip(self.parts, self._stretches(columns), strict=True)]
        return np.concatenate([c for c, _ in pairs]), np.asarray(np.max([r for _, r in pairs], axis=0))

    def absolute_products(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        pairs = [
            part.absolute_products(own, rows) for part, own in zip(self.parts, self._stretches(columns), strict=True)
        ]
        return np.concatenate([c for c, _ in pairs]), np.asarray(np.sum([r for _, r in pairs], axis=0))

    def block_row_sums(self, columns: Columns) -> Vector:
        return reduce(np.add, [part.block_row_sums(local) for part, _, local in self._own(columns)])

    def dense_columns(self, columns: Indices) -> Vector:
        result = np.empty((self.shape[0], columns.size))
        for part, mine, local in self._own(columns):
            result[:, mine] = part.dense_columns(local)
        return result

    def gram(self, columns: Indices, weight: Vector) -> Vector:
        total = np.zeros((columns.size,) * 2, order="F")
        own = [(part, np.flatnonzero(mine), local) for part, mine, local in self._own(columns)]
        for i, (part, mine, local) in enumerate(own):
            total[np.ix_(mine, mine)] = part.gram(local, weight)
            for other, theirs, far in own[:i]:
                if mine.size <= theirs.size:
                    cross = other.columns_rtimes(far, weight[:, None] * part.dense_columns(local)).T
                else:
                    cross = part.columns_rtimes(local, weight[:, None] * other.dense_columns(far))
                total[np.ix_(mine, theirs)], total[np.ix_(theirs, mine)] = cross, cross.T
        return total

    def compressed(self) -> Any:
        return sparse.hstack([part.compressed() for part in self.parts], format="csc")

    def normal(self) -> Any:
        parts = [part.normal() for part in self.parts]
        return sum(parts) if all(part.ndim == 1 for part in parts) else sum(square(part) for part in parts)

    def rows_matvec(self, rows: Indices, x: Vector) -> Vector:
        products = (part.rows_matvec(rows, own) for part, own in zip(self.parts, self._stretches(x), strict=True))
        return np.asarray(np.sum(list(products), axis=0))

    def rows_rmatvec(self, rows: Indices, y: Vector) -> Vector:
        return np.concatenate([part.rows_rmatvec(rows, y) for part in self.parts])

    def rowwise(self) -> Operator:
        return Stacked([part.rowwise() for part in self.parts])

    def times(self, matrix: Any) -> Vector:
        rows = sparse.csr_array(matrix)
        own = zip(self.parts, self.start[:-1], self.start[1:], strict=True)
        return np.asarray(np.sum([part.times(rows[a:b]) for part, a, b in own], axis=0))

    def outer(self, weight: Vector) -> Vector:
        own = zip(self.parts, self._stretches(weight), strict=True)
        return np.asarray(np.sum([part.outer(stretch) for part, stretch in own], axis=0))

    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        return Stacked([part.restrict(rows, local) for part, _, local in self._own(columns)])

    def pack(self, columns: Indices, single: bool) -> Operator:
        of_part = np.searchsorted(self.start, columns, side="right") - 1
        runs = np.split(np.arange(columns.size), np.flatnonzero(np.diff(of_part)) + 1)
        homes = [of_part[run[0]] for run in runs]
        return Stacked(
            [self.parts[i].pack(columns[run] - self.start[i], single) for i, run in zip(homes, runs, strict=True)]
        )

    def _load(self, runs: Sequence[Indices]) -> Iterator[Operator]:
        homes = [int(np.searchsorted(self.start, run[0], side="right")) - 1 for run in runs]
        mine = {i: [run - self.start[i] for run, home in zip(runs, homes, strict=True) if home == i] for i in homes}
        coming = {i: self.parts[i].loaded(own) for i, own in mine.items()}
        return (next(coming[i]) for i in homes)

    def columnar(self) -> Operator:
        parts = [part.columnar() for part in self.parts]
        return self if all(new is old for new, old in zip(parts, self.parts, strict=True)) else Stacked(parts)

    def native(self) -> list[Any]:
        return _all_of([part.native() for part in self.parts])

    def tensors(self) -> list[Any]:
        return _all_of([part.tensors() for part in self.parts])

    def zeros(self, size: int) -> Vector:
        return super().zeros(size) if self.traits.identity_scales is None else self.parts[0].zeros(size)

    def _placed(self, device: Device) -> Operator:
        return Stacked([part.placed(device) for part in self.parts])


def _all_of(matrices: list[list[Any]]) -> list[Any]:
    """Return the matrices of all parts, none where a part has none."""
    return [matrix for part in matrices for matrix in part] if all(matrices) else []
