"""C1 to C6: problems on which the published method fails, contrary to its theory, and the default method converges."""

from __future__ import annotations

import numpy as np
import pytest

import saddleback as sb
from saddleback.reproduce import counterexamples as given


def solve_published(problem, K, **options):
    settings = {"tol": 1e-8, "max_passes": 3000} | options
    return sb.solve(problem, "sp-bcd-published", blocks_per_iteration=K, **settings)


def converges(problem, **options):
    result = sb.solve(problem, tol=1e-8, max_passes=100_000, **options)
    assert result.status is sb.Status.OPTIMAL
    return result


@pytest.mark.parametrize(("T", "expected", "claimed"), [(4, 9.88, 5.54), (8, 142, 2.77)])
def test_c1_the_expected_gap_exceeds_the_bound_of_theorem_1(T, expected, claimed):
    gap, bound = given.expected_gap(T)
    assert gap == pytest.approx(expected, rel=0.01)
    assert bound == pytest.approx(claimed, rel=0.01)


def test_c1_diverges():
    assert solve_published(given.lasso_c1(), 1).status is sb.Status.DIVERGED
    converges(given.lasso_c1())


@pytest.mark.parametrize(("A", "radius"), [(given.NEAR_DIAGONAL, 4.24), (given.COUPLED, 1.15)])
def test_c2_sigma_that_depends_on_the_sample(A, radius):
    assert given.mean_square_radius(A, "sp-bcd-published") == pytest.approx(radius, abs=0.01)
    assert given.mean_square_radius(A, "sp-bcd") < 0.97
    problem = given.equations(A, np.array([1.0, 2.0]))
    assert solve_published(problem, 1).status is sb.Status.DIVERGED
    converges(problem)


def test_c3_the_extrapolation_noise_alone():
    """sigma is constant here; every run converges, but the mean square over runs diverges."""
    assert given.mean_square_radius(given.HADAMARD, "sp-bcd-published") == pytest.approx(1.131, abs=0.002)
    assert given.mean_square_radius(given.HADAMARD, "sp-bcd") < 0.9
    converges(given.equations(given.HADAMARD, np.array([1.0, 2.0])))


@pytest.mark.parametrize("name", given.bounded_c4())
def test_c4_bounded_without_convergence(name):
    problem, optimum = given.bounded_c4()[name]
    published = solve_published(problem, 1)
    assert published.status is sb.Status.MAX_PASSES
    assert published.certificate.error > 1e-2
    assert converges(problem).certificate.primal_value == pytest.approx(optimum, rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_c5_printed_robust_pca_strengths(seed):
    """K = 1 diverges with the printed (h, sigma) = (1, 1); with the paper's formula, sigma = 3, it converges."""
    problem = given.small_rpca()
    assert solve_published(problem, 1, step=(1.0, 1.0), seed=seed).status is sb.Status.DIVERGED
    assert solve_published(problem, 1, seed=seed).status is sb.Status.OPTIMAL
    converges(problem, seed=seed)


@pytest.mark.parametrize("K", [1, 2, 3, 5, 10])
def test_c6_remark_on_correlated_columns(K):
    """It converges for K = 1 and 2 and overflows from K = 3 on; the default method converges for any K."""
    problem = given.correlated_c6()
    published = solve_published(problem, K, step="remark", max_passes=100)
    assert (published.status is sb.Status.DIVERGED) == (K >= 3)
    converges(problem, blocks_per_iteration=K)
