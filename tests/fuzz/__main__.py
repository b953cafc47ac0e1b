"""Run many cases in separate processes: ``PYTHONPATH=tests python -m fuzz --seed 0 --cases 1000``.

If a process dies or hangs, its last output is reported, and a new process continues with the next seed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .cases import KINDS, case
from .check import Failure, check, kind_of

HANG = 60.0
"""Seconds without output after which a process is killed: twenty times the longest time limit of a case."""

SEEDS = Path(__file__).parent / "seeds.txt"
"""Seeds of former failures: the tests run these cases again."""


WORKER = ["-m", "fuzz", "--work"]


@dataclass
class Report:
    """The number of cases per outcome, and the failures: seed, kind, message and case."""

    ended: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str, str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, seed: int, ended: str, message: str = "", name: str = "") -> None:
        """Count a case."""
        with self.lock:
            self.ended[ended] += 1
            if self.ended.total() % 2000 == 0:
                print(f"{self.ended.total()} cases, {len(self.failures)} failures", flush=True)
            if message:
                self.failures.append((seed, ended, message, name))
                print(f"seed {seed}: {message}\n    {name}", flush=True)


class Worker:
    """A process that runs cases; its death is reported as a failure."""

    def __init__(self, kinds: str) -> None:
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", *WORKER, "--kinds", kinds],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        )
        self.lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        self.alive = True

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self.lines.put(line)
        self.lines.put("")

    def ask(self, seed: int) -> tuple[str, str, str]:
        """Run the case of a seed, and return its outcome, the failure, and the name of the case."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seed}\n")
        self.process.stdin.flush()
        kind = "crash"
        try:
            line = self.lines.get(timeout=HANG)
        except queue.Empty:
            kind, line = "hang", ""
            self.process.send_signal(signal.SIGABRT)  # the traceback is part of its last output
        if line:
            ended, message, name = line.rstrip("\n").split("\t")
            return ended, message, name
        self.alive = False
        self.process.wait()
        self.errors.seek(0)
        words = " < ".join(self.errors.read().split("\n")[:12])
        return kind, f"{kind}: exit {self.process.returncode}: {words[:600]}", _name(seed)

    def close(self) -> None:
        """End the process, since there are no more seeds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.reader.join()  # before its file is closed
        self.process.stdout.close()
        self.errors.close()


def run(seeds: Iterator[int], jobs: int = 1, kinds: str = "", until: float = float("inf")) -> Report:
    """Run the cases of some seeds in the given number of processes and return a report."""
    report, lock = Report(), threading.Lock()

    def following() -> int | None:
        with lock:
            return next(seeds, None) if time.monotonic() < until else None

    def lead() -> None:
        worker = Worker(kinds)
        while (seed := following()) is not None:
            if not worker.alive:
                worker.close()
                worker = Worker(kinds)
            report.add(seed, *worker.ask(seed))
        worker.close()

    threads = [threading.Thread(target=lead) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return report


def _name(seed: int) -> str:
    try:
        return case(seed).name
    except Exception as error:
        return f"case {seed} cannot be drawn: {error!r}"


def work(kinds: str) -> None:
    """Run the cases whose seeds arrive on stdin, and print the outcome, message and name of each in one line."""
    wanted = set(filter(None, kinds.split(","))) or set(KINDS)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries must not be taken for an outcome
    warnings.simplefilter("ignore")  # warnings of a case are checked where it runs
    for line in sys.stdin:
        drawn = case(int(line))
        found = ("skipped", "", "")
        if drawn.kind in wanted:
            try:
                found = (check(drawn), "", "")
            except Failure as failure:
                found = (kind_of(failure), *(" ".join(text.split()) for text in (str(failure), drawn.name)))
        answers.write("\t".join(found) + "\n")
        answers.flush()


def kept() -> list[int]:
    """Return the seeds of former failures."""
    lines = SEEDS.read_text().splitlines() if SEEDS.exists() else []
    return [int(line.split()[0]) for line in lines if line.strip() and not line.startswith("#")]


def keep(report: Report) -> None:
    """Add the seeds of failures to the file that the tests read."""
    known = set(kept())
    with SEEDS.open("a") as file:
        for seed, _, message, name in report.failures:
            if seed not in known:
                file.write(f"{seed}  {message[:80]}  # {name[:100]}\n")


def main() -> int:
    """Run the fuzzer from the command line."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--cases", type=int, default=None, help="number of cases; by default 2000, or as many as fit into --minutes"
    )
    parser.add_argument("--minutes", type=float, default=None, help="for how long")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--kinds", default="", help=f"only cases of these kinds: some of {','.join(KINDS)}")
    parser.add_argument("--keep", action="store_true", help=f"add the seeds of failures to {SEEDS.name}")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.kinds)
        return 0
    cases = given.cases or (2000 if given.minutes is None else 10**12)
    begin = time.monotonic()
    until = begin + 60 * given.minutes if given.minutes else float("inf")
    report = run(iter(range(given.seed, given.seed + cases)), given.jobs, given.kinds, until)
    seconds = time.monotonic() - begin
    counts = ", ".join(f"{name} {count}" for name, count in report.ended.most_common())
    print(f"{report.ended.total()} cases from seed {given.seed} in {seconds:.0f} s: {counts}")
    print(f"{len(report.failures)} failures")
    if given.keep:
        keep(report)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
