"""An oracle in rational arithmetic: the simplex method with Bland's rule, for linear programs of a few rows.

Minimise cost'x subject to lower <= x <= upper and row_lower <= Ax <= row_upper, where every float is an exact rational
number. It shares no code with the library, and nothing is rounded.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

OPTIMAL, INFEASIBLE, UNBOUNDED = "OPTIMAL", "INFEASIBLE", "UNBOUNDED"


def verdict(cost, lower, upper, A, row_lower, row_upper):
    """Return "OPTIMAL" and the optimum, or "INFEASIBLE" or "UNBOUNDED" and None."""
    exact = [[Fraction(float(value)) for value in row] for row in np.atleast_2d(A)]
    columns, constant, costs = _nonnegative(cost, lower, upper)
    rows, rhs = [], []
    for row, low, high in zip(exact, row_lower, row_upper, strict=True):
        shift = sum((a * offset for a, offset in zip(row, constant, strict=True)), Fraction(0))
        entries = [sign * row[j] for j, sign in columns]
        sides = {(1, high), (-1, low)} if low != high else {(0, high)}
        for kind, bound in sides:
            if np.isfinite(bound):
                rows.append(([-a for a in entries] if kind < 0 else entries, kind != 0))
                rhs.append(-(Fraction(float(bound)) - shift) if kind < 0 else Fraction(float(bound)) - shift)
    for j, (low, high) in enumerate(zip(lower, upper, strict=True)):
        if np.isfinite(low) and np.isfinite(high):
            rows.append(([Fraction(int(k == j)) for k, _ in columns], True))
            rhs.append(Fraction(float(high)) - Fraction(float(low)))
    offset = sum((Fraction(float(c)) * at for c, at in zip(cost, constant, strict=True)), Fraction(0))
    status, value = _two_phases(rows, rhs, costs)
    return status, None if value is None else value + offset


def _nonnegative(cost, lower, upper):
    """Return x as a constant plus a signed sum of nonnegative variables, and the cost of each variable."""
    columns, constant, costs = [], [], []
    for j, (c, low, high) in enumerate(zip(cost, lower, upper, strict=True)):
        signs = [1] if np.isfinite(low) else ([-1] if np.isfinite(high) else [1, -1])
        constant.append(Fraction(float(low if np.isfinite(low) else high)) if len(signs) == 1 else Fraction(0))
        for sign in signs:
            columns.append((j, sign))
            costs.append(sign * Fraction(float(c)))
    return columns, constant, costs


def _two_phases(rows, rhs, costs):
    """Return the verdict on min costs'v with v >= 0: a row with a slack is <= its right-hand side, others are equal."""
    n = len(costs)
    slacks = [i for i, (_, has_slack) in enumerate(rows) if has_slack]
    width = n + len(slacks)
    table, basis = [], []
    for i, ((entries, _), side) in enumerate(zip(rows, rhs, strict=True)):
        line = list(entries) + [Fraction(int(i == s)) for s in slacks]
        if side < 0:
            line, side = [-a for a in line], -side
        table.append([*line, *(Fraction(int(i == k)) for k in range(len(rows))), side])
        basis.append(width + i)
    phase = [Fraction(0)] * width + [Fraction(1)] * len(rows)
    if _minimise(table, basis, phase, width + len(rows)) is None:
        raise AssertionError("the first phase has a bound")
    if sum((table[i][-1] for i, b in enumerate(basis) if b >= width), Fraction(0)) > 0:
        return INFEASIBLE, None
    _leave(table, basis, width)
    value = _minimise(table, basis, costs + [Fraction(0)] * (width - n + len(rows)), width)
    return (UNBOUNDED, None) if value is None else (OPTIMAL, value)


def _minimise(table, basis, costs, allowed):
    """Return the minimum over the first columns, or None if it is unbounded. Bland's rule does not cycle."""
    while True:
        reduced = list(costs[:allowed])
        for i, b in enumerate(basis):
            if costs[b]:
                reduced = [r - costs[b] * a for r, a in zip(reduced, table[i][:allowed], strict=True)]
        entering = next((j for j, r in enumerate(reduced) if r < 0), None)
        if entering is None:
            return sum((costs[b] * table[i][-1] for i, b in enumerate(basis)), Fraction(0))
        ratios = [(line[-1] / line[entering], basis[i], i) for i, line in enumerate(table) if line[entering] > 0]
        if not ratios:
            return None
        _pivot(table, basis, min(ratios)[2], entering)


def _leave(table, basis, width):
    """Remove artificial variables from the basis, or redundant rows from the table."""
    for i in reversed(range(len(table))):
        if basis[i] >= width:
            entering = next((j for j in range(width) if table[i][j]), None)
            if entering is None:
                del table[i], basis[i]
            else:
                _pivot(table, basis, i, entering)


def _pivot(table, basis, row, column):
    pivot = table[row][column]
    table[row] = [a / pivot for a in table[row]]
    for i, line in enumerate(table):
        if i != row and line[column]:
            factor = line[column]
            table[i] = [a - factor * b for a, b in zip(line, table[row], strict=True)]
    basis[row] = column
