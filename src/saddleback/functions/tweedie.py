r"""Losses with a log link: the mean of the targets is exp(u).

With the power p from 1 to 2, :math:`\ell(u) = b\, E_{p-1}(-u) + E_{2-p}(u)`, where :math:`E_k(u) = e^{k u} / k` and
:math:`E_0(u) = u`. So :math:`\ell'(u) = e^{(2-p) u} - b\, e^{-(p-1) u}`, which is 0 at u = log b. p = 1 is the Poisson
loss and p = 2 the gamma loss, whose conjugates have a closed form.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..common.arrays import Indices, Parameter, Step, Vector, multiple
from ..common.cached import cached_property
from ..common.checks import nonnegative, positive, scalar
from ..common.rounded import TINY, UNIT
from ..places.torch import device_of
from .contract import Ray
from .curved import CurvedConjugate, CurvedRows
from .domains import Everywhere, Interval
from .enclosures import MARGIN, self_concordant_reach, upwards
from .excess import LOST, Near
from .losses import Loss
from .traits import Enclosed

NEWTON_STEPS = 60

NEAR = 1e-9
"""Distance from a computed point with some slope within which the exact one is looked for."""

SMALLEST = 1e-300
"""The logarithm of 0 is taken to be that of this number."""


class Poisson(Loss):
    """exp(u) - b u with counts b: up to a constant, the negative log-likelihood of Poisson counts with mean exp(u).

    Parameters
    ----------
    counts : array-like
        Count of every row, at least 0. Counts need not be integers.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(self, counts: ArrayLike, sample_weight: ArrayLike | None = None, scale: float = 1.0) -> None:
        self.device = device_of(counts)
        self.counts = np.atleast_1d(nonnegative("counts", counts))
        self.shape = self.counts.shape
        self._weigh(sample_weight, scale)

    def bind(self, shape: tuple[int, ...]) -> TweedieLoss:
        self._fits(shape)
        return TweedieLoss(self.counts.ravel(), self._weights(shape), 1.0)


class Gamma(Loss):
    """b exp(-u) + u: up to a constant and the shape, the negative log-likelihood of gamma targets b with mean exp(u).

    Parameters
    ----------
    b : array-like
        Target of every row, greater than 0.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(self, b: ArrayLike, sample_weight: ArrayLike | None = None, scale: float = 1.0) -> None:
        self.device = device_of(b)
        self.b = np.atleast_1d(positive("b", b))
        self.shape = self.b.shape
        self._weigh(sample_weight, scale)

    def bind(self, shape: tuple[int, ...]) -> TweedieLoss:
        self._fits(shape)
        return TweedieLoss(self.b.ravel(), self._weights(shape), 2.0)


class Tweedie(Loss):
    """b exp((1 - p) u) / (p - 1) + exp((2 - p) u) / (2 - p) with the power p, strictly between 1 and 2.

    This is half the deviance of a Tweedie distribution with mean exp(u), up to a constant. Its targets are 0 with a
    positive probability, and positive numbers otherwise, such as the claims of an insurance. For p = 1 use ``Poisson``,
    for p = 2 ``Gamma``.

    Parameters
    ----------
    b : array-like
        Target of every row, at least 0.
    power : float, default 1.5
        The power p: the variance of a target is proportional to the p-th power of its mean.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(
        self, b: ArrayLike, power: float = 1.5, sample_weight: ArrayLike | None = None, scale: float = 1.0
    ) -> None:
        self.device = device_of(b)
        self.b = np.atleast_1d(nonnegative("b", b))
        self.shape = self.b.shape
        self.power = scalar("power", power, -np.inf)
        if not 1.0 < self.power < 2.0:
            raise ValueError(
                f"power={self.power:g}: expected a number strictly between 1 and 2; use Poisson for 1, Gamma for 2"
            )
        self._weigh(sample_weight, scale)

    def bind(self, shape: tuple[int, ...]) -> TweedieLoss:
        self._fits(shape)
        return TweedieLoss(self.b.ravel(), self._weights(shape), self.power)


class TweedieLoss(CurvedRows, Enclosed):
    r""":math:`\sum_i s_i\, \ell(u_i)`. Its gradient is not Lipschitz, so that methods treat it by its prox."""

    domain = Everywhere()

    def __init__(self, b: Vector, weight: Vector, power: float) -> None:
        self.b = b
        self.weight = weight
        self.power = power
        self.up, self.down = 2.0 - power, power - 1.0  # the rates at which the two terms of the slope grow

    def parameters(self) -> tuple[Vector, ...]:
        return (self.b,)

    def _made(self, *parameters: Vector) -> TweedieLoss:
        b, weight = parameters
        return TweedieLoss(b, weight, self.power)

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        u = np.where(self.weight > 0, multiple(x, factor), 0.0)
        with np.errstate(over="ignore"):  # the value is infinite beyond the range of float64
            falling = self.b * _integral(self.down, np.where(self.b > 0, -u, 0.0))
            return float(self.weight @ (_integral(self.up, u) + falling))

    def subgradient(self, x: Vector) -> Vector:
        return self.weight * (_exponential(self.up, x) - self.b * _exponential(self.down, -x))

    def subgradient_scale(self) -> Vector:
        return self.weight * np.sqrt(np.maximum(self.b, 1.0) ** self.up)

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        r"""Solve :math:`u + t (e^{(2-p) u} - b\, e^{-(p-1) u}) = v` with t = step * weight.

        The left side is concave up to the point where the curvatures of its two exponentials are equal, then convex.
        If the root is below that point, -u is the unknown: the two terms then change places. So the root of
        :math:`u + t (P e^{k u} - Q e^{-(1-k) u}) = v` is where the left side is convex, and Newton's method does not
        overshoot from a point above it. With :math:`q = k u + \log(t P k)` the equation is

        .. math:: q + e^q = z - t k Q (c - e^{-(1-k) u}), \qquad z = k v + t k Q c + \log(t P k),

        with c the value of :math:`e^{-(1-k) u}` at the point between the two parts. As this is the largest one on the
        convex part, log z is above the root for z > 1, and z otherwise.
        """
        if blocks is not None:
            return self.restrict(blocks).prox(v, step)
        reach = np.where(self.weight > 0, step * self.weight, 1.0)
        with np.errstate(divide="ignore"):
            logarithm = np.log(self.b)
            turn = logarithm + 2.0 * (np.log(self.down) - np.log(self.up))  # both terms are equally curved there
        with np.errstate(invalid="ignore", over="ignore"):
            slope = turn + reach * (_exponential(self.up, turn) - self.b * _exponential(self.down, -turn)) - v
        below = (turn == np.inf) | (slope > 0)
        rate, other = np.where(below, self.down, self.up), np.where(below, self.up, self.down)
        first, second = np.where(below, self.b, 1.0), np.where(below, 1.0, self.b)
        largest = np.exp(-other * np.where((other > 0) & (second > 0), np.where(below, -turn, turn), 0.0))
        shift = np.log(reach * first * rate)
        pull = reach * rate * second
        z = rate * np.where(below, -v, v) + pull * largest + shift
        point = np.where(z > 1.0, np.log(np.maximum(z, 1.0)), z)
        for _ in range(NEWTON_STEPS):
            exponential = np.exp(point)
            against = np.exp(np.minimum(-other * (point - shift) / rate, 700.0))
            residual = point + exponential - z + pull * (largest - against)
            change = residual / (1.0 + exponential + pull * other / rate * against)
            point = point - change
            if np.all(np.abs(change) <= 4e-16 * (1.0 + np.abs(point))):
                break
        found = (point - shift) / rate
        root: Vector = np.where(self.weight > 0, np.where(below, -found, found), v)
        return root

    def recession(self, direction: Vector) -> Ray:
        up, down = np.maximum(direction, 0.0), np.minimum(direction, 0.0)
        counted = self.weight > 0
        steep_up = np.where(counted, up, 0.0) if self.up else np.zeros_like(direction)
        steep_down = np.where(counted & (self.b > 0), down, 0.0) if self.down else np.zeros_like(direction)
        rising = 0.0 if self.up else float(self.weight @ up)
        falling = 0.0 if self.down else -float((self.weight * self.b) @ down)
        return Ray(rising + falling, steep_up + steep_down, rising + falling)

    def minimiser(self) -> Vector:
        with np.errstate(divide="ignore"):
            return np.where(self.weight > 0, np.log(self.b), 0.0)

    def conjugate(self) -> TweedieConjugate:
        return TweedieConjugate(self)

    def curvature_at(self, x: Vector) -> Vector:
        falling = self.down * self.b * _exponential(self.down, -x)
        return self.weight * (self.up * _exponential(self.up, x) + falling)

    def rise(self, distance: float) -> float:
        r"""Bound the rise by :math:`c\, e^{k d} d^2 / 2` in the row with the largest curvature c at its minimum.

        k is the larger of the two rates: the curvature is at most :math:`c\, e^{k d}` at the distance d.
        """
        rate = max(self.up, self.down)
        with np.errstate(over="ignore"):
            curvature = self.weight * self.b**self.up
            return float(np.max(curvature) * np.exp(rate * distance) * distance**2 / 2.0)

    def rise_within(self, distances: Vector) -> float:
        rate = max(self.up, self.down)
        curvature = self.weight * self.b**self.up
        with np.errstate(over="ignore", invalid="ignore"):
            rises = np.where(curvature > 0, curvature * np.exp(rate * distances) * distances**2, 0.0)
        return 0.5 * float(np.sum(rises))

    def enclosure(self, low: Vector, high: Vector, excess: float) -> tuple[Vector, Vector]:
        return self._furthest(low, excess, -1.0), self._furthest(high, excess, 1.0)

    def _furthest(self, slope: Vector, excess: float, side: float) -> Vector:
        """Return one end of the points near lines with these slopes; infinite where the slope cannot be resolved.

        The third derivative is at most the second one. The point with the slope is between two others, NEAR apart,
        whose slopes are proved to be on either side of it.
        """
        with np.errstate(all="ignore"):
            at = self._with_slope(slope)
            before, after = (at + way * NEAR * (1.0 + np.abs(at)) for way in (-1.0, 1.0))
            found = (self._slope_at(before, 1.0) <= slope) & (self._slope_at(after, -1.0) >= slope)
            least = self.curvature_at(before) * np.exp(before - after) * (1.0 - MARGIN)
            start = before if side < 0 else after
            end = side * upwards(side * start, self_concordant_reach(excess, least), np.abs(start))
        return np.where(found & (self.weight > 0) & ~np.isnan(end), end, side * np.inf)

    def _with_slope(self, slope: Vector) -> Vector:
        """Return about the points with these slopes."""
        if not self.down:
            return np.log(slope + self.weight * self.b) - np.log(self.weight)
        if not self.up:
            return np.log(self.weight * self.b) - np.log(self.weight - slope)
        return self.conjugate().maximiser(slope)

    def _slope_at(self, u: Vector, side: float) -> Vector:
        """Return a bound on the slope at a point, from above or from below."""
        terms = self.weight * _exponential(self.up, u), self.weight * self.b * _exponential(self.down, -u)
        return terms[0] - terms[1] + side * (MARGIN * (1.0 + np.abs(u)) * (terms[0] + terms[1]) + LOST)

    def curvature_between(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        with np.errstate(all="ignore"):
            ends = [
                self.weight
                * (self.up * _exponential(self.up, one) + self.down * self.b * _exponential(self.down, -two))
                for one, two in ((lower, upper), (upper, lower))
            ]
        return np.where(np.isnan(ends[0]), 0.0, ends[0]), np.where(np.isnan(ends[1]), np.inf, ends[1])

    # The two terms of the loss are exponentials, whose slopes c and -d add to y / s. For any such c and d, the sum of
    # their excesses is a bound on that of the loss, and it is equal if both touch at the same u. With the power 1 or 2
    # one of the terms is linear, so that its slope is known.

    def proved_slopes(self) -> Interval:
        domain = self.conjugate().domain
        return Interval(domain.lower * (1.0 - 2 * UNIT), domain.upper) if not self.down else domain

    def row_values(self, u: Vector) -> Near:
        rising, falling = _integral(self.up, u), self.b * _integral(self.down, np.where(self.b > 0, -u, 0.0))
        return self._near((rising + falling, (np.abs(rising) + np.abs(falling)) * (1.0 + np.abs(u))))

    def row_conjugates(self, y: Vector) -> Near:
        ends = [
            self._near(
                _conjugate_of_exponential(self.up, rising, 1.0),
                _conjugate_of_exponential(self.down, falling, self.b),
            )
            for rising, falling in self._slopes(y)
        ]
        value = np.maximum(*(end.value for end in ends))
        error = np.maximum(*(end.error for end in ends)) + np.abs(ends[0].value - ends[1].value) * (1 + 2 * UNIT)
        if self.up and self.down:  # the sum is a bound: the value is less by no more than the excess at any point
            at_touching = self.row_excess(self.conjugate().maximiser(y), y)
            error = error + np.maximum(at_touching.value + at_touching.error, 0.0)
        return Near(value, error)

    def row_excess(self, u: Vector, y: Vector) -> Near:
        ends = [
            self._near(
                _excess_of_exponential(self.up, u, rising, 1.0),
                _excess_of_exponential(self.down, -u, falling, self.b),
            )
            for rising, falling in self._slopes(y)
        ]
        return Near(np.maximum(*(end.value for end in ends)), np.maximum(*(end.error for end in ends)))

    def _slopes(self, y: Vector) -> list[tuple[Vector, Vector]]:
        """Return slopes c and d of the two terms at two ends, between which c - d is y / s exactly."""
        counted, mixed = self.weight > 0, self.up > 0 and self.down > 0
        ratio = np.where(counted, y, 0.0) / np.where(counted, self.weight, 1.0)
        u = self.conjugate().maximiser(y) if mixed else np.zeros_like(y)
        rising, falling = _exponential(self.up, u), np.where(self.b > 0, self.b * _exponential(self.down, -u), 0.0)
        upwards = ratio >= 0 if mixed else np.full(y.shape, self.up > 0)  # the term that takes the difference
        known, ratio = np.where(upwards, falling, rising), np.where(upwards, ratio, -ratio)
        error = 2 * UNIT * (np.abs(ratio) + np.abs(known + ratio)) + 2 * TINY * (ratio != 0)
        ends = (np.maximum(known + ratio + side * error, 0.0) for side in (-1, 1))
        return [(np.where(upwards, end, known), np.where(upwards, known, end)) for end in ends]

    def _near(self, *terms: tuple[Vector, Vector]) -> Near:
        """Return the sum of terms times the weight, each with 24 roundings of its size: three times that of an exp."""
        counted = self.weight > 0
        value, size = (sum(each) for each in zip(*terms, strict=True))
        error = self.weight * (24 * UNIT * size + LOST) + LOST
        return Near(np.where(counted, self.weight * value, 0.0), np.where(counted, error, 0.0))


class TweedieConjugate(CurvedConjugate[TweedieLoss]):
    r"""The conjugate of a loss with a log link.

    For the Poisson loss it is :math:`\sum_i c_i \log(c_i / s_i) - c_i` with :math:`c_i = y_i + s_i b_i \ge 0`, for the
    gamma loss :math:`\sum_i c_i \log(c_i / (s_i b_i)) - c_i` with :math:`c_i = s_i - y_i \ge 0`. Between the two it is
    y u - l(u) at the root of l'(u) = y. A row of weight 0 has the single point y = 0.
    """

    @cached_property
    def domain(self) -> Interval:
        of, counted = self.of, self.of.weight > 0
        lowest = np.where(of.b > 0, -np.inf, 0.0) if of.down else -of.weight * of.b
        highest = np.full_like(of.b, np.inf) if of.up else of.weight
        return Interval(np.where(counted, lowest, 0.0), np.where(counted, highest, 0.0))

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        of = self.of
        y = self.domain.project(multiple(x, factor))
        if of.up and of.down:
            u = self.maximiser(y)
            return float(np.sum(y * u)) - of.finite_value(u)
        rest, base = (of.weight - y, of.weight * of.b) if of.down else (y + of.weight * of.b, of.weight)
        rest = np.maximum(rest, 0.0)
        # a difference of logarithms, since the quotient may underflow
        logarithm = np.log(np.where(rest > 0, rest, 1.0)) - np.log(np.where(base > 0, base, 1.0))
        return float(np.sum(rest * logarithm - rest))

    def maximiser(self, y: Vector) -> Vector:
        r"""Return the root of :math:`e^{(2-p) u} - b\, e^{-(p-1) u} = d` with d = y / weight, for p between 1 and 2.

        For d < 0, -u is the unknown. So the equation is :math:`\log P + u = \log(d\, e^{k u} + Q)` with d >= 0. Its two
        sides differ by a concave function with slopes from 1 - k to 1: Newton's method does not overshoot from below,
        where the larger of the roots without d and without Q is.
        """
        of = self.of
        ratio = np.where(of.weight > 0, y / np.where(of.weight > 0, of.weight, 1.0), 0.0)
        below = ratio < 0
        logarithm = np.log(np.maximum(of.b, SMALLEST))
        size = np.log(np.maximum(np.abs(ratio), SMALLEST))
        rate = np.where(below, of.up, of.down)
        first, second = np.where(below, logarithm, 0.0), np.where(below, 0.0, logarithm)
        point = np.maximum(second - first, (size - first) / (1.0 - rate))
        for _ in range(NEWTON_STEPS):
            steep = size + rate * point
            both = np.logaddexp(steep, second)
            change = (first + point - both) / (1.0 - rate * np.exp(steep - both))
            point = point - change
            if np.all(np.abs(change) <= 4e-16 * (1.0 + np.abs(point))):
                break
        root: Vector = np.where(below, -point, point)
        return root

    def recession(self, direction: Vector) -> Ray:
        return Ray(0.0, direction)

    def minimiser(self) -> Vector:
        return self.of.weight * (1.0 - self.of.b)

    def subgradient_scale(self) -> Vector:
        return np.maximum(np.abs(np.log(np.where(self.of.b > 0, self.of.b, 1.0))), 1.0)


def _exponential(rate: float, u: Vector) -> Vector:
    """Return exp(rate u); 1 for the rate 0 even if u is infinite."""
    return np.exp(rate * u) if rate else np.ones_like(u)


def _integral(rate: float, u: Vector) -> Vector:
    """Return exp(rate u) / rate; u for the rate 0."""
    return np.exp(rate * u) / rate if rate else u


def _conjugate_of_exponential(rate: float, slope: Vector, base: Parameter) -> tuple[Vector, Vector]:
    """Return the conjugate of base exp(rate v) / rate, c (log(c / base) - 1) / rate, and what its rounding scales with.

    Both are 0 for the rate 0, where the function is a line.
    """
    if not rate:
        return np.zeros_like(slope), np.zeros_like(slope)
    share, logarithm = slope / rate, _logarithm_of_share(slope, base)
    return share * (logarithm - 1.0), share * (np.abs(logarithm) + 1.0)


def _excess_of_exponential(rate: float, v: Vector, slope: Vector, base: Parameter) -> tuple[Vector, Vector]:
    """Return the excess of base exp(rate v) / rate, and what its rounding scales with.

    With d = rate v - log(c / base) it is c (exp(d) - 1 - d) / rate, whose derivative is small next to d = 0.
    """
    if not rate:
        return np.zeros_like(v), np.zeros_like(v)
    exponent, logarithm, share = rate * v, _logarithm_of_share(slope, base), slope / rate
    off, size = exponent - logarithm, np.abs(exponent) + np.abs(logarithm) + 2.0
    growth = np.where(base > 0, base * np.exp(np.where(base > 0, exponent, 0.0)) / rate, 0.0)
    close = (np.abs(off) <= 1.0) & (slope > 0)
    return (
        np.where(close, share * (np.expm1(np.where(close, off, 0.0)) - off), growth - share - share * off),
        np.where(
            close, share * size * (np.abs(off) + 8 * UNIT * size), growth * (1.0 + np.abs(exponent)) + share * size
        ),
    )


def _logarithm_of_share(slope: Vector, base: Parameter) -> Vector:
    """Return log(slope / base); 0 if one of them is 0."""
    known = (slope > 0) & (base > 0)
    return np.where(known, np.log(np.where(known, slope / np.where(known, base, 1.0), 1.0)), 0.0)
