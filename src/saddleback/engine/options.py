"""The arguments of ``solve`` besides the problem, and their checks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from ..common.checks import number, one_of, shown
from ..machine.threads import check_threads
from ..methods import Method
from ..methods.contract import positive_number
from ..result import Result
from .info import Info
from .registry import METHODS


@dataclass(frozen=True)
class Options:
    """The arguments of ``solve``; ``of_method`` holds the options of the method."""

    method: str | Method[Any] = "auto"
    tol: float = 1e-6
    max_passes: float = 10_000
    time_limit: float | None = None
    blocks_per_iteration: Any = "auto"
    seed: int = 0
    threads: int | None = None
    callback: Callable[[Info], bool | None] | None = None
    progress: bool = False
    x0: Any = None
    y0: Any = None
    eliminate: Any = "auto"
    check_every: float | None = None
    checkpoint: Any = None
    checkpoint_every: float = 60.0
    resume: Any = None
    comm: Any = None
    device: Any = None
    layers: bool = True
    of_method: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Options:
        """Return the options of a call ``solve(problem, **options)``."""
        own = {name: value for name, value in options.items() if name in NAMES}
        return cls(**own, of_method={name: value for name, value in options.items() if name not in NAMES})

    def check(self) -> None:
        """Raise if an argument is not what ``solve`` expects."""
        if not 0 <= number("tol", self.tol) < np.inf:
            raise ValueError(f"tol={shown(self.tol)}: expected a number that is at least 0")
        if not number("max_passes", self.max_passes) > 0:
            raise ValueError(f"max_passes={shown(self.max_passes)}: expected a positive number")
        if self.check_every is not None:
            positive_number("check_every", self.check_every)
        if self.time_limit is not None and not number("time_limit", self.time_limit) > 0:
            raise ValueError(f"time_limit={shown(self.time_limit)}: expected None or a positive number of seconds")
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback={shown(self.callback)}: expected a function of one argument")
        if isinstance(self.seed, bool) or not isinstance(self.seed, (int, np.integer)) or self.seed < 0:
            raise ValueError(f"seed={shown(self.seed)}: expected an integer that is at least 0")
        check_threads(self.threads)
        one_of("layers", self.layers, True, False)
        one_of("progress", self.progress, True, False)
        self._check_checkpoints()

    def _check_checkpoints(self) -> None:
        if not number("checkpoint_every", self.checkpoint_every) >= 0:
            raise ValueError(
                f"checkpoint_every={shown(self.checkpoint_every)}: expected a number of seconds that is at least 0"
            )
        if self.resume is not None and not isinstance(self.resume, (str, os.PathLike)):
            raise TypeError(f"resume={shown(self.resume)}: expected the name of a file")
        if self.resume is not None and not (self.x0 is None and self.y0 is None):
            raise ValueError("resume with x0 or y0: the checkpoint holds the point to continue from; leave them out")
        method = self.method
        if self.keeps_a_file and isinstance(method, Method) and type(method) not in METHODS.values():
            raise TypeError(
                f"checkpoint and resume with method={method.name!r}: only the states of the methods in sb.methods() "
                "can be written to a file; leave checkpoint and resume out; x0=result continues from a result"
            )

    @property
    def keeps_a_file(self) -> bool:
        """Whether the run is written to a file or read from one."""
        return not (self.checkpoint is None and self.resume is None)

    @property
    def any_method(self) -> bool:
        """Whether nothing but accuracy, seed and threads was asked for, so that a solve may go any way it likes."""
        defaults = Options(tol=self.tol, max_passes=self.max_passes, seed=self.seed, threads=self.threads)
        return self == defaults

    def same_everywhere(self) -> dict[str, Any]:
        """Return the arguments that have to be equal on all processes of a run."""
        alike = ("layers", "eliminate", "tol", "max_passes", "seed", "blocks_per_iteration", "check_every", "device")
        same = {"method": repr(self.method)} | {name: getattr(self, name) for name in alike}
        for name in ("time_limit", "checkpoint", "resume"):  # all processes or none pass them, but values may differ
            same[name] = None if getattr(self, name) is None else "given"
        start = (self.x0.x, self.x0.y) if isinstance(self.x0, Result) else self.x0
        return same | {"x0": start, "y0": self.y0} | dict(self.of_method)


NAMES = tuple(own.name for own in fields(Options))[:-1]
"""The names of the arguments of ``solve``, besides the problem and the options of a method."""
