r"""Balance of sparse columns without a factorisation: what is missing flows along the rows of a triangle.

If the rows of a set each have one column that no earlier row covers, then :math:`B'w = \delta` is solved backwards, one
unknown at a time, and so is the bound on |w| for all :math:`|\delta'| \le |\delta|`. No condition number is needed. For
an image each pixel is a column without a penalty. Data of single pixels are the roots of a spanning forest, whose edges
are differences of neighbours.

A part of the image may have no such root, as behind a blur. The differences of a constant are exactly 0, so that
:math:`B'w` sums to 0 for every flow w along differences. Once the sum over the pixels of this part is balanced, by the
other rows, its first pixel is balanced if all others are.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from .. import _native
from ..common.arrays import Flags, Indices, Vector
from ..operators import Operator
from .balance import Balanced, Limits, balance, distance, sums_of

ROUNDS = 2
"""Steps towards the equations."""

MOST_PARTS = 64
"""Most parts without a root."""


def route(A: Operator, at: Indices, target: Vector, y: Vector, limits: Limits) -> Balanced | None:
    """Return a point near y with A_j'y = t_j on some columns by rows that form a triangle; None if there are none."""
    short, known = A.short_rows()
    rows = sparse.csr_array(short if at.size == A.shape[1] else short[:, at])
    usable = known & (limits.room(y) > 0)
    if np.count_nonzero(usable) < at.size:
        return None
    triangle = Triangle(rows, usable, np.zeros(at.size, dtype=bool))
    radius = np.zeros(y.size)
    if not triangle.complete:
        parts = _parts(rows, usable & ~_single(rows), triangle.open)
        if parts is None:
            return None
        found = _balanced_parts(A, at, target, y, limits, parts)
        if found is None:
            return None
        y, radius = found
        triangle = Triangle(rows, usable & _exact_differences(rows), _roots(parts))
        if not triangle.complete:
            return None
    for _ in range(ROUNDS):
        product = A.rmatvec_rounded(y, None, precise=True).part(at)
        flow = triangle.solve((product.high - target) + product.low)
        if not np.all(np.isfinite(flow)):
            return None
        y = np.clip(y - flow, limits.lower, limits.upper)
    product = A.rmatvec_rounded(y, radius, precise=True).part(at)
    return Balanced(y, radius + triangle.bound(distance(product, target)))


class Triangle:
    """Rows of a sparse matrix, each with the column that it covers, apart from columns that need no row."""

    def __init__(self, rows: sparse.csr_array, usable: Flags, roots: Flags) -> None:
        self.columns = _parts_of(sparse.csc_array(rows))
        self.height, self.roots = rows.shape[0], roots
        self.row, self.column = _native.triangular_rows(_parts_of(rows), self.columns, usable, roots)

    @property
    def open(self) -> Flags:
        """The columns that no row covers."""
        covered = self.roots.copy()
        covered[self.column] = True
        return ~covered

    @property
    def complete(self) -> bool:
        """Whether every column is covered."""
        return not np.any(self.open)

    def solve(self, rest: Vector) -> Vector:
        """Return w with B'w equal to the rest."""
        return _native.solve_triangular_rows(self.row, self.column, self.columns, self.height, rest, False)

    def bound(self, rest: Vector) -> Vector:
        """Return an upper bound on |w| for every rest that is not larger."""
        return _native.solve_triangular_rows(self.row, self.column, self.columns, self.height, rest, True)


def _parts_of(matrix: sparse.csr_array | sparse.csc_array) -> tuple[Indices, Indices, Vector]:
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), np.asarray(matrix.data, dtype=np.float64)


def _single(rows: sparse.csr_array) -> Flags:
    """Return which rows have one entry."""
    single: Flags = np.diff(rows.indptr) == 1
    return single


def _exact_differences(rows: sparse.csr_array) -> Flags:
    """Return which rows are a multiple of the difference of two entries, so that they are 0 for a constant."""
    pairs = np.diff(rows.indptr) == 2
    first = np.minimum(rows.indptr[:-1], max(rows.nnz - 2, 0))
    opposite = rows.data[first] == -rows.data[np.minimum(first + 1, rows.nnz - 1)] if rows.nnz else pairs
    found: Flags = pairs & opposite
    return found


def _parts(rows: sparse.csr_array, usable: Flags, open_columns: Flags) -> Indices | None:
    """Return the part of each column, connected by differences; None if a column is covered, or there are many."""
    if not np.all(open_columns):
        return None
    edges = sparse.csr_array(rows[np.flatnonzero(usable & _exact_differences(rows))])
    count, part = connected_components(abs(edges).T @ abs(edges), directed=False)
    return part.astype(np.int64) if count <= MOST_PARTS else None


def _roots(parts: Indices) -> Flags:
    """Return the first column of each part."""
    roots = np.zeros(parts.size, dtype=bool)
    roots[np.unique(parts, return_index=True)[1]] = True
    return roots


def _balanced_parts(
    A: Operator, at: Indices, target: Vector, y: Vector, limits: Limits, parts: Indices
) -> tuple[Vector, Vector] | None:
    """Return a point whose products sum to those of the target over each part, and the radius within which it is."""
    count = int(parts.max()) + 1
    constants = np.zeros((count, A.shape[1]))
    constants[parts, at] = 1.0
    goal = np.bincount(parts, target, minlength=count).astype(np.float64)
    found = balance(sums_of(A, constants, goal), y, limits)
    return (found.y, found.radius) if found is not None and found.proved else None
