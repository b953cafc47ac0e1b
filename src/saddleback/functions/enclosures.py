"""Intervals around the points at which a convex function is near a line below it.

The *excess* of f at x for a slope z is f(x) + f*(z) - <x, z>. By the inequality of Fenchel and Young it is at least 0.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..common.arrays import Parameter, Vector


def reach(excess: Parameter, pieces: Iterable[tuple[Vector, Vector, Vector]]) -> Vector:
    """Return how far one can go from the minimum of a convex function of one variable until it has risen by ``excess``.

    Parameters
    ----------
    excess : one value, or one per coordinate; it may be infinite.
    pieces : one after the other the length of each piece, the slope at its beginning and its curvature. The function is
        infinite beyond the last piece.
    """
    total = going = left = None
    for length, slope, curvature in pieces:
        if total is None or going is None or left is None:
            total, going = np.zeros_like(length), np.ones(length.shape, dtype=bool)
            left = np.broadcast_to(np.asarray(excess, dtype=np.float64), length.shape)
        step = within(left, slope, curvature)
        total = total + np.where(going, np.minimum(step, length), 0.0)
        going = going & (step >= length)
        with np.errstate(invalid="ignore"):
            risen = (slope + 0.5 * curvature * length) * length
            left = np.maximum(left - np.where(going & np.isfinite(risen), risen, 0.0), 0.0)
    assert total is not None
    return total


def within(excess: Vector, slope: Vector, curvature: Vector) -> Vector:
    """Return the largest t with slope t + curvature t^2 / 2 <= excess; infinite if there is none."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        distance = 2.0 * excess / (slope + np.sqrt(slope * slope + 2.0 * curvature * excess))
    unlimited = (np.isposinf(excess) & np.isfinite(slope)) | ((slope == 0) & (curvature == 0))
    return np.where(unlimited, np.inf, np.where(np.isnan(distance), 0.0, distance))


def self_concordant_reach(excess: float, curvature: Vector) -> Vector:
    r"""Return a bound on the distance to the minimum of a function whose third derivative is at most its second one.

    Such a function rises by at least :math:`c\,(e^{-t} + t - 1) \ge c\, t^2 / (2 + t)` over a distance t, with c the
    second derivative at the minimum.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(curvature > 0, excess / curvature, np.inf)
    return 0.5 * share + np.sqrt(0.25 * share * share + 2.0 * share)
