"""Working sets: iterate on the blocks that matter, and look at all of them before believing it.

Where the penalty makes most blocks 0, nearly all work on them is wasted. The method runs on a small problem, packed
together, with the blocks that are active or closest to it. When that is solved a good deal more accurately than the
whole, one product with all of A tells how far every other block is from leaving 0, and the set is chosen anew: the
active blocks, and more than half as many again of those with the least slack. A run ends on the certificate of the
whole problem only, which the loop takes as always, so a block left out costs time and never correctness.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..certificate import best_pair, dual_side, pair, primal_side
from ..functions._base import Indices, Vector
from ..methods._base import Candidates, Kept, Layer, Start, State, diverged
from ..problem import Model

SMALLEST = 100
"""Blocks in a working set at the least."""

WORTHWHILE = 4 * SMALLEST
"""Blocks of a problem from which on a working set pays."""

GROWTH = 1.6
"""Size of a working set, relative to the number of active blocks."""

LARGEST = 0.5
"""Share of all blocks from which on a working set is the whole problem, and nothing is packed."""

INNER = 0.1
"""How accurately the small problem is solved, relative to the error of the whole."""

FIRST_LOOK = 6.0
LOOK_GROWTH = 0.3
"""Looks at the small problem's error are max(FIRST_LOOK, LOOK_GROWTH * round) of its passes apart."""

REPORTED = ("restarts", "primal_weight")
"""Settings of the method on the current working set that are worth telling."""


@dataclass
class Small:
    """The problem of the working set: its blocks and columns in the whole, and the method's state on it.

    ``share`` is what a pass over it is of a pass over the whole, ``round`` its passes since the set was last judged,
    ``look`` those at which its error is next looked at.
    """

    model: Model
    blocks: Indices
    columns: Indices
    share: float
    state: Any
    round: float = 0.0
    look: float = FIRST_LOOK


@dataclass(kw_only=True)
class WorkingSetState(State):
    """The whole problem, the small one, and the best pair of the small one with what it is worth in the whole."""

    model: Model
    start: Start
    column_norms: Vector
    small: Small
    u: Vector | None
    z: Vector | None
    error: float


@dataclass(frozen=True)
class WorkingSet(Layer[Any]):
    """A method on a small part of the blocks. Where that cannot pay, the method as it is."""

    def init(self, model: Model, start: Start) -> Any:
        if not pays(model):
            return self.method.init(model, start)
        model = replace(model, A=model.A.columnar())
        state = WorkingSetState(
            x=start.x.copy(),
            y=start.y.copy(),
            u=None,
            z=None,
            passes=0.5,
            settings={"n_blocks": len(model.blocks)},
            model=model,
            start=start,
            column_norms=np.sqrt(model.A.sums(2)[0]),
            small=None,  # type: ignore[arg-type]
            error=np.inf,
        )
        self._choose(state, start.y)
        return state

    def advance(self, state: Any, passes: float) -> Any:
        if not isinstance(state, WorkingSetState):
            return self.method.advance(state, passes)
        goal = state.passes + passes
        while state.passes < goal and not state.ripe:
            small = state.small
            before = small.state.passes
            ahead = min(small.look - small.round, (goal - state.passes) / small.share)
            small.state = self.method.advance(small.state, ahead)
            small.round += small.state.passes - before
            state.passes += (small.state.passes - before) * small.share
            if diverged(small.state.x, small.state.y):
                state.x[small.columns], state.y = small.state.x, small.state.y
                return state
            if small.round >= small.look:
                self._look(state)
        state.settings |= {name: small.state.settings[name] for name in REPORTED if name in small.state.settings}
        return state

    def _look(self, state: WorkingSetState) -> None:
        """Take the best pair that the method offers on the small problem; choose a new set if it is good enough."""
        small = state.small
        model = small.model
        offered = self.method.candidates(small.state)
        if model.g.smooth:  # its gradient at the current point is the best dual point, and averages are behind
            x, u = offered.primal[0]
            u = model.A.matvec(x) if u is None else u
            offered = Candidates([(x, u)], [(model.g.subgradient(u), None)])
        points = [(x, model.A.matvec(x) if u is None else u) for x, u in offered.primal]
        primals = [primal_side(model, x, u) for x, u in points]
        duals = [dual_side(model, y, *points[0], z) for y, z in offered.dual]
        state.passes += 0.5 * (len(primals) + len(duals)) * small.share
        certificate, primal, dual = best_pair(model, primals, duals)
        state.x[:] = 0.0
        state.x[small.columns] = primal.x
        state.y, state.u, state.z = dual.y, None, None
        small.look = small.round + max(FIRST_LOOK, LOOK_GROWTH * small.round)
        if certificate.error <= INNER * state.error:
            small.round, small.look = 0.0, FIRST_LOOK
            self._choose(state, dual.y)
            state.ripe = True

    def _choose(self, state: WorkingSetState, y: Vector) -> None:
        """Judge the point in the whole problem, and choose the blocks to go on with."""
        model = state.model
        state.u = u = model.A.matvec(state.x)
        if not np.any(y):  # the start of a run: where x is tells more
            y = model.g.subgradient(u)
        dual = dual_side(model, y, state.x, u)
        state.error = pair(model, primal_side(model, state.x, u), dual).error
        state.passes += 1.0
        state.y, state.z = dual.y, dual.z
        slack = model.f.zero_slack(dual.z)
        assert slack is not None
        first = model.blocks.start[:-1]
        order = model.blocks.order
        norms = np.sqrt(np.maximum(np.add.reduceat(state.column_norms[order] ** 2, first), 1e-300))
        active = np.logical_or.reduceat(state.x[order] != 0, first)
        distance = np.where(active, -np.inf, slack / norms)
        size = int(max(SMALLEST, GROWTH * np.sum(np.isneginf(distance))))
        if size >= LARGEST * distance.size:
            blocks = np.arange(distance.size)
        else:
            blocks = np.sort(np.argpartition(distance, size)[:size])
        if state.small is None or self._outdated(state.small.blocks, blocks):
            state.small = self._pack(state, blocks, dual.y)

    @staticmethod
    def _outdated(old: Indices, new: Indices) -> bool:
        """Return whether a set lacks blocks that it should have, or is far larger than it need be."""
        return new.size < 0.5 * old.size or not np.all(np.isin(new, old))

    def _pack(self, state: WorkingSetState, blocks: Indices, y: Vector) -> Small:
        model = state.model
        columns = np.sort(model.blocks.columns(blocks))
        small = model
        if blocks.size < len(model.blocks):
            rows = np.arange(model.A.shape[0])
            small = replace(model, f=model.f.restrict_blocks(blocks), A=model.A.restrict(rows, columns))
        weight = state.start.weight
        if state.small is not None:
            weight = float(state.small.state.settings.get("primal_weight", weight))
        drawn = None if state.start.drawn is None else min(state.start.drawn, blocks.size)
        start = replace(
            state.start, x=state.x[columns], y=y, drawn=drawn, weight=weight, kept=self._kept(state, columns)
        )
        inner = self.method.init(small, start)
        share = columns.size / model.A.shape[1]
        state.passes += share * (inner.passes + 0.5)
        state.settings = inner.settings | {"n_blocks": len(model.blocks), "working_set": int(blocks.size)}
        return Small(small, blocks, columns, share, inner)

    @staticmethod
    def _kept(state: WorkingSetState, columns: Indices) -> Kept:
        """Return what is left of the user's problem, for strengths given by column and row."""
        before = state.start.kept or Kept(state.model.A.shape, *(np.arange(size) for size in state.model.A.shape))
        return before._replace(columns=before.columns[columns])

    def candidates(self, state: Any) -> Candidates:
        if not isinstance(state, WorkingSetState):
            offered: Candidates = self.method.candidates(state)
            return offered
        return Candidates([(state.x.copy(), state.u)], [(state.y.copy(), state.z)])


def pays(model: Model) -> bool:
    """Return whether a problem has enough blocks that may be 0, can be taken apart, and stays feasible without some."""
    return bool(
        len(model.blocks) >= WORTHWHILE
        and model.A.explicit
        and model.A.entries_known
        and np.all(model.blocks.sizes % model.A.tasks == 0)
        and model.g.finite_everywhere()
        and model.f.bounded_below()
        and model.f.zero_slack(np.zeros(model.A.shape[1])) is not None
    )
