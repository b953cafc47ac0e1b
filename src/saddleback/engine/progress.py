"""A progress bar over the certificates of a run. Rich is imported only if a bar is requested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np

from ..common.bars import bar
from ..result import Certificate

Show = Callable[[float, Certificate], None]


def progress_bar(wanted: bool, tol: float) -> AbstractContextManager[Show]:
    """Return a context with a function that shows how many digits of the tolerance are certified."""
    return _bar(tol) if wanted else nullcontext(lambda passes, certificate: None)


@contextmanager
def _bar(tol: float) -> Iterator[Show]:
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("certified {task.fields[error]:.1e}"),
        BarColumn(),
        TextColumn("objective {task.fields[objective]:.8g}  {task.fields[passes]:.5g} passes"),
        TimeElapsedColumn(),
    )
    digits = -np.log10(tol) if tol > 0 else 16.0
    with bar(*columns) as shown:
        task = shown.add_task("", total=digits, error=np.inf, objective=np.nan, passes=0.0)

        def show(passes: float, certificate: Certificate) -> None:
            done = float(np.clip(-np.log10(max(certificate.error, 1e-300)), 0.0, digits))
            shown.update(
                task, completed=done, error=certificate.error, objective=certificate.primal_value, passes=passes
            )

        yield show
