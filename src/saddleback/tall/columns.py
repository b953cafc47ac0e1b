"""Matrices whose columns lie apart in memory, as those of tables do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..common.arrays import Indices


class Columns:
    """A matrix of columns that are separate arrays of one type: the compiled core reads them without a copy.

    Some of its rows, or all of them, are an ordinary array by columns.
    """

    def __init__(self, parts: Sequence[NDArray[Any]]) -> None:
        self.parts = list(parts)
        self.shape, self.dtype = (len(self.parts[0]), len(self.parts)), self.parts[0].dtype

    def __getitem__(self, rows: slice | Indices) -> NDArray[Any]:
        chosen = [part[rows] for part in self.parts]
        return np.array(chosen, dtype=self.dtype).T

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype=dtype)
