"""Objects as plain values and buffers, and back.

A run is a graph of objects: numbers and arrays, in lists, tuples, dictionaries and classes of this library. Each object
becomes one entry of a table, so that what was shared is shared again; an array becomes a view of the buffer it lies in,
for the same reason, with the same strides, as the order in memory may show in the last bits of a product. What comes
from the problem is stored by its name, and what was made of that as the call that made it (``derived.py``).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..derived import MAKERS, carried, recipe_of

Known = Mapping[str, Any]
"""Objects that are there before a run begins, by name."""

PLAIN = (bool, int, float, str, type(None))
PACKAGE = __name__.partition(".")[0]


class Graph(NamedTuple):
    """A table of entries that JSON can hold, the first of which is the whole, and the buffers of its arrays."""

    table: list[Any]
    buffers: list[NDArray[Any]]


class Unreadable(Exception):
    """A graph that this version of the library cannot have written."""


def freeze(whole: Any, known: Known) -> Graph:
    """Return an object, and all that it refers to, as a graph."""
    writer = _Writer(known)
    writer.reference(whole)
    return Graph(writer.table, writer.buffers)


def thaw(graph: Graph, known: Known, names: Sequence[str]) -> dict[str, Any]:
    """Return some entries of the dictionary that is a graph, given the objects that the graph only names."""
    reader = _Reader(graph, known)
    return reader.named({name: graph.table[0]["dict"][name] for name in names})


def generators(graph: Graph) -> dict[str, Any]:
    """Return the states of the random generators in a graph, by their places: what differs between processes."""
    return {str(place): entry for place, entry in enumerate(graph.table) if "random" in entry}


def with_generators(graph: Graph, own: Mapping[str, Any]) -> Graph:
    """Return the graph with the generators of another process."""
    return graph._replace(table=[own.get(str(place), entry) for place, entry in enumerate(graph.table)])


class _Writer:
    def __init__(self, known: Known) -> None:
        self.names = {id(thing): name for name, thing in known.items()}
        self.table: list[Any] = []
        self.buffers: list[NDArray[Any]] = []
        self.places: dict[int, int] = {}
        self.buffer_places: dict[int, int] = {}
        self.alive: list[Any] = []  # an id is that of one object only as long as that lives

    def value(self, value: Any) -> Any:
        """Return a plain value as it is, and a reference to any other."""
        return value if type(value) in PLAIN else {"at": self.reference(value)}

    def reference(self, thing: Any) -> int:
        """Return the place of an object in the table, where it is put if it is not there yet."""
        if id(thing) not in self.places:
            self.places[id(thing)] = place = len(self.table)
            self.alive.append(thing)
            self.table.append(None)
            self.table[place] = self.entry(thing)
        return self.places[id(thing)]

    def entry(self, thing: Any) -> dict[str, Any]:
        if id(thing) in self.names:
            return {"known": self.names[id(thing)]}
        if (recipe := recipe_of(thing)) is not None:
            return {
                "maker": recipe.maker,
                "args": [self.value(given) for given in recipe.args],
                "options": self.named(recipe.options),
                "carries": self.named({name: getattr(thing, name) for name in carried(thing)}),
            }
        match thing:
            case np.ndarray():
                return self.array(thing)
            case np.generic():
                return {"scalar": self.array(np.asarray(thing))}
            case np.random.Generator():
                return {"random": thing.bit_generator.state}
            case slice():
                return {"slice": [thing.start, thing.stop, thing.step]}
            case Enum():
                return {"enum": _class_name(thing), "name": thing.name}
            case dict():
                return {"dict": self.named(thing)}
            case list():
                return {"list": [self.value(item) for item in thing]}
            case tuple():
                name = None if type(thing) is tuple else _class_name(thing)
                return {"tuple": [self.value(item) for item in thing], "class": name}
        return {"class": _class_name(thing), "fields": self.named(vars(thing))}

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.value(value) for name, value in values.items()}

    def array(self, array: NDArray[Any]) -> dict[str, Any]:
        """Return an array as a view of the memory that it, or the array it is a part of, lies in."""
        whole = array
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        if not (whole.flags.c_contiguous or whole.flags.f_contiguous):
            array = whole = array.copy()
            self.alive.append(whole)
        place = self.buffer_places.setdefault(id(whole), len(self.buffers))
        if place == len(self.buffers):
            self.alive.append(whole)
            self.buffers.append(whole.ravel(order="K"))
        offset = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        form = {"shape": list(array.shape), "strides": list(array.strides), "offset": offset}
        return {"array": place, "type": array.dtype.str, **form}


class _Reader:
    def __init__(self, graph: Graph, known: Known) -> None:
        self.table, self.buffers = graph
        self.known = known
        self.made: dict[int, Any] = {}

    def value(self, value: Any) -> Any:
        return self.object(value["at"]) if isinstance(value, dict) else value

    def values(self, values: Any) -> list[Any]:
        return [self.value(value) for value in values]

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.value(value) for name, value in values.items()}

    def object(self, place: int) -> Any:
        """Return the object at a place in the table, the same one every time."""
        if place not in self.made:
            self.made[place] = self.make(self.table[place], place)
        return self.made[place]

    def make(self, entry: Any, place: int) -> Any:
        match entry:
            case {"known": name}:
                return self.known[name]
            case {"maker": maker, "args": args, "options": options, "carries": carries}:
                made = MAKERS[maker](*self.values(args), **self.named(options))
                for name, value in self.named(carries).items():
                    setattr(made, name, value)
                return made
            case {"array": _}:
                return self.array(entry)
            case {"scalar": array}:
                return self.array(array)[()]
            case {"random": state}:
                generator = np.random.default_rng()
                generator.bit_generator.state = state
                return generator
            case {"slice": ends}:
                return slice(*ends)
            case {"enum": name, "name": member}:
                return _class(name)[member]
            case {"dict": values}:
                return self.named(values)
            case {"list": values}:
                return self.values(values)
            case {"tuple": values, "class": None}:
                return tuple(self.values(values))
            case {"tuple": values, "class": name}:
                return _class(name)(*self.values(values))
            case {"class": name, "fields": values}:
                return self.instance(_class(name), values, place)
        raise Unreadable(f"an entry with {', '.join(entry)}")

    def instance(self, cls: Any, values: Mapping[str, Any], place: int) -> Any:
        made = self.made[place] = object.__new__(cls)  # before its fields, which may refer to it
        for name, value in self.named(values).items():
            object.__setattr__(made, name, value)
        expected = fields(cls) if is_dataclass(cls) else ()
        lacking = [field.name for field in expected if field.init and field.name not in values]
        if lacking:
            raise Unreadable(f"{cls.__name__} without {', '.join(lacking)}")
        return made

    def array(self, entry: Mapping[str, Any]) -> NDArray[Any]:
        buffer = self.buffers[entry["array"]]
        made: NDArray[Any] = np.ndarray(
            entry["shape"], np.dtype(entry["type"]), buffer, entry["offset"], entry["strides"]
        )
        return made


def _class_name(thing: Any) -> str:
    cls = type(thing)
    if cls.__module__.partition(".")[0] != PACKAGE:
        raise TypeError(f"a checkpoint cannot hold a {cls.__module__}.{cls.__qualname__}: derive it, or store its data")
    return f"{cls.__module__}:{cls.__qualname__}"


def _class(name: str) -> Any:
    """Return a class of this library by its name."""
    module, _, qualified = name.partition(":")
    if module.partition(".")[0] != PACKAGE:
        raise Unreadable(f"the class {name}")
    try:
        found = importlib.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        raise Unreadable(f"the class {name}") from None
    return found
