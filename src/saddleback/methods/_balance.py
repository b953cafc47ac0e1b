"""Adaptation of the penalty rho of a method of multipliers, until both of its residuals are of similar size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..common.rebuildable import stored

FIRST, GROWTH = 10, 2
"""Iteration at which the residuals are first compared, and the factor between two such iterations: changes of rho
become rarer."""

UNBALANCED, LARGEST = 3.0, 30.0
"""Ratio of the residuals above which rho is changed, and the largest factor of the first change. Later changes are
smaller and smaller: rho has to settle, and large changes late in a run can undo its progress."""


@stored
@dataclass
class Balance:
    """The rule of He, Yang and Wang (2000): when to compare the residuals, and how to change rho.

    Parameters
    ----------
    active : whether rho is adapted; False if the user has set it.
    """

    active: bool
    iterations: int = 0
    next_at: int = FIRST

    def due(self) -> bool:
        """Count one iteration, and return whether to compare the residuals after it."""
        self.iterations += 1
        if not self.active or self.iterations < self.next_at:
            return False
        self.next_at *= GROWTH
        return True

    def factor(self, primal: float, dual: float) -> float:
        """Return the factor for rho, given the relative residuals."""
        if not (primal > 0 and dual > 0) or 1.0 / UNBALANCED <= primal / dual <= UNBALANCED:
            return 1.0
        most = LARGEST ** (FIRST / self.iterations)
        return float(np.clip(np.sqrt(primal / dual), 1.0 / most, most))
