"""The contract of a method: its state, its first step, its next step, and the candidates that it offers.

A method does not print, measure time, count against a limit or decide when to stop; ``engine/session.py`` does. Its
options are the fields of its class. A layer, which wraps a method, is itself a method.
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
    """Where and how a method starts: the arguments of ``solve`` that every method gets.

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
        Which rows and columns of the given problem this one has; None for all of them.
    tol : float
        The error at which the run will end, so that no part of it is solved more accurately than needed.
    seconds : float
        Time limit of the run, for methods that call another library which has to stop by then.
    exact : bool
        Whether candidates at that error need products with A itself, as a result does. A layer that solves a sequence
        of problems does not need them.
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
    exact: bool = True

    def image(self, model: Model) -> tuple[Vector, float]:
        """Return Ax, and the passes that it took."""
        if self.u is not None:
            return self.u.copy(), 0.0
        return model.A.matvec(self.x), 0.5 * np.count_nonzero(self.x) / self.x.size


@dataclass(kw_only=True)
class State:
    """The state that every method has: its point, and the work done so far in passes.

    A state is data, and a checkpoint holds all of it: numbers, arrays, and classes made of them that are marked
    ``stored``. What is not data, such as a kernel, a packed matrix or a factorisation, comes from a function marked
    ``derived``. A change of the fields of a state needs a new FORMAT in ``checkpoints/file.py``.

    A method sets ``wants_certificate`` if its point is worth a certificate before the next one is due. A method that
    cannot continue sets ``ended`` to the reason. ``goal`` is the factor by which the error still has to fall; a layer
    that knows it sets it. ``expected`` is how many passes the method expects to need from here, if it can tell.
    ``notes`` are sentences for the history on decisions during the run. ``choices`` is what was chosen at the
    beginning; ``report`` adds what has been counted since.
    """

    x: Vector
    y: Vector
    passes: float = 0.0
    wants_certificate: bool = False
    ended: str = ""
    goal: float = 0.01
    expected: float | None = None
    notes: list[str] = field(default_factory=list)
    choices: Report = field(default_factory=Report)

    def report(self) -> Report:
        """Return what was chosen and counted so far, for ``Result.settings``."""
        return self.choices

    def follow(self, inner: State, before: float) -> None:
        """Take over the point, the notes and the wishes of the method inside a layer, and count its work.

        ``before`` is the number of passes of the inner method up to which its work has been counted.
        """
        self.x, self.y, self.expected = inner.x, inner.y, inner.expected
        self.wants_certificate, inner.wants_certificate = inner.wants_certificate, False
        self.passes += inner.passes - before
        self.notes += inner.notes
        inner.notes = []

    def check(self) -> None:
        """Raise if the points or the draws of a state that was read from a file do not fit its problem."""
        model, sampling = (getattr(self, name, None) for name in ("model", "sampling"))
        if model is not None and (self.y.shape, self.x.shape) != tuple((size,) for size in model.A.shape):
            raise ValueError(
                f"points of the shapes {self.x.shape} and {self.y.shape} for an A of shape {model.A.shape}"
            )
        if sampling is not None and not 1 <= sampling.drawn <= sampling.n_blocks <= self.x.size + self.y.size:
            raise ValueError(f"draws of {sampling.drawn} of {sampling.n_blocks} blocks")


HUGE = 1e25
"""Iterates larger than this, relative to the largest plausible solution, have diverged. Without a solution iterates
grow only linearly, and stay below it."""


def diverged(model: Model, x: Vector, y: Vector) -> bool:
    """Return whether a point is not finite, or too large to be near a solution of the problem."""
    if x @ x + y @ y < HUGE or _within(HUGE, x, y):  # saves the computation of the size of most problems
        return False
    return not _within(min(HUGE * model.size, SQUARABLE), x, y)


def _within(bound: float, x: Vector, y: Vector) -> bool:
    return all(v.min() > -bound and v.max() < bound for v in (x, y))


S = TypeVar("S", bound=State)


class Method(ABC, Generic[S]):
    """A method for min_x max_y f(x) + <y, Ax> - g*(y).

    A subclass has to define ``init``, ``advance`` and ``candidates``; everything else has a default. ``solve`` accepts
    an object of any subclass as its ``method``.
    """

    layers: tuple[str, ...] = ()
    """Layers that may be put around the method, innermost first."""

    @property
    def name(self) -> str:
        """The name in results and messages; the name of the class unless it sets another."""
        return type(self).__name__

    @property
    def draws(self) -> bool:
        """Whether an iteration updates some of the blocks, as many as ``blocks_per_iteration`` says."""
        return False

    @property
    def superlinear(self) -> bool:
        """Whether the error falls faster the smaller it is, so that a subproblem is best solved to its end at once."""
        return False

    @property
    def merges_rows(self) -> bool:
        """Whether equal rows may be merged before the method gets the problem, for speed."""
        return False

    @property
    def warmup_passes(self) -> float:
        """Passes before the first certificate, for methods that make most of their progress in the first passes."""
        return 0.0

    @property
    def expensive_steps(self) -> bool:
        """Whether a single step takes so long that the clock has to be checked after it."""
        return False

    @property
    def sparse_iterates(self) -> bool:
        """Whether the coordinates of x that are 0 at a solution become exactly 0 on the way to it."""
        return True

    @property
    def needs_float64(self) -> bool:
        """Whether the method needs the entries of A as they are, not rounded to float32."""
        return False

    def missing(self, model: Model) -> str | None:
        """Return what a problem lacks for the method with these options, or None if the method can treat it."""
        return None

    @abstractmethod
    def init(self, model: Model, start: Start) -> S:
        """Return the first state, with the strengths chosen and A in the order in which the kernels read it."""

    def extend(self, state: S, model: Model, start: Start) -> S:
        """Return the first state of a problem whose first blocks are those of ``state``, which is not used again."""
        return self.init(model, start)

    def change_loss(self, state: S, model: Model, start: Start) -> S:
        """Return the first state of a problem that has another loss than that of ``state``, which is not used again."""
        return self.init(model, start)

    @abstractmethod
    def advance(self, state: S, passes: float) -> S:
        """Return the state after about ``passes`` passes, at least one iteration; the given state may be reused."""

    @abstractmethod
    def candidates(self, state: S) -> Candidates:
        """Return the points that are worth a certificate."""

    def adapt(self, state: S, error: float) -> S:
        """Return the state to continue from after a certificate, given the error of the best pair so far.

        Here a method may change its plan, for example switch to an interior point.
        """
        return state

    def for_model(self, model: Model) -> Method[Any]:
        """Return the method without the layers that do not apply to a problem."""
        return self


@dataclass(frozen=True)
class Layer(Method[S]):
    """A method that wraps another one, with the name and the properties of the wrapped method."""

    method: Method[Any]
    options: ClassVar[tuple[str, ...]] = ()
    """Options of the layer besides the one that switches it on or off."""

    @classmethod
    def around(cls, method: Method[Any], forced: bool, options: Mapping[str, Any]) -> Layer[S]:
        """Return the layer around a method; ``forced`` if the user has set its option to True."""
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
    def sparse_iterates(self) -> bool:
        return self.method.sparse_iterates

    @property
    def needs_float64(self) -> bool:
        return self.method.needs_float64

    def missing(self, model: Model) -> str | None:
        return self.method.missing(model)


@stored
@dataclass
class Averages:
    """Sums of the iterates since the last certificate or restart."""

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
        """Add the sums of another object."""
        self.x += other.x
        self.y += other.y
        self.count += other.count

    def clear(self) -> None:
        """Set the sums to 0."""
        self.x[:], self.y[:], self.count = 0.0, 0.0, 0


def drawn_blocks(K: Any, n_blocks: int) -> int | None:
    """Return the K that the user has set, or None if the method chooses it."""
    if isinstance(K, str) and K == "auto":
        return None
    if isinstance(K, bool) or not isinstance(K, (int, np.integer)):
        raise TypeError(f"blocks_per_iteration={shown(K)}: expected 'auto' or an integer from 1 to {n_blocks}")
    if not 1 <= K <= n_blocks:
        raise ValueError(
            f"blocks_per_iteration={shown(K)}: expected 'auto' or an integer from 1 to {n_blocks}, the number of blocks"
        )
    return int(K)


def all_blocks(model: Model, **others: Any) -> Report:
    """Return the report of a method that updates all blocks in every iteration, with other fields."""
    return Report(blocks_per_iteration=len(model.blocks), n_blocks=len(model.blocks), **others)


def positive_number(option: str, value: Any) -> None:
    """Raise if the value of an option is not a finite number above 0."""
    if not 0 < number(option, value) < np.inf:
        raise ValueError(f"{option}={shown(value)}: expected a finite number above 0")


class Affine(NamedTuple):
    """g*(y) = <b, y> + 1/2 sum weight y^2: an equality in rows with weight 0, a squared loss in the others."""

    b: Vector
    weight: Vector


def affine_gradient(g: Convex) -> Affine | None:
    """Return g* if its gradient is affine, so that a step on it solves a linear system; otherwise None."""
    g_star = g.conjugate()
    if not isinstance(g_star, PiecewiseQuadratic):
        return None
    left, right, quadratic, lower, upper = g_star.contiguous()
    affine = np.array_equal(left, right) and np.all(np.isinf(lower) & np.isinf(upper))
    return Affine(left, quadratic) if affine else None


def gradient(model: Model, u: Vector) -> list[tuple[Vector, Vector | None]]:
    """Return the gradient of a smooth loss at u, as a list of one dual candidate; an empty list for another loss."""
    return [(model.g.subgradient(u), None)] if is_smooth(model.g) else []


def current_and_average(
    model: Model, x: Vector, u: Vector, y: Vector, averages: Averages, keep: bool = False
) -> Candidates:
    """Return the current point, the averages, and the gradient of a smooth loss at u.

    The sums of the averages are set to 0 afterwards, unless ``keep``.
    """
    primal: list[tuple[Vector, Vector | None]] = [(x.copy(), u.copy())]
    dual: list[tuple[Vector, Vector | None]] = [(y.copy(), None), *gradient(model, u)]
    if averages.count:
        primal.append((averages.x / averages.count, None))
        dual.append((averages.y / averages.count, None))
    if not keep:
        averages.clear()
    return Candidates(primal, dual)
