r"""FISTA on the dual problem (Beck and Teboulle, 2009b), for penalties that are strongly convex.

.. math::

    \min_y\; g^*(y) + f^*(-A'y)

has the form of the problem itself, with g* in the place of the penalty, -A' in that of A, and f* in that of the loss.
If f is strongly convex, then f* has a Lipschitz gradient, which is the x that is best for -A'y. An iteration is one
product with A', one with A, and one prox of g*. For signals and images under total variation, g* is the indicator of a
box or of a ball per pixel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..certificates.candidates import Candidates
from ..common.rebuildable import stored
from ..functions.traits import curvature as curvature_of
from ..functions.traits import is_smooth, subgradient_scale
from ..model.model import Model
from ._forward_backward import ForwardBackwardState
from .contract import Method, Start, State, all_blocks
from .fista import FISTA

GROWTH = 0.25
"""t_{k+1} - t_k, at most 1/2 (Chambolle and Dossal, 2015). On images 1/4 takes up to a quarter fewer iterations than
1/2, which is about that of Beck and Teboulle (2009), and 1/10 takes more again."""


FEW, SPARSE = 3000.0, 4
"""The method is chosen by default up to this number of expected iterations, for an A with at most this number of
entries per row or column."""


@dataclass(frozen=True)
class SlowMomentum(FISTA):
    """FISTA with momentum that grows more slowly."""

    def following(self, momentum: float) -> float:
        return momentum + GROWTH


@stored
@dataclass(kw_only=True)
class DualState(State):
    """The state of FISTA on the dual problem."""

    model: Model
    inner: ForwardBackwardState


@dataclass(frozen=True)
class DualFISTA(Method[DualState]):
    """Accelerated proximal gradient steps on the dual problem. It has no options."""

    name = "dual-fista"

    def missing(self, model: Model) -> str | None:
        return None if is_smooth(model.f_star) else "its penalty is not strongly convex"

    @property
    def sparse_iterates(self) -> bool:
        return False

    def init(self, model: Model, start: Start) -> DualState:
        inner = SlowMomentum().init(model.dual(), Start(x=start.y, y=start.x))
        return self._at(DualState(x=inner.y, y=inner.x, model=model, inner=inner, choices=all_blocks(model)))

    def advance(self, state: DualState, passes: float) -> DualState:
        state.inner = SlowMomentum().advance(state.inner, passes)
        return self._at(state)

    def _at(self, state: DualState) -> DualState:
        state.x, state.y, state.passes = state.inner.y, state.inner.x, state.inner.passes
        return state

    def candidates(self, state: DualState) -> Candidates:
        offer = SlowMomentum().candidates(state.inner)
        return Candidates(offer.dual, offer.primal)


def pays(model: Model, tol: float) -> bool:
    r"""Return whether the method is expected to reach the tolerance in a few cheap iterations.

    After k iterations the dual is within :math:`2 L \|y^\star\|^2 / k^2` of its optimum, with L the Lipschitz constant
    of the gradient. Here it is compared with tol times the objective at 0, and the length of a subgradient of the loss
    stands for that of the solution.
    """
    traits, curvature = model.A.traits, curvature_of(model.f_star)
    if curvature is None or traits.norm is None or traits.stored > SPARSE * max(model.A.shape):
        return False
    length = float(np.linalg.norm(np.broadcast_to(subgradient_scale(model.g), model.A.shape[:1])))
    rise = 2.0 * float(curvature.max()) * (traits.norm * length) ** 2
    return 0 < rise <= FEW**2 * tol * model.value_at_zero
