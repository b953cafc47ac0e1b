"""A run as plain values and buffers.

A run is a graph of objects: numbers and arrays, in lists, tuples, dictionaries and classes of this library. Each object
becomes one entry of a table, so that a shared object is shared again after a restore. For the same reason an array
becomes a view of its buffer. It keeps its strides, since the order in memory affects the last bits of a product.
Objects of the problem are stored by name, and objects derived from them as the call that made them
(``common/rebuildable.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..common.rebuildable import CLASSES, carried, name_of, recipe_of

Known = Mapping[str, Any]
"""Objects that exist before a run begins, by name."""

PLAIN = (bool, int, float, str, type(None))


class Graph(NamedTuple):
    """A table of entries that JSON can hold, and the buffers of the arrays. The first entry is the whole object."""

    table: list[Any]
    buffers: list[NDArray[Any]]


def freeze(whole: Any, known: Known) -> Graph:
    """Return an object, and everything that it refers to, as a graph."""
    writer = _Writer(known)
    writer.reference(whole)
    return Graph(writer.table, writer.buffers)


def generators(graph: Graph) -> dict[str, Any]:
    """Return the states of the random generators in a graph, by place: only these differ between processes."""
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
        self.alive: list[Any] = []  # keeps objects alive, since an id is unique only during the life of an object

    def value(self, value: Any) -> Any:
        """Return a plain value unchanged, and a reference to any other object."""
        return value if type(value) in PLAIN else {"at": self.reference(value)}

    def reference(self, thing: Any) -> int:
        """Return the place of an object in the table; add the object if it is not in the table yet."""
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
        """Return an array as a view of its buffer: its memory, or that of the array of which it is a view."""
        whole = array
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        if whole.dtype != array.dtype or not (whole.flags.c_contiguous or whole.flags.f_contiguous):
            array = whole = array.copy()
            self.alive.append(whole)
        place = self.buffer_places.setdefault(id(whole), len(self.buffers))
        if place == len(self.buffers):
            self.alive.append(whole)
            self.buffers.append(whole.ravel(order="K"))
        offset = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        form = {"shape": list(array.shape), "strides": list(array.strides), "offset": offset}
        return {"array": place, "type": array.dtype.str, **form}


def _class_name(thing: Any) -> str:
    name = name_of(type(thing))
    if name not in CLASSES:
        raise TypeError(f"a checkpoint cannot hold a {name}: mark the class with @stored, or what makes it @derived")
    return name
