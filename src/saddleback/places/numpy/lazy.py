r"""The lazy dual: steps of y in rows that no drawn block touches are postponed and then taken together.

In a row that no drawn block touches, u stays the same. Its dual step is then the same map in every iteration,

.. math::

    y \leftarrow \mathrm{clip}\Big(\frac{\mathrm{shrink}(y + s u,\, s\,\text{left},\, s\,\text{right})}{1 + s q},\,
    l,\, h\Big),

with the step s and the parameters of the piecewise quadratic conjugate of the loss. On one side of 0 and inside the
bounds the map is affine; with d = u - right or d = u - left, the slope on that side, n steps from y give

.. math::

    y_n = y + (d - q y) W_n, \qquad \sum_{t=1}^n y_t = n y + (d - q y) V_n, \qquad
    W_n = \frac{1 - (1 + s q)^{-n}}{q}, \qquad V_n = \sum_{t=1}^n W_t = \frac{n - W_n / s}{q},

and for q = 0 the limits W_n = n s and V_n = s n (n + 1) / 2. The sequence is monotone, so that the number of steps
within the piece follows from its end point. One ordinary step then leaves the piece, and the formula is applied again
from there. docs/theory/block_method.md has the derivation.
"""

from __future__ import annotations

import numpy as np

from ...common.arrays import Indices, Vector
from ...functions.piecewise import PiecewiseQuadratic
from ...model.model import Model
from ...steps.strengths import Strengths
from ..contract import Iterate

SERIES_BELOW = 0.01
SERIES_TERMS = 10
"""If n s q is smaller, V_n is summed as a series: its closed form would be a small difference of large numbers."""

WORTHWHILE = 64.0
"""Ratio of the rows to the entries that an iteration touches, above which the lazy dual is faster; measured."""


def missing(model: Model) -> str | None:
    """Return why the dual steps of a problem cannot be postponed, or None if they can."""
    if not isinstance(model.g_star, PiecewiseQuadratic):
        return "repeated steps on its loss have no closed form"
    if not model.A.traits.entries_known:
        return "the entries of A are not known"
    return None


def pays(model: Model, drawn: int) -> bool:
    """Return whether K drawn blocks touch so few rows that updating all rows costs more than the closed form."""
    touched = model.A.traits.stored * drawn / len(model.blocks)
    return missing(model) is None and WORTHWHILE * touched <= model.A.shape[0]


class LazyRows:
    """The rows of y during a sweep, each with the number of dual steps it has taken so far."""

    def __init__(self, model: Model, strengths: Strengths, at: Iterate) -> None:
        assert isinstance(model.g_star, PiecewiseQuadratic)
        self.dual = PiecewiseQuadratic(*model.g_star.contiguous())
        self.step_size = 1.0 / strengths.dual
        self.at = at
        self.taken = np.zeros(at.y.size, dtype=np.int64)

    def catch_up(self, rows: Indices, until: int) -> None:
        """Take the postponed steps of these rows, all at their present u, and add the iterates to the sums."""
        at, behind = self.at, until - self.taken[rows]
        at.y[rows], summed = repeated_steps(
            self.dual.restrict(rows), at.y[rows], at.u[rows], self.step_size[rows], behind
        )
        at.averages.y[rows] += summed
        self.taken[rows] = until

    def step(self, rows: Indices, argument: Vector) -> None:
        """Take one step of these rows at a new argument."""
        at, step = self.at, self.step_size[rows]
        at.y[rows] = self.dual.restrict(rows).prox(at.y[rows] + step * argument, step)
        at.averages.y[rows] += at.y[rows]
        self.taken[rows] += 1


def repeated_steps(
    dual: PiecewiseQuadratic, y: Vector, u: Vector, step: Vector, count: Indices
) -> tuple[Vector, Vector]:
    """Return y after ``count`` dual steps at the same u, per row, and the sum of the iterates."""
    y, total, left = y.copy(), np.zeros_like(y), count.astype(np.float64)
    while np.any(left > 0):
        run, drift = _run(dual, y, u, step)
        run = np.minimum(left, run)
        travelled, summed = _weights(run, step, dual.quadratic)
        total += run * y + drift * summed
        y = y + drift * travelled
        left -= run

        literal = left > 0
        following = np.where(literal, dual.prox(y + step * u, step), y)
        total += np.where(literal, following, 0.0)
        left -= literal
        settled = literal & (following == y)
        total += np.where(settled, left * y, 0.0)
        left[settled] = 0.0
        y = following
    return y, total


def _run(dual: PiecewiseQuadratic, y: Vector, u: Vector, step: Vector) -> tuple[Vector, Vector]:
    """Return the number of steps that stay on their side of 0 and within the bounds, and d - q y there."""
    q = dual.quadratic
    above = (y > 0) | ((y == 0) & (u > dual.right))
    drift = np.where(above, u - dual.right, u - dual.left) - q * y
    bottom = np.where(above, np.maximum(0.0, dual.lower), dual.lower)
    top = np.where(above, dual.upper, np.minimum(0.0, dual.upper))
    first = y + drift * (step / (1.0 + step * q))
    stays = (first >= bottom) & (first <= top)
    with np.errstate(divide="ignore", invalid="ignore"):
        way = (np.where(drift > 0, top, bottom) - y) / drift  # the largest W_n within the piece
        bent = np.where(q * way < 1.0, -np.log1p(-q * way) / np.log1p(step * q), np.inf)
        steps = np.floor(np.where(q > 0, bent, way / step))
    return np.where(stays, np.where(drift == 0, np.inf, steps), 0.0), np.where(stays, drift, 0.0)


def _weights(n: Vector, step: Vector, q: Vector) -> tuple[Vector, Vector]:
    """Return W_n and V_n."""
    rate = step * q
    curved = np.where(q > 0, q, 1.0)
    W = np.where(q > 0, -np.expm1(-n * np.log1p(rate)) / curved, n * step)
    short = n * rate < SERIES_BELOW
    V = np.where(short, _series(n, np.where(short, rate, 0.0)) * step, (n - W / step) / curved)
    return W, V


def _series(n: Vector, rate: Vector) -> Vector:
    """Return V_n / s as n (n + 1) / 2 (1 - (n + 2) / 3 rate (1 - (n + 3) / 4 rate (1 - ...)))."""
    nested = np.ones_like(n)
    for k in range(SERIES_TERMS, 2, -1):
        nested = 1.0 - (n + k - 1) / k * rate * nested
    return 0.5 * n * (n + 1) * nested
