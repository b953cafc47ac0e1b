"""Read from a place in a file, on every operating system."""

from __future__ import annotations

import os
import threading
from pathlib import Path

MOST = 1 << 30
"""Bytes of one reading; Windows reads less than 2 GiB at once."""

_moving = threading.Lock()


def open_to_read(path: Path) -> int:
    """Return the handle of a file; its bytes are read as they are."""
    return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))  # Windows would translate the ends of lines


def read_at(handle: int, buffer: memoryview, place: int) -> int:
    """Read from a place on into a buffer; return the number of bytes, which is 0 at the end of the file."""
    if hasattr(os, "preadv"):
        return os.preadv(handle, [buffer], place)
    with _moving:  # threads share the position of the handle
        os.lseek(handle, place, os.SEEK_SET)
        found = os.read(handle, min(len(buffer), MOST))
    buffer[: len(found)] = found
    return len(found)
