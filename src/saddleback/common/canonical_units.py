"""Units that do not depend on those of the user: powers of two per row and per column of a matrix.

In other units an entry :math:`a_{ij}` is :math:`2^{k_j + l_i} a_{ij}`. In canonical units these powers cancel exactly,
so that whatever is computed from the rescaled data has the same bits for every choice of units. A spanning forest of
the nonzero pattern fixes all units of a connected part but one, and data of the part fix that one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from .arrays import Indices, Vector

ROUNDS = 8
"""Rounds of ``geometric_units``, in each of which rows and columns are averaged once."""


def canonical_units(A: Any, of_rows: Vector, of_columns: Vector) -> tuple[Indices, Indices]:
    """Return the exponents of rows and columns: in units of 2^-l_i and 2^-k_j the data do not depend on units.

    Entries on a spanning forest of the pattern get the exponent 0. So does the first number of ``of_rows`` that is
    finite and not 0 in each connected part, or else that of ``of_columns``.

    Parameters
    ----------
    A : a matrix in a format of scipy.
    of_rows : a number per row that scales with the row, such as a bound on it; 0 if there is none.
    of_columns : a number per column that scales with the column, such as a cost; 0 if there is none.
    """
    m, n = A.shape
    used = sparse.coo_array(A)
    used.eliminate_zeros()
    i, j = used.coords
    size = m + n
    tail, head = np.concatenate([i, j + m]).astype(np.int64), np.concatenate([j + m, i]).astype(np.int64)
    whole = sparse.csr_array((np.ones(tail.size), (tail, head)), (size, size))
    part = connected_components(whole, directed=False)[1]
    first = np.unique(part, return_index=True)[1]
    # a single search from one more node, with an edge to the first node of each part, finds all forests
    edges = np.concatenate([tail, np.full(first.size, size)]), np.concatenate([head, first])
    graph = sparse.csr_array((np.ones(edges[0].size), edges), (size + 1, size + 1))
    graph.sort_indices()
    before = breadth_first_order(graph, size)[1][:size].astype(np.int64)
    before[first] = first
    rest = np.flatnonzero(before != np.arange(size))
    keys = tail * size + head
    order = np.argsort(keys)
    entry = order[np.searchsorted(keys, before[rest] * size + rest, sorter=order)] % max(i.size, 1)
    exponents = np.zeros(size, dtype=np.int64)
    exponents[rest] = -np.frexp(used.data)[1][entry]
    found = _along(before, exponents)
    data = np.concatenate([of_rows, of_columns])
    known = np.flatnonzero(np.isfinite(data) & (data != 0))
    parts, at = np.unique(part[known], return_index=True)
    node = known[at]  # rows come first
    up = np.where(node < m, 1, -1)
    shift = np.zeros(first.size, dtype=np.int64)
    shift[parts] = -up * (np.frexp(data[node])[1] + found[node])
    return found[:m] + shift[part[:m]], found[m:] - shift[part[m:]]


def _along(before: Indices, exponents: Indices) -> Indices:
    """Return v with v_i + v_before(i) equal to the given exponents, and v = 0 at the roots, where before(i) = i."""
    root = before == np.arange(before.size)
    sign: Indices = np.where(root, 1, -1)
    while not np.all(root[before]):
        exponents = exponents + sign * exponents[before]
        sign, before = sign * sign[before], before[before]
    return exponents


def geometric_units(A: Any, rows: Indices, columns: Indices) -> tuple[Indices, Indices]:
    """Return exponents that bring the logarithms of the entries close to 0, from given ones, by means in alternation.

    Relative to the given exponents they do not depend on units.
    """
    used = sparse.coo_array(A)
    used.eliminate_zeros()
    i, j = used.coords
    mantissa, exponent = np.frexp(np.abs(used.data))
    logs = np.log2(mantissa) + (exponent + rows[i] + columns[j])
    own, other = np.zeros(rows.size), np.zeros(columns.size)
    for _ in range(ROUNDS):
        own = -_means(i, logs + other[j], own.size)
        other = -_means(j, logs + own[i], other.size)
    return rows + np.round(own).astype(np.int64), columns + np.round(other).astype(np.int64)


def _means(places: Indices, values: Vector, size: int) -> Vector:
    return np.bincount(places, values, size) / np.maximum(np.bincount(places, minlength=size), 1)
