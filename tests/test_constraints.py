"""Constraints, bounds, offsets and overlapping groups of the linear models."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import mean_tweedie_deviance
from sklearn.model_selection import cross_val_score

import saddleback as sb
from saddleback.estimators import (
    ElasticNet,
    GroupLasso,
    Lasso,
    LassoCV,
    MultiTaskLasso,
    QuantileRegressor,
    SparseClassifier,
    SparseGroupLasso,
    SparseRegressor,
    SparseSVC,
)
from saddleback.methods.interior.barrier import Stiffness
from saddleback.methods.interior.system import ByColumns, factored
from saddleback.operators import as_operator

cp = pytest.importorskip("cvxpy")

TRUE = np.array([1.0, 2.0, -1.0, 0.0, 0.0, 0.5])


def data(rng, n=80):
    X = rng.standard_normal((n, TRUE.size))
    return X, 3 + X @ TRUE + 0.3 * rng.standard_normal(n)


def loss_of(model, X, y, w, b):
    """Return the mean loss of a model as CVXPY writes it."""
    r = y - X @ w - b
    if isinstance(model, QuantileRegressor):
        return cp.sum(cp.maximum(model.quantile * r, (model.quantile - 1) * r)) / len(y)
    if isinstance(model, SparseSVC):
        return cp.sum(cp.pos(1 - cp.multiply(y, X @ w + b))) / len(y)
    if isinstance(model, SparseClassifier):
        return cp.sum(cp.logistic(-cp.multiply(y, X @ w + b))) / len(y)
    return cp.sum_squares(r) / (2 * len(y))


MODELS = [
    Lasso(0.1, tol=1e-9),
    ElasticNet(0.1, l1_ratio=0.7, tol=1e-9),
    QuantileRegressor(quantile=0.3, alpha=0.05, tol=1e-9),
    SparseSVC(0.02, tol=1e-9),
    SparseClassifier("logistic", alpha=0.02, tol=1e-9),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("constraint", ["zero-sum", "sum-to-one", "monotone", "decreasing", "inequalities"])
def test_constrained_models_agree_with_cvxpy(model, constraint, rng):
    X, y = data(rng)
    C, target = rng.standard_normal((3, 6)), y
    if isinstance(model, (SparseSVC, SparseClassifier)):
        target = np.where(y > 3, 1.0, -1.0)
    given = sb.LinearConstraint(sparse.csr_array(C), [-0.1, -np.inf, 0.2], [0.1, 0.3, 0.2])
    fitted = clone(model).set_params(constraints=given if constraint == "inequalities" else constraint).fit(X, target)
    w, b = cp.Variable(6), cp.Variable()
    conditions = {
        "zero-sum": [cp.sum(w) == 0],
        "sum-to-one": [cp.sum(w) == 1],
        "monotone": [-cp.diff(w) <= 0],
        "decreasing": [cp.diff(w) <= 0],
        "inequalities": [C[:1] @ w <= 0.1, -C[:1] @ w <= 0.1, C[1:2] @ w <= 0.3, C[2:] @ w == 0.2],
    }[constraint]
    penalty = model.alpha * cp.norm1(w)
    if isinstance(model, ElasticNet):
        penalty = model.alpha * (0.7 * cp.norm1(w) + 0.15 * cp.sum_squares(w))
    program = cp.Problem(cp.Minimize(loss_of(model, X, target, w, b) + penalty), conditions)
    program.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert np.isclose(fitted.certificate_.primal_value, program.value, rtol=1e-7)
    assert np.allclose(np.ravel(fitted.coef_), w.value, atol=1e-3)
    expected = np.concatenate([np.atleast_1d(condition.dual_value) for condition in conditions])
    if constraint == "monotone":
        expected = -expected  # a lower bound has a negative multiplier
    if constraint == "inequalities":
        expected = np.array([expected[0] - expected[1], *expected[2:]])
    if np.any(np.abs(w.value) > 1e-4):  # at 0 there are many multipliers
        assert np.allclose(fitted.constraint_multipliers_[0], expected, atol=1e-6)


@pytest.mark.parametrize("model", [Lasso(0.1, tol=1e-12), QuantileRegressor(alpha=0.05, tol=1e-12)])
def test_multipliers_are_the_derivatives_of_the_minimum(model, rng):
    """If the bound of an active constraint moves by t, the minimum changes by -t times the multiplier."""
    X, y = data(rng)
    C, t = rng.standard_normal((2, 6)), 1e-4
    free = C @ clone(model).fit(X, y).coef_

    def fit(bound):
        constraint = sb.LinearConstraint(C, upper=[free[0] - 0.5 + bound, free[1] + 9.0])
        return clone(model).set_params(constraints=constraint).fit(X, y)

    middle = fit(0.0)
    slope = (fit(t).certificate_.primal_value - fit(-t).certificate_.primal_value) / (2 * t)
    assert middle.constraint_multipliers_[0][0] > 0
    assert np.isclose(slope, -middle.constraint_multipliers_[0][0], rtol=1e-4)


def test_one_constraint_in_all_its_forms(rng):
    """A matrix, a sparse one, a dict of names, and scipy's object are the same constraint."""
    X, y = data(rng)
    table = pd.DataFrame(X, columns=list("abcdef"))
    row = np.array([1.0, 0.0, -2.0, 0.0, 0.0, 0.0])
    forms = [
        sb.LinearConstraint(row, 0.5, 0.5),
        sb.LinearConstraint(sparse.coo_matrix(row[None]), [0.5], [0.5]),
        sb.LinearConstraint({"a": 1.0, "c": -2.0}, 0.5, 0.5),
        scipy.optimize.LinearConstraint(row, 0.5, 0.5),
        [sb.LinearConstraint(row, lower=0.5), sb.LinearConstraint(row, upper=0.5)],
    ]
    found = [Lasso(0.1, constraints=form, tol=1e-10).fit(table, y).coef_ for form in forms]
    assert np.allclose(found, found[0], atol=1e-5)
    assert np.allclose(found @ row, 0.5, atol=1e-6)


def test_bounds_of_coefficients(rng):
    X, y = data(rng)
    table = pd.DataFrame(X, columns=list("abcdef"))
    plain = Lasso(0.1).fit(X, y)
    assert np.allclose(Lasso(0.1, lower=-9.0, upper=9.0).fit(X, y).coef_, plain.coef_, atol=1e-5)
    model = Lasso(0.1, lower={"a": 1.5}, upper={"b": 1.0}).fit(table, y)
    assert np.isclose(model.coef_[0], 1.5)
    assert np.isclose(model.coef_[1], 1.0)
    assert np.array_equal(Lasso(0.1, lower=0.0).fit(X, y).coef_, Lasso(0.1, positive=True).fit(X, y).coef_)
    bounds = np.linspace(0.2, 0.7, 6)
    for penalty in ("l1", "elasticnet", "group", None):
        fitted = SparseRegressor("huber", penalty, 0.01, lower=-bounds, upper=bounds).fit(X, y)
        assert np.all(np.abs(fitted.coef_) <= bounds + 1e-6)
        assert np.any(np.isclose(np.abs(fitted.coef_), bounds, atol=1e-5))
    tasks = MultiTaskLasso(0.01, lower=-bounds, constraints="zero-sum").fit(X, np.column_stack([y, -y]))
    assert np.all(tasks.coef_ >= -bounds - 1e-6)
    assert np.allclose(tasks.coef_.sum(axis=1), 0.0, atol=1e-5)
    assert tasks.constraint_multipliers_[0].shape == (2, 1)


def test_contradictions_name_the_constraints(rng):
    X, y = data(rng)
    with pytest.raises(
        ValueError, match=r"constraints\[0\] \('zero-sum'\) in row 0 and constraints\[2\] \('sum-to-one'"
    ):
        Lasso(constraints=["zero-sum", "monotone", "sum-to-one"]).fit(X, y)
    with pytest.raises(ValueError, match=r"constraints\[0\] .* and the bounds of the coefficients"):
        Lasso(constraints="sum-to-one", upper=0.1).fit(X, y)
    rows = sb.LinearConstraint(np.ones((3, 6)), [0.0, 1.0, 2.0], [0.5, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"no coefficients satisfy constraints\[0\] in rows 0"):
        SparseClassifier("logistic", constraints=rows).fit(X, y > 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("zerosum", r"constraints\[0\]='zerosum' is not known \(did you mean 'zero-sum'\?\)"),
        (sb.LinearConstraint(np.ones((2, 4)), 0.0), r"constraints\[0\] has 4 columns, but X has 6"),
        (["zero-sum", 3.0], r"constraints\[1\] is float: expected sb.LinearConstraint"),
        (sb.LinearConstraint({"g": 1.0}, 0.0), "column 'g', which X does not have"),
    ],
)
def test_bad_constraints(given, message, rng):
    X, y = data(rng)
    with pytest.raises((ValueError, TypeError), match=message):
        Lasso(constraints=given).fit(pd.DataFrame(X, columns=list("abcdef")), y)


@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize(
    "bound",
    ["x", [[1.0, 2.0], [3.0]], 10**400, [1.0, None], np.ones(5)],
    ids=["text", "ragged", "long", "none", "short"],
)
def test_bad_bounds_of_coefficients_are_named(side, bound, rng):
    X, y = data(rng)
    with pytest.raises((ValueError, TypeError), match=f"^{side} (has|is)"):
        Lasso(**{side: bound}).fit(X, y)


def test_bad_parts_of_a_constraint():
    for arguments, message in [
        (([[1.0, np.nan]], 0.0, 1.0), "C "),
        (([[1.0, 2.0]], 1.0, 0.0), "lower exceeds upper"),
        (([[1.0, 2.0]], [0.0, 0.0], 1.0), "lower has shape"),
        ((np.ones((2, 2, 2)), 0.0, 1.0), "C has shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            sb.LinearConstraint(*arguments)


def test_paths_keep_the_constraints(rng):
    X, y = data(rng)
    path = Lasso(constraints="zero-sum").path(X, y, n_alphas=6)
    assert not np.any(path.coefs[:, 0])
    assert np.any(path.coefs[:, 1])
    assert np.allclose(path.coefs.sum(axis=0), 0.0, atol=1e-5)
    with pytest.raises(ValueError, match="do not hold with x = 0"):
        Lasso(constraints="sum-to-one").path(X, y)
    given = Lasso(constraints="sum-to-one").path(X, y, alphas=[1.0, 0.1])
    assert np.allclose(given.coefs.sum(axis=0), 1.0, atol=1e-5)
    model = LassoCV(constraints="zero-sum", n_alphas=5, cv=3, eps=1e-4).fit(X, y)
    assert abs(model.coef_.sum()) <= 1e-5
    assert model.constraint_multipliers_[0].shape == (1,)


def test_a_warm_start_with_constraints(rng):
    X, y = data(rng)
    model = Lasso(0.1, constraints="zero-sum", warm_start=True).fit(X, y)
    first = model.n_passes_
    assert model.fit(X, y).n_passes_ < first
    assert np.isclose(model.set_params(constraints="sum-to-one").fit(X, y).coef_.sum(), 1.0)
    assert model.set_params(constraints=None).fit(X, y).constraint_multipliers_ == []


GROUPS = [[0, 1, 2], [2, 3], [3, 4, 5]]


@pytest.mark.parametrize("named", [False, True])
def test_overlapping_groups_agree_with_cvxpy(named, rng):
    X, y = data(rng)
    table = pd.DataFrame(X, columns=list("abcdef"))
    groups = [["abcdef"[i] for i in group] for group in GROUPS] if named else GROUPS
    for model, share in [(GroupLasso(0.2, groups=groups), 0.0), (SparseGroupLasso(0.2, groups=groups), 0.5)]:
        fitted = model.fit(table, y)
        w, b = cp.Variable(6), cp.Variable()
        norms = sum(np.sqrt(len(group)) * cp.norm(w[group]) for group in GROUPS)
        penalty = 0.2 * (share * cp.norm1(w) + (1 - share) * norms)
        program = cp.Problem(cp.Minimize(cp.sum_squares(y - X @ w - b) / 160 + penalty))
        program.solve(solver="CLARABEL")
        assert np.isclose(fitted.certificate_.primal_value, program.value, rtol=1e-5)
        assert np.allclose(fitted.coef_, w.value, atol=1e-2)


def test_overlapping_groups_have_paths_of_given_alphas(rng):
    X, y = data(rng)
    model = GroupLasso(groups=GROUPS, weights=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="not known for groups that overlap; pass alphas"):
        model.path(X, y)
    path = model.path(X, y, alphas=[0.01, 10.0, 0.1])
    assert path.alphas.tolist() == [10.0, 0.1, 0.01]
    assert np.allclose(path.coefs[:, 0], 0.0, atol=1e-6)
    single = GroupLasso(0.1, groups=GROUPS, weights=[1.0, 2.0, 3.0]).fit(X, y)
    assert np.allclose(path.coefs[:, 1], single.coef_, atol=1e-3)
    with pytest.raises(ValueError, match="groups has no group for '5'"):
        GroupLasso(groups=[[0, 1, 2], [2, 3], [3, 4]]).fit(X, y)


@pytest.mark.parametrize("loss", ["squared", "quantile", "huber", "sqrt"])
def test_an_offset_is_a_part_of_the_targets(loss, rng):
    X, y = data(rng)
    offset = rng.standard_normal(80)
    model = SparseRegressor(loss, alpha=0.05).fit(X, y + offset, offset=offset)
    assert np.allclose(model.coef_, SparseRegressor(loss, alpha=0.05).fit(X, y).coef_, atol=1e-5)
    with pytest.raises(ValueError, match="offset has shape"):
        SparseRegressor(loss).fit(X, y, offset=offset[:5])


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_the_offset_of_a_log_link_is_the_logarithm_of_the_exposure(loss, weighted, rng):
    X, _ = data(rng)
    offset, weight = rng.uniform(-1, 1, 80), rng.uniform(0.5, 2.0, 80) if weighted else np.ones(80)
    y = rng.poisson(np.exp(0.3 * X[:, 0] + 0.5 + offset)) + (0.1 if loss == "gamma" else 0.0)
    model = SparseRegressor(loss, alpha=0.02, tol=1e-8)
    model.fit(X, y, sample_weight=weight if weighted else None, offset=offset)
    w, b = cp.Variable(6), cp.Variable()
    u = X @ w + b + offset
    each = {
        "poisson": cp.exp(u) - cp.multiply(y, u),
        "gamma": cp.multiply(y, cp.exp(-u)) + u,
        "tweedie": cp.multiply(y, cp.exp(-0.5 * u)) / 0.5 + cp.exp(0.5 * u) / 0.5,
    }[loss]
    cp.Problem(cp.Minimize((weight / weight.sum()) @ each + 0.02 * cp.norm1(w))).solve(solver="CLARABEL")
    assert np.allclose(model.coef_, w.value, atol=1e-3)
    assert np.isclose(model.intercept_, b.value, atol=1e-3)


@pytest.mark.parametrize("loss", ["squared", "poisson", "tweedie"])
def test_the_score_of_a_model_with_an_offset(loss, rng):
    X, _ = data(rng)
    offset, weight = rng.uniform(-2, 2, 80), rng.uniform(0.5, 2.0, 80)
    y = rng.poisson(np.exp(0.8 * X[:, 0] + 0.5 + offset)).astype(float)
    model = SparseRegressor(loss, alpha=0.02).fit(X, y, weight, offset=offset)
    log = loss != "squared"
    scores = X @ model.coef_ + model.intercept_ + offset
    predicted = np.exp(scores) if log else scores
    np.testing.assert_allclose(model.predict(X, offset), predicted)
    power = {"squared": 0, "poisson": 1, "tweedie": 1.5}[loss]
    losses = [
        mean_tweedie_deviance(y, u, sample_weight=weight, power=power)
        for u in (predicted, 0 * y + np.average(y, weights=weight))
    ]
    assert model.score(X, y, weight, offset) == pytest.approx(1 - losses[0] / losses[1])
    with pytest.raises(ValueError, match=r"offset is missing: the model was fitted with one"):
        model.score(X, y, weight)
    with pytest.raises(ValueError, match=r"offset has shape \(5,\): expected one value for each of the 80"):
        model.score(X, y, weight, offset[:5])
    plain = model.fit(X, y)
    assert plain.score(X, y) == plain.score(X, y, offset=np.zeros(80)) == plain.score(X, y, np.ones(80))


def test_an_offset_of_several_targets_is_added_to_each(rng):
    X, y = data(rng)
    Y, offset = np.column_stack([y, -y]), rng.uniform(-2, 2, 80)
    model = Lasso(0.01).fit(X, Y, offset=offset)
    np.testing.assert_allclose(model.predict(X, offset), X @ model.coef_.T + model.intercept_ + offset[:, None])
    assert model.score(X, Y, offset=offset) > 0.5


def test_the_scores_of_cross_validation_have_the_offset(rng):
    X, _ = data(rng)
    offset = rng.uniform(-2, 2, 80)
    y = rng.poisson(np.exp(0.8 * X[:, 0] + 0.5 + offset)).astype(float)
    with config_context(enable_metadata_routing=True):
        model = SparseRegressor("poisson", alpha=0.01).set_fit_request(offset=True).set_score_request(offset=True)
        scores = cross_val_score(model, X, y, params={"offset": offset}, cv=2)
    halves = np.arange(80) < 40
    for half, score in zip((~halves, halves), scores, strict=True):
        fitted = SparseRegressor("poisson", alpha=0.01).fit(X[half], y[half], offset=offset[half])
        assert score == pytest.approx(fitted.score(X[~half], y[~half], offset=offset[~half]))


def test_a_loss_without_a_link_and_without_residuals_has_no_offset():
    with pytest.raises(ValueError, match="offset was given, and loss='kullback_leibler' has none"):
        SparseRegressor("kullback_leibler").fit(np.eye(3), np.ones(3), offset=np.ones(3))


def test_rows_are_left_out_beside_constraints(rng):
    """Most rows of a tall quantile regression with constraints are settled, and each loss keeps its share."""
    n = 3000
    X = rng.standard_normal((n, 5))
    y = X.sum(axis=1) + rng.standard_t(3, size=n)
    rows = [[X, None], [None, X], [X, -X]]
    losses = [sb.Pinball(y, 0.99), sb.Pinball(y, 0.5), sb.Interval(np.full(n, -0.2), np.full(n, np.inf))]
    found = sb.solve(sb.Problem([sb.Zero(), sb.Zero()], rows, losses), tol=1e-8)
    assert found.status is sb.Status.OPTIMAL
    assert found.settings["rows"] < 2 * n
    assert np.min(X @ (found.x[0] - found.x[1])) >= -0.2 - 1e-6
    one, none, zeros = sparse.eye_array(n), sparse.csr_array((n, n)), np.zeros((n, 5))
    program = scipy.optimize.linprog(
        np.concatenate([np.zeros(10), *(np.full(n, cost) for cost in (0.99, 0.01, 0.5, 0.5))]),
        A_eq=sparse.block_array([[X, zeros, one, -one, none, none], [zeros, X, none, none, one, -one]]),
        b_eq=np.concatenate([y, y]),
        A_ub=sparse.hstack([sparse.csr_array(np.hstack([-X, X])), sparse.csr_array((n, 4 * n))]),
        b_ub=np.full(n, 0.2),
        bounds=[(None, None)] * 10 + [(0, None)] * (4 * n),
    )
    assert np.isclose(found.objective, program.fun, rtol=1e-7)


@pytest.mark.parametrize("loose", [0, 3])
def test_equations_are_a_border_of_the_system_of_the_columns(loose, rng):
    """Rows with D_g = 0 beside a loss: the direction solves the whole system."""
    A = rng.standard_normal((2500, 20))
    D_f, D_g = rng.uniform(0.1, 10.0, 20), rng.uniform(0.1, 10.0, 2500)
    D_f[:loose] = 0.0
    D_g[[0, 7]] = 0.0
    system = factored(as_operator(A, "A"), Stiffness(D_f, None), Stiffness(D_g, None))
    assert isinstance(system, ByColumns)
    r, s = rng.standard_normal(20), rng.standard_normal(2500)
    found = system.refined(r, s)
    assert np.allclose(D_f * found.dx + A.T @ found.dy, r, atol=1e-9)
    assert np.allclose(-A @ found.dx + D_g * found.dy, s, atol=1e-9)


@pytest.mark.parametrize("loss", [sb.Squared, sb.Absolute])
def test_columns_are_left_out_beside_constraints(loss, rng):
    """A working set of columns gives the same solution as all columns, if 0 satisfies the constraints."""
    A = rng.standard_normal((300, 600))
    b = A[:, :5].sum(axis=1) + rng.standard_normal(300)
    C = rng.standard_normal((4, 600))
    terms = [loss(b, scale=1 / 300), sb.Equality([0.0]), sb.Interval(-0.1, 0.5)]
    problem = sb.Problem(sb.L1(0.15), [A, np.ones((1, 600)), C], terms)
    found = sb.solve(problem, tol=1e-9)
    assert found.settings["working_set"] < 600
    assert np.isclose(found.objective, sb.solve(problem, method="finish", tol=1e-9).objective, rtol=1e-8)


# --- multipliers around descent ---------------------------------------------------------------------------------------


def beside_constraints(loss, bounds, seed=3):
    """Return a problem with a smooth loss and five constraints, of which some hold with equality."""
    rng = np.random.default_rng(seed)
    X, C = rng.standard_normal((120, 500)), rng.standard_normal((5, 500))
    w = np.zeros(500)
    w[:8] = rng.standard_normal(8)
    y = X @ w + 0.1 * rng.standard_normal(120)
    return sb.Problem(sb.L1(0.05), [X, C], [loss(y, scale=1 / 120), sb.Interval(*bounds(C @ w))])


@pytest.mark.parametrize("loss", [sb.Squared, sb.Huber])
@pytest.mark.parametrize(
    "bounds",
    [lambda u: (u - 0.3, u - 0.3), lambda u: (np.full(5, -np.inf), u - 0.3), lambda u: (u - 0.2, u + 0.2)],
    ids=["equality", "above", "between"],
)
def test_descent_around_multipliers_agrees_with_newton_steps(loss, bounds):
    problem = beside_constraints(loss, bounds)
    descent, newton = (sb.solve(problem, method=method, tol=1e-10) for method in ("descent", "multipliers"))
    assert sb.solve(problem).method == "descent"
    assert descent.status is newton.status is sb.Status.OPTIMAL
    assert np.allclose(descent.x, newton.x, atol=1e-6)
    assert np.allclose(descent.y[1], newton.y[1], atol=1e-6)
    assert np.any(np.abs(descent.y[1]) > 1e-3)


def test_descent_with_a_multiplier_is_descent_on_the_linear_term_that_it_makes():
    problem = beside_constraints(sb.Squared, lambda u: (u - 0.3, u - 0.3))
    result = sb.solve(problem, tol=1e-10)
    (X, C), (loss, _) = problem.A, problem.loss
    without = sb.solve(sb.Problem(sb.L1(0.05) + sb.Linear(C.T @ result.y[1]), X, loss), tol=1e-10)
    assert np.allclose(without.x, result.x, atol=1e-6)


def test_constraints_beside_a_smooth_loss_that_contradict_each_other_are_infeasible():
    rng = np.random.default_rng(0)
    X, ones = rng.standard_normal((60, 30)), np.ones((1, 30))
    terms = [sb.Squared(rng.standard_normal(60)), sb.Equality(np.ones(1)), sb.Interval([2.0], [3.0])]
    assert sb.solve(sb.Problem(sb.L1(0.1), [X, ones, ones], terms)).status is sb.Status.INFEASIBLE


def test_constraints_are_refused_without_their_layer():
    problem = beside_constraints(sb.Squared, lambda u: (u, u))
    with pytest.raises(TypeError, match="no Lipschitz gradient"):
        sb.solve(problem, method="descent", constraints=False)


def test_the_units_of_constraints_do_not_matter(rng):
    """Rows of constraints and their targets in other units are the same problem, for the same number of passes."""
    X, w, C = rng.standard_normal((120, 80)), np.zeros(80), rng.standard_normal((5, 80))
    w[:6] = 1.0
    y = X @ w + 0.3 * rng.standard_normal(120)
    found = []
    for unit in (1.0, 1e3, 1e-3):
        losses = [sb.Squared(y, scale=1 / 120), sb.Equality(unit * (C @ w - 0.3))]
        found.append(sb.solve(sb.Problem(sb.L1(0.05), [X, unit * C], losses), method="descent", tol=1e-7))
    assert all(result.status is sb.Status.OPTIMAL for result in found)
    assert np.allclose([result.objective for result in found], found[0].objective, rtol=1e-6)
    passes = [result.passes for result in found]
    assert max(passes) < 2 * min(passes)


def test_a_convex_fit_of_a_random_walk_is_certified(rng):
    """While y grows, the residuals of the interior point fall and its merit does not: it must not give up."""
    n = 300
    y = np.cumsum(rng.standard_normal(n))
    D = sb.Differences(n, 2)
    convex = sb.Problem(sb.Zero(), [sb.Identity(), D], [sb.Absolute(y), sb.Interval(np.zeros(n - 2), np.inf)])
    result = sb.solve(convex)
    assert result.status is sb.Status.OPTIMAL
    pytest.importorskip("cvxpy")
    assert np.isclose(result.objective, convex.to_cvxpy().solve(solver="CLARABEL"), rtol=1e-5)
