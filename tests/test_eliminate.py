"""Blocks under identities become part of the loss, and alternating minimisation solves the reduced problem."""

from __future__ import annotations

import numpy as np
import pytest

import saddleback as sb
from saddleback.datasets import make_robust_pca
from saddleback.functions.points import DensePoint
from saddleback.reductions import eliminate_identities


def robust_pca(m=20, n=30, rank=2):
    data = make_robust_pca(m, n, rank)
    penalties = [sb.SquaredL2(1.0), sb.L1(data.sparse_alpha), sb.Nuclear(data.nuclear_alpha, data.B.shape)]
    return data, sb.Problem(penalties, [sb.Identity()] * 3, sb.Equality(data.B))


def test_the_three_blocks_of_robust_pca():
    data, problem = robust_pca()
    result = sb.solve(problem, tol=1e-9)
    assert result.method == "alternating"
    assert result.status is sb.Status.OPTIMAL
    assert [block.shape for block in result.x] == [data.B.shape] * 3
    assert np.allclose(sum(result.x), data.B, atol=1e-12)
    assert sb.certify(problem, result.x, result.y).relative_gap <= 1e-9
    kept = sb.solve(problem, tol=1e-9, eliminate=False, max_passes=20_000)
    assert kept.method == "sp-bcd"
    assert kept.certificate.primal_value == pytest.approx(result.certificate.primal_value, rel=3e-9)


@pytest.mark.parametrize("loss", ["Equality", "Absolute", "Interval", "Pinball"])
@pytest.mark.parametrize("scale", [1.0, -2.0])
def test_any_loss_and_scale(rng, loss, scale):
    """The reduced problem has the same optimum, and its points are mapped to points of the original problem."""
    A, b = rng.standard_normal((12, 5)), rng.standard_normal(12)
    made = {
        "Equality": sb.Equality(b),
        "Absolute": sb.Absolute(b, scale=0.4),
        "Interval": sb.Interval(b - 0.1, b + 0.2),
        "Pinball": sb.Pinball(b, 0.3),
    }[loss]
    penalties = [sb.L1(0.2), sb.SquaredL2(1.5) + sb.Linear(0.1 * b)]
    problem = sb.Problem(penalties, [A, sb.Identity(scale)], made)
    eliminated = sb.solve(problem, eliminate=True, tol=1e-8, max_passes=50_000)
    kept = sb.solve(problem, eliminate=False, tol=1e-8, max_passes=50_000)
    assert eliminated.status is kept.status is sb.Status.OPTIMAL
    assert eliminated.certificate.primal_value == pytest.approx(kept.certificate.primal_value, rel=1e-7)
    assert eliminated.certificate.error == sb.certify(problem, eliminated.x, eliminated.y).error


@pytest.mark.parametrize("scale", [1.0, -2.0])
@pytest.mark.parametrize("sparse", ["L1", "weighted", "one side", "NonNegative"])
@pytest.mark.parametrize("weighted", [False, True])
def test_kinks_under_a_squared_loss(rng, sparse, scale, weighted):
    """The reduced loss is a Huber loss or similar, with the same value; small entries are exactly 0."""
    A, b = rng.standard_normal((12, 5)), 2.0 * rng.standard_normal(12)
    made = {
        "L1": sb.L1(0.7),
        "weighted": sb.L1(0.7, 0.5 + rng.random(12)),
        "one side": sb.L1(0.3) + sb.NonNegative(),
        "NonNegative": sb.NonNegative(),
    }[sparse]
    weight = np.where(np.arange(12) < 3, 0.0, 1.0 + rng.random(12)) if weighted else None
    problem = sb.Problem([sb.L1(0.2), made], [A, sb.Identity(scale)], sb.Squared(b, weight))
    assert eliminate_identities(problem.model) is not None
    eliminated = sb.solve(problem, eliminate=True, tol=1e-9, max_passes=50_000)
    kept = sb.solve(problem, eliminate=False, tol=1e-9, max_passes=50_000)
    assert eliminated.status is kept.status is sb.Status.OPTIMAL
    assert eliminated.certificate.primal_value == pytest.approx(kept.certificate.primal_value, rel=1e-8)
    assert eliminated.certificate.error == sb.certify(problem, eliminated.x, eliminated.y).error
    assert np.array_equal(eliminated.x[1] == 0, np.abs(kept.x[1]) < 1e-5)


def test_the_history_has_the_objective_as_written(rng):
    """The constant that a reduction removes is added again: here 1/2 c^2 / q, and the loss of an empty row."""
    A, b = rng.standard_normal((8, 3)), rng.standard_normal(8)
    A[2] = 0.0
    penalties = [sb.L1(0.2), sb.SquaredL2(1.5) + sb.Linear(b)]
    problem = sb.Problem(penalties, [A, sb.Identity()], sb.Absolute(b))
    result = sb.solve(problem, tol=1e-9)
    assert result.history.primal_value[-1] == pytest.approx(result.certificate.primal_value, rel=1e-8)
    empty = sb.solve(sb.Problem(sb.L1(0.2), A, sb.Squared(b)), tol=1e-9)
    assert empty.history.primal_value[-1] == pytest.approx(empty.certificate.primal_value, rel=1e-8)


def test_points_are_mapped_to_the_reduced_problem_and_back(rng):
    _, problem = robust_pca(6, 7, 1)
    found = eliminate_identities(problem.model)
    x = rng.standard_normal(found.model.A.shape[1])
    u = found.model.A.matvec(x)
    full = found.restore_x(DensePoint(x), lambda: u).vector()
    assert np.array_equal(found.reduce_x(full), x)
    assert np.array_equal(full[found.kept().columns], x)
    assert np.allclose(problem.model.A.matvec(full), found.restore_u(DensePoint(x), u))


def test_nothing_to_eliminate(rng):
    A, b = rng.standard_normal((6, 4)), rng.standard_normal(6)
    for problem in (
        sb.Problem([sb.L1(1.0), sb.SquaredL2(1.0)], [sb.Identity(), A], sb.Equality(b)),
        sb.Problem([sb.SquaredL2(1.0), sb.L1(1.0)], [sb.Identity(), A], sb.Logistic(np.sign(b))),
        sb.Problem([sb.ElasticNet(1.0, 0.5), sb.L1(1.0)], [sb.Identity(), A], sb.Equality(b)),
        sb.Problem(sb.SquaredL2(1.0), sb.Identity(), sb.Equality(b)),
    ):
        assert eliminate_identities(problem.model) is None


def test_two_quadratic_blocks(rng):
    A, b = rng.standard_normal((8, 3)), rng.standard_normal(8)
    penalties = [sb.SquaredL2(1.0), sb.SquaredL2(3.0), sb.L1(0.1)]
    problem = sb.Problem(penalties, [sb.Identity(), sb.Identity(), A], sb.Equality(b))
    result = sb.solve(problem, tol=1e-10)
    assert np.allclose(result.x[0], 3.0 * result.x[1], atol=1e-6)
    assert result.status is sb.Status.OPTIMAL


def test_alternating_is_exact_for_one_block(rng):
    B = rng.standard_normal((5, 8))
    result = sb.solve(sb.Problem(sb.Nuclear(1.0, B.shape), sb.Identity(), sb.Squared(B)), tol=1e-10)
    assert result.method == "alternating"
    left, values, right = np.linalg.svd(B, full_matrices=False)
    assert np.allclose(result.x, (left * np.maximum(values - 1.0, 0.0)) @ right)


def test_alternating_with_rows_of_weight_zero(rng):
    B, weight = rng.standard_normal((6, 7)), (rng.random((6, 7)) < 0.7).astype(float)
    problem = sb.Problem(
        [sb.L1(0.2), sb.Nuclear(0.8, B.shape)], [sb.Identity(2.0), sb.Identity()], sb.Squared(B, weight)
    )
    result = sb.solve(problem, method="alternating", tol=1e-9)
    other = sb.solve(problem, method="sp-bcd", tol=1e-9)
    assert result.certificate.primal_value == pytest.approx(other.certificate.primal_value, rel=5e-9)
    assert np.all(result.x[0][weight == 0] == 0)


def test_unsuitable_problems_and_options_are_rejected(rng):
    A, b = rng.standard_normal((6, 4)), rng.standard_normal(6)
    with pytest.raises(TypeError, match="not an identity"):
        sb.solve(sb.Problem(sb.L1(1.0), A, sb.Squared(b)), method="alternating")
    with pytest.raises(TypeError, match="Lipschitz"):
        sb.solve(sb.Problem(sb.L1(1.0), sb.Identity(), sb.Absolute(b)), method="alternating")
    B = rng.standard_normal((5, 6))
    penalties = [sb.SquaredL2(1.0), sb.GroupL2(0.1, 1), sb.Nuclear(0.1, B.shape)]
    problem = sb.Problem(penalties, [sb.Identity()] * 3, sb.Equality(B))
    with pytest.raises(ValueError, match="all 2 blocks"):
        sb.solve(problem, method="alternating", eliminate=True, blocks_per_iteration=1)
    with pytest.raises(ValueError, match="eliminate='yes'"):
        sb.solve(problem, eliminate="yes")


def test_a_prox_that_works_in_place(rng):
    """A user-defined function may return the array that it received."""

    class Soft:
        def value(self, x):
            return 0.2 * np.abs(x).sum()

        def prox(self, v, step):
            v -= np.clip(v, -0.2 * step, 0.2 * step)
            return v

    b = rng.standard_normal(6)
    problem = sb.Problem([sb.L1(0.3), Soft()], [sb.Identity(), sb.Identity()], sb.Squared(b))
    result = sb.solve(problem, "alternating", eliminate=False)
    assert result.status is sb.Status.OPTIMAL
    plain = sb.solve(sb.Problem([sb.L1(0.3), sb.L1(0.2)], [sb.Identity()] * 2, sb.Squared(b)))
    assert result.certificate.primal_value == pytest.approx(plain.certificate.primal_value, rel=1e-6)


def test_all_rows_have_weight_zero(rng):
    B = rng.standard_normal((4, 5))
    result = sb.solve(sb.Problem(sb.Nuclear(0.5, B.shape), sb.Identity(), sb.Squared(B, np.zeros(B.shape))))
    assert result.status is sb.Status.OPTIMAL
    assert not np.any(result.x)
