"""Arrays as large as the data are evaluated in panels, stored in smaller forms, and not copied."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import saddleback as sb
from saddleback.common import chunks
from saddleback.estimators import RobustPCA
from saddleback.functions import singular
from saddleback.functions.piecewise import PiecewiseQuadratic
from saddleback.functions.points import BlockPoint, DensePoint
from saddleback.functions.traits import is_smooth
from saddleback.model.ranges import length_of
from saddleback.operators import ScaledIdentity, Stacked
from saddleback.operators.deferred_points import forward

LOSSES = [
    lambda b, w: sb.Huber(b, 0.5, w),
    lambda b, w: sb.Squared(b, w),
    lambda b, w: sb.Absolute(b, w),
    lambda b, w: sb.EpsilonInsensitive(b, 0.2, w),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_panels_give_the_same_result_as_the_whole(rng, monkeypatch, loss, weighted):
    b, u, step = rng.standard_normal(50), rng.standard_normal(50), rng.random(50) + 0.5
    g = loss(b, rng.integers(0, 3, 50) if weighted else None).bind((50,))
    g_star = g.conjugate()
    y = g_star.domain.project(u)

    def evaluated():
        vectors = [g.subgradient(u) if is_smooth(g) else y, g.prox(u, step), g_star.prox(u, 0.7), g.domain.project(u)]
        numbers = [g.finite_value(u), g_star.value(y), g_star.finite_value(y, 0.5), g_star.quadratic_form(y)]
        return vectors, [*numbers, g_star.domain.largest_multiple(3.0 * y), length_of(g_star, 50)]

    vectors, numbers = evaluated()
    monkeypatch.setattr(chunks, "PANEL", 7)
    in_panels, sums = evaluated()
    assert all(np.array_equal(a, b) for a, b in zip(in_panels, vectors, strict=True))
    assert np.allclose(sums, numbers, rtol=1e-13)


def test_a_point_inside_is_returned_itself(monkeypatch):
    monkeypatch.setattr(chunks, "PANEL", 7)
    zero, one = np.zeros(20), np.ones(20)
    box = PiecewiseQuadratic(zero, zero, zero, -one, one)
    x = np.linspace(-1.0, 1.0, 20)
    assert box.domain.project(x) is x
    x[12] = 3.0
    assert np.array_equal(box.domain.project(x), np.clip(x, -1.0, 1.0))


def test_scaling_is_that_of_all_panels(monkeypatch):
    """One coordinate requires a smaller multiple, and another one, in another panel, allows none."""
    low, high = np.full(20, -1.0), np.full(20, 1.0)
    function = PiecewiseQuadratic(low, high, np.zeros(20), np.full(20, -np.inf), np.full(20, np.inf))
    y = np.zeros(20)
    y[1] = 2.0
    monkeypatch.setattr(chunks, "PANEL", 7)
    assert function.conjugate().domain.largest_multiple(y) == 0.5
    low[18], y[18] = 0.5, 0.7
    assert np.isnan(PiecewiseQuadratic(low, high, *function.parameters()[2:]).conjugate().domain.largest_multiple(y))


def test_read_only_data_are_not_copied(rng):
    b = rng.standard_normal((30, 20)).astype(np.float32)
    copied = sb.Problem(sb.Nuclear(2.0, b.shape), sb.Identity(), sb.Huber(b, 0.5))
    b.flags.writeable = False
    shared = sb.Problem(sb.Nuclear(2.0, b.shape), sb.Identity(), sb.Huber(b, 0.5))
    assert np.shares_memory(shared.model.g_star.left, b)
    assert not np.shares_memory(copied.model.g_star.left, b)
    first, second = sb.solve(copied, tol=1e-9), sb.solve(shared, tol=1e-9)
    assert np.array_equal(first.x, second.x)
    assert np.array_equal(first.y, second.y)
    assert first.certificate == second.certificate


def test_a_low_rank_point_is_known_by_its_factors(rng):
    nuclear = sb.Nuclear(3.0, (12, 9)).bind((108,))
    v, other = rng.standard_normal((2, 108))
    point, whole = nuclear.prox_point(v, 1.0), DensePoint(nuclear.prox(v, 1.0))
    assert np.array_equal(point.vector(), whole.vector())
    memory = np.empty(108)
    point.write(memory)
    assert np.array_equal(memory, whole.vector())
    assert point.inner(other) == pytest.approx(whole.inner(other), rel=1e-12)
    point.use_buffer(memory)
    assert point.vector() is memory
    assert point.release_buffer()
    assert point.vector() is not memory
    assert not whole.release_buffer()
    assert np.array_equal(point.times(0.5).vector(), 0.5 * memory)
    assert point.times(1.0) is point


def test_the_best_pair_is_restored(rng):
    """There is a certificate at every pass, and the pair that was stored with the best one is returned."""
    B = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 30)) + 0.1 * rng.standard_normal((40, 30))
    problem = sb.Problem(sb.Nuclear(5.0, B.shape), sb.Identity(), sb.Huber(B, 0.3))
    seen = []
    result = sb.solve(problem, tol=0.0, max_passes=40, check_every=1.0, callback=lambda info: seen.append(info.x))
    assert result.method == "alternating"
    assert len(seen) > 4
    again = sb.certify(problem, result.x, result.y)
    assert again.gap == pytest.approx(result.certificate.gap, rel=1e-6, abs=1e-12)
    assert result.certificate.error == min(result.history.error)


def test_a_view_that_others_can_write_through_is_copied(rng):
    b = rng.standard_normal(12)
    view = b.view()
    view.flags.writeable = False  # like the columns of a pandas DataFrame
    loss = sb.Squared(view)
    before = loss.b.copy()
    b *= 100.0
    assert np.array_equal(loss.b, before)


def test_robust_pca_takes_little_memory(rng, monkeypatch):
    """The peak is two arrays of the size of the data in float64, plus small arrays."""
    monkeypatch.setattr(chunks, "PANEL", 1 << 12)
    monkeypatch.setattr(singular, "PANEL", 1 << 14)
    X = rng.standard_normal((4000, 5)) @ rng.standard_normal((5, 150)) + 0.1 * rng.standard_normal((4000, 150))
    X = X.astype(np.float32)
    RobustPCA().fit(X[:50])  # for imports on first use
    tracemalloc.start()
    try:
        fitted = RobustPCA(tol=1e-5).fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert fitted.certificate_.error <= 1e-5
    assert peak <= 5.5 * X.nbytes


def three_blocks(rng, rows, columns, rank):
    B = rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, columns))
    B += 0.1 * rng.standard_normal(B.shape)
    B[rng.random(B.shape) < 0.05] += 10.0
    B.flags.writeable = False
    penalties = [sb.SquaredL2(1.0), sb.L1(0.5), sb.Nuclear(0.3 * np.sqrt(rows), B.shape)]
    return sb.Problem(penalties, [sb.Identity()] * 3, sb.Equality(B))


def test_three_blocks_take_at_most_six_matrices(rng, monkeypatch):
    """These include the four of the result: the blocks of x and of -A'y are evaluated one after the other."""
    monkeypatch.setattr(chunks, "PANEL", 1 << 12)
    monkeypatch.setattr(singular, "PANEL", 1 << 14)
    sb.solve(three_blocks(rng, 20, 15, 2), tol=1e-3)  # for imports on first use
    problem = three_blocks(rng, 2000, 150, 4)
    tracemalloc.start()
    try:
        result = sb.solve(problem, tol=1e-6)
        solving = tracemalloc.get_traced_memory()[1]
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        again = sb.certify(problem, result.x, result.y)
        certifying = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert result.status is sb.Status.OPTIMAL
    assert result.method == "alternating"
    assert solving <= 6.0 * result.y.nbytes
    assert certifying <= 6.5 * result.y.nbytes  # it copies its data
    assert again.error == pytest.approx(result.certificate.error, rel=1e-5)


def test_a_vector_in_segments_is_the_vector(rng):
    x = rng.standard_normal(12)
    apart = BlockPoint([x[:5], x[5:9], x[9:]])
    assert np.array_equal(apart.vector(), x)
    assert apart.segment(slice(5, 9)) is apart.segments[1]
    assert np.array_equal(apart.segment(slice(3, 7)), x[3:7])
    assert np.array_equal(apart.segment(slice(None)), x)
    A = Stacked([ScaledIdentity(4, 2.0), ScaledIdentity(4, 1.0), ScaledIdentity(4, -1.0)])
    fitting = BlockPoint([x[:4], x[4:8], x[8:]])
    assert np.array_equal(forward(A, fitting), A.matvec(x))
    assert np.array_equal(forward(A, apart), A.matvec(x))


MEMORY_MAP = """
import sys, resource, numpy as np
from saddleback.estimators import RobustPCA
X = np.load(sys.argv[1], mmap_mode="r")
fitted = RobustPCA(tol=1e-5).fit(X)
assert fitted.certificate_.error <= 1e-5
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / X.nbytes)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units elsewhere")
def test_a_memory_map_takes_less_than_eight_times_its_size(rng, tmp_path):
    """The factor of eight includes the pages of the file and the interpreter."""
    rows, columns, rank = 20000, 2000, 20
    X = rng.standard_normal((rows, rank), np.float32) @ rng.standard_normal((rank, columns), np.float32)
    X += 0.1 * rng.standard_normal((rows, columns), np.float32)
    X[rng.random(X.shape, np.float32) < 0.05] += 20.0
    np.save(tmp_path / "X.npy", X)
    run = subprocess.run(
        [sys.executable, "-c", MEMORY_MAP, str(tmp_path / "X.npy")], capture_output=True, text=True, check=True
    )
    assert float(run.stdout) < 8.0
