"""SLOPE with a smooth loss: working sets of columns, ties, and the libraries and problems with which it must agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from scipy.stats import norm

import saddleback as sb
from saddleback.functions.calculus import BlockSum
from saddleback.functions.traits import distance_from_leaving, parts_at_zero, restrict_parts
from saddleback.layers import WorkingSet
from saddleback.methods import Descent, Start
from saddleback.places.accelerated import LARGE, AcceleratedKernel
from saddleback.places.newton import directions, pattern, weighted_gram

N = 600


def data(rng, m=80, n=N, correlation=0.0):
    A = rng.standard_normal((m, n))
    for j in range(1, n):
        A[:, j] = correlation * A[:, j - 1] + np.sqrt(1 - correlation**2) * A[:, j]
    return A, A[:, :5].sum(axis=1) + 0.5 * rng.standard_normal(m)


def quantiles(n, q=0.1):
    return norm.ppf(1 - q * np.arange(1, n + 1) / (2 * n))


def scaled(weights, share, A, b):
    """Return the weights times a share of the factor at which x becomes 0."""
    return share * sb.alpha_max(sb.SLOPE(weights), A, sb.Squared(b)) * weights


def dominance(z, weights):
    """Return the largest sum of the k largest |z| less that of the k largest weights, over all k."""
    return float(np.max(np.cumsum(np.sort(np.abs(z))[::-1] - weights)))


@pytest.mark.parametrize("seed", range(20))
def test_a_solution_on_some_columns_solves_the_problem_iff_the_others_are_dominated(seed):
    rng = np.random.default_rng(seed)
    A, b = data(rng, 30, 40)
    weights = scaled(np.linspace(1.0, 0.2, 40), 0.6, A, b)
    whole = sb.solve(sb.Problem(sb.SLOPE(weights), A, sb.Squared(b)), tol=1e-12)
    active = np.flatnonzero(whole.x)
    chosen = np.union1d(active[seed % 2 :], rng.choice(40, 6, replace=False))  # with odd seeds, maybe one too few
    part = sb.solve(sb.Problem(sb.SLOPE(weights[: chosen.size]), A[:, chosen], sb.Squared(b)), tol=1e-12)
    extended = np.zeros(40)
    extended[chosen] = part.x
    z = A.T @ (b - A @ extended)
    dominated = dominance(z, weights) <= 1e-7 * weights[0]
    error = sb.certify(sb.Problem(sb.SLOPE(weights), A, sb.Squared(b)), extended, A @ extended - b).error
    assert (error <= 1e-8) == dominated == bool(np.isin(active, chosen).all())


@examples(60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 9))
def test_a_restricted_function_is_the_function_with_the_others_at_zero(seed, n):
    rng = np.random.default_rng(seed)
    f = sb.SLOPE(np.sort(rng.uniform(0, 2, n))[::-1]).bind((n,))
    chosen = np.flatnonzero(rng.random(n) < 0.6)
    part = restrict_parts(f, chosen)
    x = np.zeros(n)
    x[chosen] = rng.integers(-3, 4, chosen.size)
    assert part.finite_value(x[chosen]) == pytest.approx(f.finite_value(x))
    z = rng.uniform(-2, 2, n)
    if f.conjugate().value(z) == 0:  # the supremum over fewer x is no larger
        assert part.conjugate().value(z[chosen]) == 0
    beyond = np.where(np.isin(np.arange(n), chosen), z, 0.0)
    assert part.conjugate().value(z[chosen]) == f.conjugate().value(beyond)


@examples(200)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.booleans())
def test_parts_beyond_the_distance_of_a_move_decide_nothing(seed, n, joined):
    """If z is feasible for the parts that a move may free, it is feasible for all of them."""
    rng = np.random.default_rng(seed)
    f = sb.SLOPE(np.sort(rng.integers(0, 9, n))[::-1] / 4).bind((n,))
    if joined:
        f = BlockSum([f, sb.L1(1.0).bind((3,))], [n, 3], [True, True])
        n += 3
    lengths, moved = rng.uniform(0.5, 2.0, n), rng.choice([0.0, 0.1, 1.0])
    z = rng.integers(-9, 10, n) / 4
    distance = distance_from_leaving(f, z, lengths)
    near = np.flatnonzero(distance <= moved)
    after = z + 0.99 * moved * lengths * rng.uniform(-1, 1, n)
    near_feasible = near.size == 0 or restrict_parts(f, near).conjugate().value(after[near]) == 0
    assert near_feasible == (f.conjugate().value(after) == 0)


def test_larger_entries_are_closer_to_leaving_zero(rng):
    z, weights = rng.standard_normal(50), quantiles(50)
    distance = distance_from_leaving(sb.SLOPE(weights).bind((50,)), z, np.ones(50))
    np.testing.assert_array_equal(np.argsort(distance), np.argsort(-np.abs(z)))


def test_parts_are_entries_of_a_coupled_function_and_otherwise_blocks():
    f, g = sb.SLOPE(np.ones(4)).bind((4,)), sb.GroupL2(1.0, 2).bind((6,))
    assert [own.tolist() for own in parts_at_zero(f)] == [[0], [1], [2], [3]]
    assert parts_at_zero(g) is parts_at_zero(BlockSum([g, g], [6, 6], [True, True])) is None
    both = BlockSum([g, f], [6, 4], [True, True])
    assert [own.tolist() for own in parts_at_zero(both)] == [[0, 1], [2, 3], [4, 5], [6], [7], [8], [9]]
    assert parts_at_zero(BlockSum([g, f], [6, 4], [True, False])) is None  # it counts as one block


@examples(60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_the_penalty_is_linear_along_ties(seed, n):
    rng = np.random.default_rng(seed)
    f = sb.SLOPE(np.sort(rng.uniform(0, 2, n))[::-1]).bind((n,))
    x = rng.integers(-3, 4, n) / 2.0
    entries, group, sign, slope = f.ties(x)
    np.testing.assert_array_equal(entries, np.flatnonzero(x))
    d = rng.uniform(-0.2, 0.2, slope.size)
    moved = x.copy()
    moved[entries] += sign * d[group]
    assert f.finite_value(moved) == pytest.approx(f.finite_value(x) + slope @ d)
    sizes = [np.unique(np.abs(x[entries[group == tie]])).tolist() for tie in range(slope.size)]
    assert sizes == [[size] for size in np.unique(np.abs(x[entries]))]


def test_directions_of_several_penalties_have_the_derivatives_of_the_sum(rng):
    """A group, ties of SLOPE and an intercept: the change of the objective along any step, to second order."""
    A, b = data(rng, 30, 12)
    problem = sb.Problem(
        [sb.GroupL2(0.7, 3), sb.SLOPE(np.linspace(2.0, 0.5, 6)), sb.Zero()],
        [A[:, :6], A[:, 6:], np.ones(30)],
        sb.Squared(b),
    )
    model = problem.model
    x = np.array([0.3, -1.0, 0.5, 0, 0, 0, 0.4, -0.4, 0, 0.9, 0.9, 0.1, 2.0])
    part = directions(model, x)
    assert part.gradient.size == 3 + 3 + 1
    step = 1e-3 * rng.standard_normal(part.gradient.size)
    whole = np.zeros(13)
    whole[part.free] = part.spread(step)
    u = model.A.matvec(x)
    slope = part.gathered(model.A.rmatvec(model.g.subgradient(u), part.free)) + part.gradient
    gram = part.added_to(part.gram(weighted_gram(model.A, np.ones(30), part.free)))
    matrix = np.tril(gram) + np.tril(gram, -1).T

    def objective(at):
        return model.f.finite_value(at) + model.g.finite_value(model.A.matvec(at))

    rise = objective(x + whole) - objective(x)
    assert rise == pytest.approx(slope @ step + 0.5 * step @ matrix @ step, abs=1e-8)
    np.testing.assert_allclose(part.summed(np.ones(part.free.size)), [1, 1, 1, 1, 2, 2, 1])
    expected = np.concatenate([x != 0, np.isin(np.arange(13), [6, 7, 9, 10])])
    np.testing.assert_array_equal(pattern(model, x), expected)


def test_the_steps_of_a_large_block_beside_others_are_those_of_its_norm(rng):
    A = rng.standard_normal((50, 2 * LARGE))
    model = sb.Problem([sb.SLOPE(np.ones(2 * LARGE)), sb.Zero()], [A, np.ones(50)], sb.Squared(np.ones(50))).model
    kernel = AcceleratedKernel(model, 16)
    norm = np.linalg.norm(A, 2) ** 2
    assert norm <= kernel.strength[0] <= 1.25 * norm
    assert kernel.strength[-1] == pytest.approx(50)
    scale = np.sqrt(kernel.step)
    assert np.linalg.norm(np.column_stack([A, np.ones(50)]) * scale, 2) <= 1.0 + 1e-9


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["Squared", "Logistic", "Huber", "Absolute"])
def test_the_optimum_is_the_same_as_without_a_working_set(loss, intercept, rng):
    A, b = data(rng)
    g = {
        "Squared": sb.Squared(b),
        "Logistic": sb.Logistic(np.sign(b)),
        "Huber": sb.Huber(b, 0.5),
        "Absolute": sb.Absolute(b),
    }[loss]
    weights = 0.4 * sb.alpha_max(sb.SLOPE(quantiles(N)), A, g) * quantiles(N)
    problem = (
        sb.Problem([sb.SLOPE(weights), sb.Zero()], [A, np.ones(80)], g)
        if intercept
        else sb.Problem(sb.SLOPE(weights), A, g)
    )
    with_set = sb.solve(problem, tol=1e-7)
    without = sb.solve(problem, method="sp-bcd", tol=1e-7, working_set=False, max_passes=50_000)
    assert with_set.method == ("sp-bcd" if loss == "Absolute" else "descent")
    assert with_set.status is without.status is sb.Status.OPTIMAL
    assert 0 < with_set.settings["working_set"] < N
    assert with_set.certificate.primal_value == pytest.approx(without.certificate.primal_value, rel=2e-7)
    assert sb.certify(problem, with_set.x, with_set.y) == with_set.certificate


@pytest.mark.parametrize("correlation", [0.0, 0.9])
@pytest.mark.parametrize("share", [0.5, 0.05])
def test_equal_weights_are_the_lasso(correlation, share, rng):
    A, b = data(rng, correlation=correlation)
    alpha = share * np.abs(A.T @ b).max()
    slope = sb.solve(sb.Problem(sb.SLOPE(np.full(N, alpha)), A, sb.Squared(b)), tol=1e-10)
    lasso = sb.solve(sb.Problem(sb.L1(alpha), A, sb.Squared(b)), tol=1e-10)
    assert slope.status is lasso.status is sb.Status.OPTIMAL
    np.testing.assert_allclose(A @ slope.x, A @ lasso.x, atol=1e-4 * np.linalg.norm(b))
    assert slope.certificate.primal_value == pytest.approx(lasso.certificate.primal_value, rel=2e-10)


@pytest.mark.parametrize(("share", "n"), [(0.9, N), (0.6, N), (0.9, 4 * N)])
def test_columns_that_are_needed_only_together_are_added(share, n, rng):
    """The columns outside a set that is at 0 are farther from leaving 0 than those inside; their sum is too large."""
    A, b = data(rng, n=n)
    weights = np.zeros(n)
    weights[0] = share * np.abs(A.T @ b).sum()
    problem = sb.Problem(sb.SLOPE(weights), A, sb.Squared(b))
    state = WorkingSet(Descent()).init(problem.model, Start(np.zeros(n), np.zeros(80)))
    first = state.subproblem.blocks
    assert np.abs(A[:, first].T @ b).sum() < weights[0]  # so the first set stays at 0
    slope = sb.solve(problem, tol=1e-8, max_passes=2000)
    largest = sb.solve(sb.Problem(sb.LInf(weights[0]), A, sb.Squared(b)), tol=1e-8)
    assert slope.status is sb.Status.OPTIMAL
    assert slope.certificate.primal_value == pytest.approx(largest.certificate.primal_value, rel=2e-8)


def test_a_set_beside_a_separable_penalty_has_one_function_of_all_its_columns(rng):
    """The penalty of a set is that of all columns with the others at 0, also after columns of both were added."""
    A, b = data(rng, n=2 * N)
    weights = scaled(quantiles(N), 0.2, A[:, :N], b)
    alpha = 0.2 * np.abs(A[:, N:].T @ b).max()
    problem = sb.Problem([sb.SLOPE(weights), sb.L1(alpha)], [A[:, :N], A[:, N:]], sb.Squared(b))
    layer = WorkingSet(Descent())
    state = layer.init(problem.model, Start(np.zeros(2 * N), np.zeros(80)))
    first = state.subproblem
    added = np.setdiff1d(rng.choice(2 * N, 50, replace=False), first.blocks)
    for own in (first, layer._extend(state, first, added, state.y)):
        whole = np.zeros(2 * N)
        whole[own.columns] = rng.standard_normal(own.columns.size)
        value = own.model.f.finite_value(whole[own.columns])
        assert value == pytest.approx(problem.model.f.finite_value(whole))
        np.testing.assert_allclose(own.model.A.matvec(whole[own.columns]), A @ whole, rtol=1e-5, atol=1e-4)
    with_set = sb.solve(problem, tol=1e-9)
    without = sb.solve(problem, tol=1e-9, working_set=False)
    assert with_set.status is without.status is sb.Status.OPTIMAL
    assert 0 < with_set.settings["working_set"] < 2 * N
    assert with_set.certificate.primal_value == pytest.approx(without.certificate.primal_value, rel=2e-9)


@pytest.mark.parametrize("correlation", [0.0, 0.9])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
@pytest.mark.parametrize("shape", ["quantiles", "linear"])
def test_sortedl1_finds_the_same_optimum(shape, share, correlation, rng):
    Slope = pytest.importorskip("sortedl1").Slope
    A, b = data(rng, correlation=correlation)
    weights = scaled(quantiles(N) if shape == "quantiles" else np.linspace(1.0, 0.1, N), share, A, b)
    problem = sb.Problem(sb.SLOPE(weights), A, sb.Squared(b))
    own = sb.solve(problem, tol=1e-9)
    other = Slope(lam=weights / 80, fit_intercept=False, centering="none", scaling="none", tol=1e-10, max_iter=100_000)
    x = np.ravel(other.fit(A, b).coef_)
    value = sb.certify(problem, x, A @ x - b).primal_value
    assert own.status is sb.Status.OPTIMAL
    assert own.certificate.dual_value <= value * (1 + 1e-12)
    assert own.certificate.primal_value == pytest.approx(value, rel=1e-6)


def test_the_path_has_the_solutions_of_single_problems(rng):
    A, b = data(rng)
    for found in sb.path(sb.SLOPE(quantiles(N)), A, sb.Squared(b), n_alphas=4, eps=0.1, tol=1e-9):
        single = sb.solve(sb.Problem(sb.SLOPE(quantiles(N), found.settings["alpha"]), A, sb.Squared(b)), tol=1e-9)
        assert found.status is single.status is sb.Status.OPTIMAL
        assert found.certificate.primal_value == pytest.approx(single.certificate.primal_value, rel=2e-9)


def test_weights_that_are_mostly_0_leave_the_working_set_out(rng):
    """No kink holds the entries of weight 0, so that there is nothing to leave out, and no small Newton system."""
    A, b = rng.standard_normal((40, 300)), rng.standard_normal(40)
    weights = np.append(np.ones(3), np.zeros(297))
    alpha = 0.05 * sb.alpha_max(sb.SLOPE(np.append(np.ones(3), np.full(297, 1e-9))), A, sb.Squared(b))
    result = sb.solve(sb.Problem(sb.SLOPE(weights, alpha), A, sb.Squared(b)))
    assert result.status is sb.Status.OPTIMAL
    assert result.method == "sp-bcd"
