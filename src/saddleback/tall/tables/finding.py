"""The tables that a user means by a path, a pattern, a list of these or a dataset."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import singledispatch
from glob import glob, has_magic
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs

from .files import KINDS, TableFile
from .source import InMemory, Source

SUFFIXES = frozenset({".parquet", ".pq", ".arrow", ".feather", ".ipc"})
"""Endings of the names of files that are taken from a folder."""


class Location(NamedTuple):
    """A file, where it lies, and the number of its groups if that is known."""

    path: str
    filesystem: pyarrow.fs.FileSystem
    groups: int | None = None


def find(path: Any) -> list[Source]:
    """Return the tables of a path, a pattern, a list of these or a dataset, in order."""
    found = list(_locations(path))
    folder = _common_folder([location.path for location in found if isinstance(location, Location)])
    return [
        _opened(location, os.path.relpath(location.path, folder)) if isinstance(location, Location) else location
        for location in found
    ]


def _common_folder(files: list[str]) -> str:
    try:
        return os.path.commonpath([os.path.dirname(file) for file in files])
    except ValueError:  # no file, or files of different file systems
        return os.curdir


def _opened(location: Location, name: str) -> TableFile:
    with location.filesystem.open_input_file(location.path) as file:
        start = file.read(4)
    if start not in KINDS:
        raise ValueError(
            f"path: {location.path} is neither a Parquet nor an Arrow file (it begins with {start!r}): expected one; "
            "text files such as CSV have to be converted, for example by pyarrow.csv and pyarrow.parquet"
        )
    file = KINDS[start](location.path, location.filesystem, name)
    if location.groups not in (None, len(file.lengths)):
        raise ValueError(f"path: the dataset has some row groups of {name} only: expected whole files")
    return file


@singledispatch
def _locations(path: Any) -> Iterable[Location | Source]:
    raise TypeError(
        f"path is {type(path).__name__}: expected a file, a folder, a pattern such as 'data/*.parquet', a list of "
        "these, or a pyarrow.dataset.Dataset"
    )


@_locations.register
def _(path: str) -> Iterable[Location | Source]:
    return _locations(Path(path))


@_locations.register
def _(path: os.PathLike) -> Iterable[Location | Source]:  # type: ignore[type-arg]
    here = Path(path).absolute()
    if here.is_dir():
        files = sorted(file for file in here.rglob("*") if file.suffix in SUFFIXES and not _hidden(file, here))
    elif here.exists() or not has_magic(str(here)):
        files = [here] if here.exists() else []
    else:
        files = sorted(Path(file) for file in glob(str(here), recursive=True) if Path(file).is_file())
    if not files:
        what = f"has no file with one of the endings {sorted(SUFFIXES)}" if here.is_dir() else "matches no file"
        raise ValueError(f"path={os.fspath(path)!r} {what}: expected Parquet or Arrow files")
    local = pyarrow.fs.LocalFileSystem()
    return [Location(str(file), local) for file in files]


def _hidden(file: Path, folder: Path) -> bool:
    """Return whether programs that write datasets mark a file as one without data."""
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


@_locations.register(list)
@_locations.register(tuple)
def _(paths: Iterable[Any]) -> Iterable[Location | Source]:
    found = [location for path in paths for location in _locations(path)]
    if not found:
        raise ValueError("path is an empty list: expected at least one file")
    return found


@_locations.register
def _(dataset: pyarrow.dataset.Dataset) -> Iterator[Location | Source]:
    for fragment in dataset.get_fragments():
        keys = pyarrow.dataset.get_partition_keys(fragment.partition_expression)
        if keys:
            raise ValueError(
                f"path is a dataset with {sorted(keys)} in the names of its folders: expected all columns in the "
                "files; make the dataset without partitioning, and these columns are left out"
            )
        if isinstance(fragment, pyarrow.dataset.FileFragment):
            groups = getattr(fragment, "num_row_groups", None)  # of Parquet files
            yield Location(fragment.path, fragment.filesystem, groups)
        else:
            yield InMemory(fragment.to_table())


@_locations.register
def _(table: pa.Table) -> Iterable[Location | Source]:
    return [InMemory(table)]
