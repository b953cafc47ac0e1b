"""A loss of x itself becomes part of the penalty: values, points and certificates are those of the original problem."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import LOSSES, SIZE
from scipy import sparse

import saddleback as sb
from saddleback.functions.points import DensePoint
from saddleback.reductions import absorb_identity

ABSORBED = ["Squared", "Absolute", "Pinball", "Hinge", "Equality", "Interval", "Interval mixed"]
PENALTIES = {"Zero": sb.Zero(), "L1": sb.L1(0.3), "Box": sb.Box(-0.5, 1.0), "ElasticNet": sb.ElasticNet(0.4, 0.5)}


def problem_with(loss: str, penalty: str, first: bool, second: sb.Problem | None = None) -> sb.Problem:
    D = sparse.csr_matrix(np.diff(np.eye(SIZE), axis=0))
    rows, losses = [sb.Identity(), D], [LOSSES[loss], second or sb.L1(0.5)]
    return sb.Problem(PENALTIES[penalty], rows if first else rows[::-1], losses if first else losses[::-1])


def dual_value(model, y):
    return model.constant - model.f_star.value(-model.A.rmatvec(y)) - model.g_star.value(y)


@pytest.mark.parametrize("loss", ABSORBED)
@pytest.mark.parametrize("first", [True, False])
def test_values_are_those_of_the_original_problem(loss, first, rng):
    problem = problem_with(loss, "Zero", first)
    found = absorb_identity(problem.model)
    assert found is not None
    assert found.model.A.shape == (SIZE - 1, SIZE)
    for _ in range(20):
        inside = found.model.f.domain.project(rng.standard_normal(SIZE))
        x = found.restore_x(DensePoint(inside), lambda: None)
        small = found.model.constant + found.model.f.value(inside) + found.model.g.value(found.model.A.matvec(inside))
        assert small == pytest.approx(problem.value(x.vector()), abs=1e-12)
        u = found.restore_u(DensePoint(inside), found.model.A.matvec(inside))
        assert np.allclose(u, problem.model.A.matvec(x.vector()))
        assert np.allclose(found.reduce_x(x.vector()), inside)
        y = rng.uniform(-0.3, 0.3, SIZE - 1)
        whole = found.restore_y(DensePoint(y)).vector()
        assert np.allclose(problem.model.A.rmatvec(whole), 0.0, atol=1e-12)
        assert np.array_equal(found.reduce_y(whole), y)
        assert dual_value(found.model, y) == pytest.approx(dual_value(problem.model, whole), abs=1e-9)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_squared_loss_is_added_to_any_penalty_of_coordinates(penalty, rng):
    """The restored y has the best part for the absorbed loss: both bounds are equal."""
    problem = problem_with("Squared", penalty, True)
    found = absorb_identity(problem.model)
    assert found is not None
    for _ in range(20):
        y = rng.uniform(-0.5, 0.5, SIZE - 1)
        whole = found.restore_y(DensePoint(y)).vector()
        assert dual_value(found.model, y) == pytest.approx(dual_value(problem.model, whole), abs=1e-9)


@pytest.mark.parametrize("loss", ABSORBED)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_solutions_agree_with_cvxpy(loss, penalty):
    problem = problem_with(loss, penalty, True)
    pytest.importorskip("cvxpy")
    expected = problem.to_cvxpy().solve(solver="CLARABEL")
    found = sb.solve(problem, tol=1e-8)
    if np.isinf(expected):
        assert found.status is sb.Status.INFEASIBLE
    else:
        assert found.status is sb.Status.OPTIMAL
        assert found.objective == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("loss", ["Huber", "SquaredHinge", "EpsilonInsensitive", "Logistic", "Poisson", "Norm2"])
def test_other_losses_stay(loss):
    problem = problem_with(loss, "Zero", True)
    assert absorb_identity(problem.model) is None
    assert sb.solve(problem, tol=1e-6).status is sb.Status.OPTIMAL


def test_group_norms_of_the_other_rows_stay(rng):
    """A squared loss needs no shift, so that the other term may be any function; a kink needs one."""
    groups = sb.GroupL2(0.4, [[0, 1], [2, 3, 4]])
    assert absorb_identity(problem_with("Squared", "Zero", True, groups).model) is not None
    assert absorb_identity(problem_with("Absolute", "Zero", True, groups).model) is None


def test_a_squared_loss_has_no_part_in_a_contradiction():
    D = np.vstack([np.diff(np.eye(4), axis=0), np.ones((1, 4)), np.ones((1, 4))])
    bounds = sb.Interval(np.array([0.0, 0.0, 0.0, 2.0, -1.0]), np.array([np.inf, np.inf, np.inf, 3.0, 1.0]))
    found = sb.solve(sb.Problem(sb.Zero(), [sb.Identity(), D], [sb.Squared(np.ones(4)), bounds]))
    assert found.status is sb.Status.INFEASIBLE
    assert not np.any(found.ray[0])


def test_contradicting_bounds_of_x_and_of_its_differences_are_proved():
    D = sparse.csr_matrix(np.diff(np.eye(4), axis=0))
    bounds = [sb.Interval(np.zeros(4), np.ones(4)), sb.Interval(np.full(3, 0.5), np.inf)]
    found = sb.solve(sb.Problem(sb.Zero(), [sb.Identity(), D], bounds))
    assert found.status is sb.Status.INFEASIBLE
    assert sb.certify_ray(sb.Problem(sb.Zero(), [sb.Identity(), D], bounds), found.ray)
