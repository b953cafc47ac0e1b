"""The fingerprint of a run: sizes, functions and options of a problem, in a short form that can be compared."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..common.arrays import Vector
from ..common.cached import cached_property
from ..common.rebuildable import RECIPE
from ..functions.contract import Convex
from ..places.mpi.communicator import Communicator
from ..problem import Problem

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""The memory address in the repr of a user's object, which differs between processes."""

AGREES = 1e-9
"""Largest relative difference of two sums that the order of summation can explain."""

PLAIN = (bool, int, float, str, type(None))

SHAPE = "the shape of A"

PROBES = (1.0, 1e2, 1e4)
"""Sizes of the points at which penalties are compared: bounds may be anywhere."""


def fingerprint(problem: Problem, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts by which a checkpoint is compared, each under a name that the user knows.

    A is identified by one product, which does not depend on where A is stored.
    """
    model = problem.model
    found: dict[str, Any] = {SHAPE: _size(model.A.shape), "the blocks of x": len(model.blocks)}
    # a process may know the terms of its columns only, but it knows the function of all columns
    probe = np.cos(np.arange(model.A.shape[1]))
    product = np.asarray(model.A.rmatvec(np.cos(np.arange(model.A.shape[0]))))
    found["the entries of A"] = [float(product @ product), float(np.abs(product).sum()), float(product @ probe)]
    found["the penalty"] = ", ".join(sorted({type(term).__name__ for term in problem.terms}))
    found["the strength, weights, groups or bounds of the penalty"] = [
        value for size in PROBES for value in _values(model.f, size * probe)
    ]
    found["the loss"] = ADDRESS.sub("", repr(problem.loss))
    found["the data of the loss"] = told(problem.loss)
    return found | {name: told(value) for name, value in options.items()}


def _size(shape: tuple[int, int]) -> str:
    return f"{shape[0]} x {shape[1]}"


def _values(f: Convex, point: Vector) -> tuple[float, float]:
    """Return two numbers that identify a function, from its value and domain near a point."""
    inside = f.domain.project(point)
    return float(f.finite_value(inside)), float(inside @ point)


def differences(
    then: Mapping[str, Any], now: Mapping[str, Any], where: tuple[str, str] = ("there", "here")
) -> list[str]:
    """Return the differences between two fingerprints in words, without sums and digests."""
    found = []
    comparable = then.get(SHAPE) == now.get(SHAPE)
    for name in {**then, **now}:
        before, after = then.get(name), now.get(name)
        if isinstance(before, list) and not comparable:
            continue  # sums over other columns
        if not _agree(before, after):
            values = f"{_shown(before)} {where[0]}, {_shown(after)} {where[1]}"
            readable = type(before) in PLAIN or type(after) in PLAIN
            found.append(f"{name} ({values})" if readable else name)
    return found


def _agree(before: Any, after: Any) -> bool:
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return bool(np.allclose(before, after, rtol=AGREES, atol=AGREES * float(np.max(np.abs(before), initial=0.0))))
    return bool(before == after)


def _shown(value: Any) -> str:
    match value:
        case None:
            return "left out"
        case {"type": kind}:
            return f"of type {kind}"
    return str(value)


def told(value: Any) -> Any:
    """Return a number, text or None unchanged, and for any other option its type with a digest."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if type(value) in PLAIN else {"type": type(value).__name__, "digest": digest(value)}


def digest(value: Any) -> str:
    """Return a short hash of everything in a value."""
    state = hashlib.sha256()
    _add(state, value, ())
    return state.hexdigest()[:16]


def _add(state: Any, value: Any, within: tuple[int, ...]) -> None:
    """Add a value to a hash, without cached properties, which may not be computed yet in another process."""
    if id(value) in within:
        return
    within = (*within, id(value))
    state.update(type(value).__name__.encode())
    if isinstance(value, np.ndarray):
        state.update(f"{value.dtype.str}{value.shape}".encode())
        state.update(np.ascontiguousarray(value).data)
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            state.update(str(key).encode())
            _add(state, value[key], within)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _add(state, item, within)
    elif hasattr(value, "__dict__") and not callable(value):
        kept = {name: own for name, own in vars(value).items() if name != RECIPE and not _worked_out(value, name)}
        _add(state, kept, within)
    elif isinstance(value, (bool, int, float, str, np.generic, type(None))):
        state.update(repr(value).encode())


def _worked_out(value: Any, name: str) -> bool:
    return isinstance(getattr(type(value), name, None), cached_property)


def described(problem: Any) -> dict[str, Any]:
    """Return what identifies a problem, without reading the entries of A."""
    if not isinstance(problem, Problem):
        return {"problem": "a function" if callable(problem) else type(problem).__name__}
    return {
        "problem": "a Problem",
        SHAPE: _size(problem.model.A.shape),
        "the data of the penalty": problem.terms,
        "the data of the loss": problem.loss,
    }


def compare(team: Communicator, own: Mapping[str, Any]) -> None:
    """Raise on all processes, with the differences, if they were not all called with the same arguments."""
    first, *others = team.all({name: told(value) for name, value in own.items()})
    for rank, other in enumerate(others, start=1):
        found = differences(first, other, ("on the first process", f"on process {rank}"))
        if found:
            raise ValueError(f"comm: the processes differ in {'; '.join(found)}: pass the same on all")
