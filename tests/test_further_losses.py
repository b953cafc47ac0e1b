"""Parameters per row, refusals, limits and peers of the losses that are not of the first catalogue."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import saddleback as sb
from saddleback.estimators import SparseRegressor

B = np.array([[0.9, -1.3], [0.2, 2.1], [-0.4, 0.0]])
U = np.array([[0.3, 0.4], [-1.0, 2.0], [0.7, -0.2]])
ROWS = np.array([0.1, 0.5, 0.8])


@pytest.mark.parametrize(
    "make", [sb.Pinball, sb.Huber, sb.EpsilonInsensitive, sb.SquaredEpsilonInsensitive, sb.Expectile]
)
def test_a_vector_has_one_value_per_row_of_a_matrix(make):
    loss = make(B, ROWS, sample_weight=[1.0, 2.0, 0.5])
    apart = [make(b, p, sample_weight=w) for b, p, w in zip(B, ROWS.tolist(), [1.0, 2.0, 0.5], strict=True)]
    assert loss.value(U) == pytest.approx(sum(one.value(u) for one, u in zip(apart, U, strict=True)))
    assert np.allclose(loss.prox(U, 0.7), [one.prox(u, 0.7) for one, u in zip(apart, U, strict=True)])
    assert make(B, np.full(B.shape, 0.3)).value(U) == pytest.approx(make(B, 0.3).value(U))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sb.Pinball(B, [0.1, 0.5]), r"quantile has shape \(2,\)"),
        (
            lambda: sb.Pinball(B, [0.1, 0.5, 1.5]),
            r"quantile has the value 1.5 at index \[2\]: expected numbers between 0",
        ),
        (lambda: sb.Huber(B, [-1.0, 0.5, 1.0]), r"delta has the value -1.0 at index \[0\]"),
        (lambda: sb.Expectile(B, 1.2), "expectile has the value 1.2: expected numbers between 0 and 1"),
        (lambda: sb.Tweedie([1.0], 1.0), "power=1: expected a number strictly between 1 and 2; use Poisson for 1"),
        (lambda: sb.Gamma([1.0, 0.0]), r"b has the value 0.0 at index \[1\]: expected positive numbers"),
        (lambda: sb.Tweedie([-1.0]), "b has the value -1.0: expected numbers that are at least 0"),
        (lambda: sb.KullbackLeibler([-1.0]), "b has the value -1.0: expected numbers that are at least 0"),
    ],
)
def test_parameters_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_limits_are_the_losses_that_they_smooth():
    labels = np.where(B > 0, 1.0, -1.0)
    assert sb.SmoothedPinball(B, 0.3, 0.0).value(U) == sb.Pinball(B, 0.3).value(U)
    assert sb.HuberisedHinge(labels, 0.0).value(U) == sb.Hinge(labels).value(U)
    assert 2 * sb.Expectile(B).value(U) == pytest.approx(sb.Squared(B).value(U))
    assert sb.SmoothedPinball(B, 0.5, 2.0).value(U) == pytest.approx(sb.Huber(B, 1.0).value(U) / 2)


@pytest.mark.parametrize("power", [1.0 + 1e-7, 2.0 - 1e-7])
def test_the_ends_of_the_tweedie_family_are_poisson_and_gamma(power):
    b, u = np.exp(B), U
    end = sb.Poisson(b) if power < 1.5 else sb.Gamma(b)
    assert np.allclose(sb.Tweedie(b, power).prox(u, 0.6), end.prox(u, 0.6), atol=1e-5)


def test_weights_of_the_elastic_net_multiply_both_parts():
    w, x = np.array([1.0, 0.0, 2.0]), np.array([-1.0, 3.0, 0.5])
    assert sb.ElasticNet(0.5, 0.3, w).value(x) == pytest.approx(0.5 * (0.3 * w @ abs(x) + 0.35 * w @ x**2))


@pytest.mark.parametrize("make", [sb.Poisson, sb.Gamma, sb.Tweedie, sb.KullbackLeibler, sb.Expectile])
def test_alpha_max_beside_an_intercept(make, rng):
    """The slopes of the loss at its best constant, found by scipy; the mean of the targets is far from 0."""
    A, b, ones = rng.standard_normal((40, 6)), np.exp(3.0 + rng.standard_normal(40)), np.ones((40, 1))
    bound = make(b).bind(b.shape)
    start = np.log(b.mean()) if make in (sb.Poisson, sb.Gamma, sb.Tweedie) else b.mean()
    best = minimize(lambda c: bound.finite_value(np.full(40, c[0])), [start], method="Nelder-Mead", tol=1e-12).x[0]
    expected = np.abs(A.T @ bound.subgradient(np.full(40, best))).max()
    assert sb.alpha_max(sb.L1(1.0), A, make(b), ones) == pytest.approx(expected, rel=1e-6)


def test_alpha_max_of_a_divergence_needs_an_intercept():
    with pytest.raises(ValueError, match="the constraints of the loss do not hold with x = 0"):
        sb.alpha_max(sb.L1(1.0), np.eye(3), sb.KullbackLeibler([1.0, 2.0, 0.0]))


def test_a_divergence_is_minimised_as_by_multiplicative_steps(rng):
    """The steps of Lee and Seung, which need no more than products, for x >= 0."""
    A, b = rng.random((30, 5)), rng.poisson(4.0, 30).astype(float)
    x = np.ones(5)
    for _ in range(20_000):
        x *= (A.T @ (b / (A @ x))) / A.sum(axis=0)
    result = sb.solve(sb.Problem(sb.NonNegative(), A, sb.KullbackLeibler(b)), tol=1e-9)
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.primal_value == pytest.approx(np.sum(A @ x - b * np.log(A @ x)), rel=1e-8)


@pytest.mark.parametrize("loss", ["Squared", "Huber", "Pinball", "Logistic"])
@pytest.mark.parametrize("method", ["auto", "sp-bcd", "finish"])
def test_every_way_solves_the_group_elastic_net(loss, method, backend, rng):
    A, b = rng.standard_normal((30, 12)), rng.standard_normal(30)
    g = sb.Logistic(np.sign(b)) if loss == "Logistic" else getattr(sb, loss)(b)
    penalty = sb.GroupL2(1.0, [[0, 4, 8], [1, 2, 3, 5], [6, 7, 9, 10, 11]]) + sb.SquaredL2(0.5)
    problem = sb.Problem(penalty, A, g)
    result = sb.solve(problem, method=method, backend=backend, tol=1e-7)
    assert result.status is sb.Status.OPTIMAL, result.message
    expected = sb.solve(problem, tol=1e-9).certificate.dual_value
    assert result.certificate.primal_value == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # skglm warns of its own tolerances
def test_the_poisson_path_of_glmnet_is_nowhere_above_skglm(data):
    """L1 paths with and without an intercept on glmnet's PoissonExample."""
    skglm = pytest.importorskip("skglm")
    stored = np.load(data / "glm" / "PoissonExample.npz")
    X, y = stored["x"].astype(float), stored["y"].astype(float).ravel()
    ones, loss = np.ones((y.size, 1)), sb.Poisson(y, scale=1.0 / y.size)

    def objective(w, c, alpha):
        u = X @ w + c
        return np.mean(np.exp(u) - y * u) + alpha * np.abs(w).sum()

    for intercept in (False, True):
        for alpha in sb.alpha_max(sb.L1(1.0), X, loss, ones if intercept else None) * np.geomspace(0.9, 1e-3, 8):
            terms, A = ([sb.L1(alpha), sb.Zero()], [X, ones]) if intercept else (sb.L1(alpha), X)
            result = sb.solve(sb.Problem(terms, A, loss), tol=1e-8)
            assert result.status is sb.Status.OPTIMAL
            w, c = (result.x[0], result.x[1][0]) if intercept else (result.x, 0.0)
            solver = skglm.solvers.ProxNewton(tol=1e-10, fit_intercept=intercept, max_iter=200)
            peer = skglm.GeneralizedLinearEstimator(skglm.datafits.Poisson(), skglm.penalties.L1(alpha), solver)
            peer.fit(X, y)
            theirs = objective(peer.coef_.ravel(), np.ravel(peer.intercept_)[0] if intercept else 0.0, alpha)
            assert objective(w, c, alpha) <= theirs + 1e-6


@pytest.mark.parametrize("loss", ["poisson", "tweedie"])
def test_counts_that_are_all_0_have_no_best_intercept(loss, rng):
    X, y = rng.standard_normal((30, 2)), np.zeros(30)
    with pytest.raises(ValueError, match=f"y is 0 for all samples .* loss='{loss}' has no minimum"):
        SparseRegressor(loss).fit(X, y)
    assert SparseRegressor(loss, alpha=0.1, fit_intercept=False).fit(X, y).result_.status is sb.Status.OPTIMAL
    y[0], weight = 1.0, np.ones(30)
    weight[0] = 0.0
    with pytest.raises(ValueError, match="positive weight"):
        SparseRegressor(loss).fit(X, y, sample_weight=weight)
    assert SparseRegressor(loss).fit(X, y).result_.status is sb.Status.OPTIMAL
