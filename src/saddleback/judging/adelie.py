"""The objectives of adelie: the states that ``grpnet`` returns, and its estimator ``GroupElasticNet``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..functions import GroupElasticNet, Logistic, Poisson, Squared
from .stated import Known, Stated, total


def estimator(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read the objective of the estimator's state, at the values of lambda that the estimator keeps."""
    return _objectives(model.state_, y, weight, model.lambda_, model.coef_, model.intercept_)


def state(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read one objective per value of lambda."""
    return _objectives(model, y, weight, model.lmdas, model.betas, model.intercepts)


def _objectives(fitted: Any, y: Any, weight: Any, lambdas: Any, coefs: Any, intercepts: Any) -> list[Stated]:
    """Return l(Xw) + lambda sum_g penalty_g (alpha ||w_g|| + (1 - alpha) / 2 ||w_g||^2), one per value of lambda.

    The loss l is a mean over the rows, and over the targets if there are several. A group then holds the coefficients
    of its features for all of them.
    """
    _refuse_extras(fitted)
    loss = _loss(fitted._glm, y, weight)
    tasks = y.shape[1:]
    # Intercepts of several targets are groups without a penalty, before those of the features.
    several = getattr(fitted, "multi_intercept", False)
    first = np.prod(tasks, dtype=int) if several else 0
    sizes = np.asarray(fitted.group_sizes)[first:] // np.prod(tasks, dtype=int)
    factors = np.asarray(fitted.penalty, dtype=np.float64)[first:]

    return [
        Stated(
            GroupElasticNet(alpha, sizes.tolist(), fitted.alpha, factors),
            loss,
            coef.reshape(-1, *tasks),
            constant if fitted.intercept or several else None,
        )
        for alpha, coef, constant in zip(lambdas, coefs.toarray().astype(np.float64), intercepts, strict=True)
    ]


def _refuse_extras(fitted: Any) -> None:
    """Raise an error if the objective has terms that are not known here."""
    if np.any(fitted._offsets):
        raise TypeError("this fit of adelie has offsets, which are not known here: expected a fit without them")
    if any(constraint is not None for constraint in fitted.constraints):
        raise TypeError("this fit of adelie has constraints, which are not known here: expected a fit without them")


def _loss(family: Any, y: NDArray[Any], weight: NDArray[Any] | None) -> Any:
    """Return the mean loss of a family of adelie; the family knows the weights of its samples, which sum to 1."""
    if family.name not in LOSSES:
        raise TypeError(f"the family of this fit of adelie is {family.name}: expected one of {', '.join(LOSSES)}")
    own = family.weights if weight is None else weight
    return LOSSES[family.name](y, np.asarray(own, dtype=np.float64), 1.0 / total(y, own))


def _logistic(y: NDArray[Any], weight: NDArray[Any], scale: float) -> Logistic:
    if not np.isin(y, (0, 1)).all():
        raise TypeError("y of this binomial fit of adelie has other values than 0 and 1: expected labels 0 and 1")
    return Logistic(2.0 * y - 1.0, weight, scale)


LOSSES: dict[str, Callable[[Any, Any, float], Any]] = {
    "binomial_logit": _logistic,
    "gaussian": Squared,
    "multigaussian": lambda y, weight, scale: Squared(y, weight, scale / y.shape[1]),
    "poisson": Poisson,
}
"""The loss of a family as a function of the targets, their weights and a factor."""

MODELS = {
    "GroupElasticNet": Known(estimator),
    **{f"State{kind}Naive{bits}": Known(state) for kind in ("Gaussian", "MultiGaussian", "Glm") for bits in (32, 64)},
}
"""By the name of the class, or of a base class: each fit makes new classes of states."""
