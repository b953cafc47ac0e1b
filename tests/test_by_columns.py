"""Different penalties for different columns: ``ByColumns``, and the penalty of an estimator by columns."""

from __future__ import annotations

import numpy as np
import pytest
from optional import optional
from scipy import sparse

import saddleback as sb
from saddleback import estimators as se

cp = optional("cvxpy")
pandas = pytest.importorskip("pandas")

LISTS = [[5, 0, 7], [4, 1, 2, 6], [3, 8]]
"""Columns of three penalties, in no order."""


def of_lists():
    return [sb.L1(0.3), sb.GroupL2(0.4, [[0, 3], [1, 2]]), sb.Zero()]


def data(seed=0, m=30):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, 9))
    return A, A @ np.array([1.0, 0, 2, 0.5, 0, 0, -1, 0, 0.3]) + rng.standard_normal(m)


def both(loss, penalties=None, lists=LISTS):
    """Return the problem with one penalty by columns, and that with a list of matrices."""
    A, _ = data()
    terms = of_lists() if penalties is None else penalties
    one = sb.Problem(sb.ByColumns(list(zip(terms, lists, strict=True))), A, loss)
    return one, sb.Problem(terms, [A[:, columns] for columns in lists], loss)


def in_order(blocks, lists=LISTS):
    x = np.empty(sum(map(len, lists)))
    x[np.concatenate(lists)] = np.concatenate(blocks)
    return x


@pytest.mark.parametrize("make", [sb.Squared, sb.Absolute, lambda b: sb.Logistic(np.sign(b)), sb.Huber])
@pytest.mark.parametrize("method", ["auto", "sp-bcd", "pdhg", "admm"])
def test_it_is_the_problem_with_a_list_of_matrices(make, method):
    one, several = both(make(data()[1]))
    found, expected = (sb.solve(problem, method=method, tol=1e-9, max_passes=1e5) for problem in (one, several))
    assert found.status is sb.Status.OPTIMAL
    assert found.objective == pytest.approx(expected.objective, rel=1e-8)
    assert np.array_equal(found.x == 0, in_order(expected.x) == 0)
    assert sb.certify(one, in_order(expected.x), expected.y).relative_gap <= 1e-8


@pytest.mark.parametrize(
    ("terms", "lists"),
    [
        ([sb.TotalVariation1D(0.5), sb.L1(0.3), sb.SLOPE([2.0, 1.0], 0.3)], [[2, 3, 4, 5], [6, 0, 1], [8, 7]]),
        ([sb.TotalVariation1D(0.5), sb.L1(0.3)], [[4, 1, 2, 6], [5, 0, 7, 3, 8]]),
        ([sb.LInf(0.5), sb.Simplex(), sb.Isotonic()], [[4, 1, 2], [5, 0, 7], [6, 3, 8]]),
        ([sb.L1(0.5) + sb.Box(-0.3, [0.1, 0.2, 0.3, 0.4]), sb.GroupL2(0.3, 5)], [[4, 1, 2, 6], [5, 0, 7, 3, 8]]),
    ],
)
def test_any_penalties_of_the_catalogue(terms, lists):
    one, several = both(sb.Squared(data()[1]), terms, lists)
    found, expected = (sb.solve(problem, tol=1e-8) for problem in (one, several))
    assert found.status is sb.Status.OPTIMAL
    assert found.objective == pytest.approx(expected.objective, rel=1e-7)


@pytest.mark.parametrize("make", [sb.Squared, sb.Absolute, lambda b: sb.Hinge(np.sign(b))])
def test_alpha_max_and_the_path_of_a_list(make):
    one, several = both(make(data()[1]))
    largest = [sb.alpha_max(problem.penalty, problem.A, problem.loss) for problem in (one, several)]
    assert largest[0] == pytest.approx(largest[1], rel=1e-9)
    paths = [sb.path(problem.penalty, problem.A, problem.loss, n_alphas=6, tol=1e-8) for problem in (one, several)]
    assert paths[0][0].x[np.concatenate(LISTS[:2])] == pytest.approx(0.0, abs=1e-12)
    for found, expected in zip(*paths, strict=True):
        assert found.objective == pytest.approx(expected.objective, rel=1e-7)


def test_storages():
    A, b = data()
    penalty = sb.ByColumns(list(zip(of_lists(), LISTS, strict=True)))
    dense, sparse_ = (sb.solve(sb.Problem(penalty, M, sb.Squared(b)), tol=1e-9) for M in (A, sparse.csc_array(A)))
    assert sparse_.x == pytest.approx(dense.x, abs=1e-6)


def test_columns_are_rows_of_a_matrix():
    """Two equal tasks: the norm of a group is the square root of 2 times that of one task."""
    A, b = data()

    def solved(factor, target):
        terms = [sb.L1(0.3), sb.GroupL2(0.4 * factor, 2), sb.Zero()]
        penalty = sb.ByColumns(list(zip(terms, LISTS, strict=True)))
        return sb.solve(sb.Problem(penalty, A, sb.Squared(target)), tol=1e-10).x

    once, twice = solved(1.0, b), solved(np.sqrt(2.0), np.column_stack([b, b]))
    assert twice == pytest.approx(np.column_stack([once, once]), abs=1e-6)


def test_bounds_on_all_optima_belong_to_their_columns():
    one, several = both(sb.Squared(data()[1]))
    result = sb.solve(one, tol=1e-10)
    found = sb.bounds(one, result.x, result.y)
    expected = sb.bounds(several, [result.x[columns] for columns in LISTS], result.y)
    assert np.all((found.lower <= result.x) & (result.x <= found.upper))
    # the width of a bound is the root of the gap, of which rounding is a part
    assert found.lower == pytest.approx(in_order(expected.lower), abs=1e-7)
    assert found.upper == pytest.approx(in_order(expected.upper), abs=1e-7)


def test_the_bounds_of_single_groups_in_another_order_hold_all_optima():
    rng = np.random.default_rng(1)
    A, order, weights = rng.standard_normal((20, 60)), rng.permutation(60), np.linspace(0.5, 3.0, 60)
    b = A[:, order[:3]].sum(axis=1) + rng.standard_normal(20)
    problem = sb.Problem(sb.GroupL2(2.0, [[j] for j in order], weights[order]), A, sb.Absolute(b))
    optimum = sb.solve(problem, tol=1e-10).x
    for tol in (0.3, 0.05, 1e-3):
        rough = sb.solve(problem, tol=tol)
        found = sb.bounds(problem, rough.x, rough.y)
        assert np.all((found.lower <= optimum + 1e-7) & (optimum - 1e-7 <= found.upper))


def test_penalties_that_are_not_convex():
    A, b = data()
    parts = sb.ByColumns([(sb.MCP(0.3), LISTS[0] + LISTS[1]), (sb.Zero(), LISTS[2])])
    weighted = sb.MCP(0.3, weights=np.where(np.isin(np.arange(9), LISTS[2]), 0.0, 1.0))
    assert not parts.convex
    found, expected = (sb.reweighted(each, A, sb.Squared(b), tol=1e-9) for each in (parts, weighted))
    assert found.x == pytest.approx(expected.x, abs=1e-6)
    assert found.objective == pytest.approx(expected.objective, rel=1e-8)


def test_parts_that_are_not_convex_beside_others():
    """The bends of scattered parts belong to their own blocks: what they add to the majoriser is the penalty."""
    A, b = data()
    rng = np.random.default_rng(3)
    scad = sb.SCAD(0.2, groups=[[0, 2], [1]])
    parts = sb.ByColumns([(sb.MCP(0.3), [7, 1]), (scad, [4, 8, 0]), (sb.L1(0.3), [2, 3, 5, 6])])
    bends, majoriser = parts.bends((9,)), parts.majoriser()
    blocks = majoriser.bind((9,)).blocks()
    for x in rng.standard_normal((20, 9)):
        sizes = np.sqrt(blocks.sums(x**2))
        total = majoriser.value(x) + sum(bend.value(sizes) for bend in bends)
        assert total == pytest.approx(parts.value(x), rel=1e-12)
    result = sb.reweighted(parts, A, sb.Squared(b), tol=1e-9)
    assert result.status is sb.Status.OPTIMAL
    again = sb.solve(sb.Problem(parts.majoriser(result.x), A, sb.Squared(b)), tol=1e-9)
    assert again.x == pytest.approx(result.x, abs=1e-4)
    # a penalty that couples columns without a norm has no search
    weights = np.linspace(1.0, 0.1, 4)
    other = sb.reweighted([sb.MCP(0.3), sb.SLOPE(weights, 0.3)], [A[:, :5], A[:, 5:]], sb.Squared(b), tol=1e-9)
    assert other.status is sb.Status.OPTIMAL


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "parts is empty"),
        ([(sb.L1(1.0), [0, 1]), (sb.Zero(), [1, 2])], "column 1 twice"),
        ([(sb.L1(1.0), [0, 1, 9])], "column 9, but there are 3"),
        ([(sb.L1(1.0), [0, 2])], r"no penalty for the column \[1\]"),
        ([(sb.L1(1.0), [])], r"parts\[0\] has the columns \[\]"),
        ([(sb.L1(1.0), [-1, 0])], "at least 0"),
        ([(sb.L1(1.0), [0.5])], "indices"),
        ([(sb.Squared([1.0]), [0])], "expected a pair of a penalty"),
        ([sb.L1(1.0)], "expected a pair of a penalty"),
    ],
)
def test_errors_name_the_column(parts, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sb.Problem(sb.ByColumns(parts), np.eye(3), sb.Squared(np.ones(3)))


def test_a_box_is_refused_beside_groups():
    with pytest.raises(TypeError, match="Box cannot be added to ByColumns"):
        sb.ByColumns([(sb.GroupL2(1.0, 1), [0])]) + sb.Box(0, 1)
    with pytest.raises(TypeError, match="L1 cannot be added to ByColumns"):
        sb.ByColumns([(sb.L1(1.0), [0])]) + sb.L1(1.0)


def test_a_file_cannot_have_it(tmp_path):
    np.savez(tmp_path / "problem.npz", A=np.eye(3), b=np.ones(3), penalty="ByColumns", parts=np.arange(3))
    with pytest.raises(ValueError, match="penalty='ByColumns' is not known"):
        sb.read_problem(tmp_path / "problem.npz")


# --- estimators ------------------------------------------------------------------------------------------------------

NAMES = ["age", "income", "north", "south", "west", "sex", "height"]
PENALTY = {"l1": ["income", "age"], "group": {"region": ["west", "north"], "rest": ["south"]}, None: ["sex"]}
WITH_RATIO = PENALTY | {"elasticnet": ["height"]}
BY_INDEX = {"l1": [1, 0], "group": [[4, 2], [3]], None: [5], "elasticnet": [6]}


def table(loss="squared", rows=60):
    rng = np.random.default_rng(3)
    X = pandas.DataFrame(rng.standard_normal((rows, 7)) + 0.2, columns=NAMES)
    u = 0.5 + X["age"] - 0.5 * X["west"] + 0.4 * X["sex"] + rng.standard_normal(rows)
    targets = {"poisson": np.round(np.exp(0.3 * u)), "gamma": np.exp(0.3 * u), "logistic": np.where(u > 0, 1, -1)}
    return X, targets.get(loss, u)


def expression(w, alpha, ratio=0.5, weights=(1.0, 1.0, 2.0**0.5, 1.0)):
    """Return the penalty WITH_RATIO of coefficients in the order of NAMES."""
    age, income, region, south = weights
    norms = age * cp.abs(w[0]) + income * cp.abs(w[1]) + region * cp.norm(w[[4, 2]], 2) + south * cp.abs(w[3])
    return alpha * (norms + ratio * cp.abs(w[6]) + (1 - ratio) / 2 * cp.square(w[6]))


def mean_loss(loss, u, y):
    values = {
        "squared": lambda: cp.square(y - u) / 2,
        "absolute": lambda: cp.abs(y - u),
        "poisson": lambda: cp.exp(u) - cp.multiply(y, u),
        "gamma": lambda: cp.multiply(y, cp.exp(-u)) + u,
        "logistic": lambda: cp.logistic(-cp.multiply(y, u)),
    }
    return cp.sum(values[loss]()) / y.size


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", ["squared", "absolute", "poisson", "gamma", "logistic"])
@pytest.mark.parametrize("bounds", ["none", "positive", "some"])
def test_the_objective_is_the_minimum(loss, intercept, bounds):
    X, y = table(loss)
    make = se.SparseClassifier if loss == "logistic" else se.SparseRegressor
    given = {"none": {}, "positive": {"positive": True}, "some": {"lower": {"age": 0.1, "west": -0.1}, "upper": 0.8}}
    model = make(loss, WITH_RATIO, 0.1, l1_ratio=0.3, fit_intercept=intercept, tol=1e-8, **given[bounds]).fit(X, y)
    w, b = cp.Variable(7), cp.Variable()
    low = np.array([0.1, -np.inf, -np.inf, -np.inf, -0.1, -np.inf, -np.inf])
    held = np.isfinite(low)
    within = {"none": [], "positive": [w >= 0], "some": [w[held] >= low[held], w <= 0.8]}[bounds]
    objective = mean_loss(loss, X.to_numpy() @ w + (b if intercept else 0.0), np.asarray(y)) + expression(w, 0.1, 0.3)
    optimum = cp.Problem(cp.Minimize(objective), within).solve(solver=cp.CLARABEL)
    assert model.certificate_.primal_value == pytest.approx(optimum, rel=1e-6)
    w.value, b.value = model.coef_.ravel(), np.ravel(model.intercept_)[0]
    assert objective.value == pytest.approx(optimum, rel=1e-6)
    assert all(np.all(constraint.violation() <= 1e-7) for constraint in within)


def test_names_and_indices_give_the_same_fit():
    X, y = table()
    named = se.SparseRegressor(penalty=WITH_RATIO, alpha=0.2).fit(X, y)
    for given in (X, X.to_numpy()):
        assert np.array_equal(se.SparseRegressor(penalty=BY_INDEX, alpha=0.2).fit(given, y).coef_, named.coef_)
    order = ["sex", "west", "age", "height", "south", "income", "north"]
    other = se.SparseRegressor(penalty=WITH_RATIO, alpha=0.2, tol=1e-9).fit(X[order], y)
    assert [other.coef_by_name_[name] for name in NAMES] == pytest.approx(named.coef_, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "columns", "options"),
    [
        ("l1", NAMES, {}),
        ("l1", "rest", {}),
        ("elasticnet", NAMES[::-1], {"l1_ratio": 0.3}),
        ("group", [NAMES[:3], NAMES[3:]], {"groups": [NAMES[:3], NAMES[3:]]}),
        ("group", "rest", {"groups": 1}),
        ("sparse_group", [NAMES[::2], NAMES[1::2]], {"groups": [NAMES[::2], NAMES[1::2]], "l1_ratio": 0.4}),
        ("group_elasticnet", [NAMES[::2], NAMES[1::2]], {"groups": [NAMES[::2], NAMES[1::2]], "l1_ratio": 0.4}),
        (None, NAMES, {}),
        ("mcp", NAMES, {"gamma": 2.5}),
        ("adaptive", [NAMES[:3], NAMES[3:]], {"groups": [NAMES[:3], NAMES[3:]]}),
    ],
)
def test_a_dict_with_one_penalty_is_that_penalty(name, columns, options):
    X, y = table()
    shared = {key: value for key, value in options.items() if key != "groups"}
    plain = se.SparseRegressor(penalty=name, alpha=0.1, tol=1e-9, **options).fit(X, y)
    model = se.SparseRegressor(penalty={name: columns}, alpha=0.1, tol=1e-9, **shared).fit(X, y)
    assert model.coef_ == pytest.approx(plain.coef_, abs=1e-5)
    assert model.certificate_.primal_value == pytest.approx(plain.certificate_.primal_value, rel=1e-8)
    assert np.array_equal(model.selected_, plain.selected_)
    if name is not None:
        paths = [each.path(X, y, n_alphas=5) for each in (model, plain)]
        assert paths[0].alphas == pytest.approx(paths[1].alphas, rel=1e-6)


def test_weights_by_name():
    X, y = table()
    weights = {"age": 3.0, "region": 0.5}
    model = se.SparseRegressor(penalty=WITH_RATIO, alpha=0.1, weights=weights, tol=1e-9).fit(X, y)
    w, b = cp.Variable(7), cp.Variable()
    objective = mean_loss("squared", X.to_numpy() @ w + b, np.asarray(y))
    objective += expression(w, 0.1, weights=(3.0, 1.0, 0.5, 1.0))
    assert model.certificate_.primal_value == pytest.approx(cp.Problem(cp.Minimize(objective)).solve(), rel=1e-6)


def test_the_path_starts_with_the_columns_without_a_penalty():
    X, y = table("gamma")
    path = se.SparseRegressor("gamma", WITH_RATIO).path(X, y, n_alphas=5)
    assert np.array_equal(np.any(path.coefs[:, :1], axis=1), np.array(NAMES) == "sex")
    assert all(result.status is sb.Status.OPTIMAL for result in path.results)
    below = se.SparseRegressor("gamma", WITH_RATIO, 0.99 * path.alphas[0], tol=1e-9).fit(X, y)
    assert np.count_nonzero(below.coef_) > 1


@pytest.mark.filterwarnings("ignore::saddleback.estimators.cross_validation.AlphaGridWarning")
@pytest.mark.parametrize("criterion", [None, "bic"])
def test_the_choice_of_alpha(criterion):
    X, y = table()
    model = se.SparseRegressorCV(
        penalty=WITH_RATIO, l1_ratio=[0.3, 0.9], n_alphas=5, criterion=criterion, relaxed=True, tol=1e-7
    ).fit(X, y)
    used = np.flatnonzero(model.coef_)
    assert {NAMES.index(name) for name in ("north", "west")}.isdisjoint(used) or {2, 4} <= {*used.tolist()}
    refit = np.linalg.lstsq(np.column_stack([np.ones(y.size), X.to_numpy()[:, used]]), y, rcond=None)[0]
    assert model.coef_[used] == pytest.approx(refit[1:], abs=1e-4)
    again = se.SparseRegressor(penalty=WITH_RATIO, alpha=model.alpha_, l1_ratio=model.l1_ratio_, tol=1e-8).fit(X, y)
    place = int(np.argmin(np.abs(model.path_.alphas - model.alpha_)))
    assert model.path_.coefs[:, place] == pytest.approx(again.coef_, abs=1e-3)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_several_classes_in_one_problem():
    X, y = table()
    classes = np.digitize(y, [0.0, 1.0])
    model = se.SparseClassifier("multinomial", PENALTY | {None: ["sex", "height"]}, 0.05, tol=1e-8).fit(X, classes)
    W, b, own = cp.Variable((7, 3)), cp.Variable((1, 3)), np.eye(3)[classes]
    u = X.to_numpy() @ W + np.ones((60, 1)) @ b
    norms = cp.norm1(W[:2]) + np.sqrt(2) * cp.norm(W[[4, 2]], "fro") + cp.norm(W[3], 2)
    mean = cp.sum(cp.log_sum_exp(u, axis=1) - cp.sum(cp.multiply(own, u), axis=1)) / 60
    assert model.certificate_.primal_value == pytest.approx(
        cp.Problem(cp.Minimize(mean + 0.05 * norms)).solve(solver=cp.CLARABEL), rel=1e-6
    )


def test_terms_of_a_formula_stand_for_their_features():
    pytest.importorskip("formulaic")
    X, y = table(rows=200)
    data = X.assign(y=y, job=np.random.default_rng(0).choice(["a", "b", "c"], 200))
    model = se.SparseRegressor(penalty={"l1": ["age", "sex"], "group": ["job"]}, alpha=0.01, tol=1e-9)
    model.fit_formula("y ~ age + sex + job", data)
    features = [name for name in model.feature_names_in_ if name.startswith("job")]
    expected = se.SparseRegressor(penalty={"l1": ["age", "sex"], "group": [features]}, alpha=0.01, tol=1e-9)
    expected.fit(model.formula_.features_of(data), y)
    assert len(features) == 2
    assert model.coef_ == pytest.approx(expected.coef_, abs=1e-7)


def test_rows_in_chunks(tmp_path):
    pytest.importorskip("pyarrow")
    X, y = table(rows=30_000)
    X.assign(y=y).to_parquet(tmp_path / "table.parquet")
    in_files = se.SparseRegressor("absolute", WITH_RATIO, 0.05, positive=True)
    in_files.fit_files(tmp_path / "table.parquet", "y")
    in_memory = se.SparseRegressor("absolute", WITH_RATIO, 0.05, positive=True).fit(X, y)
    assert in_files.result_.method == "readings"
    assert in_files.result_.objective == pytest.approx(in_memory.result_.objective, rel=2e-6)
    with pytest.raises(ValueError, match="penalty='lasso' is not known"):
        se.SparseRegressor("absolute", {"lasso": "rest"}).fit_files(tmp_path / "table.parquet", "y")
    bounded = se.SparseRegressor("absolute", WITH_RATIO, 0.05, upper=0.5)
    with pytest.raises(ValueError, match="a penalty on more than the single coefficients or groups"):
        bounded.fit_files(tmp_path / "table.parquet", "y")


@pytest.mark.parametrize(
    ("penalty", "options", "message"),
    [
        ({"l1": ["age", "incom"]}, {}, r"penalty\['l1'\] has the column 'incom'.*did you mean 'income'"),
        ({"l1": [0, 7]}, {}, r"the column 7, but X has 7 columns"),
        ({"l1": NAMES[:5]}, {}, r"no penalty for 'sex', 'height': add None"),
        ({"l1": NAMES, None: ["sex"]}, {}, r"the column 'sex' in 'l1' and in None"),
        ({"l1": [*NAMES, "age"]}, {}, "the column 'age' twice in 'l1'"),
        ({"l1": "rest", None: "rest"}, {}, "'rest' for 'l1', None"),
        ({"l1": "age"}, {}, "expected a list of columns"),
        ({"group": NAMES}, {}, r"outside of a group: expected a list of groups, as \[\['age'"),
        ({"l1": [NAMES]}, {}, r"penalty\['l1'\] has groups"),
        ({"group": [[], NAMES]}, {}, "empty group"),
        ({"lasso": NAMES}, {}, "penalty='lasso' is not known"),
        ({}, {}, "empty dict"),
        ({"group": [NAMES]}, {"groups": 7}, "the groups are in the dict"),
        ({"l1": NAMES}, {"weights": np.ones(7)}, "weights is ndarray, and penalty is a dict"),
        ({"l1": NAMES[1:], None: NAMES[:1]}, {"weights": {"age": 2.0}}, "weights has 'age', which is no column"),
    ],
)
def test_the_errors_of_a_dict_name_the_column(penalty, options, message):
    X, y = table()
    with pytest.raises((ValueError, TypeError), match=message):
        se.SparseRegressor(penalty=penalty, **options).fit(X, y)


def test_names_need_a_frame():
    X, y = table()
    with pytest.raises(ValueError, match="the columns of X have no names"):
        se.SparseRegressor(penalty=WITH_RATIO).fit(X.to_numpy(), y)


def test_a_parameter_that_no_part_reads_warns():
    X, y = table()
    with pytest.warns(UserWarning, match="l1_ratio was set"):
        se.SparseRegressor(penalty=PENALTY | {None: ["sex", "height"]}, l1_ratio=0.9).fit(X, y)
