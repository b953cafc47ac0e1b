"""Atomic files: complete on the disk or not there at all, even with several writers or a process that dies."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows, where files that a killed process has left are not removed
    fcntl = None  # type: ignore[assignment]

PART = ".part"


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file that replaces the file at a path once it is safely on the disk.

    A link stays a link: the file that it points to is replaced. If the ``with`` block raises, nothing changes.
    """
    path = path.resolve()
    beside, stream = _begin(path)
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if fcntl is None:
                stream.close()  # Windows does not rename an open file
            os.replace(beside, path)  # while it is locked, so that no other process removes it as a leftover
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _begin(path: Path) -> tuple[Path, BinaryIO]:
    """Return a new locked file next to a path, under a name that no other host, process or thread uses."""
    while True:
        beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}{PART}")
        stream = beside.open("xb")
        _lock(stream, wait=True)
        if fcntl is None or os.fstat(stream.fileno()).st_nlink:
            return beside, stream
        stream.close()  # another process removed it as a leftover before it was locked


def _lock(stream: BinaryIO, wait: bool) -> bool:
    """Lock a file, and return whether that was possible; a process that dies releases its locks."""
    if fcntl is None:
        return False
    with suppress(OSError):
        fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    return False


def clear(path: Path) -> None:
    """Remove the temporary files that killed writers to a path have left."""
    path = path.resolve()
    for beside in path.parent.glob(f".{_literally(path.name)}.*{PART}"):
        with suppress(OSError), beside.open("rb") as stream:
            if _lock(stream, wait=False):
                beside.unlink()


def _literally(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _sync(folder: Path) -> None:
    """Sync a folder, so that a renaming survives a power failure, on systems that can open a folder."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
