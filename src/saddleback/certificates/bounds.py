r"""Intervals that contain every optimum, from a pair of points alone.

With z = -A'y and u* = Ax*, the inequality of Fenchel and Young gives for every optimum x*

.. math::

    \sum_j \left[ f_j(x_j^*) + f_j^*(z_j) - \langle x_j^*, z_j \rangle \right] +
    \sum_i \left[ g_i(u_i^*) + g_i^*(y_i) - u_i^* y_i \right] = P(x^*) - D(y) \le P(x) - D(y),

and no term is negative. So each term is at most the gap, which leaves an interval for each x_j and u_i. Curvature of
the loss leaves less: a ball for the dual optimum, which decides which columns are 0, and an ellipsoid for the columns
that are left. docs/theory.md has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from ..common.arrays import Indices, Vector
from ..functions.calculus import parts_of
from ..functions.contract import ROUNDING
from ..functions.points import DensePoint, Point
from ..functions.traits import Enclosed, curvature_between, enclosure, unbounded, with_slopes
from ..linear_programs.program import at_hand
from ..machine.threads import limited
from ..model.model import Model
from ..operators import Operator
from ..operators.deferred_points import Image, forward
from ..problem import Problem
from ..result import Certificate
from .certificate import (
    MAX_PROJECTED,
    DualSide,
    PrimalSide,
    dual_side,
    pair,
    primal_side,
    trivial_side,
    unpenalised_part,
)
from .vertices import unique_vertex

EVERY, NONE, UNDECIDED = "in every solution", "in none", "undecided at this gap"

ALLOWED_ROUNDING = 1e-12
"""Part of the terms of both objectives that is added to the gap for their rounding."""

WORK, LEAST_WORK = 8.0, 1e8
"""Most products for the matrix of the ellipsoid, the former per entry of A: fast ones, less than a pass."""

FACTORED, LEAST_FACTORED = 20.0, 1e9
"""Most work for its factorisation, the number of its columns to the third power, the former per entry of A."""

SPARSE = 10
"""A matrix is treated as sparse if less than one in ten of its entries is not 0."""

BALANCED = 1e-11
"""Relative size of A_0'y that rounding explains."""

SINGULAR = 1e-10
"""Pivots of that matrix below this, relative to its diagonal, count as 0."""


class Ends(NamedTuple):
    """The ends of intervals."""

    lower: Any
    upper: Any


@dataclass(frozen=True)
class Bounds:
    """Intervals that contain the value of every optimum.

    Attributes
    ----------
    lower, upper : ndarray or list of ndarray
        The ends of the interval of each coefficient, in the shape of x; infinite where nothing is known.
    groups : tuple of (ndarray, ndarray), list or None
        The ends of the interval of the norm of each group, in the order of the groups; None for a penalty without
        groups. A list with one entry per penalty if x is a list.
    fitted : tuple of (ndarray, ndarray) or list
        The ends of the interval of each fitted value, the entries of Ax, in the shape of y.
    residuals : tuple of (ndarray, ndarray), list or None
        Those of b - Ax; None for a loss without targets b.
    decided : ndarray or list of ndarray
        For each coefficient "in every solution" if its interval excludes 0, "in none" if it is 0 in every optimum, and
        otherwise "undecided at this gap".
    gap : float
        What the gap of the points can be at most, with rounding. It is infinite if x or y is not feasible: then the
        gap says nothing about the optimum.
    unique : bool
        Whether the optimum is proved to be a single vertex, as for linear programs and for losses and penalties with
        kinks alone.
    """

    lower: Any
    upper: Any
    groups: Any
    fitted: Any
    residuals: Any
    decided: Any
    gap: float
    unique: bool

    def count(self, decision: str) -> int:
        """Return the number of coefficients with a decision, one of the three texts of ``decided``."""
        blocks = self.decided if isinstance(self.decided, list) else [self.decided]
        return sum(int(np.count_nonzero(block == decision)) for block in blocks)

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.count(decision)} {decision}" for decision in (EVERY, NONE, UNDECIDED))
        return f"Bounds({counts}; gap={self.gap:.2g}{', a single optimum' if self.unique else ''})"


def bounds(problem: Problem, x: Any, y: Any) -> Bounds:
    """Return intervals that contain every optimum, given any primal and dual point.

    Parameters
    ----------
    problem : Problem
        The problem that the points are meant to solve.
    x : array-like or list of array-like
        Primal point, in the shape of the problem.
    y : array-like or list of array-like
        Dual point, in the shape of the data of the loss, such as ``result.y``.

    Returns
    -------
    Bounds
        Narrow if the gap of the points is small; always valid, up to the rounding of single operations.

    Examples
    --------
    >>> import numpy as np, saddleback as sb
    >>> problem = sb.Problem(sb.L1(1.0), np.eye(3), sb.Squared([3.0, -0.5, 1.5]))
    >>> result = sb.solve(problem, tol=1e-9)
    >>> sb.bounds(problem, result.x, result.y).decided.tolist()
    ['in every solution', 'in none', 'in every solution']
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem is {type(problem).__name__}: expected a saddleback.Problem")
    problem = problem.refreshed()
    model, point, dual = problem.model, problem.flatten_x(x), problem.flatten_y(y)
    if model.A.traits.holders is not None:
        raise TypeError("bounds need all columns: the columns of this problem are on several processes")
    with limited(None), np.errstate(all="ignore"):
        return _shaped(problem, _enclosed(model, point, dual))


class _Flat(NamedTuple):
    """The intervals as flat vectors, and the bounds on the norms of the blocks that the gap gives."""

    x: Ends
    u: Ends
    slope: Vector
    gap: float
    unique: bool
    lengths: Ends


def _enclosed(model: Model, x: Point, y: Vector) -> _Flat:
    primal, dual = _feasible_sides(model, x, y)
    gap = _largest_gap(model, pair(model, primal, dual), primal, dual)
    z = dual.z
    columns = _domain(model)
    rows = Ends(*unbounded(model.A.shape[0]))
    lengths = Ends(np.zeros(len(model.blocks)), np.full(len(model.blocks), np.inf))
    if np.isfinite(gap):
        rows = _meet(rows, Ends(*enclosure(model.g, dual.y, gap)))
        columns = _meet(columns, Ends(*enclosure(model.f, z, gap)))
        columns = _meet(columns, _by_dual_ball(model, dual, rows, gap))
        columns, shortest = _by_ellipsoid(model, dual, rows, columns, gap)
        lengths = Ends(shortest, lengths.upper)
    vertex = unique_vertex(model, primal.x, dual.y)
    if vertex is not None:
        columns, rows = _meet(columns, Ends(*vertex.x)), _meet(rows, Ends(*vertex.u))
    return _Flat(columns, rows, z, gap, vertex is not None, lengths)


def _feasible_sides(model: Model, x: Point, y: Vector) -> tuple[PrimalSide, DualSide]:
    """Return the evaluated points, x after a projection on the domain of f."""
    at = x.vector()
    inside = at if model.f.domain.everything else model.f.domain.project(at)
    point = x if inside is at else DensePoint(inside)
    u = DensePoint(_product(model.A, point)) if model.A.traits.identity_scales is None else Image(model.A, point)
    dual = dual_side(model, y, point, u)
    return primal_side(model, point, u), dual if _balances(model, dual.y) else trivial_side(model)


def _balances(model: Model, y: Vector) -> bool:
    """Return whether A_0'y = -c_0 holds for the unpenalised columns, up to rounding relative to y itself.

    For the value of the bound it is enough that it holds relative to the point that was offered, which may be longer.
    """
    if not (model.loss_bounded_below and 0 < len(model.unpenalised_sums) <= MAX_PROJECTED):
        return True  # then the violation is part of the certificate
    columns, slopes = unpenalised_part(model)
    size = np.abs(columns).T @ np.abs(y) + np.abs(slopes)
    return bool(np.all(np.abs(columns.T @ y + slopes) <= BALANCED * size))


def _product(A: Operator, x: Point) -> Vector:
    """Return A x, by the columns that are not 0 if these are few."""
    at = x.vector()
    used = np.flatnonzero(at)
    if at_hand(A) and 2 * used.size < at.size:
        return A.matvec(at[used], used)
    return forward(A, x)


def _largest_gap(model: Model, certificate: Certificate, primal: PrimalSide, dual: DualSide) -> float:
    """Return the gap with its rounding; infinite if a point is not feasible, so that the gap proves nothing."""
    off_x, off_u = primal.distances
    rounding = ROUNDING * model.row_lengths * float(np.linalg.norm(primal.x))
    outside = off_x > 0 or (off_u > 0 and bool(np.any(np.abs(primal.u_violation) > rounding)))
    if outside or dual.distance > 0 or not np.isfinite(certificate.gap):
        return np.inf
    terms = abs(primal.value) + abs(dual.value) + dual.length * primal.reach
    return max(certificate.gap, 0.0) + ALLOWED_ROUNDING * terms


def _domain(model: Model) -> Ends:
    """Return the bounds that f itself puts on each coordinate."""
    low, high = (model.f.domain.project(end) for end in unbounded(model.A.shape[1]))
    return Ends(np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))


def _meet(first: Ends, second: Ends) -> Ends:
    """Return the common part of intervals; what lies between them if rounding has left none."""
    low, high = np.maximum(first.lower, second.lower), np.minimum(first.upper, second.upper)
    return Ends(np.minimum(low, high), np.maximum(low, high))


def _by_dual_ball(model: Model, dual: DualSide, rows: Ends, gap: float) -> Ends:
    r"""Return what the slopes z* of all dual optima leave of x.

    With L the largest curvature of the loss between the ends of its rows, :math:`\|y - y^*\|^2 \le 2 L\, \text{gap}`,
    and so :math:`|z_j - z_j^*| \le \|A_j\| \sqrt{2 L\, \text{gap}}`. The optimum is where f has such a slope.
    """
    most = curvature_between(model.g, *rows)[1]
    if not (model.A.traits.entries_known and model.A.traits.identity_scales is None and np.all(np.isfinite(most))):
        return Ends(*unbounded(model.A.shape[1]))
    radius = np.sqrt(2.0 * gap * float(most.max(initial=0.0))) + ALLOWED_ROUNDING * dual.length
    far = radius * model.column_lengths
    return Ends(*with_slopes(model.f, dual.z - far, dual.z + far))


def _by_ellipsoid(model: Model, dual: DualSide, rows: Ends, columns: Ends, gap: float) -> tuple[Ends, Vector]:
    r"""Return the intervals of x after those of an ellipsoid, and the least norm of each block.

    With c_i the least curvature of the loss between the ends of a row, q_j that of the penalty, and e and p the points
    at which the excesses are 0,

    .. math:: \sum_i c_i ((A x^*)_i - e_i)^2 + \sum_j q_j (x_j^* - p_j)^2 \le 2\, \text{gap}.

    It holds for some of the rows as well. The columns S whose intervals are longer than 0 are in an ellipsoid with the
    matrix H = A_S'C A_S + Q, so that :math:`|x_j^* - m_j| \le \sqrt{2\, \text{gap}\, (H^{-1})_{jj}}`.
    """
    shortest = np.zeros(len(model.blocks))
    left = np.flatnonzero(columns.lower < columns.upper)
    if not left.size or not at_hand(model.A):
        return columns, shortest
    curved = curvature_between(model.g, *rows)[0]
    bent = curvature_between(model.f, *columns)[0][left]
    chosen, is_sparse = _chosen_rows(model.A, np.where(np.isfinite(curved), curved, 0.0), left.size)
    if chosen is None:
        return columns, shortest
    block, weight = model.A.restrict(chosen, left).entries(compressed=is_sparse), curved[chosen]
    centre = enclosure(model.g, dual.y, 0.0)[0][chosen] - _fixed_part(model.A, columns, chosen)
    flat = np.where(bent > 0, enclosure(model.f, dual.z, 0.0)[0][left], 0.0)
    H = (block.T * weight) @ block if not is_sparse else (block.T @ sparse.diags_array(weight) @ block).toarray()
    H[np.diag_indices(left.size)] += bent
    pull = block.T @ (weight * centre) + bent * flat
    inverse = _inverse(H) if np.all(np.isfinite(pull)) else None
    if inverse is None:
        return columns, shortest
    middle = inverse @ pull
    size = np.abs(block).T @ (weight * np.abs(centre)) + bent * np.abs(flat) + np.abs(H) @ np.abs(middle)
    rounding = np.abs(inverse) @ (np.abs(pull - H @ middle) + ROUNDING * size)
    spread = np.diag(inverse)
    distance = np.sqrt(2.0 * gap * spread) + rounding
    low, high = columns.lower.copy(), columns.upper.copy()
    low[left], high[left] = _meet(Ends(low[left], high[left]), Ends(middle - distance, middle + distance))
    squares, trace, off = (np.zeros(model.A.shape[1]) for _ in range(3))
    squares[left], trace[left], off[left] = middle**2, spread, rounding**2
    norms, traces, offs = (model.blocks.sums(each) for each in (squares, trace, off))
    shortest = np.maximum(np.sqrt(norms) - np.sqrt(2.0 * gap * traces) - np.sqrt(offs), 0.0)
    return Ends(low, high), shortest


def _inverse(H: Vector) -> Vector | None:
    """Return the inverse of a matrix; None unless it is clearly positive definite."""
    unit = np.sqrt(np.diag(H))
    if not np.all(unit > 0):
        return None
    try:
        factor = linalg.cholesky(H / np.outer(unit, unit), lower=True)
    except linalg.LinAlgError:
        return None
    if np.diag(factor).min() ** 2 < SINGULAR:
        return None
    scaled: Vector = linalg.cho_solve((factor, True), np.eye(unit.size))
    inverse: Vector = scaled / np.outer(unit, unit)
    return inverse


def _chosen_rows(A: Operator, curved: Vector, width: int) -> tuple[Indices | None, bool]:
    """Return rows with curvature, as many as there is work for, and whether they are sparse; None if it is too much."""
    rows, stored = np.flatnonzero(curved > 0), A.traits.stored
    is_sparse = SPARSE * stored < A.shape[0] * A.shape[1]
    if width**3 > max(FACTORED * stored, LEAST_FACTORED):
        return None, is_sparse
    allowed = rows.size if is_sparse else int(max(WORK * stored, LEAST_WORK) / width**2)
    if rows.size > allowed:
        rows = rows[np.linspace(0, rows.size - 1, allowed).astype(np.int64)]
    return rows, is_sparse


def _fixed_part(A: Operator, columns: Ends, rows: Indices) -> Vector:
    """Return what the columns contribute whose value is known and not 0."""
    known = np.flatnonzero((columns.lower == columns.upper) & (columns.lower != 0))
    return A.matvec(columns.lower[known], known)[rows] if known.size else np.zeros(rows.size)


def _shaped(problem: Problem, flat: _Flat) -> Bounds:
    """Return the intervals in the shapes of the problem."""
    low, high = (problem.shape_x(DensePoint(end)) for end in flat.x)
    fitted = _pairs(problem.has_rows, *(problem.shape_y(end) for end in flat.u))
    groups = _group_norms(problem, flat)
    decided = np.where(
        (flat.x.lower > 0) | (flat.x.upper < 0),
        EVERY,
        np.where((flat.x.lower == 0) & (flat.x.upper == 0), NONE, UNDECIDED),
    ).astype(object)
    own = _split(decided, problem.x_shapes)
    targets = [getattr(term, "b", None) for term in problem.losses]
    residuals = [
        None if b is None else Ends(b - own_fit.upper, b - own_fit.lower)
        for b, own_fit in zip(targets, fitted if problem.has_rows else [fitted], strict=True)
    ]
    return Bounds(
        lower=low,
        upper=high,
        groups=groups if problem.is_list else groups[0],
        fitted=fitted,
        residuals=residuals if problem.has_rows else residuals[0],
        decided=own if problem.is_list else own[0],
        gap=flat.gap,
        unique=flat.unique,
    )


def _pairs(several: bool, low: Any, high: Any) -> Any:
    return [Ends(*each) for each in zip(low, high, strict=True)] if several else Ends(low, high)


def _split(values: Any, shapes: Any) -> list[Any]:
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(values, ends[:-1]), shapes, strict=True)]


def _group_norms(problem: Problem, flat: _Flat) -> list[Ends | None]:
    """Return the ends of the norms of the groups of each penalty; None for a penalty that is a sum over columns."""
    model, first = problem.model, 0
    found: list[Ends | None] = []
    least = np.where((flat.x.lower > 0) | (flat.x.upper < 0), np.minimum(*map(np.abs, flat.x)), 0.0)
    most = np.maximum(*map(np.abs, flat.x))
    for function, own in parts_of(model.f):
        blocks, size = function.blocks(), least[own].size
        stop = first + len(blocks)
        if isinstance(function, Enclosed) and blocks.sizes.max(initial=1) > 1 and len(blocks) < size:
            low = np.maximum(np.sqrt(blocks.sums(least[own] ** 2)), flat.lengths.lower[first:stop])
            high = np.sqrt(blocks.sums(most[own] ** 2))
            longest = function.longest(flat.slope[own], flat.gap) if np.isfinite(flat.gap) else None
            high = high if longest is None else np.minimum(high, longest)
            found.append(Ends(np.minimum(low, high), high))
        else:
            found.append(None)
        first = stop
    return found
