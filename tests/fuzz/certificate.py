"""The judgement of a pair of points by the formulas of ``functions.py`` alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .functions import Array, Loss, Penalty, Real, norm

ROUNDING = 1e-12
"""Rounding of a sum in float64, as a part of the sum of the sizes of its terms: some thousand ulps."""


UNDERFLOW = Real(np.finfo(float).tiny)
"""Absolute rounding of a value in float64. Below this number a result is a multiple of 5e-324, and so each operation is
off by up to half of that, however small its terms are; a value of 1e15 operations is then off by less than this. A
square may be off by as much before it is multiplied by its coefficient."""


@dataclass
class Statement:
    """A problem: penalties, the matrix of each, flat, and the loss."""

    penalties: Sequence[Penalty]
    matrices: Sequence[Array]
    loss: Loss


@dataclass
class Judgement:
    """What a pair of points is worth.

    ``primal`` and ``dual`` are the two values, with a bound on what rounding in float64 may change in each; ``off_*``
    are the distances from the domains of f, g, f* and g*, ``floor`` is the least scale of a relative gap. The penalty
    is evaluated at x itself, without its indicators.
    """

    primal: Real
    dual: Real
    primal_rounding: Real
    dual_rounding: Real
    off_x: Real
    off_u: Real
    off_y: Real
    off_z: Real
    u_rounding: Real
    floor: Real
    z_rounding: Real
    scaling: Real
    """What the dual value may lose if z, rounded, is scaled back into a domain that holds it."""


def judge(problem: Statement, x: Sequence[Array], y: Array) -> Judgement:
    """Return the values of both sides and their infeasibilities, conjugates at the nearest points of their domains."""
    x, y = [np.asarray(each, dtype=Real).ravel() for each in x], np.asarray(y, dtype=Real).ravel()
    u = np.sum([A @ part for A, part in zip(problem.matrices, x, strict=True)], axis=0)
    u_size = np.sum([np.abs(A) @ np.abs(part) for A, part in zip(problem.matrices, x, strict=True)], axis=0)
    u_missed = problem.loss.missed(u)
    at_u = problem.loss.terms(u - u_missed)
    dual_loss = problem.loss.conjugate(y)
    primal, dual = at_u.sum(), -dual_loss.terms.sum()
    primal_size = np.abs(at_u).sum() + problem.loss.slope(u, ROUNDING * u_size) @ u_size
    dual_size = np.abs(dual_loss.terms).sum()
    lost = UNDERFLOW
    off_x, off_z, z_size, z_norm = [Real(0)], [Real(0)], [Real(0)], [Real(0)]
    for penalty, A, part in zip(problem.penalties, problem.matrices, x, strict=True):
        terms = penalty.terms(part)
        z, size = -(A.T @ y), np.abs(A).T @ np.abs(y)
        conjugate = penalty.conjugate(z)
        primal, dual = primal + terms.sum(), dual - conjugate.terms.sum()
        primal_size += np.abs(terms).sum()
        lost += UNDERFLOW * np.sum(getattr(penalty, "curvature", Real(0)))
        dual_size += np.abs(conjugate.terms).sum() + np.abs(conjugate.attained) @ size
        off_x.append(norm(penalty.missed(part)))
        off_z.append(norm(conjugate.missed))
        z_size.append(norm(size))
        z_norm.append(norm(z))
    lengths = [np.abs(part) @ np.array([norm(a) for a in A.T]) for A, part in zip(problem.matrices, x, strict=True)]
    distance = Real(2) ** -31 * max(problem.loss.data_norm(), norm(u), np.sum(lengths))
    z_rounding, length = ROUNDING * norm(np.array(z_size)), norm(np.array(z_norm))
    return Judgement(
        primal=primal,
        dual=dual,
        primal_rounding=ROUNDING * primal_size + lost,
        dual_rounding=ROUNDING * dual_size,
        off_x=norm(np.array(off_x)),
        off_u=norm(u_missed),
        off_y=norm(dual_loss.missed),
        off_z=norm(np.array(off_z)),
        u_rounding=ROUNDING * norm(u_size),
        floor=max(problem.loss.rise(distance), norm(y) * distance),
        z_rounding=z_rounding,
        scaling=dual_size * min(Real(1), z_rounding / length) if length else Real(0),
    )


def value(problem: Statement, x: Sequence[Array]) -> tuple[Real, Array]:
    """Return the objective at a point without its indicators, and how A x misses the domain of the loss."""
    x = [np.asarray(each, dtype=Real).ravel() for each in x]
    u = np.sum([A @ part for A, part in zip(problem.matrices, x, strict=True)], axis=0)
    missed = problem.loss.missed(u)
    values = [penalty.terms(part).sum() for penalty, part in zip(problem.penalties, x, strict=True)]
    return problem.loss.terms(u - missed).sum() + np.sum(values), missed


def repaired(problem: Statement, y: Array) -> Array:
    """Return y moved onto -A_0'y = c_0 for the unpenalised columns A_0, and then scaled until it is feasible.

    The library judges a y that is not feasible so, and returns the y that it began with. What it moves to is not known;
    this is one such point, whose bound holds as well.
    """
    y = np.asarray(y, dtype=Real).ravel()
    free = [penalty.unpenalised() for penalty in problem.penalties]
    A = np.concatenate([A[:, own] for A, own in zip(problem.matrices, free, strict=True)], axis=1)
    c = np.concatenate([penalty.linear[own] for penalty, own in zip(problem.penalties, free, strict=True)])
    if A.shape[1]:
        scale = np.max(np.abs(A)) or Real(1)
        inverse = np.linalg.pinv(np.asarray(A / scale, dtype=float).T).astype(Real) / scale
        for _ in range(3):  # each refines what the float64 inverse leaves
            y = y - inverse @ (A.T @ y + c)
        y = y - problem.loss.conjugate(y).missed
    low, high = Real(0), Real(1)
    for _ in range(60):
        middle = high if low == 0 and feasible(problem, high * y) else (low + high) / 2
        low, high = (middle, high) if feasible(problem, middle * y) else (low, middle)
        if low == high:
            break
    return low * y


def feasible(problem: Statement, y: Array) -> bool:
    """Return whether y and -A'y are in the domains of the conjugates, to rounding."""
    found = judge(problem, [np.zeros(A.shape[1]) for A in problem.matrices], y)
    return bool(found.off_z <= found.z_rounding and found.off_y <= ROUNDING * norm(y))
