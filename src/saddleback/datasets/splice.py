"""Classification of short sequences of bases by their interactions, as in the search for splice sites."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..common.arrays import Vector

BASES = 4
POSITIONS = 7
ORDER = 3
PLANTED = {1: 3, 2: 3, 3: 2}
"""How many single positions, pairs and triples have an effect on the label."""

NOISE = 0.3
"""Of the score that decides the label, in standard deviations."""


class GroupHingeData(NamedTuple):
    """Data of (1/N) sum_i max(0, 1 - labels_i (Ax)_i) + alpha sum_g sqrt(d_g) ||x_g||.

    Attributes
    ----------
    A : sparse matrix of shape (N, 2604)
        Zeros and ones in CSC form, 63 ones per row.
    labels : array of shape (N,)
        -1 or +1 per row.
    groups : list of int
        Sizes of the 63 groups of columns: 7 of 4, 21 of 16, 35 of 64.
    sites : array of shape (N, 7)
        The bases 0 to 3 from which A was made.
    """

    A: Any
    labels: Vector
    groups: list[int]
    sites: NDArray[np.int64]


def make_group_hinge(samples: int, seed: int = 0) -> GroupHingeData:
    """Return simulated donor sites: 7 bases each, and whether they splice.

    Bases are drawn independently, with different frequencies per position. A site is labelled +1 if its score, a sum of
    effects of a few single positions, pairs and triples plus noise, is above the median score.

    Parameters
    ----------
    samples : int
        Number of sites N.
    seed : int, default 0
        Seed of the generator.

    Returns
    -------
    GroupHingeData
        Matrix, labels, groups and sites.
    """
    if samples < 2:
        raise ValueError(f"samples={samples}: expected at least 2")
    rng = np.random.default_rng(seed)
    frequencies = rng.dirichlet(np.full(BASES, 3.0), POSITIONS)
    sites = np.column_stack([rng.choice(BASES, samples, p=p) for p in frequencies])
    A, groups = interactions(sites)
    score = A @ _planted_effects(groups, rng)
    score += NOISE * np.std(score) * rng.standard_normal(samples)
    labels = np.where(score > np.median(score), 1.0, -1.0)
    return GroupHingeData(A, labels, groups, sites)


def _planted_effects(groups: list[int], rng: np.random.Generator) -> Vector:
    """Return coefficients that are 0 outside the planted groups."""
    start = np.cumsum([0, *groups])
    effects = np.zeros(start[-1])
    for size, count in PLANTED.items():
        of_size = np.flatnonzero(np.array(groups) == BASES**size)
        for g in rng.choice(of_size, count, replace=False):
            effects[start[g] : start[g + 1]] = rng.standard_normal(groups[g])
    return effects


def interactions(sites: NDArray[np.int64], order: int = ORDER) -> tuple[Any, list[int]]:
    """Return the one-hot matrix of all single positions, pairs and so on, with the sizes of its groups.

    Parameters
    ----------
    sites : array of int
        One row per sequence, with bases numbered 0 to 3.
    order : int, default 3
        How many positions interact at most.

    Returns
    -------
    A : sparse matrix
        Zeros and ones in CSC form, one group of columns per set of positions, small sets first.
    groups : list of int
        Sizes of the groups.
    """
    samples, positions = sites.shape
    sets = [s for size in range(1, order + 1) for s in combinations(range(positions), size)]
    groups = [BASES ** len(s) for s in sets]
    start = np.cumsum([0, *groups])
    columns = np.empty((samples, len(sets)), dtype=np.int64)
    for g, s in enumerate(sets):
        place = BASES ** np.arange(len(s))[::-1]  # the bases of the set, read as a number in base 4
        columns[:, g] = start[g] + sites[:, s] @ place
    indptr = np.arange(0, columns.size + 1, len(sets))
    A = sparse.csr_matrix((np.ones(columns.size), columns.ravel(), indptr), shape=(samples, int(start[-1])))
    return A.tocsc(), groups
