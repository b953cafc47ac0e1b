"""The objectives of celer's estimators."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np

from ..functions import L1, Logistic, Squared
from . import scikit_learn, skglm
from .stated import Known, Stated, chosen, elastic, intercept_of, per_target, share_of, signs


def elastic_net(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read 1 / (2 n) ||y - Xw||^2 + alpha sum_j weights_j (l1_ratio |w_j| + (1 - l1_ratio) / 2 w_j^2)."""
    own = getattr(model, "weights", None)
    penalty = elastic(chosen(model, "alpha"), share_of(model), own, model.positive)
    return per_target(
        lambda column: Squared(column, scale=1 / len(y)), repeat(penalty), y, model.coef_, intercept_of(model)
    )


def logistic(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read sum log(1 + exp(-z u)) + 1 / C ||w||_1, without an intercept."""
    coefs = np.atleast_2d(model.coef_)
    own = zip(signs(model, y), coefs, strict=True)
    return [Stated(L1(1.0 / model.C), Logistic(labels), coef) for labels, coef in own]


LASSO = {"alpha", "fit_intercept", "positive", "weights"}

MODELS = {
    "ElasticNet": Known(elastic_net, {*LASSO, "l1_ratio"}),
    "ElasticNetCV": Known(elastic_net, {"fit_intercept", "l1_ratio", "positive"}),
    "GroupLasso": Known(skglm.group_lasso, {"alpha", "fit_intercept", "groups", "weights"}),
    "Lasso": Known(elastic_net, LASSO),
    "LassoCV": Known(elastic_net, {"fit_intercept", "positive"}),
    "LogisticRegression": Known(logistic, {"C"}),
    "MultiTaskLasso": Known(scikit_learn.multi_task, {"alpha", "fit_intercept"}),
}
