"""Which place runs the kernels of a problem.

The iterates at different places differ only by rounding, and so do those of the two ways to treat y: steps in all rows,
or lazy steps, only in the rows that an iteration needs. The exception is descent, which takes other steps on a device.
"""

from __future__ import annotations

from typing import Literal, get_args

from ..common.checks import one_of
from ..common.rebuildable import derived
from ..model.model import Model
from .contract import BlockKernel, DescentKernel, KernelName, Place, PureCDKernel
from .files.place import FILES
from .mpi.place import next_to_columns
from .native.place import NATIVE
from .numpy import lazy
from .numpy.place import NUMPY
from .torch.place import TORCH

BackendName = Literal["auto", "numpy", "native", "torch"]
DualName = Literal["auto", "eager", "lazy"]

BACKENDS, DUALS = get_args(BackendName), get_args(DualName)

PLACES = (FILES, NATIVE, TORCH, NUMPY)
"""The places in the order in which ``backend="auto"`` tries them."""

SPREAD = (next_to_columns(NATIVE), next_to_columns(NUMPY), NUMPY)
"""The same for columns that are spread over processes."""


@derived
def block_kernel_for(model: Model, drawn: int, name: BackendName, dual: DualName) -> BlockKernel:
    """Return a kernel of the block method for K drawn blocks of a problem."""
    one_of("dual", dual, *DUALS)
    lazily = _is_lazy(model, drawn, dual)
    return _chosen(model, name, "lazy" if lazily else "block").block_kernel(model, lazily, None)


@derived
def pure_cd_kernel_for(model: Model, name: BackendName) -> PureCDKernel:
    """Return a kernel of PURE-CD for a problem."""
    make = _chosen(model, name, "pure-cd").pure_cd_kernel
    assert make is not None
    return make(model)


@derived
def descent_kernel_for(model: Model, name: BackendName, width: int) -> DescentKernel:
    """Return a kernel of coordinate descent in panels of ``width`` columns."""
    return _chosen(model, name, "descent").descent_kernel(model, width, None)


@derived
def extended(kernel: DescentKernel, model: Model) -> DescentKernel:
    """Return the kernel of a problem whose first blocks are those of ``kernel``, which is not used again."""
    if model.A.traits.panels is not None and kernel.name != FILES.name:
        return descent_kernel_for(model, "auto", kernel.width)  # the new columns did not fit in memory
    return kernel.extended(model)


def _chosen(model: Model, name: BackendName, kernel: KernelName) -> Place:
    """Return the place of a name, or for "auto" the first place that accepts the problem; raise if it does not."""
    one_of("backend", name, *BACKENDS)
    lack: str | None = "this method has none of that name"
    for place in PLACES if model.A.traits.holders is None else SPREAD:
        if name not in ("auto", place.name) or (kernel == "pure-cd" and place.pure_cd_kernel is None):
            continue
        lack = place.accepts(model, kernel)
        if lack is None:
            return place
    raise ValueError(f"backend={name!r} cannot treat this problem: {lack}; use backend='auto'")


def _is_lazy(model: Model, drawn: int, dual: DualName) -> bool:
    traits = model.A.traits
    if dual == "auto":
        everywhere = traits.device is not None or traits.panels is not None or traits.holders is not None
        return not everywhere and lazy.pays(model, drawn)
    if dual == "lazy" and traits.holders is not None:
        raise ValueError("dual='lazy': where columns are spread over processes all rows change; use dual='auto'")
    if dual == "lazy" and (missing := lazy.missing(model)) is not None:
        raise ValueError(f"dual='lazy' cannot treat this problem: {missing}; use dual='auto'")
    return dual == "lazy"
