r"""SP-BCD, repaired: stochastic parallel block coordinate descent with fixed strengths.

One iteration draws K of the J blocks, S, and with :math:`\rho = J/K` does

.. math::

    x_j &\leftarrow \mathrm{prox}_{f_j}^{H_j}(x_j - H_j^{-1} A_j' y), \quad j \in S, \qquad
    v = \sum_{j \in S} A_j\, \Delta x_j, \qquad u \leftarrow u + v \; (= Ax), \\
    y &\leftarrow \mathrm{prox}_{g^*}^{\Sigma}\big(y + \Sigma^{-1}(u + \rho v)\big).

The strengths H and Sigma never depend on S, and the dual argument extrapolates Ax itself: with these two changes the
proof of Zhu and Storkey (2015) holds. The method is then the stochastic primal-dual hybrid gradient method of
Chambolle, Ehrhardt, Richtarik and Schoenlieb (2018) with the roles of x and y exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..certificates.candidates import Candidates
from ..common.arrays import Vector
from ..common.rebuildable import stored
from ..model.model import Model
from ..places.choose import BackendName, DualName, block_kernel_for
from ..places.contract import BlockKernel
from ..steps.sampling import KNice
from ..steps.strengths import Strengths, automatic_draw, explicit_strengths, l1_strengths, measure_norms, norm_strengths
from .contract import Averages, Method, Start, State, current_and_average
from .report import Report


@stored
@dataclass(kw_only=True)
class SPBCDState(State):
    """The point with u = Ax, the strengths, and the draws."""

    model: Model
    u: Vector
    averages: Averages
    strengths: Strengths
    sampling: KNice
    kernel: BlockKernel

    @property
    def dual_share(self) -> float:
        """K/J: y takes a step in every iteration, each block in the share K/J of them."""
        return self.sampling.drawn / self.sampling.n_blocks

    def go_to(self, x: Vector, y: Vector, u: Vector) -> None:
        """Continue from another point."""
        self.x[:], self.y[:], self.u[:] = x, y, u


@dataclass(frozen=True)
class SPBCD(Method[SPBCDState]):
    """The block method with strengths that satisfy the ESO inequality of ``steps/strengths.py``.

    Parameters
    ----------
    step : {"norm", "l1"} or pair of array-like, default "norm"
        Rule of the strengths, or the pair (primal_strength, dual_strength).
    backend : {"auto", "numpy", "native", "torch"}, default "auto"
        The kernels to run on.
    dual : {"auto", "eager", "lazy"}, default "auto"
        "eager" updates y in all rows, "lazy" in those that the drawn blocks touch and in the others later, with the
        same iterates up to rounding. "auto" is lazy if that is faster.
    """

    name = "sp-bcd"
    draws = True
    layers = ("restarts", "working_set", "finish")
    step: Any = "norm"
    backend: BackendName = "auto"
    dual: DualName = "auto"

    @property
    def merges_rows(self) -> bool:
        """True unless the user has given strengths, which belong to the rows before merging."""
        return isinstance(self.step, str)

    def init(self, model: Model, start: Start) -> SPBCDState:
        blocks = len(model.blocks)
        model = model.columnar().in_panels()
        if start.drawn is not None and len(model.blocks) < blocks:  # the same share of the panels
            start = replace(start, drawn=max(1, round(start.drawn * len(model.blocks) / blocks)))
        strengths, drawn = self._strengths(model, start)
        kernel = block_kernel_for(model, drawn, self.backend, self.dual)
        u, cost = start.image(model)
        choices = Report(
            step=self.step if isinstance(self.step, str) else "explicit",
            blocks_per_iteration=model.strata.expected(drawn),
            n_blocks=len(model.blocks),
            backend=kernel.name,
            dual="lazy" if kernel.lazy else "eager",
        )
        return SPBCDState(
            x=start.x.copy(),
            y=start.y.copy(),
            u=u,
            passes=strengths.passes + cost,
            choices=choices,
            model=model,
            averages=Averages.of(model),
            strengths=strengths,
            sampling=KNice.of(model.strata, drawn, start.seed),
            kernel=kernel,
        )

    def _strengths(self, model: Model, start: Start) -> tuple[Strengths, int]:
        """Return the strengths and K; the norms of A determine K if the user did not."""
        by_norm = isinstance(self.step, str) and self.step == "norm"
        if start.drawn is not None and not by_norm:
            K = model.strata.drawn(start.drawn)
            return self._rule(model, K, start), K
        norms = measure_norms(model)
        K = automatic_draw(model, norms) if start.drawn is None else model.strata.drawn(start.drawn)
        return (norm_strengths(model, norms, K) if by_norm else self._rule(model, K, start)), K

    def _rule(self, model: Model, K: int, start: Start) -> Strengths:
        if isinstance(self.step, str) and self.step == "l1":
            return l1_strengths(model, K)
        return explicit_strengths(model, self.step, ("norm", "l1"), start.kept)

    def advance(self, state: SPBCDState, passes: float) -> SPBCDState:
        share = state.sampling.drawn / state.sampling.n_blocks
        iterations = max(1, round(passes / share))
        state.kernel.sweep(state.sampling.draw(iterations), state.strengths, 1.0 / share, state)
        state.averages.count += iterations
        state.passes += iterations * share
        return state

    def candidates(self, state: SPBCDState) -> Candidates:
        model = state.model
        # rounding errors accumulate in u over the iterations: recompute it before the certificate
        state.u[:] = model.A.matvec(state.x)
        state.passes += 0.5
        return current_and_average(model, state.x, state.u, state.y, state.averages)
