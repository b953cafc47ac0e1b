"""Proofs that a problem has no solution.

Where there is none the iterates go away for ever, and their direction proves it in the end (``certificate.excluded``).
It often takes long to show, since the side that goes away drags the other along. For a linear program two simpler
ones answer sooner, as soon as there is reason to ask: without the costs the constraints alone decide whether there is
a feasible point, and without right-hand sides and finite bounds whether there is a direction along which costs fall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .certificate import RAY_RADIUS, excluded
from .derived import derived, stored
from .functions import Interval
from .functions._base import Vector
from .functions.coordinate import Coordinate
from .linear_program import as_linear_program
from .methods import R2HPDHG, Start
from .methods.r2hpdhg import R2HPDHGState
from .problem import Model
from .result import Status

SUSPECT = 1.0
"""A ray that excludes solutions of this size, in the units of the data, is reason to ask a simpler program."""

SHARE, SURE_SHARE = 0.2, 0.5
"""What a simpler program may take of all work; and once a falling direction is proved, what the constraints may."""

NEARLY_FEASIBLE, RUNAWAY = 1e-5, 1e-9
"""Distance from every constraint that shows that some points satisfy them all: relative to their own size, and to that
of Ax in its row. Other rows must not count, along which x may grow without bound although this one cannot be met."""


@stored
class Unsolvable:
    """Looks for such a proof in the course of a run.

    Attributes
    ----------
    passes : work of its own.
    """

    model: Model
    passes: float
    _falls: bool
    _reference: tuple[float, Vector, Vector] | None
    _constraints: Search | None
    _directions: Search | None

    def __init__(self, model: Model) -> None:
        self.model = model
        self.passes = 0.0
        self._falls = False
        self._reference = None
        self._constraints = self._directions = None

    def status(self, x: Vector, y: Vector, rays: Sequence[tuple[Vector, Vector]], passes: float) -> Status | None:
        """Return INFEASIBLE or UNBOUNDED where a ray of the method, or the way gone since work doubled, proves it.

        A falling direction proves the latter only if there is a feasible point: x must be nearly so, for its size, or
        one that is searched for.
        """
        no_point = no_bound = 0.0
        for dx, dy in [*rays, *self._way(x, y, passes)]:
            self.passes += 1.0
            found = excluded(self.model, dx, dy)
            no_point, no_bound = max(no_point, found.primal), max(no_bound, found.dual)
        if max(no_point, no_bound) >= SUSPECT or self._falls:
            no_point, no_bound = self._ask(no_point, no_bound, passes)
        if no_point >= RAY_RADIUS:
            return Status.INFEASIBLE
        self._falls |= no_bound >= RAY_RADIUS
        return Status.UNBOUNDED if self._falls and self._feasible(x) else None

    def _way(self, x: Vector, y: Vector, passes: float) -> list[tuple[Vector, Vector]]:
        before = self._reference
        if before is not None and passes < 2.0 * before[0]:
            return []
        self._reference = passes, x.copy(), y.copy()
        return [] if before is None else [(x - before[1], y - before[2])]

    def _ask(self, no_point: float, no_bound: float, passes: float) -> tuple[float, float]:
        """Return what the simpler programs prove, or the rays where that is more."""
        if as_linear_program(self.model) is None:
            return no_point, no_bound
        zero_x, zero_y = np.zeros(self.model.A.shape[1]), np.zeros(self.model.A.shape[0])
        if no_bound >= SUSPECT and not self._falls:
            self._directions = self._directions or Search(directions_alone(self.model))
            self.passes += self._directions.advance(SHARE * passes)
            no_bound = max(no_bound, excluded(self.model, self._directions.ray[0], zero_y).dual)
        falls = self._falls or no_bound >= RAY_RADIUS
        if no_point >= SUSPECT or falls:
            self._constraints = self._constraints or Search(constraints_alone(self.model))
            self.passes += self._constraints.advance((SURE_SHARE if falls else SHARE) * passes)
            no_point = max(no_point, excluded(self.model, zero_x, self._constraints.ray[1]).primal)
        return no_point, no_bound

    def _feasible(self, x: Vector) -> bool:
        points = [x] if self._constraints is None else [x, self._constraints.x]
        return any(self._nearly_feasible(point) for point in points)

    def _nearly_feasible(self, x: Vector) -> bool:
        u = self.model.A.matvec(x)
        self.passes += 0.5
        distance = np.abs(u - self.model.g.project(u))
        return bool(np.all(distance <= NEARLY_FEASIBLE * (self.model.target_norm or 1.0) + RUNAWAY * np.abs(u)))


@derived
def constraints_alone(model: Model) -> Model:
    """Return a linear program without its costs: what has a solution, or a dual ray."""
    program = as_linear_program(model)
    assert program is not None
    free = np.zeros(program.cost.size)
    return replace(model, f=Coordinate(free, free, free, program.lower, program.upper), linear_norm=0.0)


@derived
def directions_alone(model: Model) -> Model:
    """Return a linear program with 0 for every finite bound, over the directions in which one can go for ever."""
    program = as_linear_program(model)
    assert program is not None
    free = np.zeros(program.cost.size)
    lower, upper, row_lower, row_upper = (
        np.where(np.isfinite(bound), 0.0, bound)
        for bound in (program.lower, program.upper, program.row_lower, program.row_upper)
    )
    rows = Interval(row_lower, row_upper).bind(row_lower.shape)
    return replace(model, f=Coordinate(program.cost, program.cost, free, lower, upper), g=rows)


@stored
class Search:
    """A run of r2hpdhg on a simpler program, as far as it was asked to go, from 0 or the point nearest to it."""

    method: R2HPDHG
    state: R2HPDHGState
    told: float

    def __init__(self, model: Model) -> None:
        m, n = model.A.shape
        self.method = R2HPDHG()
        self.state = self.method.init(model, Start(model.f.project(np.zeros(n)), np.zeros(m)))
        self.told = 0.0

    def advance(self, passes: float) -> float:
        """Go on until so many passes were made in all, and return those not told before, with one product for a ray."""
        while self.state.passes < passes:
            self.state.ripe = False
            self.state = self.method.advance(self.state, passes - self.state.passes)
        told, self.told = self.told, self.state.passes
        return self.told - told + 0.5

    @property
    def x(self) -> Vector:
        """Its point."""
        return self.state.x

    @property
    def ray(self) -> tuple[Vector, Vector]:
        """The direction of its last step."""
        ((dx, dy),) = self.method.candidates(self.state).rays
        return dx, dy
