"""Random problems over the whole catalogue, with CVXPY's solutions; tests/test_cvxpy.py checks the translation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from optional import optional
from scipy import sparse
from scipy.optimize import linprog
from scipy.sparse.linalg import aslinearoperator

import saddleback as sb
from saddleback.common.cached import cached_property

cp = optional("cvxpy")

# Add new names at the end of a list: seeds choose names by position.
PENALTIES: Sequence[str] = [
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
    "TotalVariation1D",
    "TotalVariation1D+L1",
]
LOSSES: Sequence[str] = [
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
    "Multinomial",
    "MulticlassHinge",
]

# These are compared with CVXPY on many problems each, but not all with each other.
FURTHER_PENALTIES = [
    "WeightedElasticNet",
    "GroupL2+SquaredL2",
    "SparseGroup+SquaredL2",
    "GroupLInf",
    "SLOPE",
    "Simplex",
    "L1Ball",
    "Isotonic",
    "GroupL2+WeightedElasticNet",
    "GroupElasticNet",
    "ByColumns",
    "ByColumns of pieces",
    "ByColumns+NonNegative",
]
FURTHER_LOSSES = [
    "SmoothedPinball",
    "SquaredEpsilonInsensitive",
    "Expectile",
    "HuberisedHinge",
    "Gamma",
    "Tweedie",
    "KullbackLeibler",
    "PinballPerRow",
    "HuberPerRow",
    "EpsilonInsensitivePerRow",
    "TopK",
    "CVaR",
    "Wilcoxon",
    "Gini",
]

STORAGES = {
    "dense": np.asfortranarray,
    "by columns": sparse.csc_array,
    "by rows": sparse.csr_array,
    "operator": aslinearoperator,
}


@dataclass
class Case:
    """A problem, and the same problem for CVXPY."""

    problem: sb.Problem

    @cached_property
    def oracle(self) -> Any:
        """The problem for CVXPY; a test that asks for it is skipped if CVXPY is not installed."""
        pytest.importorskip("cvxpy")
        return self.problem.to_cvxpy()

    def optimum(self) -> float:
        """Return CVXPY's optimum; +inf or -inf if it reports that there is none."""
        try:
            self.oracle.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        except cp.SolverError:
            self.oracle.solve(solver=cp.SCS, eps_abs=1e-9, eps_rel=1e-9, max_iters=200_000)
        return float(self.oracle.value)


def penalty_of(name: str, n: int, rng: np.random.Generator) -> Any:
    """Return a penalty whose domain contains [0, 0.2]^n."""
    alpha = float(rng.uniform(0.05, 1.0))
    half = n // 2
    groups = [list(range(half)), list(range(half, n))]
    c = 0.5 * alpha * rng.uniform(-1, 1, n)
    match name:
        case "Zero":
            return sb.Zero()
        case "L1":
            return sb.L1(alpha)
        case "WeightedL1":
            return sb.L1(alpha, rng.uniform(0.5, 2.0, n))
        case "SquaredL2":
            return sb.SquaredL2(alpha)
        case "ElasticNet":
            return sb.ElasticNet(alpha, 0.4)
        case "WeightedElasticNet":
            return sb.ElasticNet(alpha, 0.4, rng.uniform(0.5, 2.0, n))
        case "GroupL2+SquaredL2":
            return sb.GroupL2(alpha, groups) + sb.SquaredL2(0.5)
        case "GroupL2+WeightedElasticNet":
            return sb.GroupL2(alpha, groups) + sb.ElasticNet(alpha, 0.2, rng.uniform(0.5, 2.0, n))
        case "SparseGroup+SquaredL2":
            return sb.SparseGroup(alpha, groups, 0.3) + sb.SquaredL2(alpha)
        case "ElasticNet+Box":
            return sb.ElasticNet(alpha, 0.4) + sb.Box(-0.3, 0.5)
        case "GroupL2":
            return sb.GroupL2(alpha, groups)
        case "GroupL2+NonNegative":
            return sb.GroupL2(alpha, groups) + sb.NonNegative()
        case "SparseGroup":
            return sb.SparseGroup(alpha, groups, 0.3)
        case "Nuclear":
            return sb.Nuclear(alpha, (2, n // 2))
        case "LInf":
            return sb.LInf(alpha)
        case "Box":
            return sb.Box(-0.4, np.linspace(0.2, 1, n))
        case "NonNegative":
            return sb.NonNegative()
        case "Linear+Box":
            return sb.Linear(c) + sb.Box(-1.0, 1.0)
        case "L1+NonNegative":
            return sb.L1(alpha) + sb.NonNegative()
        case "TotalVariation1D":
            return sb.TotalVariation1D(alpha)
        case "TotalVariation1D+L1":
            return sb.TotalVariation1D(alpha) + sb.L1(0.5)
        case "GroupLInf":
            return sb.GroupLInf(alpha, groups)
        case "SLOPE":
            return sb.SLOPE(np.linspace(1.5, 0.1, n), alpha)
        case "Simplex":
            return sb.Simplex(float(rng.uniform(0.5, 2.0)))
        case "L1Ball":
            return sb.L1Ball(0.2 * n)
        case "Isotonic":
            return sb.Isotonic()
        case "GroupElasticNet":
            return sb.GroupElasticNet(alpha, groups, 0.6)
        case "ByColumns" | "ByColumns+NonNegative":
            order = rng.permutation(n)
            mixed = [(sb.GroupL2(alpha, [half - 1]), order[1:half]), (sb.L1(alpha), order[half:])]
            parts = sb.ByColumns([*mixed, (sb.SquaredL2(0.5), order[:1])])
            return parts + sb.NonNegative() if name.endswith("NonNegative") else parts
        case "ByColumns of pieces":
            order = rng.permutation(n)
            return sb.ByColumns([(sb.L1(alpha), order[:half]), (sb.ElasticNet(0.5, 0.3), order[half:])])
        case "L1+Linear":
            return sb.L1(alpha) + sb.Linear(c)
    raise AssertionError(name)


def loss_of(name: str, b: np.ndarray, feasible: np.ndarray, rng: np.random.Generator) -> Any:
    """Return a loss; ``feasible`` is Ax for some x in dom f."""
    m = b.size
    w = rng.uniform(0.5, 2.0, m)
    z = np.where(b > 0, 1.0, -1.0)
    s = float(rng.choice([1.0, 1.0 / m]))
    kw = {"sample_weight": w, "scale": s}
    match name:
        case "Squared":
            return sb.Squared(b, **kw)
        case "Absolute":
            return sb.Absolute(b, **kw)
        case "Pinball":
            return sb.Pinball(b, 0.3, **kw)
        case "Huber":
            return sb.Huber(b, 0.5, **kw)
        case "EpsilonInsensitive":
            return sb.EpsilonInsensitive(b, 0.2, **kw)
        case "Hinge":
            return sb.Hinge(z, **kw)
        case "SquaredHinge":
            return sb.SquaredHinge(z, **kw)
        case "Logistic":
            return sb.Logistic(z, **kw)
        case "Poisson":
            return sb.Poisson(np.floor(np.abs(3.0 * b)), **kw)
        case "SmoothedPinball":
            return sb.SmoothedPinball(b, 0.7, 0.5, **kw)
        case "SquaredEpsilonInsensitive":
            return sb.SquaredEpsilonInsensitive(b, 0.2, **kw)
        case "Expectile":
            return sb.Expectile(b, rng.uniform(0.1, 0.9, m), **kw)
        case "HuberisedHinge":
            return sb.HuberisedHinge(z, 0.5, **kw)
        case "Gamma":
            return sb.Gamma(np.exp(0.5 * b), **kw)
        case "Tweedie":
            return sb.Tweedie(np.where(b > 0, np.exp(0.5 * b), 0.0), 1.5, **kw)
        case "KullbackLeibler":
            kw["sample_weight"] = np.where(feasible > 0, w, 0.0)  # the others have no constraint
            return sb.KullbackLeibler(np.floor(np.abs(3.0 * b)), **kw)
        case "PinballPerRow":
            return sb.Pinball(b, rng.uniform(0.0, 1.0, m), **kw)
        case "HuberPerRow":
            return sb.Huber(b, rng.uniform(0.0, 1.0, m), **kw)
        case "EpsilonInsensitivePerRow":
            return sb.EpsilonInsensitive(b, rng.uniform(0.0, 1.0, m), **kw)
        case "Norm2":
            return sb.Norm2(b, **kw)
        case "Multinomial":
            return sb.Multinomial(np.abs(np.round(b, 1)).reshape(-1, 2), None, w[::2], s)
        case "MulticlassHinge":
            return sb.MulticlassHinge((b > 0)[::2], 2, w[::2], s)
        case "TopK":
            return sb.TopK(b, m // 3, s)
        case "CVaR":
            return sb.CVaR(b, 0.6, s)
        case "Wilcoxon":
            return sb.Wilcoxon(b, s)
        case "Gini":
            return sb.Gini(b, s)
        case "Equality":
            return sb.Equality(feasible)
        case "Interval":
            low = np.where(np.arange(m) % 3 == 0, -np.inf, feasible - rng.uniform(0, 0.3, m))
            high = np.where(np.arange(m) % 3 == 1, np.inf, feasible + rng.uniform(0, 0.3, m))
            fixed = np.arange(m) % 5 == 4
            return sb.Interval(np.where(fixed, feasible, low), np.where(fixed, feasible, high))
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
    f = penalty_of(penalty, n, rng)
    inside = f.bind((n,)).domain.project(np.clip(rng.uniform(0, 0.4, n), 0, 0.2))
    feasible = A @ inside
    b = A @ (rng.standard_normal(n) * (rng.random(n) < 0.5)) + rng.standard_normal(m)
    if intercept:
        feasible = feasible + 0.1
    g = loss_of(loss, b, feasible, rng)
    matrix: Any = sparse.csc_matrix(A) if is_sparse else np.asfortranarray(A)
    problem = sb.Problem([f, sb.Zero()], [matrix, np.ones(m)], g) if intercept else sb.Problem(f, matrix, g)
    return Case(problem)


def random_stack(seed: int) -> Case:
    """Return a small problem with two or three terms: every loss above every loss or penalty, in turn.

    The seed chooses the penalty on x, the storage of each matrix, and whether the constraints have a solution.
    """
    rng = np.random.default_rng(seed)
    below = LOSSES + PENALTIES
    kinds = [LOSSES[seed % len(LOSSES)], below[seed // len(LOSSES) % len(below)]]
    if rng.random() < 0.2:
        kinds.append(str(rng.choice(below)))
    n = 6 if rng.random() < 0.5 else 10
    f = penalty_of(str(rng.choice(PENALTIES)), n, rng)
    inside = f.bind((n,)).domain.project(np.clip(rng.uniform(0, 0.4, n), 0, 0.2))
    # constraints may contradict each other, except below exp(u): CVXPY takes values such as exp(40) for infinite
    shift = 1.0 if rng.random() < 0.2 and "Poisson" not in kinds else 0.0
    rows, terms = [], []
    for kind in kinds:
        A = _rows_for(kind, n, rng)
        product = A.matvec if hasattr(A, "matvec") else A.__matmul__
        m = A.shape[0]
        if kind in PENALTIES:
            terms.append(penalty_of(kind, m, rng))
        else:
            b = product(rng.standard_normal(n) * (rng.random(n) < 0.5)) + rng.standard_normal(m)
            terms.append(loss_of(kind, b, product(inside) + shift * rng.standard_normal(m), rng))
        rows.append(A)
    problem = sb.Problem(f, rows, terms)
    return Case(problem)


def _rows_for(kind: str, n: int, rng: np.random.Generator) -> Any:
    """Return a matrix in any storage; that of a penalty maps [0, 0.2]^n to itself, except for differences."""
    storage = str(rng.choice([*STORAGES, "differences", "repeated"], p=[0.35, 0.2, 0.15, 0.1, 0.1, 0.1]))
    if storage == "repeated":
        return sb.Repeat(rng.integers(n, size=8), n)
    if storage == "differences":
        return sb.Differences(n, order=2)  # an even number of rows, as a nuclear norm needs it
    m = int(rng.choice([4, 6, 14]))
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.7)
    if kind in PENALTIES:
        A = np.abs(A) / np.maximum(np.abs(A).sum(axis=1, keepdims=True), 1.0)
    return STORAGES[storage](A)


def has_no_minimiser(problem: sb.Problem, penalty: str) -> bool:
    """Return whether a logistic loss has no minimiser: along some direction no margin falls and one margin grows."""
    if not isinstance(problem.loss, sb.Logistic | sb.Multinomial):
        return False
    A = problem.model.A.entries(np.arange(problem.model.A.shape[1]))
    if isinstance(problem.loss, sb.Multinomial):  # two classes; counts of both classes leave no direction
        first, second = A[::2] - A[1::2], A[1::2] - A[::2]
        margins = np.concatenate([first[problem.loss.counts[:, 0] > 0], second[problem.loss.counts[:, 1] > 0]])
    else:
        margins = problem.loss.labels[:, None] * A
    lower = np.full(A.shape[1], -1.0)
    if "NonNegative" in penalty:
        lower[: A.shape[1] - problem.is_list] = 0.0
    upper = np.ones(A.shape[1])
    if penalty not in (
        "Zero",
        "NonNegative",
        "Isotonic",
    ):  # every other penalty bounds all columns except an unpenalised one
        lower[: A.shape[1] - problem.is_list] = upper[: A.shape[1] - problem.is_list] = 0.0
    if penalty == "Isotonic":
        falls = -np.diff(np.eye(A.shape[1] - problem.is_list), axis=0)
        rows = np.vstack([-margins, np.pad(falls, ((0, 0), (0, int(problem.is_list))))])
    else:
        rows = -margins
    found = linprog(
        -margins.sum(axis=0), A_ub=rows, b_ub=np.zeros(rows.shape[0]), bounds=list(zip(lower, upper, strict=True))
    )
    return bool(found.fun < -1e-9)
