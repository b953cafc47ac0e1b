"""Estimators of signals, images and fused coefficients, against identities and CVXPY."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.ndimage import gaussian_filter
from scipy.sparse.linalg import LinearOperator
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import saddleback as sb
from saddleback.estimators import FusedLasso, Lasso, TotalVariationDenoiser, TrendFilter

LOSSES = ["squared", "absolute", "quantile", "huber", "epsilon_insensitive"]


def steps(rng, n=80):
    return np.where(np.arange(n) < n // 2, 0.0, 2.0) + 0.2 * rng.standard_normal(n)


def best(problem):
    pytest.importorskip("cvxpy")
    return float(problem.to_cvxpy().solve(solver="CLARABEL"))


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_trend_filter_reaches_the_optimum(loss, order, rng):
    y = steps(rng)
    quantile = 0.8 if loss == "quantile" else 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TrendFilter(order, loss, alpha=2.0, quantile=quantile).fit(y)
    D = np.diff(np.eye(y.size), order + 1, axis=0)
    terms = {
        "squared": sb.Squared(y),
        "absolute": sb.Absolute(y),
        "quantile": sb.Pinball(y, 0.8),
        "huber": sb.Huber(y, 1.0),
        "epsilon_insensitive": sb.EpsilonInsensitive(y, 0.1),
    }
    optimum = best(sb.Problem(sb.Zero(), [np.eye(y.size), D], [terms[loss], sb.L1(2.0)]))
    assert optimum * (1 - 1e-6) <= model.certificate_.primal_value <= optimum * (1 + 2e-6)


def test_a_trend_filter_of_order_0_agrees_with_the_interior_point(rng):
    """The taut string and the interior point compute the same signal by different algorithms."""
    y = steps(rng, 500)
    model = TrendFilter(order=0, alpha=1.5).fit(y)
    stack = sb.Problem(sb.Zero(), [sb.Identity(), sb.Differences(500)], [sb.Squared(y), sb.L1(1.5)])
    result = sb.solve(stack, tol=1e-10)
    assert result.method == "finish"
    assert np.allclose(model.signal_, result.x, atol=1e-5)
    assert model.certificate_.primal_value == pytest.approx(result.objective, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_knots_of_an_exact_signal_are_its_jumps(weighted, rng):
    y = np.repeat(rng.standard_normal(20), 30) + 0.3 * rng.standard_normal(600)
    weight = rng.uniform(0.5, 2.0, 600) if weighted else None
    model = TrendFilter(order=0, alpha=1.5).fit(y, sample_weight=weight)
    assert model.knots_.tolist() == np.flatnonzero(np.diff(model.signal_)).tolist()
    assert 3 < model.knots_.size < 100
    assert model.certificate_.relative_gap < 1e-12


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_large_alpha_gives_a_polynomial_and_no_knots(order, rng):
    y = steps(rng)
    model = TrendFilter(order, alpha=1e6, tol=1e-9).fit(y)
    at = np.arange(y.size)
    assert np.allclose(model.signal_, np.polyval(np.polyfit(at, y, order), at), atol=1e-3)
    assert model.knots_.size == 0


def test_the_knots_of_a_kinked_line_are_found():
    y = np.concatenate([np.arange(30.0), 30.0 - 0.5 * np.arange(31)])
    model = TrendFilter(order=1, alpha=0.1).fit(y)
    assert model.knots_.tolist() == [30]
    assert np.allclose(model.signal_, y, atol=0.1)


def test_a_quantile_signal_has_that_share_of_the_data_below_it(rng):
    y = rng.standard_exponential(2000)
    model = TrendFilter(order=0, loss="quantile", quantile=0.9, alpha=20.0).fit(y)
    assert abs(np.mean(y <= model.signal_) - 0.9) < 0.02


def test_the_columns_of_a_matrix_are_fitted_one_by_one(rng):
    y = np.column_stack([steps(rng), rng.standard_normal(80)])
    model = TrendFilter(order=1, alpha=3.0).fit(y)
    for column, signal, knots in zip(y.T, model.signal_.T, model.knots_, strict=True):
        alone = TrendFilter(order=1, alpha=3.0).fit(column)
        assert np.array_equal(alone.signal_, signal)
        assert np.array_equal(alone.knots_, knots)
    assert len(model.certificate_) == 2


@pytest.mark.parametrize("order", [0, 1, 2])
def test_points_that_are_1_apart_are_the_default(order, rng):
    y = steps(rng)
    even, given = (TrendFilter(order, alpha=2.0, tol=1e-9).fit(y, t=t) for t in (None, 5.0 + np.arange(80)))
    assert np.allclose(even.signal_, given.signal_, atol=1e-4)


def test_a_line_through_uneven_points_has_no_knots(rng):
    t = np.sort(rng.random(60))
    model = TrendFilter(order=1, alpha=0.5, tol=1e-9).fit(2.0 - 3.0 * t, t=t)
    assert np.allclose(model.signal_, 2.0 - 3.0 * t, atol=1e-4)


def test_a_weight_is_a_number_of_copies_of_the_loss(rng):
    y, weight = steps(rng), rng.integers(1, 4, 80).astype(float)
    model = TrendFilter(order=0, alpha=2.0).fit(y, sample_weight=weight)
    D = np.diff(np.eye(80), axis=0)
    optimum = best(sb.Problem(sb.Zero(), [np.eye(80), D], [sb.Squared(y, weight), sb.L1(2.0)]))
    assert model.certificate_.primal_value == pytest.approx(optimum, rel=2e-6)


def test_counts_have_positive_means(rng):
    y = rng.poisson(np.where(np.arange(60) < 30, 2.0, 9.0)).astype(float)
    model = TrendFilter(order=0, loss="poisson", alpha=3.0, tol=1e-5).fit(y)
    assert model.signal_.min() > 0
    assert model.signal_.sum() == pytest.approx(y.sum(), rel=1e-2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda y: TrendFilter(order=-1).fit(y), "order=-1"),
        (lambda y: TrendFilter(order=79).fit(y), "n_samples=80: expected at least 81"),
        (lambda y: TrendFilter(alpha=-1.0).fit(y), "alpha"),
        (lambda y: TrendFilter(loss="hinge").fit(y), "loss='hinge'"),
        (lambda y: TrendFilter().fit(y, t=np.zeros(80)), "t does not increase"),
        (lambda y: TrendFilter().fit(y, t=np.zeros(3)), "t has shape"),
        (lambda y: TrendFilter().fit(y, sample_weight=-np.ones(80)), "sample_weight"),
        (lambda y: TrendFilter().fit(y, sample_weight=np.zeros(80)), "all of them zero"),
        (lambda y: TrendFilter().fit(y.reshape(4, 4, 5)), "3 dimensions"),
        (lambda y: TrendFilter(loss="poisson").fit(y - 1), "counts"),
        (lambda y: TotalVariationDenoiser(operator=np.eye(3)).fit(y), "operator has shape"),
        (lambda y: TotalVariationDenoiser(shape=(8, 10)).fit(y), "expected an operator"),
        (lambda y: TotalVariationDenoiser(shape=np.ones((2, 2))).fit(y), "^shape=.* is not that of a grid"),
        (lambda y: TotalVariationDenoiser(shape="x").fit(y), "^shape='x' is not that of a grid"),
        (lambda y: TotalVariationDenoiser(operator=3.0).fit(y), "^operator=3.0: expected a matrix"),
        (lambda y: TotalVariationDenoiser(isotropic=np.ones(2)).fit(y), "^isotropic=.*: expected True or False"),
        (lambda y: TotalVariationDenoiser(loss=10**5000).fit(y), "^loss=<int with too many digits"),
        (lambda y: TrendFilter(order=10**400).fit(y), "^X has n_samples=.{1,200}$"),
        (lambda y: sb.Differences(10**400), "^n=1.{1,120}$"),
        (lambda y: sb.Differences(5, order=10**5000), "^order=<int with too many digits"),
        (lambda y: FusedLasso(fused_alpha=-1.0).fit(y.reshape(20, 4), y[:20]), "fused_alpha"),
    ],
)
def test_bad_input_is_named(make, message, rng):
    with pytest.raises((TypeError, ValueError), match=message):
        make(steps(rng))


def picture(rng, shape=(14, 11)):
    return np.indices(shape).sum(axis=0) // 9 + 0.15 * rng.standard_normal(shape)


def total_variation(x, isotropic):
    """The sum over pixels of the length, or the sum of absolute values, of the differences that start there."""
    steps = [np.diff(x, axis=axis, append=np.take(x, [-1], axis=axis)) for axis in range(x.ndim)]
    return float(np.sqrt(sum(d**2 for d in steps)).sum() if isotropic else sum(np.abs(d).sum() for d in steps))


@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("shape", [(14, 11), (6, 5, 4), (1, 9), (30,)])
def test_images_and_volumes_reach_the_optimum(shape, isotropic, rng):
    b = picture(rng, shape)
    model = TotalVariationDenoiser(0.2, isotropic, tol=1e-7).fit(b)
    x = model.image_
    value = 0.5 * np.sum((x - b) ** 2) + 0.2 * total_variation(x, isotropic)
    assert value == pytest.approx(model.certificate_.primal_value, rel=1e-9)
    assert value == pytest.approx(best(_denoising(b, isotropic)), rel=1e-6)
    assert np.array_equal(TotalVariationDenoiser(0.2, isotropic, tol=1e-7).fit_transform(b), x)


def _denoising(b, isotropic):
    D = sb.Differences(shape=b.shape)
    norm = sb.GroupL2(0.2, D.groups) if isotropic else sb.L1(0.2)
    return sb.Problem(sb.Zero(), [sb.Identity(), D], [sb.Squared(b.ravel()), norm])


def test_missing_pixels_are_left_out_of_the_loss(rng):
    b = picture(rng)
    b[3:5, 4:9] = np.nan
    model = TotalVariationDenoiser(0.2, tol=1e-5).fit(b)
    D = sb.Differences(shape=b.shape)
    loss = sb.Squared(np.nan_to_num(b).ravel(), 1.0 - np.isnan(b.ravel()))
    optimum = best(sb.Problem(sb.Zero(), [sb.Identity(), D], [loss, sb.GroupL2(0.2, D.groups)]))
    assert np.isfinite(model.image_).all()
    assert model.certificate_.primal_value == pytest.approx(optimum, rel=1e-4)


def test_a_mask_as_an_operator_is_the_same_as_missing_pixels(rng):
    b = picture(rng, (9, 8))
    seen = rng.random(b.size) < 0.7
    mask = sparse.eye_array(b.size).tocsr()[seen]
    data = b.ravel()[seen]
    found = TotalVariationDenoiser(0.2, operator=mask, shape=b.shape, tol=1e-6).fit(data)
    other = TotalVariationDenoiser(0.2, tol=1e-6).fit(np.where(seen.reshape(b.shape), b, np.nan))
    assert found.certificate_.primal_value == pytest.approx(other.certificate_.primal_value, rel=1e-5)
    assert found.image_.shape == b.shape


def test_a_blur_is_undone(rng):
    image = np.zeros((24, 24))
    image[6:18, 8:20] = 1.0

    def blur(v):
        return gaussian_filter(v.reshape(24, 24), 1.5, mode="constant").ravel()

    K = LinearOperator((576, 576), matvec=blur, rmatvec=blur, dtype=float)
    data = blur(image).reshape(24, 24)
    model = TotalVariationDenoiser(1e-3, operator=K, tol=1e-3).fit(data)
    assert model.certificate_.relative_gap <= 1e-3
    assert np.abs(model.image_ - image).mean() < 0.25 * np.abs(data - image).mean()


def test_float32_stays_float32(rng):
    assert TotalVariationDenoiser().fit_transform(picture(rng).astype(np.float32)).dtype == np.float32
    assert TrendFilter().fit_transform(steps(rng).astype(np.float32)).dtype == np.float32


def test_a_fit_that_ends_early_warns(rng):
    with pytest.warns(ConvergenceWarning, match="TotalVariationDenoiser: .* relative gap"):
        TotalVariationDenoiser(1.0, max_iter=1, tol=1e-9).fit(picture(rng, (40, 40)))


@pytest.mark.parametrize("loss", [*LOSSES, "sqrt"])
def test_the_fused_lasso_reaches_the_optimum(loss, rng):
    X = rng.standard_normal((40, 12))
    y = 1.0 + X[:, 3:7].sum(axis=1) + 0.2 * rng.standard_normal(40)
    model = FusedLasso(0.02, 0.05, loss=loss).fit(X, y)
    losses = {
        "squared": sb.Squared(y, scale=1 / 40),
        "absolute": sb.Absolute(y, scale=1 / 40),
        "quantile": sb.Pinball(y, 0.5, scale=1 / 40),
        "huber": sb.Huber(y, 1.0, scale=1 / 40),
        "epsilon_insensitive": sb.EpsilonInsensitive(y, 0.1, scale=1 / 40),
        "sqrt": sb.Norm2(y, scale=40**-0.5),
    }
    D = np.diff(np.eye(12), axis=0)
    rows = [[X, np.ones((40, 1))], [D, None]]
    optimum = best(sb.Problem([sb.L1(0.02), sb.Zero()], rows, [losses[loss], sb.L1(0.05)]))
    assert model.certificate_.primal_value == pytest.approx(optimum, rel=3e-6)


def test_without_differences_the_fused_lasso_is_the_lasso(rng):
    X, y = rng.standard_normal((30, 8)), rng.standard_normal(30)
    fused, plain = FusedLasso(0.1, 0.0, tol=1e-9).fit(X, y), Lasso(0.1, tol=1e-9).fit(X, y)
    assert np.allclose(fused.coef_, plain.coef_, atol=1e-4)


def test_coefficients_that_an_edge_joins_become_equal(rng):
    X = rng.standard_normal((60, 6))
    y = X @ np.array([1.0, -1.0, 0.5, 0.0, 1.1, 2.0])
    model = FusedLasso(1e-4, 1.0, edges=[[0, 4], [4, 5]], tol=1e-8).fit(X, y)
    assert np.ptp(model.coef_[[0, 4, 5]]) < 1e-3
    assert np.ptp(model.coef_) > 1.0


def test_the_fused_lasso_keeps_constraints(rng):
    X, y = rng.standard_normal((40, 7)), rng.standard_normal(40)
    model = FusedLasso(0.01, 0.02, constraints="zero-sum", tol=1e-8).fit(X, y)
    assert abs(model.coef_.sum()) < 1e-6


def test_a_second_fit_starts_from_the_first(rng):
    X, y = rng.standard_normal((40, 7)), rng.standard_normal(40)
    model = FusedLasso(0.01, 0.02, warm_start=True).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ < first


@pytest.mark.parametrize("model", [TrendFilter(2, "huber"), TotalVariationDenoiser(0.3), FusedLasso(0.1, 0.2)])
def test_estimators_are_cloned_with_their_parameters(model):
    assert clone(model).get_params() == model.get_params()


def test_pictures(rng):
    pytest.importorskip("matplotlib").use("Agg")
    y = np.column_stack([steps(rng), steps(rng)])
    axes = TrendFilter(0, alpha=2.0).fit(y).plot()
    assert [len(axis.lines) for axis in axes] == [3, 3]
    one = TrendFilter(1, alpha=2.0).fit(y[:, 0], t=np.linspace(0, 1, 80)).plot()
    assert one.lines[1].get_xdata()[-1] == 1.0
    for shape in [(14, 11), (6, 5, 4), (30,)]:
        left, right = TotalVariationDenoiser(0.2).fit(picture(rng, shape)).plot()
        assert left.images[0].get_array().shape == right.images[0].get_array().shape


def test_dates_and_images_without_a_value_are_refused():
    dates = np.datetime64("2026-01-01") + np.arange(20)
    with pytest.raises(TypeError, match="t holds dates"):
        TrendFilter().fit(np.arange(20.0), t=dates)
    with pytest.raises(ValueError, match="NaN only"):
        TotalVariationDenoiser().fit(np.full((8, 8), np.nan))


@pytest.mark.parametrize("loss", ["gamma", "tweedie", "kullback_leibler", "poisson"])
def test_missing_pixels_of_positive_images(loss, rng):
    """A pixel without a value is as one of weight 0: with a large alpha the image is the mean of the others."""
    image = rng.uniform(1.0, 3.0, (5, 4))
    image[2, 1] = np.nan
    model = TotalVariationDenoiser(alpha=100.0, loss=loss, tol=1e-9).fit(image)
    assert model.image_ == pytest.approx(np.full((5, 4), np.nanmean(image)), rel=1e-4)
