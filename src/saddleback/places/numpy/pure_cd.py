"""The kernels of PURE-CD (``methods/pure_cd.py``): on arrays, the specification, and compiled."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ...common.arrays import Indices, Vector
from ...problem import Model
from ...steps.strengths import Strengths
from ..iterate import Iterate, primal_half, touched_rows
from ..native import kernels as native


class PureIterate(Iterate, Protocol):
    """``memory`` is the y of the method; ``y`` the dual step from it, which x is stepped against and averages sum."""

    memory: Vector


class PureSweeper(Protocol):
    """Runs iterations of PURE-CD on one problem."""

    name: str

    def sweep(self, draws: Indices, strengths: Strengths, theta: Vector, at: PureIterate) -> None:
        """Run one iteration a row of ``draws``, in place, and add each new point to the sums."""


class ArrayPureSweeper:
    """PURE-CD on arrays, for any function and operator; it looks at all rows, and changes y in those touched."""

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


class NativePureSweeper:
    """PURE-CD in the compiled kernel, at the cost of the entries that an iteration touches."""

    name = "native"

    def __init__(self, model: Model) -> None:
        self.kernel = native.make_kernel(model)

    @staticmethod
    def missing(model: Model) -> str | None:
        """Return what the kernel lacks for a problem, or None where it can treat it."""
        return native.missing(model) or (None if model.loss_form else "its loss is not one that the kernels know")

    def sweep(self, draws: Indices, strengths: Strengths, theta: Vector, at: PureIterate) -> None:
        self.kernel.sweep_pure(
            np.ascontiguousarray(draws), strengths.primal, strengths.dual, theta,
            at.x, at.memory, at.y, at.u, at.averages.x, at.averages.y,
        )  # fmt: skip
