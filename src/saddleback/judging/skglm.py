"""The objectives of skglm's convex estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..functions import GroupL2, Hinge, Logistic, NonNegative, Squared, SquaredL2
from . import scikit_learn
from .stated import Reader, Stated, elastic, intercept_of, per_target, signs


def weighted_lasso(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read 1 / (2 n) ||y - Xw||^2 + alpha (l1_ratio sum_j weights_j |w_j| + (1 - l1_ratio) / 2 ||w||^2)."""
    own = getattr(model, "weights", None)
    penalty = elastic(model.alpha, getattr(model, "l1_ratio", 1.0), own, model.positive)
    return per_target(lambda column: Squared(column, scale=1 / len(y)), penalty, y, model.coef_, intercept_of(model))


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
    penalty = elastic(model.alpha, getattr(model, "l1_ratio", 1.0))
    constants = np.broadcast_to(np.ravel(model.intercept_), len(np.atleast_2d(model.coef_)))
    return [
        Stated(penalty, Logistic(labels, scale=1 / len(y)), coef, constant if model.fit_intercept else None)
        for labels, coef, constant in zip(signs(model, y), np.atleast_2d(model.coef_), constants, strict=True)
    ]


def linear_svc(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read C sum max(0, 1 - z u) + 1/2 ||w||^2, without an intercept."""
    (labels,) = signs(model, y)
    return [Stated(SquaredL2(1.0), Hinge(labels, scale=model.C), np.ravel(model.coef_))]


MODELS: dict[str, Reader] = {
    "ElasticNet": weighted_lasso,
    "GroupLasso": group_lasso,
    "Lasso": weighted_lasso,
    "LinearSVC": linear_svc,
    "MultiTaskLasso": scikit_learn.multi_task,
    "SparseLogisticRegression": logistic,
    "WeightedLasso": weighted_lasso,
}
