"""C1 to C6: problems on which the published method fails as its theory says it cannot, and the default converges."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import saddleback as sb
from saddleback.methods import Start
from saddleback.registry import make

NEAR_DIAGONAL = np.array([[1.0, 0.1], [0.1, 1.0]])


def solve_published(problem, K, **options):
    settings = {"tol": 1e-8, "max_passes": 3000} | options
    return sb.solve(problem, "sp-bcd-published", blocks_per_iteration=K, **settings)


def converges(problem, **options):
    result = sb.solve(problem, tol=1e-8, max_passes=100_000, **options)
    assert result.status is sb.Status.OPTIMAL
    return result


def linear_map(method, problem, K):
    """Return the matrices M_S of the iteration, one for each sample, of a linear-quadratic problem with b = 0."""
    model = problem.model
    m, n = model.A.shape
    chosen = make(method, {"restarts": False, "finish": False} if method == "sp-bcd" else {})
    extrapolated = method == "sp-bcd-published"
    maps = []
    for sample in range(n):
        columns = []
        for basis in np.eye(m + n * (1 + extrapolated)):
            y, x, bar = np.split(basis, [m, m + n])
            state = chosen.init(model, Start(x, y, K, 0))
            if extrapolated:
                state.x_bar, state.r_bar = bar, model.A.matvec(bar)
            state.sampling.draw = lambda _, sample=sample: np.array([[sample]])
            state = chosen.advance(state, K / n)
            columns.append(np.concatenate([state.y, state.x, state.x_bar if extrapolated else []]))
        maps.append(np.column_stack(columns))
    return maps


def mean_square_radius(maps):
    return np.abs(np.linalg.eigvals(np.mean([np.kron(M, M) for M in maps], axis=0))).max()


C1 = sb.Problem(sb.L1(0.1), np.array([[10.0, 1.0], [1.0, 10.0]]), sb.Squared(np.array([11.0, 11.0])))


def test_c1_the_expected_gap_exceeds_the_bound_of_theorem_1():
    """The gap of the averages at a saddle point, its expectation taken over all index sequences, against M(0)/T."""
    model = C1.model
    A, b, lam = model.A.dense_columns(np.arange(2)), np.array([11.0, 11.0]), 0.1
    best = converges(C1)
    x, y = best.x, A @ best.x - b

    def lagrangian(x, y):
        return lam * np.abs(x).sum() + y @ A @ x - (y @ y / 2 + b @ y)

    def expected_gap(T):
        method = make("sp-bcd-published", {})
        gaps = []
        for sequence in product((0, 1), repeat=T):
            state = method.init(model, Start(np.zeros(2), np.zeros(2), 1, 0))
            state.sampling.draw = lambda _, s=sequence: np.array(s)[:, None]
            state = method.advance(state, T / 2)
            gaps.append(lagrangian(state.averages.x / T, y) - lagrangian(x, state.averages.y / T))
        return np.mean(gaps)

    # M(0) of the theorem at x0 = y0 = 0, K = 1 of J = 2, with E sigma^0 = row sums of |A|
    h = sigma = np.array([11.0, 11.0])
    M0 = x @ (h * x) + y @ (sigma * y) / 2 - y @ A @ x + (0 - (lam * np.abs(x).sum() + y @ A @ x))
    assert expected_gap(4) == pytest.approx(9.88, rel=0.01)
    assert expected_gap(8) == pytest.approx(142, rel=0.01)
    assert pytest.approx(5.54, rel=0.01) == M0 / 4
    assert expected_gap(8) > 50 * M0 / 8


def test_c1_diverges():
    assert solve_published(C1, 1).status is sb.Status.DIVERGED
    converges(C1)


@pytest.mark.parametrize(("off", "radius"), [(0.1, 4.24), (0.5, 1.15)])
def test_c2_sigma_that_depends_on_the_sample(off, radius):
    A = np.array([[1.0, off], [off, 1.0]])
    at_zero = sb.Problem(sb.Zero(), A, sb.Equality(np.zeros(2)))
    assert mean_square_radius(linear_map("sp-bcd-published", at_zero, 1)) == pytest.approx(radius, abs=0.01)
    assert mean_square_radius(linear_map("sp-bcd", at_zero, 1)) < 0.97
    problem = sb.Problem(sb.Zero(), A, sb.Equality(np.array([1.0, 2.0])))
    assert solve_published(problem, 1).status is sb.Status.DIVERGED
    converges(problem)


def test_c3_the_extrapolation_noise_alone():
    """sigma is constant here; paths converge, but their mean square explodes."""
    A = np.array([[1.0, 1.0], [1.0, -1.0]])
    at_zero = sb.Problem(sb.Zero(), A, sb.Equality(np.zeros(2)))
    assert mean_square_radius(linear_map("sp-bcd-published", at_zero, 1)) == pytest.approx(1.131, abs=0.002)
    assert mean_square_radius(linear_map("sp-bcd", at_zero, 1)) < 0.9
    converges(sb.Problem(sb.Zero(), A, sb.Equality(np.array([1.0, 2.0]))))


@pytest.mark.parametrize(
    ("penalty", "loss", "optimum"),
    [
        (sb.Linear(np.ones(2)) + sb.Box(0, 3), sb.Equality(np.array([1.1, 1.1])), 2.0),
        (sb.L1(0.05), sb.Pinball(np.array([1.1, 1.1]), 0.5), 0.1),
        (sb.L1(0.3), sb.Hinge(np.ones(2)), 0.3 * 2 / 1.1),
    ],
)
def test_c4_bounded_without_convergence(penalty, loss, optimum):
    problem = sb.Problem(penalty, NEAR_DIAGONAL, loss)
    published = solve_published(problem, 1)
    assert published.status is sb.Status.MAX_PASSES
    assert published.certificate.error > 1e-2
    assert converges(problem).certificate.primal_value == pytest.approx(optimum, rel=1e-7)


def robust_pca(rng):
    B = rng.standard_normal((20, 3)) @ rng.standard_normal((3, 30))
    B += np.where(rng.random(B.shape) < 0.05, rng.choice([-10.0, 10.0], B.shape), 0.0)
    penalties = [sb.SquaredL2(1.0), sb.L1(0.15 * np.abs(B).max()), sb.Nuclear(0.15 * np.linalg.norm(B, 2), B.shape)]
    return sb.Problem(penalties, [sb.Identity()] * 3, sb.Equality(B))


@pytest.mark.parametrize("seed", range(3))
def test_c5_printed_robust_pca_strengths(seed, rng):
    """K = 1 with the printed (h, sigma) = (1, 1) diverges; the paper's own formula, sigma = 3, converges."""
    problem = robust_pca(rng)
    assert solve_published(problem, 1, step=(1.0, 1.0), seed=seed).status is sb.Status.DIVERGED
    assert solve_published(problem, 1, seed=seed).status is sb.Status.OPTIMAL
    converges(problem, seed=seed)


@pytest.mark.parametrize("K", [1, 2, 3, 5, 10])
def test_c6_remark_on_correlated_columns(K, rng):
    """Fine for K = 1 and 2, overflow from K = 3 on; the default converges whatever K is."""
    u, noise = rng.standard_normal(100), rng.standard_normal((100, 300))
    A = 0.95 * (u / np.linalg.norm(u))[:, None] + 0.3 * noise / np.linalg.norm(noise, axis=0)
    b = A @ rng.standard_normal(300) + 0.1 * rng.standard_normal(100)
    problem = sb.Problem(sb.L1(0.01 * np.abs(A.T @ b).max()), A, sb.Squared(b))
    published = solve_published(problem, K, step="remark", max_passes=100)
    assert (published.status is sb.Status.DIVERGED) == (K >= 3)
    converges(problem, blocks_per_iteration=K)
