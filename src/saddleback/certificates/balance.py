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
not depend on units. Columns with few entries have rows that form a triangle: see ``routing.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from ..common.arrays import Flags, Indices, Parameter, Vector
from ..common.rounded import UNIT, Rounded
from ..operators import Operator
from ..operators.dense import Dense

ROUNDS = 20
"""Steps towards the equations."""

SETTLED = 64 * UNIT
"""Size of a rest, relative to the terms of its sum, that a further step does not make smaller."""

FASTER = 2.0**-4
"""Share to which a step should reduce the rest; otherwise the next step has a new factorisation."""

STANDING = 0.75
"""Share to which a step with a new factorisation has to reduce the rest; otherwise no further step helps."""

DEPENDENT = 2.0**-40
"""Columns count as dependent if elimination leaves less than this of their length; then that is verified."""

SHRINK = (1.0, 1.0 - 2.0**-44, 1.0 - 2.0**-30)
"""Factors of y that are tried in turn: rows at a bound of their domain can move after a factor below 1."""

VANISHED = 2.0**-100
"""Share of itself to which a y_i that has to be 0 may shrink before it is 0."""


class Balanced(NamedTuple):
    """A point with a radius per row: within it, a real point satisfies the equations exactly if that is ``proved``."""

    y: Vector
    radius: Vector
    proved: bool = True


class Limits(NamedTuple):
    """The bounds of y, and the size of a step per row, in the unit of the row, where the row has no bounds."""

    lower: Vector
    upper: Vector
    unit: Vector

    def room(self, y: Vector) -> Vector:
        """Return how far each y_i may move, as a power of two: half of the distance to a bound, or its unit."""
        room = np.minimum(y - self.lower, self.upper - y)
        mantissa, exponent = np.frexp(np.where(np.isfinite(room), room, self.unit))
        return np.where(mantissa > 0, np.ldexp(1.0, exponent - 2), 0.0)

    @property
    def interior(self) -> bool:
        """Whether y may shrink."""
        return bool(np.all((self.lower <= 0) & (self.upper >= 0)))


@dataclass(frozen=True)
class Columns:
    """Columns of A, or sums of them, that are to be balanced by some of the rows.

    Attributes
    ----------
    entries : their entries in these rows.
    target : the values that the products have to have.
    product : returns the products with a y in all rows, with bounds on the rounding.
    rows : these rows; by default all.
    error : bounds on the errors of the entries; None if they are exact.
    off : bounds on the errors of the targets, which count as those of the products.
    """

    entries: Vector
    target: Vector
    product: Callable[[Vector], Rounded]
    rows: Indices | None = None
    error: Vector | None = None
    off: Parameter = 0.0

    @classmethod
    def of(cls, entries: Vector, target: Vector, error: Vector | None = None, off: Parameter = 0.0) -> Columns:
        """Return columns with all of their entries; the targets are known up to ``off``."""
        operator = Dense(np.asfortranarray(entries))

        def product(y: Vector) -> Rounded:
            found = operator.rmatvec_rounded(y, precise=True)
            if error is None and not np.any(off):
                return found
            moved = 0.0 if error is None else error.T @ np.abs(y)
            return found._replace(error=(found.error + moved + off) * (1 + 2.0**-20))

        return cls(entries, target, product, error=error, off=off)


def sums_of(A: Operator, indicators: Vector, target: Vector, off: Parameter = 0.0) -> Columns:
    """Return sums of columns, with bounds on the rounding of their entries and of the targets."""
    sums = [A.matvec_rounded(indicator, precise=True) for indicator in indicators]
    error = np.column_stack([each.error + np.abs(each.low) for each in sums])
    return Columns.of(np.column_stack([each.high for each in sums]), target, error if np.any(error) else None, off)


def balance(columns: Columns, y: Vector, limits: Limits) -> Balanced | None:
    """Return a point near y with B'y = t within the limits, exactly if that can be proved; None if none was found."""
    rest = columns.product(y)
    if np.all(_settled(rest, columns.target)):
        return Balanced(y, np.zeros(y.size))
    used = np.flatnonzero(np.any(columns.entries != 0, axis=0))
    others = np.setdiff1d(np.arange(columns.target.size), used)
    if not used.size or np.any(rest.size[others]) or np.any(columns.target[others]):
        return None
    first = None
    for factor in SHRINK if limits.interior else SHRINK[:1]:
        found = _balance(columns, used, factor * y, limits)
        if found is None or found.proved:
            return found
        first = first or found
    return first


def _balance(columns: Columns, used: Indices, y: Vector, limits: Limits) -> Balanced | None:
    B, target = columns.entries[:, used], columns.target[used]
    rows = np.arange(y.size) if columns.rows is None else columns.rows
    y, least, previous = y.copy(), VANISHED * np.abs(y[rows]), np.inf
    room = limits.room(y)[rows]
    factors, fresh = _factored(room, B), False
    for _ in range(ROUNDS):
        rest = columns.product(y).part(used)
        delta = (rest.high - target) + rest.low
        if not np.all(np.isfinite(delta)):
            return None
        size = rest.size + np.abs(target)
        share = float(np.max(np.divide(np.abs(delta), size, out=np.zeros_like(size), where=size > 0)))
        if share <= SETTLED or (fresh and share > STANDING * previous):
            break
        fresh = share > FASTER * previous
        if fresh:
            room = limits.room(y)[rows]
            factors = _factored(room, B)
        if factors.rank == 0:
            break
        previous = share
        kept, own = factors.order[: factors.rank], factors.R[: factors.rank, : factors.rank]
        step = linalg.solve_triangular(own, (delta * factors.length)[kept], trans=1, check_finite=False)
        step = linalg.solve_triangular(own, step, check_finite=False) * factors.length[kept]
        moved = y[rows] - room * (room * (B[:, kept] @ step))
        y[rows] = np.where(np.abs(moved) < least, 0.0, moved)
        y = np.clip(y, limits.lower, limits.upper)
    room = limits.room(y)[rows]
    live = np.any(room[:, None] * B != 0, axis=0)
    if not np.all(live) and not np.all(_settled(columns.product(y).part(used), target)[~live]):
        return Balanced(y, np.zeros(y.size), proved=False)
    if not np.any(live):
        return Balanced(y, np.zeros(y.size))
    kept, others = (np.sort(part[live[part]]) for part in np.split(factors.order, [factors.rank]))
    exact = columns.error is None and columns.rows is None
    if kept.size and (
        not others.size or (exact and _exactly_dependent(B, np.maximum(room, limits.unit), target, kept, others))
    ):
        radius = _radius(columns, used[kept], y, room)
        if radius is not None:
            return Balanced(y, radius)
    return Balanced(y, np.zeros(y.size), proved=False)


def _settled(rest: Rounded, target: Vector) -> Flags:
    """Return which products are equal to their targets: columns without a row that can move have to be."""
    settled: Flags = (rest.high == target) & (rest.low == 0) & (rest.error == 0)
    return settled


class _Factors(NamedTuple):
    """Powers of two that make columns equally long, and R, the order and the rank of the scaled columns."""

    length: Vector
    R: Vector
    order: Indices
    rank: int


def _factored(room: Vector, B: Vector) -> _Factors:
    M = room[:, None] * B
    _, exponent = np.frexp(np.max(np.abs(M), axis=0))
    length = np.ldexp(1.0, -exponent)
    if not np.all(np.isfinite(M)):
        return _Factors(length, M, np.arange(0), 0)
    R, order = linalg.qr(M * length, mode="r", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(R))
    rank = int(np.count_nonzero(diagonal > DEPENDENT * diagonal[0])) if diagonal[0] > 0 else 0
    return _Factors(length, R, order, rank)


def _radius(columns: Columns, kept: Indices, y: Vector, room: Vector) -> Vector | None:
    """Return the radius around y within which a point satisfies the equations of the kept columns; None if unproved."""
    B, size = columns.entries[:, kept], kept.size
    error = None if columns.error is None else columns.error[:, kept]
    M = room[:, None] * B
    _, exponent = np.frexp(np.max(np.abs(M), axis=0))
    length = np.ldexp(1.0, -exponent)
    _, swaps, info = lapack.dgetrf(M * length)
    if info != 0:
        return None
    rows = np.arange(room.size)
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
    rest = distance(columns.product(y).part(kept), columns.target[kept]) * length
    moved = np.abs(X).T @ (rest + alpha / (1 - alpha) * np.sum(rest)) * (1 + 2.0**-20)
    if not np.all(moved <= 1.0):
        return None
    radius = np.zeros(y.size)
    radius[rows if columns.rows is None else columns.rows[rows]] = room[rows] * moved
    return radius


def distance(product: Rounded, target: Vector) -> Vector:
    """Return an upper bound on |B'y - t|."""
    difference = product.high - target
    own = difference - product.high
    lost = (product.high - (difference - own)) + (-target - own)
    rest = np.abs(difference) + np.abs(lost + product.low) + product.error
    return rest * (1 + 2.0**-40)


def _exactly_dependent(B: Vector, unit: Vector, target: Vector, kept: Indices, others: Indices) -> bool:
    """Return whether the other columns are sums and differences of the kept ones, exactly, and so are the targets.

    Each column may have a factor that is a power of two: its products are exact.
    """
    M = unit[:, None] * B
    _, exponent = np.frexp(np.max(np.abs(M), axis=0))
    length = np.ldexp(1.0, -exponent)
    found = np.linalg.lstsq(M[:, kept] * length[kept], M[:, others] * length[others], rcond=None)[0]
    counted = np.abs(found) > DEPENDENT
    power = np.exp2(np.round(np.log2(np.abs(found), where=counted, out=np.zeros_like(found))))
    T = np.where(counted, np.sign(found) * power, 0.0) * length[kept][:, None] / length[others]
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
