"""Descent (``methods/descent.py``) by accelerated proximal steps on all blocks at once, on arrays of any kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..common.arrays import Indices, Vector
from ..common.conjugate_gradients import Product, conjugate_gradients
from ..functions.contract import Convex
from ..functions.traits import curvature as curvature_of
from ..model.model import Model
from ..steps.strengths import operator_norm
from .newton import Smooth, newton_system

LARGE = 64
"""Columns of a block, one of several, above which its norm is worth the passes: the sum of squares is far above it."""

STEPS = 5
"""Accelerated steps that replace one sweep over all blocks."""


class AcceleratedKernel:
    r"""Accelerated proximal steps on all blocks at once, instead of one block after the other.

    With :math:`H = L\,\mathrm{diag}(s)`, s the strengths of the blocks and L the norm of the Hessian in their metric,

    .. math::

        x^+ = \mathrm{prox}_f^H(\bar x - H^{-1} A' \nabla g(A \bar x)), \qquad
        \bar x^+ = x^+ + \beta (x^+ - x),

    with Nesterov's :math:`\beta`, which is set back to 0 after a sweep that leads uphill (O'Donoghue and Candes, 2015).

    Here A and the functions are in the memory of this process. A subclass may put them elsewhere.
    """

    name = "numpy"
    carries = ("course",)
    A: Any
    f: Convex
    g: Convex

    def __init__(self, model: Model, width: int) -> None:
        self.width = width
        self.load(model)
        curvature = curvature_of(model.g)
        assert curvature is not None
        rows = self.place(np.sqrt(curvature))
        self.strength = block_sums(model, self.A.sums(2, weights=(None, np.ascontiguousarray(curvature)))[0])
        self.passes = 0.5
        if len(model.blocks) > 1:
            for own in model.blocks:
                if own.size > LARGE:
                    self._lower_strength(own, rows)
        columns = self.place(1.0 / np.sqrt(self.strength))
        norm, passes = operator_norm(
            lambda z: rows * self.A.matvec(columns * z),
            lambda z: columns * self.A.rmatvec(rows * z),
            self.strength.size,
        )
        self.passes += passes
        self.step = columns * columns / (norm or 1.0)
        m, n = self.A.shape
        self.x, self.ahead, self.u, self.ahead_u = (self.place(np.zeros(size)) for size in (n, n, m, m))
        self.beta, self.uphill = self.place(np.zeros(1)), self.place(np.zeros(1))
        self.left = np.empty(0)
        self.momentum = 1.0

    def _lower_strength(self, own: Indices, rows: Any) -> None:
        """Replace the strength of a large block by its norm, so that its steps are not too short beside the others."""
        norm, passes = operator_norm(
            lambda z: rows * self.A.matvec(z, own), lambda z: self.A.rmatvec(rows * z, own), own.size
        )
        bound = self.strength[own[0]]
        self.strength[own] = min(max(norm, 1e-12 * bound), bound)
        self.passes += passes * own.size / self.strength.size

    def load(self, model: Model) -> None:
        """Set A and the two functions."""
        self.A, self.f, self.g = model.A, model.f, model.g

    def place(self, array: Any) -> Any:
        """Return an array where the functions need it."""
        return array

    def bring(self, array: Any) -> Vector:
        """Return such an array as a numpy array."""
        found: Vector = array
        return found

    def repeat(self, iteration: Callable[[], Any]) -> None:
        """Run an iteration, which changes arrays in place and is the same in every call."""
        iteration()

    @property
    def course(self) -> list[Any]:
        """The iterate and its momentum, as numpy arrays."""
        return [*(self.bring(v) for v in (self.x, self.u, self.ahead, self.ahead_u)), self.left, self.momentum]

    @course.setter
    def course(self, stored: list[Any]) -> None:
        self.x[:], self.u[:], self.ahead[:], self.ahead_u[:], self.left, self.momentum = stored

    def extended(self, model: Model) -> AcceleratedKernel:
        return type(self)(model, self.width)

    def sweep(self, sweeps: int, x: Vector, u: Vector, y: Vector) -> int:
        if not np.array_equal(x, self.left):  # otherwise the momentum of the last sweep is still valid
            self.x[:], self.u[:] = x, u
            self._halt()
        for _ in range(sweeps * STEPS):
            following = 0.5 * (1.0 + float(np.sqrt(1.0 + 4.0 * self.momentum**2)))
            self.beta[:] = (self.momentum - 1.0) / following
            self.momentum = following
            self.repeat(self._step)
        if bool(self.uphill > 0):
            self._halt()
        x[:], u[:], y[:] = (self.bring(v) for v in (self.x, self.u, self.g.subgradient(self.u)))
        self.left = x.copy()
        return sweeps * STEPS * x.size

    def _halt(self) -> None:
        """Restart the momentum."""
        self.ahead[:], self.ahead_u[:], self.momentum = self.x, self.u, 1.0

    def _step(self) -> None:
        """Take one step from the extrapolated point, and extrapolate again by beta."""
        pull = self.A.rmatvec(self.g.subgradient(self.ahead_u))
        x = self.f.prox(self.ahead - self.step * pull, self.step)
        u = self.A.matvec(x)
        moved = x - self.x
        self.uphill[:] = (self.ahead - x) @ moved
        self.ahead[:], self.ahead_u[:] = x + self.beta * moved, u + self.beta * (u - self.u)
        self.x[:], self.u[:] = x, u

    def products(self, columns: Indices, y: Vector) -> Vector:
        found: Vector = self.A.rmatvec(y, columns)
        return found

    def image(self, columns: Indices, d: Vector) -> Vector:
        found: Vector = self.A.matvec(d, columns)
        return found

    def solve(
        self, part: Smooth, weight: Vector, right: Vector, diagonal: Vector, tolerance: float, most: int
    ) -> tuple[Vector, int]:
        system = newton_system(partial(self.image, part.free), partial(self.products, part.free), part, weight)
        return conjugate_gradients(Product(system, diagonal), right, tolerance, most)


def block_sums(model: Model, squares: Vector) -> Vector:
    """Return the sums over the blocks, one value per column; sums of squared lengths bound the curvature of a block."""
    blocks = model.blocks
    if len(blocks) < squares.size:
        sums = np.add.reduceat(squares[blocks.order], blocks.start[:-1])
        squares[blocks.order] = np.repeat(sums, blocks.sizes)
    return np.maximum(squares, 1e-12 * squares.max(initial=0.0) or 1.0)
