"""Checkpoints with errors that no checksum detects, as a hostile or broken writer may produce them."""

from __future__ import annotations

import copy
import json
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ODD = [0, 1, -1, 2**31, 2**63, -(2**63), 10**30, 0.0, -0.0, 1e-300, 1e300, float("nan"), float("inf"), -float("inf")]
ODD += [True, False, None, "", "x", [], {}, [0], {"at": 0}, {"at": 10**6}, {"at": -1}, "saddleback.problem:Model"]


class Parts(NamedTuple):
    """The header and the buffers of a checkpoint."""

    header: dict[str, Any]
    arrays: dict[str, Any]


def read(path: Path) -> Parts:
    """Return the parts of a checkpoint."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    return Parts(json.loads(arrays.pop("header").tobytes()), arrays)


def write(path: Path, parts: Parts) -> None:
    """Write parts as a checkpoint with correct checksums."""
    text = np.frombuffer(json.dumps(parts.header).encode(), dtype=np.uint8)
    with path.open("wb") as stream:
        np.savez(stream, header=text, **parts.arrays)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path to every value inside a nested value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at] * bool(at) + [place for key, own in inside for place in places(own, (*at, key))]


def holder(value: Any, place: tuple[Any, ...]) -> Any:
    """Return the container of the value at the end of a path."""
    for key in place[:-1]:
        value = value[key]
    return value


def mutated(rng: np.random.Generator, parts: Parts) -> tuple[str, Parts]:
    """Return a checkpoint with one to three changes, and a description of them."""
    changed = Parts(copy.deepcopy(parts.header), {name: array.copy() for name, array in parts.arrays.items()})
    done = []
    for _ in range(rng.integers(1, 4)):
        changes = [_edit, _edit, _delete, _swap, _refer, _other_entry, _numbers, _numbers, _array, _known]
        change = changes[rng.integers(len(changes))]
        done.append(f"{change.__name__[1:]} {change(rng, changed)}")
    return "; ".join(done), changed


def _place(rng: np.random.Generator, root: Any) -> tuple[Any, ...]:
    found = places(root)
    return found[rng.integers(len(found))] if found else ()


def _root(rng: np.random.Generator, parts: Parts) -> Any:
    return parts.header if rng.random() < 0.15 else {"table": parts.header.get("table")}


def _edit(rng: np.random.Generator, parts: Parts) -> str:
    """Replace any value by an unusual one, or by one that is slightly wrong."""
    root = _root(rng, parts)
    place = _place(rng, root)
    owner = holder(root, place)
    old = owner[place[-1]]
    new = ODD[rng.integers(len(ODD))]
    if type(old) in (int, float) and rng.random() < 0.5:
        new = [old + 1, old - 1, 2 * old, -old, old * 1.001, 1e6 * old][rng.integers(6)]
    owner[place[-1]] = copy.deepcopy(new)
    return f"{place}: {str(old)[:40]} -> {new!r}"


def _delete(rng: np.random.Generator, parts: Parts) -> str:
    root = _root(rng, parts)
    place = _place(rng, root)
    del holder(root, place)[place[-1]]
    return str(place)


def _swap(rng: np.random.Generator, parts: Parts) -> str:
    root = _root(rng, parts)
    one, other = _place(rng, root), _place(rng, root)
    first, second = holder(root, one), holder(root, other)
    try:
        first[one[-1]], second[other[-1]] = copy.deepcopy(second[other[-1]]), copy.deepcopy(first[one[-1]])
    except (KeyError, IndexError, TypeError):
        return "nothing"
    return f"{one} and {other}"


def _refer(rng: np.random.Generator, parts: Parts) -> str:
    """Change a reference to another entry."""
    table = parts.header.get("table")
    found = [place for place in places(table) if place[-1] == "at" and type(holder(table, place)["at"]) is int]
    if not found:
        return "nothing"
    place = found[rng.integers(len(found))]
    holder(table, place)["at"] = int(rng.integers(len(table)))
    return f"{place} -> {holder(table, place)['at']}"


def _other_entry(rng: np.random.Generator, parts: Parts) -> str:
    """Replace an entry by another entry."""
    table = parts.header.get("table")
    if not isinstance(table, list) or not table:
        return "nothing"
    one, other = (int(rng.integers(len(table))) for _ in range(2))
    table[one] = copy.deepcopy(table[other])
    return f"{other} at {one}"


def _known(rng: np.random.Generator, parts: Parts) -> str:
    """Replace a name by that of another object of the problem, class or function."""
    table = parts.header.get("table")
    entries = [entry for entry in table if isinstance(entry, dict)] if isinstance(table, list) else []
    for key in rng.permutation(["known", "maker", "class"]):
        names = [entry[key] for entry in entries if isinstance(entry.get(key), str)]
        if names:
            entry = next(entry for entry in rng.permutation(np.array(entries, dtype=object)) if key in entry)
            entry[key] = str(rng.choice(names))
            return f"{key} {entry[key]}"
    return "nothing"


def _numbers(rng: np.random.Generator, parts: Parts) -> str:
    """Change some numbers of a buffer, by one bit or to unusual values."""
    if not parts.arrays:
        return "nothing"
    name = sorted(parts.arrays)[rng.integers(len(parts.arrays))]
    array = np.array(parts.arrays[name]).ravel()
    if array.size == 0:
        return "nothing"
    at = rng.integers(array.size, size=rng.integers(1, 4))
    if rng.random() < 0.4 and array.dtype != bool:
        bits = array.view(np.uint8)
        bits[at * array.itemsize + rng.integers(array.itemsize)] ^= np.uint8(1 << rng.integers(8))
    elif array.dtype.kind == "f":
        array[at] = rng.choice([np.nan, np.inf, -np.inf, 0.0, 1e300, -1e300, 1e-300, 1.0])
    elif array.dtype.kind in "iu":
        array[at] = rng.choice([0, 1, 10, 1000, 2**31, 2**62]) * (
            -1 if array.dtype.kind == "i" and rng.random() < 0.3 else 1
        )
    else:
        array[at] = ~array[at]
    if rng.random() < 0.1:
        array[:] = 0
    parts.arrays[name] = array
    return name


def _array(rng: np.random.Generator, parts: Parts) -> str:
    """Replace a buffer by one of another size or type, or remove it."""
    if not parts.arrays:
        return "nothing"
    name = sorted(parts.arrays)[rng.integers(len(parts.arrays))]
    array = parts.arrays[name]
    how = int(rng.integers(6))
    if how == 0:
        del parts.arrays[name]
    elif how == 1:
        parts.arrays[name] = array[:-1]
    elif how == 2:
        parts.arrays[name] = np.append(array, array)
    elif how == 3:
        parts.arrays[name] = array.astype([np.float32, np.int64, np.bool_, np.complex128, "U5"][rng.integers(5)])
    elif how == 4:
        parts.arrays[name] = array[:, None]
    else:
        other = sorted(parts.arrays)[rng.integers(len(parts.arrays))]
        parts.arrays[name], parts.arrays[other] = parts.arrays[other], array
    return f"{name} {how}"


def rewrite_members(path: Path, change: Any) -> None:
    """Rewrite an archive, with each part replaced by a function of its name and bytes."""
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in change(members):
            archive.writestr(name, data)
