"""``cached_property`` without a lock.

That of Python before 3.12 holds a lock, one for all objects of a class, while it computes. A process that is forked at
that moment inherits the lock from a thread that it does not have, and waits for it forever; and threads that solve
different problems wait for each other.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """A property that is computed once per object, when it is first read; several threads may each compute it."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            """Return the value, and store it in the object, where Python finds it from now on."""
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


T = TypeVar("T")


def twin(thing: T) -> T:
    """Return another object with the same attributes, as ``copy`` does in five times the time."""
    other = object.__new__(type(thing))
    vars(other).update(vars(thing))
    return other


__all__ = ["cached_property", "twin"]
