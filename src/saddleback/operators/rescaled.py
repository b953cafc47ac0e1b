"""Operators in other units: every entry times powers of two of its row and its column, which is exact."""

from __future__ import annotations

from functools import singledispatch
from itertools import pairwise

import numpy as np
from scipy import sparse

from ..common.arrays import Indices
from .above import Above
from .contract import Operator
from .dense import Dense
from .sparse import Compressed
from .stacked import Stacked


@singledispatch
def rescaled(A: Operator, rows: Indices, columns: Indices) -> Operator:
    """Return the operator with the entries 2^(l_i + k_j) a_ij, by default as a sparse matrix."""
    entries = sparse.coo_array(A.entries(compressed=True))
    i, j = entries.coords
    return Compressed(sparse.csc_matrix((np.ldexp(entries.data, rows[i] + columns[j]), (i, j)), A.shape))


@rescaled.register
def _(A: Dense, rows: Indices, columns: Indices) -> Operator:
    entries = np.asarray(A.array, dtype=np.float64).T
    return Dense(np.ldexp(entries, columns[:, None] + rows).T)


@rescaled.register
def _(A: Stacked, rows: Indices, columns: Indices) -> Operator:
    own = (columns[a:b] for a, b in pairwise(A.start.tolist()))
    return Stacked([rescaled(part, rows, mine) for part, mine in zip(A.parts, own, strict=True)])


@rescaled.register
def _(A: Above, rows: Indices, columns: Indices) -> Operator:
    parts = zip(A.rows, A.stretches, strict=True)
    return Above([None if part is None else rescaled(part, rows[own], columns) for part, own in parts], A.heights)
