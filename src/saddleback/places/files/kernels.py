"""The kernels for a matrix in a file: every panel of columns is read once for all work on it.

While the kernel works on one panel, the next one is read. An iteration of the block method draws panels, and computes
A_p'y, the prox and A_p dx of each at once. A sweep of coordinate descent is a sweep of the compiled kernel on one panel
after the other.
"""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np

from ...common.arrays import Indices, Vector
from ...common.conjugate_gradients import conjugate_gradients
from ...model.model import Model
from ...operators import Operator
from ...operators.memory import bytes_in_memory
from ...steps.strengths import Strengths
from ..array_steps import dual_half
from ..contract import Iterate
from ..native.descent_kernel import NativeDescentKernel
from ..native.kernels import matrices, row_loss
from ..newton import Smooth
from .operator import adjoint_then_forward


class StreamedBlockKernel:
    """The block method on panels."""

    name = "streamed"
    lazy = False

    def __init__(self, model: Model) -> None:
        self.model = model

    def sweep(self, draws: Indices, strengths: Strengths, extrapolation: float, at: Iterate) -> None:
        model = self.model
        places = [model.blocks.columns(np.array([panel])) for panel in draws.ravel()]
        panels = zip(draws.ravel(), places, model.A.loaded(places), strict=True)
        for drawn in draws:
            change = np.zeros_like(at.u)
            for panel, columns, own in islice(panels, drawn.size):  # all with the same y
                step = 1.0 / strengths.primal[columns]
                before = at.x[columns]
                after = model.f.prox(before - step * own.rmatvec(at.y), step, np.array([panel]))
                at.x[columns] = after
                change += own.matvec(after - before)
            dual_half(model.g_star, strengths, extrapolation, change, at)


class StreamedDescentKernel:
    """Coordinate descent on one panel after the other; all sweeps over a panel are done while it is in memory.

    The columns of a Newton step are packed if they fit in memory, and streamed if not.
    """

    name = "streamed"
    passes = 0.5

    def __init__(self, model: Model, width: int) -> None:
        ends = model.A.traits.panels
        assert ends is not None
        self.model, self.width = model, width
        firsts = np.unique(np.append(np.searchsorted(model.blocks.start, ends[:-1]), len(model.blocks)))
        self.runs = [np.arange(a, b) for a, b in pairwise(firsts.tolist())]
        self.columns = [model.blocks.columns(run) for run in self.runs]
        self.strength = np.empty(model.A.shape[1])
        self.kernels: list[NativeDescentKernel] = []
        loss = row_loss(model)
        for run, columns, panel in zip(self.runs, self.columns, model.A.loaded(self.columns), strict=True):
            kernel = NativeDescentKernel(model.part(model.f.restrict_blocks(run), panel), width, loss=loss)
            self.strength[columns] = kernel.strength
            self.kernels.append(kernel)
        self.kept: tuple[Indices, Operator] | None = None

    def extended(self, model: Model) -> StreamedDescentKernel:
        return StreamedDescentKernel(model, self.width)

    def sweep(self, sweeps: int, x: Vector, u: Vector, y: Vector) -> int:
        visited = 0
        for kernel, columns, panel in zip(self.kernels, self.columns, self.model.A.loaded(self.columns), strict=True):
            kernel.kernel.rebind(matrices(panel))
            own = x[columns]
            visited += kernel.sweep(sweeps, own, u, y)
            x[columns] = own
        return visited

    def _packed(self, columns: Indices) -> Operator:
        """Return some columns, in memory if they fit; a Newton step needs the same columns many times."""
        if self.kept is None or not np.array_equal(self.kept[0], columns):
            self.kept = None
            A = self.model.A
            self.kept = columns, A.pack(columns, False, bytes_in_memory(A))
        return self.kept[1]

    def products(self, columns: Indices, y: Vector) -> Vector:
        return self._packed(columns).rmatvec(y)

    def image(self, columns: Indices, d: Vector) -> Vector:
        return self._packed(columns).matvec(d)

    def solve(
        self, part: Smooth, weight: Vector, right: Vector, diagonal: Vector, tolerance: float, most: int
    ) -> tuple[Vector, int]:
        system = ReadOnce(self._packed(part.free), part, weight, diagonal)
        return conjugate_gradients(system, right, tolerance, most)


class ReadOnce:
    """The Newton system for a matrix that is read once per step of conjugate gradients, column by column.

    p'Qp = (Ap)'D(Ap) + p'f''p is known before the products with the columns. So while a column is in memory for its
    product with D Ap, its residual is computed at once, and its part of A s is added. A s is needed for the next
    direction s + b p and its image As + b Ap.
    """

    def __init__(self, A: Operator, part: Smooth, weight: Vector, diagonal: Vector) -> None:
        self.A, self.part, self.weight, self.diagonal = A, part, weight, diagonal
        self.image: Vector | None = None
        self.following = np.zeros(A.shape[0])

    def curvature(self, p: Vector, ratio: float) -> float:
        self.image = self.A.matvec(p) if self.image is None else self.following + ratio * self.image
        self.weighted, self.bent = self.weight * self.image, self.part.hessian(p)
        return float(self.image @ self.weighted + p @ self.bent)

    def reduced(self, residual: Vector, length: float) -> tuple[Vector, Vector]:
        scaled = np.empty_like(residual)

        def renewed(columns: Indices, product: Vector) -> Vector:
            residual[columns] -= length * (product + self.bent[columns])
            scaled[columns] = residual[columns] / self.diagonal[columns]
            return scaled[columns]

        self.following = adjoint_then_forward(self.A, self.weighted, renewed)
        return residual, scaled
