"""What a case of the benchmark is: problems, required accuracy, and libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from .worker.task import Task

QUICK_ROWS = 300
"""Rows of real data in a quick run."""


@dataclass(frozen=True)
class Instance:
    """One problem of a case, generated when it is needed."""

    label: str
    make: Callable[[], Task]


@dataclass(frozen=True)
class Settings:
    """Which sizes of a case are run, and the folder of real data."""

    quick: bool = False
    data: Path | None = None


@dataclass(frozen=True)
class Case:
    """A family of problems that libraries solve side by side.

    Attributes
    ----------
    name, about : the name, and a description in one line.
    peers : libraries besides saddleback; those that return no dual point come last.
    instances : the problems.
    target : certified error at which a problem counts as solved.
    cap : seconds after which a solve is stopped.
    slow : whether a solve takes minutes in some libraries. Such a case is left out of a quick run unless requested by
        name; there is no untimed first solve, and no tolerance looser than the target is tried.
    grows : whether its problems differ in size only and grow. A library is not run on a larger one if it would exceed
        the cap even with a time in proportion to the entries of A.
    needs_data : the folders of real data that it reads.
    """

    name: str
    about: str
    peers: tuple[str, ...]
    instances: Callable[[Settings], Iterator[Instance]]
    target: float = 1e-6
    cap: float = 60.0
    slow: bool = False
    grows: bool = False
    needs_data: tuple[str, ...] = ()


Instances = Callable[[Settings], Iterator[Instance]]


def generated(
    make: Callable[..., Task], full: Mapping[str, Any], quick: Mapping[str, Any], seeds: int = 5
) -> Instances:
    """Return the problems of a generator with several seeds; in a quick run, one seed and a smaller size."""

    def instances(settings: Settings) -> Iterator[Instance]:
        size = {**full, **quick} if settings.quick else full
        for seed in range(1 if settings.quick else seeds):
            yield Instance(f"seed {seed}", partial(make, seed, **size))

    return instances


def sized(make: Callable[..., Task], *sizes: Mapping[str, Any], quick: Mapping[str, Any], **values: Any) -> Instances:
    """Return the problems of a generator with several sizes; in a quick run, a smaller one."""

    def instances(settings: Settings) -> Iterator[Instance]:
        for size in (quick,) if settings.quick else sizes:
            yield Instance(f"{size['m']:,} x {size['n']:,}", partial(make, 0, **size, **values))

    return instances


def real(make: Callable[..., Task], *names: str, **values: Any) -> Instances:
    """Return the problems of a generator on several sets of real data; in a quick run, with some of their rows."""

    def instances(settings: Settings) -> Iterator[Instance]:
        assert settings.data is not None
        for name in names:
            rows = QUICK_ROWS if settings.quick else None
            yield Instance(name, partial(make, name, settings.data, rows=rows, **values))

    return instances
