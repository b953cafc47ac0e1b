"""Arrays in the memory of this process: the specification, which accepts every problem."""

from __future__ import annotations

from ...model.model import Model
from ..contract import KernelName, Place
from .block_kernel import ArrayBlockKernel
from .descent_kernel import ArrayDescentKernel
from .pure_cd_kernel import ArrayPureCDKernel


def accepts(model: Model, kernel: KernelName) -> str | None:
    """Accept every problem."""
    return None


NUMPY = Place("numpy", accepts, ArrayBlockKernel, ArrayDescentKernel, ArrayPureCDKernel)
