"""The kernels of coordinate descent (``methods/descent.py``): on arrays, the specification, and compiled."""

from __future__ import annotations

from functools import partial
from typing import Protocol

import numpy as np

from ... import _native
from ...common.arrays import Indices, Vector
from ...functions.traits import curvature as curvature_of
from ...problem import DESCENDER, Model
from ..iterate import Exchange
from ..native import kernels as native
from ..newton import Product, Smooth, conjugate_gradients, newton_system


class Descender(Protocol):
    """Runs block coordinate descent on one problem with a smooth loss, panel by panel.

    ``strength`` bounds the curvature of the loss along each column's block, and took ``passes`` to find.
    """

    name: str
    width: int
    strength: Vector
    passes: float

    def extended(self, model: Model) -> Descender:
        """Return the same for a problem that has this one as its first blocks; this one is not to be used any more."""

    def sweep(self, sweeps: int, x: Vector, u: Vector, y: Vector) -> int:
        """Visit all blocks once, and then ``sweeps`` - 1 times more those whose panel is not all 0.

        In place; u = Ax and y = g'(u) follow x. Return how many columns were visited.
        """

    def products(self, columns: Indices, y: Vector) -> Vector:
        """Return A_S'y over some columns S."""

    def image(self, columns: Indices, d: Vector) -> Vector:
        """Return A_S d over some columns S."""

    def solve(
        self, part: Smooth, weight: Vector, right: Vector, diagonal: Vector, tolerance: float, most: int
    ) -> tuple[Vector, int]:
        """Solve (A_S' diag(weight) A_S + f'') d = right on the free coordinates; return d and the steps taken."""


FLAT = 1e-100
"""Least strength: along columns on which the loss does not depend it lets the penalty decide alone."""


class ArrayDescender:
    """Block coordinate descent on arrays: y = g'(u), renewed after every panel of blocks.

    Inside a panel y is that of the majorised loss, g(u) + <g'(u), v> + 1/2 <v, C v> with the curvature C, which for a
    squared loss is the loss itself.
    """

    name = "numpy"
    passes = 0.5
    pace = np.inf  # processes meet after a sweep

    def __init__(self, model: Model, width: int, exchange: Exchange | None = None) -> None:
        curvature = curvature_of(model.g)
        assert curvature is not None
        self.model = model
        self.width = width
        self.exchange = exchange
        self.curvature = curvature
        self.panels = _panels(model.blocks.sizes, width)
        self.strength = np.empty(model.A.shape[1])
        for own in model.blocks:
            columns = model.A.entries(own)
            self.strength[own] = max(np.linalg.eigvalsh(columns.T @ (curvature[:, None] * columns))[-1], FLAT)

    def extended(self, model: Model) -> ArrayDescender:
        return ArrayDescender(model, self.width, self.exchange)

    def sweep(self, sweeps: int, x: Vector, u: Vector, y: Vector) -> int:
        visited = 0
        for sweep in range(sweeps):
            before = x.copy(), u.copy(), y.copy()
            for panel in self.panels:
                columns = self.model.blocks.columns(np.array(panel))
                if sweep == 0 or np.any(x[columns]):
                    self._visit(panel, x, u, y)
                    visited += columns.size
            if self.exchange is not None:
                self._meet(self.exchange, before, x, u, y)
        return visited

    def _meet(self, exchange: Exchange, before: tuple[Vector, Vector, Vector], x: Vector, u: Vector, y: Vector) -> None:
        """Go on from where all processes have got, each on its own columns, or from a part of the way there.

        With v the sum of their changes of u and d that of the penalties, the objective falls by at least
        -t (y'v + d) - t^2/2 v'Cv for a part t of the way. The whole way is taken where that is about as good as the
        best t. The compiled kernel meets many times in a sweep, and sooner where it could not go the whole way.
        """
        x_before, u_before, y_before = before
        f = self.model.f
        told = np.append(u - u_before, f.finite_value(x) - f.finite_value(x_before))
        exchange(told)
        v, d = told[:-1], told[-1]
        slope, bend = float(y_before @ v + d), float(self.curvature @ v**2)
        way = 1.0
        if bend > 0 and -(slope + bend / 2) < slope**2 / (4 * bend):
            way = min(max(-slope / bend, 0.0), 1.0)
            x[:] = x_before + way * (x - x_before)
        u[:] = u_before + way * v
        y[:] = self.model.g.subgradient(u)

    def _visit(self, panel: list[int], x: Vector, u: Vector, y: Vector) -> None:
        f, A = self.model.f, self.model.A
        change = np.zeros_like(u)
        for block in np.array(panel)[:, None]:
            columns = self.model.blocks.columns(block)
            step = 1.0 / self.strength[columns]
            before = x[columns]
            pull = A.rmatvec(y + self.curvature * change, columns)
            x[columns] = f.prox(before - step * pull, step, block)
            change += A.matvec(x[columns] - before, columns)
        u += change
        y[:] = self.model.g.subgradient(u)

    def products(self, columns: Indices, y: Vector) -> Vector:
        return self.model.A.rmatvec(y, columns)

    def image(self, columns: Indices, d: Vector) -> Vector:
        return self.model.A.matvec(d, columns)

    def solve(
        self, part: Smooth, weight: Vector, right: Vector, diagonal: Vector, tolerance: float, most: int
    ) -> tuple[Vector, int]:
        system = newton_system(partial(self.image, part.free), partial(self.products, part.free), part, weight)
        return conjugate_gradients(Product(system, diagonal), right, tolerance, most)


def _panels(sizes: Indices, width: int) -> list[list[int]]:
    """Return neighbouring blocks put together into panels of at most so many columns, or of a single block."""
    result: list[list[int]] = []
    room = 0
    for block, size in enumerate(sizes):
        if size > room:
            result.append([])
            room = width
        result[-1].append(block)
        room -= size
    return result


class NativeDescender:
    """Coordinate descent on a smooth loss over dense and column-compressed matrices."""

    name = "native"

    @property
    def pace(self) -> float:
        """Columns that are visited before processes meet, where there are several."""
        return self.kernel.columns_between_exchanges

    @pace.setter
    def pace(self, columns: float) -> None:
        self.kernel.columns_between_exchanges = columns

    def __init__(
        self,
        model: Model,
        width: int,
        exchange: Exchange | None = None,
        measured: NativeDescender | None = None,
        loss: _native.RowLoss | None = None,
    ) -> None:
        self.loss = loss or native.row_loss(model)
        known = None if measured is None else measured.kernel
        self.kernel: _native.Descent = _native.Descent(*native.columns_and_penalty(model), self.loss, width, known)
        self.width = width
        self.blocks = model.blocks
        self.exchange = exchange
        self.strength = self.kernel.strength()
        new = self.strength.size - (0 if measured is None else measured.strength.size)
        self.passes = 0.5 * new / max(self.strength.size, 1)

    def extended(self, model: Model) -> NativeDescender:
        return NativeDescender(model, self.width, self.exchange, self, self.loss)

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


def native_descender(model: Model, width: int) -> NativeDescender:
    """Return compiled descent on a problem; along a path, on which only the penalty changes, panels are measured once.

    It counts as if it was measured, so that a problem takes as many passes whatever was solved before.
    """
    before: NativeDescender | None = model.of_data.get(DESCENDER)
    if before is not None and before.width == width and before.blocks.equal(model.blocks):
        made = NativeDescender(model, width, measured=before, loss=before.loss)
        made.passes = before.passes
        return made
    made = NativeDescender(model, width)
    if DESCENDER in model.of_data:
        model.of_data[DESCENDER] = made
    return made
