"""FISTA on the dual problem: the dual as a problem, the rule that chooses the method, and its answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import saddleback as sb
from saddleback.functions.conjugates import Indicator
from saddleback.operators import Adjoint, Dense
from saddleback.reductions import absorb_identity


def image(rng, shape=(24, 20)):
    rows, columns = np.indices(shape)
    return 1.0 * (rows > 8) + 0.5 * (columns > 12) + 0.1 * rng.standard_normal(shape)


def denoising(b, alpha, isotropic=True):
    D = sb.Differences(shape=b.shape)
    norm = sb.GroupL2(alpha, D.groups) if isotropic else sb.L1(alpha)
    return sb.Problem(sb.Zero(), [sb.Identity(), D], [sb.Squared(b.ravel()), norm])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_matrix])
def test_the_adjoint_has_the_entries_of_minus_the_transpose(kind, rng):
    array = rng.standard_normal((5, 7)) * (rng.random((5, 7)) < 0.6)
    A, expected = Adjoint(sb.Problem(sb.Zero(), kind(array), sb.Squared(np.zeros(5))).model.A), -array.T
    x, y, some, few = rng.standard_normal(5), rng.standard_normal(7), np.array([3, 0]), np.array([6, 1, 2])
    assert A.shape == (7, 5)
    assert np.allclose(A.matvec(x), expected @ x)
    assert np.allclose(A.matvec(x[some], columns=some), expected[:, some] @ x[some])
    assert np.allclose(A.matvec(x, rows=few), expected[few] @ x)
    assert np.allclose(A.rmatvec(y), expected.T @ y)
    assert np.allclose(A.rmatvec(y, columns=some), expected[:, some].T @ y)
    assert np.allclose(A.rmatvec(y[few], rows=few), expected[few].T @ y[few])
    assert np.allclose(A.entries(some), expected[:, some])
    assert np.allclose(A.entries(some, compressed=True).toarray(), expected[:, some])
    part = A.restrict(few, some)
    assert np.allclose(part.matvec(x[some]), expected[np.ix_(few, some)] @ x[some])
    assert np.allclose(A.sums(1)[0], np.abs(expected).sum(axis=0))
    assert np.allclose(A.sums(1)[1], np.abs(expected).sum(axis=1))
    assert np.allclose(A.sums(2, columns=some)[0], (expected[:, some] ** 2).sum(axis=0))
    assert np.allclose(A.sums(2, columns=some)[1], (expected[:, some] ** 2).sum(axis=1))
    weight = rng.random(7)
    assert np.allclose(np.tril(A.gram(weight)), np.tril(expected.T @ np.diag(weight) @ expected))


def test_the_dual_problem_has_the_negative_optimum(rng):
    model = sb.Problem(sb.SquaredL2(0.7), rng.standard_normal((6, 4)), sb.Huber(rng.standard_normal(6), 0.3)).model
    result = sb.solve(sb.Problem(sb.SquaredL2(0.7), model.A.entries(), sb.Huber(model.g_star.left, 0.3)), tol=1e-12)
    dual = model.dual()
    value = dual.f.value(result.y) + dual.g.value(dual.A.matvec(result.y))
    assert value == pytest.approx(-result.objective, rel=1e-10)
    assert isinstance(dual.A.restrict(np.arange(4), np.arange(6)).A, Dense)


@pytest.mark.parametrize("isotropic", [True, False])
def test_images_are_denoised_by_it_to_the_optimum(isotropic, rng):
    problem = denoising(image(rng), 0.1, isotropic)
    result = sb.solve(problem, method="dual-fista", eliminate=True, tol=1e-6)
    assert result.status is sb.Status.OPTIMAL
    pytest.importorskip("cvxpy")
    best = problem.to_cvxpy().solve(solver="CLARABEL")
    assert best * (1 - 1e-7) <= result.objective <= best * (1 + 2e-6)
    assert result.certificate.dual_value <= best * (1 + 1e-7)


def test_it_is_chosen_if_few_iterations_are_expected(rng):
    assert sb.solve(denoising(image(rng), 0.1), tol=1e-4).method == "dual-fista"


def test_it_is_not_chosen_if_many_iterations_are_expected(rng):
    assert sb.solve(denoising(image(rng), 1e3), tol=1e-6, max_passes=1).method != "dual-fista"


def test_a_penalty_that_is_not_strongly_convex_is_refused(rng):
    problem = sb.Problem(sb.L1(1.0), rng.standard_normal((4, 3)), sb.Squared(rng.standard_normal(4)))
    with pytest.raises(TypeError, match="not strongly convex"):
        sb.solve(problem, method="dual-fista")


def test_with_equal_steps_the_prox_of_a_group_indicator_is_a_projection(rng):
    """Both follow from Moreau's identity; groups may be of different sizes, interleaved, or without a weight."""
    groups = [[0, 4], [1], [2, 3, 5]]
    for weights in ([1.0, 0.5, 2.0], [1.0, 0.0, 2.0]):
        for penalty in (sb.GroupL2(0.3, groups, weights), sb.SparseGroup(0.3, groups, 0.4, weights)):
            indicator = sb.Problem(penalty, np.eye(6), sb.Squared(np.zeros(6))).model.f_star
            for v in rng.standard_normal((20, 6)) * 2:
                assert np.allclose(indicator.prox(v, 0.7), Indicator.prox(indicator, v, 0.7), atol=1e-14)


def test_an_image_is_absorbed_without_a_copy_of_the_differences(rng):
    reduced = absorb_identity(denoising(image(rng), 0.1).model)
    assert isinstance(reduced.model.A, sb.Differences)


@pytest.mark.parametrize("weights", [[1.0, 0.5, 2.0], [1.0, 0.0, 2.0]])
def test_the_largest_multiple_in_a_group_ball_is_on_its_boundary(weights, rng):
    groups = [[0, 4], [1], [2, 3, 5]]
    penalty = sb.GroupL2(0.3, groups, weights)
    ball = sb.Problem(penalty, np.eye(6), sb.Squared(np.zeros(6))).model.f_star.domain
    for x in rng.standard_normal((20, 6)):
        x[1] *= weights[1]
        t = ball.largest_multiple(x)
        share = max(np.linalg.norm(x[g]) / (0.3 * w) for g, w in zip(groups, weights, strict=True) if w)
        assert t == pytest.approx(min(1.0, 1.0 / share), rel=1e-6)
    assert ball.largest_multiple(np.zeros(6)) == 1.0
