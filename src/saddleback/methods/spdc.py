r"""SPDC, the stochastic primal-dual coordinate method of Zhang and Xiao (2015), with mini-batches.

For :math:`g(u) = \sum_i g_i(u_i)` over the m rows :math:`a_i` of A, an iteration draws a set S of K rows and computes

.. math::

    y_i^+ &= \mathrm{prox}_{s g_i^*}(y_i + s\, \langle a_i, \bar x \rangle), \quad i \in S, \qquad
    v = \sum_{i \in S} (y_i^+ - y_i)\, a_i, \\
    x^+ &= \mathrm{prox}_{\tau f}\big(x - \tau (A'y + \tfrac{m}{K} v)\big), \qquad
    \bar x = x^+ + \theta (x^+ - x).

The method assumes that f is lambda-strongly convex and that all :math:`g_i^*` are gamma-strongly convex. With
:math:`R = \max_i \|a_i\|`, and with the paper's :math:`\phi_i = m\, g_i`,

.. math::

    \tau = \frac{1}{2 R m} \sqrt{\frac{K \gamma}{\lambda}}, \qquad
    s = \frac{1}{2 R} \sqrt{\frac{\lambda}{K \gamma}}, \qquad
    \theta = 1 - \Big(\frac{m}{K} + \frac{R\, m}{\sqrt{K \lambda \gamma}}\Big)^{-1}.

If f or g* is not strongly convex, the squared norm of its argument times half of ``primal_regularisation`` or
``dual_regularisation`` is added to it, as in the paper's section on non-smooth or non-strongly convex functions. The
method then solves the changed problem. The certificate is that of the given problem, and shows the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..certificates.candidates import Candidates
from ..common.arrays import Step, Vector
from ..common.checks import number, shown
from ..common.rebuildable import stored
from ..functions.calculus import parts_of
from ..functions.contract import Convex
from ..functions.traits import curvature as curvature_of
from ..functions.traits import subgradient_scale
from ..model.model import Model
from ..steps.sampling import KNice
from ..steps.strengths import typical_distance
from .contract import Method, Start, State, all_blocks, gradient, positive_number

DISTORTION = 1e-3
"""Change of the objective by each default regularisation, at a point of typical size, relative to the objective at
x = 0."""

ITERATIONS_A_PASS = 64


@stored
@dataclass(kw_only=True)
class SPDCState(State):
    """The point, its extrapolation, pull = A'y, the draws, and the steps."""

    model: Model
    ahead: Vector
    pull: Vector
    sampling: KNice
    primal_step: float
    dual_step: float
    theta: float
    ridges: tuple[float, float]


@dataclass(frozen=True)
class SPDC(Method[SPDCState]):
    """Updates random rows of y and all of x per iteration.

    Parameters
    ----------
    primal_regularisation, dual_regularisation : float, optional
        Quadratic terms added to f and to g*. By default 0 for a strongly convex term; otherwise the value that changes
        the objective by about a thousandth of its value at x = 0.
    rows_per_iteration : int, optional
        K; by default 64 iterations make a pass.
    """

    name = "spdc"
    primal_regularisation: float | None = None
    dual_regularisation: float | None = None
    rows_per_iteration: int | None = None

    def __post_init__(self) -> None:
        for name in ("primal_regularisation", "dual_regularisation"):
            value = getattr(self, name)
            if value is not None and number(name, value) != 0:
                positive_number(name, value)
        rows = self.rows_per_iteration
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 1):
            raise ValueError(f"rows_per_iteration={shown(rows)}: expected None or a positive integer")

    def missing(self, model: Model) -> str | None:
        if len(model.g.blocks()) < model.A.shape[0]:
            return "its loss is not a sum over the rows of A"
        if not model.g.domain.everything:
            return "its loss is infinite outside a set, or not known to be finite"
        return None if model.A.traits.entries_known else "A is a LinearOperator, whose rows are not known"

    def init(self, model: Model, start: Start) -> SPDCState:
        model = model.rowwise()
        m = model.A.shape[0]
        K = min(self.rows_per_iteration or -(-m // ITERATIONS_A_PASS), m)
        ridges, convexity = self._strong_convexity(model)
        lam, gamma = convexity
        R = float(np.sqrt(model.A.sums(2)[1].max())) or 1.0
        primal_step = np.sqrt(K * gamma / lam) / (2.0 * R * m)
        dual_step = np.sqrt(lam / (K * gamma)) / (2.0 * R)
        theta = 1.0 - 1.0 / (m / K + R * m / np.sqrt(K * lam * gamma))
        return SPDCState(
            x=start.x.copy(),
            y=start.y.copy(),
            passes=0.5,
            choices=all_blocks(
                model, rows_per_iteration=K, primal_regularisation=ridges[0], dual_regularisation=ridges[1]
            ),
            model=model,
            ahead=start.x.copy(),
            pull=model.A.rmatvec(start.y),
            sampling=KNice(m, K, start.seed),
            primal_step=float(primal_step),
            dual_step=float(dual_step),
            theta=float(theta),
            ridges=ridges,
        )

    def _strong_convexity(self, model: Model) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the regularisation of f and g*, and their strong convexity with it."""
        curvature = curvature_of(model.g)
        dual = 0.0 if curvature is None else 1.0 / (float(curvature.max()) or 1.0)
        slope = float(np.linalg.norm(np.broadcast_to(subgradient_scale(model.g), (model.A.shape[0],))))
        added, total = [], []
        for given, own, size in (
            (self.primal_regularisation, strong_convexity(model.f), typical_distance(model)),
            (self.dual_regularisation, dual, slope),
        ):
            default = 0.0 if own > 0 else 2.0 * DISTORTION * model.value_at_zero / (size**2 or 1.0)
            added.append(default if given is None else given)
            total.append(own + added[-1])
            if total[-1] == 0:
                raise ValueError(
                    f"{'primal' if len(total) == 1 else 'dual'}_regularisation=0: expected a positive number, since "
                    f"{'the penalty' if len(total) == 1 else 'the conjugate of the loss'} is not strongly convex"
                )
        return (added[0], added[1]), (total[0], total[1])

    def advance(self, state: SPDCState, passes: float) -> SPDCState:
        f, A, g_star = state.model.f, state.model.A, state.model.g_star
        m, K = state.sampling.n_blocks, state.sampling.drawn
        iterations = max(1, round(passes * m / K))
        step = np.full(K, state.dual_step)
        for rows in state.sampling.draw(iterations):
            argument = state.y[rows] + step * A.matvec(state.ahead, rows=rows)
            y = with_ridge(lambda v, s, own=rows: g_star.prox(v, s, own), argument, step, state.ridges[1])
            change = A.rmatvec(y - state.y[rows], rows=rows)
            direction = state.pull + m / K * change
            x = with_ridge(f.prox, state.x - state.primal_step * direction, state.primal_step, state.ridges[0])
            state.ahead = x + state.theta * (x - state.x)
            state.x, state.y[rows] = x, y
            state.pull += change
        state.passes += iterations * K / m
        return state

    def candidates(self, state: SPDCState) -> Candidates:
        # rounding errors accumulate in A'y over the iterations
        state.pull = state.model.A.rmatvec(state.y)
        u = state.model.A.matvec(state.x)
        state.passes += 1.0
        return Candidates([(state.x, u)], [(state.y.copy(), -state.pull), *gradient(state.model, u)])


def strong_convexity(f: Convex) -> float:
    """Return the largest known mu for which f - mu / 2 ||x||^2 is convex."""
    forms = [part.normal_form() for part, _ in parts_of(f)]
    return min(0.0 if form is None else float(form.parameters.quadratic.min()) for form in forms)


def with_ridge(prox: Callable[..., Vector], v: Vector, step: Step, ridge: float) -> Vector:
    """Return the prox of f + ridge / 2 ||x||^2, given the prox of f."""
    shrink = 1.0 / (1.0 + step * ridge)
    return prox(shrink * v, shrink * step)
