r"""Problems with other weights of the rows, for smooth losses: Newton steps with one matrix for all problems.

With H the curvature of the loss at the solution for the given weights, all problems take the steps

.. math::

    x \leftarrow \arg\min_s\; f(s) + \langle A' \nabla g_w(Ax), s\rangle + \tfrac12 \|s - x\|_H^2 .

The curvature for other weights differs from H by a share of about the root of columns per rows, and the distance from
the solution falls by this factor in every step: three or four steps are usual. The products with A, and the factor of
H, serve all problems at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..certificates.sides import MAX_PROJECTED
from ..common.arrays import Vector
from ..functions.traits import Smooth, SumOverRows, curvature_at, is_smooth
from ..problem import Problem
from ..result import Result
from ..tall.frame import weighted_gram
from .form import Certifier, Form, Matrix
from .interior import with_ridge

INNER = 1e-3
"""Fall of the next step, relative to the tolerance, from which on a point is certified. The gap falls more slowly than
the objective, since y is scaled until it is feasible."""

STEPS = 12
"""Most steps; a problem that needs more is far from the one that was solved."""

SWEEPS, SETTLED = 200, 1e-12
"""Most sweeps of coordinate descent in a step, and the change, relative to the size of x, at which they end."""


class Chord:
    """The problems with other weights near a problem with a smooth loss that has been solved.

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
        self.x, self.objective = problem.flatten_x(base.x).vector(), base.objective
        H = weighted_gram(form.A, curvature_at(problem.model.g, form.A @ self.x))
        self.H: Matrix = with_ridge(H[None])[0]

    @staticmethod
    def suits(problem: Problem, base: Result, form: Form) -> bool:
        """Return whether a loss is curved and has no linear pieces, on which alone a row is far from its kinks."""
        g = problem.model.g
        if is_smooth(g) or not (isinstance(g, Smooth) and isinstance(g, SumOverRows)):
            return is_smooth(g)
        return not np.any(g.distance_to_kink(form.A @ problem.flatten_x(base.x).vector()))

    def __call__(self, factors: Matrix, problems: list[Problem]) -> Iterator[Result | None]:
        """Yield the result of each problem; None for one that could not be certified."""
        form = self.form
        results: list[Result | None] = [None] * len(problems)
        x = np.tile(self.x, (len(problems), 1))
        active = np.arange(len(problems))
        for step in range(STEPS):
            u = x[active] @ form.A.T
            y = np.stack([problems[b].model.g.subgradient(own) for b, own in zip(active, u, strict=True)])
            z = -(y @ form.A)
            ahead = self._step(x[active], -z)
            ready = self._is_close(x[active], ahead, -z)
            work = f"{step + 1} passes beside a similar problem, with its curvature"
            for i in np.flatnonzero(ready):
                b = active[i]
                results[b] = self.certified(problems[b], x[b], y[i], u[i], z[i], step + 1.0, work)
            x[active] = ahead
            active = np.array([b for b in active if results[b] is None], dtype=np.intp)
            if not active.size:
                break
        yield from results

    def _is_close(self, x: Matrix, ahead: Matrix, gradient: Matrix) -> NDArray[np.bool_]:
        """Return which problems are so close to their solutions that a certificate is worth its time.

        The next step has to fall by a small part of the tolerance. If the columns without a penalty are too many for
        the certificate to move y, the gradient has to be small in them too.
        """
        form, step, tol = self.form, ahead - x, self.certified.tol
        penalty = [np.abs(each) @ form.alpha + 0.5 * each**2 @ form.quadratic for each in (x, ahead)]
        expansion = np.einsum("bj,bj->b", step, gradient + 0.5 * step @ self.H)
        fall = penalty[0] - penalty[1] - expansion
        free = (form.alpha == 0) & (form.quadratic == 0)
        balanced = np.sum(free) <= MAX_PROJECTED or np.linalg.norm(gradient[:, free], axis=1) <= tol
        return np.asarray((fall <= INNER * tol * abs(self.objective)) & balanced)

    def _step(self, x: Matrix, gradient: Matrix) -> Matrix:
        """Return the minimisers of penalty and second-order expansion, for gradients of the losses at x."""
        form = self.form
        if not np.any(form.alpha):
            full = self.H + np.diag(form.quadratic)
            return x - np.linalg.solve(full, (gradient + form.quadratic * x).T).T
        return self._descend(x, gradient)

    def _descend(self, x: Matrix, gradient: Matrix) -> Matrix:
        """Return the same by coordinate descent over the columns, for all problems at once."""
        form, s, slope = self.form, x.copy(), gradient.copy()
        for _ in range(SWEEPS):
            largest = 0.0
            for j, curvature in enumerate(np.diag(self.H)):
                free = curvature * s[:, j] - slope[:, j]
                moved = _shrunk(free, form.alpha[j]) / (curvature + form.quadratic[j])
                change = moved - s[:, j]
                slope += change[:, None] * self.H[j]
                s[:, j] = moved
                largest = max(largest, float(np.max(np.abs(change))))
            if largest <= SETTLED * max(1.0, float(np.max(np.abs(s)))):
                break
        return s


def _shrunk(values: Vector, alpha: float) -> Vector:
    return np.sign(values) * np.maximum(np.abs(values) - alpha, 0.0)
