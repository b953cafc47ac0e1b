"""
Compiled core: products with a matrix and the block-coordinate iteration.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, overload

import numpy
import numpy.typing
from numpy.typing import NDArray


MOST_THREADS: int = 1024

def set_threads(n: int) -> int:
    """
    Limit the threads used in calls from this thread; return the previous limit.
    """

def set_process_threads(n: int) -> None:
    """Limit the threads used in calls from threads that have no limit."""

def thread_limit() -> int:
    """Return the number of threads that calls from this thread may use."""

def reserve_threads(n: int) -> int:
    """
    Leave this number of threads unused in calls from this thread; return the previous number.
    """

class Matrix:
    """
    A matrix in float32 or float64: an array with contiguous columns or rows, compressed sparse columns, or matrices one above the other.

    The arrays are neither copied nor converted. Results are in double precision, and have the same bits for any number of threads.
    """

    @overload
    def __init__(self, array: object) -> None: ...

    @overload
    def __init__(self, indptr: object, indices: object, data: object, rows: int) -> None: ...

    @overload
    def __init__(self, parts: Sequence[Matrix], first: Sequence[int], rows: int) -> None: ...

    @property
    def arrays(self) -> tuple[numpy.typing.NDArray[Any], ...]:
        """The array, or indptr, indices and data."""

    def __reduce__(self) -> tuple[Any, ...]: ...

    def matvec(self, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Return A @ x."""

    def rmatvec(self, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Return A.T @ y."""

    def matvec_rounded(self, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], radius: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, precise: bool) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        Return A @ x as a sum of two vectors, a bound on its error for every x within a radius, and abs(A) @ abs(x); if ``precise`` is set, with twice the digits of a double.
        """

    def rmatvec_rounded(self, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], radius: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, precise: bool) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """Return the same for A.T @ y."""

    def columns_rmatvec(self, columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Return A[:, columns].T @ y. The columns of A must be contiguous."""

    def sums(self, power: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        Return the column sums and the row sums of |A| ** power, for the powers 0 (a count), 1 and 2.
        """

    def scan(self, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        Return the column sums and the row sums of A ** 2, and A.T @ y, in one reading of contiguous columns.
        """

    def columns(self, columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], single: bool) -> Matrix:
        """
        Return A[:, columns] in separate memory, in float32 if ``single`` is set.
        """

    def check(self) -> tuple[bool, bool]:
        """
        Return whether every index lies inside the matrix, and whether the rows of each column increase.
        """

def csr_gram(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], columns: int, weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """
    Return A.T @ diag(weight) @ A, its lower triangle by columns, for A in compressed sparse rows.
    """

def digest(array: Annotated[NDArray, dict(device='cpu', writable=False)]) -> int:
    """
    Return a number that differs, almost certainly, if any bit of the vector differs.
    """

def use_blas(routines: dict) -> None:
    """
    Take the routines of BLAS and LAPACK, by name, from what scipy offers to compiled code.
    """

def cholesky(matrix: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu')]) -> int:
    """
    Replace the lower triangle by its Cholesky factor; return 0, or the first pivot that is not positive.
    """

def add_gram(panel: Annotated[NDArray, dict(device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu')]) -> None:
    """
    Add panel.T @ diag(weight) @ panel to the lower triangle of a matrix with contiguous columns.
    """

@overload
def product(A: Annotated[NDArray, dict(device='cpu', writable=False)], B: Annotated[NDArray, dict(device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu')], symmetric: bool = False) -> None: ...

@overload
def product(A: Annotated[NDArray, dict(device='cpu', writable=False)], B: Annotated[NDArray, dict(device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu')], symmetric: bool = False) -> None:
    """
    Write A @ B, which may be known to be symmetric, to a matrix with contiguous rows. All have the same type.
    """

def project_on_balls(v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], radius: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """
    Return the projection of v, group by group, on balls around 0; the groups are v[order[start[g] : start[g + 1]]].
    """

def denoise_line(v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: float) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """
    Return the x that minimises sum(weight * (x - v) ** 2) / 2 + alpha * sum(abs(diff(x))), for positive weights.
    """

def gram_path(gram: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], linear: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], constant: float, left: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], quadratic: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], tol: float, most: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """
    Return the minimisers of f(x) + x'Gx / 2 - c'x for one f after the other, and the sweeps that each took; a path that ends early has 0 sweeps for the others.
    """

def pool(v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """
    Return the non-decreasing x that minimises sum(weight * (x - v) ** 2), for positive weights.
    """

def sort_and_pool(v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], taken: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], absolute: bool) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """
    Return the x that minimises sum(taken * sort(x)) + sum((x - v) ** 2) / 2, for taken in non-decreasing order; with absolute, the same for sort(abs(x)).
    """

def piecewise_excess(parameters: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], point: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], radius: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], high: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], low: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], error: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], size: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], conjugate: bool) -> tuple[tuple[float, float, float, float, float], tuple[float, float, float, float], tuple[float, float, float, float], tuple[bool, bool, bool]]:
    """
    Return the gap, its exact part, what is missed, the infeasibility and the feasible multiple; the value and the conjugate, each as a sum with twice the digits of a double, its error and its size; and whether the point is inside, the slope is inside, and the slope is inside up to rounding; with ``conjugate``, of the conjugate.
    """

def absolute_dot(a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float:
    """Return the sum of |a * b|."""

def aim_bounds(pairs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], at: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, side: float, mu: float, corrected: bool, right: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Aim at products of mu, with the second-order term of the last direction if asked; subtract e from ``right``.
    """

def recentre_bounds(pairs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], at: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, side: float, mu: float, near_step: float, far_step: float, right: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Correct the aim of products that a step would leave far from mu; subtract e from ``right``.
    """

def follow_bounds(pairs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], at: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, side: float, dv: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rest: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[float, float, float, float, float]:
    """
    Compute the changes that follow from dv, and subtract that of the slope from ``rest``. Return the fastest relative changes of near and far, and the sums of near_change * far, near * far_change and near_change * far_change.
    """

def move_bounds(pairs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], at: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, side: float, near_step: float, far_step: float, slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], stiffness: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float:
    """
    Take a step, and add the slope and its derivative. Return the sum of the products.
    """

def aim_kinks(up: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], down: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], at: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, mu: float, corrected: bool, right: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Aim at products of mu, with the second-order term of the last direction if asked; subtract e from ``right``.
    """

def recentre_kinks(up: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], down: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], at: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, mu: float, near_step: float, far_step: float, right: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Correct the aim of products that a step would leave far from mu; subtract e from ``right``.
    """

def follow_kinks(up: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], down: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], at: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, dv: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], absorbs: bool, rest: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[float, float, float, float, float]:
    """
    Compute the changes that follow from dv. If ``absorbs``, the slope changes by ``rest``; otherwise its change is subtracted from it. Return what ``follow_bounds`` returns.
    """

def move_kinks(up: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], down: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], at: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, left: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], near_step: float, far_step: float, slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], stiffness: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float:
    """
    Take a step, and add the slope and its derivative. Return the sum of the products.
    """

BAND_WIDTHS: tuple = (1, 2, 3, 4, 6, 8, 12, 16)

class Band:
    """A symmetric band matrix."""

    def diagonal(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Return the diagonal, rounded to doubles."""

    def set_diagonal(self, at: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Replace some entries of the diagonal."""

    def factor(self) -> float:
        """
        Replace the matrix by its factors L D L'. Return the least pivot relative to its entry of the diagonal; 0 if the matrix is not positive definite.
        """

    def solve(self, right: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Return the solution of a system."""

class PreciseBand:
    """A symmetric band matrix with twice the digits of a double."""

    def diagonal(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Return the diagonal, rounded to doubles."""

    def set_diagonal(self, at: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Replace some entries of the diagonal."""

    def factor(self) -> float:
        """
        Replace the matrix by its factors L D L'. Return the least pivot relative to its entry of the diagonal; 0 if the matrix is not positive definite.
        """

    def solve(self, right: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Return the solution of a system."""

class BandRows:
    """A matrix in compressed sparse rows whose entries lie in a band."""

    def __init__(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], columns: int, width: int) -> None: ...

    def gram(self, weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], diagonal: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Band:
        """Return A.T @ diag(weight) @ A + diag(diagonal)."""

    def precise_gram(self, weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], diagonal: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> PreciseBand:
        """
        Return A.T @ diag(weight) @ A + diag(diagonal), with twice the digits of a double.
        """

class SparseFactor:
    """The Cholesky factor of a sparse matrix."""

    def solve(self, right: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Return the solution of a system."""

class SparsePattern:
    """
    The lower triangle of a sparse symmetric matrix in compressed columns, without values.
    """

    def __init__(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def postorder(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """
        Return an order with the same entries in the Cholesky factor in which each column follows its descendants.
        """

    def analyse(self, most: int) -> bool:
        """
        Find the pattern of the Cholesky factor, for columns in postorder; return whether it has at most ``most`` entries.
        """

    @property
    def entries(self) -> int:
        """The stored entries of the Cholesky factor."""

    @property
    def multiplications(self) -> float:
        """The multiplications of a factorisation."""

    def gram(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], diagonal: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Return the values of A.T @ diag(weight) @ A + diag(diagonal) for A in compressed sparse rows.
        """

    def factor(self, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> SparseFactor | None:
        """
        Return the Cholesky factor of the matrix with these values; None if it is not positive definite.
        """

class RowLoss:
    """A loss that is a sum over the rows."""

    @staticmethod
    def coordinate(left: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], quadratic: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> RowLoss:
        """
        Return the loss whose conjugate has these slopes left and right of 0, quadratic term and bounds.
        """

    @staticmethod
    def logistic(label: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> RowLoss:
        """Return weight * log(1 + exp(-label * u))."""

    @staticmethod
    def callable(rows: int, address: int, user_data: int, takes_user_data: bool) -> RowLoss:
        """
        Return the loss with a compiled proximal map: its address, and that of its data or 0.
        """

class Kernel:
    """
    The block-coordinate iteration for one problem.

    The matrices stand side by side, with contiguous columns; they are not copied and must not change. Block j consists of the
    columns ``block_columns[block_start[j]:block_start[j + 1]]``. The penalty has five vectors: slopes left and right of 0,
    quadratic term, lower and upper bound. ``group_weight`` is the weight of the norm of each block. With 0 its columns are
    separate; otherwise they have no quadratic term and no bounds. A penalty callable is (first column, stop column, address,
    address of user data or 0, whether it takes them).
    """

    def __init__(self, matrices: Sequence[Matrix], block_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], block_columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], penalty: tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], group_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: RowLoss, penalty_callables: Sequence[tuple[int, int, int, int, bool]] = ()) -> None: ...

    def sweep(self, draws: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], h: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sigma: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], extrapolation: float, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], x_sum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], y_sum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], lazy: bool = False, exchange: Callable | None = None) -> None:
        """
        Run one iteration for each row of draws, and update the last five vectors in place.

        The draws of a row are a set: a block drawn twice moves once. ``lazy`` gives the same iterates up to rounding at the cost
        of the entries in the drawn columns, and needs a coordinate loss. ``exchange`` is called in every iteration with the change
        of A @ x, to which it adds the changes of the other processes; blocks that do not exist are then left to these.
        """

    def sweep_pure(self, draws: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], h: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sigma: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], bar: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], x_sum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], y_sum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """
        Run one iteration of PURE-CD for each row of draws, and update the last six vectors in place.

        ``y_sum`` adds up ``bar``, which ends as the dual step from y in all rows.
        """

    def primal_step(self, blocks: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], h: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """Update x in the drawn blocks and write the change of A @ x to v."""

class Descent:
    """
    Block coordinate descent for one problem with a smooth loss, in panels of columns.

    The problem is given as for ``Kernel``; a block of several columns has no quadratic term and no bounds. A panel has at most
    ``width`` columns, or a single block. ``measured`` is descent on the first blocks and columns of this problem, whose panels
    need not be measured again.
    """

    def __init__(self, matrices: Sequence[Matrix], block_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], block_columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], penalty: tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], group_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: RowLoss, width: int, measured: Descent | None = None) -> None: ...

    def rebind(self, matrices: Sequence[Matrix]) -> None:
        """Use from now on matrices with the same entries elsewhere in memory."""

    def sweep(self, sweeps: int, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], exchange: Callable | None = None) -> int:
        """
        Visit all blocks once, and then ``sweeps`` - 1 times those whose panel is not all 0.

        Update x, u = A @ x and y, the gradient of the loss at u, in place; return the number of columns visited. With ``exchange``
        the columns are those of one process: it is called with numbers to which it adds those of the other processes.
        """

    @property
    def columns_between_exchanges(self) -> float:
        """
        Columns that a process visits between exchanges. It falls when a step had to be shortened.
        """

    @columns_between_exchanges.setter
    def columns_between_exchanges(self, arg: float, /) -> None: ...

    def strength(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Return a bound on the curvature of the loss along the block of each column.
        """

    def products(self, columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Return A_S.T @ y over the listed columns S."""

    def image(self, columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], d: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Return A_S @ d over the listed columns S."""

    def solve(self, columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], extra: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], along: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], group: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], diagonal: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], tolerance: float, most: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], int]:
        """
        Solve (A_S' diag(weight) A_S + diag(extra) - sum_g e_g e_g') d = right over the listed columns S.

        e_g holds the entries of ``along`` in group g. Use conjugate gradients with the diagonal as preconditioner, to a relative
        residual. Return d and the number of steps.
        """

def evaluate_piecewise_rows(X: Sequence[Annotated[NDArray, dict(device='cpu', writable=False)]], numbers: Sequence[Annotated[NDArray, dict(device='cpu', writable=False)]], weight: Annotated[NDArray, dict(device='cpu', writable=False)], centre: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], intercept: bool, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], leverage: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], width: float, resolved: float, chosen: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, curved: bool) -> tuple[float, float, float, Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
    """
    Evaluate a loss of dense rows, a list with one matrix or of all columns, given by the five parameters of its conjugate, in the calling thread.

    Return the sums of values and of tangents at 0, the rise, the squares of y, z and data, A'y, the diagonal of A'DA if rows are chosen, A'DA or nothing, the rows close to a kink unless rows are chosen, and the y of the rows that are kept.
    """

def evaluate_logistic_rows(X: Sequence[Annotated[NDArray, dict(device='cpu', writable=False)]], numbers: Sequence[Annotated[NDArray, dict(device='cpu', writable=False)]], weight: Annotated[NDArray, dict(device='cpu', writable=False)], centre: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], intercept: bool, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], leverage: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], width: float, resolved: float, chosen: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, curved: bool) -> tuple[float, float, float, Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
    """The same for the logistic loss, given by its labels."""

def triangular_rows(rows: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], columns: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], usable: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], roots: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """
    Return rows, each with the column that it covers, of a sparse matrix given by its rows and by its columns; the columns in ``roots`` need no row.
    """

def solve_triangular_rows(row: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], column: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], columns: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], height: int, d: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bound: bool) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """
    Return w with B'w = d on these rows, 0 elsewhere; with bound, an upper bound on |w| for every |d'| <= d.
    """
