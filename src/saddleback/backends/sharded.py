"""The kernels where columns are spread over processes: each next to its own columns, and one exchange an iteration.

Every process draws from its own blocks, updates its own part of x, and adds its change of Ax to those of the others: a
sum of m numbers, after which all take the same step of y. What the others have made of x is only asked for at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..functions import Zero
from ..functions._base import Indices, Vector
from ..operators import Sharded
from ..problem import Model
from ..steps import Strengths
from .iterate import Iterate

if TYPE_CHECKING:
    from . import Sweeper


def local_model(model: Model, A: Sharded) -> Model:
    """Return the problem of the columns that this process holds, under the same loss."""
    blocks = model.strata.members[A.ranks.rank]
    if blocks.size == 0:
        return Model(Zero().bind((0,)), A.local, model.g, 0.0)
    assert np.array_equal(model.blocks.columns(blocks), A.own), "a process holds its columns block by block"
    return Model(model.f.restrict_blocks(blocks), A.local, model.g, model.linear_norm)


@dataclass
class LocalSums:
    """Sums of the iterates: of x in the columns of this process, of y in all rows."""

    x: Vector
    y: Vector


@dataclass
class LocalIterate:
    """The point as this process sees it: its own part of x, and all of y and u."""

    x: Vector
    y: Vector
    u: Vector
    averages: LocalSums


class ShardedSweeper:
    """The block method with the iterations of all processes side by side."""

    lazy = False

    def __init__(self, A: Sharded, inner: Sweeper) -> None:
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
