"""Tables in CSV files, as features and targets in memory: "city=Paris" is 1 where city is Paris."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from ..common.cached import cached_property
from ..common.checks import distinct_names, in_range

MISSING = frozenset(
    [
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
        "N/A",
        "NA",
        "NULL",
        "NaN",
        "None",
        "n/a",
        "nan",
        "null",
        "",
    ]
)
"""Texts that stand for a missing value, the same as in pandas."""

TRUTH = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}

PUNCTUATED = re.compile(r"[+-]?(\d+,\d+|\d{1,3}([.,' _\u00a0\u202f]\d{3})+([.,]\d+)?)")
"""Numbers with a decimal comma, or with separators of thousands."""

LEAST_BYTES = 2000
"""Least bytes per column of a file that Arrow reads faster than ``csv``, which needs less time per column."""

WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
"""Class labels that are integers; longer ones are texts."""

MOSTLY = 0.5
"""Share of numbers from which on other texts in a column are taken for mistakes, or for missing values."""

MOST_CATEGORIES = 100
"""Most different texts in a column that may be half as many as the rows: more are names or keys, not categories."""


@dataclass(frozen=True)
class Column:
    """A column: numbers, or texts with the ``categories`` that occur, in order."""

    name: str
    values: NDArray[Any]
    categories: Sequence[str] = ()

    def feature_names(self) -> list[str]:
        """Return the names of its features: its own, or one per category."""
        return [f"{self.name}={label}" for label in self.categories] or [self.name]

    def features(self) -> dict[str, NDArray[np.float64]]:
        """Return its features by name: itself, or one of zeros and ones per category."""
        if not self.categories:
            return {self.name: self.values.astype(np.float64)}
        found = ((self.values == label).astype(np.float64) for label in self.categories)
        return dict(zip(self.feature_names(), found, strict=True))

    def described(self) -> str:
        """Return what is in the column, for a reader."""
        if self.categories:
            return f"{len(self.categories)} categories: {', '.join(self.categories[:8])}" + ", ..." * (
                len(self.categories) > 8
            )
        return f"numbers from {self.values.min():.6g} to {self.values.max():.6g}"


@dataclass(frozen=True)
class CsvTable:
    """The columns of a file that a fit uses.

    Attributes
    ----------
    path : the file.
    separator : the character between values.
    indexed : whether the first column has no name, and is left out as an index of the rows.
    target : the column of the target.
    weights : the column of weights, or None.
    columns : the other columns, numbers before categories.
    """

    path: Path
    separator: str
    indexed: bool
    target: Column
    weights: Column | None
    columns: Sequence[Column]

    @property
    def features(self) -> dict[str, NDArray[np.float64]]:
        """The columns of X by name."""
        return {name: values for column in self.columns for name, values in column.features().items()}

    def check_names(self) -> None:
        """Raise if two features have the same name."""
        distinct_names(str(self.path), (name for column in self.columns for name in column.feature_names()))


def read_csv(
    path: Path,
    target: str,
    weights: str | None,
    columns: Sequence[str] | None,
    classes: bool,
    categories: Sequence[str],
) -> CsvTable:
    """Return a table from a file with a line of names.

    Parameters
    ----------
    path : the file.
    target, weights : names of columns.
    columns : names of the columns to use, by default all others.
    classes : whether the target has classes, which may be texts.
    categories : names of columns whose numbers are categories.
    """
    names, written, separator = _read(path)
    indexed = names[0] == ""
    known = dict.fromkeys(names[1:] if indexed else names)
    if len(set(names)) < len(names) or "" in known:
        raise ValueError(f"{path}: the first line is {', '.join(map(repr, names[:20]))}: expected different names")
    others = [name for name in known if name not in (target, weights)]
    used = dict.fromkeys(others if columns is None else columns)
    for option, name in [("target", target), ("weights", weights), *(("column", name) for name in used)]:
        if name is not None and name not in known:
            _unknown(option, name, list(known))
    for name in categories:
        if name not in used:
            _unknown("category", name, list(used))
    wanted = Counter(name for name in (target, weights, *(others if columns is None else columns)) if name is not None)
    twice = sorted(name for name, count in wanted.items() if count > 1)
    if twice:
        raise ValueError(
            f"{path}: column {twice[0]!r} is given twice: expected different columns for --target, --weights and each "
            "--column"
        )
    by_name = dict(zip(names, written, strict=True))
    _check_missing(path, {name: by_name[name] for name in wanted})
    own = [_column(path, name, by_name[name], name in categories) for name in used]
    if not own:
        raise ValueError(f"{path} has no columns besides the target: expected one or more")
    table = CsvTable(
        path,
        separator,
        indexed,
        _target(path, target, by_name[target], classes),
        None if weights is None else _numbers(path, weights, by_name[weights]),
        [column for kind in (False, True) for column in own if bool(column.categories) is kind],
    )
    table.check_names()
    return table


@dataclass(frozen=True)
class Written:
    """A column as it is written in a file.

    Attributes
    ----------
    column : the texts, in a list or an array of Arrow.
    """

    column: Any

    @cached_property
    def texts(self) -> list[str]:
        """The texts."""
        found: list[str] = self.column if isinstance(self.column, list) else self.column.to_pylist()
        return found

    @cached_property
    def numbers(self) -> Sequence[float | None]:
        """The numbers; None where a text is none."""
        return [_number(text) for text in self.texts]

    @cached_property
    def plain(self) -> NDArray[np.float64] | None:
        """The numbers if all texts are finite ones; otherwise None."""
        found = None if isinstance(self.column, list) else _cast(self.column)
        if found is None and None not in self.numbers:
            found = np.array(self.numbers, dtype=np.float64)
        return found if found is not None and np.all(np.isfinite(found)) else None


def _cast(column: Any) -> NDArray[np.float64] | None:
    """Return an array of Arrow as numbers, each as ``float`` reads it; None if Arrow refuses one of them."""
    import pyarrow as pa

    try:
        return np.asarray(column.cast(pa.float64()).to_numpy())
    except pa.ArrowInvalid:
        return None


def _read(path: Path) -> tuple[list[str], list[Written], str]:
    """Return the names, the columns and the separator of a file.

    Arrow reads it if it is installed and the file has no mistakes, since that is ten times as fast. ``csv`` says what
    the mistakes are, and both have the same texts (tests/test_fit_csv.py).
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            head = stream.readline()
            separator = max(",;\t", key=head.count)
            stream.seek(0)
            rows = _rows(path, stream, separator)
            names = next(rows, None)
            if names is None:
                raise ValueError(f"{path} is empty: expected a line of names, and rows below it")
            written = _by_arrow(path, separator, len(names))
            if written is None:
                written = _by_column(path, len(names), rows)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text: save it as CSV with this encoding") from None
    return names, written, separator


def _rows(path: Path, stream: TextIO, separator: str) -> Iterator[list[str]]:
    """Yield the lines that are not empty."""
    reader, line = csv.reader(stream, delimiter=separator), 0
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise ValueError(
                f"{path} cannot be read from line {line + 1} on ({error}): expected CSV; is a quotation mark there not "
                "closed?"
            ) from None
        if row is None:
            return
        line = reader.line_num
        if row:
            yield row


def _by_column(path: Path, width: int, rows: Iterator[list[str]]) -> list[Written]:
    """Return the columns of rows, or raise if a row has too many or too few values."""
    found: list[list[str]] = []
    for row in rows:
        if len(row) != width:
            raise ValueError(
                f"{path} has {len(row)} values in row {len(found) + 1} below the names: expected {width}, as many as "
                "there are names"
            )
        found.append(row)
    if not found:
        raise ValueError(f"{path} has no rows below the line of names: expected at least one")
    return [Written(list(column)) for column in zip(*found, strict=True)]


def _by_arrow(path: Path, separator: str, width: int) -> list[Written] | None:
    """Return the columns as Arrow reads them; None if it is not installed or does not pay, or finds a mistake."""
    if path.stat().st_size < LEAST_BYTES * width:
        return None
    try:
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import csv as by_arrow
    except ImportError:
        return None
    convert = by_arrow.ConvertOptions(
        column_types={f"f{place}": pa.string() for place in range(width)}, strings_can_be_null=False
    )
    try:
        with path.open("rb") as stream:
            table = by_arrow.read_csv(
                stream,
                read_options=by_arrow.ReadOptions(autogenerate_column_names=True),
                parse_options=by_arrow.ParseOptions(delimiter=separator, newlines_in_values=True),
                convert_options=convert,
            )
    except pa.ArrowInvalid:
        return None
    columns = [column.slice(1) for column in table.columns]
    whole = table.num_rows > 1 and table.num_columns == width
    if not whole or any(pc.max(pc.utf8_length(column)).as_py() > csv.field_size_limit() for column in columns):
        return None
    return [Written(column) for column in columns]


def _unknown(option: str, name: str, known: Sequence[str]) -> None:
    close = get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise ValueError(f"--{option} {name} is no column{hint}: expected one of {', '.join(known[:20])}")


def _check_missing(path: Path, columns: dict[str, Written]) -> None:
    """Raise if values are missing; say where, and what to do."""
    doubtful = {name: column.texts for name, column in columns.items() if column.plain is None}
    gaps = {name: [text.strip() in MISSING for text in texts] for name, texts in doubtful.items()}
    counts = {name: sum(column) for name, column in gaps.items() if any(column)}
    if counts:
        of_rows = [any(row) for row in zip(*gaps.values(), strict=True)]
        told = ", ".join(f"{name} ({count})" for name, count in counts.items())
        raise ValueError(
            f"{path} has missing values in {sum(of_rows)} of {len(of_rows)} rows, by column: {told}. Remove "
            "these rows, fill them in, or choose other columns with --column. In Python: "
            "table.dropna().to_csv('complete.csv', index=False)"
        )


def _column(path: Path, name: str, written: Written, as_categories: bool) -> Column:
    """Return a column of features: numbers if all texts are numbers, and otherwise categories."""
    if not as_categories and (written.plain is not None or None not in written.numbers):
        return _numbers(path, name, written)
    texts = written.texts
    labels = sorted(set(texts))
    if not as_categories:
        _check_punctuation(path, name, written)
        odd = [text for text, value in zip(texts, written.numbers, strict=True) if value is None]
        if len(odd) < (1.0 - MOSTLY) * len(texts):
            raise ValueError(
                f"{path}: column {name!r} has {len(texts) - len(odd)} numbers and {len(odd)} other values, such as "
                f"{odd[0]!r}. If these are missing values, remove the rows or fill them in; if all are categories, "
                f"pass --category {name}"
            )
    if len(labels) > MOST_CATEGORIES and len(labels) > len(texts) / 2:
        raise ValueError(
            f"{path}: column {name!r} has {len(labels)} different texts in {len(texts)} rows, such as {texts[0]!r}, "
            "which are names rather than categories: choose the other columns with --column"
        )
    return Column(name, np.array(texts, dtype=object), labels)


def _check_punctuation(path: Path, name: str, written: Written) -> None:
    """Raise if a column has numbers with a decimal comma or with separators of thousands, and no other texts."""
    odd = [text for text, value in zip(written.texts, written.numbers, strict=True) if value is None]
    if odd and all(PUNCTUATED.fullmatch(text.strip()) for text in odd):
        raise ValueError(
            f"{path}: column {name!r} has {odd[0]!r}, a number with a decimal comma or separators of thousands: "
            "expected numbers such as 1234.5. In Python: pd.read_csv(path, sep=';', decimal=',', thousands='.')"
            ".to_csv('plain.csv', index=False), with the separators of the file"
        )


def _number(text: str) -> float | None:
    """Return a number as pandas reads it: of digits of ASCII, without underscores."""
    if text in TRUTH:
        return TRUTH[text]
    if "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _numbers(path: Path, name: str, written: Written, otherwise: str = "") -> Column:
    """Return a column of numbers, or raise; ``otherwise`` says what to do with texts."""
    if written.plain is not None:
        return Column(name, in_range(f"{path}: column {name!r}", written.plain))
    _check_punctuation(path, name, written)
    odd, value = next(
        pair for pair in zip(written.texts, written.numbers, strict=True) if pair[1] is None or not np.isfinite(pair[1])
    )
    if value is None:
        raise ValueError(f"{path}: column {name!r} has the text {odd!r}: expected numbers{otherwise}")
    raise ValueError(f"{path}: column {name!r} has the value {odd}: expected finite numbers")


def _target(path: Path, name: str, written: Written, classes: bool) -> Column:
    if not classes:
        return _numbers(path, name, written, "; for classes use a loss of a classifier, such as --loss logistic")
    texts = written.texts
    whole = all(WHOLE.fullmatch(text.strip()) for text in texts)
    return Column(name, np.array([int(text) for text in texts]) if whole else np.array(texts, dtype=object))
