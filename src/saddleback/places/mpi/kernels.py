"""The kernels for columns that are spread over processes: each works on its columns, with one exchange per iteration.

Every process draws from its blocks, updates its part of x, and adds its change of Ax to those of the others. After this
sum of m numbers all take the same step of y. The parts of x are collected only at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ...common.arrays import Indices, Vector
from ...common.conjugate_gradients import Product, conjugate_gradients
from ...functions import Convex, Zero
from ...model.model import Model
from ...operators import Sharded
from ...steps.strengths import Strengths
from ..contract import BlockKernel, Iterate, LocalDescentKernel
from ..newton import Smooth, newton_system


def local_model(model: Model, A: Sharded) -> Model:
    """Return the problem of the columns that this process holds, under the same loss."""
    blocks = model.strata.members[A.ranks.rank]
    if blocks.size == 0:
        return Model(Zero().bind((0,)), A.local, model.g, 0.0)
    assert np.array_equal(model.blocks.columns(blocks), A.own), "a process holds its columns block by block"
    return Model(_own_penalty(model, A, blocks), A.local, model.g, model.linear_norm)


def _own_penalty(model: Model, A: Sharded, blocks: Indices) -> Convex:
    """Return the penalty of the columns that this process holds."""
    if blocks.size == len(model.blocks) and np.array_equal(A.own, np.arange(A.own.size)):
        return model.f
    try:
        return model.f.restrict_blocks(blocks)
    except TypeError as error:
        raise TypeError(
            f"comm: {error}; give each process the penalty of its own columns, by a function shard(rank, size)"
        ) from None


@dataclass
class LocalSums:
    """Sums of the iterates: of x in the columns of this process, of y in all rows."""

    x: Vector
    y: Vector


@dataclass
class LocalIterate:
    """The point on this process: its part of x, and all of y and u."""

    x: Vector
    y: Vector
    u: Vector
    averages: LocalSums


class ShardedBlockKernel:
    """The block method with all processes in parallel."""

    lazy = False

    def __init__(self, A: Sharded, inner: BlockKernel) -> None:
        self.A = A
        self.inner = inner
        self.name = inner.name

    def sweep(self, draws: Indices, strengths: Strengths, extrapolation: float, at: Iterate) -> None:
        A, sums = self.A, at.averages
        local = LocalIterate(at.x[A.own], at.y, at.u, LocalSums(np.zeros(A.own.size), sums.y))
        own = Strengths(strengths.primal[A.own], strengths.dual)
        self.inner.sweep(draws, own, extrapolation, local)
        at.x[:] = A.together(local.x)
        sums.x += A.together(local.averages.x)


class ShardedDescentKernel:
    """Coordinate descent with all processes in parallel, each on its columns."""

    carries = ("paces",)

    @property
    def paces(self) -> list[float]:
        """Columns between two exchanges, per process; they change during a run."""
        return self.A.ranks.all(self.inner.pace)

    @paces.setter
    def paces(self, paces: list[float]) -> None:
        self.inner.pace = paces[self.A.ranks.rank]

    def __init__(self, A: Sharded, inner: LocalDescentKernel) -> None:
        self.A = A
        self.inner = inner
        self.name, self.width = inner.name, inner.width
        self.strength = A.together(inner.strength)
        measured = A.ranks.sum(np.array([inner.passes * inner.strength.size]))
        self.passes = float(measured[0]) / self.strength.size

    def extended(self, model: Model) -> ShardedDescentKernel:
        assert isinstance(model.A, Sharded)
        return ShardedDescentKernel(model.A, self.inner.extended(local_model(model, model.A)))

    def sweep(self, sweeps: int, x: Vector, u: Vector, y: Vector) -> int:
        own = x[self.A.own]
        visited = self.inner.sweep(sweeps, own, u, y)
        x[:] = self.A.together(own)
        return int(self.A.ranks.sum(np.array([float(visited)]))[0])

    def products(self, columns: Indices, y: Vector) -> Vector:
        return self.A.some_together(columns, self.inner.products(self.A.here(columns)[1], y)).ravel()

    def image(self, columns: Indices, d: Vector) -> Vector:
        mine, local = self.A.here(columns)
        return self.A.ranks.sum(self.inner.image(local, d[mine]))

    def solve(
        self, part: Smooth, weight: Vector, right: Vector, diagonal: Vector, tolerance: float, most: int
    ) -> tuple[Vector, int]:
        system = newton_system(partial(self.image, part.free), partial(self.products, part.free), part, weight)
        return conjugate_gradients(Product(system, diagonal), right, tolerance, most)
