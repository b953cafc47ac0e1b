"""Coordinate descent (``methods/descent.py``) on arrays."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...common.arrays import Indices, Vector
from ...common.conjugate_gradients import Product, conjugate_gradients
from ...functions.traits import curvature as curvature_of
from ...model.model import Model
from ..contract import Exchange
from ..newton import Smooth, newton_system

FLAT = 1e-100
"""Smallest strength. Along columns on which the loss does not depend, the penalty alone then decides."""


class ArrayDescentKernel:
    """Block coordinate descent on arrays: y = g'(u) is updated after every panel of blocks.

    Inside a panel the loss is replaced by its majoriser g(u) + <g'(u), v> + 1/2 <v, C v>, where C is the curvature. For
    a squared loss the two are equal.
    """

    name = "numpy"
    passes = 0.5
    pace = np.inf  # processes exchange their changes after each sweep

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

    def extended(self, model: Model) -> ArrayDescentKernel:
        return ArrayDescentKernel(model, self.width, self.exchange)

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
        """Add up the changes that all processes have made, each in its columns, and take a step t along the sum.

        With v the sum of the changes of u and d the sum of the changes of the penalties, a step of length t decreases
        the objective by at least -t (y'v + d) - t^2/2 v'Cv. The full step t = 1 is taken if it is about as good as the
        best t. The compiled kernel does this many times per sweep, and more often after steps below 1.
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
    """Return panels of neighbouring blocks with at most ``width`` columns each, or with a single larger block."""
    result: list[list[int]] = []
    room = 0
    for block, size in enumerate(sizes):
        if size > room:
            result.append([])
            room = width
        result[-1].append(block)
        room -= size
    return result
