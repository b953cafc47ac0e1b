"""The compiled core compared with plain numpy code."""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

from saddleback import _native

INF = np.inf


@pytest.fixture(autouse=True)
def _restore_threads() -> Iterator[None]:
    before = _native.set_threads(2)
    yield
    _native.set_threads(before)


# ---------------------------------------------------------------- oracles


def shrink(v, left, right):
    return np.where(v > right, v - right, np.where(v < left, v - left, 0.0))


def coordinate_prox(parameters, v, step):
    left, right, quadratic, lower, upper = parameters
    return np.clip(shrink(v, step * left, step * right) / (1 + step * quadratic), lower, upper)


def group_prox(b, h, weight):
    """Bisect on rho, which is slow and independent of the compiled Newton iteration."""
    if np.linalg.norm(b) <= weight:
        return np.zeros_like(b)
    low, high = 0.0, np.linalg.norm(b) / h.min()
    for _ in range(200):
        rho = (low + high) / 2
        low, high = (rho, high) if np.sum((b / (h * rho + weight)) ** 2) > 1 else (low, rho)
    return b * low / (h * low + weight)


def logistic_dual(v, step, label, weight):
    """Bisect on t in y = -label * weight * t, in the variable q = log(t / (1 - t))."""
    if weight == 0:
        return 0.0
    a, c = weight / step, label * v / step
    q = scipy.optimize.brentq(lambda q: q + a * scipy.special.expit(q) + c, -c - a - 1, -c + 1, xtol=1e-15, rtol=1e-14)
    return -label * weight * scipy.special.expit(q)


def matrix(M):
    return _native.Matrix(M.indptr, M.indices, M.data, M.shape[0]) if sp.issparse(M) else _native.Matrix(M)


def row_loss(loss):
    kind, *parameters = loss
    return getattr(_native.RowLoss, kind)(*parameters)


@dataclass
class Problem:
    """A problem, and the iteration written out in numpy."""

    matrices: list[Any]
    blocks: list[np.ndarray]
    penalty: tuple[np.ndarray, ...]
    group_weight: np.ndarray
    loss: tuple[Any, ...]
    penalty_callables: tuple[Any, ...] = ()
    prox: dict[int, Callable[[float, float], float]] = field(default_factory=dict)
    loss_prox: Callable[[float, float], float] | None = None

    def __post_init__(self):
        dense = [M.toarray() if sp.issparse(M) else M for M in self.matrices]
        self.A = np.hstack(dense).astype(float)
        self.m, self.n = self.A.shape

    def kernel(self):
        native = [matrix(M) for M in self.matrices]
        start = np.cumsum([0] + [len(b) for b in self.blocks]).astype(np.int64)
        columns = np.concatenate(self.blocks).astype(np.int64)
        return _native.Kernel(
            native, start, columns, self.penalty, self.group_weight, row_loss(self.loss), self.penalty_callables
        )

    def block_prox(self, j, v, h):
        block = self.blocks[j]
        parameters = [p[block] for p in self.penalty]
        weight = self.group_weight[j]
        if weight > 0:
            return group_prox(shrink(h * v, *parameters[:2]), h + parameters[2], weight)
        out = coordinate_prox(parameters, v, 1 / h)
        for k, d in enumerate(block):
            if d in self.prox:
                out[k] = self.prox[d](v[k], 1 / h[k])
        return out

    def dual_prox(self, v, step):
        kind, *parameters = self.loss
        if kind == "coordinate":
            return coordinate_prox(parameters, v, step)
        if kind == "logistic":
            return np.array([logistic_dual(*row) for row in zip(v, step, *parameters, strict=True)])
        return v - step * np.array([self.loss_prox(a / s, 1 / s) for a, s in zip(v, step, strict=True)])

    def sweep(self, draws, h, sigma, rho, x, y, r, x_sum, y_sum):
        for draw in draws:
            before = x.copy()
            for j in draw:
                block = self.blocks[j]
                u = before[block] - self.A[:, block].T @ y / h[block]
                x[block] = self.block_prox(j, u, h[block])
            v = self.A @ (x - before)
            r += v
            y[:] = self.dual_prox(y + (r + rho * v) / sigma, 1 / sigma)
            x_sum += x
            y_sum += y

    def start(self, seed=0):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=self.n), rng.normal(size=self.m)
        h = rng.uniform(0.5, 2, self.n) * max(1, self.m / 4)
        sigma = rng.uniform(0.5, 2, self.m) * max(1, self.n / 4)
        return h, sigma, 1.5, x, y, self.A @ x, rng.normal(size=self.n), rng.normal(size=self.m)

    def draws(self, iterations, size, seed=0):
        rng = np.random.default_rng(seed)
        draws = [rng.permutation(len(self.blocks))[:size] for _ in range(iterations)]
        return np.array(draws, dtype=np.int64).reshape(iterations, size)


def free(n):
    """Return the parameters of the zero function."""
    return np.zeros(n), np.zeros(n), np.zeros(n), np.full(n, -INF), np.full(n, INF)


def squared(m, rng):
    b = rng.normal(size=m)
    return "coordinate", b, b, np.ones(m), *free(m)[3:]


def csc(rng, m, n, density, dtype=np.float64, index=np.int32):
    M = sp.random(m, n, density=density, format="csc", random_state=rng, dtype=np.float64).astype(dtype)
    M.indptr, M.indices = M.indptr.astype(index), M.indices.astype(index)
    return M


def random_parameters(rng, n):
    middle, half = rng.normal(size=n), rng.choice([0.0, 0.3, 1.0], n)
    return (
        np.where(rng.random(n) < 0.1, -INF, middle - half),
        middle + half,
        rng.choice([0.0, 1.0, 2.5], n),
        rng.choice([-INF, -0.5, 0.0], n),
        rng.choice([INF, 0.0, 0.7], n),
    )


def random_problem(seed, loss="coordinate", groups=True):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 14)), int(rng.integers(2, 20))
    left = int(rng.integers(0, n + 1))
    dtype, index = rng.choice([np.float32, np.float64]), rng.choice([np.int32, np.int64])
    matrices = [
        np.asfortranarray(rng.normal(size=(m, left))).astype(dtype, order="F"),
        csc(rng, m, n - left, 0.4, dtype, index),
    ]
    cuts = np.sort(rng.choice(np.arange(1, n), int(rng.integers(0, n)), replace=False))
    blocks = np.split(rng.permutation(n), cuts)
    penalty = random_parameters(rng, n)
    weight = np.where(rng.random(len(blocks)) < 0.5, rng.uniform(0.1, 2, len(blocks)), 0.0) * groups
    for block, w in zip(blocks, weight, strict=True):
        if w > 0:
            penalty[3][block], penalty[4][block] = -INF, INF
    parameters = {
        "coordinate": random_parameters(rng, m),
        "logistic": (rng.choice([-1.0, 1.0], m), rng.choice([0.0, 0.5, 3.0], m)),
    }[loss]
    return Problem(matrices, blocks, penalty, weight, (loss, *parameters))


def assert_same_sweep(problem, iterations=7, size=None, tolerance=1e-10, lazy=False):
    size = size or max(1, len(problem.blocks) // 2)
    draws = problem.draws(iterations, size)
    expected, got = problem.start(), problem.start()
    problem.sweep(draws, *expected)
    problem.kernel().sweep(draws, *got, lazy=lazy)
    for a, b in zip(got[3:], expected[3:], strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, np.abs(b).max(initial=0.0)))


# ---------------------------------------------------------------- products


def layouts(A):
    """Return the same matrix in every accepted layout."""
    m, n = A.shape
    wide = np.zeros((m + 3, n + 2), A.dtype, order="F")
    wide[1 : m + 1, 1 : n + 1] = A
    spaced = np.zeros((2 * m, n + 1), A.dtype)
    spaced[::2, :n] = A
    read_only = np.asfortranarray(A)
    read_only.flags.writeable = False
    return {
        "C": np.ascontiguousarray(A),
        "F": np.asfortranarray(A),
        "F slice": wide[1 : m + 1, 1 : n + 1],
        "C slice": spaced[::2, :n],
        "reversed": np.asfortranarray(A[:, ::-1])[:, ::-1],
        "read-only": read_only,
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (7, 1), (1, 7), (0, 3), (3, 0), (23, 31), (3000, 61), (61, 3000)])
def test_dense_products(shape, dtype):
    rng = np.random.default_rng(1)
    A = rng.normal(size=shape).astype(dtype)
    x, y = rng.normal(size=shape[1]), rng.normal(size=shape[0])
    exact = A.astype(float)
    for name, layout in layouts(A).items():
        for got, expected in [
            (matrix(layout).matvec(x), exact @ x),
            (matrix(layout).rmatvec(y), exact.T @ y),
            (matrix(layout).sums(1)[0], np.abs(exact).sum(0)),
            (matrix(layout).sums(1)[1], np.abs(exact).sum(1)),
            (matrix(layout).sums(2)[0], (exact**2).sum(0)),
            (matrix(layout).sums(2)[1], (exact**2).sum(1)),
        ]:
            assert got.dtype == np.float64
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-11, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(1, 1), (5, 0), (0, 5), (23, 31), (400, 900)])
def test_csc_products(shape, dtype, index):
    rng = np.random.default_rng(2)
    M = csc(rng, *shape, 0.2, dtype, index)
    for array in (M.indptr, M.indices, M.data):
        array.flags.writeable = False
    A = matrix(M)
    x, y = rng.normal(size=shape[1]), rng.normal(size=shape[0])
    exact = M.toarray().astype(float)
    np.testing.assert_allclose(A.matvec(x), exact @ x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(A.rmatvec(y), exact.T @ y, rtol=1e-12, atol=1e-12)
    for power in (1, 2):
        columns, rows = A.sums(power)
        np.testing.assert_allclose(columns, (np.abs(exact) ** power).sum(0), rtol=1e-12)
        np.testing.assert_allclose(rows, (np.abs(exact) ** power).sum(1), rtol=1e-12)


def test_products_give_the_same_bits_at_any_thread_count():
    rng = np.random.default_rng(3)
    A, x, y = matrix(rng.normal(size=(1500, 700))), rng.normal(size=700), rng.normal(size=1500)
    B, z, w = matrix(csc(rng, 3000, 5000, 0.03)), rng.normal(size=5000), rng.normal(size=3000)

    def results():
        yield from (A.matvec(x), A.rmatvec(y), *A.sums(2))
        yield from (B.matvec(z), B.rmatvec(w), *B.sums(1))

    assert_equal_bits(lambda: [a.tobytes() for a in results()])


def assert_equal_bits(compute):
    outcomes = []
    for threads in (1, 2, 3):
        _native.set_threads(threads)
        outcomes.append(compute())
    assert outcomes[0] == outcomes[1] == outcomes[2]


# ---------------------------------------------------------------- the iteration


@examples(150)
@given(st.integers(0, 10**6))
def test_sweep_matches_numpy(seed):
    assert_same_sweep(random_problem(seed))


@examples(150)
@given(st.integers(0, 10**6))
def test_lazy_sweep_matches_numpy(seed):
    assert_same_sweep(random_problem(seed), iterations=30, size=1, lazy=True)


@examples(40)
@given(st.integers(0, 10**6))
def test_logistic_sweep_matches_numpy(seed):
    assert_same_sweep(random_problem(seed, loss="logistic"), iterations=3)


@examples(50)
@given(st.integers(0, 10**6))
def test_primal_step_matches_numpy(seed):
    problem = random_problem(seed)
    h, _, _, x, y, *_ = problem.start()
    blocks = problem.draws(1, len(problem.blocks))[0]
    before, v = x.copy(), np.full(problem.m, np.nan)
    kernel = problem.kernel()
    kernel.primal_step(blocks, h, x, y, v)
    for j in blocks:
        block = problem.blocks[j]
        u = before[block] - problem.A[:, block].T @ y / h[block]
        np.testing.assert_allclose(x[block], problem.block_prox(j, u, h[block]), atol=1e-10)
    np.testing.assert_allclose(v, problem.A @ (x - before), atol=1e-10)


def large(kind, rng):
    if kind == "dense":
        m, n = 1200, 900
        matrix = np.asfortranarray(rng.normal(size=(m, n)))
    else:
        m, n = 8000, 1500
        matrix = csc(rng, m, n, 0.05)
    blocks = np.split(rng.permutation(n), np.arange(3, n, 3))
    penalty = np.full(n, -0.1), np.full(n, 0.1), *free(n)[2:]
    weight = rng.choice([0.0, 0.2], len(blocks))
    return Problem([matrix], blocks, penalty, weight, squared(m, rng))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", ["dense", "csc"])
def test_sweep_gives_the_same_bits_at_any_thread_count(kind, lazy):
    rng = np.random.default_rng(4)
    problem = large(kind, rng)
    kernel = problem.kernel()
    draws = problem.draws(5, 250)

    def run():
        state = problem.start()
        kernel.sweep(draws, *state, lazy=lazy)
        h, _, _, x, y, *_ = state
        v = np.empty(problem.m)
        kernel.primal_step(draws[0], h, x, y, v)
        return [a.tobytes() for a in (*state[3:], v)]

    assert_equal_bits(run)


@pytest.mark.parametrize("kind", ["dense", "csc"])
def test_large_sweep_matches_numpy(kind):
    rng = np.random.default_rng(5)
    assert_same_sweep(large(kind, rng), iterations=3, size=150)


@pytest.mark.parametrize("n", [63, 64, 65, 127, 128, 129, 300])
def test_runs_of_columns_match_numpy(n):
    """Columns are processed in runs of up to 64, here across the boundaries of three matrices."""
    rng = np.random.default_rng(n)
    m, third = 9, n // 3
    dense = np.asfortranarray(rng.normal(size=(m, third)))
    matrices = [csc(rng, m, third, 0.4), dense, csc(rng, m, n - 2 * third, 0.4)]
    blocks = np.array_split(rng.permutation(n), n // 2)
    penalty = np.full(n, -0.1), np.full(n, 0.1), *free(n)[2:]
    weight = rng.choice([0.0, 0.5], len(blocks), p=[0.8, 0.2])
    assert_same_sweep(Problem(matrices, blocks, penalty, weight, squared(m, rng)), size=len(blocks))


def test_solvers_in_several_python_threads_share_the_pool():
    rng = np.random.default_rng(6)
    problem = large("dense", rng)
    draws = problem.draws(20, 200)
    states = [problem.start() for _ in range(4)]
    shared = problem.kernel()
    kernels = [shared, shared, problem.kernel(), problem.kernel()]
    threads = [
        threading.Thread(target=kernel.sweep, args=(draws, *state))
        for kernel, state in zip(kernels, states, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for state in states[1:]:
        for a, b in zip(state[3:], states[0][3:], strict=True):
            np.testing.assert_array_equal(a, b)


def test_matrices_outlive_the_callers_references():
    rng = np.random.default_rng(7)
    m, n = 30, 40
    A = rng.normal(size=(m, n))
    blocks = [np.array([d]) for d in range(n)]
    problem = Problem([np.asfortranarray(A)], blocks, free(n), np.zeros(n), squared(m, rng))
    kernel = problem.kernel()
    problem.matrices.clear()
    draws = problem.draws(4, 5)
    expected, got = problem.start(), problem.start()
    problem.sweep(draws, *expected)
    kernel.sweep(draws, *got)
    np.testing.assert_allclose(got[4], expected[4], atol=1e-12)


# ---------------------------------------------------------------- proximal maps


@examples(200)
@given(st.integers(0, 10**6), st.floats(-3, 3), st.floats(0, 6))
def test_group_prox_is_optimal(seed, scale, spread):
    """0 must lie in h (x - u) + weight x / |x|."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    h = 10.0 ** rng.uniform(-spread, spread, n)
    weight = 10.0**scale
    b = rng.normal(size=n) * 10.0 ** rng.uniform(-1, 3)
    problem = Problem([np.zeros((1, n), order="F")], [np.arange(n)], free(n), np.array([weight]), squared(1, rng))
    x = b / h
    problem.kernel().primal_step(np.array([0]), h, x, np.zeros(1), np.empty(1))
    if np.linalg.norm(b) <= weight:
        assert not x.any()
    else:
        gradient = h * x - b + weight * x / np.linalg.norm(x)
        np.testing.assert_allclose(gradient, 0, atol=1e-12 * np.abs(b).max())


def dual_prox(loss, v, sigma):
    """Return the dual proximal map alone: no column moves, and u is zero."""
    m = len(v)
    kernel = _native.Kernel(
        [matrix(np.zeros((m, 0), order="F"))], np.zeros(1, np.int64), np.zeros(0, np.int64), free(0), np.zeros(0),
        row_loss(loss),
    )  # fmt: skip
    y, none = v.copy(), np.zeros(0)
    kernel.sweep(np.zeros((1, 0), np.int64), none, sigma, 1.0, none, y, np.zeros(m), none, np.zeros(m))
    return y


@examples(300)
@given(st.floats(-1e4, 1e4), st.floats(-6, 6), st.floats(-6, 6), st.sampled_from([-1.0, 1.0]))
def test_logistic_prox_solves_its_equation(v, log_sigma, log_weight, label):
    sigma, weight = 10.0**log_sigma, 10.0**log_weight
    (y,) = dual_prox(("logistic", np.array([label]), np.array([weight])), np.array([v]), np.array([sigma]))
    expected = logistic_dual(v, 1 / sigma, label, weight)
    assert 0 <= -y * label <= weight
    np.testing.assert_allclose(y, expected, rtol=1e-9, atol=1e-12 * weight)


@examples(300)
@given(*[st.floats(allow_nan=False, allow_infinity=False)] * 3, st.sampled_from([-1.0, 1.0]))
def test_logistic_prox_is_finite_for_any_finite_input(v, sigma, weight, label):
    sigma, weight = abs(sigma) or 1.0, abs(weight)
    if not np.isfinite(1 / sigma):
        sigma = 1.0
    (y,) = dual_prox(("logistic", np.array([label]), np.array([weight])), np.array([v]), np.array([sigma]))
    assert 0 <= -y * label <= weight


# ---------------------------------------------------------------- compiled callables


def soft(v, step):
    return v / (1 + 2 * step)


def shrink_by(v, step, data):
    return v / (1 + ctypes.cast(data, ctypes.POINTER(ctypes.c_double))[0] * step)


PLAIN = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)(soft)
WITH_DATA = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double, ctypes.c_void_p)(shrink_by)
FACTOR = ctypes.c_double(5.0)


def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


def test_callables_replace_the_proximal_maps():
    rng = np.random.default_rng(8)
    m, n = 12, 10
    prox = dict.fromkeys(range(2, 5), soft)
    prox |= dict.fromkeys(range(7, 9), lambda v, step: v / (1 + 5 * step))
    problem = Problem(
        [np.asfortranarray(rng.normal(size=(m, n)))],
        [np.array([d]) for d in range(n)],
        (np.full(n, -0.1), np.full(n, 0.1), *free(n)[2:]),
        np.zeros(n),
        ("callable", m, address(PLAIN), 0, False),
        penalty_callables=(
            (2, 5, address(PLAIN), 0, False),
            (7, 9, address(WITH_DATA), ctypes.addressof(FACTOR), True),
        ),
        prox=prox,
        loss_prox=soft,
    )
    assert_same_sweep(problem, size=6)


# ---------------------------------------------------------------- invalid input


def small():
    rng = np.random.default_rng(9)
    blocks = [np.array([0, 1]), np.array([2])]
    return Problem([np.asfortranarray(rng.normal(size=(4, 3)))], blocks, free(3), np.zeros(2), squared(4, rng))


def test_a_block_drawn_twice_moves_once():
    problem = small()
    once, twice = problem.start(), problem.start()
    problem.kernel().sweep(np.array([[0, 1]]), *once)
    problem.kernel().sweep(np.array([[1, 0, 1, 0]]), *twice)
    for a, b in zip(once[3:], twice[3:], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("bad", [-1, 2, 2**40])
def test_draws_out_of_range(bad):
    problem = small()
    with pytest.raises(IndexError):
        problem.kernel().sweep(np.array([[0], [bad]]), *problem.start())
    h, _, _, x, y, *_ = problem.start()
    with pytest.raises(IndexError):
        problem.kernel().primal_step(np.array([bad]), h, x, y, np.empty(4))


@pytest.mark.parametrize("which", range(8))
def test_vectors_of_wrong_size_or_kind(which):
    problem = small()
    draws = problem.draws(1, 1)
    for change in (
        lambda a: a[:-1].copy(),
        lambda a: a.astype(np.float32),
        lambda a: np.repeat(a, 2)[::2],
        lambda a: a.reshape(1, -1),
    ):
        arguments = list(problem.start())
        if which == 2:  # the extrapolation
            arguments[2] = "one"
        else:
            arguments[which] = change(arguments[which])
        with pytest.raises((TypeError, ValueError)):
            problem.kernel().sweep(draws, *arguments)


def test_read_only_outputs_are_rejected():
    problem = small()
    arguments = problem.start()
    arguments[3].flags.writeable = False
    with pytest.raises(TypeError):
        problem.kernel().sweep(problem.draws(1, 1), *arguments)


def kernel_arguments():
    problem = small()
    return {
        "matrices": [matrix(M) for M in problem.matrices],
        "block_start": np.array([0, 2, 3]),
        "block_columns": np.array([0, 1, 2]),
        "penalty": problem.penalty,
        "group_weight": problem.group_weight,
        "loss": row_loss(problem.loss),
    }


M = sp.csc_matrix(np.ones((4, 3)))


@pytest.mark.parametrize(
    "change",
    [
        {"loss": _native.RowLoss.logistic(np.ones(5), np.ones(5))},
        {"matrices": [_native.Matrix(np.ones((4, 2), order="F"))]},
        {"matrices": [_native.Matrix(np.ones((4, 3)))]},
        {"matrices": [np.ones((4, 3), order="F")]},
        {"matrices": ["matrix"]},
        {"matrices": [None]},
        {"matrices": [_native.Matrix(M.indptr[:-1], M.indices, M.data, 4)]},
        {"matrices": [_native.Matrix(M.indptr, M.indices + 1, M.data, 4)]},
        {"matrices": [_native.Matrix(M.indptr, M.indices - 1, M.data, 4)]},
        {"matrices": [_native.Matrix(M.indptr + 1, M.indices, M.data, 4)]},
        {"matrices": [_native.Matrix(M.indptr[::-1].copy(), M.indices, M.data, 4)]},
        {"block_start": np.array([0, 2, 4])},
        {"block_start": np.array([0, 3])},
        {"block_start": np.array([0, 4, 3])},
        {"block_start": np.zeros(0, np.int64)},
        {"block_columns": np.array([0, 1, 1])},
        {"block_columns": np.array([0, 1, 3])},
        {"block_columns": np.array([0, 1, -1])},
        {"block_columns": np.array([0, 1, 2], np.int32)},
        {"penalty": free(3)[:4]},
        {"penalty": free(2)},
        {"penalty": (*free(3)[:4], np.zeros(2))},
        {"group_weight": np.zeros(3)},
        {"loss": ("logistic", np.ones(4), np.ones(4))},
        {"penalty_callables": [(0, 4, address(PLAIN), 0, False)]},
        {"penalty_callables": [(0, 1)]},
        {"penalty_callables": [(0, 1, address(PLAIN), 0, False)], "group_weight": np.ones(2)},
        {"penalty": (*free(3)[:3], np.zeros(3), free(3)[4]), "group_weight": np.ones(2)},
        {"penalty": (*free(3)[:4], np.ones(3)), "group_weight": np.ones(2)},
    ],
)
def test_bad_problems_are_rejected(change):
    _native.Kernel(**kernel_arguments())
    with pytest.raises((TypeError, ValueError)):
        _native.Kernel(**(kernel_arguments() | change))


def test_bad_products_are_rejected():
    A = np.ones((4, 3))
    for call in (
        lambda: matrix(A).matvec(np.ones(4)),
        lambda: matrix(A).rmatvec(np.ones(3)),
        lambda: matrix(A).matvec(np.ones(3, np.float32)),
        lambda: matrix(A).scan(np.ones(4)),
        lambda: matrix(A).columns_rmatvec(np.arange(3), np.ones(4)),
        lambda: matrix(A).columns(np.arange(3), False),
        lambda: matrix(A).sums(3),
        lambda: _native.Matrix(M.indptr, M.indices, M.data, 3).matvec(np.ones(3)),
        lambda: _native.Matrix(M.indptr, M.indices - 1, M.data, 4).rmatvec(np.ones(4)),
        lambda: matrix(M).matvec(np.ones(4)),
        lambda: _native.csr_gram(np.array([0, 1]), np.array([2**31]), np.ones(1), 2**32, np.ones(1)),
        lambda: _native.csr_gram(np.array([0, 0]), np.array([], np.int64), np.ones(0), -1, np.ones(1)),
        lambda: _native.digest(np.ones((2, 2))),
        lambda: _native.digest(np.ones(4)[::2]),
        lambda: _native.set_threads(0),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()


@pytest.mark.parametrize(
    "arrays",
    [
        ("matrix",),
        (np.ones(3),),
        (np.ones((4, 3), np.int64),),
        (np.ones((8, 6))[::2, ::2],),
        (M.indptr, M.indices, M.data),
        (M.indptr, M.indices, M.data, -1),
        (M.indptr[:0], M.indices, M.data, 4),
        (M.indptr, M.indices.astype(np.int64), M.data, 4),
        (M.indptr, M.indices[:-1], M.data, 4),
        (M.indptr, M.indices, M.data.astype(complex), 4),
        (M.indptr, M.indices[::2], M.data[::2], 4),
        ([None], [0], 4),
        ([matrix(np.ones((4, 3))), None], [0, 4], 8),
        ([matrix(np.ones((4, 3)))], [2**63 - 1], 8),
        ([matrix(np.ones((4, 3)))], [0], -1),
    ],
)
def test_bad_matrices_are_rejected(arrays):
    with pytest.raises((TypeError, ValueError)):
        _native.Matrix(*arrays)


@given(st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=8), st.sampled_from([np.int32, np.int64]))
def test_a_matrix_is_canonical_if_the_rows_of_each_column_increase(columns, dtype):
    indptr = np.cumsum([0, *map(len, columns)], dtype=dtype)
    indices = np.array([row for column in columns for row in column], dtype=dtype)
    expected = all(column == sorted(set(column)) for column in columns)
    assert _native.Matrix(indptr, indices, np.ones(indices.size), 6).check() == (True, expected)


@pytest.mark.parametrize("column", [0, 63, 64, 1023, 1024, 2999])
def test_an_index_that_was_changed_is_noticed_in_any_column(column):
    stored = sp.random(40, 3000, 0.1, format="csc", random_state=0)
    A, y = matrix(stored), np.ones(40)
    np.testing.assert_allclose(A.rmatvec(y), stored.T @ y)
    stored.indices[stored.indptr[column]] = 40
    for call in (lambda: A.rmatvec(y), lambda: A.scan(y), lambda: A.sums(2), lambda: A.matvec(np.ones(3000))):
        with pytest.raises(ValueError, match="indices"):
            call()


@pytest.mark.parametrize("stored", [np.ones((4, 3)), np.ones((4, 3), np.float32, order="F"), M])
def test_matrices_are_pickled_with_their_arrays(stored):
    A = matrix(stored)
    copied = pickle.loads(pickle.dumps(A))
    assert all(np.array_equal(a, b) for a, b in zip(A.arrays, copied.arrays, strict=True))
    assert np.array_equal(A.matvec(np.arange(3.0)), copied.matvec(np.arange(3.0)))


def test_a_kernel_keeps_its_matrices_alive():
    arguments = kernel_arguments()
    stored = np.ones((4, 3), order="F")
    kernel = _native.Kernel(**(arguments | {"matrices": [_native.Matrix(stored)]}))
    watch = weakref.ref(stored)
    del stored
    gc.collect()
    assert watch() is not None
    del kernel
    gc.collect()
    assert watch() is None


@pytest.mark.parametrize(
    "parameters",
    [
        ("logistic", np.ones(4)),
        ("logistic", np.ones(4), np.ones(3)),
        ("coordinate", *free(4)[:4]),
        ("coordinate", *free(4)[:4], np.ones(3)),
        ("callable", 4, 0, 0, False),
        ("callable", -1, address(PLAIN), 0, False),
    ],
)
def test_bad_losses_are_rejected(parameters):
    with pytest.raises((TypeError, ValueError)):
        row_loss(parameters)


def test_descent_rejects_a_loss_without_gradient():
    loss = _native.RowLoss.callable(4, address(PLAIN), 0, False)
    with pytest.raises(ValueError, match="descent needs"):
        _native.Descent([matrix(M)], np.arange(4), np.arange(3), free(3), np.zeros(3), loss, 2)


@pytest.mark.parametrize("indptr", [[0, 10**7, 8, 12], [0, -4, 8, 12], [0, 4, 13, 13], [0, 4, 4, 10**9]])
def test_products_check_the_columns_that_they_use(indptr):
    start, columns = M.indptr.copy(), np.arange(3)
    A = _native.Matrix(start, M.indices, M.data, 4)
    assert A.check() == (True, True)
    start[:] = indptr  # in place, after the matrix was made
    for call in (
        lambda: A.matvec(np.ones(3)),
        lambda: A.rmatvec(np.ones(4)),
        lambda: A.columns_rmatvec(columns, np.ones(4)),
        lambda: A.columns(columns, False),
        lambda: A.scan(np.ones(4)),
        lambda: A.sums(1),
    ):
        with pytest.raises(ValueError, match=r"indptr|column"):
            call()
    assert A.check() == (False, False)


def test_listed_columns_are_found_in_any_order():
    columns = np.array([2, 0, 1, 1, 2])
    expected = M.toarray()[:, columns].T @ np.arange(4.0)
    np.testing.assert_allclose(matrix(M).columns_rmatvec(columns, np.arange(4.0)), expected)


def _descent(starts, order, measured=None):
    loss = _native.RowLoss.logistic(np.ones(4), np.ones(4))
    A = matrix(np.asfortranarray(np.ones((4, len(order)))))
    blocks = np.array(starts), np.array(order)
    weight = np.zeros(len(starts) - 1)
    return _native.Descent([A], *blocks, free(len(order)), weight, loss, 2, measured)


def test_descent_reuses_only_the_first_blocks():
    known = _descent([0, 2, 3], [0, 1, 2])
    _descent([0, 2, 3, 4], [0, 1, 2, 3], known)
    for starts, order in (
        ([0, 1, 3, 4], [0, 1, 2, 3]),
        ([0, 2, 3, 4], [1, 3, 2, 0]),
        ([0, 4], [0, 1, 2, 3]),
        ([0, 2], [0, 1]),
    ):
        with pytest.raises(ValueError, match="part of the problem"):
            _descent(starts, order, known)


@pytest.mark.parametrize("size", [0, 1, 7, 1000, 70_000])
def test_a_digest_detects_every_change(size):
    values = np.random.default_rng(0).standard_normal(size)
    before = _native.digest(values)
    assert _native.digest(values.copy()) == before
    assert size == 0 or _native.digest(-values) != before
    assert size == 0 or _native.digest(values[:-1]) != before
    for at in range(0, size, max(1, size // 20)):
        changed = values.copy()
        changed[at] = np.nextafter(changed[at], np.inf)
        assert _native.digest(changed) != before
        changed[at], changed[0] = values[0], values[at]
        assert at == 0 or _native.digest(changed) != before


# ---------------------------------------------------------------- threads


def test_set_threads_returns_the_previous_limit():
    _native.set_threads(3)
    assert _native.set_threads(1) == 3
    assert _native.set_threads(2) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_pool_works_after_a_fork_and_lets_the_process_end():
    script = """
import os, sys
import numpy as np
from saddleback import _native
_native.set_threads(2)
A = _native.Matrix(np.random.default_rng(0).normal(size=(700, 900)))
before = A.matvec(np.ones(900))
child = os.fork()
after = A.matvec(np.ones(900))
same = before.tobytes() == after.tobytes()
if child == 0:
    os._exit(not same)
_, status = os.waitpid(child, 0)
sys.exit(status != 0 or not same)
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=30, check=False).returncode == 0


# ---------------------------------------------------------------- triangles of rows


def star(leaves: int) -> tuple[sp.csr_array, sp.csc_array]:
    """Return a row for the hub, and one for the difference between the hub and each leaf."""
    hub, leaf = np.zeros(leaves, dtype=int), np.arange(1, leaves + 1)
    data = np.concatenate([np.ones(leaves + 1), -np.ones(leaves)])
    at = np.concatenate([[0], leaf, leaf]), np.concatenate([[0], hub, leaf])
    rows = sp.csr_array((data, at), shape=(leaves + 1, leaves + 1))
    return rows, sp.csc_array(rows)


@pytest.mark.parametrize("leaves", [3, 4_095, 20_000])
def test_the_bound_of_a_triangle_counts_the_entries_of_each_column(leaves):
    """Each of the leaves adds less than half a unit in the last place of the hub, which rounding takes away."""
    rows, columns = star(leaves)
    parts = [(each.indptr.astype(np.int64), each.indices.astype(np.int64), each.data) for each in (rows, columns)]
    nothing = np.zeros(leaves + 1, dtype=bool)
    row, column = _native.triangular_rows(*parts, ~nothing, nothing)
    assert np.array_equal(np.sort(column), np.arange(leaves + 1))
    rest = np.append(1.0, np.full(leaves, 0.9 * 2.0**-53))
    w = _native.solve_triangular_rows(row, column, parts[1], leaves + 1, rest, True)
    assert Fraction(w[0]) >= Fraction(rest[0]) + leaves * Fraction(rest[1])
    assert w[0] <= 1 + 4 * leaves * 2.0**-53 + 1e-14
    assert np.all(w[1:] >= rest[1:])
