r"""Forward-backward steps: what ISTA, FISTA and FOBOS share.

.. math::

    y_t \in \partial g(A \bar x), \qquad x_t = \mathrm{prox}_{\eta_t f}(\bar x - \eta_t A'y_t), \qquad
    \bar x = x_t + \frac{t_k - 1}{t_{k+1}} (x_t - x_{t-1}).

u = Ax is kept together with x, so that an iteration takes one product with A' and one with A: one pass.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from ..certificates.candidates import Candidates
from ..common.arrays import Vector
from ..common.checks import number
from ..common.rebuildable import stored
from ..functions.traits import curvature as curvature_of
from ..functions.traits import is_smooth
from ..model.model import Model
from ..steps.strengths import operator_norm
from .contract import Averages, Method, Start, State, all_blocks, positive_number


@stored
@dataclass(kw_only=True)
class ForwardBackwardState(State):
    """The point with u = Ax, the extrapolated point with its product, the first step, and the momentum t_k."""

    model: Model
    u: Vector
    ahead: Vector
    ahead_u: Vector
    averages: Averages | None
    step: float
    iterations: int = 0
    momentum: float = 1.0


class ForwardBackward(Method[ForwardBackwardState]):
    """The iteration above. A subclass defines y, the step lengths and the candidates."""

    @abstractmethod
    def slope(self, model: Model, u: Vector) -> Vector:
        """Return the y of a point with u = Ax."""

    @abstractmethod
    def first_step(self, model: Model, y: Vector) -> tuple[float, float]:
        """Return the step of the first iteration, given the slope y of the start, and the passes to find it."""

    def later_step(self, first: float, iterations: int) -> float:
        """Return the step after a number of iterations."""
        return first

    def following(self, momentum: float) -> float:
        """Return t_{k+1}, given t_k; always 1 without momentum."""
        return 1.0

    def averages(self, model: Model) -> Averages | None:
        """Return empty sums of the iterates, if the candidates need them."""
        return None

    def remember(self, state: ForwardBackwardState) -> None:
        """Include the point in the averages, if the candidates need them."""

    def init(self, model: Model, start: Start) -> ForwardBackwardState:
        u, cost = start.image(model)
        y = self.slope(model, u)
        step, passes = self.first_step(model, y)
        return ForwardBackwardState(
            x=start.x.copy(),
            y=y,
            u=u,
            ahead=start.x.copy(),
            ahead_u=u.copy(),
            averages=self.averages(model),
            step=step,
            passes=cost + passes,
            choices=all_blocks(model, step=step),
            model=model,
        )

    def advance(self, state: ForwardBackwardState, passes: float) -> ForwardBackwardState:
        f, A = state.model.f, state.model.A
        for _ in range(max(1, round(passes))):
            step = self.later_step(state.step, state.iterations)
            state.y = self.slope(state.model, state.ahead_u)
            x = f.prox(state.ahead - step * A.rmatvec(state.y), step)
            u = A.matvec(x)
            following = self.following(state.momentum)
            weight = (state.momentum - 1.0) / following
            state.ahead, state.ahead_u = _extrapolated(x, state.x, weight), _extrapolated(u, state.u, weight)
            state.x, state.u, state.momentum = x, u, following
            self.remember(state)
            state.iterations += 1
            state.passes += 1.0
        return state


@dataclass(frozen=True)
class ProximalGradient(ForwardBackward):
    r"""Constant steps on a loss with a Lipschitz gradient, or on a smoothed loss.

    Parameters
    ----------
    step : float, optional
        eta; 1 / L by default, with :math:`L = \|C^{1/2} A\|^2` and C the curvature of the loss.
    smoothing : float, default 0.0
        mu. If it is positive, :math:`\tfrac\mu2 \|y\|^2` is added to the conjugate of the loss (Nesterov 2005) and the
        method solves that problem. The certificate is that of the given problem.
    """

    step: float | None = None
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if self.step is not None:
            positive_number("step", self.step)
        if number("smoothing", self.smoothing) != 0:
            positive_number("smoothing", self.smoothing)

    def missing(self, model: Model) -> str | None:
        if self.smoothing == 0 and not is_smooth(model.g):
            return "its loss has no Lipschitz gradient; smoothing=mu gives it one where the loss is finite everywhere"
        if self.smoothing > 0 and not model.g.domain.everything:
            return "its loss is infinite outside a set, or not known to be finite, and smoothing would relax it"
        return None

    def slope(self, model: Model, u: Vector) -> Vector:
        if self.smoothing == 0:
            return model.g.subgradient(u)
        return model.g_star.prox(u / self.smoothing, 1.0 / self.smoothing)

    def first_step(self, model: Model, y: Vector) -> tuple[float, float]:
        if self.step is not None:
            return self.step, 0.0
        bound, passes = lipschitz(model, self.smoothing)
        return (1.0 / bound if bound > 0 else 1.0), passes

    def candidates(self, state: ForwardBackwardState) -> Candidates:
        return Candidates([(state.x, state.u)], [(self.slope(state.model, state.u), None)])


def _extrapolated(at: Vector, before: Vector, weight: float) -> Vector:
    """Return at + weight (at - before), with one array of memory."""
    ahead = at - before
    ahead *= weight
    ahead += at
    return ahead


def lipschitz(model: Model, smoothing: float = 0.0) -> tuple[float, float]:
    """Return the Lipschitz constant of the gradient of x -> g(Ax), with g smoothed or not, and the passes it took."""
    curvature = curvature_of(model.g)
    if smoothing > 0:
        bound = np.full(model.A.shape[0], np.inf) if curvature is None else curvature
        curvature = np.where(bound > 0, 1.0 / (1.0 / np.where(bound > 0, bound, 1.0) + smoothing), 0.0)
    assert curvature is not None
    if model.A.traits.norm is not None and curvature.min() == curvature.max():
        return float(curvature[0]) * model.A.traits.norm**2, 0.0
    root = np.sqrt(curvature)
    return operator_norm(lambda x: root * model.A.matvec(x), lambda y: model.A.rmatvec(root * y), model.A.shape[1])
