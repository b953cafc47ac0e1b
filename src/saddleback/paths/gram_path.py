r"""Paths of least squares with few columns, on the Gram matrix.

With :math:`g(u) = \tfrac12 \sum_i w_i (u_i - b_i)^2` the objective is f(x) + x'Gx / 2 - c'x plus a constant, where
G = A'WA and c = A'Wb. A sweep over n coordinates then takes n^2 operations, and one call of compiled code solves for
all alphas, each from the solution before it. The points of all alphas are multiplied with A together, and each gets its
certificate, for A as given. What is not certified is left to the solver: rounding in G matters if the fit is nearly
perfect, and sweeps take long if columns are nearly dependent.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._native import gram_path
from ..batches.form import Certifier
from ..common.arrays import Vector
from ..engine.clock import Clock
from ..engine.options import Options
from ..functions.contract import ROUNDING
from ..functions.piecewise import PiecewiseQuadratic
from ..model.model import Model
from ..operators import Dense
from ..operators.gram import square
from ..places.mpi.communicator import communicator_of
from ..problem import Problem
from ..result import Result, counted

MOST_COLUMNS = 600
"""Largest number of columns."""

COLUMNS_PER_ALPHA = 4
"""Largest number of columns per alpha for which the Gram matrix pays."""

MOST_SWEEPS = 1000
"""Number of sweeps after which an alpha, and all after it, are left to the solver."""

SHARE_OF_TOL = 0.25
"""The estimated error at which a solution is taken, relative to ``tol``."""


def on_gram_matrix(problem: Problem, alphas: Vector, options: Options) -> list[Result]:
    """Return certified results for the first of the alphas: all, some, or none if the problem is of another kind."""
    model = problem.model
    weight = _weight(model)
    if weight is None or not options.any_method or not _pays(model, alphas.size, options):
        return []
    certified = Certifier(options.tol, Clock(None, communicator_of(None)))
    problems = [problem.with_alpha(alpha) for alpha in alphas]
    parameters = zip(*(_penalty(each.model).parameters() for each in problems), strict=True)
    left, right, quadratic, lower, upper = (np.concatenate(kind).astype(np.float64, copy=False) for kind in parameters)
    A, b = model.A.array, model.g_star.left  # type: ignore[attr-defined]
    weighted = weight * b
    found, sweeps = gram_path(
        np.ravel(square(model.A.gram(weight))),
        model.A.rmatvec(weighted),
        0.5 * float(weighted @ b) + model.constant,
        left,
        right,
        quadratic,
        lower,
        upper,
        SHARE_OF_TOL * options.tol,
        MOST_SWEEPS,
    )
    solved = int(np.argmax(sweeps >= MOST_SWEEPS)) if np.any(sweeps >= MOST_SWEEPS) else alphas.size
    points = found.reshape(alphas.size, -1)[:solved]
    points[np.abs(points) * model.column_lengths <= ROUNDING * np.linalg.norm(b)] = 0.0  # as at the largest alpha
    images = np.ascontiguousarray((A @ points.T).T)
    duals = weight * (images - b)
    slopes = -np.ascontiguousarray(duals @ A)
    passes = 1.0 + 0.5 * A.shape[1] / alphas.size + sweeps * min(1.0, A.shape[1] / A.shape[0])
    results: list[Result] = []
    for k in range(solved):
        work = f"{counted(passes[k])} passes of descent"
        found_k = certified(problems[k], points[k], duals[k], images[k], slopes[k], float(passes[k]), work)
        if found_k is None:
            break
        settings = {"backend": "native", "gram": True, "alpha": float(alphas[k])}
        results.append(replace(found_k, method="descent", settings=settings, problem=problems[k]))
    return results


def _weight(model: Model) -> Vector | None:
    """Return the weights of the rows of a squared loss on dense data; None for any other problem."""
    loss = model.g_star
    if not (isinstance(model.A, Dense) and model.A.array.dtype == np.float64 and isinstance(loss, PiecewiseQuadratic)):
        return None
    squared = loss.left is loss.right or np.array_equal(loss.left, loss.right)
    squared = squared and loss.domain.everything and bool(np.all(loss.quadratic > 0))
    return 1.0 / loss.quadratic if squared and isinstance(model.f, PiecewiseQuadratic) else None


def _penalty(model: Model) -> PiecewiseQuadratic:
    assert isinstance(model.f, PiecewiseQuadratic)
    return model.f


def _pays(model: Model, alphas: int, options: Options) -> bool:
    n = model.A.shape[1]
    return n <= min(MOST_COLUMNS, COLUMNS_PER_ALPHA * alphas) and 2.0 + n / alphas <= options.max_passes
