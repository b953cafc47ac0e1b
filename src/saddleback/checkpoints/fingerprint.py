"""What tells one run from another: the sizes, functions and options of a problem, small enough to be compared."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..problem import Problem

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""What the name of an object of one's own says of where it lies in memory, which is another in every process."""

AGREES = 1e-9
"""Relative difference of sums over the entries of A that their order may explain."""


def fingerprint(problem: Problem, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a checkpoint is compared by, each part under the name that the user knows it by.

    A is told by its sums of squares, which are at hand: no further reading, and the same wherever it is stored.
    """
    model = problem.model
    found: dict[str, Any] = {"the shape of A": list(model.A.shape), "the blocks of x": len(model.blocks)}
    if model.A.entries_known:
        columns = model.A.squares[0]
        found["the squared entries of A"] = [float(columns.sum()), float(columns @ np.cos(np.arange(columns.size)))]
    # a process may know the terms of its own columns only, but the function of all of them
    probe = np.cos(np.arange(model.A.shape[1]))
    inside = model.f.project(probe)
    found["the penalty"] = ", ".join(sorted({type(term).__name__ for term in problem.terms}))
    found["the values of the penalty"] = [float(model.f.finite_value(inside)), float(inside @ probe)]
    found["the loss"] = ADDRESS.sub("", repr(problem.loss))
    found["the data of the loss"] = digest(problem.loss)
    return found | {name: _told(value) for name, value in options.items()}


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what differs between two fingerprints, in words."""
    found = []
    for name in {**then, **now}:
        before, after = then.get(name), now.get(name)
        if not _agree(before, after):
            digests = name.startswith("the data of")
            found.append(name if digests else f"{name} ({_shown(before)} there, {_shown(after)} here)")
    return found


def _agree(before: Any, after: Any) -> bool:
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and bool(np.allclose(before, after, rtol=AGREES, atol=0.0))
    return bool(before == after)


def _shown(value: Any) -> str:
    return "left out" if value is None else str(value)


def _told(value: Any) -> Any:
    """Return an option as it is where it is short, and a digest of anything else."""
    return value if type(value) in (bool, int, float, str) else f"{type(value).__name__} {digest(value)}"


def digest(value: Any) -> str:
    """Return a few characters that differ where anything in a value does."""
    state = hashlib.sha256()
    _add(state, value)
    return state.hexdigest()[:16]


def _add(state: Any, value: Any) -> None:
    state.update(type(value).__name__.encode())
    if isinstance(value, np.ndarray):
        state.update(f"{value.dtype.str}{value.shape}".encode())
        state.update(np.ascontiguousarray(value).data)
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            state.update(str(key).encode())
            _add(state, value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            _add(state, item)
    elif hasattr(value, "__dict__") and not callable(value):
        _add(state, vars(value))
    elif isinstance(value, (bool, int, float, str, np.generic, type(None))):
        state.update(repr(value).encode())
