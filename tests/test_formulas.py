"""Models by formula."""

from __future__ import annotations

import builtins
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import saddleback.estimators as se

pytest.importorskip("formulaic")

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"region": RNG.choice(list("abcd"), 120), "income": RNG.gamma(2, 1, 120), "age": RNG.standard_normal(120)}
)
TABLE["y"] = np.exp(0.5 * (TABLE["region"] == "b") + 0.2 * TABLE["income"] + 0.1 * RNG.standard_normal(120))
TABLE["kind"] = np.where(TABLE["y"] > TABLE["y"].median(), "high", "low")
TABLE["weight"] = RNG.uniform(0.5, 2.0, 120)
BY_HAND = pd.get_dummies(TABLE["region"], dtype=float)[["b", "c", "d"]].assign(income=TABLE["income"])


def test_a_formula_is_the_fit_to_its_columns():
    model = se.Lasso(0.01).fit_formula("np.log(y) ~ C(region) + income", TABLE)
    same = se.Lasso(0.01).fit(BY_HAND, np.log(TABLE["y"]))
    assert model.feature_names_in_.tolist() == ["C(region)[T.b]", "C(region)[T.c]", "C(region)[T.d]", "income"]
    assert_allclose(model.coef_, same.coef_)
    assert_allclose(model.intercept_, same.intercept_)
    assert_allclose(model.predict(TABLE), same.predict(BY_HAND))
    assert model.score(TABLE, np.log(TABLE["y"])) == pytest.approx(same.score(BY_HAND, np.log(TABLE["y"])))
    few = TABLE.loc[TABLE["region"] == "c", ["income", "region"]]  # one level, and another order of the columns
    assert_allclose(model.predict(few), same.predict(BY_HAND.loc[few.index]))
    assert_allclose(model.predict(model.formula_.features_of(TABLE)), model.predict(TABLE))


def test_a_formula_is_code_and_all_pages_say_so(tmp_path):
    """Whoever writes a formula runs a program, also when the model predicts."""
    table = pd.DataFrame({"x": np.arange(9.0), "y": np.arange(9.0) ** 2})
    formula = f"y ~ x + I(x**2 + 0 * len(__import__('os').makedirs('{tmp_path}/made', exist_ok=True) or '1'))"
    model = se.Lasso(0.01).fit_formula(formula, table)
    (tmp_path / "made").rmdir()
    model.predict(table)
    assert (tmp_path / "made").is_dir()
    root = Path(__file__).parents[1]
    texts = [(root / name).read_text(encoding="utf-8") for name in ("SECURITY.md", "docs/inference.md")]
    for said in [*texts, se.Lasso.fit_formula.__doc__]:
        assert "of Python" in " ".join(said.split())


@pytest.mark.parametrize(
    "model", [se.GroupLasso(0.05), se.SparseGroupLasso(0.05), se.SparseRegressor("huber", "group", 0.05)]
)
def test_every_term_is_a_group(model):
    fitted = model.fit_formula("y ~ C(region) * age + income", TABLE)
    assert fitted.formula_.groups == {
        "C(region)": [f"C(region)[T.{level}]" for level in "bcd"],
        "age": ["age"],
        "income": ["income"],
        "C(region):age": [f"C(region)[T.{level}]:age" for level in "bcd"],
    }
    features, target = fitted.formula_.features_of(TABLE), TABLE["y"]
    by_name = clone(model).set_params(groups=fitted.formula_.groups).fit(features, target)
    assert np.array_equal(fitted.coef_, by_name.coef_)
    assert model.groups is None
    sizes = [own.size for _, own in fitted.path(TABLE, target, n_alphas=3).groups]
    assert sizes == [3, 1, 1, 3]


def test_groups_of_the_model_and_weights_by_term():
    alone = se.GroupLasso(0.05, groups=1).fit_formula("y ~ region + income", TABLE)
    assert np.array_equal(alone.coef_, se.GroupLasso(0.05).fit(alone.formula_.features_of(TABLE), TABLE["y"]).coef_)
    free = se.GroupLasso(10.0, weights={"region": 1.0, "income": 0.0}).fit_formula("y ~ region + income", TABLE)
    assert free.coef_by_name_["income"] > 0
    assert np.count_nonzero(free.coef_) == 1


def test_cross_validation_knows_the_groups():
    model = se.GroupLassoCV(alphas=[0.3, 0.02], cv=3).fit_formula("y ~ region + income", TABLE)
    features = model.formula_.features_of(TABLE)
    same = clone(model).set_params(groups=[3, 1]).fit(features, TABLE["y"])
    assert_allclose(model.loss_path_, same.loss_path_)
    assert_allclose(model.predict(TABLE), same.predict(features))


def test_classes_and_weights():
    model = se.SparseClassifier("logistic", alpha=0.01).fit_formula("kind ~ region + income", TABLE, "weight")
    same = clone(model).fit(BY_HAND, TABLE["kind"], sample_weight=TABLE["weight"])
    assert model.classes_.tolist() == ["high", "low"]
    assert_allclose(model.coef_, same.coef_)
    assert np.array_equal(model.predict(TABLE), same.predict(BY_HAND))
    assert_allclose(model.predict_proba(TABLE), same.predict_proba(BY_HAND))


def test_several_targets():
    model = se.MultiTaskLasso(0.1).fit_formula("y + age ~ region + income", TABLE)
    assert_allclose(model.coef_, se.MultiTaskLasso(0.1).fit(BY_HAND, TABLE[["y", "age"]]).coef_)


def test_the_intercept_is_that_of_the_model():
    model = se.Lasso(0.01, fit_intercept=False).fit_formula("y ~ income - 1", TABLE)
    assert model.feature_names_in_.tolist() == ["income"]
    with pytest.raises(
        ValueError, match="has no intercept, but fit_intercept=True: pass fit_intercept=False, or leave out"
    ):
        se.Lasso().fit_formula("y ~ income - 1", TABLE)
    with pytest.raises(ValueError, match="has an intercept, but fit_intercept=False: pass fit_intercept=True, or add"):
        se.Lasso(fit_intercept=False).fit_formula("y ~ income", TABLE)


def test_inference_takes_the_table():
    model = se.QuantileRegressor(alpha=0, tol=1e-9).fit_formula("y ~ region + income", TABLE)
    features = model.formula_.features_of(TABLE)
    assert_allclose(model.inference(TABLE).covariance, model.inference(features, TABLE["y"]).covariance)
    assert np.array_equal(model.bootstrap(TABLE, n_boot=3).draws, model.bootstrap(features, TABLE["y"], n_boot=3).draws)
    process = model.quantile_process(TABLE, quantiles=[0.5], kind="iid")
    assert list(process.names) == ["intercept", *model.feature_names_in_]
    assert model.summary(TABLE).to_frame().index.tolist() == list(process.names)


def test_copies_and_later_fits():
    model = se.GroupLasso(0.05).fit_formula("y ~ region + income", TABLE)
    copied = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copied.predict(TABLE), model.predict(TABLE))
    assert not hasattr(clone(model), "formula_")
    model.fit(BY_HAND, TABLE["y"])
    assert_allclose(model.coef_, se.GroupLasso(0.05).fit(BY_HAND, TABLE["y"]).coef_)
    assert_allclose(model.predict(BY_HAND), BY_HAND.to_numpy() @ model.coef_ + model.intercept_)


def test_what_is_refused(monkeypatch):
    model = se.Lasso(0.01).fit_formula("y ~ region + income", TABLE)
    with pytest.raises(ValueError, match="X has a category that the data of the fit do not have"):
        model.predict(TABLE.assign(region="z"))
    with pytest.raises(ValueError, match="null values"):
        model.predict(TABLE.assign(income=np.nan))
    with pytest.raises(ValueError, match="has no target"):
        se.Lasso().fit_formula("~ income", TABLE)
    with pytest.raises(ValueError, match="has no features"):
        se.Lasso().fit_formula("y ~ 1", TABLE)
    with pytest.raises(TypeError, match="formula is int"):
        se.Lasso().fit_formula(3, TABLE)
    with pytest.raises(TypeError, match="data is ndarray"):
        se.Lasso().fit_formula("y ~ x", np.eye(3))
    with pytest.raises(ValueError, match="which is no column of the data"):
        se.SparseClassifier().fit_formula("np.log(y) ~ income", TABLE)
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("formulaic"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'saddleback\[formula\]'"):
        se.Lasso().fit_formula("y ~ income", TABLE)
