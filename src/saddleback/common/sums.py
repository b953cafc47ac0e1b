"""Sums of some entries of a vector, and equations for them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .arrays import Flags, Indices, Vector


@dataclass(frozen=True)
class Sums:
    """Sums over sets of places, none of which is empty; a place may be in several sets.

    Attributes
    ----------
    places : the places, one set after the other.
    start : where each set begins, and the end of the last one.
    """

    places: Indices
    start: Indices

    @classmethod
    def single(cls, places: Indices) -> Sums:
        """Return the sums of one entry each."""
        return cls(np.asarray(places, dtype=np.int64), np.arange(len(places) + 1))

    @classmethod
    def joined(cls, parts: Sequence[Sums]) -> Sums:
        """Return the sums of each part, one part after the other."""
        sizes = [np.zeros(1, dtype=np.int64), *(part.sizes for part in parts)]
        return cls(np.concatenate([part.places for part in parts]), np.cumsum(np.concatenate(sizes)))

    def __len__(self) -> int:
        return self.start.size - 1

    def __iter__(self) -> Iterator[Indices]:
        return (self.places[a:b] for a, b in zip(self.start[:-1], self.start[1:], strict=True))

    @property
    def sizes(self) -> Indices:
        """Number of entries in each sum."""
        return np.diff(self.start)

    @property
    def are_entries(self) -> bool:
        """Whether each sum is of one entry."""
        return self.places.size == len(self)

    def chosen(self, which: Flags) -> Sums:
        """Return some of the sums."""
        sizes = self.sizes
        return Sums(self.places[np.repeat(which, sizes)], np.cumsum(np.append(0, sizes[which])))

    def of(self, values: Vector) -> Vector:
        """Return the sums of a vector."""
        if self.are_entries:
            return values[self.places]
        sums: Vector = np.add.reduceat(values[self.places], self.start[:-1])
        return sums


@dataclass(frozen=True)
class Equations:
    """Sums of the entries of a vector, the values that they have to have, and bounds on the rounding of these."""

    sums: Sums
    value: Vector
    rounding: Vector

    @classmethod
    def entries(cls, places: Indices, value: Vector) -> Equations:
        """Return the equations of single entries."""
        return cls(Sums.single(places), value, np.zeros(len(places)))

    @classmethod
    def none(cls) -> Equations:
        """Return no equations."""
        return cls.entries(np.zeros(0, dtype=np.int64), np.zeros(0))

    @classmethod
    def total(cls, values: Vector) -> Equations:
        """Return the equation that a vector has the same sum as some values."""
        whole = Sums(np.arange(values.size), np.array([0, values.size]))
        return cls(whole, np.zeros(1), np.zeros(1)).moved(values)

    @classmethod
    def joined(cls, parts: Sequence[Equations]) -> Equations:
        """Return the equations of each part, one part after the other."""
        if len(parts) == 1:
            return parts[0]
        value, rounding = (np.concatenate([getattr(part, name) for part in parts]) for name in ("value", "rounding"))
        return cls(Sums.joined([part.sums for part in parts]), value, rounding)

    def __len__(self) -> int:
        return len(self.sums)

    def at(self, places: Indices) -> Equations:
        """Return the equations of a vector whose entries are at these places of a longer one."""
        return replace(self, sums=Sums(places[self.sums.places], self.sums.start))

    def after(self, first: int) -> Equations:
        """Return the equations of a vector that begins at a place of a longer one."""
        return replace(self, sums=Sums(self.sums.places + first, self.sums.start))

    def moved(self, by: Vector) -> Equations:
        """Return the equations of a vector plus another one."""
        value, rounding = self.value.copy(), self.rounding.copy()
        for i, own in enumerate(self.sums):
            terms = [*by[own].tolist(), self.value[i]]
            value[i] = math.fsum(terms)
            rounding[i] += abs(math.fsum([*terms, -value[i]]))
        return Equations(self.sums, value, rounding)

    def chosen(self, which: Flags) -> Equations:
        """Return some of the equations."""
        return Equations(self.sums.chosen(which), self.value[which], self.rounding[which])

    def apart_from(self, other: Equations) -> Equations:
        """Return the equations that have no entry in common with other ones."""
        if not len(self) or not len(other):
            return self
        taken = np.zeros(1 + max(self.sums.places.max(), other.sums.places.max()), dtype=bool)
        taken[other.sums.places] = True
        return self.chosen(~np.logical_or.reduceat(taken[self.sums.places], self.sums.start[:-1]))

    @property
    def of_entries(self) -> tuple[Indices, Vector, Vector]:
        """The places, values and roundings of the equations of single entries."""
        single = self.sums.sizes == 1
        return self.sums.places[self.sums.start[:-1][single]], self.value[single], self.rounding[single]
