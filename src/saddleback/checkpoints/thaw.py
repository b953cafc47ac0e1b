"""Restores a run from the plain values and buffers of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..common.rebuildable import CLASSES, MAKERS, carried
from ..methods import State
from .check import Unreadable, array_of, checked
from .graph import Graph, Known


def thaw(graph: Graph, known: Known, whole: type, names: Sequence[str]) -> dict[str, Any]:
    """Return some attributes of the object that a graph stores.

    Parameters
    ----------
    graph : the graph, from ``freeze`` or from a file.
    known : the objects that the graph refers to by name.
    whole : the class of the object.
    names : the attributes to restore.
    """
    references = checked(graph, known, whole)
    values = graph.table[0]["fields"]
    reader = _Reader(graph, known)
    return {name: reader.whole(references.reached(values[name]["at"])) for name in names}


class _Reader:
    """Creates the objects of entries that were checked, each after those that it refers to."""

    def __init__(self, graph: Graph, known: Known) -> None:
        self.table, self.buffers = graph
        self.known = known
        self.made: dict[int, Any] = {}

    def whole(self, places: Sequence[int]) -> Any:
        """Create the objects at some places, unless they exist already, and return the last one."""
        for place in places:
            if place not in self.made:
                self.made[place] = self.make(self.table[place])
        return self.made[places[-1]]

    def value(self, value: Any) -> Any:
        return self.made[value["at"]] if isinstance(value, dict) else value

    def values(self, values: Sequence[Any]) -> list[Any]:
        return [self.value(value) for value in values]

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.value(value) for name, value in values.items()}

    def make(self, entry: Any) -> Any:
        match entry:
            case {"known": name}:
                return self.known[name]
            case {"maker": name, "args": args, "options": options, "carries": carries}:
                return self.call(name, args, options, carries)
            case {"array": _}:
                return array_of(entry, self.buffers)
            case {"scalar": array}:
                return array_of(array, self.buffers)[()]
            case {"random": state}:
                generator = np.random.default_rng()
                generator.bit_generator.state = state
                return generator
            case {"slice": ends}:
                return slice(*ends)
            case {"dict": values}:
                return self.named(values)
            case {"list": values}:
                return self.values(values)
            case {"tuple": values, "class": None}:
                return tuple(self.values(values))
            case {"tuple": values, "class": name}:
                return CLASSES[name](*self.values(values))
            case {"class": name, "fields": values}:
                made: Any = object.__new__(CLASSES[name])
                vars(made).update(self.named(values))
                if isinstance(made, State):
                    made.check()
                return made
        raise AssertionError(entry)

    def call(self, name: str, args: Sequence[Any], options: Mapping[str, Any], carries: Mapping[str, Any]) -> Any:
        made = MAKERS[name](*self.values(args), **self.named(options))
        if set(carries) != set(carried(made)):
            raise Unreadable(f"a result of {name} with other attributes")
        for attribute, value in self.named(carries).items():
            setattr(made, attribute, value)
        return made
