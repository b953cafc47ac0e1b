"""The penalties f: what may stand on x.

Each class states its formula; the mathematics lives in ``coordinate.py`` (all sums over coordinates), ``group.py`` and
``nuclear.py``.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy

import numpy as np
from numpy.typing import ArrayLike

from ._base import Blocks, Function, Term, Vector
from .checks import bounds, finite, nonnegative, scalar
from .coordinate import Coordinate, everywhere, spread
from .group import GroupNorms, Groups, partition
from .nuclear import NuclearNorm


class Penalty(Term):
    """A term on x. ``f + g`` adds a linear term, a box or a sign to it, where its class accepts one."""

    accepts: frozenset[str] = frozenset({"linear", "box", "sign"})
    """Which kinds of ``Piece`` may be added without losing the closed form of the prox."""

    def __add__(self, other: object) -> Penalty:
        return add(self, other)

    def __radd__(self, other: object) -> Penalty:
        return add(other, self)


class Piece(Penalty):
    """A linear term or an indicator of bounds: what can be added to other penalties."""

    kind: str

    def bind(self, shape: tuple[int, ...]) -> Function:
        return Zero().bind(shape).plus(*self.pieces(shape))

    @abstractmethod
    def pieces(self, shape: tuple[int, ...]) -> tuple[Vector, Vector, Vector]:
        """Return linear, lower and upper, spread over a variable of that shape."""


class Linear(Piece):
    """<c, x>.

    Parameters
    ----------
    c : scalar or one value an entry of x.
    """

    kind = "linear"

    def __init__(self, c: ArrayLike) -> None:
        self.c = finite("c", c)

    def linear(self, shape: tuple[int, ...]) -> Vector:
        return spread("c", self.c, shape)

    def pieces(self, shape: tuple[int, ...]) -> tuple[Vector, Vector, Vector]:
        c = self.linear(shape)
        return c, everywhere(-np.inf, c.size), everywhere(np.inf, c.size)


class Box(Piece):
    """0 where lower <= x <= upper, infinite elsewhere.

    Parameters
    ----------
    lower, upper : scalars or one value an entry of x; may be infinite.
    """

    kind = "box"

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        self.lower, self.upper = bounds(lower, upper)

    def pieces(self, shape: tuple[int, ...]) -> tuple[Vector, Vector, Vector]:
        lower, upper = spread("lower", self.lower, shape), spread("upper", self.upper, shape)
        return everywhere(0.0, lower.size), lower, upper


class NonNegative(Piece):
    """0 where x >= 0, infinite elsewhere."""

    kind = "sign"

    def pieces(self, shape: tuple[int, ...]) -> tuple[Vector, Vector, Vector]:
        zero = everywhere(0.0, int(np.prod(shape)))
        return zero, zero, everywhere(np.inf, zero.size)


class Zero(Penalty):
    """0: an unpenalised variable."""

    def bind(self, shape: tuple[int, ...]) -> Function:
        return _coordinate(shape)


class Regulariser(Penalty):
    """A penalty of strength alpha."""

    alpha: float

    def has_alpha(self) -> bool:
        return True

    def with_alpha(self, alpha: float) -> Regulariser:
        other = copy(self)
        other.alpha = scalar("alpha", alpha)
        return other


class L1(Regulariser):
    """alpha * sum_d weights_d |x_d|.

    Parameters
    ----------
    alpha : at least 0.
    weights : one value a column, at least 0; all 1 by default. Weight 0 leaves a column unpenalised.
    """

    def __init__(self, alpha: float, weights: ArrayLike | None = None) -> None:
        self.alpha = scalar("alpha", alpha)
        self.weights = None if weights is None else nonnegative("weights", weights)

    def bind(self, shape: tuple[int, ...]) -> Function:
        slope = self.alpha if self.weights is None else self.alpha * spread("weights", self.weights, shape)
        return _coordinate(shape, left=-slope, right=slope)


class SquaredL2(Regulariser):
    """alpha / 2 * ||x||^2."""

    def __init__(self, alpha: float) -> None:
        self.alpha = scalar("alpha", alpha)

    def bind(self, shape: tuple[int, ...]) -> Function:
        return _coordinate(shape, quadratic=self.alpha)


class ElasticNet(Regulariser):
    """alpha * (l1_ratio ||x||_1 + (1 - l1_ratio) / 2 ||x||^2)."""

    def __init__(self, alpha: float, l1_ratio: float) -> None:
        self.alpha = scalar("alpha", alpha)
        self.l1_ratio = scalar("l1_ratio", l1_ratio, high=1.0)

    def bind(self, shape: tuple[int, ...]) -> Function:
        slope = self.alpha * self.l1_ratio
        return _coordinate(shape, left=-slope, right=slope, quadratic=self.alpha * (1.0 - self.l1_ratio))


class SparseGroup(Regulariser):
    """alpha * (l1_ratio ||x||_1 + (1 - l1_ratio) * sum_g weights_g ||x_g||_2).

    Parameters
    ----------
    alpha : at least 0.
    groups : a size (contiguous groups of it), a list of sizes (contiguous), or a list of index lists that partition
        the columns. Under a matrix variable the groups hold whole rows of it.
    l1_ratio : between 0 and 1.
    weights : one value a group, at least 0; the square root of its number of columns by default.
    """

    accepts = frozenset({"linear", "sign"})

    def __init__(self, alpha: float, groups: Groups, l1_ratio: float, weights: ArrayLike | None = None) -> None:
        self.alpha = scalar("alpha", alpha)
        self.groups = groups
        self.l1_ratio = scalar("l1_ratio", l1_ratio, high=1.0)
        self.weights = None if weights is None else nonnegative("weights", weights)

    def bind(self, shape: tuple[int, ...]) -> Function:
        tasks = int(np.prod(shape[1:], dtype=int))
        columns = partition(self.groups, shape[0])
        weights = np.sqrt(columns.sizes) if self.weights is None else self.weights
        if weights.shape != (len(columns),):
            raise ValueError(f"weights has shape {weights.shape}: expected one value for each of {len(columns)} groups")
        entries = Blocks((columns.order[:, None] * tasks + np.arange(tasks)).ravel(), columns.start * tasks)
        slope = np.full(entries.order.size, self.alpha * self.l1_ratio)
        return GroupNorms(entries, self.alpha * (1.0 - self.l1_ratio) * weights, -slope, slope)


class GroupL2(SparseGroup):
    """alpha * sum_g weights_g ||x_g||_2; ``groups`` and ``weights`` as in ``SparseGroup``."""

    def __init__(self, alpha: float, groups: Groups, weights: ArrayLike | None = None) -> None:
        super().__init__(alpha, groups, 0.0, weights)


class Nuclear(Regulariser):
    """alpha * the sum of the singular values of x, a matrix of the given shape. Its prox takes one step for all."""

    accepts = frozenset({"linear"})

    def __init__(self, alpha: float, shape: tuple[int, int]) -> None:
        self.alpha = scalar("alpha", alpha)
        sizes = np.asarray(shape)
        if sizes.shape != (2,) or sizes.dtype.kind not in "iu" or sizes.min() < 1:
            raise ValueError(f"shape={shape!r} is not that of a matrix: expected two positive integers")
        self.matrix = (int(sizes[0]), int(sizes[1]))
        self.shape = self.matrix

    def bind(self, shape: tuple[int, ...]) -> Function:
        size = int(np.prod(shape))
        if size != self.matrix[0] * self.matrix[1] or (len(shape) == 2 and shape != self.matrix):
            raise ValueError(f"Nuclear has shape {self.matrix}, but its variable has shape {shape}")
        return NuclearNorm(self.alpha, self.matrix)


class Sum(Penalty):
    """A penalty with linear terms and bounds added to it."""

    def __init__(self, base: Term, pieces: tuple[Piece, ...]) -> None:
        self.base = base
        self.added = pieces
        self.shape = base.shape

    def has_alpha(self) -> bool:
        return self.base.has_alpha()

    def with_alpha(self, alpha: float) -> Sum:
        return Sum(self.base.with_alpha(alpha), self.added)

    def linear(self, shape: tuple[int, ...]) -> Vector:
        return self.base.linear(shape) + sum(piece.linear(shape) for piece in self.added)

    def bind(self, shape: tuple[int, ...]) -> Function:
        function = self.base.bind(shape)
        for piece in self.added:
            function = function.plus(*piece.pieces(shape))
        return function


def add(first: object, second: object) -> Penalty:
    """Return f + g where it keeps a closed-form prox, and raise a TypeError that says so elsewhere."""
    from .custom import as_term

    bases: list[Term] = []
    pieces: list[Piece] = []
    for term in (first, second):
        match term:
            case Sum():
                bases += [term.base]
                pieces += term.added
            case Piece():
                pieces += [term]
            case _:
                bases += [as_term(term, "a term of the sum")]
    bases = [base for base in bases if not isinstance(base, Zero)] or [Zero()]
    names = " and ".join(sorted({type(base).__name__ for base in bases}))
    if len(bases) > 1:
        raise TypeError(
            f"{names} cannot be added: their sum has no prox in closed form here. Linear can be added to anything, "
            "Box and NonNegative to coordinatewise penalties, NonNegative to group penalties. ElasticNet is L1 and "
            "SquaredL2 together, SparseGroup L1 and GroupL2"
        )
    accepts = bases[0].accepts if isinstance(bases[0], Penalty) else frozenset({"linear"})
    for piece in pieces:
        if piece.kind not in accepts:
            raise TypeError(f"{type(piece).__name__} cannot be added to {names}: the prox has no closed form")
    return Sum(bases[0], tuple(pieces))


def _coordinate(
    shape: tuple[int, ...],
    left: ArrayLike = 0.0,
    right: ArrayLike = 0.0,
    quadratic: float = 0.0,
) -> Coordinate:
    size = int(np.prod(shape))
    return Coordinate(*(everywhere(value, size) for value in (left, right, quadratic, -np.inf, np.inf)))
