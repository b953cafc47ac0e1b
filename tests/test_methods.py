"""Methods compared with iterates by hand and with each other; saddle points must not move."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import LOSSES, PENALTIES, SIZE, has_normal_form
from scipy import sparse

import saddleback as sb
from saddleback.engine.registry import make
from saddleback.methods import Start
from saddleback.steps.sampling import KNice
from saddleback.steps.strengths import measure_norms, norm_strengths


def start(model, K=None, seed=0):
    return Start(np.zeros(model.A.shape[1]), np.zeros(model.A.shape[0]), K, seed)


def lasso(rng, m=8, n=6):
    return sb.Problem(sb.L1(0.3), rng.standard_normal((m, n)), sb.Squared(rng.standard_normal(m)))


@pytest.mark.parametrize("loss", ["Squared", "Absolute", "Logistic", "Interval", "Norm2"])
def test_all_blocks_is_diagonally_preconditioned_pdhg(loss, rng, backend):
    """With K = J: x by prox, then y by prox at A(2 x+ - x), iterate by iterate."""
    model = sb.Problem(sb.L1(0.3), rng.standard_normal((SIZE, 9)), LOSSES[loss]).model
    method = make("sp-bcd", {"backend": backend, "restarts": False, "finish": False}).for_model(model)
    state = method.init(model, start(model, 9))
    h, sigma = state.strengths.primal, state.strengths.dual
    A = model.A.entries(np.arange(9))
    x, y = np.zeros(9), np.zeros(SIZE)
    for _ in range(25):
        state = method.advance(state, 1.0)
        following = model.f.prox(x - A.T @ y / h, 1 / h)
        y = model.g_star.prox(y + A @ (2 * following - x) / sigma, 1 / sigma)
        x = following
        assert np.allclose(state.x, x, atol=1e-12)
        assert np.allclose(state.y, y, atol=1e-12)


def test_all_blocks_with_one_strength_is_pdhg(rng):
    """The PDCP method of the paper gives the same sequence, one dual step ahead."""
    model = lasso(rng).model
    pdhg = make("pdhg", {})
    theirs = pdhg.init(model, start(model))
    strength = float(theirs.strengths.primal[0])
    step = 1.0 / strength
    method = make("sp-bcd", {"step": (strength, strength), "restarts": False, "finish": False}).for_model(model)
    ahead = Start(np.zeros(6), model.g_star.prox(np.zeros(8), step), 6, 0)
    ours = method.init(model, ahead)
    for _ in range(20):
        theirs, ours = pdhg.advance(theirs, 1.0), method.advance(ours, 1.0)
        assert np.allclose(theirs.x, ours.x, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("as_sparse", [False, True])
def test_native_equals_numpy_for_every_loss(loss, as_sparse, rng):
    A = rng.standard_normal((SIZE, 9)) * (rng.random((SIZE, 9)) < 0.6)
    same_iterates(sb.Problem(sb.L1(0.3), sparse.csc_matrix(A) if as_sparse else A, LOSSES[loss]), K=3)


@pytest.mark.parametrize("penalty", [name for name in PENALTIES if has_normal_form(name)])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_native_equals_numpy_for_every_penalty(penalty, as_sparse, rng):
    A = rng.standard_normal((8, SIZE)) * (rng.random((8, SIZE)) < 0.6)
    loss = sb.Hinge(np.where(rng.random(8) < 0.5, 1.0, -1.0))
    same_iterates(sb.Problem(PENALTIES[penalty], sparse.csc_matrix(A) if as_sparse else A, loss), K=1)


def test_native_equals_numpy_for_mixed_parts(rng):
    parts = [rng.standard_normal((8, 4)).astype(np.float32), sparse.random(8, 5, 0.5, "csc", rng=1), np.ones(8)]
    penalty = [sb.L1(0.1), sb.GroupL2(0.1, [2, 3]), sb.Zero()]
    same_iterates(sb.Problem(penalty, parts, sb.Pinball(rng.standard_normal(8), 0.2)), K=3)


def same_iterates(problem, K):
    states = []
    for backend in ("numpy", "native"):
        method = make("sp-bcd", {"backend": backend, "restarts": False, "finish": False}).for_model(problem.model)
        state = method.init(problem.model, start(problem.model, K))
        assert state.report().backend == backend
        states.append(method.advance(state, 30.0))
    ours, theirs = states
    scale = 1 + np.abs(ours.x).max() + np.abs(ours.y).max()
    for name in ("x", "y", "u"):
        assert np.allclose(getattr(ours, name), getattr(theirs, name), atol=1e-9 * scale)
    assert np.allclose(ours.averages.x, theirs.averages.x, atol=1e-7 * scale)
    assert np.allclose(ours.averages.y, theirs.averages.y, atol=1e-7 * scale)


def test_one_iteration_of_the_published_method_by_hand():
    """Eq. (primal update) to (r update) of the paper on a 2 x 2 Lasso, K = 1, both sigma rules."""
    A, b, lam = np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([1.0, 2.0]), 0.1
    model = sb.Problem(sb.L1(lam), A, sb.Squared(b)).model
    for rule in ("literal", "skip"):
        method = make("sp-bcd-published", {"sigma_rule": rule})
        state = method.init(model, start(model, 1, seed=3))
        y = state.y = np.array([0.7, -0.4])
        j = KNice(2, 1, 3).draw(1)[0, 0]
        state = method.advance(state, 0.5)
        h = np.abs(A[:, j]).sum()
        v = -(A[:, j] @ y) / h
        x = np.sign(v) * max(abs(v) - lam / h, 0)
        bar = 1.5 * x
        argument = 2 * A[:, j] * bar
        sigma = 2 * np.abs(A[:, j])
        expected = np.where(sigma > 0, (sigma * y + argument - b) / (1 + sigma), argument - b)
        if rule == "skip":
            expected = np.where(sigma > 0, expected, y)
        assert state.x[j] == pytest.approx(x)
        assert state.x_bar[j] == pytest.approx(bar)
        assert np.allclose(state.y, expected)
        assert np.allclose(state.r_bar, A[:, j] * bar)


def test_published_argument_is_the_sound_one_plus_noise(rng):
    """r-bar + J/K A(xbar+ - xbar) = A x+ + J/K A d + nu with nu = A e - J/K A_S e_S and e = xbar - x."""
    problem = lasso(rng, 5, 4)
    model = problem.model
    A = model.A.entries(np.arange(4))
    method = make("sp-bcd-published", {"step": (3.0, 5.0)})
    state = method.advance(method.init(model, start(model, 2)), 6.0)
    x, bar, y, r_bar = state.x.copy(), state.x_bar.copy(), state.y.copy(), state.r_bar.copy()
    after = method.advance(state, 0.5)
    S = np.flatnonzero(after.x_bar != bar)
    d, e = after.x - x, bar - x
    published = r_bar + 2 * A @ (after.x_bar - bar)
    noise = A @ e - 2 * A[:, S] @ e[S]
    assert np.allclose(published, A @ after.x + 2 * A @ d + noise)
    assert np.allclose(after.y, model.g_star.prox(y + published / 5, 0.2))


STAYS = ["sp-bcd", "pure-cd", "sp-bcd-published", "pdhg", "pdhg-diagonal", "admm", "gs-admm", "pdmm", "ista", "fista"]


@pytest.mark.parametrize("method", STAYS)
def test_no_movement_from_a_saddle_point(method, rng):
    """x* and y* are chosen first, then b and the weights for which they are a saddle point."""
    A = rng.standard_normal((7, 5))
    x, y = np.array([1.0, 0.0, -2.0, 0.0, 0.5]), rng.standard_normal(7)
    z = -A.T @ y
    weights = np.where(x == 0, np.abs(z) + 1, np.abs(z))
    A = A * np.where(x == 0, 1, np.sign(x) * np.sign(z))
    problem = sb.Problem(sb.L1(1.0, weights), A, sb.Squared(A @ x - y))
    chosen = make(method, {}).for_model(problem.model)
    state = chosen.init(problem.model, Start(x, y))
    state = chosen.advance(state, 20.0)
    assert np.allclose(state.x, x, atol=1e-12)
    assert np.allclose(state.y, y, atol=1e-12)
    result = sb.solve(problem, method=method, x0=x, y0=y, tol=1e-10)
    assert result.status is sb.Status.OPTIMAL
    assert len(result.history) == 1


@pytest.mark.parametrize(("J", "K"), [(5, 1), (5, 2), (5, 5), (9, 8), (300, 100)])
def test_draws_are_distinct_and_uniform(J, K):
    draws = KNice(J, K, 0).draw(2000)
    assert draws.shape == (2000, K)
    assert all(len(set(row)) == K for row in draws)
    share = np.bincount(draws.ravel(), minlength=J) / 2000
    assert np.allclose(share, K / J, atol=5 * np.sqrt(K / J / 2000))


def test_every_pair_is_equally_likely():
    """K-nice sampling draws each pair of blocks with probability K (K - 1) / (J (J - 1))."""
    draws = KNice(5, 3, 1).draw(20000)
    together = np.array(
        [[np.mean(np.any(draws == a, axis=1) & np.any(draws == b, axis=1)) for a in range(5)] for b in range(5)]
    )
    assert np.allclose(together[~np.eye(5, dtype=bool)], 0.3, atol=0.02)


def test_norms_are_measured_once_for_all_k(rng):
    model = lasso(rng).model
    norms = measure_norms(model)
    products = [np.median(s.primal) * np.median(s.dual) for s in (norm_strengths(model, norms, K) for K in (1, 3, 6))]
    assert products[0] > products[1] > products[2]
