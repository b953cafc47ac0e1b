"""Matrices on a device of torch, which is imported with the first problem on a device."""

from __future__ import annotations

from ...model.model import Model
from ..contract import BlockKernel, DescentKernel, Exchange, KernelName, Place


def accepts(model: Model, kernel: KernelName) -> str | None:
    """Return what the kernels of a device lack for a problem."""
    if model.A.traits.device is None:
        return "A is not a matrix on a device; pass device='cuda' or device='cpu'"
    from .kernels import missing

    return missing(model)


def block_kernel(model: Model, lazy: bool, exchange: Exchange | None) -> BlockKernel:
    """Return the block method on a device, which always updates all rows."""
    from .kernels import DeviceBlockKernel

    return DeviceBlockKernel(model)


def descent_kernel(model: Model, width: int, exchange: Exchange | None) -> DescentKernel:
    """Return descent on a device: accelerated steps on all blocks together."""
    from .kernels import DeviceDescentKernel

    return DeviceDescentKernel(model, width)


TORCH = Place("torch", accepts, block_kernel, descent_kernel)
