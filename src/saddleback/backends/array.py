"""The iteration in numpy: the specification that every other backend is tested against."""

from __future__ import annotations

from ..functions._base import Indices, Vector
from ..problem import Model
from ..steps import Strengths


class ArraySweeper:
    """The block method on arrays, for any function and operator."""

    name = "numpy"

    def __init__(self, model: Model) -> None:
        self.model = model

    def sweep(
        self,
        draws: Indices,
        strengths: Strengths,
        extrapolation: float,
        x: Vector,
        y: Vector,
        u: Vector,
        x_sum: Vector,
        y_sum: Vector,
    ) -> None:
        f, A, g, blocks = self.model.f, self.model.A, self.model.g, self.model.blocks
        dual_step = 1.0 / strengths.dual
        for drawn in draws:
            columns = blocks.columns(drawn)
            step = 1.0 / strengths.primal[columns]
            before = x[columns]
            after = f.prox_blocks(drawn, before - step * A.columns_rmatvec(columns, y), step)
            x[columns] = after
            change = A.columns_matvec(columns, after - before)
            u += change
            y[:] = g.prox_conjugate(y + dual_step * (u + extrapolation * change), dual_step)
            x_sum += x
            y_sum += y
