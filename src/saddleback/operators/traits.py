"""Facts about an operator that are known before any product, and how they combine when operators are combined.

This is the only place where traits are combined. ``dataclasses.replace`` copies all traits that are not named, so that
a new trait needs a line only where the value of the inner matrix is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..common.arrays import Indices

if TYPE_CHECKING:
    from ..places.torch.device import Device


class Holders(NamedTuple):
    """Which of several processes holds each column, how many there are, and which of them this is."""

    of_column: Indices
    processes: int
    own: int


@dataclass(frozen=True)
class Traits:
    """Facts about an operator that decide how a problem is solved."""

    stored: int
    """Number of entries that a product reads."""

    splits: bool = True
    """Whether single columns are available, so that a penalty may split x into blocks."""

    entries_known: bool = True
    """Whether sums over entries are available."""

    tasks: int = 1
    """Number of neighbouring rows, and of neighbouring columns, that can only be kept or left out together."""

    identity_scales: tuple[float, ...] | None = None
    """The scales of the identities, side by side, that make up the operator; None if it is anything else."""

    launch_cost: int = 0
    """Number of entries up to which a product takes no longer than with a single entry: the cost of starting one."""

    panels: Indices | None = None
    """Where the panels of neighbouring columns begin that are best read together, and where the last one ends; None if
    any column can be read at once."""

    reads_columns: bool = True
    """Whether some columns can be read without the others."""

    budget: float = np.inf
    """Bytes that a matrix made from this one may take."""

    norm: float | None = None
    """A bound on the largest singular value, if one is known without a product."""

    device: Device | None = None
    """The device on which its entries lie, or for identities its vectors; None for the memory of the host."""

    holders: Holders | None = None
    """The processes that hold the columns, if these are spread over several; None if all of them are in this one."""

    @property
    def at_hand(self) -> bool:
        """Whether all entries are in the memory of this process."""
        elsewhere = self.holders is not None or self.panels is not None or self.device is not None
        return self.entries_known and self.reads_columns and not elsewhere


def side_by_side(parts: Sequence[Traits], widths: Sequence[int]) -> Traits:
    """Return the traits of operators side by side, given their numbers of columns."""
    scales = [part.identity_scales for part in parts if part.identity_scales is not None]
    places = [(part.device, part.identity_scales is None) for part in parts]  # of entries or of vectors
    return Traits(
        stored=sum(part.stored for part in parts),
        splits=all(part.splits for part in parts),
        entries_known=all(part.entries_known for part in parts),
        tasks=max(part.tasks for part in parts),
        identity_scales=tuple(chain(*scales)) if len(scales) == len(parts) else None,
        launch_cost=max(part.launch_cost for part in parts),
        panels=_panels_side_by_side(parts, widths),
        reads_columns=all(part.reads_columns for part in parts),
        budget=min(part.budget for part in parts),
        norm=_norm_of_all(parts),
        device=places[0][0] if all(place == places[0] for place in places) else None,
    )


def one_above_the_other(parts: Sequence[Traits]) -> Traits:
    """Return the traits of operators one above the other, each of which acts on all columns."""
    panels = [part.panels for part in parts if part.panels is not None]
    return Traits(
        stored=sum(part.stored for part in parts),
        splits=all(part.splits for part in parts),
        entries_known=all(part.entries_known for part in parts),
        tasks=max(part.tasks for part in parts),
        launch_cost=sum(part.launch_cost for part in parts),
        panels=np.unique(np.concatenate(panels)) if panels else None,
        reads_columns=all(part.reads_columns for part in parts),
        budget=min(part.budget for part in parts),
        norm=_norm_of_all(parts),
        device=parts[0].device if all(part.device == parts[0].device for part in parts) else None,
    )


def _norm_of_all(parts: Sequence[Traits]) -> float | None:
    """Return a bound on the norm of operators side by side, or one above the other."""
    norms = [part.norm for part in parts if part.norm is not None]
    return float(np.linalg.norm(norms)) if len(norms) == len(parts) else None


def _panels_side_by_side(parts: Sequence[Traits], widths: Sequence[int]) -> Indices | None:
    if all(part.panels is None for part in parts):
        return None
    first = np.cumsum(widths) - widths
    own = ([0, width] if part.panels is None else part.panels for part, width in zip(parts, widths, strict=True))
    starts = [a + np.asarray(each)[:-1] for a, each in zip(first, own, strict=True)]
    return np.append(np.concatenate(starts), sum(widths))


def repeated(single: Traits, tasks: int) -> Traits:
    """Return the traits of a matrix that acts on each of several tasks: one product per task."""
    return replace(
        single,
        stored=tasks * single.stored,
        tasks=tasks,
        identity_scales=None,  # an identity takes its shape from the loss, tasks included
        launch_cost=tasks * single.launch_cost,
        panels=None if single.panels is None else tasks * single.panels,
    )


def gathered(parts: Sequence[Traits], holders: Holders) -> Traits:
    """Return the traits of columns that are spread over processes, from those of each process.

    There are no panels: the columns of a process need not be neighbours in the whole matrix.
    """
    return replace(side_by_side([replace(part, panels=None) for part in parts], [1] * len(parts)), holders=holders)
