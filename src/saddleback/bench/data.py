"""The data of the cases, as tasks: the same arguments give the same arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import loadmat
from scipy.stats import t
from sklearn.datasets import load_svmlight_file

from ..datasets import load_memset, make_lasso
from ..io.problem_files import read_problem
from ..paths.alpha_max import alpha_max
from .judging import problem_of
from .worker.task import Task

NOISE = np.sqrt(1e-3)
"""Standard deviation of the noise that is added to A x_true, as in ``make_lasso``."""


def lasso(seed: int, *, m: int, n: int, nonzeros: int, alpha_ratio: float = 0.1) -> Task:
    """Return the paper's random Lasso: normalised Gaussian columns."""
    A, b, _, _ = make_lasso(m, n, nonzeros, seed)
    return _lasso_task(A, b, alpha_ratio)


def correlated_lasso(seed: int, *, m: int, n: int, nonzeros: int, correlation: float) -> Task:
    """Return a Lasso whose columns share a factor, so that each pair of them has the given correlation."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, m)).T
    A *= np.sqrt(1 - correlation)
    A += np.sqrt(correlation) * rng.standard_normal((m, 1))
    A /= np.linalg.norm(A, axis=0)
    return _lasso_task(A, _response(A, nonzeros, rng), 0.1)


def sparse_lasso(seed: int, *, m: int, n: int, column_entries: int, nonzeros: int) -> Task:
    """Return a Lasso with a CSC matrix: the same number of Gaussian entries per column, columns of norm 1."""
    rng = np.random.default_rng(seed)
    A = _unit_columns(m, n, column_entries, rng)
    return _lasso_task(A, _response(A, nonzeros, rng), 0.1)


def lasso_path(seed: int, *, m: int, n: int, nonzeros: int, n_alphas: int, eps: float) -> Task:
    """Return a path of alphas from alpha_max down to ``eps`` times alpha_max, on the paper's Lasso."""
    A, b, _, _ = make_lasso(m, n, nonzeros, seed)
    return Task("path", {"A": A, "b": b, "alphas": np.geomspace(1.0, eps, n_alphas) * np.abs(A.T @ b).max()})


def lasso_cv(seed: int, *, m: int, n: int, nonzeros: int, n_alphas: int, folds: int) -> Task:
    """Return the choice of an alpha by cross-validation, on the paper's Lasso."""
    A, b, _, _ = make_lasso(m, n, nonzeros, seed)
    return Task("lasso-cv", {"A": A, "b": b, "n_alphas": n_alphas, "folds": folds})


def group_lasso(seed: int, *, m: int, n: int, group_size: int, nonzero_groups: int) -> Task:
    """Return a regression on contiguous groups of normalised Gaussian columns, each group with weight sqrt(size)."""
    rng = np.random.default_rng(seed)
    A = _unit_columns(m, n, None, rng)
    x_true = np.zeros((n // group_size, group_size))
    chosen = rng.choice(len(x_true), nonzero_groups, replace=False)
    x_true[chosen] = rng.standard_normal((nonzero_groups, group_size))
    b = A @ x_true.ravel() + NOISE * rng.standard_normal(m)
    weights = np.full(len(x_true), np.sqrt(group_size))
    largest = np.max(np.linalg.norm((A.T @ b).reshape(-1, group_size), axis=1) / weights)
    return Task(
        "group-lasso", {"A": A, "b": b, "group_size": group_size, "weights": weights, "alpha": 0.1 * float(largest)}
    )


def quantile(seed: int, *, m: int, n: int, nonzeros: int, quantile: float, alpha: float, intercept: bool) -> Task:
    """Return a quantile regression with heavy-tailed noise: Student's t with three degrees of freedom.

    Parameters
    ----------
    seed, m, n, nonzeros : seed and shape of the data, and number of nonzero coefficients.
    quantile : the quantile to estimate; the noise is shifted so that this quantile of it is 0.
    alpha : weight of the L1 penalty, for a loss that is divided by the number of rows.
    intercept : whether an unpenalised column of ones follows the others.
    """
    rng = np.random.default_rng(seed)
    A = np.ones((n + intercept, m)).T
    A[:, :n] = rng.standard_normal((n, m)).T
    x_true = np.zeros(n)
    x_true[rng.choice(n, nonzeros, replace=False)] = rng.standard_normal(nonzeros)
    b = A[:, :n] @ x_true + rng.standard_t(3, m) - t.ppf(quantile, 3)
    arrays = {"A": A, "b": b, "quantile": quantile, "alpha": alpha * m, "intercept": intercept}
    return Task("quantile", arrays)


def two_slopes(
    seed: int,
    *,
    kind: str,
    m: int,
    n: int,
    nonzeros: int,
    ratio: float,
    column_entries: int | None = None,
    **values: Any,
) -> Task:
    """Return a loss with an L1 penalty on normalised Gaussian columns, with heavy-tailed noise.

    The noise is Student's t with three degrees of freedom, times 0.3 standard deviations of what it is added to.

    Parameters
    ----------
    seed, m, n, nonzeros : seed and shape of the data, and number of nonzero coefficients.
    kind : kind of the task; classes are the signs of the response of a regression.
    ratio : alpha, as a fraction of the smallest one for which x is 0.
    column_entries : number of entries per column of a sparse matrix; by default the matrix is dense.
    **values : further values of the task.
    """
    rng = np.random.default_rng(seed)
    A = _unit_columns(m, n, column_entries, rng)
    x_true = np.zeros(n)
    x_true[rng.choice(n, nonzeros, replace=False)] = rng.standard_normal(nonzeros)
    b = A @ x_true
    b += 0.3 * b.std() * rng.standard_t(3, m)
    return _at_ratio(kind, ratio, A=A, b=b, labels=np.where(b > 0, 1.0, -1.0), intercept=False, **values)


def real(
    name: str, data: Path, *, kind: str, ratio: float, intercept: bool = False, rows: int | None = None, **values: Any
) -> Task:
    """Return a loss with an L1 penalty on real data.

    Parameters
    ----------
    name : one of ``READERS``.
    data : folder with real data.
    kind : kind of the task.
    ratio : alpha, as a fraction of the smallest one for which x is 0.
    intercept : whether a column of ones without a penalty follows the others.
    rows : how many rows to take, in random order; by default all, in the order of the file.
    **values : further values of the task.
    """
    A, b = _real(name, data, rows)
    return _at_ratio(kind, ratio, A=_with_ones(A) if intercept else A, b=b, labels=b, intercept=intercept, **values)


def svm(name: str, data: Path, *, intercept: bool, alpha: float, rows: int | None = None) -> Task:
    """Return a linear SVM on real data: hinge losses with alpha / 2 times the squared norm of x.

    Parameters
    ----------
    name : one of ``READERS``.
    data : folder with real data.
    intercept : whether the column of ones, which is the last one, has no penalty.
    alpha : weight of the penalty, 1 / C in the words of other libraries.
    rows : as in ``real``.
    """
    A, labels = _real(name, data, rows)
    kind = "svm-intercept" if intercept else "svm"
    return Task(kind, {"A": _with_ones(A), "labels": labels, "alpha": alpha, "intercept": intercept})


def linear_program(path: Path) -> Task:
    """Return the linear program in an MPS file."""
    problem = read_problem(path)
    cost, box = problem.penalty.terms
    return Task(
        "lp",
        {
            "A": problem.A,
            "c": cost.c,
            "lower": box.lower,
            "upper": box.upper,
            "row_lower": problem.loss.lower,
            "row_upper": problem.loss.upper,
        },
    )


def memset(data: Path, *, alpha: float, sites: int | None = None) -> Task:
    """Return the MEMset Donor problem with equally many true and false sites.

    Parameters
    ----------
    data : folder with real data.
    alpha : weight of the group penalty.
    sites : number of sites of each kind; all by default.
    """
    A, labels, groups, _ = load_memset(data, sites)
    return Task("group-hinge", {"A": A, "labels": labels, "groups": np.array(groups), "alpha": alpha})


def random_csc(m: int, n: int, column_entries: int, rng: np.random.Generator) -> Any:
    """Return a matrix with ``column_entries`` Gaussian entries per column, one in each of equally many bands of rows.

    So the row indices are sorted and distinct without further work.
    """
    band = m // column_entries
    rows = rng.integers(0, band, (n, column_entries), dtype=np.int32)
    rows += band * np.arange(column_entries, dtype=np.int32)
    indptr = np.arange(0, rows.size + 1, column_entries, dtype=np.int32)
    return sparse.csc_matrix((rng.standard_normal(rows.size), rows.ravel(), indptr), shape=(m, n))


def _read_a9a(data: Path) -> tuple[Any, Any]:
    A, labels = load_svmlight_file(str(data / "libsvm" / "a9a"))
    return sparse.csc_matrix(A), labels


def _read_basehock(data: Path) -> tuple[Any, Any]:
    stored = loadmat(data / "highdim" / "BASEHOCK.mat")
    classes = stored["Y"].ravel()
    return sparse.csc_matrix(stored["X"], dtype=float), np.where(classes == classes.min(), -1.0, 1.0)


def _read_riboflavin(data: Path) -> tuple[Any, Any]:
    stored = np.load(data / "highdim" / "riboflavin.npz")
    return np.asfortranarray(stored["X"], dtype=float), np.ravel(stored["y"]).astype(float)


def _read_memset(data: Path) -> tuple[Any, Any]:
    A, labels, _, _ = load_memset(data)
    return A, labels


READERS = {
    "a9a": _read_a9a,
    "BASEHOCK": _read_basehock,
    "MEMset": _read_memset,
    "riboflavin": _read_riboflavin,
}
"""Readers of real data: matrix, and labels or responses."""


def _real(name: str, data: Path, rows: int | None) -> tuple[Any, Any]:
    A, b = READERS[name](data)
    if rows is None:
        return A, b
    kept = np.random.default_rng(0).permutation(len(b))[:rows]
    return (sparse.csc_matrix(A[kept]) if sparse.issparse(A) else np.asfortranarray(A[kept])), b[kept]


def _with_ones(A: Any) -> Any:
    ones = np.ones((A.shape[0], 1))
    return sparse.hstack([A, ones], format="csc") if sparse.issparse(A) else np.asfortranarray(np.hstack([A, ones]))


def _unit_columns(m: int, n: int, column_entries: int | None, rng: np.random.Generator) -> Any:
    """Return Gaussian columns of norm 1, dense or with a number of entries per column."""
    if column_entries is None:
        A = rng.standard_normal((n, m)).T
        A /= np.linalg.norm(A, axis=0)
        return A
    A = random_csc(m, n, column_entries, rng)
    A.data /= np.repeat(np.sqrt(np.add.reduceat(A.data**2, A.indptr[:-1])), column_entries)
    return A


def _at_ratio(kind: str, ratio: float, **values: Any) -> Task:
    problem = problem_of(Task(kind, {**values, "alpha": 1.0}))
    largest = alpha_max(problem.penalty, problem.A, problem.loss)
    return Task(kind, {**values, "alpha": ratio * largest})


def _response(A: Any, nonzeros: int, rng: np.random.Generator) -> Any:
    m, n = A.shape
    x_true = np.zeros(n)
    x_true[rng.choice(n, nonzeros, replace=False)] = rng.standard_normal(nonzeros)
    return A @ x_true + NOISE * rng.standard_normal(m)


def _lasso_task(A: Any, b: Any, alpha_ratio: float) -> Task:
    return Task("lasso", {"A": A, "b": b, "alpha": alpha_ratio * float(np.abs(A.T @ b).max())})
