r"""The smallest alpha with x = 0 on the penalised columns.

Let A_0 be the columns without a penalty, w the best fit by them alone, and f = alpha p + r. By the optimality
conditions x = 0 is a solution at alpha if and only if some

.. math::

    y \in Y = \{\, y \in \partial g(A_0 w) : -A_0'y \in \partial r_0(w) \,\} \quad\text{has}\quad
    -A_j'y \in \partial (\alpha p + r)_j(0) \text{ for all penalised blocks } j,

so that :math:`\alpha_{max} = \min_{y \in Y} \max_j \alpha_j(-A_j'y)`. The least alpha of a block, alpha_j, is computed
by the penalty (``functions/traits.py``). Y does not depend on which best fit is taken. It is a single point for a
smooth loss, and a polytope if the fit of some rows is at a kink of the loss.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..common.arrays import Indices, Vector
from ..functions import Zero
from ..functions.traits import kinks, subdifferential, subgradient_scale
from ..machine.threads import limited
from ..model.model import Model
from ..problem import Problem
from .cutting_planes import Polytope, least_largest
from .jumps import from_jumps, in_jumps
from .null_model import NOT_FEASIBLE, Free, fit

AT_KINK = 1e-9
"""Distance from a kink, relative to the terms of A_0 w and the position of the kink, that rounding in w can cause."""

EXACT_FIT = 1e-13
"""A loss counts as minimal if it is this close to its minimum, relative to its value at 0."""


def alpha_max(penalty: Any, A: Any, loss: Any, unpenalised: Any = None) -> float:
    """Return the smallest alpha with x = 0 on the penalised columns.

    For ``TotalVariation1D`` it is the smallest alpha with a constant x.

    Parameters
    ----------
    penalty, A, loss : object
        As in ``Problem``. The alpha of the penalty does not matter; in a list, all penalties get the same alpha.
    unpenalised : array-like, optional
        Further columns without a penalty, as an m x k matrix or a vector of m floats (``np.ones(m)`` is an intercept),
        in the rows of the first loss; or the columns of A without a penalty, as indices or a boolean mask. Parts
        ``Zero()`` of a list and columns of weight 0 never have one.

    Returns
    -------
    float
        Exact to a relative 1e-8. It is 0 if the columns without a penalty fit the data perfectly.

    Examples
    --------
    >>> import numpy as np, saddleback as sb
    >>> A, b = np.array([[1.0, 0.0], [1.0, 2.0], [0.0, 1.0]]), np.array([1.0, 2.0, 3.0])
    >>> float(sb.alpha_max(sb.L1(1.0), A, sb.Squared(b)))  # the largest entry of |A'b|
    7.0
    """
    problem = Problem(penalty, A, loss)
    with limited(None):
        if unpenalised is None:
            return threshold(problem).alpha
        given = unpenalised if sparse.issparse(unpenalised) else np.asarray(unpenalised)
        if given.ndim == 2 or given.dtype.kind == "f":
            return threshold(_with_columns(problem, given)).alpha
        return threshold(problem, _named_columns(problem, given)).alpha


def _with_columns(problem: Problem, extra: Any) -> Problem:
    """Return the problem with columns without a penalty beside A."""
    rows = problem.y_shapes[0][0]
    if extra.shape[0] != rows:
        raise ValueError(f"unpenalised has {extra.shape[0]} rows: expected {rows}, as the loss has")
    grid = problem.A if problem.has_rows else [problem.A]
    first, *others = [list(row) if problem.is_list else [row] for row in grid]
    wider = [[*first, extra], *([*row, None] for row in others)]
    return Problem([*problem.terms, Zero()], wider if problem.has_rows else wider[0], problem.loss)


def _named_columns(problem: Problem, named: Any) -> Indices:
    """Return the entries of x under the columns that the user names by indices or a mask."""
    if problem.is_list:
        raise TypeError("unpenalised names columns, but A is a list: make those columns a part of it, with Zero()")
    tasks = problem.model.A.traits.tasks
    n = problem.model.A.shape[1] // tasks
    if named.dtype.kind not in "biu" or named.ndim != 1:
        raise TypeError(
            f"unpenalised has dtype {named.dtype} and {named.ndim} dimensions: expected a matrix with the rows of A, a "
            "vector of floats, or the indices or a mask of columns of A"
        )
    if named.dtype.kind == "b" and named.size != n:
        raise ValueError(f"unpenalised has {named.size} booleans: expected one for each of the {n} columns of A")
    columns = (np.flatnonzero(named) if named.dtype.kind == "b" else named).astype(np.int64)
    if columns.size and (columns.min() < 0 or columns.max() >= n or np.unique(columns).size != columns.size):
        raise ValueError(
            f"unpenalised has integers from {columns.min()} to {columns.max()}, {np.unique(columns).size} of "
            f"{columns.size} distinct: expected distinct columns of A, 0 to {n - 1}; give another column as floats"
        )
    entries: Indices = (columns[:, None] * tasks + np.arange(tasks)).ravel()
    return entries


class Threshold(NamedTuple):
    """alpha_max, and a solution there: x, which is 0 except in the columns without a penalty, and y."""

    alpha: float
    x: Vector
    y: Vector


def threshold(problem: Problem, exempt: Indices | None = None) -> Threshold:
    """Return alpha_max of a problem, in which the columns ``exempt`` count as unpenalised too."""
    unit, rest = (in_jumps(problem.with_alpha(alpha).model) for alpha in (1.0, 0.0))
    at_zero = kinks(unit.f, np.zeros(unit.A.shape[1]), rest.f)
    held = at_zero.part >= 0
    _check_kinks(problem, held)
    if np.any(rest.f.domain.project(np.zeros(held.size))[held]):
        raise ValueError(f"penalty={problem.penalty!r} has bounds that exclude x = 0: no alpha makes x = 0")
    if exempt is not None:
        _check_no_jumps(problem)
        held[exempt] = False
    free = np.flatnonzero(~held)
    columns = unit.A.entries(free) if free.size else np.zeros((unit.A.shape[0], 0))
    x = best_fit(rest, free, columns)
    if not np.any(at_zero.alpha) and _zero_is_dual(rest, free, x, columns):
        return Threshold(0.0, from_jumps(problem.model, x), np.zeros(unit.A.shape[0]))
    alpha, y = least_largest(unit, rest.f, dual_set(rest, free, x, columns))
    if not np.isfinite(alpha):
        raise ValueError(f"alpha_max cannot be computed for {problem!r}: give the alphas of a path")
    return Threshold(alpha, from_jumps(problem.model, x), y)


def _check_no_jumps(problem: Problem) -> None:
    """Raise if columns are named in a problem whose penalty is on differences of columns."""
    if in_jumps(problem.model) is not problem.model:
        raise TypeError("unpenalised names columns, but TotalVariation1D is a penalty on differences of all of them")


def _check_kinks(problem: Problem, held: Any) -> None:
    """Raise if a penalty with an alpha has no kink at 0, or if no penalty has an alpha."""
    ends = np.cumsum([int(np.prod(shape)) for shape in problem.x_shapes])[:-1]
    for term, own in zip(problem.terms, np.split(held, ends), strict=True):
        if term.has_alpha() and not np.any(own):
            raise ValueError(
                f"penalty={term!r} has no kink at 0 that grows with alpha, so that no alpha makes x = 0: alpha_max is "
                "there for L1, ElasticNet with l1_ratio > 0, GroupL2, SparseGroup, Nuclear, LInf, GroupLInf, SLOPE "
                "and TotalVariation1D"
            )
    if not np.any(held):
        raise ValueError(
            f"penalty={problem.penalty!r} has no alpha: expected L1, ElasticNet, GroupL2, SparseGroup, Nuclear, LInf, "
            "GroupLInf, SLOPE or TotalVariation1D"
        )


def best_fit(rest: Model, free: Indices, columns: Vector) -> Vector:
    """Return the x that minimises the loss plus f at alpha = 0 over the free columns, and is 0 elsewhere."""
    m, n = rest.A.shape
    x = np.zeros(n)
    if not free.size:
        if not np.isfinite(rest.g.value(np.zeros(m))):
            raise ValueError(NOT_FEASIBLE)
        return x
    lower, upper = (rest.f.domain.project(np.full(n, side))[free] for side in (-np.inf, np.inf))
    x[free] = _inside(lower, upper)
    slope = np.where(lower < upper, subdifferential(rest.f, x, np.zeros(n))[0][free], 0.0)
    if not np.all(np.isfinite(slope)):
        raise TypeError(
            "penalty: a part without alpha is not made of Zero, Linear, Box and NonNegative, which is needed"
        )
    x[free] = fit(Free(columns, lower, upper, slope), rest.g)
    return x


def _inside(lower: Vector, upper: Vector) -> Vector:
    """Return a point strictly between bounds that differ, some of them infinite."""
    low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2.0, -1.0))
    high = np.where(np.isfinite(upper), upper, low + 2.0)
    middle: Vector = 0.5 * (low + high)
    return middle


def _zero_is_dual(rest: Model, free: Indices, x: Vector, columns: Vector) -> bool:
    """Return whether y = 0 is in Y: the free columns minimise the loss, and 0 is a slope of f there."""
    none = np.zeros(rest.A.shape[0])
    if not rest.g_star.domain.has_zero():
        return False
    least = -rest.g_star.value(none)
    low, high = _slopes(rest, free, x)
    costless = np.all((low <= 0) & (high >= 0))
    value, at_zero = rest.g.finite_value(columns @ x[free]), rest.g.finite_value(none)
    size = abs(at_zero if np.isfinite(at_zero) else value) + abs(least)
    return bool(costless and value - least <= EXACT_FIT * size)


def _slopes(rest: Model, free: Indices, x: Vector) -> tuple[Vector, Vector]:
    """Return the interval of slopes of f at the free columns of x."""
    tolerance = np.full(x.size, AT_KINK * np.max(np.abs(x), initial=0.0))
    low, high = subdifferential(rest.f, x, tolerance)
    return low[free], high[free]


def dual_set(rest: Model, free: Indices, x: Vector, columns: Vector) -> Polytope:
    """Return Y, the dual solutions of the problem of the free columns alone."""
    u, terms = columns @ x[free], np.abs(columns) @ np.abs(x[free])
    place = np.broadcast_to(np.abs(subgradient_scale(rest.g_star)), u.shape)
    # a kink at 0 has no size to compare rounding errors with: the kinks of the other rows give one
    low, high = subdifferential(rest.g, u, AT_KINK * (terms + place) + 1e-14 * place.max())
    if np.any(np.isnan(low)):
        raise TypeError(
            "loss: its slopes per row are not known at the fit by the columns without a penalty, and alpha_max needs "
            "them (that is so for a user-defined loss, for equal residuals under Wilcoxon, Gini, TopK and CVaR, and "
            "for Norm2 at residual 0 with a linear term in the penalty)"
        )
    return Polytope(low, high, columns, *_slopes(rest, free, x))
