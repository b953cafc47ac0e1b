r"""The proof that a problem whose functions have only kinks, bounds and straight pieces has a single optimum.

A pair (x, y) suggests which entries of x and of y lie on a kink or a bound; the others follow from as many equations
with a matrix M. The solution of these equations, with its rounding error, is optimal if every entry is strictly on its
side. Then it is the only optimum: docs/theory/bounds.md has the proof.

With an approximate inverse X of M and :math:`E = I - X M`, :math:`\alpha = \|E\|_\infty < 1`, the error of a solution
whose residual is r is :math:`M^{-1} r = (I - E)^{-1} X r`, at most
:math:`|X r| + \tfrac{\alpha}{1 - \alpha} \|X r\|_\infty`, and that of the transposed equations
:math:`M^{-\top} r = X^\top (I - E^\top)^{-1} r`, at most
:math:`|X|^\top (|r| + \tfrac{\alpha}{1 - \alpha} \|r\|_1)` (Rump 2010). M is scaled by powers of two so that it is the
same matrix whatever the units of rows and columns are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order

from ..common.arrays import Indices, Vector, anywhere, map_constants
from ..common.rounded import TINY, UNIT, Rounded
from ..functions.normal_form import NormalForm, Piecewise, PiecewiseParameters
from ..functions.traits import subgradient_scale
from ..linear_programs.program import at_hand
from ..model.model import Model

SETTLED = 1e-7
"""Share of the largest term up to which the terms of an entry count as those of one that is on a kink or a bound."""

MOST_EQUATIONS = 2000
"""Most equations that are solved: their inverse is a dense matrix, and takes about a second if there are so many."""

LONGEST = 1000
"""Largest exponent of a unit: products with it do not overflow."""

LEAST = -(2**40)
"""The exponent of 0."""

STEPS = 3
"""Steps of refinement, after which a solution is as good as its residual can be computed."""

LOOSE = 1.0 + 2.0**-20
"""Factor of bounds, for the rounding of sums that are not negative."""


Ends = tuple[Vector, Vector]
"""A pair of vectors: the ends of intervals, or a vector with bounds on its errors."""


class Vertex(NamedTuple):
    """The ends of intervals of x and of u = Ax that contain the only optimum."""

    x: Ends
    u: Ends


class _Position(NamedTuple):
    """The kink or bound next to each entry of a point, and the distance from it; infinite if there is none."""

    corner: Vector
    distance: Vector


def unique_vertex(model: Model, x: Vector, y: Vector) -> Vertex | None:
    """Return the only optimum, if the points lead to one; None if nothing was proved."""
    penalty, loss = _straight(model.penalty_form), _straight(model.loss_form)
    if penalty is None or loss is None or not at_hand(model.A):
        return None
    at_x, at_y = _position(penalty, x), _position(loss, y)
    # the terms of each entry are in one unit, that of the objective
    x_unit = np.maximum(model.A.rmatvec_rounded(y).size, subgradient_scale(model.f))
    columns = np.flatnonzero(_terms(at_x.distance, x_unit) > SETTLED * np.max(np.abs(x) * x_unit, initial=0.0))
    size = columns.size
    if size > min(y.size, MOST_EQUATIONS):
        return None
    y_unit = np.maximum(model.A.matvec_rounded(x).size, subgradient_scale(model.g_star))
    rows = np.sort(np.argpartition(-_relative(loss, at_y.distance, y, y_unit), size - 1)[:size] if size else columns)
    inverse = _inverse(model.A.restrict(rows, columns).entries() if size else np.zeros((0, 0)))
    if inverse is None:
        return None
    return _proved(model, (penalty, loss), (x, y), (at_x.corner, at_y.corner), (columns, rows), inverse)


def is_straight(form: NormalForm | None) -> bool:
    """Return whether a function has straight pieces alone, so that its slope changes only at kinks."""
    if form is None or not all(isinstance(atom, Piecewise) for atom in form.atoms):
        return False
    return not anywhere(lambda quadratic: quadratic != 0, form.parameters.quadratic)


def _straight(form: NormalForm | None) -> PiecewiseParameters | None:
    """Return the parameters of a function with straight pieces alone; None for any other."""
    return form.parameters if form is not None and is_straight(form) else None


def _corners(pieces: PiecewiseParameters) -> tuple[Vector, Vector, Vector]:
    """Return the lower bound, the kink at 0 and the upper bound of each entry; infinite where there is none."""
    return pieces.lower, map_constants(_kink, pieces.left, pieces.right), pieces.upper


def _kink(left: Any, right: Any) -> Any:
    return np.where(left < right, 0.0, np.inf)


def _position(pieces: PiecewiseParameters, point: Vector) -> _Position:
    corner, distance = np.zeros(point.size), np.full(point.size, np.inf)
    for each in _corners(pieces):
        if anywhere(np.isfinite, each):
            away = np.abs(point - each)
            corner, distance = np.where(away < distance, each, corner), np.fmin(away, distance)
    return _Position(corner, distance)


def _terms(distance: Vector, unit: Vector) -> Vector:
    """Return products of distances and units; an infinite distance in no unit remains infinite."""
    return np.where(np.isinf(distance), np.inf, distance * unit)


def _relative(pieces: PiecewiseParameters, distance: Vector, point: Vector, unit: Vector) -> Vector:
    """Return distances relative to the length of the interval between the bounds, or to the largest term."""
    room = pieces.upper - pieces.lower
    bounded = np.isfinite(room) & (room > 0)
    largest = float(np.max(np.abs(point) * unit, initial=0.0)) or 1.0
    return np.where(bounded, distance / np.where(bounded, room, 1.0), _terms(distance, unit) / largest)


def _slopes(pieces: PiecewiseParameters, corner: Vector) -> Ends:
    """Return the ends of the slopes of a function at a kink or a bound."""
    low = np.where(corner > 0, pieces.right, pieces.left)
    high = np.where(corner < 0, pieces.left, pieces.right)
    return np.where(corner <= pieces.lower, -np.inf, low), np.where(corner >= pieces.upper, np.inf, high)


def _strictly_inside(pieces: PiecewiseParameters, start: Vector, ends: Ends) -> bool:
    """Return whether intervals are on the same straight piece as their starts."""
    low, high = ends
    inside = (low > pieces.lower) & (high < pieces.upper)
    same = np.where(start > 0, low > 0, high < 0)
    return bool(np.all(inside & (same | ~(pieces.left < pieces.right))))


def _strictly_between(slopes: Ends, ends: Ends, free: Indices) -> bool:
    """Return whether intervals are strictly between slopes, except for the free entries."""
    inside = (ends[0] > slopes[0]) & (ends[1] < slopes[1])
    inside[free] = True
    return bool(np.all(inside))


def _proved(
    model: Model,
    pieces: tuple[PiecewiseParameters, PiecewiseParameters],
    points: Ends,
    corners: Ends,
    chosen: tuple[Indices, Indices],
    inverse: _Inverse,
) -> Vertex | None:
    """Solve for the entries that are not in a corner, and return the vertex if all strict inequalities hold.

    Pairs are of x and y: the functions, the points, the corners next to them, and the entries that are in no corner.
    """
    A, (columns, rows) = model.A, chosen
    free, held = (PiecewiseParameters(*(p[at] for p in own)) for own, at in zip(pieces, chosen, strict=True))
    starts = points[0][columns], points[1][rows]
    kink = np.where(starts[1] < 0, held.left, held.right)
    slope = np.where(starts[0] > 0, free.right, free.left)
    x, y = (corner.copy() for corner in corners)
    x[columns], y[rows] = starts
    for _ in range(STEPS):
        x[columns] += inverse.solution(*_rest(kink, A.matvec_rounded(x, precise=True).part(rows)))[0]
        y[rows] += inverse.transposed_solution(*_rest(-slope, A.rmatvec_rounded(y, precise=True).part(columns)))[0]
    x_off, y_off = np.zeros(x.size), np.zeros(y.size)
    x_off[columns] = inverse.solution(*_rest(kink, A.matvec_rounded(x, precise=True).part(rows)))[1]
    y_off[rows] = inverse.transposed_solution(*_rest(-slope, A.rmatvec_rounded(y, precise=True).part(columns)))[1]

    x_ends, y_ends = Rounded.around(x, x_off).ends(), Rounded.around(y, y_off).ends()
    u, z = A.matvec_rounded(x, x_off, precise=True).ends(), A.rmatvec_rounded(y, y_off, precise=True).negated().ends()
    if not (
        _strictly_inside(free, starts[0], (x_ends[0][columns], x_ends[1][columns]))
        and _strictly_inside(held, starts[1], (y_ends[0][rows], y_ends[1][rows]))
        and _strictly_between(_slopes(pieces[1], corners[1]), u, rows)
        and _strictly_between(_slopes(pieces[0], corners[0]), z, columns)
    ):
        return None
    for end in u:
        end[rows] = kink
    return Vertex(x_ends, u)


def _rest(target: Vector, product: Rounded) -> Ends:
    """Return the residual of equations, and a bound on its rounding."""
    step = target - product.high
    return step - product.low, (product.error + 4 * UNIT * (np.abs(step) + np.abs(product.low))) * LOOSE


class _Inverse(NamedTuple):
    """An approximate inverse X of R M C, the powers of two R and C, and a bound on the norm of I - X (R M C)."""

    X: Vector
    R: Vector
    C: Vector
    alpha: float

    def solution(self, right: Vector, off: Vector) -> Ends:
        """Return X times a right side with errors, and a bound on the exact solution."""
        right, off = _scaled(right, off, self.R)
        point = self.X @ right
        size = np.abs(point) + np.abs(self.X) @ (off + (right.size + 4) * UNIT * np.abs(right))
        size += self.alpha / (1 - self.alpha) * np.max(size, initial=0.0)
        return _scaled(point, size * LOOSE, self.C)

    def transposed_solution(self, right: Vector, off: Vector) -> Ends:
        """Return the same for the transposed equations."""
        right, off = _scaled(right, off, self.C)
        size = np.abs(right) + off
        size = np.abs(self.X).T @ (size + self.alpha / (1 - self.alpha) * np.sum(size))
        return _scaled(self.X.T @ right, size * LOOSE, self.R)


def _scaled(point: Vector, off: Vector, units: Vector) -> Ends:
    """Return a vector and a bound on its errors in other units, in which numbers may underflow."""
    return units * point, units * off + TINY * ((point != 0) | (off != 0))


def _inverse(M: Vector) -> _Inverse | None:
    """Return a verified inverse of a matrix; None if it is singular up to rounding."""
    size = len(M)
    rows, columns = _exponents(M)
    if np.any(np.abs([rows, columns]) > LONGEST):
        return None
    M = np.ldexp(M, rows[:, None] + columns)
    try:
        X = np.asarray(np.linalg.inv(M), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    spread = np.sum(np.abs(np.eye(size) - X @ M), axis=1)
    spread += (size + 4) * UNIT * (np.abs(X) @ np.sum(np.abs(M), axis=1) + 1.0)
    alpha = float(np.max(spread, initial=0.0)) * LOOSE
    return _Inverse(X, np.ldexp(1.0, rows), np.ldexp(1.0, columns), alpha) if alpha < 0.5 else None


def _exponents(M: Vector) -> tuple[Indices, Indices]:
    """Return exponents of powers of two for rows and columns, so that the scaled matrix is the same in all units.

    The exponents are 0 on a forest of the pattern, which does not depend on units. Then rows, and after them columns,
    are made about equally long.
    """
    size, present, exponent = len(M), M != 0, np.frexp(M)[1].astype(np.int64)
    row, column = np.nonzero(present)
    pattern = sparse.csr_array((np.ones(row.size), (row, column + size)), shape=(2 * size, 2 * size))
    scale, known = np.zeros(2 * size, dtype=np.int64), np.zeros(2 * size, dtype=bool)
    for root in range(size):
        if known[root]:
            continue
        order, before = breadth_first_order(pattern, root, directed=False)
        known[order] = True
        nodes, parents = order[1:], before[order[1:]]
        edges = exponent[np.minimum(nodes, parents), np.maximum(nodes, parents) - size]
        for node, parent, edge in zip(nodes.tolist(), parents.tolist(), edges.tolist(), strict=True):
            scale[node] = -edge - scale[parent]
    exponent = np.where(present, exponent + scale[:size, None] + scale[size:], LEAST)
    of_rows = np.max(exponent, axis=1, initial=LEAST)
    of_columns = np.max(exponent - of_rows[:, None], axis=0, initial=LEAST)
    return scale[:size] - of_rows, scale[size:] - of_columns
