"""What a fitted model says: its objective, and the point that it takes for the optimum."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..functions import L1, ElasticNet, NonNegative, Zero
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

WITHOUT_EFFECT = frozenset(
    {
        *("copy_X", "dual", "fit_path", "max_epochs", "max_iter", "n_jobs", "p0", "precompute", "prune"),
        *("random_state", "selection", "solver", "solver_options", "tol", "verbose", "warm_start", "ws_strategy"),
        *("Cs", "alpha_per_target", "alphas", "criterion", "cv", "eps", "gcv_mode", "l1_ratios", "max_n_alphas"),
        *("n_alphas", "noise_variance", "scoring", "store_cv_results", "store_cv_values", "use_legacy_attributes"),
    }
)
"""Parameters that change how a fit is found, or how the strength of its penalty is chosen, and never its objective.

A model where one of them does change the objective has it among its own parameters.
"""


@dataclass(frozen=True)
class Known:
    """A model whose objective is known.

    Attributes
    ----------
    read : Reader
        The function that reads the model.
    parameters : collection of str, optional
        The parameters of the model that ``read`` uses, and "sample_weight" if its ``fit`` has weights. All other
        parameters, except those of ``WITHOUT_EFFECT``, must have their defaults: the objective is not known for other
        values. Without it ``read`` is responsible for all parameters.
    """

    read: Reader
    parameters: Collection[str] | None = None

    def check(self, name: str, model: Any, weight: Any) -> None:
        """Raise if the model has a parameter that ``read`` does not use, or if the fit cannot have had the weights."""
        if self.parameters is None:
            return
        weighted = "sample_weight" in self.parameters and "sample_weight" in inspect.signature(model.fit).parameters
        if weight is not None and not weighted:
            raise TypeError(f"sample_weight was given, and is not known for {name}: expected a fit without weights")
        given = model.get_params(deep=False) if hasattr(model, "get_params") else {}
        defaults = inspect.signature(type(model)).parameters
        for parameter in sorted(given.keys() - WITHOUT_EFFECT - set(self.parameters)):
            if not np.array_equal(given[parameter], defaults[parameter].default):
                raise unknown(model, parameter, f"the default, {defaults[parameter].default!r}")


def unknown(model: Any, parameter: str, expected: str) -> TypeError:
    """Return the error for a value of a parameter for which the objective is not known."""
    return TypeError(
        f"{type(model).__name__} has {parameter}={getattr(model, parameter)!r}, and its objective is not known then: "
        f"expected {expected}. For any other, state the objective as a Problem and use sb.certify(problem, x)"
    )


def total(y: NDArray[Any], weight: NDArray[Any] | None) -> float:
    """Return the weight of all samples."""
    return float(len(y) if weight is None else weight.sum())


def intercept_of(model: Any) -> Any:
    """Return the intercept; None if the model was asked to have none."""
    return model.intercept_ if getattr(model, "fit_intercept", True) else None


def chosen(model: Any, name: str) -> Any:
    """Return a parameter, or the value that cross-validation has chosen for it."""
    return getattr(model, f"{name}_", None) if hasattr(model, f"{name}_") else getattr(model, name)


def share_of(model: Any) -> float:
    """Return the share of the L1 norm in the penalty: 1 for models that have no ``l1_ratio``."""
    return float(chosen(model, "l1_ratio")) if hasattr(model, "l1_ratio") else 1.0


def elastic(alpha: float, l1_ratio: float = 1.0, weights: Any = None, positive: bool = False) -> Any:
    """Return alpha sum_j weights_j (l1_ratio |w_j| + (1 - l1_ratio) / 2 w_j^2), and a sign."""
    penalty: Any = L1(alpha, weights) if l1_ratio == 1.0 else ElasticNet(alpha, l1_ratio, weights)
    return penalty + NonNegative() if positive else penalty


def per_target(
    make: Callable[[Any], Any], penalties: Iterable[Any], y: NDArray[Any], coef: NDArray[Any], intercept: Any
) -> list[Stated]:
    """Return one objective per column of y; ``make`` returns the loss of a column."""
    columns = [y] if y.ndim == 1 else list(y.T)
    coefs = np.reshape(coef, (len(columns), -1))
    constants = [None] * len(columns) if intercept is None else np.broadcast_to(np.ravel(intercept), len(columns))
    return [
        Stated(penalty, make(column), own, constant)
        for penalty, column, own, constant in zip(penalties, columns, coefs, constants, strict=False)
    ]


def classes_of(model: Any, y: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of the class of each sample."""
    y = np.ravel(y)
    strange = y[~np.isin(y, model.classes_)]
    if strange.size:
        raise ValueError(f"y has the label {strange[0]!r}: expected the classes of the fit, {model.classes_.tolist()}")
    return np.searchsorted(model.classes_, y)


def signs(model: Any, y: NDArray[Any]) -> list[NDArray[np.float64]]:
    """Return labels of -1 and +1: of the second class, or of each class against the rest."""
    found = classes_of(model, y)
    count = len(model.classes_)
    return [np.where(found == each, 1.0, -1.0) for each in range(count == 2, count)]
