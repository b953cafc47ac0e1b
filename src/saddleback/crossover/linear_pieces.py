"""Where a problem is linear around a point: between which kinks each coordinate of x and of u = Ax lies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..common.arrays import Indices, Vector
from ..functions.normal_form import LogisticEntropy, NormalForm, Piecewise
from ..functions.traits import subdifferential
from ..model.model import Model

Mask = NDArray[np.bool_]

HELD = 1e-2
"""Length of the step that decides which rows a kink of the loss holds, relative to the sizes of u and of y."""


RESOLVED = 1e-12
"""Relative distance up to which u counts as being at a kink."""


class LinearPieces(NamedTuple):
    """The interval around each coordinate of a point on which a separable function is linear.

    Attributes
    ----------
    low, high : kinks or bounds next to the coordinate; infinite if there are none.
    slope : derivative in between.
    curved : whether the function is not linear there. Such a coordinate has the same value in all solutions.
    """

    low: Vector
    high: Vector
    slope: Vector
    curved: Mask

    def at(self, coordinates: Indices) -> LinearPieces:
        """Return the pieces of some coordinates."""
        low, high, slope, curved = self
        return LinearPieces(low[coordinates], high[coordinates], slope[coordinates], curved[coordinates])

    def nearest(self, point: Vector) -> Vector:
        """Return the nearest end of each interval, infinite if it has none."""
        return np.where(point - self.low <= self.high - point, self.low, self.high)


def pieces_of_penalty(form: NormalForm, x: Vector) -> LinearPieces:
    """Return the pieces of f around x."""
    left, right, quadratic, lower, upper = form.parameters
    kink = np.where((left < right) & (lower < 0) & (upper > 0), 0.0, np.nan)
    slope = np.where(x > 0, right, left)
    return LinearPieces(*_between(x, (lower, kink, upper)), slope, ~form.made_of(Piecewise) | (quadratic > 0))


def pieces_of_loss(form: NormalForm, slope: Vector, u: Vector) -> LinearPieces:
    """Return the pieces of g around u, given its slope there; the form is that of the conjugate of g.

    The slope of g at u is the y whose slope in the conjugate is u. So g is linear where y stays at a bound of the
    conjugate or at its kink, 0, and curved where y moves along a quadratic part.
    """
    left, right, quadratic, lower, upper = form.parameters
    with np.errstate(invalid="ignore"):
        below = [np.where(lower < 0, left + quadratic * end, np.nan) for end in (lower, np.minimum(upper, 0.0))]
        above = [np.where(upper > 0, right + quadratic * end, np.nan) for end in (np.maximum(lower, 0.0), upper)]
    curved = (quadratic > 0) & (_inside(u, *below) | _inside(u, *above))
    return LinearPieces(*_between(u, (*below, *above)), slope, curved | form.made_of(LogisticEntropy))


def held_rows(model: Model, u: Vector, y: Vector, pieces: LinearPieces) -> Mask:
    """Return the rows in which u has to stay: where g is curved, or a kink of g holds u.

    A kink k holds u if prox(u + t y) = k, for a step t that is short in the units of u and y.
    """
    kinks = pieces.nearest(u)
    known = np.isfinite(kinks)
    kinks = np.where(known, kinks, 0.0)
    low, high = subdifferential(model.g, kinks, RESOLVED * (1.0 + np.abs(kinks)))
    size, slope = float(np.abs(u).max()), float(np.abs(y).max())
    step = HELD * size / slope if size > 0 and slope > RESOLVED * size else HELD
    with np.errstate(invalid="ignore"):  # the slope at a constraint may be infinite
        moved = (u - kinks) + step * y
        at_kink = known & (low < high) & (moved >= step * low) & (moved <= step * high)
    outside = ~np.isfinite(pieces.slope)  # a constraint that rounding violates
    held: Mask = pieces.curved | at_kink | outside
    return held


def _between(point: Vector, kinks: Sequence[Vector]) -> tuple[Vector, Vector]:
    """Return the nearest kinks on both sides of each coordinate; NaN among the kinks stands for none."""
    low, high = np.full(point.size, -np.inf), np.full(point.size, np.inf)
    for kink in kinks:
        low = np.where(kink <= point, np.maximum(low, kink), low)
        high = np.where(kink >= point, np.minimum(high, kink), high)
    return low, high


def _inside(point: Vector, low: Vector, high: Vector) -> Mask:
    inside: Mask = (point > low) & (point < high)
    return inside
