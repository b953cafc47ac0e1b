r"""A walk along a face to one of its vertices.

With the held rows R of A_S and a basis B of columns of S such that A_RB is square and not singular, the columns
N = S \ B move to their kinks, and those of the basis balance them in the held rows:

.. math::

    d_N = k_N - x_N, \qquad A_{RB}\, d_B = -A_{RN}\, d_N.

A step ends where a column of the basis reaches a kink: one of N takes its place. Or it ends where u reaches a kink in
another row: this row is held from then on, and the basis gets one more column. So each step leaves fewer columns in N.
In between the objective is linear. On a face of solutions it is constant, and elsewhere the walk does not let it grow
by more than a given amount: then only those columns of N move whose reduced costs

.. math::

    c_N = f'(x)_N + A_N' v, \qquad v = g'(u) \text{ outside } R, \quad f'(x)_B + A_B' v = 0,

say that the objective falls. If there is none, one moves away from its kink instead.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack

from ..common.arrays import Indices, Vector
from .basis import Inverse, LostBasis, independent
from .face import Face

NOISE = 1e-13
"""Entries of a direction below this, relative to the largest, are rounding."""

DRIFT = 1e-8
"""Share of a displacement by which a held row may move before the inverse is computed again."""

AMPLE = 2
"""Number of columns per row, those furthest from a kink, among which a basis is looked for first."""

CANDIDATES = 64
"""Number of columns, those furthest from a kink, among which the one that enters the basis is looked for first."""

CLEAR = 1e-6
"""A pivot of this size, relative to the terms that it is a sum of, is good enough not to look further."""

FAR = 1e3
"""Length of a step away from a kink, relative to the size of x: something else is to be reached before its end."""


class Walk:
    """The state of a walk.

    Attributes
    ----------
    x, u : the point, in S and in all rows.
    basis, rows : B and R, in the order of the inverse.
    room : by how much the objective may still grow.
    steps : number of steps so far.
    """

    def __init__(self, face: Face, room: float) -> None:
        self.face, self.room, self.steps = face, room, 0
        self.x, self.u = face.x.copy(), face.u.copy()
        self.rows, self.basis = _basis(face)
        self._moving = np.ones(face.u.size, dtype=bool)
        self._moving[face.held] = False  # held rows that depend on those of the inverse stay as well
        self._loose = face.goal != face.x
        self._loose[self.basis] = False

    @property
    def dimension(self) -> int:
        """Number of columns of N that are not at a kink."""
        return int(np.count_nonzero(self._loose))

    def go(self, most: int) -> None:
        """Take steps until all columns of N are at their kinks, or nothing more can be done."""
        if not self.dimension:
            return
        try:
            self._inverse = Inverse(self.face.part(self.rows, self.basis))
            self._set_out(np.where(self._loose, self.face.goal, self.x))
            while self.dimension and self.steps < most:
                self._step()
        except LostBasis:
            return  # each point on the way is as good as the first

    def exact(self) -> Vector | None:
        """Return the vertex itself: the columns of the basis such that u is at its kinks in the rows R.

        None if it is there up to rounding already, or A_RB is singular.
        """
        kinks = self.face.of_u.nearest(self.u)
        missing = np.where(self.face.of_u.curved | np.isinf(kinks), 0.0, kinks - self.u)[self.rows]
        if np.abs(missing).max(initial=0.0) <= NOISE * np.abs(self.u).max(initial=0.0):
            return None
        _, _, way, singular = lapack.dgesv(self.face.part(self.rows, self.basis), missing)
        return None if singular else self.x + self._spread(way)

    def _set_out(self, target: Vector) -> None:
        """Let the columns of N move to a target, which is x itself for those that stay."""
        self._target, self._way = target, target - self.x
        self._push = np.asarray(self.face.matrix @ self._way)

    def _step(self) -> None:
        if not np.any(self._way):
            self._set_out(np.where(self._loose, self.face.goal, self.x))
        balance, change = self._direction()
        if self._rate(balance, change) > self.room:
            self._descend()
            balance, change = self._direction()
        basis, moving, of_x, of_u = self.basis, np.flatnonzero(self._moving), self.face.of_x, self.face.of_u
        to_x, place = _first(self.x[basis], balance, of_x.low[basis], of_x.high[basis])
        to_u, i = _first(self.u[moving], change[moving], of_u.low[moving], of_u.high[moving])
        step = min(1.0, to_x, to_u)
        if step == 1.0:
            self._arrive(balance, change)
            return
        self._move(step, balance, change)
        if to_x <= to_u:
            column = basis[place]
            self.x[column] = (of_x.low if balance[place] < 0 else of_x.high)[column]
            self._replace(place)
        else:
            row = moving[i]
            self.u[row] = (of_u.low if change[row] < 0 else of_u.high)[row]
            self._hold(row)

    def _direction(self) -> tuple[Vector, Vector]:
        """Return d_B, and A d."""
        for _ in range(2):
            balance = -(self._inverse.of @ self._push[self.rows])
            change = self._push + self.face.matrix @ self._spread(balance)
            if np.abs(change[~self._moving]).max(initial=0.0) <= DRIFT * np.abs(self._push).max():
                return balance, change
            self._inverse.renew(self.face.part(self.rows, self.basis))
        raise LostBasis

    def _spread(self, of_basis: Vector) -> Vector:
        everywhere = np.zeros(self.x.size)
        everywhere[self.basis] = of_basis
        return everywhere

    def _rate(self, balance: Vector, change: Vector) -> float:
        """Return the derivative of the objective along the direction."""
        slope, row_slope = self.face.of_x.slope, self.face.of_u.slope
        in_x = slope @ self._way + slope[self.basis] @ balance
        return float(in_x + row_slope[self._moving] @ change[self._moving])

    def _move(self, step: float, balance: Vector, change: Vector) -> None:
        self.steps += 1
        self.room -= step * self._rate(balance, change)
        self.x += step * self._way
        self.x[self.basis] += step * balance
        self.u[self._moving] += step * change[self._moving]
        self._way *= 1.0 - step
        self._push *= 1.0 - step

    def _arrive(self, balance: Vector, change: Vector) -> None:
        """Take the whole way: all columns that move reach their targets."""
        arriving = self._way != 0
        at_kink = (self._target == self.face.of_x.low) | (self._target == self.face.of_x.high)
        if not np.all(at_kink[arriving]):
            raise LostBasis  # the objective falls without end
        self._move(1.0, balance, change)
        self.x[arriving] = self._target[arriving]
        self._loose[arriving] = False

    def _replace(self, place: int) -> None:
        """Let a column of N take a place in the basis."""
        weights = np.zeros(self.u.size)
        weights[self.rows] = self._inverse.of[place]
        column = self._enter(weights, lambda entries: self._inverse.exchange(place, entries[self.rows]))
        self.basis[place] = column

    def _hold(self, row: int) -> None:
        """Hold one more row by a column of N."""
        across = self.face.part(np.array([row]), self.basis)[0]
        weights = np.zeros(self.u.size)
        weights[self.rows], weights[row] = -(across @ self._inverse.of), 1.0
        column = self._enter(weights, lambda entries: self._inverse.border(across, entries[self.rows], entries[row]))
        self.basis, self.rows = np.append(self.basis, column), np.append(self.rows, row)
        self._moving[row] = False

    def _enter(self, weights: Vector, update: Callable[[Vector], None]) -> int:
        """Choose a column of N whose product with the weights, the pivot, is not 0, and let it enter the basis."""
        column = self._largest_pivot(weights)
        entries = self.face.column(column)
        update(entries)
        self._push -= self._way[column] * entries
        self._way[column], self._loose[column] = 0.0, False
        return column

    def _largest_pivot(self, weights: Vector) -> int:
        """Return the column whose pivot times its way is the largest, at first among those with a long way."""
        movable = np.flatnonzero(self._way)
        furthest = movable
        if movable.size > CANDIDATES:
            furthest = movable[np.argpartition(-np.abs(self._way[movable]), CANDIDATES)[:CANDIDATES]]
        for columns in (furthest, movable):
            pivots = np.abs(weights @ self.face.matrix[:, columns])
            best = int(np.argmax(pivots * np.abs(self._way[columns])))
            terms = np.abs(weights * self.face.column(columns[best]))
            if pivots[best] > CLEAR * terms.sum():
                return int(columns[best])
        raise LostBasis

    def _descend(self) -> None:
        """Let only those columns move along which the objective falls."""
        face = self.face
        costs = face.of_x.slope + face.matrix.T @ np.where(self._moving, face.of_u.slope, 0.0)
        prices = np.zeros(self.u.size)
        prices[self.rows] = -(costs[self.basis] @ self._inverse.of)
        costs += face.matrix.T @ prices
        falls = self._loose & (costs * (face.goal - self.x) < 0)
        if np.any(falls):
            self._set_out(np.where(falls, face.goal, self.x))
            return
        steepest = int(np.argmax(np.where(self._loose, np.abs(costs), -1.0)))
        end = (face.of_x.low if costs[steepest] > 0 else face.of_x.high)[steepest]
        target = self.x.copy()
        length = FAR * (1.0 + np.abs(self.x).max())
        target[steepest] = end if np.isfinite(end) else self.x[steepest] - length * np.sign(costs[steepest])
        self._set_out(target)


def _basis(face: Face) -> tuple[Indices, Indices]:
    """Return R and B: among the columns furthest from a kink, if these are enough to hold all rows."""
    weight, rows = face.weight(), face.held
    for most in (AMPLE * rows.size, weight.size):
        columns = np.argsort(-weight, kind="stable")[:most]
        held, chosen = independent(face.part(rows, columns), weight[columns])
        if held.size == rows.size or most >= weight.size:
            break
    return rows[held], columns[chosen]


def _first(point: Vector, direction: Vector, low: Vector, high: Vector) -> tuple[float, int]:
    """Return the longest step along a direction that stays in an interval, and the coordinate that ends it."""
    if not point.size:
        return np.inf, -1
    clear = np.abs(direction) > NOISE * np.abs(direction).max()
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(clear, (np.where(direction > 0, high, low) - point) / direction, np.inf)
    first = int(np.argmin(steps))
    return max(float(steps[first]), 0.0), first
