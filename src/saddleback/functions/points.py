"""Points that need not be stored as vectors.

A point that is as large as the data need not stay in memory as a vector. A matrix of low rank is stored as its factors,
other points as the expression that computes them. The vector is computed when it is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..common.chunks import panels
from ..common.rebuildable import stored

if TYPE_CHECKING:
    from ..common.arrays import Vector


class Point(ABC):
    """A vector, or what is needed to compute it."""

    @abstractmethod
    def vector(self) -> Vector:
        """Return the vector; the caller must not change it."""

    def segment(self, own: slice) -> Vector:
        """Return neighbouring entries of the vector; the caller must not change them."""
        return self.vector()[own]

    def times(self, factor: float) -> Point:
        """Return a multiple."""
        return self if factor == 1.0 else Multiple(self, factor)


class BufferedPoint(Point):
    """A point of a method. ``array`` is the buffer that holds its vector, if there is one."""

    array: Vector | None

    def use_buffer(self, memory: Vector) -> None:
        """Use a buffer that holds the vector."""
        self.array = memory

    @abstractmethod
    def write(self, memory: Vector) -> None:
        """Write the vector to a buffer."""

    @abstractmethod
    def extrapolate(self, vector: Vector, share: float) -> None:
        """Add ``share (vector - point)`` to a vector, in place."""

    @abstractmethod
    def inner(self, other: Vector) -> float:
        """Return the inner product with a vector."""

    @abstractmethod
    def release_buffer(self) -> bool:
        """Release the buffer if the vector can be computed again, and return whether it can."""


@stored
@dataclass
class DensePoint(BufferedPoint):
    """A vector in memory."""

    array: Vector

    def vector(self) -> Vector:
        return self.array

    def write(self, memory: Vector) -> None:
        memory[:] = self.array

    def extrapolate(self, vector: Vector, share: float) -> None:
        for own in panels(vector):
            vector[own] -= share * (self.array[own] - vector[own])

    def inner(self, other: Vector) -> float:
        return float(self.array @ other)

    def release_buffer(self) -> bool:
        return False


@stored
@dataclass(frozen=True)
class BlockPoint(Point):
    """A vector in several arrays, each as large as the data."""

    segments: Sequence[Vector]

    def vector(self) -> Vector:
        return self.segments[0] if len(self.segments) == 1 else np.concatenate(self.segments)

    def segment(self, own: slice) -> Vector:
        first = 0
        for part in self.segments:
            if own == slice(first, first + part.size):
                return part
            first += part.size
        return self.vector()[own]


@stored
@dataclass(frozen=True)
class Multiple(Point):
    """A multiple of a point."""

    point: Point
    factor: float

    def vector(self) -> Vector:
        return self.factor * self.point.vector()
