"""Progress bars of Rich in a terminal and in a notebook. Rich is imported only if a bar is requested."""

from __future__ import annotations

from typing import Any

BETWEEN = 0.1
"""Seconds between two pictures of a bar in a notebook."""


def bar(*columns: Any) -> Any:
    """Return a bar with some columns, which is a context: a ``rich.progress.Progress`` on stderr or in a notebook."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    return _in_notebook(columns) if console.is_jupyter else Progress(*columns, console=console)


def _in_notebook(columns: Any) -> Any:
    """Return a bar that is one output of a cell and changes in place.

    Rich itself would need ipywidgets for that, and shows no bar without them.
    """
    from io import StringIO
    from time import monotonic

    from IPython.display import HTML, display
    from rich.console import Console
    from rich.progress import Progress

    class InNotebook(Progress):
        def __init__(self) -> None:
            unseen = Console(file=StringIO(), force_jupyter=False)
            super().__init__(*columns, auto_refresh=False, console=unseen)
            self._output: Any = None
            self._drawn = -BETWEEN

        def update(self, *given: Any, **changes: Any) -> None:
            super().update(*given, **changes)
            self._draw_if_due()

        def advance(self, *given: Any, **changes: Any) -> None:
            super().advance(*given, **changes)
            self._draw_if_due()

        def stop(self) -> None:
            super().stop()
            self._draw()

        def _draw_if_due(self) -> None:
            if monotonic() - self._drawn >= BETWEEN:
                self._draw()

        def _draw(self) -> None:
            with self._lock:
                self._drawn = monotonic()
                page = Console(file=StringIO(), record=True, width=100, force_jupyter=False)
                page.print(self.get_renderable())
                text = page.export_html(inline_styles=True, code_format='<pre style="margin:0">{code}</pre>')
                if self._output is None:
                    self._output = display(HTML(text), display_id=True)
                else:
                    self._output.update(HTML(text))

    return InNotebook()
