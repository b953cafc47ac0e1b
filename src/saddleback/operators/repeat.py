"""Entries of x, some of them several times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..common.arrays import Vector, constant, summed_by
from ..common.cached import cached_property
from ..common.checks import indices
from .implicit import Implicit
from .traits import Traits


class Repeat(Implicit):
    r"""The operator :math:`x \mapsto x[\text{columns}]`, in which an entry of x may appear several times.

    It makes groups that overlap disjoint: ``GroupL2(alpha, [len(g) for g in groups])``, as
    a term on ``Repeat(np.concatenate(groups))``, is the sum of the norms of ``groups``.

    Parameters
    ----------
    columns : array-like of int
        The index in x of each entry of the result.
    n : int, optional
        Number of entries of x. By default, the largest index plus 1.

    Examples
    --------
    >>> import saddleback as sb
    >>> sb.Repeat([0, 1, 1, 2]).matvec([5.0, 6.0, 7.0])
    array([5., 6., 6., 7.])
    """

    def __init__(self, columns: ArrayLike, n: int | None = None) -> None:
        self.columns, n = indices("columns", columns, (None,), n)
        self.shape = (self.columns.size, n)
        self.traits = Traits(self.columns.size, norm=float(np.sqrt(self._counts.max())))

    def __repr__(self) -> str:
        return f"Repeat({self.shape[0]} of {self.shape[1]} entries)"

    @cached_property
    def _counts(self) -> Vector:
        """How often each entry of x appears."""
        return summed_by(self.columns, np.ones(self.shape[0]), self.shape[1])

    def _product(self, x: Vector) -> Vector:
        return np.take(x, self.columns)

    def _adjoint(self, y: Vector) -> Vector:
        return summed_by(self.columns, y, self.shape[1])

    def _sums_of_powers(self, power: float) -> tuple[Vector, Vector]:
        return self._counts, constant(1.0, self.shape[0])

    def tosparse(self) -> Any:
        """Return the matrix as a CSC array of float64.

        Returns
        -------
        scipy.sparse.csc_array
            One entry, which is 1, per row.
        """
        rows = np.arange(self.shape[0] + 1)
        return sparse.csr_array((np.ones(self.shape[0]), self.columns, rows), shape=self.shape).tocsc()
