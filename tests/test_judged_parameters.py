"""Every parameter of every model of another library that is judged, from its signature.

The library solves tightly with a value that is not the default. Then the judged objective has no gap there, or the
parameter is refused by name. So a parameter that a new version of a library brings is in this table, or fails here.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn import linear_model, model_selection, svm
from sklearn.base import clone

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
    ),
    "LassoLarsCV": Case(
        Y,
        {"cv": 3},
        {"cv": {"cv": 4}, "eps": {"eps": 1e-15}, "max_n_alphas": {"max_n_alphas": 20}},
        refusing("positive"),
    ),
    "LassoLarsIC": Case(Y, {}, {"eps": {"eps": 1e-15}}, refusing("positive")),
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
        {"Cs": [0.05, 0.5], "l1_ratios": (0.0,), "scoring": "accuracy", "use_legacy_attributes": True, **CHOSEN},
        {**LOGISTIC_CHANGES, "cv": {"cv": 4}, "refit": {"refit": False}},
        refusing("intercept_scaling", "multi_class", "refit"),
    ),
    "MultiTaskElasticNet": Case(TWO, {"alpha": 0.1, **TIGHT}),
    "MultiTaskElasticNetCV": Case(TWO, CHOSEN, {"cv": {"cv": 4}, "l1_ratio": {"l1_ratio": [0.3, 0.8]}}),
    "MultiTaskLasso": Case(TWO, {"alpha": 0.1, **TIGHT}),
    "MultiTaskLassoCV": Case(TWO, CHOSEN, {"cv": {"cv": 4}}),
    "PoissonRegressor": Case(COUNTS, DEVIANCE, DEVIANCE_CHANGES),
    "QuantileRegressor": Case(
        Y,
        {"alpha": 0.05},
        {"solver": {"solver": "highs-ds"}, "solver_options": {"solver_options": {"presolve": False}}},
    ),
    "Ridge": Case(
        TWO, {"alpha": 2.0, **TIGHT}, {"alpha": {"alpha": np.array([0.5, 3.0])}, "solver": {"solver": "lsqr"}}
    ),
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
    "ElasticNet": Case(Y, {"alpha": 0.1, "l1_ratio": 0.5, **TIGHT}),
    "ElasticNetCV": Case(Y, {**CHOSEN, "l1_ratio": 0.5}, {"cv": {"cv": 4}}),
    "GroupLasso": Case(Y, {"groups": 2, "alpha": 0.1, **TIGHT}, {"weights": {"weights": np.array([0.5, 1.0, 2.0])}}),
    "Lasso": Case(Y, {"alpha": 0.1, **TIGHT}),
    "LassoCV": Case(Y, CHOSEN, {"cv": {"cv": 4}}),
    "LogisticRegression": Case(
        LABELS,
        {"C": 0.5, "tol": 1e-10},
        {"fit_intercept": {}, "penalty": {}, "solver": {"solver": "celer"}},  # others are refused by celer
    ),
    "MultiTaskLasso": Case(TWO, {"alpha": 0.1, **TIGHT}),
}

SKGLM_TIGHT = {"tol": 1e-10, "max_iter": 1000}
SKGLM = {
    "ElasticNet": Case(Y, {"alpha": 0.1, **SKGLM_TIGHT}),
    "GroupLasso": Case(
        Y,
        {"groups": 2, "alpha": 0.1, **SKGLM_TIGHT},
        {"weights": {"weights": np.array([0.5, 1.0, 2.0])}},
    ),
    "Lasso": Case(Y, {"alpha": 0.1, **SKGLM_TIGHT}),
    "LinearSVC": Case(LABELS, {"C": 0.3, **SKGLM_TIGHT}),
    "MultiTaskLasso": Case(TWO, {"alpha": 0.1, **SKGLM_TIGHT}),
    "SparseLogisticRegression": Case(LABELS, {"alpha": 0.02, "tol": 1e-10, "max_iter": 1000}),
    "WeightedLasso": Case(Y, {"alpha": 0.1, **SKGLM_TIGHT}),
}


def of_scikit_learn(name: str) -> Any:
    return getattr(linear_model, name, None) or getattr(svm, name)


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
    assert list(wrong(of_scikit_learn(name), SKLEARN[name])) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SKLEARN)
def test_sample_weights_are_used_where_the_fit_has_them_and_refused_elsewhere(name: str) -> None:
    case = SKLEARN[name]
    model = of_scikit_learn(name)(**case.base)
    if "sample_weight" in inspect.signature(model.fit).parameters:
        assert errors(model.fit(X, case.y, sample_weight=WEIGHT), X, case.y, WEIGHT) <= 1e-6
        assert errors(model, X, case.y) > 1e-6
    else:
        with pytest.raises(TypeError, match=f"sample_weight was given, and is not known for sklearn {name}"):
            sb.judge(model.fit(X, case.y), X, case.y, WEIGHT)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CELER)
def test_parameters_of_celer(name: str) -> None:
    celer = pytest.importorskip("celer")
    make, case = getattr(celer, name), CELER[name]
    try:
        make(**case.base).fit(X, case.y)
    except (TypeError, AttributeError) as error:
        pytest.skip(f"celer {celer.__version__} and scikit-learn {sklearn.__version__}: {error}")
    assert list(wrong(make, case)) == []


def test_weights_of_celer_are_refused() -> None:
    celer = pytest.importorskip("celer")
    model = celer.Lasso(0.1).fit(X, Y)
    with pytest.raises(TypeError, match="sample_weight was given, and is not known for celer Lasso"):
        sb.judge(model, X, Y, WEIGHT)


@pytest.mark.filterwarnings("ignore")
def test_parameters_of_statsmodels() -> None:
    quantreg = pytest.importorskip("statsmodels.regression.quantile_regression")
    design = np.column_stack([np.ones(N), X])
    tight = {"p_tol": 1e-13, "max_iter": 20_000}
    changes = {
        "q": 0.2,
        "vcov": "iid",
        "kernel": "gau",
        "bandwidth": "chamberlain",
        "max_iter": 10_000,
        "p_tol": 1e-12,
    }
    for name in sorted(inspect.signature(quantreg.QuantReg.fit).parameters.keys() - {"self", "kwargs"}):
        results = quantreg.QuantReg(Y, design).fit(**{**tight, name: changes[name]})
        assert errors(results, design, Y) <= 1e-6, name
    with pytest.raises(TypeError, match="sample_weight was given, and is not known for statsmodels QuantReg"):
        sb.judge(results, design, Y, WEIGHT)


@pytest.mark.slow  # numba compiles for minutes
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SKGLM)
def test_parameters_of_skglm(name: str) -> None:
    skglm = pytest.importorskip("skglm")
    assert list(wrong(getattr(skglm, name), SKGLM[name])) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_several_classes_of_skglm() -> None:
    """One problem per class. The classifier forgets the intercepts of several classes."""
    skglm = pytest.importorskip("skglm")
    for model in (
        skglm.SparseLogisticRegression(0.02, tol=1e-10, fit_intercept=False),
        skglm.LinearSVC(0.3, tol=1e-10, max_iter=1000),
    ):
        assert len(sb.judge(model.fit(X, THREE), X, THREE)) == 3
        assert errors(model, X, THREE) <= 1e-6
    with pytest.raises(TypeError, match=r"fit_intercept=True.*does not keep their intercepts"):
        sb.judge(skglm.SparseLogisticRegression(0.02).fit(X, THREE), X, THREE)


def test_every_model_of_other_libraries_is_in_a_table() -> None:
    with pytest.raises(TypeError, match="Known are") as error:
        sb.judge(object())
    listed = dict(
        part.split(": ") for part in str(error.value).split("Known are ")[1].split(". For any")[0].split("; ")
    )
    for library, table in {"sklearn": SKLEARN, "celer": CELER, "skglm": SKGLM}.items():
        assert set(listed[library].split(", ")) == set(table)


TOGETHER = {
    "l1 logistic without an intercept, LIBLINEAR": (
        linear_model.LogisticRegression(solver="liblinear", l1_ratio=1, fit_intercept=False, **LOOSER),
        LABELS,
    ),
    "positive Ridge": (linear_model.Ridge(2.0, positive=True, **TIGHT), TWO),
    "positive Ridge, one alpha per target": (linear_model.Ridge([0.5, 3.0], positive=True, **TIGHT), TWO),
    "positive LinearRegression": (linear_model.LinearRegression(positive=True), TWO),
    "positive ElasticNet": (linear_model.ElasticNet(0.1, positive=True, **TIGHT), TWO),
    "Huber, many outliers": (linear_model.HuberRegressor(epsilon=1.1, alpha=0.5, tol=1e-10, max_iter=5000), Y),
    "Huber without an intercept": (
        linear_model.HuberRegressor(alpha=0.0, fit_intercept=False, tol=1e-10, max_iter=5000),
        Y,
    ),
    **{
        f"Tweedie, power={power}": (linear_model.TweedieRegressor(power=power, **DEVIANCE), POSITIVE)
        for power in (0, 1, 1.1, 1.9, 2)
    },
    **{
        f"{name}, {count} classes, {weights}": (make(class_weight=weights), y)
        for count, y, weights in (
            (2, LABELS, "balanced"),
            (2, LABELS, {"no": 2.5}),
            (3, THREE, "balanced"),
            (3, THREE, {0: 3.0, 2: 0.4}),
        )
        for name, make in {
            "logistic": partial(linear_model.LogisticRegression, C=0.3, **TIGHT),
            "l1 logistic": partial(linear_model.LogisticRegression, C=0.3, l1_ratio=1, solver="saga", **TIGHT),
            "squared hinge": partial(svm.LinearSVC, **LIBLINEAR),
            "l1 squared hinge": partial(svm.LinearSVC, penalty="l1", dual=False, **LIBLINEAR),
            "hinge": partial(svm.LinearSVC, loss="hinge", **LIBLINEAR),
        }.items()
    },
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", TOGETHER)
def test_parameters_together(name: str, weighted: bool) -> None:
    model, y = TOGETHER[name]
    weights = (np.where(np.arange(N) % 7 == 0, 0.0, WEIGHT),) if weighted else ()
    assert errors(clone(model).fit(X, y, *weights), X, y, *weights) <= 1e-6


def test_the_best_model_of_a_search_is_judged() -> None:
    search = model_selection.GridSearchCV(linear_model.Ridge(), {"alpha": [0.1, 1.0]}, cv=3).fit(X, Y)
    judgement = sb.judge(search, X, Y)
    assert judgement.name == "sklearn Ridge"
    assert judgement.certificate.error <= 1e-9
    with pytest.raises(TypeError, match=r"GridSearchCV.*not known"):
        sb.judge(
            model_selection.GridSearchCV(linear_model.Ridge(), {"alpha": [0.1]}, cv=3, refit=False).fit(X, Y), X, Y
        )


@pytest.mark.parametrize(
    ("power", "link", "refused"),
    [(3.0, "auto", "power=3"), (-1.0, "auto", "power=-1"), (0.0, "log", "link='log'"), (1.5, "identity", "link='ide")],
)
@pytest.mark.filterwarnings("ignore")
def test_deviances_that_are_not_convex_are_refused(power: float, link: str, refused: str) -> None:
    model = linear_model.TweedieRegressor(power=power, link=link, alpha=1.0).fit(X, POSITIVE)
    with pytest.raises(TypeError, match=f"TweedieRegressor has {refused}.*not known then: expected"):
        sb.judge(model, X, POSITIVE)


def test_a_parameter_of_a_subclass_is_refused_by_name() -> None:
    class Mine(linear_model.Lasso):
        def __init__(self, alpha: float = 0.1, twist: Any = None) -> None:
            super().__init__(alpha)
            self.twist = twist

    assert errors(Mine().fit(X, Y), X, Y) <= 1e-3
    with pytest.raises(TypeError, match=r"Mine has twist=array\(.*expected the default, None"):
        sb.judge(Mine(twist=np.ones(2)).fit(X, Y), X, Y)
