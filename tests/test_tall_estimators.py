"""Estimators on rows in chunks: tall arrays, files and Dask give the model of the fit in memory."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

import saddleback as sb
from saddleback.cli import app
from saddleback.estimators import (
    FusedLasso,
    Lasso,
    LassoCV,
    MultiTaskLasso,
    QuantileRegressor,
    SparseClassifier,
    SparseRegressor,
    SparseSVC,
    tall_fit,
)

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")

ROWS = 30_000


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def table(rng, rows=ROWS, categories=False):
    frame = pandas.DataFrame(rng.standard_normal((rows, 4)), columns=list("abcd"))
    frame["target"] = 2.0 + frame["a"] - 0.5 * frame["b"] + rng.standard_t(3, size=rows)
    if categories:
        frame["city"] = pandas.Categorical(rng.choice(["Oslo", "Paris", "Rome"], rows, p=[0.2, 0.5, 0.3]))
        frame["target"] += frame["city"].map({"Oslo": 1.0, "Paris": 0.0, "Rome": -1.0}).astype(float)
    frame["label"] = np.where(frame["target"] > 2.0, "high", "low")
    frame["weight"] = rng.integers(1, 4, rows).astype(float)
    return frame


def in_files(frame, folder, parts=3):
    folder.mkdir(exist_ok=True)
    for k, rows in enumerate(np.array_split(np.arange(len(frame)), parts)):
        frame.iloc[rows].to_parquet(folder / f"part-{k}.parquet", row_group_size=4000, index=False)
    return folder


MODELS = {
    "quantile": lambda: QuantileRegressor(quantile=0.8, alpha=0.01),
    "huber": lambda: SparseRegressor("huber", "group", 0.01, groups=2),
    "lasso": lambda: Lasso(0.01),
    "elastic net": lambda: SparseRegressor("absolute", "elasticnet", 0.02, positive=True),
}


@pytest.mark.parametrize("name", MODELS)
def test_files_give_the_model_of_the_fit_in_memory(name, rng, tmp_path):
    frame = table(rng)
    in_memory = MODELS[name]().fit(frame[list("abcd")], frame["target"], frame["weight"])
    model = MODELS[name]()
    found = model.fit_files(in_files(frame, tmp_path / "table"), "target", weights="weight", columns=list("abcd"))
    assert found is model
    assert model.certificate_.error <= 1e-6
    assert model.result_.objective == pytest.approx(in_memory.result_.objective, rel=2e-6)
    assert model.coef_ == pytest.approx(in_memory.coef_, abs=1e-2)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.coef_by_name_ == dict(zip("abcd", model.coef_.tolist(), strict=True))
    assert model.score(frame[list("abcd")], frame["target"]) == pytest.approx(
        in_memory.score(frame[list("abcd")], frame["target"]), abs=1e-3
    )


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie", "kullback_leibler", "expectile"])
def test_losses_of_targets_that_are_not_negative(loss, rng, tmp_path):
    frame = table(rng)
    frame["target"] = np.abs(np.round(frame["target"])) + 1.0
    frame["a"] = np.abs(frame["a"])
    in_memory = SparseRegressor(loss, "l1", 0.02).fit(frame[list("abcd")], frame["target"], frame["weight"])
    model = SparseRegressor(loss, "l1", 0.02)
    model.fit_files(in_files(frame, tmp_path / "table"), "target", weights="weight", columns=list("abcd"))
    assert model.result_.method == "readings"
    assert model.result_.objective == pytest.approx(in_memory.result_.objective, rel=2e-6)
    frame.loc[17, "target"] = -1.0
    if loss != "expectile":
        with pytest.raises(ValueError, match=rf"y has the value -1: loss='{loss}' expects"):
            model.fit_files(in_files(frame, tmp_path / "wrong"), "target", columns=list("abcd"))


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"high": 2.0, "low": 1.0}])
def test_classes_in_files(loss, class_weight, rng, tmp_path):
    frame = table(rng)
    models = [SparseClassifier(loss, alpha=0.01, class_weight=class_weight) for _ in range(2)]
    models[0].fit(frame[list("abcd")], frame["label"])
    models[1].fit_files(in_files(frame, tmp_path / "table"), "label", columns=list("abcd"))
    assert models[1].classes_.tolist() == ["high", "low"]
    assert models[1].result_.objective == pytest.approx(models[0].result_.objective, rel=2e-6)
    agree = models[0].predict(frame[list("abcd")]) == models[1].predict(frame[list("abcd")])
    assert np.mean(agree) > 0.99


def test_several_classes_are_fitted_one_against_the_rest(rng, tmp_path):
    frame = table(rng, categories=True)
    model = SparseSVC(0.01).fit_files(in_files(frame, tmp_path / "table"), "city", columns=list("abcd"))
    assert model.classes_.tolist() == ["Oslo", "Paris", "Rome"]
    assert model.coef_.shape == (3, 4)
    assert all(result.status is sb.Status.OPTIMAL for result in model.result_)


def test_categories_become_features_and_frames_are_predicted_by_name(rng, tmp_path):
    frame = table(rng, categories=True)
    columns = ["a", "b", "city"]
    model = QuantileRegressor(quantile=0.5, alpha=1e-3)
    model.fit_files(in_files(frame, tmp_path / "table"), "target", columns=columns)
    assert list(model.coef_by_name_) == ["a", "b", "city=Oslo", "city=Paris", "city=Rome"]
    dense = np.column_stack([frame["a"], frame["b"], *(frame["city"] == city for city in ("Oslo", "Paris", "Rome"))])
    expected = dense @ model.coef_ + model.intercept_
    assert model.predict(frame[columns]) == pytest.approx(expected)
    polars = pytest.importorskip("polars")
    assert model.predict(polars.from_pandas(frame[columns])) == pytest.approx(expected)
    in_memory = QuantileRegressor(quantile=0.5, alpha=1e-3).fit(dense, frame["target"])
    assert model.result_.objective == pytest.approx(in_memory.result_.objective, rel=2e-6)
    other = frame[columns].iloc[:2].assign(city="Berlin")
    with pytest.raises(ValueError, match="category 'Berlin' in column 'city', which was not in the data of the fit"):
        model.predict(other)
    with pytest.raises(ValueError, match="no column 'b'"):
        model.predict(frame[["a", "city"]])


def test_frames_in_memory(rng):
    frame = table(rng, categories=True)
    model = Lasso(0.01).fit_files(frame, "target", columns=["a", "city"])
    assert list(model.coef_by_name_) == ["a", "city=Oslo", "city=Paris", "city=Rome"]


def test_features_with_one_name_are_refused(rng):
    frame = table(rng, categories=True).rename(columns={"a": "city=Rome"})
    with pytest.raises(ValueError, match="2 features have the name 'city=Rome'"):
        Lasso(0.01).fit_files(frame, "target", columns=["b", "city", "city=Rome"])
    model = Lasso(0.01).fit(frame[["b", "c"]].head(100), frame["target"].head(100))
    model.feature_names_in_[:] = "b"
    with pytest.raises(ValueError, match="2 features have the name 'b'"):
        dict(model.coef_by_name_)


def test_tall_arrays_in_memory_are_read_in_chunks(rng, monkeypatch):
    monkeypatch.setattr(tall_fit, "LEAST_ROWS", 20_000)
    frame = table(rng)
    X, y, weight = frame[list("abcd")].to_numpy(), frame["target"].to_numpy(), frame["weight"].to_numpy()
    for name in MODELS:
        tall = MODELS[name]().fit(X, y, weight)
        assert tall.result_.method == "readings"
        monkeypatch.setattr(tall_fit, "LEAST_ROWS", 10**9)
        short = MODELS[name]().fit(X, y, weight)
        monkeypatch.setattr(tall_fit, "LEAST_ROWS", 20_000)
        assert short.result_.method != "readings"
        assert tall.result_.objective == pytest.approx(short.result_.objective, rel=2e-6)
    labels = frame["label"].to_numpy()
    model = SparseClassifier("hinge", alpha=0.01).fit(X, labels)
    assert model.result_.method == "readings"
    assert model.score(X, labels) > 0.7


def test_what_rows_in_chunks_cannot_have_is_named(rng):
    frame = table(rng, rows=100)
    models = {
        "constraints": Lasso(0.1, constraints="sum-to-zero"),
        "loss='sqrt'": SparseRegressor("sqrt"),
        "groups that overlap": SparseRegressor("squared", "group", groups=[[0, 1], [1, 2, 3]]),
    }
    for name, model in models.items():
        with pytest.raises(ValueError, match=name):
            model.fit_files(frame, "target", columns=list("abcd"))


def test_one_class_is_an_error_and_nothing_is_fitted(rng):
    frame = table(rng, rows=100).assign(label="same")
    model = SparseClassifier("hinge")
    with pytest.raises(ValueError, match=r"the target has one class, \['same'\]: expected two classes or more"):
        model.fit_files(frame, "label", columns=list("abcd"))
    assert not hasattr(model, "coef_")
    with pytest.raises(ValueError, match="expects counts that are at least 0"):
        SparseRegressor("poisson").fit_files(frame.assign(target=-1.0), "target", columns=list("abcd"))


def test_a_missing_number_is_named_with_its_file_and_row(rng, tmp_path):
    frame = table(rng)
    frame.loc[25_000, "c"] = np.nan
    folder = in_files(frame, tmp_path / "table")
    with pytest.raises(ValueError, match=r"'c'.*row 5000 of part-2.parquet"):
        Lasso(0.01).fit_files(folder, "target", columns=list("abcd"))


def test_a_limit_warns_and_keeps_the_best_model(rng):
    frame = table(rng)
    with pytest.warns(ConvergenceWarning, match="readings"):
        model = QuantileRegressor(quantile=0.8, alpha=1e-3, max_iter=1).fit_files(frame, "target", columns=list("abcd"))
    assert np.all(np.isfinite(model.coef_))


def test_dask_arrays_and_frames(rng):
    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")
    frame = table(rng)
    X, y = frame[list("abcd")].to_numpy(), frame["target"].to_numpy()
    local = QuantileRegressor(quantile=0.8, alpha=0.01).fit(X, y)
    lazy, target = da.from_array(X, chunks=(7000, 2)), da.from_array(y, chunks=5000)
    model = QuantileRegressor(quantile=0.8, alpha=0.01).fit(lazy, target)
    assert model.result_.objective == pytest.approx(local.result_.objective, rel=2e-6)
    predictions = model.predict(lazy)
    assert isinstance(predictions, da.Array)
    assert predictions.compute() == pytest.approx(model.predict(X))
    assert model.score(lazy, target.rechunk(7000)) == pytest.approx(model.score(X, y))
    parts = dd.from_pandas(frame, npartitions=4)
    classifier = SparseClassifier("logistic", alpha=0.01).fit(parts[list("abcd")], parts["label"])
    assert classifier.classes_.tolist() == ["high", "low"]
    labels = classifier.predict(parts[list("abcd")]).compute()
    assert classifier.score(parts[list("abcd")], parts["label"]) == pytest.approx(np.mean(labels == frame["label"]))
    assert classifier.predict_proba(parts[list("abcd")]).compute().sum(axis=1) == pytest.approx(np.ones(ROWS))


def test_the_command_line(rng, tmp_path):
    folder = in_files(table(rng, categories=True), tmp_path / "table")
    out = tmp_path / "model.csv"
    chosen = [part for name in ("a", "b", "city") for part in ("--column", name)]
    call = ["fit", str(folder), "--target", "target", "--loss", "quantile", "--quantile", "0.9", "--alpha", "0.001"]
    found = CliRunner().invoke(app, [*call, *chosen, "--json", "--out", str(out)])
    assert found.exit_code == 0, found.output
    content = json.loads(found.stdout)
    assert content["status"] == ["OPTIMAL"]
    assert list(content["coefficients"]) == ["a", "b", "city=Oslo", "city=Paris", "city=Rome"]
    lines = out.read_text().splitlines()
    assert lines[0] == "name,coefficient"
    assert len(lines) == 7
    printed = CliRunner().invoke(app, [*call, *chosen, "--no-progress"])
    assert "city=Rome" in printed.stdout
    assert "readings" in printed.stdout
    classes = ["fit", str(folder), "--target", "city", "--loss", "hinge", "--column", "a", "--no-progress"]
    assert CliRunner().invoke(app, [*classes, "--out", str(out)]).exit_code == 0
    assert out.read_text().splitlines()[0] == "name,Oslo,Paris,Rome"
    missing = CliRunner().invoke(app, ["fit", str(folder), "--target", "targt"])
    assert missing.exit_code == 2
    assert "did you mean 'target'?" in missing.stderr
    for given, said in {
        ("--quantile", "0.9"): "--quantile 0.9 has no meaning for --loss squared and --penalty l1: it belongs to",
        ("--penalty", "group"): "--penalty group: expected one of none, l1, elasticnet",
        ("--loss", "sqrt"): "--loss sqrt: expected one of squared, ",
    }.items():
        refused = CliRunner().invoke(app, ["fit", str(folder), "--target", "target", *given])
        assert refused.exit_code == 2
        assert said in refused.stderr.replace("\n", " ")


@pytest.fixture
def early(monkeypatch):
    """Read arrays in chunks from few rows on."""
    monkeypatch.setattr(tall_fit, "LEAST_ROWS", 20_000)


def test_a_penalty_that_needs_a_matrix_stays_in_memory(rng, early):
    X = rng.standard_normal((25_000, 5))
    model = FusedLasso(alpha=0.01, fused_alpha=0.5).fit(X, X[:, :3].sum(axis=1))
    assert model.result_.method != "readings"
    with pytest.raises(ValueError, match="a penalty on more than the single coefficients"):
        FusedLasso().fit_files(table(rng, rows=100), "target", columns=list("abcd"))


def test_models_with_several_alphas_or_targets_refuse_files(rng):
    frame = table(rng, rows=100)
    with pytest.raises(TypeError, match="needs its data in memory"):
        LassoCV().fit_files(frame, "target", columns=list("abcd"))
    with pytest.raises(ValueError, match="rows in chunks have one target"):
        MultiTaskLasso().fit_files(frame, "target", columns=list("abcd"))
    with pytest.raises(ValueError, match="the weights are zero everywhere"):
        Lasso().fit_files(frame.assign(weight=0.0), "target", weights="weight", columns=list("abcd"))
    with pytest.raises(ValueError, match="expected numbers; for classes use a classifier"):
        Lasso().fit_files(frame, "label", columns=list("abcd"))
    with pytest.raises(ValueError, match="Unknown label type"):
        SparseClassifier().fit_files(frame, "target", columns=list("abcd"))


def test_warm_starts_between_fits_of_both_kinds(rng, early):
    frame = table(rng)
    X, y = frame[list("abcd")].to_numpy(), frame["target"].to_numpy()
    model = SparseRegressor("absolute", alpha=0.01).fit(X, y)
    assert model.result_.method == "readings"
    model.set_params(warm_start=True)
    model.fit(X[:500], y[:500])
    model.fit_files(frame, "target", columns=["a", "b"])
    assert model.coef_.shape == (2,)
    model.set_params(positive=True).fit_files(frame, "target", columns=["a", "b"])
    assert np.all(model.coef_ >= 0)
    assert model.certificate_.error <= 1e-6


def test_a_constant_column_gets_a_moderate_coefficient(rng, early):
    X = np.column_stack([rng.standard_normal((25_000, 2)), np.full(25_000, 7.0)])
    y = X[:, 0] + rng.standard_normal(25_000)
    model = SparseRegressor("squared", None).fit(X, y)
    assert model.result_.method == "readings"
    assert np.abs(model.coef_).max() < 2


def test_weights_of_0_almost_everywhere(rng, early):
    X = rng.standard_normal((25_000, 2))
    weight = np.zeros(25_000)
    weight[[5, 777, 20_000]] = 1.0
    model = SparseRegressor("absolute", alpha=0.01).fit(X, X[:, 0], weight)
    assert model.certificate_.error <= 1e-6


def test_many_targets_on_a_kink(rng, early):
    X = rng.standard_normal((25_000, 2))
    y = np.maximum(0.0, X @ [1.0, -1.0] + rng.standard_normal(25_000) - 1.0)
    for target in (y, np.full(25_000, 3.0), np.round(y)):
        model = SparseRegressor("quantile", alpha=1e-3).fit(X, target)
        assert model.result_.method == "readings"
        assert model.certificate_.error <= 1e-6
        assert model.n_passes_ <= 12


def test_classes_of_weight_0_do_not_depend_on_chunks(rng):
    da = pytest.importorskip("dask.array")
    X, labels = rng.standard_normal((3000, 2)), rng.choice(["u", "v", "z"], 3000)
    weight = np.where(labels == "z", 0.0, 1.0)
    for chunks in (1000, 3000):
        model = SparseClassifier("hinge").fit(da.from_array(X, chunks=(chunks, 2)), labels, weight)
        assert model.classes_.tolist() == ["u", "v", "z"]
    assert 0.0 <= model.score(da.from_array(X, chunks=(1000, 2)), labels) <= 1.0


@pytest.mark.parametrize("separable", [False, True])
def test_a_logistic_regression_without_a_penalty_notices_separable_classes(separable):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 3))
    y = X[:, 0] + (0.0 if separable else rng.standard_normal(100_000)) > 0
    model = SparseClassifier("logistic", penalty=None)
    if separable:
        with pytest.warns(ConvergenceWarning, match="separable"):
            model.fit(X, y)
        assert model.result_.status is sb.Status.DIVERGED
    else:
        assert model.fit(X, y).result_.method == "readings"
