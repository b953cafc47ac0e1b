"""Types of arrays, partitions of their entries, and parameters that hold one value for all entries.

A parameter with the same value for each coordinate is an array of stride 0. It takes no memory, and formulas evaluate
it once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import sqrt
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .cached import cached_property

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]
Columns = Indices | slice
Step = float | Vector
Parameter = float | Vector
ToDevice = Callable[[Any], Any]

LARGE = 4096
"""Mean number of coordinates per block from which a separate call per block is worthwhile."""


class Blocks:
    """A partition of 0..n-1: block j holds ``order[start[j]:start[j + 1]]``.

    Without an order, blocks hold neighbouring coordinates; the order is then made when it is first read.
    """

    def __init__(self, order: Indices | None, start: Indices) -> None:
        self.start = start
        self.contiguous = order is None
        if order is not None:
            self.order = order

    @cached_property
    def order(self) -> Indices:
        """The coordinates, one block after the other."""
        return np.arange(self.start[-1])

    def __len__(self) -> int:
        return self.start.size - 1

    def __repr__(self) -> str:
        return f"<{len(self)} groups of {self.start[-1]} entries>"

    def __iter__(self) -> Iterator[Indices]:
        """Yield the coordinates of each block."""
        return (self.order[a:b] for a, b in zip(self.start[:-1], self.start[1:], strict=True))

    @property
    def sizes(self) -> Indices:
        """Number of coordinates in each block."""
        return np.diff(self.start)

    @cached_property
    def of_columns(self) -> Indices:
        """The block of each column."""
        result = np.empty(self.order.size, dtype=np.int64)
        result[self.order] = np.repeat(np.arange(len(self)), self.sizes)
        return result

    def moved(self, place: ToDevice) -> Blocks:
        """Return the partition with its indices on a device."""
        other = Blocks(None if self.contiguous else place(self.order), place(self.start))
        other.of_columns = place(self.of_columns)
        return other

    def sums(self, values: Vector) -> Vector:
        """Return the sum of the values of each block."""
        if self.contiguous:
            return np.add.reduceat(values, self.start[:-1])
        if isinstance(values, np.ndarray):
            return summed_by(self.of_columns, values, len(self))
        return np.add.reduceat(values[self.order], self.start[:-1])  # on a device the sums above vary by rounding

    def spread(self, of_blocks: Vector) -> Vector:
        """Return a value per coordinate, given one per block."""
        return np.repeat(of_blocks, self.sizes) if self.contiguous else of_blocks[self.of_columns]

    def of_blocks(self, values: Vector) -> Vector:
        """Return a value per block, given one per coordinate that is the same within each block."""
        return values[self.order[self.start[:-1]]]

    def columns(self, blocks: Indices) -> Indices:
        """Coordinates of the given blocks, one block after the other."""
        if len(self) == self.start[-1]:
            return self.order[blocks]
        return np.concatenate([self.order[self.start[j] : self.start[j + 1]] for j in blocks])

    def equal(self, other: Blocks) -> bool:
        """Return whether another partition is the same."""
        if self is other:
            return True
        if self.contiguous != other.contiguous or not np.array_equal(self.start, other.start):
            return False
        return self.contiguous or np.array_equal(self.order, other.order)

    def pieces(self, blocks: Indices) -> list[tuple[Columns, Indices]]:
        """Return the given blocks with their coordinates: large blocks one by one, without a copy, others together."""
        if not self.contiguous or self.start[-1] < LARGE * len(self):
            return [(self.columns(blocks), blocks)]
        return [(slice(self.start[j], self.start[j + 1]), blocks[i : i + 1]) for i, j in enumerate(blocks)]

    @classmethod
    def single(cls, n: int) -> Blocks:
        """One block that holds all n coordinates."""
        return cls(None, np.array([0, n]))

    @classmethod
    def scalars(cls, n: int, width: int = 1) -> Blocks:
        """Blocks of ``width`` neighbouring coordinates, n coordinates in all."""
        return cls(None, np.arange(0, n + 1, width))


def here(array: Any) -> Any:
    """Return an array as it is: what a function on the host does where one on a device moves its results there."""
    return array


def length(vector: Vector) -> float:
    """Return the Euclidean length: of a short vector in a third of the time of ``np.linalg.norm``."""
    return sqrt(vector.dot(vector)) if isinstance(vector, np.ndarray) else float(np.linalg.norm(vector))


def contiguous(vector: Vector, radius: Vector | None) -> tuple[Vector, Vector | None]:
    """Return a vector and its radius as the compiled core takes them."""
    own = None if radius is None else np.ascontiguousarray(radius)
    return np.ascontiguousarray(vector, dtype=np.float64), own


def multiple(x: Vector, factor: float) -> Vector:
    """Return factor x; x itself if the factor is 1."""
    return x if factor == 1.0 else factor * x


def summed_by(places: Indices, values: Vector, size: int) -> Vector:
    """Return the vector of that size in which each value is added at its place."""
    return np.bincount(places, values, size).astype(np.float64, copy=False)


def constant(value: Any, size: int) -> Vector:
    """Return an array of that size with the same value everywhere, which takes no memory."""
    return np.ndarray((size,), np.float64, np.float64(value), 0, (0,))  # np.broadcast_to takes five times as long


def is_one_value(*parameters: Vector) -> bool:
    """Return whether each parameter is known to be a single value."""
    return all(parameter.strides == (0,) for parameter in parameters)


@overload
def squeeze_constant(parameter: Vector) -> Vector: ...
@overload
def squeeze_constant(parameter: Parameter) -> Parameter: ...
def squeeze_constant(parameter: Parameter) -> Parameter:
    """Return a parameter that is a single value as an array of one element."""
    return parameter if isinstance(parameter, (int, float)) or parameter.strides != (0,) else parameter[:1]


def map_constants(formula: Callable[..., Any], *parameters: Vector) -> Vector:
    """Return a formula of parameters, evaluated once if each of them is a single value."""
    if parameters[0].size and is_one_value(*parameters):
        return constant(formula(*(parameter[0] for parameter in parameters)), parameters[0].size)
    result: Vector = formula(*parameters)
    return result


def anywhere(condition: Callable[[Any], Any], parameter: Vector) -> bool:
    """Return whether a condition holds for some coordinate of a parameter, tested once if it is a single value."""
    if parameter.strides == (0,) and parameter.size:
        return bool(condition(parameter[0]))
    return bool(condition(parameter).any())


def take(parameter: Vector, at: Indices) -> Vector:
    """Return a parameter at some coordinates; a single value stays one."""
    if isinstance(parameter, np.ndarray) and parameter.strides == (0,) and parameter.size:
        return constant(parameter[0], at.size)
    return parameter[at]


def concat_constants(first: Vector, second: Vector) -> Vector:
    """Return two parameters concatenated; a single value if both are the same one."""
    if is_one_value(first, second) and first.size and second.size and first[0] == second[0]:
        return constant(first[0], first.size + second.size)
    return np.concatenate([first, second])
