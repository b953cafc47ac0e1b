"""When a checkpoint is written, what happens if that fails, and how a run is restored from one."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from traceback import walk_tb
from typing import Any, NamedTuple, Protocol

from ..common.checks import ProbeError
from ..common.outputs import clear
from ..places.mpi.communicator import Communicator
from .check import Unreadable
from .file import Stored, is_checkpoint, read, readable, write
from .fingerprint import differences
from .graph import Known, freeze, generators, with_generators
from .thaw import thaw


class Clock(Protocol):
    """The clock of a run."""

    def seconds(self) -> float:
        """Return the time since its beginning."""


class Checkpointed(Protocol):
    """A run, which stores its time and says what a checkpoint has to hold."""

    seconds: float

    def contents(self) -> Any:
        """Return the run, and what a run on another number of processes needs to continue it."""


class Checkpoint(NamedTuple):
    """What is restored from a checkpoint: the run, or only its point and counts for another number of processes.

    The draws, and all that follows from them, depend on the number of processes; the point and the counts do not.
    """

    run: Any = None
    point: Any = None
    past: Any = None


class CheckpointWriter:
    """Writes a run to a file at regular intervals; without a file it does nothing.

    Parameters
    ----------
    path : the file, as ``writable`` returns it.
    every : seconds between checkpoints.
    clock : clock of the run.
    fingerprint : fingerprint of the problem and its options.
    known : objects that exist before the run, by name; the file refers to them and does not hold them.
    team : the processes of the run, of which the first writes.

    Attributes
    ----------
    written : whether the last attempt succeeded.
    closed : whether the last checkpoint of the run has been written.
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
        """Return whether it is time for the next checkpoint."""
        if self.path is None or self.closed:
            return False
        return self.team.broadcast(self.clock.seconds() - self.last >= self.every)

    def close(self, run: Checkpointed) -> None:
        """Write the last checkpoint of a run, unless that was done before."""
        if not self.closed:
            self.save(run)
            self.closed = True

    def save(self, run: Checkpointed) -> None:
        """Write a run. If that fails, such as on a full disk, the last checkpoint stays and the run continues."""
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
                f"checkpoint={str(self.path)!r} could not be written ({error}): the run continues, and the last "
                "checkpoint, if there is one, is still valid",
                RuntimeWarning,
                stacklevel=2,
            )

    def advice(self) -> str:
        """Return a sentence that says how to resume from the last checkpoint, or nothing if there is none."""
        return f" Pass resume={str(self.path)!r} to continue the run from its checkpoint." if self.written else ""


def writable(path: Any) -> Path | None:
    """Return the path of the checkpoints, or raise if no file can be written there."""
    if path is None:
        return None
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"checkpoint={path!r}: expected the name of a file")
    found = Path(path)
    if found.is_dir():
        raise ValueError(f"checkpoint={str(found)!r} is a folder: expected the name of a file")
    if found.exists() and not is_checkpoint(found):
        raise ValueError(
            f"checkpoint={str(found)!r} exists and is not a checkpoint of saddleback: name another file, or remove "
            "this one"
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
"""The errors to which invalid numbers in a file can lead."""


CALLERS = ("saddleback.functions.user", "saddleback.operators.linear_operator")
"""The modules that call the functions and operators of the user."""


def _of_the_user(error: BaseException) -> bool:
    """Return whether an error comes from the user's code, called by one of these modules."""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    return any(a in CALLERS and b.partition(".")[0] != "saddleback" for a, b in pairwise(modules))


def going_on(path: Any) -> AbstractContextManager[None]:
    """Name the checkpoint in errors of a run that goes on from one; without one do nothing."""
    return _naming(path) if path is not None else NOTHING


NOTHING = nullcontext()


@contextmanager
def _naming(path: Any) -> Iterator[None]:
    """Name a checkpoint in the errors of a run that resumes from it.

    The form of the file has been checked, but whether its numbers belong to a run shows only during the run. Errors of
    the user's functions and operators are raised unchanged.
    """
    try:
        yield
    except INTERNAL as error:
        if isinstance(error, ProbeError) or _of_the_user(error):
            raise
        raise ValueError(
            f"resume={str(path)!r}: the run could not continue from this file ({type(error).__name__}: {error}). Has "
            "the file been damaged or changed? Use another checkpoint, or leave resume= out to start a new run"
        ) from error


def restore(path: Any, fingerprint: Mapping[str, Any], known: Known, team: Communicator, whole: type) -> Checkpoint:
    """Return what a checkpoint holds for the processes, or raise if the file is damaged or belongs to another run.

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
            "and options, or leave resume= out to start a new run"
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
            f"({error}): resume with that version, or leave resume= out to start a new run"
        ) from error
