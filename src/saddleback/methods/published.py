r"""SP-BCD exactly as published by Zhu and Storkey (2015).

With :math:`\theta = K/J`, S the blocks drawn, and :math:`\bar r = A \bar x` kept by recursion:

.. math::

    x_j^+ &= \mathrm{prox}_{f_j}^{H_j}(x_j - H_j^{-1} A_j' y), \qquad
    \bar x_j^+ = x_j^+ + \theta (x_j^+ - x_j), \quad j \in S, \\
    y &\leftarrow \mathrm{prox}_{g^*}^{\Sigma_t}\Big(y + \Sigma_t^{-1}\big(\bar r + \tfrac{J}{K} v\big)\Big), \quad
    v = \sum_{j \in S} A_j (\bar x_j^+ - \bar x_j), \qquad \bar r \leftarrow \bar r + v, \\
    h_d &= \sum_k |A_{kd}|, \qquad \sigma_k^t = \tfrac{J}{K} \sum_{j \in S} |A_{kj}|.

Its convergence theorem is false: sigma depends on the sample, and the extrapolation adds a noise that the proof drops.
It is kept for the reproduction of the paper. ``sp-bcd`` is the repaired method.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

import numpy as np

from ..certificates.candidates import Candidates
from ..common.arrays import Columns, Vector
from ..common.checks import one_of
from ..common.rebuildable import stored
from ..model.model import Model
from ..steps.sampling import KNice
from ..steps.strengths import (
    Strengths,
    automatic_draw,
    explicit_strengths,
    measure_norms,
    positive,
    remark_strengths,
    round_up_strengths,
)
from .contract import Averages, Method, Start, State, current_and_average
from .report import Report


@stored
@dataclass(kw_only=True)
class PublishedState(State):
    """The point, its extrapolation xbar with rbar = A xbar, and the draws."""

    model: Model
    x_bar: Vector
    r_bar: Vector
    averages: Averages
    primal_strength: Vector
    dual_strength: Vector | None
    sampling: KNice


@dataclass(frozen=True)
class PublishedSPBCD(Method[PublishedState]):
    """The published method.

    Parameters
    ----------
    step : {"l1", "remark"} or pair of array-like, default "l1"
        "l1" for the two equations of the paper, "remark" for its Remark, or a pair (primal_strength, dual_strength) of
        fixed values.
    sigma_rule : {"literal", "skip"}, default "literal"
        What to do with a row that no drawn block touches, for which sigma is 0: "literal" maximises over it without a
        proximal term, as the equation says; "skip" leaves it unchanged.
    """

    name = "sp-bcd-published"
    draws = True
    step: Any = "l1"
    sigma_rule: Literal["literal", "skip"] = "literal"

    def __post_init__(self) -> None:
        one_of("sigma_rule", self.sigma_rule, "literal", "skip")

    def missing(self, model: Model) -> str | None:
        by_entries = isinstance(self.step, str) and self.step == "l1" and not model.A.traits.entries_known
        return "A is a LinearOperator, and step='l1' needs its entries" if by_entries else None

    def init(self, model: Model, start: Start) -> PublishedState:
        model = model.columnar()
        J = len(model.blocks)
        passes = 0.5
        if start.drawn is None:
            norms = measure_norms(model)
            drawn, passes = automatic_draw(model, norms), passes + norms.passes
        else:
            drawn = min(start.drawn, J)
        h, sigma, cost = self._strengths(model, drawn, start)
        return PublishedState(
            x=start.x.copy(),
            y=start.y.copy(),
            x_bar=start.x.copy(),
            r_bar=model.A.matvec(start.x),
            passes=passes + cost,
            choices=Report(
                step=self.step if isinstance(self.step, str) else "explicit",
                blocks_per_iteration=drawn,
                n_blocks=J,
                sigma_rule=self.sigma_rule,
            ),
            model=model,
            averages=Averages.of(model),
            primal_strength=h,
            dual_strength=sigma,
            sampling=KNice(J, drawn, start.seed),
        )

    def _strengths(self, model: Model, drawn: int, start: Start) -> tuple[Vector, Vector | None, float]:
        """Return h, sigma or None if it depends on the sample, and the passes that they took."""
        if isinstance(self.step, str) and self.step == "l1":
            if self.sigma_rule == "literal":
                model.g.subgradient(np.zeros(model.A.shape[0]))  # raises if it has none: rows without sigma use it
            return round_up_strengths(model.f, positive(model.A.sums(1)[0])), None, 0.5
        if isinstance(self.step, str) and self.step == "remark":
            fixed: Strengths = remark_strengths(model, drawn)
        else:
            fixed = explicit_strengths(model, self.step, ("l1", "remark"), start.kept)
        return fixed.primal, fixed.dual, fixed.passes

    def advance(self, state: PublishedState, passes: float) -> PublishedState:
        f, A = state.model.f, state.model.A
        J, K = state.sampling.n_blocks, state.sampling.drawn
        theta = K / J
        iterations = max(1, round(passes * J / K))
        for drawn in state.sampling.draw(iterations):
            changes, pieces = [], state.model.blocks.pieces(drawn)
            for columns, blocks in pieces:
                step = 1.0 / state.primal_strength[columns]
                before = state.x[columns]
                after = f.prox(before - step * A.rmatvec(state.y, columns), step, blocks)
                bar = after + theta * (after - before)
                changes.append(A.matvec(bar - state.x_bar[columns], columns))
                state.x[columns], state.x_bar[columns] = after, bar
            v = reduce(np.add, changes)
            state.y = self._dual_step(state, [columns for columns, _ in pieces], state.r_bar + J / K * v)
            state.r_bar += v
            state.averages.include(state.x, state.y)
        state.passes += iterations * K / J
        return state

    def _dual_step(self, state: PublishedState, drawn: list[Columns], argument: Vector) -> Vector:
        g, g_star = state.model.g, state.model.g_star
        if state.dual_strength is not None:
            return g_star.prox(state.y + argument / state.dual_strength, 1.0 / state.dual_strength)
        sums = reduce(np.add, [state.model.A.sums(1, columns)[1] for columns in drawn])
        sigma = state.sampling.n_blocks / state.sampling.drawn * sums
        touched = sigma > 0
        strength = round_up_strengths(g, np.where(touched, sigma, 1.0))
        stepped = g_star.prox(state.y + argument / strength, 1.0 / strength)
        untouched = g.subgradient(argument) if self.sigma_rule == "literal" and not np.all(touched) else state.y
        return np.where(touched, stepped, untouched)

    def candidates(self, state: PublishedState) -> Candidates:
        u = state.model.A.matvec(state.x)
        state.passes += 0.5
        return current_and_average(state.model, state.x, u, state.y, state.averages)
