"""A low-rank matrix under sparse corruption."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..common.arrays import Vector

CORRUPTED = 0.05
OUTLIER = 10.0
NOISE = 0.01


class RobustPCAData(NamedTuple):
    """Data of 1/2 ||X_1||^2 + sparse_alpha ||X_2||_1 + nuclear_alpha ||X_3||_* with X_1 + X_2 + X_3 = B.

    Attributes
    ----------
    B : array of shape (m, n)
        The sum of the next two and small noise.
    low_rank, sparse : array of shape (m, n)
        The parts from which B was made; not the solution.
    sparse_alpha : float
        0.15 max |B|.
    nuclear_alpha : float
        0.15 times the largest singular value of B.
    """

    B: Vector
    low_rank: Vector
    sparse: Vector
    sparse_alpha: float
    nuclear_alpha: float


def make_robust_pca(m: int, n: int, rank: int, seed: int = 0) -> RobustPCAData:
    """Return a random matrix to decompose, made as in Parikh and Boyd (2014), section 7.2.

    The low-rank part is a product of Gaussian factors; 5% of the entries of the sparse part are -10 or 10.

    Parameters
    ----------
    m, n : int
        Rows and columns.
    rank : int
        Rank of the low-rank part.
    seed : int, default 0
        Seed of the generator.

    Returns
    -------
    RobustPCAData
        The matrix, its parts and two penalty weights.
    """
    if not 0 <= rank <= min(m, n):
        raise ValueError(f"rank={rank}: expected a number from 0 to {min(m, n)}, the smaller side")
    rng = np.random.default_rng(seed)
    low_rank = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    corrupted = rng.random((m, n)) < CORRUPTED
    sparse = np.where(corrupted, rng.choice([-OUTLIER, OUTLIER], (m, n)), 0.0)
    B = low_rank + sparse + NOISE * rng.standard_normal((m, n))
    return RobustPCAData(B, low_rank, sparse, 0.15 * float(np.max(np.abs(B))), 0.15 * float(np.linalg.norm(B, 2)))
