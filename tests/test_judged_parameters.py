"""Every parameter of every model of another library that is judged, from its signature.

The library solves tightly with a value that is not the default. Then the judged objective has no gap there, or the
parameter is refused by name. So a parameter that a new version of a library brings is in this table, or fails here.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn import linear_model, svm

import saddleback as sb

RNG = np.random.default_rng(5)
N = 60
X = RNG.standard_normal((N, 6)) + np.array([1.0, 0.5, 0.0, -0.5, 0.0, 0.2])
SIGNAL = X @ [1.0, -0.8, 0.5, 0.0, -0.3, 0.0]
Y = SIGNAL + 0.4 * RNG.standard_normal(N) + 2.0
POSITIVE = np.exp(0.4 * SIGNAL + 0.3 * RNG.standard_normal(N))
COUNTS = RNG.poisson(np.exp(0.4 * SIGNAL)).astype(float)
LABELS = np.where(SIGNAL + RNG.standard_normal(N) > 0.8, "yes", "no")
THREE = np.digitize(SIGNAL + RNG.standard_normal(N), [-0.5, 1.0])
TWO = np.column_stack([Y, 0.5 * Y[::-1] + X[:, 3]])
WEIGHT = RNG.uniform(0.3, 3.0, N)

TIGHT = {"tol": 1e-12, "max_iter": 200_000}
LOOSER = {"tol": 1e-9, "max_iter": 2_000_000}
"""For LIBLINEAR, which stops by the violation of its own conditions."""

CHANGES: dict[str, dict[str, Any]] = {
    "C": {"C": 0.4},
    "Cs": {"Cs": 3},
    "alpha": {"alpha": 0.07},
    "alphas": {"alphas": [0.05, 0.2]},
    "copy_X": {"copy_X": False},
    "criterion": {"criterion": "bic"},
    "cv": {"cv": 3},
    "epsilon": {"epsilon": 1.7},
    "eps": {"eps": 1e-2},
    "fit_intercept": {"fit_intercept": False},
    "groups": {"groups": [[0, 3], [1, 2, 5], [4]]},
    "jitter": {"jitter": 1e-3, "random_state": 0},
    "l1_ratio": {"l1_ratio": 0.35},
    "l1_ratios": {"l1_ratios": [0.3], "solver": "saga"},
    "link": {"link": "log"},
    "max_epochs": {"max_epochs": 60_000},
    "max_iter": {"max_iter": 250_000},
    "n_alphas": {"n_alphas": 7},
    "n_jobs": {"n_jobs": 1},
    "noise_variance": {"noise_variance": 0.3},
    "p0": {"p0": 3},
    "positive": {"positive": True},
    "power": {"power": 1.4},
    "precompute": {"precompute": True},
    "prune": {"prune": False},
    "quantile": {"quantile": 0.2},
    "random_state": {"random_state": 3},
    "scoring": {"scoring": "neg_mean_absolute_error"},
    "store_cv_values": {"store_cv_values": True},
    "selection": {"selection": "random", "random_state": 0},
    "tol": {"tol": 1e-10},
    "use_legacy_attributes": {"use_legacy_attributes": False},
    "verbose": {"verbose": 1},
    "warm_start": {"warm_start": True},
    "weights": {"weights": np.array([0.5, 1.0, 2.0, 1.5, 0.7, 1.2])},
    "ws_strategy": {"ws_strategy": "fixpoint"},
}
"""The change of a parameter, with what else it needs."""


@dataclass
class Case:
    """A model: what makes it tight, its targets, changes of its own, and the parameters that are refused."""

    y: Any
    base: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()
    fits_weights: bool = True


def refusing(*names: str) -> frozenset[str]:
    return frozenset(names)


CHOSEN = {"cv": 3, **TIGHT}
LOGISTIC_CHANGES = {
    "class_weight": {"class_weight": "balanced"},
    "dual": {"dual": True, "solver": "liblinear", **LOOSER},
    "intercept_scaling": {"intercept_scaling": 3.0, "solver": "liblinear", **LOOSER},
    "l1_ratio": {"l1_ratio": 0.35, "solver": "saga"},
    "multi_class": {"multi_class": "ovr"},  # of older versions
    "penalty": {"penalty": "l1", "solver": "saga"},
    "scoring": {"scoring": "neg_log_loss"},
    "solver": {"solver": "liblinear", **LOOSER},
    "n_jobs": {"n_jobs": 1},
}
DEVIANCE = {"alpha": 0.1, "solver": "newton-cholesky", **TIGHT}
DEVIANCE_CHANGES = {"solver": {"solver": "lbfgs"}}
LIBLINEAR = {"C": 0.3, **LOOSER}

SKLEARN = {
    "ElasticNet": Case(Y, {"alpha": 0.1, **TIGHT}),
    "ElasticNetCV": Case(Y, CHOSEN, {"l1_ratio": {"l1_ratio": [0.3, 0.8]}, "cv": {"cv": 4}}),
    "GammaRegressor": Case(POSITIVE, DEVIANCE, DEVIANCE_CHANGES),
    "HuberRegressor": Case(Y, {"tol": 1e-10, "max_iter": 5000}),
    "Lasso": Case(Y, {"alpha": 0.1, **TIGHT}),
    "LassoCV": Case(Y, CHOSEN, {"cv": {"cv": 4}}),
    "LassoLars": Case(
        Y,
        {"alpha": 0.1},
        {"eps": {"eps": 1e-15}, "fit_path": {"fit_path": False}},
        refusing("jitter", "positive"),
        fits_weights=False,
    ),
    "LassoLarsCV": Case(
        Y,
        {"cv": 3},
        {"cv": {"cv": 4}, "eps": {"eps": 1e-15}, "max_n_alphas": {"max_n_alphas": 20}},
        refusing("positive"),
        fits_weights=False,
    ),
    "LassoLarsIC": Case(Y, {}, {"eps": {"eps": 1e-15}}, refusing("positive"), fits_weights=False),
    "LinearRegression": Case(Y),
    "LinearSVC": Case(
        LABELS,
        LIBLINEAR,
        {
            "class_weight": {"class_weight": "balanced"},
            "dual": {"dual": True},
            "intercept_scaling": {"intercept_scaling": 3.0},
            "loss": {"loss": "hinge"},
            "multi_class": {"multi_class": "crammer_singer"},
            "penalty": {"penalty": "l1", "dual": False},
        },
        refusing("multi_class"),
    ),
    "LinearSVR": Case(
        Y,
        {**LIBLINEAR, "epsilon": 0.1},
        {
            "dual": {"dual": False, "loss": "squared_epsilon_insensitive"},
            "epsilon": {"epsilon": 0.3},
            "intercept_scaling": {"intercept_scaling": 3.0},
            "loss": {"loss": "squared_epsilon_insensitive"},
        },
    ),
    "LogisticRegression": Case(LABELS, {"C": 0.3, **TIGHT}, LOGISTIC_CHANGES, refusing("multi_class")),
    "LogisticRegressionCV": Case(
        LABELS,
        {"Cs": 2, "l1_ratios": (0.0,), "scoring": "accuracy", "use_legacy_attributes": True, **CHOSEN},
        {**LOGISTIC_CHANGES, "cv": {"cv": 4}, "refit": {"refit": False}, "penalty": {"penalty": "l2"}},
        refusing("multi_class", "refit"),
    ),
    "MultiTaskElasticNet": Case(TWO, {"alpha": 0.1, **TIGHT}, fits_weights=False),
    "MultiTaskElasticNetCV": Case(
        TWO, CHOSEN, {"cv": {"cv": 4}, "l1_ratio": {"l1_ratio": [0.3, 0.8]}}, fits_weights=False
    ),
    "MultiTaskLasso": Case(TWO, {"alpha": 0.1, **TIGHT}, fits_weights=False),
    "MultiTaskLassoCV": Case(TWO, CHOSEN, {"cv": {"cv": 4}}, fits_weights=False),
    "PoissonRegressor": Case(COUNTS, DEVIANCE, DEVIANCE_CHANGES),
    "QuantileRegressor": Case(
        Y,
        {"alpha": 0.05},
        {"solver": {"solver": "highs-ds"}, "solver_options": {"solver_options": {"presolve": False}}},
    ),
    "Ridge": Case(TWO, {"alpha": 2.0, **TIGHT}, {"alpha": {"alpha": np.array([0.5, 3.0])}, "solver": {"solver": "lsqr"}}),
    "RidgeCV": Case(
        TWO,
        {},
        {
            "alpha_per_target": {"alpha_per_target": True},
            "gcv_mode": {"gcv_mode": "svd"},
            "store_cv_results": {"store_cv_results": True},
        },
    ),
    "TweedieRegressor": Case(POSITIVE, {"power": 1.5, **DEVIANCE}, DEVIANCE_CHANGES),
}

CELER = {
    "ElasticNet": Case(Y, {"alpha": 0.1, "l1_ratio": 0.5, **TIGHT}, fits_weights=False),
    "ElasticNetCV": Case(Y, {**CHOSEN, "l1_ratio": 0.5}, {"cv": {"cv": 4}}, fits_weights=False),
    "GroupLasso": Case(
        Y, {"groups": 2, "alpha": 0.1, **TIGHT}, {"weights": {"weights": np.array([0.5, 1.0, 2.0])}}, fits_weights=False
    ),
    "Lasso": Case(Y, {"alpha": 0.1, **TIGHT}, fits_weights=False),
    "LassoCV": Case(Y, CHOSEN, {"cv": {"cv": 4}}, fits_weights=False),
    "LogisticRegression": Case(
        LABELS,
        {"C": 0.5, "tol": 1e-10},
        {"fit_intercept": {}, "penalty": {}, "solver": {"solver": "celer"}},  # others are refused by celer
        fits_weights=False,
    ),
    "MultiTaskLasso": Case(TWO, {"alpha": 0.1, **TIGHT}, fits_weights=False),
}


def with_change(make: Any, case: Case, parameter: str) -> Any:
    """Return the model with a change of the parameter."""
    change = case.changes.get(parameter, CHANGES.get(parameter))
    assert change is not None, f"{parameter} is new: give it a value here, and a place in the table of its model"
    base = {name: value for name, value in case.base.items() if name in inspect.signature(make).parameters}
    return make(**{**base, **change})


def errors(model: Any, *data: Any) -> float:
    found = sb.judge(model, *data)
    return max(each.certificate.error for each in (found if isinstance(found, list) else [found]))


def wrong(make: Any, case: Case) -> Iterator[str]:
    """Yield what is wrong, one parameter after the other."""
    for parameter in inspect.signature(make).parameters:
        model = with_change(make, case, parameter).fit(X.copy(), case.y.copy())
        try:
            error = errors(model, X, case.y)
        except TypeError as refusal:
            if parameter not in case.refused or f"has {parameter}=" not in str(refusal):
                yield f"{parameter}: {refusal}"
        else:
            if parameter in case.refused or not error <= 1e-6:
                yield f"{parameter}: error {error:.1e}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SKLEARN)
def test_parameters_of_scikit_learn(name: str) -> None:
    make = getattr(linear_model, name, None) or getattr(svm, name)
    assert list(wrong(make, SKLEARN[name])) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CELER)
def test_parameters_of_celer(name: str) -> None:
    celer = pytest.importorskip("celer")
    try:
        getattr(celer, name)(**CELER[name].base).fit(X, CELER[name].y)
    except (TypeError, AttributeError) as error:
        pytest.skip(f"celer {celer.__version__} and scikit-learn {sklearn.__version__}: {error}")
    assert list(wrong(getattr(celer, name), CELER[name])) == []
