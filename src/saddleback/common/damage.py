"""Errors of libraries about bytes that they cannot read, with the name of the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def damage(name: str, expected: str = "the file is damaged") -> Iterator[None]:
    """Turn any error of a library about bytes that it cannot read into a ValueError that names what was read."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # zipfile, zlib, lzma, gzip, struct, ast and tokenize all raise different errors
        said = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{name} cannot be read ({said}): {expected}") from None
