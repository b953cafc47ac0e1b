"""The objectives of scikit-learn's linear models."""

from __future__ import annotations

import inspect
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..functions import (
    L1,
    Absolute,
    EpsilonInsensitive,
    Gamma,
    GroupElasticNet,
    GroupL2,
    Hinge,
    Logistic,
    Multinomial,
    NonNegative,
    Pinball,
    Poisson,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    SquaredL2,
    Tweedie,
    Zero,
)
from ..problem import Problem
from .stated import (
    Known,
    Stated,
    chosen,
    classes_of,
    elastic,
    intercept_of,
    per_target,
    share_of,
    signs,
    total,
    unknown,
)


def lasso(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read 1 / (2 n) ||y - Xw||^2 + alpha ||w||_1."""
    return _squared(model, y, weight, elastic(chosen(model, "alpha"), positive=model.positive))


def elastic_net(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read 1 / (2 n) ||y - Xw||^2 + alpha (l1_ratio ||w||_1 + (1 - l1_ratio) / 2 ||w||^2)."""
    return _squared(model, y, weight, elastic(chosen(model, "alpha"), share_of(model), positive=model.positive))


def _squared(model: Any, y: Any, weight: Any, penalty: Any) -> list[Stated]:
    def loss(column: Any) -> Squared:
        return Squared(column, sample_weight=weight, scale=1.0 / total(y, weight))

    return per_target(loss, repeat(penalty), y, model.coef_, intercept_of(model))


def linear_regression(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read 1 / (2 n) ||y - Xw||^2."""
    return _squared(model, y, weight, NonNegative() if model.positive else Zero())


def ridge(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read ||y - Xw||^2 + alpha ||w||^2, half of it, with one alpha for all targets or one for each."""
    alphas = np.broadcast_to(np.ravel(chosen(model, "alpha")), 1 if y.ndim == 1 else y.shape[1])
    sign = NonNegative() if getattr(model, "positive", False) else Zero()
    penalties = [SquaredL2(float(alpha)) + sign for alpha in alphas]
    return per_target(lambda column: Squared(column, weight), penalties, y, model.coef_, intercept_of(model))


def multi_task(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read 1 / (2 n) ||Y - XW||^2 + alpha sum_j (l1_ratio ||W_j|| + (1 - l1_ratio) / 2 ||W_j||^2).

    W_j is the row of a feature.
    """
    penalty = GroupElasticNet(chosen(model, "alpha"), 1, share_of(model), np.ones(X.shape[1]))
    loss = Squared(y, weight, 1.0 / total(y, weight))
    return [Stated(penalty, loss, np.asarray(model.coef_).T, intercept_of(model))]


def quantile(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read the mean pinball loss + alpha ||w||_1."""
    loss = Pinball(y, model.quantile, weight, 1.0 / total(y, weight))
    return [Stated(L1(model.alpha), loss, model.coef_, intercept_of(model))]


def huber(model: Any, X: Any, y: Any, weight: Any) -> list[Any]:
    r"""Read the problem in w and the parts v of the residuals that are squared, without the scale.

    With the scale s, weights c of the samples and H(r) = r^2 up to epsilon and 2 epsilon |r| - epsilon^2 beyond it, the
    objective is sum_i c_i (s + s H(r_i / s)) + alpha ||w||^2. As s H(r / s) is the minimum of v^2 / s + 2 epsilon
    |r - v| over v, and C s + q / s has the minimum 2 sqrt(C q) over s, this is the minimum over v of

        2 sqrt(C) sqrt(sum_i c_i v_i^2) + 2 epsilon sum_i c_i |r_i - v_i| + alpha ||w||^2, where C = sum_i c_i.
    """
    weight = np.ones(len(y)) if weight is None else weight
    reach = model.epsilon * model.scale_
    squared = np.clip(y - X @ model.coef_ - model.intercept_, -reach, reach)
    root = np.sqrt(weight)  # sqrt(c_i) v_i is a variable
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    parts = [
        (SquaredL2(2.0 * model.alpha), X, model.coef_),
        (GroupL2(2.0 * np.sqrt(weight.sum()), len(y), [1.0]), sparse.diags_array(inverse).tocsc(), root * squared),
        (Zero(), np.ones((len(y), 1)), np.ravel(model.intercept_)),
    ]
    penalties, columns, point = (list(each) for each in zip(*parts[: 2 + model.fit_intercept], strict=True))
    return [(Problem(penalties, columns, Absolute(y, weight, 2.0 * model.epsilon)), point)]


def poisson(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read the mean of exp(u) - y u, half the deviance up to a constant, + alpha / 2 ||w||^2."""
    return _with_deviance(model, Poisson(y, weight, 1.0 / total(y, weight)))


def gamma(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read the mean of y exp(-u) + u, half the deviance up to a constant, + alpha / 2 ||w||^2."""
    return _with_deviance(model, Gamma(y, weight, 1.0 / total(y, weight)))


def tweedie(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read half the mean deviance up to a constant + alpha / 2 ||w||^2, for the powers and links where it is convex."""
    log = model.power > 0 if model.link == "auto" else model.link == "log"
    if log != (model.power > 0):
        raise unknown(model, "link", f"{'log' if model.power > 0 else 'identity'!r} for power={model.power:g}")
    scale = 1.0 / total(y, weight)
    if model.power == 0:
        return _with_deviance(model, Squared(y, weight, scale))
    if model.power == 1:
        return poisson(model, X, y, weight)
    if model.power == 2:
        return gamma(model, X, y, weight)
    if not 1 < model.power < 2:
        raise unknown(model, "power", "0, or a number from 1 to 2")
    return _with_deviance(model, Tweedie(y, model.power, weight, scale))


def _with_deviance(model: Any, loss: Any) -> list[Stated]:
    return [Stated(SquaredL2(model.alpha), loss, model.coef_, intercept_of(model))]


def logistic(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read C sum log(1 + exp(-z u)) + l1_ratio ||w||_1 + (1 - l1_ratio) / 2 ||w||^2.

    Three or more classes have one problem, with the multinomial loss. The solver "liblinear" has the same penalty on
    the intercept, and no multinomial loss.
    """
    C, l1_ratio = (np.ravel(chosen(model, name))[0] for name in ("C", "l1_ratio"))
    share = {"l1": 1.0, "l2": 0.0}.get(str(model.penalty), l1_ratio or 0.0)
    unpenalised = model.penalty is None or np.isinf(C)
    penalty = Zero() if unpenalised else elastic(1.0, share)
    scale = 1.0 if unpenalised else C
    weight = _times(weight, _class_weights(model, y, weight))
    if len(model.classes_) == 2:
        (labels,) = signs(model, y)
        intercept = np.ravel(model.intercept_)[0]
        return [_with_column(model, penalty, Logistic(labels, weight, scale), model.coef_[0], intercept)]
    if model.solver == "liblinear":
        raise unknown(model, "solver", f"another solver for {len(model.classes_)} classes")
    loss = Multinomial(classes_of(model, y), len(model.classes_), weight, scale)
    return [Stated(penalty, loss, model.coef_.T, intercept_of(model))]


def _with_column(model: Any, penalty: Any, loss: Any, coef: Any, intercept: Any) -> Stated:
    """Return an objective whose intercept has the penalty of the coefficients if LIBLINEAR has fitted it."""
    if not model.fit_intercept:
        return Stated(penalty, loss, coef)
    if getattr(model, "solver", "liblinear") != "liblinear":
        return Stated(penalty, loss, coef, intercept)
    return Stated(penalty, loss, coef, intercept, penalty, float(model.intercept_scaling))


def _class_weights(model: Any, y: Any, weight: Any) -> NDArray[Any] | None:
    """Return the weight of the class of each sample."""
    if model.class_weight is None:
        return None
    from sklearn.utils.class_weight import compute_class_weight

    # Older versions of scikit-learn balance the classes by their counts also if the samples have weights.
    weighs = "sample_weight" in inspect.signature(compute_class_weight).parameters
    options = {"sample_weight": weight} if weighs else {}
    each = compute_class_weight(model.class_weight, classes=model.classes_, y=y, **options)
    found: NDArray[Any] = each[classes_of(model, y)]
    return found


def _times(weight: Any, factors: Any) -> Any:
    """Return a product of weights, either of which may be None."""
    if weight is None or factors is None:
        return factors if weight is None else weight
    return weight * factors


def linear_svc(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read C sum max(0, 1 - z u), or its square, + 1/2 ||w||^2 or ||w||_1, the intercept included.

    LIBLINEAR weighs both of two classes, but of three or more only the one class that it separates from the rest.
    """
    of_class = _class_weights(model, y, weight)
    several = len(model.classes_) > 2
    penalty = L1(1.0) if model.penalty == "l1" else SquaredL2(1.0)
    found = []
    constants = np.broadcast_to(np.ravel(model.intercept_), len(model.coef_))
    for labels, coef, constant in zip(signs(model, y), model.coef_, constants, strict=True):
        of_row = np.where(labels > 0, of_class, 1.0) if several and of_class is not None else of_class
        own = _times(weight, of_row)
        hinge: Any = Hinge(labels, own, model.C) if model.loss == "hinge" else SquaredHinge(labels, own, 2.0 * model.C)
        found.append(_with_column(model, penalty, hinge, coef, constant))
    return found


def linear_svr(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read C sum max(0, |y - u| - epsilon), or its square, + 1/2 ||w||^2, the intercept included."""
    loss: Any = (
        EpsilonInsensitive(y, model.epsilon, weight, model.C)
        if model.loss == "epsilon_insensitive"
        else SquaredEpsilonInsensitive(y, model.epsilon, weight, 2.0 * model.C)
    )
    return [_with_column(model, SquaredL2(1.0), loss, np.ravel(model.coef_), np.ravel(model.intercept_)[0])]


LASSO = {"alpha", "fit_intercept", "positive"}
GENERALISED = {"alpha", "fit_intercept", "sample_weight"}
CLASSIFIER = {"class_weight", "fit_intercept", "penalty", "sample_weight"}

MODELS = {
    "ElasticNet": Known(elastic_net, {*LASSO, "l1_ratio", "sample_weight"}),
    "ElasticNetCV": Known(elastic_net, {"fit_intercept", "l1_ratio", "positive", "sample_weight"}),
    "GammaRegressor": Known(gamma, GENERALISED),
    "HuberRegressor": Known(huber, {*GENERALISED, "epsilon"}),
    "Lasso": Known(lasso, {*LASSO, "sample_weight"}),
    "LassoCV": Known(lasso, {"fit_intercept", "positive", "sample_weight"}),
    "LassoLars": Known(lasso, {"alpha", "fit_intercept"}),  # a positive path of LARS need not minimise the objective
    "LassoLarsCV": Known(lasso, {"fit_intercept"}),
    "LassoLarsIC": Known(lasso, {"fit_intercept"}),
    "LinearRegression": Known(linear_regression, {"fit_intercept", "positive", "sample_weight"}),
    "LinearSVC": Known(linear_svc, {*CLASSIFIER, "C", "intercept_scaling", "loss"}),
    "LinearSVR": Known(linear_svr, {"C", "epsilon", "fit_intercept", "intercept_scaling", "loss", "sample_weight"}),
    "LogisticRegression": Known(logistic, {*CLASSIFIER, "C", "intercept_scaling", "l1_ratio", "solver"}),
    "LogisticRegressionCV": Known(logistic, {*CLASSIFIER, "solver"}),  # its last fit ignores intercept_scaling
    "MultiTaskElasticNet": Known(multi_task, {"alpha", "fit_intercept", "l1_ratio", "sample_weight"}),
    "MultiTaskElasticNetCV": Known(multi_task, {"fit_intercept", "l1_ratio", "sample_weight"}),
    "MultiTaskLasso": Known(multi_task, GENERALISED),
    "MultiTaskLassoCV": Known(multi_task, {"fit_intercept", "sample_weight"}),
    "PoissonRegressor": Known(poisson, GENERALISED),
    "QuantileRegressor": Known(quantile, {*GENERALISED, "quantile"}),
    "Ridge": Known(ridge, {*LASSO, "sample_weight"}),
    "RidgeCV": Known(ridge, {"fit_intercept", "sample_weight"}),
    "TweedieRegressor": Known(tweedie, {*GENERALISED, "link", "power"}),
}
