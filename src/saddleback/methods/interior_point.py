r"""A structured primal-dual interior point for min_x max_y f(x) + <y, Ax> - g*(y).

f and g* are sums of atoms (``methods/interior/atoms.py``), each with a slope. With z the slope of f at x and u the
slope of g* at y, a Newton step for

.. math::

    z = -A'y, \qquad u = Ax, \qquad \text{near} \cdot \text{far} = \mu \text{ in all atoms}

is one linear system in (dx, dy). Mehrotra's predictor estimates how far mu can fall, and his corrector goes there. A
problem takes 10 to 40 steps, whatever its conditioning; each step costs a factorisation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from .. import _native
from ..certificates.candidates import Candidates
from ..common.arrays import Vector, length
from ..common.cached import cached_property
from ..common.rebuildable import stored
from ..model.model import Model
from .contract import Method, Start, State, all_blocks
from .interior import (
    Barrier,
    Direction,
    SingularSystem,
    System,
    factored,
    form_for,
    hard_rows,
    started,
    structure_of,
)
from .interior.atoms import LACKING
from .report import Report

TO_THE_EDGE = 0.99
"""Length of a step, relative to the longest step inside the domain."""

REACH = 1.1
WORTH = 0.05
"""Gondzio's corrections: the factor by which each tries to lengthen the step, and the least gain that makes one
worthwhile."""

STALLED = 25
"""Steps without progress in the residuals and products after which the method ends."""

GRAM = 1.0
"""Passes that forming the matrix counts: it visits every column once."""

NEARBY = 10.0
"""Sum of all products, relative to the tolerance, below which every step asks for a certificate."""

SHORT = 1e-4
"""If the steps of x and y are both shorter than this, the method has failed."""


@stored
@dataclass(kw_only=True)
class InteriorState(State):
    """The two barriers, with u = Ax and z = -A'y, and what the slopes of the barriers miss of them."""

    model: Model
    u: Vector
    z: Vector
    off_u: Vector = field(init=False)
    off_z: Vector = field(init=False)
    f: Barrier = field(init=False)
    g: Barrier = field(init=False)
    tol: float = 0.0
    merit: float = np.inf
    off: float = np.inf
    since: int = 0
    steps: int = 0

    def report(self) -> Report:
        return replace(self.choices, finish_steps=self.steps)

    def complementarity(self) -> float:
        """Return the sum of all products near * far: the gap, once the point is feasible."""
        return self.f.product() + self.g.product()


@dataclass(frozen=True)
class InteriorPoint(Method[InteriorState]):
    """The interior-point method alone, from any start.

    Parameters
    ----------
    memory : float, default inf
        Largest number of bytes of the matrix that is factored.
    """

    name = "finish"
    superlinear = True
    sparse_iterates = False
    needs_float64 = True
    expensive_steps = True
    memory: float = np.inf

    def missing(self, model: Model) -> str | None:
        if not (model.A.traits.splits and model.A.traits.entries_known and model.A.traits.tasks == 1):
            return "A is not a matrix whose entries are known, with one task"
        f, g = model.penalty_form, model.loss_form
        if f is None or not f.closed:
            return "its penalty is not made of slopes, bounds, squares and group norms"
        if g is None or not g.closed:
            return "its loss is not a sum over the rows, from the catalogue"
        return None

    def init(self, model: Model, start: Start) -> InteriorState:
        # the matrix of a step is made of all columns, or of a sparse A as it is
        model = model.columnar() if structure_of(model) is None else model.both_ways()
        u, cost = start.image(model)
        z = -model.A.rmatvec(start.y)
        state = InteriorState(
            x=start.x,
            y=start.y,
            passes=cost + 0.5,
            choices=all_blocks(model),
            model=model,
            u=u,
            z=z,
            tol=start.tol,
        )
        if (needed := matrix_bytes(model)) > self.memory:
            _give_up(state, f"its matrix takes {needed / 1e9:.2g} GB, and finish_memory allows {self.memory / 1e9:.2g}")
            return state
        state.model = model = model.collected().merged()
        try:
            state.f, state.g = started(model, start.x, start.y, u, z)
        except SingularSystem:
            _give_up(state, "its linear system is singular")
            return state
        self._arrive(state)
        return state

    def advance(self, state: InteriorState, passes: float) -> InteriorState:
        if not state.ended:
            try:
                with np.errstate(all="ignore"):
                    self._step(state)
            except SingularSystem:
                _give_up(state, "its linear system is singular")
        state.wants_certificate = bool(state.ended) or structure_of(state.model) is None or _promising(state)
        return state

    def _step(self, state: InteriorState) -> None:
        """Take one predictor-corrector step."""
        f, g = state.f, state.g
        system = factored(state.model.A, f.stiffness(), g.stiffness(), structure_of(state.model))
        newton = Newton(f, g, system, state.off_z, state.off_u)
        newton.aim(0.0, corrected=False)
        mu, after = newton.mu(), newton.mu(*newton.longest)
        target = mu * min(1.0, max(after / mu, 1e-6)) ** 3 if mu > 0 else 0.0
        newton.aim(target, corrected=True)
        newton.centre(target)
        primal, dual = (TO_THE_EDGE * step for step in newton.longest)
        f.move(primal, dual)
        g.move(dual, primal)
        state.passes += newton.system.passes + GRAM
        state.steps += 1
        self._arrive(state)
        self._watch(state, max(primal, dual))

    @staticmethod
    def _arrive(state: InteriorState) -> None:
        """Copy the points of the barriers into the state, and compute u and z and how far off they are."""
        state.x, state.y = state.f.v, state.g.v
        state.u, state.z = state.model.A.matvec(state.x), -state.model.A.rmatvec(state.y)
        state.off_u, state.off_z = state.g.missed(state.u), state.f.missed(state.z)
        state.passes += 1.0

    @staticmethod
    def _watch(state: InteriorState, step: float) -> None:
        """End the method if it makes no more progress."""
        missed = _native.absolute_dot(state.off_z, state.x) + _native.absolute_dot(state.off_u, state.y)
        merit = state.complementarity() + missed
        # while y grows, as if a constraint is far from satisfied, the residuals may fall and the merit not
        off = length(state.off_z) + length(state.off_u)
        state.since = 0 if merit < 0.9 * state.merit or off < 0.95 * state.off else state.since + 1
        state.merit, state.off = min(merit, state.merit), min(off, state.off)
        if step < SHORT or state.since >= STALLED or not np.isfinite(merit):
            _give_up(state, f"no progress after {state.steps} steps")

    def candidates(self, state: InteriorState) -> Candidates:
        duals: list[tuple[Vector, Vector | None]] = [(state.y.copy(), state.z.copy())]
        if not state.model.surely_solvable:
            # if only the constraints matter, y = 0 is a dual solution, and an exact one
            duals.append((np.zeros_like(state.y), np.zeros_like(state.z)))
        return Candidates([(state.x.copy(), state.u.copy())], duals)


def _promising(state: InteriorState) -> bool:
    """Return whether the gap, which is about the sum of all products, may be close to the tolerance.

    With a sparse factor a certificate costs as much as a large part of a step.
    """
    model = state.model
    value = model.f.finite_value(state.x) + model.g.finite_value(state.u) + model.constant
    return bool(state.merit <= NEARBY * state.tol * abs(value))


def _give_up(state: InteriorState, reason: str) -> None:
    state.ended = f"the interior point gave up: {reason}"


def matrix_bytes(model: Model) -> float:
    """Return the bytes that the matrix of a step and its factor take."""
    structure = structure_of(model)
    if structure is not None:
        return structure.bytes
    form = form_for(model.A.shape, int(hard_rows(model).size), int(model.unpenalised.size))
    return 16.0 * float(form.size(model.A.shape)) ** 2


class Newton:
    """Directions from one point of the barriers, all with the same factorisation.

    ``system`` is the factored matrix; the slopes of f and g* miss -A'y and Ax by ``off_z`` and ``off_u``.
    """

    def __init__(self, f: Barrier, g: Barrier, system: System, off_z: Vector, off_u: Vector) -> None:
        self.f, self.g, self.system = f, g, system
        self.off_z, self.off_u = off_z, off_u

    def aim(self, mu: float, corrected: bool) -> None:
        """Find the direction in which all products become mu."""
        self._solve(self.f.aim(mu, corrected, self.off_z), self.g.aim(mu, corrected, self.off_u))

    def centre(self, mu: float) -> None:
        """Correct the direction as long as that gives longer steps (Gondzio 1996)."""
        pairs = [*self.f.pairs, *self.g.pairs]
        for _ in range(self.system.corrections):
            before, aims, direction = self.longest, [pair[LACKING].copy() for pair in pairs], self.direction
            primal, dual = (min(1.0, REACH * step + REACH - 1.0) for step in before)
            self._solve(self.f.recentre(mu, primal, dual, self.off_z), self.g.recentre(mu, dual, primal, self.off_u))
            now = self.longest
            if sum(now) < sum(before) + WORTH or min(now[0] / before[0], now[1] / before[1]) < 1.0 - WORTH:
                for pair, lacking in zip(pairs, aims, strict=True):
                    pair[LACKING] = lacking
                self._follow(direction)
                break

    def _solve(self, r: Vector, s: Vector) -> None:
        self._follow(self.system.refined(r, s))

    def _follow(self, direction: Direction) -> None:
        self.direction = direction
        self.__dict__.pop("longest", None)
        self.f.follow(direction.dx, self.off_z - direction.z)
        self.g.follow(direction.dy, self.off_u + direction.u)

    @cached_property
    def longest(self) -> tuple[float, float]:
        """The longest steps of x and y; equal if the slope of some atom depends on its point (``Barrier.curved``)."""
        (x_near, z_far), (y_near, u_far) = self.f.longest(), self.g.longest()
        primal, dual = min(x_near, u_far), min(y_near, z_far)
        return (min(primal, dual),) * 2 if self.f.curved or self.g.curved else (primal, dual)

    def mu(self, primal: float = 0.0, dual: float = 0.0) -> float:
        """Return the mean of all products after a step."""
        total = self.f.product(primal, dual) + self.g.product(dual, primal)
        return total / max(self.f.degree + self.g.degree, 1)
