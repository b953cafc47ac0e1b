"""Arrays in ``.npz`` files, read so that a damaged file gives an error that says which part of it is damaged."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from ..common.damage import damage

READ_AT_ONCE = 1 << 24
"""Bytes of an archive that are read at a time."""

HEADERS = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
    (3, 0): npy.read_array_header_2_0,  # version 3 differs only in the names of fields, which are refused below
}

ENDING = ".npy"


class Archive:
    """An ``.npz`` file.

    Parameters
    ----------
    path : path of the file.

    Attributes
    ----------
    names : names of its arrays.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._opened() as archive:
            self.names = [name.removesuffix(ENDING) for name in archive.namelist()]

    def array(self, name: str) -> Any:
        """Return an array, or a plain value if it has no dimensions."""
        with self.member(name) as member:
            flat = member.read(member.size)
        array = flat.reshape(member.shape, order="F" if member.in_column_order else "C")
        return array.item() if array.ndim == 0 else array

    @contextmanager
    def member(self, name: str) -> Iterator[Member]:
        """Open an array, to be read piece by piece."""
        what = f"{name!r} in {self.path.name}"
        with self._opened() as archive:
            with damage(what):
                own = next(info for info in archive.infolist() if info.filename.removesuffix(ENDING) == name)
                stream = archive.open(own)
            with stream:
                yield Member(stream, own.file_size, what)

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        with damage(self.path.name, "expected an .npz file as numpy.savez writes it"):
            archive = zipfile.ZipFile(self.path)
        with archive:
            yield archive


class Member:
    """An array in an archive, read from its first entry in the order in which it is stored.

    Parameters
    ----------
    stream : the stored bytes, header and entries.
    stored : number of bytes.
    name : name of the array, for errors.
    """

    def __init__(self, stream: IO[bytes], stored: int, name: str) -> None:
        self.stream, self.name = stream, name
        with damage(name, "expected an array as numpy.save writes it"):
            version = npy.read_magic(stream)
            if version not in HEADERS:
                raise ValueError(f"it has version {version[0]}.{version[1]} of the format")
            self.shape, self.in_column_order, self.dtype = HEADERS[version](stream)
        if self.dtype.hasobject:
            raise ValueError(f"{name} holds objects: expected numbers or text")
        if self.dtype.kind not in "biufcSU" or self.dtype.itemsize == 0 or self.dtype.subdtype is not None:
            raise ValueError(f"{name} holds entries of type {self.dtype}: expected numbers or text")
        if any(size < 0 for size in self.shape):
            raise ValueError(f"{name} has the shape {self.shape}: expected sizes that are not negative")
        self.size = math.prod(self.shape)
        declared, found = self.size * self.dtype.itemsize, stored - stream.tell()
        if declared != found:
            raise ValueError(
                f"{name} has {found} bytes of entries: expected {declared} for the shape {self.shape} of {self.dtype}; "
                "the file is damaged"
            )

    def skip(self, entries: int) -> None:
        """Skip the given number of entries."""
        left = entries * self.dtype.itemsize
        while left > 0:
            left -= len(self._bytes(left))

    def read(self, entries: int) -> Any:
        """Return the next entries."""
        part = np.empty(entries, self.dtype)
        target, filled = part.view(np.uint8), 0
        while filled < target.size:
            piece = self._bytes(target.size - filled)
            target[filled : filled + len(piece)] = np.frombuffer(piece, np.uint8)
            filled += len(piece)
        return part

    def _bytes(self, most: int) -> bytes:
        with damage(self.name):
            piece = self.stream.read(min(most, READ_AT_ONCE))
        if not piece:
            raise ValueError(f"{self.name} ends too soon: the file is not complete")
        return piece
