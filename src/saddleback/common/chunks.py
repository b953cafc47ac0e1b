"""Formulas of many coordinates, evaluated one panel at a time.

A formula like ``clip((y - b) / q, low, high)`` in numpy writes a whole vector for each of its operations. If vectors
are as large as the data, these temporaries dominate the memory of a run, and reading them dominates the time. Therefore
a function that is a sum over coordinates is evaluated on panels that stay in the cache: the formula is the same, but
its temporaries are small. Parameters are converted to float64 per panel, so that float32 data need no copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

PANEL = 1 << 16
"""Coordinates per panel: half a megabyte per vector."""

SERIAL = 1 << 12
"""Largest number of coordinates for which the BLAS computes an inner product without threads."""

Array = NDArray[Any]


def panels(vector: Array) -> Iterator[slice]:
    """Yield slices that cover a vector; a single one on a device, where large operations are faster."""
    width = PANEL if isinstance(vector, np.ndarray) else max(vector.size, 1)
    return (slice(a, min(a + width, vector.size)) for a in range(0, vector.size, width))


def panels_of_rows(matrix: Array) -> Iterator[slice]:
    """Yield slices that cover the rows of a matrix; a single one on a device."""
    height = max(1, PANEL // max(matrix.shape[1], 1)) if isinstance(matrix, np.ndarray) else matrix.shape[0]
    return (slice(a, a + height) for a in range(0, matrix.shape[0], height))


def double(values: Array) -> Array:
    """Return values in float64, without a copy if they are float64 already."""
    return values if values.dtype == np.float64 else values.astype(np.float64)


def inner(a: Array, b: Array) -> float:
    """Return <a, b>, without the BLAS if it would use threads: starting them takes longer than a panel."""
    if isinstance(a, np.ndarray) and a.size > SERIAL:
        return float(np.einsum("i,i", a, b))
    return float(a @ b)


def chunked_sum(method: Callable[..., float]) -> Callable[..., float]:
    """Return a method that evaluates a sum over coordinates panel by panel, and adds up the results."""

    @wraps(method)
    def in_panels(self: Any, *vectors: Any) -> float:
        if not isinstance(vectors[0], np.ndarray) or vectors[0].size <= PANEL:
            return method(self, *vectors)
        return float(sum(method(self.panel(own), *_parts(vectors, own)) for own in panels(vectors[0])))

    return in_panels


def chunked_map(method: Callable[..., Array]) -> Callable[..., Array]:
    """Return a method that evaluates a coordinatewise function panel by panel, and joins the results to a vector.

    If the method returns its first argument for all panels, so does the result.
    """

    @wraps(method)
    def in_panels(self: Any, *vectors: Any) -> Array:
        whole = vectors[0]
        if not isinstance(whole, np.ndarray) or whole.size <= PANEL:
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
    """Return the coordinates at which a condition holds."""
    if not isinstance(vectors[0], np.ndarray) or vectors[0].size <= PANEL:
        return condition(*vectors).nonzero()[0]
    found = [np.flatnonzero(condition(*_parts(vectors, own))) + own.start for own in panels(vectors[0])]
    return np.concatenate(found)


def _parts(vectors: tuple[Any, ...], own: slice) -> list[Any]:
    """Return a slice of each vector; numbers are returned unchanged."""
    return [vector[own] if np.ndim(vector) else vector for vector in vectors]
