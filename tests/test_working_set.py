"""Working sets: the same results from fewer columns."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import PENALTIES, SIZE
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import saddleback as sb
from saddleback.functions.piecewise import PiecewiseQuadratic
from saddleback.functions.traits import zero_slack
from saddleback.layers import WorkingSet
from saddleback.layers.working_set import Products, closest
from saddleback.methods import Descent, Start

N = 600
SCATTERED = [list(group) for group in np.random.default_rng(3).permutation(N).reshape(-1, 4)]
SPARSE_PENALTIES = {
    "L1": lambda a: sb.L1(a),
    "L1, some weights 0": lambda a: sb.L1(a, np.where(np.arange(N) < 3, 0.0, 1.0)),
    "L1 + NonNegative": lambda a: sb.L1(a) + sb.NonNegative(),
    "ElasticNet": lambda a: sb.ElasticNet(a, 0.9),
    "GroupL2": lambda a: sb.GroupL2(a, 1),
    "GroupL2 scattered": lambda a: sb.GroupL2(a, [*SCATTERED]),
    "SparseGroup": lambda a: sb.SparseGroup(a, [*SCATTERED], 0.5),
}


def data(rng, m=80):
    A = rng.standard_normal((m, N))
    return A, A[:, :5].sum(axis=1) + 0.5 * rng.standard_t(3, m)


def losses(b):
    labels = np.sign(b)
    return {
        "Squared": sb.Squared(b),
        "Logistic": sb.Logistic(labels),
        "Huber": sb.Huber(b, 0.5),
        "Pinball": sb.Pinball(b, 0.3),
        "Hinge": sb.Hinge(labels),
        "Norm2": sb.Norm2(b),
    }


@pytest.mark.parametrize("penalty", SPARSE_PENALTIES)
@pytest.mark.parametrize("loss", ["Squared", "Logistic", "Huber"])
def test_the_optimum_is_the_same_as_without_a_working_set(penalty, loss, rng):
    A, b = data(rng)
    g = losses(b)[loss]
    alpha = 0.2 * np.abs(A.T @ g.bind(b.shape).subgradient(np.zeros(80))).max()
    problem = sb.Problem(SPARSE_PENALTIES[penalty](alpha), A, g)
    with_set = sb.solve(problem, tol=1e-8)
    without = sb.solve(problem, tol=1e-8, working_set=False, max_passes=50_000)
    assert with_set.status is without.status is sb.Status.OPTIMAL
    assert with_set.certificate.primal_value == pytest.approx(without.certificate.primal_value, rel=2e-8)
    if "scattered" not in penalty and penalty != "SparseGroup":  # those have too few blocks for a working set
        assert 0 < with_set.settings["working_set"] <= N


@pytest.mark.parametrize("loss", ["Pinball", "Hinge", "Norm2"])
@pytest.mark.parametrize("intercept", [False, True])
def test_losses_that_are_not_smooth(loss, intercept, rng):
    A, b = data(rng)
    g = losses(b)[loss]
    alpha = 0.3 * np.abs(A.T @ g.bind(b.shape).subgradient(np.zeros(80))).max()
    matrix = sparse.csc_matrix(A * (rng.random(A.shape) < 0.5))
    problem = (
        sb.Problem([sb.L1(alpha), sb.Zero()], [matrix, np.ones(80)], g)
        if intercept
        else (sb.Problem(sb.L1(alpha), matrix, g))
    )
    with_set = sb.solve(problem, tol=1e-5, max_passes=30_000)
    without = sb.solve(problem, tol=1e-5, working_set=False, max_passes=30_000)
    assert with_set.status is without.status is sb.Status.OPTIMAL
    assert with_set.certificate.primal_value == pytest.approx(without.certificate.primal_value, rel=2e-5)
    assert "working_set" in with_set.settings
    assert sb.certify(problem, with_set.x, with_set.y) == with_set.certificate


def test_a_sparse_problem_takes_fewer_passes(rng):
    A = rng.standard_normal((200, 3000))
    b = A[:, :5].sum(axis=1) + 0.1 * rng.standard_normal(200)
    problem = sb.Problem(sb.L1(0.2 * np.abs(A.T @ b).max()), A, sb.Squared(b))
    for method, share in (("sp-bcd", 0.4), ("descent", 0.65)):
        with_set, without = (
            sb.solve(problem, method=method, working_set=choice, finish=False) for choice in (True, False)
        )
        assert with_set.status is without.status is sb.Status.OPTIMAL
        assert with_set.passes < share * without.passes


def test_a_misleading_start_costs_only_time(rng):
    """A random y0 fills the first set with the wrong columns."""
    A, b = data(rng)
    problem = sb.Problem(sb.L1(0.2 * np.abs(A.T @ b).max()), A, sb.Squared(b))
    plain = sb.solve(problem, tol=1e-9)
    misled = sb.solve(problem, tol=1e-9, y0=rng.standard_normal(80), x0=rng.standard_normal(N))
    assert misled.status is sb.Status.OPTIMAL
    assert misled.certificate.primal_value == pytest.approx(plain.certificate.primal_value, rel=1e-8)


def test_strengths_by_column_follow_the_set(rng):
    """Explicit strengths belong to the user's columns, for any working set, also if empty columns are removed."""
    A, b = data(rng)
    A[:, 7] = 0.0
    problem = sb.Problem(sb.L1(0.2 * np.abs(A.T @ b).max()), A, sb.Squared(b))
    norms = np.maximum(np.linalg.norm(A, axis=0), 1.0)
    step = (norms**2, np.full(80, 1.01 * 600))
    result = sb.solve(problem, step=step, blocks_per_iteration=1, max_passes=2000, tol=1e-5)
    assert result.status is sb.Status.OPTIMAL
    assert "working_set" in result.settings


@pytest.mark.parametrize(
    "penalty",
    [
        sb.L1(8.0),
        sb.ElasticNet(8.0, 0.9),
        sb.GroupL2(8.0, 1),
        [sb.L1(8.0), sb.Zero()],
        [sb.GroupL2(8.0, 1), sb.L1(8.0)],
    ],
)
def test_matrix_variables(penalty, rng):
    """The entries of a row are separate blocks, or one block: the subproblem must contain whole rows."""
    A, b = data(rng)
    target = np.column_stack([b, -b])
    matrices = [A, np.ones((80, 1))] if isinstance(penalty, list) else A
    problem = sb.Problem(penalty, matrices, sb.Squared(target))
    with_set, without = sb.solve(problem), sb.solve(problem, working_set=False)
    assert with_set.status is without.status is sb.Status.OPTIMAL
    assert with_set.certificate.primal_value == pytest.approx(without.certificate.primal_value, rel=2e-6)


class MySquaredNorm:
    """||x||^2 / 2 as a user-defined function, which cannot be split."""

    separable = True

    def value(self, x):
        return 0.5 * np.sum(np.square(x))

    def prox(self, v, step):
        return v / (1 + step)

    def conjugate(self, y):
        return 0.5 * np.sum(np.square(y))


def test_functions_that_cannot_be_split_stay_whole(rng):
    A, b = data(rng)
    other = rng.standard_normal((80, 6))
    for part in (MySquaredNorm(), sb.Nuclear(1.0, (2, 3))):
        problem = sb.Problem([sb.L1(8.0), part], [A, other], sb.Squared(b))
        with_set, without = sb.solve(problem), sb.solve(problem, working_set=False)
        assert with_set.status is without.status is sb.Status.OPTIMAL
        assert with_set.certificate.primal_value == pytest.approx(without.certificate.primal_value, rel=2e-6)


def test_limits_hold(rng):
    A = rng.standard_normal((200, 1500))
    b = rng.standard_normal(200)
    problem = sb.Problem(sb.L1(0.01 * np.abs(A.T @ b).max()), A, sb.Absolute(b))
    result = sb.solve(problem, tol=0, max_passes=300)
    assert result.status is sb.Status.MAX_PASSES
    assert result.passes <= 1.05 * 300  # plus the work of a last step


def test_settings_are_those_of_the_last_set(rng):
    A, b = data(rng)
    result = sb.solve(sb.Problem(sb.L1(1.0), A, sb.Pinball(b, 0.3)), "sp-bcd", tol=1e-6, max_passes=5000)
    assert result.settings["primal_weight"] != 1.0


def test_a_dense_start_does_not_stay_dense(rng):
    A = rng.standard_normal((200, 3000))
    b = A[:, :5].sum(axis=1) + 0.1 * rng.standard_normal(200)
    problem = sb.Problem(sb.L1(0.3 * np.abs(A.T @ b).max()), A, sb.Squared(b))
    result = sb.solve(problem, x0=1e-8 * rng.standard_normal(3000))
    assert result.status is sb.Status.OPTIMAL
    assert result.settings["working_set"] <= 300


def test_divergence_is_reported_as_without_a_working_set(rng):
    A, b = data(rng)
    problem = sb.Problem(sb.L1(1.0), A, sb.Squared(b))
    result = sb.solve(problem, step=(1e-3, 1e-3), restarts=False, blocks_per_iteration=50)
    assert result.status is sb.Status.DIVERGED


def test_limits_hold_if_the_work_up_to_the_next_certificate_is_below_rounding():
    """The remaining 1e-13 of a pass was less than half an ulp of the work done, and the certificate never came."""
    rng = np.random.default_rng(5073)
    problem = sb.Problem(sb.L1(1.0), rng.standard_normal((100, 1000)), sb.Squared(rng.standard_normal(100)))
    result = sb.solve(problem, tol=0, max_passes=600, time_limit=60, finish=False)
    assert result.status is sb.Status.MAX_PASSES
    assert result.certificate.error <= 1e-12


def test_a_method_without_progress_ends_the_loop_over_a_working_set(rng):
    """A certificate of the working set follows, and the clock is checked."""
    A, b = data(rng)
    model = sb.Problem(sb.L1(5.0), A, sb.Squared(b)).model

    class Still(Descent):
        def advance(self, state, passes):
            return state

    layer = WorkingSet(Still())
    state = layer.init(model, Start(np.zeros(N), np.zeros(80)))
    assert state.subproblem is not None
    layer.advance(state, 10.0)


def test_a_certificate_on_a_set_counts_its_products(rng, monkeypatch):
    """A certificate of descent computes A_S x, for the gradient of the loss, and A_S'y."""
    A, b = data(rng)
    layer = WorkingSet(Descent())
    state = layer.init(sb.Problem(sb.L1(5.0), A, sb.Squared(b)).model, Start(np.zeros(N), np.zeros(80)))
    monkeypatch.setattr(WorkingSet, "_leap", lambda *_: False)
    monkeypatch.setattr(WorkingSet, "_target", lambda *_: 0.0)  # no new set, which has other products
    before = state.passes
    layer._look(state, state.subproblem)
    assert state.passes - before == pytest.approx(state.subproblem.share)


def test_a_point_at_which_every_block_stays_at_zero(rng):
    """No column is close to entering, so that no products are computed."""
    A, b = data(rng)
    model = sb.Problem(sb.GroupL2(1e4, 2), A, sb.Hinge(np.sign(b))).model
    products = Products(model)
    products.at(np.zeros(80))
    products.at(np.full(80, 1e-3))
    assert np.all(products.distance > 0)
    assert products.passes == 0.5


def test_a_working_set_is_used_only_if_it_saves_work(rng):
    A, b = data(rng)
    for problem in (
        sb.Problem(sb.L1(1.0), A[:, :50], sb.Squared(b)),  # few blocks
        sb.Problem(sb.L1(1.0), A, sb.Equality(b)),  # a subset of the columns may not be feasible
        sb.Problem(sb.SquaredL2(1.0), A, sb.Squared(b)),  # no coefficient is ever 0
        sb.Problem(sb.L1(1.0) + sb.Linear(2 * np.ones(N)), A, sb.Squared(b)),  # unbounded
    ):
        assert "working_set" not in sb.solve(problem, max_passes=20).settings


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5000), st.floats(0.0, 1.0), st.booleans())
def test_the_closest_blocks_are_the_first_of_all_in_order(seed, n, share, ties):
    rng = np.random.default_rng(seed)
    distance = rng.integers(-3, 4, n) * 1.0 if ties else rng.standard_normal(n)
    distance[rng.random(n) < 0.1] = -np.inf
    size = max(1, int(share * (n - 1)))
    np.testing.assert_array_equal(closest(distance, size), np.argsort(distance, kind="stable")[:size])


@pytest.mark.parametrize("density", [0.02, 0.5])
def test_the_first_set_is_larger_if_columns_are_short(density, rng):
    A = sparse.random(50, 4000, density, format="csc", random_state=1, data_rvs=rng.standard_normal)
    b = rng.standard_normal(50)
    model = sb.Problem(sb.L1(0.1), A, sb.Squared(b)).model
    leaving = np.count_nonzero(np.abs(A.T @ b) > 0.1)
    state = WorkingSet(Descent()).init(model, Start(np.zeros(4000), np.zeros(50)))
    assert leaving > 1600
    assert state.subproblem.blocks.size == (min(leaving // 4, 480) if density < 0.1 else 100)
    assert sb.solve(sb.Problem(sb.L1(0.1), A, sb.Squared(b))).status is sb.Status.OPTIMAL


@pytest.mark.parametrize("penalty", [sb.L1(1.5), sb.L1(1.5) + sb.NonNegative(), sb.ElasticNet(1.5, 0.5)])
def test_a_restricted_penalty_keeps_its_single_values(penalty, rng):
    """Parameters that are the same for all columns take no memory, and no time, for a set of columns either."""
    f, columns = penalty.bind((N,)), rng.permutation(N)[:50]
    part = f.restrict_blocks(columns)
    each = PiecewiseQuadratic(*(own[columns].copy() for own in f.parameters()))
    assert all(own.strides == (0,) for own in part.parameters())
    z = 2 * rng.standard_normal(50)
    for name in ("finite_value", "zero_slack", "finite_conjugate_value", "conjugate_value"):
        more = (0.5,) if name == "finite_conjugate_value" else ()
        np.testing.assert_allclose(getattr(part, name)(z, *more), getattr(each, name)(z, *more), rtol=1e-14)


@pytest.mark.parametrize("name", PENALTIES)
def test_restriction_is_the_function_with_the_others_at_zero(name, rng):
    f = PENALTIES[name].bind((SIZE,))
    blocks = np.arange(len(f.blocks()))[::2]
    columns = f.blocks().columns(blocks)  # one block after the other
    part = f.restrict_blocks(blocks)
    x, step = rng.standard_normal(SIZE), rng.uniform(0.5, 2, SIZE)
    inside = np.zeros(SIZE)
    inside[columns] = x[columns]
    assert part.finite_value(x[columns]) == pytest.approx(f.finite_value(inside))
    assert np.allclose(part.prox(x[columns], step[columns]), f.prox(x, step)[columns])


@pytest.mark.parametrize("name", PENALTIES)
def test_the_sign_of_the_slack_determines_which_blocks_stay_at_zero(name, rng):
    """A block with positive slack at z is 0 in prox(z); a block with negative slack and a kink is not."""
    f = PENALTIES[name].bind((SIZE,))
    for _ in range(20):
        z = 2 * rng.standard_normal(SIZE)
        slack = zero_slack(f, z)
        if slack is None:
            return
        blocks = f.blocks()
        moved = np.logical_or.reduceat(f.prox(1e-3 * z, 1e-3)[blocks.order] != 0, blocks.start[:-1])
        assert not np.any(moved[slack > 1e-12])
        free = np.isfinite(slack) & (slack < -1e-12)
        assert np.all(moved[free])
