r"""Working sets over rows: leave out those whose dual variable is known.

Where a loss is flat to both sides of :math:`u_i = (Ax)_i`, its slope :math:`y_i` is the same for all u nearby. Such
rows, F, need not be looked at again: they add :math:`\langle A_F' y_F, x\rangle` to the penalty and a constant to the
objective (Portnoy and Koenker, 1997, for quantile regression). The method runs on the other rows, those with the least
distance to a kink. When that is solved, all rows are looked at: those that turn out to be on another side than was
thought are taken in. After a few such rounds the method gets all rows.

A first point to tell the sides from is found on a sample of the rows, if there is none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..certificates.candidates import Candidates
from ..certificates.certificate import dual_side, floor, pair, primal_side
from ..common.arrays import Indices, Vector
from ..common.rebuildable import stored
from ..functions.points import DensePoint
from ..functions.traits import SumOverRows
from ..methods.contract import Layer, Start, State
from ..methods.report import Report
from ..model.model import Model

LEAST = 5000
"""Rows from which on some of them are left out."""

LARGEST = 0.5
"""Share of the rows from which on all of them are taken."""

LEAST_PER_COLUMN = 6
"""Rows that are kept for every column, at the least."""

MORE = 2.0
"""By how much the rows grow where the method has failed on them."""

ROUNDS = 4
"""Sets of rows that are tried before all of them are taken."""

ROUGH = 1e-3
"""Error of a point from which on a sample tells more; and how accurately the problem of a sample is solved."""

INNER = 0.1
"""How accurately the problem of some rows is solved, relative to the error at which the run ends."""

SMALLEST_TOL = 1e-10


@stored
@dataclass(kw_only=True)
class RowWorkingSetState(State):
    """The whole problem with its point, and the problem of some rows.

    Attributes
    ----------
    rows : those that are kept.
    settled : y in the others; 0 in those that are kept.
    pull : A'y of the others.
    inner : the method's state on the rows that are kept.
    sampled : whether they are a sample that is to tell the sides of all.
    target : sum of the products of ``inner`` at which it is solved well enough.
    u, z : Ax and -A'y at the point.
    rounds : sets of rows tried so far.
    steps : of the method, on all of them.
    """

    model: Model
    start: Start
    rows: Indices
    settled: Vector
    pull: Vector
    inner: Any
    sampled: bool
    target: float = 0.0
    u: Vector
    z: Vector
    rounds: int = 0
    steps: int = 0

    def report(self) -> Report:
        inner: Report = self.inner.report()
        return replace(inner, rows=int(self.rows.size), finish_steps=self.steps)


@dataclass(frozen=True)
class RowWorkingSet(Layer[RowWorkingSetState]):
    """An interior point on some of the rows."""

    def applies(self, model: Model) -> bool:
        return pays(model)

    def init(self, model: Model, start: Start) -> RowWorkingSetState:
        model = model.columnar()
        u, passes = start.image(model)
        z = -model.A.rmatvec(start.y)
        passes += 0.5
        point = DensePoint(start.x), DensePoint(u)
        certificate = pair(model, primal_side(model, *point), dual_side(model, start.y, *point, z))
        state = RowWorkingSetState(
            x=start.x,
            y=start.y,
            model=model,
            start=start,
            rows=np.arange(0),
            settled=start.y,
            pull=-z,
            inner=None,
            sampled=certificate.error >= ROUGH,
            u=u,
            z=z,
            passes=passes,
        )
        if state.sampled:
            self._sample(state)
        else:
            self._take(state, self._unsettled(model, u, kept_rows(model)))
        return state

    def _sample(self, state: RowWorkingSetState) -> None:
        """Begin with the problem of a sample of the rows, in which each counts for several."""
        model, m = state.model, state.model.A.shape[0]
        size = kept_rows(model)
        state.rows = np.sort(np.random.default_rng(state.start.seed).choice(m, size, replace=False))
        start = replace(state.start, y=state.y[state.rows] * (m / size), u=None)
        state.target = ROUGH * model.value_at_zero
        self._begin(state, self.method.init(model.sample(state.rows), start))

    def _begin(self, state: RowWorkingSetState, inner: Any) -> None:
        """Go on with the problem of the rows at hand."""
        state.inner = inner
        state.passes += 1.0 + inner.passes * state.rows.size / state.y.size
        state.ended = "" if state.sampled else inner.ended

    def _leave_sample(self, state: RowWorkingSetState) -> None:
        """Go from the solution for the sample to the rows that it leaves unsettled."""
        model = state.model
        state.sampled = False
        state.x = state.inner.x
        state.u = model.A.matvec(state.x)
        state.y = model.g.subgradient(state.u)
        state.z = -model.A.rmatvec(state.y)
        state.passes += 1.0
        self._take(state, self._unsettled(model, state.u, kept_rows(model)))

    @staticmethod
    def _unsettled(model: Model, u: Vector, size: int) -> Indices:
        """Return so many rows with the least distance to where their slope changes, and all that are there."""
        assert isinstance(model.g, SumOverRows)
        far = model.g.distance_to_kink(u)
        size = min(max(size, int(np.count_nonzero(far == 0))), far.size - 1)
        return np.sort(np.argpartition(far, size)[:size])

    def _take(self, state: RowWorkingSetState, rows: Indices) -> None:
        """Go on with these rows."""
        model, m = state.model, state.model.A.shape[0]
        state.inner = None  # its rows are let go before others are copied
        state.rounds += 1
        if rows.size >= LARGEST * m or state.rounds > ROUNDS:
            rows = np.arange(m)
        state.rows, state.settled = rows, model.g.subgradient(state.u)
        state.settled[rows] = 0.0
        state.pull = model.A.rmatvec(state.settled)
        part = model if rows.size == m else model.rows_part(rows, state.pull)
        start = replace(state.start, x=state.x, y=state.y[rows], u=state.u[rows])
        objective = abs(model.f.finite_value(state.x) + model.g.finite_value(state.u))
        least = floor(model, model.reach(DensePoint(state.x), state.u), float(np.linalg.norm(state.y)))
        scale = max(objective, least)
        state.target = INNER * max(state.start.tol, SMALLEST_TOL) * scale
        self._begin(state, self.method.init(part, start))

    def advance(self, state: RowWorkingSetState, passes: float) -> RowWorkingSetState:
        inner, share = state.inner, state.rows.size / state.model.A.shape[0]
        before = inner.passes
        state.inner = inner = self.method.advance(inner, passes)
        state.passes += (inner.passes - before) * share
        state.steps += 1
        if share == 1.0 or inner.ended or inner.complementarity() <= state.target:
            if state.sampled:
                self._leave_sample(state)
            else:
                self._look(state)
        return state

    def _look(self, state: RowWorkingSetState) -> None:
        """Look at all rows: take in those whose slope is another than was thought."""
        model, inner = state.model, state.inner
        if inner.ended and state.rows.size < state.y.size:
            # without the rows that were left out the objective may fall for ever
            self._take(state, self._unsettled(model, state.u, int(MORE * state.rows.size)))
            return
        state.x, state.y = inner.x, state.settled.copy()
        state.y[state.rows] = inner.y
        state.u, state.z = model.A.matvec(state.x), inner.z - state.pull
        state.passes += 0.5
        state.wants_certificate, state.ended = True, inner.ended
        if state.rows.size == state.y.size:
            return
        wrong = model.g.subgradient(state.u) != state.settled
        wrong[state.rows] = False
        if np.any(wrong):
            self._take(state, np.union1d(state.rows, np.flatnonzero(wrong)))

    def candidates(self, state: RowWorkingSetState) -> Candidates:
        return Candidates([(state.x.copy(), state.u.copy())], [(state.y.copy(), state.z.copy())])


def kept_rows(model: Model) -> int:
    r"""Return how many rows to keep: :math:`m^{2/3} n^{1/3}`.

    A sample of k rows tells u to about sqrt(n / k) of the noise, and the share of rows within that of a kink should be
    k / m.
    """
    m, n = model.A.shape
    return int(min(max(LEAST_PER_COLUMN * n, m ** (2 / 3) * n ** (1 / 3)), m))


def pays(model: Model) -> bool:
    """Return whether a problem has many rows for its columns, and a loss with flat parts."""
    return bool(
        isinstance(model.g, SumOverRows)
        and model.A.shape[0] >= LEAST
        and model.surely_solvable
        and kept_rows(model) < LARGEST * model.A.shape[0]
        and np.any(model.g.distance_to_kink(np.zeros(model.A.shape[0])) > 0)
    )
