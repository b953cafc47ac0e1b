r"""Restarts with an adaptive primal weight, around a primal-dual method.

The iterates of a primal-dual method spiral around a solution while they approach it. If the method is restarted from
their average whenever that is markedly closer, it converges linearly on sharp problems (Applegate, Hinder, Lu and
Lubin, 2023). Closeness is measured by the fixed-point residual in the metric of the strengths,

.. math::

    \|x - \mathrm{prox}_f(x - H^{-1}A'y)\|_H^2 + \|y - \mathrm{prox}_{g^*}(y + \Sigma^{-1}Ax)\|_\Sigma^2.

The primal weight may change at a restart. :math:`\omega^* = \|\Delta y\|_\Sigma / (\sqrt{J/K}\,\|\Delta x\|_H)`
balances the distances that x and y have moved, and the new weight is the geometric mean of :math:`\omega^*` and the old
weight.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from ..certificates.candidates import Candidates
from ..certificates.sides import dual_side
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
"""Residual, relative to the size of the point, below which it is only rounding and no restart can lower it."""

SUFFICIENT = 0.2
"""Restart if the residual has fallen to this share of the residual at the last restart,"""

NECESSARY = 0.8
"""or if it has fallen to this share, and it has either begun to rise again or belongs to the current point. If the
average is no better than the current point, the iterates do not spiral: a restart loses nothing, and the weight is
corrected sooner;"""

LONG = 0.36
"""or if the epoch makes up this share of all work."""

WEIGHT_STEP = 10.0
"""Factor by which the weight changes if x or y has not moved."""

FIRST_TEST = 6.0
TEST_EARLY = 0.5
TEST_GROWTH = 0.4
"""The first test of an epoch is due after TEST_EARLY times the passes of the last epoch, since epochs have similar
lengths. Later tests are TEST_GROWTH times the length of the epoch apart. Both intervals are at least FIRST_TEST passes,
so that tests are a small part of the work."""


REFRESH = 100.0
"""Passes after which a restart recomputes u = Ax from x."""

FIRST_REPAIR, REPAIR_REST = 300.0, 4.0
"""Passes before the first dual repair, and the wait after a repair relative to the passes that it took."""


class RestartableState(Protocol):
    """What the state of a method must have for restarts: its point with u = Ax, its strengths, the sums of iterates."""

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
        """Weight of the distance of y relative to that of x in the convergence bound: K/J, or one number per row."""

    def go_to(self, x: Vector, y: Vector, u: Vector) -> None:
        """Continue from another point."""


@stored
@dataclass(frozen=True)
class Point:
    """A pair (x, y) with the products u = Ax and z = A'y that its residual needs."""

    x: Vector
    y: Vector
    u: Vector
    z: Vector

    def residual(self, model: Model, strengths: Strengths) -> float:
        """Return the fixed-point residual in the metric of the strengths."""
        h, sigma = strengths.primal, strengths.dual
        with np.errstate(over="ignore", invalid="ignore"):  # after an explosion the residual is inf or nan
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
    x, y, residual : the point at which the epoch began, and its residual.
    averages : sums of the iterates since then.
    last : residual at the last test.
    length, due : passes of the method in this epoch, so far and at the next test.
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
    """The state of the wrapped method, the epoch, the strengths without the weight, and the points of the last test.

    ``fresh`` is the number of passes at which u was last computed from x. ``repaired`` is the repaired dual point of
    the last test. The next repair is due at ``repair_due`` passes; ``repair_rest`` is the wait after a repair, relative
    to the passes that it took.
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
    """A method that restarts from its best point or average when that pays."""

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
        while True:  # at least one call of the method, however few passes are asked for
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
                state.wants_certificate = True  # a certificate is nearly free here: the test has computed its products
                break
            if state.passes >= goal:
                break
        state.x, state.y = state.inner.x, state.inner.y
        return state

    def _test(self, state: RestartedState) -> None:
        """Restart from the better of the current and the averaged point, if a restart rule holds."""
        inner, epoch = state.inner, state.epoch
        A = inner.model.A
        x = epoch.averages.x / epoch.averages.count
        y = inner.model.g_star.domain.project(epoch.averages.y / epoch.averages.count)  # outside by rounding only
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
        """Repair the tested dual point if a repair is due; wait longer for the next one if this one did not help."""
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
        """Return whether a restart rule holds, given the residuals of the current and of the averaged point."""
        current, average = residuals
        least = min(current, average)
        fallen = least / epoch.residual if epoch.residual > 0 else np.inf
        ready = least > epoch.last or current <= average
        return fallen <= SUFFICIENT or (fallen <= NECESSARY and ready) or epoch.length >= LONG * passes

    def _start_over(self, state: RestartedState) -> None:
        """Go back to the point at which the epoch began, and double the product of the strengths."""
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
        if state.passes >= state.fresh + REFRESH:  # rounding errors accumulate in u over the iterations
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
        """Return the geometric mean of the old weight and of the one that balances the distances moved in the epoch.

        If x or y has not moved at all, the quotient is not known, and the weight changes by a fixed factor.
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
