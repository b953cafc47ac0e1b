r"""OSGA, Neumaier's optimal subgradient algorithm (2014), for :math:`\psi(x) = f(x) + g(Ax)`.

It keeps the best point :math:`x_b`, and an affine minorant :math:`\gamma + \langle h, z \rangle \le \psi(z)`, a mean of
the minorants at all points so far. With :math:`Q(z) = Q_0 + \tfrac12 \|z - x_0\|^2` the error is bounded by

.. math::

    \psi(x_b) - \psi(z) \le \eta\, Q(z), \qquad
    \eta = \sup_z \frac{\psi(x_b) - \gamma - \langle h, z \rangle}{Q(z)} = E(\gamma - \psi(x_b), h),

whose maximiser u has a closed form. Every iteration goes from :math:`x_b` towards u and makes eta smaller, with an
adaptive step alpha. The slopes of the loss are averaged in the same way as those of psi. As h tends to 0, their mean y
tends to a solution of the dual. An iteration takes two products with A and one with A': 1.5 passes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..certificates.candidates import Candidates
from ..common.arrays import Vector
from ..common.rebuildable import stored
from ..model.model import Model
from ..steps.strengths import typical_distance
from .contract import Method, Start, State, all_blocks, gradient, positive_number

DELTA, ALPHA_MAX, KAPPA = 0.9, 0.7, 0.5
"""Neumaier's parameters: the sufficient share of the predicted decrease, the largest alpha, and its rate of change."""

LARGEST_EXPONENT = 700.0
"""Largest exponent of the growth of alpha: exp overflows beyond it, and ALPHA_MAX bounds alpha anyway."""


@stored
@dataclass
class Minorant:
    """gamma + <h, z> <= psi(z), with the mean y of the slopes of the loss, and with u and eta for x_b."""

    gamma: float
    h: Vector
    y: Vector
    u: Vector
    eta: float


@stored
@dataclass(kw_only=True)
class OSGAState(State):
    """The best point x so far, with its image Ax and its value; y is the mean of the slopes."""

    model: Model
    image: Vector
    value: float
    minorant: Minorant
    centre: Vector
    offset: float
    alpha: float


@dataclass(frozen=True)
class OSGA(Method[OSGAState]):
    """A subgradient method for loss and penalty, without a step size to choose.

    Parameters
    ----------
    offset : float, optional
        Q_0; by default half the square of the distance that the data suggest for x.
    """

    name = "osga"
    offset: float | None = None

    def __post_init__(self) -> None:
        if self.offset is not None:
            positive_number("offset", self.offset)

    def missing(self, model: Model) -> str | None:
        for what, function in (("loss", model.g), ("penalty", model.f)):
            if not function.domain.everything:
                return f"its {what} is infinite outside a set, or its subgradients are not known"
        return None

    def init(self, model: Model, start: Start) -> OSGAState:
        image, cost = start.image(model)
        distance = typical_distance(model)
        offset = self.offset or 0.5 * distance**2 or 1.0
        value, y, slope = _look(model, start.x, image)
        gamma = value - float(slope @ start.x)
        u, eta = _farthest(gamma - value, slope, start.x, offset)
        return OSGAState(
            x=start.x.copy(),
            y=y,
            passes=cost + 0.5,
            choices=all_blocks(model),
            model=model,
            image=image,
            value=value,
            minorant=Minorant(gamma, slope, y, u, eta),
            centre=start.x.copy(),
            offset=offset,
            alpha=ALPHA_MAX,
        )

    def advance(self, state: OSGAState, passes: float) -> OSGAState:
        for _ in range(max(1, round(passes / 1.5))):
            if state.minorant.eta <= 0:  # the best point is a minimiser
                state.passes += passes
                break
            self._iterate(state)
        return state

    @staticmethod
    def _iterate(state: OSGAState) -> None:
        model, old, alpha = state.model, state.minorant, state.alpha
        x = state.x + alpha * (old.u - state.x)
        image = model.A.matvec(x)
        value, y, slope = _look(model, x, image)
        h = old.h + alpha * (slope - old.h)
        gamma = old.gamma + alpha * (value - float(slope @ x) - old.gamma)
        if value < state.value:
            state.x, state.image, state.value = x, image, value
        towards, _ = _farthest(gamma - state.value, h, state.centre, state.offset)
        x = state.x + alpha * (towards - state.x)
        image = model.A.matvec(x)
        value = model.f.finite_value(x) + model.g.finite_value(image)
        if value < state.value:
            state.x, state.image, state.value = x, image, value
        u, eta = _farthest(gamma - state.value, h, state.centre, state.offset)
        decrease = (old.eta - eta) / (DELTA * alpha * old.eta)
        growth = -KAPPA if decrease < 1 else min(KAPPA * (decrease - 1), LARGEST_EXPONENT)
        state.alpha = min(alpha * np.exp(growth), ALPHA_MAX)
        if eta < old.eta:
            state.minorant = Minorant(gamma, h, old.y + alpha * (y - old.y), u, eta)
            state.y = state.minorant.y
        state.passes += 1.5

    def candidates(self, state: OSGAState) -> Candidates:
        dual = [(state.y, None), *gradient(state.model, state.image)]
        return Candidates([(state.x, state.image)], dual)


def _look(model: Model, x: Vector, image: Vector) -> tuple[float, Vector, Vector]:
    """Return psi at x, a slope y of the loss there, and the subgradient of psi that follows from y."""
    y = model.g.subgradient(image)
    value = model.f.finite_value(x) + model.g.finite_value(image)
    return value, y, model.f.subgradient(x) + model.A.rmatvec(y)


def _farthest(gamma: float, h: Vector, centre: Vector, offset: float) -> tuple[Vector, float]:
    r"""Return the maximiser u of :math:`-(\gamma + \langle h, z \rangle) / Q(z)`, and the maximum E(gamma, h)."""
    beta = gamma + float(h @ centre)
    length = float(np.linalg.norm(h))
    if length == 0:
        return centre.copy(), -beta / offset
    root = float(np.hypot(beta, np.sqrt(2.0 * offset) * length))
    # two forms of the same value; the sign of beta decides which one is free of cancellation
    eta = (root - beta) / (2.0 * offset) if beta <= 0 else length * (length / (beta + root))
    return centre - h / eta, eta
