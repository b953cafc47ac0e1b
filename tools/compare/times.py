"""Time both sides in alternating processes, and report the ratios."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .environments import Side, environment

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Environment for one thread: threads that wait for others use CPU time too, and more of it on a busy machine."""

BATCH = 5
"""Number of cases per process. After them the other side has its turn; more turns would mostly start processes."""

Times = dict[str, dict[str, float]]


def groups(side: Side) -> dict[str, str]:
    """Return the groups of the cases by their names."""
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
    """Return the minimum times of both sides over several rounds, in which their processes alternate."""
    least: list[Times] = [{}, {}]
    for first in [*range(0, len(names), BATCH)] * rounds:
        for side, so_far in zip((base, tree), least, strict=True):
            for name, found in _answer(side, *names[first : first + BATCH]).items():
                before = so_far.get(name, found)
                so_far[name] = {clock: min(seconds, before[clock]) for clock, seconds in found.items()}
    return least


def geometric_mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers."""
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
