"""The draws: which blocks an iteration updates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..common.arrays import Indices
from ..common.rebuildable import stored

VECTORISED = 64
"""Up to this K all iterations of a batch are drawn together; above it one by one, which is then cheaper."""


@dataclass(frozen=True)
class Strata:
    r"""Sets of blocks with independent draws: a single set, or one set per process.

    From each set K of ``size`` blocks are drawn, where ``size`` is that of the largest set; the others are filled up
    with blocks without columns. So every block is drawn with the same probability :math:`p = K / \text{size}`. Two
    blocks of the same set are drawn together with probability :math:`p \beta`, :math:`\beta = (K - 1) / (\text{size} -
    1)`, and two of different sets with probability :math:`p^2 \ge p \beta`.

    Attributes
    ----------
    members : the blocks of each set.
    own : the set from which this process draws.
    """

    members: Sequence[Indices]
    own: int = 0

    @property
    def size(self) -> int:
        """Number of blocks in each set, including those without columns."""
        return max(blocks.size for blocks in self.members)

    def drawn(self, blocks: int) -> int:
        """Return K per set, given the number of blocks drawn in all."""
        total = sum(members.size for members in self.members)
        return int(np.clip(-(-blocks * self.size // total), 1, self.size))

    def expected(self, drawn: int) -> int:
        """Return the expected number of blocks drawn in all for K per set; at least 1."""
        return max(1, round(self.share(drawn) * sum(members.size for members in self.members)))

    def share(self, drawn: int) -> float:
        """Return p, the probability with which each block is drawn."""
        return drawn / self.size

    def together(self, drawn: int) -> tuple[float, float]:
        """Return the probability that a second block is drawn if a first is: in the same set, and at most in any."""
        within = (drawn - 1) / (self.size - 1) if self.size > 1 else 1.0
        return within, within if len(self.members) == 1 else self.share(drawn)


@stored
class KNice:
    """K of J blocks, uniformly and without replacement, independently in every iteration."""

    n_blocks: int
    drawn: int
    rng: np.random.Generator

    def __init__(self, n_blocks: int, drawn: int, seed: int | Sequence[int]) -> None:
        self.n_blocks = n_blocks
        self.drawn = drawn
        self.rng = np.random.default_rng(seed)

    @classmethod
    def of(cls, strata: Strata, drawn: int, seed: int) -> KNice:
        """Return the draws of this process, which are independent of those of others."""
        return cls(strata.size, drawn, seed if len(strata.members) == 1 else [seed, strata.own])

    def draw(self, iterations: int) -> Indices:
        """Return the blocks of a number of iterations, one row per iteration."""
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
