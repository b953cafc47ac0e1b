r"""Intervals that contain every optimum, from a pair of points alone.

With z = -A'y and u* = Ax*, the inequality of Fenchel and Young gives for every optimum x*

.. math::

    \sum_j \left[ f_j(x_j^*) + f_j^*(z_j) - \langle x_j^*, z_j \rangle \right] +
    \sum_i \left[ g_i(u_i^*) + g_i^*(y_i) - u_i^* y_i \right] = P(x^*) - D(y) \le P(x) - D(y),

and no term is negative. So each term is at most the gap, which leaves an interval for each x_j and u_i. Curvature of
the loss leaves less: a ball for the dual optimum, which decides which columns are 0, and an ellipsoid for the columns
that are left. The gap, y and z are those of the certificate, with its bounds on rounding, and everything is rounded
outwards. docs/theory/bounds.md has the proofs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..common.arrays import Vector
from ..common.cached import cached_property
from ..common.rounded import SHORT, UNIT, Rounded
from ..functions.calculus import parts_of
from ..functions.points import DensePoint
from ..functions.traits import Enclosed, curvature_between, enclosure, unbounded, with_slopes
from ..model.model import Model
from .certificate import Gap, certified
from .ellipsoid import CURVED, ellipsoid
from .vertices import Vertex, is_straight, unique_vertex


class Ends(NamedTuple):
    """The ends of intervals."""

    lower: Any
    upper: Any


class Intervals:
    """The intervals of one pair of points as flat vectors, each computed when it is needed."""

    def __init__(self, model: Model, x: Vector, y: Vector) -> None:
        self.model, self.x, self.y = model, model.f.domain.project(x), y
        self.shortest = np.zeros(len(model.blocks))
        self.columns = self._of_columns()

    @cached_property
    def vertex(self) -> Vertex | None:
        """The only optimum, if it is proved to be a vertex."""
        return unique_vertex(self.model, self.x, self.model.g_star.domain.project(self.y))

    @cached_property
    def certified(self) -> Gap:
        """The certificate of the points, with the dual point and the slopes for which it holds."""
        return certified(self.model, DensePoint(self.x), DensePoint(self.y), sized=True)

    @cached_property
    def gap(self) -> float:
        """An upper bound on the gap; infinite unless both points are proved to be feasible."""
        certificate = self.certified.certificate
        return certificate.gap if certificate.proved and certificate.attained else np.inf

    @cached_property
    def slope(self) -> Ends:
        """The ends of -A'y."""
        return Ends(*self.certified.slope.ends())

    @cached_property
    def rows(self) -> Ends:
        """The intervals of Ax."""
        return self.by_gap if self.vertex is None else Ends(*self.vertex.u)

    @cached_property
    def by_gap(self) -> Ends:
        """The intervals of Ax that follow from the gap alone."""
        if not np.isfinite(self.gap):
            return Ends(*unbounded(self.model.A.shape[0]))
        dual = Rounded.around(self.certified.y, self.certified.radius)
        return Ends(*enclosure(self.model.g, *dual.ends(), self.gap))

    @cached_property
    def curvatures(self) -> Ends:
        """The least and the largest curvature of each row in its interval, which a constant curvature does not need."""
        everywhere = Ends(*curvature_between(self.model.g, *unbounded(self.model.A.shape[0])))
        if np.array_equal(*everywhere) or is_straight(self.model.loss_form):
            return everywhere
        return Ends(*curvature_between(self.model.g, *self.by_gap))

    def _of_columns(self) -> Ends:
        """Return the intervals of x: those of a vertex, or by the ball, the ellipsoid and the gap one after another."""
        if self.vertex is not None:
            return Ends(*self.vertex.x)
        columns = _domain(self.model)
        if np.isfinite(self.gap):
            columns = _meet(columns, self._by_dual_ball())
            columns = self._by_gap(self._by_ellipsoid(columns))
        return columns

    def _by_dual_ball(self) -> Ends:
        r"""Return what the slopes z* of all dual optima leave of x.

        With L_i the largest curvature of each row, :math:`\sum_i (y_i - y_i^*)^2 / L_i \le 2\, \text{gap}`, and so
        :math:`(z_j - z_j^*)^2 \le 2\, \text{gap} \sum_i L_i A_{ij}^2`. The optimum is where f has such a slope.
        """
        A, most = self.model.A, self.curvatures.upper
        if not (A.traits.entries_known and A.traits.identity_scales is None and np.all(np.isfinite(most))):
            return Ends(*unbounded(A.shape[1]))
        largest = float(most.max(initial=0.0))
        same = most.min(initial=largest) == largest
        squares = largest * A.sums(2)[0] if same else A.sums(2, weights=(None, most))[0]
        lost = SHORT * (1.0 + np.sqrt(largest))
        far = (np.sqrt(2.0 * self.gap * squares) + lost) * (1.0 + (A.shape[0] + 16) * UNIT + CURVED)
        low, high = self.slope
        return Ends(*with_slopes(self.model.f, np.nextafter(low - far, -np.inf), np.nextafter(high + far, np.inf)))

    def _by_ellipsoid(self, columns: Ends) -> Ends:
        """Return the intervals of x after those of an ellipsoid, which also has the least norm of each block."""
        found = ellipsoid(self.model, self.certified, self.curvatures.lower, *columns)
        if found is None:
            return columns
        (left, centre, rounding, width), blocks = found, self.model.blocks
        low, high = columns.lower.copy(), columns.upper.copy()
        ends = Ends(*Rounded(centre, np.zeros(left.size), rounding + width, width).ends())
        low[left], high[left] = _meet(Ends(low[left], high[left]), ends)
        if len(blocks) < low.size:  # a norm is at least that of the centre less those of the widths and of the rounding
            known = np.zeros(low.size)
            norms = []
            for each in (centre, width, rounding):
                known[left] = each
                norms.append(np.sqrt(blocks.sums(known * known)))
            margin = (blocks.sizes + 8) * UNIT
            self.shortest = np.maximum(norms[0] * (1 - margin) - (norms[1] + norms[2] + SHORT) * (1 + margin), 0.0)
        return Ends(low, high)

    def _by_gap(self, columns: Ends) -> Ends:
        """Return the intervals of x after those of the gap, for the columns that are not decided yet."""
        low, high = columns
        for function, own in parts_of(self.model.f):
            left = np.flatnonzero((low[own] <= 0) & (high[own] >= 0) & (low[own] < high[own]))
            if not left.size:
                continue
            blocks = function.blocks()
            single = isinstance(function, Enclosed) and len(blocks) == low[own].size
            part, at = (function.restrict_blocks(blocks.of_columns[left]), left) if single else (function, slice(None))
            ends = Ends(*enclosure(part, self.slope.lower[own][at], self.slope.upper[own][at], self.gap))
            low[own][at], high[own][at] = _meet(Ends(low[own][at], high[own][at]), ends)
        return Ends(low, high)

    def group_norms(self) -> list[Ends | None]:
        """Return the ends of the norms of the groups of each penalty; None for a penalty that is a sum over columns."""
        model, first = self.model, 0
        found: list[Ends | None] = []
        lower, upper = self.columns
        least = np.where((lower > 0) | (upper < 0), np.minimum(np.abs(lower), np.abs(upper)), 0.0)
        most = np.maximum(np.abs(lower), np.abs(upper))
        for function, own in parts_of(model.f):
            blocks = function.blocks()
            stop = first + len(blocks)
            if isinstance(function, Enclosed) and blocks.sizes.max(initial=1) > 1 and len(blocks) < least[own].size:
                margin = (blocks.sizes + 8) * UNIT
                low = np.maximum(np.sqrt(blocks.sums(least[own] ** 2)) * (1 - margin), self.shortest[first:stop])
                high = np.sqrt(blocks.sums(most[own] ** 2)) * (1 + margin) + SHORT * (blocks.sums(most[own]) > 0)
                if np.isfinite(self.gap):
                    longest = function.longest(self.slope.lower[own], self.slope.upper[own], self.gap)
                    high = high if longest is None else np.minimum(high, longest)
                found.append(Ends(np.minimum(low, high), high))
            else:
                found.append(None)
            first = stop
        return found


def _domain(model: Model) -> Ends:
    """Return the bounds that f itself puts on each coordinate."""
    if model.f.domain.everything:
        return Ends(*unbounded(model.A.shape[1]))
    low, high = (model.f.domain.project(end) for end in unbounded(model.A.shape[1]))
    return Ends(np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))


def _meet(first: Ends, second: Ends) -> Ends:
    """Return the common part of intervals; what lies between them if there is none, which means that no optimum is."""
    low, high = np.maximum(first.lower, second.lower), np.minimum(first.upper, second.upper)
    return Ends(np.minimum(low, high), np.maximum(low, high))
