r"""Rows of y whose values add to 0, such as those of a loss of several classes.

No y in floating point satisfies such equations in general. One value of each row is therefore what the others leave,
as a real number next to the one in floating point. On these rows

.. math:: \sum_k B_{ik} y_{ik} = \sum_{k \ne o} (B_{ik} - B_{io}) y_{ik}

for the value o that is left, so that y is balanced on the columns B by the differences of their rows, in which the
other values are free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..common.arrays import Indices, Vector
from ..common.rounded import UNIT
from ..functions.contract import Domain
from ..functions.domains import fixed_sums
from .balance import Columns


@dataclass(frozen=True)
class ClosedRows:
    """Rows of y with equally many values, which add to 0.

    Attributes
    ----------
    places : the places of the values in y, one row per row.
    left : the place of the value of each row that the others leave.
    """

    places: Indices
    left: Indices

    @classmethod
    def of(cls, domain: Domain, y: Vector) -> list[ClosedRows]:
        """Return the rows of a set whose values have to add to 0, by their number of values.

        The largest value of each row is left: it is as far from its lower bound as any.
        """
        if not domain.has_zero():
            return []
        rows, found = fixed_sums(domain, y.size).sums, []
        for width in np.unique(rows.sizes[rows.sizes > 1]).tolist():
            places = rows.places[rows.start[:-1][rows.sizes == width, None] + np.arange(width)]
            largest = np.argmax(y[places], axis=1)
            found.append(cls(places, places[np.arange(len(places)), largest]))
        return found

    def close(self, y: Vector, radius: Vector | None) -> tuple[Vector, Vector | None]:
        """Return y with the values that the others leave, and the radius in which these are exact."""
        y, reach = y.copy(), np.zeros(y.size) if radius is None else radius.copy()
        y[self.left] = reach[self.left] = 0.0
        sums, rest = _sums(y[self.places])
        y[self.left] = -sums
        reach[self.left] = (np.sum(reach[self.places], axis=1) + rest) * (1 + 2.0**-40)
        return y, reach if np.any(reach) else None

    def differences(self, columns: Columns) -> Columns:
        """Return columns whose products with y do not depend on the values that are left."""
        entries = columns.entries.copy()
        error = np.zeros_like(entries) if columns.error is None else columns.error.copy()
        own, of_left, error_left = entries[self.places], entries[self.left, None], error[self.left, None]
        entries[self.places] = own - of_left
        inexact = (own != 0) & (of_left != 0)
        error[self.places] += error_left + np.where(inexact, 2 * UNIT * np.abs(entries[self.places]), 0.0)
        error[self.left] = 0.0
        return Columns.of(entries, columns.target, error * (1 + 4 * UNIT) if np.any(error) else None, columns.off)


def _sums(rows: Vector) -> tuple[Vector, Vector]:
    """Return the sums of rows, and bounds on their rounding (cascaded sums by halves; Ogita, Rump and Oishi 2005)."""
    lost, size = (np.zeros(len(rows)) for _ in range(2))
    width = rows.shape[1]
    while rows.shape[1] > 1:
        half = rows.shape[1] // 2
        one, other = rows[:, :half], rows[:, half : 2 * half]
        total = one + other
        part = total - one
        rounding = (one - (total - part)) + (other - part)
        lost += rounding.sum(axis=1)
        size += np.abs(rounding).sum(axis=1)
        rows = np.concatenate([total, rows[:, 2 * half :]], axis=1)
    total = rows[:, 0]
    sums = total + lost
    return sums, np.abs((total - sums) + lost) + (width + 2) * UNIT * size
