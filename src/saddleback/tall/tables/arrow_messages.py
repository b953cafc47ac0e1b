"""Lengths of the record batches of an Arrow file, from their headers: pyarrow tells them only with the entries.

The footer of a file says where its record batches lie, each a header and a body with entries, which is not read here.
Footer and headers are tables of FlatBuffers. The layout is that of
https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Any, NamedTuple

END = 10
"""Bytes after the footer: its size, and the name of the format."""

BLOCK = 24
"""Bytes of the entry of a record batch in the footer: its place, the size of its header, and that of its body."""

RECORD_BATCHES, HEADER, LENGTH, COMPRESSION = 3, 2, 0, 3
"""Numbers of fields: of the footer, of a message, and two of the header of a record batch."""

CONTINUATION = -1
"""The number with which a message begins, before the size of its header; versions before 0.15 do not write it."""


class BatchHeader(NamedTuple):
    """Number of rows of a record batch, and whether its entries are compressed."""

    rows: int
    compressed: bool


def batch_headers(file: Any) -> list[BatchHeader]:
    """Return the headers of the record batches of a file."""
    end = file.size() - END
    size = unpack_from("<i", file.read_at(4, end))[0]
    footer = file.read_at(size, end - size)
    blocks = _follow(footer, _place(footer, _follow(footer, 0), RECORD_BATCHES))
    count = unpack_from("<I", footer, blocks)[0]
    places = [unpack_from("<qi", footer, blocks + 4 + BLOCK * number) for number in range(count)]
    return [_batch_header(file.read_at(length, offset)) for offset, length in places]


def _batch_header(message: bytes) -> BatchHeader:
    header = message[8:] if unpack_from("<i", message)[0] == CONTINUATION else message[4:]
    batch = _follow(header, _place(header, _follow(header, 0), HEADER))
    length = _place(header, batch, LENGTH)
    rows = unpack_from("<q", header, length)[0] if length else 0
    return BatchHeader(int(rows), _place(header, batch, COMPRESSION) > 0)


def _follow(buffer: bytes, place: int) -> int:
    """Return the place to which an offset at another place refers."""
    return int(place + unpack_from("<I", buffer, place)[0])


def _place(buffer: bytes, table: int, field: int) -> int:
    """Return the place of a field of a table; 0 if it is left out."""
    fields = table - unpack_from("<i", buffer, table)[0]
    entry = 4 + 2 * field  # after the sizes of both
    offset = unpack_from("<H", buffer, fields + entry)[0] if entry < unpack_from("<H", buffer, fields)[0] else 0
    return table + offset if offset else 0
