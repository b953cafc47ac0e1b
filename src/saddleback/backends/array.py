"""The iteration in numpy: the specification that every other backend is tested against."""

from __future__ import annotations

from ..functions._base import Indices
from ..problem import Model
from ..steps import Strengths
from .iterate import Iterate, dual_half


class ArraySweeper:
    """The block method on arrays, for any function and operator."""

    name = "numpy"

    def __init__(self, model: Model) -> None:
        self.model = model

    def sweep(self, draws: Indices, strengths: Strengths, extrapolation: float, at: Iterate) -> None:
        f, A, blocks = self.model.f, self.model.A, self.model.blocks
        for drawn in draws:
            columns = blocks.columns(drawn)
            step = 1.0 / strengths.primal[columns]
            before = at.x[columns]
            after = f.prox_blocks(drawn, before - step * A.columns_rmatvec(columns, at.y), step)
            at.x[columns] = after
            change = A.columns_matvec(columns, after - before)
            dual_half(self.model.g, strengths, extrapolation, change, at)
