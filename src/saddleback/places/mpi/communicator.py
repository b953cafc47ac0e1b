"""The processes of a run under MPI, which all do the same with the same vectors, each next to its own columns of A.

They stay together as long as all take the same decisions from the same bits. A sum over processes has the same bits on
all of them; what depends on a clock, on Ctrl-C or on a callback is decided once and told to all.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
import zlib
from functools import cache
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from ...common.arrays import Indices, Vector
from ...machine.cpus import affine, available

GRACE = 5.0
"""Seconds that a process which has failed waits for all others to fail too, before it ends them."""


class SerialCommunicator:
    """One process, which need not ask anybody."""

    rank = 0
    size = 1

    def threads(self, wanted: int | None) -> int | None:
        """Return how many threads to use."""
        return wanted

    def all(self, thing: Any) -> list[Any]:
        """Return a thing of every process."""
        return [thing]

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set somewhere."""
        return flag

    def broadcast(self, flag: bool) -> bool:
        """Return the flag of the first process."""
        return flag

    def check_identical(self, *vectors: Vector) -> None:
        """Raise where vectors that ought to be the same on all processes are not."""

    def __enter__(self) -> SerialCommunicator:
        return self

    def __exit__(self, *_: object) -> None:
        pass


SERIAL = SerialCommunicator()


class MPICommunicator:
    """The processes of an MPI communicator.

    As a context, it sees to it that they fail together: an error that all of them meet is raised as everywhere else,
    and one that only some meet, while the others wait for them, is printed and ends them all.
    """

    def __init__(self, comm: Any) -> None:
        MPI = import_mpi()
        if not isinstance(comm, MPI.Intracomm):
            raise TypeError(f"comm is {type(comm).__name__}: expected an mpi4py communicator such as MPI.COMM_WORLD")
        self.comm, self.faults, self.beside = _own_communicators(comm)
        self.rank, self.size = int(comm.rank), int(comm.size)
        self._in_place, self._max, self._double = MPI.IN_PLACE, MPI.MAX, MPI.DOUBLE

    def threads(self, wanted: int | None) -> int | None:
        """Return how many threads to use: by default, processes that may run on the same CPUs share these."""
        return int(min(self.all(available(self.beside)))) if wanted is None else wanted

    def sum(self, v: Vector) -> Vector:
        """Add up a vector over all processes, in place; the sum has the same bits on each of them."""
        self.comm.Allreduce(self._in_place, v)
        return v

    def largest(self, v: Vector) -> Vector:
        """Take the largest entries over all processes, in place."""
        self.comm.Allreduce(self._in_place, v, op=self._max)
        return v

    def gather(self, part: Vector, sizes: Indices) -> Vector:
        """Return the vectors of all processes one after the other, given their sizes."""
        whole = np.empty(int(sizes.sum()))
        self.comm.Allgatherv(np.ascontiguousarray(part), [whole, sizes, np.cumsum(sizes) - sizes, self._double])
        return whole

    def all(self, thing: Any) -> list[Any]:
        """Return a small thing of every process, in their order."""
        found: list[Any] = self.comm.allgather(thing)
        return found

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set somewhere."""
        return bool(self.largest(np.array([float(flag)]))[0])

    def broadcast(self, flag: bool) -> bool:
        """Return the flag of the first process."""
        return bool(self.comm.bcast(flag, root=0))

    def check_identical(self, *vectors: Vector) -> None:
        """Raise where vectors that ought to be the same on all processes are not.

        They are computed in the same way everywhere, but processors of different makes may round differently.
        """
        prints = self.all([zlib.crc32(np.ascontiguousarray(vector).data) for vector in vectors])
        if any(other != prints[0] for other in prints):
            raise RuntimeError(
                "comm: the processes have come apart: they were given different data or arguments, or their processors "
                "or libraries do not round alike; give all the same, on machines of one kind with the same versions"
            )

    def __enter__(self) -> MPICommunicator:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None or self._all_fail():
            return
        traceback.print_exception(kind, error, at)
        print(
            f"saddleback: rank {self.rank} of {self.size} has failed ({type(error).__name__}: {error}) "
            "and ends the others",
            file=sys.stderr,
            flush=True,
        )
        self.comm.Abort(1)

    def _all_fail(self) -> bool:
        """Return whether all processes come here within a few seconds."""
        request, end = self.faults.Ibarrier(), time.monotonic() + GRACE
        while not request.Test():
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True


Communicator = SerialCommunicator | MPICommunicator


def communicator_of(comm: Any) -> Communicator:
    """Return the processes of a communicator, or this one alone for None."""
    return SERIAL if comm is None else MPICommunicator(comm)


SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
"""What an ``mpiexec`` leaves in the environment of the processes that it starts: how many there are."""


def world() -> Any:
    """Return the communicator of all processes that were started together by an ``mpiexec``; None for one alone."""
    sizes = [os.environ[name] for name in SIZES if name in os.environ]
    if "1" in sizes or not (sizes or "PMIX_RANK" in os.environ):
        return None
    comm = import_mpi().COMM_WORLD
    return comm if comm.size > 1 else None


def import_mpi() -> Any:
    """Return mpi4py's MPI, or raise with what to install."""
    try:
        from mpi4py import MPI
    except ImportError:
        raise ImportError("comm= needs mpi4py: pip install 'saddleback[mpi]'") from None
    return MPI


class _Own(NamedTuple):
    """Communicators that nobody else sends on, one for the work and one for faults; and who runs on the same CPUs."""

    work: Any
    faults: Any
    beside: int


def _own_communicators(comm: Any) -> _Own:
    """Return what belongs to a communicator; made once, since an MPI has a limited number of them."""
    key = _key()
    own = comm.Get_attr(key)
    if own is None:
        machine = comm.Split_type(import_mpi().COMM_TYPE_SHARED)
        own = _Own(comm.Dup(), comm.Dup(), machine.allgather(affine()).count(affine()))
        machine.Free()
        comm.Set_attr(key, own)
    found: _Own = own
    return found


@cache
def _key() -> int:
    return int(import_mpi().Comm.Create_keyval(delete_fn=lambda comm, key, own: (own.work.Free(), own.faults.Free())))
