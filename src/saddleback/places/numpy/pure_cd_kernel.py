"""PURE-CD (``methods/pure_cd.py``) on arrays."""

from __future__ import annotations

from ...common.arrays import Indices, Vector
from ...model.model import Model
from ...steps.strengths import Strengths
from ..array_steps import primal_half, touched_rows
from ..contract import PureIterate


class ArrayPureCDKernel:
    """PURE-CD on arrays, for any function and operator; it computes the dual step in all rows, not only the touched."""

    name = "numpy"

    def __init__(self, model: Model) -> None:
        self.model = model

    def sweep(self, draws: Indices, strengths: Strengths, theta: Vector, at: PureIterate) -> None:
        g_star, step = self.model.g_star, 1.0 / strengths.dual
        for drawn in draws:
            touched = touched_rows(self.model, drawn)
            at.y[:] = g_star.prox(at.memory + step * at.u, step)
            change = primal_half(self.model, drawn, strengths, at)
            at.memory[touched] = (at.y + theta * step * change)[touched]
            at.u += change
            at.averages.x += at.x
            at.averages.y += at.y
        at.y[:] = g_star.prox(at.memory + step * at.u, step)
