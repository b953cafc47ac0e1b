"""Files that are written: never in place of an input, and complete on the disk or not there at all.

That holds even with several writers or a process that dies.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import glob
from io import TextIOWrapper
from itertools import chain, combinations
from pathlib import Path
from typing import BinaryIO, TextIO

try:
    import fcntl
except ImportError:  # Windows, where files that a killed process has left are not removed
    fcntl = None  # type: ignore[assignment]

PART = ".part"


def check_outputs(outputs: Mapping[str, Path | None], inputs: Mapping[str, Iterable[str | Path]]) -> None:
    """Raise if an output cannot be written, or would replace an input or another output.

    Parameters
    ----------
    outputs : the files to be written, by the names of their options; None for those that are not.
    inputs : the files that are read, by name; a folder or a pattern stands for the files in it.
    """
    written = {name: path for name, path in outputs.items() if path is not None}
    for name, path in written.items():
        folder = path.resolve().parent
        if not folder.is_dir():
            raise ValueError(f"{name} {path}: there is no folder {folder}")
        if not os.access(folder, os.W_OK):
            raise ValueError(f"{name} {path}: the folder {folder} cannot be written to; name a file in another one")
        if path.exists() and not path.is_file():
            raise ValueError(f"{name} {path} is not a file: expected the name of one")
    for (one, path), (other, same) in combinations(written.items(), 2):
        if _same(path, same):
            raise ValueError(f"{one} and {other} are both {path}: name two files")
    for source, given in inputs.items():
        for file in chain.from_iterable(map(_files, given)):
            for name, path in written.items():
                if _same(path, file):
                    raise ValueError(f"{source} and {name} are both {path}, which would be overwritten: name two files")
    for path in written.values():
        clear(path)


def _files(given: str | Path) -> Iterator[Path]:
    """Yield the files that a path, a folder or a pattern stands for."""
    yield Path(given)
    yield from Path(given).rglob("*")
    yield from map(Path, glob(str(given), recursive=True))


def _same(one: Path, other: Path) -> bool:
    """Return whether two paths are one file, also through links, or in capitals where the system takes them so."""
    return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))


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
            if path.exists():
                shutil.copymode(path, beside)  # a private file stays private
            if fcntl is None:
                stream.close()  # Windows does not rename an open file
            os.replace(beside, path)  # while it is locked, so that no other process removes it as a leftover
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync(path.parent)


@contextmanager
def replacing_text(path: Path) -> Iterator[TextIO]:
    """Yield a new UTF-8 file, whose lines end as they are written, that replaces the file at a path as above."""
    with replacing(path) as stream:
        text = TextIOWrapper(stream, encoding="utf-8", newline="")
        try:
            yield text
        finally:
            text.detach()  # writes what is left, and leaves the file open


def as_text(name: object) -> str:
    """Return a name for a cell of a CSV file: after an apostrophe if a spreadsheet would take it for a formula."""
    text = str(name)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


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
