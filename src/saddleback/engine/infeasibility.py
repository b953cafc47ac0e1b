"""The search, during a run, for a proof that the problem has no solution.

Without a solution the iterates diverge, and their direction approaches a ray (``certificates/rays.py``). For a linear
program, two simpler programs give the answer sooner; they are solved once the iterates give a reason. The program
without costs decides whether there is a feasible point. The program with 0 in place of all finite bounds and right-hand
sides decides whether there is a direction along which the costs fall. HiGHS solves them if it is expected to be faster,
otherwise r2hpdhg does. A direction decides the status of the run only if it is a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..certificates.rays import Side, excluded, judge, prove, sides
from ..common.arrays import Vector
from ..common.rebuildable import derived, stored
from ..common.rounded import UNIT
from ..functions import Interval
from ..functions.piecewise import PiecewiseQuadratic
from ..linear_programs.highs import Answer, Program, conflict, falling, pays, run, stated
from ..linear_programs.program import as_linear_program
from ..methods import R2HPDHG, Start
from ..methods.r2hpdhg import R2HPDHGState
from ..model.model import Model
from ..result import Status
from .clock import Clock, slice_passes

SUSPECT = 1.0
"""A direction that excludes solutions of this size, in units in which the data are of size 1, is a reason to solve a
simpler program."""

LIKELY, GROWTH = 1e2, 10.0
"""A direction that excludes solutions of size LIKELY is refined, to look for a ray next to it. If there is none, the
next refinement waits until the excluded size has grown by the factor GROWTH."""

BELIEVED = 1e6
"""Excluded size from which a run that ends at a limit reports its suspicion."""

SHARE, SURE_SHARE = 0.2, 0.5
"""Share of all work that a simpler program may take; and that the program without costs may take once a falling
direction is proved."""

FEASIBLE = 1e-9
"""Largest violation of a row, relative to its terms, at the point from which the objective falls without bound."""

SECONDS = 10.0
"""Largest time, in seconds, that HiGHS may take for a simpler program while another method waits."""


class Found(NamedTuple):
    """A status that ends a run, and the ray that proves it: a ray of y for INFEASIBLE, of x for UNBOUNDED."""

    status: Status
    ray: Vector


@stored
@dataclass
class Suspicion:
    """Largest size that directions of one kind have excluded, and the size at which one was last refined."""

    excluded: float = 0.0
    refined: float = LIKELY / GROWTH


@stored
class InfeasibilityDetector:
    """Looks for a proof that there is no solution.

    Attributes
    ----------
    passes : work of the search.
    """

    model: Model
    passes: float
    _dual: Suspicion
    _primal: Suspicion
    _falls: Vector | None
    _points: list[Vector]
    _asked: list[str]
    _reference: tuple[float, Vector, Vector] | None
    _constraints: Search | None
    _directions: Search | None

    def __init__(self, model: Model) -> None:
        self.model = model
        self.passes = 0.0
        self._dual, self._primal = Suspicion(), Suspicion()
        self._points, self._asked = [], []
        self._falls = self._reference = self._constraints = self._directions = None

    def check(self) -> None:
        """Raise if the falling direction, which was read from a file, does not prove that the objective falls."""
        if self._falls is not None and judge(sides(self.model)[1], self._falls).certificate.proves is None:
            raise ValueError("its falling direction proves nothing")

    @property
    def suspected(self) -> Status | None:
        """The status that the directions of the iterates suggest but do not prove."""
        if self._falls is not None or self._primal.excluded >= BELIEVED:
            return Status.UNBOUNDED
        return Status.INFEASIBLE if self._dual.excluded >= BELIEVED else None

    def found(
        self,
        points: Sequence[Vector],
        y: Vector,
        rays: Sequence[tuple[Vector, Vector]],
        passes: float,
        tol: float,
        clock: Clock,
    ) -> Found | None:
        """Return a proof if a ray of the method, or the change of its iterates since the work last doubled, gives one.

        A falling direction proves that the problem is unbounded only if some point is feasible: one of the method's
        points, or one that is searched for. If that is known up to a tolerance only, the search comes first, since it
        may prove the contrary.
        """
        for dx, dy in [*rays, *self._way(points[0], y, passes)]:
            if (ray := self._dual_ray(dy)) is not None:
                return Found(Status.INFEASIBLE, ray)
            self._falls = self._primal_ray(dx)
        if (found := self._unbounded(points, 0.0)) is not None:
            return found
        suspicious = max(self._dual.excluded, self._primal.excluded) >= SUSPECT
        if suspicious and as_linear_program(self.model) is not None:
            ray = self._by_simplex(clock) if pays(self.model) else self._by_searches(passes, clock)
            if ray is not None:
                return Found(Status.INFEASIBLE, ray)
        return self._unbounded([*points, *self._points], min(tol, FEASIBLE))

    def _unbounded(self, points: Sequence[Vector], tol: float) -> Found | None:
        if self._falls is None or not any(self._feasible(point, tol) for point in points):
            return None
        return Found(Status.UNBOUNDED, self._falls)

    def _way(self, x: Vector, y: Vector, passes: float) -> list[tuple[Vector, Vector]]:
        before = self._reference
        if before is not None and passes < 2.0 * before[0]:
            return []
        self._reference = passes, x.copy(), y.copy()
        return [] if before is None else [(x - before[1], y - before[2])]

    def _dual_ray(self, direction: Vector) -> Vector | None:
        return self._proved(sides(self.model)[0], self._dual, direction)

    def _primal_ray(self, direction: Vector) -> Vector | None:
        """Return the falling direction that was found before, or else one next to the given direction."""
        return self._proved(sides(self.model)[1], self._primal, direction) if self._falls is None else self._falls

    def _proved(self, side: Side, known: Suspicion, direction: Vector) -> Vector | None:
        if not np.any(direction):
            return None
        self.passes += 0.5
        size = excluded(self.model, side, direction)
        known.excluded = max(known.excluded, size)
        if size < GROWTH * known.refined:
            return None
        known.refined = min(size, 1.0 / UNIT)
        self.passes += 1.0
        return prove(self.model, side, direction)

    def _by_simplex(self, clock: Clock) -> Vector | None:
        """Let HiGHS solve each simpler program once; return a ray of y if it finds one."""
        n = self.model.A.shape[1]
        if self._primal.excluded >= SUSPECT:
            answer = self._ask("falling", falling, clock)
            if answer is not None and answer.x is not None:
                self._falls = self._primal_ray(answer.x)
        if self._dual.excluded >= SUSPECT or self._falls is not None:
            answer = self._ask("conflict", conflict, clock)
            if answer is not None and answer.x is not None and answer.y is not None:
                self._points.append(answer.x[:n])
                return self._dual_ray(answer.y)
        return None

    def _ask(self, name: str, question: Callable[[Program], Program], clock: Clock) -> Answer | None:
        """Return the answer of HiGHS within the remaining time; None if it has solved this program before."""
        if name in self._asked or clock.expired():
            return None
        answer = run(question(stated(self.model)), 0.0, min(SECONDS, clock.left()))
        if not clock.expired():  # otherwise a run that resumes from a checkpoint may ask again
            self._asked.append(name)
        return answer

    def _by_searches(self, passes: float, clock: Clock) -> Vector | None:
        """Continue r2hpdhg on the simpler programs; return a ray of y if it finds one."""
        if self._primal.excluded >= SUSPECT and self._falls is None:
            self._directions = self._directions or Search(directions_alone(self.model))
            self.passes += self._directions.advance(SHARE * passes, clock)
            self._falls = self._primal_ray(self._directions.ray[0])
        if self._dual.excluded >= SUSPECT or self._falls is not None:
            self._constraints = self._constraints or Search(constraints_alone(self.model))
            self.passes += self._constraints.advance((SHARE if self._falls is None else SURE_SHARE) * passes, clock)
            self._points = [self._constraints.x]
            return self._dual_ray(self._constraints.ray[1])
        return None

    def _feasible(self, x: Vector, tol: float) -> bool:
        """Return whether a point satisfies every row, or violates none by more than a tolerance in its own unit."""
        self.passes += 1.0
        model = self.model
        image = model.A.matvec_rounded(model.f.domain.project(x), precise=True)
        rows = model.g_star.excess(model.g_star.domain.project(np.zeros(model.A.shape[0])), None, image)
        return rows.slope_inside or rows.infeasibility <= tol


@derived
def constraints_alone(model: Model) -> Model:
    """Return a linear program without its costs: it has a solution or a dual ray."""
    program = as_linear_program(model)
    assert program is not None
    free = np.zeros(program.cost.size)
    return replace(model, f=PiecewiseQuadratic(free, free, free, program.lower, program.upper), linear_norm=0.0)


@derived
def directions_alone(model: Model) -> Model:
    """Return a linear program with 0 for every finite bound: its feasible points are the recession directions."""
    program = as_linear_program(model)
    assert program is not None
    free = np.zeros(program.cost.size)
    lower, upper, row_lower, row_upper = (
        np.where(np.isfinite(bound), 0.0, bound)
        for bound in (program.lower, program.upper, program.row_lower, program.row_upper)
    )
    rows = Interval(row_lower, row_upper).bind(row_lower.shape)
    return replace(model, f=PiecewiseQuadratic(program.cost, program.cost, free, lower, upper), g=rows)


@stored
class Search:
    """A run of r2hpdhg on a simpler program, from the feasible point nearest to 0."""

    method: R2HPDHG
    state: R2HPDHGState
    told: float

    def __init__(self, model: Model) -> None:
        m, n = model.A.shape
        self.method = R2HPDHG()
        self.state = self.method.init(model, Start(model.f.domain.project(np.zeros(n)), np.zeros(m)))
        self.told = 0.0

    def advance(self, passes: float, clock: Clock) -> float:
        """Continue, one slice at a time, until the total number of passes is reached or the time is over.

        Returns the passes since the last call, plus half a pass for the product that a ray needs.
        """
        while self.state.passes < passes and not clock.expired():
            self.state.wants_certificate = False
            ahead = min(slice_passes(self.state, self.state.model), passes - self.state.passes)
            self.state = self.method.advance(self.state, ahead)
        told, self.told = self.told, self.state.passes
        return self.told - told + 0.5

    @property
    def x(self) -> Vector:
        """The current point."""
        return self.state.x

    @property
    def ray(self) -> tuple[Vector, Vector]:
        """The direction of the last step."""
        ((dx, dy),) = self.method.candidates(self.state).rays
        return dx, dy
