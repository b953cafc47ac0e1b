r"""PDMM, the parallel direction method of multipliers of Wang, Banerjee and Luo (2014).

On the problem of ``_constrained.py``, an iteration updates a set S of K of the J blocks in parallel,

.. math::

    w_j &\leftarrow \mathrm{prox}_{F_j}^{\rho \|B_j\|^2}
    \Big(w_j - \frac{B_j'(\hat y + \rho (Bw - b))}{\rho \|B_j\|^2}\Big), \quad j \in S, \\
    y &\leftarrow y + \tau \rho (Bw - b), \qquad \hat y = y - \nu \rho (Bw - b), \\
    \tau_i &= \frac{K}{\tilde K_i (2J - K)}, \qquad \nu_i = 1 - \frac{1}{\tilde K_i}, \qquad
    \tilde K_i = \min(K, J_i),

with :math:`J_i` the number of blocks that are not 0 in row i. The blocks see the dual point :math:`\hat y`, a step back
from y, so that they can be updated in parallel. One iteration is K/J of a pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..certificates.candidates import Candidates
from ..common.arrays import Vector
from ..common.rebuildable import stored
from ..model.model import Model
from ..steps.sampling import KNice
from ..steps.strengths import blocks_in_rows
from ._constrained import ConstrainedState, balance, first_state, offered, remembered, step_blocks
from .contract import Method, Start, positive_number


@stored
@dataclass(kw_only=True)
class PDMMState(ConstrainedState):
    """The dual point that the blocks see, the steps tau and nu, and the draws."""

    y_hat: Vector
    tau: Vector
    nu: Vector
    sampling: KNice


@dataclass(frozen=True)
class PDMM(Method[PDMMState]):
    """Random blocks in parallel; all of them by default, see ``blocks_per_iteration``.

    Parameters
    ----------
    rho : float, optional
        Penalty of the constraint. By default it is guessed from the units of the data and adapted until both residuals
        are of similar size.
    """

    name = "pdmm"
    draws = True
    rho: float | None = None

    def __post_init__(self) -> None:
        if self.rho is not None:
            positive_number("rho", self.rho)

    def missing(self, model: Model) -> str | None:
        return (
            None if model.A.traits.entries_known else "A is a LinearOperator, and the blocks in each row are not known"
        )

    def init(self, model: Model, start: Start) -> PDMMState:
        fields = first_state(model, start, self.rho)
        split: Model = fields["split"]
        J = len(split.blocks)
        K = J if start.drawn is None else min(start.drawn, J)
        together = np.minimum(K, np.maximum(blocks_in_rows(split), 1))
        fields["choices"].blocks_per_iteration = min(K, len(model.blocks))
        return PDMMState(
            **fields,
            y_hat=start.y.copy(),
            tau=K / (together * (2.0 * J - K)),
            nu=1.0 - 1.0 / together,
            sampling=KNice(J, K, start.seed),
        )

    def advance(self, state: PDMMState, passes: float) -> PDMMState:
        iterations = max(1, round(passes * state.sampling.n_blocks / state.sampling.drawn))
        for drawn in state.sampling.draw(iterations):
            before = remembered(state)
            step_blocks(state, drawn, state.y_hat)
            state.y += state.tau * state.rho * state.residual
            balance(state, before)
            state.y_hat = state.y - state.nu * state.rho * state.residual
        return state

    def candidates(self, state: PDMMState) -> Candidates:
        return offered(state)
