"""What a method is: a state, how it starts, how it goes on, and which points it offers for judgement.

A method does not print, measure time, count against a limit or decide when to stop; ``engine/solve.py`` does. Its
options are the fields of its class. What wraps a method is a method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from ..certificates.candidates import Candidates
from ..common.arrays import Vector
from ..common.checks import SQUARABLE, number, shown
from ..common.rebuildable import stored
from ..functions.contract import Convex
from ..functions.piecewise import PiecewiseQuadratic
from ..functions.traits import is_smooth
from ..model.index_map import IndexMap
from ..model.model import Model
from ..operators.deferred_points import zeros
from .report import Report


@stored
@dataclass(frozen=True)
class Start:
    """Where and how a method starts: what the user passes to ``solve`` for every method alike.

    Attributes
    ----------
    x, y : ndarray
        The starting point.
    u : ndarray or None
        Ax, if it is known.
    drawn : int or None
        K; the method chooses it if it is None.
    seed : int
        Seed of the draws.
    weight : float
        Initial primal weight, relative to that of the data.
    kept : IndexMap or None
        Which rows and columns of the given problem are left; None for all of them.
    tol : float
        The error at which the run will end, so that no part of it is solved more accurately than needed.
    seconds : float
        Time limit of the run, for methods that call another library which has to stop by then.
    """

    x: Vector
    y: Vector
    drawn: int | None = None
    seed: int = 0
    weight: float = 1.0
    kept: IndexMap | None = None
    tol: float = 0.0
    u: Vector | None = None
    seconds: float = np.inf

    def image(self, model: Model) -> tuple[Vector, float]:
        """Return Ax, and what it cost in passes."""
        if self.u is not None:
            return self.u.copy(), 0.0
        return model.A.matvec(self.x), 0.5 * np.count_nonzero(self.x) / self.x.size


@dataclass(kw_only=True)
class State:
    """What every method keeps: its point, and the work done so far in passes.

    A state is data, all of which a checkpoint holds: numbers, arrays, and classes made of them that are marked
    ``stored``. What is not data, a kernel, a packed matrix, a factorisation, comes from a function marked ``derived``.
    Whoever changes what a state holds changes the FORMAT of ``checkpoints/file.py``.

    ``wants_certificate`` is set by a method whose point is worth a certificate before the next one is due. ``ended`` is
    set by a method that cannot continue, to the reason. ``goal`` is the factor by which the error still has to fall; a
    layer that knows it sets it. ``notes`` are for the history: what was decided on the way. ``choices`` is what was
    chosen at the beginning, and ``report`` tells it together with what has been counted since.
    """

    x: Vector
    y: Vector
    passes: float = 0.0
    wants_certificate: bool = False
    ended: str = ""
    goal: float = 0.01
    notes: list[str] = field(default_factory=list)
    choices: Report = field(default_factory=Report)

    def report(self) -> Report:
        """Return what was chosen and counted so far: ``Result.settings``."""
        return self.choices

    def check(self) -> None:
        """Raise where a state that was read from a file does not fit its problem: its points, and who is drawn."""
        model, sampling = (getattr(self, name, None) for name in ("model", "sampling"))
        if model is not None and (self.y.shape, self.x.shape) != tuple((size,) for size in model.A.shape):
            raise ValueError(
                f"points of the shapes {self.x.shape} and {self.y.shape} for an A of shape {model.A.shape}"
            )
        if sampling is not None and not 1 <= sampling.drawn <= sampling.n_blocks <= max(self.x.size, self.y.size):
            raise ValueError(f"draws of {sampling.drawn} of {sampling.n_blocks} blocks")


HUGE = 1e25
"""Iterates so many times larger than a solution may be have diverged: where there is none they grow linearly only."""


def diverged(model: Model, x: Vector, y: Vector) -> bool:
    """Return whether a point is so large for a problem, or not finite, that nothing can come of it."""
    if _within(HUGE, x, y):  # so that most problems are not asked for their size
        return False
    return not _within(min(HUGE * model.size, SQUARABLE), x, y)


def _within(bound: float, x: Vector, y: Vector) -> bool:
    return all(v.min() > -bound and v.max() < bound for v in (x, y))


S = TypeVar("S", bound=State)


class Method(ABC, Generic[S]):
    """A method for min_x max_y f(x) + <y, Ax> - g*(y).

    A subclass has to have ``init``, ``advance`` and ``candidates``; everything else has a default. ``solve`` takes an
    object of any subclass as its ``method``.
    """

    layers: tuple[str, ...] = ()
    """Layers that may be put around the method, innermost first."""

    @property
    def name(self) -> str:
        """The name in results and messages; that of the class unless it sets one."""
        return type(self).__name__

    @property
    def draws(self) -> bool:
        """Whether an iteration updates some of the blocks, as many as ``blocks_per_iteration`` says."""
        return False

    @property
    def superlinear(self) -> bool:
        """Whether the error falls faster the smaller it is, so that a problem is best solved to the end at once."""
        return False

    @property
    def merges_rows(self) -> bool:
        """Whether equal rows may be merged before the method sees the problem: for those that are meant to be fast."""
        return False

    @property
    def warmup_passes(self) -> float:
        """Passes before the first certificate, for methods that are much closer after them than at the start."""
        return 0.0

    @property
    def expensive_steps(self) -> bool:
        """Whether a single step takes so long that the clock is to be looked at after it."""
        return False

    @property
    def needs_float64(self) -> bool:
        """Whether the method needs the entries of A as they are, not rounded to float32."""
        return False

    def missing(self, model: Model) -> str | None:
        """Return what a problem lacks for the method with these options, or None where it can be treated."""
        return None

    @abstractmethod
    def init(self, model: Model, start: Start) -> S:
        """Return the first state: strengths chosen, A in the order that the kernels read it in."""

    def extend(self, state: S, model: Model, start: Start) -> S:
        """Return the first state of a problem that has the one of ``state``, which is given up, as its first blocks."""
        return self.init(model, start)

    @abstractmethod
    def advance(self, state: S, passes: float) -> S:
        """Return the state after about so many passes, at least one iteration; the given one may be reused."""

    @abstractmethod
    def candidates(self, state: S) -> Candidates:
        """Return the points worth judging."""

    def adapt(self, state: S, error: float) -> S:
        """Return the state to continue from after a certificate, given the error of the best pair so far.

        This is where a method may change its plan, for example go over to an interior point.
        """
        return state

    def for_model(self, model: Model) -> Method[Any]:
        """Return the method without those of its layers that do not apply to a problem."""
        return self


@dataclass(frozen=True)
class Layer(Method[S]):
    """A method around another one, under the name and with the properties of that."""

    method: Method[Any]
    options: ClassVar[tuple[str, ...]] = ()
    """Options of the layer besides whether it is there."""

    @classmethod
    def around(cls, method: Method[Any], forced: bool, options: Mapping[str, Any]) -> Layer[S]:
        """Return the layer around a method; ``forced`` if the user asked for it."""
        return cls(method)

    def applies(self, model: Model) -> bool:
        """Return whether the layer can do anything for a problem."""
        return True

    def for_model(self, model: Model) -> Method[Any]:
        inner = self.method.for_model(model)
        return replace(self, method=inner) if self.applies(model) else inner

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def draws(self) -> bool:
        return self.method.draws

    @property
    def superlinear(self) -> bool:
        return self.method.superlinear

    @property
    def merges_rows(self) -> bool:
        return self.method.merges_rows

    @property
    def warmup_passes(self) -> float:
        return self.method.warmup_passes

    @property
    def expensive_steps(self) -> bool:
        return self.method.expensive_steps

    @property
    def needs_float64(self) -> bool:
        return self.method.needs_float64

    def missing(self, model: Model) -> str | None:
        return self.method.missing(model)


@stored
@dataclass
class Averages:
    """Sums of the iterates since the last time that they were judged."""

    x: Vector
    y: Vector
    count: int = 0

    @classmethod
    def of(cls, model: Model) -> Averages:
        """Return empty sums for a problem."""
        return cls(zeros(model.A, model.A.shape[1]), zeros(model.A, model.A.shape[0]))

    def include(self, x: Vector, y: Vector) -> None:
        """Add one point."""
        self.x += x
        self.y += y
        self.count += 1

    def add(self, other: Averages) -> None:
        """Take over what another has summed."""
        self.x += other.x
        self.y += other.y
        self.count += other.count

    def clear(self) -> None:
        """Forget what was summed."""
        self.x[:], self.y[:], self.count = 0.0, 0.0, 0


def drawn_blocks(K: Any, n_blocks: int) -> int | None:
    """Return the K that the user asked for, or None where it is left to the method."""
    if isinstance(K, str) and K == "auto":
        return None
    if isinstance(K, bool) or not isinstance(K, (int, np.integer)):
        raise TypeError(f"blocks_per_iteration={shown(K)}: expected 'auto' or an integer from 1 to {n_blocks}")
    if not 1 <= K <= n_blocks:
        raise ValueError(
            f"blocks_per_iteration={shown(K)}: expected 'auto' or an integer from 1 to {n_blocks}, the blocks"
        )
    return int(K)


def all_blocks(model: Model, **others: Any) -> Report:
    """Return the report of a method that updates all blocks in every iteration, with other fields."""
    return Report(blocks_per_iteration=len(model.blocks), n_blocks=len(model.blocks), **others)


def positive_number(option: str, value: Any) -> None:
    """Raise where the value of an option is not a finite number above 0."""
    if not 0 < number(option, value) < np.inf:
        raise ValueError(f"{option}={value!r}: expected a finite number above 0")


class Affine(NamedTuple):
    """g*(y) = <b, y> + 1/2 sum weight y^2: an equality where the weights are 0, a squared loss where they are not."""

    b: Vector
    weight: Vector


def affine_gradient(g: Convex) -> Affine | None:
    """Return g* if its gradient is affine, so that a step on it is a linear system; None if it is not."""
    g_star = g.conjugate()
    if not isinstance(g_star, PiecewiseQuadratic):
        return None
    left, right, quadratic, lower, upper = g_star.contiguous()
    affine = np.array_equal(left, right) and np.all(np.isinf(lower) & np.isinf(upper))
    return Affine(left, quadratic) if affine else None


def gradient(model: Model, u: Vector) -> list[tuple[Vector, Vector | None]]:
    """Return the gradient of a smooth loss at u, as a dual candidate; none for another loss."""
    return [(model.g.subgradient(u), None)] if is_smooth(model.g) else []


def current_and_average(
    model: Model, x: Vector, u: Vector, y: Vector, averages: Averages, keep: bool = False
) -> Candidates:
    """Return the current point, its averages, which begin anew unless kept, and the gradient of a smooth loss at u."""
    primal: list[tuple[Vector, Vector | None]] = [(x.copy(), u.copy())]
    dual: list[tuple[Vector, Vector | None]] = [(y.copy(), None), *gradient(model, u)]
    if averages.count:
        primal.append((averages.x / averages.count, None))
        dual.append((averages.y / averages.count, None))
    if not keep:
        averages.clear()
    return Candidates(primal, dual)
