"""A time limit bounds the call of the user: paths, cross-validation, bootstraps and the command line."""

from __future__ import annotations

import warnings
from time import perf_counter

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

import saddleback as sb
import saddleback.estimators as se
from saddleback.cli import app
from saddleback.engine.clock import Clock
from saddleback.places.mpi.communicator import SERIAL

LIMIT, LATE = 0.3, 3.0
"""A limit, and the time by which a call with it has to end: much more, since other programs may be running."""


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 300))
    return X, X[:, :20].sum(axis=1) + rng.standard_normal(600)


def ended(call, said):
    """Return the result of a call that ends early, after a warning that says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", se.AlphaGridWarning)
        begun = perf_counter()
        with pytest.warns(ConvergenceWarning, match=said) as told:
            found = call()
        assert perf_counter() - begun < LATE
    return found, [str(each.message) for each in told]


def test_a_clock_is_shared_by_parts():
    clock = Clock(10.0, SERIAL)
    part = clock.part(4)
    assert 2.4 < part.left() <= 2.5
    assert 0 < Clock(1e-9, SERIAL).share(5) <= 1e-6
    assert Clock(None, SERIAL).share(5) is None
    assert not Clock(None, SERIAL).part(2).expired()


@pytest.mark.parametrize("tasks", [(), (2,)])
def test_a_path_has_the_largest_alphas(tasks, data):
    X, y = data
    y = y.reshape(-1, *(1,) * len(tasks)) * np.ones(tasks) if tasks else y
    begun = perf_counter()
    results = sb.path(sb.L1(1.0), X, sb.Absolute(y), tol=1e-13, time_limit=LIMIT)
    assert perf_counter() - begun < LATE
    assert 1 <= len(results) < 100
    assert results[-1].status is sb.Status.TIME_LIMIT
    alphas = [result.settings["alpha"] for result in results]
    assert alphas == sorted(alphas, reverse=True)
    assert alphas[0] == pytest.approx(sb.alpha_max(sb.L1(1.0), X, sb.Absolute(y)))


def test_many_problems_end_with_the_one_that_the_limit_ends(data):
    X, y = data
    problem = sb.Problem(sb.L1(1.0), X, sb.Absolute(y))
    weights = np.random.default_rng(0).random((200, 600))
    begun = perf_counter()
    results = sb.solve_many(problem, weights=weights, tol=1e-13, time_limit=LIMIT)
    assert perf_counter() - begun < LATE
    assert 1 <= len(results) < 200
    assert results[-1].status is sb.Status.TIME_LIMIT


@pytest.mark.parametrize(
    "model",
    [
        se.LassoCV(tol=1e-13, time_limit=LIMIT),
        se.ElasticNetCV(tol=1e-13, l1_ratio=[0.5, 0.9], time_limit=LIMIT, relaxed=True),
        se.SparseRegressorCV("quantile", tol=1e-13, time_limit=LIMIT),
        se.LassoCV(tol=1e-13, time_limit=0.05, criterion="bic"),
    ],
)
def test_cross_validation_chooses_among_the_alphas_that_the_time_has_allowed(model, data):
    X, y = data
    model, said = ended(lambda: model.fit(X, y), "time_limit")
    assert any("values of alpha" in each for each in said)
    alphas = np.atleast_2d(model.alphas_)
    assert model.path_.alphas.size == alphas.shape[1] < model.n_alphas
    assert model.alpha_ in alphas
    if model.criterion is None:
        assert np.atleast_2d(model.mean_loss_).shape == alphas.shape
        assert np.isfinite(model.mean_loss_).all()
    assert model.predict(X).shape == y.shape


def test_a_path_of_several_classes_has_the_same_alphas_for_all(data):
    X, y = data
    model = se.SparseClassifier("logistic", tol=1e-14, time_limit=LIMIT)
    path, _ = ended(lambda: model.path(X, np.digitize(y, [-2.0, 0.0, 2.0])), "time limit")
    assert path.coefs.shape == (4, 300, path.alphas.size)
    assert len({len(along) for along in path.results}) == 1
    assert path.alphas.size < 100


def test_a_bootstrap_has_the_draws_that_the_time_has_allowed(data):
    X, y = data[0][:, :10], data[1]
    model = se.SparseRegressor("quantile", alpha=0.01).fit(X, y)
    model.set_params(time_limit=1.0)
    begun = perf_counter()
    with pytest.warns(ConvergenceWarning, match=r"time_limit=1 was enough for \d+ of 5000 draws"):
        found = model.bootstrap(X, y, n_boot=5000)
    assert perf_counter() - begun < 20.0
    assert 2 <= len(found.draws) < 5000
    assert np.isfinite(found.standard_errors).all()
    model.set_params(time_limit=1e-9)
    with pytest.raises(TimeoutError, match="time_limit=1e-09 was enough for"):
        model.bootstrap(X, y)


@pytest.mark.filterwarnings("ignore:(LassoCV|SparseRegressor)")
def test_stability_selection_has_the_pairs_that_the_time_has_allowed(data):
    X, y = data[0][:, :30], data[1]
    for estimator in (se.SparseRegressor("quantile", alpha=0.01, time_limit=1.0), se.LassoCV(time_limit=1.0, cv=2)):
        begun = perf_counter()
        with pytest.warns(ConvergenceWarning, match=r"was enough for \d+ of 1000 pairs of halves"):
            chosen = se.StabilitySelection(estimator, n_pairs=1000).fit(X, y)
        assert perf_counter() - begun < 20.0
        shares = chosen.selection_probabilities_
        assert np.all((shares >= 0) & (shares <= 1))
        assert shares.max() == 1.0


def test_the_command_line_ends_in_time(data, tmp_path):
    X, y = data
    pd.DataFrame(X).rename(columns=str).assign(y=y).to_csv(tmp_path / "d.csv", index=False)
    words = ["fit", tmp_path / "d.csv", "--target", "y", "--loss", "absolute", "--tol", "1e-13", "--time-limit", "1"]
    begun = perf_counter()
    found = CliRunner().invoke(app, [*map(str, words), "--report", str(tmp_path / "r.html")])
    assert perf_counter() - begun < 20.0
    assert "TIME_LIMIT" in found.stdout
    assert (tmp_path / "r.html").exists()
    words[-1] = "-1"
    refused = CliRunner().invoke(app, list(map(str, words)))
    assert refused.exit_code == 2
    assert "time_limit=-1" in refused.stderr
