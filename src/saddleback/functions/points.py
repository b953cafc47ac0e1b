"""Points as they are kept.

A point that is as large as the data need not stay in memory as it is: a matrix of low rank is known by its factors, and
other points by what they were computed from. Who keeps a point asks for its vector when it needs it.
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
    """A vector, or what it is made of."""

    @abstractmethod
    def vector(self) -> Vector:
        """Return the vector, which is not the caller's to change."""

    def stretch(self, own: slice) -> Vector:
        """Return neighbouring entries, likewise."""
        return self.vector()[own]

    def times(self, factor: float) -> Point:
        """Return a multiple."""
        return self if factor == 1.0 else Multiple(self, factor)


class Held(Point):
    """A point of a method: ``array`` is its vector, as long as there is one in memory."""

    array: Vector | None

    def lie_in(self, memory: Vector) -> None:
        """Take memory that holds the vector for it."""
        self.array = memory

    @abstractmethod
    def write(self, memory: Vector) -> None:
        """Write the vector to memory that is there."""

    @abstractmethod
    def drive_away(self, vector: Vector, share: float) -> None:
        """Add to a vector that share of its difference from this one."""

    @abstractmethod
    def inner(self, other: Vector) -> float:
        """Return the inner product with a vector."""

    @abstractmethod
    def fold(self) -> bool:
        """Forget the vector if it can be made again, and return whether it can."""


@stored
@dataclass
class Whole(Held):
    """A vector that is known by its entries alone."""

    array: Vector

    def vector(self) -> Vector:
        return self.array

    def write(self, memory: Vector) -> None:
        memory[:] = self.array

    def drive_away(self, vector: Vector, share: float) -> None:
        for own in panels(vector):
            vector[own] -= share * (self.array[own] - vector[own])

    def inner(self, other: Vector) -> float:
        return float(self.array @ other)

    def fold(self) -> bool:
        return False


@stored
@dataclass(frozen=True)
class Apart(Point):
    """A vector whose stretches lie apart in memory: each is as large as the data, and they are looked at in turn."""

    stretches: Sequence[Vector]

    def vector(self) -> Vector:
        return self.stretches[0] if len(self.stretches) == 1 else np.concatenate(self.stretches)

    def stretch(self, own: slice) -> Vector:
        first = 0
        for part in self.stretches:
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
