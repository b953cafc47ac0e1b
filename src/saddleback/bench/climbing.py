"""The search for the loosest tolerance of a library with which it reaches the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

LOOSEST = 1e-2


@dataclass(frozen=True)
class Attempt:
    """A solve with some tolerance of the library: time, certified error, non-zeros, and what the library reports."""

    tolerance: float
    seconds: float
    error: float
    nonzeros: int = 0
    info: dict[str, Any] = field(default_factory=dict)


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
    jumps: bool = False,
) -> tuple[Attempt, str]:
    """Return the attempt at the loosest tolerance that reaches the target, else the best one, and the outcome.

    The outcome is "reached", "not in time" if the patience was spent, or "not reached" if the tolerances were.

    Parameters
    ----------
    attempt : solves with a tolerance.
    tolerances : tolerances, loosest first.
    target : largest error that is accurate enough.
    start : index of the first tolerance to try. If it misses the target, tighter ones follow until one reaches it. If
        it reaches the target, looser ones follow as long as they do.
    patience : total seconds of attempts that miss the target, after which the climb ends.
    jumps : whether to leave out tolerances that would miss the target if the error were in proportion to the tolerance.
    """
    made = attempt(tolerances[start])
    if made.error <= target:
        for tolerance in reversed(tolerances[:start]):
            looser = attempt(tolerance)
            if looser.error > target:
                break
            made = looser
        return made, "reached"
    best, spent = made, made.seconds
    tighter = list(tolerances[start + 1 :])
    while tighter:
        if spent > patience:
            return best, "not in time"
        wanted = made.tolerance * target / made.error if jumps and np.isfinite(made.error) else np.inf
        tighter = [tolerance for tolerance in tighter if tolerance <= wanted] or tighter[-1:]
        made = attempt(tighter.pop(0))
        if made.error <= target:
            return made, "reached"
        best = min(best, made, key=lambda one: one.error)
        spent += made.seconds
    return best, "not reached"
