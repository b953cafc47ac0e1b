"""The contract of a place: where A lies, and the kernels that run there.

A place is a folder with a ``Place`` in its ``place.py``. ``choose.py`` takes the first place that accepts a problem.
All kernels of one kind do the same iterations up to rounding; those in ``numpy/`` are the specification.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from ..common.arrays import Indices, Vector
from ..model.model import Model
from ..steps.strengths import Strengths
from .newton import Smooth

KernelName: TypeAlias = Literal["block", "lazy", "descent", "pure-cd"]

Exchange: TypeAlias = Callable[[Vector], object]
"""Adds to a change of Ax, in place, the changes that other processes have made."""


class Sums(Protocol):
    """Sums of the points so far."""

    x: Vector
    y: Vector


class Iterate(Protocol):
    """The point that an iteration changes in place, with u = Ax and the sums of all points so far."""

    x: Vector
    y: Vector
    u: Vector

    @property
    def averages(self) -> Sums:
        """The sums, to which every new point is added."""


class PureIterate(Iterate, Protocol):
    """``memory`` is the y of PURE-CD; ``y`` is the dual step from it, for the steps of x and for the averages."""

    memory: Vector


class BlockKernel(Protocol):
    """Runs iterations of the block method on one problem."""

    name: str
    lazy: bool

    def sweep(self, draws: Indices, strengths: Strengths, extrapolation: float, at: Iterate) -> None:
        """Run one iteration per row of ``draws``, in place, and add each new point to the sums."""


class PureCDKernel(Protocol):
    """Runs iterations of PURE-CD on one problem."""

    name: str

    def sweep(self, draws: Indices, strengths: Strengths, theta: Vector, at: PureIterate) -> None:
        """Run one iteration per row of ``draws``, in place, and add each new point to the sums."""


class DescentKernel(Protocol):
    """Runs block coordinate descent on one problem with a smooth loss, in panels of ``width`` columns.

    ``strength`` bounds the curvature of the loss along the block of each column; its computation took ``passes``.
    """

    name: str
    width: int
    strength: Vector
    passes: float

    def extended(self, model: Model) -> DescentKernel:
        """Return the kernel of a problem whose first blocks are those of this one, which must not be used again."""

    def sweep(self, sweeps: int, x: Vector, u: Vector, y: Vector) -> int:
        """Visit all blocks once, and then ``sweeps`` - 1 times those whose panel is not all 0.

        x, u = Ax and y = g'(u) are changed in place. Returns the number of columns visited.
        """

    def products(self, columns: Indices, y: Vector) -> Vector:
        """Return A_S'y over some columns S."""

    def image(self, columns: Indices, d: Vector) -> Vector:
        """Return A_S d over some columns S."""

    def solve(
        self, part: Smooth, weight: Vector, right: Vector, diagonal: Vector, tolerance: float, most: int
    ) -> tuple[Vector, int]:
        """Solve (A_S' D A_S + f'') d = right on the free coordinates; return d and the steps taken.

        D = diag(weight), unless the loss has no normal form: then D may have matrices ``weight`` on its diagonal.
        """


class LocalDescentKernel(DescentKernel, Protocol):
    """A descent kernel on the columns of one of several processes, which exchange changes every ``pace`` columns."""

    pace: float

    def extended(self, model: Model) -> LocalDescentKernel:
        """Return the kernel of a problem whose first blocks are those of this one."""


@dataclass(frozen=True)
class Place:
    """Where A lies, and which kernels run there.

    The kernels in ``numpy/`` take any operator. So an operator without kernels needs no place, and a place may have the
    kernels of ``numpy/`` for what it does not speed up.

    Parameters
    ----------
    name : str
        The value of ``backend=`` that selects it.
    accepts : function of (Model, KernelName)
        Returns None if such a kernel can treat the problem, and otherwise what is missing. With ``backend="auto"`` the
        next place is then asked, and numpy, the last one, accepts everything.
    block_kernel : function of (Model, lazy, Exchange or None)
        Makes a kernel of the block method. If ``lazy``, rows that no drawn block touches are updated when needed.
    descent_kernel : function of (Model, width, Exchange or None)
        Makes a kernel of coordinate descent.
    pure_cd_kernel : function of (Model), optional
        Makes a kernel of PURE-CD; None if the place has none.
    """

    name: str
    accepts: Callable[[Model, KernelName], str | None]
    block_kernel: Callable[[Model, bool, Exchange | None], BlockKernel]
    descent_kernel: Callable[[Model, int, Exchange | None], DescentKernel]
    pure_cd_kernel: Callable[[Model], PureCDKernel] | None = None
