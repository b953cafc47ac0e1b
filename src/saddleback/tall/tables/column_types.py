"""The types of columns that can be used, by the names that Arrow gives them."""

from __future__ import annotations

from typing import Any

NARROW = frozenset({"bool", "int8", "uint8", "int16", "uint16", "halffloat", "float"})
"""Types whose values are exact as float32."""

NUMBERS = NARROW | {"int32", "uint32", "int64", "uint64", "double"}
"""Types of columns of numbers."""

TEXT = frozenset({"string", "large_string", "string_view"})
"""Types of columns of text."""

LABELS = TEXT | NUMBERS - {"halffloat", "float", "double"}
"""Types of the values that a dictionary may have."""


def is_number(type_: Any) -> bool:
    """Return whether a column has numbers."""
    return str(type_) in NUMBERS


def is_text(type_: Any) -> bool:
    """Return whether a column has text that is not encoded."""
    return str(type_) in TEXT


def is_category(type_: Any) -> bool:
    """Return whether a column has categories: text, or codes with a dictionary."""
    return is_text(type_) or (str(type_).startswith("dictionary<") and str(type_.value_type) in LABELS)


def comparable(type_: Any) -> str:
    """Return a name that is equal for types which may stand for each other in different files."""
    if not is_category(type_):
        return str(type_)
    values = type_ if is_text(type_) else type_.value_type
    return "text" if is_text(values) else f"categories of {values}"
