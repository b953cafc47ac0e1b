"""Different penalties for different columns: ``ByColumns``, and the penalty of an estimator by columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import saddleback as sb

LISTS = [[5, 0, 7], [4, 1, 2, 6], [3, 8]]
"""Columns of three penalties, in an order of their own."""


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
    assert found.lower == pytest.approx(in_order(expected.lower), abs=1e-9)
    assert found.upper == pytest.approx(in_order(expected.upper), abs=1e-9)


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
