"""The penalty of one variable, from terms that concern single entries or groups of entries."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..common.arrays import Indices, Vector
from ..functions import L1, Box, GroupL2, Linear, NonNegative, SquaredL2, Zero
from ..functions.penalties import Penalty


@dataclass
class Block:
    """What is known of the penalty of one variable, flat."""

    size: int
    linear: Vector = field(init=False)
    slope: Vector = field(init=False)
    lower: Vector = field(init=False)
    upper: Vector = field(init=False)
    curvature: float = 0.0
    groups: list[Indices] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    coupled: Penalty | None = None

    def __post_init__(self) -> None:
        self.linear, self.slope = np.zeros(self.size), np.zeros(self.size)
        self.lower, self.upper = np.full(self.size, -np.inf), np.full(self.size, np.inf)

    def add_absolute(self, index: Indices, weight: Vector) -> bool:
        """Add weights times the absolute values of some entries; return whether that is possible."""
        self.slope[index] += weight
        return True

    def add_square(self, index: Indices, curvature: float) -> bool:
        """Add curvature / 2 * ||x||^2; only for all entries."""
        self.curvature += curvature
        return index.size == self.size

    def add_bounds(self, index: Indices, lower: Vector, upper: Vector) -> bool:
        """Add bounds on some entries; not if they contradict others, so that the solver proves it."""
        self.lower[index] = np.maximum(self.lower[index], lower)
        self.upper[index] = np.minimum(self.upper[index], upper)
        return bool(np.all(self.lower <= self.upper))

    def add_norms(self, groups: list[Indices], weights: list[float]) -> bool:
        """Add weights times the norms of groups of entries; not if groups overlap."""
        self.groups += groups
        self.weights += weights
        covered = np.concatenate(self.groups)
        return self.coupled is None and np.unique(covered).size == covered.size

    def add_coupled(self, index: Indices, penalty: Penalty) -> bool:
        """Add a penalty of all entries, in their order; not if there is another one."""
        free = self.coupled is None and not self.groups
        self.coupled = penalty
        return free and np.array_equal(index, np.arange(self.size))

    def penalty(self) -> Penalty:
        """Return the sum of all terms; raise a TypeError if they cannot be added."""
        total: Penalty = Zero() if self.coupled is None else self.coupled
        if self.groups:
            rest = np.setdiff1d(np.arange(self.size), np.concatenate(self.groups))
            groups = [group.tolist() for group in self.groups] + [[entry] for entry in rest.tolist()]
            total = GroupL2(1.0, groups, [*self.weights, *np.zeros(rest.size)])
        for part in self._pieces():
            total = part if type(total) is Zero else total + part
        return total

    def _pieces(self) -> list[Penalty]:
        pieces: list[Penalty] = []
        if np.any(self.linear):
            shape = None if self.coupled is None else self.coupled.shape  # that of a matrix, if a penalty has one
            pieces.append(Linear(self.linear if shape is None else self.linear.reshape(shape)))
        if np.any(self.slope):
            one = bool(np.all(self.slope == self.slope[0]))
            pieces.append(L1(float(self.slope[0])) if one else L1(1.0, self.slope))
        if np.all(self.lower == 0) and np.all(self.upper == np.inf):
            pieces.append(NonNegative())
        elif np.any(np.isfinite(self.lower)) or np.any(np.isfinite(self.upper)):
            pieces.append(Box(self.lower, self.upper))
        if self.curvature:
            pieces.append(SquaredL2(self.curvature))
        return pieces
