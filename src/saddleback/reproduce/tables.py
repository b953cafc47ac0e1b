"""Tables on the terminal, as CSV and as Markdown."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from ..common.outputs import replacing_text
from .experiment import Runs, Table
from .trace import Optimum

WIDE = 180


def optima_table(name: str, title: str, found: Mapping[str, Optimum], unit: float = 1.0) -> Table:
    """Return the optima that objectives are compared with; ``unit`` divides them."""
    rows = [[of, f"{each.value / unit:.10g}", each.error, each.passes, each.seconds] for of, each in found.items()]
    note = "By the default method on one core; passes and seconds include certificates."
    return Table(f"{name}-optima", f"{title}: optima", ("problem", "optimum", "error", "passes", "seconds"), rows, note)


def text(value: Any) -> str:
    """Return an entry of a table as short text: a few digits of a number, or mean and standard deviation of several."""
    match value:
        case None:
            return "-"
        case Runs(values=[only]):
            return text(only)
        case Runs(values=values):
            mean = fmean(values)
            return text(mean) if not math.isfinite(mean) else f"{text(mean)} ± {text(stdev(values))}"
        case float() | int():
            return _number(value)
    return str(value)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "∞"
    if value == int(value) or 100 <= abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.3g}" if 0.01 <= abs(value) < 100 else f"{value:.1e}"


def _full(value: Any) -> str:
    """Return an entry with all its digits; several runs are separated by spaces."""
    return " ".join(map(str, value.values)) if isinstance(value, Runs) else "" if value is None else str(value)


def write_csv(table: Table, folder: Path) -> Path:
    """Write a table with all digits of its numbers, and return the path."""
    path = folder / f"{table.name}.csv"
    with replacing_text(path) as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        writer.writerows([_full(entry) for entry in row] for row in table.rows)
    return path


def markdown(table: Table) -> str:
    """Return a table as Markdown, with its title."""
    lines = [" | ".join(table.columns), " | ".join("---" for _ in table.columns)]
    lines += [" | ".join(text(entry) for entry in row) for row in table.rows]
    body = "\n".join(f"| {line} |" for line in lines)
    return "\n\n".join(part for part in (f"**{table.title}**", body, table.note) if part)


def print_table(table: Table) -> None:
    """Print a table on the terminal, in several parts if it is too wide."""
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console()
    if not console.is_terminal:  # a file or a pipe has no width to keep to
        console = Console(width=WIDE)
    parts = column_parts(table, console.width)
    for number, part in enumerate(parts, 1):
        counted = f" ({number} of {len(parts)})" if len(parts) > 1 else ""
        shown = RichTable(title=table.title + counted, caption=table.note if number == len(parts) else None)
        for column in part:
            width = _longest(table, column)
            shown.add_column(
                table.columns[column], justify="right" if column else "left", min_width=width, overflow="fold"
            )
        for row in table.rows:
            shown.add_row(*(text(row[column]) for column in part))
        console.print(shown)


def column_parts(table: Table, width: int) -> list[list[int]]:
    """Return which columns to print together, so that no entry and no word of a heading is cut.

    Each part begins with the columns that identify the rows. The width of a column is its longest entry or word, plus
    three characters for the frame.
    """

    def needed(column: int) -> int:
        return 3 + _longest(table, column)

    keys = list(range(_telling(table)))
    room = width - 1 - sum(map(needed, keys))
    parts, left = [list(keys)], room
    for column in range(len(keys), len(table.columns)):
        if needed(column) > left and len(parts[-1]) > len(keys):
            parts.append(list(keys))
            left = room
        parts[-1].append(column)
        left -= needed(column)
    return parts


def _longest(table: Table, column: int) -> int:
    """Return the length of the longest entry of a column, or of the longest word of its heading."""
    return max(map(len, [*table.columns[column].split(), *(text(row[column]) for row in table.rows)]))


def _telling(table: Table) -> int:
    """Return how many of the first columns identify the rows."""
    for count in range(1, len(table.columns)):
        if len({tuple(text(entry) for entry in row[:count]) for row in table.rows}) == len(table.rows):
            return count
    return 1
