r"""A dual point that satisfies its equations exactly, as far as a certificate has to know it.

A column without a penalty demands :math:`A_j'y = t_j` exactly: however small the rest is, an x_j that is long enough
makes it matter. No y in floating point satisfies such equations, but a real one next to it does, and it is enough to
know how near. Let B be the columns, :math:`\delta = B'y - t`, P as many rows as there are columns and M the scaled
matrix :math:`R_P B_P D`, where R is the room in which each y_i may move, and D makes the columns equally long. With an
approximate inverse X of M and :math:`E = I - X M`, :math:`\alpha = \|E\|_\infty < 1`,

.. math::

    w = M^{-\top} D\delta = X^\top (I - E^\top)^{-1} D\delta, \qquad
    |w| \le |X|^\top \left( |D\delta| + \tfrac{\alpha}{1-\alpha} \|D\delta\|_1 \mathbf 1 \right),

and y - R_P w satisfies the equations exactly (Rump 2010, Verification methods, section 10, for the bound of the
inverse). All scalings are powers of two and each number has the unit of its own row or column, so that the result does
not depend on units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from ..common.arrays import Indices, Vector
from ..common.rounded import UNIT, Rounded
from ..operators.dense import Dense

ROUNDS = 20
"""Steps towards the equations."""

SETTLED = 64 * UNIT
"""Size of a rest, relative to the terms of its sum, that a further step does not make smaller."""

DEPENDENT = 2.0**-40
"""Columns count as dependent if elimination leaves less than this of their length; then that is verified."""

SHRINK = (1.0, 1.0 - 2.0**-44, 1.0 - 2.0**-30)
"""Factors of y that are tried in turn: rows at a bound of their domain can move after a factor below 1."""

MOST_WORK = 1e10
"""Multiply-adds that the factorisation of one balance may take."""


class Balanced(NamedTuple):
    """A point with a radius per row: within it, a real point satisfies the equations exactly."""

    y: Vector
    radius: Vector


class Columns(NamedTuple):
    """Columns of A that are to be balanced, the errors of their entries if they are sums, and the values of A_j'y."""

    entries: Vector
    error: Vector | None
    target: Vector


def balance(columns: Columns, y: Vector, lower: Vector, upper: Vector, unit: Vector) -> Balanced | None:
    """Return a point near y with B'y = t exactly, within lower and upper; None if none was found.

    ``unit`` is the size of a step per row, in the unit of the row, where the row has no bounds.
    """
    used = np.flatnonzero(np.any(columns.entries != 0, axis=0) | (columns.target != 0))
    if used.size == 0 or not (np.any(y) or np.any(columns.target)):
        return Balanced(y, np.zeros(y.size))
    if used.size < columns.target.size:
        columns = Columns(
            columns.entries[:, used], None if columns.error is None else columns.error[:, used], columns.target[used]
        )
    if columns.entries.shape[0] * float(used.size) ** 2 > MOST_WORK or used.size > y.size:
        return None
    interior = bool(np.all((lower <= 0) & (upper >= 0)))
    for factor in SHRINK if interior else SHRINK[:1]:
        found = _balance(columns, factor * y, lower, upper, unit)
        if found is not None:
            return found
    return None


def _balance(columns: Columns, y: Vector, lower: Vector, upper: Vector, unit: Vector) -> Balanced | None:
    B, _, target = columns
    operator = Dense(np.asfortranarray(B))
    for _ in range(ROUNDS):
        room = _room(y, lower, upper, unit)
        length, R, order, rank = _factored(room, B)
        if rank == 0:
            return None
        rest = operator.rmatvec_rounded(y, precise=True)
        delta = (rest.high - target) + rest.low
        if np.all(np.abs(delta) <= SETTLED * (rest.size + np.abs(target))):
            break
        kept, own = order[:rank], R[:rank, :rank]
        step = linalg.solve_triangular(own, (delta * length)[kept], trans=1)
        step = linalg.solve_triangular(own, step) * length[kept]
        y = np.clip(y - room * (room * (B[:, kept] @ step)), lower, upper)
    kept = np.sort(order[:rank])
    others = np.sort(order[rank:])
    if others.size and not _exactly_dependent(B, np.maximum(room, unit), target, kept, others):
        return None
    return _verified(columns, y, kept, room)


def _room(y: Vector, lower: Vector, upper: Vector, unit: Vector) -> Vector:
    """Return how far each y_i may move, as a power of two: half of the distance to the nearer bound, or its unit."""
    room = np.minimum(y - lower, upper - y)
    mantissa, exponent = np.frexp(np.where(np.isfinite(room), room, unit))
    return np.where(mantissa > 0, np.ldexp(1.0, exponent - 2), 0.0)


def _factored(room: Vector, B: Vector) -> tuple[Vector, Vector, Indices, int]:
    """Return powers of two that make the columns of diag(room) B equally long, then R, the order and the rank of QR."""
    M = room[:, None] * B
    _, exponent = np.frexp(np.max(np.abs(M), axis=0))
    length = np.ldexp(1.0, -exponent)
    if not np.all(np.isfinite(M)):
        return length, M, np.arange(0), 0
    R, order = linalg.qr(M * length, mode="r", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(R))
    return length, R, order, int(np.count_nonzero(diagonal > DEPENDENT * diagonal[0])) if diagonal[0] > 0 else 0


def _verified(columns: Columns, y: Vector, kept: Indices, room: Vector) -> Balanced | None:
    """Return y with the radius within which some point is proved to satisfy the equations of the kept columns."""
    B, size = columns.entries[:, kept], kept.size
    error = None if columns.error is None else columns.error[:, kept]
    M = room[:, None] * B
    _, exponent = np.frexp(np.max(np.abs(M), axis=0))
    length = np.ldexp(1.0, -exponent)
    _, swaps, info = lapack.dgetrf(M * length)
    if info != 0:
        return None
    rows = np.arange(y.size)
    for i, other in enumerate(swaps.tolist()):
        rows[[i, other]] = rows[[other, i]]
    rows = rows[:size]
    own = M[rows] * length
    X = np.linalg.inv(own)
    spread = np.abs(np.eye(size) - X @ own) + (size + 3) * UNIT * (np.abs(X) @ np.abs(own) + np.eye(size))
    if error is not None:
        spread += np.abs(X) @ (room[rows, None] * error[rows] * length) * (1 + 2.0**-20)
    alpha = float(np.max(np.sum(spread, axis=1))) * (1 + 2.0**-20)
    if not alpha < 0.5:
        return None
    rest = _rest(columns.target[kept], Dense(np.asfortranarray(B)).rmatvec_rounded(y, precise=True))
    if error is not None:
        rest += np.abs(error).T @ np.abs(y) * (1 + 2.0**-20)
    rest *= length
    moved = np.abs(X).T @ (rest + alpha / (1 - alpha) * np.sum(rest)) * (1 + 2.0**-20)
    if not np.all(moved <= 1.0):
        return None
    radius = np.zeros(y.size)
    radius[rows] = room[rows] * moved
    return Balanced(y, radius)


def _rest(target: Vector, product: Rounded) -> Vector:
    """Return an upper bound on |B'y - t|."""
    difference = product.high - target
    own = difference - product.high
    lost = (product.high - (difference - own)) + (-target - own)
    rest = np.abs(difference) + np.abs(lost + product.low) + product.error
    return rest * (1 + 2.0**-40)


def _exactly_dependent(B: Vector, unit: Vector, target: Vector, kept: Indices, others: Indices) -> bool:
    """Return whether the other columns are sums and differences of the kept ones, exactly, and so are the targets.

    Up to a power of two per column, in which products are exact.
    """
    M = unit[:, None] * B
    _, exponent = np.frexp(np.max(np.abs(M), axis=0))
    length = np.ldexp(1.0, -exponent)
    whole = np.round(np.linalg.lstsq(M[:, kept] * length[kept], M[:, others] * length[others], rcond=None)[0])
    if np.any(np.abs(whole) > 1):
        return False
    T = whole * length[kept][:, None] / length[others]
    for j, multiples in zip(others, T.T, strict=True):
        left, goal = -B[:, j], -target[j]
        for k, factor in zip(kept[multiples != 0], multiples[multiples != 0], strict=True):
            term = B[:, k] * factor
            total = left + term
            if np.any((total - left != term) | (total - term != left)):
                return False
            left, goal = total, goal + factor * target[k]
        if np.any(left) or goal != 0:
            return False
    return True
