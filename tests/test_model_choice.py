"""The choice of alpha: folds and their rules, information criteria, grids of l1_ratio, and refits without a penalty."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.linear_model as peers
from scipy import sparse, stats
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold

import saddleback as sb
import saddleback.estimators as se
from saddleback.estimators import criteria

pytestmark = pytest.mark.filterwarnings("ignore::saddleback.estimators.AlphaGridWarning")


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((90, 8))
    return X, 1.0 + X[:, :3] @ [1.0, -1.0, 0.5] + rng.standard_normal(90)


# Rules --------------------------------------------------------------------------------------------------------------


def test_the_standard_error_is_that_of_the_mean_over_folds(data):
    model = se.LassoCV(n_alphas=12, cv=5).fit(*data)
    assert np.allclose(model.loss_std_error_, np.std(model.loss_path_, axis=1, ddof=1) / np.sqrt(5))


def test_one_standard_error_takes_the_largest_alpha_within_it(data):
    best = se.LassoCV(n_alphas=40, cv=5).fit(*data)
    model = se.LassoCV(n_alphas=40, cv=5, rule="1se").fit(*data)
    i = int(np.argmin(best.mean_loss_))
    within = best.mean_loss_ <= best.mean_loss_[i] + best.loss_std_error_[i]
    assert best.alpha_ < model.alpha_ == best.alphas_[within].max()
    assert np.count_nonzero(model.coef_) < np.count_nonzero(best.coef_)
    assert np.array_equal(model.coef_, model.path_.coefs[:, list(model.alphas_).index(model.alpha_)])


def test_weights_of_folds_in_the_standard_error(data):
    """Repeated samples and integer weights choose the same alpha."""
    X, y = data
    weight = np.arange(90) % 3 + 1
    fold = np.arange(90) % 4
    folds, repeated = (
        [(np.flatnonzero(f != k), np.flatnonzero(f == k)) for k in range(4)] for f in (fold, np.repeat(fold, weight))
    )
    one = se.LassoCV(n_alphas=10, cv=folds, rule="1se").fit(X, y, sample_weight=weight)
    two = se.LassoCV(n_alphas=10, cv=repeated, rule="1se").fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert np.allclose(one.loss_std_error_, two.loss_std_error_, rtol=1e-8)
    assert one.alpha_ == pytest.approx(two.alpha_)


# Criteria -----------------------------------------------------------------------------------------------------------


def density(loss, scale):
    """Return the integral of exp(-loss(r) / scale)."""
    return quad(lambda r: np.exp(-loss(r) / scale), -np.inf, np.inf, limit=200)[0]


@pytest.mark.parametrize(
    ("likelihood", "loss", "given"),
    [
        (criteria.SQUARES, lambda r: r**2 / 2, {}),
        (criteria.LINEAR, abs, {}),
        (criteria.LINEAR, lambda r: max(0.3 * r, -0.7 * r), {"quantile": 0.3}),
        (criteria.HUBER, lambda r: r**2 / 2 if abs(r) <= 0.8 else 0.8 * (abs(r) - 0.4), {"delta": 0.8}),
        (criteria.INSENSITIVE, lambda r: max(0.0, abs(r) - 0.4), {"epsilon": 0.4}),
    ],
    ids=["squared", "absolute", "quantile", "huber", "epsilon_insensitive"],
)
def test_deviances_are_those_of_the_best_scale(likelihood, loss, given):
    """Up to a constant: the minimum over the scale of 2 (log Z + m / scale), with Z integrated numerically."""
    means = np.array([0.2, 0.5, 1.3])

    def numerical(mean):
        return minimize_scalar(
            lambda t: 2.0 * (np.log(density(loss, np.exp(t))) + mean / np.exp(t)), bounds=(-5.0, 5.0), method="bounded"
        ).fun

    found, expected = likelihood.deviance(means, **given), np.array([numerical(mean) for mean in means])
    assert np.allclose(np.diff(found), np.diff(expected), atol=1e-5)


@pytest.mark.parametrize("criterion", ["aic", "bic"])
def test_criteria_of_least_squares(criterion):
    """n log(RSS / n) plus 2 or log(n) for every coefficient; statsmodels and LassoLarsIC differ by a constant."""
    X, y = load_diabetes(return_X_y=True)
    model = se.LassoCV(criterion=criterion, n_alphas=30, tol=1e-8).fit(X, y)
    residual = y[:, None] - X @ model.path_.coefs - model.path_.intercepts
    price = 2.0 if criterion == "aic" else np.log(y.size)
    size = np.count_nonzero(model.path_.coefs, axis=0) + 1
    expected = y.size * np.log(np.mean(residual**2, axis=0)) + price * size
    assert np.allclose(model.criterion_path_, expected)
    assert model.alpha_ == model.alphas_[np.argmin(expected)]
    assert model.loss_path_ is model.mean_loss_ is model.loss_std_error_ is model.mse_path_ is None
    assert peers.LassoLarsIC(criterion).fit(X, y).alpha_ == pytest.approx(model.alpha_, rel=0.3)  # on the kinks alone


def test_gcv_and_ebic(data):
    X, y = data
    gcv, bic, ebic = (se.LassoCV(criterion=name, n_alphas=15).fit(X, y) for name in ("gcv", "bic", "ebic"))
    used = np.count_nonzero(gcv.path_.coefs, axis=0)
    loss = np.mean((y[:, None] - X @ gcv.path_.coefs - gcv.path_.intercepts) ** 2, axis=0) / 2
    assert np.allclose(gcv.criterion_path_, loss / (1.0 - (used + 1) / 90) ** 2)
    ways = {0: 1, 1: 8, 2: 28, 3: 56, 4: 70, 5: 56, 6: 28, 7: 8, 8: 1}
    assert np.allclose(ebic.criterion_path_ - bic.criterion_path_, 2 * np.log([ways[k] for k in used]))


@pytest.mark.parametrize(
    ("model", "deviance"),
    [
        (se.SparseClassifierCV("logistic", criterion="bic", n_alphas=6), "logistic"),
        (se.SparseRegressorCV("poisson", criterion="bic", n_alphas=6), "poisson"),
    ],
    ids=["logistic", "poisson"],
)
def test_deviances_of_generalised_linear_models(data, model, deviance):
    X, y = data
    z = (y > 1) * 1.0 if deviance == "logistic" else np.round(np.exp(0.5 * y))
    model.fit(X, z, sample_weight=np.full(90, 2.0))
    u = X @ model.path_.coefs.reshape(8, -1) + model.path_.intercepts
    if deviance == "logistic":
        loss = 2 * np.logaddexp(0.0, np.where(z[:, None] > 0, -u, u))
    else:
        best = z - np.where(z > 0, z * np.log(np.maximum(z, 1)), 0.0)
        loss = 2 * (np.exp(u) - z[:, None] * u - best[:, None])
    size = np.count_nonzero(model.path_.coefs.reshape(8, -1), axis=0) + 1
    assert np.allclose(model.criterion_path_, 2 * loss.sum(axis=0) + np.log(180) * size)


def test_the_criterion_of_gamma_targets_is_that_of_their_best_shape(data):
    """Minus twice the log-likelihood, at the best of many shapes."""
    X, y = data
    z = np.exp(0.5 * y)
    model = se.SparseRegressorCV("gamma", criterion="aic", n_alphas=6, tol=1e-8).fit(X, z)
    means = np.exp(X @ model.path_.coefs + model.path_.intercepts)
    size = np.count_nonzero(model.path_.coefs, axis=0) + 1
    shapes = np.geomspace(0.01, 1000.0, 20_000)
    for k in range(6):
        density = [stats.gamma.logpdf(z[i], shapes, scale=means[i, k] / shapes) for i in range(90)]
        deviance = -2.0 * np.sum(density, axis=0).max()
        constant = 2.0 * np.log(z).sum()  # the criterion leaves it out
        assert model.criterion_path_[k] == pytest.approx(deviance - constant + 2 * size[k], rel=1e-5)


@pytest.mark.parametrize(("loss", "given"), [("expectile", {"expectile": 0.8}), ("kullback_leibler", {})])
def test_criteria_of_expectiles_and_of_counts_with_an_identity_link(data, loss, given):
    X, y = data
    X, z = np.abs(X), np.round(np.exp(0.3 * y)) + 1.0 if loss == "kullback_leibler" else y
    model = se.SparseRegressorCV(loss, criterion="bic", n_alphas=6, tol=1e-8, **given).fit(X, z)
    u, b = X @ model.path_.coefs + model.path_.intercepts, z[:, None]
    deviance = (
        90 * np.log(np.mean(np.where(b >= u, 0.8, 0.2) * (b - u) ** 2, axis=0))
        if loss == "expectile"
        else 2.0 * np.sum(b * np.log(b / u) - b + u, axis=0)
    )
    size = np.count_nonzero(model.path_.coefs, axis=0) + 1
    assert np.allclose(model.criterion_path_, deviance + np.log(90) * size)


def test_a_tweedie_model_has_no_criterion(data):
    with pytest.raises(ValueError, match="loss='tweedie' has none"):
        se.SparseRegressorCV("tweedie", criterion="aic").fit(data[0], np.exp(data[1]))


def test_criteria_of_groups_tasks_and_classes(data):
    X, y = data
    groups = se.GroupLassoCV(groups=4, criterion="ebic", n_alphas=5).fit(X, y)
    bic = se.GroupLassoCV(groups=4, criterion="bic", n_alphas=5).fit(X, y)
    selected = np.any(groups.path_.coefs.reshape(2, 4, 5), axis=1).sum(axis=0)
    assert np.allclose(
        groups.criterion_path_ - bic.criterion_path_, 2 * np.log([{0: 1, 1: 2, 2: 1}[k] for k in selected])
    )
    Y = np.column_stack([y, X[:, 0] - y])
    tasks = se.MultiTaskLassoCV(criterion="bic", n_alphas=5).fit(X, Y)
    residual = Y[..., None] - np.einsum("ij,tjk->itk", X, tasks.path_.coefs) - tasks.path_.intercepts
    size = np.count_nonzero(tasks.path_.coefs, axis=(0, 1)) + 2
    expected = 180 * np.log(np.mean(residual**2, axis=(0, 1))) + np.log(180) * size
    assert np.allclose(tasks.criterion_path_, expected)
    labels = np.digitize(y, [0.0, 2.0])
    classes = se.SparseLogisticRegressionCV(criterion="aic", n_alphas=5).fit(X, labels)
    each = [
        se.SparseLogisticRegressionCV(criterion="aic", alphas=classes.alphas_).fit(X, labels == k) for k in range(3)
    ]
    assert np.allclose(classes.criterion_path_, sum(model.criterion_path_ for model in each), rtol=1e-3)


@pytest.mark.parametrize("model", [se.LassoCV(), se.SparseRegressorCV("quantile")])
def test_a_training_part_without_weight_is_refused(model, rng):
    X, y = rng.standard_normal((30, 3)), rng.standard_normal(30)
    weight = np.zeros(30)
    weight[:4] = 1.0  # all in the first fold
    with pytest.raises(ValueError, match="all samples with a positive weight are in one fold"):
        model.fit(X, y, sample_weight=weight)
    spread = clone(model).set_params(cv=KFold(2, shuffle=True, random_state=0)).fit(X, y, sample_weight=weight)
    assert np.isfinite(spread.coef_).all()


def test_fewer_samples_than_folds_are_told_as_such(rng):
    X, y = rng.standard_normal((4, 3)), rng.standard_normal(4)
    with pytest.raises(ValueError, match=r"4 samples cannot be divided into folds .*: expected other folds, as cv, or"):
        se.LassoCV().fit(X, y)


def test_weights_are_counts(data):
    X, y = data
    weight = np.arange(90) % 3
    one = se.QuantileRegressorCV(criterion="bic", n_alphas=5).fit(X, y, sample_weight=weight)
    two = se.QuantileRegressorCV(criterion="bic", n_alphas=5).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert np.allclose(one.criterion_path_, two.criterion_path_)


def test_models_with_as_many_coefficients_as_samples_are_not_compared():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 40))
    model = se.LassoCV(criterion="aic", eps=1e-5, n_alphas=60).fit(X, X[:, 0] + rng.standard_normal(12))
    full = np.count_nonzero(model.path_.coefs, axis=0) + 1 >= 12
    assert np.any(full)
    assert np.all(np.isinf(model.criterion_path_) == full)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (se.LassoCV(rule="2se"), r"rule='2se' is not known: expected one of \['best', '1se'\]"),
        (se.LassoCV(criterion="cp"), "criterion='cp' is not known: expected None for folds, or one of"),
        (se.LassoCV(criterion="bic", rule="1se"), "rule='1se' is about folds, and criterion='bic' needs none"),
        (se.LassoCV(criterion="bic", cv=3), "cv=3 is about folds"),
        (se.LassoCV(rule="1se", cv=[(np.arange(60), np.arange(60, 90))]), "two folds or more"),
        (se.ElasticNetCV(l1_ratio=[]), "expected a number, or a list of numbers"),
    ],
    ids=repr,
)
def test_choices_that_make_no_sense_are_refused(data, model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*data)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_losses_without_a_likelihood_have_no_criterion(data, loss):
    X, y = data
    with pytest.raises(ValueError, match=f"loss='{loss}' has none: leave criterion out, or use loss='logistic'"):
        se.SparseClassifierCV(loss, criterion="aic").fit(X, y > 0)


# Grids of l1_ratio --------------------------------------------------------------------------------------------------


def test_elastic_net_cv_of_scikit_learn(data):
    ratios = [0.2, 0.7, 1.0]
    ours = se.ElasticNetCV(l1_ratio=ratios, n_alphas=12).fit(*data)
    theirs = peers.ElasticNetCV(l1_ratio=ratios, alphas=12, tol=1e-8).fit(*data)
    assert ours.l1_ratio_ == theirs.l1_ratio_
    assert ours.alpha_ == pytest.approx(theirs.alpha_, rel=1e-8)
    assert ours.alphas_.shape == theirs.alphas_.shape == (3, 12)
    assert np.allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-3)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-3)
    single = se.ElasticNetCV(l1_ratio=ours.l1_ratio_, n_alphas=12).fit(*data)
    assert single.alphas_.shape == (12,)
    assert np.allclose(single.mean_loss_, ours.mean_loss_[ratios.index(ours.l1_ratio_)], rtol=1e-4)
    again = ours.path(*data, n_alphas=12)
    assert np.allclose(again.coefs, ours.path_.coefs, atol=1e-4)
    with pytest.raises(ValueError, match="call fit first"):
        se.ElasticNetCV(l1_ratio=ratios).path(*data)


def test_a_grid_with_a_criterion_and_with_one_standard_error(data):
    X, y = data
    bic = se.SparseRegressorCV("squared", "sparse_group", groups=4, l1_ratio=[0.1, 0.9], criterion="bic").fit(X, y)
    assert bic.criterion_path_.shape == (2, 20)
    assert bic.criterion_path_.min() == bic.criterion_path_[[0.1, 0.9].index(bic.l1_ratio_)].min()
    best, sparser = (
        se.SparseLogisticRegressionCV(l1_ratio=[0.5, 1.0], n_alphas=8, cv=3, rule=rule).fit(X, y > 1)
        for rule in ("best", "1se")
    )
    assert best.l1_ratio_ == sparser.l1_ratio_
    assert best.alpha_ <= sparser.alpha_
    with pytest.warns(UserWarning, match="l1_ratio was set, but neither"):
        assert se.SparseRegressorCV(l1_ratio=[0.1, 0.5], n_alphas=3, cv=2).fit(X, y).l1_ratio_ is None


def test_multi_task_lasso_cv_of_scikit_learn(data):
    X, y = data
    Y = np.column_stack([y, X[:, 0] - y])
    ours = se.MultiTaskLassoCV(n_alphas=10).fit(X, Y)
    theirs = peers.MultiTaskLassoCV(alphas=10, tol=1e-8).fit(X, Y)
    assert ours.alpha_ == pytest.approx(theirs.alpha_, rel=1e-8)
    assert np.allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-3)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-3)
    with pytest.raises(ValueError, match="for a single task use LassoCV"):
        se.MultiTaskLassoCV().fit(X, y)


def test_sparse_logistic_regression_of_scikit_learn(data):
    X, y = data
    ours = se.SparseLogisticRegression(0.02, l1_ratio=0.6, tol=1e-8).fit(X, y > 1)
    theirs = peers.LogisticRegression(C=1 / (0.02 * 90), l1_ratio=0.6, solver="saga", tol=1e-8, max_iter=10_000)
    theirs.fit(X, y > 1)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-3)
    assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)


# Refits without a penalty -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_a_relaxed_model_is_least_squares_on_the_selected_features(data, storage):
    X, y = data
    model = se.LassoCV(n_alphas=10, cv=3, rule="1se", relaxed=True, tol=1e-10).fit(storage(X), y)
    used = model.coef_ != 0
    assert 0 < np.count_nonzero(used) < 8
    plain = peers.LinearRegression().fit(X[:, used], y)
    assert np.allclose(model.coef_[used], plain.coef_, atol=1e-4)
    assert model.intercept_ == pytest.approx(plain.intercept_, abs=1e-4)
    assert np.array_equal(used, model.path_.coefs[:, list(model.alphas_).index(model.alpha_)] != 0)
    problem = sb.Problem([sb.Zero(), sb.Zero()], [X[:, used], np.ones(90)], sb.Squared(y, scale=1 / 90))
    again = sb.certify(problem, [model.coef_[used], np.array([model.intercept_])], model.result_.y)
    assert again.error <= 1e-9
    assert again.primal_value == pytest.approx(model.certificate_.primal_value)


def test_relaxed_groups_classes_constraints_and_tasks(data):
    X, y = data
    groups = se.GroupLassoCV(groups=2, n_alphas=6, cv=3, rule="1se", relaxed=True).fit(X, y)
    used = np.flatnonzero(groups.coef_)
    assert used.tolist() == [0, 1, 2, 3]
    assert np.allclose(groups.coef_[used], peers.LinearRegression().fit(X[:, used], y).coef_, atol=1e-2)
    labels = np.digitize(y, [0.0, 2.0])
    classes = se.SparseLogisticRegressionCV(alphas=[0.1, 0.05], cv=3, relaxed=True, tol=1e-8).fit(X, labels)
    assert len({tuple(row != 0) for row in classes.coef_}) > 1  # each class has its own features
    for k, row in enumerate(classes.coef_):
        own = peers.LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X[:, row != 0], labels == k)
        assert np.allclose(row[row != 0], own.coef_, atol=1e-2)
    bounded = se.SparseRegressorCV("absolute", alphas=[0.3, 0.1], cv=2, relaxed=True, constraints="zero-sum", upper=0.4)
    bounded.fit(X, y)
    assert bounded.coef_.sum() == pytest.approx(0.0, abs=1e-5)
    assert bounded.coef_.max() == pytest.approx(0.4, abs=1e-5)
    assert len(bounded.constraint_multipliers_) == 1


def test_a_relaxed_fit_that_the_samples_do_not_determine_is_refused():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((10, 30)), rng.standard_normal(10)
    with pytest.raises(ValueError, match=r"relaxed=True: alpha=1e-06 selects \d+ features, and 10 different samples"):
        se.LassoCV(alphas=[1e-6], cv=2, relaxed=True).fit(X, y)
    nothing = se.LassoCV(alphas=[1e3], cv=2, relaxed=True).fit(X, y)
    assert not np.any(nothing.coef_)
    assert nothing.intercept_ == pytest.approx(y.mean())


def test_separable_classes_have_no_relaxed_fit():
    X = np.linspace(-1.0, 1.0, 30)[:, None]
    with pytest.warns(UserWarning, match="the classes are separable"):
        se.SparseLogisticRegressionCV(alphas=[0.1, 0.05], cv=3, relaxed=True).fit(X, X[:, 0] > 0)
