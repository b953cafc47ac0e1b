"""The evaluation of a pair of points, by the formulas of ``functions.py`` only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .functions import Array, Loss, Penalty, Real, largest_share, norm

ROUNDING = 1e-12
"""Rounding error of a sum in float64, relative to the sum of the absolute terms: some thousand ulps."""


UNDERFLOW = Real(np.finfo(float).tiny)
"""Absolute rounding error of a value in float64. Smaller results are multiples of 5e-324, so that each operation has an
error of up to half of that. The error of 1e15 operations is less than this number. A square may have an error of the
same size before it is multiplied by its coefficient."""


UNKNOWN = 4.0
"""Factor by which the size that is assumed of the terms of an operator may exceed the mean over all vectors."""

RESOLVED = Real(2) ** -36
"""Relative change of the data of a loss that is taken as their resolution."""

NOTHING = Real(2) ** -44
"""Relative change of these data that is as good as none: an objective that it explains is 0."""

CANCELLED = Real(2) ** -20
"""Share of the terms of both objectives below which an objective counts as cancelled."""


@dataclass
class Statement:
    """A problem over flat vectors: penalties, the matrix of each, and the loss.

    ``unknown`` says of which matrices only products are known: their terms count as if all entries were equally large.
    """

    penalties: Sequence[Penalty]
    matrices: Sequence[Array]
    loss: Loss
    unknown: Sequence[bool] = ()

    def sizes(self, transposed: bool, vectors: Sequence[Array]) -> list[Array]:
        """Return the sums of the absolute values of the terms of Ax or of A'y, for each matrix."""
        found = []
        for k, (A, v) in enumerate(zip(self.matrices, vectors, strict=True)):
            B = A.T if transposed else A
            size = np.abs(B) @ np.abs(v)
            if k < len(self.unknown) and self.unknown[k]:
                size = np.maximum(size, UNKNOWN * norm(B.ravel()) * norm(v) / np.sqrt(Real(B.size)))
            found.append(size)
        return found


@dataclass
class Judgement:
    """The values and infeasibilities of a pair of points.

    ``primal`` and ``dual`` are the two values, each with a bound on its rounding error in float64. ``off_*`` are the
    distances from the domains of g, g* and f*, and the infeasibilities are the largest of them relative to the terms
    of their own row or column. ``floor`` is the smallest denominator of the relative gap. The penalty is evaluated at x
    itself, without its indicator functions.
    """

    primal: Real
    dual: Real
    primal_rounding: Real
    dual_rounding: Real
    off_u: Real
    off_y: Real
    off_z: Real
    primal_infeasibility: Real
    dual_infeasibility: Real
    floor: Real
    explained: Real
    """The rise of the loss by a change of the data that is as good as none."""
    scaling: Real
    """Relative loss of the dual value if z, after rounding, is scaled back into its domain."""


def judge(problem: Statement, x: Sequence[Array], y: Array) -> Judgement:
    """Return the values and infeasibilities of both sides; conjugates are evaluated at projections on their domains."""
    x, y = [np.asarray(each, dtype=Real).ravel() for each in x], np.asarray(y, dtype=Real).ravel()
    u = np.sum([A @ part for A, part in zip(problem.matrices, x, strict=True)], axis=0)
    u_size = np.sum(problem.sizes(False, x), axis=0)
    u_missed = problem.loss.missed(u)
    at_u = problem.loss.terms(u - u_missed)
    dual_loss = problem.loss.conjugate(y)
    primal, dual = at_u.sum(), -dual_loss.terms.sum()
    primal_terms, dual_terms = np.abs(at_u).sum(), np.abs(dual_loss.terms).sum()
    moved, lost, scaling = Real(0), UNDERFLOW, Real(0)
    outside, off_slopes = [largest_share(u_missed, problem.loss.data() + u_size)], [Real(0)]
    off_z = [Real(0)]
    sizes = problem.sizes(True, [y] * len(x))
    for penalty, A, part, size in zip(problem.penalties, problem.matrices, x, sizes, strict=True):
        terms = penalty.terms(part)
        z = -(A.T @ y)
        conjugate = penalty.conjugate(z)
        primal, dual = primal + terms.sum(), dual - conjugate.terms.sum()
        primal_terms += np.abs(terms).sum()
        dual_terms += np.abs(conjugate.terms).sum()
        moved += np.abs(conjugate.attained) @ size
        lost += UNDERFLOW * np.sum(getattr(penalty, "curvature", Real(0)))
        missed = penalty.missed(part)
        outside.append(largest_share(missed, np.maximum(np.abs(part), np.abs(part - missed))))
        off_z.append(norm(conjugate.missed))
        least = ROUNDING * np.array([norm(column) for column in A.T]) * norm(y)  # the rounding of y, in units near 1
        counted = np.sign(conjugate.missed) * np.maximum(np.abs(conjugate.missed) - least, 0)
        off_slopes.append(penalty.violation(counted, size))
        near = penalty.conjugate(z + np.sign(z) * ROUNDING * size).missed != 0  # rounding may move these outside
        scaling = max(scaling, largest_share(ROUNDING * size[near], np.abs(z[near])))
    return Judgement(
        primal=primal,
        dual=dual,
        primal_rounding=ROUNDING * (primal_terms + problem.loss.slope(u, ROUNDING * u_size) @ u_size) + lost,
        dual_rounding=ROUNDING * (dual_terms + moved + norm(y) * norm(problem.loss.data())),  # y may be moved, too
        off_u=norm(u_missed),
        off_y=norm(dual_loss.missed),
        off_z=norm(np.array(off_z)),
        primal_infeasibility=max(outside),
        dual_infeasibility=max(off_slopes),
        floor=max(problem.loss.rise(RESOLVED * problem.loss.data()), CANCELLED * min(primal_terms, dual_terms)),
        explained=explained(problem),
        scaling=(dual_terms + moved) * min(Real(1), scaling),
    )


def explained(problem: Statement) -> Real:
    """Return the objective up to which the rounding of the data explains it."""
    return problem.loss.rise(NOTHING * problem.loss.data())


def value(problem: Statement, x: Sequence[Array]) -> tuple[Real, Array]:
    """Return the objective at a point without indicator functions, and the violation of the domain of the loss."""
    x = [np.asarray(each, dtype=Real).ravel() for each in x]
    u = np.sum([A @ part for A, part in zip(problem.matrices, x, strict=True)], axis=0)
    missed = problem.loss.missed(u)
    values = [penalty.terms(part).sum() for penalty, part in zip(problem.penalties, x, strict=True)]
    return problem.loss.terms(u - missed).sum() + np.sum(values), missed


def repaired(problem: Statement, y: Array) -> Array:
    """Return y moved onto the ends of the columns that no factor of y can mend, and then scaled until it is feasible.

    These are the unpenalised columns, and all violated ones if y = 0 is not feasible. The library evaluates an
    infeasible y in this way, but returns the original y. Its moved point is not known; this is one possible point,
    whose bound is valid as well.
    """
    y = np.asarray(y, dtype=Real).ravel()
    A = np.concatenate(problem.matrices, axis=1)
    ends = np.cumsum([0, *(A.shape[1] for A in problem.matrices)])
    moved = np.concatenate([a + penalty.unpenalised() for a, penalty in zip(ends, problem.penalties, strict=False)])
    rigid, scale = not feasible(problem, 0 * y), np.max(np.abs(A), initial=Real(0)) or Real(1)
    for _ in range(4):
        z = np.split(-(A.T @ y), ends[1:-1])
        missed = np.concatenate([f.conjugate(part).missed for f, part in zip(problem.penalties, z, strict=True)])
        moved = np.union1d(moved, np.flatnonzero(missed)) if rigid else moved
        rows = np.flatnonzero(y)
        if moved.size and rows.size:
            inverse = np.linalg.pinv(np.asarray(A[np.ix_(rows, moved)] / scale, dtype=float).T).astype(Real) / scale
            y[rows] += inverse @ missed[moved]
        y = y - problem.loss.conjugate(y).missed
    low, high = Real(0), Real(1)
    for _ in range(60):
        middle = high if low == 0 and feasible(problem, high * y) else (low + high) / 2
        low, high = (middle, high) if feasible(problem, middle * y) else (low, middle)
        if low == high:
            break
    return low * y


def feasible(problem: Statement, y: Array) -> bool:
    """Return whether y and -A'y are in the domains of the conjugates, up to rounding."""
    found = judge(problem, [np.zeros(A.shape[1]) for A in problem.matrices], y)
    return bool(found.dual_infeasibility <= ROUNDING and found.off_y <= ROUNDING * norm(y))
