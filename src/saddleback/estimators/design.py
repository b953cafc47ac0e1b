r"""The columns of a fit: X, and a column of ones for an intercept.

With an intercept, adding a constant to a column or to the targets changes only the intercept: the objective is the same
at the same coefficients. Dense columns are centred, since columns with large means are far from orthogonal to the
intercept and a method needs many times the passes. If the best constant is the mean, as for a squared loss, the
intercept of centred data is 0, and needs no column. Sparse columns are not centred; those of a file are centred when
they are read.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from ..common.arrays import Vector
from .table import Table


class Design:
    """The matrices of a linear model, and the maps between its coefficients and those of the given data.

    Parameters
    ----------
    X : samples by features.
    weight : one value per sample, or None.
    intercept : whether the model has one.
    mean_is_best : whether the constant with the least loss is the mean of the targets.
    """

    def __init__(self, X: Table, weight: Vector | None, intercept: bool, mean_is_best: bool = False) -> None:
        self.intercept = intercept
        self.n_rows, self.n_features = X.shape
        self.matrix, centre = X.centred(weight, mean_is_best) if intercept else (X.uncentred(), None)
        self.column = intercept and (centre is None or not mean_is_best)
        self.centred = centre is not None
        self.centre = np.zeros(self.n_features) if centre is None else centre

    def with_rows(self, matrix: Any) -> Design:
        """Return the design with other rows and the same columns."""
        other = copy(self)
        other.matrix, other.n_rows = matrix, matrix.shape[0]
        return other

    def with_column(self) -> Design:
        """Return the design with a column for the intercept, also if the best intercept is known; if there is one."""
        other = copy(self)
        other.column = self.intercept
        return other

    def parts(self, penalty: Any, nothing: Any) -> tuple[Any, Any]:
        """Return penalty and A of the problem, as lists if the intercept has a column, whose penalty is ``nothing``."""
        if not self.column:
            return penalty, self.matrix
        return [penalty, nothing], [self.matrix, np.ones(self.n_rows)]

    def shift(self, target: Vector, weight: Vector | None) -> Vector:
        """Return what to subtract from the targets: their means if there is an intercept, which makes up for it."""
        return np.average(target, axis=0, weights=weight) if self.intercept else np.zeros(target.shape[1:])

    def to_given(self, x: Any, shift: Vector) -> Any:
        """Return the x of the problem with the given columns and targets, from the x of the centred problem."""
        if not self.intercept:
            return x
        coef, constant = x if self.column else (x, np.zeros((1, *x.shape[1:])))
        return [coef, constant - self.centre @ coef + shift]

    def from_given(self, x: Any, shift: Vector) -> Any:
        """Return the inverse of ``to_given``."""
        if not self.column:
            return x[0] if self.intercept else x
        return [x[0], x[1] + self.centre @ x[0] - shift]
