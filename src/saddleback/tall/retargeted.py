"""Rows whose targets and weights are computed from those of other rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from ..common.arrays import Vector
from .rows import Chunk, Rows, S, Visit
from .survey import Survey

Change = Callable[[NDArray[Any], Vector | None], tuple[NDArray[Any], Vector | None]]
"""New targets and weights from the old ones. It has to be possible to pickle it."""


@dataclass(frozen=True)
class _Changed:
    """A visit of rows with other targets and weights."""

    visit: Callable[[Chunk], Any]
    change: Change

    def __call__(self, chunk: Chunk) -> Any:
        return self.visit(_changed(chunk, self.change))


def _changed(chunk: Chunk, change: Change) -> Chunk:
    target, weight = change(chunk.target, chunk.weight)
    return replace(chunk, target=target, weight=weight)


class Retargeted(Rows):
    """Rows with other targets and weights, read wherever the given rows are.

    Parameters
    ----------
    rows : Rows
        The rows.
    change : callable
        Returns new targets and weights from the old ones.
    """

    def __init__(self, rows: Rows, change: Change) -> None:
        self.rows, self.change = rows, change
        self.names, self.lengths = rows.names, rows.lengths
        self.named, self.checked = rows.named, rows.checked
        self.together, self.local = rows.together, rows.local

    def chunk(self, number: int) -> Chunk:
        return _changed(self.rows.chunk(number), self.change)

    def place(self, number: int, row: int) -> str:
        return self.rows.place(number, row)

    def survey(self, visit: Any) -> Any:
        found: Survey = self.rows.survey(replace(visit, labelled=True))
        return replace(found, sample=[_changed(chunk, self.change) for chunk in found.sample])

    def read(self, visit: Visit[S]) -> S:
        found: S = self.rows.read(_Changed(visit, self.change))
        return found
