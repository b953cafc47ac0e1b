"""Matrices in files, of which a panel of columns is read once for all that is done with it."""

from __future__ import annotations

from ...model.model import Model
from ..contract import BlockKernel, DescentKernel, Exchange, KernelName, Place
from .kernels import StreamedBlockKernel, StreamedDescentKernel


def accepts(model: Model, kernel: KernelName) -> str | None:
    """Return what keeps a problem from being read in panels."""
    if model.A.traits.panels is None:
        return "A is in memory"
    if kernel == "lazy":
        return "a panel is read in all rows"
    if kernel == "descent" and not model.A.traits.reads_columns:
        return "some columns cannot be read without the others"
    return None


def block_kernel(model: Model, lazy: bool, exchange: Exchange | None) -> BlockKernel:
    """Return the block method on panels."""
    return StreamedBlockKernel(model)


def descent_kernel(model: Model, width: int, exchange: Exchange | None) -> DescentKernel:
    """Return coordinate descent on one panel after the other."""
    return StreamedDescentKernel(model, width)


FILES = Place("streamed", accepts, block_kernel, descent_kernel)
