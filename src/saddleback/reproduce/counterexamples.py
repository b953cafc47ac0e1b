"""Counterexamples to the theory of the published method, and their exact evaluation.

C1 is a Lasso whose expected gap exceeds the bound of Theorem 1. In C2 the cause is that sigma depends on the sample, in
C3 it is the extrapolation alone. In C4 the iterates stay bounded but do not converge. C5 has the strengths that the
paper prints for robust PCA, C6 those of its Remark on correlated columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import saddleback as sb

from ..datasets import make_robust_pca
from ..engine.registry import make
from ..methods import Start
from .experiment import PLAIN
from .rpca import problem_of

Matrix = NDArray[np.float64]

NEAR_DIAGONAL = np.array([[1.0, 0.1], [0.1, 1.0]])
COUPLED = np.array([[1.0, 0.5], [0.5, 1.0]])
HADAMARD = np.array([[1.0, 1.0], [1.0, -1.0]])


@dataclass(frozen=True)
class Counterexample:
    """A problem, the number of blocks to draw, and the options with which the published method fails on it."""

    name: str
    problem: sb.Problem
    drawn: int = 1
    options: dict[str, Any] = field(default_factory=dict)


def lasso_c1() -> sb.Problem:
    """Return the Lasso of C1."""
    return sb.Problem(sb.L1(0.1), np.array([[10.0, 1.0], [1.0, 10.0]]), sb.Squared(np.array([11.0, 11.0])))


def equations(A: Matrix, b: Matrix) -> sb.Problem:
    """Return a feasibility problem: Ax = b, without an objective."""
    return sb.Problem(sb.Zero(), A, sb.Equality(b))


def bounded_c4() -> dict[str, tuple[sb.Problem, float]]:
    """Return the problems of C4 with their optima."""
    b = np.array([1.1, 1.1])
    return {
        "box LP": (sb.Problem(sb.Linear(np.ones(2)) + sb.Box(0, 3), NEAR_DIAGONAL, sb.Equality(b)), 2.0),
        "L1 median": (sb.Problem(sb.L1(0.05), NEAR_DIAGONAL, sb.Pinball(b, 0.5)), 0.1),
        "L1 hinge": (sb.Problem(sb.L1(0.3), NEAR_DIAGONAL, sb.Hinge(np.ones(2))), 0.3 * 2 / 1.1),
    }


def correlated_c6(seed: int = 0) -> sb.Problem:
    """Return the Lasso of C6: 300 strongly correlated columns."""
    rng = np.random.default_rng(seed)
    u, noise = rng.standard_normal(100), rng.standard_normal((100, 300))
    A = 0.95 * (u / np.linalg.norm(u))[:, None] + 0.3 * noise / np.linalg.norm(noise, axis=0)
    b = A @ rng.standard_normal(300) + 0.1 * rng.standard_normal(100)
    return sb.Problem(sb.L1(0.01 * np.abs(A.T @ b).max()), A, sb.Squared(b))


def counterexamples() -> list[Counterexample]:
    """Return all counterexamples."""
    b = np.array([1.0, 2.0])
    return [
        Counterexample("C1, Lasso 2 x 2", lasso_c1()),
        Counterexample("C2, equations, off-diagonal .1", equations(NEAR_DIAGONAL, b)),
        Counterexample("C2, equations, off-diagonal .5", equations(COUPLED, b)),
        Counterexample("C3, equations, constant sigma", equations(HADAMARD, b)),
        *(Counterexample(f"C4, {name}", problem) for name, (problem, _) in bounded_c4().items()),
        Counterexample("C5, robust PCA, (h, sigma) = (1, 1)", small_rpca(), 1, {"step": (1.0, 1.0)}),
        Counterexample("C6, correlated Lasso, Remark, K = 10", correlated_c6(), 10, {"step": "remark"}),
    ]


def small_rpca(seed: int = 0) -> sb.Problem:
    """Return a small robust PCA problem."""
    return problem_of(make_robust_pca(20, 30, 3, seed))


def expected_gap(T: int) -> tuple[float, float]:
    """Return the expected gap of the published method on C1 after T iterations with K = 1, and the bound M(0)/T.

    The gap is that of the averages at the saddle point, as in Theorem 1. The expectation is over all sequences of
    draws, and is exact.
    """
    problem = lasso_c1()
    model = problem.model
    A, b, alpha = model.A.entries(), np.array([11.0, 11.0]), 0.1
    x = sb.solve(problem, tol=1e-10).x
    y = A @ x - b

    def lagrangian(x: Matrix, y: Matrix) -> float:
        return float(alpha * np.abs(x).sum() + y @ A @ x - (y @ y / 2 + b @ y))

    method = make("sp-bcd-published", {})
    gaps = []
    for sequence in product((0, 1), repeat=T):
        state: Any = method.init(model, Start(np.zeros(2), np.zeros(2), 1, 0))
        state.sampling.draw = lambda _, order=sequence: np.array(order)[:, None]
        state = method.advance(state, T / 2)
        gaps.append(lagrangian(state.averages.x / T, y) - lagrangian(x, state.averages.y / T))
    # M(0) at x0 = y0 = 0, K = 1 of J = 2, with E sigma^0 = row sums of |A|
    h = sigma = np.array([11.0, 11.0])
    bound = x @ (h * x) + y @ (sigma * y) / 2 - y @ A @ x - (alpha * np.abs(x).sum() + y @ A @ x)
    return float(np.mean(gaps)), float(bound / T)


def mean_square_radius(A: Matrix, method: str) -> float:
    """Return the spectral radius of E[M_S kron M_S], where M_S is the map of an iteration on Ax = 0 that draws block S.

    Above 1 the mean square of the iterates grows without bound.
    """
    model = equations(A, np.zeros(A.shape[0])).model
    m, n = A.shape
    extrapolated = method == "sp-bcd-published"
    chosen = make(method, {} if extrapolated else PLAIN)
    squares = []
    for sample in range(n):
        columns = []
        for basis in np.eye(m + n * (1 + extrapolated)):
            y, x, bar = np.split(basis, [m, m + n])
            state: Any = chosen.init(model, Start(x, y, 1, 0))
            if extrapolated:
                state.x_bar, state.r_bar = bar, model.A.matvec(bar)
            state.sampling.draw = lambda _, sample=sample: np.array([[sample]])
            state = chosen.advance(state, 1 / n)
            columns.append(np.concatenate([state.y, state.x, state.x_bar if extrapolated else []]))
        M = np.column_stack(columns)
        squares.append(np.kron(M, M))
    return float(np.abs(np.linalg.eigvals(np.mean(squares, axis=0))).max())
