"""Stability selection with complementary pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model as peers
from sklearn.pipeline import make_pipeline

import saddleback.estimators as se
from saddleback.engine.clock import Clock
from saddleback.places.mpi.communicator import SERIAL


@pytest.fixture
def data():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((81, 12))
    return X, 1.0 + X[:, :3] @ [1.0, -1.0, 0.7] + 0.5 * rng.standard_normal(81)


def test_halves_are_complementary_pairs(data):
    _, y = data
    halves = se.StabilitySelection(se.Lasso(), n_pairs=5)._halves(y, 81)
    assert len(halves) == 10
    for one, other in zip(halves[::2], halves[1::2], strict=True):
        assert one.size == other.size == 40
        assert not set(one) & set(other)
    assert len({tuple(half) for half in halves}) == 10
    labels = np.arange(81) % 3 == 0
    for half in se.StabilitySelection(se.SparseSVC(), n_pairs=2)._halves(labels, 81):
        assert np.count_nonzero(labels[half]) == 13


def test_the_halves_that_are_solved_together_are_the_fits_one_by_one(data):
    """With an intercept and repeated rows."""
    X, y = data
    X, y = np.vstack([X, X[:10]]), np.concatenate([y, y[:10]])
    kinds = [
        (se.Lasso(0.2), peers.Lasso(0.2, tol=1e-8), y),
        (se.QuantileRegressor(alpha=0.1), peers.QuantileRegressor(alpha=0.1), y),
        (se.MultiTaskLasso(0.3), se.MultiTaskLasso(0.3), np.column_stack([y, X[:, 5]])),
        (se.SparseLogisticRegression(0.05), se.SparseLogisticRegression(0.05), y > 1),
    ]
    for together, alone, target in kinds:
        one = se.StabilitySelection(together, n_pairs=4).fit(X, target)
        shares = se.StabilitySelection(alone, n_pairs=4)._one_by_one(X, target, Clock(None, SERIAL)).mean(axis=0)
        assert np.allclose(one.selection_probabilities_, shares, atol=0.13)  # one of eight, of a coefficient near 0
        assert np.abs(one.selection_probabilities_ - shares).sum() <= 0.26


def test_support_bound_and_names(data):
    X, y = data
    X = pd.DataFrame(X, columns=[f"x{j}" for j in range(12)])
    chosen = se.StabilitySelection(se.Lasso(0.2), n_pairs=20, threshold=0.75).fit(X, y)
    assert np.flatnonzero(chosen.get_support()).tolist() == [0, 1, 2]
    assert chosen.get_feature_names_out().tolist() == ["x0", "x1", "x2"]
    assert chosen.transform(X).shape == (81, 3)
    assert chosen.mean_selected_ == pytest.approx(chosen.selection_probabilities_.sum())
    assert chosen.false_selection_bound_ == pytest.approx(chosen.mean_selected_**2 / (0.5 * 12))
    assert np.array_equal(
        chosen.selection_probabilities_,
        se.StabilitySelection(se.Lasso(0.2), n_pairs=20, random_state=0).fit(X, y).selection_probabilities_,
    )
    model = make_pipeline(se.StabilitySelection(se.LassoCV(n_alphas=4, cv=2, rule="1se"), n_pairs=2), se.Lasso(0.01))
    assert model.fit(X, y).score(X, y) > 0.8


def test_the_bound_holds_for_noise():
    """Without any signal all selected features are false; their mean number over many data is below the bound."""
    false, bounds = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((60, 20)), rng.standard_normal(60)
        chosen = se.StabilitySelection(se.Lasso(0.3, fit_intercept=False, tol=1e-4), n_pairs=5).fit(X, y)
        false.append(np.count_nonzero(chosen.get_support()))
        bounds.append(chosen.false_selection_bound_)
    assert 0 < np.mean(bounds) < 5
    assert np.mean(false) <= np.mean(bounds)


@pytest.mark.parametrize(
    ("given", "message"),
    [({"threshold": 0.5}, "threshold=0.5: expected a share"), ({"n_pairs": 0}, "n_pairs=0: expected an integer")],
)
def test_refusals(data, given, message):
    with pytest.raises(ValueError, match=message):
        se.StabilitySelection(se.Lasso(), **given).fit(*data)


def test_the_picture_names_the_features(data):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X, y = data
    chosen = se.StabilitySelection(se.Lasso(0.2), n_pairs=4).fit(pd.DataFrame(X).add_prefix("x"), y)
    axis = chosen.plot()
    shown = [label.get_text() for label in axis.get_xticklabels()]
    assert set(shown[:3]) == {"x0", "x1", "x2"}
    assert [bar.get_height() for bar in axis.patches] == sorted(chosen.selection_probabilities_, reverse=True)
    pyplot.close("all")
