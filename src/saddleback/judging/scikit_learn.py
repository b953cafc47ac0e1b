"""The objectives of scikit-learn's linear models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..functions import (
    L1,
    EpsilonInsensitive,
    GroupL2,
    Hinge,
    Logistic,
    Pinball,
    Poisson,
    Squared,
    SquaredHinge,
    SquaredL2,
    Zero,
)
from .stated import Reader, Stated, chosen, elastic, intercept_of, per_target, signs, total


def lasso(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read 1 / (2 n) ||y - Xw||^2 + alpha ||w||_1."""
    return _squared(model, y, weight, elastic(chosen(model, "alpha"), positive=model.positive))


def elastic_net(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read 1 / (2 n) ||y - Xw||^2 + alpha (l1_ratio ||w||_1 + (1 - l1_ratio) / 2 ||w||^2)."""
    penalty = elastic(chosen(model, "alpha"), chosen(model, "l1_ratio"), positive=model.positive)
    return _squared(model, y, weight, penalty)


def _squared(model: Any, y: Any, weight: Any, penalty: Any) -> list[Stated]:
    def loss(column: Any) -> Squared:
        return Squared(column, sample_weight=weight, scale=1.0 / total(y, weight))

    return per_target(loss, penalty, y, model.coef_, intercept_of(model))


def linear_regression(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read 1 / (2 n) ||y - Xw||^2."""
    return _squared(model, y, weight, Zero())


def ridge(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read ||y - Xw||^2 + alpha ||w||^2, half of it."""
    penalty = SquaredL2(float(chosen(model, "alpha")))
    return per_target(lambda column: Squared(column, weight), penalty, y, model.coef_, intercept_of(model))


def multi_task(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read 1 / (2 n) ||Y - XW||^2 + alpha sum_j ||W_j||, with W_j the row of a feature."""
    penalty = GroupL2(chosen(model, "alpha"), 1, weights=np.ones(X.shape[1]))
    loss = Squared(y, scale=1.0 / total(y, None))
    return [Stated(penalty, loss, np.asarray(model.coef_).T, intercept_of(model))]


def quantile(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read the mean pinball loss + alpha ||w||_1."""
    loss = Pinball(y, model.quantile, weight, 1.0 / total(y, weight))
    return [Stated(L1(model.alpha), loss, model.coef_, intercept_of(model))]


def poisson(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read the mean of exp(u) - y u, half the deviance up to a constant, + alpha / 2 ||w||^2."""
    loss = Poisson(y, weight, 1.0 / total(y, weight))
    return [Stated(SquaredL2(model.alpha), loss, model.coef_, intercept_of(model))]


def logistic(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read C sum log(1 + exp(-z u)) + l1_ratio ||w||_1 + (1 - l1_ratio) / 2 ||w||^2.

    The solver "liblinear" has the same penalty on the intercept.
    """
    if len(model.classes_) > 2:
        raise TypeError(
            f"{type(model).__name__} has {len(model.classes_)} classes, and its multinomial loss is not a loss of "
            "saddleback: use two classes, or one model per class"
        )
    share = {"l1": 1.0, "l2": 0.0}.get(str(model.penalty), model.l1_ratio or 0.0)
    unpenalised = model.penalty is None or np.isinf(model.C)
    penalty = Zero() if unpenalised else elastic(1.0, share)
    scale = 1.0 if unpenalised else model.C
    weight = _class_weights(model, y, weight)
    (labels,) = signs(model, y)
    return [_with_column(model, penalty, Logistic(labels, weight, scale), model.coef_[0], model.intercept_[0])]


def _with_column(model: Any, penalty: Any, loss: Any, coef: Any, intercept: Any) -> Stated:
    """Return an objective whose intercept has the penalty of the coefficients if LIBLINEAR has fitted it."""
    if not model.fit_intercept:
        return Stated(penalty, loss, coef)
    if getattr(model, "solver", "liblinear") != "liblinear":
        return Stated(penalty, loss, coef, intercept)
    return Stated(penalty, loss, coef, intercept, penalty, float(model.intercept_scaling))


def _class_weights(model: Any, y: Any, weight: Any) -> Any:
    if model.class_weight is None:
        return weight
    from sklearn.utils.class_weight import compute_sample_weight

    own: NDArray[Any] = compute_sample_weight(model.class_weight, y)
    return own if weight is None else weight * own


def linear_svc(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read C sum max(0, 1 - z u), or its square, + 1/2 ||w||^2 or ||w||_1, the intercept included."""
    weight = _class_weights(model, y, weight)
    penalty = L1(1.0) if model.penalty == "l1" else SquaredL2(1.0)
    found = []
    constants = np.broadcast_to(np.ravel(model.intercept_), len(model.coef_))
    for labels, coef, constant in zip(signs(model, y), model.coef_, constants, strict=True):
        hinge: Any = (
            Hinge(labels, weight, model.C) if model.loss == "hinge" else SquaredHinge(labels, weight, 2.0 * model.C)
        )
        found.append(_with_column(model, penalty, hinge, coef, constant))
    return found


def linear_svr(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read C sum max(0, |y - u| - epsilon) + 1/2 ||w||^2, the intercept included."""
    if model.loss != "epsilon_insensitive":
        raise TypeError(f"LinearSVR has loss={model.loss!r}: expected 'epsilon_insensitive', the one that is known")
    loss = EpsilonInsensitive(y, model.epsilon, weight, model.C)
    return [_with_column(model, SquaredL2(1.0), loss, np.ravel(model.coef_), np.ravel(model.intercept_)[0])]


MODELS: dict[str, Reader] = {
    "ElasticNet": elastic_net,
    "ElasticNetCV": elastic_net,
    "Lasso": lasso,
    "LassoCV": lasso,
    "LinearRegression": linear_regression,
    "LinearSVC": linear_svc,
    "LinearSVR": linear_svr,
    "LogisticRegression": logistic,
    "MultiTaskLasso": multi_task,
    "MultiTaskLassoCV": multi_task,
    "PoissonRegressor": poisson,
    "QuantileRegressor": quantile,
    "Ridge": ridge,
}
