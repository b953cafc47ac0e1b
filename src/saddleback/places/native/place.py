"""Dense and column-compressed matrices in memory, with the functions that the compiled core knows."""

from __future__ import annotations

from ...model.model import Model
from ..contract import KernelName, Place
from .descent_kernel import native_descent_kernel
from .kernels import NativeBlockKernel, NativePureCDKernel, readable


def accepts(model: Model, kernel: KernelName) -> str | None:
    """Return what the compiled kernels lack for a problem."""
    if not readable(model.A):
        return "A is not a dense or sparse matrix"
    if model.penalty_form is None:
        return "its penalty is not one that the kernels know"
    if kernel in ("descent", "pure-cd") and model.loss_form is None:
        return "its loss is not one that the kernels know"
    return None


NATIVE = Place("native", accepts, NativeBlockKernel, native_descent_kernel, NativePureCDKernel)
