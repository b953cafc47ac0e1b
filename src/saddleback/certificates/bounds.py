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

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from ..common.arrays import Indices, Vector
from ..common.cached import cached_property
from ..functions.calculus import parts_of
from ..functions.contract import ROUNDING
from ..functions.points import DensePoint, Point
from ..functions.traits import Enclosed, curvature_between, enclosure, touching, unbounded, with_slopes
from ..linear_programs.program import at_hand
from ..machine.threads import limited
from ..model.model import Model
from ..operators import Operator
from ..operators.deferred_points import Image, forward
from ..problem import Problem
from ..result import Certificate
from .sides import (
    MAX_PROJECTED,
    DualSide,
    PrimalSide,
    dual_side,
    pair,
    primal_side,
    trivial_side,
    unpenalised_part,
)
from .vertices import Vertex, is_straight, unique_vertex

EVERY, NONE, UNDECIDED = "in every solution", "in none", "undecided at this gap"
DECISIONS = np.array([UNDECIDED, EVERY, NONE], dtype=object)

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


class Bounds:
    """Intervals that contain the value of every optimum.

    The coefficients are enclosed at once; groups, fitted values and residuals when they are first read.

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

    def __init__(self, problem: Problem, enclosed: _Enclosed) -> None:
        self._problem, self._enclosed = problem, enclosed
        self.unique = enclosed.vertex is not None
        self.lower, self.upper = (problem.shape_x(DensePoint(end)) for end in enclosed.columns)

    @cached_property
    def gap(self) -> float:
        """What the gap of the points can be at most, with rounding."""
        with exact():
            return self._enclosed.gap

    @cached_property
    def decided(self) -> Any:
        """Whether each coefficient is in every solution, in none, or undecided."""
        return _split(decisions(*self._enclosed.columns), self._problem)

    @cached_property
    def groups(self) -> Any:
        """The ends of the intervals of the norms of the groups."""
        with exact():
            found = _group_norms(self._problem, self._enclosed)
        return found if self._problem.is_list else found[0]

    @cached_property
    def fitted(self) -> Any:
        """The ends of the intervals of the fitted values."""
        with exact():
            low, high = (self._problem.shape_y(end) for end in self._enclosed.rows)
        return [Ends(*each) for each in zip(low, high, strict=True)] if self._problem.has_rows else Ends(low, high)

    @cached_property
    def residuals(self) -> Any:
        """The ends of the intervals of the residuals."""
        targets = [getattr(term, "b", None) for term in self._problem.losses]
        found = [
            None if b is None else Ends(b - own.upper, b - own.lower)
            for b, own in zip(targets, self.fitted if self._problem.has_rows else [self.fitted], strict=True)
        ]
        return found if self._problem.has_rows else found[0]

    def count(self, decision: str) -> int:
        """Return the number of coefficients with a decision, one of the three texts of ``decided``."""
        blocks = self.decided if isinstance(self.decided, list) else [self.decided]
        return sum(int(np.count_nonzero(block == decision)) for block in blocks)

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.count(decision)} {decision}" for decision in (EVERY, NONE, UNDECIDED))
        return f"Bounds({counts}; gap={self.gap:.2g}{', a single optimum' if self.unique else ''})"

    def __getstate__(self) -> dict[str, Any]:
        known = {name: getattr(self, name) for name in ("gap", "decided", "groups", "fitted", "residuals")}
        return {name: value for name, value in vars(self).items() if not name.startswith("_")} | known


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
    with exact():
        return Bounds(problem, _Enclosed(model, point, dual))


def decisions(low: Vector, high: Vector) -> Any:
    """Return the decision for each coefficient from the ends of its interval."""
    kinds = ((low > 0) | (high < 0)) + 2 * ((low == 0) & (high == 0)).astype(np.int8)
    return DECISIONS[kinds]


@contextmanager
def exact() -> Iterator[None]:
    """Use all threads of this library and one of the BLAS, and accept infinite values, as in a solve."""
    with limited(None), np.errstate(all="ignore"):
        yield


class _Enclosed:
    """The intervals of one pair of points as flat vectors, each computed when it is needed."""

    def __init__(self, model: Model, x: Point, y: Vector) -> None:
        inside = x.vector() if model.f.domain.everything else model.f.domain.project(x.vector())
        self.model, self.y = model, y
        self.point = x if inside is x.vector() else DensePoint(inside)
        self.shortest = np.zeros(len(model.blocks))
        self.columns = self._of_columns()

    @cached_property
    def vertex(self) -> Vertex | None:
        """The only optimum, if it is proved to be a vertex."""
        return unique_vertex(self.model, self.point.vector(), self.model.g_star.domain.project(self.y))

    @cached_property
    def sides(self) -> tuple[PrimalSide, DualSide]:
        """The evaluated points."""
        return _sides(self.model, self.point, self.y)

    @cached_property
    def gap(self) -> float:
        """The gap with its rounding; infinite if a point is not feasible."""
        return _largest_gap(self.model, pair(self.model, *self.sides), *self.sides)

    @cached_property
    def rows(self) -> Ends:
        """The intervals of Ax."""
        if self.vertex is not None:
            return Ends(*self.vertex.u)
        return self.by_gap

    @cached_property
    def by_gap(self) -> Ends:
        """The intervals of Ax that follow from the gap alone."""
        if not np.isfinite(self.gap):
            return Ends(*unbounded(self.model.A.shape[0]))
        return Ends(*enclosure(self.model.g, self.sides[1].y, self.gap))

    @cached_property
    def curvatures(self) -> tuple[Vector, Vector]:
        """The least and the largest curvature of each row in its interval, which a constant curvature does not need."""
        least, most = curvature_between(self.model.g, *unbounded(self.model.A.shape[0]))
        if np.array_equal(least, most) or is_straight(self.model.loss_form):
            return least, most
        return curvature_between(self.model.g, *self.by_gap)

    def _of_columns(self) -> Ends:
        """Return the intervals of x: those of a vertex, or by the ball, the ellipsoid and the gap one after another."""
        if self.vertex is not None:
            return Ends(*self.vertex.x)
        columns = _domain(self.model)
        if not np.isfinite(self.gap):
            return columns
        dual, gap = self.sides[1], self.gap
        columns = _meet(columns, _by_dual_ball(self.model, dual, self.curvatures[1], gap))
        columns, self.shortest = _by_ellipsoid(self.model, dual, self.curvatures[0], columns, gap)
        return _by_gap(self.model, dual, columns, gap)


def _sides(model: Model, point: Point, y: Vector) -> tuple[PrimalSide, DualSide]:
    """Return the evaluated points."""
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
    if model.f.domain.everything:
        return Ends(*unbounded(model.A.shape[1]))
    low, high = (model.f.domain.project(end) for end in unbounded(model.A.shape[1]))
    return Ends(np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))


def _meet(first: Ends, second: Ends) -> Ends:
    """Return the common part of intervals; what lies between them if rounding has left none."""
    low, high = np.maximum(first.lower, second.lower), np.minimum(first.upper, second.upper)
    return Ends(np.minimum(low, high), np.maximum(low, high))


def _by_dual_ball(model: Model, dual: DualSide, most: Vector, gap: float) -> Ends:
    r"""Return what the slopes z* of all dual optima leave of x.

    With L the largest of the curvatures ``most`` of the rows, :math:`\|y - y^*\|^2 \le 2 L\, \text{gap}`, and so
    :math:`|z_j - z_j^*| \le \|A_j\| \sqrt{2 L\, \text{gap}}`. The optimum is where f has such a slope.
    """
    if not (model.A.traits.entries_known and model.A.traits.identity_scales is None and np.all(np.isfinite(most))):
        return Ends(*unbounded(model.A.shape[1]))
    radius = np.sqrt(2.0 * gap * float(most.max(initial=0.0))) + ALLOWED_ROUNDING * dual.length
    far = radius * model.column_lengths
    return Ends(*with_slopes(model.f, dual.z - far, dual.z + far))


def _by_gap(model: Model, dual: DualSide, columns: Ends, gap: float) -> Ends:
    """Return the intervals of x after those of the gap, for the columns that are not decided yet."""
    low, high = columns
    for function, own in parts_of(model.f):
        left = np.flatnonzero((low[own] <= 0) & (high[own] >= 0) & (low[own] < high[own]))
        if not left.size:
            continue
        blocks = function.blocks()
        single = isinstance(function, Enclosed) and len(blocks) == low[own].size
        part, at = (function.restrict_blocks(blocks.of_columns[left]), left) if single else (function, slice(None))
        ends = Ends(*enclosure(part, dual.z[own][at], gap))
        low[own][at], high[own][at] = _meet(Ends(low[own][at], high[own][at]), ends)
    return Ends(low, high)


def _by_ellipsoid(model: Model, dual: DualSide, curved: Vector, columns: Ends, gap: float) -> tuple[Ends, Vector]:
    r"""Return the intervals of x after those of an ellipsoid, and the least norm of each block.

    With c_i the least curvature of each row, ``curved``, q_j that of the penalty, and e and p the points at which the
    excesses are 0,

    .. math:: \sum_i c_i ((A x^*)_i - e_i)^2 + \sum_j q_j (x_j^* - p_j)^2 \le 2\, \text{gap}.

    It holds for some of the rows as well. The columns S whose intervals are longer than 0 are in an ellipsoid with the
    matrix H = A_S'C A_S + Q, so that :math:`|x_j^* - m_j| \le \sqrt{2\, \text{gap}\, (H^{-1})_{jj}}`.
    """
    shortest = np.zeros(len(model.blocks))
    left = np.flatnonzero(columns.lower < columns.upper)
    if not left.size or not at_hand(model.A):
        return columns, shortest
    bent = curvature_between(model.f, *columns)[0][left]
    chosen, is_sparse = _chosen_rows(model.A, np.where(np.isfinite(curved), curved, 0.0), left.size)
    if chosen is None:
        return columns, shortest
    every = chosen.size == model.A.shape[0]
    block = model.A.entries(left, is_sparse) if every else model.A.restrict(chosen, left).entries(compressed=is_sparse)
    weight = curved[chosen]
    centre = touching(model.g, dual.y)[chosen] - _fixed_part(model.A, columns, chosen)
    flat = np.where(bent > 0, touching(model.f, dual.z)[left], 0.0) if np.any(bent) else bent
    H = _squares(block, weight)
    H[np.diag_indices(left.size)] += bent
    pull = block.T @ (weight * centre) + bent * flat
    inverse = _inverse(H) if np.all(np.isfinite(pull)) else None
    if inverse is None:
        return columns, shortest
    middle = inverse @ pull
    size = model.column_lengths[left] * np.linalg.norm(weight * centre)  # at least the sum of the absolute terms
    size = size + bent * np.abs(flat) + np.abs(H) @ np.abs(middle)
    rounding = np.abs(inverse) @ (np.abs(pull - H @ middle) + ROUNDING * size)
    spread = np.diag(inverse)
    distance = np.sqrt(2.0 * gap * spread) + rounding
    low, high = columns.lower.copy(), columns.upper.copy()
    low[left], high[left] = _meet(Ends(low[left], high[left]), Ends(middle - distance, middle + distance))
    if len(model.blocks) == model.A.shape[1]:
        return Ends(low, high), shortest  # which only groups need
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
    scaled, _ = linalg.lapack.dpotri(factor, lower=1)
    inverse: Vector = (np.tril(scaled) + np.tril(scaled, -1).T) / np.outer(unit, unit)
    return inverse


def _squares(block: Any, weight: Vector) -> Vector:
    """Return B' diag(weight) B; as the square of one matrix if it is dense, which takes half the work."""
    if sparse.issparse(block):
        squares: Vector = (block.T @ sparse.diags_array(weight) @ block).toarray()
        return squares
    one_value = weight.size > 0 and bool(np.all(weight == weight[0]))
    scaled = block if one_value else block * np.sqrt(weight)[:, None]
    of_block: Vector = scaled.T @ scaled
    return weight[0] * of_block if one_value else of_block


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


def _split(values: Any, problem: Problem) -> Any:
    """Return values per coefficient in the shape of x."""
    ends = np.cumsum([int(np.prod(shape)) for shape in problem.x_shapes])
    parts = [part.reshape(shape) for part, shape in zip(np.split(values, ends[:-1]), problem.x_shapes, strict=True)]
    return parts if problem.is_list else parts[0]


def _group_norms(problem: Problem, flat: _Enclosed) -> list[Ends | None]:
    """Return the ends of the norms of the groups of each penalty; None for a penalty that is a sum over columns."""
    model, first = problem.model, 0
    found: list[Ends | None] = []
    ends = flat.columns
    least = np.where((ends.lower > 0) | (ends.upper < 0), np.minimum(*map(np.abs, ends)), 0.0)
    most = np.maximum(*map(np.abs, ends))
    for function, own in parts_of(model.f):
        blocks, size = function.blocks(), least[own].size
        stop = first + len(blocks)
        if isinstance(function, Enclosed) and blocks.sizes.max(initial=1) > 1 and len(blocks) < size:
            low = np.maximum(np.sqrt(blocks.sums(least[own] ** 2)), flat.shortest[first:stop])
            high = np.sqrt(blocks.sums(most[own] ** 2))
            longest = function.longest(flat.sides[1].z[own], flat.gap) if np.isfinite(flat.gap) else None
            high = high if longest is None else np.minimum(high, longest)
            found.append(Ends(np.minimum(low, high), high))
        else:
            found.append(None)
        first = stop
    return found
