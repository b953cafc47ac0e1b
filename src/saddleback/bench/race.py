"""The race: every library solves the same problem to the same certified accuracy, and the best time of each counts.

A library's own tolerance means something else in each of them. So it is asked for ever smaller ones, until the
certificate says that its answer is good enough; the loosest such tolerance is the one that is timed. The clock runs
in the library's process, around the solve alone. The first solve of a case is not timed: it compiles and warms up.
Repeats are taken in turns, so that all meet the same noise, and a moment apart: threads that spin after a solve would
otherwise take a core from the next one.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from .cases import Case, Settings
from .judging import Judge
from .process import Failed, Process, TimedOut
from .store import Say
from .worker.peers import PEERS
from .worker.task import Task

LOOSEST = 1e-2

WARM_UP = 120.0
"""Seconds that compiling may add to the first solve of a library."""

PATIENCE = 4
"""How many caps the attempts of a library that miss the target may take together."""

PAUSE = 0.1
"""Seconds before a solve: threads of the library timed before spin on for a while, on cores that others need."""

OURS = "saddleback"


@dataclass(frozen=True)
class Attempt:
    """A solve to a tolerance of the library's own: its time, its certified error, and what the library tells."""

    tolerance: float
    seconds: float
    error: float
    info: dict[str, Any] = field(default_factory=dict)


@dataclass
class Entry:
    """How a library did on one problem.

    Attributes
    ----------
    outcome : "reached", "not in time", "not reached" (with any tolerance), "not installed" or "failed".
    seconds : of every timed solve.
    tolerance, error : its own tolerance, and what the certificate says of the answer; None where that is nothing.
    info : what the library tells of its work.
    note : what failed.
    """

    peer: str
    outcome: str
    seconds: list[float] = field(default_factory=list)
    tolerance: float | None = None
    error: float | None = None
    info: dict[str, Any] = field(default_factory=dict)
    note: str = ""


def ladder(tightest: float) -> list[float]:
    """Return tolerances in half decades, loosest first."""
    steps = round(2 * np.log10(LOOSEST / tightest)) + 1
    return [float(f"{LOOSEST * 10 ** (-step / 2):.0e}") for step in range(steps)]


def climb(
    attempt: Callable[[float], Attempt],
    tolerances: Sequence[float],
    target: float,
    start: int = 0,
    patience: float = np.inf,
) -> tuple[Attempt, bool]:
    """Return the attempt at the loosest tolerance that reaches the target; else the best attempt, and False.

    Parameters
    ----------
    attempt : solves to a tolerance.
    tolerances : loosest first.
    target : largest error that counts.
    start : where to begin, a guess: from there it goes to tighter ones until the target is reached or, where it is
        reached at once, to looser ones as long as it still is.
    patience : how many seconds attempts that miss the target may take together.
    """
    made = attempt(tolerances[start])
    if made.error <= target:
        for tolerance in reversed(tolerances[:start]):
            looser = attempt(tolerance)
            if looser.error > target:
                break
            made = looser
        return made, True
    best, spent = made, made.seconds
    for tolerance in tolerances[start + 1 :]:
        if spent > patience:
            break
        made = attempt(tolerance)
        if made.error <= target:
            return made, True
        best = min(best, made, key=lambda one: one.error)
        spent += made.seconds
    return best, False


class Field:
    """The libraries that are there, each in a process that lives from problem to problem.

    ``rungs`` has, for a library and a case that it has met, where its ladder ended the last time.
    """

    def __init__(self, pythons: dict[str, str]) -> None:
        self.pythons = pythons
        self.versions: dict[str, str] = {}
        self.processes: dict[str, Process | None] = {}
        self.rungs: dict[tuple[str, str], int] = {}

    def process(self, peer: str) -> Process | None:
        """Return the process of a library, None where it is not installed."""
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
        """End the process of a library; the next time that it is asked for, a new one starts."""
        process = self.processes.pop(peer, None)
        if process is not None:
            process.close()
        self.rungs = {pair: rung for pair, rung in self.rungs.items() if pair[0] != peer}

    def close(self) -> None:
        """End all processes."""
        for peer in list(self.processes):
            self.drop(peer)


def run_case(case: Case, settings: Settings, field: Field, repeats: int, say: Say) -> list[dict[str, Any]]:
    """Race on every problem of a case, and return what was found, ready for JSON."""
    found = []
    for instance in case.instances(settings):
        task = instance.make()
        rows, columns = task.shape
        with tempfile.TemporaryDirectory(prefix="saddleback-bench-") as name:
            folder = Path(name)
            task.save(folder)
            entries = race(case, task, folder, field, repeats, partial(_say_of, say, instance.label))
        found.append(
            {
                "label": instance.label,
                "rows": rows,
                "columns": columns,
                "products_seconds": products_seconds(task["A"]),
                "entries": [asdict(entry) for entry in entries],
            }
        )
    return found


def race(case: Case, task: Task, folder: Path, field: Field, repeats: int, say: Say) -> list[Entry]:
    """Return how every library of a case did on one problem."""
    judge = Judge(task)
    entries = []
    for peer in (OURS, *case.peers):
        entries.append(_first(peer, case, folder, field, judge))
        say(describe(entries[-1], case.cap))
    reached = [entry for entry in entries if entry.outcome == "reached"]
    for _ in range(repeats - 1):
        for entry in reached:
            _again(entry, case, field, judge)
    if repeats > 1:
        say("best: " + ", ".join(f"{entry.peer} {min(entry.seconds):.4g} s" for entry in reached))
    return entries


def _say_of(say: Say, label: str, line: str) -> None:
    say(f"{label}: {line}")


def _first(peer: str, case: Case, folder: Path, field: Field, judge: Judge) -> Entry:
    """Climb the ladder of a library."""
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
        made, good = climb(
            lambda tolerance: _attempt(process, tolerance, case.cap, judge),
            tolerances,
            case.target,
            field.rungs.get(met, 0),
            PATIENCE * case.cap,
        )
        field.rungs[met] = tolerances.index(made.tolerance)
    except TimedOut:
        field.drop(peer)
        return Entry(peer, "not in time")
    except Failed as failure:
        field.drop(peer)
        return Entry(peer, "failed", note=str(failure))
    outcome = "reached" if good else "not reached"
    error = made.error if np.isfinite(made.error) else None
    return Entry(peer, outcome, [made.seconds], made.tolerance, error, made.info)


def _again(entry: Entry, case: Case, field: Field, judge: Judge) -> None:
    """Time a library once more at the tolerance that it reached the target with."""
    process = field.processes.get(entry.peer)
    if process is None or entry.tolerance is None:
        return
    try:
        made = _attempt(process, entry.tolerance, case.cap, judge)
    except (TimedOut, Failed):
        # a good time is at hand; the process starts anew with the next problem
        field.drop(entry.peer)
        return
    if made.error <= case.target:
        entry.seconds.append(made.seconds)


def _attempt(process: Process, tolerance: float, cap: float, judge: Judge) -> Attempt:
    time.sleep(PAUSE)
    seconds, answer = process.solve(tolerance, cap)
    with threadpool_limits(1, user_api="blas"):  # so that no thread of ours spins while the next library is timed
        error = judge.error(answer.x, answer.y)
    return Attempt(tolerance, seconds, error, dict(answer.info))


def products_seconds(A: Any, repeats: int = 5) -> float:
    """Return the best time of A'y and A x together, through numpy or scipy: what a pass cannot be far below."""
    x, y = np.ones(A.shape[1]), np.ones(A.shape[0])
    transposed = A.T

    def once() -> float:
        start = time.perf_counter()
        transposed @ y
        A @ x
        return time.perf_counter() - start

    return min(once() for _ in range(repeats))


def describe(entry: Entry, cap: float) -> str:
    """Return how a library did, in a line."""
    match entry.outcome:
        case "reached":
            assert entry.error is not None
            told = ", ".join(f"{name} {_short(value)}" for name, value in entry.info.items())
            return f"{entry.peer} {min(entry.seconds):.4g} s, error {entry.error:.1e}" + (f", {told}" if told else "")
        case "not in time":
            return f"{entry.peer} not in {cap:g} s"
        case "not reached":
            error = "no bound" if entry.error is None else f"error {entry.error:.1e}"
            return f"{entry.peer} not reached: {error} at its tolerance {entry.tolerance:.0e}"
    return f"{entry.peer} {entry.outcome}" + (f": {entry.note}" if entry.note else "")


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def ratio(entries: Iterable[dict[str, Any]]) -> tuple[float, str] | None:
    """Return the time of the fastest other library over ours, and who that is; None where one side has no time."""
    best = {entry["peer"]: min(entry["seconds"]) for entry in entries if entry["outcome"] == "reached"}
    ours = best.pop(OURS, None)
    if ours is None or not best:
        return None
    fastest = min(best, key=lambda peer: best[peer])
    return best[fastest] / ours, fastest
