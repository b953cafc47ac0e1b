"""Formulas of many coordinates, looked at a panel at a time.

A formula like ``clip((y - b) / q, low, high)`` in numpy writes a whole vector for each of its operations. Where vectors
are as large as the data, that memory is most of what a run takes, and fetching it most of the time. A function that is
a sum over coordinates is therefore evaluated on panels that stay in the cache: the formula is the same, its temporaries
are small. A panel has its parameters in float64 whatever they are stored in, so that float32 data need no copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

PANEL = 1 << 16
"""Coordinates of a panel: half a megabyte a vector."""

SERIAL = 1 << 12
"""Coordinates up to which the BLAS makes an inner product without threads."""

Array = NDArray[Any]


def panels(vector: Array) -> Iterator[slice]:
    """Yield stretches of a vector; the whole of one on a device, where each operation is best made at once."""
    width = PANEL if isinstance(vector, np.ndarray) else max(vector.size, 1)
    return (slice(a, min(a + width, vector.size)) for a in range(0, vector.size, width))


def panels_of_rows(matrix: Array) -> Iterator[slice]:
    """Yield some rows of a matrix at a time, all of them on a device."""
    height = max(1, PANEL // max(matrix.shape[1], 1)) if isinstance(matrix, np.ndarray) else matrix.shape[0]
    return (slice(a, a + height) for a in range(0, matrix.shape[0], height))


def double(values: Array) -> Array:
    """Return values in float64, themselves where they are."""
    return values if values.dtype == np.float64 else values.astype(np.float64)


def inner(a: Array, b: Array) -> float:
    """Return <a, b>: not by the BLAS where that would use threads, which take longer to meet than a panel takes."""
    if isinstance(a, np.ndarray) and a.size > SERIAL:
        return float(np.einsum("i,i", a, b))
    return float(a @ b)


def chunked_sum(method: Callable[..., float]) -> Callable[..., float]:
    """Make a method of a coordinatewise function, whose value is a sum, add up those of the panels."""

    @wraps(method)
    def in_panels(self: Any, *vectors: Any) -> float:
        if _is_small(vectors[0]):
            return method(self, *vectors)
        return float(sum(method(self.panel(own), *_parts(vectors, own)) for own in panels(vectors[0])))

    return in_panels


def chunked_map(method: Callable[..., Array]) -> Callable[..., Array]:
    """Make a method of a coordinatewise function, whose value is a vector, put together those of the panels.

    Where it returns its first argument for all of them, so does the whole.
    """

    @wraps(method)
    def in_panels(self: Any, *vectors: Any) -> Array:
        whole = vectors[0]
        if _is_small(whole):
            return method(self, *vectors)
        result: Array | None = None
        for own in panels(whole):
            parts = _parts(vectors, own)
            part = method(self.panel(own), *parts)
            if result is None and part is not parts[0]:
                result = np.empty(whole.size)
                result[: own.start] = whole[: own.start]
            if result is not None:
                result[own] = part
        return whole if result is None else result

    return in_panels


def chunked_flatnonzero(condition: Callable[..., Array], *vectors: Array) -> Array:
    """Return where a condition holds, coordinate by coordinate."""
    if _is_small(vectors[0]):
        return np.flatnonzero(condition(*vectors))
    found = [np.flatnonzero(condition(*_parts(vectors, own))) + own.start for own in panels(vectors[0])]
    return np.concatenate(found)


def _is_small(vector: Array) -> bool:
    return not isinstance(vector, np.ndarray) or vector.size <= PANEL


def _parts(vectors: tuple[Any, ...], own: slice) -> list[Any]:
    """Return a stretch of each vector; a number is the same for all coordinates."""
    return [vector[own] if np.ndim(vector) else vector for vector in vectors]
