r"""Alternating minimisation with restarted momentum, for a smooth loss over blocks under identities.

With :math:`u = \sum_j s_j x_j` and strengths :math:`h_j = s_j^2 L`, where L is the curvature of the loss, the blocks
are updated one after the other from an extrapolated point:

.. math::

    \bar x = x + \beta (x - x^{\mathrm{last}}), \qquad
    x_j \leftarrow \mathrm{prox}_{f_j}^{h_j}\big(\bar x_j - s_j \nabla g(u) / h_j\big), \qquad
    u \leftarrow u + s_j (x_j - \bar x_j), \qquad j = 1, \dots, J.

Under a squared loss each step minimises exactly over its block. With two blocks the first is then a function of the
second, and the method is Nesterov's method on the second (Beck and Teboulle, 2009): for robust PCA, on the low-rank
part. The momentum is set back to 0 whenever it points uphill (O'Donoghue and Candes, 2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..certificates.candidates import Candidates
from ..common.arrays import Step, Vector, is_one_value
from ..common.chunks import inner, panels
from ..common.rebuildable import stored
from ..functions.calculus import parts_of
from ..functions.contract import Convex
from ..functions.nuclear import NuclearNorm
from ..functions.piecewise import PiecewiseQuadratic
from ..functions.points import BufferedPoint, DensePoint
from ..functions.traits import curvature as curvature_of
from ..model.model import Model
from ..operators.deferred_points import Gradient, Image, forward, zeros
from ..steps.strengths import round_up_strengths
from .contract import Method, Start, State
from .report import Report

FLAT = 1e-12
"""Smallest strength, relative to the largest: in a row without weight, x goes to the minimiser of its penalty."""

FIRST_RATIO, HOPE, PROMISING = 0.25, 2.0, 0.5
"""A point is offered early if its expected error is at most HOPE times the tolerance, since a certificate costs no more
than the sweeps that it may save, and at most PROMISING times that of the last point offered early. The expected error
is the part that comes from the change of y, times the ratio of the true error to that part at the last certificate.
FIRST_RATIO is that ratio before the first certificate."""


@stored
@dataclass(kw_only=True)
class AlternatingState(State):
    """The current and the previous point, and the strengths of the blocks.

    ``points`` and ``last`` hold the blocks of the two points, in a form that saves memory. There is no y between
    sweeps: it is the gradient at x, and the field ``y`` is 0.

    ``momentum`` is Nesterov's sequence 1, 1.6, 2.2, ...; ``curvature`` is the largest curvature of the loss, and
    ``exact`` says that it is the same in all rows and at all points; ``value`` is approximately the objective.
    ``change`` is the part of the error that comes from the change of y in the last sweep, ``ratio`` the quotient of the
    certified error and that part, and ``offered`` the expected error of the last point that was offered early.
    """

    model: Model
    points: list[BufferedPoint]
    last: list[BufferedPoint]
    stretches: list[slice]
    scales: list[float]
    strengths: list[Step]
    tol: float
    curvature: float
    exact: bool
    value: float = 0.0
    change: float = np.inf
    ratio: float = FIRST_RATIO
    momentum: float = 1.0
    momentum_restarts: int = 0
    offered: float = np.inf

    def report(self) -> Report:
        return replace(self.choices, momentum_restarts=self.momentum_restarts)


@dataclass(frozen=True)
class Alternating(Method[AlternatingState]):
    """All blocks one after the other, with momentum. It has no options."""

    name = "alternating"
    warmup_passes = 8.0

    def missing(self, model: Model) -> str | None:
        if curvature_of(model.g) is None:
            return "its loss has no Lipschitz gradient in closed form"
        if model.A.traits.identity_scales is None:
            return "a block of A is not an identity"
        if not model.f_star.domain.has_zero():
            return "its penalty is unbounded below"
        return None

    def init(self, model: Model, start: Start) -> AlternatingState:
        scales, curvature = model.A.traits.identity_scales, curvature_of(model.g)
        assert scales is not None
        assert curvature is not None
        curvature = curvature[:1] if is_one_value(curvature) else curvature
        stretches = [slice(a, b) for a, b in pairwise(model.blocks.start.tolist())]
        dual = model.g_star
        nothing = zeros(model.A, 1)
        x = start.x if np.any(start.x) else np.broadcast_to(nothing, start.x.shape)  # x = 0 without its memory
        points: list[BufferedPoint] = [DensePoint(x[own]) for own in stretches]
        u = forward(model.A, DensePoint(x))
        return AlternatingState(
            x=x,
            y=np.broadcast_to(nothing, u.shape),
            passes=0.5 * np.count_nonzero(x) / x.size,
            choices=Report(blocks_per_iteration=len(scales), n_blocks=len(scales)),
            model=model,
            points=points,
            last=points,
            stretches=stretches,
            scales=list(scales),
            strengths=_strengths(model, curvature, scales, stretches),
            tol=start.tol,
            curvature=float(curvature.max()),
            value=abs(model.g.finite_value(u)),
            exact=bool(np.all(curvature == curvature[0]))
            and isinstance(dual, PiecewiseQuadratic)
            and dual.is_paraboloid(),
        )

    def advance(self, state: AlternatingState, passes: float) -> AlternatingState:
        for _ in range(max(1, round(passes))):
            self._sweep(state)
            state.passes += 1.0
            if state.wants_certificate:
                break
        return state

    def _sweep(self, state: AlternatingState) -> None:
        g, parts = state.model.g, parts_of(state.model.f)
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * state.momentum**2))
        beta = (state.momentum - 1.0) / following
        x = self._extrapolated(state, beta)
        u = forward(state.model.A, DensePoint(x))  # for a single block this is x itself
        uphill, lengths = 0.0, []
        points: list[BufferedPoint] = []
        for j, (own, scale, strength) in enumerate(zip(state.stretches, state.scales, state.strengths, strict=True)):
            new = self._forward(g.subgradient(u), x[own], -scale / strength)
            points.append(prox_point(parts[j][0], new, np.broadcast_to(1.0 / strength, new.shape)))
            points[j].write(new)  # in place: x is as large as the data
            step = x[own]
            length, product = self._turned_into_step(step, new)
            lengths.append(abs(scale) * length)
            if j + 1 < len(state.scales):
                u += scale * step
            if j > 0 or len(state.scales) == 1:  # the result for the first block does not depend on its start
                before = state.points[j]
                if isinstance(strength, float):
                    uphill -= strength * (product - before.inner(step))
                else:
                    step *= strength
                    uphill -= float(step @ new) - before.inner(step)
            if len(state.scales) == 1:
                x = new
            else:
                x[own] = new
            points[j].use_buffer(x[own])
        state.wants_certificate = self._is_promising(state, x, lengths)
        restart = uphill > 0
        state.momentum_restarts += int(restart)
        state.momentum = 1.0 if restart else following
        state.last, state.points, state.x = state.points, points, x

    @staticmethod
    def _forward(slope: Vector, x: Vector, factor: Step) -> Vector:
        """Return x plus a multiple of the slope, in the memory of the slope."""
        for own in panels(slope):
            part = slope[own]
            part *= factor if isinstance(factor, float) else factor[own]
            part += x[own]
        return slope

    @staticmethod
    def _turned_into_step(x: Vector, new: Vector) -> tuple[float, float]:
        """Overwrite x with new - x; return the length of that, and its inner product with new."""
        square = product = 0.0
        for own in panels(new):
            step = np.subtract(new[own], x[own], out=x[own])
            square += inner(step, step)
            product += inner(step, new[own])
        return float(np.sqrt(square)), product

    @staticmethod
    def _extrapolated(state: AlternatingState, beta: float) -> Vector:
        """Return x + beta (x - last), in the memory of x if all of its blocks can be recomputed."""
        folded = [point.release_buffer() for point in state.points]
        x = state.x if all(folded) else state.x.copy()
        if beta > 0:
            for own, point in zip(state.stretches, state.last, strict=True):
                point.extrapolate(x[own], beta)
        return x

    @staticmethod
    def _is_promising(state: AlternatingState, x: Vector, lengths: list[float]) -> bool:
        """Return whether the expected error is near the tolerance, and well below that of the last point offered early.

        Each block was minimised for the y of its time, and the later steps have changed y. The gap is about the sum of
        the products of each block with that change.
        """
        after = np.cumsum(lengths[::-1])[::-1] - (np.array(lengths) if state.exact else 0.0)
        sizes = [abs(scale) * np.linalg.norm(x[own]) for own, scale in zip(state.stretches, state.scales, strict=True)]
        state.change = state.curvature * float(after @ sizes) / (state.value or 1.0)
        error = state.ratio * state.change
        if error > min(HOPE * state.tol, PROMISING * state.offered):
            return False
        state.offered = error
        return True

    def adapt(self, state: AlternatingState, error: float) -> AlternatingState:
        if np.isfinite(state.change) and state.change > 0:
            state.ratio = error / state.change
        return state

    def candidates(self, state: AlternatingState) -> Candidates:
        A, g = state.model.A, state.model.g
        u = forward(A, DensePoint(state.x))
        y = g.subgradient(u)
        state.value = abs(g.finite_value(u) - float(y @ u))  # f(x) is about <-A'y, x>
        state.passes += 0.5
        if len(state.points) > 1:
            return Candidates([(state.x.copy(), u)], [(y, None)])
        x = state.points[0]
        return Candidates([(state.x, u)], [(y, None)], kept=([x], [Gradient(g, Image(A, x))]))


def prox_point(function: Convex, v: Vector, step: Step) -> BufferedPoint:
    """Return the prox as the kind of point that takes the least memory."""
    return function.prox_point(v, step) if isinstance(function, NuclearNorm) else DensePoint(function.prox(v, step))


def _strengths(model: Model, curvature: Vector, scales: Sequence[float], stretches: list[slice]) -> list[Step]:
    """Return strengths of each block for which its prox has a closed form; a single number if they are all equal."""
    if np.all(curvature == curvature[0]):
        return [scale**2 * (float(curvature[0]) or 1.0) for scale in scales]  # 0 if all rows have weight 0
    curvature = np.maximum(curvature, FLAT * curvature.max())
    admissible = round_up_strengths(model.f, np.concatenate([scale**2 * curvature for scale in scales]))
    of_blocks = [admissible[own] for own in stretches]
    return [float(own[0]) if np.all(own == own[0]) else own.copy() for own in of_blocks]
