"""Units that do not depend on those of the user: powers of two per row and per column of a matrix.

In other units an entry :math:`a_{ij}` is :math:`2^{k_j + l_i} a_{ij}`. In canonical units these powers cancel exactly,
so that whatever is computed from the rescaled data has the same bits for every choice of units. A spanning forest of
the nonzero pattern fixes all units of a connected part but one, and data of the part fix that one.

Some rows, or columns, have one unit together, such as those of a group, and some have no choice of units, such as those
of an exponential. Rows that share a unit are one node of the forest, and all rows and columns without a choice too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from .arrays import Indices, Vector

Exponents = tuple[Indices, Indices]
"""The exponents of the units of rows and of columns."""

ROUNDS = 8
"""Rounds of ``geometric_units``, in each of which rows and columns are averaged once."""

FIXED = -1
"""The index of the unit of a row or column that has no choice."""


def canonical_units(A: Any, of_rows: Vector, of_columns: Vector, rows: Indices, columns: Indices) -> Exponents:
    """Return the exponents of rows and columns: in units of 2^-l_i and 2^-k_j the data do not depend on units.

    Entries on a spanning forest of the pattern get the exponent 0. So does the first number of ``of_rows`` that is
    finite and not 0 in each connected part with a choice of units, or else that of ``of_columns``.

    Parameters
    ----------
    A : a matrix in a format of scipy.
    of_rows : a number per row that scales with the row, such as a bound on it; 0 if there is none.
    of_columns : a number per column that scales with the column, such as a cost; 0 if there is none.
    rows, columns : the index of the unit of each row and of each column, or FIXED.
    """
    used = sparse.coo_array(A)
    used.eliminate_zeros()
    of_row, of_column, size = _nodes(rows, columns)
    tail, head = of_row[used.coords[0]], of_column[used.coords[1]]
    chosen = tail != head  # the others are between a row and a column without a choice
    tail, head, data = tail[chosen], head[chosen], used.data[chosen]
    tail, head = np.concatenate([tail, head]), np.concatenate([head, tail])
    whole = sparse.csr_array((np.ones(tail.size), (tail, head)), (size, size))
    part = connected_components(whole, directed=False)[1]
    first = np.unique(part, return_index=True)[1]
    # a single search from one more node, with an edge to the first node of each part, finds all forests
    edges = np.concatenate([tail, np.full(first.size, size)]), np.concatenate([head, first])
    graph = sparse.csr_array((np.ones(edges[0].size), edges), (size + 1, size + 1))
    graph.sort_indices()
    before = breadth_first_order(graph, size)[1][:size].astype(np.int64)
    before[first] = first
    exponents = np.zeros(size, dtype=np.int64)
    up = np.flatnonzero(before[head] == tail)[::-1]  # from a node to the one before it; the first of several counts
    exponents[head[up]] = -np.frexp(data)[1][up % max(data.size, 1)]
    found = _along(before, exponents)
    numbers, node = np.concatenate([of_rows, of_columns]), np.concatenate([of_row, of_column])
    known = np.flatnonzero(np.isfinite(numbers) & (numbers != 0) & (part[node] != part[0]))
    parts, at = np.unique(part[node[known]], return_index=True)
    at = known[at]  # rows come first
    sign = np.where(at < of_rows.size, 1, -1)
    shift = np.zeros(first.size, dtype=np.int64)
    shift[parts] = -sign * (np.frexp(numbers[at])[1] + found[node[at]])
    return found[of_row] + shift[part[of_row]], found[of_column] - shift[part[of_column]]


def _nodes(rows: Indices, columns: Indices) -> tuple[Indices, Indices, int]:
    """Return the node of each row and of each column, and the number of nodes; node 0 is that without a choice."""
    units = int(np.max(rows, initial=FIXED)) + 1
    of_column = np.where(columns == FIXED, 0, columns + 1 + units)
    return rows + 1, of_column, int(np.max(of_column, initial=units)) + 1


def _along(before: Indices, exponents: Indices) -> Indices:
    """Return v with v_i + v_before(i) equal to the given exponents, and v = 0 at the roots, where before(i) = i."""
    root = before == np.arange(before.size)
    sign: Indices = np.where(root, 1, -1)
    while not np.all(root[before]):
        exponents = exponents + sign * exponents[before]
        sign, before = sign * sign[before], before[before]
    return exponents


def geometric_units(A: Any, given: Exponents, rows: Indices, columns: Indices) -> Exponents:
    """Return exponents that bring the logarithms of the entries close to 0, from given ones, by means in alternation.

    Relative to the given exponents they do not depend on units.
    """
    used = sparse.coo_array(A)
    used.eliminate_zeros()
    i, j = used.coords
    mantissa, exponent = np.frexp(np.abs(used.data))
    logs = np.log2(mantissa) + (exponent + given[0][i] + given[1][j])
    own, other = np.zeros(rows.size), np.zeros(columns.size)
    for _ in range(ROUNDS):
        own = _means(rows, i, logs + other[j])
        other = _means(columns, j, logs + own[i])
    return given[0] + np.round(own).astype(np.int64), given[1] + np.round(other).astype(np.int64)


def _means(units: Indices, places: Indices, values: Vector) -> Vector:
    """Return, per row or column, minus the mean of the values at all places with its unit; 0 without a choice."""
    at, size = units[places] + 1, int(np.max(units, initial=FIXED)) + 2
    means = np.bincount(at, values, size) / np.maximum(np.bincount(at, minlength=size), 1)
    means[0] = 0.0
    of_each: Vector = -means[units + 1]
    return of_each
