r"""Ordered sums: functions of the sorted residuals, and the sets that they support.

With scores :math:`c_1 \le \dots \le c_m` and the residuals r = u - b in the same order, :math:`r_{(1)} \le \dots \le
r_{(m)}`,

.. math::

    g(u) = \sum_i c_i r_{(i)} = \max_{\pi} \sum_i c_{\pi(i)} r_i = \max_{y \in P(c)} \langle y, u - b \rangle,

where the permutahedron P(c) is the convex hull of all permutations of c (Rado, 1952):

.. math::

    P(c) = \{\, y : \sum_i y_i = \sum_i c_i, \text{ and the sum of the } k \text{ largest entries of } y \text{ is at
    most that of } c \text{ for all } k \,\}.

So g* is :math:`\langle b, y \rangle` on P(c), and the prox of g is ``sort_and_pool``. The simplex is the permutahedron
of (0, ..., 0, total).
"""

from __future__ import annotations

from abc import abstractmethod
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector, constant, here, length, multiple
from ..common.cached import cached_property
from ..common.checks import SQUARABLE, data, finite, integer, positive_multiple, scalar
from ..common.chunks import double
from ..common.rounded import TINY, UNIT, Rounded
from ..common.sums import Equations
from ..places.torch import device_of
from .conjugates import Ball, Conjugate
from .contract import ROUNDING, Convex, Ray
from .domains import Everywhere, PartlyFixed
from .excess import Contact, Gauge, Near, assumed_side, block_sums, collapsed, contact_of_norms, linear_bounds
from .losses import Loss
from .penalties import Penalty
from .sorting import largest_sums, ranked, shrink_sorted, tied
from .traits import InUnits, Kinked, Lipschitz, Movable, Scaled


class OrderedLoss(Loss):
    """scale * sum_i c_i r_(i), with the residuals r = u - b in increasing order and non-decreasing scores c."""

    def __init__(self, b: ArrayLike, scale: float) -> None:
        self.device = device_of(b)
        self.b = np.atleast_1d(data("b", b))
        self.shape = self.b.shape
        self._weigh(None, scale)

    @abstractmethod
    def scores_of(self, m: int) -> Vector:
        """Return c for m residuals, in non-decreasing order."""

    def bind(self, shape: tuple[int, ...]) -> SortedResiduals:
        self._fits(shape)
        return SortedResiduals(double(self.b.ravel()), self.scale * self.scores_of(self.b.size))


class OrderedSum(OrderedLoss):
    """sum_i scores_i r_(i), with the residuals r = u - b in increasing order: an ordered weighted sum.

    The scores do not fall, so that it is convex. TopK, CVaR, Wilcoxon and Gini are such sums.

    Parameters
    ----------
    b : array-like
        Target of every row.
    scores : array-like
        One value per row, non-decreasing: the last belongs to the largest residual.
    scale : float, default 1.0
        Factor of the whole loss.

    Examples
    --------
    >>> import saddleback as sb
    >>> sb.OrderedSum([0.0, 0.0, 0.0], scores=[-1.0, 0.0, 1.0]).value([3.0, -5.0, 1.0])  # the range
    8.0
    """

    def __init__(self, b: ArrayLike, scores: ArrayLike, scale: float = 1.0) -> None:
        super().__init__(b, scale)
        self.scores = finite("scores", scores).ravel()
        if self.scores.size != self.b.size:
            raise ValueError(f"scores has {self.scores.size} values: expected one for each of {self.b.size} residuals")
        falling = np.flatnonzero(np.diff(self.scores) < 0)
        if falling.size:
            raise ValueError(
                f"scores falls at index {falling[0] + 1}: expected non-decreasing scores, the last for the largest "
                "residual, without which the loss is not convex"
            )

    def scores_of(self, m: int) -> Vector:
        return self.scores


class TopK(OrderedLoss):
    """The sum of the k largest residuals u - b.

    The residuals have signs: for the largest ones in size, give A and -A, and b and -b, one above the other.

    Parameters
    ----------
    b : array-like
        Target of every row.
    k : int
        Number of residuals in the sum, from 1 to the number of rows.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / k for a mean.

    Examples
    --------
    >>> import saddleback as sb
    >>> sb.TopK([0.0, 0.0, 0.0], k=2).value([3.0, -5.0, 1.0])
    4.0
    """

    def __init__(self, b: ArrayLike, k: int, scale: float = 1.0) -> None:
        super().__init__(b, scale)
        self.k = integer("k", k)
        if self.k > self.b.size:
            raise ValueError(f"k={k} is more than the {self.b.size} residuals: expected an integer up to their number")

    def scores_of(self, m: int) -> Vector:
        return np.repeat([0.0, 1.0], [m - self.k, self.k])


class CVaR(OrderedLoss):
    """The conditional value at risk of the residuals u - b: the mean of their largest (1 - level) share.

    Large residuals are the bad ones, so that for a portfolio u are the losses: A = -returns and b = 0. If
    (1 - level) m is not an integer, the last of the m residuals that count does so with the fraction that is left:
    this is min_t t + sum_i max(r_i - t, 0) / ((1 - level) m) (Rockafellar and Uryasev, 2000).

    Parameters
    ----------
    b : array-like
        Target of every row.
    level : float, default 0.95
        At least 0, where it is the mean of all residuals, and less than 1.
    scale : float, default 1.0
        Factor of the whole loss.

    Examples
    --------
    >>> import saddleback as sb
    >>> sb.CVaR([0.0, 0.0, 0.0, 0.0], level=0.5).value([1.0, 5.0, 3.0, 2.0])
    4.0
    """

    def __init__(self, b: ArrayLike, level: float = 0.95, scale: float = 1.0) -> None:
        super().__init__(b, scale)
        self.level = scalar("level", level, high=1.0)
        if self.level == 1.0:
            raise ValueError("level=1 leaves no residual: expected a number below 1, or TopK(b, 1) for the largest one")

    def scores_of(self, m: int) -> Vector:
        share = (1.0 - self.level) * m
        return np.clip(share - np.arange(m - 1, -1, -1.0), 0.0, 1.0) / share


class Wilcoxon(OrderedLoss):
    """Jaeckel's dispersion of the residuals r = u - b with Wilcoxon scores, for rank regression.

    It is sum_i a_i r_(i) with a_i = sqrt(12) (i / (m + 1) - 1/2), which is sqrt(3) / (m + 1) times the sum of
    abs(r_i - r_j) over all pairs i < j. It does not depend on an intercept: estimate that from the residuals, as their
    median, say.

    Parameters
    ----------
    b : array-like
        Target of every row.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(self, b: ArrayLike, scale: float = 1.0) -> None:
        super().__init__(b, scale)

    def scores_of(self, m: int) -> Vector:
        return sqrt(3.0) / (m + 1) * _pair_counts(m)


class Gini(OrderedLoss):
    """Gini's mean difference of the residuals r = u - b: the mean of abs(r_i - r_j) over all pairs i < j.

    It is the sum of 2 (2 i - m - 1) / (m (m - 1)) r_(i) over the m residuals; 0 for a single one.

    Parameters
    ----------
    b : array-like
        Target of every row.
    scale : float, default 1.0
        Factor of the whole loss.
    """

    def __init__(self, b: ArrayLike, scale: float = 1.0) -> None:
        super().__init__(b, scale)

    def scores_of(self, m: int) -> Vector:
        return 2.0 / max(m * (m - 1.0), 1.0) * _pair_counts(m)


def _pair_counts(m: int) -> Vector:
    """Return 2 i - m - 1: in how many of its pairs an entry is the larger one, less those where it is the smaller."""
    return np.arange(1.0 - m, m, 2.0)


class Simplex(Penalty):
    """0 if x >= 0 and sum x = total, infinite otherwise.

    Its prox has a single step for all entries.

    Parameters
    ----------
    total : float, default 1.0
        The sum of x, at least 0.

    Examples
    --------
    >>> import saddleback as sb
    >>> sb.Simplex().prox([0.75, 0.5, -1.0], 1.0)
    array([0.625, 0.375, 0.   ])
    """

    def __init__(self, total: float = 1.0) -> None:
        self.total = scalar("total", total, largest=SQUARABLE)

    def times(self, factor: float) -> Simplex:
        positive_multiple(self.name, factor)
        return self

    def bind(self, shape: tuple[int, ...]) -> LinearOnPermutahedron:
        size = int(np.prod(shape))
        return SortedResiduals(constant(0.0, size), np.append(np.zeros(size - 1), self.total)).conjugate()


class SortedResiduals(Convex, Lipschitz, Kinked, Scaled, InUnits, Movable):
    """The function g at the top of this module.

    Parameters
    ----------
    b : the target.
    scores : c, in non-decreasing order, on the host.
    place : puts the results of sorts, which are computed on the host, where the vectors are.
    """

    domain = Everywhere()
    diagonal_steps = False

    def __init__(self, b: Vector, scores: Vector, place: ToDevice = here) -> None:
        self.b = b
        self.scores = scores
        self.place = place

    def blocks(self) -> Blocks:
        return Blocks.single(self.b.size)

    def moved(self, place: ToDevice) -> SortedResiduals:
        return SortedResiduals(place(self.b), self.scores, place)

    def in_units(self, unit: Vector) -> SortedResiduals:
        return SortedResiduals(self.b / unit, self.scores * float(unit[0]), self.place)

    def _terms(self, r: Vector) -> Vector:
        return self.scores * np.sort(np.asarray(r))

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        return float(np.sum(self._terms(multiple(x, factor) - self.b)))

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        result: Vector = self.b + self.place(shrink_sorted(v - self.b, float(np.max(step)) * self.scores, False))
        return result

    def subgradient(self, x: Vector) -> Vector:
        slope: Vector = self.place(ranked(self.scores, x - self.b))
        return slope

    def subgradient_scale(self) -> float:
        return length(self.scores) / float(np.sqrt(self.scores.size))

    def rise(self, distance: float) -> float:
        return length(self.scores) * distance

    def recession(self, direction: Vector) -> Ray:
        terms = self._terms(direction)
        return Ray(float(np.sum(terms)), np.zeros_like(direction), float(np.sum(np.abs(terms))))

    def conjugate(self) -> LinearOnPermutahedron:
        return LinearOnPermutahedron(self)

    def contact(self, point: Rounded, slope: Rounded) -> Contact:
        """Return the contact; that a slope is in the permutahedron, with the sum of the scores, is not proved."""
        off, y, one = collapsed(point.plus(Rounded.around(-self.b))), collapsed(slope), Blocks.single(self.b.size)
        terms = self._terms(off.value)
        (value,), additions = block_sums(one, terms)
        size, moved = (
            block_sums(one, np.sort(np.abs(self.scores)) * np.sort(each))[0] for each in (np.abs(off.value), off.error)
        )
        lost = self.b.size * TINY * float(np.any(self.scores))
        norm = Near(np.array([value]), (additions + 4) * UNIT * size + lost)
        free = Gauge(*np.zeros((4, 1)))
        known = contact_of_norms(off, y, one, norm, moved * (1 + (additions + 4) * UNIT) + lost, free)
        ball = self.conjugate().domain
        side = assumed_side(ball, slope, ball.project(slope.high), off.value)
        return known._replace(conjugate=linear_bounds(self.b, y), slope=side)

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        """Return the slopes of the rows whose residuals tie with none of another score, and nan for the others.

        Only equal residuals tie: among many rows some always nearly do, and their slopes differ by little.
        """
        order, start = tied(x - self.b)
        low, high = np.minimum.reduceat(self.scores, start), np.maximum.reduceat(self.scores, start)
        slope = np.empty(x.size)
        slope[order] = np.repeat(np.where(low == high, low, np.nan), np.diff(np.append(start, x.size)))
        return slope, slope


class Permutahedron(Ball, PartlyFixed):
    """P(c)."""

    def __init__(self, of: SortedResiduals) -> None:
        self.of = of

    @cached_property
    def _bounds(self) -> Vector:
        return largest_sums(self.of.scores)

    @cached_property
    def _size(self) -> float:
        return float(np.sum(np.abs(self.of.scores)))

    @cached_property
    def _total(self) -> float:
        """The sum of c; 0 if it is only rounding."""
        total = float(self._bounds[-1])
        return 0.0 if abs(total) <= ROUNDING * self._size else total

    def holds(self, x: Vector) -> bool:
        return self._holds(np.asarray(x))

    def _holds(self, x: Vector) -> bool:
        sums = largest_sums(x)
        rounding = ROUNDING * (self._size + float(np.sum(np.abs(x))))
        return bool(abs(sums[-1] - self._total) <= rounding and np.all(sums <= self._bounds + rounding))

    def project(self, x: Vector) -> Vector:
        if self.holds(x):
            return x
        inside: Vector = x - self.of.place(shrink_sorted(x, self.of.scores, False))  # Moreau
        return inside

    def largest_multiple(self, x: Vector) -> float:
        """Return 1 inside, and otherwise the only multiple with the right sum, or the one that meets all bounds."""
        host = np.asarray(x)
        if self._holds(host):
            return 1.0
        sums = largest_sums(host)
        if self._total == 0:
            if abs(sums[-1]) > ROUNDING * float(np.sum(np.abs(host))):
                return 0.0
            beyond = sums[:-1] > np.maximum(self._bounds[:-1], 0.0)
            return float(np.min(self._bounds[:-1][beyond] / sums[:-1][beyond], initial=1.0))
        multiple = self._total / float(sums[-1]) if sums[-1] != 0 else np.nan
        return multiple if 0 <= multiple <= 1 and self._holds(multiple * host) else np.nan

    def has_zero(self) -> bool:
        return self._total == 0

    def fixed(self) -> Indices:
        single = self.of.scores[0] == self.of.scores[-1]
        return np.arange(self.of.scores.size if single else 0)

    def fixed_sums(self, size: int) -> Equations:
        return super().fixed_sums(size) if self.fixed().size else Equations.total(self.of.scores)


class LinearOnPermutahedron(Conjugate[SortedResiduals], Scaled):
    """The conjugate of an ordered sum: <b, y> on its permutahedron."""

    @cached_property
    def domain(self) -> Permutahedron:
        return Permutahedron(self.of)

    def value(self, x: Vector) -> float:
        return self.finite_value(x) if self.domain.holds(x) else np.inf

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        return float(self.of.b @ multiple(x, factor))

    def recession(self, direction: Vector) -> Ray:
        return Ray(0.0, direction)

    def subgradient_scale(self) -> Vector:
        return np.abs(self.of.b)
