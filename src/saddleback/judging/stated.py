"""What a fitted model says: its objective, and the point that it takes for the optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..functions import L1, ElasticNet, NonNegative, SquaredL2, Zero
from ..problem import Problem


@dataclass(frozen=True)
class Stated:
    """The objective of a linear model and its coefficients, for one target or class.

    Attributes
    ----------
    penalty, loss : penalty and loss
        The terms of the objective.
    coef : ndarray
        The coefficients in the shape of x; the columns of a matrix are tasks.
    intercept : number, array or None
        The intercept, one per task; None for a model without one.
    of_intercept : penalty
        The penalty of the intercept; none by default.
    ones : float
        The value of the column of the intercept.
    """

    penalty: Any
    loss: Any
    coef: NDArray[Any]
    intercept: Any = None
    of_intercept: Any = field(default_factory=Zero)
    ones: float = 1.0

    def posed(self, X: Any) -> tuple[Problem, Any]:
        """Return the problem and the point of the model."""
        if self.intercept is None:
            return Problem(self.penalty, X, self.loss), self.coef
        column = np.full((X.shape[0], 1), self.ones)
        constant = np.reshape(np.asarray(self.intercept, dtype=np.float64) / self.ones, (1, *self.coef.shape[1:]))
        return Problem([self.penalty, self.of_intercept], [X, column], self.loss), [self.coef, constant]


Reader = Callable[..., list[Any]]
"""A function of a model, X, y and sample weights, any of which may be None, that returns one ``Stated`` per problem.

An entry may also be a pair of a ``Problem`` and a point. The models of this library may have an offset as well.
"""


def total(y: NDArray[Any], weight: NDArray[Any] | None) -> float:
    """Return the weight of all samples."""
    return float(len(y) if weight is None else weight.sum())


def intercept_of(model: Any) -> Any:
    """Return the intercept; None if the model was asked to have none."""
    return model.intercept_ if getattr(model, "fit_intercept", True) else None


def chosen(model: Any, name: str) -> Any:
    """Return a parameter, or the value that cross-validation has chosen for it."""
    return getattr(model, f"{name}_", None) if hasattr(model, f"{name}_") else getattr(model, name)


def elastic(alpha: float, l1_ratio: float = 1.0, weights: Any = None, positive: bool = False) -> Any:
    """Return alpha (l1_ratio ||w||_1 + (1 - l1_ratio) / 2 ||w||^2), with weights of the L1 norm and a sign."""
    if l1_ratio == 1.0:
        penalty: Any = L1(alpha, weights)
    elif weights is None:
        penalty = ElasticNet(alpha, l1_ratio)
    else:
        penalty = L1(alpha * l1_ratio, weights) + SquaredL2(alpha * (1.0 - l1_ratio))
    return penalty + NonNegative() if positive else penalty


def per_target(
    make: Callable[[Any], Any], penalty: Any, y: NDArray[Any], coef: NDArray[Any], intercept: Any
) -> list[Stated]:
    """Return one objective per column of y; ``make`` returns the loss of a column."""
    columns = [y] if y.ndim == 1 else list(y.T)
    coefs = np.reshape(coef, (len(columns), -1))
    constants = [None] * len(columns) if intercept is None else np.broadcast_to(np.ravel(intercept), len(columns))
    return [
        Stated(penalty, make(column), own, constant)
        for column, own, constant in zip(columns, coefs, constants, strict=True)
    ]


def signs(model: Any, y: NDArray[Any]) -> list[NDArray[np.float64]]:
    """Return labels of -1 and +1: of the second class, or of each class against the rest."""
    classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    return [np.where(y == name, 1.0, -1.0) for name in classes]
