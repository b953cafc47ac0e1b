"""The cost of a round between MPI processes: ``mpiexec -n 4 python -m saddleback.bench.rounds``.

An iteration of the block method ends with a round, a sum of m numbers over all processes. This program measures that
sum alone, and an iteration with and without it. It fits the model seconds = alpha + beta m to the times of the sum, on
which the predictions of ``docs/scaling.md`` are based.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..common.arrays import Vector
from ..functions import L1, Squared
from ..machine.threads import limited
from ..methods.contract import Averages
from ..methods.spbcd import SPBCDState
from ..places.mpi.communicator import MPICommunicator, import_mpi
from ..places.native.kernels import NativeBlockKernel
from ..problem import Problem
from ..steps.sampling import KNice
from ..steps.strengths import Strengths

ROWS = (10, 100, 1000, 5000, 20_000, 100_000, 1_000_000)
SECONDS = 0.5
"""Time to spend on each figure."""

COLUMNS, DRAWN = 64, 16
"""Columns per process in the iteration that is timed, and the number that it draws."""


class Round(NamedTuple):
    """Seconds of a sum of ``rows`` numbers, of an iteration with it, and of one without; nan for very many rows."""

    rows: int
    total: float
    together: float
    alone: float


def repeated(ranks: MPICommunicator, action: Callable[[], object]) -> float:
    """Return the seconds that an action takes: the best of five runs, each with the same number on all processes."""
    begin = time.perf_counter()
    action()
    once = float(ranks.largest(np.array([time.perf_counter() - begin]))[0])
    count = int(np.clip(SECONDS / 5 / max(once, 1e-7), 1, 2000))
    best = np.inf
    for _ in range(5):
        ranks.comm.Barrier()
        begin = time.perf_counter()
        for _ in range(count):
            action()
        best = min(best, (time.perf_counter() - begin) / count)
    return float(ranks.largest(np.array([best]))[0])


def measure(ranks: MPICommunicator, rows: int) -> Round:
    """Return the times of a round for a dense matrix with a number of rows."""
    numbers = np.ones(rows)
    total = repeated(ranks, lambda: ranks.sum(numbers))
    if rows * COLUMNS > 1 << 24:
        return Round(rows, total, np.nan, np.nan)
    rng = np.random.default_rng(ranks.rank)
    A = np.asfortranarray(rng.standard_normal((rows, COLUMNS)))
    model = Problem(L1(1.0), A, Squared(rng.standard_normal(rows))).model
    strengths = Strengths(np.full(COLUMNS, 10.0 * rows), np.full(rows, 10.0))
    draws = KNice(COLUMNS, DRAWN, 0).draw(20)
    times = []
    for exchange in (ranks.sum, None):
        kernel = NativeBlockKernel(model, lazy=False, exchange=exchange)
        at = SPBCDState(
            x=np.zeros(COLUMNS), y=np.zeros(rows), u=np.zeros(rows), model=model, averages=Averages.of(model),
            strengths=strengths, sampling=KNice(COLUMNS, DRAWN, 0), kernel=kernel,
        )  # fmt: skip
        times.append(repeated(ranks, lambda s=kernel, at=at: s.sweep(draws, strengths, 4.0, at)) / len(draws))  # type: ignore[misc]
    return Round(rows, total, *times)


def fitted(rounds: list[Round]) -> tuple[float, float]:
    """Return alpha and beta of seconds = alpha + beta m, by least squares of the relative errors."""
    rows, seconds = (np.array(column) for column in list(zip(*rounds, strict=True))[:2])
    design: Vector = np.column_stack([1 / seconds, rows / seconds])
    alpha, beta = np.linalg.lstsq(design, np.ones(len(rounds)), rcond=None)[0]
    return float(alpha), float(beta)


def main() -> None:
    """Print the table and the fit."""
    ranks = MPICommunicator(import_mpi().COMM_WORLD)
    with ranks, limited(1):
        rounds = [measure(ranks, rows) for rows in ROWS]
    if ranks.rank > 0:
        return
    print(f"{ranks.size} processes, one thread each; microseconds")
    print("| rows | sum | iteration together | alone | what the round adds |\n| --- | --- | --- | --- | --- |")
    for rows, *times in rounds:
        total, together, alone = (1e6 * seconds for seconds in times)
        rest = "| | | |" if np.isnan(alone) else f"| {together:.1f} | {alone:.1f} | {together - alone:.1f} |"
        print(f"| {rows} | {total:.1f} {rest}")
    alpha, beta = fitted(rounds)
    print(f"sum of m numbers: {1e6 * alpha:.2f} us + {1e9 * beta:.3f} ns m")


if __name__ == "__main__":
    main()
