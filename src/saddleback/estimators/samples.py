"""The rows of a fit: samples of weight 0 are dropped, equal ones are merged.

A sample of weight 3 is the same as three equal samples, and both are fitted as one row. ``solve`` merges equal rows
too, if that pays. Here it is always done, and the remaining rows have an order that depends only on their values. So
integer weights and repeated rows give the same model to the last bit, for any tolerance. Samples in a file are not
compared: those of weight 0 are left out, and the others keep their order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from ..common.arrays import Indices, Vector
from ..common.checks import unmasked, weights
from ..places.torch import on_host
from .table import Keys, Table, bits


class Samples(NamedTuple):
    """Distinct rows of X with their targets and weights, and their relation to the given rows.

    ``row_of`` is, for every given row, its row in X, and ``share`` its part of the weight of that row; 0 if it was
    dropped. Both are None if X has the given rows. ``weight`` may be None.
    """

    X: Table
    y: Any
    weight: Vector | None
    row_of: Indices | None = None
    share: Vector | None = None

    def to_given(self, dual: Vector) -> Vector:
        """Return a dual vector over the given rows: each gets its share of the value of its distinct row."""
        if self.row_of is None or self.share is None:
            return dual
        return dual[self.row_of] * self.share.reshape((-1,) + (1,) * (dual.ndim - 1))

    def from_given(self, dual: Vector) -> Vector:
        """Return a dual vector over the distinct rows: the sum over the given rows that were merged."""
        if self.row_of is None:
            return dual
        total = np.zeros((self.y.shape[0], *dual.shape[1:]))
        np.add.at(total, self.row_of, dual)
        return total


def distinct(X: Table, y: NDArray[Any], weight: Vector | None) -> Samples:
    """Return the samples of positive weight, with equal ones merged; the arrays themselves if nothing changes."""
    n = X.shape[0]
    counted = np.arange(n) if weight is None else np.flatnonzero(weight)
    keys = _keys(X, y.astype(np.float64))[counted]
    order = np.argsort(keys, kind="stable")
    first = np.concatenate([[True], np.diff(keys[order]) != 0])
    place = np.cumsum(first) - 1
    kept = counted[order[first]]
    alike = counted[order[~first]], kept[place[~first]]  # equal keys mean equal samples except in one of 2^64 cases
    if kept.size == n or not (np.array_equal(*(y[part] for part in alike)) and X.equal(*alike)):
        return Samples(X, y, weight)
    row_of, share = np.zeros(n, dtype=np.int64), np.zeros(n)
    row_of[counted[order]] = place
    share[counted] = 1.0 if weight is None else weight[counted]
    total: Vector = np.bincount(row_of, share, minlength=kept.size).astype(np.float64)
    return Samples(X.rows(kept), y[kept], total, row_of, share / total[row_of])


def _keys(X: Table, y: Vector) -> Keys:
    """Return one number per sample, equal for equal samples: a random sum of its bits, exact modulo 2^64."""
    columns = y.reshape(y.shape[0], -1)
    factors = np.random.default_rng(0).integers(1 << 63, size=X.shape[1] + columns.shape[1], dtype=np.uint64)
    factors = 2 * factors + 1  # odd numbers have an inverse, so that no bit is lost
    return X.keys(factors[: X.shape[1]], bits(columns) @ factors[X.shape[1] :])


def check_weight(sample_weight: ArrayLike | None, X: Table) -> Vector | None:
    """Return checked sample weights as float64; None if none are given."""
    if sample_weight is None:
        return None
    weight: Vector = check_array(
        on_host(unmasked("sample_weight", sample_weight)),
        ensure_2d=False,
        dtype=np.float64,
        input_name="sample_weight",
        ensure_non_negative=True,
    )
    if weight.ndim == 0:
        weight = np.full(X.shape[0], float(weight))
    if weight.ndim != 1:
        raise ValueError(f"sample_weight has shape {weight.shape}: expected one value per sample")
    if weight.size != X.shape[0]:
        raise ValueError(f"sample_weight has {weight.size} values: expected one for each of the {X.shape[0]} samples")
    if not np.any(weight):
        raise ValueError("sample_weight is zero everywhere: expected at least one positive weight")
    weights("sample_weight", weight)
    weights("sample_weight, divided by its sum,", weight / weight.sum())
    return weight
