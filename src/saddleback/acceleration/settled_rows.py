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

from ..certificate import admit, bound, pair, primal_side
from ..functions._base import Indices, Restrictable, Vector
from ..methods._base import Candidates, Layer, Start, State
from ..problem import Model

LEAST = 5000
"""Rows from which on some of them are left out."""

LARGEST = 0.5
"""Share of the rows from which on all of them are taken."""

LEAST_PER_COLUMN = 6
"""Rows that are kept for every column, at the least."""

MORE = 4.0
"""By how much the rows grow where the method has failed on them."""

ROUNDS = 4
"""Sets of rows that are tried before all of them are taken."""

ROUGH = 1e-3
"""Error of a point from which on a sample tells more; and how accurately the problem of a sample is solved."""

SAMPLE_STEPS = 30

INNER = 0.1
"""How accurately the problem of some rows is solved, relative to the error at which the run ends."""

SMALLEST_TOL = 1e-10


@dataclass(kw_only=True)
class SettledState(State):
    """The whole problem with its point, and the problem of some rows.

    Attributes
    ----------
    rows : those that are kept.
    settled : y in the others; 0 in those that are kept.
    pull : A'y of the others.
    inner : the method's state on the rows that are kept.
    scale : size of the objective.
    u, z : Ax and -A'y at the point.
    rounds : sets of rows tried so far.
    """

    model: Model
    start: Start
    rows: Indices
    settled: Vector
    pull: Vector
    inner: Any
    scale: float
    u: Vector
    z: Vector
    rounds: int = 0


@dataclass(frozen=True)
class SettledRows(Layer[Any]):
    """An interior point on some of the rows. Where that cannot pay, on all of them."""

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether the wrapped method needs the entries of A as they are."""
        return bool(self.method.exact)

    def init(self, model: Model, start: Start) -> Any:
        if not pays(model):
            return self.method.init(model, start)
        model = model.columnar()
        u, passes = start.image(model)
        z = -model.A.rmatvec(start.y)
        passes += 0.5
        certificate = pair(model, primal_side(model, start.x, u), bound(model, admit(model, start.y, u), start.x, u, z))
        if certificate.error >= ROUGH:
            start, cost = self._sampled(model, start)
            u, z = model.A.matvec(start.x), -model.A.rmatvec(start.y)
            passes += cost + 1.0
        state = SettledState(
            x=start.x,
            y=start.y,
            model=model,
            start=start,
            rows=np.arange(0),
            settled=start.y,
            pull=-z,
            inner=None,
            scale=max(abs(model.f.finite_value(start.x) + model.g.finite_value(u)), 1e-6 * model.value_at_zero),
            u=u,
            z=z,
            passes=passes,
        )
        self._take(state, self._unsettled(model, u, kept_rows(model)))
        return state

    def _sampled(self, model: Model, start: Start) -> tuple[Start, float]:
        """Return the solution for a sample of the rows, roughly, with the slopes of the loss there; and its cost."""
        assert isinstance(model.g, Restrictable)
        m = model.A.shape[0]
        size = kept_rows(model)
        rows = np.sort(np.random.default_rng(start.seed).choice(m, size, replace=False))
        g = model.g.restrict(rows).repeated(np.full(size, m / size))
        part = replace(model, A=model.A.restrict(rows, np.arange(model.A.shape[1])), g=g)
        state = self.method.init(part, replace(start, y=start.y[rows] * (m / size), u=None))
        for _ in range(SAMPLE_STEPS):
            if state.ended or state.complementarity() <= ROUGH * model.value_at_zero:
                break
            state = self.method.advance(state, 1.0)
        y = model.g.subgradient(model.A.matvec(state.x))
        return replace(start, x=state.x, y=y, u=None), state.passes * size / m + 0.5

    @staticmethod
    def _unsettled(model: Model, u: Vector, size: int) -> Indices:
        """Return so many rows with the least distance to where their slope changes, and all that are there."""
        assert isinstance(model.g, Restrictable)
        far = model.g.distance_to_kink(u)
        size = min(max(size, int(np.count_nonzero(far == 0))), far.size - 1)
        return np.sort(np.argpartition(far, size)[:size])

    def _take(self, state: SettledState, rows: Indices) -> None:
        """Go on with these rows."""
        model, m = state.model, state.model.A.shape[0]
        state.rounds += 1
        if rows.size >= LARGEST * m or state.rounds > ROUNDS:
            rows = np.arange(m)
        state.rows, state.settled = rows, model.g.subgradient(state.u)
        state.settled[rows] = 0.0
        state.pull = model.A.rmatvec(state.settled)
        part = model if rows.size == m else model.rows_part(rows, state.pull)
        state.inner = self.method.init(part, replace(state.start, x=state.x, y=state.y[rows], u=state.u[rows]))
        state.passes += 1.0 + state.inner.passes * rows.size / m
        steps = state.settings.get("finish_steps", 0)
        state.settings |= state.inner.settings | {"rows": int(rows.size), "finish_steps": steps}
        state.ended = state.inner.ended

    def advance(self, state: Any, passes: float) -> Any:
        if not isinstance(state, SettledState):
            return self.method.advance(state, passes)
        inner, share = state.inner, state.rows.size / state.model.A.shape[0]
        before = inner.passes
        state.inner = inner = self.method.advance(inner, passes)
        state.passes += (inner.passes - before) * share
        steps = state.settings["finish_steps"] + 1
        state.settings |= inner.settings | {"finish_steps": steps}
        tol = max(state.start.tol, SMALLEST_TOL)
        if share == 1.0 or inner.ended or inner.complementarity() <= INNER * tol * state.scale:
            self._look(state)
        return state

    def _look(self, state: SettledState) -> None:
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
        state.ripe, state.ended = True, inner.ended
        if state.rows.size == state.y.size:
            return
        wrong = model.g.subgradient(state.u) != state.settled
        wrong[state.rows] = False
        if np.any(wrong):
            self._take(state, np.union1d(state.rows, np.flatnonzero(wrong)))

    def candidates(self, state: Any) -> Candidates:
        if not isinstance(state, SettledState):
            return self.method.candidates(state)  # type: ignore[no-any-return]
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
        isinstance(model.g, Restrictable)
        and model.A.shape[0] >= LEAST
        and model.surely_solvable
        and kept_rows(model) < LARGEST * model.A.shape[0]
        and np.any(model.g.distance_to_kink(np.zeros(model.A.shape[0])) > 0)
    )
