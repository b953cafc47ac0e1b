"""Paths of least squares on the Gram matrix: the same answers as those of the solver, each certified for A itself."""

from __future__ import annotations

import numpy as np
import pytest

import saddleback as sb

TOL = 1e-7


@pytest.fixture
def data():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((60, 12))
    return A, A[:, :3] @ [1.0, -2.0, 0.5] + rng.standard_normal(60)


def used(results):
    return [result.settings.get("gram", False) for result in results]


@pytest.mark.parametrize(
    "penalty",
    [
        sb.L1(1.0),
        sb.L1(1.0, weights=np.linspace(0.5, 2.0, 12)),
        sb.ElasticNet(1.0, l1_ratio=0.3),
        sb.L1(1.0) + sb.NonNegative(),
        sb.L1(1.0) + sb.Box(-0.7, 0.4),
    ],
    ids=repr,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_solutions_are_those_of_the_solver(data, penalty, weighted):
    A, b = data
    loss = sb.Squared(b, sample_weight=np.linspace(0.5, 2.0, 60) if weighted else None, scale=1 / 60)
    results = sb.path(penalty, A, loss, n_alphas=20, tol=TOL)
    assert all(used(results))
    plain = sb.path(penalty, A, loss, n_alphas=20, tol=TOL, x0=np.zeros(12))
    assert not any(used(plain))
    for one, other in zip(results, plain, strict=True):
        assert one.status is sb.Status.OPTIMAL
        assert one.settings["alpha"] == other.settings["alpha"]
        assert one.objective == pytest.approx(other.objective, rel=2 * TOL)
        assert np.allclose(one.x, other.x, atol=1e-3)
        problem = sb.Problem(penalty.with_alpha(one.settings["alpha"]), A, loss)
        again = sb.certify(problem, one.x, one.y)
        assert again.error <= TOL
        assert again.dual_value == pytest.approx(one.certificate.dual_value, rel=1e-12)


def test_what_is_not_certified_is_left_to_the_solver(data):
    """A fit that is nearly perfect, nearly dependent columns and an empty one."""
    A, _ = data
    A = np.column_stack([A, A[:, 0] + 1e-7 * A[:, 1], np.zeros(60)])
    b = A @ np.arange(14.0)
    results = sb.path(sb.L1(1.0), A, sb.Squared(b), n_alphas=30, eps=1e-9, tol=1e-8)
    assert len(results) == 30
    assert all(result.status is sb.Status.OPTIMAL for result in results)
    assert all(result.x[13] == 0 for result in results)


def test_other_problems_and_options_do_not_use_it(data):
    A, b = data
    assert not any(used(sb.path(sb.L1(1.0), A, sb.Huber(b), n_alphas=6)))
    assert not any(used(sb.path(sb.GroupL2(1.0, 3), A, sb.Squared(b), n_alphas=6)))
    assert not any(used(sb.path(sb.L1(1.0), A, sb.Squared(b), n_alphas=6, method="fista")))
    assert not any(used(sb.path(sb.L1(1.0), A, sb.Squared(b), n_alphas=2)))  # few alphas for as many columns
    seen = []
    sb.path(sb.L1(1.0), A, sb.Squared(b), n_alphas=6, callback=lambda info: seen.append(info) and False)
    assert seen
