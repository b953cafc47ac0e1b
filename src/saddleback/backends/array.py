"""The iteration in numpy: the specification that every other backend is tested against."""

from __future__ import annotations

import numpy as np

from ..functions._base import Indices, Vector
from ..problem import Model
from ..steps import Strengths
from .iterate import Iterate, dual_half
from .lazy import LazyRows


class ArraySweeper:
    """The block method on arrays, for any function and operator.

    Parameters
    ----------
    model : the problem.
    lazy : whether rows that no drawn block touches are left behind, and brought up to date when they are next needed.
    """

    name = "numpy"

    def __init__(self, model: Model, lazy: bool) -> None:
        self.model = model
        self.lazy = lazy

    def sweep(self, draws: Indices, strengths: Strengths, extrapolation: float, at: Iterate) -> None:
        if self.lazy:
            self._sweep_lazily(draws, strengths, extrapolation, at)
            return
        for drawn in draws:
            change = self._primal_half(drawn, strengths, at)
            dual_half(self.model.g, strengths, extrapolation, change, at)

    def _primal_half(self, drawn: Indices, strengths: Strengths, at: Iterate) -> Vector:
        """Move x on the drawn blocks, and return by how much that changes Ax."""
        f, A = self.model.f, self.model.A
        columns = self.model.blocks.columns(drawn)
        step = 1.0 / strengths.primal[columns]
        before = at.x[columns]
        after = f.prox_blocks(drawn, before - step * A.columns_rmatvec(columns, at.y), step)
        at.x[columns] = after
        return A.columns_matvec(columns, after - before)

    def _sweep_lazily(self, draws: Indices, strengths: Strengths, extrapolation: float, at: Iterate) -> None:
        """Run the same iterations, but look only at the rows that the drawn blocks touch."""
        rows = LazyRows(self.model, strengths, at)
        for t, drawn in enumerate(draws):
            touched = np.flatnonzero(self.model.A.block_row_sums(self.model.blocks.columns(drawn)))
            rows.catch_up(touched, t)
            change = self._primal_half(drawn, strengths, at)[touched]
            at.u[touched] += change
            rows.step(touched, at.u[touched] + extrapolation * change)
            at.averages.x += at.x
        rows.catch_up(np.arange(at.y.size), len(draws))
