"""The cost of one pass of the compiled iteration, relative to two products with the matrix.

A pass draws every block once. It needs at least one product with A.T and one
with A. So each line gives the time of a pass divided by that of these two
products with numpy or scipy, the best of several runs that take turns. The bars:

- dense, 2000 columns per iteration: at most 1.3. The product with y and the
  update of A x share one read of the matrix, so about 0.6 was predicted;
- the time of the same pass on one thread divided by that on two: at least 1.6.
  The next line is the same quotient for A.T @ y alone, which only reads the
  matrix: it shows the memory bandwidth of the machine at that moment;
- sparse, one thread, relative to scipy, which uses one thread: at most 1.5;
- one group per iteration of a one-hot matrix: at most 4, since all of y changes
  with each group;
- one column of 20 entries among 20000 rows, eager divided by lazy: at least 6.

The last line, the time of an iteration of a small problem, is in microseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from .. import _native
from .data import random_csc
from .store import Say

ABOUT = "time of a pass over all columns, next to that of `A.T @ y` and `A @ x`"


def best_times(actions: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Return the shortest time of each action; the actions take turns, so that all meet the same noise."""
    best = [float("inf")] * len(actions)
    for _ in range(repeats):
        for i, action in enumerate(actions):
            start = time.perf_counter()
            action()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def pass_over(
    A: Any, size: int, *, group: int = 1, iterations: int | None = None, lazy: bool = False
) -> Callable[[], None]:
    """Return one pass over A, ``size`` blocks of ``group`` columns per iteration: squared loss, L1 or group norm."""
    rng = np.random.default_rng(0)
    m, n = A.shape
    blocks = n // group
    top_row, top_column = np.full(m, np.inf), np.full(n, np.inf)
    matrix = _native.Matrix(A.indptr, A.indices, A.data, m) if sp.issparse(A) else _native.Matrix(A)
    slope = np.full(n, 0.1 if group == 1 else 0.0)
    penalty = -slope, slope, np.zeros(n), -top_column, top_column
    b = rng.normal(size=m)
    loss = _native.RowLoss.coordinate(b, b, np.ones(m), -top_row, top_row)
    weight = np.full(blocks, 0.1 if group > 1 else 0.0)
    kernel = _native.Kernel([matrix], np.arange(0, n + 1, group), np.arange(n), penalty, weight, loss)
    count = iterations or blocks // size
    draws = np.array([rng.permutation(blocks)[:size] for _ in range(count)])
    if iterations is None:
        draws = rng.permutation(blocks)[: count * size].reshape(count, size)
    # about the absolute sums of columns and rows of such entries, so that x moves but does not diverge
    entries = A.nnz if sp.issparse(A) else A.size
    h = np.full(n, entries / n + 1.0)
    sigma = np.full(m, entries / m * (size * group / n) + 1.0)
    y_start = rng.normal(size=m)
    x, y, u, x_sum, y_sum = np.zeros(n), np.zeros(m), np.zeros(m), np.zeros(n), np.zeros(m)

    def run() -> None:
        # the same start each time: a converged x would not move, and a pass would cost less
        x[:], y[:], u[:] = 0, y_start, 0
        kernel.sweep(draws, h, sigma, 1.0, x, y, u, x_sum, y_sum, lazy=lazy)

    return run


def on_threads(count: int, action: Callable[[], object]) -> Callable[[], None]:
    """Return an action that runs with a number of threads of the library."""

    def run() -> None:
        _native.set_threads(count)
        action()

    return run


def two_products(A: Any) -> Callable[[], None]:
    """Return an action that computes A.T @ y and A @ x with numpy or scipy."""
    m, n = A.shape
    x, y = np.ones(n, A.dtype), np.ones(m, A.dtype)

    def run() -> None:
        A.T @ y
        A @ x

    return run


def one_hot(rows: int, groups: int, levels: int) -> Any:
    """Return the one-hot matrix of random levels of several factors, one column per level."""
    level = np.random.default_rng(1).integers(0, levels, (rows, groups)) + levels * np.arange(groups)
    indptr = np.arange(0, rows * groups + 1, groups)
    shape = rows, groups * levels
    return sp.csr_matrix((np.ones(rows * groups), level.ravel(), indptr), shape).tocsc()


def measure(quick: bool, say: Say) -> dict[str, Any]:
    """Return the measured values with their bars, line by line."""
    shrink, repeats = (10, 3) if quick else (1, 15)
    rng = np.random.default_rng(0)
    lines: list[dict[str, Any]] = []

    def note(what: str, value: float, bar: str) -> None:
        lines.append({"what": what, "measured": value, "bar": bar})
        say(f"{what:<64}{value:>8.2f}   {bar}")

    m, n, size = 5000 // shrink, 20000 // shrink, 2000 // shrink
    for dtype in (np.float64, np.float32):
        A: Any = rng.standard_normal((n, m), dtype=dtype).T
        sweep, y = pass_over(A, size), np.ones(m)
        read = partial(_native.Matrix(A).rmatvec, y)
        actions = [on_threads(count, action) for action in (sweep, read) for count in (1, 2)]
        with threadpool_limits(2):
            one, two, read_one, read_two, products = best_times([*actions, two_products(A)], repeats)
        name = f"dense {m} x {n} {np.dtype(dtype).name}, {size} columns"
        if dtype is np.float64:
            note(f"{name}: pass / products", two / products, "<= 1.3")
            note(f"{name}: one thread / two", one / two, ">= 1.6")
            note("A.T @ y alone: one thread / two", read_one / read_two, "")
        else:
            note(f"{name}: pass / products", two / products, "")

    m = n = 100_000 // shrink
    S = random_csc(m, n, 100, rng)
    sweep = pass_over(S, n // 5)
    one, two, products = best_times([on_threads(1, sweep), on_threads(2, sweep), two_products(S)], repeats)
    name = f"sparse {m} x {n}, {n // 5} columns"
    note(f"{name}: one thread / scipy", one / products, "<= 1.5")
    note(f"{name}: one thread / two", one / two, "")

    H = one_hot(16830 // shrink, 63, 42)
    sweep = pass_over(H, 1, group=42)
    one, products = best_times([on_threads(1, sweep), two_products(H)], repeats)
    note(f"one-hot {H.shape[0]} x {H.shape[1]}, 1 group: pass / scipy", one / products, "<= 4")

    T = sp.csc_matrix(
        (rng.normal(size=100_000), rng.integers(0, 20_000, 100_000), np.arange(5001) * 20), (20_000, 5000)
    )
    eager, late = best_times([on_threads(1, pass_over(T, 1, lazy=lazy)) for lazy in (False, True)], repeats)
    note("sparse 20000 x 5000, 1 column: eager / lazy", eager / late, ">= 6")

    small = np.asfortranarray(rng.normal(size=(100, 200)))
    count = 100_000 // shrink
    (seconds,) = best_times([pass_over(small, 1, iterations=count)], repeats)
    note("dense 100 x 200, 1 column: microseconds per iteration", 1e6 * seconds / count, "<= 1")
    return {"lines": lines}
