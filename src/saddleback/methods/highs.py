"""HiGHS: the simplex method of Huangfu and Hall (2018) for a linear program, its answer judged as any other.

Its vertex comes with a dual point, and where there is no solution with a ray, whose proof the certificate checks. What
HiGHS leaves unproved at the tolerance asked for, r2hpdhg goes on with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..derived import derived, stored
from ..functions._base import Vector
from ..linear_program import as_linear_program, import_highspy
from ..problem import Model
from ._base import Candidates, Method, Start, State, all_blocks
from .r2hpdhg import R2HPDHG, R2HPDHGState

POLL = 0.05
"""Seconds after which a run that has not ended lets the loop look at the clock and the keyboard."""

TIGHTEST, LOOSEST = 1e-10, 1e-7
"""Tolerances of HiGHS: the least that it takes, and its default, which is not loosened."""

MARGIN = 0.1
"""Tolerance of HiGHS relative to that of the run: its violations are absolute, one by one."""

ITERATION = 0.5
"""Passes of a simplex iteration: at most one product with A', of which a sparse row is often all that is needed."""


@stored
@dataclass(kw_only=True)
class HighsState(State):
    """The solver with its program, its last answer as (x, y), and what came with it.

    Attributes
    ----------
    again, done : whether HiGHS was started a second time, without presolve, and whether it has said its last word.
    iterations : of the simplex method so far.
    rays : directions of x and y that HiGHS says prove that there is no solution.
    after : the method that goes on from the answer, once it was judged.
    """

    model: Model
    start: Start
    solver: Simplex
    again: bool = False
    done: bool = False
    iterations: int = 0
    rays: list[tuple[Vector, Vector]]
    after: R2HPDHGState | None = None


@dataclass(frozen=True)
class Highs(Method[HighsState]):
    """The simplex method of HiGHS, for linear programs: no options. It starts from a vertex of its own."""

    name = "highs"

    def missing(self, model: Model) -> str | None:
        if model.A.holders is not None:
            return "its columns are spread over processes, and HiGHS runs in one; leave comm out"
        if as_linear_program(model) is not None:
            return None
        return (
            "it is not a linear program, with Linear, Box or their sum as its penalty and Interval or Equality as loss"
        )

    def init(self, model: Model, start: Start) -> HighsState:
        settings = all_blocks(model)
        return HighsState(
            x=start.x.copy(),
            y=start.y.copy(),
            settings=settings | {"highs": "not run", "restarts": 0, "primal_weight": start.weight},
            model=model,
            start=start,
            solver=simplex(model, start.tol, start.seed),
            rays=[],
        )

    def advance(self, state: HighsState, passes: float) -> HighsState:
        if state.done:
            return self._go_on(state, passes)
        state.solver.begin(presolve=not state.again)
        if state.solver.ended(POLL):
            self._take(state)
            if _no_solution(state.solver.highs) and not state.rays and not state.again:
                state.again = True  # what presolve finds out may come without a ray
            else:
                self._end(state)
        return state

    @staticmethod
    def _take(state: HighsState) -> None:
        """Take over what a run that has stopped found."""
        solver = state.solver.highs
        state.iterations += max(1, solver.getInfo().simplex_iteration_count)
        state.settings["highs"] = solver.modelStatusToString(solver.getModelStatus())
        answer = solver.getSolution()
        x, y = np.array(answer.col_value), -np.array(answer.row_dual)
        if answer.value_valid and np.all(np.isfinite(x)):
            state.x = x
        if answer.dual_valid and np.all(np.isfinite(y)):
            # a row's dual is the change of the optimum with its bounds: minus a subgradient of their indicator
            state.y = y
        if _no_solution(solver):
            state.rays = _rays(solver, state.x.size, state.y.size)

    @staticmethod
    def _end(state: HighsState) -> None:
        """Let the answer be judged; its work counts from here on, as the loop waits for passes."""
        state.done = state.ripe = True
        state.passes += ITERATION * state.iterations

    def _go_on(self, state: HighsState, passes: float) -> HighsState:
        method = R2HPDHG()
        if state.after is None:
            after = method.init(state.model, replace(state.start, x=state.x, y=state.y, u=None))
            after.passes += state.passes
            state.after = after
        state.after.ripe = False
        state.after = method.advance(state.after, passes)
        state.ripe = state.after.ripe
        state.x, state.y, state.passes = state.after.x, state.after.y, state.after.passes
        state.settings |= state.after.settings
        return state

    def candidates(self, state: HighsState) -> Candidates:
        if state.after is not None:
            return R2HPDHG().candidates(state.after)
        if state.solver.running and not state.done:  # the loop will not wait any longer
            state.solver.cancel()
            self._take(state)
            self._end(state)
        return Candidates([(state.x.copy(), None)], [(state.y.copy(), None)], state.rays)


class Simplex:
    """HiGHS with a program, in a thread of its own while it runs. What it has done so far cannot be taken out of it."""

    def __init__(self, highs: Any) -> None:
        self.highs = highs
        self.running = False

    def begin(self, presolve: bool) -> None:
        """Start it, unless it runs."""
        if not self.running:
            self.highs.clearSolver()
            self.highs.setOptionValue("presolve", "choose" if presolve else "off")
            self.highs.startSolve()
            self.running = True

    def ended(self, seconds: float) -> bool:
        """Wait for it, and return whether it has stopped."""
        self.running = not self.highs.wait(seconds)[0]
        return not self.running

    def cancel(self) -> None:
        """Stop it where it is."""
        self.highs.cancelSolve()
        self.highs.wait()
        self.running = False


@derived
def simplex(model: Model, tol: float, seed: int) -> Simplex:
    """Return HiGHS with a linear program, to be solved to a tolerance."""
    program, A = as_linear_program(model), model.A.compressed()
    assert program is not None
    highspy = import_highspy("method='highs'")
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = A.shape
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.cost, program.lower, program.upper
    lp.row_lower_, lp.row_upper_ = program.row_lower, program.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = A.indptr, A.indices, A.data
    tolerance = float(np.clip(MARGIN * tol, TIGHTEST, LOOSEST))
    solver = highspy.Highs()
    options = {
        "output_flag": False,
        "solver": "simplex",
        "random_seed": seed % 2**31,
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.HandleUserInterrupt = True
    if solver.passModel(lp) == highspy.HighsStatus.kError:
        raise ValueError("HiGHS does not take this linear program: check that costs and entries are below 1e15")
    return Simplex(solver)


def _no_solution(solver: Any) -> bool:
    status = type(solver.getModelStatus())
    return solver.getModelStatus() in (status.kInfeasible, status.kUnbounded, status.kUnboundedOrInfeasible)


def _rays(solver: Any, columns: int, rows: int) -> list[tuple[Vector, Vector]]:
    """Return the rays that HiGHS has, each a direction of x and one of y, in our sign."""
    rays = []
    _, found, dual = solver.getDualRay()
    if found:
        rays.append((np.zeros(columns), -np.array(dual)))
    _, found, primal = solver.getPrimalRay()
    if found:
        rays.append((np.array(primal), np.zeros(rows)))
    return rays
