"""Vectors that are known up to rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .arrays import Indices, Vector, constant
from .rebuildable import stored

UNIT = 2.0**-53
"""Largest relative error of one rounding in float64."""

ASSUMED = 2.0**-40
"""Relative rounding that is assumed of a user's products and of functions that do not bound it: nothing is proved."""

TINY = 2.0**-1074
"""Largest error of a product that underflows."""

SHORT = 2.0**-400
"""A length whose square may have underflowed is smaller."""


@stored
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

    @classmethod
    def joined(cls, parts: Sequence[Rounded]) -> Rounded:
        """Return vectors one after the other."""
        return parts[0] if len(parts) == 1 else cls(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    @classmethod
    def of_products(cls, sums: Vector, terms: float, size: Vector, moved: Vector | None = None) -> Rounded:
        """Return sums of so many products each, added in any order (Jeannerod and Rump 2013).

        ``size`` is the computed sum of the absolute values, and ``moved`` the computed change within a radius.
        """
        growth = 1.0 + (terms + 4.0) * UNIT
        underflow = terms * TINY * (size > 0)
        error = (terms + 3.0) * UNIT * size * growth + underflow
        if moved is not None:
            error = (error + moved * growth + terms * TINY) * growth
        return cls(sums, constant(0.0, sums.size), error, size * growth + underflow)

    def part(self, own: slice | Indices) -> Rounded:
        """Return some entries."""
        return Rounded(*(vector[own] for vector in self))

    def ends(self) -> tuple[Vector, Vector]:
        """Return bounds from below and from above; entries that are known exactly have equal ones."""
        at = self.high + self.low
        rounding = np.where(self.low == 0, 0.0, 4 * UNIT * np.abs(at))
        reach = np.where(self.error > 0, (self.error + 4 * UNIT * np.abs(at)) * (1 + 4 * UNIT), rounding)
        return at - reach, at + reach

    def negated(self) -> Rounded:
        """Return the vector times -1."""
        return Rounded(-self.high, -self.low, self.error, self.size)

    def plus(self, other: Rounded) -> Rounded:
        """Return the sum of two vectors."""
        high = self.high + other.high
        own = high - self.high
        low = ((self.high - (high - own)) + (other.high - own)) + (self.low + other.low)
        lost = 4 * UNIT * (np.abs(low) + np.abs(self.low) + np.abs(other.low))
        return Rounded(high, low, (self.error + other.error + lost) * (1 + 4 * UNIT), self.size + other.size)

    def times(self, t: float) -> Rounded:
        """Return a multiple of the vector."""
        if t == 1.0:
            return self
        high, low = t * self.high, t * self.low
        changed = (self.high != 0) | (self.low != 0) | (self.error != 0)  # a 0 that is exact remains exact
        error = abs(t) * self.error + UNIT * (np.abs(high) + np.abs(low)) + 2 * TINY * changed
        return Rounded(high, low, error * (1 + 4 * UNIT), abs(t) * self.size)
