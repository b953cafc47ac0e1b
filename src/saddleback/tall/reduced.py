"""The problems in memory from which a tall problem gets its start, its steps and its lower bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..common.arrays import Vector
from ..engine.certify import certify
from ..engine.solve import solve
from ..functions import Linear, Pinball, Squared, Zero
from ..problem import Problem
from ..result import Certificate, Result, Status
from .evaluation import Evaluation, bound, lowest
from .frame import Frame
from .problem import TallProblem
from .rows import Chunk, joined

LOOSEST, TIGHTEST = 1e-3, 1e-12
"""Bounds of the tolerance to which a problem in memory is solved."""

TIGHTER, NEARLY = 1e-3, 2.0
"""How much more accurately a problem is solved again if its judged gap is above this multiple of what was asked."""

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
    tangents : the other rows; None if there are none.
    smooth : whether the loss is smooth.
    """

    def __init__(
        self,
        problem: TallProblem,
        frame: Frame,
        rows: Chunk,
        matrices: list[Any],
        smooth: bool,
        tangents: Tangents | None = None,
    ) -> None:
        self.frame, self.smooth, self.tangents = frame, smooth, tangents
        n, penalty, loss = frame.centre.size, problem.penalty, problem.loss(rows.target, sample_weight=rows.weight)
        penalties: list[Any] = [penalty, Zero()][: len(matrices)]
        if tangents is None:
            self.problem = self.judged = Problem(penalties, matrices, loss)
            return
        parts = [tangents.pull[:n], tangents.pull[n:]][: len(matrices)]
        tilted = [each + Linear(part) for each, part in zip(penalties, parts, strict=True)]
        self.problem = Problem(tilted, matrices, loss)
        # the linear term comes from losses: the problem is a fit, which the functions that are left do not show
        self.problem.model = replace(self.problem.model, fit=True)
        if not np.isfinite(tangents.lowest):
            self.judged = self.problem
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
        solved = result.status is Status.OPTIMAL
        return Solved(np.concatenate(result.x), solved, lower if np.isfinite(lower) else -np.inf, proof)

    def _proof(self, result: Result) -> tuple[Certificate, float]:
        """Return the certificate of a solution, and what its values lack."""
        tangents = self.tangents
        if tangents is None:
            return result.certificate, 0.0
        if self.judged is self.problem:
            return result.certificate, tangents.value
        return certify(self.judged, result.x, [result.y, [1.0]]), tangents.lowest


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
    return InMemory(problem, frame, rows, matrices, smooth, others), y


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
