r"""An interior point for many small problems with one matrix, all of them at once.

Problem b is

.. math::

    \min_x\; \langle c_b, x\rangle + \sum_j \alpha_j |x_j| + \sum_i \max_{l_{bi} \le v \le u_{bi}} v\,(t_i - a_i'x)

with the same A, t and alpha for all b. A step of one problem takes a dozen calls of numpy and one of LAPACK, which cost
more than their arithmetic if A is small. Here each call serves all problems: the matrices A'DA of all of them are one
product, of the weights D with the products of all pairs of columns.

The formulas are those of a primal-dual method with Mehrotra's corrector (docs/theory/layers.md, "The finish"): with
multipliers p, q of the bounds of v and x = x+ - x-, it solves

.. math::

    t - Ax = p - q, \quad A'v - c = \zeta, \quad
    p (u - v) = q (v - l) = x^+ (\alpha - \zeta) = x^- (\alpha + \zeta) = \mu

for a sequence of mu that falls to 0. Columns with alpha = 0 have zeta = 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..common.arrays import Indices, Vector
from .form import Matrix

STEPS = 50
"""Most steps; about 15 are usual."""

TO_BOUND = 0.99
"""Share of the way to the nearest bound that a step may go."""

INSIDE = 0.1
"""Distance of the start from the nearest bound, relative to that between the bounds."""

RIDGE = 1e-14
"""Added to the diagonal of A'DA, relative to its largest entry."""

MOST_PRODUCTS = 1 << 25
"""Largest number of products of columns that are kept; more are computed again in every step."""


class Grams:
    """The matrices A'DA for many D at once: the products of all pairs of columns, times the weights D."""

    def __init__(self, A: Matrix) -> None:
        self.A = A
        self._pairs = np.triu_indices(A.shape[1])
        self._height = max(1, min(A.shape[0], MOST_PRODUCTS // self._pairs[0].size))
        self._kept = self._products(A) if self._height == A.shape[0] else None

    def of(self, weights: Matrix) -> Matrix:
        """Return A'DA for the weights D of each problem, problems by columns by columns."""
        (i, j), size = self._pairs, self.A.shape[1]
        upper = sum(weights[:, own] @ products for own, products in self._all_products())
        result = np.empty((weights.shape[0], size, size))
        result[:, i, j] = upper
        result[:, j, i] = upper
        return result

    def _all_products(self) -> Iterator[tuple[slice, Matrix]]:
        if self._kept is not None:
            yield slice(None), self._kept
            return
        for first in range(0, self.A.shape[0], self._height):
            own = slice(first, first + self._height)
            yield own, self._products(self.A[own])

    def _products(self, rows: Matrix) -> Matrix:
        """Return the products of all pairs of columns, in some rows."""
        columns = rows.shape[1]
        starts = np.cumsum([0, *range(columns, 0, -1)])
        result = np.empty((rows.shape[0], starts[-1]))
        for j in range(columns):
            np.multiply(rows[:, j : j + 1], rows[:, j:], out=result[:, starts[j] : starts[j + 1]])
        return result


@dataclass(frozen=True)
class Batch:
    """Many problems.

    Attributes
    ----------
    A : the matrix, rows by columns.
    target : t, one per row.
    alpha : one per column.
    linear : c, problems by columns.
    lower, upper : l and u, problems by rows; a row whose bounds are equal is left out of its problem.
    """

    A: Matrix
    target: Vector
    alpha: Vector
    linear: Matrix
    lower: Matrix
    upper: Matrix

    def part(self, problems: Indices) -> Batch:
        """Return some of the problems."""
        return replace(self, linear=self.linear[problems], lower=self.lower[problems], upper=self.upper[problems])


@dataclass
class Point:
    """Iterates of all problems: x and zeta by columns, v by rows, and the multipliers of their bounds."""

    x: Matrix
    up: Matrix
    down: Matrix
    zeta: Matrix
    v: Matrix
    p: Matrix
    q: Matrix

    def part(self, problems: Indices) -> Point:
        """Return the iterates of some of the problems."""
        return Point(*(each[problems] for each in vars(self).values()))

    def put(self, problems: Indices, other: Point) -> None:
        """Set the iterates of some of the problems."""
        for name, each in vars(self).items():
            each[problems] = getattr(other, name)


@dataclass(frozen=True)
class Targets:
    """What the products of the variables and their distances from the bounds lack, by the multipliers of the bounds."""

    p: Matrix
    q: Matrix
    up: Matrix
    down: Matrix


class Solver:
    """The interior point for a batch, from a common point x and dual points v inside their bounds.

    Parameters
    ----------
    batch : the problems.
    grams : the matrices A'DA.
    x : a point close to all solutions.
    """

    def __init__(self, batch: Batch, grams: Grams, x: Vector) -> None:
        self.batch, self.grams = batch, grams
        self.penalised = batch.alpha > 0
        self.point = self._start(x)

    def _start(self, x: Vector) -> Point:
        batch = self.batch
        residual = batch.target - batch.A @ x
        size = float(np.mean(np.abs(residual)))
        share = np.where(residual > 0, 1.0 - INSIDE, INSIDE)
        v = batch.lower + share * (batch.upper - batch.lower)
        p = np.maximum(residual, 0.0) + size
        zeta = np.clip(v @ batch.A - batch.linear, -(1 - INSIDE) * batch.alpha, (1 - INSIDE) * batch.alpha)
        up = np.maximum(x, 0.0) + np.mean(np.abs(x)) + size
        every = np.ones((len(batch.linear), 1))
        return Point(every * x, every * up, every * (up - x), zeta, v, every * p, every * (p - residual))

    def run(self, gaps: Vector) -> Point:
        """Take steps until the products of each problem add up to its gap; return the last point."""
        active = np.arange(gaps.size)
        for _ in range(STEPS):
            batch, point = self.batch.part(active), self.point.part(active)
            open_ = Iteration(batch, point, self.penalised).total > gaps[active]
            if not np.any(open_):
                break
            active = active[open_]
            self._step(active)
        return self.point

    def _step(self, active: Indices) -> None:
        point = self.point.part(active)
        now = Iteration(self.batch.part(active), point, self.penalised)
        normal = self.grams.of(now.weight)
        columns = np.arange(normal.shape[1])
        normal[:, columns, columns] += now.of_columns
        normal = with_ridge(normal)
        ahead = now.direction(normal, now.targets(0.0))
        centre = (now.total_after(ahead) / now.total) ** 3 * now.mean
        step = now.direction(normal, now.targets(centre[:, None], ahead))
        self.point.put(active, now.moved(step))


def with_ridge(matrices: Matrix) -> Matrix:
    """Return matrices, which are changed, with a little more on their diagonals, so that none is singular."""
    columns = np.arange(matrices.shape[1])
    diagonal = matrices[:, columns, columns]
    matrices[:, columns, columns] += RIDGE * diagonal.max(axis=1, keepdims=True) + np.finfo(float).tiny
    return matrices


class Iteration:
    """What a step needs to know of a point: distances from bounds, residuals and weights.

    Attributes
    ----------
    weight : the weights D of the rows in A'DA.
    of_columns : what the penalty adds to the diagonal.
    total : the sum of the products of each problem; for a feasible point, the gap.
    mean : their mean.
    """

    def __init__(self, batch: Batch, point: Point, penalised: NDArray[np.bool_]) -> None:
        self.batch, self.point, self.penalised = batch, point, penalised
        self.above, self.below = batch.upper - point.v, point.v - batch.lower
        live = batch.upper > batch.lower
        self.above[~live] = self.below[~live] = 1.0
        self.live = live
        self.weight = live / (point.p / self.above + point.q / self.below)
        self.residual = batch.target - point.x @ batch.A.T - point.p + point.q
        self.left, self.right = batch.alpha - point.zeta, batch.alpha + point.zeta
        self.left[:, ~penalised] = self.right[:, ~penalised] = 1.0
        self.of_columns = penalised / (point.up / self.left + point.down / self.right)
        self.slope = point.v @ batch.A - batch.linear - np.where(penalised, point.zeta, 0.0)
        self.total = self._total(point.p, point.q, self.above, self.below, point.up, point.down, self.left, self.right)
        self.mean = self.total / (2 * np.sum(live, axis=1) + 2 * np.sum(penalised))

    def _total(
        self, p: Matrix, q: Matrix, above: Matrix, below: Matrix, up: Matrix, down: Matrix, left: Matrix, right: Matrix
    ) -> Vector:
        of_rows = np.einsum("bi,bi,bi->b", p, above, self.live) + np.einsum("bi,bi,bi->b", q, below, self.live)
        return np.asarray(of_rows + ((up * left + down * right) * self.penalised).sum(axis=1))

    def targets(self, centre: float | Matrix, ahead: Point | None = None) -> Targets:
        """Return what the products lack to be ``centre``, with the second-order terms of the step ``ahead``."""
        point = self.point
        found = Targets(
            centre - point.p * self.above,
            centre - point.q * self.below,
            centre - point.up * self.left,
            centre - point.down * self.right,
        )
        if ahead is None:
            return found
        return Targets(
            found.p + ahead.p * ahead.v,
            found.q - ahead.q * ahead.v,
            found.up + ahead.up * ahead.zeta,
            found.down - ahead.down * ahead.zeta,
        )

    def direction(self, normal: Matrix, targets: Targets) -> Point:
        """Return the step towards some targets."""
        batch, point = self.batch, self.point
        wanted = self.residual - targets.p / self.above + targets.q / self.below
        ahead = targets.up / self.left - targets.down / self.right
        right = (self.weight * wanted) @ batch.A + self.slope + self.of_columns * ahead
        x = np.asarray(np.linalg.solve(normal, right[:, :, None])[:, :, 0], dtype=np.float64)
        v = self.weight * (wanted - x @ batch.A.T)
        zeta = self.of_columns * (x - ahead)
        return Point(
            x,
            (targets.up + point.up * zeta) / self.left,
            (targets.down - point.down * zeta) / self.right,
            zeta,
            v,
            self.live * (targets.p + point.p * v) / self.above,
            self.live * (targets.q - point.q * v) / self.below,
        )

    def lengths(self, step: Point) -> tuple[Matrix, Matrix]:
        """Return how far a step may go before a multiplier, and before a dual variable, reaches its bound."""
        point, of_columns = self.point, self.penalised
        primal = np.maximum(
            np.max(-step.p / point.p * self.live, axis=1), np.max(-step.q / point.q * self.live, axis=1)
        )
        dual = np.max(np.abs(step.v) / np.where(step.v > 0, self.above, self.below), axis=1)
        if np.any(of_columns):
            own = [-step.up / point.up, -step.down / point.down, step.zeta / self.left, -step.zeta / self.right]
            largest = [np.max(each[:, of_columns], axis=1) for each in own]
            primal, dual = np.maximum(primal, np.maximum(*largest[:2])), np.maximum(dual, np.maximum(*largest[2:]))
        return 1.0 / np.maximum(primal, 1.0)[:, None], 1.0 / np.maximum(dual, 1.0)[:, None]

    def total_after(self, step: Point) -> Vector:
        """Return the sum of the products after a step to the bounds."""
        a, b = self.lengths(step)
        point = self.point
        return self._total(
            point.p + a * step.p, point.q + a * step.q, self.above - b * step.v, self.below + b * step.v,
            point.up + a * step.up, point.down + a * step.down, self.left - b * step.zeta, self.right + b * step.zeta,
        )  # fmt: skip

    def moved(self, step: Point) -> Point:
        """Return the point after a step that ends before the bounds."""
        reach, dual_reach = self.lengths(step)
        a, b = np.minimum(1.0, TO_BOUND * reach), np.minimum(1.0, TO_BOUND * dual_reach)
        point = self.point
        return Point(
            point.x + a * step.x,
            point.up + a * step.up,
            point.down + a * step.down,
            point.zeta + b * step.zeta,
            point.v + b * step.v,
            point.p + a * step.p,
            point.q + a * step.q,
        )
