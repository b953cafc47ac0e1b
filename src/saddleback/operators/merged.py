"""One matrix in the place of several side by side.

A working set that has grown several times is a row of small matrices. Gram matrices and products take longer with many
small matrices than with one.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .contract import Operator
from .dense import Dense
from .memory import bytes_in_memory
from .sparse import Compressed
from .stacked import parts_of

LARGEST = 5e8
"""Most bytes of an operator that is copied."""


def merged(A: Operator) -> Operator:
    """Return one matrix with the same entries, if all of its parts are dense or all are sparse; otherwise A itself."""
    parts = parts_of(A)
    if len(parts) == 1 or bytes_in_memory(A) > min(LARGEST, A.traits.budget):
        return A
    dense = [part.array for part in parts if isinstance(part, Dense)]
    if len(dense) == len(parts):
        return Dense(np.concatenate([array.T for array in dense]).T)  # column by column, as the parts are stored
    if all(isinstance(part, Compressed) for part in parts):
        return Compressed(sparse.csc_array(A.entries(compressed=True)))
    return A
