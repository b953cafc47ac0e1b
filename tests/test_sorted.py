"""Functions of sorted entries: the compiled kernel, known formulas, and certified solutions."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from profiles import examples
from scipy.optimize import linprog
from sklearn.isotonic import isotonic_regression

import saddleback as sb
from saddleback import _native
from saddleback.functions.sorting import pool, sort_and_pool

values = arrays(float, st.integers(1, 12), elements=st.integers(-40, 40).map(lambda k: k / 8))


@examples(100)
@given(v=values, seed=st.integers(0, 1000))
def test_the_compiled_pool_is_the_specification_and_isotonic_regression(v, seed):
    weight = np.random.default_rng(seed).uniform(0.1, 5.0, v.size)
    for own in (weight, np.ones(1)):
        found = _native.pool(v, own)
        np.testing.assert_array_equal(found, pool(v, own))
        expected = isotonic_regression(v, sample_weight=np.broadcast_to(own, v.shape))
        np.testing.assert_allclose(found, expected, atol=1e-12)


@examples(100)
@given(v=values, seed=st.integers(0, 1000), absolute=st.booleans())
def test_the_compiled_sort_is_the_specification(v, seed, absolute):
    taken = np.sort(np.random.default_rng(seed).uniform(0.0 if absolute else -3.0, 3.0, v.size))
    np.testing.assert_array_equal(_native.sort_and_pool(v, taken, absolute), sort_and_pool(v, taken, absolute))


def test_values_that_have_no_order_give_nan():
    assert np.all(np.isnan(_native.sort_and_pool(np.array([1.0, np.nan, 0.0]), np.zeros(3), False)))


def test_bad_arguments_of_the_kernel_are_rejected():
    with pytest.raises(ValueError, match="as long as v"):
        _native.sort_and_pool(np.ones(3), np.ones(2), False)
    with pytest.raises(ValueError, match="one weight"):
        _native.pool(np.ones(3), np.ones(2))


def test_losses_by_their_formula(rng):
    u, b = rng.standard_normal((2, 9))
    r = u - b
    pairs = sum(abs(r[i] - r[j]) for i, j in combinations(range(9), 2))
    ranks = np.argsort(np.argsort(r)) + 1
    assert sb.TopK(b, 3).value(u) == pytest.approx(np.sort(r)[-3:].sum())
    assert sb.Gini(b).value(u) == pytest.approx(pairs / 36)
    assert sb.Wilcoxon(b).value(u) == pytest.approx(np.sqrt(3.0) / 10 * pairs)
    assert sb.Wilcoxon(b).value(u) == pytest.approx(np.sqrt(12) * (ranks / 10 - 0.5) @ r)
    at = [t + np.maximum(r - t, 0).sum() / (0.3 * 9) for t in r]  # a minimum is at one of the kinks
    assert sb.CVaR(b, 0.7).value(u) == pytest.approx(min(at))
    assert sb.CVaR(b, 0.0).value(u) == pytest.approx(r.mean())


def test_penalties_by_their_formula(rng):
    x = rng.standard_normal(6)
    weights = np.array([3.0, 2.0, 2.0, 1.0, 0.5, 0.0])
    assert sb.SLOPE(weights, 2.0).value(x) == pytest.approx(2 * max(w @ abs(x) for w in permutations(weights)))
    assert sb.GroupLInf(0.5, [2, 4], [1.0, 3.0]).value(x) == pytest.approx(
        0.5 * (abs(x[:2]).max() + 3 * abs(x[2:]).max())
    )
    assert sb.Simplex(2.0).value([0.5, 1.5]) == 0.0
    assert sb.Simplex(2.0).value([0.5, 1.0]) == sb.Simplex().value([-0.5, 1.5]) == np.inf
    assert sb.L1Ball(2.0).value([-0.5, 1.5]) == 0.0
    assert sb.L1Ball(2.0).value([-0.5, 1.6]) == np.inf
    assert sb.Isotonic().value([1.0, 1.0, 2.0]) == 0.0
    assert sb.Isotonic().value([1.0, 0.5, 2.0]) == np.inf


@examples(50)
@given(v=arrays(float, 6, elements=st.floats(-5, 5)), step=st.floats(0.1, 3.0))
def test_functions_that_must_coincide(v, step):
    def same(first, second):
        np.testing.assert_allclose(first.prox(v, step), second.prox(v, step), atol=1e-12)
        assert first.value(v) == pytest.approx(second.value(v))

    same(sb.SLOPE(np.ones(6), 0.7), sb.L1(0.7))
    same(sb.SLOPE([1.0, 0, 0, 0, 0, 0], 0.7), sb.LInf(0.7))
    same(sb.GroupLInf(0.7, 1), sb.L1(0.7))
    same(sb.GroupLInf(0.7, 6), sb.LInf(0.7))
    same(sb.CVaR(np.zeros(6), 0.5), sb.TopK(np.zeros(6), 3, 1 / 3))
    same(sb.Gini(np.zeros(6), 0.5 * np.sqrt(3.0) / 7 * 30), sb.Wilcoxon(np.zeros(6)))
    same(sb.OrderedSum(np.zeros(6), np.ones(6)), sb.Linear(1.0))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: sb.SLOPE([1.0, 2.0]), "rises at index 1"),
        (lambda: sb.SLOPE([1.0, -2.0]), "at least 0"),
        (lambda: sb.SLOPE([1.0, 0.5]).bind((3,)), "one for each of the 3 entries"),
        (lambda: sb.OrderedSum([0.0, 0.0], [1.0, 0.0]), "falls at index 1"),
        (lambda: sb.OrderedSum([0.0, 0.0], [1.0]), "one for each of 2 residuals"),
        (lambda: sb.TopK([0.0, 0.0], 3), "k=3 is more than the 2"),
        (lambda: sb.TopK([0.0, 0.0], 0), "at least 1"),
        (lambda: sb.CVaR([0.0], 1.0), "level=1 leaves no residual"),
        (lambda: sb.Simplex(-1.0), "total"),
        (lambda: sb.L1Ball(-1.0), "radius"),
        (lambda: sb.GroupLInf(1.0, 2, [1.0]).bind((4,)), "one value for each of 2 groups"),
        (lambda: sb.Isotonic().bind((2, 3)), "shape"),
        (lambda: -1 * sb.Simplex(), "positive factor"),
    ],
)
def test_bad_arguments_are_rejected(make, match):
    with pytest.raises(ValueError, match=match):
        make()


@pytest.mark.parametrize(
    "penalty", [sb.SLOPE(np.linspace(2.0, 0.2, 8)), sb.GroupLInf(1.0, [3, 5], [1.0, 2.0]), sb.LInf(1.0)]
)
@pytest.mark.parametrize("loss", [sb.Squared, sb.Wilcoxon])
def test_alpha_max_is_where_x_becomes_0(penalty, loss, rng):
    A, g = rng.standard_normal((20, 8)), loss(rng.standard_normal(20))
    alpha = sb.alpha_max(penalty, A, g)
    above = sb.solve(sb.Problem(penalty.with_alpha(1.01 * alpha), A, g), tol=1e-8)
    below = sb.solve(sb.Problem(penalty.with_alpha(0.97 * alpha), A, g), tol=1e-8)
    np.testing.assert_allclose(above.x, 0.0, atol=1e-6)
    assert np.abs(below.x).max() > 1e-6


def test_equal_residuals_have_no_single_slope():
    with pytest.raises(TypeError, match="equal residuals"):
        sb.alpha_max(sb.L1(1.0), np.eye(4), sb.Gini([1.0, 1.0, 2.0, 0.0]))
    assert sb.alpha_max(sb.L1(1.0), np.eye(4), sb.TopK([1.0, 1.0, 2.0, 0.0], 1)) == pytest.approx(1.0)


def test_cvar_is_the_linear_program_of_rockafellar_and_uryasev(rng):
    returns = 0.01 * rng.standard_normal((60, 5)) + 0.001
    result = sb.solve(sb.Problem(sb.Simplex(), -returns, sb.CVaR(np.zeros(60), 0.9)), tol=1e-8)
    lp = linprog(
        np.concatenate([np.zeros(5), [1.0], np.full(60, 1 / 6.0)]),
        A_ub=np.hstack([-returns, -np.ones((60, 1)), -np.eye(60)]),
        b_ub=np.zeros(60),
        A_eq=np.concatenate([np.ones(5), np.zeros(61)])[None],
        b_eq=[1.0],
        bounds=[(0, None)] * 5 + [(None, None)] + [(0, None)] * 60,
    )
    assert result.certificate.primal_value == pytest.approx(lp.fun, rel=1e-7)


def test_rank_regression_ignores_the_intercept_and_is_the_sum_over_pairs(rng):
    A, b = rng.standard_normal((25, 3)), rng.standard_normal(25)
    first, second = map(np.array, zip(*combinations(range(25), 2), strict=True))
    by_rank = sb.solve(sb.Problem(sb.L1(0.4), A, sb.Wilcoxon(b + 7.0)), tol=1e-8)
    pairs = sb.Absolute(b[first] - b[second], scale=np.sqrt(3.0) / 26)
    by_pair = sb.solve(sb.Problem(sb.L1(0.4), A[first] - A[second], pairs), tol=1e-8)
    assert by_rank.certificate.primal_value == pytest.approx(by_pair.certificate.primal_value, rel=1e-7)


def test_isotonic_regression_with_weights(rng):
    y, weight = np.sqrt(np.arange(30)) + rng.standard_normal(30), rng.uniform(0.5, 2.0, 30)
    result = sb.solve(sb.Problem(sb.Isotonic(), sb.Identity(), sb.Squared(y, weight)), tol=1e-9)
    np.testing.assert_allclose(result.x, isotonic_regression(y, sample_weight=weight), atol=1e-4)


def test_a_loss_that_falls_without_bound_is_proved_unbounded(rng):
    A, b = rng.standard_normal((12, 3)), rng.standard_normal(12)
    problem = sb.Problem([sb.L1(0.1), sb.Zero()], [A, np.ones(12)], sb.CVaR(b, 0.5))
    result = sb.solve(problem)
    assert result.status is sb.Status.UNBOUNDED
    assert sb.certify_ray(problem, result.ray).proves is sb.Status.UNBOUNDED
