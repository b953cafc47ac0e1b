"""The block kernels: what runs the iterations of the block method.

``array`` is the readable specification and takes every problem; ``native`` is compiled and takes those whose matrices
are dense or column-compressed and whose functions it knows. They differ by rounding only.
"""

from __future__ import annotations

from typing import Literal, Protocol, get_args

from ..functions._base import Indices, Vector
from ..problem import Model
from ..steps import Strengths
from .array import ArrayDescender, ArraySweeper
from .iterate import Iterate
from .native import NativeDescender, NativeSweeper
from .newton import Smooth, smooth_part

BackendName = Literal["auto", "numpy", "native"]


class Sweeper(Protocol):
    """Runs iterations of the block method on one problem."""

    name: str

    def sweep(self, draws: Indices, strengths: Strengths, extrapolation: float, at: Iterate) -> None:
        """Run one iteration a row of ``draws``, in place, and add each new point to the sums."""


class Descender(Protocol):
    """Runs block coordinate descent on one problem with a smooth loss, panel by panel.

    ``strength`` bounds the curvature of the loss along each column's block.
    """

    name: str
    strength: Vector

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


def descender_for(model: Model, name: BackendName, width: int) -> Descender:
    """Return coordinate descent in panels of so many columns, on the kernels of that name or the fastest."""
    chosen = _chosen(model, name)
    return NativeDescender(model, width) if chosen == "native" else ArrayDescender(model, width)


def sweeper_for(model: Model, name: BackendName) -> Sweeper:
    """Return the kernels of that name for a problem; "auto" takes the fastest that can treat it."""
    return NativeSweeper(model) if _chosen(model, name) == "native" else ArraySweeper(model)


def _chosen(model: Model, name: BackendName) -> BackendName:
    """Return "numpy" or "native", as asked for or as can be had."""
    if name not in get_args(BackendName):
        raise ValueError(f"backend={name!r} is not known: expected one of {', '.join(get_args(BackendName))}")
    missing = NativeSweeper.missing(model)
    if name == "native" and missing is not None:
        raise ValueError(f"backend='native' cannot treat this problem: {missing}; use backend='auto'")
    return "numpy" if name == "numpy" or missing is not None else "native"


__all__ = ["BackendName", "Descender", "Iterate", "Smooth", "Sweeper", "descender_for", "smooth_part", "sweeper_for"]
