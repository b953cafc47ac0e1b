r"""Working sets of rows: leave out the rows whose dual variable is known.

If a loss is linear near :math:`u_i = (Ax)_i`, its slope :math:`y_i` is the same for all u nearby. The method can leave
out such rows, F: they add :math:`\langle A_F' y_F, x\rangle` to the penalty and a constant to the objective (Portnoy
and Koenker, 1997, for quantile regression). The method runs on the rows closest to a kink. When that subproblem is
solved, all rows are checked, and those whose slope differs from the assumed one are added. After a few such rounds the
method gets all rows.

If the start is far from a solution, a sample of the rows is solved first, to estimate the slopes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..certificates.candidates import Candidates
from ..certificates.sides import dual_side, floor, pair, primal_side
from ..common.arrays import Indices, Vector
from ..common.rebuildable import stored
from ..functions.points import DensePoint
from ..functions.traits import SumOverRows
from ..methods.contract import Layer, Start, State
from ..methods.report import Report
from ..model.model import Model
from ..operators.stacked import columns_in, row_stretches

LEAST = 5000
"""Smallest number of rows of a problem for which rows are left out."""

LARGEST = 0.5
"""Largest share of the rows in a working set; a larger set is replaced by all rows."""

LEAST_PER_COLUMN = 6
"""Smallest number of rows in a working set, per column."""

MORE = 2.0
"""Factor by which the working set grows if the method has failed on it."""

ROUNDS = 4
"""Working sets that are tried before the method gets all rows."""

ROUGH = 1e-3
"""A start with at least this error is replaced by the solution of a sample; also the accuracy of that solution."""

ROUGHER = 3e-2
"""The same if the sample has all rows: these steps are the expensive ones, and there is no error of a sample."""

INNER = 0.1
"""Accuracy to which the subproblem is solved, relative to the error at which the run ends."""

SMALLEST_TOL = 1e-10


@stored
@dataclass(kw_only=True)
class RowWorkingSetState(State):
    """The whole problem with its point, and the subproblem on a working set of rows.

    Attributes
    ----------
    rows : the rows of the working set.
    settled : y in the other rows, and 0 in the working set.
    pull : A'y of the other rows.
    inner : state of the method on the working set.
    sampled : whether the working set is a sample that is solved to estimate the slopes of all rows.
    target : complementarity of ``inner`` at which the subproblem is solved well enough.
    first_look : complementarity at which all rows are checked once before: most rows that are missing show there.
    u, z : Ax and -A'y at the point.
    rounds : working sets tried so far.
    steps : steps of the method on all working sets together.
    """

    model: Model
    start: Start
    rows: Indices
    settled: Vector
    pull: Vector
    inner: Any
    sampled: bool
    target: float = 0.0
    first_look: float = 0.0
    u: Vector
    z: Vector
    rounds: int = 0
    steps: int = 0

    def report(self) -> Report:
        inner: Report = self.inner.report()
        return replace(inner, rows=int(self.rows.size), finish_steps=self.steps)


@dataclass(frozen=True)
class RowWorkingSet(Layer[RowWorkingSetState]):
    """An interior-point method on a working set of rows."""

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
        """Begin with a sample of the rows, in which each row stands for several."""
        model, m = state.model, state.model.A.shape[0]
        size = max(kept_rows(model), sampled_rows(model))
        state.target = ROUGH * model.value_at_zero
        if size >= LARGEST * m:  # a sample that would hardly be smaller
            state.rows, state.target = np.arange(m), ROUGHER * model.value_at_zero
            self._begin(state, self.method.init(model, state.start))
            return
        state.rows = np.sort(np.random.default_rng(state.start.seed).choice(m, size, replace=False))
        start = replace(state.start, y=state.y[state.rows] * (m / size), u=None)
        self._begin(state, self.method.init(model.sample(state.rows), start))

    def _begin(self, state: RowWorkingSetState, inner: Any) -> None:
        """Continue with a new state of the method on the working set."""
        state.inner = inner
        state.passes += 1.0 + inner.passes * state.rows.size / state.y.size
        state.ended = "" if state.sampled else inner.ended

    def _leave_sample(self, state: RowWorkingSetState) -> None:
        """Go from the solution of the sample to the rows that are close to a kink there."""
        model = state.model
        state.sampled = False
        state.x = state.inner.x
        state.u = model.A.matvec(state.x)
        state.y = _slopes(model, state.u)
        state.z = -model.A.rmatvec(state.y)
        state.passes += 1.0
        self._take(state, self._unsettled(model, state.u, kept_rows(model)))

    @staticmethod
    def _unsettled(model: Model, u: Vector, size: int) -> Indices:
        """Return the share of ``size`` rows closest to a kink, of each loss, or more if more rows lie on a kink.

        Distances in different losses are not comparable: an extreme quantile has few rows close to its kinks.
        """
        assert isinstance(model.g, SumOverRows)
        far = model.g.distance_to_kink(u)
        kept = []
        for own in row_stretches(model.A):
            part = far[own]
            count = max(-(-size * part.size // far.size), int(np.count_nonzero(part == 0)))
            near = np.argpartition(part, count)[:count] if count < part.size else np.arange(part.size)
            kept.append(own.start + np.sort(near))
        return np.concatenate(kept)

    def _take(self, state: RowWorkingSetState, rows: Indices) -> None:
        """Make these rows the working set."""
        model, m = state.model, state.model.A.shape[0]
        state.inner = None  # frees its rows before others are copied
        state.rounds += 1
        if rows.size >= LARGEST * m or state.rounds > ROUNDS:
            rows = np.arange(m)
        state.rows, state.settled = rows, _slopes(model, state.u)
        state.settled[rows] = 0.0
        state.pull = model.A.rmatvec(state.settled)
        part = model if rows.size == m else model.rows_part(rows, state.pull)
        start = replace(state.start, x=state.x, y=state.y[rows], u=state.u[rows])
        objective = abs(model.f.finite_value(state.x) + model.g.finite_value(state.u))
        x = DensePoint(state.x)
        rise, reach = model.resolved_rise(x, state.u), model.reach(x, state.u)
        least = floor(rise, reach, float(np.linalg.norm(state.y)))
        scale = max(objective, least)
        state.target = INNER * max(state.start.tol, SMALLEST_TOL) * scale
        state.first_look = ROUGH * scale if rows.size < m else 0.0
        self._begin(state, self.method.init(part, start))

    def advance(self, state: RowWorkingSetState, passes: float) -> RowWorkingSetState:
        inner, share = state.inner, state.rows.size / state.model.A.shape[0]
        before = inner.passes
        state.inner = inner = self.method.advance(inner, passes)
        state.passes += (inner.passes - before) * share
        state.steps += 1
        if (
            (share == 1.0 and not state.sampled)
            or inner.ended
            or inner.complementarity() <= max(state.target, state.first_look)
        ):
            if state.sampled:
                self._leave_sample(state)
            else:
                self._look(state)
        return state

    def _look(self, state: RowWorkingSetState) -> None:
        """Check all rows, and add those whose slope differs from the assumed one."""
        model, inner = state.model, state.inner
        if inner.ended and state.rows.size < state.y.size:
            # the subproblem without the other rows may be unbounded
            self._take(state, self._unsettled(model, state.u, int(MORE * state.rows.size)))
            return
        state.x, state.y = inner.x, state.settled.copy()
        state.y[state.rows] = inner.y
        state.u, state.z = model.A.matvec(state.x), inner.z - state.pull
        state.passes += 0.5
        state.wants_certificate, state.ended, state.first_look = True, inner.ended, 0.0
        if state.rows.size == state.y.size:
            return
        wrong = model.g.subgradient(state.u) != state.settled
        wrong[state.rows] = False
        if np.any(wrong):
            self._take(state, np.union1d(state.rows, np.flatnonzero(wrong)))

    def candidates(self, state: RowWorkingSetState) -> Candidates:
        return Candidates([(state.x.copy(), state.u.copy())], [(state.y.copy(), state.z.copy())])


def _slopes(model: Model, u: Vector) -> Vector:
    """Return the slopes of the loss; 0 in the rows of violated constraints, which are always in the working set."""
    slopes = model.g.subgradient(u)
    return np.where(np.isfinite(slopes), slopes, 0.0)


def kept_rows(model: Model) -> int:
    r"""Return how many rows to keep: :math:`m^{2/3} n^{1/3}`.

    A sample of k rows determines u up to about sqrt(n / k) of the noise, so that about this share of the m rows is
    close to a kink. It should be k / m.
    """
    m, n = model.A.shape
    return int(min(max(LEAST_PER_COLUMN * n, m ** (2 / 3) * n ** (1 / 3)), m))


def sampled_rows(model: Model) -> int:
    """Return how many rows a sample needs to have enough of them on both sides of the kinks of each loss.

    A quantile q is determined by the rows below it, which are a share q of all rows.
    """
    form, m = model.loss_form, model.A.shape[0]
    if form is None:
        return 0
    _, _, _, lower, upper = form.parameters
    share = 0.0
    for r, own in enumerate(row_stretches(model.A)):
        down, up = -float(np.mean(lower[own])), float(np.mean(upper[own]))
        if 0 < down < np.inf and 0 < up < np.inf:
            rows = (own.stop - own.start) * min(down, up) / (down + up)
            share = max(share, LEAST_PER_COLUMN * columns_in(model.A, r) / rows)
    return int(min(share, 1.0) * m)


def pays(model: Model) -> bool:
    """Return whether a problem has many more rows than columns, and a loss with linear parts."""
    return bool(
        isinstance(model.g, SumOverRows)
        and model.A.shape[0] >= LEAST
        and model.mostly_losses
        and kept_rows(model) < LARGEST * model.A.shape[0]
        and model.has_linear_rows
    )
