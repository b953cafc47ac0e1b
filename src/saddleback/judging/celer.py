"""The objectives of celer's estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..functions import L1, Logistic, Squared
from . import scikit_learn, skglm
from .stated import Reader, Stated, chosen, elastic, intercept_of, per_target, signs


def elastic_net(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read 1 / (2 n) ||y - Xw||^2 + alpha (l1_ratio sum_j weights_j |w_j| + (1 - l1_ratio) / 2 ||w||^2)."""
    share = chosen(model, "l1_ratio") if hasattr(model, "l1_ratio") else 1.0
    own = getattr(model, "weights", None)
    if own is not None and share < 1:
        raise TypeError("celer's ElasticNet has weights, which multiply its squares too: this is not known here")
    penalty = elastic(chosen(model, "alpha"), share, own, getattr(model, "positive", False))
    return per_target(lambda column: Squared(column, scale=1 / len(y)), penalty, y, model.coef_, intercept_of(model))


def logistic(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read sum log(1 + exp(-z u)) + 1 / C ||w||_1, without an intercept."""
    coefs = np.atleast_2d(model.coef_)
    own = zip(signs(model, y), coefs, strict=True)
    return [Stated(L1(1.0 / model.C), Logistic(labels), coef) for labels, coef in own]


MODELS: dict[str, Reader] = {
    "ElasticNet": elastic_net,
    "ElasticNetCV": elastic_net,
    "GroupLasso": skglm.group_lasso,
    "Lasso": elastic_net,
    "LassoCV": elastic_net,
    "LogisticRegression": logistic,
    "MultiTaskLasso": scikit_learn.multi_task,
}
