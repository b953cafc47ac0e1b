"""Thresholded singular values, their sum and the largest one, compared with the full decomposition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

import saddleback as sb
from saddleback.functions import singular
from saddleback.functions.singular import (
    Memory,
    low_rank_pairs,
    nuclear_norm,
    singular_pairs,
    spectral_norm,
    threshold_singular_values,
)


def literal(Z, t):
    left, values, right = np.linalg.svd(Z, full_matrices=False)
    return (left * np.maximum(values - t, 0.0)) @ right


def low_rank(rng, m, n, rank, noise=0.0):
    return rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)) + noise * rng.standard_normal((m, n))


@examples(40)
@given(st.integers(1, 12), st.integers(1, 12), st.floats(0.0, 6.0), st.integers(0, 2**31))
def test_thresholding_is_that_of_the_full_decomposition(m, n, t, seed):
    Z = np.random.default_rng(seed).standard_normal((m, n))
    assert np.allclose(threshold_singular_values(Z, t).matrix(), literal(Z, t), atol=1e-12)
    assert nuclear_norm(Z) == pytest.approx(np.linalg.norm(Z, "nuc"), rel=1e-12)
    assert np.linalg.norm(Z, 2) <= spectral_norm(Z) <= (1 + 1e-12) * np.linalg.norm(Z, 2)


@pytest.mark.parametrize("turned", [False, True])
def test_a_remembered_basis_gives_the_same(rng, monkeypatch, turned):
    monkeypatch.setattr(singular, "GRAM_SIDE", 20)
    monkeypatch.setattr(singular, "WORTH", 5.0)
    memory = Memory()
    Z = low_rank(rng, 80, 120, 5, 0.1)
    t = 0.3 * np.linalg.norm(Z, 2)
    grams = []
    by_gram = singular._by_gram
    monkeypatch.setattr(singular, "_by_gram", lambda *arguments: grams.append(1) or by_gram(*arguments))
    for _ in range(6):
        X = threshold_singular_values(Z.T if turned else Z, t, memory).matrix()
        X = X.T if turned else X
        assert np.linalg.norm(X - literal(Z, t)) <= 1e-5 * t
        assert nuclear_norm(X, memory) == pytest.approx(np.linalg.norm(X, "nuc"), rel=1e-10)
        Z = Z + 0.05 * low_rank(rng, 80, 120, 2)
    assert len(grams) == 1  # the first call has no basis yet


def test_more_values_than_the_basis_has_columns(rng, monkeypatch):
    monkeypatch.setattr(singular, "GRAM_SIDE", 20)
    memory = Memory()
    singular_pairs(low_rank(rng, 100, 150, 2), 1.0, memory)
    Z = low_rank(rng, 100, 150, 30, 0.01)
    assert np.linalg.norm(threshold_singular_values(Z, 5.0, memory).matrix() - literal(Z, 5.0)) <= 1e-4


def test_a_basis_that_never_suffices_is_tried_less_and_less_often(rng, monkeypatch):
    monkeypatch.setattr(singular, "GRAM_SIDE", 20)
    tries = []
    by_subspace = singular._by_subspace
    monkeypatch.setattr(singular, "_by_subspace", lambda *arguments: tries.append(1) or by_subspace(*arguments))
    memory, Z = Memory(), rng.standard_normal((60, 90))  # most singular values are above the threshold
    for _ in range(40):
        assert np.allclose(threshold_singular_values(Z, 1.0, memory).matrix(), literal(Z, 1.0), atol=1e-9)
    assert len(tries) == 5  # calls 2, 5, 10, 19 and 36
    Z = low_rank(rng, 60, 90, 2)
    memory.basis, memory.resting = singular_pairs(Z, 1.0).left, 0
    assert np.linalg.norm(threshold_singular_values(Z, 1.0, memory).matrix() - literal(Z, 1.0)) <= 1e-5
    assert memory.failures == memory.resting == 0


def test_a_direction_outside_the_basis_is_found(rng, monkeypatch):
    """The Cholesky decomposition detects a direction orthogonal to the basis, and the Gram matrix is used instead."""
    monkeypatch.setattr(singular, "GRAM_SIDE", 20)
    monkeypatch.setattr(singular, "CHECK_EVERY", 1)
    monkeypatch.setattr(singular, "WORTH", 5.0)
    monkeypatch.setattr(singular, "FRESH", 1)
    Z = 1.6 * np.eye(60)
    Z[0, 0], Z[1, 1] = 10.0, 4.0
    memory = Memory(basis=np.eye(60)[:, [0, 5, 6, 7]])
    monkeypatch.setattr(singular, "_widened", lambda basis, columns, memory: basis)  # no random vectors are added
    assert singular_pairs(Z, 2.0, memory).values == pytest.approx([10.0, 4.0])


def test_a_tiny_threshold_uses_the_full_decomposition(rng):
    Z = np.diag([1.0, 1e-7, 1e-9])
    assert singular_pairs(Z, 5e-8).values == pytest.approx([1.0, 1e-7])


def test_an_upper_bound_on_clustered_largest_values(monkeypatch, rng):
    monkeypatch.setattr(singular, "GRAM_SIDE", 20)
    left, right = (np.linalg.qr(rng.standard_normal((60, 60)))[0] for _ in range(2))
    Z = (left * np.concatenate([np.full(20, 3.0), np.linspace(0, 2.9, 40)])) @ right
    assert 3.0 * (1 - 1e-15) <= spectral_norm(Z) <= 3.0 * (1 + 2e-10)
    assert spectral_norm(1e-200 * Z) == pytest.approx(3e-200, rel=1e-9)
    assert spectral_norm(np.zeros((3, 4))) == 0.0


def test_pairs_of_a_matrix_of_low_rank(rng):
    X = low_rank(rng, 40, 25, 3)
    pairs = low_rank_pairs(X)
    assert pairs.values.size == 3
    assert np.allclose(pairs.matrix(), X)
    assert np.allclose(pairs.right @ pairs.right.T, np.eye(3))
    assert low_rank_pairs(np.zeros((4, 3))).values.size == 0


def test_each_run_has_its_own_memory(rng):
    """The functions of a problem have no memory, so that two solves of it cannot disturb each other."""
    B = low_rank(rng, 12, 15, 2, 0.1)
    problem = sb.Problem([sb.L1(0.3), sb.Nuclear(1.0, B.shape)], [sb.Identity()] * 2, sb.Squared(B))
    first = sb.solve(problem)
    assert all(getattr(part, "memory", None) is None for part in problem.model.f.functions)
    second = sb.solve(problem)
    assert all(np.array_equal(a, b) for a, b in zip(first.x, second.x, strict=True))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
@pytest.mark.parametrize("turned", [False, True])
def test_a_matrix_whose_norm_is_not_finite_has_no_known_singular_values(rng, bad, turned):
    """Diverging iterates are such matrices: LAPACK raises an error for them, other functions return NaN or inf."""
    Z = rng.standard_normal((4, 9))
    Z[2, 3] = bad
    Z = Z.T if turned else Z
    with np.errstate(all="ignore"):
        assert not np.isfinite(nuclear_norm(Z))
        assert np.all(np.isnan(threshold_singular_values(Z, 0.5, Memory()).matrix()))
