"""Paths from vertex to vertex, for losses of two slopes with an L1 penalty."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from scipy.optimize import linprog

import saddleback as sb

ALPHAS = [0.3, 0.1, 0.03, 0.01]


def data(seed, m=40, n=5, rounded=False):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((m, n)), rng.standard_normal(m) + 1.0
    return (np.round(A), np.round(b), rng) if rounded else (A, b, rng)


def losses(b, rng):
    """Return losses with their slopes below and above the kinks, and the kinks."""
    labels, weight, m = np.where(b > 1, 1.0, -1.0), rng.uniform(0.5, 2.0, b.size), b.size
    return {
        "pinball": (sb.Pinball(b, 0.3, scale=1 / m), np.full(m, -0.3) / m, np.full(m, 0.7) / m, b),
        "absolute": (sb.Absolute(b, weight, 1 / m), -weight / m, weight / m, b),
        "hinge": (sb.Hinge(labels, scale=1 / m), np.minimum(-labels, 0) / m, np.maximum(-labels, 0) / m, labels),
    }


def optimum(A, slopes, alphas):
    """Return the smallest value by HiGHS: x = p - q, and the residual of a row is r - s."""
    low, high, kinks = slopes
    m = len(kinks)
    cost = np.concatenate([alphas, alphas, high, -low])
    rows = np.hstack([A, -A, -np.eye(m), np.eye(m)])
    found = linprog(cost, A_eq=rows, b_eq=kinks, bounds=(0, None), method="highs")
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize("loss", ["pinball", "absolute", "hinge"])
@given(seed=st.integers(0, 10**6), rounded=st.booleans(), intercept=st.booleans())
@examples(12)
def test_each_alpha_has_the_value_that_highs_finds(loss, seed, rounded, intercept):
    A, b, rng = data(seed, rounded=rounded)
    term, *slopes = losses(b, rng)[loss]
    ones = np.ones((len(b), 1))
    problem = ([sb.L1(1.0), sb.Zero()], [A, ones], term) if intercept else (sb.L1(1.0), A, term)
    for result in sb.path(*problem, alphas=ALPHAS, tol=1e-9):
        assert result.method == "vertices"
        alpha = result.settings["alpha"]
        weights = np.append(np.full(5, alpha), 0.0) if intercept else np.full(5, alpha)
        assert result.objective == pytest.approx(optimum(np.hstack([A, ones]) if intercept else A, slopes, weights))


def test_the_solution_is_a_vertex():
    A, b, _ = data(1)
    for result in sb.path(sb.L1(1.0), A, sb.Absolute(b), n_alphas=8, eps=1e-2):
        at_kinks = np.count_nonzero(result.x == 0) + np.count_nonzero(np.abs(A @ result.x - b) <= 1e-12)
        assert at_kinks == 5


def test_weights_and_further_columns_without_a_penalty():
    A, b, _ = data(2, n=7)
    penalty = sb.L1(1.0, [0.0, 1.0, 2.0, 0.0, 0.5, 1.0, 3.0])
    for result in sb.path(penalty, A, sb.Pinball(b, 0.8), alphas=[2.0, 1.0], tol=1e-9):
        assert result.method == "vertices"
        assert result.objective == pytest.approx(sb.solve(result.problem, tol=1e-9).objective, rel=1e-8)


def test_what_is_of_another_kind_is_left_to_the_solver():
    A, b, _ = data(3)
    twice = np.column_stack([A[:, 0], A[:, 0]])
    for penalty, matrix, loss in (
        (sb.L1(1.0), A, sb.Huber(b, 0.1)),
        (sb.L1(1.0), A, sb.EpsilonInsensitive(b, 0.1)),
        (sb.L1(1.0) + sb.NonNegative(), A, sb.Absolute(b)),
        (sb.ElasticNet(1.0, 0.5), A, sb.Absolute(b)),
        (sb.GroupL2(1.0, [2, 3]), A, sb.Absolute(b)),
        (sb.L1(1.0), A[:3], sb.Absolute(b[:3])),
        ([sb.L1(1.0), sb.Zero()], [A, twice], sb.Absolute(b)),
    ):
        assert {result.method for result in sb.path(penalty, matrix, loss, alphas=[1.0, 0.5])}.isdisjoint({"vertices"})
    assert sb.path(sb.L1(1.0), A, sb.Absolute(b), alphas=[1.0], method="pdhg")[0].method.startswith("pdhg")
    few = sb.path(sb.L1(1.0), A, sb.Absolute(b), alphas=[1e-3], max_passes=2)
    assert few[0].method != "vertices"


def test_units_do_not_matter():
    """x and the objective follow the units of A and b."""
    A, b, _ = data(4)
    plain = sb.path(sb.L1(1.0), A, sb.Absolute(b), alphas=[4.0, 1.0])
    scaled = sb.path(sb.L1(1.0), 1e30 * A, sb.Absolute(1e-20 * b), alphas=[4e30, 1e30])
    for one, other in zip(plain, scaled, strict=True):
        assert other.method == "vertices"
        assert np.allclose(1e50 * other.x, one.x)
