"""The start of a tall problem: the solution of a sample of its rows, and how far it is from that of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common.arrays import Vector
from ..functions.traits import SumOverRows, subgradient_scale
from ..model.model import RESOLVED
from .evaluation import bound
from .frame import frame_of, weighted_gram
from .problem import LEAST_PER_COLUMN, TallProblem
from .reduced import InMemory, Solved
from .rows import joined
from .survey import Look

WIDTH = 2.5
"""Rows are kept up to this many standard deviations of the solution of the sample from a kink."""

NEAR_KINK = 0.1
"""Share of the rows of the sample from which the mean curvature of a loss with kinks is estimated."""

FILLED = 0.9
"""Share of the memory for rows that the widest band is expected to fill."""

STATISTICAL = 0.1
"""Accuracy to which the sample is solved, relative to the error of a sample, which is about n / rows."""


class Start:
    """A sample of the rows of a tall problem, which the first reading draws.

    Parameters
    ----------
    problem : the tall problem.
    seed : seed of the draw.

    Attributes
    ----------
    frame : the columns of x, centred by the means of the sample.
    is_whole : whether the sample has all rows.
    """

    def __init__(self, problem: TallProblem, seed: int) -> None:
        self.problem = problem
        rule = problem.sample(seed)
        self.is_whole = rule.share == 1.0
        self._rows = joined(problem.rows.survey(Look(rule, checked=problem.rows.checked)).sample)
        self.frame = frame_of(self._rows, problem.intercept)
        self._loss = bound(problem.loss, self._rows)

    @property
    def size(self) -> int:
        """Number of rows in the sample."""
        return len(self._rows)

    def mark(self) -> dict[str, Any]:
        """Return numbers by which rows and loss are recognised."""
        return {
            "the entries of the rows": float((self._rows.X @ np.cos(np.arange(self._rows.X.shape[1]))).sum()),
            "the loss": self._loss.finite_value(np.cos(np.arange(self.size))),
        }

    def solve(self, inner: float, tol: float, **limits: Any) -> Solved:
        """Return the solution of the sample.

        A sample with all rows is solved to ``inner`` times the tolerance, and any other no more accurately than it
        determines the solution of all rows.
        """
        accuracy = inner * tol if self.is_whole else max(STATISTICAL * self.frame.size / self.size, tol)
        matrices = self.frame.matrices(self._rows.X)
        origin = np.zeros(self.frame.size)
        problem = InMemory(self.problem, self.frame, self._rows, matrices, self.problem.smooth, origin)
        return problem.solve(None, None, accuracy, **limits)

    def widths(self, x: Vector) -> tuple[float, float]:
        """Return how far from a kink rows are to be kept in the first step from x, and how far memory allows.

        Both are in units of the leverage of the rows.
        """
        design = self.frame.design(self._rows.X)
        far, leverage = self._loss.distance_to_kink(design @ x), self.frame.leverage(design)
        far = np.divide(far, leverage, out=np.full(far.size, np.inf), where=leverage > 0)  # a row of zeros never moves
        counts = np.array([LEAST_PER_COLUMN * self.frame.size, FILLED * self.problem.rows_in_memory])
        least, most = np.quantile(far, np.minimum(1.0, counts / self.problem.rows.n_rows), method="lower")
        # a width below the rounding of Ax would miss rows that are on a kink
        size = np.maximum(np.abs(design @ x), subgradient_scale(self._loss.conjugate()))
        least = max(float(least), RESOLVED * float(np.mean(size)))
        return max(WIDTH * uncertainty(self._loss, design, x, far), least), max(float(most), least)


def uncertainty(loss: SumOverRows, design: Any, x: Vector, far: Vector) -> float:
    r"""Return the standard deviation of a'x for a typical row, if x is the solution of a sample.

    For a loss whose slope jumps, the covariance of x is :math:`H^{-1} G H^{-1}` with :math:`G = \sum_i y_i^2 a_i a_i'`
    and H the mean curvature, which is estimated by the jumps of the rows that are close to a kink. Columns with
    coefficient 0 are left out.
    """
    active = design[:, np.flatnonzero(x)]
    y, width = loss.subgradient(design @ x), float(np.quantile(far, NEAR_KINK, method="lower"))
    jumps = np.where(far <= width, loss.row_weights() / (2.0 * width), 0.0) if 0 < width < np.inf else np.ones(y.size)
    spread, curvature, gram = (weighted_gram(active, each) for each in (y**2, jumps, np.full(y.size, 1.0 / y.size)))
    inverse = np.linalg.pinv(curvature, hermitian=True)
    return float(np.sqrt(np.trace(inverse @ spread @ inverse @ gram)))
