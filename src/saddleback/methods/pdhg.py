r"""PDHG, the primal-dual method of Chambolle and Pock (2011); the paper's PDCP.

.. math::

    y \leftarrow \mathrm{prox}_{g^*/\sigma}(y + A \bar x / \sigma), \qquad
    x^+ = \mathrm{prox}_{f/h}(x - A'y / h), \qquad
    \bar x = 2 x^+ - x,

with :math:`h = \sigma = \|A\|`. Every iteration is one pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..functions._base import Vector
from ..problem import Model
from ..steps import SLACK, operator_norm
from ._base import Averages, Candidates, Method, Start, State, all_blocks, current_and_average


@dataclass(kw_only=True)
class PDHGState(State):
    """The point with u = Ax and the extrapolated product A xbar."""

    model: Model
    u: Vector
    ahead: Vector
    averages: Averages
    strength: float


@dataclass(frozen=True)
class PDHG(Method[PDHGState]):
    """All blocks, one strength: no options."""

    name = "pdhg"

    def init(self, model: Model, start: Start) -> PDHGState:
        settings = all_blocks(self.name, model, start)
        square, passes = operator_norm(model.A.matvec, model.A.rmatvec, model.A.shape[1])
        u = model.A.matvec(start.x)
        return PDHGState(
            x=start.x.copy(),
            y=start.y.copy(),
            u=u,
            ahead=u.copy(),
            passes=passes + 0.5,
            settings=settings,
            model=model,
            averages=Averages.of(model),
            strength=float(np.sqrt(SLACK * square)) or 1.0,
        )

    def advance(self, state: PDHGState, passes: float) -> PDHGState:
        model, step = state.model, 1.0 / state.strength
        for _ in range(max(1, round(passes))):
            state.y = model.g.prox_conjugate(state.y + step * state.ahead, step)
            state.x = model.f.prox(state.x - step * model.A.rmatvec(state.y), step)
            u = model.A.matvec(state.x)
            state.ahead = 2.0 * u - state.u
            state.u = u
            state.averages.x += state.x
            state.averages.y += state.y
            state.averages.count += 1
            state.passes += 1.0
        return state

    def candidates(self, state: PDHGState) -> Candidates:
        return current_and_average(state.model, state.x, state.u, state.y, state.averages)
