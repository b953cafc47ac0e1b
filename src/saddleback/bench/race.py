"""The race: every library solves the same problem to the same certified accuracy, and the best time of each counts.

A tolerance means something different in each library. So each library is run with smaller and smaller tolerances, until
the certificate says that its answer is accurate enough, and is timed at the loosest such tolerance. The clock runs in
the process of the library, around the solve alone. The first solve of a case is not timed, since it may compile. The
libraries take turns, so that all meet the same noise, with a pause in between: threads that spin after a solve would
otherwise take a core from the next one.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Container, Iterable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from .case import Case, Settings
from .climbing import Attempt, climb, ladder
from .judging import Judge
from .process import Failed, Process, TimedOut
from .store import Say
from .worker.peers import PEERS
from .worker.task import Task

WARM_UP = 120.0
"""Seconds that compilation may add to the first solve of a library."""

PATIENCE = 4
"""Total time of the attempts of a library that miss the target, in multiples of the cap, after which it is given up.

In a slow case it is 1.
"""

LONG = 5.0
"""Seconds of a solve that is not repeated."""

PAUSE = 0.1
"""Seconds to wait before a solve: threads of the previous library may spin for a while."""

OURS = "saddleback"


@dataclass
class Entry:
    """The result of a library on one problem.

    Attributes
    ----------
    outcome : "reached", "not in time", "not reached" (with any tolerance), "not tried" (a smaller problem took long
        already), "not installed" or "failed".
    seconds : seconds of every timed solve.
    tolerance, error : tolerance of the library, and certified error of the answer; None without a certificate.
    nonzeros : coefficients of the answer that are not 0.
    info : what the library reports about its work.
    note : what failed.
    """

    peer: str
    outcome: str
    seconds: list[float] = field(default_factory=list)
    tolerance: float | None = None
    error: float | None = None
    nonzeros: int | None = None
    info: dict[str, Any] = field(default_factory=dict)
    note: str = ""


class Field:
    """The installed libraries, each in a process that serves all problems.

    ``rungs`` holds the index of the last tolerance of a library on a case, from which its next problem starts.
    """

    def __init__(self, pythons: dict[str, str]) -> None:
        self.pythons = pythons
        self.versions: dict[str, str] = {}
        self.processes: dict[str, Process | None] = {}
        self.rungs: dict[tuple[str, str], int] = {}

    def process(self, peer: str) -> Process | None:
        """Return the process of a library; None if it is not installed."""
        if peer not in self.processes:
            started = Process(peer, self.pythons.get(peer, sys.executable))
            versions = started.versions()
            if versions is None:
                started.close()
                self.processes[peer] = None
            else:
                self.versions |= versions
                self.processes[peer] = started
        return self.processes[peer]

    def drop(self, peer: str) -> None:
        """End the process of a library; the next request starts a new one."""
        process = self.processes.pop(peer, None)
        if process is not None:
            process.close()
        self.rungs = {pair: rung for pair, rung in self.rungs.items() if pair[0] != peer}

    def close(self) -> None:
        """End all processes."""
        for peer in list(self.processes):
            self.drop(peer)


def run_case(case: Case, settings: Settings, field: Field, repeats: int, say: Say) -> list[dict[str, Any]]:
    """Run all libraries on every problem of a case, and return the results, ready for JSON."""
    found: list[dict[str, Any]] = []
    for instance in case.instances(settings):
        task = instance.make()
        rows, columns = task.shape
        with tempfile.TemporaryDirectory(prefix="saddleback-bench-") as name:
            folder = Path(name)
            task.save(folder)
            without = too_slow(found[-1], stored(task["A"]), case.cap) if found and case.grows else set()
            entries = race(case, task, folder, field, repeats, partial(_say_of, say, instance.label), without)
        found.append(
            {
                "label": instance.label,
                "rows": rows,
                "columns": columns,
                "stored": stored(task["A"]),
                "products_seconds": products_seconds(task["A"]),
                "entries": [asdict(entry) for entry in entries],
            }
        )
    return found


def too_slow(smaller: dict[str, Any], entries: int, cap: float) -> set[str]:
    """Return the libraries that would exceed the cap even with a time in proportion to the entries of A.

    Parameters
    ----------
    smaller : results on a smaller problem.
    entries : stored entries of A of the problem.
    cap : seconds after which a solve is stopped.
    """
    growth = entries / smaller["stored"]
    others = [entry for entry in smaller["entries"] if entry["peer"] != OURS and entry["outcome"] != "not installed"]
    return {entry["peer"] for entry in others if min(entry["seconds"], default=cap) * growth > cap}


def stored(A: Any) -> int:
    """Return the number of stored entries of a matrix."""
    return int(A.nnz if sparse.issparse(A) else A.size)


def race(
    case: Case, task: Task, folder: Path, field: Field, repeats: int, say: Say, without: Container[str] = ()
) -> list[Entry]:
    """Return the results of all libraries of a case on one problem, ``without`` some that are not tried."""
    judge = Judge(task)
    entries = []
    for peer in (OURS, *case.peers):
        entries.append(Entry(peer, "not tried") if peer in without else _first(peer, case, folder, field, judge))
        say(describe(entries[-1], case.cap))
    reached = [entry for entry in entries if entry.outcome == "reached"]
    for _ in range(repeats - 1):
        for entry in reached:
            if entry.seconds[0] < LONG:
                _again(entry, case, field, judge)
    if repeats > 1 and reached:
        say("best: " + ", ".join(f"{entry.peer} {min(entry.seconds):.4g} s" for entry in reached))
    return entries


def _say_of(say: Say, label: str, line: str) -> None:
    say(f"{label}: {line}")


def _first(peer: str, case: Case, folder: Path, field: Field, judge: Judge) -> Entry:
    """Find the loosest tolerance at which a library reaches the target."""
    process = field.process(peer)
    if process is None:
        return Entry(peer, "not installed")
    rungs = ladder(PEERS[peer].tightest)
    tolerances = [case.target] if PEERS[peer].certifies else [t for t in rungs if t <= case.target or not case.slow]
    try:
        process.load(folder)
        met = peer, case.name
        if met not in field.rungs and not case.slow:
            process.solve(tolerances[0], case.cap + WARM_UP)
        made, outcome = climb(
            lambda tolerance: _attempt(process, tolerance, case.cap, judge),
            tolerances,
            case.target,
            field.rungs.get(met, 0),
            case.cap if case.slow else PATIENCE * case.cap,
            jumps=case.slow,
        )
        field.rungs[met] = tolerances.index(made.tolerance)
    except TimedOut:
        field.drop(peer)
        return Entry(peer, "not in time")
    except Failed as failure:
        field.drop(peer)
        return Entry(peer, "failed", note=str(failure))
    error = made.error if np.isfinite(made.error) else None
    return Entry(peer, outcome, [made.seconds], made.tolerance, error, made.nonzeros, made.info)


def _again(entry: Entry, case: Case, field: Field, judge: Judge) -> None:
    """Time a library once more at the tolerance at which it reached the target."""
    process = field.processes.get(entry.peer)
    if process is None or entry.tolerance is None:
        return
    try:
        made = _attempt(process, entry.tolerance, case.cap, judge)
    except (TimedOut, Failed):
        # the time of the first solve remains; the next problem starts a new process
        field.drop(entry.peer)
        return
    if made.error <= case.target:
        entry.seconds.append(made.seconds)


def _attempt(process: Process, tolerance: float, cap: float, judge: Judge) -> Attempt:
    time.sleep(PAUSE)
    seconds, answer = process.solve(tolerance, cap)
    with threadpool_limits(1, user_api="blas"):  # no spinning BLAS threads while the next library is timed
        error = judge.error(answer.x, answer.y)
    nonzeros = judge.nonzeros(answer.x, PEERS[process.peer].exact_zeros)
    return Attempt(tolerance, seconds, error, nonzeros, dict(answer.info))


def products_seconds(A: Any, repeats: int = 5) -> float:
    """Return the best time of A'y and A x together, with numpy or scipy: about the shortest time of a pass."""
    x, y = np.ones(A.shape[1]), np.ones(A.shape[0])
    transposed = A.T

    def once() -> float:
        start = time.perf_counter()
        transposed @ y
        A @ x
        return time.perf_counter() - start

    return min(once() for _ in range(repeats))


def describe(entry: Entry, cap: float) -> str:
    """Return the result of a library in a line."""
    match entry.outcome:
        case "reached":
            assert entry.error is not None
            told = [f"{name} {_short(value)}" for name, value in entry.info.items()]
            found = f"{min(entry.seconds):.4g} s, error {entry.error:.1e}, {entry.nonzeros} non-zeros"
            return ", ".join([f"{entry.peer} {found}", *told])
        case "not in time":
            return f"{entry.peer} not in {cap:g} s"
        case "not reached":
            error = "no bound" if entry.error is None else f"error {entry.error:.1e}"
            return f"{entry.peer} not reached: {error} at its tolerance {entry.tolerance:.0e}"
    return f"{entry.peer} {entry.outcome}" + (f": {entry.note}" if entry.note else "")


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def ratio(entries: Iterable[dict[str, Any]]) -> tuple[float, str] | None:
    """Return the time of the fastest other library divided by ours, and its name; None if one side has no time."""
    best = {entry["peer"]: min(entry["seconds"]) for entry in entries if entry["outcome"] == "reached"}
    ours = best.pop(OURS, None)
    if ours is None or not best:
        return None
    fastest = min(best, key=lambda peer: best[peer])
    return best[fastest] / ours, fastest
