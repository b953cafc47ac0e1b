r"""The fit by the columns without a penalty: min_w <c, w> + g(A_0 w) with bounds on w, accurate up to rounding.

With an intercept alone the fit is a mean, a quantile or the odds of two classes. A loss with curvature is fitted by
Newton's method. A piecewise linear loss is fitted by a linear program, whose vertex lies exactly on kinks of the loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from ..common.arrays import Vector
from ..functions.contract import Convex
from ..functions.normal_form import PiecewiseParameters
from ..functions.piecewise import PiecewiseQuadratic
from ..functions.traits import SumOverRows, curvature_at
from ..functions.traits import curvature as curvature_of

LP_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10, "presolve": False}
"""The highest accuracy of HiGHS. Its presolve is slow here: with an intercept it compares all pairs of rows."""

NEWTON_STEPS = 200

STEEPEST = 1e100
"""Largest multiple of the curvature that is added to it if there is no bound on the curvature."""

STATIONARY = 1e-14
"""Size of a gradient, relative to the terms of its sum, that rounding can cause."""

ACCEPTABLE = 1e-11
"""Relative size of the gradient up to which a fit is accepted when no step improves it any more."""


DECREASE = 1e-4
"""A step is accepted if the objective falls by at least this fraction of the decrease that the gradient predicts."""

SOLVED, UNBOUNDED = 0, 3
"""Status codes of ``scipy.optimize.linprog``."""

Mask = NDArray[np.bool_]

NOT_FEASIBLE = (
    "the constraints of the loss do not hold with x = 0 on the penalised columns, so that no alpha makes x = 0: "
    "alpha_max needs a loss that is finite there"
)
NO_MINIMUM = "the loss has no minimum over the columns without a penalty, so that alpha_max does not exist"


class Free(NamedTuple):
    """The columns without a penalty, dense, with the bounds and the linear term of their variables."""

    columns: Vector
    lower: Vector
    upper: Vector
    linear: Vector


def fit(free: Free, g: Convex) -> Vector:
    """Return the minimiser w, or raise if there is none."""
    scale = np.abs(free.columns).max(axis=0, initial=0.0)
    scale = np.where(scale > 0, scale, 1.0)
    scaled = Free(free.columns / scale, free.lower * scale, free.upper * scale, free.linear / scale)
    g_star = g.conjugate()
    if isinstance(g_star, PiecewiseQuadratic) and not np.any(g_star.quadratic):
        return _linear_program(scaled, g_star.contiguous()) / scale
    return _newton(scaled, g) / scale


def _linear_program(free: Free, pieces: PiecewiseParameters) -> Vector:
    r"""Solve the dual program, min_y g*(y) + sup_w <-A_0'y - c, w> over w within its bounds: k rows for any m.

    y is split at 0, where the slope of g* changes, and -A_0'y - c into the parts that push w to its upper and to its
    lower bound. The multipliers of a vertex are w, so that rows at a kink of the loss are there exactly.
    """
    m, k = free.columns.shape
    unit = max(np.abs(pieces.left).max(), np.abs(pieces.right).max()) or 1.0
    weight = max(np.max(np.abs(side), where=np.isfinite(side), initial=0.0) for side in pieces[3:]) or 1.0
    bounded = [np.isfinite(side) for side in (free.upper, free.lower)]
    found = linprog(
        np.concatenate(
            [pieces.right / unit, -pieces.left / unit]
            + [
                np.where(known, side, 0.0) / unit
                for known, side in zip(bounded, (free.upper, -free.lower), strict=True)
            ]
        ),
        A_eq=np.hstack([free.columns.T, -free.columns.T, np.eye(k), -np.eye(k)]),
        b_eq=-free.linear / weight,
        bounds=np.column_stack(
            [
                np.zeros(2 * (m + k)),
                np.concatenate(
                    [pieces.upper / weight, -pieces.lower / weight]
                    + [np.where(known, np.inf, 0.0) for known in bounded]
                ),
            ]
        ),
        method="highs-ds",
        options=LP_OPTIONS,
    )
    if found.status == UNBOUNDED:
        raise ValueError(NOT_FEASIBLE)
    if found.status != SOLVED:
        raise ValueError(f"{NO_MINIMUM} (HiGHS: {found.message})")
    w: Vector = found.eqlin.marginals * unit
    return np.clip(w, free.lower, free.upper)


class Point(NamedTuple):
    """w with u = A_0 w, the objective, its gradient, and the size of the terms of the gradient."""

    w: Vector
    u: Vector
    value: float
    gradient: Vector
    size: Vector

    @classmethod
    def at(cls, w: Vector, free: Free, g: Convex) -> Point:
        """Return the point at w, with its objective and gradient."""
        u: Vector = free.columns @ w
        y = g.subgradient(u)
        gradient = free.columns.T @ y + free.linear
        size = np.abs(free.columns).T @ np.abs(y) + np.abs(free.linear)
        return cls(w, u, g.finite_value(u) + float(free.linear @ w), gradient, size)

    def moving(self, free: Free) -> Mask:
        """Return a mask of the variables that can move against the gradient within their bounds."""
        held = ((self.w <= free.lower) & (self.gradient > 0)) | ((self.w >= free.upper) & (self.gradient < 0))
        return ~held

    def stationary(self, free: Free, accuracy: float) -> bool:
        """Return whether the gradient of the moving variables is within ``accuracy``, relative to its terms."""
        small = np.abs(self.gradient) <= accuracy * self.size
        return bool(np.all(small[self.moving(free)]))

    def improved_by(self, trial: Point) -> bool:
        """Return whether another point is lower, or has the same value up to rounding and a smaller gradient."""
        lower = trial.value < self.value - DECREASE * float(self.gradient @ (self.w - trial.w))
        as_low = trial.value <= self.value + 1e-13 * abs(self.value)
        return lower or (as_low and bool(np.linalg.norm(trial.gradient) < 0.5 * np.linalg.norm(self.gradient)))


def _start(free: Free, g: Convex) -> Point:
    """Return w = 0, or the w whose image is nearest to the minimisers of the rows if the loss is infinite at 0."""
    at_zero = Point.at(np.clip(0.0, free.lower, free.upper), free, g)
    if np.isfinite(at_zero.value) or not isinstance(g, SumOverRows):
        return at_zero
    best = np.nan_to_num(g.minimiser())
    w = np.linalg.lstsq(free.columns, best, rcond=None)[0]
    return Point.at(np.clip(w, free.lower, free.upper), free, g)


def _newton(free: Free, g: Convex) -> Vector:
    """Return the minimiser by Newton's method with bounds: variables held by a bound stay, the others are projected.

    A multiple of the bound on the curvature is added until the objective falls. With the whole bound it always falls.
    Without a bound, as for exp(u), it is a multiple of the curvature at the point, which may have to be large.
    """
    point, bound = _start(free, g), curvature_of(g)
    damping, largest = 0.0, STEEPEST if bound is None else 1.0
    for _ in range(NEWTON_STEPS):
        if point.stationary(free, STATIONARY) or damping > largest:
            break
        moving = point.moving(free)
        own = free.columns[:, moving]
        curvature = curvature_at(g, point.u)
        weight = curvature + damping * (curvature if bound is None else bound)
        step = np.zeros_like(point.w)
        step[moving] = np.linalg.lstsq(own.T @ (weight[:, None] * own), point.gradient[moving], rcond=1e-15)[0]
        with np.errstate(over="ignore"):  # a step that is far too long has an infinite value, and is not taken
            trial = Point.at(np.clip(point.w - step, free.lower, free.upper), free, g)
        if point.improved_by(trial):
            point, damping = trial, 0.1 * damping if damping > 1e-4 else 0.0
        else:
            damping = max(10.0 * damping, 1e-4)
    if not point.stationary(free, ACCEPTABLE):
        raise ValueError(f"{NO_MINIMUM}; do they separate the labels?")
    return point.w
