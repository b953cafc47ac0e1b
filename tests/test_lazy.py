"""The lazy dual: its closed form agrees with the loop that it replaces, and lazy runs agree with eager ones."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import LOSSES, SIZE
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from scipy import sparse

import saddleback as sb
from saddleback import _native
from saddleback.engine.registry import make
from saddleback.functions.piecewise import PiecewiseQuadratic
from saddleback.methods import Start
from saddleback.places.numpy import lazy
from saddleback.places.numpy.lazy import repeated_steps

INF = np.inf
ROWS = 40
SKIPPABLE = [name for name, loss in LOSSES.items() if isinstance(loss.bind((SIZE,)).conjugate(), PiecewiseQuadratic)]


def test_most_losses_have_a_lazy_dual():
    assert len(SKIPPABLE) >= 12


def random_rows(seed):
    """Return rows with random and degenerate parameters, and the starting points of their steps."""
    rng = np.random.default_rng(seed)
    middle, half = rng.normal(size=ROWS), rng.choice([0.0, 0.3, 1.0], ROWS)
    lower = rng.choice([-INF, -3.0, -0.5, 0.0, 0.2], ROWS)
    dual = PiecewiseQuadratic(
        np.where(rng.random(ROWS) < 0.05, -INF, middle - half),
        middle + half,
        rng.choice([0.0, 1e-9, 1e-3, 1.0, 2.5, 1e5], ROWS),
        lower,
        np.maximum(lower, rng.choice([INF, 3.0, 0.7, 0.0], ROWS)),
    )
    y = rng.normal(size=ROWS) * rng.choice([0.0, 1.0, 30.0], ROWS)
    at_a_kink = rng.choice([dual.right, np.where(np.isfinite(dual.left), dual.left, 0.0)])
    u = np.where(rng.random(ROWS) < 0.2, at_a_kink, rng.normal(size=ROWS) * rng.choice([1.0, 10.0], ROWS))
    return dual, y, u, 10.0 ** rng.uniform(-5, 2, ROWS)


def loop(dual, y, u, step, count):
    """Return y and the sum of its iterates by taking every step, and the size of the largest iterate."""
    y, total, largest = y.copy(), np.zeros_like(y), np.abs(y)
    for t in range(count.max(initial=0)):
        y = np.where(t < count, dual.prox(y + step * u, step), y)
        total += np.where(t < count, y, 0.0)
        largest = np.maximum(largest, np.abs(y))
    return y, total, largest


def native_steps(dual, y, u, step, count):
    """Return the same from the compiled kernel, which has no columns here, so that no row is touched."""
    y, total = y.copy(), np.zeros_like(y)
    kernel = _native.Kernel(
        [_native.Matrix(np.zeros((y.size, 0), order="F"))], np.zeros(1, np.int64), np.zeros(0, np.int64),
        (np.zeros(0),) * 5, np.zeros(0), _native.RowLoss.coordinate(*dual.parameters()),
    )  # fmt: skip
    none, draws = np.zeros(0), np.zeros((count[0], 0), np.int64)
    kernel.sweep(draws, none, 1.0 / step, 1.0, none, y, u.copy(), none, total, lazy=True)
    return y, total


@examples(200)
@given(st.integers(0, 10**6), st.integers(0, 400))
def test_closed_form_is_the_loop(seed, most):
    dual, y, u, step = random_rows(seed)
    count = np.random.default_rng(seed).integers(0, most + 1, ROWS)
    expected, total, largest = loop(dual, y, u, step, count)
    got, summed = repeated_steps(dual, y, u, step, count)
    assert np.all(np.abs(got - expected) <= 1e-11 * (1 + largest))
    assert np.all(np.abs(summed - total) <= 1e-11 * (1 + largest) * (1 + count))


@examples(200)
@given(st.integers(0, 10**6), st.integers(0, 10**5))
def test_native_closed_form_is_that_of_numpy(seed, steps):
    dual, y, u, step = random_rows(seed)
    count = np.full(ROWS, steps)
    expected, total = repeated_steps(dual, y, u, step, count)
    got, summed = native_steps(dual, y, u, step, count)
    scale = 1 + np.abs(y) + np.abs(expected)
    assert np.all(np.abs(got - expected) <= 1e-12 * scale)
    assert np.all(np.abs(summed - total) <= 1e-11 * scale * (1 + count))


@examples(100)
@given(st.integers(0, 10**6), st.integers(0, 1000), st.integers(0, 1000))
def test_two_runs_of_steps_equal_one_run(seed, first, second):
    dual, y, u, step = random_rows(seed)
    counts = [np.full(ROWS, count) for count in (first, second, first + second)]
    half, head = repeated_steps(dual, y, u, step, counts[0])
    whole, tail = repeated_steps(dual, half, u, step, counts[1])
    at_once, total = repeated_steps(dual, y, u, step, counts[2])
    scale = 1 + np.abs(y) + np.abs(at_once)
    assert np.all(np.abs(whole - at_once) <= 1e-11 * scale)
    assert np.all(np.abs(head + tail - total) <= 1e-11 * scale * (1 + counts[2]))


def test_a_kink_is_crossed_on_both_sides_by_hand():
    """Slopes -1 and 1, u = -2, step 1: y falls by 3 above 0 and by 1 below 0, and stops once at 0."""
    dual = PiecewiseQuadratic(*(np.array([value]) for value in (-1.0, 1.0, 0.0, -2.5, 9.0)))
    expected = [4.0, 1.0, -0.0, -1.0, -2.0, -2.5, -2.5]  # from 7; 1 - 2 = -1 is the edge of the kink
    for count in range(1, 8):
        y, total = repeated_steps(dual, np.array([7.0]), np.array([-2.0]), np.ones(1), np.array([count]))
        assert y == pytest.approx(expected[count - 1])
        assert total == pytest.approx(sum(expected[:count]))


def penalties(n):
    return {"coordinates": sb.L1(0.05), "groups": sb.GroupL2(0.05, [[i, n - 1 - i] for i in range(n // 2)])}


def both_duals(problem, backend, K, calls=3, iterations=133):
    """Run the same draws eagerly and lazily, in several calls, and return both states."""
    states = []
    for dual in ("eager", "lazy"):
        method = make(
            "sp-bcd", {"backend": backend, "dual": dual, "restarts": False, "working_set": False, "finish": False}
        )
        model = problem.model
        state = method.init(model, Start(np.zeros(model.A.shape[1]), np.full(model.A.shape[0], 5.0), K))
        assert (state.report().backend, state.report().dual) == (backend, dual)
        for _ in range(calls):
            state = method.advance(state, iterations * K / state.report().n_blocks)
        states.append(state)
    return states


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("penalty", ["coordinates", "groups"])
@pytest.mark.parametrize("loss", SKIPPABLE)
def test_lazy_is_eager(loss, penalty, K, backend, rng):
    """399 iterations of every loss with a lazy dual, with some sample weights of 0 and a start outside the domain."""
    n = 20
    A = sparse.csc_matrix(rng.standard_normal((SIZE, n)) * (rng.random((SIZE, n)) < 0.15))
    eager, late = both_duals(sb.Problem(penalties(n)[penalty], A, LOSSES[loss]), backend, K)
    scale = 1 + np.abs(eager.x).max() + np.abs(eager.y).max()
    for name in ("x", "y", "u"):
        assert np.allclose(getattr(eager, name), getattr(late, name), rtol=0, atol=1e-11 * scale)
    assert eager.averages.count == late.averages.count == 399
    assert np.allclose(eager.averages.x, late.averages.x, rtol=0, atol=1e-11 * scale * 399)
    assert np.allclose(eager.averages.y, late.averages.y, rtol=0, atol=1e-11 * scale * 399)


def test_lazy_is_eager_with_a_dense_column_among_sparse_ones(backend, rng):
    parts = [sparse.random(50, 30, 0.05, "csc", rng=1), np.ones(50)]
    problem = sb.Problem([sb.L1(0.05), sb.Zero()], parts, sb.Huber(rng.standard_normal(50), 0.3))
    eager, late = both_duals(problem, backend, 2)
    assert np.allclose(eager.y, late.y, rtol=0, atol=1e-11)
    assert np.allclose(eager.averages.y, late.averages.y, rtol=0, atol=1e-9)


def sparse_problem(m=20_000, n=300, loss=sb.Pinball, entries=5, **parameters):
    rng = np.random.default_rng(5)
    rows = rng.integers(m, size=entries * n)
    A = sparse.csc_matrix((rng.standard_normal(entries * n), rows, np.arange(0, entries * n + 1, entries)), (m, n))
    target = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    return sb.Problem(sb.L1(0.1), A, loss(target, **parameters))


def test_same_bits_at_any_thread_count():
    problem = sparse_problem(quantile=0.3)
    results = [
        sb.solve(problem, blocks_per_iteration=2, tol=1e-8, threads=threads, finish=False) for threads in (1, 2, 3)
    ]
    assert results[0].settings["dual"] == "lazy"
    for result in results[1:]:
        assert result.x.tobytes() == results[0].x.tobytes()
        assert result.y.tobytes() == results[0].y.tobytes()
        assert result.certificate == results[0].certificate


def test_the_dual_is_lazy_if_that_is_faster():
    """Few draws of sparse columns are lazy; many draws, dense columns and other losses are not."""
    model = sparse_problem().model
    per_block = model.A.traits.stored / len(model.blocks)
    limit = model.A.shape[0] / (lazy.WORTHWHILE * per_block)
    assert lazy.pays(model, 1)
    assert lazy.pays(model, int(limit))
    assert not lazy.pays(model, int(limit) + 1)
    assert not lazy.pays(sparse_problem(loss=sb.Logistic).model, 1)
    assert not lazy.pays(sparse_problem(loss=sb.Norm2).model, 1)
    assert not lazy.pays(sb.Problem(sb.L1(0.1), np.ones((500, 4)), sb.Squared(np.ones(500))).model, 1)


def test_lazy_and_eager_solves_agree():
    problem = sparse_problem(quantile=0.3)
    chosen, forced = (sb.solve(problem, blocks_per_iteration=2, tol=1e-8, dual=dual) for dual in ("auto", "eager"))
    assert (chosen.settings["dual"], forced.settings["dual"]) == ("lazy", "eager")
    assert chosen.status is forced.status is sb.Status.OPTIMAL
    assert chosen.certificate.primal_value == pytest.approx(forced.certificate.primal_value, rel=1e-8)


@pytest.mark.parametrize(
    ("problem", "dual", "match"),
    [
        (sb.Problem(sb.L1(1.0), np.eye(3), sb.Squared(np.ones(3))), "late", "eager"),
        (sb.Problem(sb.L1(1.0), np.eye(3), sb.Logistic(np.ones(3))), "lazy", "no closed form"),
        (sb.Problem(sb.L1(1.0), sparse.linalg.aslinearoperator(np.eye(3)), sb.Squared(np.ones(3))), "lazy", "entries"),
    ],
)
def test_losses_without_a_lazy_dual_say_why(problem, dual, match):
    with pytest.raises(ValueError, match=match):
        sb.solve(problem, dual=dual)


def test_the_kernel_rejects_losses_without_a_lazy_dual():
    kernel = _native.Kernel(
        [_native.Matrix(np.ones((2, 1), order="F"))], np.array([0, 1]), np.array([0]), (np.zeros(1),) * 5, np.zeros(1),
        _native.RowLoss.logistic(np.ones(2), np.ones(2)),
    )  # fmt: skip
    one, two = np.ones(1), np.ones(2)
    with pytest.raises(ValueError, match="closed form"):
        kernel.sweep(np.array([[0]]), one, two, 1.0, one, two, two, one, two, lazy=True)
