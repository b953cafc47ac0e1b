r"""PDHG, the primal-dual method of Chambolle and Pock (2011); the paper's PDCP.

.. math::

    y \leftarrow \mathrm{prox}_{g^*}^\Sigma(y + \Sigma^{-1} A \bar x), \qquad
    x^+ = \mathrm{prox}_f^H(x - H^{-1} A'y), \qquad
    \bar x = x^+ + \theta (x^+ - x),

with :math:`h = \omega \|A\|`, :math:`\sigma = \|A\| / \omega`. Every iteration is one pass.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from ..certificates.candidates import Candidates
from ..common.arrays import Vector
from ..common.checks import number
from ..common.rebuildable import stored
from ..model.model import Model
from ..steps.strengths import Strengths, uniform_strengths
from .contract import Averages, Method, Start, State, all_blocks, current_and_average, positive_number


@stored
@dataclass(kw_only=True)
class PDHGState(State):
    """The point with u = Ax and the extrapolated product A xbar."""

    model: Model
    u: Vector
    ahead: Vector
    averages: Averages
    strengths: Strengths


@dataclass(frozen=True)
class PrimalDual(Method[PDHGState]):
    """The iteration above with any strengths of x and y.

    Parameters
    ----------
    primal_weight : float, default 1.0
        omega, which scales h up and sigma down.
    extrapolation : float, default 1.0
        theta, from 0 to 1. The convergence proof needs 1; 0 is the method of Arrow and Hurwicz. For robust PCA the
        latter is what the script behind the ADMM row of the paper computes, with ``primal_weight`` = rho / sqrt(3).
    """

    primal_weight: float = 1.0
    extrapolation: float = 1.0

    def __post_init__(self) -> None:
        positive_number("primal_weight", self.primal_weight)
        if not 0 <= number("extrapolation", self.extrapolation) <= 1:
            raise ValueError(f"extrapolation={self.extrapolation!r}: expected a number from 0 to 1")

    @abstractmethod
    def strengths(self, model: Model) -> Strengths:
        """Return the strengths at omega = 1."""

    def init(self, model: Model, start: Start) -> PDHGState:
        strengths = self.strengths(model).weighted(self.primal_weight)
        u, cost = start.image(model)
        return PDHGState(
            x=start.x.copy(),
            y=start.y.copy(),
            u=u,
            ahead=u.copy(),
            passes=strengths.passes + cost,
            choices=all_blocks(model),
            model=model,
            averages=Averages.of(model),
            strengths=strengths,
        )

    def advance(self, state: PDHGState, passes: float) -> PDHGState:
        f, A, g_star = state.model.f, state.model.A, state.model.g_star
        primal, dual = 1.0 / state.strengths.primal, 1.0 / state.strengths.dual
        for _ in range(max(1, round(passes))):
            state.y = g_star.prox(state.y + dual * state.ahead, dual)
            state.x = f.prox(state.x - primal * A.rmatvec(state.y), primal)
            u = A.matvec(state.x)
            state.ahead = u + self.extrapolation * (u - state.u)
            state.u = u
            state.averages.include(state.x, state.y)
            state.passes += 1.0
        return state

    def candidates(self, state: PDHGState) -> Candidates:
        return current_and_average(state.model, state.x, state.u, state.y, state.averages)


@dataclass(frozen=True)
class PDHG(PrimalDual):
    """All blocks, with a single strength from the norm of A.

    Parameters
    ----------
    primal_weight : float, default 1.0
        Factor of the primal strengths, and divisor of the dual ones.
    extrapolation : float, default 1.0
        theta, from 0 to 1; the convergence proof needs 1.
    """

    name = "pdhg"

    def strengths(self, model: Model) -> Strengths:
        return uniform_strengths(model)
