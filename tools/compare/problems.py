"""Small named problems that use public names only, so that this file works at every commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import saddleback as sb

Array = NDArray[np.float64]


def normal(rows: int, columns: int, seed: int = 0) -> Array:
    """Return a matrix of independent normal entries."""
    return np.random.default_rng(seed).standard_normal((rows, columns))


def scattered(rows: int, columns: int, density: float = 0.1, seed: int = 0) -> Any:
    """Return a sparse matrix, in column order."""
    return sparse.random(rows, columns, density, format="csc", random_state=seed)


def target(A: Any, nonzeros: int = 5, seed: int = 1) -> Array:
    """Return the sum of the first columns, with noise."""
    some = np.zeros(A.shape[1])
    some[:nonzeros] = 1.0
    noise = np.random.default_rng(seed).standard_normal(A.shape[0])
    return np.asarray(A @ some + 0.5 * noise)


def labels(A: Any) -> Array:
    """Return labels +1 and -1 that depend on the first columns of A and on noise."""
    return np.where(target(A) > 0, 1.0, -1.0)


def row_weights(rows: int) -> Array:
    """Return positive weights."""
    return np.random.default_rng(2).uniform(0.5, 2.0, rows)


def wide(rows: int = 60, columns: int = 600, seed: int = 0) -> Array:
    """Return a matrix with enough columns to make a working set worthwhile."""
    return normal(rows, columns, seed)


def lasso(A: Any = None, alpha: float = 0.2) -> sb.Problem:
    """Return a Lasso at a fraction of alpha_max."""
    A = wide() if A is None else A
    b = target(A)
    return sb.Problem(sb.L1(alpha * float(np.abs(A.T @ b).max())), A, sb.Squared(b))


def quantile(A: Any = None, alpha: float = 4.0) -> sb.Problem:
    """Return a quantile regression with an L1 penalty."""
    A = normal(150, 30) if A is None else A
    return sb.Problem(sb.L1(alpha), A, sb.Pinball(target(A), 0.3))


def group_hinge(A: Any = None) -> sb.Problem:
    """Return a support vector machine with groups whose columns are not neighbours."""
    A = scattered(120, 60) if A is None else A
    n = A.shape[1]
    groups = [list(range(first, n, n // 4)) for first in range(n // 4)]
    return sb.Problem(sb.GroupL2(0.5, groups), A, sb.Hinge(labels(A), scale=1.0))


def linear_program(rows: int = 15, columns: int = 25, seed: int = 4) -> sb.Problem:
    """Return a linear program that has a solution."""
    rng = np.random.default_rng(seed)
    A = rng.uniform(size=(rows, columns))
    feasible = rng.uniform(size=columns)
    return sb.Problem(sb.Linear(rng.uniform(size=columns)) + sb.Box(0, 1), A, sb.Interval(A @ feasible - 0.1, np.inf))


def infeasible() -> sb.Problem:
    """Return a linear program without a feasible point."""
    return sb.Problem(sb.Linear([1.0, 1.0]) + sb.NonNegative(), np.array([[1.0, 1.0], [1.0, 1.0]]),
                      sb.Interval([2.0, -np.inf], [np.inf, 1.0]))  # fmt: skip


def unbounded() -> sb.Problem:
    """Return a linear program whose objective is unbounded below."""
    return sb.Problem(sb.Linear([-1.0, 0.5]) + sb.NonNegative(), np.array([[1.0, -1.0]]), sb.Interval(-np.inf, [1.0]))


def robust_pca(exact: bool = False, shape: tuple[int, int] = (20, 16)) -> sb.Problem:
    """Return robust PCA: a matrix is the sum of a low-rank part, a sparse part and, unless ``exact``, noise."""
    rng = np.random.default_rng(5)
    B = rng.standard_normal((shape[0], 3)) @ rng.standard_normal((3, shape[1]))
    B[rng.random(B.shape) < 0.1] += 5.0
    parts: list[Any] = [sb.L1(0.3), sb.Nuclear(np.sqrt(max(shape) / 16), B.shape)]
    parts = parts if exact else [sb.SquaredL2(1.0), *parts]
    return sb.Problem(parts, [sb.Identity() for _ in parts], sb.Equality(B))


def intercept(loss: Callable[[Array], Any] = sb.Squared) -> sb.Problem:
    """Return a regression with an unpenalised intercept beside an elastic net."""
    A = normal(80, 30) + 1.0
    return sb.Problem([sb.ElasticNet(2.0, 0.7), sb.Zero()], [A, np.ones((80, 1))], loss(target(A) + 3.0))


def several_tasks(rows_as_groups: bool = True) -> sb.Problem:
    """Return a multi-task regression, in which b is a matrix."""
    A = normal(50, 20)
    B = np.stack([target(A, seed=seed) for seed in range(3)], axis=1)
    penalty = sb.GroupL2(4.0, 1) if rows_as_groups else sb.L1(4.0)
    return sb.Problem(penalty, A, sb.Squared(B))


def smooth(A: Any = None) -> sb.Problem:
    """Return a ridge-like logistic regression, which every method for smooth losses can treat."""
    A = normal(60, 20) if A is None else A
    return sb.Problem(sb.ElasticNet(1.0, 0.5), A, sb.Logistic(labels(A)))


def image() -> sb.Problem:
    """Return the total variation denoising of a small picture."""
    rows = [sb.Identity(), sb.Differences(shape=(12, 10))]
    return sb.Problem(sb.Zero(), rows, [sb.Squared(normal(12, 10)), sb.L1(0.3)])


def several_terms() -> sb.Problem:
    """Return a quantile regression with two blocks, a penalty on differences, and coefficients that sum to 0."""
    A = normal(60, 20)
    rows = [[A, np.ones((60, 1))], [sb.Differences(20), None], [np.ones((1, 20)), None]]
    return sb.Problem([sb.L1(1.0), sb.Zero()], rows, [sb.Pinball(target(A), 0.3), sb.L1(0.5), sb.Equality([0.0])])


def equality() -> sb.Problem:
    """Return basis pursuit: the minimum of the L1 norm under linear equations."""
    A = normal(15, 40)
    return sb.Problem(sb.L1(1.0), A, sb.Equality(A[:, :3].sum(axis=1)))


def repeated_rows() -> sb.Problem:
    """Return a problem with equal rows, which are merged, and empty rows and columns, which are removed."""
    A = np.repeat(normal(30, 12), 3, axis=0)
    A[-3:] = 0.0
    A[:, 5] = 0.0
    return sb.Problem(sb.L1(1.0), A, sb.Pinball(np.repeat(target(normal(30, 12)), 3), 0.4))


def long_rows(columns: int = 400) -> sb.Problem:
    """Return a sparse support vector machine in which some rows have an entry in every column."""
    A = sparse.vstack([scattered(200, columns, 0.02), sparse.csr_matrix(normal(4, columns))], format="csc")
    return sb.Problem(sb.L1(0.3), A, sb.Hinge(labels(A)))


class Ridge:
    """A user-defined function, alpha/2 ||x||^2, with a value, a prox and a conjugate."""

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def value(self, x: Array) -> float:
        """Return alpha/2 ||x||^2."""
        return float(0.5 * self.alpha * np.sum(np.square(x)))

    def prox(self, v: Array, step: Any) -> Array:
        """Return the minimiser of value(x) + ||x - v||^2 / (2 step)."""
        return np.asarray(v / (1.0 + self.alpha * np.asarray(step)))

    def conjugate(self, z: Array) -> float:
        """Return ||z||^2 / (2 alpha)."""
        return float(np.sum(np.square(z)) / (2.0 * self.alpha))
