"""Who is drawn: the blocks of each iteration."""

from __future__ import annotations

import numpy as np

from .functions._base import Indices

VECTORISED = 64
"""Up to this K all iterations of a batch are drawn together; beyond it one by one, which is then cheaper."""


class KNice:
    """K of J blocks, uniformly and without replacement, independently in every iteration."""

    def __init__(self, n_blocks: int, drawn: int, seed: int) -> None:
        self.n_blocks = n_blocks
        self.drawn = drawn
        self.rng = np.random.default_rng(seed)

    def draw(self, iterations: int) -> Indices:
        """Return the blocks of so many iterations, one row each."""
        J, K = self.n_blocks, self.drawn
        if K == J:
            return np.broadcast_to(np.arange(J), (iterations, J))
        if K > VECTORISED:
            return np.array([self.rng.choice(J, K, replace=False, shuffle=False) for _ in range(iterations)])
        # Floyd's algorithm, all iterations at once: the i-th draw takes a new block or, on a collision, block J - K + i
        draws = np.empty((iterations, K), dtype=np.int64)
        for i, last in enumerate(range(J - K, J)):
            block = self.rng.integers(last + 1, size=iterations)
            taken = (draws[:, :i] == block[:, None]).any(axis=1)
            draws[:, i] = np.where(taken, last, block)
        return draws
