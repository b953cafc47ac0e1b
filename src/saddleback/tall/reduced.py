"""The problems in memory from which a tall problem gets its start, its steps and its lower bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.lapack import dpstrf as pstrf

from ..certificates.candidates import Candidates, evaluate
from ..common.arrays import Indices, Vector
from ..engine.certify import certify
from ..engine.solve import solve
from ..functions import Box, Linear, Pinball, Squared, Zero
from ..functions.domains import fixed
from ..problem import Problem
from ..result import Certificate, Result
from .evaluation import Evaluation, bound, lowest
from .frame import Frame
from .problem import TallProblem
from .rows import Chunk, joined

LOOSEST, TIGHTEST = 1e-3, 1e-12
"""Bounds of the tolerance to which a problem in memory is solved."""

TIGHTER, NEARLY = 1e-3, 2.0
"""How much more accurately a problem is solved again if its judged gap is above this multiple of what was asked."""

DEPENDENT = 1e-12
"""Square of the distance of a column from those before it, relative to that of its length, up to which it depends on
them."""

RIDGE = 1e-13
"""Added to the curvature, relative to its trace, so that its factor exists if columns are dependent."""


class Tangents(NamedTuple):
    """The rows that are not in memory: their tangents <pull, x> + value, and the smallest value of their losses."""

    pull: Vector
    value: float
    lowest: float


class Solved(NamedTuple):
    """The solution of a problem in memory; ``proof`` is the certificate of the bound on its minimum."""

    x: Vector
    solved: bool
    bound: float
    proof: Certificate


class InMemory:
    r"""The problem of some of the rows, in which the others are replaced by their tangents.

    A loss is at least its tangent and at least its smallest value, so that with the sums over the other rows

    .. math::

        f(x) + \sum_{kept} g_i(a_i'x) + \max(\langle pull, x\rangle + value,\; lowest)

    is at most the objective. Solutions are sought without the ``lowest``: the linear term is then a part of the
    penalty, and a smooth problem stays smooth. Their dual points are judged with it: then 0 is dual feasible, so that
    every dual point can be scaled until it is.

    Parameters
    ----------
    problem : the tall problem.
    frame : the columns of x.
    rows : the rows of this problem.
    matrices : the rows as ``frame.matrices`` returns them.
    smooth : whether the loss is smooth.
    x : a point, at which columns stay that are not needed because they depend on others.
    tangents : the other rows; None if there are none.
    """

    def __init__(
        self,
        problem: TallProblem,
        frame: Frame,
        rows: Chunk,
        matrices: list[Any],
        smooth: bool,
        x: Vector,
        tangents: Tangents | None = None,
    ) -> None:
        self.frame, self.smooth, self.tangents = frame, smooth, tangents
        n, loss = frame.centre.size, problem.loss(rows.target, sample_weight=rows.weight)
        penalties: list[Any] = [problem.penalty, Zero()][: len(matrices)]
        held = [_without_redundant(problem.penalty, matrices, x[:n]), *penalties[1:]]
        if tangents is None:
            self.problem, self.judged = Problem(held, matrices, loss), Problem(penalties, matrices, loss)
            return
        parts = [tangents.pull[:n], tangents.pull[n:]][: len(matrices)]
        self.problem = _tilted(held, parts, matrices, loss)
        if not np.isfinite(tangents.lowest):
            self.judged = _tilted(penalties, parts, matrices, loss)
            return
        ramp = Pinball([tangents.lowest - tangents.value], quantile=0.0)  # max(u - b, 0)
        self.judged = Problem(penalties, [matrices, [part[None, :] for part in parts]], [loss, ramp])

    def solve(self, x: Vector | None, y: Vector | None, gap: float, value: float = 1.0, **options: Any) -> Solved:
        """Solve from (x, y) until the gap is at most ``gap``; ``value`` is the objective of the tall problem at x.

        Without a start, the gap is relative to the objective.
        """
        tangents = self.tangents
        size = abs(value if tangents is None else value - tangents.value)
        tol = float(np.clip(gap / size, TIGHTEST, LOOSEST)) if size else TIGHTEST
        start: Any = None if x is None else self.frame.split(x)
        for tolerance in (tol, max(TIGHTER * tol, TIGHTEST)):
            method = "auto" if self.smooth else "finish"
            result = solve(self.problem, method=method, tol=tolerance, x0=start, y0=y, **options)
            proof, constant = self._proof(result)
            if tangents is None or proof.gap <= NEARLY * gap:
                break
            start, y = result, None  # what rounding and scaling cost shows only when the dual point is judged
        lower = proof.dual_value + constant
        solved = result.status.solved
        return Solved(np.concatenate(result.x), solved, lower if np.isfinite(lower) else -np.inf, proof)

    def _proof(self, result: Result) -> tuple[Certificate, float]:
        """Return the certificate of a solution in the problem without held columns, and what its values lack."""
        tangents = self.tangents
        if tangents is None:
            return certify(self.judged, result.x, result.y), 0.0
        if not np.isfinite(tangents.lowest):
            return _judgement(self.judged, result.x, result.y), tangents.value
        return _judgement(self.judged, result.x, [result.y, [1.0]]), tangents.lowest


def _judgement(problem: Problem, x: list[Vector], y: Any) -> Certificate:
    """Return the certificate without bounds on rounding: tangents are sums over rows that are not in memory.

    Columns that depend on each other over all rows no longer do so exactly once such sums are rounded.
    """
    points = problem.flatten_x(x).vector(), problem.flatten_y(y)
    return evaluate(problem.model, Candidates([(points[0], None)], [(points[1], None)]), trivial=True)[0]


def _tilted(penalties: list[Any], parts: list[Vector], matrices: list[Any], loss: Any) -> Problem:
    """Return the problem with a linear term, which comes from losses.

    It is a fit, which the functions that are left do not show.
    """
    problem = Problem([each + Linear(part) for each, part in zip(penalties, parts, strict=True)], matrices, loss)
    problem.model = replace(problem.model, fit=True)
    return problem


def _without_redundant(penalty: Any, matrices: list[Any], x: Vector) -> Any:
    """Return the penalty with those columns held at x that have no penalty and depend on others without one.

    All categories of a column add up to the intercept. Along such a direction the objective changes by rounding alone,
    and an interior point may go far.
    """
    free = fixed(penalty.bind(x.shape).conjugate().domain)
    if not free.size:
        return penalty
    redundant = free[_dependent([matrices[0][:, free], *matrices[1:]])]
    if not redundant.size:
        return penalty
    lower, upper = np.full(x.size, -np.inf), np.full(x.size, np.inf)
    lower[redundant] = upper[redundant] = x[redundant]
    return penalty + Box(lower, upper)


def _dependent(matrices: list[Any]) -> Indices:
    """Return the columns of the first matrix that depend on others or on the second one, by pivoted elimination."""
    others = [np.ones((matrices[0].shape[0], 1)) for _ in matrices[1:]]
    if sparse.issparse(matrices[0]):
        A = sparse.hstack([matrices[0], *others], format="csc")
        gram = (A.T @ A).toarray()
    else:
        A = np.column_stack([matrices[0], *others])
        gram = A.T @ A
    lengths = np.sqrt(np.diag(gram))
    lengths[lengths == 0] = 1.0
    lengths[matrices[0].shape[1] :] *= 0.5  # an intercept is never left out: it is longer than the others
    _, pivots, rank, _ = pstrf(gram / np.outer(lengths, lengths), tol=DEPENDENT)
    return np.sort(pivots[rank:] - 1)


def reduced(problem: TallProblem, frame: Frame, at: Evaluation, x: Vector, smooth: bool) -> tuple[InMemory, Vector]:
    """Return the problem of the rows that a reading at x has kept, and their slopes there.

    It is at most the objective everywhere, and equal to it at x.
    """
    rows, y = joined([chunk for chunk, _ in at.kept]), np.concatenate([y for _, y in at.kept])
    at.kept.clear()  # the copies are enough
    matrices, loss = frame.matrices(rows.X), bound(problem.loss, rows)
    z = sum(matrix.reshape(y.size, -1) @ part for matrix, part in zip(matrices, frame.split(x), strict=True))
    own = np.concatenate([matrix.reshape(y.size, -1).T @ y for matrix in matrices])
    value = at.tangents - (loss.finite_value(z) - float(y @ z))
    others = Tangents(at.pull - own, value, at.lowest - lowest(loss, y.size))
    return InMemory(problem, frame, rows, matrices, smooth, x, others), y


def newton_step(
    problem: TallProblem, frame: Frame, pull: Vector, curvature: NDArray[np.float64], x: Vector
) -> tuple[Vector, float]:
    r"""Return the minimiser of the penalty plus the second-order expansion of the loss at x, and how far it falls.

    With :math:`H = R'R` the expansion is :math:`\langle A'y, s - x\rangle + \tfrac12 \|R(s - x)\|^2`.
    """
    n, size = frame.centre.size, frame.size
    scale = np.sqrt(np.maximum(np.diag(curvature), np.finfo(float).tiny))
    unit = curvature / np.outer(scale, scale)
    root = np.linalg.cholesky(unit + size * RIDGE * np.eye(size)).T * scale
    target = root @ x
    blocks: list[Any] = [root[:, :n], root[:, n:]] if frame.intercept else [root]
    parts = [pull[:n], pull[n:]][: len(blocks)]
    penalties = [each + Linear(part) for each, part in zip((problem.penalty, Zero()), parts, strict=False)]
    small, start = Problem(penalties, blocks, Squared(target)), frame.split(x)
    result = solve(small, tol=TIGHTEST, max_passes=2000, x0=start)
    return np.concatenate(result.x), small.value(start) - result.objective
