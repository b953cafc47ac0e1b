r"""The finish: block passes until an interior point is the faster way to the end.

Where loss and penalty both have kinks, a first-order method takes thousands of passes for the last digits. An interior
point (``methods/interior_point.py``) takes some 25 steps, each of which factors a matrix: too much for all columns of a
large problem, but not for the few that matter near its solution, which working sets find. This layer compares the two
in passes, from how the error has fallen so far, and goes over to the interior point when that is predicted to be
cheaper. If it fails, or would take more memory than allowed, block passes go on. A run ends on the certificate of the
whole problem only, as always, and that keeps the best pair that either has found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..certificates.candidates import Candidates, evaluate
from ..certificates.certificate import dual_side, pair, primal_side
from ..common.arrays import Vector
from ..common.rebuildable import stored
from ..functions.points import DensePoint
from ..methods.contract import Layer, Method, Start, State, diverged
from ..methods.interior_point import InteriorPoint
from ..methods.report import Report
from ..model.model import Model
from . import row_working_set as settled_rows
from . import working_set
from .row_working_set import RowWorkingSet
from .working_set import GROWTH, SMALLEST, WorkingSet

STEPS = 25
"""Steps that an interior point takes, more or less, whatever the problem."""

PRODUCTS = 8
"""Passes over its own columns that a step takes, apart from the matrix."""

LOOKS = 8
"""Passes over all rows and columns that the choice of those that matter takes."""

ADVANTAGE = 20
"""How much faster a multiply-add is in a factorisation than in a pass, which waits for memory."""

TRIAL = 0.1
"""Share of the cost of the finish that goes to block passes first: they find out who matters."""

SUPERLINEAR_TRIAL = 200.0
"""Passes that a method gets first whose error falls the faster the smaller it is: it hardly ever needs a finish."""

NEARBY, SMALL = 0.5, 2.0
"""Error of a start from which the finish may begin at once, and what its matrices may make of its cost."""

PATIENCE = 4.0
"""By how much the work has to grow before a finish that has failed is tried again."""

CLOSER, CLOSE = 0.1, 1e-2
"""Block passes go on from where a failed finish has got if its error is so much smaller, and that small: otherwise the
problem may have no solution, and the iterates have run away."""

ROUNDING = 1e-12
"""Errors below this are not asked for when the way to go is estimated."""


@stored
@dataclass(kw_only=True)
class FinishState(State):
    """The state of whichever method is running, and what is known about the error.

    Attributes
    ----------
    start : where the run began, and from the first switch on where the last one was made.
    blocks : state of the block method; None while it is not running.
    interior : state of the interior point; None while it is not running.
    earlier : report of what has run before it, if anything has.
    errors : passes and errors of the certificates so far.
    retry : passes before which the finish is not tried (again).
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
    """A block method with an interior point behind it.

    Parameters
    ----------
    at_once : go to the interior point from the beginning.
    finish_memory : most bytes that its matrix may take.
    """

    at_once: bool = False
    finish_memory: float = 2e9
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
        """Return the interior point, on working sets of columns and rows if the problem is large."""
        return WorkingSet(RowWorkingSet(InteriorPoint(min(self.finish_memory, model.A.traits.budget)))).for_model(model)

    def applies(self, model: Model) -> bool:
        return InteriorPoint().missing(model) is None

    def missing(self, model: Model) -> str | None:
        own = InteriorPoint().missing(model) if self.at_once else None
        return own or super().missing(model)  # block passes go on where the interior point fails

    def init(self, model: Model, start: Start) -> FinishState:
        model = model.columnar()
        state = FinishState(x=start.x, y=start.y, model=model, start=start, blocks=None, interior=None)
        if self.at_once or self._has_found(state):
            self._switch(state, start)
        else:
            state.blocks = self.method.init(model, start)
            self._mirror(state, 0.0)
        return state

    def _has_found(self, state: FinishState) -> bool:
        """Return whether nothing is left for block passes to find out.

        That is so from a solution nearby, as along a path, of a problem so small that all columns and rows take part.
        """
        model, start = state.model, state.start
        if self.method.superlinear or not (np.any(start.x) and model.surely_solvable) or chooses(model):
            return False
        if finish_passes(model, start.x) > SMALL * (STEPS * PRODUCTS + LOOKS):
            return False
        x, u = DensePoint(start.x), DensePoint(model.A.matvec(start.x))
        state.passes += 1.0
        error = pair(model, primal_side(model, x, u), dual_side(model, start.y, x, u)).error
        return start.tol < error <= NEARBY  # a solution is judged as it is

    def advance(self, state: FinishState, passes: float) -> FinishState:
        before = state.running.passes
        if state.interior is None:
            state.blocks = self.method.advance(state.blocks, passes)
        else:
            state.interior = self.interior(state.model).advance(state.interior, passes)
        self._mirror(state, before)
        if state.interior is not None and (state.interior.ended or diverged(state.model, state.x, state.y)):
            self._go_back(state)
        return state

    @staticmethod
    def _mirror(state: FinishState, before: float) -> None:
        """Take over what the running method has done."""
        running = state.running
        state.x, state.y, state.wants_certificate = running.x, running.y, running.wants_certificate
        running.wants_certificate = False
        state.passes += running.passes - before

    def adapt(self, state: FinishState, error: float) -> FinishState:
        state.errors.append((state.passes, error))
        if state.interior is None and state.passes >= state.retry and self._worthwhile(state, error):
            self._switch(state, self._best(state))
        return state

    def _worthwhile(self, state: FinishState, error: float) -> bool:
        """Return whether the finish is predicted to be cheaper than what block passes have left to do."""
        superlinear = self.method.superlinear
        if error <= state.start.tol or (superlinear and state.passes < SUPERLINEAR_TRIAL):
            return False
        cost = finish_passes(state.model, state.x)
        if state.passes < (cost if superlinear else TRIAL * cost):
            return False
        return state.passes >= cost or passes_left(state.errors, state.start.tol) > cost

    def _best(self, state: FinishState) -> Start:
        """Return the best pair that the running method offers, as a start."""
        offer = self.method.candidates(state.blocks)
        state.passes += 0.5 * (len(offer.primal) + len(offer.dual))
        _, primal, dual = evaluate(state.model, offer)
        weight = state.report().primal_weight
        return replace(state.start, x=primal.x, y=dual.y, weight=state.start.weight if weight is None else weight)

    def _switch(self, state: FinishState, start: Start) -> None:
        """Go over to the interior point, and let go of the block method: its vectors are long."""
        state.start = start
        state.at_switch = state.errors[-1][1] if state.errors else np.inf
        if state.blocks is not None:
            state.earlier = state.report()
        state.interior = self.interior(state.model).init(state.model, start)
        rows, columns = state.model.A.shape
        chosen = state.interior.report()
        columns, rows = chosen.working_set_columns or columns, chosen.rows or rows
        state.notes.append(f"finish at pass {state.passes:.0f}: {columns} columns, {rows} rows")
        self._mirror(state, 0.0)
        if state.interior.ended:
            self._go_back(state)
        else:
            state.blocks = None

    def _go_back(self, state: FinishState) -> None:
        """Go on with block passes, from where the interior point has got if that is closer."""
        reason = state.interior.ended or "its point ran away"
        state.notes.append(f"back to block passes at pass {state.passes:.0f}: {reason}")
        error = state.errors[-1][1] if state.errors else np.inf
        if error <= min(CLOSER * state.at_switch, CLOSE) and not diverged(state.model, state.x, state.y):
            state.blocks = self._begin(state, state.x, state.y)
        elif state.blocks is None:
            state.blocks = self._begin(state, state.start.x, state.start.y)
        state.earlier, state.interior = state.report(), None
        state.retry = max(PATIENCE * state.passes, finish_passes(state.model, state.x))
        self._mirror(state, state.blocks.passes)

    def _begin(self, state: FinishState, x: Vector, y: Vector) -> Any:
        """Return the block method's state at its beginning."""
        blocks = self.method.init(state.model, replace(state.start, x=x.copy(), y=y.copy(), u=None))
        state.passes += blocks.passes
        return blocks

    def candidates(self, state: FinishState) -> Candidates:
        return (self.method if state.interior is None else self.interior(state.model)).candidates(state.running)


def chooses(model: Model) -> bool:
    """Return whether a problem is so large that the interior point gets only the columns or rows that matter."""
    return working_set.pays(model) or settled_rows.pays(model)


def finish_passes(model: Model, x: Vector) -> float:
    """Return the passes that take as long as an interior point on the columns that x suggests."""
    m, n = model.A.shape
    columns = min(float(n), max(SMALLEST, GROWTH * np.count_nonzero(x))) if working_set.pays(model) else float(n)
    rows = settled_rows.kept_rows(model) if settled_rows.pays(model) else m
    share = columns / n * rows / m
    filled = model.A.traits.stored / m * columns / n
    multiplications = 0.5 * rows * filled**2 + min(columns, rows) ** 3 / 6.0
    return STEPS * (PRODUCTS * share + multiplications / (2.0 * max(model.A.traits.stored, 1) * ADVANTAGE)) + LOOKS


def passes_left(errors: list[tuple[float, float]], tol: float) -> float:
    """Return the passes to go if the error keeps falling as in the last half of them; inf if it does not fall."""
    passes, error = errors[-1]
    earlier = [point for point in errors if point[0] <= 0.5 * passes]
    if not earlier or not np.isfinite(earlier[-1][1]) or not earlier[-1][1] > error > 0:
        return np.inf
    before, higher = earlier[-1]
    return float((passes - before) * np.log(error / max(tol, ROUNDING)) / np.log(higher / error))
