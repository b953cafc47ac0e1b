"""The best value of an option, chosen with hindsight: the paper calls it post-hoc optimal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .experiment import Contender, Say
from .trace import Trace


def best_of(
    contender: Contender, attempt: Callable[[Contender], Trace], cost: Callable[[Trace], float], say: Say
) -> tuple[Contender, list[tuple[float, float]]]:
    """Return the contender with the value of its searched option that has the least cost, and the cost of every value.

    Parameters
    ----------
    contender : the contender; it is returned unchanged if it has no option to search.
    attempt : runs a contender.
    cost : the cost of a trace, which is minimised.
    say : prints a line for every value.
    """
    if contender.search is None:
        return contender, []
    option, values = contender.search
    tried = []
    for value in values:
        chosen = replace(contender, options={**contender.options, option: value}, search=None)
        tried.append((cost(attempt(chosen)), value, chosen))
        say(f"  {contender.label} {option}={value:g}: {tried[-1][0]:.3g}")
    best = min(tried, key=lambda entry: entry[0])
    return best[2], [(value, spent) for spent, value, _ in tried]
