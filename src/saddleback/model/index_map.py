"""The rows and columns of a problem that a subproblem contains."""

from __future__ import annotations

from typing import NamedTuple

from ..common.arrays import Indices
from ..common.rebuildable import stored


@stored
class IndexMap(NamedTuple):
    """The shape of a problem, and the rows and columns of it that a subproblem contains."""

    shape: tuple[int, int]
    rows: Indices
    columns: Indices
