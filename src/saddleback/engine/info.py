"""The argument of a callback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from ..common.cached import cached_property
from ..functions.points import DensePoint, Point
from ..problem import Problem
from ..reductions import Units
from ..result import Certificate
from .clock import Clock
from .run import Run


class Iterate(NamedTuple):
    """The current point of a method, in the shapes of the problem."""

    x: Any
    y: Any


@dataclass(frozen=True)
class Info:
    """The work so far and the best pair of points, which a callback gets at every certificate.

    ``x``, ``y`` and ``current`` are computed when they are first read, which has to be during the call. With several
    processes, one of them may read them alone, with one exception: if blocks were made part of the loss
    (``eliminate``), ``current`` takes a product with A, so that all processes have to read it or none.

    Attributes
    ----------
    passes, seconds : float
        Work and wall time so far.
    certificate : Certificate
        The certificate of the best pair of points so far.
    judging_passes, judging_seconds : float
        The part of the work and of the time that went into certificates.
    x, y : ndarray or list of ndarray
        The best pair of points so far.
    current : Iterate
        The iterate of the method, with fields ``x`` and ``y``.
    """

    passes: float
    seconds: float
    certificate: Certificate
    judging_passes: float
    judging_seconds: float
    point: Callable[[], tuple[Any, Any]] = field(repr=False)
    iterate: Callable[[], tuple[Any, Any]] = field(repr=False)

    @cached_property
    def x(self) -> Any:
        """The best x so far, in the shape of the problem."""
        return self.point()[0]

    @cached_property
    def y(self) -> Any:
        """The best y so far."""
        return self.point()[1]

    @cached_property
    def current(self) -> Iterate:
        """The iterate of the method as it is: not the best one, and neither scaled nor moved into a domain."""
        return Iterate(*self.iterate())


def info_of(problem: Problem, units: Units, run: Run, clock: Clock) -> Info:
    """Return the argument for the callback of a run."""

    def shaped(point: Callable[[], tuple[Point, Point]]) -> Callable[[], tuple[Any, Any]]:
        def made() -> tuple[Any, Any]:
            x, y = units.restored(*point())
            return problem.shape_x(DensePoint(x.vector().copy())), problem.shape_y(y.vector().copy())

        return made

    best, iterate = run.incumbent.point_of_now(), partial(run.incumbent.restored, run.state.x, run.state.y)
    work = run.passes, clock.seconds(), run.incumbent.certificate, run.judging.passes, run.judging.seconds
    return Info(*work, shaped(best), shaped(iterate))
