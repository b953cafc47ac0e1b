"""How y is balanced on columns, or sums of columns, of a problem: by all rows, by some, or by a triangle of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from ..common.arrays import Indices, Vector
from ..common.rounded import Rounded
from ..common.sums import Equations
from ..linear_programs.program import at_hand
from ..operators import Operator
from .balance import Balanced, Columns, Limits, balance, sums_of
from .closed_rows import ClosedRows
from .routing import route

EASY = 1e8
"""Multiply-adds of a factorisation with all rows that need no other way."""

MOST_WORK = 2e10
"""Most multiply-adds of a factorisation."""

MOST_ENTRIES = 2e7
"""Most entries of the columns in the rows that balance them: a copy of them takes memory."""

MOST_PRODUCTS = 32
"""Most columns of an operator whose entries are not known: each takes a product."""

SPARSE = 10
"""Columns count as sparse if less than one in ten of their entries is not 0."""

PER_COLUMN = 4
"""Rows that are taken for each sparse column."""


def balance_columns(
    A: Operator, at: Indices, target: Vector, y: Vector, limits: Limits, closed: Sequence[ClosedRows] = ()
) -> Balanced | None:
    """Return a point near y with A_j'y = t_j on some columns; None if none was found.

    The values of closed rows that the others leave do not count: they are set afterwards.
    """
    rows, count = A.shape[0], at.size
    if closed:
        if not A.traits.entries_known or _is_large(rows, count):
            return None
        return balance(_open(Columns.of(np.asarray(A.entries(at)), target), closed), y, limits)
    if A.traits.entries_known and rows * float(count) ** 2 <= EASY:
        return balance(Columns.of(np.asarray(A.entries(at)), target), y, limits)
    found = route(A, at, target, y, limits)
    if found is not None:
        return found
    if not _is_large(rows, count):
        if A.traits.entries_known or count <= MOST_PRODUCTS:
            return balance(Columns.of(np.asarray(A.entries(at)), target), y, limits)
        return None
    return balance_by_some_rows(A, at, target, y, limits) if at_hand(A) else None


def balance_by_some_rows(A: Operator, at: Indices, target: Vector, y: Vector, limits: Limits) -> Balanced | None:
    """Return such a point that differs from y in some of the rows that can move."""
    count = at.size
    most = int(min(MOST_WORK / float(count) ** 2, MOST_ENTRIES / count))
    usable = np.flatnonzero(limits.room(y) > 0)
    if most < count or usable.size < count:
        return None
    chosen = usable[np.linspace(0, usable.size - 1, min(most, usable.size)).astype(np.int64)]
    if A.traits.stored * SPARSE < A.shape[0] * float(A.shape[1]):
        few = sparse.csc_array(A.entries(at, compressed=True))[usable]
        first = np.minimum(few.indptr[:-1, None] + np.arange(PER_COLUMN), np.maximum(few.indptr[1:, None] - 1, 0))
        own = usable[few.indices[first.ravel()]] if few.nnz else usable[:0]
        chosen = np.union1d(own, chosen[: max(most - own.size, 0)])
        if chosen.size > most:
            return None

    def product(point: Vector) -> Rounded:
        return A.rmatvec_rounded(point, precise=True).part(at)

    entries = np.asarray(A.restrict(chosen, at).entries())
    return balance(Columns(entries, target, product, rows=chosen), y, limits)


def balance_sums(
    A: Operator, slopes: Equations, y: Vector, limits: Limits, closed: Sequence[ClosedRows] = ()
) -> Balanced | None:
    """Return a point near y whose slope -A'y satisfies equations; None if none was found."""
    sums = slopes.sums
    if sums.are_entries and not np.any(slopes.rounding):
        order = np.argsort(sums.places)
        return balance_columns(A, sums.places[order], -slopes.value[order], y, limits, closed)
    if _is_large(A.shape[0], len(sums)) or A.shape[1] * len(sums) > MOST_ENTRIES:
        return None
    indicators = np.zeros((len(sums), A.shape[1]))
    for indicator, own in zip(indicators, sums, strict=True):
        indicator[own] = 1.0
    return balance(_open(sums_of(A, indicators, -slopes.value, slopes.rounding), closed), y, limits)


def _is_large(rows: int, count: int) -> bool:
    """Return whether so many columns are too many for a copy of them and a factorisation with all rows."""
    return rows * float(count) ** 2 > MOST_WORK or rows * count > MOST_ENTRIES


def _open(columns: Columns, closed: Sequence[ClosedRows]) -> Columns:
    """Return columns on which the values that are left by the others do not count."""
    for rows in closed:
        columns = rows.differences(columns)
    return columns
