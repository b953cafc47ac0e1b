"""Columns that are spread over processes, each of which runs the kernels of another place on its columns."""

from __future__ import annotations

from typing import cast

from ...model.model import Model
from ...operators import Sharded
from ..contract import BlockKernel, DescentKernel, Exchange, KernelName, LocalDescentKernel, Place
from .kernels import ShardedBlockKernel, ShardedDescentKernel, local_model


def next_to_columns(place: Place) -> Place:
    """Return the place in which each process runs the kernels of another place on its columns."""

    def accepts(model: Model, kernel: KernelName) -> str | None:
        lacking = _spread(model).ranks.all(place.accepts(_local(model), kernel))
        return next((lack for lack in lacking if lack is not None), None)  # all processes take the same kernels

    def block_kernel(model: Model, lazy: bool, exchange: Exchange | None) -> BlockKernel:
        A = _spread(model)
        return ShardedBlockKernel(A, place.block_kernel(_local(model), False, A.ranks.sum))

    def descent_kernel(model: Model, width: int, exchange: Exchange | None) -> DescentKernel:
        A = _spread(model)
        inner = place.descent_kernel(_local(model), width, A.ranks.sum)
        return ShardedDescentKernel(A, cast(LocalDescentKernel, inner))

    return Place(place.name, accepts, block_kernel, descent_kernel)


def _spread(model: Model) -> Sharded:
    assert isinstance(model.A, Sharded)
    return model.A


def _local(model: Model) -> Model:
    return local_model(model, _spread(model))
