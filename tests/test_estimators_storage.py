"""Estimators on data in files, which are read panel by panel, and on devices."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided
from optional import optional
from profiles import examples
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

import saddleback as sb
import saddleback.estimators as se
from saddleback.estimators import table
from saddleback.model.model import Model
from saddleback.places.files.stores import window

zarr = optional("zarr")

RNG = np.random.default_rng(5)
X = RNG.standard_normal((90, 40)) + RNG.uniform(-5.0, 5.0, 40)
X[:, 7] = 0.1  # a constant column, whose mean is not exact
Y = X[:, :4] @ [1.0, -1.0, 0.5, 2.0] + RNG.standard_normal(90)
WEIGHT = RNG.integers(0, 3, 90).astype(np.float64)
TIGHT = 2.0 * X.nbytes
"""A memory bound in bytes, too small for the two copies of X that methods would make."""


@pytest.fixture(autouse=True)
def streamed_at_any_size(monkeypatch):
    """Stream the small files of these tests as if they were large."""
    monkeypatch.setattr(table, "SMALL", 0)


@pytest.mark.parametrize("kind", ["map-by-rows", "zarr"])
def test_a_small_file_is_read_into_memory(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(table, "SMALL", X.nbytes)
    monkeypatch.setattr(table, "OnDisk", None)
    model = se.Lasso(0.1).fit(in_file(tmp_path, kind), Y)
    assert np.array_equal(model.coef_, se.Lasso(0.1).fit(X, Y).coef_)


def test_the_name_of_the_file_is_in_the_message(tmp_path):
    with pytest.raises(TypeError, match=r"np\.load\(X, mmap_mode='r'\)"):
        se.Lasso().fit(str(tmp_path / "X.npy"), Y)


def in_file(folder: Path, kind: str, matrix: np.ndarray = X) -> object:
    """Return a matrix in a file, in one of the forms in which users pass it."""
    layout, _, dtype = kind.partition(" ")
    matrix = matrix.astype(dtype or "f8")
    path = folder / f"{kind}.npy"
    np.save(path, np.asfortranarray(matrix) if "columns" in layout else matrix)
    if layout == "zarr":
        array = zarr.create_array(folder / kind, shape=matrix.shape, chunks=(30, 15), dtype=matrix.dtype)
        array[:] = matrix
        return array
    return sb.Streamed(path, memory=TIGHT) if layout.startswith("streamed") else np.load(path, mmap_mode="r")


KINDS = ["map-by-columns", "map-by-rows", "map-by-columns f4", "zarr", "streamed-by-columns"]

MODELS = {
    "squared": se.Lasso(0.1),
    "squared, groups": se.GroupLasso(0.1, groups=4),
    "quantile": se.QuantileRegressor(quantile=0.3, alpha=0.05),
    "quantile, groups": se.SparseRegressor("quantile", "group", alpha=0.03, groups=4, quantile=0.7),
    "hinge": se.SparseSVC(0.03),
    "hinge, groups": se.SparseClassifier("hinge", "group", alpha=0.03, groups=4),
    "logistic": se.SparseClassifier("logistic", alpha=0.01),
    "logistic, groups": se.SparseClassifier("logistic", "group", alpha=0.01, groups=4),
}


def targets(model):
    return np.where(np.median(Y) < Y, "above", "below") if is_classifier(model) else Y


def assert_same_fit(model, other, tol, samples=X):
    """Assert that both objectives are within the tolerance of the minimum, by their certificates."""
    one, two = (np.atleast_1d(fitted.certificate_) for fitted in (model, other))
    assert max(certificate.error for certificate in (*one, *two)) <= tol
    assert [c.primal_value for c in one] == pytest.approx([c.primal_value for c in two], rel=2 * tol)
    assert np.allclose(model.coef_, other.coef_, atol=30 * np.sqrt(tol))
    assert model.n_features_in_ == other.n_features_in_ == samples.shape[1]


def quick(kind, name, intercept, weighted):
    """Return all cases with memory maps in which intercept and sample weights go together, and some other cases."""
    if kind in ("map-by-columns", "map-by-rows"):
        return intercept == weighted
    return intercept and weighted and name in ("squared", "squared, groups", "logistic, groups")


CASES = [
    pytest.param(*case, id=" ".join(map(str, case)), marks=() if quick(*case) else pytest.mark.slow)
    for case in product(KINDS, MODELS, [True, False], [True, False])
]


@pytest.mark.parametrize(("kind", "name", "intercept", "weighted"), CASES)
def test_the_fit_is_that_of_the_same_data_in_memory(kind, name, intercept, weighted, tmp_path):
    weight = WEIGHT if weighted else None
    tol = 1e-4
    model = clone(MODELS[name]).set_params(fit_intercept=intercept, tol=tol)
    y, source = targets(model), in_file(tmp_path, kind)
    found = clone(model).fit(source, y, sample_weight=weight)
    expected = model.fit(X, y, sample_weight=weight)
    assert_same_fit(found, expected, tol)
    assert found.coef_.dtype == (np.float32 if kind.endswith("f4") else np.float64)
    again = found.predict(X.astype(found.coef_.dtype))
    assert (
        np.array_equal(found.predict(source), again)
        if is_classifier(model)
        else np.allclose(found.predict(source), again, atol=1e-3 if kind.endswith("f4") else 1e-9)
    )
    assert found.score(source, y, weight) == pytest.approx(found.score(X, y, weight), abs=1e-4)
    if intercept:
        assert np.all(found.coef_[..., 7] == 0)


@pytest.mark.parametrize(("dtype", "mean"), [("f8", 1e7), ("f4", 1e3)])
@pytest.mark.parametrize("loss", ["squared", "sqrt", "huber"])
def test_columns_with_large_means(loss, dtype, mean, tmp_path):
    """The coefficients agree to many digits with those of the same columns without the means."""
    near = RNG.integers(-64, 64, (80, 6)) / 16.0  # exact in both precisions, also after the mean is added
    near[:, 4] = 0.0
    y, weight = 3.0 + near[:, 0] + RNG.standard_normal(80), RNG.uniform(0.5, 2.0, 80)
    model = se.SparseRegressor(loss, alpha=0.05, tol=1e-10)
    far = clone(model).fit(in_file(tmp_path, f"map-by-columns {dtype}", near + mean), y, sample_weight=weight)
    assert np.allclose(model.fit(near, y, sample_weight=weight).coef_, far.coef_, atol=2e-5)
    assert far.coef_[4] == 0


def test_the_certificate_is_that_of_the_given_data(tmp_path):
    """The fit subtracts means of a million and removes a column of ones."""
    far = X + 1e6
    model = se.Lasso(0.1).fit(in_file(tmp_path, "streamed-by-columns", far), Y, sample_weight=WEIGHT)
    loss = sb.Squared(Y, sample_weight=WEIGHT, scale=1 / WEIGHT.sum())
    problem = sb.Problem([sb.L1(0.1), sb.Zero()], [far, np.ones(90)], loss)
    certificate = sb.certify(problem, model.result_.x, model.result_.y)
    assert certificate.error <= 1e-6
    assert certificate.primal_value == pytest.approx(model.certificate_.primal_value, rel=1e-8)


@pytest.mark.parametrize("kind", ["map-by-columns", "map-by-rows"])
def test_several_targets_tasks_and_classes(kind, tmp_path):
    source, both = in_file(tmp_path, kind), np.column_stack([Y, X[:, 5]])
    for model in (se.Lasso(0.1), se.MultiTaskLasso(0.1)):
        assert_same_fit(clone(model).fit(source, both), model.fit(X, both), 1e-6)
        assert np.allclose(model.predict(source), model.predict(X))
    three = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
    model = se.SparseClassifier("logistic", alpha=0.01)
    found, expected = clone(model).fit(source, three), model.fit(X, three)
    assert np.allclose(found.coef_, expected.coef_, atol=1e-4)
    assert np.allclose(found.predict_proba(source), expected.predict_proba(X), atol=1e-4)


@pytest.mark.filterwarnings("ignore::saddleback.estimators.AlphaGridWarning")
@pytest.mark.parametrize(
    ("kind", "n_jobs"),
    [("map-by-columns", None), ("map-by-rows", None), pytest.param("map-by-columns", 2, marks=pytest.mark.slow)],
)
def test_paths_and_folds(kind, n_jobs, tmp_path):
    """Folds are read as rows of the file, in other processes too."""
    source = in_file(tmp_path, kind)
    along, expected = (se.Lasso().path(data, Y, n_alphas=4, eps=0.1) for data in (source, X))
    assert np.allclose(along.alphas, expected.alphas)
    assert np.allclose(along.coefs, expected.coefs, atol=1e-3)
    model = se.LassoCV(n_alphas=4, eps=0.1, cv=3)
    expected = clone(model).fit(X, Y)
    found = model.set_params(n_jobs=n_jobs).fit(source, Y)
    assert np.allclose(found.loss_path_, expected.loss_path_, rtol=1e-3)
    assert found.alpha_ == pytest.approx(expected.alpha_)
    joblib.externals.loky.get_reusable_executor().shutdown()


# Reading ------------------------------------------------------------------------------------------------------------


def test_a_file_is_read_as_often_as_is_needed(tmp_path, monkeypatch):
    """A fit reads the file once more than a solve, for the means; a prediction reads only the nonzero columns."""
    # a certificate measures rounding, by another reading, only where both bounds agree up to rounding
    monkeypatch.setattr(Model, "rounding_rise", lambda self, x, u: 0.0)
    source = in_file(tmp_path, "streamed-by-columns")
    model = se.Lasso(0.5).fit(source, Y)
    fitted = source.reads
    means = np.where(np.arange(40) == 7, 0.1, X.mean(axis=0))
    centred = sb.Streamed(tmp_path / "streamed-by-columns.npy", memory=TIGHT).centred(means)
    sb.solve(sb.Problem(sb.L1(0.5), centred, sb.Squared(Y - Y.mean(), scale=1 / 90)))
    assert fitted == pytest.approx(centred.reads + 1)
    model.predict(source)
    assert source.reads - fitted == pytest.approx(np.count_nonzero(model.coef_) / 40)


@examples(60)
@given(
    st.sampled_from("CF"),
    st.tuples(*[st.slices(6), st.slices(7)]),
    st.tuples(*[st.slices(4), st.slices(4)]),
    st.sampled_from(["f8", "f4", "i2"]),
)
def test_slices_of_a_map_are_rows_and_columns_of_its_file(tmp_path_factory, order, first, second, dtype):
    path = tmp_path_factory.mktemp("slices") / "A.npy"
    A = np.arange(42).reshape(6, 7).astype(dtype)
    np.save(path, np.asarray(A, order=order))
    part, expected = np.load(path, mmap_mode="r")[first][second], A[first][second]
    if 0 in expected.shape:
        return
    streamed = sb.Streamed(part, memory=1e6)
    assert streamed.shape == expected.shape
    assert np.array_equal(streamed.entries(np.arange(expected.shape[1])), expected)
    assert np.array_equal(sb.Streamed(part.T, memory=1e6).entries(np.arange(expected.shape[0])), expected.T)


def test_features_and_targets_of_one_file(tmp_path):
    np.save(tmp_path / "table.npy", np.column_stack([X, Y]))
    table = np.load(tmp_path / "table.npy", mmap_mode="r")
    model = se.Lasso(0.1).fit(table[:-10, :-1], table[:-10, -1])
    assert_same_fit(model, se.Lasso(0.1).fit(X[:-10], Y[:-10]), 1e-6)
    assert np.allclose(model.predict(table[-10:, :-1]), model.predict(X[-10:]))


def test_maps_that_are_not_part_of_a_file_are_arrays(tmp_path):
    """A copy-on-write map that was changed, and an array of other strides, do not have the contents of the file."""
    mapped = in_file(tmp_path, "map-by-rows")
    copied = np.load(tmp_path / "map-by-rows.npy", mmap_mode="c")
    copied[:] = X + 1.0
    diagonals = as_strided(mapped, shape=(49, 40), strides=(mapped.strides[0] + 8, 8), subok=True)
    for array in (copied, diagonals, np.empty_like(mapped)):
        assert isinstance(array, np.memmap)
        assert window(array) is None
    assert np.allclose(se.Lasso(0.1).fit(copied, Y).coef_, se.Lasso(0.1).fit(X, Y).coef_)


BOUNDED = """
import sys
import numpy as np, saddleback as sb
from saddleback.estimators import {model}

def resident(kind):
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(kind)))

folder, memory = sys.argv[1], float(sys.argv[2])
y = np.load(folder + "/y.npy")
small = np.random.default_rng(0).standard_normal((50, 20))
{model}({arguments}).fit(small, small[:, 0] > 0)  # what the first fit imports is not counted
source = folder + "/X.npy"
X = sb.Streamed(source, memory=memory) if memory else np.load(source, mmap_mode="r")
before = resident("VmRSS")
model = {model}({arguments}).fit(X, y)
score = model.score(X, y)
print((resident("VmHWM") - before), model.certificate_.error, score)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
@pytest.mark.parametrize(
    ("model", "arguments", "order", "memory"),
    [
        ("Lasso", "0.1", "F", 16e6),
        ("SparseClassifier", "'logistic', alpha=0.05", "C", 0),
        pytest.param("SparseClassifier", "'logistic', alpha=0.05", "C", 16e6, marks=pytest.mark.slow),
        pytest.param("Lasso", "0.1", "F", 0, marks=pytest.mark.slow),
        pytest.param("SparseSVC", "0.05, tol=1e-3", "F", 16e6, marks=pytest.mark.slow),
        pytest.param("QuantileRegressor", "alpha=0.1, tol=1e-3", "F", 32e6, marks=pytest.mark.slow),
    ],
)
def test_a_file_larger_than_the_memory_bound_is_fitted_and_scored_within_it(model, arguments, order, memory, tmp_path):
    """64 MB with a bound of 16 MB (32 for a finish), and a plain map of 128 MB in half of that, beyond the baseline."""
    rows = 2000 if memory else 4000
    rng = np.random.default_rng(0)
    matrix = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (rows, 4000), fortran_order=order == "F")
    matrix[:] = rng.standard_normal(matrix.shape) + 3.0
    y = matrix[:, :5].sum(axis=1) + rng.standard_normal(rows)
    np.save(tmp_path / "y.npy", y > 15 if model.startswith("Sparse") else y)
    code = BOUNDED.format(model=model, arguments=arguments)
    run = [sys.executable, "-c", code, str(tmp_path), str(memory)]
    peak, error, score = map(float, subprocess.run(run, check=True, capture_output=True, text=True).stdout.split())
    assert error <= (1e-3 if "tol" in arguments else 1e-6)
    assert score > 0.5
    assert peak <= (memory or matrix.nbytes / 2)


# Messages -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_that_is_not_finite_is_named(kind, intercept, tmp_path):
    bad = X.copy()
    bad[13, 21] = np.inf
    bad[40, 2] = np.nan
    with pytest.raises(ValueError, match=r"X has the value (nan at \[40, 2\]|inf at \[13, 21\]): expected finite"):
        se.Lasso(fit_intercept=intercept).fit(in_file(tmp_path, kind, bad), Y)
    model = se.Lasso(0.1).fit(X, Y)
    with pytest.raises(ValueError, match="X has the value"):
        model.predict(in_file(tmp_path, f"{kind} f8" if " " not in kind else kind.replace("f4", "f8"), bad))


def test_targets_weights_and_features_are_checked_as_for_arrays(tmp_path):
    source = in_file(tmp_path, "map-by-columns")
    with pytest.raises(ValueError, match="y has 89 values, and X has 90 samples"):
        se.Lasso().fit(source, Y[1:])
    with pytest.raises(ValueError, match="sample_weight has 89 values: expected one for each of the 90"):
        se.Lasso().fit(source, Y, sample_weight=WEIGHT[1:])
    with pytest.raises(ValueError, match=r"y cannot be None|requires y"):
        se.Lasso().fit(source, None)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        se.Lasso().fit(source, np.full(90, np.nan))
    with pytest.raises(ValueError, match="one class"):
        se.SparseSVC().fit(source, np.ones(90))
    with pytest.raises(ValueError, match="needs 2 or more"):
        se.LassoCV().fit(source[:1], Y[:1])
    with pytest.raises(NotFittedError):
        se.Lasso().predict(source)
    named = se.Lasso(0.1).fit(pd.DataFrame(X, columns=[f"x{j}" for j in range(40)]), Y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        named.predict(source)
    assert not hasattr(named.fit(source, Y), "feature_names_in_")
    with pytest.raises(ValueError, match="X has 39 features, but Lasso is expecting 40"):
        named.predict(source[:, 1:])


def test_models_that_cannot_stream_say_what_to_do(tmp_path):
    source = in_file(tmp_path, "streamed-by-columns")
    for refusing in (
        lambda: se.RobustPCA().fit(source),
        lambda: StandardScaler().fit(source),
        lambda: GridSearchCV(se.Lasso(), {"alpha": [0.1, 1.0]}).fit(source, Y),
    ):
        with pytest.raises(TypeError, match=r"linear models of saddleback.estimators take it.*np\.load"):
            refusing()
    with pytest.raises(TypeError, match="streamed from its file, and cannot be moved to a device: leave device out"):
        se.Lasso(device="cpu").fit(source, Y)
    with pytest.raises(TypeError, match=r"LassoCV has no parameter comm: .*leave it out"):
        se.LassoCV(comm=None)
    with pytest.raises(TypeError, match=r"Lasso has no parameter memory: .*sb\.Streamed\(path, memory=\.\.\.\)"):
        se.Lasso(memory=1e9)


# Devices ------------------------------------------------------------------------------------------------------------

ON_A_DEVICE = MODELS | {
    "elastic net": se.ElasticNet(0.1),
    "sparse groups": se.SparseGroupLasso(0.1, groups=4),
    "tasks": se.MultiTaskLasso(0.1),
    "folds": se.LassoCV(n_alphas=3, cv=2, eps=0.1),
    "folds of groups": se.GroupLassoCV(groups=4, n_alphas=2, cv=2, eps=0.1),
    "folds of classes": se.SparseClassifierCV("logistic", n_alphas=2, cv=2, eps=0.1),
    "folds of quantiles": se.QuantileRegressorCV(n_alphas=2, cv=2, eps=0.1, tol=1e-3),
    "folds of any": se.SparseRegressorCV("huber", n_alphas=2, cv=2, eps=0.1),
}


@pytest.mark.filterwarnings("ignore::saddleback.estimators.AlphaGridWarning")
@pytest.mark.parametrize("name", ON_A_DEVICE)
def test_a_device_fits_the_same_model(name):
    """With the CPU device of torch, and tensors for X, y and weights; the fitted attributes are numpy arrays."""
    torch = pytest.importorskip("torch")
    model = clone(ON_A_DEVICE[name])
    model.set_params(tol=1e-3)
    few = X[:, :12]
    y = (
        np.column_stack([Y, X[:, 5]])
        if name == "tasks"
        else (np.median(Y) < Y).astype(int)
        if is_classifier(model)
        else Y
    )
    expected = clone(model).fit(few, y, sample_weight=WEIGHT)
    model.set_params(device="cpu").fit(*map(torch.from_numpy, (few, y, WEIGHT)))
    assert_same_fit(model, expected, model.tol, few)
    assert type(model.coef_) is type(model.predict(torch.from_numpy(few))) is np.ndarray
    # "folds of quantiles" end with an interior point that begins at once, without sweeps
    assert name in ("tasks", "folds of quantiles") or model.result_.settings["backend"] == "torch"


@pytest.mark.parametrize("options", [{}, {"noise": None}, {"sparsity": "row"}, {"sparsity": "column"}])
def test_a_device_splits_the_same_matrix(options):
    torch = pytest.importorskip("torch")
    data = np.outer(np.arange(1.0, 13.0), np.ones(8))
    data[2, 3], data[7] = 40.0, 20.0
    model = se.RobustPCA(**options, tol=1e-4)
    expected = clone(model).fit(data)
    found = model.set_params(device="cpu").fit(torch.from_numpy(data))
    assert found.certificate_.primal_value == pytest.approx(expected.certificate_.primal_value, rel=2e-4)
    assert np.allclose(found.low_rank_, expected.low_rank_, atol=0.1)
    assert type(found.low_rank_) is type(found.transform(data[:2])) is np.ndarray
    with pytest.raises(ValueError, match=r"with non_negative=True.*leave one of them out"):
        se.RobustPCA(non_negative=True, device="cpu").fit(X)
