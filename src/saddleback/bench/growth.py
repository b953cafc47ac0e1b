"""How the time of a pass grows with the data: it should be proportional to the stored entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .data import random_csc
from .machine import memory
from .passes import best_times, on_threads, pass_over
from .store import Say

ABOUT = "time of a pass as the data grows from 1e6 to 3e8 stored entries, and with one thread and two"

SIZES = (1e6, 3e6, 1e7, 3e7, 1e8, 3e8)
QUICK_SIZES = (1e5, 3e5, 1e6, 3e6)
DOUBLED = 3e7
QUICK_DOUBLED = 1e6
COLUMN_ENTRIES = 100
"""Entries per column of the sparse matrices."""

SPARSE_ROWS = 100_000
"""Rows of the sparse matrices that grow only in columns. Square matrices also show the cost of a y that is larger than
the cache: their entries are in random rows, so that each access misses the cache."""

DRAWN = 10
"""An iteration draws one in DRAWN columns."""

MEMORY = 0.5
"""Largest share of the free memory that a matrix may take."""

REPEATS = 5
THREADS = (1, 2)

Matrix = Callable[[np.random.Generator], Any]


def dense(m: int, n: int) -> Matrix:
    """Return a generator of a dense matrix with contiguous columns."""
    return lambda rng: rng.standard_normal((n, m)).T


def csc(m: int, n: int, column_entries: int) -> Matrix:
    """Return a generator of a sparse matrix."""
    return lambda rng: random_csc(m, n, column_entries, rng)


def dense_shape(entries: float) -> tuple[int, int]:
    """Return the shape of a dense matrix with that many entries, four times as wide as high."""
    m = round(np.sqrt(entries) / 2)
    return m, round(entries / m)


def measure(quick: bool, say: Say) -> dict[str, Any]:
    """Return the seconds of a pass on every size, and the ratios after doubling rows, columns or density."""
    rng = np.random.default_rng(0)
    points: list[dict[str, Any]] = []
    skipped: list[str] = []
    for entries in QUICK_SIZES if quick else SIZES:
        n = round(entries / COLUMN_ENTRIES)
        for layout, size, make in (
            ("dense", 8 * entries, dense(*dense_shape(entries))),
            ("CSC", 12 * entries, csc(SPARSE_ROWS, n, COLUMN_ENTRIES)),
            ("CSC, square", 12 * entries, csc(n, n, COLUMN_ENTRIES)),
        ):
            free = memory("SC_AVPHYS_PAGES")
            if size > MEMORY * free:
                skipped.append(f"{layout} with {entries:.0e} entries: {size / 1e9:.1f} GB, {free / 1e9:.1f} GB free")
                say(f"skipped: {skipped[-1]}")
                continue
            times = seconds([make(rng)], THREADS)
            points.append({"layout": layout, "entries": entries, "seconds": times})
            say(f"{layout:<12}{entries:.0e} entries: " + ", ".join(f"{1e3 * t:.3g} ms" for t in times))
    doubled = [{"what": what, "ratio": ratio} for what, ratio in doublings(QUICK_DOUBLED if quick else DOUBLED, rng)]
    for line in doubled:
        say(f"{line['what']}: time x {line['ratio']:.2f}")
    return {"threads": list(THREADS), "points": points, "doubled": doubled, "skipped": skipped}


def doublings(entries: float, rng: np.random.Generator) -> list[tuple[str, float]]:
    """Return how many times as long a pass on all threads takes with twice the columns, rows or density."""
    m, n = dense_shape(entries)
    k = COLUMN_ENTRIES
    side = round(entries / k)
    base = {"dense": dense(m, n), "CSC": csc(side, side, k)}
    changed = [
        ("dense", "twice the columns", dense(m, 2 * n)),
        ("dense", "twice the rows", dense(2 * m, n)),
        ("CSC", "twice the columns, entries with them", csc(side, 2 * side, k)),
        ("CSC", "twice the rows, entries as they are", csc(2 * side, side, k)),
        ("CSC", "twice the density", csc(side, side, 2 * k)),
    ]
    found = []
    for layout, what, make in changed:
        before, after = seconds([base[layout](rng), make(rng)], THREADS[-1:])
        found.append((f"{layout}, {what}", after / before))
    return found


def seconds(matrices: Sequence[Any], threads: Sequence[int]) -> list[float]:
    """Return the best times of a pass over each matrix with each number of threads; the passes take turns."""
    sweeps = [pass_over(A, max(1, A.shape[1] // DRAWN)) for A in matrices]
    return best_times([on_threads(count, sweep) for sweep in sweeps for count in threads], REPEATS)


def slope(points: list[dict[str, Any]], layout: str, thread: int) -> float:
    """Return the power of the entries with which time grows, by least squares in logarithms."""
    chosen = [(point["entries"], point["seconds"][thread]) for point in points if point["layout"] == layout]
    entries, times = np.log(np.array(chosen)).T
    return float(np.polyfit(entries, times, 1)[0])
