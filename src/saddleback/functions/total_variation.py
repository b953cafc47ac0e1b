r"""The total variation of a vector as a penalty, with an exact prox in linear time.

.. math::

    f(x) = \alpha \sum_i |x_{i+1} - x_i| + \langle c, x \rangle + \beta \|x\|_1 \quad (+\infty \text{ if } x \not\ge 0
    \text{ and there is a sign constraint}).

The prox of the first two terms is a dynamic program (``denoise_line``). The other terms are the same increasing map of
each entry afterwards, since such a map keeps the signs of differences, or makes them 0: the subgradient of the total
variation stays one (Friedman, Hastie, Hoefling and Tibshirani, 2007, for the L1 norm). This needs one step for all
entries if beta > 0.

The subgradients of the first term are the differences of vectors q with entries in [-alpha, alpha]:

.. math::

    Z = \{\, z : |z_0 + \dots + z_i| \le \alpha \text{ for all } i, \; z_0 + \dots + z_{n-1} = 0 \,\},

and f* is the indicator of :math:`c + Z + [-\beta, \beta]^n`, without the lower bounds if there is a sign constraint.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from .. import _native
from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector, constant, here, multiple, squeeze_constant
from ..common.cached import cached_property
from ..common.checks import LARGEST_PRODUCT, scalar
from ..common.rounded import Rounded
from ..common.sums import Equations
from .conjugates import Ball, Indicator
from .contract import ROUNDING, Convex, Domain, Ray
from .domains import Everywhere, Interval, PartlyFixed, largest_finite_multiple
from .excess import Contact, all_bounds, collapsed, contact_of_jumps, largest_proved, linear_bounds
from .kinks import Kinks
from .normal_form import PiecewiseParameters
from .penalties import Regulariser
from .piecewise import PiecewiseQuadratic
from .traits import Addable, InUnits, Kinked, Lipschitz, Movable, Scaled


class TotalVariation1D(Regulariser):
    """alpha * sum_i |x_{i+1} - x_i|, for a piecewise constant x.

    Its prox is exact and takes a time proportional to the number of entries. For x on a grid or a graph, and for
    differences of higher order, write ``L1(alpha)`` as a term on ``Differences``.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.

    Examples
    --------
    >>> import numpy as np, saddleback as sb
    >>> sb.TotalVariation1D(1.0).prox(np.array([0.0, 1.0, 5.0, 6.0]), 1.0)
    array([1., 1., 5., 5.])
    """

    accepts = frozenset({"linear", "sign", "absolute"})

    def __init__(self, alpha: float) -> None:
        self.alpha = scalar("alpha", alpha, largest=LARGEST_PRODUCT)

    def bind(self, shape: tuple[int, ...]) -> LineVariation:
        size = int(np.prod(shape))
        if shape[:1] != (size,):
            raise ValueError(
                f"TotalVariation1D is a function of a vector, but its variable has shape {shape}: write L1(alpha) or "
                "GroupL2(alpha, groups) as a term on Differences(shape=...)"
            )
        return LineVariation(self.alpha, constant(0.0, size))


class LineVariation(Convex, Lipschitz, Addable, Kinked, Scaled, InUnits, Movable):
    """The function at the top of this module.

    Parameters
    ----------
    alpha : weight of the total variation.
    linear : c.
    beta : weight of the L1 norm.
    nonnegative : whether x must not be negative.
    place : puts the result of the prox, which is computed on the host, where the vectors are.
    """

    def __init__(
        self, alpha: float, linear: Vector, beta: float = 0.0, nonnegative: bool = False, place: ToDevice = here
    ) -> None:
        self.alpha = alpha
        self.linear = linear
        self.beta = beta
        self.nonnegative = nonnegative
        self.place = place
        self.diagonal_steps = beta == 0

    def blocks(self) -> Blocks:
        return Blocks.single(self.linear.size)

    def moved(self, place: ToDevice) -> LineVariation:
        return LineVariation(self.alpha, place(self.linear), self.beta, self.nonnegative, place)

    def in_units(self, unit: Vector) -> LineVariation:
        own = float(unit[0])
        return LineVariation(self.alpha * own, self.linear * own, self.beta * own, self.nonnegative, self.place)

    def plus(self, piece: PiecewiseParameters) -> LineVariation:
        middle, width = 0.5 * (piece.left + piece.right), 0.5 * (piece.right - piece.left)
        sign = self.nonnegative or bool(np.any(piece.lower == 0))
        return LineVariation(self.alpha, self.linear + middle, self.beta + float(width[0]), sign, self.place)

    @property
    def varies(self) -> bool:
        """Whether the total variation is not always 0."""
        return self.alpha > 0 and self.linear.size > 1

    @property
    def bare(self) -> bool:
        """Whether the only other term is linear."""
        return self.beta == 0 and not self.nonnegative

    def of_jumps(self) -> PiecewiseQuadratic:
        """Return a bare function as one of the first entry of x, which has no penalty, and of the differences."""
        assert self.bare
        size, tilt = self.linear.size, np.cumsum(self.linear[::-1])[::-1]
        slope = np.concatenate([np.zeros(1), np.full(size - 1, self.alpha)])
        return PiecewiseQuadratic(*PiecewiseParameters.zero(size)._replace(left=tilt - slope, right=tilt + slope))

    def without_variation(self) -> PiecewiseQuadratic:
        """Return the other terms."""
        slopes = PiecewiseParameters.zero(self.linear.size)._replace(
            left=self.linear - self.beta, right=self.linear + self.beta
        )
        lower = np.zeros(self.linear.size) if self.nonnegative else slopes.lower
        return PiecewiseQuadratic(*slopes._replace(lower=lower))

    @cached_property
    def domain(self) -> Domain:
        size = self.linear.size
        return Interval(constant(0.0, size), constant(np.inf, size)) if self.nonnegative else Everywhere()

    def _terms(self, x: Vector) -> tuple[float, float, float]:
        variation = self.alpha * float(np.sum(np.abs(x[1:] - x[:-1])))
        return variation, float(self.linear @ x), self.beta * float(np.sum(np.abs(x)))

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        return sum(self._terms(multiple(x, factor)))

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        steps = np.atleast_1d(np.asarray(squeeze_constant(step), dtype=np.float64))
        if steps.min() == steps.max():
            steps = steps[:1]
        pulled = np.asarray(v) - steps * np.asarray(self.linear)
        # with equal steps the weights are 1: sums of them are exact
        weight, alpha = (np.ones(1), self.alpha * float(steps[0])) if steps.size == 1 else (1.0 / steps, self.alpha)
        x = settled(_native.denoise_line(pulled, weight, alpha), pulled, weight, alpha)
        if self.beta > 0:
            x -= np.clip(x, -self.beta * steps, self.beta * steps)
        result: Vector = self.place(np.maximum(x, 0.0) if self.nonnegative else x)
        return result

    def rise(self, distance: float) -> float:
        slope = (2.0 * self.alpha + self.beta) * np.sqrt(self.linear.size) + np.linalg.norm(self.linear)
        return float(slope) * distance

    def subgradient(self, x: Vector) -> Vector:
        flow = np.concatenate([np.zeros_like(x[:1]), self.alpha * np.sign(x[1:] - x[:-1]), np.zeros_like(x[:1])])
        slope: Vector = flow[:-1] - flow[1:] + self.linear + self.beta * np.sign(x)
        return slope

    def subgradient_scale(self) -> Vector:
        return self.alpha + self.beta + np.abs(self.linear)

    def recession(self, direction: Vector) -> Ray:
        inside = self.domain.project(direction)
        variation, linear, absolute = self._terms(inside)
        size = variation + absolute + float(np.abs(self.linear) @ np.abs(inside))
        return Ray(variation + linear + absolute, direction - inside, size)

    def conjugate(self) -> Indicator:
        return Indicator(self, Bridge(self) if self.bare else Tube(self))

    def contact(self, point: Rounded, slope: Rounded) -> Contact | None:
        """Return the contact: that of the jumps of x and the cumulated sums of the slope; None for other terms."""
        if not self.bare:
            return None
        count, tilt = self.linear.size - 1, Rounded.around(-self.linear)
        ends = {"left": constant(-self.alpha, count), "right": constant(self.alpha, count)}
        absolute = PiecewiseQuadratic(*PiecewiseParameters.zero(count)._replace(**ends))
        known = contact_of_jumps(absolute, point, slope.plus(tilt))
        value, side = all_bounds(known.value, linear_bounds(self.linear, collapsed(point))), known.slope
        if not side.inside and np.any(self.linear):
            multiple = largest_proved(
                self.conjugate().domain.largest_multiple(slope.high),
                lambda t: contact_of_jumps(absolute, point, slope.times(t).plus(tilt)).slope.inside,
            )
            side = side._replace(multiple=multiple)
        return known._replace(value=value, slope=side)

    def kinks(self, z: Vector, rest: Any) -> Kinks:
        raise ValueError(
            "alpha_max cannot be computed for the sum of TotalVariation1D with L1 or NonNegative: give the alphas of a "
            "path"
        )


class _Subgradients(Ball):
    """Subgradients of a total variation with other terms; the cumulated sums are computed on the host."""

    def __init__(self, of: LineVariation) -> None:
        self.of = of
        self.symmetric = not (of.nonnegative or np.any(of.linear))

    def project(self, x: Vector) -> Vector:
        return x if self.holds(x) else x - self.of.prox(x, 1.0)  # Moreau

    def has_zero(self) -> bool:
        return self.holds(np.zeros(self.of.linear.size))

    def largest_multiple(self, x: Vector) -> float:
        return largest_finite_multiple(lambda point: 0.0 if self.holds(point) else np.inf, np.asarray(x))

    def _pull(self, x: Vector) -> Vector:
        return np.asarray(x) - np.asarray(self.of.linear)

    def _rounding(self, pull: Vector) -> float:
        return ROUNDING * (self.of.alpha + self.of.beta + float(np.sum(np.abs(pull))))


class Bridge(_Subgradients, PartlyFixed):
    """c + Z: cumulated sums that begin and end at 0, and do not leave [-alpha, alpha] on the way."""

    def holds(self, x: Vector) -> bool:
        pull = self._pull(x)
        sums, rounding = np.abs(np.cumsum(pull)), self._rounding(pull)
        return bool(sums[-1] <= rounding and np.max(sums) <= self.of.alpha + rounding)

    def largest_multiple(self, x: Vector) -> float:
        if np.any(self.of.linear):
            return super().largest_multiple(x)
        sums = np.abs(np.cumsum(np.asarray(x)))
        if sums[-1] > self._rounding(x):
            return 0.0
        largest = float(np.max(sums))
        return 1.0 if largest <= self.of.alpha else self.of.alpha / largest

    def fixed(self) -> Indices:
        size = self.of.linear.size
        return np.arange(size if self.of.alpha == 0 or size == 1 else 0)

    def fixed_sums(self, size: int) -> Equations:
        return super().fixed_sums(size) if self.fixed().size else Equations.total(self.of.linear)


class Tube(_Subgradients):
    """c + Z + [-beta, beta]^n, or c + Z + (-inf, beta]^n under a sign constraint."""

    def holds(self, x: Vector) -> bool:
        """Return whether some z in Z has x - c - beta <= z <= x - c + beta, up to rounding.

        If z_0 + ... + z_{i-1} may have any value in [low, high], then with z_i any value between low + x_i - c_i - beta
        and high + x_i - c_i + beta that is within [-alpha, alpha], or 0 at the end. The minima and maxima of all i are
        running ones after the cumulated sums are taken off.
        """
        pull = self._pull(x)
        bound = np.full(pull.size, self.of.alpha)
        bound[-1] = 0.0
        down = np.cumsum(pull - self.of.beta)
        low = down + np.maximum(np.maximum.accumulate(-bound - down), 0.0)
        up = np.cumsum(pull + self.of.beta)
        high = bound if self.of.nonnegative else up + np.minimum(np.minimum.accumulate(bound - up), 0.0)
        return bool(np.all(low - high <= self._rounding(pull)))


def nearest_subgradient(z: Vector, alpha: float) -> Vector:
    """Return the point of Z that is nearest to z (Moreau)."""
    return z - _native.denoise_line(z, np.ones(1), alpha)


def settled(x: Vector, v: Vector, weight: Vector, alpha: float) -> Vector:
    """Return the minimiser of ``denoise_line`` with each level computed once more from its own entries.

    The dynamic program rounds relative to alpha, which may be much larger than v. A level is the mean of its entries,
    moved by alpha towards the level before and the level after it.
    """
    first = np.concatenate([[0], np.flatnonzero(x[1:] != x[:-1]) + 1])
    pull = alpha * np.concatenate([[0.0], np.sign(x[first[1:]] - x[first[1:] - 1]), [0.0]])
    size = np.diff(np.append(first, x.size))
    total = size * weight if weight.size == 1 else np.add.reduceat(weight, first)
    return np.repeat((np.add.reduceat(weight * v, first) - pull[:-1] + pull[1:]) / total, size)


def denoise_line(v: Vector, weight: Vector, alpha: float) -> Vector:
    r"""Return argmin_x 1/2 sum_i w_i (x_i - v_i)^2 + alpha sum_i |x_{i+1} - x_i|, as the compiled core does.

    Let F_i(t) be the least cost of the entries up to i if x_i = t. Then

    .. math::

        F_{i+1}'(t) = w_{i+1} (t - v_{i+1}) + \min(\max(F_i'(t), -\alpha), \alpha),

    which is continuous, increasing and piecewise linear (Johnson, 2013). The clipped derivative is stored as the knots
    where its slope changes, and each step moves its two ends, low_i and high_i, where F_i' is -alpha and alpha. Knots
    that an end passes disappear, so that the time is proportional to n. Backwards, x_i is the point of [low_i, high_i]
    nearest to x_{i+1}.

    Parameters
    ----------
    v : the vector.
    weight : one positive value per entry, or a single one.
    alpha : weight of the total variation.
    """
    n, weight = v.size, np.broadcast_to(weight, v.shape)
    knots: deque[tuple[float, float]] = deque()
    low, high, x = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n - 1):
        reach = alpha / weight[0] if i == 0 else 0.0  # F_0' is not added to a clipped one
        low[i], slope = _root_from_left(knots, weight[i], v[i] - reach)
        knots.appendleft((low[i], slope))
        root, slope = _root_from_right(knots, weight[i], v[i] + reach)
        high[i] = max(root, low[i])
        knots.append((high[i], -slope))
    x[-1] = v[-1] if n == 1 else _root_from_left(knots, weight[-1], v[-1] + alpha / weight[-1])[0]
    for i in reversed(range(n - 1)):
        x[i] = min(max(x[i + 1], low[i]), high[i])
    return x


def _root_from_left(knots: deque[tuple[float, float]], weight: float, root: float) -> tuple[float, float]:
    """Return the root of a function and its slope there, and remove the knots before it.

    The function is a line with the given weight as its slope and the given root, and changes its slope at each knot.
    """
    slope = weight
    while knots and knots[0][0] < root:
        at, change = knots.popleft()
        missing = slope * (root - at)
        slope = max(slope + change, weight)  # which differ by rounding only, as weights of other entries add to it
        root = at + missing / slope
    return root, slope


def _root_from_right(knots: deque[tuple[float, float]], weight: float, root: float) -> tuple[float, float]:
    """Return the same from the right. The first knot, where the function is at its lower bound, stays."""
    slope = weight
    while len(knots) > 1 and knots[-1][0] > root:
        at, change = knots.pop()
        beyond = slope * (at - root)
        slope = max(slope - change, weight)
        root = at - beyond / slope
    return root, slope
