r"""The finish: block passes until an interior-point method is the faster way to the solution.

If loss and penalty both have kinks, a first-order method takes thousands of passes for the last digits. An interior
point method (``methods/interior_point.py``) takes some 25 steps, each of which factors a matrix. That is too expensive
for all columns of a large problem, but not for the few that matter near its solution, which working sets find. If A has
sparse structure (``methods/interior/structure.py``), a step on all columns costs a few passes. This layer predicts the
passes that both would take, and switches to the interior point when that is cheaper. The prediction for the method
follows from how its error has fallen so far, or from the number of passes that it says it expects. If the interior
point fails, or would take more memory than allowed, the method continues. A run ends only on the certificate of the
whole problem, and keeps the best pair that either method has found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..certificates.candidates import Candidates
from ..certificates.sides import dual_side, pair, primal_side
from ..common.arrays import Vector
from ..common.rebuildable import stored
from ..functions.points import DensePoint
from ..methods.contract import Layer, Method, Start, State, diverged
from ..methods.interior import structure_of
from ..methods.interior.structure import hard_rows
from ..methods.interior.system import MOST_RIGID
from ..methods.interior_point import InteriorPoint, matrix_bytes
from ..methods.report import Report
from ..model.model import Model
from ..places.newton import factorisation_passes, gram_multiplications, step_overhead
from . import row_working_set as settled_rows
from . import working_set
from .handover import Handover, best_of
from .row_working_set import RowWorkingSet
from .working_set import GROWTH, SMALLEST, WorkingSet

STEPS = 25
"""Typical number of steps of the interior point, for any problem."""

PRODUCTS = 8
"""Passes over the columns of the interior point that a step takes, apart from its matrix."""

LOOKS = 8
"""Passes over the whole problem that the choice of the working sets takes."""

ROUNDS = 3
"""Typical number of working sets of rows on which the interior point runs, one after the other. The working sets of
columns before the last one cost little: they are smaller, and the interior point takes only a few steps on each."""

TRIAL = 0.1
"""Share of the cost of the finish that is spent on block passes first: they find the columns that matter."""

SUPERLINEAR_TRIAL, SUPERLINEAR_SHARE = 200.0, 3.0
"""Passes that a superlinear method gets before a finish is considered, at least and relative to the cost of the finish:
it hardly ever needs one."""

MATURE, CHEAP = 40, 1000.0
"""Newton steps from which the nonzeros of x tell the cost of the finish, and the passes up to which it is cheap."""

NEARBY, SMALL = 0.5, 2.0
"""The finish may begin at once if the error of the start is at most NEARBY and the matrices at most double its cost."""

PATIENCE = 4.0
"""Factor by which the work has to grow before a finish that has failed is tried again."""

CLOSER, CLOSE = 0.1, 1e-2
"""After a failed finish, block passes continue from its point if its error is at most CLOSER times the error at the
switch and at most CLOSE. Otherwise the problem may have no solution, and the iterates have diverged."""

FEW_PASSES = 10.0
"""Passes of a factorisation up to which the interior point is the way to begin with."""

MEMORY = 2e9
"""Bytes that the matrix of the interior point may take unless the user says otherwise."""

ROUNDING = 1e-12
"""Smallest tolerance for which the remaining passes are estimated."""


@stored
@dataclass(kw_only=True)
class FinishState(State):
    """The state of the method that is running, and the errors so far.

    Attributes
    ----------
    start : where the run began or, after a switch to the interior point, the point of the last switch.
    blocks : state of the block method; None while it is not running.
    interior : state of the interior point; None while it is not running.
    earlier : report of the method that ran before the present one; None if there was none.
    errors : passes and errors of the certificates so far.
    retry : passes before which the finish is not tried again.
    at_switch : error at the last switch to the interior point.
    """

    model: Model
    start: Start
    blocks: Any
    interior: Any
    earlier: Report | None = None
    errors: list[tuple[float, float]] = field(default_factory=list)
    retry: float = 0.0
    at_switch: float = np.inf

    @property
    def running(self) -> Any:
        """The state of the method that is running."""
        return self.blocks if self.interior is None else self.interior

    def report(self) -> Report:
        running: Report = self.running.report()
        return running if self.earlier is None else self.earlier.updated(running)


@dataclass(frozen=True)
class Finish(Layer[FinishState]):
    """A block method that is followed by an interior point.

    Parameters
    ----------
    at_once : whether to begin with the interior point.
    finish_memory : largest number of bytes that its matrix may take.
    """

    at_once: bool = False
    finish_memory: float = MEMORY
    options: ClassVar[tuple[str, ...]] = ("finish_memory",)

    @classmethod
    def around(cls, method: Method[Any], forced: bool, options: Mapping[str, Any]) -> Finish:
        return cls(method, at_once=forced, **options)

    def __post_init__(self) -> None:
        if isinstance(self.finish_memory, bool) or not isinstance(self.finish_memory, (int, float, np.number)):
            raise TypeError(f"finish_memory={self.finish_memory!r}: expected a number of bytes, such as 2e9")
        if not self.finish_memory > 0:
            raise ValueError(f"finish_memory={self.finish_memory!r}: expected a positive number of bytes")

    @property
    def name(self) -> str:
        return "finish" if self.at_once else self.method.name

    def interior(self, model: Model) -> Method[Any]:
        """Return the interior point, on working sets of columns and rows if the problem is large and its A dense."""
        bare = InteriorPoint(min(self.finish_memory, model.A.traits.budget))
        return WorkingSet(RowWorkingSet(bare)).for_model(model) if structure_of(model) is None else bare

    def applies(self, model: Model) -> bool:
        return InteriorPoint().missing(model) is None

    def missing(self, model: Model) -> str | None:
        own = InteriorPoint().missing(model) if self.at_once else None
        return own or super().missing(model)  # block passes continue if the interior point fails

    def init(self, model: Model, start: Start) -> FinishState:
        model = model.columnar() if structure_of(model) is None else model
        state = FinishState(x=start.x, y=start.y, model=model, start=start, blocks=None, interior=None)
        if self.at_once or self._has_found(state):
            self._switch(state, start)
        else:
            state.blocks = self.method.init(model, start)
            state.follow(state.running, 0.0)
        return state

    def _has_found(self, state: FinishState) -> bool:
        """Return whether block passes are not needed before the interior point.

        That holds if the start is close to a solution, as along a path, and the problem is so small that the interior
        point gets all columns and rows.
        """
        model, start = state.model, state.start
        if self.method.superlinear or not (np.any(start.x) and model.surely_solvable) or chooses(model):
            return False
        if finish_passes(model, finish_columns(model, start.x)) > SMALL * (STEPS * PRODUCTS + LOOKS):
            return False
        x, u = DensePoint(start.x), DensePoint(model.A.matvec(start.x))
        state.passes += 1.0
        error = pair(model, primal_side(model, x, u), dual_side(model, start.y, x, u)).error
        return start.tol < error <= NEARBY  # a start within the tolerance needs no method at all

    def advance(self, state: FinishState, passes: float) -> FinishState:
        before = state.running.passes
        if state.interior is None:
            state.blocks = self.method.advance(state.blocks, passes)
        else:
            state.interior = self.interior(state.model).advance(state.interior, passes)
        state.follow(state.running, before)
        if state.interior is None:
            if self._overtaken(state) and not diverged(state.model, state.x, state.y):
                self._leave(state)
        elif state.interior.ended or diverged(state.model, state.x, state.y):
            self._go_back(state)
        return state

    def _leave(self, state: FinishState) -> None:
        """Switch to the interior point, unless the method has just found a solution."""
        best = self._best(state)
        if best.error > state.start.tol:
            self._switch(state, best.start)
        else:
            state.wants_certificate = True

    def adapt(self, state: FinishState, error: float) -> FinishState:
        state.errors.append((state.passes, error))
        if state.interior is None and state.passes >= state.retry and self._worthwhile(state, error):
            self._switch(state, self._best(state).start)
        return state

    def _overtaken(self, state: FinishState) -> bool:
        """Return whether the method says how many passes it expects to need, and the finish is cheaper.

        Early in a run x has few nonzeros, and says little about the cost of the finish. Then the finish may begin only
        if it is cheap even on all columns.
        """
        model, expected = state.model, state.blocks.expected
        if expected is None or state.blocks.ended or state.passes < state.retry:
            return False
        overhead = STEPS * step_overhead(model.A)
        if expected <= LOOKS + overhead:  # saves the computation of the rest of the cost
            return False
        early = (state.report().newton_steps or 0) < MATURE
        if early and finish_passes(model, model.A.shape[1]) > CHEAP:
            return False
        return bool(expected > self._cost(state) + overhead)

    def _worthwhile(self, state: FinishState, error: float) -> bool:
        """Return whether the finish is predicted to be cheaper than the block passes that are left."""
        superlinear = self.method.superlinear
        if state.blocks.ended and error > state.start.tol:
            return True
        if state.blocks.expected is not None or error <= state.start.tol:
            return False
        if superlinear and state.passes < SUPERLINEAR_TRIAL:
            return False
        cost = self._cost(state)
        if state.passes < (SUPERLINEAR_SHARE if superlinear else TRIAL) * cost:
            return False
        return state.passes >= cost or passes_left(state.errors, state.start.tol) > cost

    def _cost(self, state: FinishState) -> float:
        """Return the passes of the finish; inf if its matrix would take too much memory."""
        model, columns = state.model, finish_columns(state.model, state.x)
        bound = min(self.finish_memory, model.A.traits.budget)
        dense = 16.0 * matrix_sides(model, columns)[0] ** 2
        needed = dense if structure_of(model) is None else matrix_bytes(model)
        return np.inf if needed > bound else finish_passes(model, columns)

    def _best(self, state: FinishState) -> Handover:
        """Return the best pair that the method offers, as a start of the interior point."""
        weight = state.report().primal_weight
        start = state.start if weight is None else replace(state.start, weight=weight)
        best = best_of(self.method, state.blocks, state.model, start)
        state.passes += best.passes
        return best

    def _switch(self, state: FinishState, start: Start) -> None:
        """Switch to the interior point, and free the block method: its vectors are long."""
        state.start = start
        state.at_switch = state.errors[-1][1] if state.errors else np.inf
        if state.blocks is not None:
            state.earlier = state.report()
        state.interior = self.interior(state.model).init(state.model, start)
        rows, columns = state.model.A.shape
        chosen = state.interior.report()
        columns, rows = chosen.working_set_columns or columns, chosen.rows or rows
        state.notes.append(f"finish at pass {state.passes:.0f}: {columns} columns, {rows} rows")
        state.follow(state.running, 0.0)
        if state.interior.ended:
            self._go_back(state)
        else:
            state.blocks = None

    def _go_back(self, state: FinishState) -> None:
        """Continue with block passes, from the point of the interior point if that is closer."""
        reason = state.interior.ended or "the interior point diverged"
        state.notes.append(f"back to {self.method.name} at pass {state.passes:.0f}: {reason}")
        error = state.errors[-1][1] if state.errors else np.inf
        if error <= min(CLOSER * state.at_switch, CLOSE) and not diverged(state.model, state.x, state.y):
            state.blocks = self._begin(state, state.x, state.y)
        elif state.blocks is None:
            state.blocks = self._begin(state, state.start.x, state.start.y)
        state.earlier, state.interior = state.report(), None
        state.retry = max(PATIENCE * state.passes, finish_passes(state.model, finish_columns(state.model, state.x)))
        state.follow(state.running, state.blocks.passes)

    def _begin(self, state: FinishState, x: Vector, y: Vector) -> Any:
        """Return a new state of the block method at a point."""
        blocks = self.method.init(state.model, replace(state.start, x=x.copy(), y=y.copy(), u=None))
        state.passes += blocks.passes
        return blocks

    def candidates(self, state: FinishState) -> Candidates:
        return (self.method if state.interior is None else self.interior(state.model)).candidates(state.running)


def chooses(model: Model) -> bool:
    """Return whether a problem is so large that the interior point gets working sets of columns or rows."""
    return structure_of(model) is None and (working_set.pays(model) or settled_rows.pays(model))


def finish_passes(model: Model, columns: float) -> float:
    """Return the cost, in passes, of an interior point on a number of columns."""
    if (structure := structure_of(model)) is not None:
        return STEPS * (PRODUCTS + structure.passes(model.A)) + LOOKS
    (m, n), rows = model.A.shape, finish_rows(model)
    share = columns / n * rows / m
    multiplications = gram_multiplications(model.A.traits.stored * share, *matrix_sides(model, columns))
    rounds = ROUNDS if rows < m else 1
    return rounds * STEPS * (PRODUCTS * share + factorisation_passes(model.A, multiplications)) + LOOKS


def matrix_sides(model: Model, columns: float) -> tuple[float, float]:
    """Return the size of the dense matrix of a step, and the length of the vectors of which it is the Gram matrix.

    With many equality constraints it has the size of the rows, even if these are more than the columns.
    """
    rows = float(finish_rows(model))
    by_columns = columns < rows and hard_rows(model).size <= MOST_RIGID
    return (columns, rows) if by_columns else (rows, columns)


def pays_at_once(model: Model) -> bool:
    """Return whether the interior point is the way to begin with: if a step on all columns costs a few passes.

    No other method is known to take few passes on such problems: differences, of which a sparse A is often made, are
    ill-conditioned.
    """
    if InteriorPoint().missing(model) is not None or (structure := structure_of(model)) is None:
        return False
    return structure.passes(model.A) <= FEW_PASSES and matrix_bytes(model) <= min(MEMORY, model.A.traits.budget)


def finish_columns(model: Model, x: Vector) -> float:
    """Return the columns of the interior point that the nonzeros of x suggest."""
    n = float(model.A.shape[1])
    return min(n, max(SMALLEST, GROWTH * np.count_nonzero(x))) if working_set.pays(model) else n


def finish_rows(model: Model) -> int:
    """Return the rows of the interior point."""
    return settled_rows.kept_rows(model) if settled_rows.pays(model) else model.A.shape[0]


def passes_left(errors: list[tuple[float, float]], tol: float) -> float:
    """Return the passes to the tolerance if the error keeps falling as in the last half; inf if it does not fall."""
    passes, error = errors[-1]
    earlier = [point for point in errors if point[0] <= 0.5 * passes]
    if not earlier or not np.isfinite(earlier[-1][1]) or not earlier[-1][1] > error > 0:
        return np.inf
    before, higher = earlier[-1]
    return float((passes - before) * np.log(error / max(tol, ROUNDING)) / np.log(higher / error))
