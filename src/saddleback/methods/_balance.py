"""The penalty rho of a method of multipliers, corrected until both of its residuals are of one size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..common.rebuildable import stored

FIRST, GROWTH = 10, 2
"""Iterations before the residuals are first compared, and by how much that grows: a rule with ever fewer changes."""

UNBALANCED, LARGEST = 3.0, 30.0
"""Ratio of the residuals from which on rho is changed, and the most by which it is the first time. Later changes are
ever smaller: on a long run rho has to settle, and large changes late have undone what was reached."""


@stored
@dataclass
class Balance:
    """When to compare the residuals and what to do then, by He, Yang and Wang (2000).

    Parameters
    ----------
    active : False where rho was given, and stays as it is.
    """

    active: bool
    iterations: int = 0
    next_at: int = FIRST

    def due(self) -> bool:
        """Count an iteration that begins, and return whether to compare the residuals after it."""
        self.iterations += 1
        if not self.active or self.iterations < self.next_at:
            return False
        self.next_at *= GROWTH
        return True

    def factor(self, primal: float, dual: float) -> float:
        """Return what to multiply rho by, given each residual relative to what it is a difference of."""
        if not (primal > 0 and dual > 0) or 1.0 / UNBALANCED <= primal / dual <= UNBALANCED:
            return 1.0
        most = LARGEST ** (FIRST / self.iterations)
        return float(np.clip(np.sqrt(primal / dual), 1.0 / most, most))
