"""The estimators in scikit-learn, and the properties that they promise."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model as peers
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import saddleback as sb
import saddleback.estimators as se
from saddleback.datasets import make_robust_pca
from saddleback.estimators import rotation
from saddleback.estimators.linear import LinearModel

FAST = {
    "QuantileRegressor": {"tol": 1e-4},
    "SparseClassifier": {"loss": "logistic"},
    "SparseSVC": {"tol": 1e-2},
    "LassoCV": {"alphas": [0.01], "cv": 2},
    "ElasticNetCV": {"alphas": [0.01], "cv": 2},
    "GroupLassoCV": {"alphas": [0.01], "cv": 2},
    "MultiTaskLassoCV": {"alphas": [0.01], "cv": 2},
    "SparseLogisticRegressionCV": {"alphas": [0.01], "cv": 2, "tol": 1e-2},
    "QuantileRegressorCV": {"alphas": [0.1], "cv": 2, "tol": 1e-2},
    "SparseRegressorCV": {"alphas": [0.01], "cv": 2},
    "SparseClassifierCV": {"loss": "logistic", "alphas": [0.01], "cv": 2, "tol": 1e-2},
    "RobustPCA": {"tol": 1e-4},
    "StabilitySelection": {"estimator": se.Lasso(0.01), "n_pairs": 2},
}
FOR_TABLES = ("check_fit1d", "check_n_features_in", "check_n_features_in_after_fitting")
"""Checks that a vector is refused, and that the number of features is known."""

ESTIMATORS = [name for name in se.__all__ if issubclass(getattr(se, name), BaseEstimator)]


def check(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn skips the checks that need other array libraries
        outcomes = check_estimator(estimator, on_fail=None)
    assert len(outcomes) >= 40
    failed = {outcome["check_name"]: outcome["exception"] for outcome in outcomes if outcome["status"] == "failed"}
    if isinstance(estimator, se.JointQuantileRegressor):  # the check expects one prediction per sample
        failed = {name: why for name, why in failed.items() if not name.startswith("check_estimator_sparse")}
    if isinstance(estimator, (se.TrendFilter, se.TotalVariationDenoiser)):  # they take vectors, and have no features
        failed = {name: why for name, why in failed.items() if name not in FOR_TABLES}
    assert not failed
    assert not any(outcome["expected_to_fail"] for outcome in outcomes)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_check_estimator(name):
    """Every check passes. Few alphas, and tolerances that suffice for the checks, keep the test fast."""
    check(getattr(se, name)(**FAST.get(name, {})))


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_check_estimator_for_positive_targets(loss):
    """The targets of these losses must not be negative, as their tags say."""
    check(se.SparseRegressor(loss))


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_check_estimator_with_default_parameters(name):
    """All estimators except two that would take half an hour: cross-validation with kinks on both sides."""
    few = {"n_alphas": 3, "cv": 2} if name in ("QuantileRegressorCV", "SparseClassifierCV") else {}
    check(getattr(se, name)(**(FAST[name] if name == "StabilitySelection" else few)))


# What the estimators promise ----------------------------------------------------------------------------------------


def test_the_result_is_that_of_the_original_problem(regression, rng):
    """The certificate holds for the given data, not for the centred, shifted, reduced or merged data."""
    X, y = regression
    X, y = np.vstack([X, X[:20]]), np.concatenate([y, y[:20]])
    weight = rng.integers(0, 3, y.size).astype(float)
    for loss, term in (("absolute", sb.Absolute), ("squared", sb.Squared)):
        model = se.SparseRegressor(loss, alpha=0.1).fit(X, y, sample_weight=weight)
        problem = sb.Problem(
            [sb.L1(0.1), sb.Zero()], [X, np.ones(y.size)], term(y, sample_weight=weight, scale=1 / weight.sum())
        )
        assert np.array_equal(model.result_.x[0], model.coef_)
        certificate = sb.certify(problem, model.result_.x, model.result_.y)
        assert certificate.error <= 1e-6
        assert certificate.primal_value == pytest.approx(model.certificate_.primal_value, rel=1e-12)
        assert certificate.dual_value == pytest.approx(model.certificate_.dual_value, rel=1e-9)


@pytest.mark.parametrize(("dtype", "mean"), [(np.float64, 1e7), (np.float32, 1e3)])
@pytest.mark.parametrize("loss", ["squared", "sqrt", "huber"])
@pytest.mark.parametrize("weighted", [True, False])
def test_columns_with_large_means(rng, loss, dtype, mean, weighted):
    """The coefficients are those of centred columns, with a column for the intercept and with an eliminated one."""
    X = rng.integers(-64, 64, (80, 6)) / 16.0  # exact in both precisions, also after the mean is added
    y, weight = 3.0 + X[:, 0] + rng.standard_normal(80), rng.uniform(0.5, 2.0, 80) if weighted else None
    model = se.SparseRegressor(loss, alpha=0.05, tol=1e-10)
    near = clone(model).fit(X, y, sample_weight=weight)
    far = clone(model).fit((X + mean).astype(dtype), y, sample_weight=weight)
    assert np.allclose(near.coef_, far.coef_, atol=2e-5)


@pytest.mark.parametrize("loss", ["multinomial", pytest.param("multiclass_hinge", marks=pytest.mark.slow)])
def test_scikit_learns_checks_of_models_of_all_classes(loss):
    check(se.SparseClassifier(loss, tol=1e-4))


MODELS = {
    "Lasso": se.Lasso(0.2),
    "ElasticNet": se.ElasticNet(0.4, l1_ratio=0.9),
    "GroupLasso": se.GroupLasso(0.2, groups=2),
    "SparseGroupLasso": se.SparseGroupLasso(0.2, groups=2),
    "FusedLasso": se.FusedLasso(0.3, 0.01),
    "MultiTaskLasso": se.MultiTaskLasso(0.3),
    "QuantileRegressor": se.QuantileRegressor(quantile=0.3, alpha=0.05),
    "SparseRegressor": se.SparseRegressor("sqrt", "group", alpha=0.2, groups=2),
    "SparseSVC": se.SparseSVC(0.05),
    "SparseLogisticRegression": se.SparseLogisticRegression(0.05),
    "SparseClassifier": se.SparseClassifier("logistic", "group", alpha=0.05, groups=2),
    "LassoCV": se.LassoCV(alphas=[0.3, 0.2], cv=3),
    "ElasticNetCV": se.ElasticNetCV(l1_ratio=[0.8, 0.95], alphas=[0.4, 0.3], cv=3),
    "MultiTaskLassoCV": se.MultiTaskLassoCV(alphas=[0.4, 0.3], cv=3, relaxed=True),
    "SparseLogisticRegressionCV": se.SparseLogisticRegressionCV(alphas=[0.1, 0.05], cv=3, rule="1se"),
    "GroupLassoCV": se.GroupLassoCV(groups=2, alphas=[0.3, 0.2], cv=3),
    "QuantileRegressorCV": se.QuantileRegressorCV(alphas=[0.1, 0.05], cv=3),
    "SparseRegressorCV": se.SparseRegressorCV("absolute", alphas=[0.1, 0.05], cv=3),
    "SparseClassifierCV": se.SparseClassifierCV("hinge", alphas=[0.1, 0.05], cv=3),
}
"""Every linear model, with an alpha that excludes some features; two of the six features determine the data."""


def test_every_linear_model_is_listed():
    assert set(MODELS) == {name for name in ESTIMATORS if issubclass(getattr(se, name), LinearModel)}


@pytest.fixture
def targets(classes):
    """Return a function that makes suitable targets for a model from the samples of ``classes``."""
    X, y = classes
    number = X[:, 0] + X[:, 1] + 0.3 * np.cos(np.arange(y.size))
    kinds = {"SparseSVC": number > 0, "SparseLogisticRegression": number > 0}
    kinds |= dict.fromkeys(["MultiTaskLasso", "MultiTaskLassoCV"], np.column_stack([number, X[:, 1]]))

    def of(name):
        if name in kinds:
            return kinds[name]
        if get_tags(MODELS[name]).target_tags.positive_only:
            return np.round(np.exp(number))
        return y if is_classifier(MODELS[name]) else number

    return of


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", MODELS)
def test_integer_weights_equal_repeated_rows(classes, targets, rng, name, storage):
    (X, _), y = classes, targets(name)
    weight = rng.integers(0, 4, len(y))
    one, two = clone(MODELS[name]), clone(MODELS[name])
    if name.endswith("CV"):
        weight = np.maximum(weight, 1)
        folds = np.arange(len(y)) % 3
        for model, fold in ((one, folds), (two, np.repeat(folds, weight))):
            model.set_params(cv=[(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)])
    one.fit(storage(X), y, sample_weight=weight)
    two.fit(storage(np.repeat(X, weight, axis=0)), np.repeat(y, weight, axis=0))
    assert np.allclose(one.coef_, two.coef_, rtol=1e-9, atol=1e-12)
    assert np.allclose(one.intercept_, two.intercept_, rtol=1e-9)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", MODELS)
def test_zeros_are_exact(classes, targets, name, storage):
    """Irrelevant features, and whole groups of them, have coefficients that are exactly 0, and none is tiny."""
    model = clone(MODELS[name]).fit(storage(classes[0]), targets(name))
    size = np.abs(np.atleast_2d(model.coef_))
    if "MultiTask" in name:  # the penalty makes whole features 0, and not those of single tasks
        size = np.linalg.norm(size, axis=0)
    assert np.any(size == 0)
    assert np.all((size == 0) | (size > 1e-6 * size.max()))
    if "Group" in name and "Sparse" not in name:
        zero = (size == 0).reshape(-1, 3, 2)
        assert np.array_equal(zero.any(axis=2), zero.all(axis=2))


@pytest.mark.parametrize("penalty", ["l1", "group", "sparse_group"])
@pytest.mark.parametrize("loss", ["hinge", "quantile", "epsilon_insensitive"])
def test_zeros_are_exact_after_an_interior_point(loss, penalty):
    """Its coefficients are never exactly 0, and with many features small ones are hard to distinguish from 0."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((50, 60))
    y = X[:, :3] @ [1.0, -1.0, 0.5] + rng.standard_normal(50)
    make = se.SparseClassifier if loss == "hinge" else se.SparseRegressor
    model = make(loss, penalty, groups=None if penalty == "l1" else 2)
    y = y > 0 if loss == "hinge" else y
    for share in (0.1, 0.02):
        model.set_params(alpha=share * model.path(X, y, n_alphas=1).alphas[0]).fit(X, y)
        if penalty != "l1":  # the method of multipliers may have solved it
            assert model.result_.settings["finish_steps"] > 0
        size = np.abs(model.coef_.ravel())
        assert np.any(size == 0)
        assert np.all((size == 0) | (size > 1e-5 * size.max()))


def test_above_alpha_max_all_coefficients_are_zero(regression):
    X, y = regression
    above = se.SparseRegressor("absolute", "group", groups=3).path(X, y, n_alphas=2).alphas[0] * 1.01
    assert not np.any(se.SparseRegressor("absolute", "group", alpha=above, groups=3).fit(X, y).coef_)


def test_constant_columns_have_coefficient_zero(regression):
    X, y = regression
    X = np.column_stack([X, np.full(y.size, 0.1), np.zeros(y.size)])
    model = se.SparseRegressor(penalty=None).fit(X, y)
    assert np.all(model.coef_[-2:] == 0)
    assert np.allclose(model.predict(X), peers.LinearRegression().fit(X, y).predict(X), atol=1e-3)


def test_single_precision_stays_single(regression):
    X, y = regression
    single = se.Lasso(0.1).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float32
    assert np.allclose(single.coef_, se.Lasso(0.1).fit(X, y).coef_, atol=1e-4)


def test_the_warning_names_the_accuracy_and_the_parameter_to_change(regression):
    X, y = regression
    with pytest.warns(ConvergenceWarning, match=r"certified relative gap .*tolerance 1.0e-09.*Raise max_iter") as told:
        model = se.QuantileRegressor(alpha=0.01, max_iter=20, tol=1e-9).fit(X, y)
    assert model.result_.status is sb.Status.MAX_PASSES
    assert model.certificate_.relative_gap > 1e-9
    said = str(told[0].message)
    assert said.count("max_iter") == 1  # each parameter once
    assert said.count("1.0e-09") == 1
    with pytest.warns(ConvergenceWarning, match="Raise max_passes"):
        se.SparseRegressor("absolute", alpha=0.01, max_passes=20, tol=1e-9).fit(X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", ["Lasso", "ElasticNet", "MultiTaskLasso"])
def test_one_column_of_y_has_the_shapes_of_scikit_learn(regression, name, fit_intercept):
    X, y = regression
    given = {"alpha": 0.1, "fit_intercept": fit_intercept}
    for targets in (y, y[:, None]) if name != "MultiTaskLasso" else (y[:, None],):
        ours, theirs = (getattr(library, name)(**given).fit(X, targets) for library in (se, peers))
        assert ours.coef_.shape == theirs.coef_.shape
        assert np.shape(ours.intercept_) == np.shape(theirs.intercept_) or not fit_intercept
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-3)
        assert ours.predict(X).shape == theirs.predict(X).shape


def test_warm_starts(regression):
    X, y = regression
    model = se.SparseRegressor("absolute", alpha=0.05, warm_start=True, tol=1e-5).fit(X, y)
    cold = model.n_passes_
    assert model.fit(X, y).n_passes_ < 0.5 * cold
    assert model.fit(X[:-5], y[:-5]).certificate_.error <= 1e-5
    assert model.fit(X[:, :-1], y).coef_.shape == (11,)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (se.SparseRegressor("sqaured"), "did you mean 'squared'"),
        (se.SparseRegressor("MSE"), "did you mean 'squared'"),
        (se.SparseRegressor(penalty="lasso"), "did you mean 'l1'"),
        (se.SparseRegressor(penalty="L1"), "did you mean 'l1'"),
        (se.SparseRegressor(penalty="slope"), r"did you mean sb\.SLOPE with sb\.solve"),
        (se.SparseRegressor(penalty="l2"), r"penalty='l2' is not known \(did you mean 'elasticnet' with l1_ratio=0"),
        (se.SparseRegressor("hinge"), r"loss='hinge' is not known to regressors \(it is a loss of SparseClassifier\)"),
        (se.SparseRegressor("pinball"), "did you mean 'quantile'"),
        (se.SparseRegressor("mae"), "did you mean 'absolute'"),
        (se.QuantileRegressor(quantile=0), "quantile=0: expected a number strictly between 0 and 1"),
        (se.SparseRegressor("quantile", quantile=1.0), "quantile=1.0: expected a number strictly"),
        (se.QuantileRegressor(time_limit=-1), "time_limit=-1"),
        (se.SparseRegressor(penalty="group", groups=[5, 6]), "groups"),
        (se.Lasso(-1.0), "alpha=-1.0"),
        (se.Lasso(max_iter=0), "max_iter=0: expected a positive number"),
        (se.Lasso(tol=-1.0), "tol=-1.0"),
        (se.SparseRegressorCV(penalty=None), "no alpha"),
    ],
)
def test_invalid_parameters_are_rejected(regression, model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*regression)


@pytest.mark.parametrize("penalty", [[("l1", ["a"])], 3, {("l1",): [0]}])
def test_a_penalty_is_a_name_or_a_dict(regression, penalty):
    with pytest.raises(TypeError, match=r"penalty=.*: expected one of .*, or a dict from such names to columns"):
        se.SparseRegressor("squared", penalty).fit(*regression)
    with pytest.raises(TypeError, match="loss=None: expected one of"):
        se.SparseRegressor(None).fit(*regression)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (se.SparseRegressor(quantile=0.9), "quantile was set, but neither loss='squared'.* belongs to loss='quantile'"),
        (
            se.SparseRegressor(groups=2),
            "penalty='l1' reads it: it belongs to penalty='group' and",
        ),
        (se.SparseRegressor(penalty=None, weights=[1.0] * 12), "weights was set"),
        (se.SparseRegressor("gamma", power=1.2), "power was set.* belongs to loss=.tweedie."),
        (se.SparseRegressor(expectile=0.9), "expectile was set.* belongs to loss=.expectile."),
    ],
)
def test_an_unused_parameter_causes_a_warning(regression, model, message):
    with pytest.warns(UserWarning, match=message):
        model.fit(*regression)


def test_options_of_other_solvers_are_rejected():
    """The message has the reason, or for a misspelt name the right one. The signature does not contain them."""
    for model, option in [
        (se.Lasso, "precompute"),
        (se.ElasticNet, "selection"),
        (se.MultiTaskLasso, "copy_X"),
        (se.QuantileRegressor, "solver"),
        (se.QuantileRegressor, "solver_options"),
        (se.LassoCV, "precompute"),
    ]:
        with pytest.raises(TypeError, match=f"{model.__name__} has no parameter {option}: .*leave it out"):
            model(**{option: True})
    with pytest.raises(TypeError, match=r"no parameter alhpa: did you mean alpha\?"):
        se.GroupLasso(alhpa=1.0)
    with pytest.raises(TypeError, match=r"SparseRegressor has no parameter max_iter: did you mean max_passes\?"):
        se.SparseRegressor(max_iter=100)
    with pytest.raises(TypeError, match=r"Lasso has no parameter max_passes: did you mean max_iter\?"):
        se.Lasso(max_passes=100)
    with pytest.raises(TypeError, match=r"no parameter C: .*alpha, which is 1 / \(C \* n_samples\)"):
        se.SparseSVC(C=1.0)
    with pytest.raises(TypeError, match=r"no parameter tau: did you mean quantile\?"):
        se.QuantileRegressor(tau=0.5)
    with pytest.raises(TypeError, match=r"no parameter colour: it has alpha, .*random_state"):
        se.SparseSVC(colour=1)
    assert list(inspect.signature(se.Lasso).parameters)[:3] == ["alpha", "fit_intercept", "max_iter"]
    assert not hasattr(se.SparseClassifier("hinge"), "predict_proba")
    assert not hasattr(se.SparseSVC(), "predict_proba")


@pytest.mark.parametrize("penalty", [{"penalty": None}, {"alpha": 0.0}])
def test_separable_classes_have_no_logistic_regression(classes, penalty):
    X, y = classes
    model = se.SparseClassifier("logistic", **penalty, tol=1e-3)
    with pytest.warns(ConvergenceWarning, match="separable.*Add a penalty"):
        model.fit(X, X[:, 0] > 0.1)
    assert model.score(X, X[:, 0] > 0.1) == 1.0
    assert model.result_.status is sb.Status.DIVERGED
    assert "separable" in model.result_.message
    assert model.n_passes_ < 1000  # of 10,000: the fit ends at the first iterate that separates the classes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y == "bee")
        model.set_params(penalty="l1", alpha=0.01).fit(X, X[:, 0] > 0.1)


def test_several_classes(classes):
    X, y = classes
    model = se.SparseClassifier("logistic", alpha=0.01).fit(X, y)
    assert model.coef_.shape == (3, 6)
    assert len(model.result_) == 3
    assert model.score(X, y) > 0.7
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
    one = se.SparseClassifier("logistic", alpha=0.01).fit(X, y == "bee")
    assert np.allclose(one.coef_[0], model.coef_[1], atol=1e-6)


@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e300])
@pytest.mark.parametrize("everywhere", [True, False])
def test_weights_that_cannot_be_computed_with_are_named(weight, everywhere, rng):
    X, y = rng.standard_normal((30, 3)), rng.standard_normal(30)
    weights = np.full(30, weight if everywhere else 1.0)
    weights[3] = weight
    for model in (se.Lasso(0.1), se.LassoCV(), se.QuantileRegressor(alpha=0.1)):
        with pytest.raises(ValueError, match=r"sample_weight has the value .*: expected (0 or )?numbers of at"):
            model.fit(X, y, sample_weight=weights)
    weights[:] = 1e100
    weights[3] = 1e-100
    with pytest.raises(ValueError, match=r"sample_weight, divided by its sum, has the value"):
        se.Lasso(0.1).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_features_that_cannot_be_computed_with_are_named(storage, rng):
    X, y = rng.standard_normal((30, 3)), rng.standard_normal(30)
    X[:2, 1] = 1e308, -1e308
    with pytest.raises(ValueError, match=r"X has the value -?1e\+308 at .*expected numbers of at most 1e\+120 in size"):
        se.Lasso(0.1).fit(storage(X), y)


def test_class_weights_are_sample_weights(classes):
    X, y = classes
    weight = {"ape": 1.0, "bee": 2.0, "cat": 0.5}
    by_class = se.SparseSVC(class_weight=weight, tol=1e-3).fit(X, y)
    by_sample = se.SparseSVC(tol=1e-3).fit(X, y, sample_weight=[weight[label] for label in y])
    assert np.array_equal(by_class.coef_, by_sample.coef_)


# Paths and cross-validation -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile", "sqrt"])
@pytest.mark.parametrize("penalty", ["l1", "group"])
def test_paths_begin_at_alpha_max(regression, loss, penalty):
    X, y = regression
    model = se.SparseRegressor(loss, penalty, groups=None if penalty == "l1" else 4, tol=1e-4)
    path = model.path(X, y, n_alphas=5, eps=0.1)
    assert path.coefs.shape == (12, 5)
    assert np.all(np.diff(path.alphas) < 0)
    assert np.abs(path.coefs[:, 0]).max() <= 1e-12 * np.abs(path.coefs).max()  # 0 up to the rounding of alpha_max
    assert np.all(np.any(path.coefs[:, 1:], axis=0))
    assert not hasattr(model, "n_features_in_")
    alone = clone(model).set_params(alpha=path.alphas[3]).fit(X, y)
    assert path.results[3].certificate.primal_value == pytest.approx(alone.certificate_.primal_value, rel=2e-4)
    below = clone(model).set_params(alpha=path.alphas[0] * 0.995, tol=1e-6).fit(X, y)
    assert np.any(below.coef_)


def test_a_path_of_zeros(regression):
    X, _ = regression
    model = se.LassoCV(n_alphas=3).fit(X, np.full(60, 2.0))
    assert not np.any(model.path_.coefs)
    assert np.array_equal(model.predict(X), np.full(60, 2.0))


def test_lasso_cv_of_scikit_learn(regression):
    X, y = regression
    ours, theirs = se.LassoCV(n_alphas=30).fit(X, y), peers.LassoCV(alphas=30, tol=1e-8).fit(X, y)
    assert np.allclose(ours.alphas_, theirs.alphas_, rtol=1e-8)
    assert ours.alpha_ == pytest.approx(theirs.alpha_, rel=1e-8)
    assert np.allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-3)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-3)


@pytest.mark.filterwarnings("ignore::saddleback.estimators.AlphaGridWarning")
@pytest.mark.parametrize(
    ("model", "dtype"),
    [
        (se.LassoCV(n_alphas=20), np.float64),
        (se.LassoCV(n_alphas=20, fit_intercept=False), np.float64),
        (se.GroupLassoCV(groups=2, n_alphas=20, positive=True), np.float64),
        pytest.param(se.SparseRegressorCV("sqrt", eps=0.1, n_alphas=20, tol=1e-6), np.float32, marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_fewer_rows_change_nothing(model, dtype, rng, monkeypatch):
    X = rng.standard_normal((150, 6)).astype(dtype)
    X[:, 2] += 50.0
    X[:, 5] = X[:, 0] + X[:, 1]  # linearly dependent columns
    y = X[:, :3].sum(axis=1) + rng.standard_normal(150)
    weight = rng.integers(0, 3, 150)
    made = []
    monkeypatch.setattr(rotation, "rotated", lambda *given, of=rotation.rotated: made.append(of(*given)) or made[-1])
    fewer = clone(model).fit(X, y, sample_weight=weight)
    assert [matrix.shape for matrix in made] == [(7, 7)] * 6  # the fit to all rows, and five folds
    monkeypatch.setattr(rotation, "pays", lambda *sizes: False)
    plain = clone(model).fit(X, y, sample_weight=weight)
    assert fewer.alpha_ == plain.alpha_
    assert np.allclose(fewer.loss_path_, plain.loss_path_, rtol=2e-3)
    assert np.allclose(fewer.coef_, plain.coef_, atol=2e-3)
    for result in fewer.path_.results:  # certified on the given rows
        assert result.status is sb.Status.OPTIMAL
        assert result.y.shape == y.shape


def test_a_rotation_factors_the_rows_if_the_gram_matrix_has_too_few_digits(rng):
    """A column, or y, that is nearly a combination of the others: its distance would be rounding."""
    A, b = rng.standard_normal((300, 5)), rng.standard_normal((300, 1))
    near = A[:, :1] + 1e-6 * rng.standard_normal((300, 1))
    for parts in ([A, near, b], [A, near], [A, np.zeros((300, 1)), b]):
        assert rotation._by_gram_matrix(parts, None) is None
        square = rotation.rotated(parts, None)
        whole = np.hstack(parts)
        distances = [np.linalg.svd(each, compute_uv=False) for each in (whole, square)]
        assert np.allclose(*distances, rtol=1e-8, atol=1e-13)
    assert rotation._by_gram_matrix([A, b], None) is not None


def test_a_rotation_keeps_all_products_and_leaves_no_row_empty(rng):
    A, b, weight = rng.standard_normal((5000, 30)) + 3.0, rng.standard_normal((5000, 1)), rng.random(5000)
    for given in (None, weight):
        square = rotation.rotated([A, b], given)
        whole = np.hstack([A, b]) * np.sqrt(1.0 if given is None else given[:, None])
        lengths = np.linalg.norm(square, axis=1)
        assert np.allclose(square.T @ square, whole.T @ whole, rtol=1e-10, atol=1e-8)
        assert lengths.max() < 50 * lengths.min()  # the rows of the triangle differ by more than 1e3


def test_folds_in_other_processes_change_nothing(classes):
    X, y = classes
    models = [
        se.SparseClassifierCV("squared_hinge", "group", groups=2, alphas=5, cv=3, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (None, 2)
    ]
    assert np.array_equal(models[0].loss_path_, models[1].loss_path_)
    assert models[0].path_.coefs.shape == (3, 6, 5)
    assert models[0].score(X, y) > 0.7
    joblib.externals.loky.get_reusable_executor().shutdown()


def test_quantile_cv_and_its_pictures(regression):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X, y = regression
    model = se.QuantileRegressorCV(quantile=0.3, n_alphas=4, eps=1e-3, cv=2, tol=1e-3).fit(X, y)
    assert model.loss_path_.shape == (4, 2)
    assert model.alpha_ == model.alphas_[np.argmin(model.mean_loss_)]
    axes = model.plot()
    assert len(axes[0].lines) == np.any(model.path_.coefs, axis=1).sum() + 1
    pyplot.close("all")


# Robust PCA ---------------------------------------------------------------------------------------------------------


def test_robust_pca_small(data):
    from scipy.io import loadmat

    file = loadmat(data / "rpca" / "verySmall_l1.mat")
    model = se.RobustPCA(low_rank_weight=0.4, sparse_weight=0.1, tol=1e-8).fit(file["Y"])
    assert model.certificate_.primal_value == pytest.approx(7.972839081068, rel=2e-8)
    assert np.allclose(model.low_rank_, file["L"], atol=1e-3)


def test_robust_pca_parts_and_new_rows():
    made = make_robust_pca(25, 12, rank=2)
    model = se.RobustPCA(low_rank_weight=made.nuclear_alpha, sparse_weight=made.sparse_alpha, tol=1e-8)
    scores = model.fit_transform(made.B)
    assert np.allclose(model.low_rank_ + model.sparse_ + model.noise_, made.B)
    assert scores.shape == (25, model.rank_)
    assert np.allclose(model.components_ @ model.components_.T, np.eye(model.rank_), atol=1e-12)
    assert np.allclose(model.inverse_transform(scores), model.low_rank_, atol=1e-8)
    assert np.allclose(model.transform(made.B), scores, atol=2e-3)
    wild = made.B.copy()
    wild[:, 5] += 1e6  # a very large entry has the same effect as a missing one
    further = wild.copy()
    further[:, 5] += 1e6
    assert np.allclose(model.transform(wild), model.transform(further), atol=1e-6)


# Other libraries ----------------------------------------------------------------------------------------------------


def test_pandas_in_names_out(regression):
    X, y = regression
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(12)])
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), se.Lasso(0.1)).fit(frame, y)
    assert list(model[-1].feature_names_in_) == list(frame.columns)
    pca = se.RobustPCA(tol=1e-3).set_output(transform="pandas")
    assert list(pca.fit_transform(frame).columns) == [f"robustpca{k}" for k in range(pca.rank_)]


def test_search_clone_and_pickle(regression):
    X, y = regression
    grid = {"sparseregressor__alpha": [0.01, 0.1], "sparseregressor__penalty": ["l1", "group"]}
    search = GridSearchCV(make_pipeline(StandardScaler(), se.SparseRegressor("huber")), grid, cv=2).fit(X, y)
    model = search.best_estimator_[-1]
    assert np.array_equal(pickle.loads(pickle.dumps(model)).coef_, model.coef_)
    assert clone(model).get_params() == model.get_params()


def test_saddleback_alone_does_not_import_scikit_learn():
    code = "import sys, saddleback; assert not any(name.startswith('sklearn') for name in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


FIRST_FIT = """
import time
import numpy as np
from saddleback.estimators import {name}
X = np.random.default_rng(0).standard_normal((100, 20))
y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 1, -1)
seconds = []
for _ in range(3):
    begin = time.process_time()
    {name}({arguments}).fit(X, y)
    seconds.append(time.process_time() - begin)
print(seconds[0] - min(seconds[1:]))
"""


@pytest.mark.parametrize(("name", "arguments"), [("Lasso", "0.1"), ("SparseClassifier", "tol=1e-3")])
def test_the_first_fit_is_no_slower(name, arguments):
    """The first fit neither compiles nor imports anything. CPU time is measured; the best of three counts."""
    code = FIRST_FIT.format(name=name, arguments=arguments)
    later = (
        float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
        for _ in range(3)
    )
    assert any(seconds < 0.05 for seconds in later)
