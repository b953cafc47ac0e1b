"""Problem -> smaller problem, and the way back: one file a reduction."""

from __future__ import annotations

from ..problem import Model
from ._base import Reduction
from .eliminate import eliminate_quadratic
from .empty import drop_empty
from .merge import merge_rows

__all__ = ["Reduction", "drop_empty", "eliminate_quadratic", "merge_rows", "reduce_problem"]


def reduce_problem(model: Model, eliminate: bool) -> Reduction:
    """Return the problem to solve in place of the user's; quadratic blocks are eliminated on request."""
    found = eliminate_quadratic(model) if eliminate else None
    return drop_empty(model) if found is None else found.then(drop_empty(found.model))
