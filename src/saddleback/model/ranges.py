"""Which sizes of data can be computed with: those whose squares, and their products, are numbers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..functions.contract import Function
from ..operators import Operator

LARGEST = 1e120
"""Longest columns of A, and targets b, that are accepted; one over it are the shortest. Objectives are squares of them,
and Newton's systems products of two, which then stay within the range of float64."""


def check_range(operators: Iterable[tuple[Operator, str]], loss: Function, rows: int) -> None:
    """Raise where columns of A, or the targets of the loss, are so long or short that nothing can be computed."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for A, name in operators:
            if not A.traits.entries_known:
                continue
            length = float(np.sqrt(np.max(A.squares[0], initial=0.0)))
            if length > LARGEST or (length < 1.0 / LARGEST and np.any(A.matvec(np.ones(A.shape[1])))):
                raise ValueError(_message(name, "a column", length))
        length = loss.typical_length(rows)
        if length > LARGEST or (length < 1.0 / LARGEST and np.any(loss.typical_point())):
            raise ValueError(_message("the data of the loss", "a vector", length))


def _message(name: str, what: str, length: float) -> str:
    size = "more than 1e150" if length == np.inf else f"{length:.0e}" if length > 0 else "less than 1e-150"
    flow = "overflow" if length > 1 else "underflow"
    return (
        f"{name} has {what} of length {size}, whose squares {flow}: expected lengths from {1 / LARGEST:.0e} to "
        f"{LARGEST:.0e}; rescale it"
    )
