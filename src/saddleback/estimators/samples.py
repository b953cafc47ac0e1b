"""The rows of a fit: samples that do not count are dropped, equal ones are merged.

A sample of weight 3 is the same as three equal samples, and both are fitted as one row. ``solve`` merges equal rows
too, where that pays; here it is always done, and the rows that are left come in an order of their own, so that integer
weights and repeated rows give the same model to the last bits, whatever the tolerance. In a file samples are not
compared: those that do not count are left out, and the others stay in their order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..common.arrays import Indices, Vector
from .table import Keys, Table, bits


class Samples(NamedTuple):
    """Distinct rows of X with their targets and weights, and how they were made of the rows that were given.

    ``row_of`` is the row in X of every row given, ``share`` its part of that row's weight, 0 where it was dropped; both
    None, as ``weight`` may be, where the rows are those that were given.
    """

    X: Table
    y: Any
    weight: Vector | None
    row_of: Indices | None = None
    share: Vector | None = None

    def to_given(self, dual: Vector) -> Vector:
        """Return a dual vector over the rows as given: each has its share of what its row has."""
        if self.row_of is None or self.share is None:
            return dual
        return dual[self.row_of] * self.share.reshape((-1,) + (1,) * (dual.ndim - 1))

    def from_given(self, dual: Vector) -> Vector:
        """Return a dual vector over the distinct rows: the sum over the rows that each was made of."""
        if self.row_of is None:
            return dual
        total = np.zeros((self.y.shape[0], *dual.shape[1:]))
        np.add.at(total, self.row_of, dual)
        return total


def distinct(X: Table, y: NDArray[Any], weight: Vector | None) -> Samples:
    """Return the samples with a weight, equal ones merged; the arrays themselves where there is nothing to merge."""
    n = X.shape[0]
    counted = np.arange(n) if weight is None else np.flatnonzero(weight)
    keys = _keys(X, y.astype(np.float64))[counted]
    order = np.argsort(keys, kind="stable")
    first = np.concatenate([[True], np.diff(keys[order]) != 0])
    place = np.cumsum(first) - 1
    kept = counted[order[first]]
    alike = counted[order[~first]], kept[place[~first]]  # what equal keys promise but for one case in 2^64
    if kept.size == n or not (np.array_equal(*(y[part] for part in alike)) and X.equal(*alike)):
        return Samples(X, y, weight)
    row_of, share = np.zeros(n, dtype=np.int64), np.zeros(n)
    row_of[counted[order]] = place
    share[counted] = 1.0 if weight is None else weight[counted]
    total: Vector = np.bincount(row_of, share, minlength=kept.size).astype(np.float64)
    return Samples(X.rows(kept), y[kept], total, row_of, share / total[row_of])


def _keys(X: Table, y: Vector) -> Keys:
    """Return a number for every sample, the same for equal ones: a random sum of its bits, exact modulo 2^64."""
    columns = y.reshape(y.shape[0], -1)
    factors = np.random.default_rng(0).integers(1 << 63, size=X.shape[1] + columns.shape[1], dtype=np.uint64)
    factors = 2 * factors + 1  # odd numbers have an inverse, so that no bit is lost
    return X.keys(factors[: X.shape[1]], bits(columns) @ factors[X.shape[1] :])
