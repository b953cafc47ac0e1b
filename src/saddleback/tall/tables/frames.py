"""Frames of other libraries as tables of Arrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa


def as_table(frame: Any, names: Sequence[str] | None = None) -> pa.Table:
    """Return a frame as a table that has at least some columns, by default all; they are shared where possible."""
    kind = type(frame).__module__.partition(".")[0]
    return CONVERSIONS.get(kind, _from_arrow)(frame, names)


def _from_pandas(frame: Any, names: Sequence[str] | None) -> pa.Table:
    """Convert the named columns only, since columns of Python objects take long; NaN becomes a missing value."""
    known = names is not None and set(names) <= set(frame.columns)  # otherwise whoever chooses columns will raise
    some = list(dict.fromkeys(names or ())) if known else None
    try:
        return pa.Table.from_pandas(frame, columns=some, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise TypeError(f"data: {'; '.join(map(str, error.args))}: expected one type in a column; cast it") from None


def _from_polars(frame: Any, _: Sequence[str] | None) -> pa.Table:
    return frame.to_arrow()


def _from_arrow(data: Any, _: Sequence[str] | None) -> pa.Table:
    return data if isinstance(data, pa.Table) else pa.table(data)


CONVERSIONS: dict[str, Callable[[Any, Sequence[str] | None], pa.Table]] = {
    "pandas": _from_pandas,
    "polars": _from_polars,
}
"""How a frame becomes a table, by the package that it comes from; others offer their columns to Arrow."""


def with_column(table: pa.Table, argument: str, values: Any) -> tuple[pa.Table, Any]:
    """Return a table that has some values in a column, and its name, which they may be already."""
    if values is None or isinstance(values, str):
        return table, values
    array = np.asarray(values)
    if array.shape != (table.num_rows,):
        raise ValueError(
            f"{argument} has the shape {array.shape}: expected the name of a column, or one value for each of the "
            f"{table.num_rows} rows"
        )
    name = argument
    while name in table.column_names:
        name += "_"
    return table.append_column(name, pa.array(array)), name
