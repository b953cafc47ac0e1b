r"""Gauss-Seidel ADMM: the blocks one after the other, then the multiplier.

Hong and Luo, *On the linear convergence of the alternating direction method of multipliers* (2012). On the problem of
``_constrained.py``, where every block uses the new values of the blocks before it,

.. math::

    w_j \leftarrow \mathrm{prox}_{F_j}^{\rho \|B_j\|^2}\Big(w_j - \frac{B_j'(y + \rho (Bw - b))}{\rho \|B_j\|^2}\Big),
    \quad j = 1, \dots, J, \qquad y \leftarrow y + \alpha \rho (Bw - b).

With more than two blocks it need not converge at alpha = 1, the choice of the paper and the default. Hong and Luo prove
convergence for a small alpha, under assumptions. One iteration is one pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..certificates.candidates import Candidates
from ..model.model import Model
from ._constrained import ConstrainedState, balance, first_state, offered, remembered, step_blocks
from .contract import Method, Start, positive_number


@dataclass(frozen=True)
class GSADMM(Method[ConstrainedState]):
    """ADMM that updates the blocks one after the other.

    Parameters
    ----------
    rho : float, optional
        Penalty of the constraint. By default it is guessed from the units of the data and adapted until both residuals
        are of similar size.
    dual_step : float, default 1.0
        alpha, relative to rho.
    """

    name = "gs-admm"
    rho: float | None = None
    dual_step: float = 1.0

    def __post_init__(self) -> None:
        if self.rho is not None:
            positive_number("rho", self.rho)
        positive_number("dual_step", self.dual_step)

    def init(self, model: Model, start: Start) -> ConstrainedState:
        return ConstrainedState(**first_state(model, start, self.rho))

    def advance(self, state: ConstrainedState, passes: float) -> ConstrainedState:
        order = np.arange(len(state.split.blocks))[:, None]
        for _ in range(max(1, round(passes))):
            before = remembered(state)
            for block in order:
                step_blocks(state, block, state.y)
            state.y += self.dual_step * state.rho * state.residual
            balance(state, before)
        return state

    def candidates(self, state: ConstrainedState) -> Candidates:
        return offered(state)
