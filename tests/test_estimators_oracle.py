"""Every loss with every penalty, intercept, sample weights and storage, compared with CVXPY."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from saddleback.estimators import MultiTaskLasso, SparseClassifier, SparseRegressor
from saddleback.estimators.objective import CLASSIFICATION, PENALTIES, REGRESSION

cp = pytest.importorskip("cvxpy")

GROUPS = [[0, 3], [1, 2, 4]]
PARAMETERS = {
    "quantile": {"quantile": 0.7},
    "huber": {"delta": 0.8},
    "epsilon_insensitive": {"epsilon": 0.2},
    "squared_epsilon_insensitive": {"epsilon": 0.2},
    "smoothed_quantile": {"quantile": 0.7, "delta": 0.8},
    "expectile": {"expectile": 0.7},
    "tweedie": {"power": 1.3},
    "huberised_hinge": {"delta": 0.8},
    "l1": {"alpha": 0.05, "weights": [1.0, 0.5, 2.0, 1.0, 1.5]},
    "elasticnet": {"alpha": 0.1, "l1_ratio": 0.3, "weights": [1.0, 0.5, 2.0, 1.0, 1.5]},
    "group": {"alpha": 0.05, "groups": GROUPS},
    "sparse_group": {"alpha": 0.08, "groups": GROUPS, "l1_ratio": 0.4},
    "group_elasticnet": {"alpha": 0.1, "groups": GROUPS, "l1_ratio": 0.3, "weights": [1.0, 2.0]},
}
CONVEX = [name for name, choice in PENALTIES.items() if choice.convex]

JOINT = [name for name, choice in CLASSIFICATION.items() if choice.joint]
"""The losses with one problem for all classes."""


def small_data(loss, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((24, 5)) * (rng.random((24, 5)) < 0.7) + 0.3 * (rng.random((24, 5)) < 0.5)
    y = 1.5 + X @ [1.0, 0.0, -0.5, 0.0, 0.3] + rng.standard_normal(24)
    weight = rng.integers(0, 4, 24).astype(float)
    labels = np.where((y > 1.5) ^ (np.arange(24) % 5 == 0), 1, -1)  # no plane separates these labels
    counts = np.maximum(np.round(y), 0.0)
    targets = {"poisson": counts, "gamma": np.exp(0.5 * y), "tweedie": np.maximum(y, 0.0), "kullback_leibler": counts}
    if loss == "kullback_leibler":
        X = np.abs(X) + 0.1  # some coefficients have positive means
    return X, labels if loss in CLASSIFICATION else targets.get(loss, y), weight


def losses(name, u, y, share, root):
    """Return the mean of a loss by its textbook formula; ``root`` holds the square roots of the sample weights."""
    r, margin = y - u, cp.multiply(y, u)
    values = {
        "squared": lambda: cp.square(r) / 2,
        "absolute": lambda: cp.abs(r),
        "quantile": lambda: cp.maximum(0.7 * r, -0.3 * r),
        "huber": lambda: cp.huber(r, 0.8) / 2,
        "epsilon_insensitive": lambda: cp.pos(cp.abs(r) - 0.2),
        "squared_epsilon_insensitive": lambda: cp.square(cp.pos(cp.abs(r) - 0.2)) / 2,
        "smoothed_quantile": lambda: (cp.huber(cp.pos(r), 0.56) + cp.huber(cp.pos(-r), 0.24)) / 1.6,
        "expectile": lambda: (0.7 * cp.square(cp.pos(r)) + 0.3 * cp.square(cp.neg(r))) / 2,
        "poisson": lambda: cp.exp(u) - cp.multiply(y, u),
        "gamma": lambda: cp.multiply(y, cp.exp(-u)) + u,
        "tweedie": lambda: cp.multiply(y, cp.exp(-0.3 * u)) / 0.3 + cp.exp(0.7 * u) / 0.7,
        "kullback_leibler": lambda: u - cp.multiply(y, cp.log(u)),
        "huberised_hinge": lambda: cp.huber(cp.pos(1 - margin), 0.8) / 1.6,
        "hinge": lambda: cp.pos(1 - margin),
        "squared_hinge": lambda: cp.square(cp.pos(1 - margin)) / 2,
        "logistic": lambda: cp.logistic(-margin),
    }
    return cp.norm(cp.multiply(root, r), 2) if name == "sqrt" else cp.sum(cp.multiply(share, values[name]()))


def penalties(name, w):
    groups = sum(np.sqrt(len(group)) * cp.norm(w[group], 2) for group in GROUPS)
    return {
        None: lambda: cp.Constant(0.0),
        "l1": lambda: 0.05 * cp.norm1(cp.multiply(PARAMETERS["l1"]["weights"], w)),
        "elasticnet": lambda: 0.1 * cp.sum(cp.multiply(PARAMETERS["l1"]["weights"], 0.3 * cp.abs(w) + 0.35 * w**2)),
        "group": lambda: 0.05 * groups,
        "sparse_group": lambda: 0.08 * (0.4 * cp.norm1(w) + 0.6 * groups),
        "group_elasticnet": lambda: (
            0.1
            * sum(
                weight * (0.3 * cp.norm(w[group], 2) + 0.35 * cp.sum_squares(w[group]))
                for weight, group in zip(PARAMETERS["group_elasticnet"]["weights"], GROUPS, strict=True)
            )
        ),
    }[name]()


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # a warning of CVXPY, at gaps far below ours
@pytest.mark.parametrize("penalty", CONVEX)
@pytest.mark.parametrize("loss", [*REGRESSION, *(name for name in CLASSIFICATION if name not in JOINT)])
def test_the_objective_is_the_minimum(loss, penalty):
    """The objective at coef_ and intercept_, evaluated by CVXPY, equals CVXPY's minimum."""
    X, y, weights = small_data(loss)
    make = SparseClassifier if loss in CLASSIFICATION else SparseRegressor
    options = PARAMETERS.get(loss, {}) | PARAMETERS.get(penalty, {})
    w, b, u, with_b = cp.Variable(5), cp.Variable(), cp.Variable(24), cp.Parameter()
    share, root = cp.Parameter(24, nonneg=True), cp.Parameter(24, nonneg=True)
    objective = cp.Minimize(losses(loss, u, y, share, root) + penalties(penalty, w))
    problem = cp.Problem(objective, [u == X @ w + with_b * b])
    for intercept, weighted in product([True, False], [True, False]):
        weight = weights if weighted else np.ones(24)
        with_b.value, share.value, root.value = intercept, weight / weight.sum(), np.sqrt(weight / weight.sum())
        optimum = problem.solve(solver=cp.CLARABEL)
        for matrix in (X, sparse.csr_array(X)):
            model = make(loss, penalty, fit_intercept=intercept, tol=5e-7, **options)
            model.fit(matrix, y, sample_weight=weights if weighted else None)
            w.value, constant = model.coef_.ravel(), np.ravel(model.intercept_)[0]
            u.value = X @ w.value + constant
            assert intercept or constant == 0
            assert objective.value == pytest.approx(optimum, rel=1e-6)
            assert model.certificate_.primal_value == pytest.approx(objective.value, rel=1e-9)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("penalty", CONVEX)
@pytest.mark.parametrize("loss", JOINT)
def test_the_objective_of_all_classes_is_the_minimum(loss, penalty):
    X, _, weights = small_data(loss)
    y = np.arange(24) % 3
    own, ones = np.eye(3)[y], np.ones((24, 1))
    W, b = cp.Variable((5, 3)), cp.Variable((1, 3))
    groups = sum(np.sqrt(len(group)) * cp.norm(W[group], "fro") for group in GROUPS)
    of_coefficients = {
        None: cp.Constant(0.0),
        "l1": 0.05 * cp.norm1(cp.multiply(np.reshape(PARAMETERS["l1"]["weights"], (-1, 1)), W)),
        "elasticnet": 0.1
        * cp.sum(cp.multiply(np.reshape(PARAMETERS["l1"]["weights"], (-1, 1)), 0.3 * cp.abs(W) + 0.35 * W**2)),
        "group_elasticnet": 0.1
        * sum(
            weight * (0.3 * cp.norm(W[group], "fro") + 0.35 * cp.sum_squares(W[group]))
            for weight, group in zip(PARAMETERS["group_elasticnet"]["weights"], GROUPS, strict=True)
        ),
        "group": 0.05 * groups,
        "sparse_group": 0.08 * (0.4 * cp.norm1(W) + 0.6 * groups),
    }[penalty]
    for intercept, weight in product([True, False], [weights, np.ones(24)]):
        u = X @ W + (ones @ b if intercept else 0.0)
        largest = cp.log_sum_exp(u, axis=1) if loss == "multinomial" else cp.max(u + 1.0 - own, axis=1)
        mean = (weight / weight.sum()) @ (largest - cp.sum(cp.multiply(own, u), axis=1))
        optimum = cp.Problem(cp.Minimize(mean + of_coefficients)).solve(solver=cp.CLARABEL)
        options = PARAMETERS.get(penalty, {})
        model = SparseClassifier(loss, penalty, fit_intercept=intercept, tol=5e-7, **options)
        model.fit(X, y, sample_weight=weight)
        W.value, b.value = model.coef_.T, model.intercept_[None]
        assert intercept or not np.any(model.intercept_)
        assert (mean + of_coefficients).value == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("penalty", CONVEX)
def test_positive_coefficients(penalty):
    X, y, _ = small_data("absolute")
    w, b = cp.Variable(5), cp.Variable()
    objective = losses("absolute", X @ w + b, y, 1 / 24, None) + penalties(penalty, w)
    optimum = cp.Problem(cp.Minimize(objective), [w >= 0]).solve(solver=cp.CLARABEL)
    model = SparseRegressor("absolute", penalty, positive=True, tol=5e-7, **PARAMETERS.get(penalty, {})).fit(X, y)
    assert np.all(model.coef_ >= 0)
    assert model.certificate_.primal_value == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("weighted", [True, False])
def test_multi_task(weighted):
    X, y, weight = small_data("squared")
    Y = np.column_stack([y, np.roll(y, 1), -y])
    weight = weight if weighted else np.ones(24)
    W, b = cp.Variable((5, 3)), cp.Variable((1, 3))
    residual = Y - X @ W - np.ones((24, 1)) @ b
    squares = cp.sum(cp.multiply(weight[:, None], cp.square(residual))) / (2 * weight.sum())
    optimum = cp.Problem(cp.Minimize(squares + 0.1 * cp.sum(cp.norm(W, 2, axis=1)))).solve(solver=cp.CLARABEL)
    model = MultiTaskLasso(0.1).fit(X, Y, sample_weight=weight if weighted else None)
    assert model.coef_.shape == (3, 5)
    assert model.certificate_.primal_value == pytest.approx(optimum, rel=1e-6)
