r"""FOBOS, forward-backward splitting with subgradients and decreasing steps; Duchi and Singer (2009).

The loss need not be smooth: y is any subgradient, and :math:`\eta_t = \eta / \sqrt t`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..certificates.candidates import Candidates
from ..common.arrays import Vector
from ..functions.traits import is_smooth
from ..model.model import Model
from ..steps.strengths import typical_distance
from ._forward_backward import ForwardBackward, ForwardBackwardState, lipschitz
from .contract import Averages, current_and_average, positive_number


@dataclass(frozen=True)
class FOBOS(ForwardBackward):
    """Subgradient steps on the loss, prox steps on the penalty.

    Parameters
    ----------
    step : float, optional
        eta. By default 1 / L for a loss with a Lipschitz gradient; for others the distance that the data suggest for x,
        divided by the norm of the first subgradient A'y.
    """

    name = "fobos"
    step: float | None = None

    def __post_init__(self) -> None:
        if self.step is not None:
            positive_number("step", self.step)

    def missing(self, model: Model) -> str | None:
        if not model.g.domain.everything:
            return "its loss is infinite outside a set, or its subgradients are not known"
        return None

    def slope(self, model: Model, u: Vector) -> Vector:
        return model.g.subgradient(u)

    def first_step(self, model: Model, y: Vector) -> tuple[float, float]:
        if self.step is not None:
            return self.step, 0.0
        if is_smooth(model.g):
            bound, passes = lipschitz(model)
            return (1.0 / bound if bound > 0 else 1.0), passes
        length = float(np.linalg.norm(model.A.rmatvec(y)))
        distance = typical_distance(model)
        return (distance / length if distance > 0 and length > 0 else 1.0), 0.5

    def later_step(self, first: float, iterations: int) -> float:
        return first / float(np.sqrt(iterations + 1.0))

    def averages(self, model: Model) -> Averages:
        return Averages.of(model)

    def remember(self, state: ForwardBackwardState) -> None:
        assert state.averages is not None
        state.averages.include(state.x, state.y)

    def candidates(self, state: ForwardBackwardState) -> Candidates:
        assert state.averages is not None
        return current_and_average(state.model, state.x, state.u, state.y, state.averages)
