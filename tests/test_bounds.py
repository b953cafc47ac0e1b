"""Intervals that contain every optimum: identities, random problems with solutions of an oracle, and several optima."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import LOSSES, PENALTIES, random_case, random_stack
from scipy import sparse

import saddleback as sb
from saddleback.bench import data
from saddleback.bench.judging import problem_of
from saddleback.certificates.bounds import EVERY, NONE, UNDECIDED
from saddleback.estimators import Lasso, MultiTaskLasso, QuantileRegressor, SparseClassifier

TOLERANCES = (1e-1, 1e-3, 1e-5, 1e-8)


def flat(values: Any) -> np.ndarray:
    return np.concatenate([np.ravel(part) for part in values]) if isinstance(values, list) else np.ravel(values)


def ends(pairs: Any) -> tuple[np.ndarray, np.ndarray]:
    return tuple(flat([pair[k] for pair in (pairs if isinstance(pairs, list) else [pairs])]) for k in range(2))


def holds(problem: sb.Problem, bounds: sb.Bounds, x: np.ndarray, error: float) -> bool:
    """Return whether a point, up to its error, is in the intervals of the coefficients, groups and fitted values."""
    size = error * (1.0 + np.abs(x).max(initial=0.0))
    lower, upper = flat(bounds.lower), flat(bounds.upper)
    u, (below, above) = problem.model.A.matvec(x), ends(bounds.fitted)
    held = np.all(lower <= x + size) and np.all(x - size <= upper)
    held = held and np.all(below <= u + 10 * size) and np.all(u - 10 * size <= above)
    for pair, (function, own) in zip(
        bounds.groups if problem.is_list else [bounds.groups], _penalties(problem), strict=True
    ):
        if pair is not None:
            norms = function.norms(x[own])
            held = held and np.all(pair.lower <= norms + size) and np.all(norms - size <= pair.upper)
    return bool(held)


def _penalties(problem: sb.Problem) -> Any:
    from saddleback.functions.calculus import parts_of

    return parts_of(problem.model.f)


def optima(case: Any) -> list[tuple[np.ndarray, float]]:
    """Return optima of a case, each with an error: our own, and that of an interior point of CVXPY."""
    problem = case.problem
    best = sb.solve(problem, tol=1e-12, max_passes=3000, time_limit=10.0)
    if not best.certificate.error < 1e-9:
        return []
    found = [(flat(best.x), 1e-6)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an inaccurate solution: its error is allowed for
        optimum = case.optimum()
    if np.isfinite(optimum):
        names = [f"x[{i}]" for i in range(len(problem.x_shapes))] if problem.is_list else ["x"]
        found.append((flat([case.oracle.var_dict[name].value for name in names]), 2e-5))
    return found


def check_random(seed: int, tolerances: tuple[float, ...]) -> None:
    """Check that no interval of a random problem misses an optimum; seeds go through all losses and penalties."""
    if seed % 4 == 3:
        case = random_stack(seed)
    else:
        case = random_case(PENALTIES[seed % len(PENALTIES)], LOSSES[seed // len(PENALTIES) % len(LOSSES)], seed)
    known = optima(case)
    for tol in tolerances:
        bounds = sb.solve(case.problem, tol=tol, max_passes=500, time_limit=10.0).bounds()
        for x, error in known:
            assert holds(case.problem, bounds, x, error), (seed, tol, bounds)


@pytest.mark.parametrize("seed", [*range(0, 216, 8), 288])
def test_no_interval_misses_an_optimum(seed: int) -> None:
    check_random(seed, (TOLERANCES[seed % 4], 1e-4))


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(20))
def test_no_interval_of_2000_random_problems_misses_an_optimum(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        check_random(seed, (TOLERANCES[seed % len(TOLERANCES)],))


@given(
    st.integers(0, 10**6), st.sampled_from(["Squared", "Huber", "Logistic", "Absolute", "Hinge"]), st.floats(1e-6, 1.0)
)
@settings(max_examples=40, deadline=None)
def test_intervals_are_valid_for_any_pair_of_points(seed: int, loss: str, size: float) -> None:
    """The points need not come from a solve: any x and y give intervals that hold the optimum."""
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((8, 5)), rng.standard_normal(8)
    term = getattr(sb, loss)(np.where(b > 0, 1.0, -1.0) if loss in ("Hinge", "Logistic") else b)
    problem = sb.Problem(sb.L1(0.3), A, term)
    best = sb.solve(problem, tol=1e-12)
    x, y = best.x + size * rng.standard_normal(5), best.y + size * rng.standard_normal(8)
    assert holds(problem, sb.bounds(problem, x, y), best.x, 1e-6)


def test_the_interval_of_an_l1_penalty_is_the_gap_over_the_slack() -> None:
    problem = sb.Problem(sb.L1(1.0), np.eye(3), sb.Absolute([3.0, -0.5, 1.0], scale=0.5))
    x, y = np.array([0.1, 0.0, 0.0]), np.array([-0.5, 0.25, -0.5])
    bounds, gap = sb.bounds(problem, x, y), sb.certify(problem, x, y).gap
    assert np.allclose(bounds.upper, gap / (1.0 + y))
    assert np.allclose(bounds.lower, -gap / (1.0 - y))


@pytest.mark.parametrize("name", ["Absolute", "Pinball", "Huber", "EpsilonInsensitive", "Hinge", "Squared", "Interval"])
@pytest.mark.parametrize("slope", ["lower", "inside", "upper", "zero"])
def test_the_ends_of_an_enclosure_have_the_excess(name: str, slope: str) -> None:
    b = np.array([0.7, -1.2, 2.0])
    term = {
        "Interval": lambda: sb.Interval(b - 0.3, b + 0.4),
        "Hinge": lambda: sb.Hinge(np.sign(b)),
        "Pinball": lambda: sb.Pinball(b, 0.3),
    }.get(name, lambda: getattr(sb, name)(b))()
    loss = term.bind((3,))
    low, high = (np.clip(end, -2.0, 2.0) for end in (loss.of.lower, loss.of.upper))
    y = {"lower": low, "upper": high, "zero": np.clip(0.0, low, high), "inside": 0.75 * low + 0.25 * high}[slope]
    pairs = [(loss, y)] if name == "Interval" else [(loss, y), (loss.of, loss.subgradient(b + 0.05))]
    for function, z in pairs:
        lower, upper = function.enclosure(z, z, 0.05)
        for end in (lower, upper):
            for i in np.flatnonzero(np.isfinite(end)):
                own = np.array([i])
                at, part = end[own], function.restrict(own)
                excess = part.finite_value(at) + part.conjugate().value(z[own]) - at @ z[own]
                edge = part.domain.project(at + 1e-9 * (1 if end is upper else -1)) - at
                at_the_end = abs(edge[0]) < 1e-10
                assert abs(excess - 0.05) < 1e-9 or (excess < 0.05 and at_the_end), (name, slope, i)


def test_equal_columns_are_undecided_and_all_their_optima_are_inside() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 4))
    A[:, 1] = A[:, 0]
    b = A @ [1.0, 1.0, 0.0, 0.0]
    for loss in (sb.Squared(b), sb.Absolute(b), sb.Huber(b, 0.5)):
        problem = sb.Problem(sb.L1(0.5), A, loss)
        result = sb.solve(problem, tol=1e-10)
        bounds, total = result.bounds(), result.x[0] + result.x[1]
        assert list(bounds.decided[:2]) == [UNDECIDED, UNDECIDED]
        assert not bounds.unique
        for share in (0.0, 0.3, 1.0):
            assert holds(problem, bounds, np.array([share * total, (1 - share) * total, *result.x[2:]]), 1e-7)


CASES = {
    "lasso": data.lasso(0, m=200, n=1000, nonzeros=20),
    "correlated lasso": data.correlated_lasso(0, m=200, n=1000, nonzeros=20, correlation=0.5),
    "sparse lasso": data.sparse_lasso(0, m=400, n=1500, column_entries=10, nonzeros=20),
    "hinge": data.two_slopes(0, kind="hinge", m=100, n=400, nonzeros=10, ratio=0.3),
    "sparse hinge": data.two_slopes(0, kind="hinge", m=400, n=800, nonzeros=10, ratio=0.3, column_entries=5),
    "pinball": data.two_slopes(0, kind="quantile", m=100, n=400, nonzeros=10, ratio=0.3, quantile=0.8),
    "quantile": data.quantile(0, m=1000, n=50, nonzeros=10, quantile=0.9, alpha=0.02, intercept=True),
}


@pytest.mark.parametrize("case", CASES)
def test_nearly_all_features_of_the_benchmark_are_decided_at_a_gap_of_1e_8(case: str) -> None:
    problem = problem_of(CASES[case])
    result = sb.solve(problem, tol=1e-8)
    bounds = result.bounds()
    assert bounds.count(UNDECIDED) <= 0.01 * problem.model.A.shape[1], bounds
    nonzero = result.x != 0
    assert np.all(nonzero[bounds.decided == EVERY])
    assert np.all(np.abs(result.x[bounds.decided == NONE]) <= 1e-6)
    assert np.all((bounds.lower <= result.x + 1e-6) & (result.x <= bounds.upper + 1e-6))


def test_a_smaller_gap_gives_shorter_intervals() -> None:
    problem = problem_of(CASES["lasso"])
    lengths = []
    for tol in (1e-3, 1e-6, 1e-9):
        bounds = sb.solve(problem, tol=tol).bounds()
        lengths.append(np.median(bounds.fitted.upper - bounds.fitted.lower))
    assert lengths[0] >= lengths[1] >= lengths[2]
    assert lengths[0] > lengths[2]


def test_points_that_are_not_feasible_prove_nothing() -> None:
    rng = np.random.default_rng(1)
    A = rng.standard_normal((3, 6))
    problem = sb.Problem(sb.L1(1.0) + sb.Box(-5.0, 7.0), A, sb.Equality(A @ np.ones(6)))
    bounds = sb.bounds(problem, np.zeros(6), np.zeros(3))
    assert bounds.gap == np.inf
    assert not bounds.unique
    assert np.all(flat(bounds.lower) == -5.0)
    assert np.all(flat(bounds.upper) == 7.0)
    assert np.all(bounds.decided == UNDECIDED)


def test_a_linear_program_with_one_vertex_is_decided() -> None:
    program = sb.Problem(sb.Linear([1.0, 2.0, 4.0]) + sb.NonNegative(), np.array([[1.0, 1.0, 1.0]]), sb.Equality([2.0]))
    bounds = sb.solve(program).bounds()
    assert bounds.unique
    assert list(bounds.decided) == [EVERY, NONE, NONE]
    assert np.allclose(bounds.lower, [2, 0, 0])
    assert np.allclose(bounds.upper, [2, 0, 0])


def test_shapes_follow_the_problem() -> None:
    rng = np.random.default_rng(2)
    A, b = sparse.csc_array(rng.standard_normal((12, 4))), rng.standard_normal(12)
    penalty, rows = [sb.GroupL2(0.1, 2), sb.Zero()], [[A, np.ones(12)], [np.eye(4), None]]
    result = sb.solve(sb.Problem(penalty, rows, [sb.Huber(b), sb.Interval(-9.0, 9.0)]), tol=1e-8)
    bounds = result.bounds()
    assert [part.shape for part in bounds.lower] == [(4,), (1,)]
    assert bounds.groups[0].lower.shape == (2,)
    assert bounds.groups[1] is None
    assert [pair.upper.shape for pair in bounds.fitted] == [(12,), (4,)]
    assert np.allclose(bounds.residuals[0].lower, b - bounds.fitted[0].upper)
    assert bounds.residuals[1] is None
    assert "in every solution" in repr(bounds)


def test_the_problem_stays_out_of_copies() -> None:
    result = sb.solve(sb.Problem(sb.L1(1.0), np.eye(3), sb.Squared([3.0, 0.5, 1.0])))
    other = pickle.loads(pickle.dumps(result))
    assert other.problem is None
    assert "problem" not in result.to_dict()
    with pytest.raises(ValueError, match=r"sb\.bounds\(problem, x, y\)"):
        other.bounds()
    with pytest.raises(TypeError, match="expected a saddleback"):
        sb.bounds(None, [1.0], [1.0])


@pytest.mark.parametrize(
    "model", [Lasso(alpha=0.1, tol=1e-9), MultiTaskLasso(alpha=0.1, tol=1e-9), QuantileRegressor(alpha=0.05, tol=1e-9)]
)
def test_a_model_does_not_keep_its_data(model: Any) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 8))
    y = X[:, :2] + 0.3 * rng.standard_normal((60, 2))
    result = model.fit(X, y if isinstance(model, MultiTaskLasso) else y[:, 0]).result_
    assert result.problem is None
    with pytest.raises(ValueError, match="bounds\\(\\) needs the problem"):
        result.bounds()


@pytest.mark.parametrize("size", [60, 40_000], ids=["decided when read", "decided in the fit"])
def test_a_model_says_which_features_are_in_every_solution(size: int) -> None:
    rng = np.random.default_rng(4)
    X = 1.0 + rng.standard_normal((size, 8))
    y = X[:, :2].sum(axis=1) + 0.3 * rng.standard_normal(size)
    model = Lasso(alpha=0.1).fit(X, y)
    kept = model._selection._undecided
    assert (kept is not None) == (size == 60)
    other = pickle.loads(pickle.dumps(model))
    assert other._selection._undecided is None  # a stored model has no data
    for each in (model, other):
        assert np.array_equal(each.selected_ == EVERY, model.coef_ != 0)
        assert np.array_equal(each.selected_ == NONE, model.coef_ == 0)
    assert model._selection._undecided is None
    assert list(model.summary().columns["selected"]) == ["", *model.selected_]


@pytest.mark.parametrize("make", [np.asfortranarray, np.ascontiguousarray, sparse.csc_array])
def test_data_that_change_after_a_fit_change_no_decision(make: Any) -> None:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((50, 4))
    X[:, 1] = X[:, 0]
    given, weight, y = make(X), np.ones(50), X[:, 0] + 0.1 * rng.standard_normal(50)
    model = Lasso(alpha=0.1, fit_intercept=False).fit(given, y, sample_weight=weight)
    (given.data if sparse.issparse(given) else given)[...] = 0.0
    y[:], weight[:] = 0.0, 2.0
    assert list(model.selected_) == [UNDECIDED, UNDECIDED, NONE, NONE]


@pytest.mark.parametrize("loss", [sb.Absolute, sb.Huber, sb.Squared])
@pytest.mark.parametrize("penalty", [sb.L1, lambda alpha: sb.GroupL2(alpha, 1)])
@pytest.mark.parametrize("alpha", [3.0, 1e4])
def test_matrix_variables_also_at_0(loss: Any, penalty: Any, alpha: float) -> None:
    rng = np.random.default_rng(8)
    problem = sb.Problem(penalty(alpha), rng.standard_normal((60, 5)), loss(rng.standard_normal((60, 3))))
    result, other = sb.solve(problem, tol=1e-8), sb.solve(problem, tol=1e-11)
    found = result.bounds()
    assert np.all((found.lower <= other.x + 1e-6) & (other.x - 1e-6 <= found.upper))
    assert np.any(other.x) == (alpha < 1e4)


def test_equal_features_of_a_model_are_undecided() -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((50, 3))
    X[:, 1] = X[:, 0]
    model = Lasso(alpha=0.1).fit(X, X[:, 0] + 0.1 * rng.standard_normal(50))
    assert list(model.selected_[:2]) == [UNDECIDED, UNDECIDED]
    tasks = MultiTaskLasso(alpha=0.05, tol=1e-10).fit(X[:, 1:], X[:, 1:] + 1.0)
    assert tasks.selected_.shape == tasks.coef_.shape
    assert np.all(tasks.selected_.diagonal() == EVERY)


def test_two_classes_of_a_joint_loss_are_decided_by_their_difference() -> None:
    rng = np.random.default_rng(6)
    X = rng.standard_normal((80, 6))
    labels = (X[:, 0] + 0.5 * rng.standard_normal(80) > 0).astype(int)
    model = SparseClassifier("multinomial", "group", alpha=0.05, tol=1e-10).fit(X, labels)
    assert model.selected_.shape == model.coef_.shape == (1, 6)
    assert np.array_equal(model.selected_ == NONE, model.coef_ == 0)
    assert 0 < np.count_nonzero(model.coef_) < 6


def test_fitted_values_wait_until_they_are_read_and_stored_bounds_have_them() -> None:
    problem = problem_of(CASES["lasso"])
    bounds = sb.solve(problem, tol=1e-8).bounds()
    assert "fitted" not in vars(bounds)
    other = pickle.loads(pickle.dumps(bounds))
    assert np.array_equal(other.fitted.lower, bounds.fitted.lower)
    assert np.array_equal(other.decided, bounds.decided)
    assert repr(other) == repr(bounds)


def test_the_bounds_of_a_model() -> None:
    rng = np.random.default_rng(3)
    X = 5.0 + rng.standard_normal((60, 8))
    y = X[:, :2].sum(axis=1) + 0.3 * rng.standard_normal(60)
    model = Lasso(alpha=0.1).fit(X, y)
    found = sb.judge(model, X, y).bounds()
    assert np.array_equal(found.decided == EVERY, model.coef_ != 0)
    assert np.array_equal(found.decided == NONE, model.coef_ == 0)
    assert np.all(found.lower <= model.coef_ + 1e-6)
    assert np.all(model.coef_ <= found.upper + 1e-6)


def test_coefficient_matrices_with_a_nuclear_norm_have_bounds(rng):
    A = rng.normal(size=(60, 8))
    targets = A @ rng.normal(size=(8, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(60, 5))
    problem = sb.Problem(sb.Nuclear(5.0, (8, 5)), A, sb.Squared(targets))
    result, optimum = sb.solve(problem, tol=1e-6), sb.solve(problem, tol=1e-12)
    found = sb.bounds(problem, result.x, result.y)
    assert result.certificate.proved
    assert np.isfinite(found.gap)
    assert np.all(found.lower <= optimum.x)
    assert np.all(optimum.x <= found.upper)
