"""Rays of linear programs in rational arithmetic, which proves what floating point leaves open, if that is cheap.

A ray in floating point makes an entry of its image 0 only up to rounding, but a proof may need an exact 0.
Fraction-free elimination (Bareiss, 1968) makes these entries exactly 0. It changes the ray by about as much as rounding
did, and the resulting ray is verified without any rounding.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..common.arrays import Indices, Vector
from ..operators import Operator
from .program import LinearProgram

MOST_ENTRIES = 20_000
"""Largest number of entries of A in the rows or columns of the ray for an exact verification."""

MOST_STEPS = 4_000
"""Largest number of integer products in an elimination."""


class Cone(NamedTuple):
    """Which signs are allowed in each entry, and what a unit of each sign adds to the value of a ray."""

    positive: Any
    negative: Any
    of_positive: Vector
    of_negative: Vector

    def hold(self, entries: dict[int, int]) -> bool:
        """Return whether all entries, given by place, have an allowed sign."""
        return all(entry == 0 or (self.positive[i] if entry > 0 else self.negative[i]) for i, entry in entries.items())

    def value(self, entries: dict[int, int]) -> Fraction:
        """Return what they add to the value."""
        terms = (
            entry * Fraction(float(self.of_positive[i] if entry > 0 else self.of_negative[i]))
            for i, entry in entries.items()
            if entry
        )
        return sum(terms, Fraction(0))


def proves_exactly(program: LinearProgram, A: Operator, dual: bool, ray: Vector, zero: Indices) -> bool | None:
    """Return whether an exact ray next to this one proves that a linear program has no solution.

    Parameters
    ----------
    program, A : the linear program.
    dual : whether it is a ray of y, which proves that no point is feasible, or one of x.
    ray : the ray in floating point.
    zero : entries of its image, -A'e or Ad, that must be 0 and are 0 up to rounding.

    Returns
    -------
    None if it would take too long to decide.
    """
    support = np.flatnonzero(ray)
    across = (
        -sparse.csr_matrix(A.entries(compressed=True))[support]
        if dual
        else sparse.csr_matrix(A.entries(compressed=True).T)[support]
    )
    if across.nnz > MOST_ENTRIES:
        return None
    own, other = _cones(program, dual)
    entries, _ = _integers(ray[support])
    image, scale = _rows_of_integers(across.T.tocsr())
    held = [image[i] for i in zero.tolist() if i in image]
    if any(sum(entries[j] * value for j, value in row.items()) for row in held):
        if len(held) * support.size**2 > MOST_STEPS:
            return None
        entries = _in_kernel(held, entries)
    products = {i: sum(entries[j] * value for j, value in row.items()) for i, row in image.items()}
    multiples = {i: scale * entry for i, entry in zip(support.tolist(), entries, strict=True)}
    if not (own.hold(multiples) and other.hold(products)):
        return False
    return own.value(multiples) + other.value(products) < 0


def _cones(program: LinearProgram, dual: bool) -> tuple[Cone, Cone]:
    if dual:
        own = Cone(np.isfinite(program.row_upper), np.isfinite(program.row_lower), program.row_upper, program.row_lower)
        return own, Cone(np.isfinite(program.upper), np.isfinite(program.lower), program.upper, program.lower)
    nothing = np.zeros(program.row_lower.size)
    own = Cone(np.isinf(program.upper), np.isinf(program.lower), program.cost, program.cost)
    return own, Cone(np.isinf(program.row_upper), np.isinf(program.row_lower), nothing, nothing)


def _integers(values: Vector) -> tuple[list[int], int]:
    """Return floating-point numbers times a power of 2 that makes them integers, and that power."""
    ratios = [float(value).as_integer_ratio() for value in values]
    scale = max((denominator for _, denominator in ratios), default=1)
    return [numerator * (scale // denominator) for numerator, denominator in ratios], scale


def _rows_of_integers(matrix: Any) -> tuple[dict[int, dict[int, int]], int]:
    """Return the rows of a sparse matrix that are not empty, by place, times a power of 2, and that power."""
    values, scale = _integers(matrix.data)
    rows: dict[int, dict[int, int]] = {}
    for i in np.flatnonzero(np.diff(matrix.indptr)).tolist():
        own = range(matrix.indptr[i], matrix.indptr[i + 1])
        rows[i] = {int(matrix.indices[k]): values[k] for k in own if values[k]}
    return rows, scale


def _in_kernel(rows: list[dict[int, int]], entries: list[int]) -> list[int]:
    """Return an integer multiple of a vector in the kernel of some rows; its free entries agree with the given ones.

    Fraction-free Gauss-Jordan elimination: after each step all pivots are the same integer, and divisions are exact.
    """
    size = len(entries)
    table = [[row.get(j, 0) for j in range(size)] for row in rows]
    pivots: dict[int, int] = {}
    last = 1
    for k in range(len(table)):
        # the largest product is the entry that needs the smallest relative change
        best = max(
            ((abs(row[j] * entries[j]), r, j) for r, row in enumerate(table[k:], k) for j in range(size) if row[j]),
            default=None,
        )
        if best is None:
            break
        _, r, j = best
        table[k], table[r] = table[r], table[k]
        pivot = table[k]
        for i, row in enumerate(table):
            if i != k:
                table[i] = [(pivot[j] * a - row[j] * b) // last for a, b in zip(row, pivot, strict=True)]
        last = pivot[j]
        pivots[j] = k
    sign = 1 if last > 0 else -1
    free = [j for j in range(size) if j not in pivots]
    solved = {j: -sum(table[k][i] * entries[i] for i in free) for j, k in pivots.items()}
    return [sign * (solved[j] if j in pivots else last * entries[j]) for j in range(size)]
