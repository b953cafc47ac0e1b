"""Checks whether a graph that was read from a file may be restored.

The file may come from anyone, so all of it is checked before any object is created. Every entry has one of the forms
that ``graph.freeze`` writes. Every reference leads to an entry, and never back to itself. Every name is in the tables
of ``common/rebuildable.py``. Every array lies inside its buffer. Every attribute and argument has the type that the
code declares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from inspect import signature, unwrap
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from ..common.rebuildable import CLASSES, MAKERS
from .declared import attributes, call
from .graph import PLAIN, Graph, Known

DEPTH = 300
"""Longest chain of references."""

SHARED = 100
"""Largest number of array entries per byte of the file: several arrays may share a buffer."""

DTYPES = {np.dtype(kind).str: np.dtype(kind) for kind in ("?", *np.typecodes["AllInteger"], "e", "f", "d")}
"""The allowed types of arrays: numbers and booleans, no objects and no text."""

SCALARS: dict[Any, str] = {float: "fiu", int: "iu", bool: "b"}
"""Kinds of numpy scalars that are accepted for a Python number."""


class Unreadable(Exception):
    """A graph that this version of the library cannot have written."""


class References(NamedTuple):
    """The places that each entry of a table refers to, and an order in which each entry refers only to earlier ones."""

    of: list[list[int]]
    order: list[int]

    def reached(self, first: int) -> list[int]:
        """Return the places that an entry refers to, directly or indirectly, and its place, in that order."""
        found = {first}
        for place in reversed(self.order):
            if place in found:
                found.update(self.of[place])
        return [place for place in self.order if place in found]


def checked(graph: Graph, known: Known, whole: type) -> References:
    """Raise ``Unreadable`` unless a graph can be restored as an object of a class; return its references."""
    check = _Check(graph, known)
    references = [check.form(entry) for entry in graph.table]
    order = ordered(references)
    for entry in graph.table:
        check.types(entry)
    if not graph.table or not check.fits({"at": 0}, whole):
        raise Unreadable(f"an object that is not a {whole.__name__}")
    return References(references, order)


def ordered(references: Sequence[Sequence[int]]) -> list[int]:
    """Return all places in an order in which each refers only to earlier ones; raise if there is none."""
    depth: dict[int, int] = {}
    order: list[int] = []
    for first in range(len(references)):
        way = [first] if first not in depth else []
        entered: set[int] = set()
        while way:
            place = way[-1]
            ahead = [other for other in references[place] if other not in depth]
            if place in entered or not ahead:
                if ahead:
                    raise Unreadable("an entry that refers to itself")
                way.pop()
                if place not in depth:
                    depth[place] = 1 + max((depth[other] for other in references[place]), default=0)
                    order.append(place)
                continue
            entered.add(place)
            way += ahead
    if max(depth.values(), default=0) > DEPTH:
        raise Unreadable(f"a chain of more than {DEPTH} references")
    return order


def expanded(hint: Any) -> Any:
    """Return the type that a hint stands for: from numpy 2.5 on, ``NDArray`` is a named alias."""
    value, args = getattr(hint, "__value__", None), get_args(hint)
    if value is None:
        return hint
    return expanded(value[args] if args else value)


def array_of(entry: Mapping[str, Any], buffers: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the array that an entry describes, which has to lie inside its buffer."""
    place = entry["shape"], DTYPES[entry["type"]], buffers[entry["array"]], entry["offset"], entry["strides"]
    array: NDArray[Any] = np.ndarray(*place)
    return array


class _Check:
    def __init__(self, graph: Graph, known: Known) -> None:
        self.table, self.buffers = graph
        self.known = known
        self.room = sum(buffer.nbytes for buffer in graph.buffers)
        self.left = SHARED * (self.room + len(graph.table))

    def form(self, entry: Any) -> list[int]:
        """Return the places that an entry refers to; raise unless it has one of the known forms."""
        match entry:
            case {"known": str(name), **more} if not more and name in self.known:
                return []
            case {
                "maker": str(name),
                "args": list(args),
                "options": dict(options),
                "carries": dict(carries),
                **more,
            } if not more and name in MAKERS:
                return self.references([*args, *options.values(), *carries.values()])
            case {"array": _}:
                self.array(entry)
                return []
            case {"scalar": {"shape": []} as array, **more} if not more:
                self.array(array)
                return []
            case {"random": {"bit_generator": "PCG64"}, **more} if not more:
                return []
            case {"slice": [_, _, _] as ends, **more} if not more and all(type(end) in (int, NoneType) for end in ends):
                return []
            case {"dict": dict(values), **more} | {"class": str(), "fields": dict(values), **more} if not more:
                self.known_class(entry, False)
                return self.references(values.values())
            case {"list": list(values), **more} | {"tuple": list(values), "class": _, **more} if not more:
                self.known_class(entry, True)
                return self.references(values)
        raise Unreadable("an entry of an unknown form")

    @staticmethod
    def known_class(entry: Mapping[str, Any], is_tuple: bool) -> None:
        name = entry.get("class")
        cls = CLASSES.get(name) if isinstance(name, str) else None
        if name is not None and (cls is None or issubclass(cls, tuple) is not is_tuple):
            raise Unreadable("a class that a run cannot hold")

    def references(self, values: Iterable[Any]) -> list[int]:
        """Return the places that values refer to; raise unless each value is plain or a reference."""
        found = []
        for value in values:
            match value:
                case {"at": int(place), **more} if not more and type(place) is int and 0 <= place < len(self.table):
                    found.append(place)
                case str() if not value.isprintable():
                    raise Unreadable("a text with control characters")
                case _ if type(value) not in PLAIN:
                    raise Unreadable("a value that is neither plain nor a valid reference")
        return found

    def array(self, entry: Any) -> None:
        """Raise unless an array lies inside its buffer, and is no larger than the file."""
        match entry:
            case {
                "array": int(place),
                "type": str(kind),
                "shape": list(shape),
                "strides": list(strides),
                "offset": int(offset),
                **more,
            } if not more and all(type(number) is int for number in (place, offset, *shape, *strides)):
                buffer = self.buffers[place] if 0 <= place < len(self.buffers) else None
                dtype = DTYPES.get(kind)
            case _:
                raise Unreadable("an array of an unknown form")
        if buffer is None or dtype is None or dtype != buffer.dtype or len(shape) != len(strides) or len(shape) > 8:
            raise Unreadable("an array whose type or shape does not fit its buffer")
        if any(number % dtype.itemsize for number in (offset, *strides)) or min(shape, default=0) < 0:
            raise Unreadable("an array that is not aligned with its buffer")
        reach = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)] if all(shape) else []
        first = offset + sum(min(0, step) for step in reach)
        last = offset + sum(max(0, step) for step in reach) + (dtype.itemsize if all(shape) else 0)
        entries = 1
        for size in shape:
            entries *= size
        self.left -= entries
        if first < 0 or last > buffer.nbytes or entries > self.room or self.left < 0:
            raise Unreadable("an array outside its buffer")
        if dtype.kind == "f" and np.any(np.isnan(array_of(entry, self.buffers))):
            raise Unreadable("an array with entries that are not numbers")

    def types(self, entry: Any) -> None:
        """Raise if an attribute or an argument has another type than the code declares."""
        match entry:
            case {"class": str(name), "fields": values}:
                cls = CLASSES[name]
                declared = attributes(cls)
                if not declared.required <= values.keys() or not values.keys() <= declared.types.keys():
                    raise Unreadable(f"a {cls.__name__} with other attributes")
                self.all_fit(cls.__name__, values, declared.types)
            case {"tuple": values, "class": str(name)}:
                cls = CLASSES[name]
                names: tuple[str, ...] = cls._fields  # type: ignore[attr-defined]
                if len(names) != len(values):
                    raise Unreadable(f"a {cls.__name__} with other attributes")
                self.all_fit(cls.__name__, dict(zip(names, values, strict=True)), attributes(cls).types)
            case {"maker": name, "args": args, "options": options}:
                try:
                    given = signature(unwrap(MAKERS[name])).bind(*args, **options).arguments
                except TypeError:
                    raise Unreadable(f"{name} with other arguments") from None
                self.all_fit(name, given, call(name).types)
                self.distinct(name, given.values())

    def distinct(self, owner: str, values: Iterable[Any]) -> None:
        """Raise if an argument lists a column or row twice: the result could be larger than the problem."""
        entries = (self.table[value["at"]] for value in values if isinstance(value, dict))
        for entry in entries:
            if "array" in entry and DTYPES[entry["type"]].kind in "iu":
                listed = array_of(entry, self.buffers)
                if np.unique(listed).size < listed.size:
                    raise Unreadable(f"an argument of {owner} that lists something twice")

    def all_fit(self, owner: str, values: Mapping[str, Any], types: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if not self.fits(value, types[name]):
                raise Unreadable(f"{name} of {owner} with another type")

    def fits(self, value: Any, hint: Any) -> bool:
        """Return whether a value, plain or a reference, has a declared type."""
        hint = expanded(hint)
        origin = get_origin(hint)
        if hint is Any:
            return True
        if origin in (Union, UnionType):
            return any(self.fits(value, each) for each in get_args(hint))
        if origin is Literal:
            return type(value) is str and value in get_args(hint)
        if not isinstance(value, dict):
            return type(value) is (hint or NoneType) or (hint is float and type(value) is int)
        return self.entry_fits(self.table[value["at"]], hint, origin, get_args(hint))

    def entry_fits(self, entry: Any, hint: Any, origin: Any, args: tuple[Any, ...]) -> bool:
        match entry:
            case {"known": name}:
                return isinstance(hint, type) and isinstance(self.known[name], hint)
            case {"maker": name}:
                return hint in getattr(call(name).returned, "__mro__", ())
            case {"scalar": {"type": kind}}:
                return DTYPES[kind].kind in SCALARS.get(hint, "")
            case {"array": _, "type": kind}:
                (of,) = get_args(args[1]) if origin is np.ndarray else (None,)
                return of is Any or (of is not None and np.dtype(of).kind == DTYPES[kind].kind)
            case {"random": _}:
                return hint is np.random.Generator
            case {"slice": _}:
                return hint is slice
            case {"dict": values}:
                return origin is dict and all(self.fits(value, args[1]) for value in values.values())
            case {"list": values}:
                return origin in (list, Sequence) and all(self.fits(value, args[0]) for value in values)
            case {"tuple": values, "class": None}:
                return origin is tuple and self.tuple_fits(values, args)
        cls: Any = CLASSES[entry["class"]]
        return hint in cls.__mro__ or getattr(hint, "_is_protocol", False)

    def tuple_fits(self, values: list[Any], args: tuple[Any, ...]) -> bool:
        each = [args[0]] * len(values) if args[1:] == (...,) else list(args)
        return len(each) == len(values) and all(map(self.fits, values, each))
