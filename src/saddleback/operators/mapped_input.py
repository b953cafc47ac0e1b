"""Checks of the user's memory maps: reading beyond the end of a truncated file would end the process."""

from __future__ import annotations

import os
from dataclasses import dataclass
from mmap import ALLOCATIONGRANULARITY
from typing import Any

import numpy as np


def truncated(source: np.memmap[Any, Any]) -> bool:
    """Return whether the file behind a memory map is shorter than the map."""
    mapping: Any = getattr(source, "_mmap", None)
    if source.filename is None or mapping is None:
        return False
    begin = source.offset - source.offset % ALLOCATIONGRANULARITY
    try:
        return os.path.getsize(source.filename) < begin + len(mapping)
    except OSError:  # a removed file remains readable through the map
        return False


def check_mapped(source: Any, name: str) -> None:
    """Raise if the file of a memory map was truncated."""
    if isinstance(source, np.memmap) and truncated(source):
        raise ValueError(f"{name} is a memory map of {source.filename}, which was truncated: map it again")


@dataclass(frozen=True)
class WatchedMap:
    """A memory map that is read without a copy."""

    source: Any

    def changed(self) -> bool:
        """Return whether its file has become shorter than the map."""
        return truncated(self.source)
