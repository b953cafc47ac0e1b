"""The declared attributes and types of the classes and functions that a checkpoint may name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import Parameter, signature, unwrap
from typing import Any, NamedTuple, get_type_hints

from ..common.arrays import Vector
from ..common.cached import cached_property
from ..common.rebuildable import MAKERS

MEANT = {"Vector": Vector}
"""Names that some modules import only for annotations."""


class Declared(NamedTuple):
    """The attributes that an object of a class may have, with their types, and those that it must have."""

    types: Mapping[str, Any]
    required: frozenset[str]


@cache
def attributes(cls: type) -> Declared:
    """Return what a class declares: its annotations and its cached properties."""
    types = get_type_hints(cls, localns=MEANT)
    for base in cls.__mro__:
        for name, own in vars(base).items():
            if isinstance(own, cached_property):
                types.setdefault(name, get_type_hints(own.func, localns=MEANT).get("return", Any))
    return Declared(types, frozenset(own.name for own in fields(cls)) if is_dataclass(cls) else frozenset())


class Call(NamedTuple):
    """The parameters of a ``derived`` function with their types, and its return type."""

    parameters: Mapping[str, Parameter]
    types: Mapping[str, Any]
    returned: Any


@cache
def call(maker: str) -> Call:
    """Return what a ``derived`` function declares."""
    function: Any = unwrap(MAKERS[maker])
    types = get_type_hints(function, localns=MEANT)
    returned = types.pop("return")
    owner, _, method = function.__qualname__.rpartition(".")
    parameters = signature(function).parameters
    if owner and method:
        types[next(iter(parameters))] = function.__globals__[owner]
    return Call(parameters, types, returned)
