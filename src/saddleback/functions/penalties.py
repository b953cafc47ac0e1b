"""The penalties f on x.

Each class states its formula; the mathematics is in ``piecewise.py`` (all sums over coordinates), ``group.py``,
``isotonic.py``, ``linf.py``, ``nuclear.py``, ``ordered.py``, ``slope.py`` and ``total_variation.py``.
"""

from __future__ import annotations

from abc import abstractmethod
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..common.arrays import Blocks, Vector, constant, map_constants
from ..common.cached import twin
from ..common.checks import LARGEST_PRODUCT, bounds, finite, multiple, nonnegative, positive_multiple, scalar
from .calculus import plus
from .contract import Convex
from .group import GroupNorms, Groups, checked_weights, partition, partition_of_entries
from .losses import Loss
from .normal_form import PiecewiseParameters
from .nuclear import NuclearNorm
from .piecewise import PiecewiseQuadratic
from .terms import Term, broadcast_parameter
from .user import as_term

if TYPE_CHECKING:
    from .concave import Bend


class Penalty(Term):
    """A term on x. ``f + g`` is a sum whose prox has a closed form, ``2 * f`` and ``f / n`` are multiples."""

    accepts: frozenset[str] = frozenset({"linear"})
    """Which kinds of ``Piece`` may be added to a penalty that is not one itself.

    Any function accepts a linear term. For other kinds its ``Convex`` must have the trait ``Addable``.
    """

    def __add__(self, other: object) -> Penalty:
        return add(self, other)

    def __radd__(self, other: object) -> Penalty:
        is_start = isinstance(other, int) and other == 0  # the start of sum(penalties)
        return self if is_start else add(other, self)

    def __sub__(self, other: Any) -> Penalty:
        return add(self, -1.0 * other)


class Piece(Penalty):
    """A sum over coordinates, of the family in ``piecewise.py``, which can be added to other penalties."""

    kind: str
    """What it adds: "nothing", "linear", "sign" (x >= 0), "absolute" (the same kink in each coordinate), "kinks" (any
    kinks), "box" (other bounds), "square" (the same square in each coordinate) or "squares" (any squares).

    If several apply, the last of them. A penalty that couples coordinates names the kinds that it ``accepts``; sums
    over coordinates can always be added to each other.
    """

    def bind(self, shape: tuple[int, ...]) -> Convex:
        return PiecewiseQuadratic(*self.slopes(shape))

    @abstractmethod
    def slopes(self, shape: tuple[int, ...]) -> PiecewiseParameters:
        """Return the parameters, with one value per entry of a variable of that shape."""


class Linear(Piece):
    """<c, x>.

    Parameters
    ----------
    c : array-like
        One value per entry of x, or a single value for all.
    """

    kind = "linear"

    def __init__(self, c: ArrayLike) -> None:
        self.c = finite("c", c, LARGEST_PRODUCT)

    def linear(self, shape: tuple[int, ...]) -> Vector:
        return broadcast_parameter("c", self.c, shape)

    def slopes(self, shape: tuple[int, ...]) -> PiecewiseParameters:
        c = self.linear(shape)
        return _slopes(shape, left=c, right=c)

    def times(self, factor: float) -> Linear:
        return Linear(factor * self.c)


class Box(Piece):
    """0 if lower <= x <= upper, infinite otherwise.

    Parameters
    ----------
    lower, upper : array-like
        One bound per entry of x, or a single bound for all. They may be infinite.
    """

    kind = "box"

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        self.lower, self.upper = bounds(lower, upper)

    def slopes(self, shape: tuple[int, ...]) -> PiecewiseParameters:
        return _slopes(
            shape,
            lower=broadcast_parameter("lower", self.lower, shape),
            upper=broadcast_parameter("upper", self.upper, shape),
        )

    def times(self, factor: float) -> Box:
        positive_multiple(self.name, factor)
        return self


class NonNegative(Piece):
    """0 if x >= 0, infinite otherwise."""

    kind = "sign"

    def slopes(self, shape: tuple[int, ...]) -> PiecewiseParameters:
        return _slopes(shape, lower=0.0)

    def times(self, factor: float) -> NonNegative:
        positive_multiple(self.name, factor)
        return self


class Zero(Piece):
    """0: an unpenalised variable."""

    kind = "nothing"

    def slopes(self, shape: tuple[int, ...]) -> PiecewiseParameters:
        return _slopes(shape)

    def times(self, factor: float) -> Zero:
        multiple(self.name, factor)
        return self


class Regulariser(Penalty):
    """A penalty with a weight alpha."""

    alpha: float

    def has_alpha(self) -> bool:
        return True

    def with_alpha(self, alpha: float) -> Regulariser:
        other = twin(self)
        other.alpha = scalar("alpha", alpha, largest=LARGEST_PRODUCT)
        return other

    def times(self, factor: float) -> Regulariser:
        return self.with_alpha(multiple(self.name, factor) * self.alpha)


class L1(Regulariser, Piece):
    """alpha * sum_d weights_d |x_d|.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    weights : array-like, optional
        One value per column, at least 0; all 1 by default. A column of weight 0 has no penalty.
    """

    def __init__(self, alpha: float, weights: ArrayLike | None = None) -> None:
        self.alpha = scalar("alpha", alpha, largest=LARGEST_PRODUCT)
        self.weights = None if weights is None else nonnegative("weights", weights)
        self.kind = "absolute" if weights is None else "kinks"

    def slopes(self, shape: tuple[int, ...]) -> PiecewiseParameters:
        slope = self.alpha if self.weights is None else self.alpha * broadcast_parameter("weights", self.weights, shape)
        return _slopes(shape, left=-slope, right=slope)


class SquaredL2(Regulariser, Piece):
    """alpha / 2 * ||x||^2.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    """

    kind = "square"

    def __init__(self, alpha: float) -> None:
        self.alpha = scalar("alpha", alpha, largest=LARGEST_PRODUCT)

    def slopes(self, shape: tuple[int, ...]) -> PiecewiseParameters:
        return _slopes(shape, quadratic=self.alpha)


class ElasticNet(Regulariser, Piece):
    """alpha * sum_d weights_d (l1_ratio |x_d| + (1 - l1_ratio) / 2 x_d^2).

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    l1_ratio : float
        Share of the L1 norm, from 0 to 1.
    weights : array-like, optional
        One value per column, at least 0; all 1 by default. It multiplies the absolute value and the square. A column of
        weight 0 has no penalty.
    """

    def __init__(self, alpha: float, l1_ratio: float, weights: ArrayLike | None = None) -> None:
        self.alpha = scalar("alpha", alpha, largest=LARGEST_PRODUCT)
        self.l1_ratio = scalar("l1_ratio", l1_ratio, high=1.0)
        self.weights = None if weights is None else nonnegative("weights", weights)
        self.kind = "square" if weights is None else "squares"

    def slopes(self, shape: tuple[int, ...]) -> PiecewiseParameters:
        each = self.alpha if self.weights is None else self.alpha * broadcast_parameter("weights", self.weights, shape)
        slope = each * self.l1_ratio
        return _slopes(shape, left=-slope, right=slope, quadratic=each * (1.0 - self.l1_ratio))


class _OverGroups(Regulariser):
    """Norms of groups, and a penalty on single entries, in the proportion ``l1_ratio``."""

    accepts = frozenset({"linear", "sign", "absolute", "kinks", "square", "squares"})

    def __init__(self, alpha: float, groups: Groups, l1_ratio: float, weights: ArrayLike | None = None) -> None:
        self.alpha = scalar("alpha", alpha, largest=LARGEST_PRODUCT)
        self.groups = groups
        self.l1_ratio = scalar("l1_ratio", l1_ratio, high=1.0)
        self.weights = None if weights is None else nonnegative("weights", weights)

    def weights_of(self, columns: Blocks) -> Vector:
        """Return the weights of the groups: by default 1 for gradients, and the square root of the size for others."""
        if self.weights is not None:
            return self.weights
        return constant(1.0, len(columns)) if isinstance(self.groups, Blocks) else np.sqrt(columns.sizes)

    def _entries_and_weights(self, shape: tuple[int, ...]) -> tuple[Blocks, Vector]:
        """Return the groups of the entries of a variable of that shape, and their weights."""
        columns = partition(self.groups, shape[0])
        return partition_of_entries(columns, shape), checked_weights(self.weights_of(columns), columns)


class SparseGroup(_OverGroups):
    """alpha * (l1_ratio ||x||_1 + (1 - l1_ratio) * sum_g weights_g ||x_g||_2).

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    groups : int, list of int, list of lists of int, or groups of Differences
        A size (consecutive groups of that size), a list of sizes (consecutive groups), a list of index lists that
        partition the columns, or ``Differences.groups``. If x is a matrix, a group holds whole rows of it.
    l1_ratio : float
        Share of the L1 norm, from 0 to 1.
    weights : array-like, optional
        One value per group, at least 0. By default, the square root of its number of columns, and 1 for the groups of
        Differences.
    """

    def bind(self, shape: tuple[int, ...]) -> Convex:
        entries, weights = self._entries_and_weights(shape)
        size, slope, scale = int(entries.start[-1]), self.alpha * self.l1_ratio, self.alpha * (1.0 - self.l1_ratio)
        norms = map_constants(lambda weight: scale * weight, weights)
        return GroupNorms(entries, norms, constant(-slope, size), constant(slope, size))


class GroupElasticNet(_OverGroups):
    """alpha * sum_g weights_g (l1_ratio ||x_g||_2 + (1 - l1_ratio) / 2 ||x_g||^2).

    The weights multiply the norm and the square, as in ``ElasticNet``. This is the penalty of adelie.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    groups : int, list of int, list of lists of int, or groups of Differences
        As in ``SparseGroup``.
    l1_ratio : float
        Share of the norms, from 0 to 1.
    weights : array-like, optional
        One value per group, at least 0. By default, the square root of its number of columns, and 1 for the groups of
        Differences. A group of weight 0 has no penalty.
    """

    def bind(self, shape: tuple[int, ...]) -> Convex:
        entries, weights = self._entries_and_weights(shape)
        none = constant(0.0, int(entries.start[-1]))
        squares = self.alpha * (1.0 - self.l1_ratio) * entries.spread(weights)
        return GroupNorms(entries, self.alpha * self.l1_ratio * weights, none, none, quadratic=squares)


class GroupL2(SparseGroup):
    """alpha * sum_g weights_g ||x_g||_2.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    groups : int, list of int, list of lists of int, or groups of Differences
        A size (consecutive groups of that size), a list of sizes (consecutive groups), a list of index lists that
        partition the columns, or ``Differences.groups``. If x is a matrix, a group holds whole rows of it.
    weights : array-like, optional
        One value per group, at least 0. By default, the square root of its number of columns, and 1 for the groups of
        Differences.
    """

    def __init__(self, alpha: float, groups: Groups, weights: ArrayLike | None = None) -> None:
        super().__init__(alpha, groups, 0.0, weights)


class Nuclear(Regulariser):
    """alpha * the sum of the singular values of a matrix x.

    Its prox has a single step for all entries.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    shape : tuple of int
        Rows and columns of x.
    """

    def __init__(self, alpha: float, shape: tuple[int, int]) -> None:
        self.alpha = scalar("alpha", alpha, largest=LARGEST_PRODUCT)
        sizes = np.asarray(shape)
        if sizes.shape != (2,) or sizes.dtype.kind not in "iu" or sizes.min() < 1:
            raise ValueError(f"shape={shape!r} is not that of a matrix: expected two positive integers")
        self.matrix = (int(sizes[0]), int(sizes[1]))
        self.shape = self.matrix

    def bind(self, shape: tuple[int, ...]) -> Convex:
        size = int(np.prod(shape))
        if size != self.matrix[0] * self.matrix[1] or (len(shape) == 2 and shape != self.matrix):
            raise ValueError(f"Nuclear has shape {self.matrix}, but its variable has shape {shape}")
        return NuclearNorm(self.alpha, self.matrix)


class Sum(Penalty):
    """A sum of penalties, at most one of which is not a ``Piece``.

    Its alpha is the sum of the alphas of its terms. Another alpha keeps their proportions, as in an elastic net.
    """

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms
        self.rounds = min((term.rounds for term in terms if term.rounds is not None), default=None)
        self.shape = next((term.shape for term in terms if term.shape is not None), None)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.terms))

    def has_alpha(self) -> bool:
        return any(term.has_alpha() for term in self.terms)

    def with_alpha(self, alpha: float) -> Sum:
        own = [getattr(term, "alpha", 0.0) if term.has_alpha() else 0.0 for term in self.terms]
        if not any(own):  # all alphas are 0: use equal proportions
            own = [float(term.has_alpha()) for term in self.terms]
        total = sum(own)
        shares = zip(self.terms, own, strict=True)
        return Sum(tuple(term.with_alpha(alpha * (part / total)) if total else term for term, part in shares))

    def times(self, factor: float) -> Sum:
        return Sum(tuple(term.times(factor) for term in self.terms))

    @property
    def convex(self) -> bool:
        return all(term.convex for term in self.terms)

    def majoriser(self, x: ArrayLike | None = None) -> Sum:
        return Sum(tuple(term.majoriser(x) for term in self.terms))

    def below_majoriser(self, x: Vector, v: Vector) -> float:
        return sum(term.below_majoriser(x, v) for term in self.terms)

    def steeper(self, factor: float) -> Sum:
        return Sum(tuple(term.steeper(factor) for term in self.terms))

    def bends(self, shape: tuple[int, ...]) -> list[Bend]:
        return [bend for term in self.terms for bend in term.bends(shape)]

    def value(self, x: ArrayLike) -> float:
        return super().value(x) if self.convex else sum(term.value(x) for term in self.terms)

    def linear(self, shape: tuple[int, ...]) -> Vector:
        return sum((term.linear(shape) for term in self.terms), constant(0.0, int(np.prod(shape))))

    def bind(self, shape: tuple[int, ...]) -> Convex:
        first = next((term for term in self.terms if not isinstance(term, Piece)), Zero())
        function = first.bind(shape)
        for term in self.terms:
            if isinstance(term, Piece):
                function = plus(function, term.slopes(shape))
        return function


def add(first: object, second: object) -> Penalty:
    """Return f + g, or raise a TypeError that says why this sum is not supported."""
    terms: list[Term] = []
    for term in (first, second):
        terms += term.terms if isinstance(term, Sum) else [as_term(term, "a term of the sum")]
    for term in terms:
        if isinstance(term, Loss):
            raise TypeError(
                f"{term.name} is a loss, a function of Ax, and cannot be added to penalties, which are functions of x: "
                "Problem(penalty, A, loss) adds the two"
            )
    others = [term for term in terms if not isinstance(term, Piece)]
    if len(others) > 1:
        raise TypeError(
            f"{' and '.join(term.name for term in others)} cannot be added: only one term of a sum may couple "
            "coordinates, as GroupL2, Nuclear, LInf, SLOPE, Simplex, TotalVariation1D and user-defined objects do"
        )
    for base in others:
        accepts = base.accepts if isinstance(base, Penalty) else frozenset({"linear"})
        for term in terms:
            if isinstance(term, Piece) and term.kind not in accepts | {"nothing"}:
                named = accepts - {"absolute"} if "kinks" in accepts else accepts
                *first_ones, last = (ADDED_TO_OTHERS[kind] for kind in sorted(named))
                possible = (
                    f"{', '.join(first_ones)} or {last}, the only penalties" if first_ones else f"{last}, the only one"
                )
                raise TypeError(f"{term.name} cannot be added to {base.name}: expected {possible} that can be")
    return Sum(tuple(terms))


ADDED_TO_OTHERS = {
    "absolute": "L1 without weights",
    "box": "Box",
    "kinks": "L1",
    "linear": "Linear",
    "sign": "NonNegative",
    "square": "SquaredL2",
    "squares": "ElasticNet",
}
"""How a message names each kind of ``Piece`` that a penalty accepts."""


def _slopes(
    shape: tuple[int, ...],
    left: ArrayLike = 0.0,
    right: ArrayLike = 0.0,
    quadratic: ArrayLike = 0.0,
    lower: ArrayLike = -np.inf,
    upper: ArrayLike = np.inf,
) -> PiecewiseParameters:
    size = prod(shape)
    return PiecewiseParameters(
        *(
            constant(value, size) if isinstance(value, float) else np.asarray(value)
            for value in (left, right, quadratic, lower, upper)
        )
    )
