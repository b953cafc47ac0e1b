"""Problems: shapes of the variables, blocks, and what is refused."""

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


def test_matrix_variable_is_one_problem_a_task(rng):
    """With an entrywise penalty the tasks do not meet."""
    A, b = rng.standard_normal((8, 5)), rng.standard_normal((8, 2))
    together = sb.solve(sb.Problem(sb.L1(0.5), A, sb.Squared(b)), tol=1e-10)
    apart = [sb.solve(sb.Problem(sb.L1(0.5), A, sb.Squared(b[:, k])), tol=1e-10).x for k in range(2)]
    assert np.allclose(together.x, np.column_stack(apart), atol=1e-5)


def test_scalar_bounds_take_the_rows_of_a(rng):
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
        (lambda A: sb.Problem(sb.L1(1.0), A, sb.Box(0, 1)), TypeError, "use Interval"),
        (lambda A: sb.Problem(sb.L1, A, sb.Squared(np.ones(4))), TypeError, "make an instance"),
        (lambda A: sb.Problem("l1", A, sb.Squared(np.ones(4))), TypeError, "value and prox missing"),
        (lambda A: sb.Problem([sb.L1(1.0)], A, sb.Squared(np.ones(4))), TypeError, "both be lists"),
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
