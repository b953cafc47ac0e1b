"""Conjugates that are derived from their function."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

import numpy as np

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector
from ..common.rounded import Rounded
from .contract import Convex, Domain, Ray
from .excess import Contact
from .traits import InUnits, Movable, in_units, moved, unit_indices

F = TypeVar("F", bound=Convex)


class Conjugate(Convex, InUnits, Movable, Generic[F]):
    """The conjugate of a function, with the prox that Moreau's identity gives."""

    def __init__(self, of: F) -> None:
        self.of = of
        self.diagonal_steps = of.diagonal_steps

    def blocks(self) -> Blocks:
        return self.of.blocks()

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        return v - step * self.of.prox(v / step, 1.0 / step, blocks)

    def conjugate(self) -> F:
        return self.of

    def contact(self, point: Rounded, slope: Rounded) -> Contact | None:
        known = self.of.contact(slope, point)
        return None if known is None else known.swapped()

    def restrict_blocks(self, blocks: Indices) -> Convex:
        return self.of.restrict_blocks(blocks).conjugate()

    def unit_indices(self) -> Indices:
        return unit_indices(self.of, int(self.blocks().start[-1]))

    def in_units(self, unit: Vector) -> Convex:
        return in_units(self.of, 1.0 / unit).conjugate()

    def moved(self, place: ToDevice) -> Convex:
        return moved(self.of, place).conjugate()


class Ball(Domain):
    """The set whose support function is a norm: the domain of the conjugate of that norm."""

    symmetric: bool = False
    """Whether the set contains -x for each of its points x."""

    @abstractmethod
    def holds(self, x: Vector) -> bool:
        """Return whether x is in the set, up to rounding."""


class Indicator(Conjugate[Convex]):
    """0 on a ``Ball``, infinite elsewhere: the conjugate of the norm."""

    def __init__(self, of: Convex, ball: Ball) -> None:
        super().__init__(of)
        self.ball = ball

    @property
    def domain(self) -> Ball:
        return self.ball

    def value(self, x: Vector) -> float:
        return 0.0 if self.ball.holds(x) else np.inf

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        return 0.0

    def recession(self, direction: Vector) -> Ray:
        return Ray(0.0, self.of.domain.project(direction))  # the domain of the norm is a cone: its support function
