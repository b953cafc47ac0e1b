"""Usability of the estimators: groups by name, interruptions, warnings, documentation and plots."""

from __future__ import annotations

import inspect
import re
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import saddleback as sb
import saddleback.estimators as se
from saddleback.estimators.certified import Certified
from saddleback.estimators.documentation import documented

ESTIMATORS = [name for name in se.__all__ if issubclass(getattr(se, name), Certified)]
COLUMNS = ["age", "city_A", "city_B", "city_C", "income", "job_X", "job_Y"]
BY_INDEX = [[0], [1, 2, 3], [4], [5, 6]]
BY_NAME = {
    "lists": [["age"], ["city_A", "city_B", "city_C"], ["income"], ["job_X", "job_Y"]],
    "names beside lists": ["age", ["city_A", "city_B", "city_C"], "income", ["job_X", "job_Y"]],
    "dict": {"age": "age", "city": ["city_A", "city_B", "city_C"], "income": [4], "job": ["job_X", "job_Y"]},
    "labels": ["age", "city", "city", "city", "income", "job", "job"],
    "index": [pd.Index([name for name in COLUMNS if name.startswith(start)]) for start in ("a", "c", "i", "j")],
}


@pytest.fixture
def table(rng):
    X = pd.DataFrame(rng.standard_normal((80, 7)), columns=COLUMNS)
    return X, X["age"] - X["city_A"] + 0.5 * X["city_C"] + rng.standard_normal(80)


@pytest.fixture
def slow_data(rng):
    """A problem that takes minutes, because its tolerance cannot be reached."""
    X = rng.standard_normal((400, 300))
    return X, X[:, :20].sum(axis=1) + rng.standard_t(2, 400)


def endless(**parameters):
    return se.QuantileRegressor(alpha=1e-3, tol=0.0, max_iter=1e9, time_limit=60, **parameters)


def after(seconds, number=signal.SIGINT):
    timer = threading.Timer(seconds, signal.raise_signal, (number,))
    timer.start()
    return timer


# Groups by name -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", BY_NAME)
def test_groups_by_name_are_those_by_index(table, form):
    by_name = se.GroupLasso(0.2, groups=BY_NAME[form]).fit(*table)
    by_index = se.GroupLasso(0.2, groups=BY_INDEX).fit(*table)
    assert np.array_equal(by_name.coef_, by_index.coef_)
    assert np.any(by_name.coef_)
    assert not np.all(by_name.coef_)


def test_groups_by_name_in_cross_validation_and_pipelines(table):
    X, y = table
    by_name, by_index = (
        se.GroupLassoCV(groups=groups, n_alphas=4, eps=1e-3, cv=2).fit(X, y) for groups in (BY_NAME["dict"], BY_INDEX)
    )
    assert np.array_equal(by_name.coef_, by_index.coef_)
    scaled = make_pipeline(StandardScaler(), se.GroupLasso(0.1, groups=BY_NAME["lists"])).set_output(transform="pandas")
    assert np.isfinite(scaled.fit(X, y).predict(X)).all()
    along = se.GroupLasso(groups=BY_NAME["labels"]).path(X, y, n_alphas=3, eps=0.1)
    assert [name for name, _ in along.groups] == ["age", "city", "income", "job"]


def test_labels_need_no_names(table):
    X, y = table
    model = se.GroupLasso(0.2, groups=BY_NAME["labels"]).fit(X.to_numpy(), y)
    assert np.array_equal(model.coef_, se.GroupLasso(0.2, groups=BY_INDEX).fit(X, y).coef_)


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        ([["age"], ["city_a", "city_B", "city_C", "income", "job_X", "job_Y"]], "'city_a'.*did you mean 'city_A'"),
        ([["zzz"], COLUMNS], "'zzz', which X does not have: the columns are 'age', .*, ..."),
        ({"city": ["city_A", "city_B"]}, "no group for 'age', 'city_C', 'income', 'job_X', 'job_Y': every"),
        ([[*COLUMNS, "age"]], "'age' more than once"),
        (["age", "city"], "2 labels, but X has 7 columns: expected one label per column"),
    ],
)
def test_errors_of_wrong_groups_name_them(table, groups, match):
    with pytest.raises(ValueError, match=match):
        se.GroupLasso(groups=groups).fit(*table)


def test_names_of_columns_need_columns_with_names(table):
    X, y = table
    with pytest.raises(ValueError, match="X has none: pass a DataFrame"):
        se.GroupLasso(groups=BY_NAME["lists"]).fit(X.to_numpy(), y)


@pytest.mark.parametrize("form", ["dict", "labels"])
def test_weights_by_the_names_of_the_groups_are_those_in_their_order(table, form):
    weights = {"job": 0.5, "city": 3.0, "age": 1.0, "income": 0.0}
    by_name = se.GroupLasso(0.2, groups=BY_NAME[form], weights=weights).fit(*table)
    by_index = se.GroupLasso(0.2, groups=BY_INDEX, weights=[1.0, 3.0, 0.0, 0.5]).fit(*table)
    assert np.array_equal(by_name.coef_, by_index.coef_)
    assert not np.array_equal(by_name.coef_, se.GroupLasso(0.2, groups=BY_INDEX).fit(*table).coef_)


def test_weights_by_name_in_cross_validation_and_by_column(table):
    X, y = table
    weights = [1.0, 3.0, 0.5, 2.0]
    named = dict(zip(BY_NAME["dict"], weights, strict=True))
    few = {"n_alphas": 4, "eps": 1e-3, "cv": 2}
    by_name = se.GroupLassoCV(groups=BY_NAME["dict"], weights=named, **few).fit(X, y)
    assert np.array_equal(by_name.coef_, se.GroupLassoCV(groups=BY_INDEX, weights=weights, **few).fit(X, y).coef_)
    per_column = np.arange(1.0, 8.0)
    l1 = se.SparseRegressor(alpha=0.05, weights=dict(zip(COLUMNS, per_column, strict=True))).fit(X, y)
    assert np.array_equal(l1.coef_, se.SparseRegressor(alpha=0.05, weights=per_column).fit(X, y).coef_)


@pytest.mark.parametrize(
    ("groups", "weights", "match"),
    [
        ("dict", {"age": 1.0, "town": 2.0}, "weights has weights for 'town': .* each of the groups, 'age', 'city', "),
        ("dict", {"age": 1.0, "job": 2.0}, "weights has no weight for 'city', 'income': expected one weight for each"),
        ("lists", {"age": 1.0}, "weights is a dict, but the groups have no names: pass a list of weights"),
    ],
)
def test_weights_by_wrong_names_are_rejected(table, groups, weights, match):
    with pytest.raises(ValueError, match=match):
        se.GroupLasso(groups=BY_NAME[groups], weights=weights).fit(*table)


def test_unused_groups_give_a_warning(table):
    with pytest.warns(UserWarning, match="groups was set"):
        se.SparseRegressor(groups=BY_INDEX).fit(*table)


# Interruptions ------------------------------------------------------------------------------------------------------


@pytest.mark.not_on("mpi", reason="it is for the first signal that comes")
def test_ctrl_c_leaves_a_model(slow_data):
    X, y = slow_data
    timer = after(0.5)
    with pytest.warns(ConvergenceWarning, match=r"interrupted at a certified relative gap of \d") as told:
        model = endless().fit(X, y)
    timer.join()
    assert model.result_.status is sb.Status.INTERRUPTED
    assert model.certificate_.relative_gap < 1.0
    assert np.isfinite(model.predict(X)).all()
    assert told[0].filename == __file__


@pytest.mark.not_on("mpi", reason="it is for the first signal that comes")
def test_ctrl_c_ends_a_search_and_leaves_its_model(slow_data):
    X, y = slow_data
    timer, model = after(0.5), endless()
    with pytest.warns(ConvergenceWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        make_pipeline(StandardScaler(), model).fit(X, y)
    timer.join()
    assert np.isfinite(model.predict(X)).all()
    timer = after(0.5)
    with pytest.warns(ConvergenceWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        GridSearchCV(endless(), {"quantile": [0.2, 0.5]}, cv=2).fit(X, y)
    timer.join()


@pytest.mark.not_on("mpi", reason="it is for the first signal that comes")
def test_ctrl_c_without_a_model_is_passed_on(slow_data):
    X, y = slow_data
    for model, targets in (
        (se.SparseClassifier("hinge", alpha=1e-3, tol=0.0, max_passes=1e9), np.digitize(y, [-3, 3])),
        (se.QuantileRegressorCV(tol=0.0, max_iter=1e9), y),
    ):
        timer = after(0.5)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, targets)
        timer.join()
        assert not hasattr(model, "coef_")


@pytest.mark.parametrize("classes", [2, 3])
def test_the_time_limit_is_that_of_the_fit(slow_data, classes):
    X, y = slow_data
    labels = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    model = se.SparseClassifier("hinge", alpha=1e-3, tol=0.0, max_passes=1e9, time_limit=0.6)
    begun = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="time limit.*certified relative gap"):
        model.fit(X, labels)
    assert time.perf_counter() - begun < 5.0
    assert model.coef_.shape[0] == (1 if classes == 2 else 3)


def test_robust_pca_has_a_time_limit(rng):
    with pytest.warns(ConvergenceWarning, match="time limit"):
        pca = se.RobustPCA(noise=None, tol=0.0, max_iter=1e9, time_limit=0.3).fit(rng.standard_normal((40, 30)))
    assert np.isfinite(pca.low_rank_).all()


# The end of the grid ------------------------------------------------------------------------------------------------


def test_the_end_of_the_grid_gives_a_warning(table):
    X, y = table
    with pytest.warns(se.AlphaGridWarning, match="is the smallest of the grid: lower eps or pass alphas"):
        se.LassoCV(eps=0.5, n_alphas=5, cv=3).fit(X, y)
    with pytest.warns(se.AlphaGridWarning, match="is the largest of the grid: pass larger alphas"):
        se.LassoCV(alphas=[1e-8, 1e-7, 1e-6], cv=3).fit(X, np.random.default_rng(0).standard_normal(80))


def test_no_warning_inside_the_grid_or_if_all_coefficients_are_zero(table):
    X, y = table
    assert 0 < np.argmin(se.LassoCV(n_alphas=20, cv=3).fit(X, y).mean_loss_) < 19
    assert not np.any(se.LassoCV(alphas=[30.0, 20.0, 10.0], cv=3).fit(X, y).coef_)


# Documentation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter_and_attribute_is_documented(name, table):
    """Each has a type and a description, exactly once, and nothing else is documented."""
    cls = getattr(se, name)
    doc = inspect.getdoc(cls)
    parameters, attributes = re.search(r"Parameters\n-+\n(.*?)\n\nAttributes\n-+\n(.*?)(?:\n\n|\Z)", doc, re.S).groups()
    listed = re.findall(r"^(\w+) : \S.*\n    \S", parameters, re.M)
    assert listed == list(inspect.signature(cls).parameters)
    told = [each for line in re.findall(r"^(\w+_(?:, \w+_)*) : \S", attributes, re.M) for each in line.split(", ")]
    X, y = table
    few = {"n_alphas": 3, "eps": 0.5, "cv": 2} if name.endswith("CV") else {}
    targets = {"MultiTaskLasso": np.column_stack([y, y])}.get(
        name.removesuffix("CV"), y > 0 if "class_weight" in listed else y
    )
    model = cls(**few)
    if get_tags(model).target_tags.positive_only:
        targets = np.abs(targets)
    with pytest.warns() if few else nothing():
        model.fit(X, targets)
    missing = {each for each in vars(model) if each.endswith("_") and not each.startswith("_")} - set(told)
    assert not missing
    assert all(hasattr(model, each) for each in told)


class nothing:
    """A context that does nothing."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def test_a_parameter_without_a_description_is_named():
    class Model:
        """A model."""

        def __init__(self, alpha=1.0, depth=2):
            pass

    with pytest.raises(KeyError, match=r"Model has the parameter 'depth': describe it in documentation\.PARAMETERS"):
        documented({})(Model)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_takes_verbose_and_a_time_limit(name):
    assert {"verbose", "time_limit", "tol", "device"} <= set(inspect.signature(getattr(se, name)).parameters)


# Plots --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def pyplot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pyplot
    pyplot.close("all")


def legend(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def test_a_path_names_its_largest_coefficients(table, pyplot):
    X, y = table
    along = se.Lasso().path(X, y, n_alphas=5, eps=0.01)
    axis = along.plot()
    order = np.argsort(-np.abs(along.coefs[:, -1]))
    assert legend(axis) == [COLUMNS[j] for j in order if np.any(along.coefs[j])]
    assert legend(se.Lasso().path(X.to_numpy(), y, n_alphas=3, eps=0.5).plot())[0].startswith("feature ")
    assert axis.lines[0].get_drawstyle() == "default"


def test_groups_have_one_colour_each(table, pyplot):
    axis = se.GroupLasso(groups=BY_NAME["dict"]).path(*table, n_alphas=4, eps=0.01).plot()
    assert set(legend(axis)) == {"age", "city", "income", "job"}
    assert len({line.get_color() for line in axis.lines}) == 4
    assert len(axis.lines) == 7


def test_each_class_has_its_own_axes(table, pyplot):
    X, y = table
    labels = np.array(["low", "mid", "top"])[np.digitize(y, [-1, 1])]
    model = se.SparseClassifierCV("squared_hinge", alphas=[0.1, 0.03], cv=2).fit(X, labels)
    axes = model.plot()
    assert [axis.get_title() for axis in axes] == ["class low", "class mid", "class top", ""]
    assert axes[-1].get_ylabel() == "mean squared hinge loss on held-out samples"
    with pytest.raises(ValueError, match="ax has 1 axes: expected 3, one per class or target"):
        model.path_.plot(ax=axes[0])
    with pytest.raises(ValueError, match="ax has 1 axes: expected 4, one per class or target, and one for the loss"):
        model.plot(ax=axes[0])


def test_paths_that_jump_are_drawn_as_steps_and_mean_squared_errors_by_their_name(table, pyplot):
    X, y = table
    quantile = se.QuantileRegressor(quantile=0.4).path(X, y, n_alphas=3, eps=0.2)
    assert {line.get_drawstyle() for line in quantile.plot().lines} == {"steps-post"}
    lasso = se.LassoCV(alphas=[0.3, 0.1], cv=2).fit(X, y)
    axes = lasso.plot()
    assert axes[1].get_ylabel() == "mean squared error on held-out samples"
    drawn = axes[1].lines[2].get_ydata()
    assert np.allclose(drawn, lasso.mse_path_.mean(axis=1))


def test_displays_draw_a_path_and_a_choice_in_one_call(table, pyplot):
    X, y = table
    path = se.PathDisplay.from_estimator(se.Lasso(), X, y, n_alphas=4, eps=0.01)
    assert set(legend(path.axes_[0])) <= set(COLUMNS)
    again = se.PathDisplay.from_path(path.path, ax=pyplot.figure().gca())
    assert again.figure_ is again.axes_[0].figure is not path.figure_
    assert len(again.axes_[0].lines) == len(path.axes_[0].lines)
    model = se.LassoCV(n_alphas=6, cv=3, rule="1se")
    display = se.CVDisplay.from_estimator(model, X, y)
    assert not hasattr(model, "alpha_")
    fitted = display.estimator
    assert display.ax_.get_ylabel() == "mean squared error on held-out samples"
    assert legend(display.ax_) == [
        "single folds",
        "mean over folds",
        "one standard error",
        f"chosen: alpha = {fitted.alpha_:.3g}",
    ]
    band = display.ax_.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(2 * (fitted.mean_loss_ + fitted.loss_std_error_).max())
    assert se.CVDisplay.from_estimator(fitted).ax_ is not display.ax_


def test_displays_of_criteria_and_grids(table, pyplot):
    X, y = table
    bic = se.CVDisplay.from_estimator(se.LassoCV(criterion="bic", n_alphas=5), X, y)
    assert bic.ax_.get_ylabel() == "BIC"
    assert np.array_equal(bic.ax_.lines[0].get_ydata(), bic.estimator.criterion_path_)
    grid = se.CVDisplay.from_estimator(se.ElasticNetCV(l1_ratio=[0.2, 0.9], n_alphas=5, cv=2), X, y)
    assert legend(grid.ax_)[1] == f"mean over folds, l1_ratio={grid.estimator.l1_ratio_:g}"
    assert len(grid.ax_.lines) == 2 + 2 + 1  # the folds of the chosen ratio, a mean per ratio, the chosen alpha
    assert len(grid.estimator.plot()) == 2
    with pytest.raises(TypeError, match="Lasso, which does not choose alpha"):
        se.CVDisplay.from_estimator(se.Lasso(), X, y)


def test_columns_that_are_not_numbers_are_named(table):
    X, y = table
    frame = X.assign(city="Rome", when=pd.date_range("2020-01-01", periods=80), kind=pd.Categorical(["a", "b"] * 40))
    for model in (se.Lasso(0.1), se.LassoCV(cv=3)):
        with pytest.raises(ValueError, match=r"'city', 'when', 'kind': expected numbers.*pd\.get_dummies.*fit_formula"):
            model.fit(frame, y)
    with pytest.raises(ValueError, match=r"columns that are not numbers, 7, 8"):
        se.Lasso(0.1).fit(frame.drop(columns="when").to_numpy(), y)
    fitted = se.Lasso(0.1).fit(X, y)
    with pytest.raises(ValueError, match="columns that are not numbers, 'age'"):
        fitted.predict(X.assign(age="old"))


@pytest.mark.parametrize("stored", [lambda X: X, lambda X: X.to_numpy(), lambda X: sparse.csr_array(X.to_numpy())])
def test_values_that_are_missing_are_counted_by_column(table, stored):
    X, y = table
    holes = X.copy()
    holes.loc[2:4, "city_A"] = np.nan
    holes.loc[4:7, "job_Y"] = np.nan
    names = ["'city_A'", "'job_Y'"] if hasattr(stored(X), "columns") else ["1", "6"]
    told = f"Input X contains NaN in 6 of 80 rows, by column: {names[0]} (3), {names[1]} (4). Remove these rows"
    fitted = se.Lasso(0.1).fit(stored(X), y)
    for refused in (lambda: se.Lasso(0.1).fit(stored(holes), y), lambda: fitted.predict(stored(holes))):
        with pytest.raises(ValueError, match=re.escape(told)):
            refused()
    holes = X.copy()
    holes.loc[3, "age"] = np.inf
    with pytest.raises(ValueError, match=r"Input X contains infinity .* in 1 of 80 rows, by column: .*1"):
        se.Lasso(0.1).fit(stored(holes), y)


def test_lengths_that_differ_are_named(table):
    X, y = table
    with pytest.raises(ValueError, match="y has 79 values, and X has 80 samples"):
        se.Lasso(0.1).fit(X, y[1:])
    with pytest.raises(ValueError, match="sample_weight has 5 values: expected one for each of the 80 samples"):
        se.Lasso(0.1).fit(X, y, sample_weight=np.ones(5))
