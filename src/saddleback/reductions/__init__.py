"""Reductions: smaller problems, and the maps back to the original. One file per reduction."""

from __future__ import annotations

from ..model.model import Model
from .absorb import absorb_identity
from .contract import Reduction, Unchanged
from .copies import copy_groups
from .eliminate import eliminate_identities
from .empty import drop_empty
from .lift import lift_maximum
from .merge import merge_rows
from .unfold import unfold_variation
from .units import Units, in_canonical_units

__all__ = [
    "Reduction",
    "Unchanged",
    "Units",
    "absorb_identity",
    "copy_groups",
    "drop_empty",
    "eliminate_identities",
    "in_canonical_units",
    "lift_maximum",
    "merge_rows",
    "reduce_problem",
    "unfold_variation",
]


STEPS = (eliminate_identities, unfold_variation, lift_maximum, absorb_identity, copy_groups)
"""The reductions that ``eliminate`` asks for, in order."""


def reduce_problem(model: Model, eliminate: bool) -> Reduction:
    """Return the problem to solve in place of the user's.

    ``eliminate`` makes blocks under an identity part of the loss, total variations under a loss with kinks losses of
    differences, losses of x itself part of the penalty, overlapping groups disjoint, and a multiclass hinge a sum
    over single rows, if possible.
    """
    found: Reduction = Unchanged(model)
    for step in STEPS if eliminate else ():
        smaller = step(found.model)
        if smaller is not None:
            found = smaller if found.model is model else found.then(smaller)
    smaller = drop_empty(found.model)
    return smaller if found.model is model else found.then(smaller)
