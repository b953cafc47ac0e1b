"""Coordinate descent and its Newton steps, compared with plain descent, dense algebra and finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from catalogue import LOSSES, PENALTIES, SIZE, has_normal_form
from scipy import sparse

import saddleback as sb
from saddleback import _native
from saddleback.functions.traits import curvature, curvature_at
from saddleback.methods import Descent, Start
from saddleback.operators import Dense
from saddleback.places.choose import descent_kernel_for
from saddleback.places.newton import smooth_part

SMOOTH = ["Squared", "Squared weighted", "Huber", "SquaredHinge", "Logistic"]
DESCENDED = [name for name in PENALTIES if has_normal_form(name) and name != "Linear"]
GAUSS = np.random.default_rng(7).standard_normal((SIZE, SIZE))


def problem_of(penalty, loss, as_sparse=False):
    A = GAUSS * (np.abs(GAUSS) > 0.3) if as_sparse else GAUSS
    return sb.Problem(PENALTIES[penalty], sparse.csc_matrix(A) if as_sparse else A, LOSSES[loss])


def columnar(problem):
    """Return the model with the columns of A contiguous, as methods use it."""
    return replace(problem.model, A=problem.model.A.ordered("columns"))


def start_of(model, rng):
    x = model.f.domain.project(rng.standard_normal(model.A.shape[1]))
    u = model.A.matvec(x)
    return x, u, model.g.subgradient(u)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("penalty", DESCENDED)
def test_native_equals_numpy(penalty, loss, as_sparse, rng):
    """Inside a group exact strengths differ from bounds on them; for single columns and panels they are equal."""
    model = columnar(problem_of(penalty, loss, as_sparse))
    width = 1 if as_sparse else 4  # the native kernel updates y after each sparse column
    numpy, native = (descent_kernel_for(model, name, width) for name in ("numpy", "native"))
    assert np.all(native.strength >= numpy.strength * (1 - 1e-12))
    assert np.all(native.strength <= numpy.strength * 1.13)  # the 16th root of the largest block
    numpy.strength = np.maximum(native.strength, 1e-100)
    points = [start_of(model, np.random.default_rng(1)) for _ in range(2)]
    for _ in range(3):
        visited = [d.sweep(2, *point) for d, point in zip((numpy, native), points, strict=True)]
        assert visited[0] == visited[1]
        for ours, theirs in zip(*points, strict=True):
            assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", SMOOTH)
def test_u_and_y_follow_x_and_the_objective_falls(loss, rng, backend):
    model = columnar(problem_of("ElasticNet", loss))
    x, u, y = start_of(model, rng)
    kernel = descent_kernel_for(model, backend, 3)
    last = model.f.value(x) + model.g.value(u)
    for _ in range(5):
        kernel.sweep(1, x, u, y)
        assert np.allclose(u, model.A.matvec(x), atol=1e-12)
        assert np.allclose(y, model.g.subgradient(u), atol=1e-12)
        now = model.f.value(x) + model.g.value(u)
        assert now <= last + 1e-12
        last = now


def test_a_panel_is_exact_for_a_squared_loss(rng, backend):
    """A panel gives the same iterates as one column at a time."""
    model = columnar(sb.Problem(sb.L1(0.3), rng.standard_normal((20, 12)), sb.Squared(rng.standard_normal(20))))
    ends = []
    for width in (1, 5, 12):
        x, u, y = start_of(model, np.random.default_rng(1))
        descent_kernel_for(model, backend, width).sweep(1, x, u, y)
        ends.append(x)
    assert np.allclose(ends[0], ends[1], atol=1e-12)
    assert np.allclose(ends[0], ends[2], atol=1e-12)


def test_later_sweeps_skip_panels_of_zeros(rng, backend):
    A = np.eye(8)
    b = np.array([5.0, 5.0, 0, 0, 0, 0, 5.0, 0])
    model = columnar(sb.Problem(sb.L1(1.0), A, sb.Squared(b)))
    x, u, y = np.zeros(8), np.zeros(8), -b
    assert descent_kernel_for(model, backend, 2).sweep(3, x, u, y) == 8 + 2 * 4
    assert np.array_equal(np.flatnonzero(x), [0, 1, 6])


def test_a_kernel_reuses_measured_panels(rng):
    A, b = rng.standard_normal((30, 40)), rng.standard_normal(30)
    whole = columnar(sb.Problem(sb.L1(0.3), A, sb.Squared(b)))
    part = columnar(sb.Problem(sb.L1(0.3), A[:, :16], sb.Squared(b)))
    fresh, extended = descent_kernel_for(whole, "native", 8), descent_kernel_for(part, "native", 8).extended(whole)
    assert np.array_equal(fresh.strength, extended.strength)
    points = [start_of(whole, np.random.default_rng(1)) for _ in range(2)]
    fresh.sweep(3, *points[0])
    extended.sweep(3, *points[1])
    assert np.array_equal(points[0][0], points[1][0])


@pytest.mark.parametrize("as_sparse", [False, True])
def test_same_bits_at_any_number_of_threads(as_sparse, rng):
    A = rng.standard_normal((3000, 200)) * (rng.random((3000, 200)) < (0.05 if as_sparse else 1.0))
    b = rng.standard_normal(3000)
    problem = sb.Problem(sb.GroupL2(3.0, 5), sparse.csc_matrix(A) if as_sparse else A, sb.Squared(b))
    results = [sb.solve(problem, method="descent", threads=threads) for threads in (1, 2, 3)]
    for other in results[1:]:
        assert np.array_equal(results[0].x, other.x)
        assert results[0].passes == other.passes


@pytest.mark.parametrize("loss", SMOOTH)
def test_second_derivatives(loss, rng):
    g = LOSSES[loss].bind((SIZE,))
    u = rng.standard_normal(SIZE)
    step = 1e-6
    found = (g.subgradient(u + step) - g.subgradient(u - step)) / (2 * step)
    assert np.allclose(curvature_at(g, u), found, atol=1e-6)
    assert np.all(curvature_at(g, u) <= curvature(g) + 1e-12)


@pytest.mark.parametrize("penalty", DESCENDED)
def test_the_smooth_part_has_the_derivatives_of_the_penalty(penalty, rng):
    f = PENALTIES[penalty].bind((SIZE,))
    x = f.domain.project(rng.standard_normal(SIZE) * (rng.random(SIZE) < 0.7))
    part = smooth_part(f.normal_form(), f.blocks(), x)
    step = 1e-6
    for i, d in enumerate(part.free):
        there, back = x.copy(), x.copy()
        there[d] += step
        back[d] -= step
        assert part.gradient[i] == pytest.approx((f.finite_value(there) - f.finite_value(back)) / (2 * step), abs=1e-6)
    unit = np.eye(part.free.size)
    hessian = np.array([part.hessian(e) for e in unit])
    assert np.allclose(hessian, hessian.T)
    for i, d in enumerate(part.free):
        there = x.copy()
        there[d] += step
        moved = smooth_part(f.normal_form(), f.blocks(), there)
        if np.array_equal(moved.free, part.free):
            assert np.allclose(hessian[i], (moved.gradient - part.gradient) / step, atol=1e-4)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_newton_system_against_dense_algebra(as_sparse, rng, backend):
    A = rng.standard_normal((40, 12)) * (rng.random((40, 12)) < (0.4 if as_sparse else 1.0))
    problem = sb.Problem(sb.SparseGroup(0.1, 3, 0.5), sparse.csc_matrix(A) if as_sparse else A, sb.Squared(np.ones(40)))
    model = columnar(problem)
    x = rng.standard_normal(12)
    x[[1, 6, 7, 8]] = 0.0
    part = smooth_part(model.f.normal_form(), model.blocks, x)
    weight, right = rng.uniform(0.5, 2, 40), rng.standard_normal(part.free.size)
    S = A[:, part.free]
    matrix = S.T @ (weight[:, None] * S) + np.array([part.hessian(e) for e in np.eye(part.free.size)])
    kernel = descent_kernel_for(model, backend, 4)
    d, steps = kernel.solve(part, weight, right, np.diag(matrix).copy(), 1e-13, 100)
    assert np.allclose(d, np.linalg.solve(matrix, right), rtol=1e-9)
    assert steps <= 2 * part.free.size
    assert np.allclose(kernel.products(part.free, np.ones(40)), S.sum(axis=0))
    assert np.allclose(kernel.image(part.free, right), S @ right)


@pytest.mark.parametrize("rows", [100, 3000])
def test_newton_system_of_any_size_reads_the_columns_it_is_given(rows, rng):
    """Systems with few rows are multiplied in strips and others by columns, with the same solution."""
    A = rng.standard_normal((rows, 300))
    model = columnar(sb.Problem(sb.L1(1.0), A, sb.Squared(np.zeros(rows))))
    kernel = descent_kernel_for(model, "native", 16)
    part = smooth_part(model.f.normal_form(), model.blocks, np.where(np.arange(300) % 7 == 0, 0.0, 1.0))
    right = rng.standard_normal(part.free.size)
    S = A[:, part.free]
    matrix = S.T @ S + (1e-3 * np.eye(part.free.size) if rows < 300 else 0.0)
    part.extra[:] = 1e-3 if rows < 300 else 0.0
    d, _ = kernel.solve(part, np.ones(rows), right, np.diag(matrix).copy(), 1e-14, 3000)
    assert np.allclose(matrix @ d, right, atol=1e-6)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("penalty", DESCENDED)
def test_agrees_with_the_block_method(penalty, loss, rng):
    """The certificates of both methods bound the same optimum."""
    A = rng.standard_normal((SIZE, SIZE))
    problem = sb.Problem(PENALTIES[penalty], A, LOSSES[loss])
    descent, block = (sb.solve(problem, method=name, tol=1e-7, max_passes=100_000) for name in ("descent", "sp-bcd"))
    if descent.status is sb.Status.OPTIMAL and block.status is sb.Status.OPTIMAL:
        values = descent.certificate.primal_value, block.certificate.primal_value
        assert values[0] == pytest.approx(values[1], rel=1e-6, abs=1e-6)
    assert descent.certificate.dual_value <= block.certificate.primal_value + 1e-6
    assert block.certificate.dual_value <= descent.certificate.primal_value + 1e-6


@pytest.mark.parametrize(("correlation", "most"), [(0.0, 100), (0.9, 300), (0.999, 5000)])
def test_correlated_columns_take_few_passes(correlation, most, rng):
    A = np.sqrt(1 - correlation) * rng.standard_normal((200, 300))
    A += np.sqrt(correlation) * rng.standard_normal((200, 1))
    b = A[:, :10].sum(axis=1) + rng.standard_normal(200)
    problem = sb.Problem(sb.L1(0.02 * np.abs(A.T @ b).max()), A, sb.Squared(b))
    result = sb.solve(problem, tol=1e-8, working_set=False)
    assert result.status is sb.Status.OPTIMAL
    assert result.method.startswith("descent")  # a finish may follow
    assert result.passes < most
    assert result.settings["newton_steps"] > 0


def test_problems_that_descent_cannot_treat_are_rejected(rng):
    A = rng.standard_normal((5, 130))
    for problem, word in (
        (sb.Problem(sb.L1(1.0), A, sb.Absolute(np.ones(5))), "gradient"),
        (sb.Problem(sb.Nuclear(1.0, (10, 13)), A, sb.Squared(np.ones(5))), "penalty"),
        (sb.Problem(sb.Linear(np.ones(130)), A, sb.Squared(np.ones(5))), "unbounded"),
        (sb.Problem(sb.GroupL2(1.0, 65), A, sb.Squared(np.ones(5))), "65 columns"),
    ):
        with pytest.raises(TypeError, match=word):
            sb.solve(problem, method="descent")
        assert sb.solve(problem, max_passes=5).method != "descent"


def test_auto_chooses_the_block_method_for_its_options(rng):
    problem = sb.Problem(sb.L1(1.0), rng.standard_normal((20, 30)), sb.Squared(np.ones(20)))
    assert sb.solve(problem).method == "descent"
    assert sb.solve(problem, backend="numpy").method == "descent"
    assert sb.solve(problem, blocks_per_iteration=3).method == "sp-bcd"
    assert sb.solve(problem, restarts=False).method == "sp-bcd"
    assert Descent().missing(problem.model) is None


def test_columns_on_which_the_loss_does_not_depend(rng, backend):
    """Rows of weight 0 leave a column without curvature, so that only the penalty determines it."""
    A = np.zeros((4, 3))
    A[:2, :2] = rng.standard_normal((2, 2))
    A[2:, 2] = 1.0
    weight = np.array([1.0, 1.0, 0.0, 0.0])
    penalty = sb.Linear([0.1, -0.1, 0.3]) + sb.Box(-1.0, 2.0)
    problem = sb.Problem(penalty, A, sb.Squared(np.ones(4), weight))
    result = sb.solve(problem, method="descent", backend=backend)
    assert result.status is sb.Status.OPTIMAL
    assert result.x[2] == -1.0


@pytest.mark.parametrize("store", [np.float32, np.float64])
def test_packed_columns(store, rng):
    A = np.asfortranarray(rng.standard_normal((4096, 9)).astype(store))
    columns = np.array([7, 0, 3])
    for single in (False, True):
        (packed,) = _native.Matrix(A).columns(columns, single).arrays
        assert packed.dtype == (np.float32 if single else store)
        assert np.array_equal(packed, A[:, columns].astype(packed.dtype))
        assert packed.strides[1] % 4096 != 0
    with pytest.raises(ValueError, match="does not exist"):
        _native.Matrix(A).columns(np.array([9]), True)


def test_columns_are_packed_in_float64_if_float32_changes_the_result(rng, monkeypatch):
    """Entries that are equal in float32 are packed again in float64, and the result is that of the given data."""
    packed, pack = [], Dense.pack
    monkeypatch.setattr(
        Dense, "pack", lambda A, columns, single, beside: packed.append(single) or pack(A, columns, single)
    )
    A = 1.0 + 1e-6 * rng.standard_normal((60, 500))
    b = A[:, :5] @ rng.standard_normal(5) + 1e-7 * rng.standard_normal(60)
    result = sb.solve(sb.Problem(sb.L1(1e-9), A, sb.Squared(b)), tol=1e-6)
    assert result.status is sb.Status.OPTIMAL
    assert packed[0]
    assert not packed[-1]


def sparse_regression(rng, m=60, n=1000):
    A = rng.standard_normal((m, n))
    return A, A[:, :5].sum(axis=1) * 2 + rng.standard_normal(m)


@pytest.mark.parametrize("working_set", [True, False])
@pytest.mark.parametrize("x0", [-1.0, 1e6])
def test_starts_outside_the_bounds_or_far_away(x0, working_set, rng):
    """u is computed from the projected point, and rounding errors in u do not accumulate."""
    A, b = sparse_regression(rng)
    problem = sb.Problem(sb.L1(0.2 * np.abs(A.T @ b).max()) + sb.NonNegative(), A, sb.Squared(b))
    result = sb.solve(problem, x0=np.full(1000, x0), tol=1e-9, max_passes=1500, working_set=working_set)
    assert result.status is sb.Status.OPTIMAL


@pytest.mark.parametrize("method", ["descent", "sp-bcd"])
def test_groups_in_another_order_beside_other_blocks(method, rng):
    A, b = sparse_regression(rng)
    G = rng.standard_normal((60, 4))
    problem = sb.Problem([sb.L1(8.0), sb.GroupL2(30.0, [[0, 2], [1, 3]])], [A, G], sb.Squared(b))
    assert sb.solve(problem, method=method, max_passes=2000).status is sb.Status.OPTIMAL


@pytest.mark.parametrize("share", [1e-2, 1e-3, 1e-4])
def test_more_free_coordinates_than_rows(share, rng):
    """Newton's system is singular in this case, and damping keeps the steps useful."""
    A = rng.standard_normal((40, 1000))
    b = A @ (rng.random(1000) < 0.05) + 0.1 * rng.standard_normal(40)
    problem = sb.Problem(sb.L1(share * np.abs(A.T @ b).max()), A, sb.Squared(b))
    result = sb.solve(problem, max_passes=4000)
    assert result.status is sb.Status.OPTIMAL
    assert result.method.startswith("descent")  # a finish may follow


def test_the_memory_order_of_a_does_not_matter(rng):
    A, b = sparse_regression(rng)
    A[np.abs(A) < 1.0] = 0.0
    results = [
        sb.solve(sb.Problem(sb.L1(20.0), kind(A), sb.Squared(b))) for kind in (sparse.csc_matrix, sparse.csr_matrix)
    ]
    assert [result.method for result in results] == ["descent", "descent"]
    assert np.array_equal(results[0].x, results[1].x)


def test_entries_beyond_the_range_of_single_precision(rng):
    A, b = sparse_regression(rng)
    alpha = 0.2 * np.abs(A.T @ b).max()
    plain, large = (sb.solve(sb.Problem(sb.L1(s * alpha), s * A, sb.Squared(b))) for s in (1.0, 1e39))
    assert large.status is sb.Status.OPTIMAL
    assert large.certificate.primal_value == pytest.approx(plain.certificate.primal_value, rel=2e-6)


def test_blocks_per_iteration_are_not_for_descent(rng):
    problem = sb.Problem(sb.L1(1.0), rng.standard_normal((20, 30)), sb.Squared(np.ones(20)))
    with pytest.raises(ValueError, match="takes its blocks in turn"):
        sb.solve(problem, method="descent", blocks_per_iteration=5)


def test_damping_has_a_ceiling(rng):
    """At the accuracy of floating point no step improves the objective, with any damping."""
    A = rng.standard_normal((20, 40))
    problem = sb.Problem(sb.L1(1e-3), A, sb.Squared(rng.standard_normal(20)))
    state = Descent().init(columnar(problem), Start(np.zeros(40), np.zeros(20)))
    for _ in range(400):
        state.wants_certificate, state.rest = False, 0
        state = Descent().advance(state, 2.0)
    assert state.damping <= 1e8


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_newton_step_that_overflows_is_rejected(backend, rng):
    """There is neither an error nor a warning, and the point stays finite."""
    model = columnar(problem_of("L1", "Squared"))
    method = Descent(backend=backend)
    state = method.init(model, Start(np.ones(SIZE), np.zeros(SIZE)))
    for damping in (1e300, np.inf):
        for state.stiff in (False, True):
            state.damping, state.rest, state.wants_certificate = damping, 0, False
            method.advance(state, 4.0)
            assert np.all(np.isfinite(state.x))
