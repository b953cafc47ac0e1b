"""Many problems at once: each answer is that of a solve of its own problem."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import saddleback as sb

RNG = np.random.default_rng(0)
A = RNG.standard_normal((60, 8))
B = A[:, 0] - A[:, 1] + RNG.standard_t(3, 60)
COUNTS = RNG.multinomial(60, np.full(60, 1 / 60), 5).astype(float)


def assert_solved(results, problems, tol=1e-8):
    assert len(results) == len(problems)
    for result, problem in zip(results, problems, strict=True):
        assert result.status is sb.Status.OPTIMAL
        assert sb.certify(problem, result.x, result.y).error <= tol
        np.testing.assert_allclose(result.objective, sb.solve(problem, tol=tol).objective, rtol=10 * tol)


@pytest.mark.parametrize("matrix", [A, sparse.csc_array(A), np.asfortranarray(A, dtype=np.float32)])
@pytest.mark.parametrize("loss", [sb.Squared(B), sb.Pinball(B, 0.8), sb.Logistic(np.sign(B), scale=0.1)])
def test_weights(matrix, loss):
    problem = sb.Problem([sb.L1(0.5), sb.Zero()], [matrix, np.ones(60)], loss)
    results = sb.solve_many(problem, weights=COUNTS, tol=1e-8)
    kind = type(loss)
    further = {"quantile": 0.8} if kind is sb.Pinball else {}
    data = loss.labels if kind is sb.Logistic else B
    others = [
        sb.Problem(problem.penalty, problem.A, kind(data, sample_weight=own, scale=loss.scale, **further))
        for own in COUNTS
    ]
    assert_solved(results, others)


def test_weights_multiply_those_of_the_loss():
    own = RNG.uniform(0.5, 2.0, 60)
    results = sb.solve_many(sb.Problem(sb.L1(0.5), A, sb.Absolute(B, sample_weight=own)), weights=COUNTS, tol=1e-8)
    assert_solved(results, [sb.Problem(sb.L1(0.5), A, sb.Absolute(B, sample_weight=own * each)) for each in COUNTS])


@pytest.mark.parametrize(
    ("loss", "weighted"),
    [
        (sb.Squared(np.c_[B, -B]), lambda own: sb.Squared(np.c_[B, -B], np.c_[own, own])),
        (
            sb.Multinomial(np.digitize(B, [-0.5, 0.5])),
            lambda own: sb.Multinomial(np.digitize(B, [-0.5, 0.5]), None, own),
        ),
    ],
)
def test_weights_of_rows_with_several_values(loss, weighted):
    results = sb.solve_many(sb.Problem(sb.L1(2.0), A, loss), weights=COUNTS, tol=1e-8)
    assert_solved(results, [sb.Problem(sb.L1(2.0), A, weighted(own)) for own in COUNTS])


def test_losses():
    losses = [sb.Huber(B, delta) for delta in (0.5, 1.0)] + [sb.Pinball(B, q) for q in (0.1, 0.5, 0.9)]
    results = sb.solve_many(sb.Problem(sb.L1(0.5), A, sb.Squared(B)), losses=losses, tol=1e-8)
    assert_solved(results, [sb.Problem(sb.L1(0.5), A, loss) for loss in losses])


def test_lists_of_losses():
    rows = [A, np.ones((1, 8))]
    losses = [[sb.Squared(B + shift), sb.Equality([0.0])] for shift in (0.0, 1.0)]
    results = sb.solve_many(sb.Problem(sb.L1(0.5), rows, losses[0]), losses=losses, tol=1e-8)
    assert_solved(results, [sb.Problem(sb.L1(0.5), rows, each) for each in losses])


def test_alphas_keep_their_order():
    problem, alphas = sb.Problem(sb.L1(1.0), A, sb.Squared(B)), [0.3, 5.0, 1.0, 0.3]
    results = sb.solve_many(problem, alphas=alphas, tol=1e-8)
    assert [result.settings["alpha"] for result in results] == alphas
    assert_solved(results, [sb.Problem(sb.L1(alpha), A, sb.Squared(B)) for alpha in alphas])


def test_a_callback_ends_the_list():
    problem = sb.Problem(sb.L1(1.0), A, sb.Squared(B))
    assert len(sb.solve_many(problem, losses=[sb.Squared(B)] * 3, callback=lambda info: True)) == 1


def test_what_is_refused():
    problem = sb.Problem(sb.L1(1.0), A, sb.Squared(B))
    with pytest.raises(TypeError, match="got none of losses, weights and alphas: expected one"):
        sb.solve_many(problem)
    with pytest.raises(TypeError, match="got losses and alphas of"):
        sb.solve_many(problem, losses=[sb.Squared(B)], alphas=[1.0])
    with pytest.raises(ValueError, match=r"weights has shape \(60,\): expected one row per problem"):
        sb.solve_many(problem, weights=np.ones(60))
    with pytest.raises(ValueError, match="weights"):
        sb.solve_many(problem, weights=-COUNTS)
    with pytest.raises(ValueError, match="has data of shape"):
        sb.solve_many(problem, losses=[sb.Squared(B[:-1])])
    with pytest.raises(TypeError, match="losses is Squared: expected a list"):
        sb.solve_many(problem, losses=sb.Squared(B))
    with pytest.raises(TypeError, match="the loss is list"):
        sb.solve_many(sb.Problem(sb.L1(1.0), [A, A], [sb.Squared(B), sb.Squared(B)]), weights=COUNTS)
