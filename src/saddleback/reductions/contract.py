"""The contract of a reduction: a smaller problem, and the maps from its points to those of the original problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..common.arrays import Vector
from ..functions.points import Point
from ..model.index_map import IndexMap
from ..model.model import Model
from ..result import Status


class Reduction(ABC):
    """A smaller problem, and the maps to it and back.

    Attributes
    ----------
    model : the smaller problem.
    eliminates : whether blocks have become part of the loss.
    passes : the passes that it took to find it.
    status : the status of the problem, if the removed part already decides it; otherwise None.
    """

    model: Model
    eliminates: bool = False
    passes: float = 0.0
    status: Status | None = None

    @abstractmethod
    def kept(self) -> IndexMap:
        """Return which rows and columns are kept; needed for explicit strengths."""

    @abstractmethod
    def restore_x(self, x: Point, u: Callable[[], Vector]) -> Point:
        """Return the point of the original problem; u gives Ax of the smaller one, and is called only if needed."""

    @abstractmethod
    def restore_u(self, x: Point, u: Vector) -> Vector:
        """Return Ax of the original problem, given x and Ax of the smaller one."""

    @abstractmethod
    def restore_y(self, y: Point) -> Point:
        """Return the dual point of the original problem."""

    @abstractmethod
    def restore_ray(self, dx: Vector, dy: Vector) -> tuple[Vector, Vector]:
        """Return directions of the original problem; the removed entries are 0."""

    @abstractmethod
    def reduce_x(self, x: Vector) -> Vector:
        """Return the entries of x that are kept."""

    @abstractmethod
    def reduce_y(self, y: Vector) -> Vector:
        """Return the entries of y that are kept."""

    def then(self, second: Reduction) -> Reduction:
        """Return this reduction followed by a reduction of its smaller problem."""
        eliminates, passes = self.eliminates or second.eliminates, self.passes + second.passes
        return Chain(self, second, second.model, eliminates, passes, self.status or second.status)


@dataclass(frozen=True)
class Unchanged(Reduction):
    """The problem itself."""

    model: Model
    passes: float = 0.0
    status: Status | None = None

    def kept(self) -> IndexMap:
        m, n = self.model.A.shape
        return IndexMap((m, n), np.arange(m), np.arange(n))

    def restore_x(self, x: Point, u: Callable[[], Vector]) -> Point:
        return x

    def restore_u(self, x: Point, u: Vector) -> Vector:
        return u

    def restore_y(self, y: Point) -> Point:
        return y

    def restore_ray(self, dx: Vector, dy: Vector) -> tuple[Vector, Vector]:
        return dx, dy

    def reduce_x(self, x: Vector) -> Vector:
        return x

    def reduce_y(self, y: Vector) -> Vector:
        return y


@dataclass(frozen=True)
class Chain(Reduction):
    """One reduction after the other."""

    first: Reduction
    second: Reduction

    model: Model
    eliminates: bool
    passes: float
    status: Status | None

    def kept(self) -> IndexMap:
        first, second = self.first.kept(), self.second.kept()
        return IndexMap(first.shape, first.rows[second.rows], first.columns[second.columns])

    def reduce_x(self, x: Vector) -> Vector:
        return self.second.reduce_x(self.first.reduce_x(x))

    def reduce_y(self, y: Vector) -> Vector:
        return self.second.reduce_y(self.first.reduce_y(y))

    def restore_x(self, x: Point, u: Callable[[], Vector]) -> Point:
        return self.first.restore_x(self.second.restore_x(x, u), lambda: self.second.restore_u(x, u()))

    def restore_u(self, x: Point, u: Vector) -> Vector:
        return self.first.restore_u(self.second.restore_x(x, lambda: u), self.second.restore_u(x, u))

    def restore_y(self, y: Point) -> Point:
        return self.first.restore_y(self.second.restore_y(y))

    def restore_ray(self, dx: Vector, dy: Vector) -> tuple[Vector, Vector]:
        return self.first.restore_ray(*self.second.restore_ray(dx, dy))
