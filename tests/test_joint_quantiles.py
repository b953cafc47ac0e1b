"""Several quantiles that do not cross."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

import saddleback as sb
from saddleback.estimators import JointQuantileRegressor, QuantileRegressor

QUANTILES = [0.1, 0.3, 0.5, 0.7, 0.9]


def data(rng, n=60, p=8):
    """Return few samples with heavy tails, in which quantiles that are fitted one by one cross."""
    X = rng.standard_normal((n, p))
    return X, 3 + X @ rng.uniform(-2, 2, p) + rng.standard_t(3, n) * (0.5 + np.abs(X[:, 0]))


def crossings(model, X):
    return int(np.count_nonzero(np.diff(model.predict(X), axis=1) < 0))


@pytest.mark.parametrize("alpha", [0.0, 0.02])
@pytest.mark.parametrize("non_crossing", [True, False])
def test_the_objective_agrees_with_cvxpy(alpha, non_crossing, rng):
    cp = pytest.importorskip("cvxpy")
    X, y = data(rng)
    model = JointQuantileRegressor(QUANTILES, alpha=alpha, non_crossing=non_crossing, tol=1e-8).fit(X, y)
    W, b = cp.Variable((8, 5)), cp.Variable((1, 5))
    fitted = X @ W + np.ones((60, 1)) @ b
    r = y[:, None] - fitted
    q = np.broadcast_to(QUANTILES, (60, 5))
    loss = cp.sum(cp.maximum(cp.multiply(q, r), cp.multiply(q - 1, r))) / 60 + alpha * cp.sum(cp.abs(W))
    program = cp.Problem(cp.Minimize(loss), [fitted[:, 1:] >= fitted[:, :-1]] if non_crossing else [])
    assert np.isclose(model.certificate_.primal_value, program.solve(solver="CLARABEL"), rtol=1e-6)
    assert model.certificate_.error <= 1e-8
    assert (crossings(model, X) == 0) is non_crossing
    assert model.coef_.shape == (5, 8)
    assert model.predict(X).shape == (60, 5)


def test_without_the_constraint_quantiles_are_fitted_one_by_one(rng):
    X, y = data(rng, n=200)
    model = JointQuantileRegressor(QUANTILES, non_crossing=False, alpha=0.01, tol=1e-9).fit(X, y)
    values = [
        QuantileRegressor(quantile=q, alpha=0.01, tol=1e-9).fit(X, y).certificate_.primal_value for q in QUANTILES
    ]
    assert np.isclose(model.certificate_.primal_value, sum(values), rtol=1e-8)


def test_weights_sparse_data_and_no_intercept(rng):
    """Integer weights are repeated samples, and sparse X gives the same model as dense X."""
    X, y = data(rng)
    X[np.abs(X) < 0.7] = 0.0
    weight = rng.integers(0, 3, 60)
    for intercept in (True, False):
        model = JointQuantileRegressor(QUANTILES, fit_intercept=intercept, tol=1e-9)
        one = model.fit(X, y, sample_weight=weight).certificate_.primal_value
        many = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).certificate_.primal_value
        compressed = model.fit(sparse.csr_matrix(X), y, sample_weight=weight).certificate_.primal_value
        assert np.allclose([many, compressed], one, rtol=1e-8)
        assert intercept or not np.any(model.intercept_)


def test_the_published_figures_of_quantile_guard():
    """Its 2,000 x 20 data with 13 quantiles have a mean pinball loss of 0.5600 on the test samples."""
    rng, n = np.random.default_rng(42), 2000
    X = rng.standard_normal((n, 20))
    beta = rng.uniform(-2, 2, 20)
    y = 3 + X @ beta + rng.standard_t(3, n) * (0.5 + np.abs(X[:, 0]) + 0.3 * np.abs(X[:, 1]))
    quantiles = [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]
    model = JointQuantileRegressor(quantiles).fit(X[:1600], y[:1600])
    assert model.result_.status is sb.Status.OPTIMAL
    assert model.certificate_.error <= 1e-6
    assert np.isclose(-model.score(X[1600:], y[1600:]), 0.5600, atol=3e-4)
    assert crossings(model, X[:1600]) == 0
    assert model.result_.settings["rows"] < 20_000  # most of the 40,000 rows are settled


def test_the_result_is_that_of_the_given_data(rng):
    X, y = data(rng)
    model = JointQuantileRegressor([0.2, 0.8]).fit(X + 100.0, y)
    A = np.column_stack([X + 100.0, np.ones(60)])
    losses = [sb.Pinball(y, 0.2) / 60, sb.Pinball(y, 0.8) / 60, sb.Interval(np.zeros(60), np.full(60, np.inf))]
    problem = sb.Problem([sb.Zero(), sb.Zero()], [[A, None], [None, A], [-A, A]], losses)
    certificate = sb.certify(problem, model.result_.x, model.result_.y)
    assert np.isclose(certificate.primal_value, model.certificate_.primal_value)
    assert certificate.error <= 1e-5


@pytest.mark.parametrize("quantiles", [[], [0.0, 0.5], [0.5, 0.4], [0.5, 0.5], 1.0, [[0.1]]])
def test_bad_quantiles(quantiles, rng):
    with pytest.raises(ValueError, match="expected increasing numbers strictly between 0 and 1"):
        JointQuantileRegressor(quantiles).fit(*data(rng))


def test_the_picture(rng):
    plt = pytest.importorskip("matplotlib.pyplot")
    x = np.linspace(-1, 1, 80)
    model = JointQuantileRegressor(QUANTILES).fit(np.column_stack([x, x**2]), x**2 + rng.standard_normal(80) * 0.1)
    axis = model.plot(np.column_stack([x, x**2]), x**2)
    lines = [line for line in axis.get_lines() if line.get_label() in map(str, QUANTILES)]
    assert [line.get_label() for line in lines] == ["0.9", "0.7", "0.5", "0.3", "0.1"]
    assert all(np.all(high.get_ydata() >= low.get_ydata()) for high, low in pairwise(lines))
    plt.close("all")
