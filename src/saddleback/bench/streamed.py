"""Data larger than memory: ``python -m saddleback.bench.streamed --folder DIR`` makes the table of ``docs/scaling.md``.

Problems with files of four times the memory bound are solved to a certified 1e-5. Each runs in a separate process,
whose peak memory the operating system reports. The seconds include opening and checking A. They are compared with the
time to read the file ``result.passes`` times, measured in the same process, just before, with a plain loop. Each
problem is measured with the file in the cache of the operating system, and with the file dropped from the cache before
each reading, as for data larger than the memory of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import saddleback as sb
from saddleback.common.arrays import Vector
from saddleback.places.files.stores import File

TOL = 1e-5
BOUND = 500e6
SHAPE = (5000, 50_000)
CHUNK = 8 << 20
"""Bytes that the plain loop reads at a time."""


class Case(NamedTuple):
    """A problem on one of the files: ``loss`` takes b, and ``penalty`` takes the smallest alpha with x = 0."""

    name: str
    layout: str
    loss: Callable[[Vector], Any]
    penalty: Callable[[float], Any]


def _signs(b: Vector) -> Any:
    return sb.Hinge(np.sign(b))


CASES = [
    Case("Lasso, 0.2 of the largest alpha", "columns", sb.Squared, lambda largest: sb.L1(0.2 * largest)),
    Case("Lasso, 0.1 of the largest alpha", "columns", sb.Squared, lambda largest: sb.L1(0.1 * largest)),
    Case("Huber + L1, 0.2", "columns", sb.Huber, lambda largest: sb.L1(0.2 * largest)),
    Case("quantile 0.3 + L1, 0.5", "columns", lambda b: sb.Pinball(b, 0.3), lambda largest: sb.L1(0.5 * largest)),
    Case("squared + squared norm, all columns active", "columns", sb.Squared, lambda _: sb.SquaredL2(1e4)),
    Case("hinge + squared norm, all columns active", "columns", _signs, lambda _: sb.SquaredL2(1.0)),
    Case("Lasso, 0.1, row-major", "rows", sb.Squared, lambda largest: sb.L1(0.1 * largest)),
    Case("hinge + squared norm, row-major", "rows", _signs, lambda _: sb.SquaredL2(1.0)),
]


class FromDisk(File):
    """A file that is dropped from the cache of the operating system before each reading."""

    def _fill(self, buffer: NDArray[np.uint8], at: int, first: int, count: int) -> NDArray[np.uint8]:
        if first == 0:
            os.posix_fadvise(self.handle, 0, 0, os.POSIX_FADV_DONTNEED)
        return super()._fill(buffer, at, first, count)


def main() -> None:
    """Measure all cases and print a table; or one case, in the process that the table starts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where the files of 2 GB each are made and kept")
    parser.add_argument("--cases", default="", help="only cases whose names contain this")
    parser.add_argument("--runs", type=int, default=3, help="runs per case, of which the median is printed")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--disk", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if sys.platform != "linux":
        parser.error("the peak of memory is read from /proc: expected Linux")
    if chosen.one is not None:
        print(json.dumps(measured(CASES[chosen.one], chosen.folder, chosen.disk)))
        return
    make_files(chosen.folder)
    print("| problem | from | one reading, s | seconds | readings | passes | seconds / (passes x reading) | peak, MB |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for number, case in enumerate(CASES):
        if chosen.cases in case.name:
            for disk in (False, True):
                print(line(case.name, disk, [in_a_process(chosen.folder, number, disk) for _ in range(chosen.runs)]))


def line(name: str, disk: bool, runs: list[dict[str, Any]]) -> str:
    """Return a line of the table: the run with the median ratio, and the highest peak."""
    ratios = [run["seconds"] / (run["passes"] * run["reading"]) for run in runs]
    told = runs[ratios.index(median(ratios))] if len(runs) % 2 else runs[0]
    ratio = " to ".join(f"{value:.2f}" for value in sorted({min(ratios), max(ratios)}))
    peak = max(run["peak"] for run in runs) / 1e6
    return (
        f"| {name} ({told['nonzeros']} nonzeros) | {'disk' if disk else 'cache'} | {told['reading']:.2f} "
        f"| {told['seconds']:.2f} | {told['readings']:.1f} | {told['passes']:.1f} | {ratio} | {peak:.0f} |"
    )


def in_a_process(folder: Path, number: int, disk: bool) -> dict[str, Any]:
    """Return the figures of one case, measured in a separate process."""
    command = [sys.executable, "-m", __spec__.name, "--folder", str(folder), "--one", str(number)]
    told = subprocess.run([*command, *(["--disk"] if disk else [])], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def measured(case: Case, folder: Path, disk: bool) -> dict[str, Any]:
    """Return the seconds, readings, passes and peak memory of a case."""
    path = folder / f"{case.layout}.npy"
    targets = np.load(folder / "targets.npz")
    b, loss = targets["b"], case.loss(targets["b"])
    slope = loss.bind(b.shape).subgradient(np.zeros(b.size))
    streamed = opened(path, disk)
    penalty = case.penalty(float(np.abs(streamed.rmatvec(slope)).max()))
    reading = median(read_through(path, disk) for _ in range(3))
    begin = time.perf_counter()
    streamed = opened(path, disk)
    result = sb.solve(sb.Problem(penalty, streamed, loss), tol=TOL)
    seconds = time.perf_counter() - begin
    if result.status is not sb.Status.OPTIMAL:
        raise RuntimeError(result.message)
    return {
        "reading": reading,
        "seconds": seconds,
        "readings": streamed.reads,
        "passes": result.passes,
        "peak": peak(),
        "nonzeros": int(np.count_nonzero(result.x)),
    }


def opened(path: Path, disk: bool) -> sb.Streamed:
    """Return the matrix of a file; if ``disk``, always read from the disk and not from the cache."""
    streamed = sb.Streamed(path, memory=BOUND)
    if disk:
        streamed.store = FromDisk.of(np.load(path, mmap_mode="r"), "path")
    return streamed


def read_through(path: Path, disk: bool) -> float:
    """Return the seconds that one reading of a file takes."""
    buffer, handle = np.ones(CHUNK, dtype=np.uint8), os.open(path, os.O_RDONLY)
    if disk:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    begin, at = time.perf_counter(), 0
    while got := os.preadv(handle, [buffer.data], at):
        at += got
    os.close(handle)
    return time.perf_counter() - begin


def peak() -> int:
    """Return the peak memory of this process, in bytes."""
    told = next(each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("VmHWM"))
    return 1024 * int(told.split()[1])


def make_files(folder: Path) -> None:
    """Write a standard normal matrix in column-major and row-major order, and targets from 100 columns with noise."""
    if (folder / "targets.npz").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    (m, n), width, rng = SHAPE, 1000, np.random.default_rng(0)
    columns = np.lib.format.open_memmap(folder / "columns.npy", "w+", np.float64, SHAPE, fortran_order=True)
    for first in range(0, n, width):
        columns[:, first : first + width] = rng.standard_normal((width, m)).T
    rows = np.lib.format.open_memmap(folder / "rows.npy", "w+", np.float64, SHAPE)
    for first in range(0, m, 100):
        rows[first : first + 100] = columns[first : first + 100]
    b = columns[:, :: n // 100].sum(axis=1) + rng.standard_normal(m)
    for each in (columns, rows):
        each.flush()
    np.savez(folder / "targets.npz", b=b)


if __name__ == "__main__":
    main()
