"""The estimators compared with other libraries that fit the same models, and with published coefficients."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.linear_model as peers
import sklearn.svm as machines
from scipy import sparse
from sklearn.base import clone

import saddleback.estimators as se


@pytest.mark.parametrize("storage", [np.asarray, sparse.csc_matrix, sparse.csr_array])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (se.Lasso(0.1, tol=1e-12), peers.Lasso(0.1, tol=1e-12)),
        (se.Lasso(0.1, tol=1e-12, positive=True), peers.Lasso(0.1, tol=1e-12, positive=True)),
        (
            se.Lasso(0.1, tol=1e-12, fit_intercept=False),
            peers.Lasso(0.1, tol=1e-12, fit_intercept=False, max_iter=100_000),
        ),
        (se.ElasticNet(0.1, l1_ratio=0.3, tol=1e-12), peers.ElasticNet(0.1, l1_ratio=0.3, tol=1e-12)),
    ],
)
def test_the_lasso_of_scikit_learn(regression, ours, theirs, weighted, storage):
    X, y = regression
    weight = np.linspace(0.5, 2.0, y.size) if weighted else None
    ours.fit(storage(X), y, sample_weight=weight)
    theirs.fit(X, y, sample_weight=weight)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-5)
    assert np.array_equal(ours.coef_ == 0, theirs.coef_ == 0)
    assert np.allclose(ours.predict(storage(X)), theirs.predict(X), atol=1e-5)


def test_the_multi_task_lasso_of_scikit_learn(regression):
    X, y = regression
    Y = np.column_stack([y, y[::-1]])
    ours, theirs = se.MultiTaskLasso(0.3, tol=1e-10).fit(X, Y), peers.MultiTaskLasso(0.3, tol=1e-10).fit(X, Y)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert np.allclose(ours.predict(X), theirs.predict(X), atol=1e-4)


def test_the_quantile_regression_of_scikit_learn(regression):
    X, y = regression
    theirs = peers.QuantileRegressor(quantile=0.8, alpha=0.05, solver="highs").fit(X, y)
    residual = y - theirs.predict(X)
    value = np.mean(np.maximum(0.8 * residual, -0.2 * residual)) + 0.05 * np.abs(theirs.coef_).sum()
    ours = se.QuantileRegressor(quantile=0.8, alpha=0.05).fit(X, y)
    assert ours.certificate_.primal_value == pytest.approx(value, rel=2e-6)


@pytest.mark.parametrize("quantile", [0.25, 0.5, 0.75])
def test_engel(data, quantile):
    """The published coefficients of the median and the upper quartile, and the sums of the pinball losses."""
    table = np.genfromtxt(data / "quantile" / "engel.csv", delimiter=",", names=True, dtype=None, encoding="utf8")
    X, y = table["income"].astype(float)[:, None], table["foodexp"].astype(float)
    model = se.SparseRegressor("quantile", None, quantile=quantile, tol=1e-8, max_passes=100_000).fit(X, y)
    optimum = {0.25: 7082.315899, 0.5: 8779.966324, 0.75: 6529.250284}[quantile]
    assert y.size * model.certificate_.primal_value == pytest.approx(optimum, rel=2e-8)
    published = {0.5: (81.48224742, 0.56018055), 0.75: (62.39658553, 0.64401414)}
    if quantile in published:
        assert (model.intercept_, model.coef_[0]) == pytest.approx(published[quantile], rel=1e-5)


def test_glmnet_quick_start(data):
    file = np.load(data / "glmnet" / "QuickStartExample.npz")
    X, y = file["X"], file["y"].ravel()
    model = se.Lasso(4.0 / y.size, fit_intercept=False, tol=1e-10).fit(X, y)
    assert 2 * y.size * model.certificate_.primal_value == pytest.approx(131.0234574973, rel=1e-10)
    assert np.allclose(model.coef_, np.loadtxt(data / "glmnet" / "beta_CVX.csv"), atol=1e-4)


def test_logistic_regression_of_scikit_learn(classes):
    """The C of scikit-learn is 1 / (alpha n), and with this solver its intercept has no penalty."""
    X, y = classes
    chosen = y != "cat"
    X, y = X[chosen], y[chosen]
    alpha = 0.05
    ours = se.SparseClassifier("logistic", alpha=alpha, tol=1e-10).fit(X, y)
    theirs = peers.LogisticRegression(l1_ratio=1.0, C=1 / (alpha * y.size), solver="saga", tol=1e-8, max_iter=100_000)
    theirs.fit(X, y)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("weighted", [True, False])
def test_several_targets_are_fitted_one_by_one(regression, weighted):
    """This is as in scikit-learn; a single column of y gives the coefficients of a single target."""
    X, y = regression
    Y, weight = np.column_stack([y, y[::-1], -2 * y]), np.linspace(0.5, 2.0, y.size) if weighted else None
    for ours, theirs in (
        (se.Lasso(0.1, tol=1e-12), peers.Lasso(0.1, tol=1e-12)),
        (se.ElasticNet(0.1, tol=1e-12), peers.ElasticNet(0.1, tol=1e-12)),
    ):
        ours.fit(X, Y, sample_weight=weight)
        theirs.fit(X, Y, sample_weight=weight)
        assert np.allclose(ours.coef_, theirs.coef_, atol=1e-6)
        assert np.allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
        assert np.allclose(ours.predict(X), theirs.predict(X), atol=1e-5)
        assert ours.score(X, Y) == pytest.approx(theirs.score(X, Y), abs=1e-6)
        assert np.allclose(ours.sparse_coef_.toarray(), theirs.sparse_coef_.toarray(), atol=1e-6)
        assert ours.fit(X, Y[:, :1]).coef_.shape == theirs.fit(X, Y[:, :1]).coef_.shape == (12,)


@pytest.fixture
def labels(classes):
    X, y = classes
    return X[y != "cat"], np.where(y[y != "cat"] == "ape", -1, 1)


@pytest.mark.parametrize("alpha", [0.1, 0.01])
def test_the_support_vector_machine_of_libsvm(labels, alpha):
    """SVC minimises 1/2 |w|^2 + C sum hinge with an unpenalised intercept, where C = 1 / (alpha n)."""
    X, y = labels
    ours = se.SparseClassifier("hinge", "elasticnet", alpha, l1_ratio=0.0, tol=1e-10).fit(X, y)
    theirs = machines.SVC(kernel="linear", C=1 / (alpha * y.size), tol=1e-8).fit(X, y)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert np.allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("alpha", [0.1, 0.01])
def test_the_l1_machine_of_liblinear(labels, alpha):
    """LinearSVC with an L1 penalty needs the squared hinge loss, and would penalise an intercept."""
    X, y = labels
    ours = se.SparseClassifier("squared_hinge", alpha=alpha, fit_intercept=False, tol=1e-10).fit(X, y)
    theirs = machines.LinearSVC(
        penalty="l1", dual=False, C=1 / (2 * alpha * y.size), fit_intercept=False, tol=1e-8, max_iter=100_000
    ).fit(X, y)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert np.array_equal(ours.coef_ == 0, theirs.coef_ == 0)


def test_support_vector_regression_of_liblinear(regression):
    X, y = regression
    alpha = 0.05
    ours = se.SparseRegressor(
        "epsilon_insensitive", "elasticnet", alpha, l1_ratio=0.0, epsilon=0.3, fit_intercept=False, tol=1e-10
    ).fit(X, y)
    theirs = machines.LinearSVR(
        epsilon=0.3, C=1 / (alpha * y.size), fit_intercept=False, tol=1e-10, max_iter=1_000_000
    ).fit(X, y)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-3)


# celer ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", [np.asfortranarray, sparse.csc_matrix])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("ours", "theirs", "options"),
    [
        (se.Lasso(0.1), "Lasso", {}),
        (se.ElasticNet(0.1, l1_ratio=0.3), "ElasticNet", {"l1_ratio": 0.3}),
        (
            se.GroupLasso(0.1, groups=[3, 4, 5], weights=[1.0, 2.0, 0.5]),
            "GroupLasso",
            {"groups": [3, 4, 5], "weights": np.array([1.0, 2.0, 0.5])},
        ),
    ],
)
def test_the_models_of_celer(regression, ours, theirs, options, intercept, storage):
    celer = pytest.importorskip("celer")
    X, y = regression
    theirs = getattr(celer, theirs)(alpha=0.1, fit_intercept=intercept, tol=1e-15, max_iter=1000, **options)
    theirs.fit(storage(X), y)
    ours.set_params(fit_intercept=intercept, tol=1e-12).fit(storage(X), y)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-5)
    assert np.array_equal(ours.coef_ == 0, theirs.coef_ == 0)


def test_the_multi_task_lasso_of_celer(regression):
    """The path function is called, because celer's estimator needs a method that scikit-learn no longer has."""
    homotopy = pytest.importorskip("celer.homotopy")
    X, y = regression
    X, Y = np.asfortranarray(X), np.asfortranarray(np.column_stack([y, y[::-1]]))
    _, theirs, _ = homotopy.mtl_path(X, Y, alphas=np.array([0.3]), tol=1e-12, max_iter=1000)
    ours = se.MultiTaskLasso(0.3, fit_intercept=False, tol=1e-12).fit(X, Y)
    assert np.allclose(ours.coef_, theirs[..., 0], atol=1e-5)
    assert np.array_equal(ours.coef_ == 0, theirs[..., 0] == 0)


def test_the_logistic_regression_of_celer(labels):
    celer = pytest.importorskip("celer")
    X, y = labels
    theirs = celer.LogisticRegression(C=1 / (0.02 * y.size), tol=1e-12, max_iter=1000).fit(np.asfortranarray(X), y)
    ours = se.SparseClassifier("logistic", alpha=0.02, fit_intercept=False, tol=1e-12).fit(X, y)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-5)


# statsmodels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quantile", [0.1, 0.25, 0.5, 0.75, 0.9])
def test_quantile_regression_of_statsmodels(quantile):
    """The data are Engel's food expenditures, which statsmodels includes; it iterates reweighted least squares."""
    models = pytest.importorskip("statsmodels.api")
    table = models.datasets.engel.load_pandas().data
    income, food = table["income"].to_numpy()[:, None], table["foodexp"].to_numpy()
    theirs = models.QuantReg(food, models.add_constant(income)).fit(q=quantile)
    ours = se.QuantileRegressor(quantile=quantile, alpha=0.0, tol=1e-10).fit(income, food)
    assert (ours.intercept_, ours.coef_[0]) == pytest.approx(tuple(theirs.params), rel=1e-4)
    residual = food - theirs.predict(models.add_constant(income))
    value = np.mean(np.maximum(quantile * residual, (quantile - 1) * residual))
    assert ours.certificate_.dual_value <= value
    assert ours.certificate_.primal_value == pytest.approx(value, rel=1e-7)


LOG_LINKS = {
    "poisson": (peers.PoissonRegressor(), {}, lambda mean, rng: rng.poisson(mean).astype(float)),
    "gamma": (peers.GammaRegressor(), {}, lambda mean, rng: rng.gamma(2.0, mean / 2.0)),
    "tweedie": (
        peers.TweedieRegressor(power=1.3, link="log"),
        {"power": 1.3},
        lambda mean, rng: rng.gamma(rng.poisson(mean) + 1e-300, 1.0).astype(float),
    ),
}
"""scikit-learn's model of each loss with a log link, our parameters, and targets with given means."""


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOG_LINKS)
def test_losses_with_a_log_link_are_those_of_scikit_learn(loss, intercept, alpha, rng):
    theirs, given, draw = LOG_LINKS[loss]
    X = rng.standard_normal((200, 6))
    y = draw(np.exp(X[:, 0] - 0.5 * X[:, 1] + 0.7), rng)
    weight = rng.uniform(0.5, 2.0, y.size)
    ours = se.SparseRegressor(loss, "elasticnet", alpha, l1_ratio=0.0, fit_intercept=intercept, tol=1e-10, **given)
    theirs = clone(theirs).set_params(alpha=alpha, fit_intercept=intercept, tol=1e-10, max_iter=1000)
    for model in (ours, theirs):
        model.fit(X, y, sample_weight=weight)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert np.allclose(ours.predict(X), theirs.predict(X), rtol=1e-4)
    assert ours.score(X, y, weight) == pytest.approx(theirs.score(X, y, weight), abs=1e-6)


@pytest.mark.parametrize(
    ("loss", "value", "expected"),
    [
        ("poisson", -1.0, "counts that are at least 0"),
        ("gamma", 0.0, "targets that are greater than 0"),
        ("tweedie", -1.0, "targets that are at least 0"),
        ("kullback_leibler", -1.0, "counts that are at least 0"),
    ],
)
def test_targets_that_a_loss_does_not_accept(loss, value, expected):
    for model in (se.SparseRegressor(loss), se.SparseRegressorCV(loss, cv=2), se.FusedLasso(loss=loss)):
        with pytest.raises(ValueError, match=rf"y has the value {value:g}: loss='{loss}' expects {expected}"):
            model.fit(np.eye(3), [1.0, value, 2.0])
    with pytest.raises(ValueError, match=expected):
        se.TrendFilter(loss=loss).fit([1.0, value, 2.0, 3.0])
