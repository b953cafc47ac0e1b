"""When a checkpoint is written, what happens where that fails, and how a run comes back from one."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from traceback import walk_tb
from typing import Any, NamedTuple, Protocol

from ..common.checks import ProbeError
from ..places.mpi.communicator import Communicator
from .atomic_file import clear
from .check import Unreadable
from .file import Stored, is_checkpoint, read, readable, write
from .fingerprint import differences
from .graph import Known, freeze, generators, with_generators
from .thaw import thaw


class Clock(Protocol):
    """What tells the time of a run."""

    def seconds(self) -> float:
        """Return the time since its beginning."""


class Checkpointed(Protocol):
    """A run, which remembers how long it took, and says what is to be kept of it."""

    seconds: float

    def contents(self) -> Any:
        """Return the run, and beside it what a run on other processes may begin with."""


class Checkpoint(NamedTuple):
    """What a checkpoint has for a run: all of it, or where another number of processes is to go on from.

    The draws of processes, and what follows from them, are those of their number; the point is anybody's.
    """

    run: Any = None
    point: Any = None
    past: Any = None


class CheckpointWriter:
    """Writes a run to a file every so many seconds; without a file it does nothing.

    Parameters
    ----------
    path : the file, as ``writable`` returns it.
    every : seconds between checkpoints, by the clock of the run.
    fingerprint : of the problem and its options.
    known : what the problem gives, by name.
    team : the processes of the run, of which the first writes.

    Attributes
    ----------
    written : whether the last attempt has succeeded.
    closed : whether that was the last one of the run.
    """

    def __init__(
        self,
        path: Path | None,
        every: float,
        clock: Clock,
        fingerprint: Mapping[str, Any],
        known: Known,
        team: Communicator,
    ) -> None:
        self.path, self.every, self.clock, self.team = path, every, clock, team
        self.fingerprint, self.known = dict(fingerprint), known
        self.last = clock.seconds()
        self.written = self.closed = False

    def due(self) -> bool:
        """Return whether the last checkpoint is long enough ago."""
        if self.path is None or self.closed:
            return False
        return self.team.broadcast(self.clock.seconds() - self.last >= self.every)

    def close(self, run: Checkpointed) -> None:
        """Write a run for the last time, unless that was done."""
        if not self.closed:
            self.save(run)
            self.closed = True

    def save(self, run: Checkpointed) -> None:
        """Write a run. Where the disk is full, say, the last checkpoint stays, and the run is not to end for it."""
        if self.path is None:
            return
        run.seconds = self.last = self.clock.seconds()
        graph = freeze(run.contents(), self.known)
        stored = Stored(version("saddleback"), self.fingerprint, graph, self.team.all(generators(graph)))
        if self.team.rank > 0:
            return
        try:
            self.written = False
            write(self.path, stored)
            self.written = True
        except OSError as error:
            warnings.warn(
                f"checkpoint={str(self.path)!r} could not be written ({error}): the run goes on, and the last "
                "checkpoint, if there is one, is still good",
                RuntimeWarning,
                stacklevel=2,
            )

    def advice(self) -> str:
        """Return how to go on from what was written last, as the end of a sentence."""
        return f" Pass resume={str(self.path)!r} to go on as if nothing had happened." if self.written else ""


def writable(path: Any) -> Path | None:
    """Return where to write checkpoints, or raise where that cannot work."""
    if path is None:
        return None
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"checkpoint={path!r}: expected the name of a file")
    found = Path(path)
    if found.is_dir():
        raise ValueError(f"checkpoint={str(found)!r} is a folder: expected the name of a file")
    if found.exists() and not is_checkpoint(found):
        raise ValueError(
            f"checkpoint={str(found)!r} is there already, and is not a checkpoint of saddleback: name another file, or "
            "remove this one"
        )
    folder = found.resolve().parent
    if not os.access(folder, os.W_OK):
        raise ValueError(f"checkpoint={str(found)!r}: there is no folder {str(folder)!r} that can be written to")
    clear(found)
    return found


INTERNAL = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What numbers that no run could have may lead to."""


CALLERS = ("saddleback.functions.user", "saddleback.operators.linear_operator")
"""The modules that call functions and operators of the user's."""


def _of_the_user(error: BaseException) -> bool:
    """Return whether an error has passed through code that one of these modules has called."""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    return any(a in CALLERS and b.partition(".")[0] != "saddleback" for a, b in pairwise(modules))


@contextmanager
def going_on(path: Any) -> Iterator[None]:
    """Name the checkpoint in errors of a run that goes on from one; without one do nothing.

    All that a file says has the right form, but whether its numbers are those of a run shows only on the way.
    Errors of the user's own functions and operators have nothing to do with the file.
    """
    try:
        yield
    except INTERNAL as error:
        if path is None or isinstance(error, ProbeError) or _of_the_user(error):
            raise
        raise ValueError(
            f"resume={str(path)!r}: the run could not go on from this file ({type(error).__name__}: {error}). Has the "
            "file been damaged or changed? Use another checkpoint, or leave resume= out to begin anew"
        ) from error


def restore(path: Any, fingerprint: Mapping[str, Any], known: Known, team: Communicator, whole: type) -> Checkpoint:
    """Return what a checkpoint has for a team, or raise where the file is damaged or belongs to another run.

    ``whole`` is the class of what ``Checkpointed.contents`` returns. The file may come from anyone: it holds numbers
    and names from the tables of ``common/rebuildable.py``, and no code.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"resume={path!r}: expected the name of a file that checkpoint= has written")
    stored = read(Path(path))
    with going_on(path):
        others = differences(stored.fingerprint, fingerprint)
    if others:
        told = readable("; ".join(others), most=2000)
        raise ValueError(
            f"resume={str(path)!r} belongs to another run, which differs in {told}: pass the same problem "
            "and options, or leave resume= out to begin anew"
        )
    try:
        with going_on(path):
            if len(stored.generators) != team.size:
                return Checkpoint(**thaw(stored.graph, known, whole, ("point", "past")))
            return Checkpoint(
                **thaw(with_generators(stored.graph, stored.generators[team.rank]), known, whole, ("run",))
            )
    except Unreadable as error:
        raise ValueError(
            f"resume={str(path)!r}, written by saddleback {stored.version}, has parts that this version does not know "
            f"({error}): go on with that version, or leave resume= out to begin anew"
        ) from error
