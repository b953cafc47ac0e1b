"""Files that are on the disk whole or not at all, whoever else writes to the same path and whenever a process dies."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed, and what a dead process has left stays
    fcntl = None  # type: ignore[assignment]

PART = ".part"


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file, and put it in the place of the one at a path once it is safely on the disk.

    A link stays a link: the file that it leads to is replaced. If something is raised inside, nothing changes.
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
            os.replace(beside, path)  # while it is locked, so that nobody takes it for left over
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _begin(path: Path) -> tuple[Path, BinaryIO]:
    """Return a file beside a path that is this writer's alone, whatever its host, process and thread, and locked."""
    while True:
        beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}{PART}")
        stream = beside.open("xb")
        _lock(stream, wait=True)
        if fcntl is None or os.fstat(stream.fileno()).st_nlink:
            return beside, stream
        stream.close()  # taken for left over before it was locked


def _lock(stream: BinaryIO, wait: bool) -> bool:
    """Lock a file, and return whether that was possible: a process that dies gives its locks back."""
    if fcntl is None:
        return False
    with suppress(OSError):
        fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    return False


def clear(path: Path) -> None:
    """Remove the files that writers to a path have left when they were killed."""
    path = path.resolve()
    for beside in path.parent.glob(f".{_literally(path.name)}.*{PART}"):
        with suppress(OSError), beside.open("rb") as stream:
            if _lock(stream, wait=False):
                beside.unlink()


def _literally(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _sync(folder: Path) -> None:
    """Make a change of name outlast a loss of power, where a folder can be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
