"""Paths: the same results as separate solves, each certified, with less work."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import saddleback as sb
from saddleback.functions import Term
from saddleback.paths.path import _start


def data(m=60, n=500):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, n))
    b = A[:, :4].sum(axis=1) + 0.5 * rng.standard_normal(m)
    return A, b


def cases():
    A, b = data()
    z = np.where(b > 0.5, 1.0, -1.0)
    one = np.ones(b.size)
    return {
        "Lasso": (sb.L1(1.0), A, sb.Squared(b), 1e-8),
        "Lasso, sparse, with an intercept": ([sb.L1(1.0), sb.Zero()], [sparse.csr_matrix(A), one], sb.Squared(b), 1e-8),
        "elastic net, logistic": ([sb.ElasticNet(1.0, 0.7), sb.Zero()], [A, one], sb.Logistic(z), 1e-7),
        "group quantile": ([sb.GroupL2(1.0, 5), sb.Zero()], [A, one], sb.Pinball(b, 0.3), 1e-4),
        "hinge": ([sb.L1(1.0), sb.Zero()], [A, one], sb.Hinge(z), 1e-4),
        "nonnegative, Huber": (sb.L1(1.0) + sb.NonNegative(), A, sb.Huber(b, 0.5), 1e-7),
        "many tasks": (sb.GroupL2(1.0, 1), A, sb.Squared(np.column_stack([b, b[::-1]])), 1e-7),
    }


def blocks(x):
    return x if isinstance(x, list) else [x]


@pytest.mark.parametrize("name", cases())
def test_equal_to_solves_from_scratch(name):
    penalty, A, loss, tol = cases()[name]
    results = sb.path(penalty, A, loss, n_alphas=4, eps=0.1, tol=tol)
    alphas = sb.alpha_max(penalty, A, loss) * np.geomspace(1, 0.1, 4)
    assert [result.settings["alpha"] for result in results] == pytest.approx(alphas)
    for alpha, result in zip(alphas, results, strict=True):
        problem = sb.Problem(penalty, A, loss).with_alpha(alpha)
        cold = sb.solve(problem, tol=tol)
        assert result.status is cold.status is sb.Status.OPTIMAL
        assert result.certificate.primal_value == pytest.approx(cold.certificate.primal_value, rel=2 * tol)
        again = sb.certify(problem, result.x, result.y)
        assert again.relative_gap <= 1.01 * tol
        assert again.primal_value == pytest.approx(result.certificate.primal_value, rel=1e-12)
    assert not np.any(blocks(results[0].x)[0])  # x = 0 is a solution at alpha_max, and the path begins with it
    assert np.any(blocks(results[1].x)[0])


def test_less_work_than_from_scratch():
    A, b = data(m=100, n=1500)
    results = sb.path(sb.L1(1.0), A, sb.Squared(b), n_alphas=10, eps=0.05)
    cold = [sb.solve(sb.Problem(sb.L1(result.settings["alpha"]), A, sb.Squared(b))) for result in results]
    assert all(result.status is sb.Status.OPTIMAL for result in results)
    assert sum(result.passes for result in results) < 0.9 * sum(result.passes for result in cold)


def test_data_shared_along_a_path_do_not_change_the_results():
    A, b = data(m=60, n=40)
    for penalty in (sb.L1(1.0), sb.GroupL2(1.0, 4)):
        results = sb.path(penalty, A, sb.Squared(b), n_alphas=6, eps=0.05)
        problem = sb.Problem(penalty, A, sb.Squared(b))
        for k in range(2, 6):
            alpha = results[k].settings["alpha"]
            alone = sb.solve(problem.with_alpha(alpha), x0=_start(results[k - 2 : k], alpha))
            assert np.array_equal(alone.x, results[k].x)
            assert alone.passes == results[k].passes
            problem = sb.Problem(penalty, A, sb.Squared(b))  # with no cached properties


def test_a_problem_that_was_solved_is_plain_data():
    A, b = data(m=60, n=40)
    problem = sb.Problem(sb.L1(1.0), A, sb.Squared(b))
    x = sb.solve(problem).x
    assert np.array_equal(sb.solve(pickle.loads(pickle.dumps(problem))).x, x)


def test_nearly_equal_alphas_do_not_spoil_the_extrapolation():
    """The difference of two such solutions is mostly the difference of their errors."""
    A, b = data(m=100, n=60)
    loss = sb.Logistic(np.sign(b))
    first = sb.alpha_max(sb.L1(1.0), A, loss)
    alphas = first * np.array([0.5, 0.5 * (1 - 1e-12), 0.01])
    last = sb.path(sb.L1(1.0), A, loss, alphas=alphas, tol=1e-3)[-1]
    assert last.status is sb.Status.OPTIMAL
    assert last.passes < 3 * sb.solve(sb.Problem(sb.L1(alphas[-1]), A, loss), tol=1e-3).passes


def test_threads_are_those_of_a_single_solve():
    from threadpoolctl import threadpool_info

    found = []

    def note(info: sb.Info) -> None:
        found.append({each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"})

    X = np.outer(np.arange(5.0), np.arange(6.0))
    blocks = [sb.Nuclear(1.0, X.shape), sb.L1(1.0)], [sb.Identity()] * 2, sb.Squared(X)
    sb.path(*blocks, alphas=[0.5, 0.4], threads=1, callback=note)
    assert found
    assert all(each == {1} for each in found)


def test_the_same_problem_solved_twice_takes_the_same_work():
    A, b = data(m=60, n=40)
    problem = sb.Problem(sb.L1(1.0), A, sb.Squared(b))
    first, second = sb.solve(problem), sb.solve(problem)
    assert np.array_equal(first.x, second.x)
    assert first.passes == second.passes


def test_solutions_on_a_straight_line_are_predicted():
    b = np.array([3.0, -2.0, 1.0, 0.9])
    problem = sb.Problem([sb.L1(1.0), sb.Zero()], [np.eye(5)[:, :4], np.eye(5)[:, 4:]], sb.Squared(np.append(b, 7.0)))
    alphas = (0.8, 0.6, 0.4)
    last = [sb.solve(problem.with_alpha(alpha), tol=1e-14) for alpha in alphas[:2]]
    last = [replace(result, settings={"alpha": alpha}) for alpha, result in zip(alphas, last, strict=False)]
    start = _start(last, alphas[2])
    assert np.allclose(start.x[0], np.sign(b) * (np.abs(b) - 0.4), atol=1e-6)
    assert np.allclose(start.x[1], 7.0)
    beyond = _start(last[::-1], 1.0)  # soft thresholding with 1.0 makes two of them 0
    assert np.allclose(beyond.x[0], [2.0, -1.0, 0.0, 0.0], atol=1e-6)
    assert _start(last[:1], 0.5) is last[0]


def test_given_alphas_in_any_order():
    A, b = data()
    results = sb.path(sb.SquaredL2(1.0), A, sb.Squared(b), alphas=[1.0, 30.0, 5.0])
    assert [result.settings["alpha"] for result in results] == [30.0, 5.0, 1.0]
    for result in results:
        exact = np.linalg.solve(A.T @ A + result.settings["alpha"] * np.eye(A.shape[1]), A.T @ b)
        assert np.allclose(result.x, exact, atol=2e-3)


def test_options_go_to_every_solve():
    A, b = data()
    seen = []
    results = sb.path(
        sb.L1(1.0),
        A,
        sb.Absolute(b),
        n_alphas=3,
        eps=0.2,
        tol=0.0,
        max_passes=30,
        callback=lambda info: seen.append(info),
    )
    assert [result.status for result in results] == [sb.Status.MAX_PASSES] * 3
    judged = sum(len(result.history) for result in results)
    assert len(seen) <= judged <= len(seen) + 3  # each history may have one more entry, for the result
    assert all(result.method == "pdhg" for result in sb.path(sb.L1(1.0), A, sb.Squared(b), [9.0], method="pdhg"))


def test_a_path_ends_with_the_interrupted_solve():
    A, b = data()
    results = sb.path(sb.L1(1.0), A, sb.Squared(b), n_alphas=5, callback=lambda info: True)
    assert [result.status for result in results] == [sb.Status.OPTIMAL]  # alpha_max is optimal at the first certificate
    results = sb.path(sb.L1(1.0), A, sb.Squared(b), n_alphas=5, tol=0, callback=lambda info: True)
    assert [result.status for result in results] == [sb.Status.INTERRUPTED]


def test_the_first_solve_starts_from_the_given_point():
    A, b = data(n=80)
    loss = sb.Absolute(b)
    solved = sb.solve(sb.Problem(sb.L1(5.0), A, loss), tol=1e-5)
    for start in ({"x0": solved.x, "y0": solved.y}, {"x0": solved}):
        (warm,) = sb.path(sb.L1(1.0), A, loss, [5.0], tol=1e-4, **start)
        assert warm.passes < 0.2 * solved.passes
        assert np.array_equal(warm.x, solved.x)


def test_a_result_is_accepted_as_a_start():
    """solve(x0=result) uses both points and the primal weight of the result."""
    A, b = data(n=80)
    problem = sb.Problem(sb.L1(5.0), A, sb.Absolute(b))
    first = sb.solve(problem, method="sp-bcd", tol=1e-4)
    second = sb.solve(problem, method="sp-bcd", tol=1e-4, x0=first)
    assert len(second.history) == 1
    assert np.array_equal(second.x, first.x)
    assert second.settings["primal_weight"] == first.settings["primal_weight"] != 1.0


def test_a_problem_shares_its_matrix_with_those_of_other_alphas():
    A, b = data()
    problem = sb.Problem([sb.L1(1.0), sb.Zero()], [A, np.ones(b.size)], sb.Squared(b))
    other = problem.with_alpha(3.0)
    assert other.model.A is problem.model.A
    assert other.model.g is problem.model.g
    assert other.model.A.sums(2) is problem.model.A.sums(2)
    assert other.model.f.value(np.ones(501)) == 3 * problem.model.f.value(np.ones(501))
    assert problem.penalty[0].alpha == 1.0
    columnar = problem.columnar()
    assert columnar.columnar().model.A is columnar.model.A


def test_a_term_with_another_alpha():
    """Only alpha changes: f(alpha) - f(0) is alpha times f(1) - f(0), for any additional terms."""
    x = np.linspace(0.1, 0.9, 6)
    terms: list[Term] = [
        sb.L1(2.0, np.arange(6.0)) + sb.Linear(x),
        sb.ElasticNet(2.0, 0.3) + sb.Box(-1, 1),
        sb.SparseGroup(2.0, [2, 4], 0.3, [1.0, 3.0]) + sb.NonNegative(),
        sb.GroupL2(2.0, 3),
        sb.SquaredL2(2.0),
        sb.Nuclear(2.0, (2, 3)) + sb.Linear(x),
    ]
    for term in terms:
        base = term.with_alpha(0.0).value(x)
        assert term.has_alpha()
        assert term.with_alpha(0.7).value(x) - base == pytest.approx(0.35 * (term.value(x) - base))
    assert not sb.Zero().has_alpha()
    assert sb.Box(0, 1).with_alpha(3.0).value(x) == 0
    with pytest.raises(ValueError, match="alpha"):
        sb.L1(1.0).with_alpha(-1.0)


def test_errors_say_what_is_wrong():
    A, b = data(n=5)
    g = sb.Squared(b)
    with pytest.raises(ValueError, match="no alpha"):
        sb.path(sb.NonNegative(), A, g)
    for bad in ([], 1.0, [0.0, 1.0], [-1.0], [np.nan], [[1.0]]):
        with pytest.raises(ValueError, match="alphas"):
            sb.path(sb.L1(1.0), A, g, bad)
    with pytest.raises(ValueError, match="n_alphas"):
        sb.path(sb.L1(1.0), A, g, n_alphas=0)
    for eps in (0.0, 1.0, 2.0):
        with pytest.raises(ValueError, match="eps"):
            sb.path(sb.L1(1.0), A, g, eps=eps)
    with pytest.raises(ValueError, match="alpha_max is 0"):
        sb.path(sb.L1(1.0), A, sb.Squared(np.zeros(b.size)))
    with pytest.raises(ValueError, match="no kink"):
        sb.path(sb.SquaredL2(1.0), A, g)
    with pytest.raises(TypeError, match="tolerance"):
        sb.path(sb.L1(1.0), A, g, tolerance=1e-3)
