"""Objects that are made of others, and can be made again.

What a run remembers is data, but for packed matrices, kernels and factorisations. A checkpoint stores those as the call
that made them. The functions that make them are marked by ``derived``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

RECIPE = "_recipe"

MAKERS: dict[str, Callable[..., Any]] = {}
"""The marked functions by name: the only ones that a checkpoint may call."""


class Recipe(NamedTuple):
    """The call that made an object."""

    maker: str
    args: tuple[Any, ...]
    options: dict[str, Any]


F = TypeVar("F", bound=Callable[..., Any])


def derived(make: F) -> F:
    """Mark a function, or method, whose results are the same whenever its arguments are.

    Its arguments are not to be changed afterwards. A result that does change names in ``carries`` the attributes that
    hold what has become of it: these are stored too, and set on what was made again.
    """
    name = f"{make.__module__}:{make.__qualname__}"

    @wraps(make)
    def noting(*args: Any, **options: Any) -> Any:
        made = make(*args, **options)
        if not any(made is given for given in (*args, *options.values())):
            object.__setattr__(made, RECIPE, Recipe(name, args, options))
        return made

    MAKERS[name] = noting
    return noting  # type: ignore[return-value]


def recipe_of(thing: Any) -> Recipe | None:
    """Return how an object was made; None where no marked function has made it."""
    found: Recipe | None = getattr(thing, "__dict__", {}).get(RECIPE)
    return found


def carried(thing: Any) -> tuple[str, ...]:
    """Return the attributes of a derived object that change."""
    names: tuple[str, ...] = getattr(thing, "carries", ())
    return names
