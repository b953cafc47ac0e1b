"""The file of a checkpoint: an ``.npz`` with a JSON header and the buffers of a graph, written atomically."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..common.outputs import replacing
from .check import DTYPES
from .graph import Graph

FORMAT = 15
"""Version of the file format. It changes whenever a checkpoint of one version could not be resumed by the other."""

KIND = "saddleback checkpoint"


class Stored(NamedTuple):
    """The contents of a file: the version that wrote it, the fingerprint, the run, the generators of each process."""

    version: str
    fingerprint: dict[str, Any]
    graph: Graph
    generators: list[dict[str, Any]]


def write(path: Path, stored: Stored) -> None:
    """Write a checkpoint, and replace the last one only when the new one is safely on the disk."""
    header = {"kind": KIND, "format": FORMAT, "version": stored.version}
    header |= {"fingerprint": stored.fingerprint, "table": stored.graph.table, "generators": stored.generators}
    arrays: dict[str, Any] = {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)}
    arrays |= {f"buffer_{i}": buffer for i, buffer in enumerate(stored.graph.buffers)}
    with replacing(path) as stream:
        np.savez(stream, **arrays)


def is_checkpoint(path: Path) -> bool:
    """Return whether the header of a file says that it is a checkpoint, complete or not."""
    try:
        with _opened(path) as archive:
            return bool(_header(archive)["kind"] == KIND)
    except Exception:  # arbitrary bytes can raise anything in a parser
        return False


def read(path: Path) -> Stored:
    """Return the contents of a checkpoint, or raise an error that says what is wrong with the file."""
    if not path.is_file():
        raise FileNotFoundError(f"resume={str(path)!r} is not a file: leave resume= out to start a new run")
    try:
        with _opened(path) as archive:
            header = _header(archive)
            ours = isinstance(header, dict) and header.get("kind") == KIND
            if ours and _format(header) == FORMAT:
                return _stored(header, _buffers(archive))
    except Exception as error:  # arbitrary bytes can raise anything in a parser
        raise ValueError(
            f"resume={str(path)!r} is not a complete checkpoint ({readable(error)}): use another one, or leave "
            "resume= out to start a new run"
        ) from None
    if not ours:
        raise ValueError(f"resume={str(path)!r} is not a checkpoint of saddleback: expected a file of checkpoint=")
    raise ValueError(
        f"resume={str(path)!r} was written by saddleback {readable(header.get('version'))}, in format "
        f"{header['format']}, and this version reads format {FORMAT}: resume with that version, or leave resume= out "
        "to start a new run"
    )


def readable(found: Any, most: int = 200) -> str:
    """Return something from a file as text for a message: short, and without control characters."""
    text = "".join(letter if letter.isprintable() else "?" for letter in str(found))
    return text if len(text) <= most else text[:most] + "..."


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Yield an archive; raise if its parts are larger than the file, as compressed parts may be."""
    with zipfile.ZipFile(path) as archive:
        if sum(part.file_size for part in archive.infolist()) > path.stat().st_size:
            raise ValueError("its parts are larger than the file")
        yield archive


def _format(header: dict[str, Any]) -> int:
    found = header["format"]
    if type(found) is not int:
        raise ValueError(f"its format is {found!r}, and not a number")
    return found


def _header(archive: zipfile.ZipFile) -> Any:
    return json.loads(_array(archive, archive.getinfo("header.npy")).tobytes())


def _buffers(archive: zipfile.ZipFile) -> list[NDArray[Any]]:
    """Return the buffers; raise unless the archive holds exactly these and the header."""
    parts = archive.infolist()
    names = [f"buffer_{i}.npy" for i in range(len(parts) - 1)]
    if sorted(part.filename for part in parts) != sorted(["header.npy", *names]):
        raise ValueError("it does not have the parts of a checkpoint")
    if (damaged := archive.testzip()) is not None:  # checks the checksums before anything is used
        raise ValueError(f"its part {damaged} is damaged")
    return [_array(archive, archive.getinfo(name)) for name in names]


def _array(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> NDArray[Any]:
    """Return the vector in a part of an archive; its size is checked before memory is allocated."""
    if part.compress_type != zipfile.ZIP_STORED or part.file_size != part.compress_size:
        raise ValueError(f"its part {part.filename} is compressed")
    with archive.open(part) as stream:
        if npy.read_magic(stream) != (1, 0):
            raise ValueError(f"its part {part.filename} is not an array")
        shape, _, dtype = npy.read_array_header_1_0(stream)
        if dtype.str not in DTYPES or len(shape) != 1 or stream.tell() + shape[0] * dtype.itemsize != part.file_size:
            raise ValueError(f"its part {part.filename} is not a vector of numbers, or has another size than it says")
    with archive.open(part) as stream:
        array: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
    if array.dtype == bool and np.any(array.view(np.uint8) > 1):
        raise ValueError(f"its part {part.filename} has booleans other than 0 and 1")
    return array


def _stored(header: dict[str, Any], buffers: list[NDArray[Any]]) -> Stored:
    """Return a header with its buffers, if the parts that every process reads have the right types."""
    match header:
        case {"version": str(version), "fingerprint": dict(mark), "table": list(table), "generators": list(draws)}:
            random = {str(place) for place, entry in enumerate(table) if isinstance(entry, dict) and "random" in entry}
            if draws and all(isinstance(own, dict) and own.keys() == random for own in draws):
                return Stored(readable(version), mark, Graph(table, buffers), draws)
    raise ValueError("its header lacks a part")
