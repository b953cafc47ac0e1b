"""What a checkpoint may hold: the classes whose objects it stores, and the functions that rebuild everything else.

What a run remembers is data, except for packed matrices, kernels and factorisations. A checkpoint stores those as the
call that made them. The classes are marked by ``stored``, the functions by ``derived``. Both marks enter a name into a
table. A checkpoint refers to these names, and to nothing else in the library.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

RECIPE = "_recipe"

CLASSES: dict[str, type] = {}
"""The marked classes by name: the only ones whose objects a checkpoint may hold."""

MAKERS: dict[str, Callable[..., Any]] = {}
"""The marked functions by name: the only ones that a checkpoint may call."""


class Recipe(NamedTuple):
    """The call that made an object."""

    maker: str
    args: tuple[Any, ...]
    options: dict[str, Any]


C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])


def name_of(marked: Any) -> str:
    """Return the name of a class or function in the tables."""
    return f"{marked.__module__}:{marked.__qualname__}"


def stored(cls: C) -> C:
    """Mark a class whose objects a checkpoint may hold.

    Its attributes are those of its annotations. What a file says about them is checked against the annotations, and
    the objects are restored without a call of ``__init__``.
    """
    CLASSES[name_of(cls)] = cls
    return cls


def derived(make: F) -> F:
    """Mark a function, or method, whose results are the same whenever its arguments are.

    Its arguments must not be changed afterwards. Its result is an object of a Python class, which remembers the call; a
    tuple or an array cannot, and needs a class around it. If the result changes, its class names the changing
    attributes in ``carries``: a checkpoint stores them, and sets them on the rebuilt object.
    """
    name = name_of(make)

    @wraps(make)
    def noting(*args: Any, **options: Any) -> Any:
        made = make(*args, **options)
        if id(made) not in map(id, (*args, *options.values())):
            try:
                object.__setattr__(made, RECIPE, Recipe(name, args, options))
            except AttributeError:
                raise TypeError(
                    f"{name} is marked with @derived and returned a {type(made).__name__}: expected an object that can "
                    "remember the call that made it; put the result into an attribute of a class"
                ) from None
        return made

    MAKERS[name] = noting
    return noting  # type: ignore[return-value]


def recipe_of(thing: Any) -> Recipe | None:
    """Return the call that made an object; None if no marked function made it."""
    found: Recipe | None = getattr(thing, "__dict__", {}).get(RECIPE)
    return found


def carried(thing: Any) -> tuple[str, ...]:
    """Return the attributes of a derived object that change."""
    names: tuple[str, ...] = getattr(thing, "carries", ())
    return names
