"""Random problems over the whole catalogue, with CVXPY's solutions: an oracle that shares no code with Saddleback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import saddleback as sb

# Add new names at the end of a list: seeds choose names by position.
PENALTIES = [
    "Zero",
    "L1",
    "WeightedL1",
    "SquaredL2",
    "ElasticNet",
    "GroupL2",
    "SparseGroup",
    "Nuclear",
    "LInf",
    "Box",
    "NonNegative",
    "Linear+Box",
    "L1+NonNegative",
    "L1+Linear",
    "GroupL2+NonNegative",
    "ElasticNet+Box",
]
LOSSES = [
    "Squared",
    "Absolute",
    "Pinball",
    "Huber",
    "EpsilonInsensitive",
    "Hinge",
    "SquaredHinge",
    "Logistic",
    "Poisson",
    "Norm2",
    "Equality",
    "Interval",
]


@dataclass
class Case:
    """A problem, and the same problem for CVXPY."""

    problem: sb.Problem
    oracle: cp.Problem

    def optimum(self) -> float:
        """Return CVXPY's optimum; +inf or -inf if it reports that there is none."""
        self.oracle.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        return float(self.oracle.value)


def penalty_pair(name: str, n: int, rng: np.random.Generator, x: cp.Variable) -> tuple[Any, Any, list[Any]]:
    """Return a penalty, its CVXPY expression, and its constraints; its domain contains [0, 0.2]^n."""
    alpha = float(rng.uniform(0.05, 1.0))
    half = n // 2
    groups = [list(range(half)), list(range(half, n))]
    group_norms = sum(np.sqrt(len(g)) * cp.norm(x[g], 2) for g in groups)
    c = 0.5 * alpha * rng.uniform(-1, 1, n)
    match name:
        case "Zero":
            return sb.Zero(), 0.0, []
        case "L1":
            return sb.L1(alpha), alpha * cp.norm1(x), []
        case "WeightedL1":
            w = rng.uniform(0.5, 2.0, n)
            return sb.L1(alpha, w), alpha * cp.norm1(cp.multiply(w, x)), []
        case "SquaredL2":
            return sb.SquaredL2(alpha), alpha / 2 * cp.sum_squares(x), []
        case "ElasticNet":
            return sb.ElasticNet(alpha, 0.4), alpha * (0.4 * cp.norm1(x) + 0.3 * cp.sum_squares(x)), []
        case "ElasticNet+Box":
            return (
                sb.ElasticNet(alpha, 0.4) + sb.Box(-0.3, 0.5),
                alpha * (0.4 * cp.norm1(x) + 0.3 * cp.sum_squares(x)),
                [x >= -0.3, x <= 0.5],
            )
        case "GroupL2":
            return sb.GroupL2(alpha, groups), alpha * group_norms, []
        case "GroupL2+NonNegative":
            return sb.GroupL2(alpha, groups) + sb.NonNegative(), alpha * group_norms, [x >= 0]
        case "SparseGroup":
            return sb.SparseGroup(alpha, groups, 0.3), alpha * (0.3 * cp.norm1(x) + 0.7 * group_norms), []
        case "Nuclear":
            shape = (2, n // 2)
            return sb.Nuclear(alpha, shape), alpha * cp.normNuc(cp.reshape(x, shape, order="C")), []
        case "LInf":
            return sb.LInf(alpha), alpha * cp.norm_inf(x), []
        case "Box":
            return sb.Box(-0.4, np.linspace(0.2, 1, n)), 0.0, [x >= -0.4, x <= np.linspace(0.2, 1, n)]
        case "NonNegative":
            return sb.NonNegative(), 0.0, [x >= 0]
        case "Linear+Box":
            return sb.Linear(c) + sb.Box(-1.0, 1.0), c @ x, [x >= -1, x <= 1]
        case "L1+NonNegative":
            return sb.L1(alpha) + sb.NonNegative(), alpha * cp.norm1(x), [x >= 0]
        case "L1+Linear":
            return sb.L1(alpha) + sb.Linear(c), alpha * cp.norm1(x) + c @ x, []
    raise AssertionError(name)


def loss_pair(name: str, u: cp.Expression, b: np.ndarray, feasible: np.ndarray, rng: np.random.Generator) -> Any:
    """Return a loss, its CVXPY expression, and its constraints; ``feasible`` is Ax for some x in dom f."""
    m = b.size
    w = rng.uniform(0.5, 2.0, m)
    z = np.where(b > 0, 1.0, -1.0)
    s = float(rng.choice([1.0, 1.0 / m]))
    kw = {"sample_weight": w, "scale": s}
    match name:
        case "Squared":
            return sb.Squared(b, **kw), s / 2 * cp.sum(cp.multiply(w, cp.square(u - b))), []
        case "Absolute":
            return sb.Absolute(b, **kw), s * cp.sum(cp.multiply(w, cp.abs(u - b))), []
        case "Pinball":
            r = b - u
            return sb.Pinball(b, 0.3, **kw), s * cp.sum(cp.multiply(w, cp.maximum(0.3 * r, -0.7 * r))), []
        case "Huber":
            return sb.Huber(b, 0.5, **kw), s / 2 * cp.sum(cp.multiply(w, cp.huber(u - b, 0.5))), []
        case "EpsilonInsensitive":
            return (sb.EpsilonInsensitive(b, 0.2, **kw), s * cp.sum(cp.multiply(w, cp.pos(cp.abs(u - b) - 0.2))), [])
        case "Hinge":
            return sb.Hinge(z, **kw), s * cp.sum(cp.multiply(w, cp.pos(1 - cp.multiply(z, u)))), []
        case "SquaredHinge":
            return (
                sb.SquaredHinge(z, **kw),
                s / 2 * cp.sum(cp.multiply(w, cp.square(cp.pos(1 - cp.multiply(z, u))))),
                [],
            )
        case "Logistic":
            return sb.Logistic(z, **kw), s * cp.sum(cp.multiply(w, cp.logistic(-cp.multiply(z, u)))), []
        case "Poisson":
            counts = np.floor(np.abs(3.0 * b))
            return sb.Poisson(counts, **kw), s * cp.sum(cp.multiply(w, cp.exp(u) - cp.multiply(counts, u))), []
        case "Norm2":
            return sb.Norm2(b, **kw), s * cp.norm(cp.multiply(np.sqrt(w), u - b), 2), []
        case "Equality":
            return sb.Equality(feasible), 0.0, [u == feasible]
        case "Interval":
            low = np.where(np.arange(m) % 3 == 0, -np.inf, feasible - rng.uniform(0, 0.3, m))
            high = np.where(np.arange(m) % 3 == 1, np.inf, feasible + rng.uniform(0, 0.3, m))
            low, high = np.where(np.arange(m) % 5 == 4, feasible, low), np.where(np.arange(m) % 5 == 4, feasible, high)
            rows_low, rows_high = np.isfinite(low), np.isfinite(high)
            return sb.Interval(low, high), 0.0, [u[rows_low] >= low[rows_low], u[rows_high] <= high[rows_high]]
    raise AssertionError(name)


def random_case(penalty: str, loss: str, seed: int) -> Case:
    """Return a small problem; the seed chooses sparsity, shape, intercept, and empty or duplicate rows and columns."""
    rng = np.random.default_rng(seed)
    tall, is_sparse, intercept, empty, duplicate = rng.random(5) < (0.5, 0.4, 0.3, 0.3, 0.3)
    m, n = (14, 6) if tall else (6, 10)
    A = rng.standard_normal((m, n))
    if is_sparse:
        A *= rng.random((m, n)) < 0.5
    if duplicate:
        A[:, 1] = A[:, 0]
    if empty:
        A[rng.integers(m)] = 0.0
        A[:, rng.integers(n)] = 0.0
    x = cp.Variable(n)
    f, f_cvx, constraints = penalty_pair(penalty, n, rng, x)
    inside = np.clip(rng.uniform(0, 0.4, n), 0, 0.2)
    feasible = A @ inside
    b = A @ (rng.standard_normal(n) * (rng.random(n) < 0.5)) + rng.standard_normal(m)
    u: Any = A @ x
    if intercept:
        x0 = cp.Variable(1)
        u = u + x0
        feasible = feasible + 0.1
    g, g_cvx, more = loss_pair(loss, u, b, feasible, rng)
    matrix: Any = sparse.csc_matrix(A) if is_sparse else np.asfortranarray(A)
    problem = sb.Problem([f, sb.Zero()], [matrix, np.ones(m)], g) if intercept else sb.Problem(f, matrix, g)
    return Case(problem, cp.Problem(cp.Minimize(f_cvx + g_cvx), [*constraints, *more]))


def has_no_minimiser(problem: sb.Problem, penalty: str) -> bool:
    """Return whether a logistic loss has no minimiser: along some direction no margin falls and one margin grows."""
    if not isinstance(problem.loss, sb.Logistic):
        return False
    A = problem.model.A.entries(np.arange(problem.model.A.shape[1]))
    margins = problem.loss.labels[:, None] * A
    lower = np.full(A.shape[1], -1.0)
    if "NonNegative" in penalty:
        lower[: A.shape[1] - problem.is_list] = 0.0
    upper = np.ones(A.shape[1])
    if penalty not in ("Zero", "NonNegative"):  # every other penalty bounds all columns except an unpenalised one
        lower[: A.shape[1] - problem.is_list] = upper[: A.shape[1] - problem.is_list] = 0.0
    found = linprog(
        -margins.sum(axis=0), A_ub=-margins, b_ub=np.zeros(A.shape[0]), bounds=list(zip(lower, upper, strict=True))
    )
    return bool(found.fun < -1e-9)
