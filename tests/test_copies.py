"""Overlapping groups as disjoint groups of copies: the same problem, exact zeros, and the way back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optional import optional
from profiles import examples
from scipy import sparse

import saddleback as sb
from saddleback.functions.points import DensePoint
from saddleback.reductions import copy_groups
from saddleback.reductions.copies import Copied

cp = optional("cvxpy")

M, N = 30, 12
GROUPS = [np.array([0, 1, 2, 3]), np.array([3, 4, 5]), np.array([2, 3, 6]), np.array([7, 8, 9]), np.array([9, 10])]
"""Entry 3 is in three groups, entry 11 in none."""
WEIGHTS = [1.0, 0.5, 2.0, 1.5, 1.0]

PENALTIES = {
    "Zero": (sb.Zero(), lambda x: (0.0, [])),
    "L1": (sb.L1(0.1), lambda x: (0.1 * cp.norm1(x), [])),
    "NonNegative": (sb.NonNegative(), lambda x: (0.0, [x >= 0])),
    "L1 + NonNegative": (sb.L1(0.1) + sb.NonNegative(), lambda x: (0.1 * cp.norm1(x), [x >= 0])),
}
LOSSES = {
    "Squared": (sb.Squared, lambda u, b: cp.sum_squares(u - b) / 2),
    "Absolute": (sb.Absolute, lambda u, b: cp.norm1(u - b)),
    "Hinge": (
        lambda b: sb.Hinge(np.where(b > 0, 1.0, -1.0)),
        lambda u, b: cp.sum(cp.pos(1 - cp.multiply(np.where(b > 0, 1.0, -1.0), u))),
    ),
    "Logistic": (
        lambda b: sb.Logistic(np.where(b > 0, 1.0, -1.0)),
        lambda u, b: cp.sum(cp.logistic(-cp.multiply(np.where(b > 0, 1.0, -1.0), u))),
    ),
}


def norms(alpha):
    return sb.GroupL2(alpha, [len(group) for group in GROUPS], WEIGHTS)


def repeat():
    return sb.Repeat(np.concatenate(GROUPS), N)


def problem_of(rng, penalty="Zero", loss="Squared", alpha=9.0, make=np.asarray):
    A, b = make(rng.standard_normal((M, N))), rng.standard_normal(M)
    return sb.Problem(PENALTIES[penalty][0], [A, repeat()], [LOSSES[loss][0](b), norms(alpha)]), A, b


def dual_value(model, y):
    return -model.g_star.value(y) - model.f_star.value(-model.A.rmatvec(y)) + model.constant


@pytest.mark.parametrize("penalty", PENALTIES)
@examples(20)
@given(seed=st.integers(0, 10_000))
def test_values_are_those_of_the_groups_that_overlap(penalty, seed):
    """P agrees at any x, and D at any y of the copies at which it is finite."""
    rng = np.random.default_rng(seed)
    problem, *_ = problem_of(rng, penalty, alpha=40.0)
    reduction = copy_groups(problem.model)
    model, smaller = problem.model, reduction.model
    x = rng.standard_normal(N) * (rng.random(N) < 0.7)
    x = np.abs(x) if "NonNegative" in penalty else x
    v = reduction.reduce_x(x)
    assert smaller.f.value(v) + smaller.g.value(smaller.A.matvec(v)) == pytest.approx(problem.value(x), rel=1e-12)
    assert np.allclose(reduction.restore_x(DensePoint(v), lambda: None).vector(), x, atol=1e-15)
    assert np.allclose(reduction.restore_u(DensePoint(v), smaller.A.matvec(v)), model.A.matvec(x), atol=1e-12)
    y = smaller.g_star.domain.project(rng.standard_normal(smaller.A.shape[0]))
    y[:M] *= 0.0 if "NonNegative" in penalty else 1.0  # multiples of a slope need not be feasible there
    y *= 0.99 * smaller.f_star.domain.largest_multiple(-smaller.A.rmatvec(y))
    back = reduction.restore_y(DensePoint(y)).vector()
    z = -model.A.rmatvec(back)
    assert np.allclose(model.f_star.domain.project(z), z, atol=1e-12)
    assert dual_value(smaller, y) == pytest.approx(-model.g_star.value(back) + model.constant, abs=1e-10)


def test_a_dual_point_goes_to_the_copies_and_back(rng):
    problem, *_ = problem_of(rng)
    reduction = copy_groups(problem.model)
    y = rng.standard_normal(problem.model.A.shape[0])
    z = problem.model.A.rmatvec(y)
    covered = np.flatnonzero(repeat().rmatvec(np.ones(repeat().shape[0])))
    # with f = 0 the slopes of all norms of an entry are in balance with that of the loss
    slopes = np.bincount(np.concatenate(GROUPS), minlength=N)
    y[M:] -= (z[np.concatenate(GROUPS)]) / slopes[np.concatenate(GROUPS)]
    assert np.allclose(problem.model.A.rmatvec(y)[covered], 0.0, atol=1e-12)
    assert np.allclose(reduction.restore_y(DensePoint(reduction.reduce_y(y))).vector(), y, atol=1e-12)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_solutions_agree_with_cvxpy(penalty, loss, make, rng):
    problem, A, b = problem_of(rng, penalty, loss, 9.0, make)
    assert isinstance(copy_groups(problem.model), Copied)
    result = sb.solve(problem, tol=1e-8)
    assert result.status is sb.Status.OPTIMAL
    assert sb.certify(problem, result.x, result.y).error <= 1e-8
    x = cp.Variable(N)
    term, constraints = PENALTIES[penalty][1](x)
    groups = sum(9.0 * weight * cp.norm(x[group]) for weight, group in zip(WEIGHTS, GROUPS, strict=True))
    program = cp.Problem(cp.Minimize(LOSSES[loss][1](A @ x, b) + term + groups), constraints)
    program.solve(solver="CLARABEL")
    assert result.objective == pytest.approx(program.value, rel=1e-6)


@pytest.mark.parametrize("loss", ["Squared", "Hinge"])
def test_zeros_are_exact(loss, rng):
    """What is not 0 is the complement of the groups that are 0."""
    problem, *_ = problem_of(rng, "Zero", loss, 7.0)
    result = sb.solve(problem, tol=1e-8, finish=False)  # an interior point ends close to 0
    zero = [group for group in GROUPS if np.linalg.norm(result.x[group]) <= 1e-6]
    assert zero
    assert not np.any(result.x[np.concatenate(zero)])
    assert np.any(result.x)


def test_a_block_without_groups_stays(rng):
    A, b = rng.standard_normal((M, N)), rng.standard_normal(M)
    problem = sb.Problem([sb.Zero(), sb.Zero()], [[A, np.ones((M, 1))], [repeat(), None]], [sb.Absolute(b), norms(9.0)])
    assert isinstance(copy_groups(problem.model), Copied)
    result = sb.solve(problem, tol=1e-8)
    x, level = cp.Variable(N), cp.Variable()
    groups = sum(9.0 * weight * cp.norm(x[group]) for weight, group in zip(WEIGHTS, GROUPS, strict=True))
    program = cp.Problem(cp.Minimize(cp.norm1(A @ x + level - b) + groups))
    program.solve(solver="CLARABEL")
    assert result.objective == pytest.approx(program.value, rel=1e-6)
    assert sb.certify(problem, result.x, result.y).error <= 1e-8


def test_a_constraint_beside_the_groups_stays(rng):
    A, b = rng.standard_normal((M, N)), rng.standard_normal(M)
    problem = sb.Problem(
        sb.Zero(), [A, repeat(), np.ones((1, N))], [sb.Squared(b), norms(9.0), sb.Equality(np.ones(1))]
    )
    result = sb.solve(problem, tol=1e-8)
    assert result.status is sb.Status.OPTIMAL
    assert result.x.sum() == pytest.approx(1.0, abs=1e-7)
    assert sb.certify(problem, result.x, result.y).error <= 1e-8
    contradiction = sb.Problem(
        sb.Zero(), [A, repeat(), np.ones((2, N))], [sb.Squared(b), norms(9.0), sb.Equality(np.array([1.0, 2.0]))]
    )
    assert sb.solve(contradiction).status is sb.Status.INFEASIBLE


def test_a_result_is_a_start(rng):
    problem, *_ = problem_of(rng, "Zero", "Hinge")
    first = sb.solve(problem, tol=1e-8)
    again = sb.solve(problem, tol=1e-8, x0=first)
    assert again.status is sb.Status.OPTIMAL
    assert again.passes < first.passes


def test_groups_without_an_overlap_become_the_penalty(rng):
    A, b = rng.standard_normal((M, N)), rng.standard_normal(M)
    order = rng.permutation(N)
    problem = sb.Problem(sb.Zero(), [A, sb.Repeat(order, N)], [sb.Squared(b), sb.GroupL2(9.0, 3)])
    reduced = copy_groups(problem.model)
    assert reduced.model.A.shape == (M, N)
    plain = sb.Problem(sb.GroupL2(9.0, order.reshape(-1, 3).tolist()), A, sb.Squared(b))
    assert sb.solve(problem, tol=1e-9).objective == pytest.approx(sb.solve(plain, tol=1e-9).objective, rel=1e-8)


def test_groups_that_all_leave_zero_are_left_alone(rng):
    assert copy_groups(problem_of(rng, alpha=9.0)[0].model) is not None
    assert copy_groups(problem_of(rng, alpha=0.1)[0].model) is None


def test_what_is_not_a_norm_of_entries_is_left_alone(rng):
    A, b = rng.standard_normal((M, N)), rng.standard_normal(M)
    D = sb.Differences(shape=(3, 4))
    losses = [sb.Squared(b), sb.GroupL2(1.0, D.groups)]
    assert copy_groups(sb.Problem(sb.Zero(), [A, D], losses).model) is None
    losses = [sb.Squared(b), norms(9.0)]
    scaled = sparse.csr_array(repeat().tosparse() * 2.0)
    assert copy_groups(sb.Problem(sb.Zero(), [A, scaled], losses).model) is None
    for penalty in (sb.SquaredL2(1.0), sb.Box(-1.0, 2.0)):
        assert copy_groups(sb.Problem(penalty, [A, repeat()], losses).model) is None
    assert copy_groups(sb.Problem(sb.Zero(), [A, repeat()], [sb.Squared(b), sb.L1(1.0)]).model) is None
    assert copy_groups(sb.Problem(sb.Zero(), A, sb.Squared(b)).model) is None


def test_an_empty_row_of_the_data_changes_nothing_about_the_method(rng):
    """A later reduction must not forget that the rows which make copies equal are no constraints of the user."""
    A, b = rng.standard_normal((M, N)), rng.standard_normal(M)
    found = []
    for extra in (0, 1):
        rows, target = np.vstack([A, np.zeros((extra, N))]), np.append(b, np.zeros(extra))
        found.append(sb.solve(sb.Problem(sb.Zero(), [rows, repeat()], [sb.Absolute(target), norms(6.0)])))
    assert found[0].method == found[1].method
    assert np.isclose(found[0].objective, found[1].objective, rtol=1e-5)


def test_a_large_sparse_matrix_is_copied_as_a_sparse_one():
    """20,000 x 20,002 entries would not fit into memory; those that are not 0 take a megabyte."""
    n, groups = 20_002, 2000
    step = n // groups
    members = [np.arange(step * g, min(step * g + step + 3, n)) for g in range(groups)]
    rng = np.random.default_rng(0)
    at = rng.integers(0, 20_000, 40_000), rng.integers(0, n, 40_000)
    A = sparse.coo_array((rng.random(40_000), at), shape=(20_000, n)).tocsc()
    terms = [sb.Squared(np.ones(20_000)), sb.GroupL2(50.0, [each.size for each in members])]
    problem = sb.Problem(sb.Zero(), [A, sb.Repeat(np.concatenate(members), n)], terms)
    assert isinstance(copy_groups(problem.model), Copied)
