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
from scipy import sparse

from ..certificates.rays import near_one
from ..common.arrays import Flags, Indices, Vector, length
from ..common.canonical_units import FIXED, Exponents, canonical_units, geometric_units
from ..functions.contract import Convex
from ..functions.points import DensePoint, Point
from ..functions.traits import curvature, in_units, is_smooth, subgradient_scale
from ..linear_programs.highs import fits
from ..linear_programs.program import as_linear_program
from ..model.model import Model
from ..operators.rescaled import rescaled

LARGEST = 200
"""Largest exponent of a unit: squares of rescaled numbers neither overflow nor underflow."""

ORDINARY = 2.0**20
"""Ratio of the lengths of two columns, or rows, up to which their units are ordinary.

Chosen in November 2026: years beside shares are within it. Of 150 problems in units of 2^-40 to 2^40, 30 had stopped at
their limit of passes; with this rule none did.
"""


@dataclass(frozen=True)
class Units:
    """A problem in other units: those of its rows and columns are the user's times ``rows`` and ``columns``.

    If these are None, the units are the user's.
    """

    model: Model
    rows: Vector | None = None
    columns: Vector | None = None

    def with_penalty_of(self, model: Model) -> Units:
        """Return another problem with the same data and another penalty, in the same units."""
        if self.columns is None:
            return Units(model)
        f = in_units(model.f, self.columns)
        return replace(self, model=self.model.with_penalty(f, _linear_norm(model, f)))

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


def in_canonical_units(model: Model, may_use_highs: bool) -> Units:
    """Return the problem in canonical units; itself if its units are ordinary, or if these would take long to find.

    HiGHS decides by sizes from the start: for it, no units of a linear program are ordinary.
    """
    if not model.has_cheap_units:
        return Units(model)
    for_highs = may_use_highs and fits(model)
    if not (for_highs or _differ(model.row_lengths) or _differ(model.column_lengths)):
        return Units(model)
    program = for_highs or as_linear_program(model) is not None
    of_rows, of_columns = model.balanced_units if program else _with_slopes_near_one(model)
    if not 0 < max(np.abs(of_rows).max(initial=0), np.abs(of_columns).max(initial=0)) <= LARGEST:
        return Units(model)
    rows, columns = np.ldexp(1.0, of_rows), np.ldexp(1.0, of_columns)
    f, g = in_units(model.f, columns), in_units(model.g, 1.0 / rows)
    canonical = replace(model, f=f, A=rescaled(model.A, of_rows, of_columns), g=g, linear_norm=_linear_norm(model, f))
    if program:
        vars(canonical)["balanced_units"] = 0 * of_rows, 0 * of_columns  # found once
    return Units(canonical, rows, columns)


def _linear_norm(model: Model, f: Convex) -> float:
    """Return the length of the slopes of a penalty in other units that are the nearest to 0; 0 if no term is linear."""
    return length(f.conjugate().domain.project(np.zeros(model.A.shape[1]))) if model.linear_norm else 0.0


def _differ(lengths: Vector) -> bool:
    """Return whether the largest and the smallest length differ by more than ordinary units."""
    positive = lengths[lengths > 0]
    return bool(np.max(positive, initial=0.0) > ORDINARY * np.min(positive, initial=np.inf))


def _with_slopes_near_one(model: Model) -> Exponents:
    """Return exponents with which all penalties have slopes near 1, and all losses slopes or curvatures near 1.

    Rows and columns without them get the exponents with which the entries of A are close to 1. So a row that hardly
    matters remains one: its slope is that of the others, and its entries are small.
    """
    (m, n), (rows, columns) = model.A.shape, model.choices
    of_slopes = np.frexp(np.broadcast_to(np.abs(subgradient_scale(model.g)), (m,)))
    bends = curvature(model.g) if is_smooth(model.g) else None
    of_bends = np.frexp(np.zeros(m) if bends is None else np.where(np.isfinite(bends), bends, 0.0))
    exponents, known = np.where(of_slopes[0] > 0, of_slopes[1], of_bends[1] // 2), of_slopes[0] + of_bends[0] > 0
    of_rows, rows = _first_known(rows, exponents, known)
    of_penalty = np.frexp(np.broadcast_to(np.abs(subgradient_scale(model.f)), (n,)))
    of_columns, columns = _first_known(columns, -of_penalty[1], of_penalty[0] > 0)
    if np.all(rows == FIXED) and np.all(columns == FIXED):
        return of_rows, of_columns
    A = sparse.coo_array(model.A.entries(compressed=True))
    matter = (rows[A.coords[0]] != FIXED) | (columns[A.coords[1]] != FIXED)
    i, j = (of_each[matter] for of_each in A.coords)
    A = sparse.coo_array((np.ldexp(A.data[matter], of_rows[i] + of_columns[j]), (i, j)), (m, n))
    targets = np.broadcast_to(subgradient_scale(model.g_star), (m,))
    ends = np.broadcast_to(np.abs(subgradient_scale(model.f_star)), (n,))
    widths = np.divide(1.0, ends, out=np.zeros(n), where=ends > 0)  # the slopes that belong to the ends of boxes
    found = canonical_units(A, targets, widths, rows, columns)
    found = geometric_units(A, found, rows, columns)
    return of_rows + found[0], of_columns + found[1]


def _first_known(units: Indices, exponents: Indices, known: Flags) -> Exponents:
    """Return for each coordinate the first exponent that is known of its unit, and the units of which none is."""
    place = np.flatnonzero(known & (units != FIXED))
    unit, first = np.unique(units[place], return_index=True)
    chosen = np.zeros(int(units.max(initial=FIXED)) + 2, dtype=np.int64)
    chosen[unit] = exponents[place[first]]
    settled = np.isin(units, unit)
    return np.where(settled, chosen[units], 0), np.where(settled, FIXED, units)
