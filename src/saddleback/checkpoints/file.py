"""The file of a checkpoint: an ``.npz`` with a JSON header and the buffers of a graph, written whole or not at all."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .graph import Graph

FORMAT = 3
"""Changes whenever a run of one version could not go on from a checkpoint of the other."""

KIND = "saddleback checkpoint"


class Stored(NamedTuple):
    """What a file holds: who wrote it, for which run, the run, and the random generators of each process."""

    version: str
    fingerprint: dict[str, Any]
    graph: Graph
    generators: list[dict[str, Any]]


def write(path: Path, stored: Stored) -> None:
    """Write a checkpoint beside the last one, and put it in its place once it is safely on the disk."""
    header = {"kind": KIND, "format": FORMAT, "version": stored.version}
    header |= {"fingerprint": stored.fingerprint, "table": stored.graph.table, "generators": stored.generators}
    arrays: dict[str, Any] = {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)}
    arrays |= {f"buffer_{i}": buffer for i, buffer in enumerate(stored.graph.buffers)}
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as stream:
            np.savez(stream, **arrays)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Make a change of name outlast a loss of power, where a folder can be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_checkpoint(path: Path) -> bool:
    """Return whether a file says of itself that it is a checkpoint, complete or not."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            return bool(json.loads(stored["header"].tobytes())["kind"] == KIND)
    except (*DAMAGE, TypeError, AttributeError):
        return False


DAMAGE = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, KeyError, NotImplementedError, RuntimeError)
"""What reading a damaged file may raise."""


def read(path: Path) -> Stored:
    """Return what a checkpoint holds, or raise with what is wrong with the file."""
    if not path.is_file():
        raise FileNotFoundError(f"resume={str(path)!r} is not a file: leave resume= out to begin anew")
    try:
        with zipfile.ZipFile(path) as archive:
            if (
                damaged := archive.testzip()
            ) is not None:  # by the checksums of the format, before anything is believed
                raise zipfile.BadZipFile(f"its part {damaged} is damaged")
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            header: Any = json.loads(stored["header"].tobytes()) if "header" in stored.files else None
            ours = isinstance(header, dict) and header.get("kind") == KIND
            if ours and header["format"] == FORMAT:
                buffers = [stored[f"buffer_{i}"] for i in range(len(stored.files) - 1)]
                graph = Graph(header["table"], buffers)
                return Stored(header["version"], header["fingerprint"], graph, header["generators"])
    except DAMAGE as error:
        raise ValueError(
            f"resume={str(path)!r} is not a complete checkpoint ({error}): use another one, or leave resume= out to "
            "begin anew"
        ) from None
    if not ours:
        raise ValueError(f"resume={str(path)!r} is not a checkpoint of saddleback: expected what checkpoint= wrote")
    raise ValueError(
        f"resume={str(path)!r} was written by saddleback {header.get('version')}, in format {header['format']}, and "
        f"this version reads format {FORMAT}: go on with that version, or leave resume= out to begin anew"
    )
