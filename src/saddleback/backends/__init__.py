"""The block kernels: what runs the iterations of the block method.

``array`` is the readable specification and takes every problem; ``native`` is compiled and takes those whose matrices
are dense or column-compressed and whose functions it knows. They differ by rounding only.
"""

from __future__ import annotations

from typing import Literal, Protocol, get_args

from ..functions._base import Indices
from ..problem import Model
from ..steps import Strengths
from .array import ArraySweeper
from .iterate import Iterate
from .native import NativeSweeper

BackendName = Literal["auto", "numpy", "native"]


class Sweeper(Protocol):
    """Runs iterations of the block method on one problem."""

    name: str

    def sweep(self, draws: Indices, strengths: Strengths, extrapolation: float, at: Iterate) -> None:
        """Run one iteration a row of ``draws``, in place, and add each new point to the sums."""


def sweeper_for(model: Model, name: BackendName) -> Sweeper:
    """Return the kernels of that name for a problem; "auto" takes the fastest that can treat it."""
    if name not in get_args(BackendName):
        raise ValueError(f"backend={name!r} is not known: expected one of {', '.join(get_args(BackendName))}")
    if name == "numpy":
        return ArraySweeper(model)
    missing = NativeSweeper.missing(model)
    if missing is None:
        return NativeSweeper(model)
    if name == "native":
        raise ValueError(f"backend='native' cannot treat this problem: {missing}; use backend='auto'")
    return ArraySweeper(model)
