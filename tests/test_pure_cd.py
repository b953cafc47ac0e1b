"""PURE-CD: one step by its formulas, the Lyapunov function of its strengths, and solved problems."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
import pytest
from catalogue import LOSSES, PENALTIES, SIZE, has_normal_form
from oracle import LOSSES as ORACLE_LOSSES
from oracle import PENALTIES as ORACLE_PENALTIES
from oracle import has_no_minimiser, random_case
from scipy import sparse

import saddleback as sb
from saddleback.engine.registry import make
from saddleback.methods import Start
from saddleback.steps.strengths import coverage, pure_strengths

PLAIN = {"restarts": False, "working_set": False}
TOL = 1e-6


def init(model, K, seed=0, y=None, **options):
    m, n = model.A.shape
    method = make("pure-cd", PLAIN | options)
    return method, method.init(model, Start(np.zeros(n), np.zeros(m) if y is None else y, K, seed))


def sparse_matrix(rng, m, n, density=0.4):
    return sparse.csc_matrix(rng.standard_normal((m, n)) * (rng.random((m, n)) < density))


@pytest.mark.parametrize(("J", "K"), [(1, 1), (6, 1), (6, 2), (6, 5), (6, 6), (40, 7)])
def test_coverage_counts_samples(J, K):
    count = np.arange(J + 1)
    expected = [1 - comb(J - w, K) / comb(J, K) for w in count]
    assert np.allclose(coverage(count, K, J), expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize("loss", ["Squared weighted", "Hinge", "Logistic", "Interval", "Norm2"])
@pytest.mark.parametrize("penalty", [sb.L1(0.1), sb.GroupL2(0.1, [[0, 4], [1], [2, 3, 5]])])
def test_one_step_by_its_formulas(loss, penalty, backend, rng):
    """The step starts from random x and y; it is written with sets of rows and blocks instead of vectors."""
    if backend == "native" and loss == "Norm2":
        backend = "auto"
    model = sb.Problem(penalty, sparse_matrix(rng, SIZE, SIZE), LOSSES[loss]).model
    blocks = list(model.blocks)
    J, K = len(blocks), 2
    method, state = init(model, K, y=rng.standard_normal(SIZE), backend=backend)
    state.x[:] = rng.standard_normal(SIZE)
    state.u[:] = model.A.matvec(state.x)
    A = model.A.entries(np.arange(SIZE))
    S = state.sampling.__class__(J, K, 0).draw(1)[0]
    h, sigma = state.strengths.primal, state.strengths.dual
    touched = {k for j in S for k in range(SIZE) if np.any(A[k, blocks[j]])}
    pi = [np.mean([any(np.any(A[k, blocks[j]]) for j in T) for T in combinations(range(J), K)]) for k in range(SIZE)]

    bar = model.g_star.prox(state.memory + state.u / sigma, 1 / sigma)
    x = state.x.copy()
    for j in S:
        own = blocks[j]
        x[own] = model.f.prox(x[own] - A[:, own].T @ bar / h[own], 1 / h[own], np.array([j]))
    v = A @ (x - state.x)
    y = np.array([bar[k] + pi[k] * J / K * v[k] / sigma[k] if k in touched else state.memory[k] for k in range(SIZE)])
    u = state.u + v

    state = method.advance(state, K / J)
    assert np.allclose(state.x, x, atol=1e-12)
    assert np.allclose(state.memory, y, atol=1e-12)
    assert np.allclose(state.u, u, atol=1e-12)
    assert np.allclose(state.y, model.g_star.prox(y + u / sigma, 1 / sigma), atol=1e-12)
    assert np.allclose(state.averages.x, x, atol=1e-12)
    assert np.allclose(state.averages.y, bar, atol=1e-12)


def growth(model, K, strengths, theta, x, y, saddle):
    """Return the expected growth of ||x - x*||^2_{h J/K} + ||y - y*||^2_{sigma / pi} over all samples."""
    J = len(model.blocks)
    pi = theta * K / J
    _, state = init(model, K, backend="numpy")
    state = replace(state, strengths=strengths, theta=theta)

    def energy(x, y):
        dx, dy = x - saddle[0], y - saddle[1]
        return J / K * (strengths.primal @ dx**2) + (strengths.dual / pi) @ dy**2

    after = []
    for sample in combinations(range(J), K):
        state.x[:], state.memory[:], state.u[:] = x, y, model.A.matvec(x)
        state.kernel.sweep(np.array([sample]), strengths, theta, state)
        after.append(energy(state.x, state.memory))
    before = energy(x, y)
    return (np.mean(after) - before) / before


def saddle_problem(seed):
    """Return a tiny problem that is constructed from its saddle point, with rows that touch one to all blocks."""
    rng = np.random.default_rng(seed)
    m, n = 4, 4
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < rng.uniform(0.3, 1.0))
    A[rng.integers(m), :] = rng.standard_normal(n)
    A[:, rng.integers(n)] = rng.standard_normal(m)
    x, y = rng.standard_normal(n), rng.uniform(-0.9, 0.9, m)
    penalty = [sb.Linear(-A.T @ y), sb.Linear(-A.T @ y) + sb.Box(x - 5.0, x + 5.0)][rng.integers(2)]
    loss = [sb.Equality(A @ x), sb.Absolute(A @ x), sb.Squared(A @ x - y)][rng.integers(3)]
    return sb.Problem(penalty, sparse.csc_matrix(A), loss).model, (x, y), rng


@pytest.mark.parametrize("K", [1, 2, 3, 4])
def test_strengths_make_the_lyapunov_function_fall(K):
    """There are no violations with the strengths of the rule, and some if h is smaller by a third."""
    violations = {1.0: 0, 1.5: 0}
    for seed in range(25):
        model, saddle, rng = saddle_problem(seed)
        strengths, theta = pure_strengths(model, K)
        for _ in range(3):
            x, y = (point + 10.0 ** rng.uniform(-2, 0) * rng.standard_normal(point.size) for point in saddle)
            for factor in violations:
                shorter = replace(strengths, primal=strengths.primal / factor)
                violations[factor] += growth(model, K, shorter, theta, x, y, saddle) > 1e-12
    assert violations[1.0] == 0
    assert violations[1.5] > 0


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("loss", [name for name in LOSSES if has_normal_form(name)])
def test_native_equals_numpy_for_every_loss(loss, as_sparse, rng):
    A = sparse_matrix(rng, SIZE, 9)
    same_iterates(sb.Problem(sb.L1(0.3), A if as_sparse else A.toarray(), LOSSES[loss]), 2)


def test_stored_zeros_touch_no_rows(rng):
    """theta counts the blocks with nonzero entries in a row, so that only these blocks may move the row."""
    A = sparse_matrix(rng, SIZE, 9, density=0.8)
    A.data[::2] = 0.0
    same_iterates(sb.Problem(sb.L1(0.3), A, LOSSES["Hinge"]), 2)


@pytest.mark.parametrize("penalty", [name for name in PENALTIES if has_normal_form(name)])
def test_native_equals_numpy_for_every_penalty(penalty, rng):
    loss = sb.Hinge(np.where(rng.random(8) < 0.5, 1.0, -1.0))
    same_iterates(sb.Problem(PENALTIES[penalty], sparse_matrix(rng, 8, SIZE), loss), 1)


def same_iterates(problem, K):
    states = []
    for backend in ("numpy", "native"):
        method, state = init(problem.model, K, backend=backend)
        assert state.report().backend == backend
        states.append(method.advance(method.advance(state, 10.0), 7.0))
    ours, theirs = states
    scale = 1 + np.abs(ours.x).max() + np.abs(ours.y).max()
    for name in ("x", "y", "u", "memory"):
        assert np.allclose(getattr(ours, name), getattr(theirs, name), atol=1e-9 * scale)
    assert np.allclose(ours.averages.x, theirs.averages.x, atol=1e-7 * scale)
    assert np.allclose(ours.averages.y, theirs.averages.y, atol=1e-7 * scale)


def cases():
    """Return every loss and every penalty once; all other pairs are slow tests."""
    for p, penalty in enumerate(ORACLE_PENALTIES):
        for q, loss in enumerate(ORACLE_LOSSES):
            fast = (p - q) % len(ORACLE_LOSSES) == 0
            yield pytest.param(penalty, loss, marks=[] if fast else pytest.mark.slow)


@pytest.mark.parametrize(("penalty", "loss"), list(cases()))
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_agrees_with_cvxpy(penalty, loss):
    case = random_case(penalty, loss, 500 + 17 * ORACLE_PENALTIES.index(penalty) + ORACLE_LOSSES.index(loss))
    if has_no_minimiser(case.problem, penalty):
        pytest.skip("no minimiser to agree on")
    result = sb.solve(case.problem, method="pure-cd", max_passes=100_000, tol=TOL)
    assert result.status.solved, result.message  # columns that depend on each other may leave rounding as the limit
    assert result.method == "pure-cd"
    optimum = case.optimum()
    scale = max(abs(optimum), 1e-6 * case.problem.model.value_at_zero)
    assert abs(result.certificate.primal_value - optimum) <= 3 * TOL * scale + 1e-8


def test_offered_dual_points_are_in_the_dual_domain(rng):
    """The iterates y leave the domain of g*, but the points that the method offers do not."""
    problem = sb.Problem(sb.L1(0.01), sparse_matrix(rng, 30, 20), sb.Hinge(np.where(rng.random(30) < 0.5, 1.0, -1.0)))
    method, state = init(problem.model, 1)
    left = False
    for _ in range(50):
        state = method.advance(state, 0.05)
        left |= not np.isfinite(problem.model.g_star.value(state.memory))
        assert np.isfinite(problem.model.g_star.value(state.y))
    assert left
    for y, _ in method.candidates(state).dual:
        assert np.isfinite(problem.model.g_star.value(y))


def test_same_bits_at_any_thread_count(rng):
    problem = sb.Problem(
        sb.L1(0.1),
        sparse.random(20_000, 200, 0.01, "csc", rng=rng),
        sb.Logistic(np.where(rng.random(20_000) < 0.5, 1, -1)),
    )
    results = [
        sb.solve(problem, method="pure-cd", blocks_per_iteration=60, max_passes=20, tol=0, threads=threads)
        for threads in (1, 2, 3)
    ]
    for result in results[1:]:
        assert result.x.tobytes() == results[0].x.tobytes()
        assert result.y.tobytes() == results[0].y.tobytes()


def test_a_linear_operator_is_rejected():
    operator = sparse.linalg.aslinearoperator(np.eye(3))
    with pytest.raises(TypeError, match="needs the entries of A"):
        sb.solve(sb.Problem(sb.L1(1.0), operator, sb.Squared(np.ones(3))), method="pure-cd")
