"""The proof that a problem whose functions have only kinks, bounds and straight pieces has a single optimum.

A pair (x, y) suggests which entries of x and of y lie on a kink or a bound; the others follow from as many equations.
The solution of these equations, with its rounding error, is optimal if every entry is strictly on its side. Then it is
the only optimum: docs/theory.md has the proof.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, onenormest, splu

from ..common.arrays import Indices, Vector, anywhere, map_constants
from ..functions.normal_form import NormalForm, Piecewise, PiecewiseParameters
from ..linear_programs.program import at_hand
from ..model.model import Model

SETTLED = 1e-7
"""Distance from a kink or a bound, relative to the largest entry of x, up to which an entry counts as being on it."""

SUMMED, UNIT = 1e-13, 2.0**-53
"""Relative rounding error of sums of up to a million products, and of a single one."""

MOST_CLOSE = 100
"""Columns that are always compared with a better bound on the rounding of their slopes."""

MARGIN = 10.0
"""The norm of an inverse is estimated from below, hardly ever by less than a third; it is multiplied by this."""

SINGULAR = 1e-12
"""Relative size of the smallest pivots that rounding explains."""

SPARSE = 10
"""Equations are treated as sparse if less than one in ten of their entries is not 0."""

WORK, LEAST_WORK = 20.0, 1e9
"""Most work for the equations, their number to the third power: the former is relative to the entries of A."""


class Vertex(NamedTuple):
    """The ends of intervals of x and of u = Ax that contain the only optimum."""

    x: tuple[Vector, Vector]
    u: tuple[Vector, Vector]


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
    columns = np.flatnonzero(at_x.distance > SETTLED * np.abs(x).max(initial=0.0))
    size = columns.size
    if size > y.size or size**3 > max(WORK * model.A.traits.stored, LEAST_WORK):
        return None
    rows = np.sort(np.argpartition(-_relative(loss, at_y.distance, y), size - 1)[:size] if size else columns)
    return _proved(model, penalty, loss, x, y, (at_x.corner, at_y.corner), columns, rows)


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


def _relative(pieces: PiecewiseParameters, distance: Vector, point: Vector) -> Vector:
    """Return distances relative to the length of the interval between the bounds, if it has one."""
    room = pieces.upper - pieces.lower
    scale = np.abs(point).max(initial=0.0) or 1.0
    return distance / np.where(np.isfinite(room) & (room > 0), room, scale)


def _slopes(pieces: PiecewiseParameters, corner: Vector) -> tuple[Vector, Vector]:
    """Return the ends of the slopes of a function at a kink or a bound."""
    low = np.where(corner > 0, pieces.right, pieces.left)
    high = np.where(corner < 0, pieces.left, pieces.right)
    return np.where(corner <= pieces.lower, -np.inf, low), np.where(corner >= pieces.upper, np.inf, high)


def _strictly_inside(pieces: PiecewiseParameters, start: Vector, point: Vector, error: float) -> bool:
    """Return whether points are on the same straight piece as their starts, by more than their errors."""
    inside = (point - error > pieces.lower) & (point + error < pieces.upper)
    kinked = pieces.left < pieces.right
    same = np.where(start > 0, point - error > 0, point + error < 0)
    return bool(np.all(inside & (same | ~kinked)))


def _proved(
    model: Model,
    penalty: PiecewiseParameters,
    loss: PiecewiseParameters,
    x: Vector,
    y: Vector,
    corners: tuple[Vector, Vector],
    columns: Indices,
    rows: Indices,
) -> Vertex | None:
    """Solve for the entries that are not in a corner, and return the vertex if all strict inequalities hold."""
    A, size = model.A, columns.size
    free, held = (PiecewiseParameters(*(each[at] for each in part)) for part, at in ((penalty, columns), (loss, rows)))
    x_new, y_new = corners[0].copy(), corners[1].copy()
    x_new[columns], y_new[rows] = 0.0, 0.0
    fixed = np.flatnonzero(x_new)
    u = A.matvec(x_new[fixed], fixed)
    u_error = SUMMED * float(np.abs(x_new) @ model.column_lengths) + np.zeros(u.size)
    x_error = y_error = 0.0
    if size:
        own = A.entries(columns, compressed=SPARSE * A.traits.stored < A.shape[0] * A.shape[1])
        unit, lengths = _rounding(own), model.column_lengths[columns]
        target = np.where(y[rows] < 0, held.left, held.right) - u[rows]
        slope = np.where(x[columns] > 0, free.right, free.left)
        solved = _solved(
            own[rows],
            (target, u_error[rows] + unit * np.abs(u[rows])),
            (-slope - own.T @ y_new, unit * lengths * float(np.linalg.norm(y_new))),
        )
        if solved is None:
            return None
        x_new[columns], y_new[rows], x_error, y_error = solved
        u = u + own @ x_new[columns]
        u_error += _row_lengths(own) * float(np.linalg.norm(x_error + unit * np.abs(x_new[columns])))
    if not (
        _strictly_inside(free, x[columns], x_new[columns], x_error)
        and _strictly_inside(held, y[rows], y_new[rows], y_error)
        and _apart(_slopes(loss, corners[1]), u, u_error, rows).size == 0
        and _slopes_hold(model, _slopes(penalty, corners[0]), y_new, y_error, (rows, columns))
    ):
        return None
    spread = np.zeros(x.size)
    spread[columns] = x_error
    return Vertex((x_new - spread, x_new + spread), (u - u_error, u + u_error))


def _row_lengths(matrix: Any) -> Vector:
    """Return the lengths of the rows of a matrix."""
    squares = matrix.multiply(matrix).sum(axis=1) if sparse.issparse(matrix) else np.einsum("ij,ij->i", matrix, matrix)
    return np.sqrt(np.ravel(squares))


def _rounding(matrix: Any) -> float:
    """Return the relative rounding error of the sums in a product with a matrix or its transpose."""
    count = max(np.diff(each.indptr).max() for each in (matrix, matrix.tocsr())) if sparse.issparse(matrix) else np.inf
    return float(min(SUMMED, (count + 2) * UNIT))


def _slopes_hold(
    model: Model, slopes: tuple[Vector, Vector], y: Vector, error: float, free: tuple[Indices, Indices]
) -> bool:
    """Return whether the slopes -A'y are strictly between their ends, by more than the errors of y and of the product.

    A cheap bound on the error decides nearly all columns; the entries of the others give a better one.
    """
    A, (rows, columns) = model.A, free
    z = -A.rmatvec(y)
    rough = model.column_lengths * (np.sqrt(rows.size) * error + SUMMED * float(np.linalg.norm(y)))
    close = _apart(slopes, z, rough, columns)
    if close.size == 0 or close.size > max(columns.size, MOST_CLOSE):
        return close.size == 0
    own = A.entries(close, compressed=SPARSE * A.traits.stored < A.shape[0] * A.shape[1])
    weight = _rounding(own) * np.abs(y)
    weight[rows] += error
    ends = slopes[0][close], slopes[1][close]
    return _apart(ends, z[close], abs(own).T @ weight, np.zeros(0, dtype=np.int64)).size == 0


def _apart(slopes: tuple[Vector, Vector], point: Vector, error: Vector, free: Indices) -> Indices:
    """Return where points are not strictly between slopes, by more than their errors, except for the free entries."""
    low, high = slopes
    inside = (point - error > low) & (point + error < high)
    inside[free] = True
    return np.flatnonzero(~inside)


class _Solved(NamedTuple):
    """The solutions of the equations and of the transposed ones, and bounds on their largest errors."""

    x: Vector
    y: Vector
    x_error: float
    y_error: float


Inexact = tuple[Vector, Vector]
"""A vector with bounds on the errors of its entries."""


def _solved(block: Any, target: Inexact, pull: Inexact) -> _Solved | None:
    """Solve M x = target and M'y = pull; return None if M is singular up to rounding.

    The error of a solution is at most the norm of the inverse times the residual.
    """
    try:
        factors = _SparseFactors(block) if sparse.issparse(block) else _DenseFactors(block)
    except (linalg.LinAlgError, RuntimeError):  # the latter from a sparse factorisation
        return None
    if not factors.sensitivity * abs(block).sum(axis=0).max() < 1.0 / SINGULAR:
        return None
    points, errors, unit = [], [], _rounding(block)
    for matrix, (right, off), transposed in ((block, target, False), (block.T, pull, True)):
        point = factors.solve(right, transposed)
        point = point + factors.solve(right - matrix @ point, transposed)
        residual = np.abs(right - matrix @ point) + unit * (abs(matrix) @ np.abs(point) + np.abs(right)) + off
        points.append(point)
        errors.append(factors.sensitivity * float(np.sum(residual)))
    return _Solved(points[0], points[1], errors[0], errors[1])


class _DenseFactors:
    """A factorisation with pivoting; ``sensitivity`` is the norm of the inverse, with a margin for its estimate."""

    def __init__(self, block: Vector) -> None:
        self.factors, self.pivots, singular = linalg.lapack.dgetrf(block)
        size = float(np.abs(block).sum(axis=0).max())
        share, failed = linalg.lapack.dgecon(self.factors, size)
        if singular or failed or not share > 0:
            raise linalg.LinAlgError
        self.sensitivity = MARGIN / (share * size)

    def solve(self, right: Vector, transposed: bool) -> Vector:
        """Return the solution of the equations or of the transposed ones."""
        solution: Vector = linalg.lapack.dgetrs(self.factors, self.pivots, right, trans=int(transposed))[0]
        return solution


class _SparseFactors:
    """The same for a sparse matrix."""

    def __init__(self, block: Any) -> None:
        self.factors = splu(sparse.csc_matrix(block))
        inverse = LinearOperator(block.shape, matvec=self.factors.solve, rmatvec=self._transposed, dtype=np.float64)
        self.sensitivity = MARGIN * float(onenormest(inverse))

    def _transposed(self, right: Vector) -> Vector:
        solution: Vector = self.factors.solve(right, "T")
        return solution

    def solve(self, right: Vector, transposed: bool) -> Vector:
        """Return the solution of the equations or of the transposed ones."""
        return self._transposed(right) if transposed else self.factors.solve(right)
