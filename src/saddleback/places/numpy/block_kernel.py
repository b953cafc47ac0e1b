"""The iteration in numpy: the specification that every other backend is tested against."""

from __future__ import annotations

import numpy as np

from ...common.arrays import Indices
from ...model.model import Model
from ...steps.strengths import Strengths
from ..array_steps import dual_half, existing, primal_half, touched_rows
from ..contract import Exchange, Iterate
from .lazy import LazyRows


class ArrayBlockKernel:
    """The block method on arrays, for any function and operator.

    Parameters
    ----------
    model : the problem.
    lazy : whether rows that no drawn block touches are updated later, when they are next needed.
    exchange : adds the changes of other processes to a change of Ax. With it, a draw beyond the last block means that
        no block is drawn. It cannot be combined with ``lazy``.
    """

    name = "numpy"

    def __init__(self, model: Model, lazy: bool, exchange: Exchange | None = None) -> None:
        self.model = model
        self.lazy = lazy
        self.exchange = exchange

    def sweep(self, draws: Indices, strengths: Strengths, extrapolation: float, at: Iterate) -> None:
        if self.lazy:
            self._sweep_lazily(draws, strengths, extrapolation, at)
            return
        for drawn in draws:
            change = primal_half(self.model, existing(self.model, drawn), strengths, at)
            if self.exchange is not None:
                self.exchange(change)
            dual_half(self.model.g_star, strengths, extrapolation, change, at)

    def _sweep_lazily(self, draws: Indices, strengths: Strengths, extrapolation: float, at: Iterate) -> None:
        """Run the same iterations, but update only the rows that the drawn blocks touch."""
        rows = LazyRows(self.model, strengths, at)
        for t, drawn in enumerate(draws):
            touched = touched_rows(self.model, drawn)
            rows.catch_up(touched, t)
            change = primal_half(self.model, drawn, strengths, at)[touched]
            at.u[touched] += change
            rows.step(touched, at.u[touched] + extrapolation * change)
            at.averages.x += at.x
        rows.catch_up(np.arange(at.y.size), len(draws))
