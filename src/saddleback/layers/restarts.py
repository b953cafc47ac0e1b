r"""Restarts with an adaptive primal weight, around a primal-dual method.

The iterates of a primal-dual method turn around a solution while they approach it. Started afresh from their average
whenever that has come markedly closer, the method converges linearly on sharp problems (Applegate, Hinder, Lu and
Lubin, 2023). Closeness is the fixed-point residual in the metric of the strengths,

.. math::

    \|x - \mathrm{prox}_f(x - H^{-1}A'y)\|_H^2 + \|y - \mathrm{prox}_{g^*}(y + \Sigma^{-1}Ax)\|_\Sigma^2.

A restart is also where the primal weight may change: :math:`\omega^* = \|\Delta y\|_\Sigma / (\sqrt{J/K}\,\|\Delta
x\|_H)` balances the distances that both sides have gone, and the new weight is the geometric mean of it and the old.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from ..certificates.candidates import Candidates
from ..certificates.certificate import dual_side
from ..common.arrays import Vector
from ..common.rebuildable import stored
from ..functions.points import DensePoint
from ..functions.traits import is_smooth
from ..methods.contract import Averages, Layer, Start, State, current_and_average, gradient
from ..methods.report import Report
from ..model.model import Model
from ..steps.strengths import EXPLOSION, WEIGHT_RANGE, Strengths
from .dual_repair import Repaired, repair

ROUNDING = 1e-15
"""Residual, relative to the size of the point, at which it is that of the arithmetic and no restart can lower it."""

SUFFICIENT = 0.2
"""Restart when the residual has fallen to this share of what it was at the last restart,"""

NECESSARY = 0.8
"""or to this share, and either has begun to rise again or is that of the current point: where the average does not
lead, the iterates do not turn, nothing is lost by starting afresh, and the weight is mended sooner,"""

LONG = 0.36
"""or when the epoch makes up this share of all work."""

WEIGHT_STEP = 10.0
"""By how much the weight changes where one side has not moved."""

FIRST_TEST = 6.0
TEST_EARLY = 0.5
TEST_GROWTH = 0.4
"""The first test of an epoch is due after TEST_EARLY of the last one's passes, as epochs resemble each other, and later
ones are TEST_GROWTH of the epoch apart, but FIRST_TEST at the least: a small part of the work."""


REFRESH = 100.0
"""Passes after which a restart computes u = Ax anew."""

FIRST_REPAIR, REPAIR_REST = 300.0, 4.0
"""Passes from which on the dual point of a test is repaired, and passes between repairs for each that one takes."""


class RestartableState(Protocol):
    """What a method must keep for restarts: its point with u = Ax, its strengths and the sums of its iterates."""

    model: Model
    x: Vector
    y: Vector
    u: Vector
    passes: float
    strengths: Strengths
    averages: Averages

    def report(self) -> Report:
        """Return what the method has chosen and counted."""

    @property
    def dual_share(self) -> Vector | float:
        """How much the way of y counts beside that of x in the constant of the method's bound, K/J or row by row."""

    def go_to(self, x: Vector, y: Vector, u: Vector) -> None:
        """Go on from another point."""


@stored
@dataclass(frozen=True)
class Point:
    """A pair with the two products that its residual needs."""

    x: Vector
    y: Vector
    u: Vector
    z: Vector

    def residual(self, model: Model, strengths: Strengths) -> float:
        """Return the fixed-point residual in the metric of the strengths."""
        h, sigma = strengths.primal, strengths.dual
        with np.errstate(over="ignore", invalid="ignore"):  # a point may have exploded, which the residual then tells
            dx = self.x - model.f.prox(self.x - self.z / h, 1.0 / h)
            dy = self.y - model.g_star.prox(self.y + self.u / sigma, 1.0 / sigma)
            return float(np.sqrt(h @ dx**2 + sigma @ dy**2))

    def size(self, strengths: Strengths) -> float:
        """Return the size of the pair in the same metric."""
        return float(np.sqrt(strengths.primal @ self.x**2 + strengths.dual @ self.y**2))


@stored
@dataclass
class Epoch:
    """What is remembered since the last restart.

    Attributes
    ----------
    x, y, residual : where it began.
    averages : of the iterates since.
    last : the residual at the last test.
    length, due : passes of the method so far, and at the next test.
    """

    x: Vector
    y: Vector
    residual: float
    averages: Averages
    last: float = np.inf
    length: float = 0.0
    due: float = FIRST_TEST


@stored
@dataclass(kw_only=True)
class RestartedState(State):
    """The wrapped method's state, the epoch, the strengths before any weight, and the points of a test just made.

    ``fresh`` are the passes at which u was last computed from x. ``repaired`` is a dual point that came with the test,
    ``repair_due`` the passes at which to try the next and ``repair_rest`` how many to wait for each that it takes.
    """

    inner: RestartableState
    epoch: Epoch
    base: Strengths
    weight: float
    restarts: int = 0
    tested: list[Point] = field(default_factory=list)
    fresh: float = 0.0
    repaired: Repaired | None = None
    repair_due: float = FIRST_REPAIR
    repair_rest: float = REPAIR_REST

    def report(self) -> Report:
        return replace(self.inner.report(), restarts=self.restarts, primal_weight=self.weight)


@dataclass(frozen=True)
class Restarted(Layer[RestartedState]):
    """A method that starts again from its best point when that pays."""

    def init(self, model: Model, start: Start) -> RestartedState:
        inner = self.method.init(model, start)
        base, inner.strengths = inner.strengths, inner.strengths.weighted(start.weight)
        point = Point(inner.x, inner.y, inner.u, inner.model.A.rmatvec(inner.y))
        residual = point.residual(inner.model, inner.strengths)
        return RestartedState(
            x=inner.x,
            y=inner.y,
            passes=inner.passes + 0.5,
            weight=start.weight,
            inner=inner,
            epoch=Epoch(inner.x.copy(), inner.y.copy(), residual, Averages.of(inner.model)),
            base=base,
        )

    def advance(self, state: RestartedState, passes: float) -> RestartedState:
        goal = state.passes + passes
        state.tested.clear()
        state.repaired = None
        while True:  # at least once, however little is asked for
            inner, epoch = state.inner, state.epoch
            before = inner.passes
            state.inner = inner = self.method.advance(inner, min(goal - state.passes, epoch.due - epoch.length))
            epoch.averages.add(inner.averages)
            inner.averages.clear()
            epoch.length += inner.passes - before
            state.passes += inner.passes - before
            if epoch.length >= epoch.due:
                self._test(state)
                self._repair(state)
                state.wants_certificate = (
                    True  # a certificate costs next to nothing here: its products are those of the test
                )
                break
            if state.passes >= goal:
                break
        state.x, state.y = state.inner.x, state.inner.y
        return state

    def _test(self, state: RestartedState) -> None:
        """Restart from the better of the current and the averaged point, if a rule says so."""
        inner, epoch = state.inner, state.epoch
        A = inner.model.A
        x = epoch.averages.x / epoch.averages.count
        y = inner.model.g_star.domain.project(epoch.averages.y / epoch.averages.count)  # left by rounding only
        u, (here, there) = A.products(x, inner.y, y)
        state.tested = [Point(inner.x.copy(), inner.y.copy(), inner.u.copy(), here), Point(x, y, u, there)]
        state.passes += 1.5
        residuals = [point.residual(inner.model, inner.strengths) for point in state.tested]
        best = int(np.argmin(residuals))
        if not residuals[best] <= EXPLOSION * epoch.residual:
            self._start_over(state)
        elif residuals[best] > ROUNDING * state.tested[best].size(inner.strengths) and self._pays(
            residuals, epoch, state.passes
        ):
            self._restart(state, state.tested[best])
        else:
            epoch.last = residuals[best]
            epoch.due = epoch.length + max(FIRST_TEST, TEST_GROWTH * epoch.length)

    @staticmethod
    def _repair(state: RestartedState) -> None:
        """Move the tested dual point until it is nearly feasible, and do so less often where that is of no use."""
        model = state.inner.model
        if state.passes < state.repair_due or is_smooth(model.g) or not model.surely_solvable:
            return
        point = state.tested[0]
        state.repaired = found = repair(model, point.y, -point.z)
        state.passes += found.passes
        before = max(dual_side(model, at.y, DensePoint(at.x), DensePoint(at.u), -at.z).value for at in state.tested)
        after = dual_side(model, found.y, DensePoint(point.x), DensePoint(point.u), found.z).value
        state.repair_rest = REPAIR_REST if after > before else 2.0 * state.repair_rest
        state.repair_due = state.passes + state.repair_rest * found.passes

    @staticmethod
    def _pays(residuals: list[float], epoch: Epoch, passes: float) -> bool:
        """Return whether a rule says so, from the residuals of the current and of the averaged point."""
        current, average = residuals
        least = min(current, average)
        fallen = least / epoch.residual if epoch.residual > 0 else np.inf
        ready = least > epoch.last or current <= average
        return fallen <= SUFFICIENT or (fallen <= NECESSARY and ready) or epoch.length >= LONG * passes

    def _start_over(self, state: RestartedState) -> None:
        """Go back to where the epoch began, with twice the product of the strengths."""
        epoch = state.epoch
        state.base = state.base.scaled(np.sqrt(2.0))
        state.passes += 1.0
        u, (z,) = state.inner.model.A.products(epoch.x, epoch.y)
        self._restart(state, Point(epoch.x, epoch.y, u, z))

    def _restart(self, state: RestartedState, point: Point) -> None:
        inner = state.inner
        weight = self._weight(state, point)
        inner.strengths = state.base.weighted(weight)
        u = point.u
        if state.passes >= state.fresh + REFRESH:  # rounding adds up in u over the iterations
            u, state.fresh = inner.model.A.matvec(point.x), state.passes
            state.passes += 0.5
        inner.go_to(point.x, point.y, u)
        residual = point.residual(inner.model, inner.strengths)
        due = max(FIRST_TEST, TEST_EARLY * state.epoch.length)
        state.epoch = Epoch(inner.x.copy(), inner.y.copy(), residual, Averages.of(inner.model), due=due)
        state.weight = weight
        state.restarts += 1

    @staticmethod
    def _weight(state: RestartedState, point: Point) -> float:
        """Return the geometric mean of the old weight and of the one that balances the ways gone in the epoch.

        A side that has not moved at all is where it has to be, or its steps are too short to see: the other one gets
        longer steps, within a limit, as the quotient is not known.
        """
        weight = state.weight
        dx = float(np.sqrt(state.base.primal @ (point.x - state.epoch.x) ** 2))
        dy = float(np.sqrt((state.base.dual * state.inner.dual_share) @ (point.y - state.epoch.y) ** 2))
        if dx > 0 and dy > 0:
            balanced = np.sqrt(weight * dy / dx)
        else:
            balanced = weight * WEIGHT_STEP ** float(np.sign(dy) - np.sign(dx))
        return float(np.clip(balanced, 1.0 / WEIGHT_RANGE, WEIGHT_RANGE))

    def candidates(self, state: RestartedState) -> Candidates:
        inner = state.inner
        if state.tested:
            repaired = [] if state.repaired is None else [(state.repaired.y, state.repaired.z)]
            return Candidates(
                [(point.x, point.u) for point in state.tested],
                [(point.y, -point.z) for point in state.tested] + repaired + gradient(inner.model, state.tested[0].u),
            )
        inner.u[:] = inner.model.A.matvec(inner.x)
        state.passes += 0.5
        return current_and_average(inner.model, inner.x, inner.u, inner.y, state.epoch.averages, keep=True)
