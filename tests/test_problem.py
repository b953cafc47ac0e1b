"""Problems: shapes of the variables, blocks, and invalid arguments."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

import saddleback as sb


def test_blocks(rng):
    A, b = rng.standard_normal((4, 6)), np.ones(4)
    assert sb.Problem(sb.L1(1.0), A, sb.Squared(b)).n_blocks == 6
    assert sb.Problem(sb.GroupL2(1.0, 3), A, sb.Squared(b)).n_blocks == 2
    assert sb.Problem([sb.GroupL2(1.0, 3), sb.Zero()], [A, np.ones(4)], sb.Squared(b)).n_blocks == 3
    assert sb.Problem(sb.L1(1.0), aslinearoperator(A), sb.Squared(b)).n_blocks == 1
    robust_pca = [sb.SquaredL2(1.0), sb.L1(1.0), sb.Nuclear(1.0, (4, 6))]
    assert sb.Problem(robust_pca, [sb.Identity()] * 3, sb.Equality(A)).n_blocks == 3


def test_a_finite_block_under_an_identity_reaches_every_target(rng):
    B = rng.standard_normal((4, 6))

    def problem(*penalties):
        return sb.Problem(list(penalties), [sb.Identity()] * len(penalties), sb.Equality(B))

    exact = problem(sb.L1(1.0), sb.Nuclear(1.0, B.shape))
    assert exact.model.rays_prove_nothing
    assert not exact.model.surely_solvable
    assert not problem(sb.L1(1.0) + sb.Linear(2.0), sb.Nuclear(1.0, B.shape)).model.rays_prove_nothing
    held = problem(sb.NonNegative(), sb.Box(-0.1, 0.1))
    assert not held.model.rays_prove_nothing
    assert sb.solve(held).status is sb.Status.INFEASIBLE


def test_shapes_of_the_variables(rng):
    A = rng.standard_normal((4, 6))
    vector = sb.solve(sb.Problem(sb.L1(1.0), A, sb.Squared(np.ones(4))))
    assert vector.x.shape == (6,)
    assert vector.y.shape == (4,)
    matrix = sb.solve(sb.Problem(sb.GroupL2(1.0, 1), A, sb.Squared(np.ones((4, 3)))))
    assert matrix.x.shape == (6, 3)
    assert matrix.y.shape == (4, 3)
    column = sb.solve(sb.Problem(sb.L1(1.0), A, sb.Squared(np.ones((4, 1)))))
    assert column.x.shape == (6, 1)
    blocks = sb.solve(sb.Problem([sb.L1(1.0), sb.Nuclear(1.0, (4, 6))], [sb.Identity(), sb.Identity()], sb.Squared(A)))
    assert [x.shape for x in blocks.x] == [(4, 6), (4, 6)]
    assert blocks.y.shape == (4, 6)
    flat = sb.solve(sb.Problem(sb.Nuclear(1.0, (2, 3)), A, sb.Squared(np.ones(4))))
    assert flat.x.shape == (2, 3)


def test_a_matrix_variable_is_one_problem_per_task(rng):
    """With an entrywise penalty the tasks are independent."""
    A, b = rng.standard_normal((8, 5)), rng.standard_normal((8, 2))
    together = sb.solve(sb.Problem(sb.L1(0.5), A, sb.Squared(b)), tol=1e-10)
    apart = [sb.solve(sb.Problem(sb.L1(0.5), A, sb.Squared(b[:, k])), tol=1e-10).x for k in range(2)]
    assert np.allclose(together.x, np.column_stack(apart), atol=1e-5)


def test_scalar_bounds_apply_to_all_rows_of_a(rng):
    A = rng.standard_normal((3, 4))
    problem = sb.Problem(sb.Linear(A.sum(axis=0)) + sb.Box(-10, 10), A, sb.Interval(-1.0, 1.0))
    result = sb.solve(problem)
    assert result.certificate.primal_value == pytest.approx(-3.0, abs=1e-4)
    assert result.y.shape == (3,)


def test_linear_operator_is_the_matrix(rng):
    A, b = rng.standard_normal((6, 4)), rng.standard_normal(6)
    for penalty, loss in ((sb.L1(0.3), sb.Squared(b)), (sb.GroupL2(0.3, 2), sb.Absolute(b))):
        dense = sb.solve(sb.Problem(penalty, A, loss), tol=1e-8, max_passes=1e5)
        abstract = sb.solve(sb.Problem(penalty, aslinearoperator(A), loss), tol=1e-8, max_passes=1e5)
        assert abstract.status is sb.Status.OPTIMAL
        assert abstract.certificate.primal_value == pytest.approx(dense.certificate.primal_value, rel=1e-7)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda A: sb.Problem(sb.L1(1.0), A, sb.Squared(np.ones(5))), ValueError, "A has 4 rows.*shape \\(5,\\)"),
        (lambda A: sb.Problem(sb.L1(1.0, np.ones(2)), A, sb.Squared(np.ones(4))), ValueError, "weights has shape"),
        (lambda A: sb.Problem(sb.Squared(np.ones(4)), A, sb.L1(1.0)), TypeError, "penalty is Squared, a loss"),
        (lambda A: sb.Problem(sb.L1, A, sb.Squared(np.ones(4))), TypeError, "make an instance"),
        (lambda A: sb.Problem("l1", A, sb.Squared(np.ones(4))), TypeError, "value and prox missing"),
        (lambda A: sb.Problem([sb.L1(1.0)], A, sb.Squared(np.ones(4))), TypeError, "expected two lists"),
        (lambda A: sb.Problem([sb.L1(1.0)], [A, A], sb.Squared(np.ones(4))), ValueError, "1 blocks and A has 2"),
        (lambda A: sb.Problem([], [], sb.Squared(np.ones(4))), ValueError, "at least 1"),
        (lambda A: sb.Problem([sb.L1(1.0)] * 2, [A, A.T], sb.Squared(np.ones(4))), ValueError, r"A\[1\] has 3 rows"),
        (lambda A: sb.Problem(sb.GroupL2(1.0, [[0], [1]]), A, sb.Squared(np.ones(4))), ValueError, "partition"),
        (lambda A: sb.Problem(sb.Nuclear(1.0, (2, 2)), A, sb.Squared(np.ones(4))), ValueError, "Nuclear has shape"),
        (lambda _: sb.Problem(sb.L1(1.0), sb.Identity(), sb.Interval(0, 1)), ValueError, "shape of A x is not known"),
        (lambda A: sb.Problem(sb.L1(1.0), A, sb.Squared(np.ones(4), np.ones(3))), ValueError, "sample_weight"),
    ],
)
def test_bad_problems(make, error, match):
    with pytest.raises(error, match=match):
        make(np.ones((4, 3)))


def test_crossing_bounds_are_rejected():
    for f in (sb.Box(0, 1) + sb.Box(2, 3), sb.NonNegative() + sb.Box(-2, -1)):
        with pytest.raises(ValueError, match="leave nothing"):
            sb.Problem(f, np.eye(2), sb.Squared(np.ones(2)))


def test_matrix_loss_with_parts_of_both_kinds(rng):
    """One part acts on every task, the other on the flattened rows."""
    A, C, b = rng.standard_normal((20, 5)), rng.standard_normal((60, 4)), rng.standard_normal((20, 3))
    result = sb.solve(sb.Problem([sb.L1(1.0), sb.L1(1.0)], [A, C], sb.Squared(b)))
    assert result.status is sb.Status.OPTIMAL
    assert [x.shape for x in result.x] == [(5, 3), (4,)]
    residual = A @ result.x[0] + (C @ result.x[1]).reshape(20, 3) - b
    value = 0.5 * np.sum(residual**2) + sum(np.abs(x).sum() for x in result.x)
    assert result.certificate.primal_value == pytest.approx(value)


def test_matrix_variable_with_an_empty_column_settled_in_part(rng):
    A = rng.standard_normal((6, 4))
    A[:, 2] = 0.0
    c, upper = np.zeros((4, 2)), np.ones((4, 2))
    c[2], upper[2, 1] = [1.0, -1.0], np.inf
    problem = sb.Problem(sb.Linear(c) + sb.Box(0, upper), A, sb.Squared(rng.standard_normal((6, 2))))
    assert sb.solve(problem, max_passes=20_000).status is sb.Status.UNBOUNDED


def test_arguments_refer_to_the_original_problem(rng):
    """An empty column is removed internally, which the user need not know."""
    A = rng.standard_normal((6, 5))
    A[:, 4] = 0.0
    problem = sb.Problem(sb.L1(0.5), A, sb.Squared(rng.standard_normal(6)))
    strength = np.linalg.norm(A, 2)
    assert sb.solve(problem, blocks_per_iteration=5).status is sb.Status.OPTIMAL
    step = (np.full(5, strength), np.full(6, strength))
    assert sb.solve(problem, blocks_per_iteration=5, step=step).status is sb.Status.OPTIMAL
    with pytest.raises(ValueError, match="or 5 of them"):
        sb.solve(problem, step=(np.full(4, strength), strength))


@pytest.mark.parametrize("step", ["l1", "remark"])
def test_published_method_with_empty_columns(step, rng):
    A = rng.standard_normal((8, 6))
    A[:, 3] = 0.0
    labels = np.where(rng.random(8) < 0.5, 1.0, -1.0)
    for problem in (
        sb.Problem(sb.GroupL2(0.1, 2), A, sb.Hinge(labels)),
        sb.Problem([sb.L1(0.1), sb.Zero()], [A, np.ones(8)], sb.Hinge(labels)),
    ):
        result = sb.solve(problem, "sp-bcd-published", step=step, max_passes=50, sigma_rule="skip")
        assert result.status is not sb.Status.DIVERGED


def test_the_problem_does_not_change_with_its_inputs(rng):
    A, b = rng.standard_normal((6, 4)), rng.standard_normal(6)
    problem = sb.Problem(sb.L1(0.5), A, sb.Squared(b))
    before = sb.certify(problem, np.ones(4), np.ones(6))
    b[:] = 0.0
    assert sb.certify(problem, np.ones(4), np.ones(6)) == before


def test_matrix_penalties_know_their_shape(rng):
    with pytest.raises(ValueError, match="Nuclear has shape"):
        sb.Problem([sb.L1(1.0), sb.Nuclear(1.0, (6, 4))], [sb.Identity()] * 2, sb.Squared(np.ones((4, 6))))
    c = rng.standard_normal((2, 3)) * 0.01
    problem = sb.Problem(sb.Nuclear(1.0, (2, 3)) + sb.Linear(c), rng.standard_normal((9, 6)), sb.Squared(np.ones(9)))
    assert sb.solve(problem).x.shape == (2, 3)


def test_parameters_of_a_matrix_variable_are_per_entry_or_per_row():
    A, b = np.ones((5, 4)), np.ones((5, 3))
    sb.Problem(sb.L1(1.0, np.ones(4)), A, sb.Squared(b, np.ones(5)))
    sb.Problem(sb.L1(1.0, np.ones((4, 3))), A, sb.Squared(b, np.ones((5, 3))))
    for weights in (np.ones(3), np.ones(1)):
        with pytest.raises(ValueError, match="weights has shape"):
            sb.Problem(sb.L1(1.0, weights), A, sb.Squared(b))


def test_repr_of_problems_and_functions():
    problem = sb.Problem(sb.L1(0.5), np.eye(3), sb.Pinball(np.ones(3), 0.3))
    assert "L1(alpha=0.5)" in repr(problem)
    assert "3 x 3" in repr(problem)
    assert "quantile=0.3" in repr(problem)


class Own:
    def value(self, x):
        return np.abs(x).sum()

    def prox(self, v, step):
        return np.sign(v) * np.maximum(np.abs(v) - step, 0.0)


class OwnWithRepr(Own):
    def __repr__(self):
        return "OwnWithRepr(alpha=1)"


def test_repr_of_user_functions_is_their_name():
    assert repr(sb.Linear(np.ones(3)) + Own()) == "Linear(c=array(3,)) + Own"
    assert repr(Own() + sb.Linear(np.ones(3))) == "Own + Linear(c=array(3,))"
    assert repr(OwnWithRepr() + sb.Linear(np.ones(3))) == "OwnWithRepr(alpha=1) + Linear(c=array(3,))"
    assert repr(sb.Problem(Own(), np.eye(3), Own())) == "Problem(Own, 3 x 3, Own; 1 blocks)"
    assert repr(sb.Problem([Own()], [np.eye(3)], sb.Equality(np.zeros(3)))).startswith(
        "Problem([Own], 3 x 3, Equality("
    )


def test_a_list_of_rows_is_a_matrix():
    assert sb.Problem(sb.L1(1.0), [[1.0, 2.0], [3.0, 4.0]], sb.Squared([1.0, 2.0])).n_blocks == 2


@pytest.mark.parametrize(
    ("x0", "error", "match"),
    [
        ([np.zeros(3)], ValueError, r"x0 has 1 blocks: expected 2, of shapes \(3,\), \(1,\)"),
        ([np.zeros(3), [1.0, [2.0]]], ValueError, r"x0\[1\] is a list that makes no array: expected shape \(1,\)"),
        ([np.zeros(2), np.zeros(1)], ValueError, r"x0\[0\] has shape \(2,\): expected \(3,\)"),
        (np.zeros(4), TypeError, "x0 is ndarray: expected a list"),
    ],
)
def test_a_start_of_the_wrong_structure_is_named(x0, error, match):
    problem = sb.Problem([sb.L1(0.1), sb.Zero()], [np.eye(3), np.ones(3)], sb.Squared(np.ones(3)))
    with pytest.raises(error, match=match):
        sb.solve(problem, x0=x0)


def test_a_list_of_matrices_needs_a_list_of_terms():
    for A in ([np.eye(3), np.eye(3)], [np.eye(3), np.ones((1, 3))]):
        with pytest.raises((TypeError, ValueError), match="a list with one per penalty of a list, side by side"):
            sb.Problem(sb.L1(1.0), A, sb.Squared(np.ones(3)))


def test_solve_takes_a_problem():
    with pytest.raises(TypeError, match=r"problem is L1: .* as in solve\(Problem\(penalty, A, loss\)\)"):
        sb.solve(sb.L1(1.0), np.eye(3), sb.Squared(np.ones(3)))


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        ([[0, 1], [2]], "it does not list column 3"),
        ([[0, 1], [2, 4]], "it lists column 4, and they are numbered from 0 to 3"),
        ([[0, -1], [2, 3]], "it lists column -1"),
        ([[0, 1], [1, 2, 3]], "it lists column 1 more than once"),
    ],
)
def test_groups_that_are_no_partition_name_a_column(groups, match):
    with pytest.raises(ValueError, match=match):
        sb.Problem(sb.GroupL2(1.0, groups), np.eye(4), sb.Squared(np.ones(4)))
