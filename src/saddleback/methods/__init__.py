"""The methods, one file each, by the names that ``solve`` accepts."""

from __future__ import annotations

import difflib
from dataclasses import fields
from typing import Any

from ._base import Candidates, Method, Start, State
from .pdhg import PDHG
from .published import PublishedSPBCD
from .spbcd import SPBCD

METHODS: dict[str, type[Any]] = {cls.name: cls for cls in (SPBCD, PublishedSPBCD, PDHG)}


def methods() -> list[str]:
    """Return the names accepted by ``solve(method=...)``."""
    return ["auto", *METHODS]


def make(name: str, options: dict[str, Any]) -> Method[Any]:
    """Return the method of that name with its options, or raise with the nearest name that exists."""
    if name not in methods():
        raise ValueError(f"method={name!r} is not known{_nearest(name, methods())}: expected one of {methods()}")
    cls = METHODS["sp-bcd" if name == "auto" else name]
    known = [field.name for field in fields(cls)]
    for option in options:
        if option not in known:
            raise TypeError(
                f"{option!r} is not an option of solve or of {cls.name}{_nearest(option, known)}: "
                f"{cls.name} has {', '.join(known) or 'none'}"
            )
    method: Method[Any] = cls(**options)
    return method


def _nearest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


__all__ = ["METHODS", "Candidates", "Method", "Start", "State", "make", "methods"]
