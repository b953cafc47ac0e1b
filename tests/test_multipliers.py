"""The proximal method of multipliers: its envelope, its Newton systems, its results, and when it is the default."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import saddleback as sb
from saddleback.methods import Multipliers, Start
from saddleback.methods.multipliers import _System
from saddleback.places.newton import smooth_part

LOSSES = {
    "absolute": sb.Absolute,
    "hinge": lambda b: sb.Hinge(np.where(b > 0, 1.0, -1.0)),
    "pinball": lambda b: sb.Pinball(b, 0.8),
    "epsilon": lambda b: sb.EpsilonInsensitive(b, 0.3),
    "huber": lambda b: sb.Huber(b, delta=0.3),
    "interval": lambda b: sb.Interval(b - 5.0, b + 5.0),
}
PENALTIES = {
    "l1": sb.L1,
    "elastic net": lambda alpha: sb.ElasticNet(alpha, 0.5),
    "group": lambda alpha: sb.GroupL2(alpha, 4),
    "sparse group": lambda alpha: sb.SparseGroup(alpha, 4, 0.5),
    "non-negative": lambda alpha: sb.L1(alpha) + sb.NonNegative(),
    "box": lambda alpha: sb.L1(alpha) + sb.Box(-0.5, 2.0),
}


def data(seed: int, m: int = 30, n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n))
    return A, A[:, :3].sum(axis=1) + rng.standard_normal(m)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_it_agrees_with_the_block_method(loss, penalty):
    A, b = data(1)
    problem = sb.Problem(PENALTIES[penalty](3.0), A, LOSSES[loss](b))
    ours = sb.solve(problem, method="multipliers", finish=False, tol=1e-8)
    other = sb.solve(problem, method="sp-bcd", tol=1e-8)
    assert ours.status is other.status is sb.Status.OPTIMAL
    assert ours.method == "multipliers"
    assert ours.objective == pytest.approx(other.objective, rel=1e-7, abs=1e-7)


@given(st.integers(0, 10_000), st.sampled_from([name for name in LOSSES if name != "huber"]), st.floats(0.01, 10.0))
def test_the_envelope_is_the_proximal_maximum(seed, loss, mu):
    """max_y <y, u> - g*(y) - mu/2 ||y - c||^2, computed independently by the proximal map of g."""
    rng = np.random.default_rng(seed)
    A, b = data(seed, 8, 3)
    model = sb.Problem(sb.L1(1.0), A, LOSSES[loss](b)).model
    start = Start(np.zeros(3), model.g_star.domain.project(rng.standard_normal(8)))
    state = Multipliers().init(model, start)
    state.mu = mu
    u = 3.0 * rng.standard_normal(8)
    centre = state.centre
    near = model.g.prox(u + mu * centre, mu)  # the minimiser v of g(v) + ||v - (u + mu c)||^2 / (2 mu)
    value = model.g.finite_value(near) + np.sum((near - u - mu * centre) ** 2) / (2 * mu)
    envelope = state.envelope()
    assert envelope.finite_value(u) == pytest.approx(value, rel=1e-9, abs=1e-9)
    assert np.allclose(envelope.subgradient(u), (u + mu * centre - near) / mu, atol=1e-8)


def test_rows_that_are_smooth_already_stay_as_they_are(rng):
    """Under a squared loss with constraints, only the rows of the constraints get a proximal term."""
    A, b = data(2, 8, 3)
    losses = [sb.Squared(b), sb.Interval(np.zeros(2), np.inf), sb.Huber(np.ones(1), 0.5)]
    problem = sb.Problem(sb.L1(1.0), [A, np.eye(3)[:2], np.ones((1, 3))], losses)
    state = Multipliers().init(problem.model, Start(np.zeros(3), np.zeros(11)))
    u = rng.standard_normal(11)
    distance = np.minimum(u[8:10], 0.0)
    expected = 0.5 * np.sum((u[:8] - b) ** 2) + np.sum(distance**2) / (2 * state.mu) + losses[2].value(u[10:])
    assert state.envelope().finite_value(u) == pytest.approx(expected)
    found = sb.solve(problem, method="multipliers", finish=False, tol=1e-9)
    assert found.status is sb.Status.OPTIMAL
    assert found.objective == pytest.approx(sb.solve(problem, method="sp-bcd", tol=1e-9).objective, rel=1e-8)


@given(st.integers(0, 10_000), st.booleans())
def test_all_forms_of_the_newton_system_give_the_same_direction(seed, is_sparse):
    rng = np.random.default_rng(seed)
    A, b = data(seed, 12, 20)
    model = sb.Problem(sb.L1(1.0), scipy.sparse.csc_array(A) if is_sparse else A, sb.Absolute(b)).model
    state = Multipliers().init(model, Start(rng.standard_normal(20), np.zeros(12)))
    part = smooth_part(model.penalty_form, model.blocks, state.x)
    weight = np.where(rng.random(12) < 0.6, rng.random(12), 0.0)
    right = rng.standard_normal(20)
    damping = 1e-2
    dense = A.T @ (weight[:, None] * A) + damping * np.diag(np.sum(A**2, axis=0)) / state.mu
    system = _System(state, part, weight)
    assert system.across
    assert system.direct
    assert np.allclose(system.solve(right, damping), np.linalg.solve(dense, right), rtol=1e-6, atol=1e-8)
    system.across, system.size = False, 20
    assert np.allclose(system.solve(right, damping), np.linalg.solve(dense, right), rtol=1e-6, atol=1e-8)
    system.direct = False
    assert np.linalg.norm(dense @ system.solve(right, damping) - right) <= 0.2 * np.linalg.norm(right)


@given(st.integers(0, 10_000), st.sampled_from([0.5, 0.3, 0.1]))
def test_a_vertex_is_as_good_as_that_of_a_simplex_method(seed, share):
    """The default against HiGHS on absolute loss + L1 as a linear program: the value, and at most as many non-zeros
    as rows."""
    A, b = data(seed, 15, 25)
    alpha = share * sb.alpha_max(sb.L1(1.0), A, sb.Absolute(b))
    result = sb.solve(sb.Problem(sb.L1(alpha), A, sb.Absolute(b)), tol=1e-8)
    m, n = A.shape
    program = linprog(
        np.concatenate([np.full(2 * n, alpha), np.ones(2 * m)]),
        A_eq=np.hstack([A, -A, np.eye(m), -np.eye(m)]),
        b_eq=b,
        method="highs-ds",
    )
    assert result.status is sb.Status.OPTIMAL
    assert result.objective == pytest.approx(program.fun, rel=1e-7)
    assert np.count_nonzero(result.x) <= m


def test_it_is_the_default_if_both_sides_have_kinks_and_no_groups():
    A, b = data(2)
    method = {name: sb.solve(sb.Problem(sb.L1(3.0), A, loss(b))).method for name, loss in LOSSES.items()}
    assert all(method[name].startswith("multipliers") for name in ("absolute", "hinge", "pinball", "epsilon"))
    assert not method["huber"].startswith("multipliers")
    assert sb.solve(sb.Problem(sb.GroupL2(3.0, 4), A, sb.Absolute(b))).method.startswith("sp-bcd")
    assert sb.solve(sb.Problem(sb.L1(3.0), A, sb.Absolute(b)), blocks_per_iteration=1).method.startswith("sp-bcd")


def test_the_interior_point_takes_over_if_most_coordinates_are_free():
    A, b = data(3, 300, 900)
    alpha = 0.03 * sb.alpha_max(sb.L1(1.0), A, sb.Absolute(b))
    result = sb.solve(sb.Problem(sb.L1(alpha), A, sb.Absolute(b)), tol=1e-8)
    assert result.status is sb.Status.OPTIMAL
    assert result.method == "multipliers + finish"
    assert result.history.notes[0].startswith("finish at pass ")


def test_it_runs_on_a_device():
    pytest.importorskip("torch")
    A, b = data(6, 60, 600)
    problem = sb.Problem(sb.L1(10.0), A, sb.Absolute(b))
    here, there = (sb.solve(problem, tol=1e-8, device=device, finish=False) for device in (None, "cpu"))
    assert here.method == there.method == "multipliers"
    assert there.objective == pytest.approx(here.objective, rel=1e-7)


def test_a_start_at_the_solution_needs_no_step():
    A, b = data(4)
    problem = sb.Problem(sb.L1(3.0), A, sb.Absolute(b))
    first = sb.solve(problem, method="multipliers", finish=False, tol=1e-9)
    again = sb.solve(problem, method="multipliers", finish=False, tol=1e-8, x0=first)
    assert again.status is sb.Status.OPTIMAL
    assert again.settings["newton_steps"] == 0


@pytest.mark.parametrize("alpha", [2.0, 1e3])
def test_a_run_beyond_its_solution_does_not_spoil_a_later_start(alpha):
    """With tol=0 a run continues at its solution: mu stays within bounds, also after a start from the result."""
    A, b = data(7)
    problem = sb.Problem(sb.L1(alpha), A, sb.Absolute(b))
    result = sb.solve(problem, method="multipliers", layers=False, tol=0, max_passes=1500)
    assert result.status is sb.Status.MAX_PASSES
    assert result.certificate.error <= 1e-12
    assert 1e-11 < result.settings["primal_weight"] < 1e11
    again = sb.solve(problem.with_alpha(1.0), method="multipliers", layers=False, x0=result)
    assert again.status is sb.Status.OPTIMAL
    assert again.passes < 2000


@pytest.mark.parametrize("A", [np.zeros((3, 2)), scipy.sparse.csc_array((3, 2))])
def test_a_matrix_without_entries(A):
    result = sb.solve(sb.Problem(sb.L1(1.0), A, sb.Absolute([1.0, -2.0, 0.5])), method="multipliers")
    assert result.status is sb.Status.OPTIMAL
    assert np.array_equal(result.x, [0.0, 0.0])


def test_the_reason_why_a_problem_is_rejected():
    A, b = data(5)
    with pytest.raises(TypeError, match="its loss is not made of slopes, quadratic terms and bounds"):
        sb.solve(sb.Problem(sb.L1(1.0), A, sb.Logistic(np.sign(b))), method="multipliers")
    with pytest.raises(TypeError, match="its penalty is not made of slopes, quadratic terms, bounds and group norms"):
        sb.solve(sb.Problem(sb.LInf(1.0), A, sb.Absolute(b)), method="multipliers")


def test_all_groups_of_a_list_of_blocks_may_become_0_in_one_step(rng):
    A = [rng.standard_normal((20, 8)), scipy.sparse.random(20, 30, 0.2, "csc", random_state=rng)]
    problem = sb.Problem([sb.GroupL2(200.0, 4), sb.GroupL2(300.0, 5)], A, sb.Absolute(rng.standard_normal(20)))
    result = sb.solve(problem, method="multipliers", x0=[np.ones(8), np.ones(30)])
    assert result.status is sb.Status.OPTIMAL
    assert not any(np.any(part) for part in result.x)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_units_of_a_constraint_beside_a_squared_loss_do_not_matter(scale):
    rng = np.random.default_rng(0)
    A, C = rng.standard_normal((60, 10)), rng.standard_normal((4, 10))
    losses = [sb.Squared(A[:, 0] - A[:, 1] + 0.1 * rng.standard_normal(60)), sb.Equality(np.full(4, scale))]
    assert (
        sb.solve(sb.Problem(sb.L1(0.5), [A, scale * C], losses), "multipliers", max_passes=500).status
        is sb.Status.OPTIMAL
    )


def test_most_columns_may_have_no_slope_at_0():
    """The median of the slopes was 0, and the first weight of the proximal term infinite."""
    rng = np.random.default_rng(0)
    rows, losses = (
        [[rng.standard_normal((4, 4)), None], [None, np.eye(6)]],
        [sb.Squared(np.ones(4)), sb.Interval(-0.2, np.full(6, 0.1))],
    )
    problem = sb.Problem([sb.ElasticNet(1.0, 0.4), sb.Box(-0.4, 0.6)], rows, losses)
    assert sb.solve(problem, "multipliers", max_passes=500).status is sb.Status.OPTIMAL
