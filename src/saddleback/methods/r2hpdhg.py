r"""r2HPDHG: restarted PDHG with a reflection and Halpern's anchor, on all blocks.

With z = (x, y) and T one step of PDHG in the metric of the strengths,

.. math::

    x^+ = \mathrm{prox}_f^H(x - H^{-1}A'y), \qquad
    y^+ = \mathrm{prox}_{g^*}^\Sigma\big(y + \Sigma^{-1}A(2x^+ - x)\big), \qquad T(z) = (x^+, y^+),

iteration k of an epoch is :math:`z \leftarrow \frac{k+1}{k+2}\,(2T(z) - z) + \frac{1}{k+2}\,z_0`. The next epoch begins
at T(z), when the fixed-point error

.. math::

    \|z - T(z)\|_P, \qquad P = \begin{pmatrix} H & -A' \\ -A & \Sigma \end{pmatrix},

has fallen far enough. The primal weight omega is corrected there too: with :math:`e = \log(\|\Delta y\|_\Sigma /
\|\Delta x\|_H) - \log\omega` over the epoch, :math:`\log\omega` grows by :math:`k_P e + k_I \sum_i s^i e_{-i}`.

The strengths are those of the ``norm`` rule for K = J: Ruiz scaling, then the sums of Pock and Chambolle (2011), then
one norm. The restarts are those of cuPDLPx (Lu, Peng and Yang, 2025), after Lu and Yang (2024). Every iteration is one
pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..certificates.candidates import Candidates
from ..common.arrays import Vector
from ..common.rebuildable import stored
from ..model.model import Model
from ..steps.strengths import EXPLOSION, WEIGHT_RANGE, Strengths, measure_norms, norm_strengths
from .contract import Method, Start, State, all_blocks, gradient
from .report import Report

SUFFICIENT = 0.2
"""Restart if the fixed-point error has fallen to this share of its value at the first step of the epoch,"""

NECESSARY = 0.8
"""or if it has fallen to this share and is rising,"""

LONG = 0.36
"""or if the epoch makes up this share of all iterations."""

TEST = 20
"""Iterations between tests: the error oscillates from one iteration to the next."""

PROPORTIONAL, INTEGRAL, MEMORY = 0.5, 0.01, 0.3
"""k_P, k_I and s of the weight. cuPDLPx uses k_P = 0.99 and NECESSARY = 0.5, and tests every 200 iterations; with these
values the linear programs of Netlib take about a tenth more passes."""

EVEN = 1.01
"""Ruiz scaling continues until the largest entries of columns, and of rows, are within this factor of each other."""


@stored
class Point(NamedTuple):
    """A pair with u = Ax."""

    x: Vector
    y: Vector
    u: Vector


def pdhg_step(model: Model, strengths: Strengths, at: Point) -> Point:
    """Return T(z): a step of x, then one of y against the extrapolated x."""
    h, sigma = strengths.primal, strengths.dual
    x = model.f.prox(at.x - model.A.rmatvec(at.y) / h, 1.0 / h)
    u = model.A.matvec(x)
    return Point(x, model.g_star.prox(at.y + (2.0 * u - at.u) / sigma, 1.0 / sigma), u)


def halpern(k: int, at: Point, ahead: Point, anchor: Point) -> Point:
    """Return the next z after iteration k of an epoch, given z, T(z) and the start of the epoch."""
    share = (k + 1.0) / (k + 2.0)
    return Point(*(share * (2.0 * t - z) + (1.0 - share) * z0 for z, t, z0 in zip(at, ahead, anchor, strict=True)))


def fixed_point_error(strengths: Strengths, at: Point, ahead: Point) -> float:
    """Return ||z - T(z)||_P; without the part of A if P is not positive, by rounding or too small strengths."""
    dx, dy, du = (z - t for z, t in zip(at, ahead, strict=True))
    apart = float(strengths.primal @ dx**2 + strengths.dual @ dy**2)
    square = apart - 2.0 * float(du @ dy)
    return float(np.sqrt(square if square > 0 else apart))


@stored
@dataclass
class Epoch:
    """What is remembered since the last restart: where it began, its length, and its first and last errors."""

    anchor: Point
    length: int = 0
    first: float = np.inf
    last: float = np.inf

    def pays(self, error: float, iterations: int) -> bool:
        """Return whether a restart rule holds, given the error and the number of all iterations."""
        return (
            error <= SUFFICIENT * self.first
            or (error <= NECESSARY * self.first and error > self.last)
            or self.length >= LONG * iterations
        )


@stored
@dataclass(kw_only=True)
class R2HPDHGState(State):
    """T(z) of the last iteration as (x, y, u), and what the next one and the restarts need.

    Attributes
    ----------
    at, before : z of the next iteration, and of the last.
    base, strengths : the strengths without and with the primal weight.
    drift : the discounted sum of the errors e of the weight.
    """

    model: Model
    u: Vector
    at: Point
    before: Point
    epoch: Epoch
    base: Strengths
    strengths: Strengths
    weight: float
    iterations: int = 0
    restarts: int = 0
    drift: float = 0.0

    def report(self) -> Report:
        return replace(self.choices, restarts=self.restarts, primal_weight=self.weight)


@stored
@dataclass(frozen=True)
class R2HPDHG(Method[R2HPDHGState]):
    """PDHG on all blocks, with built-in restarts and primal weight. It has no options."""

    name = "r2hpdhg"
    layers = ("finish",)

    def init(self, model: Model, start: Start) -> R2HPDHGState:
        choices = all_blocks(model)
        model = model.columnar()
        base = norm_strengths(model, measure_norms(model, EVEN), model.strata.size)
        u, cost = start.image(model)
        at = Point(start.x.copy(), start.y.copy(), u)
        return R2HPDHGState(
            x=at.x,
            y=at.y,
            u=at.u,
            passes=base.passes + cost,
            choices=choices,
            weight=start.weight,
            model=model,
            at=at,
            before=at,
            epoch=Epoch(at),
            base=base,
            strengths=base.weighted(start.weight),
        )

    def advance(self, state: R2HPDHGState, passes: float) -> R2HPDHGState:
        for _ in range(max(1, round(passes))):
            at, epoch = state.at, state.epoch
            ahead = pdhg_step(state.model, state.strengths, at)
            state.x, state.y, state.u = ahead
            state.before, state.at = at, halpern(epoch.length, at, ahead, epoch.anchor)
            epoch.length += 1
            state.iterations += 1
            state.passes += 1.0
            if epoch.length == 1 or epoch.length % TEST == 0:
                self._test(state, ahead)
            if state.wants_certificate:
                break
        return state

    def _test(self, state: R2HPDHGState, ahead: Point) -> None:
        """Restart from T(z) if a restart rule holds; at the first step of an epoch only store the error."""
        epoch = state.epoch
        error = fixed_point_error(state.strengths, state.before, ahead)
        if epoch.length == 1:
            epoch.first = error
        elif not error <= EXPLOSION * epoch.first:
            state.base = state.base.scaled(np.sqrt(2.0))
            self._restart(state, epoch.anchor)
        elif epoch.pays(error, state.iterations):
            self._restart(state, ahead)
            state.wants_certificate = True  # the best point of the epoch
        epoch.last = error

    def _restart(self, state: R2HPDHGState, point: Point) -> None:
        """Begin an epoch, with a weight that balances the distances moved in the last one better."""
        weight = state.weight
        anchor = state.epoch.anchor
        dx = np.sqrt(state.base.primal @ (point.x - anchor.x) ** 2)
        dy = np.sqrt(state.base.dual @ (point.y - anchor.y) ** 2)
        if dx > 0 and dy > 0:
            error = float(np.log(dy / dx) - np.log(weight))
            state.drift = MEMORY * state.drift + error
            weight *= float(np.exp(PROPORTIONAL * error + INTEGRAL * state.drift))
            weight = float(np.clip(weight, 1.0 / WEIGHT_RANGE, WEIGHT_RANGE))
        state.strengths = state.base.weighted(weight)
        state.weight = weight
        state.restarts += 1
        state.at, state.epoch = point, Epoch(point)

    def candidates(self, state: R2HPDHGState) -> Candidates:
        # without a solution, T(z) - z tends to a direction that proves it
        moved = state.x - state.before.x, state.y - state.before.y
        return Candidates(
            [(state.x.copy(), state.u.copy())], [(state.y.copy(), None), *gradient(state.model, state.u)], [moved]
        )
