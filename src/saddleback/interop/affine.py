"""Affine expressions of CVXPY as matrices.

CVXPY orders the entries of matrices by columns, Saddleback by rows. Everything here is by rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from scipy import sparse

from ..common.arrays import Indices, Vector

DENSE = 0.3
"""Share of nonzero entries from which a matrix is stored as a dense one."""


class Entries(NamedTuple):
    """Multiples of different entries of one variable."""

    variable: int
    places: Indices
    factors: Vector


@dataclass(frozen=True)
class Affine:
    """A_1 x_1 + ... + A_J x_J + constant, flat; ``matrices`` has those A_j that are not 0, by j."""

    matrices: dict[int, Any]
    constant: Vector

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.constant.size

    def __add__(self, other: Affine) -> Affine:
        matrices = dict(self.matrices)
        for j, matrix in other.matrices.items():
            matrices[j] = matrices[j] + matrix if j in matrices else matrix
        return Affine(matrices, self.constant + other.constant)

    def __neg__(self) -> Affine:
        return self.times(-1.0)

    def times(self, factor: float | Vector) -> Affine:
        """Return the expression times a number, or times one number per entry."""
        factor = np.broadcast_to(factor, self.constant.shape)
        matrices = {j: sparse.diags_array(factor) @ matrix for j, matrix in self.matrices.items()}
        return Affine(matrices, factor * self.constant)

    def inner(self, other: Affine) -> float:
        """Return the sum of the products of all coefficients."""
        both = (_products(A, other.matrices[j]) for j, A in self.matrices.items() if j in other.matrices)
        return float(self.constant @ other.constant + sum(both))

    def rows(self, index: Indices) -> Affine:
        """Return some entries."""
        return Affine({j: by_rows(matrix)[index] for j, matrix in self.matrices.items()}, self.constant[index])

    def entries(self) -> Entries | None:
        """Return the entries of a variable whose multiples these are, without the constant; None if they are not."""
        if len(self.matrices) != 1:
            return None
        ((j, matrix),) = self.matrices.items()
        if np.count_nonzero(matrix.data if sparse.issparse(matrix) else matrix) != self.size:
            return None
        found = sparse.coo_array(matrix)
        found.eliminate_zeros()
        row, column = found.coords
        if np.unique(row).size < self.size or np.unique(column).size < self.size:
            return None
        order = np.argsort(row)
        return Entries(j, column[order], found.data[order])


def _products(first: Any, second: Any) -> float:
    if sparse.issparse(second):
        first, second = second, first
    return float((first.multiply(second) if sparse.issparse(first) else first * second).sum())


def by_rows(matrix: Any) -> Any:
    """Return a matrix whose rows can be chosen."""
    return sparse.csr_array(matrix) if sparse.issparse(matrix) else matrix


class Reader:
    """Reads affine expressions of some variables."""

    def __init__(self, variables: Sequence[Any]) -> None:
        self.variables = variables
        self.number = {variable.id: j for j, variable in enumerate(variables)}
        self.copies = [cp.Variable(variable.shape, value=np.zeros(variable.shape)) for variable in variables]

    def affine(self, expression: Any) -> Affine:
        """Return an affine expression as matrices."""
        special = SPECIAL.get(type(expression).__name__)
        found = None if special is None else special(self, expression)
        return self._by_derivative(expression) if found is None else found

    def _by_derivative(self, expression: Any) -> Affine:
        """Return an affine expression by its derivative and its value at 0.

        Both belong to a copy with other variables, so that the values of the user's variables do not change.
        """
        pairs = zip(self.variables, self.copies, strict=True)
        at_zero = replace(expression, {id(variable): copy for variable, copy in pairs})
        constant = np.asarray(_dense(at_zero.value), dtype=np.float64).reshape(expression.shape)
        matrices = {}
        derivatives = {copy.id: derivative for copy, derivative in at_zero.grad.items()}
        for j, copy in enumerate(self.copies):
            derivative = derivatives.get(copy.id, 0.0)
            own = sparse.csr_array(np.atleast_2d(derivative) if np.isscalar(derivative) else derivative).T.tocsr()
            if own.nnz:
                own = own[_by_columns(expression.shape)][:, _by_columns(copy.shape)]
                own.eliminate_zeros()
                matrices[j] = own.toarray() if own.nnz >= DENSE * own.shape[0] * own.shape[1] else own
        return Affine(matrices, constant.ravel())


def replace(expression: Any, new: dict[int, Any]) -> Any:
    """Return an expression in which some parts, given by their ``id``, are replaced.

    ``tree_copy`` of CVXPY does not replace atoms whose class has its own ``copy``.
    """
    if id(expression) in new or not expression.args:
        return new.get(id(expression), expression)
    return expression.copy([replace(part, new) for part in expression.args])


def _sum(reader: Reader, expression: Any) -> Affine | None:
    if any(part.shape != expression.shape for part in expression.args):
        return None
    return reduce(Affine.__add__, map(reader.affine, expression.args))


def _negative(reader: Reader, expression: Any) -> Affine:
    return -reader.affine(expression.args[0])


def _product(reader: Reader, expression: Any) -> Affine | None:
    """Return the matrix of the user without a copy, for a matrix times a variable that is a vector."""
    matrix, variable = expression.args
    j = reader.number.get(getattr(variable, "id", None))
    if j is None or variable.ndim != 1 or matrix.ndim != 2 or not matrix.is_constant():
        return None
    value = matrix.value
    return Affine({j: sparse.csc_array(value) if sparse.issparse(value) else value}, np.zeros(matrix.shape[0]))


SPECIAL: dict[str, Callable[[Reader, Any], Affine | None]] = {
    "AddExpression": _sum,
    "NegExpression": _negative,
    "MulExpression": _product,
}
"""Expressions that are read without derivatives, by their class: these would copy a dense matrix into a sparse one."""


def _by_columns(shape: tuple[int, ...]) -> Indices:
    """Return where each entry, ordered by rows, is in the order by columns."""
    return np.arange(int(np.prod(shape, dtype=int))).reshape(shape, order="F").ravel()


def _dense(value: Any) -> Any:
    return value.toarray() if sparse.issparse(value) else value
