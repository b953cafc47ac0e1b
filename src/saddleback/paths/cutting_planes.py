r"""Cutting planes: the y of a polytope with the least max_j alpha_j(-A_j'y).

Every alpha_j is convex and comes with a tangent. A linear program over the tangents so far gives a lower bound on the
minimum, and the value at its solution gives an upper bound. While the two differ, the tangents at the solution are
added to the program (Kelley, 1960). An L1 penalty has finitely many tangents, so that the result is exact. Group norms
take a few dozen rounds, since each group has its own tangents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from ..common.arrays import Indices, Vector
from ..functions.contract import Convex
from ..functions.kinks import Kinks
from ..functions.traits import kinks as kinks_of
from ..model.model import Model
from .null_model import LP_OPTIONS

ACCURACY = 1e-10
"""Relative distance of the two bounds at which to stop."""

BELIEVED = 1e-8
PATIENCE = 5
"""The loop also stops if the bounds are within the relative distance ``BELIEVED`` and have not come closer during the
last ``PATIENCE`` rounds."""

NOTHING = 1e-13
"""An alpha this small, relative to that of a corner of the polytope, counts as 0: the free rows balance all columns."""

ROUNDS = 1000
CUTS = 100
"""Maximum number of tangents that a round adds to the program: those of the blocks with the largest alpha."""


IDLE = 3
"""Number of rounds with a zero multiplier after which a tangent is removed."""


class Polytope(NamedTuple):
    """low <= y <= high, and free_low <= -columns'y <= free_high."""

    low: Vector
    high: Vector
    columns: Vector
    free_low: Vector
    free_high: Vector


def least_largest(unit: Model, rest: Convex, polytope: Polytope) -> tuple[float, Vector]:
    """Return the minimum over the polytope of the largest alpha of a block, and its y.

    Parameters
    ----------
    unit : the problem at alpha = 1.
    rest : its f at alpha = 0.
    polytope : the feasible set of y.
    """
    rows = np.flatnonzero(polytope.low < polytope.high)
    y = np.where(polytope.low == polytope.high, polytope.low, 0.0)
    if not rows.size:
        return float(np.max(kinks_of(unit.f, -unit.A.rmatvec(y), rest).alpha)), y
    program = Program(polytope, y, rows)
    best, best_y, bound = np.inf, y, 0.0
    gaps: list[float] = []
    scale = float(np.max(kinks_of(unit.f, -unit.A.rmatvec(program.corner()), rest).alpha))
    for _ in range(ROUNDS):
        bound, y = program.solve()
        z = -unit.A.rmatvec(y)
        kinks = kinks_of(unit.f, z, rest)
        largest = float(np.max(kinks.alpha))
        if largest < best:
            best, best_y = largest, y
        scale = max(scale, largest)
        if best <= NOTHING * scale:
            return 0.0, best_y
        gaps.append(best - bound)
        if gaps[-1] <= ACCURACY * best or (
            gaps[-1] <= BELIEVED * best and gaps[-1] >= min(gaps[:-PATIENCE], default=np.inf)
        ):
            break
        program.cut(unit, kinks, z, bound)
    if best - bound > BELIEVED * best:
        raise RuntimeError(
            f"alpha_max is only known to be between {bound} and {best}: its linear program did not converge"
        )
    return best, best_y


@dataclass
class Tangent:
    """t >= offset + <slope, y>, and the number of rounds for which its multiplier has been 0."""

    slope: Vector
    offset: float
    idle: int = 0


class Program:
    """Minimise t over the polytope and above all tangents so far, in units in which y and t are about 1."""

    def __init__(self, polytope: Polytope, fixed: Vector, rows: Indices) -> None:
        self.fixed, self.rows = fixed, rows
        ends = np.concatenate([polytope.low[rows], polytope.high[rows]])
        self.y_unit = float(np.max(np.abs(ends), where=np.isfinite(ends), initial=0.0)) or 1.0
        self.bounds = np.column_stack([ends[: rows.size], ends[rows.size :]]) / self.y_unit
        size = np.linalg.norm(polytope.columns, axis=0)
        columns = polytope.columns / np.where(size > 0, size, 1.0)
        known = columns.T @ fixed
        low, high = (end / np.where(size > 0, size, 1.0) for end in (polytope.free_low, polytope.free_high))
        self.across = columns[rows].T
        self.least = (-high - known) / self.y_unit
        self.most = (-low - known) / self.y_unit
        self.tangents: list[Tangent] = []

    def corner(self) -> Vector:
        """Return a point whose entries have the largest size that y can have."""
        y = self.fixed.copy()
        y[self.rows] = np.where(np.isfinite(self.bounds[:, 1]), self.bounds[:, 1], 1.0) * self.y_unit
        return y

    def cut(self, unit: Model, kinks: Kinks, z: Vector, bound: float) -> None:
        """Add the tangents at z of the blocks that are above the bound: t >= alpha_j + <slope_j, -A_j'y - z_j>."""
        above = np.flatnonzero(kinks.alpha > bound)
        order = np.argsort(kinks.part, kind="stable")
        first, last = (np.searchsorted(kinks.part[order], above, side) for side in ("left", "right"))
        largest = np.argsort(-kinks.alpha[above])[:CUTS]
        for j in largest:
            own = order[first[j] : last[j]]
            tangent = -unit.A.matvec(kinks.slope[own], own)
            offset = kinks.alpha[above[j]] - kinks.slope[own] @ z[own] + tangent @ self.fixed
            self.tangents.append(Tangent(tangent[self.rows] * self.y_unit, float(offset)))

    def solve(self) -> tuple[float, Vector]:
        """Return the least t and its y."""
        k = self.rows.size
        slopes = np.array([tangent.slope for tangent in self.tangents]).reshape(-1, k)
        offsets = np.array([tangent.offset for tangent in self.tangents])
        t_unit = max(np.abs(slopes).max(initial=0.0), np.abs(offsets).max(initial=0.0)) or 1.0
        exact = self.least == self.most
        above, below = np.isfinite(self.most) & ~exact, np.isfinite(self.least) & ~exact
        wide = np.column_stack([self.across, np.zeros(self.across.shape[0])])
        above_tangents = np.column_stack([slopes / t_unit, np.full(len(self.tangents), -1.0)])
        found = linprog(
            np.append(np.zeros(k), 1.0),
            A_ub=np.vstack([above_tangents, wide[above], -wide[below]]),
            b_ub=np.concatenate([-offsets / t_unit, self.most[above], -self.least[below]]),
            A_eq=wide[exact],
            b_eq=self.most[exact],
            bounds=np.vstack([self.bounds, [0.0, np.inf]]),
            method="highs-ds",
            options=LP_OPTIONS,
        )
        if found.status != 0:
            raise RuntimeError(f"the linear program of alpha_max failed: {found.message}")
        self._forget(found.ineqlin.marginals)
        y = self.fixed.copy()
        y[self.rows] = found.x[:k] * self.y_unit
        return float(found.x[k] * t_unit), y

    def _forget(self, multipliers: Vector) -> None:
        """Remove the tangents whose multipliers have been 0 for some rounds; the bound does not depend on them."""
        for tangent, multiplier in zip(self.tangents, multipliers, strict=False):
            tangent.idle = 0 if multiplier != 0 else tangent.idle + 1
        self.tangents = [tangent for tangent in self.tangents if tangent.idle < IDLE]
