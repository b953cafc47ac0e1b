"""The cases that are timed: the core cases of the benchmark, and runs of many small solves, with public names only.

``python -m compare.timed NAME...`` prints the minimum time of each case in seconds, as JSON.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

import saddleback as sb
from saddleback import estimators

from . import problems as some
from .problems import Array

Timed = Callable[[], Any]

CORE, MANY = "core", "many small solves"

LEAST_SECONDS, LEAST_RUNS = 0.4, 2
"""A case is repeated until both are reached; its minimum time counts."""


@dataclass(frozen=True)
class Case:
    """A name, its group, and a function that makes the data and returns the call to be timed."""

    name: str
    group: str
    make: Callable[[], Timed]


def gaussian(rows: int, columns: int, correlation: float = 0.0) -> Array:
    """Return a matrix, stored by columns, whose columns have norm 1 and the given correlation with each other."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((columns, rows)).T
    A *= np.sqrt(1 - correlation)
    A += np.sqrt(correlation) * rng.standard_normal((rows, 1))
    A /= np.linalg.norm(A, axis=0)
    return A


def sparse_columns(rows: int, columns: int, per_column: int) -> Any:
    """Return a CSC matrix with the same number of entries in each column and column norms of about 1."""
    rng = np.random.default_rng(0)
    band = rows // per_column
    indices = rng.integers(0, band, (columns, per_column)) + band * np.arange(per_column)
    starts = np.arange(0, indices.size + 1, per_column)
    data = rng.standard_normal(indices.size) / np.sqrt(per_column)
    return sparse.csc_matrix((data, indices.ravel(), starts), shape=(rows, columns))


def response(A: Any, nonzeros: int) -> Array:
    """Return A x plus noise, for an x with the given number of nonzero entries."""
    rng = np.random.default_rng(1)
    x = np.zeros(A.shape[1])
    x[rng.choice(x.size, nonzeros, replace=False)] = rng.standard_normal(nonzeros)
    return np.asarray(A @ x + 0.03 * rng.standard_normal(A.shape[0]))


def lasso(A: Any, ratio: float = 0.1, nonzeros: int = 500) -> Timed:
    """Return the solve of a Lasso at a fraction of alpha_max."""
    b = response(A, nonzeros)
    alpha = ratio * float(np.abs(A.T @ b).max())
    return lambda: sb.solve(sb.Problem(sb.L1(alpha), A, sb.Squared(b)), threads=1)


def group_lasso() -> Timed:
    """Return the solve of a group Lasso with groups of ten."""
    A = gaussian(1000, 5000)
    b = response(A, 300)
    alpha = 0.1 * sb.alpha_max(sb.GroupL2(1.0, 10), A, sb.Squared(b))
    return lambda: sb.solve(sb.Problem(sb.GroupL2(alpha, 10), A, sb.Squared(b)), threads=1)


def logistic() -> Timed:
    """Return the solve of a sparse logistic regression."""
    A = sparse_columns(4000, 20_000, 20)
    loss = sb.Logistic(np.where(response(A, 400) > 0, 1.0, -1.0))
    alpha = 0.05 * sb.alpha_max(sb.L1(1.0), A, loss)
    return lambda: sb.solve(sb.Problem(sb.L1(alpha), A, loss), threads=1)


def quantile(rows: int, columns: int, alpha: float, quantile: float = 0.9) -> Timed:
    """Return the solve of a quantile regression with an intercept and heavy-tailed noise."""
    rng = np.random.default_rng(0)
    A = np.ones((columns + 1, rows)).T
    A[:, :columns] = rng.standard_normal((rows, columns))
    b = A[:, : columns // 2].sum(axis=1) + rng.standard_t(3, rows)
    weights = np.append(np.ones(columns), 0.0)
    penalty = sb.L1(alpha * rows, weights) if alpha else sb.Zero()
    return lambda: sb.solve(sb.Problem(penalty, A, sb.Pinball(b, quantile)), threads=1)


def group_hinge() -> Timed:
    """Return the solve of a support vector machine on groups of one-hot columns."""
    rng = np.random.default_rng(0)
    sites = 2000
    letters = rng.integers(0, 4, (sites, 60)) + 4 * np.arange(60)
    A = sparse.csr_matrix((np.ones(letters.size), letters.ravel(), np.arange(0, letters.size + 1, 60))).tocsc()
    labels = np.where(A @ rng.standard_normal(240) + 2 * rng.standard_normal(sites) > 0, 1.0, -1.0)
    problem = sb.GroupL2(2e-3, 4), A, sb.Hinge(labels, scale=1 / sites)
    return lambda: sb.solve(sb.Problem(*problem), threads=1)


def path(rows: int, columns: int, nonzeros: int, n_alphas: int, tol: float) -> Timed:
    """Return the solves of a Lasso path."""
    A = gaussian(rows, columns)
    b = response(A, nonzeros)
    return lambda: sb.path(sb.L1(1.0), A, sb.Squared(b), n_alphas=n_alphas, tol=tol, threads=1)


def cross_validation(rows: int, columns: int) -> Timed:
    """Return the cross-validation of a Lasso with 100 alphas and 5 folds."""
    A = gaussian(rows, columns)
    b = response(A, 20)
    model = estimators.LassoCV(n_alphas=100, eps=1e-3, cv=5, tol=1e-5, fit_intercept=False, n_jobs=1)
    return lambda: model.fit(A, b)


def solved(problem: Callable[[], sb.Problem], **options: Any) -> Callable[[], Timed]:
    """Return a function that makes the solve of one of the problems of ``problems.py``."""
    return lambda: lambda: sb.solve(problem(), threads=1, **options)


CASES = {
    case.name: case
    for case in (
        Case("lasso", CORE, lambda: lasso(gaussian(1000, 5000))),
        Case("lasso-correlated-0.5", CORE, lambda: lasso(gaussian(1000, 5000, 0.5))),
        Case("lasso-correlated-0.9", CORE, lambda: lasso(gaussian(1000, 5000, 0.9))),
        Case("lasso-small-alpha", CORE, lambda: lasso(gaussian(1000, 5000), 0.01)),
        Case("lasso-sparse", CORE, lambda: lasso(sparse_columns(20_000, 100_000, 20), 0.1, 2000)),
        Case("group-lasso", CORE, group_lasso),
        Case("logistic", CORE, logistic),
        Case("path", CORE, lambda: path(500, 2500, 200, 40, 1e-4)),
        Case("quantile-l1", CORE, lambda: quantile(4000, 200, 0.02)),
        Case("quantile", CORE, lambda: quantile(20_000, 20, 0.0)),
        Case("quantile-rows", CORE, lambda: quantile(10_000, 50, 0.01, 0.8)),
        Case("lp", CORE, solved(lambda: some.linear_program(150, 400))),
        Case("lp, r2hpdhg", CORE, solved(lambda: some.linear_program(150, 400), method="r2hpdhg")),
        Case("group-hinge", CORE, group_hinge),
        Case("robust-pca", CORE, solved(lambda: some.robust_pca(shape=(300, 200)))),
        Case("600 warm solves", MANY, lambda: path(60, 30, 10, 600, 1e-6)),
        Case("lasso-cv 1000 x 200", MANY, lambda: cross_validation(1000, 200)),
        Case("lasso-cv 10000 x 100", MANY, lambda: cross_validation(10_000, 100)),
    )
}


def least(call: Timed) -> dict[str, float]:
    """Return the minimum wall time and the minimum CPU time of a call, in seconds."""
    wall: list[float] = []
    cpu: list[float] = []
    began = time.perf_counter()
    while len(wall) < LEAST_RUNS or time.perf_counter() - began < LEAST_SECONDS:
        clocks = time.perf_counter(), time.process_time()
        call()
        wall.append(time.perf_counter() - clocks[0])
        cpu.append(time.process_time() - clocks[1])
    return {"wall": min(wall), "cpu": min(cpu)}


def main(names: list[str]) -> None:
    """Time cases and print the result; without a name, print the names and groups."""
    warnings.simplefilter("ignore")
    if names:
        print(json.dumps({name: least(CASES[name].make()) for name in names}))
    else:
        print(json.dumps({case.name: case.group for case in CASES.values()}))


if __name__ == "__main__":
    main(sys.argv[1:])
