"""The block kernels: what runs the iterations of the block method.

``array`` is the readable specification and takes every problem; ``native`` is compiled and takes those whose matrices
are dense or column-compressed and whose functions it knows; ``on_device`` takes those whose matrices are on a device of
torch. They differ by rounding only, and so do the two ways to treat y: to step in all rows, or lazily, in those that
matter to an iteration (``lazy``). Descent alone takes other steps on a device than elsewhere. Where the columns are
spread over processes, ``sharded`` runs one of the first two next to each process's own. ``streamed`` is for matrices
that are not in memory: a block is then a panel of columns, and is read once for all that an iteration does with it.
"""

from __future__ import annotations

from typing import Literal, Protocol, get_args

from ..common.arrays import Indices
from ..common.checks import one_of
from ..common.rebuildable import derived
from ..operators import Sharded
from ..problem import Model
from ..steps.strengths import Strengths
from .files.kernels import StreamedDescender, StreamedSweeper
from .iterate import Iterate
from .mpi.kernels import ShardedDescender, ShardedSweeper, local_model
from .native import kernels as native
from .native.kernels import NativeSweeper
from .newton import Smooth, smooth_part
from .numpy import lazy
from .numpy.block_kernel import ArraySweeper
from .numpy.descent import ArrayDescender, Descender, NativeDescender, native_descender
from .numpy.pure_cd import ArrayPureSweeper, NativePureSweeper, PureSweeper

__all__ = [
    "BackendName",
    "Descender",
    "DualName",
    "PureSweeper",
    "Smooth",
    "Sweeper",
    "descender_for",
    "extended",
    "pure_sweeper_for",
    "smooth_part",
    "sweeper_for",
]

BackendName = Literal["auto", "numpy", "native", "torch"]
DualName = Literal["auto", "eager", "lazy"]


class Sweeper(Protocol):
    """Runs iterations of the block method on one problem."""

    name: str
    lazy: bool

    def sweep(self, draws: Indices, strengths: Strengths, extrapolation: float, at: Iterate) -> None:
        """Run one iteration a row of ``draws``, in place, and add each new point to the sums."""


@derived
def sweeper_for(model: Model, drawn: int, name: BackendName, dual: DualName) -> Sweeper:
    """Return the kernels of that name for K drawn blocks of a problem; "auto" takes what is fastest for it."""
    one_of("dual", dual, *get_args(DualName))
    if isinstance(model.A, Sharded):
        return _sharded_sweeper(model, model.A, name, dual)
    if model.A.traits.panels is not None and name == "auto" and dual != "lazy":
        return StreamedSweeper(model)
    lazily = _is_lazy(model, drawn, dual)
    chosen = _chosen(name, {"native": native.missing(model), "torch": _missing_on_device(model)})
    if chosen == "torch":
        from .torch.kernels import DeviceSweeper

        return DeviceSweeper(model)
    return NativeSweeper(model, lazily) if chosen == "native" else ArraySweeper(model, lazily)


def _sharded_sweeper(model: Model, A: Sharded, name: BackendName, dual: DualName) -> Sweeper:
    """Return the kernels of that name next to the columns of each process; all of them the same."""
    if dual == "lazy":
        raise ValueError("dual='lazy': where columns are spread over processes all rows change; use dual='auto'")
    local, compiled = _next_to_columns(model, A, name)
    kernels = NativeSweeper if compiled else ArraySweeper
    return ShardedSweeper(A, kernels(local, lazy=False, exchange=A.ranks.sum))


def _next_to_columns(model: Model, A: Sharded, name: BackendName) -> tuple[Model, bool]:
    """Return the problem of the columns that this process holds, and whether all processes take compiled kernels."""
    local = local_model(model, A)
    lacking = next((missing for missing in A.ranks.all(native.missing(local)) if missing), None)
    return local, _chosen(name, {"native": lacking}) == "native"


@derived
def pure_sweeper_for(model: Model, name: BackendName) -> PureSweeper:
    """Return the kernels of PURE-CD of that name for a problem; "auto" takes the fastest that can treat it."""
    chosen = _chosen(name, {"native": NativePureSweeper.missing(model)})
    return NativePureSweeper(model) if chosen == "native" else ArrayPureSweeper(model)


@derived
def descender_for(model: Model, name: BackendName, width: int) -> Descender:
    """Return coordinate descent in panels of so many columns, on the kernels of that name or the fastest."""
    if isinstance(model.A, Sharded):
        local, compiled = _next_to_columns(model, model.A, name)
        descent = NativeDescender if compiled else ArrayDescender
        return ShardedDescender(model.A, descent(local, width, model.A.ranks.sum))
    if model.A.traits.panels is not None and model.A.traits.reads_columns and name == "auto":
        return StreamedDescender(model, width)
    chosen = _chosen(name, {"native": native.missing(model), "torch": _missing_on_device(model)})
    if chosen == "torch":
        from .torch.kernels import DeviceDescender

        return DeviceDescender(model, width)
    return native_descender(model, width) if chosen == "native" else ArrayDescender(model, width)


@derived
def extended(descender: Descender, model: Model) -> Descender:
    """Return coordinate descent on a problem that has another one as its first blocks; that one is given up."""
    if model.A.traits.panels is not None and not isinstance(descender, StreamedDescender):
        return descender_for(model, "auto", descender.width)  # what is new did not fit in memory
    return descender.extended(model)


def _missing_on_device(model: Model) -> str | None:
    if model.A.traits.device is None:
        return "A is not a matrix on a device; pass device='cuda' or device='cpu'"
    from .torch import kernels as on_device

    return on_device.missing(model)


def _chosen(name: BackendName, missing: dict[str, str | None]) -> str:
    """Return the kernels of that name, which must lack nothing, or for "auto" the first that do not."""
    one_of("backend", name, *get_args(BackendName))
    if name == "auto":
        return next((kind for kind, lack in missing.items() if lack is None), "numpy")
    lack = missing.get(name, None if name == "numpy" else "this method has none of that name")
    if lack is not None:
        raise ValueError(f"backend={name!r} cannot treat this problem: {lack}; use backend='auto'")
    return name


def _is_lazy(model: Model, drawn: int, dual: DualName) -> bool:
    if dual == "auto":
        return model.A.traits.device is None and lazy.pays(model, drawn)
    if dual == "lazy" and (missing := lazy.missing(model)) is not None:
        raise ValueError(f"dual='lazy' cannot treat this problem: {missing}; use dual='auto'")
    return dual == "lazy"
