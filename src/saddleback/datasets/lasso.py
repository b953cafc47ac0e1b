"""Sparse linear regression."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..common.arrays import Vector

NOISE = np.sqrt(1e-3)


class LassoData(NamedTuple):
    """Data of 1/2 ||Ax - b||^2 + alpha ||x||_1.

    Attributes
    ----------
    A : array of shape (m, n)
        Column-major, with columns of norm 1.
    b : array of shape (m,)
        Targets, A x_true plus noise.
    x_true : array of shape (n,)
        Coefficients from which b was made; not the solution.
    alpha : float
        0.1 ||A'b||_inf, a tenth of the smallest alpha with solution 0.
    """

    A: Vector
    b: Vector
    x_true: Vector
    alpha: float


def make_lasso(m: int, n: int, nonzeros: int, seed: int = 0) -> LassoData:
    """Return a random Lasso problem, made as in Boyd et al. (2011), section 11.1.

    Parameters
    ----------
    m, n : int
        Rows and columns.
    nonzeros : int
        How many entries of ``x_true`` are not 0; each is standard normal.
    seed : int, default 0
        Seed of the generator.

    Returns
    -------
    LassoData
        Matrix, targets, true coefficients and alpha.
    """
    if not 0 <= nonzeros <= n:
        raise ValueError(f"nonzeros={nonzeros}: expected a number from 0 to n={n}")
    rng = np.random.default_rng(seed)
    # drawn transposed, so that the columns are contiguous and no copy is needed to make them so
    A = rng.standard_normal((n, m)).T
    A /= np.linalg.norm(A, axis=0)
    x_true = np.zeros(n)
    x_true[rng.choice(n, nonzeros, replace=False)] = rng.standard_normal(nonzeros)
    b = A @ x_true + NOISE * rng.standard_normal(m)
    return LassoData(A, b, x_true, 0.1 * float(np.max(np.abs(A.T @ b))))
