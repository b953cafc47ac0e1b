"""Reductions: smaller problems, and the maps back to the original. One file per reduction."""

from __future__ import annotations

from ..model.model import Model
from .absorb import absorb_identity
from .contract import Reduction, Unchanged
from .eliminate import eliminate_identities
from .empty import drop_empty
from .merge import merge_rows

__all__ = [
    "Reduction",
    "Unchanged",
    "absorb_identity",
    "drop_empty",
    "eliminate_identities",
    "merge_rows",
    "reduce_problem",
]


def reduce_problem(model: Model, eliminate: bool) -> Reduction:
    """Return the problem to solve in place of the user's.

    ``eliminate`` makes blocks under an identity part of the loss, and losses of x itself part of the penalty, if
    possible.
    """
    found = (eliminate_identities(model) or absorb_identity(model)) if eliminate else None
    return drop_empty(model) if found is None else found.then(drop_empty(found.model))
