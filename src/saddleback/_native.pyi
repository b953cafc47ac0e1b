"""Compiled core: products with a matrix and the block-coordinate iteration.

Arrays are taken as they are: one of another dtype, or not contiguous where it
has to be, raises TypeError or ValueError rather than being copied. Results have
the same bits at any number of threads.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Vector: TypeAlias = NDArray[np.float64]
_Indices: TypeAlias = NDArray[np.int64]
_Stored: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
_SparseIndices: TypeAlias = NDArray[np.int32] | NDArray[np.int64]
_Sparse: TypeAlias = tuple[_SparseIndices, _SparseIndices, _Stored, int]
_Parameters: TypeAlias = tuple[_Vector, _Vector, _Vector, _Vector, _Vector]
_Loss: TypeAlias = (
    tuple[Literal["coordinate"], _Vector, _Vector, _Vector, _Vector, _Vector]
    | tuple[Literal["logistic"], _Vector, _Vector]
    | tuple[Literal["callable"]]
)

def hardware_threads() -> int:
    """Return the number of threads the machine can run at once."""

def set_threads(n: int) -> int:
    """Limit the threads used by this module; return the previous limit."""

def dense_matvec(A: _Stored, x: _Vector) -> _Vector:
    """Return A @ x in double precision; A has contiguous columns or contiguous rows."""

def dense_rmatvec(A: _Stored, y: _Vector) -> _Vector:
    """Return A.T @ y in double precision; A has contiguous columns or contiguous rows."""

def dense_sums(A: _Stored, power: int) -> tuple[_Vector, _Vector]:
    """Return the column and the row sums of |A| ** power, power 0 (a count), 1 or 2."""

def csc_matvec(indptr: _SparseIndices, indices: _SparseIndices, data: _Stored, rows: int, x: _Vector) -> _Vector:
    """Return A @ x for A in compressed sparse columns."""

def csc_rmatvec(indptr: _SparseIndices, indices: _SparseIndices, data: _Stored, rows: int, y: _Vector) -> _Vector:
    """Return A.T @ y for A in compressed sparse columns."""

def csc_sums(
    indptr: _SparseIndices, indices: _SparseIndices, data: _Stored, rows: int, power: int
) -> tuple[_Vector, _Vector]:
    """Return the column and the row sums of |A| ** power, power 0 (a count), 1 or 2."""

class Kernel:
    """The iteration for one problem.

    Parameters
    ----------
    rows
        Rows of the matrix.
    matrices
        Arrays with contiguous columns or tuples (indptr, indices, data, n_columns), side by side.
        They are looked into, not copied, and must not change.
    block_start, block_columns
        Block j consists of the columns ``block_columns[block_start[j]:block_start[j + 1]]``.
    penalty
        (left, right, quadratic, lower, upper) for each column.
    group_weight
        Weight of the norm of each block; 0 leaves its columns separate.
    loss
        Kind of the loss and its parameters for each row.
    penalty_callables
        (first column, stop column, address, address of user data or 0, whether it takes them).
    loss_callable
        (address, address of user data or 0, whether it takes them).
    """

    def __init__(
        self,
        rows: int,
        matrices: Sequence[_Stored | _Sparse],
        block_start: _Indices,
        block_columns: _Indices,
        penalty: _Parameters,
        group_weight: _Vector,
        loss: _Loss,
        penalty_callables: Sequence[tuple[int, int, int, int, bool]] = (),
        loss_callable: tuple[int, int, bool] | None = None,
    ) -> None: ...
    def sweep(
        self,
        draws: NDArray[np.int64],
        h: _Vector,
        sigma: _Vector,
        extrapolation: float,
        x: _Vector,
        y: _Vector,
        r: _Vector,
        x_sum: _Vector,
        y_sum: _Vector,
        lazy: bool = False,
    ) -> None:
        """Run one iteration for each row of draws, updating the last five vectors in place.

        The draws of a row count as a set: a block drawn twice moves once. ``lazy`` gives the same iterates up to
        rounding at the cost of the entries in the drawn columns, and needs a coordinate loss.
        """

    def sweep_pure(
        self,
        draws: NDArray[np.int64],
        h: _Vector,
        sigma: _Vector,
        theta: _Vector,
        x: _Vector,
        y: _Vector,
        bar: _Vector,
        r: _Vector,
        x_sum: _Vector,
        y_sum: _Vector,
    ) -> None:
        """Run one iteration of PURE-CD for each row of draws, updating the last six vectors in place.

        What is summed is ``bar``, which ends as the dual step from y in all rows.
        """

    def primal_step(self, blocks: _Indices, h: _Vector, x: _Vector, y: _Vector, v: _Vector) -> None:
        """Update x on the drawn blocks and write the change of A @ x to v."""
