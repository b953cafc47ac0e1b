"""Time both sides in processes that take turns, and report the ratios."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .environments import Side, environment

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""A thread that waits for others takes CPU time too, and the more of it the busier the machine is."""

BATCH = 5
"""Cases that a process runs before it is the turn of the other side: starting one takes as long as some cases do."""

Times = dict[str, dict[str, float]]


def groups(side: Side) -> dict[str, str]:
    """Return the names of the cases, each with its group."""
    found: dict[str, str] = _answer(side)
    return found


def _answer(side: Side, *names: str) -> Any:
    done = subprocess.run(
        side.command("timed", *names), env=environment() | ONE_THREAD, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{side.label} does not run:\n{done.stderr}")
    return json.loads(done.stdout)


def measure(base: Side, tree: Side, names: Sequence[str], rounds: int) -> list[Times]:
    """Return the least times of both sides over several rounds, in which their processes take turns."""
    least: list[Times] = [{}, {}]
    for first in [*range(0, len(names), BATCH)] * rounds:
        for side, so_far in zip((base, tree), least, strict=True):
            for name, found in _answer(side, *names[first : first + BATCH]).items():
                before = so_far.get(name, found)
                so_far[name] = {clock: min(seconds, before[clock]) for clock, seconds in found.items()}
    return least


def geometric_mean(ratios: Iterable[float]) -> float:
    """Return exp of the mean of the logarithms."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logarithms) / len(logarithms))


def report(base: Side, tree: Side, grouped: Mapping[str, str], least: Sequence[Times]) -> None:
    """Print the times and their ratios, and the geometric mean of each group."""
    print(f"{'':<24}{base.label:>14}{tree.label:>14}{'ratio':>8}{'wall':>8}   ms of CPU in one thread; tree / base")
    for group in dict.fromkeys(grouped.values()):
        ratios: list[float] = []
        for name in (name for name in grouped if grouped[name] == group):
            before, after = (times[name] for times in least)
            ratios.append(after["cpu"] / before["cpu"])
            wall = after["wall"] / before["wall"]
            print(
                f"{name:<24}{1e3 * before['cpu']:>14.1f}{1e3 * after['cpu']:>14.1f}{ratios[-1]:>8.2f}{wall:>8.2f}"
            )  # fmt: skip
        print(f"{f'geometric mean, {group}':<52}{geometric_mean(ratios):>8.3f}\n")
