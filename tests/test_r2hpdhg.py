"""r2hpdhg compared with pdhg (without anchor and reflection), its formulas and CVXPY; solutions must not move."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import LOSSES, SIZE
from optional import optional
from oracle import random_case
from scipy import sparse

import saddleback as sb
from saddleback.engine.registry import make
from saddleback.methods import R2HPDHG, Start
from saddleback.methods.r2hpdhg import EVEN, Epoch, Point, fixed_point_error, halpern, pdhg_step
from saddleback.steps.strengths import Strengths, measure_norms, norm_strengths

cp = optional("cvxpy")


def start(model):
    return Start(np.zeros(model.A.shape[1]), np.zeros(model.A.shape[0]))


@pytest.mark.parametrize("loss", ["Squared", "Absolute", "Logistic", "Interval", "Norm2"])
def test_without_anchor_and_reflection_a_step_is_one_of_pdhg(loss, rng):
    """The iterates of ``pdhg`` are one dual step ahead of z -> T(z)."""
    model = sb.Problem(sb.L1(0.3), rng.standard_normal((SIZE, 9)), LOSSES[loss]).model
    pdhg = make("pdhg", {})
    theirs = pdhg.init(model, start(model))
    strengths = theirs.strengths
    y = model.g_star.prox(np.zeros(SIZE), 1.0 / strengths.dual)
    ours = Point(np.zeros(9), y, np.zeros(SIZE))
    for _ in range(20):
        theirs, ours = pdhg.advance(theirs, 1.0), pdhg_step(model, strengths, ours)
        assert np.allclose(theirs.x, ours.x, atol=1e-12)
        assert np.allclose(ours.u, model.A.matvec(ours.x), atol=1e-12)


def test_an_epoch_by_hand(rng):
    """z <- (k+1)/(k+2) (2 T(z) - z) + z0/(k+2), with the strengths of the norm rule, until the first restart."""
    A, b = rng.standard_normal((5, 7)), rng.standard_normal(5)
    model = sb.Problem(sb.L1(0.1), A, sb.Absolute(b)).model
    method = make("r2hpdhg", {"finish": False})
    state = method.init(model, start(model))
    strengths = norm_strengths(model, measure_norms(model, EVEN), 7)
    h, sigma = strengths.primal, strengths.dual
    x, y = np.zeros(7), np.zeros(5)
    for k in range(15):
        state = method.advance(state, 1.0)
        ahead = model.f.prox(x - A.T @ y / h, 1 / h)
        up = model.g_star.prox(y + A @ (2 * ahead - x) / sigma, 1 / sigma)
        assert np.allclose(state.x, ahead, atol=1e-12)
        assert np.allclose(state.y, up, atol=1e-12)
        x, y = (k + 1) / (k + 2) * (2 * ahead - x), (k + 1) / (k + 2) * (2 * up - y)  # z0 is 0
    assert state.report().restarts == 0


def test_the_weight_of_the_anchor_decreases(rng):
    at, ahead, anchor = (Point(*rng.standard_normal((3, 4))) for _ in range(3))
    assert np.allclose(halpern(0, at, ahead, anchor).x, (2 * ahead.x - at.x + anchor.x) / 2)
    assert np.allclose(halpern(10**9, at, ahead, anchor).y, 2 * ahead.y - at.y, atol=1e-8)
    assert np.allclose(halpern(3, at, at, at), at)


def test_the_error_is_the_norm_of_the_step_in_the_metric_of_the_method(rng):
    A = rng.standard_normal((4, 6))
    h, sigma = rng.uniform(3, 4, 6), rng.uniform(3, 4, 4)
    P = np.block([[np.diag(h), -A.T], [-A, np.diag(sigma)]])
    at, ahead = ((x, y, A @ x) for x, y in ((rng.standard_normal(6), rng.standard_normal(4)) for _ in range(2)))
    moved = np.concatenate([at[0] - ahead[0], at[1] - ahead[1]])
    found = fixed_point_error(Strengths(h, sigma), Point(*at), Point(*ahead))
    assert found == pytest.approx(np.sqrt(moved @ P @ moved))


@pytest.mark.parametrize(
    ("error", "last", "length", "pays"),
    [(0.2, 0.1, 20, True), (0.3, 0.4, 20, False), (0.3, 0.2, 20, True), (0.9, 0.8, 20, False), (0.9, 0.8, 360, True)],
)
def test_the_conditions_of_a_restart(error, last, length, pays):
    point = Point(*np.zeros((3, 1)))
    assert Epoch(point, length=length, first=1.0, last=last).pays(error, 1000) is pays


def test_a_solution_does_not_move(rng):
    A = rng.standard_normal((8, 12))
    x, y = np.maximum(rng.standard_normal(12), 0), rng.standard_normal(8)
    c = -A.T @ y + np.where(x > 0, 0.0, 1.0)
    problem = sb.Problem(sb.Linear(c) + sb.NonNegative(), A, sb.Equality(A @ x))
    result = sb.solve(problem, "r2hpdhg", tol=0, max_passes=300, x0=x, y0=y, finish=False)
    assert np.allclose(result.x, x, atol=1e-9)
    assert np.allclose(result.y, y, atol=1e-9)


def test_strengths_that_are_too_weak_are_corrected(rng):
    """With a quarter of the necessary strengths the iterates diverge, until the method detects it."""
    A = rng.standard_normal((6, 9))
    problem = sb.Problem(sb.Zero(), A, sb.Equality(A @ rng.standard_normal(9)))
    method = R2HPDHG()
    state = method.init(problem.model, start(problem.model))
    weak = state.base = state.strengths = state.base.scaled(0.25)
    for _ in range(100):
        state.wants_certificate = False
        state = method.advance(state, 20.0)
    assert np.all(state.base.primal > weak.primal)
    assert np.all(state.base.dual > weak.dual)
    assert np.allclose(state.y, 0.0, atol=1e-9)  # a gap is never exactly 0, and without costs only x = 0 has none
    assert sb.certify(problem, state.x, np.zeros(6)).error < 1e-6


CASES = [
    ("L1", "Absolute"),
    ("ElasticNet", "Squared"),
    ("GroupL2", "Hinge"),
    ("SparseGroup", "Logistic"),
    ("Nuclear", "Huber"),
    ("Box", "Norm2"),
    ("NonNegative", "Interval"),
    ("Linear+Box", "Equality"),
    ("SquaredL2", "Pinball"),
]


@pytest.mark.parametrize(("penalty", "loss"), CASES)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_every_kind_of_problem_agrees_with_cvxpy(penalty, loss):
    case = random_case(penalty, loss, 5)
    result = sb.solve(case.problem, "r2hpdhg", tol=1e-6, max_passes=100_000, finish=False)
    assert result.status is sb.Status.OPTIMAL, result.message
    optimum = case.optimum()
    assert case.oracle.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    scale = max(abs(optimum), 1e-6 * case.problem.model.value_at_zero)
    assert abs(result.certificate.primal_value - optimum) <= 3e-6 * scale + 1e-8


def test_blocks_and_linear_operators(rng):
    B = rng.standard_normal((6, 5))
    problem = sb.Problem([sb.L1(0.1), sb.Nuclear(0.3, B.shape)], [sb.Identity(), sb.Identity()], sb.Equality(B))
    assert sb.solve(problem, "r2hpdhg", tol=1e-7, finish=False).status is sb.Status.OPTIMAL
    A = sparse.linalg.aslinearoperator(rng.standard_normal((6, 9)))
    problem = sb.Problem(sb.L1(0.1), A, sb.Absolute(rng.standard_normal(6)))
    assert sb.solve(problem, "r2hpdhg", finish=False).status is sb.Status.OPTIMAL


def test_all_blocks_are_updated(rng):
    problem = sb.Problem(sb.L1(0.1), rng.standard_normal((6, 9)), sb.Absolute(np.ones(6)))
    with pytest.raises(ValueError, match="r2hpdhg updates all 9 blocks"):
        sb.solve(problem, "r2hpdhg", blocks_per_iteration=2)
