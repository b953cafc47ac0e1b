r"""The least alpha that holds a block at 0.

A block of :math:`f = \alpha p + r` whose subdifferential at 0 is a box plus a ball, both growing with alpha,

.. math::

    \partial f(0) = [l + \alpha\, l', r + \alpha\, r'] + \alpha\, w\, \{\|v\|_2 \le 1\},

stays at 0 as long as the slope z is in this set. The smallest such alpha is the root of
:math:`F(\alpha) = \|z - \mathrm{box}_\alpha(z)\|_2 - \alpha w`, which is convex and decreasing: Newton from the
left never overshoots, and takes one step for a single coordinate. F is convex in z and alpha together, so that the
last Newton step is also a lower bound of alpha for all other z.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..common.arrays import Blocks, Indices, Vector

NEWTON_STEPS = 60


class Kinks(NamedTuple):
    r"""The kinks that hold x at 0 in f = alpha p + r, per part, at a slope z.

    Attributes
    ----------
    alpha : for every part, the smallest alpha with z in the subdifferential of f at 0.
    slope : a subgradient in z of the alpha of its part, one value per coordinate: alpha(z') >= alpha + <slope, z' - z>.
    part : the part that each coordinate belongs to; -1 if alpha adds no kink there.
    """

    alpha: Vector
    slope: Vector
    part: Indices

    @classmethod
    def none(cls, size: int) -> Kinks:
        """Return the kinks of a function that has none."""
        return cls(np.zeros(0), np.zeros(size), np.full(size, -1))


class Box(NamedTuple):
    """Ends of the box, at alpha = 0 or at alpha = 1; they may be infinite."""

    left: Vector
    right: Vector


def least_alpha(z: Vector, rest: Box, unit: Box, weight: Vector, blocks: Blocks) -> Kinks:
    """Return the root of F for every block, and the slope of alpha in z.

    Parameters
    ----------
    z : slope at the blocks.
    rest, unit : the box at alpha = 0 and at alpha = 1.
    weight : w, one per block.
    blocks : which coordinates each block has.
    """
    order, sizes, start = blocks.order, blocks.sizes, blocks.start[:-1]
    ends = [end[order] for end in (*rest, *unit)]
    with np.errstate(invalid="ignore"):
        left_growth, right_growth = (np.where(np.isfinite(ends[i]), ends[i + 2] - ends[i], 0.0) for i in range(2))
    held = (left_growth < 0) | (right_growth > 0) | (np.repeat(weight, sizes) > 0)
    ordered = z[order]
    alpha, steepness, pull = np.zeros(len(blocks)), np.ones(len(blocks)), np.zeros_like(ordered)
    for _ in range(NEWTON_STEPS):
        at = np.repeat(alpha, sizes)
        inside = np.clip(ordered, ends[0] + at * left_growth, ends[1] + at * right_growth)
        beyond = np.where(held, ordered - inside, 0.0)
        norm = np.sqrt(np.add.reduceat(beyond * beyond, start))
        outside = norm > alpha * weight
        if not np.any(outside):
            break
        unit_pull = beyond / np.repeat(np.where(norm > 0, norm, 1.0), sizes)
        growth = np.where(beyond > 0, right_growth, left_growth)
        decrease = np.add.reduceat(unit_pull * growth, start) + weight
        steepness = np.where(outside, decrease, steepness)
        pull = np.where(np.repeat(outside, sizes), unit_pull, pull)
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.where(outside, (norm - alpha * weight) / decrease, 0.0)
        alpha = alpha + change
        if np.all(change <= 4 * np.finfo(float).eps * alpha):
            break
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.where(pull == 0, 0.0, pull / np.repeat(steepness, sizes))
    slope, part = np.empty_like(slopes), np.empty(order.size, dtype=np.int64)
    slope[order] = slopes
    part[order] = np.where(held, np.repeat(np.arange(len(blocks)), sizes), -1)
    return Kinks(alpha, slope, part)
