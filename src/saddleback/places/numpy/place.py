"""Arrays in the memory of this process: the specification, which accepts every problem."""

from __future__ import annotations

from ...model.model import Model
from ..accelerated import AcceleratedKernel
from ..contract import DescentKernel, Exchange, KernelName, Place
from .block_kernel import ArrayBlockKernel
from .descent_kernel import ArrayDescentKernel
from .pure_cd_kernel import ArrayPureCDKernel


def accepts(model: Model, kernel: KernelName) -> str | None:
    """Accept every problem."""
    return None


def descent_kernel(model: Model, width: int, exchange: Exchange | None) -> DescentKernel:
    """Return coordinate descent, or other steps if not all parts of the problem are sums.

    That is so if A acts on a matrix, if the loss is not a sum over single rows, or if the penalty couples columns.
    """
    together = model.loss_form is None or model.penalty_form is None or model.A.traits.tasks > 1
    return AcceleratedKernel(model, width) if together else ArrayDescentKernel(model, width, exchange)


NUMPY = Place("numpy", accepts, ArrayBlockKernel, descent_kernel, ArrayPureCDKernel)
