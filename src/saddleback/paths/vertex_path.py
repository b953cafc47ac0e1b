r"""Paths of problems that are linear between their kinks, from vertex to vertex.

With a loss of two slopes per row, as the pinball loss and the hinge, and an L1 penalty, the objective is
:math:`F(x) = \sum_r \varphi_r(M_r x - t_r)`: the rows of M are those of A and of the identity, and
:math:`\varphi_r` has slope :math:`l_r` below 0 and :math:`h_r` above. A minimiser is a vertex, where as many rows B as
there are columns are at their kinks. It is optimal if the slopes of the rows of B that balance all others,
:math:`M_B'\theta = -\sum_{r \notin B} \varphi_r' M_r'`, are between l and h. Otherwise leaving the kink of a violated
row descends, to the kink at which the directional derivative becomes positive: a step of the simplex method, with a
line search that passes kinks.

Another alpha changes slopes of the penalty alone. So the vertex of one alpha is the start of the next, which is a few
steps away. :math:`\theta` and the slopes of the other rows are a dual solution, and each alpha gets its certificate.
Where more kinks meet than there are columns (equal rows, labels as targets) the steps could go round in circles, so
kinks are moved apart by small random distances. The point that is returned has the same rows at their own kinks. What
is not certified is left to the solver.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import lapack, qr

from ..batches.form import Certifier
from ..common.arrays import Vector
from ..engine.clock import Clock
from ..engine.interrupts import Interrupts
from ..engine.options import Options
from ..functions.normal_form import Piecewise
from ..machine.blas_threads import single_threaded
from ..model.model import Model
from ..places.mpi.communicator import communicator_of
from ..problem import Problem
from ..result import Result, counted

MOST_COLUMNS = 200
"""Largest number of columns: a step takes the square of it."""

MOST_ENTRIES = 1_000_000
"""Largest number of entries of A: a step takes two products with it."""

MOST_STEPS = 20
"""Steps per alpha and column after which an alpha, and all after it, are left to the solver."""

APART = 1e-8
"""Distance by which kinks are moved apart, relative to their spread."""

VIOLATED = 1e-9
"""Violation of the slopes at a kink, relative to their difference, from which a row leaves the vertex."""

REFACTOR = 64
"""Steps after which the inverse of the rows of a vertex is computed again."""


def along_vertices(problem: Problem, alphas: Vector, options: Options, interrupts: Interrupts) -> list[Result]:
    """Return certified results for the first of the alphas: all, some, or none if the problem is of another kind.

    After Ctrl-C the other alphas are left to the solver, which ends at once.
    """
    model = problem.model
    if not (options.any_method and _applies(model)):
        return []
    results: list[Result] = []
    with single_threaded():  # for the same bits at any number of threads
        vertex = _first_vertex(model, options.seed)
        if vertex is None:
            return []
        for alpha in alphas:
            if interrupts.noted:
                break
            own, certified = problem.with_alpha(alpha), Certifier(options.tol, Clock(None, communicator_of(None)))
            steps = vertex.descend(own.model)
            found = None if steps is None else _certified(certified, own, vertex, steps)
            if found is None or found.passes > options.max_passes:
                break
            settings = {"backend": "numpy", "steps": steps, "alpha": float(alpha)}
            results.append(replace(found, method="vertices", settings=settings, problem=own))
    return results


def _certified(certified: Certifier, problem: Problem, vertex: Vertex, steps: int) -> Result | None:
    """Return the result at a vertex; each step has taken a product with A and one with A'."""
    x, y, A = vertex.point(), vertex.slopes(), problem.model.A
    work = f"{counted(steps)} steps from vertex to vertex"
    return certified(problem, x, y, A.matvec(x), -A.rmatvec(y), 1.0 + steps, work)


def _applies(model: Model) -> bool:
    """Return whether all of the problem is linear between kinks, one per row and per column, and small enough."""
    traits, (m, n) = model.A.traits, model.A.shape
    penalty, loss = model.penalty_form, model.loss_form
    if penalty is None or loss is None or not (traits.splits and traits.entries_known and traits.tasks == 1):
        return False
    if n > MOST_COLUMNS or n > m or m * n > MOST_ENTRIES:
        return False
    if not (penalty.made_of(Piecewise).all() and loss.made_of(Piecewise).all()):
        return False
    f, g = penalty.parameters, loss.parameters
    bare = not np.any(f.quadratic) and np.all(np.isneginf(f.lower)) and np.all(np.isposinf(f.upper))
    two_slopes = not np.any(g.quadratic) and np.array_equal(g.left, g.right) and np.all(g.lower < g.upper)
    return bool(bare and two_slopes and np.all(np.isfinite(g.lower)) and np.all(np.isfinite(g.upper)))


def _first_vertex(model: Model, seed: int) -> Vertex | None:
    """Return x = 0 with some rows for the columns without a kink; None if these columns are dependent."""
    assert model.penalty_form is not None
    A = np.ascontiguousarray(model.A.entries())
    m, n = A.shape
    units = np.sqrt(np.einsum("ij,ij->j", A, A) / m)
    units[units == 0] = 1.0
    A /= units
    f = model.penalty_form.parameters
    free = np.flatnonzero(f.left >= f.right)
    chosen = np.zeros(0, dtype=np.int64)
    if free.size:
        triangle, order = qr(A[:, free].T, mode="r", pivoting=True)
        if abs(triangle[-1, free.size - 1]) <= 1e-10 * abs(triangle[0, 0]):
            return None
        chosen = order[: free.size].astype(np.int64)
    rows = np.arange(m, m + n)
    rows[free] = chosen
    return Vertex(model, A, units, rows, seed)


class Vertex:
    """A point at which as many rows as there are columns are at their kinks.

    Attributes
    ----------
    A : the rows of the loss, with columns in their own units; row m + j of M is that of column j in the penalty.
    units : the units of the columns.
    rows : B, one row per column.
    inverse : the inverse of M_B.
    kinks : t, moved apart.
    distance : M x - t.
    theta : slopes of the rows of B.
    """

    def __init__(self, model: Model, A: Vector, units: Vector, rows: Vector, seed: int) -> None:
        assert model.loss_form is not None
        self.A, self.units, self.rows = A, units, rows
        m, n = A.shape
        own = model.loss_form.parameters.left
        self.own_kinks = np.concatenate([own, np.zeros(n)])
        spread = float(np.abs(own).max()) or 1.0
        self.kinks = self.own_kinks + APART * spread * np.random.default_rng(seed).uniform(0.5, 1.0, m + n)
        self._factor()

    def _factor(self) -> None:
        matrix = np.zeros((self.rows.size, self.rows.size))
        of_loss = self.rows < self.A.shape[0]
        matrix[of_loss] = self.A[self.rows[of_loss]]
        matrix[~of_loss, self.rows[~of_loss] - self.A.shape[0]] = 1.0
        factors, pivots, failed = lapack.dgetrf(matrix)
        self.inverse, bad = lapack.dgetri(factors, pivots)
        self.singular = bool(failed or bad)
        self.distance = self._image(self.inverse @ self.kinks[self.rows]) - self.kinks
        self.distance[self.rows] = 0.0

    def _image(self, x: Vector) -> Vector:
        return np.concatenate([self.A @ x, x])

    def point(self) -> Vector:
        """Return x, at which the rows are at their own kinks, and columns of the penalty at 0."""
        self._factor()
        x: Vector = self.inverse @ self.own_kinks[self.rows]
        of_penalty = self.rows >= self.A.shape[0]
        x[self.rows[of_penalty] - self.A.shape[0]] = 0.0
        return x / self.units

    def slopes(self) -> Vector:
        """Return the slopes of the rows of the loss: a dual point."""
        m = self.A.shape[0]
        slopes = self.slope.copy()
        slopes[self.rows] = np.clip(self.theta, self.low[self.rows], self.high[self.rows])
        return slopes[:m]

    def descend(self, model: Model) -> int | None:
        """Go to the solution for the slopes of a model; return the number of steps, or None if there were too many."""
        assert model.penalty_form is not None
        assert model.loss_form is not None
        f, g = model.penalty_form.parameters, model.loss_form.parameters
        self.low = np.concatenate([g.lower, f.left / self.units])
        self.high = np.concatenate([g.upper, f.right / self.units])
        self.slope = np.where(self.distance > 0, self.high, self.low)
        self.slope[self.rows] = 0.0
        m, n = self.A.shape
        for step in range(MOST_STEPS * n):
            self.theta = -((self.slope[:m] @ self.A + self.slope[m:]) @ self.inverse)
            low, high = self.low[self.rows], self.high[self.rows]
            beyond = np.maximum(self.theta - high, low - self.theta) / (high - low)
            leaving = int(np.argmax(beyond))
            if beyond[leaving] <= VIOLATED:
                return step
            if self.singular or not self._step(leaving, rising=bool(self.theta[leaving] > high[leaving])):
                return None
            if (step + 1) % REFACTOR == 0:
                self._factor()
        return None

    def _step(self, leaving: int, rising: bool) -> bool:
        """Let a row leave its kink upwards or downwards; return whether another kink ends the descent."""
        row, sign = self.rows[leaving], 1.0 if rising else -1.0
        moves = self._image(sign * self.inverse[:, leaving])
        moves[self.rows] = 0.0
        met = np.flatnonzero(self.distance * moves < 0)
        times = -self.distance[met] / moves[met]
        order = np.argsort(times)
        met, times = met[order], times[order]
        start = self.high[row] - self.theta[leaving] if rising else self.theta[leaving] - self.low[row]
        rises = np.cumsum((self.high[met] - self.low[met]) * np.abs(moves[met]))
        last = int(np.searchsorted(rises, -start))
        if last == met.size:
            return False
        entering, passed = met[last], met[:last]
        self.slope[passed] = self.high[passed] + self.low[passed] - self.slope[passed]
        self.slope[row] = self.high[row] if rising else self.low[row]
        self.slope[entering] = 0.0
        moves[row] = sign
        self.distance += times[last] * moves
        self.distance[entering] = 0.0
        self.rows[leaving] = entering
        self._exchange(leaving, entering)
        return True

    def _exchange(self, leaving: int, entering: int) -> None:
        """Update the inverse for a row of M_B that another replaces."""
        m = self.A.shape[0]
        change = self.A[entering] @ self.inverse if entering < m else self.inverse[entering - m].copy()
        pivot = change[leaving]
        change[leaving] -= 1.0
        self.inverse -= np.outer(self.inverse[:, leaving], change / pivot)
