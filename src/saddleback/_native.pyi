"""Compiled core: products with a matrix and the block-coordinate iteration.

Arrays are taken as they are: one of another dtype, or not contiguous where it
has to be, raises TypeError or ValueError rather than being copied. Results have
the same bits at any number of threads.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

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

MOST_THREADS: int

def set_threads(n: int) -> int:
    """Limit the threads used in calls from this thread; return the previous limit."""

def set_process_threads(n: int) -> None:
    """Limit the threads used in calls from every thread without a limit of its own."""

def thread_limit() -> int:
    """Return the number of threads that calls from this thread may use."""

def leave_threads(n: int) -> int:
    """Leave so many of the threads to others in calls from this thread; return how many were left so far."""

def dense_matvec(A: _Stored, x: _Vector) -> _Vector:
    """Return A @ x in double precision; A has contiguous columns or contiguous rows."""

def dense_rmatvec(A: _Stored, y: _Vector) -> _Vector:
    """Return A.T @ y in double precision; A has contiguous columns or contiguous rows."""

def dense_columns_rmatvec(A: _Stored, columns: _Indices, y: _Vector) -> _Vector:
    """Return A[:, columns].T @ y in double precision; A has contiguous columns."""

def dense_sums(A: _Stored, power: int) -> tuple[_Vector, _Vector]:
    """Return the column and the row sums of |A| ** power, power 0 (a count), 1 or 2."""

def dense_survey(A: _Stored, y: _Vector) -> tuple[_Vector, _Vector, _Vector]:
    """Return the column and the row sums of A ** 2 and A.T @ y, in one reading of A, which has contiguous columns."""

def csc_survey(
    indptr: _SparseIndices, indices: _SparseIndices, data: _Stored, rows: int, y: _Vector
) -> tuple[_Vector, _Vector, _Vector]:
    """Return the same for A in compressed sparse columns."""

def csc_columns(
    indptr: _SparseIndices, indices: _SparseIndices, data: _Stored, columns: _Indices, single: bool
) -> tuple[_SparseIndices, _SparseIndices, _Stored]:
    """Return indptr, indices and data of some columns, in float32 if ``single`` or where A is."""

def dense_columns(A: _Stored, columns: _Indices, single: bool) -> _Stored:
    """Return some columns, contiguous and in memory of their own, in float32 if ``single`` or where A is."""

def csc_matvec(indptr: _SparseIndices, indices: _SparseIndices, data: _Stored, rows: int, x: _Vector) -> _Vector:
    """Return A @ x for A in compressed sparse columns, whose indices are checked."""

def csc_rmatvec(indptr: _SparseIndices, indices: _SparseIndices, data: _Stored, rows: int, y: _Vector) -> _Vector:
    """Return A.T @ y for A in compressed sparse columns, whose indices are checked."""

def csc_columns_rmatvec(
    indptr: _SparseIndices,
    indices: _SparseIndices,
    data: _Stored,
    rows: int,
    columns: _Indices,
    y: _Vector,
) -> _Vector:
    """Return A[:, columns].T @ y for A in compressed sparse columns."""

def csc_sums(
    indptr: _SparseIndices, indices: _SparseIndices, data: _Stored, rows: int, power: int
) -> tuple[_Vector, _Vector]:
    """Return the column and the row sums of |A| ** power, power 0 (a count), 1 or 2."""

def csc_check(indptr: _SparseIndices, indices: _SparseIndices, data: _Stored, rows: int) -> tuple[bool, bool]:
    """Return whether every index lies inside the matrix, and whether the rows of each column increase."""

def digest(array: NDArray[np.generic]) -> int:
    """Return a number that differs, with near certainty, if any bit of a contiguous vector does."""

def csr_gram(indptr: _Indices, indices: _Indices, data: _Vector, columns: int, weight: _Vector) -> _Vector:
    """Return A.T @ diag(weight) @ A, its lower triangle by columns, for A in compressed sparse rows."""

def use_blas(routines: dict[str, Any]) -> None:
    """Take the routines of BLAS and LAPACK, by name, from what scipy offers to compiled code."""

def cholesky(matrix: _Vector) -> int:
    """Replace the lower triangle by its Cholesky factor; return 0, or the first pivot that is not positive."""

def add_gram(panel: _Stored, weight: _Vector, out: _Vector) -> None:
    """Add panel.T @ diag(weight) @ panel to the lower triangle of a matrix with contiguous columns."""

def product(A: _Stored, B: _Stored, out: _Stored, symmetric: bool = ...) -> None:
    """Write A @ B, which may be known to be symmetric, to a matrix with contiguous rows; all of one type."""

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
        exchange: Callable[[_Vector], object] | None = None,
    ) -> None:
        """Run one iteration for each row of draws, updating the last five vectors in place.

        The draws of a row count as a set: a block drawn twice moves once. ``lazy`` gives the same iterates up to
        rounding at the cost of the entries in the drawn columns, and needs a coordinate loss. ``exchange`` is called
        with the change of A @ x in every iteration, to add to it what others have changed; draws beyond the last block
        are then those of nobody.
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

class SmoothLoss:
    """A smooth loss that separates over the rows.

    Parameters
    ----------
    rows
        Of the matrix.
    loss
        ("coordinate", ...) with a positive quadratic term, or ("logistic", labels, weights).
    curvature
        Bound on its second derivative, row by row.
    """

    def __init__(self, rows: int, loss: _Loss, curvature: _Vector) -> None: ...

class Descent:
    """Block coordinate descent for one problem with a smooth loss, its columns taken in panels.

    Parameters
    ----------
    rows, matrices, block_start, block_columns, penalty, group_weight
        As for ``Kernel``.
    loss
        Which kernels may share.
    width
        Most columns of a panel; a block wider than that is a panel of its own.
    measured
        A kernel for the first blocks and columns of this problem, whose panels are taken over. It is not to be used
        afterwards.
    """

    def __init__(
        self,
        rows: int,
        matrices: Sequence[_Stored | _Sparse],
        block_start: _Indices,
        block_columns: _Indices,
        penalty: _Parameters,
        group_weight: _Vector,
        loss: SmoothLoss,
        width: int,
        measured: Descent | None = None,
    ) -> None: ...
    def look_into(self, matrices: Sequence[_Stored | _Sparse]) -> None:
        """Look from now on into matrices with the same entries elsewhere in memory."""

    together: float
    """Columns that are visited before processes meet: fewer, as the sweeps go on, where a step had to be shortened."""

    def sweep(
        self,
        sweeps: int,
        x: _Vector,
        u: _Vector,
        y: _Vector,
        exchange: Callable[[_Vector], object] | None = None,
    ) -> int:
        """Visit all blocks once, and then ``sweeps`` - 1 times more those whose panel is not all 0.

        Update x, u = A @ x and y, the gradient of the loss at u, in place; return how many columns were visited.
        With ``exchange`` the columns are some of a larger problem: it is called with numbers to which it adds those of
        the other processes, as many for all of them.
        """

    def strength(self) -> _Vector:
        """Return a bound on the curvature of the loss along the block of each column."""

    def products(self, columns: _Indices, y: _Vector) -> _Vector:
        """Return A_S.T @ y over the listed columns S."""

    def image(self, columns: _Indices, d: _Vector) -> _Vector:
        """Return A_S @ d over the listed columns S."""

    def solve(
        self,
        columns: _Indices,
        weight: _Vector,
        extra: _Vector,
        along: _Vector,
        group: _Indices,
        right: _Vector,
        diagonal: _Vector,
        tolerance: float,
        most: int,
    ) -> tuple[_Vector, int]:
        """Solve (A_S' diag(weight) A_S + diag(extra) - sum_g e_g e_g') d = right over the listed columns S.

        e_g holds the entries of ``along`` in group g. Conjugate gradients under the diagonal, to a relative residual.
        Return d and the steps taken.
        """
