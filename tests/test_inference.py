"""Standard errors, the bootstrap, the quantile process and summaries of the linear models."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from profiles import examples
from scipy import sparse
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.base import clone, is_classifier

import saddleback as sb
import saddleback.estimators as se
from saddleback.estimators.inference import quantile_errors as errors
from saddleback.estimators.inference import resampling

sm = pytest.importorskip("statsmodels.api")
peer = pytest.importorskip("statsmodels.regression.quantile_regression")

ENGEL = sm.datasets.engel.load_pandas().data
STACKLOSS = sm.datasets.stackloss.load_pandas().data


def growth():
    """Return data like quantreg's barro: 161 countries, 13 features that depend on wealth, with their units.

    The target is growth per year in hundredths of a percent. In smaller units statsmodels is less accurate, since it
    replaces residuals below 1e-6 by 1e-6.
    """
    rng = np.random.default_rng(161)
    wealth = rng.standard_normal((161, 1))
    share = np.array([0.9, 0.8, 0.8, 0.6, 0.6, 0.9, 0.7, 0.4, 0.5, -0.3, -0.4, -0.4, 0.1])
    centre = np.array([7.8, 1.0, 0.8, 0.06, 0.12, 4.0, 0.0, 0.035, 0.18, 0.09, 0.2, 0.15, -0.005])
    scale = np.array([0.9, 0.8, 0.8, 0.06, 0.1, 0.2, 0.3, 0.012, 0.08, 0.05, 0.3, 0.2, 0.03])
    slope = np.array([-250, 120, -30, -400, 300, 600, -10, -1000, 900, -1300, -300, -250, 1600])
    X = centre + scale * (share * wealth + np.sqrt(1 - share**2) * rng.standard_normal((161, 13)))
    return X, X @ slope - 500 + 150 * np.exp(0.3 * wealth[:, 0]) * rng.standard_t(4, 161)


DATA = {
    "growth": growth(),
    "engel": (ENGEL[["income"]], ENGEL["foodexp"]),
    "stackloss": (STACKLOSS.drop(columns="STACKLOSS"), STACKLOSS["STACKLOSS"]),
}
NAMES = {"epanechnikov": "epa", "gaussian": "gau", "biweight": "biw", "cosine": "cos", "parzen": "par"}

QUANTREG_NID = {
    0.1: (29.39768, 0.04024),
    0.2: (21.42836, 0.02997),
    0.3: (22.18115, 0.02987),
    0.4: (22.06032, 0.02936),
    0.5: (19.25066, 0.02828),
    0.6: (17.61762, 0.02506),
    0.7: (14.25039, 0.02176),
    0.8: (19.21719, 0.02635),
    0.9: (22.39538, 0.02849),
}
"""What quantreg prints for engel with se="nid", for the intercept and income."""


def median(**parameters):
    return se.QuantileRegressor(alpha=0, tol=1e-9, **parameters)


@pytest.fixture(scope="module")
def engel():
    X, y = DATA["engel"]
    return X, y, median().fit(X, y)


# Formulas -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", errors.KERNELS)
def test_a_kernel_is_a_symmetric_density(name):
    function = errors.KERNELS[name]
    points = np.linspace(0, 1.5, 31)
    assert_allclose(function(points), function(-points))
    inside, outside = (
        quad(lambda u: float(function(np.array(u))), *ends, points=[0.5], limit=200)[0] for ends in ((0, 1), (1, 9))
    )
    assert inside + outside == pytest.approx(0.5, abs=1e-6)
    if name in NAMES:
        assert_allclose(function(points), peer.kernels[NAMES[name]](points), atol=1e-15)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.75])
def test_bandwidths(quantile):
    assert errors.hall_sheather(quantile, 50) == pytest.approx(peer.hall_sheather(50, quantile), rel=1e-14)
    assert errors.chamberlain(quantile, 50) == pytest.approx(peer.chamberlain(50, quantile), rel=1e-14)
    if quantile == 0.5:  # elsewhere statsmodels takes the density at another point
        assert errors.bofinger(quantile, 50) == pytest.approx(peer.bofinger(50, quantile), rel=1e-14)


def test_a_bandwidth_stays_inside_of_the_unit_interval():
    assert errors.hall_sheather(0.02, 20) > 0.02
    for name in errors.BANDWIDTHS:
        assert 0 < errors.bandwidth(name, 0.02, 20) < 0.02


@pytest.mark.parametrize("quantile", [0.25, 0.5, 0.75])
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("kernel", ["epanechnikov", "gaussian", "biweight"])
@pytest.mark.filterwarnings("ignore:Convergence cycle", "ignore:Maximum number of iterations")
def test_iid_errors_are_those_of_statsmodels(name, quantile, kernel):
    X, y = DATA[name]
    design = np.column_stack([np.ones(len(y)), X])
    peer_fit = peer.QuantReg(y, design).fit(quantile, vcov="iid", kernel=NAMES[kernel], p_tol=1e-12, max_iter=3000)
    found = median(quantile=quantile).fit(X, y).inference(X, y, kind="iid", kernel=kernel)
    assert_allclose(found.standard_errors, peer_fit.bse, rtol=1e-6)
    apart = (found.intervals(0.9) - np.asarray(peer_fit.conf_int(0.1))) / np.asarray(peer_fit.bse)[:, None]
    assert np.abs(apart).max() <= 1e-5  # the coefficients of statsmodels are rounded
    assert_allclose(found.p_values, peer_fit.pvalues, rtol=1e-4, atol=1e-12)
    given_residuals = errors.Evidence(
        design,
        np.asarray(y),
        np.asarray(peer_fit.resid),
        quantile,
        errors.hall_sheather(quantile, len(y)),
        errors.KERNELS[kernel],
    )
    assert_allclose(errors.iid(given_residuals), peer_fit.cov_params(), rtol=1e-6)
    robust = peer.QuantReg(y, design).fit(quantile, vcov="robust", kernel=NAMES[kernel], p_tol=1e-12, max_iter=3000)
    assert_allclose(errors.robust(given_residuals), robust.cov_params(), rtol=1e-6)


@pytest.mark.parametrize("quantile", QUANTREG_NID)
def test_nid_errors_are_those_that_quantreg_prints(quantile):
    X, y = DATA["engel"]
    found = median(quantile=quantile).fit(X, y).inference(X, y)
    assert_allclose(found.standard_errors, QUANTREG_NID[quantile], atol=6e-6)
    assert found.kind == "nid"
    if quantile == 0.5:
        assert_allclose(found.t_values, [4.23270, 19.81032], atol=6e-6)


@pytest.mark.parametrize("quantile", [0.25, 0.5, pytest.param(0.75, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:Convergence cycle", "ignore:Maximum number", "ignore:the quantiles that are fitted")
def test_nid_and_kernel_errors_follow_from_fits_of_statsmodels(quantile):
    """statsmodels does not have these kinds. Its fits of three quantiles in the formulas of quantreg are the oracle."""
    X, y = DATA["growth"]
    design, h = np.column_stack([np.ones(len(y)), X]), peer.hall_sheather(len(y), quantile)
    fits = [peer.QuantReg(y, design).fit(quantile + k * h, p_tol=1e-12, max_iter=20_000) for k in (-1, 0, 1)]
    rise = design @ (fits[2].params - fits[0].params)
    between = (
        rise > 1e-3
    )  # fits that interpolate the same sample do not differ there, up to the accuracy of statsmodels
    residual = fits[1].resid
    spread = min(np.std(residual, ddof=1), np.subtract(*np.quantile(residual, [0.75, 0.25])) / 1.34)
    width = spread * (norm.ppf(quantile + h) - norm.ppf(quantile - h))
    densities = {
        "nid": np.where(between, 2 * h / np.where(between, rise, 1.0), 0.0),
        "kernel": norm.pdf(residual / width) / width,
    }
    model = median(quantile=quantile).fit(X, y)
    for kind, density in densities.items():
        outer = np.linalg.inv(design.T @ (density[:, None] * design))
        variances = quantile * (1 - quantile) * np.diag(outer @ design.T @ design @ outer)
        found = model.inference(X, y, kind=kind).standard_errors
        assert_allclose(found, np.sqrt(variances), rtol=1e-6)


def test_cluster_errors_are_those_that_pyfixest_prints(engel):
    """pyfixest 0.60 prints 27.571818 and 0.036408 for vcov={"CRV1": "g"} and these clusters."""
    X, y, model = engel
    found = model.inference(X, y, kind="cluster", clusters=np.arange(len(y)) % 20)
    assert_allclose(found.standard_errors, [27.571818, 0.036408], rtol=2e-5)
    assert found.degrees == 19
    labels = np.array([f"village {k % 20}" for k in range(len(y))])
    assert_allclose(model.inference(X, y, kind="cluster", clusters=labels).covariance, found.covariance)


def test_kernel_errors_follow_the_formula_of_quantreg(engel):
    X, y, model = engel
    design, n = np.column_stack([np.ones(len(y)), X]), len(y)
    residual = np.asarray(y) - model.predict(X)
    h = errors.hall_sheather(0.5, n)
    spread = min(np.sqrt(np.var(residual, ddof=1)), np.subtract(*np.quantile(residual, [0.75, 0.25])) / 1.34)
    width = (norm.ppf(0.5 + h) - norm.ppf(0.5 - h)) * spread
    bread = sum(norm.pdf(u / width) / width * np.outer(x, x) for u, x in zip(residual, design, strict=True))
    outer = np.linalg.inv(bread)
    assert_allclose(
        model.inference(X, y, kind="kernel").covariance, 0.25 * outer @ design.T @ design @ outer, rtol=1e-8
    )


@examples(8)
@given(st.sampled_from(["iid", "robust", "nid", "kernel", "cluster"]), st.floats(0.1, 10), st.floats(-5, 5))
@pytest.mark.filterwarnings("ignore:the quantiles that are fitted beside")
def test_errors_follow_changes_of_units(kind, factor, shift):
    """For y -> a y and x -> x + s, slopes have errors a times as large."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = X[:, 0] + rng.standard_normal(60)
    options = {"kind": kind, "clusters": np.arange(60) // 6 if kind == "cluster" else None}
    one = median().fit(X, y).inference(X, y, **options)
    two = median().fit(X + shift, factor * y).inference(X + shift, factor * y, **options)
    assert_allclose(two.standard_errors[1:], factor * one.standard_errors[1:], rtol=1e-5)
    assert_allclose(two.coefficients[1:], factor * one.coefficients[1:], rtol=1e-5)


def test_errors_do_not_depend_on_storage_or_on_the_name_of_the_model(engel):
    X, y, model = engel
    for other in (
        se.SparseRegressor("quantile", penalty=None, tol=1e-9),
        se.SparseRegressor("absolute", penalty=None, tol=1e-9),
        se.FusedLasso(0.0, 0.0, loss="quantile", tol=1e-9),
    ):
        assert_allclose(
            other.fit(X, y).inference(X, y).standard_errors, model.inference(X, y).standard_errors, rtol=1e-5
        )
    S = sparse.csr_array(X.to_numpy())
    assert_allclose(median().fit(S, y).inference(S, y).covariance, model.inference(X, y).covariance, rtol=1e-5)
    ones = np.column_stack([np.ones(len(y)), X])
    without = median(fit_intercept=False).fit(ones, y).inference(ones, y)
    assert_allclose(without.standard_errors, model.inference(X, y).standard_errors, rtol=1e-5)
    assert without.names == ["feature 0", "feature 1"]


def test_what_inference_refuses(engel):
    X, y, model = engel
    with pytest.raises(ValueError, match="a penalty pulls coefficients towards 0"):
        se.QuantileRegressor(alpha=0.1).fit(X, y).inference(X, y)
    with pytest.raises(ValueError, match="coefficients at a bound"):
        median(positive=True).fit(X, y).inference(X, y)
    with pytest.raises(ValueError, match="loss='squared'"):
        se.SparseRegressor(penalty=None).fit(X, y).inference(X, y)
    with pytest.raises(ValueError, match="not the data of the fit"):
        model.inference(X[:100], y[:100])
    with pytest.raises(ValueError, match="kind='hc3' is not known"):
        model.inference(X, y, kind="hc3")
    with pytest.raises(ValueError, match="kind='nid' has no kernel"):
        model.inference(X, y, kernel="gaussian")
    with pytest.raises(ValueError, match="pass kind='cluster' together with clusters"):
        model.inference(X, y, clusters=np.arange(len(y)))
    with pytest.raises(ValueError, match="pass kind='cluster' together with clusters"):
        model.inference(X, y, kind="cluster")
    with pytest.raises(ValueError, match=r"clusters has shape \(3,\)"):
        model.inference(X, y, kind="cluster", clusters=[1, 2, 3])
    with pytest.raises(ValueError, match="level=1"):
        model.inference(X, y, level=1.0)
    with pytest.raises(TypeError, match="y is missing"):
        model.inference(X)
    twice = X.assign(copy=X["income"])
    with pytest.raises(ValueError, match="depend on each other"):
        median().fit(twice, y).inference(twice, y, kind="iid")


# The bootstrap ------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(1)
X = RNG.standard_normal((40, 4))
Y = X[:, 0] - X[:, 1] + RNG.standard_t(3, 40)
MODELS = {
    "squared": se.SparseRegressor(penalty=None),
    "lasso": se.Lasso(0.1),
    "sqrt": se.SparseRegressor("sqrt", alpha=0.1),
    "huber": se.SparseRegressor("huber", "group", alpha=0.1, groups=2),
    "quantile": se.QuantileRegressor(alpha=0.02, quantile=0.3),
    "constrained": se.Lasso(0.05, constraints="zero-sum"),
    "fused": se.FusedLasso(0.05, 0.05),
    "logistic": se.SparseClassifier("logistic", alpha=0.05),
    "no intercept": se.ElasticNet(0.1, fit_intercept=False),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_draw_is_the_fit_with_its_weights(name, weighted):
    model = clone(MODELS[name]).set_params(tol=1e-10)
    target = np.sign(Y) if name == "logistic" else Y
    weight = RNG.uniform(0.5, 2.0, 40) if weighted else None
    model.fit(X, target, sample_weight=weight)
    boot = model.bootstrap(X, target, weight, n_boot=2, kind="multiplier", random_state=3)
    factors = resampling.drawn_weights("multiplier", np.random.default_rng(3), 2, np.arange(40), weight)
    own = np.ones(40) if weight is None else weight
    assert_allclose(factors @ own, own.sum())
    assert boot.coefficients[-1] == model.coef_.ravel()[-1]
    for draw, factor in zip(boot.draws, factors, strict=True):
        other = clone(model).fit(X, target, sample_weight=factor * own)
        flat = [*np.atleast_1d(other.intercept_)] * model.fit_intercept + [*other.coef_.ravel()]
        assert_allclose(draw, flat, atol=2e-4)
    assert all(result.status is sb.Status.OPTIMAL for result in boot.results[0])


def test_several_classes_and_targets():
    labels = np.digitize(Y, [-0.7, 0.7])
    boot = se.SparseClassifier("logistic", alpha=0.05).fit(X, labels).bootstrap(X, labels, n_boot=2)
    assert boot.draws.shape == (2, 15)
    assert boot.names[5] == "class 1: intercept"
    tasks = se.MultiTaskLasso(0.1).fit(X, np.column_stack([Y, -2 * Y]))
    boot = tasks.bootstrap(X, np.column_stack([Y, -2 * Y]), n_boot=2)
    assert_allclose(boot.draws[:, 5:], -2 * boot.draws[:, :5], atol=1e-4)
    assert boot.names[6] == "target 1: feature 0"


def test_a_model_with_cross_validation_keeps_its_alpha():
    model = se.LassoCV(alphas=[0.05, 0.5], cv=3).fit(X, Y)
    boot = model.bootstrap(X, Y, n_boot=3)
    assert_allclose(boot.draws, se.Lasso(model.alpha_).fit(X, Y).bootstrap(X, Y, n_boot=3).draws, atol=1e-4)


def test_weights_of_the_bootstrap():
    rng = np.random.default_rng(0)
    for draw in resampling.WEIGHTS.values():
        weights = draw(rng, 400, 50)
        assert weights.shape == (400, 50)
        assert np.all(weights >= 0)
        assert weights.mean() == pytest.approx(1.0, abs=0.03)
        assert weights.var() == pytest.approx(1.0, abs=0.05)
    low, high = (3 - np.sqrt(5)) / 2, (3 + np.sqrt(5)) / 2
    assert_allclose(np.unique(resampling.mammen(rng, 9, 9)), [low, high])
    clusters = np.arange(12) // 3
    factors = resampling.drawn_weights("pairs", rng, 5, clusters, None).reshape(5, 4, 3)
    assert np.array_equal(factors[..., 0], factors[..., 2])


@pytest.mark.parametrize("quantile", [0.2, 0.5])
def test_wild_targets_have_the_fit_as_their_quantile(quantile):
    fitted, residual = np.array([1.0, -2.0]), np.array([0.5, -3.0])
    targets = resampling.wild_targets(np.random.default_rng(0), 20_000, fitted, residual, quantile)
    assert_allclose(np.mean(targets <= fitted, axis=0), quantile, atol=0.01)
    assert_allclose(np.unique(targets[:, 0]), [1 - 2 * quantile * 0.5, 1 + 2 * (1 - quantile) * 0.5])


def test_the_wild_bootstrap(engel):
    """On engel its errors are near those of the other bootstraps."""
    features, y, model = engel
    wild = model.bootstrap(features, y, n_boot=40, kind="wild", random_state=1)
    nid = model.inference(features, y)
    assert_allclose(wild.standard_errors, nid.standard_errors, rtol=0.6)
    lasso = se.QuantileRegressor(alpha=0.1).fit(X, Y).bootstrap(X, Y, n_boot=5, kind="wild")
    assert np.any(lasso.selected < 1)


def test_intervals_of_the_bootstrap():
    model = se.Lasso(0.3).fit(X, Y)
    boot = model.bootstrap(X, Y, n_boot=40, random_state=5)
    percentile, basic = boot.intervals(0.8), boot.intervals(0.8, "basic")
    assert_allclose(percentile, np.quantile(boot.draws, [0.1, 0.9], axis=0, method="weibull").T)
    assert_allclose(basic, 2 * boot.coefficients[:, None] - percentile[:, ::-1])
    assert_allclose(boot.standard_errors, boot.draws.std(axis=0, ddof=1))
    again = model.bootstrap(X, Y, n_boot=40, random_state=5)
    assert np.array_equal(boot.draws, again.draws)
    assert boot.summary(0.8).to_frame().columns.tolist() == [
        "coefficient",
        "std. error",
        "lower 0.8",
        "upper 0.8",
        "not 0",
    ]


def test_what_the_bootstrap_refuses():
    model = se.Lasso(0.1).fit(X, Y)
    with pytest.raises(ValueError, match="kind='jackknife' is not known"):
        model.bootstrap(X, Y, kind="jackknife")
    with pytest.raises(ValueError, match="n_boot=1"):
        model.bootstrap(X, Y, n_boot=1)
    with pytest.raises(ValueError, match="kind='wild' is for quantile regression"):
        model.bootstrap(X, Y, kind="wild")
    with pytest.raises(ValueError, match="not the data of the fit"):
        model.bootstrap(X[:30], Y[:30], n_boot=2)
    with pytest.raises(ValueError, match="is not known: expected one of"):
        model.bootstrap(X, Y, n_boot=2).intervals(kind="bca")
    quantile = se.QuantileRegressor(alpha=0.1).fit(X, Y)
    with pytest.raises(ValueError, match="clusters were given with kind='wild'"):
        quantile.bootstrap(X, Y, kind="wild", clusters=np.arange(40))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (se.QuantileRegressor(alpha=0, tol=1e-4, n_jobs=1), "pairs"),
        (se.SparseRegressor(penalty=None, n_jobs=1), "multiplier"),
    ],
    ids=["quantile", "squared"],
)
def test_intervals_of_the_bootstrap_cover_the_truth(model, kind):
    """Of 300 intervals at 95% for a slope, with errors that depend on the feature, 90% to 98% cover it."""
    covered = dict.fromkeys(resampling.INTERVALS, 0)
    for run in range(300):
        rng = np.random.default_rng(run)
        x = rng.uniform(0, 2, (80, 1))
        y = 1 + x[:, 0] + (0.5 + 0.5 * x[:, 0]) * rng.standard_normal(80)
        boot = clone(model).fit(x, y).bootstrap(x, y, n_boot=99, kind=kind, random_state=run)
        for name in covered:
            low, high = boot.intervals(kind=name)[1]
            covered[name] += low <= 1 <= high
    assert all(270 <= count <= 294 for count in covered.values()), covered


# The quantile process -----------------------------------------------------------------------------------------------


def test_a_process_has_the_fits_of_its_quantiles(engel):
    features, y, model = engel
    process = model.quantile_process(features, y, [0.75, 0.25, 0.5], level=0.9)
    assert process.quantiles.tolist() == [0.25, 0.5, 0.75]
    for k, quantile in enumerate(process.quantiles):
        one = median(quantile=quantile).fit(features, y).inference(features, y, level=0.9)
        assert_allclose(process.coefficients[k], one.coefficients, rtol=1e-5)
        assert_allclose(process.standard_errors[k], one.standard_errors, rtol=1e-5)
        assert_allclose(process.intervals()[k], one.intervals(), rtol=1e-5)
    frame = process.to_frame()
    assert frame.loc[(0.5, "income"), "coefficient"] == process.coefficients[1, 1]
    assert frame.columns.tolist() == ["coefficient", "std. error", "lower 0.9", "upper 0.9"]
    assert all(result.status is sb.Status.OPTIMAL for result in process.results)


def test_a_process_with_a_penalty_has_no_errors():
    model = se.SparseRegressor("quantile", alpha=0.05)
    process = model.quantile_process(X, Y, [0.3, 0.6], kind=None)
    assert process.standard_errors is None
    assert process.intervals() is None
    assert process.to_frame().columns.tolist() == ["coefficient"]
    assert_allclose(process.coefficients[0, 1:], clone(model).set_params(quantile=0.3).fit(X, Y).coef_, atol=1e-4)
    with pytest.raises(ValueError, match="Pass kind=None"):
        model.quantile_process(X, Y)
    with pytest.raises(ValueError, match="expected a quantile regression"):
        se.Lasso().quantile_process(X, Y)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        model.quantile_process(X, Y, [0.0, 0.5], kind=None)


def test_the_picture_of_a_process(engel):
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    features, y, model = engel
    process = model.quantile_process(features, y, [0.25, 0.5, 0.75], kind="iid")
    axes = process.plot()
    assert [axis.get_title() for axis in axes] == ["intercept", "income"]
    assert_allclose(axes[1].lines[0].get_ydata(), process.coefficients[:, 1])
    assert process.plot(["income"]).get_title() == "income"
    with pytest.raises(ValueError, match="expected some of the coefficients"):
        process.plot(["wealth"])
    plt.close("all")


# Summaries ----------------------------------------------------------------------------------------------------------

LINEAR = [name for name in se.__all__ if hasattr(getattr(se, name), "bootstrap")]


@pytest.mark.parametrize("name", LINEAR)
def test_every_linear_model_has_a_summary(name):
    few = {"alphas": [0.1], "cv": 2, "tol": 1e-3} if name.endswith("CV") else {}
    model = getattr(se, name)(**few)
    target = np.column_stack([Y, -Y]) if name.startswith("MultiTask") else np.sign(Y) if is_classifier(model) else Y
    summary = model.fit(X, target).summary()
    frame = summary.to_frame()
    assert frame["coefficient"].size == model.coef_.size + np.size(model.intercept_)
    text = str(summary)
    assert text.startswith(name)
    assert all(word in text for word in ("loss", "penalty", "samples", "OPTIMAL", "relative gap", "a penalty pulls"))
    assert "<table>" in summary._repr_html_()
    assert model.summary(X, target).to_frame().equals(frame)


def test_a_summary_with_errors(engel):
    features, y, model = engel
    frame = model.summary(features, y, level=0.9).to_frame()
    assert frame.index.tolist() == ["intercept", "income"]
    assert frame.columns.tolist() == ["coefficient", "std. error", "t", "P>|t|", "lower 0.9", "upper 0.9"]
    lines = str(model.summary(features, y)).splitlines()
    assert lines[0] == "QuantileRegressor"
    table = lines[lines.index("") + 1 :]
    assert len({len(line) for line in table[:5]}) == 1
    assert "19.251" in table[2]
    assert "summary(X, y)" in str(model.summary())
    with pytest.raises(TypeError, match="without data"):
        model.summary(kind="iid")
    with pytest.raises(ValueError, match="a penalty pulls"):
        se.Lasso().fit(features, y).summary(features, y, kind="iid")


def test_a_summary_of_many_coefficients_shows_the_largest():
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((30, 200))
    model = se.Lasso(0.1).fit(wide, wide[:, 7] + 0.1 * rng.standard_normal(30))
    text = str(model.summary())
    count = int(np.count_nonzero(model.coef_)) + 1
    assert f"{201 - count} further coefficients are not shown" in text
    assert "feature 7 " in text
    assert len(model.summary().to_frame()) == 201


def test_names_and_html_are_escaped():
    frame = pd.DataFrame(X, columns=["a<b", "c", "d", "e"])
    assert "a&lt;b" in se.Lasso(0.1).fit(frame, Y).summary()._repr_html_()


def test_formulaic_is_imported_only_where_it_is_needed():
    code = "import sys, saddleback.estimators; print('formulaic' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


@pytest.mark.parametrize("penalty", ["mcp", "l1"])
def test_a_summary_says_what_is_proved_if_the_penalty_is_not_convex(penalty):
    model = se.SparseRegressor(penalty=penalty, alpha=0.1).fit(X, Y)
    facts = model.summary().facts
    assert ("not convex" in facts["penalty"]) is (penalty == "mcp")
    assert ("of the last convex problem" in facts["certificate"]) is (penalty == "mcp")
    residual, sizes = Y - model.predict(X), np.abs(model.coef_)
    concave = np.where(sizes <= 0.3, 0.1 * sizes - sizes**2 / 6.0, 0.015).sum()
    value = np.mean(residual**2) / 2.0 + (concave if penalty == "mcp" else 0.1 * sizes.sum())
    assert float(facts["objective"]) == pytest.approx(value, rel=1e-6)
