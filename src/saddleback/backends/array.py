"""The iteration in numpy: the specification that every other backend is tested against."""

from __future__ import annotations

import numpy as np

from ..functions._base import Indices, Vector
from ..problem import Model
from ..steps import Strengths
from .iterate import Iterate, dual_half
from .newton import Smooth, conjugate_gradients


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


FLAT = 1e-100
"""Least strength: along columns on which the loss does not depend it lets the penalty decide alone."""


class ArrayDescender:
    """Block coordinate descent on arrays: y = g'(u), renewed after every panel of blocks.

    Inside a panel y is that of the majorised loss, g(u) + <g'(u), v> + 1/2 <v, C v> with the curvature C, which for a
    squared loss is the loss itself.
    """

    name = "numpy"

    def __init__(self, model: Model, width: int) -> None:
        curvature = model.g.curvature()
        assert curvature is not None
        self.model = model
        self.width = width
        self.curvature = curvature
        self.panels = _panels(model.blocks.sizes, width)
        self.strength = np.empty(model.A.shape[1])
        for own in model.blocks:
            columns = model.A.dense_columns(own)
            self.strength[own] = max(np.linalg.eigvalsh(columns.T @ (curvature[:, None] * columns))[-1], FLAT)

    def extended(self, model: Model) -> ArrayDescender:
        return ArrayDescender(model, self.width)

    def sweep(self, sweeps: int, x: Vector, u: Vector, y: Vector) -> int:
        visited = 0
        for sweep in range(sweeps):
            for panel in self.panels:
                columns = self.model.blocks.columns(np.array(panel))
                if sweep == 0 or np.any(x[columns]):
                    self._visit(panel, x, u, y)
                    visited += columns.size
        return visited

    def _visit(self, panel: list[int], x: Vector, u: Vector, y: Vector) -> None:
        f, A = self.model.f, self.model.A
        change = np.zeros_like(u)
        for block in np.array(panel)[:, None]:
            columns = self.model.blocks.columns(block)
            step = 1.0 / self.strength[columns]
            before = x[columns]
            pull = A.columns_rmatvec(columns, y + self.curvature * change)
            x[columns] = f.prox_blocks(block, before - step * pull, step)
            change += A.columns_matvec(columns, x[columns] - before)
        u += change
        y[:] = self.model.g.subgradient(u)

    def products(self, columns: Indices, y: Vector) -> Vector:
        return self.model.A.columns_rmatvec(columns, y)

    def image(self, columns: Indices, d: Vector) -> Vector:
        return self.model.A.columns_matvec(columns, d)

    def solve(
        self, part: Smooth, weight: Vector, right: Vector, diagonal: Vector, tolerance: float, most: int
    ) -> tuple[Vector, int]:
        def product(d: Vector) -> Vector:
            return self.products(part.free, weight * self.image(part.free, d)) + part.hessian(d)

        return conjugate_gradients(product, right, diagonal, tolerance, most)


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
