r"""The columns of a fit: X, and beside it a column of ones for an intercept.

With an intercept, moving a column or the targets by a constant moves the intercept alone: the objective is the same at
the same coefficients. Dense columns are centred, since columns with large means are far from orthogonal to the
intercept and take a method many times the passes. Sparse ones stay as they are.
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
    """

    def __init__(self, X: Any, weight: Vector | None, intercept: bool) -> None:
        self.intercept = intercept
        self.n_rows, self.n_features = X.shape
        self.centre = np.zeros(self.n_features)
        self.matrix = X
        if intercept and not sparse.issparse(X):
            centre = _centre(X, weight)
            self.matrix = np.subtract(X, centre, out=np.empty(X.shape, X.dtype, order="F"))
            self.centre = centre.astype(np.float64)

    def parts(self, penalty: Any, nothing: Any) -> tuple[Any, Any]:
        """Return penalty and A of the problem, as lists where there is an intercept, under ``nothing``."""
        if not self.intercept:
            return penalty, self.matrix
        return [penalty, nothing], [self.matrix, np.ones(self.n_rows)]

    def shift(self, target: Vector) -> Vector:
        """Return by how much to move the targets: their means, as an intercept can follow."""
        return np.mean(target, axis=0) if self.intercept else np.zeros(target.shape[1:])

    def to_given(self, x: Any, shift: Vector) -> Any:
        """Return the x of the problem as that of the problem with the columns and targets that were given."""
        return [x[0], x[1] - self.centre @ x[0] + shift] if self.intercept else x

    def from_given(self, x: Any, shift: Vector) -> Any:
        """Return the inverse of ``to_given``."""
        return [x[0], x[1] + self.centre @ x[0] - shift] if self.intercept else x


def _centre(X: NDArray[Any], weight: Vector | None) -> NDArray[Any]:
    """Return a centre for every column, in its own precision: about its mean, its value where it is constant."""
    mean = np.mean(X, axis=0, dtype=np.float64) if weight is None else weight.astype(X.dtype) @ X / weight.sum()
    centre = mean.astype(X.dtype)
    # what rounding would leave of a constant column must not count as a column
    for column in np.flatnonzero(np.abs(centre - X[0]) <= 1e-5 * np.abs(X[0])):
        if np.all(X[:, column] == X[0, column]):
            centre[column] = X[0, column]
    return centre
