"""The classes of an experiment: settings, contenders, tables and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..common.arrays import Vector

PLAIN = {"restarts": False, "working_set": False, "finish": False}
"""Options of "sp-bcd" that leave the bare iteration."""

RESTARTED = {"working_set": False, "finish": False}
"""Options of "sp-bcd" that leave the iteration, its restarts and the adaptive primal weight."""


@dataclass(frozen=True)
class Settings:
    """How an experiment is run.

    Attributes
    ----------
    quick : small sizes and budgets, so that everything takes minutes.
    runs : number of runs, each with another seed for the data and for the draws.
    data : folder with real data; None to simulate them.
    """

    quick: bool = False
    runs: int = 10
    data: Path | None = None


@dataclass(frozen=True)
class Contender:
    """A method in a table.

    Attributes
    ----------
    label : the name in the table, the same as in the paper if it is there.
    method, options : arguments of ``solve``.
    blocks : K, if the method draws blocks.
    search : an option and the values to try, of which the best is used: the paper's "post-hoc optimal".
    paper : the figures of the paper, by column.
    """

    label: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    blocks: int | None = None
    search: tuple[str, Sequence[float]] | None = None
    paper: Mapping[str, float] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """Return the keywords of ``solve``."""
        return dict(self.options) | ({} if self.blocks is None else {"blocks_per_iteration": self.blocks})


@dataclass(frozen=True)
class Runs:
    """The values of one figure in several runs."""

    values: Sequence[float]


@dataclass(frozen=True)
class Table:
    """Rows of text and numbers under headings; ``note`` explains them."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""


@dataclass(frozen=True)
class Curve:
    """A line of a picture."""

    label: str
    x: Vector
    y: Vector


@dataclass(frozen=True)
class Panel:
    """Curves on common axes, of which the vertical one is logarithmic."""

    title: str
    across: str
    up: str
    curves: Sequence[Curve]


@dataclass(frozen=True)
class Picture:
    """Panels in rows."""

    name: str
    panels: Sequence[Sequence[Panel]]


@dataclass(frozen=True)
class Outcome:
    """The results of an experiment."""

    tables: Sequence[Table]
    pictures: Sequence[Picture] = ()


Say = Callable[[str], None]
Experiment = Callable[[Settings, Say], Outcome]
