"""Brings a problem whose rows or columns have very different units to units that do not depend on the user's.

With u = Ax and powers of two r and c, one per row and one per column, :math:`f(c x') + g(u' / r)` with
:math:`u' = diag(r) A diag(c) x'` is the same problem in other units. No number is rounded. Methods take steps, and
order coordinates, by lengths that depend on units. In canonical units (``common/canonical_units.py``) the problem is
the same one, bit by bit, whatever the units of its rows and columns were.

A problem with ordinary units is left as it is: it would need a copy of A.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..certificates.rays import near_one
from ..common.arrays import Vector, length
from ..functions.points import DensePoint, Point
from ..functions.traits import in_units
from ..linear_programs.program import as_linear_program
from ..model.model import Model
from ..operators.rescaled import rescaled

ORDINARY = 2.0**20
"""Ratio of the lengths of two columns, or rows, up to which their units are ordinary."""


@dataclass(frozen=True)
class Units:
    """A problem in other units: those of its rows and columns are the user's times ``rows`` and ``columns``.

    If these are None, the units are the user's.
    """

    model: Model
    rows: Vector | None = None
    columns: Vector | None = None

    def reduced_x(self, x: Vector) -> Vector:
        """Return an x of the user in these units."""
        return x if self.columns is None else x / self.columns

    def reduced_y(self, y: Vector) -> Vector:
        """Return a y of the user in these units."""
        return y if self.rows is None else y / self.rows

    def restored(self, x: Point, y: Point) -> tuple[Point, Point]:
        """Return two points in the units of the user."""
        return _times(x, self.columns), _times(y, self.rows)

    def restored_ray(self, ray: Vector, of_rows: bool) -> Vector:
        """Return a direction of y, or of x, in the units of the user, with a largest entry near 1."""
        unit = self.rows if of_rows else self.columns
        return ray if unit is None else near_one(ray * unit)


def _times(point: Point, unit: Vector | None) -> Point:
    return point if unit is None else DensePoint(point.vector() * unit)


def in_canonical_units(model: Model) -> Units:
    """Return the problem in canonical units; itself if its units are ordinary, or if these would take long to find.

    Units of linear programs are never ordinary: HiGHS decides by sizes from the start.
    """
    if not model.has_cheap_units:
        return Units(model)
    if as_linear_program(model) is None and not (_differ(model.row_lengths) or _differ(model.column_lengths)):
        return Units(model)
    of_rows, of_columns = model.balanced_units
    if not (np.any(of_rows) or np.any(of_columns)):
        return Units(model)
    rows, columns = np.ldexp(1.0, of_rows), np.ldexp(1.0, of_columns)
    f, g = in_units(model.f, columns), in_units(model.g, 1.0 / rows)
    slopes = f.conjugate().domain.project(np.zeros(columns.size)) if model.linear_norm else np.zeros(0)
    A = rescaled(model.A, of_rows, of_columns)
    return Units(replace(model, f=f, A=A, g=g, linear_norm=length(slopes)), rows, columns)


def _differ(lengths: Vector) -> bool:
    """Return whether the largest and the smallest length differ by more than ordinary units."""
    positive = lengths[lengths > 0]
    return bool(np.max(positive, initial=0.0) > ORDINARY * np.min(positive, initial=np.inf))
