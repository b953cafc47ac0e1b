"""A table of coefficients with what is known of the fit, as text, as HTML and as a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from textwrap import fill
from typing import Any

import numpy as np

MOST_ROWS = 60
"""Largest number of coefficients in a text or a page: of more, the largest ones that are not 0."""

WIDTH = 88
"""Characters in a line of a note."""


@dataclass(frozen=True, repr=False)
class Summary:
    """Coefficients and what is known of the fit.

    ``print`` shows it as text and a notebook as a table; ``to_frame`` returns a DataFrame.

    Attributes
    ----------
    title : str
        The name of the model.
    facts : dict
        Loss, penalty, number of samples, sparsity, status and certificate, as strings by their names.
    names : list of str
        One name per coefficient.
    columns : dict
        Arrays with one number or string per coefficient, by the name of the column.
    note : str
        A sentence on the standard errors, or why there are none.
    """

    title: str
    facts: Mapping[str, str]
    names: Sequence[str]
    columns: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def to_frame(self) -> Any:
        """Return all coefficients as a pandas DataFrame, with their names as its index."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame() needs pandas: pip install pandas") from None
        return pd.DataFrame(dict(self.columns), index=pd.Index(list(self.names), name="name"))

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        left = max(map(len, self.facts), default=0)
        lines = [self.title, *(f"{name:<{left}}  {value}" for name, value in self.facts.items()), ""]
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        rows = [
            "  ".join(
                [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
            )
            for row in cells
        ]
        lines += [rows[0], rule, *rows[1:], rule, *self._remarks()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        facts = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in self.facts.items()
        )
        head, *body = self._cells()
        titles = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        rows = "".join(
            f"<tr><th>{escape(row[0])}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in row[1:])}</tr>"
            for row in body
        )
        remarks = "".join(f"<p>{escape(line)}</p>" for line in self._remarks())
        return (
            f"<h4>{escape(self.title)}</h4><table>{facts}</table>"
            f"<table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>{remarks}"
        )

    def _shown(self) -> list[int]:
        """Return the coefficients to show, in their order."""
        count = len(self.names)
        if count <= MOST_ROWS:
            return list(range(count))
        sizes = np.abs(self.columns["coefficient"])
        largest = np.argsort(-sizes, kind="stable")[:MOST_ROWS]
        return [int(i) for i in np.sort(largest[sizes[largest] > 0])]

    def _cells(self) -> list[list[str]]:
        """Return the table as strings, the names of the columns first."""
        body = [[str(self.names[i]), *(_number(column[i]) for column in self.columns.values())] for i in self._shown()]
        return [["", *self.columns], *body]

    def _remarks(self) -> list[str]:
        """Return the lines below the table."""
        hidden = len(self.names) - len(self._shown())
        more = f"{hidden} further coefficients are not shown; to_frame() has all of them." if hidden else ""
        return [fill(text, WIDTH) for text in (more, self.note) if text]


def _number(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if np.isnan(value) else f"{value + 0.0:.5g}"
