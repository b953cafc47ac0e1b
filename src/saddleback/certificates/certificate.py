r"""The certificate of a pair (x, y): theorems in floating point, in the units of each row and each column.

With z = -A'y' and u = Ax, the gap is a sum of excesses that are not negative,

.. math::

    P(x) - D(y') = \sum_j \left[ f_j(x_j) + f_j^*(z_j) - x_j z_j \right] +
    \sum_i \left[ g_i(u_i) + g_i^*(y'_i) - u_i y'_i \right],

by the inequality of Fenchel and Young, since <x, z> + <u, y'> = 0. Every product is known up to a bound on its
rounding, and each function bounds its excess over all points and slopes within these bounds. y' is y, balanced on the
columns without a penalty and scaled until it is feasible: a real point next to numbers in floating point. No norm runs
over rows or columns of different units, so that the certificate does not depend on units.

The loop of a method compares points without bounds on rounding (``sides.py``); this module decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from ..common.arrays import Vector, constant, length
from ..common.rebuildable import stored
from ..common.rounded import SHORT, TINY, UNIT, Rounded
from ..common.sums import Equations
from ..functions.domains import bounded, sums_inside
from ..functions.excess import LOST, Excess, up
from ..functions.points import DensePoint, Point
from ..functions.traits import curvature, rise_within, subgradient_scale
from ..linear_programs.program import as_linear_program
from ..model.model import Model
from ..operators import Adjoint, Operator
from ..operators.deferred_points import image
from ..result import ROUGH, Certificate
from .balance import Limits
from .closed_rows import ClosedRows
from .equations import balance_sums
from .sides import DualSide, PrimalSide, dual_side, pair, primal_side

RESOLVED = 2.0**-36
"""Relative change of the data of the loss that is taken as its resolution: the objective is not known any better."""

NOTHING = 2.0**-44
"""Relative change of the data of the loss that is as good as none: an objective that it explains is 0."""

CANCELLED = 2.0**-20
"""Share of the terms of both objectives below which an objective counts as cancelled."""

DECISIVE = 2.0**-30
"""Largest part of the objective that rounding may add to a gap without a second evaluation in twice the digits."""

LONGEST = 2**17
"""Number of rows or columns above which the rounding of plain products is too large to be decisive."""

ROUNDINGS = 4.0
"""Roundings per number that a gap may be due to if no further step can close it."""

DUST = 2.0**-16
"""Share of the objective up to which the terms of a variable may be left over from a method."""

SHARE = 2.0**-30
"""Share of a row or column above which the term of a variable is not left over from a method."""

MOVED = 2.0**-20
"""Relative change of an entry of y from which on it is not due to rounding."""

TRIES = 3
"""How often columns are added to the balanced ones, or y is scaled."""


class Gap(Protocol):
    """A certificate, and the points and products for which it holds."""

    @property
    def certificate(self) -> Certificate:
        """What is known of the pair."""

    @property
    def x(self) -> Vector:
        """The primal point, in the domain of f."""

    @property
    def y(self) -> Vector:
        """The dual point y' up to the radius."""

    @property
    def radius(self) -> Vector | None:
        """Bounds on y' - y; None if y' is y."""

    @property
    def slope(self) -> Rounded:
        """The slope -A'y'."""

    @property
    def image(self) -> Rounded:
        """The image Ax."""

    def returned(self, y: Point) -> Point:
        """Return the dual point with this certificate: y itself if it is equal."""


@stored
@dataclass(frozen=True)
class SumOfExcesses:
    """A gap as the sum of the excesses of all functions: a theorem in floating point.

    ``given`` is the dual point that was certified: y' is found from it, again and again.
    """

    certificate: Certificate
    given: Vector
    x: Vector
    y: Vector
    radius: Vector | None
    slope: Rounded
    image: Rounded

    def returned(self, y: Point) -> Point:
        """Return the dual point with this certificate: y itself if it is equal."""
        return y if np.array_equal(y.vector(), self.given) else DensePoint(self.given)

    @property
    def moved(self) -> bool:
        """Whether y' differs from the point that was given by more than rounding."""
        far = np.abs(self.y - self.given) > MOVED * np.maximum(np.abs(self.y), np.abs(self.given))
        return bool(np.any(far))


@stored
@dataclass(frozen=True)
class Difference:
    """A gap as the difference of two sides, as in the loop. It takes little memory: vectors are computed when read."""

    certificate: Certificate
    primal: PrimalSide
    dual: DualSide
    radius: ClassVar[None] = None

    @classmethod
    def of(cls, model: Model, x: Point, y: Point) -> Difference:
        """Return the gap of a pair."""
        u = image(model.A, x)
        dual = dual_side(model, y.vector(), x, u, kept=y)
        if dual.moved:
            y = dual.point
            del dual  # it is large: free it before the next one is computed
            dual = dual_side(model, y.vector(), x, u, kept=y)
        dual = replace(dual, point=y)
        primal = primal_side(model, x, u)
        return cls(pair(model, primal, dual), primal, dual)

    @property
    def x(self) -> Vector:
        """The primal point."""
        return self.primal.x

    @property
    def y(self) -> Vector:
        """The dual point."""
        return self.dual.y

    @property
    def slope(self) -> Rounded:
        """The slope -A'y."""
        return Rounded.around(self.dual.z)

    @property
    def image(self) -> Rounded:
        """The image Ax."""
        return Rounded.around(self.primal.u)

    def returned(self, y: Point) -> Point:
        """Return the dual point with this certificate."""
        return self.dual.point


class Products(Protocol):
    """The two products of a certificate, with bounds on their rounding.

    ``sized`` says whether the sizes of their terms are known, which are the units of violations, and ``last`` whether
    there are no products with smaller errors.
    """

    sized: ClassVar[bool]

    @property
    def last(self) -> bool:
        """Whether there are no products with smaller errors."""

    def image(self, x: Vector) -> Rounded:
        """Return Ax."""

    def slope(self, y: Vector, radius: Vector | None) -> Rounded:
        """Return -A'y' for every y' within the radius of y."""


@dataclass(frozen=True)
class Fresh:
    """Products that are computed, with the absolute values of their terms."""

    A: Operator
    precise: bool
    sized: ClassVar[bool] = True

    @property
    def last(self) -> bool:
        """Whether there are no products with smaller errors: those of a user's operator have assumed ones."""
        return self.precise or not self.A.traits.entries_known

    def image(self, x: Vector) -> Rounded:
        """Return Ax."""
        return self.A.matvec_rounded(x, precise=self.precise)

    def slope(self, y: Vector, radius: Vector | None) -> Rounded:
        """Return -A'y' for every y' within the radius of y."""
        return self.A.rmatvec_rounded(y, radius, self.precise).negated()


@dataclass(frozen=True)
class Plain:
    """Products u = Ax and z = -A'y without the sizes of their terms: lengths of rows and columns bound the rounding.

    The bounds are wide where units differ, and valid in any units. ``size`` is at least the product itself, so that
    no violation is taken for rounding.
    """

    model: Model
    y: Vector
    u: Vector
    z: Vector
    sized: ClassVar[bool] = False
    last: ClassVar[bool] = False

    def image(self, x: Vector) -> Rounded:
        """Return Ax."""
        reach = (x.size + 8) * UNIT * up(length(x), x.size)
        error = _spread(x, reach, self.model.row_lengths)
        return Rounded(self.u, constant(0.0, self.u.size), error, np.abs(self.u))

    def slope(self, y: Vector, radius: Vector | None) -> Rounded:
        """Return -A'y' for every y' within the radius of y."""
        reach = (y.size + 8) * UNIT * length(y)
        if y is not self.y or radius is not None:
            moved = np.abs(y - self.y) * (1 + 4 * UNIT)
            reach += length(moved if radius is None else moved + radius)
        error = _spread(y, up(reach, y.size + 8), self.model.column_lengths)
        return Rounded(self.z, constant(0.0, self.z.size), error, np.abs(self.z))


def _spread(vector: Vector, reach: float, lengths: Vector) -> Vector:
    """Return an upper bound on products of lengths, also if their squares have underflowed; 0 if the vector is 0."""
    if reach == 0 and not np.any(vector):
        return constant(0.0, lengths.size)
    return (reach + SHORT) * (lengths + SHORT) * (1 + 4 * UNIT)


def certified(
    model: Model, x: Point, y: Point, products: tuple[Vector, Vector] | None = None, sized: bool = False
) -> Gap:
    """Return the certificate of a pair, by the cheapest products whose rounding does not matter.

    It is also the certificate of the dual point that is returned. Where nothing can be proved, and vectors are as large
    as the data, it is an estimate.

    ``products`` are Ax and -A'y, if they are known. ``sized`` asks for bounds on rounding by the sizes of terms from
    the start, so that slopes and image have the same bounds in all units.
    """
    if model.only_estimated:
        return Difference.of(model, x, y)
    at, given = x.vector(), y.vector()
    found = _sum_of_excesses(model, at, given, products, sized)
    for _ in range(TRIES):
        if not found.moved:
            break
        again = _sum_of_excesses(model, at, found.y, None, sized)
        if not again.certificate.error <= found.certificate.error * (1 + MOVED):
            break
        found = again
    return found


def _sum_of_excesses(
    model: Model, x: Vector, y: Vector, products: tuple[Vector, Vector] | None, sized: bool
) -> SumOfExcesses:
    for way in _ways(model, x, y, products, sized):
        pair = _Pair(model, x, y, way)
        found = pair.judged()
        certificate = found.certificate
        if pair.moved_by_rounding or not certificate.dual_value >= model.trivial_bound:
            continue
        known = way.sized or not (certificate.primal_infeasibility or certificate.dual_infeasibility)
        if (certificate.proved or pair.assumed) and known and _decisive(certificate):
            break
    if certificate.proved and not certificate.dual_value < model.trivial_bound:
        return found
    others = []
    if model.trivial_bound > -np.inf:
        others.append(np.zeros(y.size))
    if certificate.dual_infeasibility > 0:
        terms = np.abs(y) * np.maximum(found.image.size, subgradient_scale(model.g_star))
        size = np.abs(np.broadcast_to(subgradient_scale(model.f), x.shape))
        others.append(_without_dust(y, terms, Adjoint(model.A), size, certificate))
    finest = way if way.sized else Fresh(model.A, False)
    judged = [found, *(_Pair(model, x, other, finest).judged() for other in others)]
    return min(judged, key=lambda gap: _rank(gap.certificate))


def _rank(certificate: Certificate) -> tuple[bool, float, float]:
    """Return the smaller tuple for the better certificate: a bound that is no theorem has to be nearly the optimum."""
    return certificate.forgiven and certificate.error > ROUGH, certificate.error, -certificate.dual_value


def without_dust(model: Model, gap: Gap, every_row: bool = True) -> Vector:
    """Return the primal point of a gap, with 0 in place of numbers that are far too small to matter.

    They matter neither to the objective nor, with ``every_row``, to a row.
    """
    terms = np.abs(gap.x) * np.maximum(gap.slope.size, subgradient_scale(model.f))
    size = np.where(bounded(model.g.domain, gap.y.size), np.abs(subgradient_scale(model.g_star)), np.inf)
    return model.f.domain.project(_without_dust(gap.x, terms, model.A, size, gap.certificate, every_row))


def _without_dust(
    point: Vector, terms: Vector, A: Operator, data: Vector, certificate: Certificate, every_row: bool = True
) -> Vector:
    """Return a point with 0 in place of entries that matter neither to the objective nor to a product with A.

    What a method leaves of a variable that belongs at 0 may be all that there is in a row or column, whose violation is
    then as large as the row or column itself. But a variable may also be large and have no price: it is kept for a row
    that has data, or terms of other variables, of which it is more than a small share, if ``every_row`` counts. Rows
    with infinite data are met by whatever variables.
    """
    values = abs(certificate.primal_value), abs(certificate.dual_value)
    least = DUST * max(filter(math.isfinite, values), default=0.0)
    small = terms <= least
    if not A.traits.entries_known:
        return point
    while every_row:
        size = data + A.sums(1, weights=(np.where(small, 0.0, np.abs(point)), None))[1]
        weight = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
        needed = small & (A.sums(np.inf, weights=(np.abs(point), weight))[0] > SHARE)
        if not np.any(needed):
            break
        small &= ~needed
    return np.where(small, 0.0, point)


def _ways(
    model: Model, x: Vector, y: Vector, products: tuple[Vector, Vector] | None, sized: bool
) -> Iterator[Products]:
    if not model.A.traits.entries_known:
        yield Fresh(model.A, False)  # the rounding of a user's operator is assumed
        return
    if not sized and max(model.A.shape) <= LONGEST:
        # u is the image of x as given: if x is projected, its violation asks for products with the sizes of terms
        u, z = products or (model.A.matvec(x), -model.A.rmatvec(y))
        yield Plain(model, y, u, z)
    yield Fresh(model.A, False)
    yield Fresh(model.A, True)


def _decisive(certificate: Certificate) -> bool:
    """Return whether rounding is a small part of the objective, in the gap and in the two values."""
    P, D = certificate.primal_value, certificate.dual_value
    largest = max(abs(P), abs(D))
    in_gap = certificate.rounding * max(largest, certificate.floor)
    return max(in_gap, P - D - certificate.gap) <= DECISIVE * largest


class _Pair:
    """A pair of points on its way to a certificate.

    ``moved_by_rounding`` says whether y was moved further than with products whose rounding is smaller.
    """

    def __init__(self, model: Model, x: Vector, y: Vector, products: Products) -> None:
        self.model, self.products = model, products
        self.given_x, self.given_y = x, y
        self.x = model.f.domain.project(x)
        self.image = products.image(self.x)
        self.y = model.g_star.near(y, self.image.high)[0]
        self.radius: Vector | None = None
        self.closed = ClosedRows.of(model.g_star.domain, self.y)
        self._close_rows()
        free = model.unpenalised_sums
        self.scalable = model.loss_bounded_below and model.f_star.domain.has_zero() and not np.any(free.value)
        self.balanced = True
        self.moved_by_rounding = False
        self._balance_columns()
        self._scale()

    # --- the dual point -----------------------------------------------------------------------------------------

    def _balance_columns(self) -> None:
        """Balance y on the columns without a penalty, and on those whose slope no factor of y brings to its side.

        The same for sums of columns.
        """
        free = self.model.unpenalised_sums
        self.held = Equations.none()
        if len(free):
            self.balanced = self._balance(free, needs_proof=False)
        self.slope = self._slope()
        for _ in range(TRIES):
            equations = self._beyond()
            if not len(equations) or not self._balance(equations, needs_proof=True):
                return
            self.moved_by_rounding |= not self.products.sized
            self.slope = self._slope()

    def _balance(self, slopes: Equations, needs_proof: bool) -> bool:
        """Balance y so that its slopes satisfy equations; return whether they do."""
        limits = self._limits()
        if limits is None:
            return False
        found = balance_sums(self.model.A, slopes, self.y, limits, self.closed)
        if found is None or (needs_proof and not found.proved):
            return False
        self.y, self.radius = found.y, found.radius if np.any(found.radius) else None
        self._close_rows()
        if found.proved:
            self.held = slopes
        return found.proved

    def _close_rows(self) -> None:
        for rows in self.closed:
            self.y, self.radius = rows.close(self.y, self.radius)

    def _limits(self) -> Limits | None:
        """Return the bounds of y, if they are known or a factor of y can restore them."""
        domain, size = self.model.g_star.domain, self.y.size
        if np.any(np.isnan(domain.box(size)[0])) and not self.scalable:
            return None
        return Limits(*domain.hull(size), _unit(self.model, self.y))

    def _slope(self) -> Rounded:
        """Return -A'y', with the slopes of the balanced columns at their ends."""
        slope = self.products.slope(self.y, self.radius)
        columns, ends, rounding = self.held.of_entries
        if not columns.size:
            return slope
        high, low, error = (np.array(vector) for vector in slope[:3])
        high[columns], low[columns], error[columns] = ends, 0.0, rounding
        return Rounded(high, low, error, slope.size)

    def _beyond(self) -> Equations:
        """Return equations by which slopes, and their sums, are inside of ends that no factor moves; none if they are.

        For a program these are all columns outside of their domain. For a fit, a factor of y moves a slope to an end
        that is not 0. The equations that are satisfied already follow.
        """
        slope, domain = self.slope, self.model.f_star.domain
        low, high = domain.box(slope.high.size)
        at = slope.high + slope.low
        reach = slope.error + UNIT * np.abs(at)
        above, below = at + reach > high, at - reach < low
        ends = np.where(above, high, np.where(below, low, 0.0))
        out = above | below
        if self.scalable:
            out &= np.abs(ends) <= RESOLVED * slope.size
        out[self.held.of_entries[0]] = False
        columns = np.flatnonzero(out)
        found = Equations.entries(columns, ends[columns])
        if self.scalable:
            found = Equations.joined([found, sums_inside(domain, slope)])
        return Equations.joined([found, self.held.apart_from(found)]) if len(found) else found

    def _scale(self) -> None:
        """Scale y, as a real point, until its slope and itself are feasible."""
        for _ in range(TRIES):
            self.columns = self.model.f.excess(self.x, None, self.slope)
            t = self.columns.multiple if self.scalable else 1.0
            if t == 1.0:
                self.rows = self._rows()
                if not self.scalable or self.rows.point_inside:
                    return
                t = self.model.g.excess(self.image.high, None, Rounded.around(self.y, self.radius)).multiple
                if t == 1.0:
                    return
            else:
                exact = self.slope._replace(error=constant(0.0, self.slope.error.size))
                needed = self.model.f.excess(self.x, None, exact).multiple
                self.moved_by_rounding |= t < (1 - DECISIVE) * needed
            y = t * self.y
            rounding = UNIT * np.abs(y) + 2 * TINY * (y != 0)
            self.radius = rounding if self.radius is None else (t * self.radius + rounding) * (1 + 4 * UNIT)
            self.y, self.slope = y, self.slope.times(t)
            if t == 0.0:
                self.radius = None
        self.rows, self.columns = self._rows(), self.model.f.excess(self.x, None, self.slope)

    def _rows(self) -> Excess:
        return self.model.g_star.excess(self.y, self.radius, self.image)

    @property
    def assumed(self) -> bool:
        """Whether nothing can be proved, since the rounding of a function is assumed."""
        return self.rows.assumed or self.columns.assumed

    # --- the verdict --------------------------------------------------------------------------------------------

    def judged(self) -> SumOfExcesses:
        """Return the certificate of the pair."""
        model, rows, columns = self.model, self.rows, self.columns
        highest = _sum_up(columns.value.high, rows.conjugate.high, model.constant)
        lowest = -_sum_up(-columns.value.low, -rows.conjugate.low, -model.constant)
        gap = (columns.gap + rows.gap + columns.missed + rows.missed) * (1 + 4 * UNIT)
        exact = columns.exact + rows.exact
        # both are bounds; the latter does not depend on x
        bound = max(-_sum_up(gap, -lowest), -_sum_up(columns.conjugate.high, rows.value.high, -model.constant))
        known = model.A.traits.entries_known  # the rounding of a user's operator is assumed
        # the violations of a program have a tolerance, and so have those that only unknown entries could mend
        strict = known and self.scalable and as_linear_program(model) is None
        forgiven = strict and not self.balanced
        if not math.isfinite(gap) or (forgiven and not self._rounded()) or (strict and not columns.rounded):
            bound = -np.inf
        proved = known and self.balanced and columns.slope_inside and rows.point_inside and math.isfinite(bound)
        outside = _outside(self.given_x, self.x)
        least = self._floor()
        known_gap = math.isfinite(highest) and math.isfinite(bound)
        scale = max(abs(highest), abs(bound), least) if known_gap else np.inf
        gap = gap if known_gap else np.inf
        of_bound = _share(ROUNDINGS * max(gap - exact, 0.0), scale) if known_gap else 0.0
        of_objective = rise_within(model.g, ROUNDINGS * UNIT * self.image.size)
        if abs(highest) > of_objective:  # next to an objective that is known, a bound that is all rounding says nothing
            of_bound = min(ROUGH, of_bound)
        certificate = Certificate(
            primal_value=highest,
            dual_value=bound,
            gap=gap,
            relative_gap=0.0 if self._is_nothing(highest, bound) else _share(gap, scale),
            primal_infeasibility=max(rows.infeasibility, outside),
            dual_infeasibility=columns.infeasibility,
            perturbation=_share(columns.missed + rows.missed, scale),
            proved=proved,
            attained=known and rows.slope_inside and columns.point_inside and outside == 0,
            floor=least,
            rounding=of_bound + _share(of_objective, scale),
            forgiven=forgiven and math.isfinite(bound),
        )
        return SumOfExcesses(certificate, self.given_y, self.x, self.y, self.radius, self.slope, self.image)

    def _is_nothing(self, highest: float, bound: float) -> bool:
        """Return whether the objective is 0 up to the rounding of the data of the loss, at x and at the optimum.

        The rounding of a user's operator counts as well: it is assumed, and there are no products with more digits.
        """
        data = NOTHING * np.broadcast_to(subgradient_scale(self.model.g_star), self.y.shape)
        if not self.model.A.traits.entries_known:
            data = data + 2.0 * self.image.error  # one of them is in the value
        underflow = LOST * (self.x.size + self.y.size)
        return max(abs(highest), abs(bound)) <= rise_within(self.model.g, data) + underflow

    def _floor(self) -> float:
        """Return the least denominator of the relative gap: the resolution of the data, and of cancelled terms."""
        model = self.model
        data = np.broadcast_to(subgradient_scale(model.g_star), self.y.shape)
        primal = self.columns.value.size + self.rows.conjugate.size
        dual = self.columns.conjugate.size + self.rows.value.size
        return max(rise_within(model.g, RESOLVED * data), CANCELLED * min(primal, dual))

    def _rounded(self) -> bool:
        """Return whether the free columns, or sums of columns, are balanced up to the rounding of their products."""
        free, slope = self.model.unpenalised_sums, self.slope
        rest = np.abs(free.sums.of(slope.high) - free.value + free.sums.of(slope.low))
        forgiven = ROUNDINGS * UNIT * free.sums.of(slope.size)
        if self.products.last:
            forgiven += free.sums.of(slope.error)
        return bool(np.all(rest <= forgiven))


def _unit(model: Model, y: Vector) -> Vector:
    """Return how far each y_i may move in its own unit: as far as the others move, by the curvature of the loss."""
    curved = curvature(model.g)
    if curved is None:
        return np.abs(y)
    root: Vector = np.sqrt(curved)
    return root * float(np.max(np.divide(np.abs(y), root, out=np.zeros(y.size), where=root > 0), initial=0.0))


def _outside(given: Vector, inside: Vector) -> float:
    """Return the largest distance of an entry from its bound, relative to the larger of both."""
    if inside is given:
        return 0.0
    off = np.flatnonzero(given != inside)
    if not off.size:
        return 0.0
    return float(np.max(np.abs(given[off] - inside[off]) / np.maximum(np.abs(given[off]), np.abs(inside[off]))))


def _sum_up(*values: float) -> float:
    """Return an upper bound on a sum of numbers; the sum itself if that is 0."""
    if not all(map(math.isfinite, values)):
        return math.inf
    total = math.fsum(values)
    return math.nextafter(total, math.inf) if total else 0.0


def _share(value: float, scale: float) -> float:
    if value == 0 or math.isinf(value):
        return value
    return value / scale if scale > 0 else np.inf
