"""Check the docstrings of the public names with numpydoc: ``python tools/docstrings.py`` (part of ``make lint``).

Functions and classes that users call have to document every parameter with its type. Attributes need a type and a
sentence. Methods of classes need a summary, and whatever sections they have must be right.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import Enum
from inspect import getmembers, isclass, isfunction
from typing import Any

from numpydoc.docscrape import NumpyDocString, get_doc_object
from numpydoc.validate import validate

import saddleback
import saddleback.datasets
import saddleback.estimators
import saddleback.estimators.inference
import saddleback.methods

WORDING = {
    "GL03",  # two blank lines
    "GL07",  # order of the sections
    "GL08",  # no docstring
    "SS01",  # no summary
    "SS03",  # the summary does not end with a period
    "PR02",  # documents a parameter that does not exist
    "PR03",  # order of the parameters
    "PR04",  # no type
    "PR05",  # a type ends with a period
    "PR07",  # no description
    "PR09",  # a description does not end with a period
    "PR10",  # no space before the colon
    "RT03",  # a return value without a description
    "RT05",  # its description does not end with a period
}
COMPLETE = WORDING | {"PR01"}  # a parameter is not documented

READ_ONLY = {"Bounds", "Certificate", "GroupHingeData", "History", "Info", "Judgement", "LassoData", "Path"}
READ_ONLY |= {"RayCertificate", "Report", "Result", "RobustPCAData", "Start", "State"}
READ_ONLY |= {"Bootstrap", "QuantileInference", "QuantileProcess", "Summary"}
"""Classes that users read but do not make: they have attributes instead of parameters."""

INTERNAL = {f"saddleback.methods.{name}" for name in ("Checked", "Kept", "diverged", "drawn_blocks")}
"""Names that packages export to each other, not to users."""


def public_objects() -> Iterator[tuple[str, Any]]:
    """Yield the public functions and classes with their import names."""
    methods = sys.modules["saddleback.methods"]  # saddleback.methods is the function that lists them
    inference = saddleback.estimators.inference
    for package in (saddleback, saddleback.estimators, inference, saddleback.datasets, methods):
        for name in package.__all__:
            if f"{package.__name__}.{name}" not in INTERNAL:
                yield f"{package.__name__}.{name}", getattr(package, name)


def complaints(name: str, thing: Any) -> Iterator[str]:
    """Yield the defects of the docstring of a public object and of the docstrings of its methods."""
    is_read_only = name.split(".")[-1] in READ_ONLY or (isclass(thing) and issubclass(thing, (Enum, Exception)))
    yield from _errors(name, thing, WORDING if is_read_only else COMPLETE)
    if isclass(thing):
        for entry in NumpyDocString(thing.__doc__ or "")["Attributes"]:
            if not entry.type or not entry.desc or not " ".join(entry.desc).rstrip().endswith("."):
                yield f"{name}: attribute {entry.name}: expected 'name : type' and a sentence on the next line"
        for method, function in getmembers(thing, isfunction):
            is_ours = function.__module__.startswith("saddleback")
            if is_ours and not method.startswith("_") and function.__doc__:  # without: inherited from a contract
                yield from _errors(f"{name}.{method}", function, WORDING)


def _errors(name: str, thing: Any, checks: set[str]) -> Iterator[str]:
    for code, message in validate(get_doc_object(thing))["errors"]:
        if code in checks:
            yield f"{name}: {code} {message}"


def main() -> int:
    """Print every complaint and return the exit status: 1 if there are any, else 0."""
    found = [line for name, thing in public_objects() for line in complaints(name, thing)]
    print("\n".join([*found, f"docstrings: {len(found)} complaints"]))
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main())
