"""RobustPCA: every variant compared with CVXPY, exact recovery, new samples, and the checks of scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from optional import optional
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import saddleback as sb
from saddleback.estimators import RobustPCA

cp = optional("cvxpy")


def corrupted(rng, n, p, rank, share, noise=0.0):
    low_rank = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))
    sparse = np.where(rng.random((n, p)) < share, rng.choice([-5.0, 5.0], (n, p)), 0.0)
    return low_rank, sparse, low_rank + sparse + noise * rng.standard_normal((n, p))


def optimum(X, fitted, noise, sparsity, non_negative):
    L, S = cp.Variable(X.shape), cp.Variable(X.shape)
    observed, B = (~np.isnan(X)).astype(float), np.nan_to_num(X)
    penalty = {
        "entry": cp.sum(cp.abs(S)),
        "row": cp.sum(cp.norm(S, 2, axis=1)),
        "column": cp.sum(cp.norm(S, 2, axis=0)),
    }[sparsity]
    objective = fitted.low_rank_weight_ * cp.normNuc(L) + fitted.sparse_weight_ * penalty
    rest = cp.multiply(observed, L + S - B)
    constraints = [L >= 0] if non_negative else []
    if noise is None:
        constraints.append(rest == 0)
    else:
        objective = objective + 0.5 * cp.sum_squares(rest)
    return cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("sparsity", ["entry", "row", "column"])
@pytest.mark.parametrize("noise", ["gaussian", None])
def test_every_variant_against_cvxpy(rng, noise, sparsity, missing):
    _, _, X = corrupted(rng, 12, 9, 2, 0.08, 0.05)
    X[rng.random(X.shape) < 0.15 * missing] = np.nan
    non_negative = sparsity == "row"
    X = np.abs(X) if non_negative else X
    fitted = RobustPCA(noise, sparsity, non_negative=non_negative, tol=1e-7, max_iter=50_000).fit(X)
    assert fitted.certificate_.error <= 1e-7
    best = optimum(X, fitted, noise, sparsity, non_negative)
    assert fitted.certificate_.primal_value == pytest.approx(best, rel=1e-6)
    assert not non_negative or fitted.low_rank_.min() >= 0
    assert np.all(fitted.sparse_[np.isnan(X)] == 0) or noise is None
    rebuilt = (fitted.low_rank_ @ fitted.components_.T) @ fitted.components_
    assert np.allclose(rebuilt, fitted.low_rank_, atol=1e-4)


def test_exact_recovery_with_corrupted_and_missing_entries(rng):
    """With 5% corrupted and 20% missing entries the low-rank matrix is recovered."""
    low_rank, _, X = corrupted(rng, 50, 50, 2, 0.05)
    gone = rng.random(X.shape) < 0.2
    fitted = RobustPCA(noise=None, tol=1e-6).fit(X, missing=gone)
    assert np.linalg.norm(fitted.low_rank_ - low_rank) <= 1e-4 * np.linalg.norm(low_rank)
    assert fitted.rank_ == 2


def test_outside_the_recoverable_region_the_result_is_honest(rng):
    low_rank, _, X = corrupted(rng, 30, 30, 15, 0.4)
    fitted = RobustPCA(noise=None, tol=1e-6, max_iter=20_000).fit(X)
    assert fitted.result_.status is sb.Status.OPTIMAL  # of the convex problem
    assert np.linalg.norm(fitted.low_rank_ - low_rank) > 0.1 * np.linalg.norm(low_rank)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter") as told:
        cut = RobustPCA(noise=None, max_iter=20).fit(X)
    assert cut.certificate_.error > 1e-6
    assert told[0].filename == __file__
    assert "max_passes" not in str(told[0].message)  # RobustPCA has max_iter instead


def test_default_weights(rng):
    _, _, X = corrupted(rng, 20, 30, 2, 0.05)
    fitted = RobustPCA().fit(X)
    assert fitted.sparse_weight_ == pytest.approx(0.15 * np.abs(X).max())
    assert fitted.low_rank_weight_ == pytest.approx(0.15 * np.linalg.norm(X, 2))
    exact = RobustPCA(noise=None, tol=1e-3).fit(X)
    assert (exact.sparse_weight_, exact.low_rank_weight_) == (pytest.approx(1 / np.sqrt(30)), 1.0)


@pytest.mark.parametrize("noise", ["gaussian", pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sparsity", ["entry", "row"])
def test_transform_of_the_fitted_rows_gives_their_low_rank_part(rng, noise, sparsity):
    _, _, X = corrupted(rng, 15, 10, 2, 0.05 if sparsity == "entry" else 0.0, 0.01)
    if sparsity == "row":
        X[4] += 20.0 * rng.standard_normal(10)
    weight = 0.8 if noise is None and sparsity == "row" else "auto"
    fitted = RobustPCA(noise, sparsity, sparse_weight=weight, tol=1e-9, max_iter=100_000).fit(X)
    codes = fitted.transform(X)
    assert np.allclose(fitted.inverse_transform(codes), fitted.low_rank_, atol=2e-3 * np.abs(X).max())


def test_partial_fit_on_a_stream_of_samples(rng):
    """The basis becomes more accurate than that of the first samples, and its rank does not grow."""
    basis = np.linalg.qr(rng.standard_normal((20, 2)))[0].T
    X = 10.0 * rng.standard_normal((300, 2)) @ basis
    X[rng.random(X.shape) < 0.05] = 60.0
    weights = {"sparse_weight": 1.0, "low_rank_weight": 10.0}
    online = RobustPCA(**weights)
    for start in range(0, 300, 50):
        online.partial_fit(X[start : start + 50])
    assert online.low_rank_.shape == (50, 20)
    assert online.rank_ == 2
    first = RobustPCA(**weights).fit(X[:50])
    missed = [1.0 - np.linalg.svd(fitted.components_ @ basis.T, compute_uv=False).min() for fitted in (online, first)]
    assert missed[0] < 0.8 * missed[1]


def test_float32_and_memory_maps(rng, tmp_path):
    X = corrupted(rng, 40, 12, 2, 0.05)[2].astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    fitted = RobustPCA().fit(mapped)
    assert fitted.low_rank_.dtype == fitted.components_.dtype == np.float32
    assert np.allclose(fitted.low_rank_, RobustPCA().fit(X.astype(np.float64)).low_rank_, atol=1e-4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"noise": "laplace"}, "noise='laplace'"),
        ({"sparsity": "rows"}, "sparsity='rows'"),
        ({"sparse_weight": -1.0}, "sparse_weight=-1.0"),
        ({"low_rank_weight": "large"}, "low_rank_weight='large'"),
    ],
)
def test_invalid_data_and_parameters_are_rejected(rng, parameters, message):
    with pytest.raises(ValueError, match=message):
        RobustPCA(**parameters).fit(rng.standard_normal((5, 4)))


@pytest.mark.parametrize("scale", [1.0, 1e-8])
@pytest.mark.parametrize("rank", [1, 2, 5, 10])
def test_outlying_rows_and_columns_do_not_change_the_rank_of_the_others(rng, rank, scale):
    """With the automatic weight, for samples in a subspace of which one in twenty is an outlier."""
    X = rng.standard_normal((100, rank)) @ rng.standard_normal((rank, 60))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    subspace = np.linalg.svd(X, full_matrices=False)[2][:rank]
    X[::20] = rng.standard_normal((5, 60)) / np.sqrt(60)
    rows = RobustPCA(noise=None, sparsity="row", tol=1e-5).fit(scale * X)
    assert rows.rank_ == rank
    np.testing.assert_allclose(rows.components_ @ subspace.T @ subspace, rows.components_, atol=1e-3)
    assert np.all(np.linalg.norm(rows.sparse_[::20], axis=1) > 0.1 * scale)
    columns = RobustPCA(noise=None, sparsity="column", tol=1e-5).fit(scale * X.T)
    assert columns.rank_ == rank
    assert columns.sparse_weight_ == pytest.approx(rows.sparse_weight_)


@pytest.mark.parametrize("sparsity", ["entry", "row", "column"])
@pytest.mark.parametrize("noise", ["gaussian", None])
def test_units_do_not_matter(rng, noise, sparsity):
    _, _, X = corrupted(rng, 20, 15, 2, 0.05)
    expected = RobustPCA(noise, sparsity).fit(X).low_rank_
    for dtype, scale in ((np.float32, 1e-30), (np.float32, 1e30), (np.float64, 1e-100), (np.float64, 1e100)):
        fitted = RobustPCA(noise, sparsity).fit((scale * X).astype(dtype))
        np.testing.assert_allclose(fitted.low_rank_ / scale, expected, atol=2e-2 * np.abs(X).max())
    with pytest.raises(ValueError, match=r"X has entries up to 1e\+200, whose squares overflow"):
        RobustPCA(noise, sparsity).fit(1e200 * X / np.abs(X).max())


def test_a_missing_low_rank_part_causes_a_warning(rng):
    X = rng.standard_normal((20, 10))
    with pytest.warns(UserWarning, match="the low-rank part is 0, as low_rank_weight=1 is too large beside sparse_wei"):
        assert RobustPCA(noise=None, sparsity="row", sparse_weight=0.01).fit(X).rank_ == 0
    with pytest.warns(UserWarning, match="pass less of it"):
        RobustPCA(low_rank_weight=1e3).fit(X)
    RobustPCA().fit(np.zeros((20, 10)))


def test_the_shape_of_missing_is_checked(rng):
    with pytest.raises(ValueError, match="expected booleans of shape"):
        RobustPCA().fit(np.ones((5, 4)), missing=np.ones((5, 3), dtype=bool))
    with pytest.raises(ValueError, match="infinity"):
        RobustPCA().fit(np.full((5, 4), np.inf))


@parametrize_with_checks([RobustPCA()])
def test_scikit_learn_conventions(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def test_outlying_columns_are_remembered(rng):
    """A column that was an outlier stays one after a batch in which it is missing."""
    X = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 12))
    X[:, 3] += 20.0 * rng.standard_normal(40)
    pca = RobustPCA(sparsity="column", tol=1e-5).fit(X)
    assert np.flatnonzero(np.any(pca.sparse_ != 0, axis=0)).tolist() == [3]
    batch = X[:2].copy()
    batch[:, 3] = np.nan
    pca.partial_fit(batch)
    moved = X[:3].copy()
    moved[:, 3] += 50.0
    assert np.allclose(pca.transform(moved), pca.transform(X[:3]), atol=1e-6)
