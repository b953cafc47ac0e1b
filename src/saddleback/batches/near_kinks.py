r"""Problems with other weights of the rows, for losses with a kink in each row, as in a bootstrap of quantiles.

Let x be the solution for the given weights. With other weights w, few rows cross a kink between x and the solution.
The rows that may do so, close to a kink at x, are treated exactly; the losses of all others are replaced by their
tangents at x, as in ``tall/``. These small problems have the same rows for all w, and are solved together by
``interior.py``. Their solutions are then certified on all rows: products with A serve all problems at once. A problem
whose certificate fails, because more rows have crossed a kink, is left to ``solve``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..common.arrays import Indices, Vector
from ..functions.normal_form import PiecewiseParameters
from ..functions.traits import SumOverRows
from ..problem import Problem
from ..result import Result
from ..tall.frame import frame_of
from ..tall.rows import Chunk
from ..tall.start import uncertainty
from .form import Certifier, Form, Matrix
from .interior import Batch, Grams, Solver, with_ridge

WIDTH = 4.5
"""Rows are treated exactly up to this many standard deviations of a solution with other weights from a kink. A narrower
band leaves out rows that cross a kink in some of a hundred problems, which are then solved again."""

INNER = 0.1
"""Gap of a small problem, relative to the one at which its solution is certified."""

MOST_KEPT = 0.5
"""Largest share of the rows that is treated exactly; with more, nothing is gained."""


class NearKinks:
    """The problems with other weights near a problem that has been solved.

    Parameters
    ----------
    problem : Problem
        The problem.
    base : Result
        Its solution.
    form : Form
        Its matrix and penalty.
    certified : Certifier
        Makes the results.
    """

    def __init__(self, problem: Problem, base: Result, form: Form, certified: Certifier) -> None:
        self.form, self.certified = form, certified
        self.x = problem.flatten_x(base.x).vector()
        self.gap = INNER * certified.tol * abs(base.objective)
        model, g = problem.model, problem.model.g
        assert isinstance(g, SumOverRows)
        assert model.loss_form is not None
        self.target, _, _, lower, upper = model.loss_form.parameters
        self.lower, self.upper = -upper, -lower
        u = form.A @ self.x
        self.slopes = np.where(u > self.target, upper, lower)
        self.near = self._near(g, u, model.row_lengths)
        few = form.A.shape[1] < self.near.size <= MOST_KEPT * form.A.shape[0]
        self.grams = Grams(form.A[self.near]) if few else None

    @property
    def pays(self) -> bool:
        """Whether the rows that may cross a kink are few, and enough to determine x."""
        return self.grams is not None

    @staticmethod
    def suits(form: Form, conjugate: PiecewiseParameters) -> bool:
        """Return whether a loss, given by its conjugate, has one kink per row and linear pieces, beside an L1 norm."""
        left, right, quadratic, lower, upper = conjugate
        one_kink = np.array_equal(left, right) and not np.any(quadratic) and np.all(np.isfinite(upper - lower))
        return bool(one_kink and not np.any(form.quadratic))

    def _near(self, g: SumOverRows, u: Vector, row_lengths: Vector) -> Indices:
        """Return the rows that may cross a kink."""
        A, far = self.form.A, g.distance_to_kink(u)
        frame = frame_of(Chunk(0, 0, A, self.target, g.row_weights()), intercept=False)
        leverage = frame.leverage(A)
        relative = np.divide(far, leverage, out=np.full(far.size, np.inf), where=leverage > 0)
        width = WIDTH * uncertainty(g, A, self.x, relative)
        # rows at a kink up to rounding are near it, whatever the width
        return np.flatnonzero((relative <= width) | (far <= row_lengths * np.finfo(float).eps))

    def __call__(self, factors: Matrix, problems: list[Problem]) -> Iterator[Result | None]:
        """Yield the result of each problem; None for one that could not be certified."""
        form, near = self.form, self.near
        assert self.grams is not None
        pull = factors * self.slopes
        pull[:, near] = 0.0
        own, linear = factors[:, near], pull @ form.A
        lower, upper = own * self.lower[near], own * self.upper[near]
        solver = Solver(Batch(self.grams.A, self.target[near], form.alpha, linear, lower, upper), self.grams, self.x)
        point = solver.run(np.full(len(factors), self.gap))
        x, y = _without_dust(point.x, form.alpha, point.zeta), pull
        y[:, near] = -_balanced(solver, point.v)
        work = f"a pass beside a similar problem, and an interior point on {near.size} rows"
        for points in zip(problems, x, y, x @ form.A.T, -(y @ form.A), strict=True):
            yield self.certified(*points, 1.0, work)


def _without_dust(x: Matrix, alpha: Vector, zeta: Matrix) -> Matrix:
    """Return x with 0 in the coordinates that an interior point leaves close to it.

    In these the slope zeta is farther from its bounds, relative to alpha, than x is from 0, relative to the largest x.
    """
    size = np.max(np.abs(x), axis=1, keepdims=True)
    inside = np.divide(alpha - np.abs(zeta), alpha, out=np.zeros_like(zeta), where=alpha > 0)
    return np.where(np.abs(x) < inside * size, 0.0, x)


def _balanced(solver: Solver, v: Matrix) -> Matrix:
    """Return dual points moved until A'v = c in the columns without a penalty, up to rounding.

    Rows move in proportion to the squares of their distances from the bounds, so that they stay inside.
    """
    batch, free = solver.batch, np.flatnonzero(~solver.penalised)
    if not free.size:
        return v
    A = batch.A[:, free]
    for _ in range(2):
        missing = batch.linear[:, free] - v @ A
        weight = np.minimum(batch.upper - v, v - batch.lower) ** 2
        normal = with_ridge(solver.grams.of(weight)[:, free[:, None], free])
        move = np.linalg.solve(normal, missing[:, :, None])[:, :, 0]
        v = np.clip(v + weight * (move @ A.T), batch.lower, batch.upper)
    return v
