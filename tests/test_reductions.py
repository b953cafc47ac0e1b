"""Reductions: a smaller problem with the same optimum, and its points mapped back to the original rows and columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from scipy import sparse

import saddleback as sb
from saddleback.functions.points import DensePoint
from saddleback.reductions import drop_empty, merge_rows

M, N, COPIES = 8, 5, 3
ROW = np.tile(np.arange(M), COPIES)  # the index of the distinct row of each row

LOSSES = {
    "Squared": lambda b, **kw: sb.Squared(b, **kw),
    "Absolute": lambda b, **kw: sb.Absolute(b, **kw),
    "Pinball": lambda b, **kw: sb.Pinball(b, 0.3, **kw),
    "Pinball edge": lambda b, **kw: sb.Pinball(b, 1.0, **kw),
    "Huber": lambda b, **kw: sb.Huber(b, 0.3, **kw),
    "EpsilonInsensitive": lambda b, **kw: sb.EpsilonInsensitive(b, 0.2, **kw),
    "Hinge": lambda b, **kw: sb.Hinge(np.where(b > 0, 1.0, -1.0), **kw),
    "SquaredHinge": lambda b, **kw: sb.SquaredHinge(np.where(b > 0, 1.0, -1.0), **kw),
    "Logistic": lambda b, **kw: sb.Logistic(np.where(b > 0, 1.0, -1.0), **kw),
}


def repeated_data(rng, weighted=True):
    A = rng.standard_normal((M, N))[ROW]
    b = rng.standard_normal(M)[ROW]
    weight = rng.uniform(0.5, 2, M * COPIES) * (rng.random(M * COPIES) < 0.8) if weighted else np.ones(M * COPIES)
    return A, b, weight


def merged(problem):
    first = drop_empty(problem.model)
    return first.then(merge_rows(first.model))


@pytest.mark.parametrize("name", LOSSES)
@examples(15)
@given(seed=st.integers(0, 10_000), weighted=st.booleans())
def test_merged_values_are_those_of_the_original_rows(name, seed, weighted):
    """P agrees at any x, and D at any y that splits the merged value among the rows."""
    rng = np.random.default_rng(seed)
    A, b, weight = repeated_data(rng, weighted)
    problem = sb.Problem(sb.L1(0.1), sparse.csc_matrix(A), LOSSES[name](b, sample_weight=weight))
    reduction = merged(problem)
    g, small = problem.model.g, reduction.model.g
    assert reduction.model.A.shape[0] <= M * (1 + np.any(weight == 0))  # for any weights
    x = rng.standard_normal(N)
    u = reduction.model.A.matvec(x)
    assert np.allclose(reduction.restore_u(DensePoint(reduction.reduce_x(x)), u), problem.model.A.matvec(x), atol=1e-13)
    assert small.value(u) == pytest.approx(g.value(A @ x), rel=1e-12, abs=1e-12)
    y = small.conjugate().domain.project(rng.standard_normal(u.size))
    full = reduction.restore_y(DensePoint(y)).vector()
    assert small.conjugate().value(y) == pytest.approx(g.conjugate().value(full), rel=1e-9, abs=1e-12)
    assert np.allclose(problem.model.A.rmatvec(full), reduction.model.A.rmatvec(y))
    assert np.allclose(reduction.reduce_y(full), y)
    assert np.allclose(small.subgradient(u), reduction.reduce_y(g.subgradient(A @ x)), atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_merging_is_invisible_in_the_result(name, rng):
    A, b, weight = repeated_data(rng)
    problem = sb.Problem(sb.L1(0.3), A, LOSSES[name](b, sample_weight=weight))
    result = sb.solve(problem, tol=1e-8)
    assert result.status is sb.Status.OPTIMAL
    assert result.y.shape == b.shape
    assert sb.certify(problem, result.x, result.y).to_dict() == pytest.approx(
        result.certificate.to_dict(), rel=1e-9, abs=1e-14
    )
    unmerged = sb.solve(problem, method="pdhg", tol=1e-6, max_passes=100_000)
    assert result.certificate.primal_value == pytest.approx(unmerged.certificate.primal_value, rel=3e-6)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("method", ["auto", "finish"])
def test_integer_weights_are_repeated_rows(make, method, rng):
    A, b = rng.standard_normal((12, N)), rng.standard_normal(12)
    counts = rng.integers(1, 5, 12)
    weighted = sb.Problem(sb.L1(0.3), make(A), sb.Absolute(b, sample_weight=counts))
    rows = sb.Problem(sb.L1(0.3), make(np.repeat(A, counts, axis=0)), sb.Absolute(np.repeat(b, counts)))
    assert merged(rows).model.A.shape == (12, N)
    one, other = (sb.solve(problem, method=method, tol=1e-9) for problem in (weighted, rows))
    assert one.certificate.primal_value == pytest.approx(other.certificate.primal_value, rel=1e-8)


def test_rows_with_other_targets_or_other_losses_are_not_merged(rng):
    A, b, _ = repeated_data(rng)
    apart = sb.Problem(sb.L1(0.3), A, sb.Absolute(rng.standard_normal(b.size)))
    assert merged(apart).model.A.shape[0] == b.size
    z = np.where(np.arange(b.size) < M, 1.0, -1.0)
    assert merged(sb.Problem(sb.L1(0.3), A, sb.Hinge(z))).model.A.shape[0] == 2 * M


def test_rows_that_differ_only_in_their_labels_may_come_in_any_order(rng):
    """Other rows may lie between them."""
    z = np.where(rng.random(600) < 0.5, 1.0, -1.0)
    A = sparse.csr_matrix(np.eye(3)[rng.integers(3, size=600)])
    assert merged(sb.Problem(sb.L1(0.3), A, sb.Hinge(z))).model.A.shape[0] == 6


def test_a_few_equal_rows_are_not_merged(rng):
    A, b = rng.standard_normal((40, N)), rng.standard_normal(40)
    A[1], b[1] = A[0], b[0]
    assert merged(sb.Problem(sb.L1(0.3), A, sb.Absolute(b))).model.A.shape[0] == 40


def test_losses_that_are_not_a_sum_over_rows_are_not_merged(rng):
    A, b, _ = repeated_data(rng)
    assert merged(sb.Problem(sb.L1(0.3), A, sb.Norm2(b))).model.A.shape[0] == b.size
    assert merged(sb.Problem(sb.L1(0.3), A, sb.Squared(np.stack([b, b], 1)))).model.A.shape[0] == 2 * b.size


def test_equal_constraints_become_one(rng):
    A, b, _ = repeated_data(rng)
    x = rng.standard_normal(N)
    for loss in (sb.Equality(A @ x), sb.Interval(A @ x - 0.1, A @ x + b**2)):
        problem = sb.Problem(sb.L1(1.0), A, loss)
        assert merged(problem).model.A.shape[0] == M
        result = sb.solve(problem, tol=1e-8)
        assert result.status is sb.Status.OPTIMAL
        assert sb.certify(problem, result.x, result.y).error <= 1e-8


def test_constraints_that_contradict_each_other_are_infeasible(rng):
    A, _, _ = repeated_data(rng)
    target = A @ np.ones(N)
    target[-1] += 1.0
    assert sb.solve(sb.Problem(sb.L1(1.0), A, sb.Equality(target))).status is sb.Status.INFEASIBLE


def test_a_start_is_merged_too(rng):
    A, b, weight = repeated_data(rng)
    problem = sb.Problem(sb.L1(0.3), A, sb.Absolute(b, sample_weight=weight))
    first = sb.solve(problem, tol=1e-8)
    again = sb.solve(problem, tol=1e-8, x0=first)
    assert again.status is sb.Status.OPTIMAL
    assert again.certificate.error <= first.certificate.error * (1 + 1e-6) + 1e-15


def test_empty_and_equal_rows_at_once(rng):
    A, b, weight = repeated_data(rng)
    A[ROW == 2] = 0.0
    A[:, 1] = 0.0
    problem = sb.Problem(sb.L1(0.3), A, sb.Huber(b, 0.5, sample_weight=weight))
    reduction = merged(problem)
    assert reduction.model.A.shape[1] == N - 1
    result = sb.solve(problem, tol=1e-8)
    assert result.status is sb.Status.OPTIMAL
    assert result.x[1] == 0
    assert sb.certify(problem, result.x, result.y).error <= 1e-8
