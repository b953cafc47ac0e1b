"""Tables in CSV files, as features and targets in memory: "city=Paris" is 1 where city is Paris."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..common.checks import distinct_names

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

PUNCTUATED = re.compile(r"[+-]?(\d+,\d+|\d{1,3}([.,' \u00a0\u202f]\d{3})+([.,]\d+)?)")
"""Numbers with a decimal comma, or with separators of thousands."""

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
    names, rows, separator = _read(path)
    indexed = names[0] == ""
    known = names[1:] if indexed else names
    if len(set(names)) < len(names) or "" in known:
        raise ValueError(f"{path}: the first line is {names}: expected different names of columns")
    others = [name for name in known if name not in (target, weights)]
    used = others if columns is None else list(columns)
    for option, name in [("target", target), ("weights", weights), *(("column", name) for name in used)]:
        if name is not None and name not in known:
            _unknown(option, name, known)
    for name in categories:
        if name not in used:
            _unknown("category", name, used)
    wanted = [name for name in (target, weights, *used) if name is not None]
    twice = sorted({name for name in wanted if wanted.count(name) > 1})
    if twice:
        raise ValueError(
            f"{path}: column {twice[0]!r} is given twice: expected different columns for --target, --weights and each "
            "--column"
        )
    texts = {name: [row[names.index(name)] for row in rows] for name in wanted}
    _check_missing(path, texts)
    own = [_column(path, name, texts[name], name in categories) for name in used]
    if not own:
        raise ValueError(f"{path} has no columns besides the target: expected one or more")
    table = CsvTable(
        path,
        separator,
        indexed,
        _target(path, target, texts[target], classes),
        None if weights is None else _numbers(path, weights, texts[weights]),
        [column for kind in (False, True) for column in own if bool(column.categories) is kind],
    )
    table.check_names()
    return table


def _read(path: Path) -> tuple[list[str], list[list[str]], str]:
    """Return the names, the rows and the separator of a file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            head = stream.readline()
            separator = max(",;\t", key=head.count)
            stream.seek(0)
            names, *rows = (row for row in csv.reader(stream, delimiter=separator) if row)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text: save it as CSV with this encoding") from None
    except ValueError:
        raise ValueError(f"{path} is empty: expected a line of names, and rows below it") from None
    if not rows:
        raise ValueError(f"{path} has no rows below the line of names: expected at least one")
    for place, row in enumerate(rows):
        if len(row) != len(names):
            raise ValueError(
                f"{path} has {len(row)} values in row {place + 1} below the names: expected {len(names)}, as many as "
                "there are names"
            )
    return names, rows, separator


def _unknown(option: str, name: str, known: Sequence[str]) -> None:
    close = get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise ValueError(f"--{option} {name} is no column{hint}: expected one of {', '.join(known[:20])}")


def _check_missing(path: Path, texts: dict[str, list[str]]) -> None:
    """Raise if values are missing; say where, and what to do."""
    gaps = {name: [text.strip() in MISSING for text in column] for name, column in texts.items()}
    counts = {name: sum(column) for name, column in gaps.items() if any(column)}
    if counts:
        rows = sum(map(any, zip(*gaps.values(), strict=True)))
        told = ", ".join(f"{name} ({count})" for name, count in counts.items())
        raise ValueError(
            f"{path} has missing values in {rows} of {len(next(iter(texts.values())))} rows, by column: {told}. Remove "
            "these rows, fill them in, or choose other columns with --column. In Python: "
            "table.dropna().to_csv('complete.csv', index=False)"
        )


def _column(path: Path, name: str, texts: list[str], as_categories: bool) -> Column:
    """Return a column of features: numbers if all texts are numbers, and otherwise categories."""
    parsed = [None if as_categories else _number(text) for text in texts]
    found = sum(value is not None for value in parsed)
    if found == len(texts):
        return _numbers(path, name, texts)
    if not as_categories:
        _check_punctuation(path, name, texts)
    labels = sorted(set(texts))
    odd = next(text for text, value in zip(texts, parsed, strict=True) if value is None)
    if found > MOSTLY * len(texts):
        raise ValueError(
            f"{path}: column {name!r} has {found} numbers and {len(texts) - found} other values, such as {odd!r}. If "
            f"these are missing values, remove the rows or fill them in; if all are categories, pass --category {name}"
        )
    if len(labels) > MOST_CATEGORIES and len(labels) > len(texts) / 2:
        raise ValueError(
            f"{path}: column {name!r} has {len(labels)} different texts in {len(texts)} rows, such as {odd!r}, which "
            "are names rather than categories: choose the other columns with --column"
        )
    return Column(name, np.array(texts, dtype=object), labels)


def _check_punctuation(path: Path, name: str, texts: list[str]) -> None:
    """Raise if a column has numbers with a decimal comma or with separators of thousands, and no other texts."""
    odd = [text for text in texts if _number(text) is None]
    if all(PUNCTUATED.fullmatch(text.strip()) for text in odd):
        raise ValueError(
            f"{path}: column {name!r} has {odd[0]!r}, a number with a decimal comma or separators of thousands: "
            "expected numbers such as 1234.5. In Python: pd.read_csv(path, sep=';', decimal=',', thousands='.')"
            ".to_csv('plain.csv', index=False), with the separators of the file"
        )


def _number(text: str) -> float | None:
    if text in TRUTH:
        return TRUTH[text]
    try:
        return float(text)
    except ValueError:
        return None


def _numbers(path: Path, name: str, texts: list[str], otherwise: str = "") -> Column:
    """Return a column of numbers, or raise; ``otherwise`` says what to do with texts."""
    parsed = [_number(text) for text in texts]
    if None in parsed:
        _check_punctuation(path, name, texts)
    for text, value in zip(texts, parsed, strict=True):
        if value is None:
            raise ValueError(f"{path}: column {name!r} has the text {text!r}: expected numbers{otherwise}")
        if not np.isfinite(value):
            raise ValueError(f"{path}: column {name!r} has the value {text}: expected finite numbers")
    return Column(name, np.array(parsed, dtype=np.float64))


def _target(path: Path, name: str, texts: list[str], classes: bool) -> Column:
    if not classes:
        return _numbers(path, name, texts, "; for classes use a loss of a classifier, such as --loss logistic")
    whole = all(text.strip().lstrip("+-").isdecimal() for text in texts)
    return Column(name, np.array([int(text) for text in texts]) if whole else np.array(texts, dtype=object))
