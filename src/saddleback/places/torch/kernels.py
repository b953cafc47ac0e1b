"""The kernels on a device of torch: the formulas of the numpy kernels on arrays on the device.

A device is fast for long products and few calls. Therefore the iterate stays on the device for a whole batch of
iterations, blocks are updated all at once or as slices of neighbouring columns, and on CUDA an iteration that never
waits for the host is captured as a graph and replayed.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np
import torch

from ...common.arrays import Indices, Vector
from ...common.conjugate_gradients import Product, conjugate_gradients
from ...functions.contract import Convex
from ...functions.normal_form import GroupNorm, LogisticEntropy
from ...functions.traits import moved
from ...model.model import Model
from ...steps.strengths import Strengths
from ..accelerated import STEPS, AcceleratedKernel
from ..array_steps import dual_half
from ..contract import Iterate
from ..newton import Smooth
from .array import DeviceArray, tensor_of
from .operator import OnDevice, as_slice, beside, is_on_device, matrices, weighted_gram

DIRECT = 8000
"""Largest number of free coordinates for which Newton's system is factored: a device multiplies faster than it
reads."""

WARM_UP = 2 * STEPS
"""Iterations before one is captured: they cost less than a capture, and many runs have no more of them."""


def missing(model: Model) -> str | None:
    """Return what the kernels lack for a problem, or None if they can treat it."""
    if not is_on_device(model.A):
        return "A is not a matrix on a device: pass device="
    if any(known is None or not known.closed for known in (model.penalty_form, model.loss_form)):
        return "its penalty or its loss is not one that the kernels know"
    return None


def bring(array: Any) -> Vector:
    """Return an array of the device as a numpy array."""
    return np.asarray(array)


class Replayed:
    """An iteration that changes arrays in place; on CUDA it is captured once and then replayed, if possible.

    Parameters
    ----------
    device : device of its arrays.
    waits : whether the iteration waits for the host, so that it cannot be captured.
    """

    def __init__(self, device: torch.device, waits: bool) -> None:
        self.device = device
        self.captures = device.type == "cuda" and not waits
        self.taken = 0
        self.graph: Any = None

    def __call__(self, iteration: Callable[[], Any]) -> None:
        """Run the iteration, which is the same in every call. It is not stored, since it refers to this object."""
        if self.captures and self.taken == WARM_UP:
            self.graph = captured(iteration, self.device, _first_graph(self.device).pool())
        if self.graph is None:
            iteration()
        else:
            self.graph.replay()
        self.taken += 1


def captured(iteration: Callable[[], Any], device: torch.device, pool: Any = None) -> Any:
    """Return the work of an iteration on a CUDA device as a graph; nothing is computed yet."""
    graph, stream = torch.cuda.CUDAGraph(), _capturing_stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    collecting = gc.isenabled()
    gc.disable()  # the destruction of another graph during a capture would end the capture
    try:
        with torch.cuda.stream(stream):
            graph.capture_begin(pool=pool)
            iteration()
            graph.capture_end()
    finally:
        if collecting:
            gc.enable()
    torch.cuda.current_stream(device).wait_stream(stream)
    return graph


@cache
def _capturing_stream(device: torch.device) -> Any:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


@cache
def _first_graph(device: torch.device) -> Any:
    """Return a nearly empty graph, whose memory pool all other graphs share; their results lie outside of it."""
    return captured(lambda: torch.zeros(1, device=device).add_(1.0), device)


class DeviceDescentKernel(AcceleratedKernel):
    """Accelerated proximal steps on a device, where the iterate stays for a batch of them."""

    name = "torch"

    def load(self, model: Model) -> None:
        self.A = beside(matrices(model.A)).widened()
        self.f, self.g = (moved(function, self.place) for function in (model.f, model.g))
        penalty = model.penalty_form
        assert penalty is not None
        self.replayed = Replayed(self.A.device, waits=any(isinstance(atom, GroupNorm) for atom in penalty.atoms))

    def place(self, array: Any) -> Any:
        return DeviceArray(tensor_of(array, self.A.device))

    def bring(self, array: Any) -> Vector:
        return bring(array)

    def repeat(self, iteration: Callable[[], Any]) -> None:
        self.replayed(iteration)

    def solve(
        self, part: Smooth, weight: Vector, right: Vector, diagonal: Vector, tolerance: float, most: int
    ) -> tuple[Vector, int]:
        assert part.basis is None  # a penalty with ties has no normal form, and runs elsewhere
        arrays = (own.name for own in fields(part) if own.name != "basis")
        there: Any = Smooth(**{name: self.place(getattr(part, name)) for name in arrays})
        own, weights, target = self.A.part(part.free), self.place(weight), self.place(right)
        if part.free.size <= DIRECT:
            matrix = there.added_to(DeviceArray(weighted_gram(own.dense(), weights.tensor))).tensor
            factor, failed = torch.linalg.cholesky_ex(matrix)
            if not failed:
                return bring(DeviceArray(torch.cholesky_solve(target.tensor[:, None], factor)[:, 0])), 1

        def product(d: Vector) -> Vector:
            curved: Vector = own.rmatvec(weights * own.matvec(d)) + there.hessian(d)
            return curved

        d, steps = conjugate_gradients(Product(product, self.place(diagonal)), target, tolerance, most)
        return bring(d), steps


@dataclass
class Sums:
    """Sums of iterates on the device."""

    x: Any
    y: Any
    count: int = 0


@dataclass
class Point:
    """An iterate on the device, with the sums of all of them."""

    x: Any
    y: Any
    u: Any
    averages: Any


@dataclass
class Drawn:
    """What an iteration on some blocks needs: their coordinates in x, their columns, penalty and steps."""

    place: Any
    A: OnDevice
    f: Convex
    step: Any


class DeviceBlockKernel:
    """The block method on a device; the iterate stays on the device for a batch of draws."""

    name = "torch"
    lazy = False

    def __init__(self, model: Model) -> None:
        self.model = model
        self.A = beside(matrices(model.A)).widened()
        self.g_star = moved(model.g_star, self.place)
        m, n = self.A.shape
        self.whole = Drawn(slice(None), self.A, moved(model.f, self.place), self.place(np.ones(n)))
        self.strengths = Strengths(self.place(np.ones(n)), self.place(np.ones(m)))
        x, y, u, of_x, of_y = (self.place(np.zeros(size)) for size in (n, m, m, n, m))
        self.point = Point(x, y, u, Sums(of_x, of_y))
        self.extrapolation: Any = self.place(np.ones(1))
        penalty, loss = model.penalty_form, model.loss_form
        assert penalty is not None
        assert loss is not None
        waits = any(isinstance(atom, GroupNorm | LogisticEntropy) for atom in (*penalty.atoms, *loss.atoms))
        self.replayed = Replayed(self.A.device, waits)

    def place(self, array: Any) -> Any:
        """Return an array on the device."""
        return DeviceArray(tensor_of(array, self.A.device))

    def sweep(self, draws: Indices, strengths: Strengths, extrapolation: float, at: Iterate) -> None:
        point, sums = self.point, self.point.averages
        pairs = [(point.x, at.x), (point.y, at.y), (point.u, at.u), (sums.x, at.averages.x), (sums.y, at.averages.y)]
        for there, here in [*pairs, (self.strengths.primal, strengths.primal), (self.strengths.dual, strengths.dual)]:
            there[:] = here
        self.whole.step[:] = 1.0 / strengths.primal
        self.extrapolation[:] = extrapolation
        if draws.shape[1] == len(self.model.blocks):
            for _ in draws:
                self.replayed(lambda: self._iteration(self.whole))
        else:
            for blocks in draws:
                self._iteration(self._drawn(blocks))
        for there, here in pairs:
            here[:] = bring(there)

    def _iteration(self, drawn: Drawn) -> None:
        point = self.point
        before = point.x[drawn.place]
        after = drawn.f.prox(before - drawn.step * drawn.A.rmatvec(point.y), drawn.step)
        change = drawn.A.matvec(after - before)
        point.x[drawn.place] = after
        dual_half(self.g_star, self.strengths, self.extrapolation, change, point)

    def _drawn(self, blocks: Indices) -> Drawn:
        """Return what an iteration on some blocks needs."""
        columns = self.model.blocks.columns(blocks)
        place = as_slice(columns) or self.place(columns)
        part = self.A.part(columns)
        return Drawn(place, part, moved(self.model.f.restrict_blocks(blocks), self.place), self.whole.step[place])
