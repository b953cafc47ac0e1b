r"""The columns of a fit: X, and beside it a column of ones for an intercept.

With an intercept, moving a column or the targets by a constant moves the intercept alone: the objective is the same at
the same coefficients. Dense columns are centred, since columns with large means are far from orthogonal to the
intercept and take a method many times the passes. Where the best constant is the mean, as under a squared loss, the
intercept of centred data is 0, and no column is needed for it. Sparse columns stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .samples import Vector


class Design:
    """The matrices of a linear model, and coefficients there and back.

    Parameters
    ----------
    X : samples by features, dense or sparse by columns.
    weight : one value a sample, or None.
    intercept : whether the model has one.
    mean_is_best : whether the constant with the least loss is the mean of the targets.
    """

    def __init__(self, X: Any, weight: Vector | None, intercept: bool, mean_is_best: bool = False) -> None:
        self.intercept = intercept
        self.n_rows, self.n_features = X.shape
        self.centre = np.zeros(self.n_features)
        self.matrix = X
        centred = intercept and not sparse.issparse(X)
        self.column = intercept and not (centred and mean_is_best)
        if centred:
            self.centre = _centre(X, weight)
            self.matrix = np.subtract(X, self.centre, out=np.empty(X.shape, X.dtype, order="F"), casting="same_kind")
        if centred and not self.column:  # once more, by what the rounding of large means has left
            rest = _mean(self.matrix, weight)
            self.centre += rest
            self.matrix -= rest.astype(X.dtype)

    def parts(self, penalty: Any, nothing: Any) -> tuple[Any, Any]:
        """Return penalty and A of the problem, as lists where the intercept has a column, under ``nothing``."""
        if not self.column:
            return penalty, self.matrix
        return [penalty, nothing], [self.matrix, np.ones(self.n_rows)]

    def shift(self, target: Vector, weight: Vector | None) -> Vector:
        """Return by how much to move the targets: their means, as an intercept can follow."""
        return np.average(target, axis=0, weights=weight) if self.intercept else np.zeros(target.shape[1:])

    def to_given(self, x: Any, shift: Vector) -> Any:
        """Return the x of the problem as that of the problem with the columns and targets that were given."""
        if not self.intercept:
            return x
        coef, constant = x if self.column else (x, np.zeros((1, *x.shape[1:])))
        return [coef, constant - self.centre @ coef + shift]

    def from_given(self, x: Any, shift: Vector) -> Any:
        """Return the inverse of ``to_given``."""
        if not self.column:
            return x[0] if self.intercept else x
        return [x[0], x[1] + self.centre @ x[0] - shift]


def _mean(X: NDArray[Any], weight: Vector | None) -> Vector:
    """Return the weighted means of the columns in float64, without a copy of X in it."""
    if weight is None:
        return np.asarray(np.mean(X, axis=0, dtype=np.float64))
    return np.asarray(np.einsum("i,ij->j", weight, X) / weight.sum())


def _centre(X: NDArray[Any], weight: Vector | None) -> Vector:
    """Return a centre for every column: its mean, and its very value where it is constant."""
    centre = _mean(X, weight)
    # what rounding would leave of a constant column must not count as a column
    for column in np.flatnonzero(np.abs(centre - X[0]) <= 1e-5 * np.abs(X[0])):
        if np.all(X[:, column] == X[0, column]):
            centre[column] = X[0, column]
    return centre
