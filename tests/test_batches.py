"""Batches: many problems at once have the answers of each problem alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

import saddleback as sb
from saddleback.batches import interior
from saddleback.batches.interior import Batch, Grams, Solver


@examples(15)
@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(30, 80),
    columns=st.integers(1, 6),
    penalised=st.integers(0, 6),
    problems=st.integers(1, 4),
)
def test_every_problem_of_a_batch_is_solved(seed, rows, columns, penalised, problems):
    rng = np.random.default_rng(seed)
    A, target = rng.standard_normal((rows, columns)), rng.standard_normal(rows)
    alpha = np.where(np.arange(columns) < penalised, rng.uniform(0.5, 5.0), 0.0)
    weights = rng.integers(0, 3, (problems, rows)) + (np.arange(rows) < columns + 1)
    linear = 0.3 * rng.standard_normal((problems, columns))
    batch = Batch(A, target, alpha, linear, -0.2 * weights, 0.8 * weights)
    point = Solver(batch, Grams(A), np.linalg.lstsq(A, target, rcond=None)[0]).run(np.full(problems, 1e-9))
    for b in range(problems):
        penalty = sb.L1(1.0, weights=alpha) + sb.Linear(linear[b])
        problem = sb.Problem(penalty, A, sb.Pinball(target, 0.8, sample_weight=weights[b]))
        expected = sb.solve(problem, tol=1e-10)
        np.testing.assert_allclose(problem.value(point.x[b]), expected.objective, rtol=1e-7, atol=1e-7)
        certificate = sb.certify(problem, point.x[b], -point.v[b])
        assert certificate.gap <= 1e-7 * (1 + abs(expected.objective))


@pytest.mark.parametrize("most", [1, 100, 10**6])
def test_the_matrices_of_a_batch(most, monkeypatch):
    monkeypatch.setattr(interior, "MOST_PRODUCTS", most)
    rng = np.random.default_rng(0)
    A, weights = rng.standard_normal((40, 5)), rng.random((3, 40))
    expected = [A.T @ np.diag(own) @ A for own in weights]
    np.testing.assert_allclose(Grams(A).of(weights), expected, atol=1e-12)


def tall(seed=0, rows=4000, columns=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    return rng, X, X[:, 0] - X[:, 1] + rng.standard_t(3, rows)


LOSSES = {
    "quantile": lambda b, **weight: sb.Pinball(b, 0.8, **weight),
    "absolute": sb.Absolute,
    "hinge": lambda b, **weight: sb.Hinge(np.sign(b), **weight),
    "huber": lambda b, **weight: sb.Huber(b, 0.5, **weight),
    "squared": sb.Squared,
    "logistic": lambda b, **weight: sb.Logistic(np.sign(b), **weight),
    "poisson": lambda b, **weight: sb.Poisson(np.maximum(np.round(b), 0.0), **weight),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("alpha", [0.0, 40.0])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_bootstrap_is_solved_as_a_batch(loss, alpha, threads):
    rng, X, b = tall()
    counts = rng.multinomial(4000, np.full(4000, 1 / 4000), 6).astype(float)
    blocks, penalty = [X, np.ones(4000)], [sb.L1(alpha), sb.Zero()]
    problem = sb.Problem(penalty, blocks, LOSSES[loss](b))
    results = sb.solve_many(problem, weights=counts, threads=threads)
    assert [result.method for result in results].count("batch") >= 5  # another may be solved alone
    for result, own in zip(results, counts, strict=True):
        alone = sb.Problem(penalty, blocks, LOSSES[loss](b, sample_weight=own))
        assert result.status is sb.Status.OPTIMAL
        certificate = sb.certify(alone, result.x, result.y)
        assert certificate.error <= 1e-6
        np.testing.assert_allclose(certificate.dual_value, result.certificate.dual_value, rtol=1e-9)
        expected = sb.solve(alone, tol=1e-9)
        np.testing.assert_allclose(result.objective, expected.objective, rtol=1e-6)
        if alpha:
            assert np.count_nonzero(result.x[0]) <= np.count_nonzero(expected.x[0]) + 1


@pytest.mark.parametrize("loss", ["quantile", "logistic"])
def test_a_batch_has_the_same_bits_at_any_number_of_threads(loss):
    rng, X, b = tall(rows=500)
    counts = rng.multinomial(500, np.full(500, 1 / 500), 70).astype(float)
    problem = sb.Problem(sb.L1(3.0), X, LOSSES[loss](b))
    one, two = (sb.solve_many(problem, weights=counts, threads=threads) for threads in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.x, b.x)
        assert a.certificate == b.certificate


def test_weights_that_move_the_solution_far_are_solved_one_by_one():
    _, X, b = tall()
    far = (b > 2.0).astype(float)[None, :]  # quantiles of the largest targets alone
    result = sb.solve_many(sb.Problem(sb.Zero(), X, sb.Absolute(b)), weights=far)[0]
    assert result.method != "batch"
    assert result.status is sb.Status.OPTIMAL


def test_losses_and_penalties_without_a_batch():
    rng, X, b = tall(rows=400)
    counts = rng.multinomial(400, np.full(400, 1 / 400), 2).astype(float)
    for problem in (
        sb.Problem(sb.ElasticNet(2.0, 0.5), X, sb.Absolute(b)),
        sb.Problem(sb.L1(2.0), X, sb.EpsilonInsensitive(b, 0.3)),
        sb.Problem(sb.GroupL2(2.0, 2), X, sb.Squared(b)),
        sb.Problem(sb.L1(2.0) + sb.NonNegative(), X, sb.Squared(b)),
    ):
        results = sb.solve_many(problem, weights=counts)
        assert all(result.status is sb.Status.OPTIMAL and result.method != "batch" for result in results)
    results = sb.solve_many(sb.Problem(sb.ElasticNet(2.0, 0.5), X, sb.Squared(b)), weights=counts)
    assert all(result.method == "batch" for result in results)


@pytest.mark.parametrize("options", [{"method": "sp-bcd"}, {"callback": lambda info: False}, {"time_limit": 100.0}])
def test_options_for_single_solves_are_kept(options):
    rng, X, b = tall(rows=400)
    counts = rng.multinomial(400, np.full(400, 1 / 400), 2).astype(float)
    results = sb.solve_many(sb.Problem(sb.L1(5.0), X, sb.Absolute(b)), weights=counts, tol=1e-4, **options)
    assert all(result.method != "batch" for result in results)
