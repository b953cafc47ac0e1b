"""The Euclidean norm as a loss, as in the square-root Lasso."""

from __future__ import annotations

import numpy as np

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector, length, multiple
from ..common.rounded import TINY, UNIT, Rounded
from .conjugates import Conjugate
from .contract import Convex, Domain, Ray
from .domains import Everywhere
from .excess import (
    LOST,
    Contact,
    Gauge,
    Near,
    both,
    collapsed,
    contact_of_norms,
    lengths,
    linear_bounds,
    side_of_interval,
)
from .group import shrink_norms
from .traits import InUnits, Kinked, Lipschitz, Movable, Scaled, Smooth


class WeightedNorm(Convex, Smooth, Lipschitz, Kinked, Scaled, InUnits, Movable):
    r""":math:`s \sqrt{\sum_i w_i (u_i - b_i)^2}`. Rows of weight 0 are ignored."""

    domain = Everywhere()

    def __init__(self, b: Vector, weight: Vector, scale: float) -> None:
        self.b = b
        self.weight = weight
        self.scale = scale
        self.counted = weight > 0
        self.root = np.sqrt(weight)

    def blocks(self) -> Blocks:
        return Blocks.single(self.b.size)

    def moved(self, place: ToDevice) -> WeightedNorm:
        return WeightedNorm(place(self.b), place(self.weight), self.scale)

    def in_units(self, unit: Vector) -> WeightedNorm:
        return WeightedNorm(self.b / unit, self.weight, self.scale * float(unit[0]))

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        return self.scale * float(np.linalg.norm(self.root * (multiple(x, factor) - self.b)))

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        """Shrink the norm of q = root (u - b), which turns the strengths 1 / step into 1 / (step w)."""
        result = v.copy()
        rows = self.counted
        if not np.any(rows):
            return result
        root, step = self.root[rows], np.broadcast_to(step, v.shape)[rows]
        strength = 1.0 / (step * root * root)
        pull = strength * root * (v - self.b)[rows]
        short = shrink_norms(pull, strength, np.array([self.scale]), np.array([0]))
        result[rows] = self.b[rows] + short / root
        return result

    def subgradient(self, x: Vector) -> Vector:
        norm = float(np.linalg.norm(self.root * (x - self.b)))
        return self.weight * (x - self.b) * (self.scale / norm if norm > 0 else 0.0)

    def subgradient_scale(self) -> Vector:
        return self.root * (self.scale / float(np.sqrt(max(int(np.sum(self.counted)), 1))))

    def recession(self, direction: Vector) -> Ray:
        value = self.scale * float(np.linalg.norm(self.root * direction))
        return Ray(value, np.zeros_like(direction), value)

    def conjugate(self) -> LinearOnEllipsoid:
        return LinearOnEllipsoid(self)

    def curvature_at(self, x: Vector) -> Vector:
        """Return scale w / ||u - b||, a bound on the second derivative, as in iteratively reweighted least squares."""
        norm = float(np.linalg.norm(self.root * (x - self.b)))
        return self.weight * (self.scale / norm if norm > 0 else 0.0)

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        at_kink = np.linalg.norm(self.root * (x - self.b)) <= np.linalg.norm(self.root * tolerance)
        gradient = np.where(at_kink & self.counted, np.nan, self.subgradient(x))
        return gradient, gradient

    def rise(self, distance: float) -> float:
        return self.scale * float(self.root.max()) * distance

    def rise_within(self, distances: Vector) -> float:
        return self.scale * length(self.root * distances)

    def contact(self, point: Rounded, slope: Rounded) -> Contact:
        """Return the contact: that of a norm with the point root (u - b) and the slope y / root."""
        off, y, counted = collapsed(point.plus(Rounded.around(-self.b))), collapsed(slope), self.counted
        used, one = Near(*(np.where(counted, each, 0.0) for each in y)), Blocks.single(self.b.size)
        inverse = np.divide(1.0, self.root, out=np.zeros_like(self.root), where=counted)
        norm, norm_of_error = lengths(one, self.root * off.value), lengths(one, self.root * off.error)
        dual, size = lengths(one, inverse * (np.abs(used.value) + used.error)), lengths(one, inverse * slope.size)
        centre, error = lengths(one, inverse * used.value), 8 * UNIT  # of the roots, quotients and products
        gauge = Gauge(
            most=(dual.value + dual.error) * (1 + error) + TINY * (dual.value > 0),
            least=np.maximum((centre.value - centre.error) * (1 - error), 0.0),
            end=np.array([self.scale]),
            size=size.value,
        )
        norms = Near(self.scale * norm.value, self.scale * (norm.error + error * norm.value) + LOST * (norm.value > 0))
        moved = self.scale * norm_of_error.most * (1 + error) + LOST * (norm_of_error.value > 0)
        of_norm = contact_of_norms(off, used, one, norms, moved, gauge)
        idle = np.flatnonzero(~counted)
        rest = side_of_interval(slope.part(idle), 0.0 * self.b[idle], 0.0 * self.b[idle], off.most[idle])
        return of_norm._replace(conjugate=linear_bounds(self.b, used), slope=both(of_norm.slope, rest))


class Ellipsoid(Domain):
    r""":math:`\sum_i y_i^2 / w_i \le s^2`, and 0 in the rows of weight 0."""

    def __init__(self, norm: WeightedNorm) -> None:
        self.norm = norm

    def project(self, x: Vector) -> Vector:
        """Scale into the ellipsoid: not the nearest point, but one that keeps the direction of x."""
        return self._factor(x) * np.where(self.norm.counted, x, 0.0)

    def _factor(self, x: Vector) -> float:
        """Return the largest t <= 1 such that t x, in the rows with a weight, is in the ellipsoid."""
        counted = self.norm.counted
        length = float(np.linalg.norm(x[counted] / self.norm.root[counted]))
        return 1.0 if length <= self.norm.scale else self.norm.scale / length

    def largest_multiple(self, x: Vector) -> float:
        return self._factor(x) if np.all(x[~self.norm.counted] == 0) else 0.0

    def has_zero(self) -> bool:
        return True


class LinearOnEllipsoid(Conjugate[WeightedNorm], Scaled):
    """The conjugate of that norm: <b, y> on an ellipsoid."""

    @property
    def domain(self) -> Ellipsoid:
        return Ellipsoid(self.of)

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        return float(self.of.b @ multiple(x, factor))

    def recession(self, direction: Vector) -> Ray:
        return Ray(0.0, direction)

    def subgradient_scale(self) -> Vector:
        return np.abs(self.of.b)
