"""The contract of an operator.

An operator acts on flat float64 vectors and gives float64 results, whatever it stores. It never copies its data when
it need not and never changes it. What it stores is only ever read column by column, so data that comes row-major is
brought into column order once, by ``columnar``, when a method starts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..common.arrays import Columns, Indices, Vector
from ..common.cached import cached_property
from ..functions.points import Point
from .gram import PANEL, gram
from .traits import Traits

if TYPE_CHECKING:
    from ..places.torch.device import Device


def one_by_one(columns: Columns) -> Indices:
    """Return columns as their indices."""
    return np.arange(columns.start, columns.stop) if isinstance(columns, slice) else columns


class Operator(ABC):
    """A linear map from R^n to R^m; ``shape`` is (m, n)."""

    shape: tuple[int, int]
    traits: Traits

    surveyed: tuple[Vector, Vector] | None = None
    """A y with its A'y, where that was had in the same reading as ``squares``."""

    remembers: bool = False
    """Whether A'y for the last y is at hand."""

    @property
    def in_memory(self) -> float:
        """Bytes of the entries that are in memory."""
        return 8.0 * self.traits.stored

    @property
    def rounding(self) -> float:
        """Relative rounding of its products; 0 if that is float64's."""
        return 0.0

    def with_memory(self) -> Operator:
        """Return the operator for one run: where a reading is dear, it remembers what was found in the last one."""
        return self

    def memories(self) -> list[Any]:
        """Return what the operator remembers, for a checkpoint."""
        return []

    def forget(self) -> None:
        """Forget what was seen of products: the data behind them may have changed."""
        return

    def measure(self, kind: str, vector: Vector, product: Vector) -> None:
        """Measure the rounding of ``matvec`` or ``rmatvec`` at a vector, if the type of its result may not tell it."""
        return

    @abstractmethod
    def matvec(self, x: Vector) -> Vector:
        """Return A x, in memory of its own, which is the caller's to change."""

    @abstractmethod
    def rmatvec(self, y: Vector) -> Vector:
        """Return A' y, likewise."""

    def products(self, x: Vector, *ys: Vector) -> tuple[Vector, list[Vector]]:
        """Return A x, and A'y for every y, in one reading where that helps."""
        return self.matvec(x), [self.rmatvec(y) for y in ys]

    def there_and_back(self, y: Vector, between: Callable[[Indices, Vector], Vector]) -> Vector:
        """Return A f(A'y) for a function f(columns, products) of each column alone, in one reading where that helps."""
        return self.matvec(between(np.arange(self.shape[1]), self.rmatvec(y)))

    def image(self, x: Point) -> Vector:
        """Return A x, which may be x itself and is not the caller's to change."""
        return self.matvec(x.vector())

    def rimage(self, y: Vector) -> Vector:
        """Return A' y, which may be y itself."""
        return self.rmatvec(y)

    @abstractmethod
    def columns_matvec(self, columns: Columns, x: Vector) -> Vector:
        """Return the sum of the given columns, each times its entry of x."""

    @abstractmethod
    def columns_rmatvec(self, columns: Columns, y: Vector) -> Vector:
        """Return the inner products of the given columns with y."""

    def columns_rtimes(self, columns: Indices, matrix: Vector) -> Vector:
        """Return A_S' M for some columns S and a dense matrix M."""
        return np.stack([self.columns_rmatvec(columns, column) for column in np.ascontiguousarray(matrix.T)], axis=1)

    @abstractmethod
    def sums(self, power: int) -> tuple[Vector, Vector]:
        """Return the column sums and the row sums of |A|^power, for power 0 (entries that are not 0), 1 or 2."""

    @abstractmethod
    def squares_rmatvec(self, y: Vector) -> Vector:
        """Return (A * A)' y, the column sums of squares under row weights y."""

    @abstractmethod
    def largest(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        """Return the largest entry of every column and of every row of |A|, scaled by a weight a column and a row."""

    @abstractmethod
    def absolute_products(self, columns: Vector, rows: Vector) -> tuple[Vector, Vector]:
        """Return |A|' rows and |A| columns."""

    @abstractmethod
    def block_row_sums(self, columns: Columns) -> Vector:
        """Return the sum of |A| over the given columns, row by row."""

    @abstractmethod
    def dense_columns(self, columns: Indices) -> Vector:
        """Return the given columns as a dense m x k array."""

    def compressed(self) -> Any:
        """Return all entries as a CSC matrix of float64."""
        width = max(1, PANEL // self.shape[0])
        panels = np.split(np.arange(self.shape[1]), np.arange(width, self.shape[1], width))
        return sparse.hstack([sparse.csc_matrix(self.dense_columns(panel)) for panel in panels], format="csc")

    def gram(self, columns: Indices, weight: Vector) -> Vector:
        """Return A_S' diag(weight) A_S over some columns S, for weights >= 0: the lower triangle of a dense matrix."""
        return gram([self.dense_columns(columns)], [weight])

    def outer(self, weight: Vector) -> Vector:
        """Return A diag(weight) A' for weights >= 0: the lower triangle of a dense matrix."""
        return gram([self.times(sparse.diags_array(np.sqrt(weight))).T], [np.ones(self.shape[1])])

    def times(self, matrix: Any) -> Vector:
        """Return A times a sparse matrix, as a dense one."""
        return np.asarray(self.dense_columns(np.arange(self.shape[1])) @ matrix)

    def normal(self) -> Any:
        """Return A A': a vector where it is diagonal, a sparse matrix, or the lower triangle of a dense one."""
        return self.outer(np.ones(self.shape[1]))

    def rows_matvec(self, rows: Indices, x: Vector) -> Vector:
        """Return A x in the given rows; what is read of A are these rows after ``rowwise``."""
        return self.matvec(x)[rows]

    def rows_rmatvec(self, rows: Indices, y: Vector) -> Vector:
        """Return the sum of the given rows, each times its entry of y."""
        everywhere = np.zeros(self.shape[0])
        everywhere[rows] = y
        return self.rmatvec(everywhere)

    def rowwise(self) -> Operator:
        """Return an operator with the same entries whose rows are contiguous in memory."""
        return self

    @abstractmethod
    def restrict(self, rows: Indices, columns: Indices) -> Operator:
        """Return the operator between the kept rows and columns."""

    def pack(self, columns: Indices, single: bool) -> Operator:
        """Return some columns in memory of their own, in float32 where ``single`` and that saves memory."""
        return self.restrict(np.arange(self.shape[0]), columns)

    def leaving(self, size: float) -> Operator:
        """Return the same operator with so many bytes less to pack columns into, where those are bounded."""
        return self

    def beside(self, other: Operator) -> Operator:
        """Return [A, B]."""
        from .stacked import Stacked  # which is an operator itself

        return Stacked([*self.side_by_side(), *other.side_by_side()])

    def side_by_side(self) -> Sequence[Operator]:
        """Return the operators that this one consists of, side by side."""
        return [self]

    def columnar(self) -> Operator:
        """Return an operator with the same entries whose columns are contiguous in memory."""
        return self

    def loaded(self, runs: Sequence[Indices]) -> Iterator[Operator]:
        """Yield one run of columns after the other in memory, for a moment: each is gone when the next one comes.

        A run lies within a panel. Where columns cannot be read without the others a run stays where it is.
        """
        if self.traits.reads_columns:
            return self._load(runs)
        every = np.arange(self.shape[0])
        return (self if run.size == self.shape[1] else self.restrict(every, run) for run in runs)

    def _load(self, runs: Sequence[Indices]) -> Iterator[Operator]:
        return (self.pack(run, False) for run in runs)

    def collected(self) -> Operator:
        """Return an operator with the same entries, all of them in this process."""
        return self

    @cached_property
    def squares(self) -> tuple[Vector, Vector]:
        """The column sums and the row sums of the squared entries."""
        return self.sums(2)

    def survey(self, y: Vector) -> None:
        """Find ``squares`` and, where that takes no further reading, A'y."""
        _ = self.squares

    def native(self) -> list[Any]:
        """Return the matrices, side by side, as the native kernels take them; empty where they cannot."""
        return []

    def tensors(self) -> list[Any]:
        """Return the matrices, side by side, as the kernels of a device take them; empty where they cannot."""
        return []

    def place(self, vector: Vector) -> Vector:
        """Return a vector where the entries of A lie: ``gram`` and ``outer`` answer where their weights do."""
        return vector

    def zeros(self, size: int) -> Vector:
        """Return zeros that lie where the vectors of the operator do."""
        return np.zeros(size)

    def placed(self, device: Device) -> Operator:
        """Return the operator with its entries on a device, and with what is known about them."""
        there = self._placed(device)
        for known in ("squares", "surveyed"):
            if known in vars(self):
                setattr(there, known, getattr(self, known))
        return there

    def _placed(self, device: Device) -> Operator:
        raise TypeError("A cannot be moved to a device: it is a LinearOperator, or spread over the processes of comm")
