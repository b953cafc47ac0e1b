"""Intervals around the points at which a convex function is near a line below it, rounded outwards.

The *excess* of f at x for a slope z is f(x) + f*(z) - <x, z>. By the inequality of Fenchel and Young it is at least 0.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..common.arrays import Parameter, Vector
from ..common.rounded import TINY, UNIT

MARGIN = 32 * UNIT
"""Relative rounding of a few operations, of which none cancels; the logarithm and the exponential are among them."""


def reach(excess: Parameter, pieces: Iterable[tuple[Vector, Vector, Vector]]) -> Vector:
    """Return how far one can go from the minimum of a convex function of one variable until it has risen by ``excess``.

    Parameters
    ----------
    excess : one value, or one per coordinate; it may be infinite.
    pieces : one after the other the length of each piece, the slope at its beginning and its curvature. The function is
        infinite beyond the last piece. Lengths and curvatures have relative errors of some roundings, and slopes are
        lower bounds.
    """
    total = going = left = None
    for length, slope, curvature in pieces:
        if total is None or going is None or left is None:
            total, going = np.zeros_like(length), np.ones(length.shape, dtype=bool)
            left = np.broadcast_to(np.asarray(excess, dtype=np.float64), length.shape)
        step, short = within(left, slope, curvature), length * (1.0 - MARGIN)
        total = total + np.where(going, np.minimum(step, length), 0.0)
        going = going & (step >= short)
        with np.errstate(invalid="ignore"):
            risen = (slope + 0.5 * curvature * short) * short * (1.0 - MARGIN)
            rest = (left - np.where(going & np.isfinite(risen), risen, 0.0)) * (1.0 + MARGIN)
        left = np.maximum(rest, 0.0) + TINY * (left > 0)
    assert total is not None
    return total * (1.0 + MARGIN)


def within(excess: Vector, slope: Vector, curvature: Vector) -> Vector:
    """Return an upper bound on the t with slope t + curvature t^2 / 2 <= excess; infinite if there is none."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        fall = slope + np.hypot(slope, np.sqrt(2.0 * curvature * excess))
        distance = 2.0 * excess / fall * (1.0 + MARGIN) + TINY * (excess > 0)
    unlimited = np.isposinf(excess) | np.isposinf(fall) | ((slope == 0) & (curvature == 0))
    distance = np.where(unlimited, np.inf, np.where(np.isnan(distance), 0.0, distance))
    return np.where(np.isposinf(slope), 0.0, distance)


def upwards(start: Vector, distance: Parameter, size: Vector) -> Vector:
    """Return an upper bound on start + distance, if the start is right up to some roundings of ``size``."""
    moved = np.where(np.asarray(distance) > 0, np.abs(start), 0.0)
    return start + (distance + MARGIN * (distance + size + moved))


def steepness(slope: Vector, bent: Vector, line: Vector) -> Vector:
    """Return a lower bound, not below 0, on slope + bent - line; infinite if the slope is."""
    total = slope + bent - line
    size = np.abs(slope) + np.abs(bent) + np.abs(line)
    return np.maximum(np.where(np.isfinite(size), total - MARGIN * size, total), 0.0)


def shifted(low: Vector, high: Vector, linear: Vector) -> tuple[Vector, Vector]:
    """Return ends of intervals less some numbers, rounded outwards."""
    below, above = np.nextafter(low - linear, -np.inf), np.nextafter(high - linear, np.inf)
    return np.where(linear == 0, low, below), np.where(linear == 0, high, above)


def self_concordant_reach(excess: float, curvature: Vector) -> Vector:
    r"""Return a bound on the distance to the minimum of a function whose third derivative is at most its second one.

    Such a function rises by at least :math:`c\,(e^{-t} + t - 1) \ge c\, t^2 / (2 + t)` over a distance t, with c the
    second derivative at the minimum.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(curvature > 0, excess / curvature, np.inf) * (1.0 + MARGIN) + TINY * (excess > 0)
        return (0.5 * share + np.sqrt(0.25 * share * share + 2.0 * share)) * (1.0 + MARGIN)
