r"""ADMM on the splitting of the penalty from the loss, with a cached factorisation.

The penalty acts on x and the loss on its copy z: min f(x) + g(Az) subject to x = z. With y the slope of g at Az,

.. math::

    x &= \mathrm{prox}_{f/\rho}(z - A'y / \rho), \qquad v = x + A'y / \rho, \\
    z &= \arg\min_z g(Az) + \tfrac\rho2 \|z - v\|^2.

- The squared loss has :math:`g^*(y) = \langle b, y \rangle + \tfrac12 \langle y, Qy \rangle`, and the second step is
  the linear system :math:`(AA'/\rho + Q)\, y = Av - b`, :math:`z = v - A'y / \rho`, in the smaller of its two forms:
  the Lasso of Boyd et al. (2011), section 6.4, with the prox before the system and not after it.
- For an equality Q = 0, and the step is a projection. This form is used if AA' is diagonal, as for the paper's
  :math:`\sum_j X_j = B`: the consensus form of Parikh and Boyd (2013), which updates all blocks in parallel.
- Every other loss acts on a second copy, u = Az, through its prox, as in the graph form of Parikh and Boyd (2014):
  :math:`u = \mathrm{prox}_{g/\rho_u}(Az + y/\rho_u)`. Then the system above holds with :math:`b = u - y/\rho_u` and
  :math:`Q = I/\rho_u`.

An iteration takes one product with A and one with A': one pass. The Gram matrix counts a quarter of a pass per row; its
factorisation and the triangular solves are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import splu

from ..certificates.candidates import Candidates
from ..common.arrays import Vector
from ..common.rebuildable import derived, stored
from ..model.model import Model
from ..operators import Operator
from ..steps.strengths import data_weight, uniform_strengths
from ._balance import Balance
from .contract import Method, Start, State, affine_gradient, all_blocks, gradient, positive_number
from .report import Report

DENSE = 0.1
"""A sparse AA' with more than this share of nonzeros is factored as a dense matrix."""


class Normal:
    r"""The system :math:`(AA'/\rho + c\, Q)\, y = Av - b` with :math:`z = v - A'y/\rho`, for any rho and c.

    Its Gram matrix, the smaller of AA' and A'Q^{-1}A, is computed once.
    """

    def __init__(self, A: Operator, diagonal: Vector) -> None:
        m, n = A.shape
        self.A, self.diagonal = A, diagonal
        self.wide = m <= n
        gram: Any = A.gram(None, side="rows") if self.wide else A.gram(1.0 / diagonal)
        if sparse.issparse(gram) and gram.nnz > DENSE * m * m:
            gram = gram.toarray()
        self.gram = gram
        self.passes = 0.5 if gram.ndim == 1 else 0.25 * gram.shape[0]

    @property
    def is_diagonal(self) -> bool:
        """Whether AA' is diagonal."""
        return bool(self.gram.ndim == 1)

    @derived
    def factored(self, rho: float, c: float) -> Factored:
        """Return the system for these parameters, ready to be solved."""
        return Factored(self, rho, c)


class Factored:
    """The system of a ``Normal`` for one rho and c; ``weight`` is c Q."""

    def __init__(self, normal: Normal, rho: float, c: float) -> None:
        gram = normal.gram
        self.normal, self.rho, self.c, self.weight = normal, rho, c, c * normal.diagonal
        # both forms scaled so that the Gram matrix has the factor 1: AA' + rho c Q, A'Q^{-1}A + rho c I
        shift = rho * self.weight if normal.wide else np.full(gram.shape[0], rho * c)
        if gram.ndim == 1:
            self.solver: Any = lambda right: right / (gram + shift)
        elif sparse.issparse(gram):
            self.solver = splu((gram + sparse.diags(shift)).tocsc()).solve
        else:
            matrix = gram.copy()
            matrix[np.diag_indices_from(matrix)] += shift
            factors = cho_factor(matrix, lower=True, overwrite_a=True)
            self.solver = lambda right: cho_solve(factors, right)

    def solve(self, v: Vector, b: Vector) -> tuple[Vector, Vector, Vector]:
        """Return z, A'y and y."""
        A = self.normal.A
        if self.normal.wide:
            y = self.rho * self.solver(A.matvec(v) - b)
            pull = A.rmatvec(y)
            return v - pull / self.rho, pull, y
        z = self.solver(self.rho * self.c * v + A.rmatvec(b / self.normal.diagonal))
        return z, self.rho * (v - z), (A.matvec(z) - b) / self.weight


@derived
def normal_system(model: Model, diagonal: Vector) -> Normal:
    """Return the system of a problem with Q = diag(diagonal)."""
    return Normal(model.A, diagonal)


@stored
@dataclass(kw_only=True)
class ADMMState(State):
    """x with its copy z, image = Az, and pull = A'y."""

    model: Model
    normal: Normal
    system: Factored
    target: Vector | None
    """b if the loss is part of the linear system; None if the loss acts through its prox."""

    z: Vector
    image: Vector
    pull: Vector
    rho: float
    loss_rho: float
    balance: Balance

    def report(self) -> Report:
        return replace(self.choices, rho=self.rho)


@dataclass(frozen=True)
class ADMM(Method[ADMMState]):
    """One prox of the penalty, one linear system, and for most losses one prox of the loss.

    Parameters
    ----------
    rho : float, optional
        Strength of x = z; divided by the square of the norm of A it is the strength of u = Az. By default it is guessed
        from the units of the data and adapted until both residuals are of similar size (He, Yang and Wang 2000).
    """

    name = "admm"
    rho: float | None = None

    def __post_init__(self) -> None:
        if self.rho is not None:
            positive_number("rho", self.rho)

    def missing(self, model: Model) -> str | None:
        return None if model.A.traits.entries_known else "A is a LinearOperator, and AA' is needed for a factorisation"

    def init(self, model: Model, start: Start) -> ADMMState:
        normal, target = self._system(model)
        rho, loss_rho, passes = self._strengths(model, target is None)
        image, cost = start.image(model)
        return ADMMState(
            x=start.x.copy(),
            y=start.y.copy(),
            passes=passes + normal.passes + cost + 0.5,
            choices=all_blocks(model),
            model=model,
            normal=normal,
            system=self._factored(normal, target, rho, loss_rho),
            target=target,
            z=start.x.copy(),
            image=image,
            pull=model.A.rmatvec(start.y),
            rho=rho,
            loss_rho=loss_rho,
            balance=Balance(self.rho is None),
        )

    def _strengths(self, model: Model, with_loss: bool) -> tuple[float, float, float]:
        """Return rho for x, rho for u, and the passes that they took."""
        if self.rho is not None and not with_loss:
            return self.rho, self.rho, 0.0
        uniform = uniform_strengths(model)
        norm = float(uniform.primal[0])
        rho = self.rho or data_weight(model, uniform, 1.0) * norm
        return rho, rho / norm**2, uniform.passes

    @staticmethod
    def _system(model: Model) -> tuple[Normal, Vector | None]:
        """Return the linear system, and b if the loss is part of it."""
        affine = affine_gradient(model.g)
        if affine is not None and np.all(affine.weight > 0):
            return normal_system(model, affine.weight), affine.b
        normal = normal_system(model, np.ones(model.A.shape[0]))
        if affine is not None and normal.is_diagonal and not np.any(affine.weight):
            return normal_system(model, affine.weight), affine.b
        return normal, None

    @staticmethod
    def _use(state: ADMMState, factor: float) -> None:
        """Multiply rho by a factor."""
        state.rho, state.loss_rho = factor * state.rho, factor * state.loss_rho
        state.system = ADMM._factored(state.normal, state.target, state.rho, state.loss_rho)

    @staticmethod
    def _factored(normal: Normal, target: Vector | None, rho: float, loss_rho: float) -> Factored:
        return normal.factored(rho, 1.0 if target is not None else 1.0 / loss_rho)

    def advance(self, state: ADMMState, passes: float) -> ADMMState:
        f, g = state.model.f, state.model.g
        for _ in range(max(1, round(passes))):
            system = state.system
            rho, loss_rho, before = state.rho, state.loss_rho, (state.z, state.image)
            state.x = f.prox(state.z - state.pull / rho, 1.0 / rho)
            u = None
            if state.target is None:
                u = g.prox(state.image + state.y / loss_rho, 1.0 / loss_rho)
            b = state.target if u is None else u - state.y / loss_rho
            assert b is not None
            state.z, state.pull, state.y = system.solve(state.x + state.pull / rho, b)
            state.image = b + system.weight * state.y
            state.passes += 1.0
            if state.balance.due():
                factor = state.balance.factor(*self._residuals(state, u, *before))
                if factor != 1.0:
                    self._use(state, factor)
        return state

    @staticmethod
    def _residuals(state: ADMMState, u: Vector | None, z: Vector, image: Vector) -> tuple[float, float]:
        """Return x - z relative to z, and the step of z relative to A'y; both include those of u if it is used."""
        weights = np.sqrt([state.rho, state.loss_rho if u is not None else 0.0])

        def length(of_x: Vector, of_u: Vector) -> float:
            return float(np.hypot(weights[0] * np.linalg.norm(of_x), weights[1] * np.linalg.norm(of_u)))

        off_u = 0.0 * image if u is None else u - state.image
        primal = length(state.x - state.z, off_u) / (length(state.z, state.image) or 1.0)
        dual = length(state.z - z, state.image - image)
        return primal, dual / (length(state.pull / state.rho, state.y / state.loss_rho) or 1.0)

    def candidates(self, state: ADMMState) -> Candidates:
        u = state.model.A.matvec(state.x)
        state.passes += 0.5
        return Candidates(
            [(state.x, u), (state.z, state.image)],
            [(state.y, -state.pull), *gradient(state.model, u)],
        )
