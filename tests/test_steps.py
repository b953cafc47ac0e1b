"""The ESO inequality for every rule of strengths that claims it, and the published rules by their formulas."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

import saddleback as sb
from saddleback.steps.strengths import (
    base_weights,
    l1_strengths,
    measure_norms,
    norm_strengths,
    operator_norm,
    remark_strengths,
)

MATRICES = ("dense", "wide", "sparse", "badly scaled", "one-hot", "duplicates")


def matrix(kind, rng):
    if kind == "one-hot":
        A = np.zeros((12, 6))
        for group in range(3):
            A[np.arange(12), 2 * group + rng.integers(2, size=12)] = 1.0
        return A
    m, n = (4, 6) if kind == "wide" else (9, 6)
    A = rng.standard_normal((m, n))
    if kind == "sparse":
        A *= rng.random((m, n)) < 0.3
    if kind == "badly scaled":
        A *= np.exp(2 * rng.standard_normal((m, 1))) * np.exp(2 * rng.standard_normal((1, n)))
    if kind == "duplicates":
        A[:, 3:] = A[:, :3]
    return A


def eso_holds(model, strengths, K, rng, trials=20):
    """E || sum_S Sigma^-1/2 A_j H_j^-1/2 z_j ||^2 <= (K/J)^2 ||z||^2, with the expectation over all samples."""
    blocks = model.blocks
    J = len(blocks)
    dense = model.A.entries(np.arange(model.A.shape[1]))
    scaled = dense / np.sqrt(strengths.primal) / np.sqrt(strengths.dual)[:, None]
    samples = list(combinations(range(J), K))
    # the worst z is an eigenvector; random ones guard against a mistake in that argument
    form = np.zeros((scaled.shape[1],) * 2)
    for sample in samples:
        own = blocks.columns(np.array(sample))
        form[np.ix_(own, own)] += scaled[:, own].T @ scaled[:, own] / len(samples)
    bound = (K / J) ** 2
    z = rng.standard_normal((scaled.shape[1], trials))
    return np.all(np.sum(z * (form @ z), axis=0) <= bound * np.sum(z * z, axis=0)) and np.linalg.eigvalsh(form)[
        -1
    ] <= bound * (1 + 1e-12)


@pytest.mark.parametrize("rule", ["norm", "l1"])
@pytest.mark.parametrize("loss", [sb.Squared, sb.Absolute, sb.Logistic])
@pytest.mark.parametrize("penalty", [sb.L1(0.1), sb.GroupL2(0.1, [[0, 4], [1], [2, 3, 5]])])
@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("kind", MATRICES)
def test_eso(kind, as_sparse, penalty, loss, rule):
    rng = np.random.default_rng(MATRICES.index(kind))
    A = matrix(kind, rng)
    b = np.where(rng.standard_normal(A.shape[0]) > 0, 1.0, -1.0)
    model = sb.Problem(penalty, sparse.csc_matrix(A) if as_sparse else A, loss(b, rng.uniform(0.5, 2, b.size))).model
    norms = measure_norms(model)
    for K in range(1, len(model.blocks) + 1):
        strengths = norm_strengths(model, norms, K) if rule == "norm" else l1_strengths(model, K)
        assert np.all(strengths.primal > 0)
        assert np.all(strengths.dual > 0)
        assert eso_holds(model, strengths, K, rng)


def test_the_eso_check_can_fail():
    """A step that is 2% too long on an orthogonal matrix violates the inequality."""
    model = sb.Problem(sb.L1(1.0), np.eye(3), sb.Squared(np.ones(3))).model
    strengths = norm_strengths(model, measure_norms(model), 1)
    assert eso_holds(model, strengths, 1, np.random.default_rng(0))
    assert not eso_holds(
        model, strengths.__class__(strengths.primal / 1.02, strengths.dual), 1, np.random.default_rng(0)
    )


def test_the_rule_of_the_remark_is_correct_only_for_one_block():
    """With A = [1, 1] and K = 2 the Remark gives h sigma = 1, which is below ||A||^2 = 2."""
    model = sb.Problem(sb.L1(1.0), np.ones((1, 2)), sb.Squared(np.ones(1))).model
    rng = np.random.default_rng(0)
    assert eso_holds(model, remark_strengths(model, 1), 1, rng)
    assert not eso_holds(model, remark_strengths(model, 2), 2, rng)


def test_l1_rule_is_pock_chambolle_for_all_blocks(rng):
    A = rng.standard_normal((5, 4))
    model = sb.Problem(sb.L1(1.0), A, sb.Absolute(np.ones(5))).model
    strengths = l1_strengths(model, 4)
    assert np.allclose(strengths.primal, np.abs(A).sum(axis=0))
    assert np.allclose(strengths.dual, 1.01 * np.abs(A).sum(axis=1))


@pytest.mark.parametrize("shape", [(1, 7), (7, 1), (30, 20), (200, 300)])
def test_operator_norm_is_an_upper_estimate(shape, rng):
    A = rng.standard_normal(shape)
    exact = np.linalg.norm(A, 2) ** 2
    found, passes = operator_norm(lambda x: A @ x, lambda y: A.T @ y, shape[1])
    assert 0.995 * exact <= found <= 1.15 * exact
    assert passes <= 30


def test_automatic_blocks_per_iteration(rng):
    """K* is large on Gaussian columns, small on one-hot groups, and within range."""
    wide = sb.solve(
        sb.Problem(sb.L1(1.0), rng.standard_normal((200, 400)), sb.Squared(np.ones(200))),
        method="sp-bcd",
        max_passes=5,
        working_set=False,
    )
    assert 50 <= wide.settings["blocks_per_iteration"] <= 200
    one_hot = sb.Problem(sb.GroupL2(0.1, 2), matrix("one-hot", rng), sb.Hinge(np.ones(12)))
    assert sb.solve(one_hot, max_passes=5).settings["blocks_per_iteration"] == 1


def test_all_zero_matrix_has_strengths():
    problem = sb.Problem(sb.GroupL2(1.0, 2), np.zeros((3, 4)), sb.Norm2(np.ones(3)))
    assert sb.solve(problem).status is sb.Status.OPTIMAL


@pytest.mark.parametrize(
    ("step", "match"),
    [("best", "'norm', 'l1'"), ((1.0,), "pair"), ((0.0, 1.0), "primal_strength"), ((1.0, np.ones(7)), "dual_strength")],
)
def test_bad_steps(step, match):
    problem = sb.Problem(sb.L1(1.0), np.eye(3), sb.Squared(np.ones(3)))
    with pytest.raises(ValueError, match=match):
        sb.solve(problem, step=step)


@pytest.mark.parametrize("loss", [sb.Squared, sb.Huber, sb.Logistic])
def test_a_smooth_loss_with_uneven_rows_gets_dual_steps(loss, rng):
    """Coordinate descent slows down with the squared ratio of row lengths; balanced weights avoid that."""
    A = rng.standard_normal((60, 20))
    uneven = A * 10.0 ** rng.uniform(-3, 3, (60, 1))
    b = np.sign(A[:, 0]) if loss is sb.Logistic else A[:, 0]
    even, spread = (base_weights(sb.Problem(sb.L1(0.1), M, loss(b)).model) for M in (A, uneven))
    assert even.descent
    assert not spread.descent
    balanced = uneven / np.sqrt(spread.rows)[:, None] / np.sqrt(spread.columns)
    lengths = np.linalg.norm(balanced, axis=1)
    assert lengths.max() / lengths.min() < 10
    assert sb.solve(sb.Problem(sb.L1(0.1), uneven, loss(b)), tol=1e-6).status is sb.Status.OPTIMAL
