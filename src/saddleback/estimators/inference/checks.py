"""Checks of arguments that several kinds of inference take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...common.arrays import Indices
from ...common.checks import scalar


def checked_level(level: float) -> float:
    """Return the level of an interval, or raise if it is not strictly between 0 and 1."""
    if not 0 < scalar("level", level, high=1.0) < 1:
        raise ValueError(f"level={level}: expected a number strictly between 0 and 1, such as 0.95")
    return float(level)


def check_name(argument: str, found: Any, known: Iterable[str]) -> None:
    """Raise if a name is not known."""
    known = list(known)
    if found not in known:
        raise ValueError(f"{argument}={found!r} is not known: expected one of {known}")


def cluster_numbers(clusters: Any, n: int) -> Indices:
    """Return clusters as numbers from 0, or raise if there is not one label per sample, and two clusters or more."""
    labels = np.asarray(clusters)
    if labels.shape != (n,):
        raise ValueError(f"clusters has shape {labels.shape}: expected one label for each of the {n} samples")
    kinds, numbers = np.unique(labels, return_inverse=True)
    if kinds.size < 2:
        raise ValueError("clusters has one cluster: expected two or more")
    return numbers.astype(np.int64)
