"""Brings a problem whose rows or columns have very different units to units that do not depend on the user's.

With u = Ax and powers of two r and c, one per row and one per column, :math:`f(c x') + g(u' / r)` with
:math:`u' = diag(r) A diag(c) x'` is the same problem in other units. No number is rounded. Methods take steps, and
order coordinates, by lengths that depend on units. In canonical units (``common/canonical_units.py``) the problem is
the same one, bit by bit, whatever the units of its rows and columns were.

A problem with ordinary units is left as it is: it would need a copy of A.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..common.arrays import Vector, length
from ..functions.points import DensePoint, Point
from ..functions.traits import in_units
from ..model.index_map import IndexMap
from ..model.model import Model
from ..operators.rescaled import rescaled
from .contract import Reduction

ORDINARY = 2.0**20
"""Ratio of the lengths of two columns, or rows, up to which their units are ordinary."""


@dataclass(frozen=True)
class Rescaled(Reduction):
    """The problem in other units: those of its rows and columns are the user's times ``rows`` and ``columns``."""

    model: Model
    rows: Vector
    columns: Vector

    def kept(self) -> IndexMap:
        m, n = self.model.A.shape
        return IndexMap((m, n), np.arange(m), np.arange(n))

    def reduce_x(self, x: Vector) -> Vector:
        return x / self.columns

    def reduce_y(self, y: Vector) -> Vector:
        return y / self.rows

    def restore_x(self, x: Point, u: Callable[[], Vector]) -> Point:
        return DensePoint(x.vector() * self.columns)

    def restore_u(self, x: Point, u: Vector) -> Vector:
        return u / self.rows

    def restore_y(self, y: Point) -> Point:
        return DensePoint(y.vector() * self.rows)

    def restore_ray(self, dx: Vector, dy: Vector) -> tuple[Vector, Vector]:
        return dx * self.columns, dy * self.rows


def bring_to_one_unit(model: Model) -> Reduction | None:
    """Return the problem in canonical units; None if its units are ordinary, or if these would take long to find."""
    if not model.has_cheap_units or not (_differ(model.row_lengths) or _differ(model.column_lengths)):
        return None
    of_rows, of_columns = model.balanced_units
    if not (np.any(of_rows) or np.any(of_columns)):
        return None
    rows, columns = np.ldexp(1.0, of_rows), np.ldexp(1.0, of_columns)
    f, g = in_units(model.f, columns), in_units(model.g, 1.0 / rows)
    slopes = f.conjugate().domain.project(np.zeros(columns.size)) if model.linear_norm else np.zeros(0)
    A = rescaled(model.A, of_rows, of_columns)
    return Rescaled(replace(model, f=f, A=A, g=g, linear_norm=length(slopes)), rows, columns)


def _differ(lengths: Vector) -> bool:
    """Return whether the largest and the smallest length differ by more than ordinary units."""
    positive = lengths[lengths > 0]
    return bool(np.max(positive, initial=0.0) > ORDINARY * np.min(positive, initial=np.inf))
