"""The evaluation of points: pure functions of the problem, in float64, that do not depend on the method.

A certificate has two sides, which are evaluated separately: the objective at x, and the lower bound that y proves. Any
x can be paired with any y, so a solve keeps the best pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..common.arrays import Vector, constant, length
from ..common.cached import cached_property
from ..common.rebuildable import stored
from ..functions.calculus import parts_of
from ..functions.conjugates import Ball
from ..functions.contract import Convex
from ..functions.domains import common_multiple, slack
from ..functions.piecewise import PiecewiseQuadratic
from ..functions.points import DensePoint, Point
from ..functions.traits import rise
from ..model.model import RESOLVED, Model
from ..operators import Operator
from ..operators.deferred_points import Image, Slope, adjoint
from ..operators.stacked import parts_of as blocks_of
from ..result import Certificate

MAX_PROJECTED = 32
"""Maximum number of unpenalised columns for which y is projected. With more columns the projection would cost more than
the iterations, and the dual infeasibility is reported instead."""

PROJECTIONS = 20

MOST = 1e-3
"""Maximum contribution of ||y|| to the floor, relative to the terms of the objective."""

ROUNDED = 1e-6
"""Gaps up to this fraction of the floor count as 0: for a loss with kinks it is about two roundings of the data."""

FAR = 0.5
"""Relative gap from which pairs are compared by their gap."""

NEARLY_ZERO = 100.0
"""Values up to this multiple of their rounding count as nearly 0."""

FEASIBLE = 1e-12
"""Relative size of A_0'y that rounding explains."""


@stored
@dataclass(frozen=True)
class PrimalSide:
    """A primal point with its objective, and the violations: x and u = Ax minus their projections on dom f and dom g.

    A violation is an empty array if the point is in the domain. ``reach`` is the size of the data and of the terms of
    Ax (``Model.reach``), and ``rise`` how much the loss changes with them (``Model.resolved_rise``).
    """

    point: Point
    image: Point
    value: float
    x_violation: Vector
    u_violation: Vector
    reach: float
    rise: float

    @property
    def x(self) -> Vector:
        """The point."""
        return self.point.vector()

    @property
    def u(self) -> Vector:
        """Its image A x."""
        return self.image.vector()

    @cached_property
    def distances(self) -> tuple[float, float]:
        """The distances of x and u from the domains."""
        return length(self.x_violation), length(self.u_violation)


@stored
@dataclass(frozen=True)
class DualSide:
    """A dual point with the bound that it proves, z = -A'y, and the violation: z minus its projection on dom f*.

    The violation is an empty array if z is in the domain. ``scale`` is the factor by which y was multiplied to become
    feasible, ``shifted`` says whether it was moved in any other way, and ``length`` is ||y||.
    """

    point: Point
    value: float
    slope: Point
    z_violation: Vector
    scale: float
    length: float
    shifted: bool = False

    @property
    def moved(self) -> bool:
        """Whether the point differs, by more than rounding, from the one that was offered."""
        return self.shifted or self.scale < 1.0 - FEASIBLE

    @property
    def y(self) -> Vector:
        """The point."""
        return self.point.vector()

    @property
    def z(self) -> Vector:
        """Its slope -A'y."""
        return self.slope.vector()

    @cached_property
    def distance(self) -> float:
        """The distance of z from the domain."""
        return length(self.z_violation)


def primal_side(model: Model, x: Point, u: Point) -> PrimalSide:
    """Return the objective at x and the distance of (x, u = Ax) from the domains of f and g."""
    value = sum(f.finite_value(x.segment(own)) for f, own in parts_of(model.f))
    value += model.g.finite_value(at := u.vector()) + model.constant
    kept = u if model.A.traits.identity_scales is None else Image(model.A, x)
    off_x = np.empty(0) if model.f.domain.everything else _violation(model.f, x.vector())
    sizes = model.reach(x, at), model.resolved_rise(x, at)
    return PrimalSide(x, kept, float(value), off_x, _violation(model.g, at), *sizes)


def _violation(function: Convex, point: Vector) -> Vector:
    return _beyond(point, function.domain.project(point))


def _beyond(point: Vector, inside: Vector) -> Vector:
    """Return a point minus its projection on a set; an empty array if the projection is the point itself."""
    return np.empty(0) if inside is point else point - inside


def dual_side(
    model: Model, y: Vector, x: Point, u: Point, z: Vector | None = None, kept: Point | None = None
) -> DualSide:
    """Return the bound that y proves, after y was made feasible as far as the problem allows.

    If y need not move, a known ``z`` = -A'y saves a product, and ``kept``, a smaller form of y, saves memory.
    """
    point = admit(model, y, u)
    if point.y is y or np.array_equal(point.y, y):
        return bound(model, point, x, u, z, kept)
    return replace(bound(model, point, x, u), shifted=True)


@dataclass(frozen=True)
class Admitted:
    """A dual point in the domain of g*.

    ``scalable`` says whether all multiples t y with t in [0, 1] are in the domain too, ``balanced`` whether
    A_0'y = -c_0 holds up to rounding on the unpenalised columns, or sums of columns, A_0. ``conjugate_g`` is g*(y) if
    it is known: a loss that has only a prox knows it at this y and nowhere else.
    """

    y: Vector
    scalable: bool
    balanced: bool
    conjugate_g: float | None = None


def admit(model: Model, y: Vector, u: Point) -> Admitted:
    """Move y into the domain of g*, and onto A_0'y = -c_0 for the unpenalised columns, or sums of columns, A_0."""
    y, conjugate_g = model.g_star.near(y, u.vector())
    scalable = model.loss_bounded_below and model.g_star.domain.largest_multiple(y) == 1.0
    few = len(model.unpenalised) <= MAX_PROJECTED  # the sums are at least as many, and take memory
    if scalable and few and 0 < len(model.unpenalised_sums) <= MAX_PROJECTED:
        y, balanced = _project_unpenalised(model, y)
        return Admitted(y, scalable, balanced)
    return Admitted(y, scalable, False, conjugate_g)


def bound(
    model: Model, point: Admitted, x: Point, u: Point, z: Vector | None = None, kept: Point | None = None
) -> DualSide:
    """Return the bound that a dual point proves. ``z`` = -A'y and ``kept``, a smaller form of y, are optional.

    The point is scaled until z is in the domain of f*. If no scaling can do that (0 is not dual feasible, or only 0
    is), the distance from the domain is reported, as for a linear program.
    """
    found = _under_identities(model, point) if z is None else None
    scale, conjugate_f, slope, missed = found or _feasible(model, point, x.vector(), z)
    known = point.conjugate_g if scale == 1.0 else None
    conjugate_g = model.g_star.finite_value(point.y, scale) if known is None else known
    place = (kept or DensePoint(point.y)).times(scale)
    value = model.constant - conjugate_f - conjugate_g
    return DualSide(place, value, slope or Slope(model.A, place), missed, scale, scale * length(point.y))


class _Feasible(NamedTuple):
    """The factor that makes a dual point feasible, then f*, the slope -A'y and its violation at the scaled point.

    If A is made of identities, the slope may be None: it takes more memory than the data, and is cheap to compute.
    """

    scale: float
    conjugate_f: float
    slope: Point | None
    missed: Vector


def _feasible(model: Model, point: Admitted, x: Vector, z: Vector | None) -> _Feasible:
    z = Slope(model.A, DensePoint(point.y)).vector() if z is None else z
    if point.balanced:
        z = _balanced(model, z)
    t = model.f_star.domain.largest_multiple(z) if point.scalable else np.nan
    if t > 0:
        conjugate_f = model.f_star.finite_value(z, t)
        scale = _best_multiple(model, point, t, conjugate_f)
        return _Feasible(scale, conjugate_f, DensePoint(z).times(scale), np.empty(0))
    inside, conjugate_f = model.f_star.near(z, x)
    missed = _beyond(z, inside)
    if inside is not z and np.linalg.norm(missed) <= FEASIBLE * np.linalg.norm(z):
        missed[:] = 0.0
    return _Feasible(1.0, conjugate_f, DensePoint(z), missed)


def _balanced(model: Model, z: Vector) -> Vector:
    """Return z moved by rounding, onto the equations of the domain of f* that it satisfies up to rounding."""
    inside, free = model.f_star.domain.project(z), model.unpenalised
    z = z.copy()
    z[free] = inside[free]
    for own in model.unpenalised_sums.sums:
        if own.size > 1:
            z[own] += np.mean(inside[own] - z[own])
    return z


def _under_identities(model: Model, point: Admitted) -> _Feasible | None:
    """Return the result of ``_feasible`` if A is made of identities, so that -A'y is a multiple of y per block of x.

    Each multiple is computed when its function needs it. Returns None for any other A, or if no multiple is feasible.
    """
    if model.A.traits.identity_scales is None or not point.scalable or point.balanced:
        return None
    parts = [(f_star, A) for (f_star, _), A in zip(parts_of(model.f_star), blocks_of(model.A), strict=True)]
    t = common_multiple((f_star.domain, _slope(f_star, A, point.y)) for f_star, A in parts)
    if not t > 0:
        return None
    conjugate_f = sum(f_star.finite_value(_slope(f_star, A, point.y), t) for f_star, A in parts)
    return _Feasible(_best_multiple(model, point, t, conjugate_f), conjugate_f, None, np.empty(0))


def _slope(f_star: Convex, A: Operator, y: Vector) -> Vector:
    """Return -A'y, or A'y if the penalty ignores signs: that may be y itself, without a copy."""
    return (
        adjoint(A, y)
        if isinstance(f_star.domain, Ball) and f_star.domain.symmetric
        else Slope(A, DensePoint(y)).vector()
    )


def _best_multiple(model: Model, point: Admitted, t: float, conjugate_f: float) -> float:
    """Return the multiple of y with the best bound, given a feasible multiple t and the value of f* there."""
    if conjugate_f == 0 and model.penalty_vanishes_at_zero:
        # f* is 0 here and at 0, and by convexity between them: every smaller multiple of y is feasible too
        return _lowest_multiple(model.g_star, point, t)
    return t


def _lowest_multiple(g_star: Convex, point: Admitted, limit: float) -> float:
    """Return the t in [0, limit] that minimises g*(t y).

    Returns the limit if the minimiser is not known, or differs from the limit only by rounding.
    """
    curvature = g_star.quadratic_form(point.y) if isinstance(g_star, PiecewiseQuadratic) else 0.0
    if curvature == 0.0:
        return limit
    value = g_star.finite_value(point.y) if point.conjugate_g is None else point.conjugate_g
    lowest = 0.5 - value / curvature
    return limit if lowest >= (1.0 - FEASIBLE) * limit else max(lowest, 0.0)


def trivial_side(model: Model) -> DualSide:
    """Return y = 0 with the bound that it proves."""
    y, z = (DensePoint(constant(0.0, size)).times(0.0) for size in model.A.shape)  # takes no memory yet
    return DualSide(y, model.trivial_bound, z, np.empty(0), 1.0, 0.0)


def floor(least_rise: float, reach: float, y_length: float, terms: float = np.inf) -> float:
    """Return the floor of the relative gap: a smaller objective no longer serves as the denominator.

    It is the change of the loss if the data change by 2^-31 of their size. At the minimum of the loss that is at most
    ``least_rise``, and where y is the slope of the loss it is about 2^-31 ||y|| times ``reach``. The latter is at most
    1e-3 of ``terms``, the size of the terms of the objective, so that a y that is far too long does not hide a gap.
    """
    return max(least_rise, min(y_length * RESOLVED * reach, MOST * terms))


def _floor_of_rounding(model: Model, primal: PrimalSide, gap: float, values: float) -> float:
    """Return the floor if the objective is nearly all rounding: that of the terms of Ax - b; 0 for other objectives.

    The terms take a pass to compute. The size of all of them together tells whether they can matter.
    """
    if not abs(gap) <= ROUNDED * rise(model.g, RESOLVED * primal.reach) < np.inf:
        return 0.0
    rounding = model.rounding_rise(primal.point, primal.u)
    return rounding / ROUNDED if values <= NEARLY_ZERO * rounding else 0.0


def relative_gap(gap: float, values: float, least: float) -> float:
    """Return a gap relative to the larger value of the objective, or to the floor; infinite if one is not known."""
    if not (math.isfinite(gap) and math.isfinite(least)):  # relative to an infinite floor every gap would be 0
        return np.inf
    return 0.0 if abs(gap) <= ROUNDED * least else _share(abs(gap), max(values, least))


def pair(model: Model, primal: PrimalSide, dual: DualSide) -> Certificate:
    """Return the certificate of a primal and a dual point.

    If b and c are changed by the violations, the points are feasible, and their gap grows by at most ``shift``: the sum
    of the products of each violation with its dual variable. ``in_units`` is that sum with the units of the variables
    in place of their values, because a variable may still be 0 at the start.
    """
    gap = primal.value - dual.value
    values = max(abs(primal.value), abs(dual.value))
    linear = model.linear_norm * float(np.linalg.norm(primal.x)) if model.linear_norm else 0.0
    least = floor(primal.rise, primal.reach, dual.length, max(values, linear))
    least = max(least, _floor_of_rounding(model, primal, gap, values))
    scale = max(values, least)
    (off_x, off_u), off_z = primal.distances, dual.distance
    shift = in_units = 0.0
    if off_x:
        shift += abs(float(dual.z @ primal.x_violation))
    if off_u:
        shift += abs(float(dual.y @ primal.u_violation))
        in_units += float(np.linalg.norm(primal.u_violation * model.multiplier_unit(dual.y)))
    if off_z:
        shift += abs(float(primal.x @ dual.z_violation))
        in_units += float(np.linalg.norm(dual.z_violation * model.x_unit))
    violation = math.hypot(off_x, off_u)
    return Certificate(
        primal_value=primal.value,
        dual_value=dual.value,
        gap=gap,
        relative_gap=relative_gap(gap, values, least),
        primal_infeasibility=violation / (1.0 + model.constraint_norm),
        dual_infeasibility=off_z / (1.0 + model.linear_norm),
        perturbation=max(
            _share(shift, scale),
            _share(in_units, scale),
            _ratio(violation, model.constraint_norm),
            _ratio(off_z, model.linear_norm),
        ),
    )


def best_pair(
    model: Model, primals: Sequence[PrimalSide], duals: Sequence[DualSide]
) -> tuple[Certificate, PrimalSide, DualSide]:
    """Return the certificate of the pair (x, y) with the smallest error, and the two sides of that pair."""
    pairs = [(pair(model, primal, dual), primal, dual) for primal in primals for dual in duals]
    return min(pairs, key=lambda found: _rank(found[0]))


def _rank(certificate: Certificate) -> tuple[float, float]:
    """Return what orders pairs: the error, then the gap; all relative gaps far from the optimum count as equal."""
    far = FAR < certificate.relative_gap < np.inf
    error = replace(certificate, relative_gap=FAR).error if far else certificate.error
    return error, abs(certificate.gap)


def _share(value: float, scale: float) -> float:
    if value == 0:
        return 0.0
    return value / scale if scale > 0 else np.inf  # a NaN remains NaN


def _ratio(value: float, scale: float) -> float:
    return value / scale if scale > 0 else 0.0


def _project_unpenalised(model: Model, y: Vector) -> tuple[Vector, bool]:
    """Move y in the domain of g* until A_0'y = -c_0, by Newton's method on the multipliers of that constraint.

    Returns the best point, which may be y itself, and whether it satisfies the constraint up to rounding.
    """
    columns, target = model.unpenalised_part, -model.unpenalised_sums.value
    size = np.abs(columns).T @ np.abs(y) + np.abs(target)
    best, best_residual = y, columns.T @ y - target
    point = y
    for _ in range(PROJECTIONS):
        residual = columns.T @ point - target
        if np.linalg.norm(residual) <= np.linalg.norm(best_residual):
            best, best_residual = point, residual
        if np.all(np.abs(residual) <= FEASIBLE * size):
            return point, True
        # rows at a bound have a small weight: they may leave the bound, but the other rows move first
        weight = np.maximum(slack(model.g_star.domain, point), 1e-8) ** 2
        normal = columns.T @ (weight[:, None] * columns)
        multipliers = np.linalg.lstsq(np.asarray(normal), np.asarray(residual), rcond=1e-13)[0]
        point = model.g_star.domain.project(point - weight * (columns @ multipliers))
    return best, bool(np.all(np.abs(best_residual) <= FEASIBLE * size))
