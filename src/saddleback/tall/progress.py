"""A progress bar over the rows of each reading. Rich is imported only if a bar is requested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..common.bars import bar
from ..result import Certificate
from .rows import Chunk, S, Visit


class Silent:
    """What is shown if no bar is requested: nothing."""

    def counted(self, visit: Visit[S], reading: int) -> Visit[S]:
        """Return a visit that shows how many rows of a reading were visited."""
        return visit

    def certified(self, certificate: Certificate) -> None:
        """Show the certificate after a reading."""


@dataclass(frozen=True)
class Counted:
    """A visit that tells how many rows it has visited."""

    visit: Callable[[Chunk], Any]
    tell: Callable[[int], None]

    def __call__(self, chunk: Chunk) -> Any:
        """Return the result of the visit."""
        result = self.visit(chunk)
        self.tell(len(chunk))
        return result


class Bar(Silent):
    """A bar that fills during each reading."""

    def __init__(self, bar: Any, rows: int) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=rows, reading=1, error=np.inf)

    def counted(self, visit: Visit[S], reading: int) -> Visit[S]:
        """Return a visit that moves the bar, which starts again."""
        self._bar.reset(self._task)
        self._bar.update(self._task, reading=reading)
        return Counted(visit, lambda rows: self._bar.advance(self._task, rows))

    def certified(self, certificate: Certificate) -> None:
        """Show the certificate after a reading."""
        self._bar.update(self._task, error=certificate.error)


def reading_bar(wanted: bool, rows: int) -> AbstractContextManager[Silent]:
    """Return a context with the bar, or with something that shows nothing."""
    return _bar(rows) if wanted else nullcontext(Silent())


@contextmanager
def _bar(rows: int) -> Iterator[Silent]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("reading {task.fields[reading]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows, certified {task.fields[error]:.1e}"),
        TimeElapsedColumn(),
    )
    with bar(*columns) as shown:
        yield Bar(shown, rows)
