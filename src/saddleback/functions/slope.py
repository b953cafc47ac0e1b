r"""The sorted L1 norm, and the set that it supports.

With :math:`\lambda_1 \ge \dots \ge \lambda_n \ge 0` and :math:`|x|_{(1)} \ge \dots \ge |x|_{(n)}`,

.. math::

    f(x) = \sum_i \lambda_i |x|_{(i)}, \qquad
    f^*(z) = 0 \text{ if } |z|_{(1)} + \dots + |z|_{(k)} \le \lambda_1 + \dots + \lambda_k \text{ for all } k,

and infinite otherwise. The prox is ``sort_and_pool`` under absolute values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector, here, length, multiple
from ..common.cached import cached_property
from ..common.checks import LARGEST_PRODUCT, nonnegative, scalar
from ..common.rounded import TINY, UNIT, Rounded
from .conjugates import Ball, Indicator
from .contract import ROUNDING, Convex, Ray
from .domains import Everywhere, PartlyFixed
from .excess import Contact, Gauge, Near, block_sums, collapsed, contact_of_norms, running_sums
from .kinks import Kinks
from .penalties import Regulariser
from .sorting import largest_sums, ranked, shrink_sorted, tied
from .traits import Coupled, InUnits, Kinked, Lipschitz, Movable, Scaled, Tied, Ties

TIE_BREAK = 0.1
"""Largest share by which the distance of an entry is less than that of a smaller entry with the same bound."""


class SLOPE(Regulariser):
    """alpha * sum_i weights_i |x|_(i), with |x|_(1) >= |x|_(2) >= ...: the sorted L1 norm.

    Coefficients of equal size form clusters, also if their columns are correlated. With equal weights it is L1, and
    with weights (1, 0, ..., 0) it is LInf; OSCAR has weights that fall linearly. With the normal quantiles of levels
    1 - q i / (2 n) as weights it controls the false discovery rate q of orthogonal columns (Bogdan et al., 2015). Its
    prox has a single step for all entries.

    Parameters
    ----------
    weights : array-like
        One value per entry of x, at least 0 and non-increasing: the first belongs to the largest entry.
    alpha : float, default 1.0
        Weight of the penalty, at least 0.

    Examples
    --------
    >>> import saddleback as sb
    >>> sb.SLOPE([2.0, 1.0, 0.5]).prox([3.5, -3.0, 0.25], 1.0)
    array([ 1.75, -1.75,  0.  ])
    """

    def __init__(self, weights: ArrayLike, alpha: float = 1.0) -> None:
        self.weights = nonnegative("weights", weights).ravel()
        self.alpha = scalar("alpha", alpha, largest=LARGEST_PRODUCT)
        rising = np.flatnonzero(np.diff(self.weights) > 0)
        if rising.size:
            raise ValueError(
                f"weights rises at index {rising[0] + 1}: expected non-increasing weights, the first for the largest "
                "entry; pass np.sort(weights)[::-1]"
            )

    def bind(self, shape: tuple[int, ...]) -> SortedL1:
        size = int(np.prod(shape))
        if self.weights.size != size:
            raise ValueError(f"weights has {self.weights.size} values: expected one for each of the {size} entries")
        return SortedL1(self.alpha * self.weights[::-1])


class SortedL1(Convex, Lipschitz, Kinked, Coupled, Tied, Scaled, InUnits, Movable):
    """The function f at the top of this module.

    Parameters
    ----------
    weights : lambda in increasing order, as ``sort_and_pool`` takes them, on the host.
    place : puts the results of sorts, which are computed on the host, where the vectors are.
    """

    domain = Everywhere()
    diagonal_steps = False

    def __init__(self, weights: Vector, place: ToDevice = here) -> None:
        self.weights = weights
        self.place = place

    def blocks(self) -> Blocks:
        return Blocks.single(self.weights.size)

    def moved(self, place: ToDevice) -> SortedL1:
        return SortedL1(self.weights, place)

    def in_units(self, unit: Vector) -> SortedL1:
        return SortedL1(self.weights * float(unit[0]), self.place)

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        return float(self.weights @ np.sort(np.abs(np.asarray(multiple(x, factor)))))

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        x: Vector = self.place(shrink_sorted(v, float(np.max(step)) * self.weights, True))
        return x

    def subgradient(self, x: Vector) -> Vector:
        slope: Vector = self.place(ranked(self.weights, np.abs(x))) * np.sign(x)
        return slope

    def subgradient_scale(self) -> float:
        return float(np.mean(self.weights))

    def rise(self, distance: float) -> float:
        return length(self.weights) * distance

    def recession(self, direction: Vector) -> Ray:
        value = self.finite_value(direction)
        return Ray(value, np.zeros_like(direction), value)

    def conjugate(self) -> Indicator:
        return Indicator(self, SortedL1Ball(self))

    def contact(self, point: Rounded, slope: Rounded) -> Contact:
        """Return the contact; the dual norm is the largest of the sums of k entries over those of k weights."""
        x, z, one = collapsed(point), collapsed(slope), Blocks.single(self.weights.size)
        values, additions = block_sums(one, self.weights * np.sort(np.abs(x.value)))
        moved = block_sums(one, self.weights * np.sort(x.error))[0]
        rounding, lost = (additions + 4) * UNIT, self.weights.size * TINY * float(self.weights[-1] > 0)
        weighted = self.weights[-1] > 0  # without weights, 0 alone is inside
        bounds = collapsed(_sums_of_largest(self.weights)) if weighted else Near(np.ones(1), np.zeros(1))
        most, centre, size = (collapsed(_sums_of_largest(each)) for each in (z.most, np.abs(z.value), slope.size))
        gauge = Gauge(
            most=_largest((most.value + most.error) / (bounds.value - bounds.error)) * (1 + 4 * UNIT),
            least=_largest((centre.value - centre.error) / (bounds.value + bounds.error)) * (1 - 4 * UNIT),
            end=np.array([float(weighted)]),
            size=_largest(size.value / bounds.value),
        )
        norms = Near(values, rounding * values + lost * (x.value.any()))
        return contact_of_norms(x, z, one, norms, moved * (1 + rounding) + lost * x.error.any(), gauge)

    @cached_property
    def bounds(self) -> Vector:
        """The sums of the largest weight, of the two largest, and so on."""
        return largest_sums(self.weights)

    def zero_slack(self, z: Vector) -> Vector:
        return np.array([float(np.min(self.bounds - largest_sums(np.abs(z))))])

    def holds_entries(self) -> bool:
        return bool(self.weights[self.weights.size // 2] > 0)  # no kink holds an entry of weight 0

    def parts_at_zero(self) -> Blocks | None:
        return Blocks(None, np.arange(self.weights.size + 1)) if self.holds_entries() else None

    def restrict_parts(self, parts: Indices) -> SortedL1:
        return SortedL1(self.weights[self.weights.size - parts.size :], self.place)

    def distance_from_leaving(self, z: Vector, lengths: Vector) -> Vector:
        """Compare the k-th largest entry of z with the k-th largest weight, and with all that come after it.

        If the entries after the k-th are below their weights, each sum of the largest entries is within its bound if
        the sums of the k first are. So an entry has slack only if no later entry is above its weight.
        """
        size = np.abs(z)
        order = np.argsort(size, kind="stable")  # the smallest first, as the weights
        distance = np.minimum.accumulate((self.weights - size[order]) / lengths[order])
        # entries share the distance of a later one, and the largest of them should come first
        result = np.empty_like(distance)
        result[order] = distance - np.abs(distance) * np.linspace(0.0, TIE_BREAK, z.size)
        return result

    def ties(self, x: Vector) -> Ties:
        size = np.abs(x)
        order, first = tied(size)
        group = np.empty(x.size, dtype=np.int64)
        group[order] = np.repeat(np.arange(first.size), np.diff(first, append=x.size))
        slope = np.add.reduceat(self.weights, first)
        moving = int(size[order[0]] == 0)  # the first group holds the zeros
        entries = np.flatnonzero(size)
        return Ties(entries, group[entries] - moving, np.sign(x[entries]), slope[moving:])

    def kinks(self, z: Vector, rest: Any) -> Kinks:
        if self.weights[-1] == 0:
            return Kinks.none(z.size)
        shares = largest_sums(np.abs(z)) / self.bounds
        most = int(np.argmax(shares))
        active = ranked(np.repeat([0.0, 1.0 / self.bounds[most]], [z.size - most - 1, most + 1]), np.abs(z))
        return Kinks(shares[most : most + 1], active * np.sign(z), np.zeros(z.size, dtype=np.int64))


def _sums_of_largest(sizes: Vector) -> Rounded:
    """Return the sums of the largest entry, of the two largest, and so on, with bounds on their rounding."""
    return running_sums(Rounded.around(np.sort(sizes)[::-1]))


def _largest(ratios: Vector) -> Vector:
    return np.array([np.max(ratios)])


class SortedL1Ball(Ball, PartlyFixed):
    """The z for which the sum of the k largest absolute values is at most that of the weights, for all k."""

    symmetric = True

    def __init__(self, of: SortedL1) -> None:
        self.of = of

    def holds(self, x: Vector) -> bool:
        return bool(np.all(largest_sums(np.abs(x)) <= self.of.bounds * (1.0 + ROUNDING)))

    def project(self, x: Vector) -> Vector:
        return x if self.holds(x) else x - self.of.prox(x, 1.0)  # Moreau

    def largest_multiple(self, x: Vector) -> float:
        sums = largest_sums(np.abs(x))
        beyond = sums > self.of.bounds * (1.0 + ROUNDING)
        return float(np.min(self.of.bounds[beyond] / sums[beyond], initial=1.0))

    def has_zero(self) -> bool:
        return True

    def fixed(self) -> Indices:
        return np.arange(self.of.weights.size if self.of.weights[-1] == 0 else 0)
