"""The objectives of skglm's convex estimators."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np

from ..functions import GroupL2, Hinge, Logistic, NonNegative, Squared, SquaredL2
from . import scikit_learn
from .stated import Known, Stated, elastic, intercept_of, per_target, share_of, signs, unknown


def weighted_lasso(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read 1 / (2 n) ||y - Xw||^2 + alpha sum_j weights_j (l1_ratio |w_j| + (1 - l1_ratio) / 2 w_j^2)."""
    own = getattr(model, "weights", None)
    penalty = elastic(model.alpha, share_of(model), own, model.positive)
    return per_target(
        lambda column: Squared(column, scale=1 / len(y)), repeat(penalty), y, model.coef_, intercept_of(model)
    )


def group_lasso(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read 1 / (2 n) ||y - Xw||^2 + alpha sum_g weights_g ||w_g||, with weights of 1 by default."""
    weights = 1.0 if model.weights is None else model.weights
    count = X.shape[1] // model.groups if isinstance(model.groups, (int, np.integer)) else len(model.groups)
    penalty: Any = GroupL2(model.alpha, model.groups, np.broadcast_to(weights, count))
    if getattr(model, "positive", False):
        penalty = penalty + NonNegative()
    return [Stated(penalty, Squared(y, scale=1 / len(y)), np.ravel(model.coef_), intercept_of(model))]


def logistic(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read 1 / n sum log(1 + exp(-z u)) + alpha (l1_ratio ||w||_1 + (1 - l1_ratio) / 2 ||w||^2)."""
    if model.fit_intercept and len(model.classes_) > 2:
        raise unknown(model, "fit_intercept", "False for several classes, since skglm does not keep their intercepts")
    penalty = elastic(model.alpha, share_of(model))
    constants = np.broadcast_to(np.ravel(model.intercept_), len(np.atleast_2d(model.coef_)))
    return [
        Stated(penalty, Logistic(labels, scale=1 / len(y)), coef, constant if model.fit_intercept else None)
        for labels, coef, constant in zip(signs(model, y), np.atleast_2d(model.coef_), constants, strict=True)
    ]


def linear_svc(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read C sum max(0, 1 - z u) + 1/2 ||w||^2, without an intercept even if ``fit_intercept`` asks for one."""
    own = zip(signs(model, y), np.atleast_2d(model.coef_), strict=True)
    return [Stated(SquaredL2(1.0), Hinge(labels, scale=model.C), coef) for labels, coef in own]


LASSO = {"alpha", "fit_intercept", "positive"}

MODELS = {
    "ElasticNet": Known(weighted_lasso, {*LASSO, "l1_ratio"}),
    "GroupLasso": Known(group_lasso, {*LASSO, "groups", "weights"}),
    "Lasso": Known(weighted_lasso, LASSO),
    "LinearSVC": Known(linear_svc, {"C", "fit_intercept"}),
    "MultiTaskLasso": Known(scikit_learn.multi_task, {"alpha", "fit_intercept"}),
    "SparseLogisticRegression": Known(logistic, {"alpha", "fit_intercept", "l1_ratio"}),
    "WeightedLasso": Known(weighted_lasso, {*LASSO, "weights"}),
}
