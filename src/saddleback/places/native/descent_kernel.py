"""Compiled coordinate descent (``methods/descent.py``)."""

from __future__ import annotations

from ... import _native
from ...common.arrays import Indices, Vector
from ...model.model import DESCENT_KERNEL, Model
from ..contract import Exchange
from ..newton import Smooth
from .kernels import columns_and_penalty, row_loss


class NativeDescentKernel:
    """Coordinate descent on a smooth loss over dense and column-compressed matrices."""

    name = "native"

    @property
    def pace(self) -> float:
        """Columns that are visited between two exchanges, if there are several processes."""
        return self.kernel.columns_between_exchanges

    @pace.setter
    def pace(self, columns: float) -> None:
        self.kernel.columns_between_exchanges = columns

    def __init__(
        self,
        model: Model,
        width: int,
        exchange: Exchange | None = None,
        measured: NativeDescentKernel | None = None,
        loss: _native.RowLoss | None = None,
    ) -> None:
        self.loss = loss or row_loss(model)
        known = None if measured is None else measured.kernel
        self.kernel: _native.Descent = _native.Descent(*columns_and_penalty(model), self.loss, width, known)
        self.width = width
        self.blocks = model.blocks
        self.exchange = exchange
        self.strength = self.kernel.strength()
        new = self.strength.size - (0 if measured is None else measured.strength.size)
        self.passes = 0.5 * new / max(self.strength.size, 1)

    def extended(self, model: Model) -> NativeDescentKernel:
        return NativeDescentKernel(model, self.width, self.exchange, self, self.loss)

    def sweep(self, sweeps: int, x: Vector, u: Vector, y: Vector) -> int:
        return self.kernel.sweep(sweeps, x, u, y, self.exchange)

    def products(self, columns: Indices, y: Vector) -> Vector:
        return self.kernel.products(columns, y)

    def image(self, columns: Indices, d: Vector) -> Vector:
        return self.kernel.image(columns, d)

    def solve(
        self, part: Smooth, weight: Vector, right: Vector, diagonal: Vector, tolerance: float, most: int
    ) -> tuple[Vector, int]:
        hessian = part.extra, part.along, part.group
        return self.kernel.solve(part.free, weight, *hessian, right, diagonal, tolerance, most)


def native_descent_kernel(model: Model, width: int, exchange: Exchange | None = None) -> NativeDescentKernel:
    """Return compiled descent on a problem; on a path, where only the penalty changes, the panels are prepared once.

    The preparation is counted every time, so that the passes of a problem do not depend on what was solved before.
    """
    if exchange is not None:
        return NativeDescentKernel(model, width, exchange)
    before: NativeDescentKernel | None = model.of_data.get(DESCENT_KERNEL)
    if before is not None and before.width == width and before.blocks.equal(model.blocks):
        made = NativeDescentKernel(model, width, measured=before, loss=before.loss)
        made.passes = before.passes
        return made
    made = NativeDescentKernel(model, width)
    if DESCENT_KERNEL in model.of_data:
        model.of_data[DESCENT_KERNEL] = made
    return made
