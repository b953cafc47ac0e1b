"""Certificates of models of other libraries."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from optional import optional
from scipy import sparse
from sklearn import linear_model, svm

import saddleback as sb
from saddleback import estimators

cp = optional("cvxpy")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 6)) + 1.0
Y = X[:, :2].sum(axis=1) + 0.5 * RNG.standard_normal(80) + 2.0
CLASSES = np.where(np.median(Y) < Y, "yes", "no")
COUNTS = RNG.poisson(np.exp(0.3 * X[:, 0]))
WEIGHT = RNG.uniform(0.5, 2.0, 80)
TWO = np.column_stack([Y, Y[::-1]])
TIGHT = {"tol": 1e-10, "max_iter": 100_000}

SKLEARN = {
    "Lasso": (linear_model.Lasso(0.1, **TIGHT), Y),
    "positive Lasso": (linear_model.Lasso(0.1, positive=True, fit_intercept=False, **TIGHT), TWO),
    "ElasticNet": (linear_model.ElasticNet(0.1, l1_ratio=0.3, **TIGHT), Y),
    "LassoCV": (linear_model.LassoCV(cv=3, **TIGHT), Y),
    "ElasticNetCV": (linear_model.ElasticNetCV(cv=3, l1_ratio=[0.3, 0.8], **TIGHT), Y),
    "LinearRegression": (linear_model.LinearRegression(), Y),
    "Ridge": (linear_model.Ridge(2.0), Y),
    "MultiTaskLasso": (linear_model.MultiTaskLasso(0.1, **TIGHT), TWO),
    "QuantileRegressor": (linear_model.QuantileRegressor(quantile=0.3, alpha=0.05), Y),
    "PoissonRegressor": (linear_model.PoissonRegressor(alpha=0.1, **TIGHT), COUNTS),
    "ridge logistic": (linear_model.LogisticRegression(C=0.3, **TIGHT), CLASSES),
    "l1 logistic": (linear_model.LogisticRegression(C=0.3, l1_ratio=1, solver="liblinear", **TIGHT), CLASSES),
    "balanced": (
        linear_model.LogisticRegression(C=0.3, l1_ratio=0.5, solver="saga", class_weight={"no": 2.0}, **TIGHT),
        CLASSES,
    ),
    "squared hinge": (svm.LinearSVC(C=0.3, intercept_scaling=3.0, **TIGHT), CLASSES),
    "hinge": (svm.LinearSVC(C=0.3, loss="hinge", tol=1e-7, max_iter=10**6), CLASSES),
    "l1 svc": (svm.LinearSVC(C=0.3, penalty="l1", dual=False, tol=1e-7, max_iter=10**6), CLASSES),
    "LinearSVR": (svm.LinearSVR(C=0.3, epsilon=0.2, tol=1e-7, max_iter=10**6), Y),
}


def judged(*arguments: Any, **options: Any) -> list[sb.Judgement]:
    found = sb.judge(*arguments, **options)
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize("name", SKLEARN)
def test_an_accurate_model_has_a_small_gap(name: str) -> None:
    """A wrong constant in an objective would show as a gap."""
    model, y = SKLEARN[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    for each in judged(model, X, y):
        assert each.certificate.error <= 2e-6, str(each)
        assert each.name.startswith("sklearn ")
        assert "above the optimum" in str(each)


@pytest.mark.parametrize("name", ["Lasso", "QuantileRegressor", "Ridge", "ridge logistic", "PoissonRegressor"])
def test_sample_weights_are_those_of_the_fit(name: str) -> None:
    model, y = SKLEARN[name]
    model.fit(X, y, sample_weight=WEIGHT)
    (own,) = judged(model, X, y, sample_weight=WEIGHT)
    (other,) = judged(model, X, y)
    assert own.certificate.relative_gap <= 1e-6 < other.certificate.relative_gap


@pytest.mark.filterwarnings("ignore")
def test_a_loose_model_has_the_gap_of_its_objective() -> None:
    loose, tight = (linear_model.Lasso(0.01, tol=tol, max_iter=3).fit(X, Y) for tol in (0.5, 0.0))
    (first,), (second,) = judged(loose, X, Y), judged(tight, X, Y)
    best = sb.solve(first.problem, tol=1e-10).objective
    assert first.certificate.gap >= first.objective - best - 1e-12
    assert first.objective >= second.objective
    assert first.bounds().count("undecided at this gap") == 0


def test_sparse_data_and_lists() -> None:
    model = linear_model.Lasso(0.1, **TIGHT).fit(sparse.csc_array(X), Y)
    assert judged(model, sparse.csc_array(X), Y)[0].certificate.error <= 1e-8
    assert judged(model, X.tolist(), Y.tolist())[0].certificate.error <= 1e-8


@pytest.mark.slow  # numba compiles for a minute
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", ["skglm", "celer"])
def test_models_of_coordinate_descent(library: str) -> None:
    module = pytest.importorskip(library)
    models = [
        module.Lasso(0.1, tol=1e-10),
        module.ElasticNet(0.1, l1_ratio=0.5, tol=1e-10),
        module.GroupLasso(groups=[[0, 2], [1, 3, 4, 5]], alpha=0.1, tol=1e-10),
        module.GroupLasso(groups=2, alpha=0.1, tol=1e-10, fit_intercept=False),
    ]
    for model in models:
        assert judged(model.fit(X, Y), X, Y)[0].certificate.error <= 1e-6
    weighted = module.WeightedLasso if library == "skglm" else module.Lasso
    model = weighted(0.1, weights=np.arange(1.0, 7.0), tol=1e-10).fit(X, Y)
    assert judged(model, X, Y)[0].certificate.error <= 1e-6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_other_models_of_skglm() -> None:
    skglm = pytest.importorskip("skglm")
    logistic = skglm.SparseLogisticRegression(0.02, tol=1e-10).fit(X, CLASSES)
    assert judged(logistic, X, CLASSES)[0].certificate.error <= 1e-6
    signs = np.where(CLASSES == "yes", 1, -1)
    machine = skglm.LinearSVC(C=0.3, tol=1e-9, fit_intercept=False).fit(X, signs)
    assert judged(machine, X, signs)[0].certificate.error <= 1e-6


def test_quantile_regression_of_statsmodels() -> None:
    quantreg = pytest.importorskip("statsmodels.regression.quantile_regression")
    design = np.column_stack([np.ones(80), X])
    results = quantreg.QuantReg(Y, design).fit(q=0.3)
    assert judged(results, design, Y)[0].certificate.error <= 1e-4


def test_a_problem_of_cvxpy() -> None:
    x = cp.Variable(6)
    program = cp.Problem(cp.Minimize(cp.norm1(X @ x - Y) + cp.norm1(x)))
    with pytest.raises(ValueError, match="have no values"):
        sb.judge(program)
    program.solve(solver=cp.CLARABEL)
    assert judged(program)[0].certificate.error <= 1e-6


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (estimators.Lasso(alpha=0.1), Y),
        (estimators.Lasso(alpha=0.1), TWO),
        (estimators.LassoCV(cv=3), Y),
        (estimators.ElasticNetCV(cv=3, l1_ratio=[0.3, 0.8]), Y),
        (estimators.MultiTaskLasso(alpha=0.1), TWO),
        (estimators.QuantileRegressor(alpha=0.05), Y),
        (estimators.SparseClassifier(alpha=0.05), CLASSES),
        (estimators.SparseClassifier(alpha=0.05), np.argmax(X[:, :3], axis=1)),
    ],
)
def test_own_models(model: Any, y: np.ndarray) -> None:
    for each in judged(model.fit(X, y), X, y):
        assert each.certificate.error <= 2 * model.tol, str(each)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (estimators.SparseRegressor("quantile", alpha=0.02), Y),
        (estimators.SparseRegressor("poisson", alpha=0.02), COUNTS),
        (estimators.Lasso(alpha=0.1), Y),
    ],
)
def test_the_offset_and_weights_of_a_fit_are_needed(model: Any, y: np.ndarray) -> None:
    offset = 0.1 * X[:, 1] ** 2
    model.fit(X, y, sample_weight=WEIGHT, offset=offset)
    assert judged(model, X, y, WEIGHT, offset)[0].certificate.error <= 2 * model.tol
    for others in ({}, {"sample_weight": WEIGHT}, {"offset": offset}):
        with pytest.raises(ValueError, match=r"not the data of the fit.*sample_weight and the offset"):
            sb.judge(model, X, y, **others)
    with pytest.raises(ValueError, match="not the data of the fit"):
        sb.judge(model, X[:40], y[:40], WEIGHT[:40], offset[:40])


def test_a_model_without_an_offset_refuses_one() -> None:
    with pytest.raises(TypeError, match="offset was given, and is not known for sklearn Lasso"):
        sb.judge(linear_model.Lasso(0.1).fit(X, Y), X, Y, offset=Y)
    with pytest.raises(ValueError, match="offset was given, and LassoCV has none"):
        sb.judge(estimators.LassoCV(cv=3).fit(X, Y), X, Y, offset=Y)


def test_a_relaxed_fit_minimises_no_penalised_objective() -> None:
    with pytest.raises(TypeError, match="relaxed=True"):
        sb.judge(estimators.LassoCV(cv=3, relaxed=True).fit(X, Y), X, Y)


@pytest.mark.filterwarnings("ignore")
def test_a_fit_that_ended_early_is_judged() -> None:
    model = estimators.Lasso(alpha=0.1, max_iter=1, tol=1e-12).fit(X, Y)
    assert sb.judge(model, X, Y).objective == pytest.approx(model.result_.objective)


def test_unknown_models_and_missing_data_are_named() -> None:
    with pytest.raises(TypeError, match=r"SGDClassifier, which is not known\. Known are .*Lasso.*sb\.certify"):
        sb.judge(linear_model.SGDClassifier().fit(X, CLASSES), X, CLASSES)
    with pytest.raises(TypeError, match="needs X and y"):
        sb.judge(linear_model.Lasso().fit(X, Y))
    several = linear_model.LogisticRegression(max_iter=1000).fit(X, np.argmax(X[:, :3], axis=1))
    with pytest.raises(ValueError, match=r"y has the label .* expected the classes of the fit, \[0, 1, 2\]"):
        sb.judge(several, X, Y)
    with pytest.raises(TypeError, match="not known"):
        sb.judge(object(), X, Y)


def test_a_subclass_of_a_known_model_is_known() -> None:
    class Mine(linear_model.Lasso):
        pass

    assert judged(Mine(0.1, **TIGHT).fit(X, Y), X, Y)[0].certificate.error <= 1e-8
