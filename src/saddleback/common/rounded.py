"""Vectors that are known up to rounding."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .arrays import Vector, constant

UNIT = 2.0**-53
"""Largest relative error of one rounding in float64."""


class Rounded(NamedTuple):
    """A vector that is known up to rounding: |exact - (high + low)| <= error, entry by entry.

    ``size`` is the sum of the absolute values of the terms of each entry.
    """

    high: Vector
    low: Vector
    error: Vector
    size: Vector

    @classmethod
    def around(cls, vector: Vector, radius: Vector | None = None) -> Rounded:
        """Return the set of all vectors within a radius of one that is known exactly; by default that vector alone."""
        nothing = constant(0.0, vector.size)
        return cls(vector, nothing, nothing if radius is None else radius, np.abs(vector))

    def part(self, own: slice) -> Rounded:
        """Return some neighbouring entries."""
        return Rounded(*(vector[own] for vector in self))
