"""Penalties that are not convex: what a sequence of convex problems has to satisfy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optional import optional
from profiles import examples
from scipy import sparse
from scipy.integrate import quad

import saddleback as sb
import saddleback.paths.local_search as local_search
import saddleback.paths.reweighted as rounds_of
from saddleback.estimators import SparseClassifier, SparseRegressor, SparseRegressorCV

cp = optional("cvxpy")

RNG = np.random.default_rng(3)
A = RNG.standard_normal((60, 12))
B = A[:, :4] @ [3.0, -2.0, 1.0, 0.4] + RNG.standard_normal(60)
ALPHA = 15.0
PENALTIES = {
    "MCP": sb.MCP(ALPHA),
    "SCAD": sb.SCAD(ALPHA),
    "LogSum": sb.LogSum(ALPHA, 0.1),
    "weights": sb.MCP(ALPHA, 0.05, weights=np.linspace(0.0, 2.0, 12)),
    "groups": sb.SCAD(ALPHA, groups=3),
    "uneven groups": sb.MCP(ALPHA, 0.1, weights=[1.0, 2.0, 0.5], groups=[[0, 5], [1, 2, 3, 4], [6, 7, 8, 9, 10, 11]]),
    "sum": sb.MCP(ALPHA, 0.2) + sb.NonNegative() + sb.SquaredL2(0.3),
}
LOSSES = {"Squared": sb.Squared(B), "Absolute": sb.Absolute(B), "Logistic": sb.Logistic(np.sign(B))}
CURVES = {"MCP": sb.MCP, "SCAD": sb.SCAD, "LogSum": sb.LogSum}


def never_rises(result):
    values = result.settings["objectives"]
    return len(values) == result.settings["rounds"] and np.all(np.diff(values) <= 0)


# --- the penalties ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("t", [0.0, 0.3, 0.9, 2.0, 2.8, 7.0])
def test_the_value_is_the_integral_of_the_slope(name, t):
    penalty = CURVES[name](0.7, 2.5)
    slope = lambda s: penalty.majoriser([s]).weights[0] * 0.7  # noqa: E731
    expected = quad(slope, 0.0, t, points=[0.7, 1.75], epsabs=1e-12)[0]
    assert penalty.value([-t]) == pytest.approx(expected, abs=1e-9)
    assert slope(0.0) == 0.7


@pytest.mark.parametrize("name", PENALTIES)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 2.0, 40.0]))
@examples(20)
def test_the_majoriser_is_above_and_touches(name, seed, scale):
    rng, penalty = np.random.default_rng(seed), PENALTIES[name]
    x, v = np.abs(rng.standard_normal((2, 12))) * scale * (rng.random((2, 12)) < 0.7)
    above = penalty.majoriser(v)
    constant = penalty.value(v) - above.value(v)
    assert penalty.value(x) <= above.value(x) + constant + 1e-9 * (1 + abs(penalty.value(x)))
    assert penalty.below_majoriser(x, v) == pytest.approx(penalty.value(x) - above.value(x), abs=1e-8)
    assert penalty.majoriser(np.zeros(12)).value(x) == pytest.approx(penalty.majoriser().value(x))


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("size", [0.0, 0.3, 0.9, 2.0, 7.0])
def test_the_bend_is_what_the_majoriser_at_0_lacks(name, size):
    penalty, sizes, h = CURVES[name](0.7, 2.5, weights=[2.0]), np.array([size]), 1e-5
    (bend,) = penalty.bends((1,))
    assert bend.value(sizes) == pytest.approx(penalty.value(sizes) - penalty.majoriser().value(sizes), abs=1e-12)
    assert bend.slope(np.zeros(1)) == 0
    ahead, behind = sizes + h, np.abs(sizes - h)
    if size:
        assert (bend.value(ahead) - bend.value(behind)) / (2 * h) == pytest.approx(bend.slope(sizes)[0], abs=1e-6)
        assert (bend.slope(ahead) - bend.slope(behind)) / (2 * h) == pytest.approx(bend.curvature(sizes), abs=1e-6)
    beside = bend.among(4, slice(1, 2))
    assert beside.value(np.full(4, size)) == pytest.approx(bend.value(sizes), abs=1e-12)
    assert not np.any(beside.curvature(np.full(4, size))[[0, 2, 3]])


def test_a_matrix_has_groups_of_rows():
    X, penalty = RNG.standard_normal((6, 2)), sb.MCP(1.0, 2.0, groups=3)
    norms = [np.linalg.norm(X[:3]), np.linalg.norm(X[3:])]
    assert penalty.value(X) == pytest.approx(sb.MCP(1.0, 2.0, weights=np.sqrt([3.0, 3.0])).value(norms))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sb.Problem(sb.MCP(1.0), A, sb.Squared(B)), "MCP is not convex.*sb.reweighted"),
        (lambda: sb.path([sb.SCAD(1.0), sb.Zero()], [A, np.ones(60)], sb.Squared(B)), "SCAD is not convex"),
        (lambda: sb.MCP(1.0, 0.0), "gamma=0.0: expected a number above 0 for MCP"),
        (lambda: sb.SCAD(1.0, 2.0), "gamma=2.0: expected a number above 2 for SCAD"),
        (lambda: 2 * sb.MCP(1.0), "change alpha and gamma"),
        (lambda: sb.MCP(1.0, groups=2) + sb.Box(0.0, 1.0), "Box cannot be added to MCP"),
        (lambda: sb.reweighted(sb.L1(1.0), A, sb.Squared(B)), "is convex: call sb.solve"),
        (lambda: sb.reweighted(sb.MCP(1.0), A, sb.Squared(B), checkpoint="file"), "checkpoint: expected None"),
        (lambda: sb.reweighted(sb.MCP(1.0), A, sb.Squared(B), max_rounds=0), "max_rounds=0"),
        (lambda: sb.reweighted(sb.MCP(1.0, weights=[1.0]), A, sb.Squared(B)), "weights has shape"),
    ],
)
def test_refusals(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


# --- the rounds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", PENALTIES)
def test_x_minimises_the_majoriser_at_x(name, loss):
    penalty = PENALTIES[name]
    result = sb.reweighted(penalty, A, LOSSES[loss], tol=1e-7)
    assert result.status is sb.Status.OPTIMAL
    assert never_rises(result)
    convex = sb.Problem(penalty.majoriser(result.x), A, LOSSES[loss])
    assert sb.certify(convex, result.x, result.y).error <= 1e-7
    program = convex.to_cvxpy()
    program.solve(solver=cp.CLARABEL)
    assert convex.value(result.x) == pytest.approx(program.value, rel=1e-6)
    assert result.objective == pytest.approx(convex.value(result.x), rel=1e-9)
    value = penalty.value(result.x) + LOSSES[loss].value(A @ result.x)
    assert result.settings["objective"] == pytest.approx(value, rel=1e-9)
    assert "not proved" in result.message


def test_orthogonal_columns_have_a_closed_form():
    b, alpha, gamma = np.array([5.0, -0.5, 2.0, -1.5, 3.5]), 1.0, 3.0
    x = sb.reweighted(sb.MCP(alpha, gamma), np.eye(5), sb.Squared(b), tol=1e-12).x
    shrunk = np.sign(b) * np.maximum(np.abs(b) - alpha, 0) / (1 - 1 / gamma)
    np.testing.assert_allclose(x, np.where(np.abs(b) <= gamma * alpha, shrunk, b), atol=1e-5)


def test_a_stationary_point_of_the_objective():
    """The slope of the squared loss is that of the penalty where x is not 0, and at most alpha elsewhere."""
    result = sb.reweighted(sb.MCP(ALPHA, 0.2), A, sb.Squared(B), tol=1e-12)
    slope, size = A.T @ (B - A @ result.x), np.abs(result.x)
    assert 0 < np.count_nonzero(size) < 12
    expected = np.maximum(0.0, ALPHA - size / 0.2) * np.sign(result.x)
    np.testing.assert_allclose(slope[size > 0], expected[size > 0], atol=1e-4)
    assert np.all(np.abs(slope[size == 0]) <= ALPHA)


def test_an_intercept_sparse_data_and_constraints():
    penalties, rows = [sb.MCP(ALPHA), sb.Zero()], [[sparse.csc_array(A), np.ones(60)], [np.ones((1, 12)), None]]
    losses = [sb.Squared(B + 4), sb.Interval(-0.5, 0.5)]
    result = sb.reweighted(penalties, rows, losses, tol=1e-7)
    assert result.status is sb.Status.OPTIMAL
    assert never_rises(result)
    assert abs(result.x[0].sum()) <= 0.5 + 1e-5
    convex = sb.Problem([penalties[0].majoriser(result.x[0]), sb.Zero()], rows, losses)
    assert sb.certify(convex, result.x, result.y).error <= 1e-7


def test_large_coefficients_are_not_shrunk():
    result = sb.reweighted(sb.MCP(ALPHA, 1e-2), A, sb.Squared(B), tol=1e-10)
    support = np.flatnonzero(result.x)
    assert 3 <= support.size < 12
    np.testing.assert_allclose(result.x[support], np.linalg.lstsq(A[:, support], B)[0], atol=1e-4)


def test_without_effective_concavity_it_is_the_lasso():
    lasso = sb.solve(sb.Problem(sb.L1(ALPHA), A, sb.Squared(B)), tol=1e-10)
    for penalty in (sb.MCP(ALPHA, 1e9), sb.LogSum(ALPHA, 1e9)):
        np.testing.assert_allclose(sb.reweighted(penalty, A, sb.Squared(B), tol=1e-10).x, lasso.x, atol=1e-4)


def test_a_start_decides_which_stationary_point_is_found():
    first = sb.reweighted(sb.MCP(ALPHA, 0.2), A, sb.Squared(B), tol=1e-8)
    again = sb.reweighted(sb.MCP(ALPHA, 0.2), A, sb.Squared(B), tol=1e-8, x0=first)
    assert again.settings["rounds"] == 1
    np.testing.assert_array_equal(again.x, first.x)
    elsewhere = sb.reweighted(sb.MCP(ALPHA, 0.2), A, sb.Squared(B), tol=1e-8, x0=RNG.standard_normal(12))
    assert elsewhere.status is sb.Status.OPTIMAL
    assert never_rises(elsewhere)


@pytest.mark.parametrize("groups", [None, 3])
def test_adaptive_is_two_convex_problems(groups):
    result = sb.reweighted(sb.Adaptive(ALPHA, 0.1, groups=groups), A, sb.Squared(B), tol=1e-9)
    plain = sb.L1(ALPHA) if groups is None else sb.GroupL2(ALPHA, groups)
    first = sb.solve(sb.Problem(plain, A, sb.Squared(B)), tol=1e-9).x
    sizes = np.abs(first) if groups is None else np.linalg.norm(first.reshape(-1, 3), axis=1)
    scale = 1.0 if groups is None else np.sqrt(3)
    weights = scale / (1 + sizes / (0.1 * ALPHA * scale))
    second = sb.L1(ALPHA, weights) if groups is None else sb.GroupL2(ALPHA, 3, weights)
    expected = sb.solve(sb.Problem(second, A, sb.Squared(B)), tol=1e-9)
    assert result.settings["rounds"] == 2
    assert result.objective == pytest.approx(expected.objective, rel=1e-5)
    given = sb.reweighted(sb.Adaptive(ALPHA, 0.1, groups=groups), A, sb.Squared(B), x0=first, tol=1e-9)
    assert given.settings["rounds"] == 1
    np.testing.assert_allclose(given.x, result.x, atol=1e-4)


def test_limits():
    penalty = sb.MCP(ALPHA, 0.1)
    one = sb.reweighted(penalty, A, sb.Squared(B), max_rounds=1, x0=np.zeros(12))
    assert one.status is sb.Status.MAX_PASSES
    assert one.settings["rounds"] == 1
    assert "has not settled" in one.message
    np.testing.assert_allclose(one.x, sb.solve(sb.Problem(sb.L1(ALPHA), A, sb.Squared(B))).x, atol=1e-3)
    short = sb.reweighted(penalty, A, sb.Absolute(B), max_passes=40)
    assert short.status is sb.Status.MAX_PASSES
    assert short.passes < 200
    assert "The pass limit" in short.message
    assert sb.reweighted(penalty, A, sb.Squared(B), time_limit=1e-9).status is sb.Status.TIME_LIMIT
    stopped = sb.reweighted(penalty, A, sb.Squared(B), callback=lambda info: True)
    assert stopped.status is sb.Status.INTERRUPTED


def test_an_infeasible_problem_has_its_proof():
    losses = [sb.Squared(B), sb.Equality([1.0, 2.0])]
    result = sb.reweighted(sb.MCP(1.0), [A, np.ones((2, 12))], losses)
    assert result.status is sb.Status.INFEASIBLE
    assert result.ray is not None


# --- the search between the rounds ------------------------------------------------------------------------------------

WIDE = RNG.standard_normal((40, 200)) / np.sqrt(40)
TARGET = WIDE[:, :10] @ np.linspace(-3.0, 3.0, 10) + 0.1 * RNG.standard_normal(40)
WIDE_PENALTIES = {
    "MCP": sb.MCP(0.2),
    "SCAD": sb.SCAD(0.2, weights=np.linspace(0.5, 1.5, 200)),
    "LogSum": sb.LogSum(0.2, 0.5),
    "groups": sb.MCP(0.1, groups=4),
    "sum": sb.MCP(0.2) + sb.NonNegative() + sb.SquaredL2(0.1),
}


def without_search(monkeypatch):
    monkeypatch.setattr(rounds_of, "search_for", lambda problem, terms: None)


@pytest.mark.parametrize("loss", ["Squared", "Logistic"])
@pytest.mark.parametrize("name", ["MCP", "SCAD", "groups", "sum"])
def test_the_search_and_the_rounds_alone_agree(name, loss, monkeypatch):
    """The curvature of the loss is larger than that of the penalty, so that there is one stationary point."""
    penalty = {"MCP": sb.MCP(3.0), "SCAD": sb.SCAD(3.0), "groups": sb.MCP(2.0, groups=3)}.get(name, PENALTIES["sum"])
    searched = sb.reweighted(penalty, A, LOSSES[loss], tol=1e-11)
    assert searched.status is sb.Status.OPTIMAL
    without_search(monkeypatch)
    alone = sb.reweighted(penalty, A, LOSSES[loss], tol=1e-11)
    np.testing.assert_allclose(searched.x, alone.x, atol=1e-4)
    assert searched.settings["rounds"] <= alone.settings["rounds"]


@pytest.mark.parametrize("name", WIDE_PENALTIES)
@pytest.mark.parametrize("start", ["path", "zero", "anywhere"])
def test_wide_data(name, start):
    penalty = WIDE_PENALTIES[name]
    x0 = {"path": None, "zero": np.zeros(200), "anywhere": np.abs(RNG.standard_normal(200))}[start]
    result = sb.reweighted(penalty, WIDE, sb.Squared(TARGET), x0=x0)
    assert result.status is sb.Status.OPTIMAL
    assert never_rises(result)
    assert start == "anywhere" or 0 < np.count_nonzero(result.x) < 60
    again = sb.solve(sb.Problem(penalty.majoriser(result.x), WIDE, sb.Squared(TARGET)), tol=1e-9)
    assert result.objective <= again.objective + 1e-5 * abs(again.objective) + 1e-12


@pytest.mark.parametrize("name", WIDE_PENALTIES)
def test_a_search_never_rises(name):
    problem = sb.Problem(WIDE_PENALTIES[name].majoriser(), WIDE, sb.Squared(TARGET)).columnar()
    search = local_search.search_for(problem, [WIDE_PENALTIES[name]])
    value = lambda x: WIDE_PENALTIES[name].value(x) + 0.5 * np.sum((WIDE @ x - TARGET) ** 2)  # noqa: E731
    for scale in (0.0, 0.1, 3.0):
        x = scale * np.abs(RNG.standard_normal(200))
        lower = search.lowered(x, lambda: False)
        assert value(lower) < value(x)
        assert search.lowered(x, lambda: True) is x
        for _ in range(20):  # until nothing is left to be lowered
            lower = search.lowered(lower, lambda: False)
        assert value(search.lowered(lower, lambda: False)) == pytest.approx(value(lower), rel=1e-6)


@pytest.mark.parametrize("matrix", [WIDE, sparse.csc_array(np.where(RNG.random((40, 200)) < 0.05, WIDE, 0.0))])
def test_the_gram_matrix_grows(matrix):
    gram = local_search.Gram(sb.Problem(sb.L1(1.0), matrix, sb.Squared(TARGET)).columnar().model.A)
    dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    for weight in (np.ones(40), np.linspace(0.1, 2.0, 40)):
        for columns in ([3, 7], [7, 100, 3, 5], [100]):
            own = dense[:, columns]
            np.testing.assert_allclose(gram.of(np.array(columns), weight), own.T @ (weight[:, None] * own), atol=1e-12)
    assert gram.columns.tolist() == [3, 7, 100, 5]


def test_with_too_many_columns_for_a_search_the_rounds_go_on(monkeypatch):
    monkeypatch.setattr(local_search, "MOST_COLUMNS", 3)
    result = sb.reweighted(sb.MCP(0.2), WIDE, sb.Squared(TARGET))
    assert result.status is sb.Status.OPTIMAL
    assert result.settings["rounds"] > 1
    assert never_rises(result)


def test_sparse_data_lead_to_the_same_point():
    thin = np.where(RNG.random(WIDE.shape) < 0.08, WIDE, 0.0)
    dense, compressed = (
        sb.reweighted([sb.MCP(0.2), sb.Zero()], [data, np.ones(40)], sb.Squared(TARGET + 5), tol=1e-10)
        for data in (thin, sparse.csc_array(thin))
    )
    np.testing.assert_allclose(compressed.x[0], dense.x[0], atol=1e-4)
    assert compressed.x[1] == pytest.approx(dense.x[1], abs=1e-4)


# --- the estimators ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["mcp", "scad", "log_sum", "adaptive"])
@pytest.mark.parametrize("groups", [None, 3])
def test_the_regressor_is_the_same_problem(penalty, groups):
    model = SparseRegressor("squared", penalty, 0.2, gamma=2.5, groups=groups, tol=1e-9).fit(A, B + 4)
    term = {"mcp": sb.MCP, "scad": sb.SCAD, "log_sum": sb.LogSum, "adaptive": sb.Adaptive}[penalty]
    penalties, loss = [term(0.2, 2.5, groups=groups), sb.Zero()], sb.Squared(B + 4, scale=1 / 60)
    result = sb.reweighted(penalties, [A, np.ones(60)], loss, tol=1e-9)
    np.testing.assert_allclose(model.coef_, result.x[0], atol=1e-3)
    np.testing.assert_allclose(model.intercept_, result.x[1], atol=1e-3)


def test_defaults_of_gamma():
    assert SparseRegressor(penalty="scad")._objective().penalty_term().gamma == 3.7
    assert SparseRegressor(penalty="mcp")._objective().penalty_term().gamma == 3.0


def test_bounds_names_weights_and_a_warm_start():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(A, columns=[f"x{j}" for j in range(12)])
    weights = {f"x{j}": 0.0 if j == 11 else 1.0 for j in range(12)}
    model = SparseRegressor(penalty="mcp", alpha=0.5, weights=weights, upper=2.0, warm_start=True).fit(X, B)
    assert model.coef_.max() <= 2.0 + 1e-6
    assert model.coef_[11] != 0
    before = model.coef_.copy()
    assert model.fit(X, B).result_.settings["rounds"] <= 2
    np.testing.assert_allclose(model.coef_, before, atol=1e-2)


def test_classes_paths_and_cross_validation():
    labels = np.digitize(B, [-1.0, 2.0])
    classifier = SparseClassifier("hinge", "mcp", 0.05).fit(A, labels)
    assert classifier.score(A, labels) > 0.6
    path = SparseRegressor(penalty="mcp").path(A, B, n_alphas=6)
    assert not np.any(path.coefs[:, 0])
    assert np.count_nonzero(path.coefs[:, -1]) > 3
    assert SparseRegressorCV(penalty="scad", n_alphas=5, cv=3).fit(A, B).score(A, B) > 0.8


def test_what_estimators_refuse():
    with pytest.raises(ValueError, match="groups overlap"):
        SparseRegressor(penalty="mcp", groups=[[0, 1], list(range(1, 12))]).fit(A, B)
    with pytest.warns(UserWarning, match="gamma was set"):
        SparseRegressor(penalty="l1", alpha=0.1, gamma=2.0).fit(A, B)
