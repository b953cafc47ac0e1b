r"""The excess of a function over a line below it, with bounds that are theorems in floating point.

For a point p and a slope s the excess is

.. math:: E(p, s) = f(p) + f^*(s) - \langle p, s \rangle \ge 0,

by the inequality of Fenchel and Young. The gap of a certificate is the sum of the excesses of all functions: it is a
sum of terms that are not negative, so that nothing cancels. Where s is outside of the domain of f*, the excess is
that of the nearest slope in the domain, and what is missing is reported beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from ..common.rounded import UNIT


class Bounds(NamedTuple):
    """Bounds on the sum of some numbers, and the sum of their absolute values."""

    low: float
    high: float
    size: float

    @classmethod
    def around(cls, value: float, error: float, size: float) -> Bounds:
        """Return the bounds on a value with an error."""
        return cls(value - error - UNIT * abs(value), value + error + UNIT * abs(value), size)


class Excess(NamedTuple):
    """What is known of f(p) + f*(s) - <p, s>, for all points p within a radius and all slopes s within an error.

    Attributes
    ----------
    gap : an upper bound on the excess at the slope of the domain of f* that is nearest to s.
    exact : the same without radius, errors and rounding: the difference is what rounding adds.
    value, conjugate : bounds on f(p) and on f* at the nearest slope.
    missed : an upper bound on the sum of |p| times the distance of s from the domain of f*.
    infeasibility : the largest distance of s from the domain of f*, relative to the size of the slope and of the end of
        the domain, over all coordinates whose distance is more than the rounding of their own product.
    multiple : the largest t in [0, 1] such that t s is proved to be in the domain of f*, as far as scaling can do that:
        coordinates with a single feasible slope, and slopes that leave the domain at 0, do not count.
    point_inside : whether every p within the radius is proved to be in the domain of f.
    slope_inside : whether every s within the error is proved to be in the domain of f*.
    rounded : whether s is in the domain of f* up to the rounding of its own products.
    """

    gap: float
    exact: float
    value: Bounds
    conjugate: Bounds
    missed: float = 0.0
    infeasibility: float = 0.0
    multiple: float = 1.0
    point_inside: bool = True
    slope_inside: bool = True
    rounded: bool = True


def up(value: float, roundings: int = 4) -> float:
    """Return an upper bound on a sum of numbers that are not negative, after some relative roundings."""
    return value * (1.0 + (roundings + 2) * UNIT)


def total(parts: Iterable[Excess]) -> Excess:
    """Return the excess of a sum of functions of different coordinates."""
    known = list(parts)
    if len(known) == 1:
        return known[0]
    count = len(known)

    def sum_of(name: str) -> Bounds:
        each: list[Bounds] = [getattr(part, name) for part in known]
        low, high = math.fsum(one.low for one in each), math.fsum(one.high for one in each)
        size = up(sum(one.size for one in each), count)
        return Bounds(low - UNIT * abs(low), high + UNIT * abs(high), size)

    return Excess(
        gap=up(sum(part.gap for part in known), count),
        exact=sum(part.exact for part in known),
        value=sum_of("value"),
        conjugate=sum_of("conjugate"),
        missed=up(sum(part.missed for part in known), count),
        infeasibility=max(part.infeasibility for part in known),
        multiple=min(part.multiple for part in known),
        point_inside=all(part.point_inside for part in known),
        slope_inside=all(part.slope_inside for part in known),
        rounded=all(part.rounded for part in known),
    )
