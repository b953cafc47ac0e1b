"""Rows that several MPI processes read together: each visits its own chunks, and all get the sum.

``Spread`` divides rows that every process can read, such as files on a common disk. ``Joined`` is for processes that
have rows of their own. To make one of them and to read from it are calls that all processes have to make together.
"""

from __future__ import annotations

import pickle
import traceback
import zlib
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

from ..places.mpi.communicator import Communicator, MPICommunicator
from .rows import Chunk, Rows, S, Visit


class _Together(Rows):
    """Rows whose chunks belong to the processes of a team, in their order.

    Attributes
    ----------
    team : the processes.
    own : numbers of the chunks that this process visits, which may be none.
    """

    team: Communicator
    own: range
    together = True

    @abstractmethod
    def _read_own(self, visit: Visit[S], numbers: Sequence[int]) -> S:
        """Visit some chunks of this process, at least one, and return the sum."""

    def read_some(self, visit: Visit[S], numbers: Iterable[int]) -> S:
        """Visit some chunks, each on its process; all processes have to name the same, and get the same bits.

        An error of a visit is raised on all processes; it is that of the first process that has one.
        """
        wanted = list(numbers)
        if not wanted:
            raise ValueError("no chunk was named to read: expected at least one")
        mine = [number for number in wanted if number in self.own]
        if isinstance(self.team, MPICommunicator) and self.team.size > 1:
            return _sum(self.team, (lambda: self._read_own(visit, mine)) if mine else None)
        return self._read_own(visit, mine)


def spread(rows: Rows, team: Communicator) -> Rows:
    """Return rows divided among processes that all have the same; rows that are divided already stay as they are."""
    return rows if team.size == 1 or rows.together else Spread(rows, team)


class Spread(_Together):
    """Rows that every process can read, whose chunks are divided among the processes.

    A process visits consecutive chunks, with about as many rows as every other process.

    Parameters
    ----------
    rows : Rows
        The same rows on every process.
    team : Communicator
        The processes.
    """

    def __init__(self, rows: Rows, team: Communicator) -> None:
        self.rows, self.team = rows, team
        self.names, self.lengths, self.named, self.checked = rows.names, rows.lengths, rows.named, rows.checked
        prints = team.all(zlib.crc32(repr((self.names, self.lengths)).encode()))
        other = next((rank for rank, one in enumerate(prints) if one != prints[0]), None)
        if other is not None:
            raise ValueError(
                f"X has other columns or other chunks on process {other} than on the first process: expected the same "
                "rows on all processes"
            )
        _check_rows(self)  # now, since all processes have to come to the comparison
        self.own = share(self.lengths, team.rank, team.size)

    def chunk(self, number: int) -> Chunk:
        """Return a chunk, also one that another process visits."""
        return self.rows.chunk(number)

    def place(self, number: int, row: int) -> str:
        return self.rows.place(number, row)

    def _read_own(self, visit: Visit[S], numbers: Sequence[int]) -> S:
        return self.rows.read_some(visit, numbers)


class Joined(_Together):
    """The rows of all processes, one after the other.

    Chunks and rows are numbered over all processes.

    Parameters
    ----------
    rows : Rows or None
        The rows of this process; None, or rows without a chunk, if it has none.
    team : Communicator
        The processes.
    """

    def __init__(self, rows: Rows | None, team: Communicator) -> None:
        self.rows, self.team = rows, team
        tables = team.all(((), ()) if rows is None else (rows.names, rows.lengths))
        named = [rank for rank, (names, _) in enumerate(tables) if names]
        self.names = tables[named[0]][0] if named else ()
        self.lengths = tuple(length for _, lengths in tables for length in lengths)
        _check_rows(self)
        for rank in named:
            if tables[rank][0] != self.names:
                raise ValueError(
                    f"X has the columns {_listed(self.names)} on process {named[0]}, and {_listed(tables[rank][0])} on "
                    f"process {rank}: expected the same names in the same order on all processes"
                )
        before = sum(len(lengths) for _, lengths in tables[: team.rank])
        self.own = range(before, before + (0 if rows is None else len(rows.lengths)))
        self._first = sum(self.lengths[:before])

    def chunk(self, number: int) -> Chunk:
        """Return a chunk of this process."""
        if self.rows is None or number not in self.own:
            raise ValueError(f"chunk {number} lies with another process, not with process {self.team.rank}")
        return self._shift(self.rows.chunk(number - self.own.start))

    def place(self, number: int, row: int) -> str:
        if self.rows is None or number not in self.own:
            return super().place(number, row)
        return f"{self.rows.place(number - self.own.start, row)} of process {self.team.rank}"

    @property
    def _shift(self) -> _Shift:
        return _Shift(self.own.start, self._first)

    def _read_own(self, visit: Visit[S], numbers: Sequence[int]) -> S:
        assert self.rows is not None  # a process without rows has no numbers
        return self.rows.read_some(_Shifted(visit, self._shift), [number - self.own.start for number in numbers])


def share(lengths: Sequence[int], rank: int, size: int) -> range:
    """Return the numbers of the chunks of a process: those whose middle lies in its part of all rows."""
    total, end, middles = 2 * sum(lengths), 0, []
    for length in lengths:
        middles.append(size * (2 * end + length))  # twice the middle, times size: exact
        end += length
    first = bisect_left(middles, rank * total)
    return range(first, bisect_left(middles, (rank + 1) * total) if rank + 1 < size else len(lengths))


@dataclass(frozen=True)
class _Shift:
    """Numbers a chunk as one of the whole, by the numbers of chunks and rows before those of its process."""

    chunks: int
    rows: int

    def __call__(self, chunk: Chunk) -> Chunk:
        return replace(chunk, number=chunk.number + self.chunks, first=chunk.first + self.rows)


@dataclass(frozen=True)
class _Shifted(Generic[S]):
    """A visit of a chunk as one of the whole; a class, since it has to be possible to pickle it."""

    visit: Visit[S]
    shift: _Shift

    def __call__(self, chunk: Chunk) -> S:
        return self.visit(self.shift(chunk))


def _check_rows(rows: Rows) -> None:
    if not rows.n_rows:
        raise ValueError("X has no rows on any process: expected at least one")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f", ... ({len(names)} columns)" if len(names) > 3 else "")


@dataclass(frozen=True)
class _Outcome:
    """What the chunks of some processes gave.

    Attributes
    ----------
    parts : their sum; nothing if they have no chunk.
    error : what went wrong instead.
    where : the process on which it did, and the traceback there.
    """

    parts: tuple[Any, ...] = ()
    error: Exception | None = None
    where: str = ""


def _sum(team: MPICommunicator, task: Callable[[], S] | None) -> S:
    """Return the sum of the results of tasks, added in the order of the processes; None is the task of one without.

    Neighbours add up, then neighbouring pairs, and so on. The first process sends the sum to all. So no process
    holds the sums of all others, and all have the same bits.
    """
    from mpi4py.util import pkl5  # arrays are sent as they are: no copies, and no limit of 2 GB

    comm = pkl5.Intracomm(team.comm)
    mine = _Outcome() if task is None else _attempt(team, task)
    step = 1
    while step < team.size and team.rank % step == 0:
        if team.rank % (2 * step):
            comm.send(mine, team.rank - step)
            mine = _Outcome()  # its memory is needed for the whole
        elif team.rank + step < team.size:
            mine = _added(team, mine, comm.recv(None, team.rank + step))
        step *= 2
    whole: _Outcome = comm.bcast(mine, root=0)
    if whole.error is not None:
        raise whole.error from RuntimeError(whole.where)
    total: S = whole.parts[0]
    return total


def _added(team: MPICommunicator, one: _Outcome, other: _Outcome) -> _Outcome:
    """Return the sum of two outcomes; the first error if there is one."""
    for outcome in (one, other):
        if outcome.error is not None:
            return outcome
    if not (one.parts and other.parts):
        return one if one.parts else other
    return _attempt(team, lambda: one.parts[0] + other.parts[0])


def _attempt(team: MPICommunicator, task: Callable[[], Any]) -> _Outcome:
    """Return the outcome of a task; an error is kept, so that the other processes do not wait for this one."""
    try:
        return _Outcome((task(),))
    except Exception as error:
        where = f"process {team.rank} of {team.size} has failed:\n{traceback.format_exc()}"
        return _Outcome(error=_portable(error), where=where)


def _portable(error: Exception) -> Exception:
    """Return an error that can be sent; some take other arguments than they keep."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
