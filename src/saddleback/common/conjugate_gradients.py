"""Conjugate gradients, with a diagonal preconditioner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from .arrays import Vector


class System(Protocol):
    """A symmetric matrix Q with its diagonal, for conjugate gradients; p is the direction of a step."""

    diagonal: Vector

    def curvature(self, p: Vector, ratio: float) -> float:
        """Return p'Qp, where p is the preconditioned residual plus ``ratio`` times the last direction."""

    def reduced(self, residual: Vector, length: float) -> tuple[Vector, Vector]:
        """Return the residual minus ``length`` Qp, and that divided by the diagonal."""


class Product:
    """A system given by p -> Qp."""

    def __init__(self, product: Callable[[Vector], Vector], diagonal: Vector) -> None:
        self.product, self.diagonal = product, diagonal

    def curvature(self, p: Vector, ratio: float) -> float:
        """Return p'Qp."""
        self.image = self.product(p)
        return float(p @ self.image)

    def reduced(self, residual: Vector, length: float) -> tuple[Vector, Vector]:
        """Return the residual after a step along p."""
        residual = residual - length * self.image
        return residual, residual / self.diagonal


def conjugate_gradients(system: System, right: Vector, tolerance: float, most: int) -> tuple[Vector, int]:
    """Return d with Qd = right, to a relative residual in the metric of the diagonal, and the number of steps."""
    d = np.zeros_like(right)
    residual = right.copy()
    scaled = residual / system.diagonal
    direction = scaled.copy()
    size = first = float(residual @ scaled)
    ratio = 0.0
    for step in range(most):
        if size <= tolerance * tolerance * first:
            return d, step
        curvature = system.curvature(direction, ratio)
        if not curvature > 1e-14 * float(direction @ (system.diagonal * direction)):
            return d, step + 1  # flat: d is already a descent direction
        length = size / curvature
        d += length * direction
        residual, scaled = system.reduced(residual, length)
        before, size = size, float(residual @ scaled)
        ratio = size / before
        direction = scaled + ratio * direction
    return d, most
