r"""PURE-CD: primal-dual coordinate descent that updates y only in the rows that the drawn blocks touch.

One iteration draws K of the J blocks, S; R holds the rows in which they have entries. With :math:`\theta_k = \pi_k J/K`
and :math:`\pi_k` the probability that row k is in R,

.. math::

    \bar y_k &= \mathrm{prox}_{g_k^*}(y_k + u_k / \sigma_k), \quad k \in R, \qquad
    x_j \leftarrow \mathrm{prox}_{f_j}^{H_j}(x_j - H_j^{-1} A_j' \bar y), \quad j \in S, \\
    v &= \sum_{j \in S} A_j\, \Delta x_j, \qquad
    y_k \leftarrow \bar y_k + \theta_k v_k / \sigma_k, \quad u_k \leftarrow u_k + v_k, \quad k \in R.

Nothing happens in the other rows, so that the cost of an iteration is proportional to the entries that it touches, for
every loss. y may leave the domain of g*; the method reports and averages :math:`\bar y`, in all rows.

Alacaoglu, Fercoq and Cevher, *Random extrapolation for primal-dual coordinate descent* (2020), for K = 1; its extension
to K drawn blocks and the condition on the strengths are in ``steps/strengths.py`` and docs/theory/methods.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..certificates.candidates import Candidates
from ..common.arrays import Vector
from ..common.rebuildable import stored
from ..model.model import Model
from ..places.choose import BackendName, pure_cd_kernel_for
from ..places.contract import PureCDKernel
from ..steps.sampling import KNice
from ..steps.strengths import Strengths, pure_strengths
from .contract import Averages, Method, Start, State, current_and_average
from .report import Report


@stored
@dataclass(kw_only=True)
class PureCDState(State):
    """The point with u = Ax, the y before the dual step (``memory``), the strengths, and the draws."""

    model: Model
    u: Vector
    memory: Vector
    averages: Averages
    strengths: Strengths
    theta: Vector
    sampling: KNice
    kernel: PureCDKernel

    @property
    def dual_share(self) -> Vector:
        """1/theta: row k takes a step in the share pi_k of the iterations, each block in the share K/J."""
        return 1.0 / self.theta

    def go_to(self, x: Vector, y: Vector, u: Vector) -> None:
        """Continue from another point."""
        self.x[:], self.y[:], self.u[:], self.memory[:] = x, y, u, y


@dataclass(frozen=True)
class PureCD(Method[PureCDState]):
    """Coordinate descent on x with an extrapolated y; one block per iteration by default.

    Parameters
    ----------
    backend : {"auto", "numpy", "native"}, default "auto"
        The kernels to run on.
    """

    name = "pure-cd"
    draws = True
    layers = ("restarts", "working_set")
    backend: BackendName = "auto"

    def missing(self, model: Model) -> str | None:
        return None if model.A.traits.entries_known else "A is a LinearOperator, and pure-cd needs the entries of A"

    def init(self, model: Model, start: Start) -> PureCDState:
        model = model.columnar()
        drawn = 1 if start.drawn is None else min(start.drawn, len(model.blocks))
        strengths, theta = pure_strengths(model, drawn)
        kernel = pure_cd_kernel_for(model, self.backend)
        return PureCDState(
            x=start.x.copy(),
            y=start.y.copy(),
            u=model.A.matvec(start.x),
            memory=start.y.copy(),
            passes=strengths.passes + 0.5,
            choices=Report(blocks_per_iteration=drawn, n_blocks=len(model.blocks), backend=kernel.name),
            model=model,
            averages=Averages.of(model),
            strengths=strengths,
            theta=theta,
            sampling=KNice(len(model.blocks), drawn, start.seed),
            kernel=kernel,
        )

    def advance(self, state: PureCDState, passes: float) -> PureCDState:
        share = state.sampling.drawn / state.sampling.n_blocks
        iterations = max(1, round(passes / share))
        state.kernel.sweep(state.sampling.draw(iterations), state.strengths, state.theta, state)
        state.averages.count += iterations
        state.passes += iterations * share
        return state

    def candidates(self, state: PureCDState) -> Candidates:
        # rounding errors accumulate in u over the iterations: recompute it before the certificate
        state.u[:] = state.model.A.matvec(state.x)
        state.passes += 0.5
        return current_and_average(state.model, state.x, state.u, state.y, state.averages)
