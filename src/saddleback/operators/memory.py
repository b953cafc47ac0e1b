"""How much memory an operator takes."""

from __future__ import annotations

from functools import singledispatch

from .contract import Operator
from .dense import Dense


@singledispatch
def bytes_in_memory(A: Operator) -> float:
    """Return the bytes of the entries of an operator that are in the memory of this process."""
    return 8.0 * A.traits.stored


@bytes_in_memory.register
def _(A: Dense) -> float:
    return float(A.array.nbytes)
