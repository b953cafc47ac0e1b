"""The MPI processes of a run. All do the same with the same vectors, and each holds some columns of A.

They stay in step as long as all take the same decisions from the same bits. A sum over processes has the same bits on
all of them. A decision that depends on a clock, on Ctrl-C or on a callback is taken once and broadcast.
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
"""Seconds that a process that has failed waits for all others to fail too, before it ends them."""


class SerialCommunicator:
    """A single process."""

    rank = 0
    size = 1

    def threads(self, wanted: int | None) -> int | None:
        """Return how many threads to use."""
        return wanted

    def all(self, thing: Any) -> list[Any]:
        """Return an object of every process."""
        return [thing]

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set somewhere."""
        return flag

    def broadcast(self, flag: bool) -> bool:
        """Return the flag of the first process."""
        return flag

    def check_identical(self, *vectors: Vector) -> None:
        """Raise if vectors that should be the same on all processes are not."""

    def __enter__(self) -> SerialCommunicator:
        return self

    def __exit__(self, *_: object) -> None:
        pass


SERIAL = SerialCommunicator()


class MPICommunicator:
    """The processes of an MPI communicator.

    As a context, it makes all processes fail together. An error on all processes is raised as usual. An error on some
    of them, while the others wait, is printed and ends all processes.
    """

    def __init__(self, comm: Any) -> None:
        MPI = import_mpi()
        if not isinstance(comm, MPI.Intracomm):
            raise TypeError(f"comm is {type(comm).__name__}: expected an mpi4py communicator such as MPI.COMM_WORLD")
        self.comm, self.faults, self.beside = _own_communicators(comm)
        self.rank, self.size = int(comm.rank), int(comm.size)
        self._in_place, self._max, self._double = MPI.IN_PLACE, MPI.MAX, MPI.DOUBLE

    def threads(self, wanted: int | None) -> int | None:
        """Return how many threads to use: by default, processes that may run on the same CPUs share the CPUs."""
        return int(min(self.all(available(self.beside)))) if wanted is None else wanted

    def sum(self, v: Vector) -> Vector:
        """Sum a vector over all processes, in place; the sum has the same bits on each of them."""
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
        """Return a small object of every process, in the order of the processes."""
        found: list[Any] = self.comm.allgather(thing)
        return found

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set somewhere."""
        return bool(self.largest(np.array([float(flag)]))[0])

    def broadcast(self, flag: bool) -> bool:
        """Return the flag of the first process."""
        return bool(self.comm.bcast(flag, root=0))

    def check_identical(self, *vectors: Vector) -> None:
        """Raise if vectors that should be the same on all processes are not.

        They are computed in the same way everywhere, but different processors may round differently.
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
        """Return whether all processes reach this call within a few seconds."""
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
"""Environment variables in which an ``mpiexec`` tells its processes how many there are."""


def world() -> Any:
    """Return the communicator of all processes that were started together by an ``mpiexec``; None for one alone."""
    sizes = [os.environ[name] for name in SIZES if name in os.environ]
    if "1" in sizes or not (sizes or "PMIX_RANK" in os.environ):
        return None
    comm = import_mpi().COMM_WORLD
    return comm if comm.size > 1 else None


def import_mpi() -> Any:
    """Return mpi4py's MPI, or raise an error that says what to install."""
    try:
        from mpi4py import MPI
    except ImportError:
        raise ImportError("comm= needs mpi4py: pip install 'saddleback[mpi]'") from None
    return MPI


class _Own(NamedTuple):
    """Private communicators, one for the work and one for faults; and the processes that run on the same CPUs."""

    work: Any
    faults: Any
    beside: int


def _own_communicators(comm: Any) -> _Own:
    """Return the private communicators of a communicator; made once, since MPI has a limited number of them."""
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
