r"""The atoms of a function for the interior-point method: kinks, bounds, cones and smooth parts.

An atom is a part of a convex function F of a vector v. Each atom has a slope, and the slopes of all atoms add up to a
slope of F. An atom that is not smooth holds pairs of positive numbers: *near*, which moves with v, and *far*, which
moves with the slope. Their products are 0 at a solution, and mu on the central path. A Newton step on near * far = mu
gives the change of the slope as a function of the change of v,

.. math::

    d\,\mathrm{slope} = D\, dv + e,

and the linear system needs only D and e. For a bound, D = far / near; for a kink, one over the sum of near / far on
both sides; for a norm, the inverse square of the Nesterov-Todd scaling. All other changes are computed from dv, not
from the change of the slope, in which digits cancel. Only the slopes of norms and kinks change by what the other atoms
leave to them, so that the sum of all slopes agrees with the other variable: they absorb the difference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ... import _native
from ...common.arrays import Indices, Vector
from ...common.rebuildable import stored

NEAR, FAR, NEAR_CHANGE, FAR_CHANGE, LACKING = range(5)
"""The rows of the array of some pairs: positive numbers near and far, their changes in a step, and what the linearised
products lack."""


def pairs_of(near: Vector, far: Vector) -> Vector:
    """Return the array of pairs that do not move yet."""
    pairs = np.zeros((5, near.size))
    pairs[NEAR], pairs[FAR] = near, far
    return pairs


def longest_step(fastest: float) -> float:
    """Return the largest step up to 1 that keeps positive numbers positive, given their fastest relative change."""
    return 1.0 if fastest >= -1.0 else -1.0 / fastest


def fastest_change(positive: Vector, change: Vector) -> float:
    """Return the fastest relative change, at most 0, of positive numbers."""
    return float(np.fmin.reduce(change / positive, initial=0.0))


class Atom(ABC):
    """A part of a function, along some of its coordinates. Its methods add to vectors of all coordinates."""

    at: Indices | None
    """The coordinates; None for all of them in order."""

    degree: int = 0
    """Number of products."""

    total: float = 0.0
    """Sum of the products."""

    @property
    def own(self) -> Indices | slice:
        """The coordinates as an index."""
        return slice(None) if self.at is None else self.at

    def pairs(self) -> tuple[Vector, ...]:
        """Return the arrays of pairs of single numbers."""
        return ()

    def curved(self) -> bool:
        """Return whether the atom is smooth, with a slope that depends on v."""
        return False

    @abstractmethod
    def aim(self, mu: float, corrected: bool, right: Vector) -> None:
        """Aim at products of mu; if ``corrected``, with the second-order term of the last direction.

        Subtracts e from the right side of the linear system.
        """

    @abstractmethod
    def recentre(self, mu: float, near_step: float, far_step: float, right: Vector) -> None:
        """Correct the aim of pairs whose products a step would leave far from mu (Gondzio 1996).

        Subtracts e from the right side of the linear system.
        """

    @abstractmethod
    def follow(self, dv: Vector, rest: Vector) -> None:
        """Compute the changes that follow from a change of v, and subtract that of the slope from ``rest``."""

    @abstractmethod
    def longest(self) -> tuple[float, float]:
        """Return the longest steps up to 1, near and far, that stay inside the domain."""

    @abstractmethod
    def product(self, near_step: float, far_step: float) -> float:
        """Return the sum of the products after a step."""

    @abstractmethod
    def move(self, near_step: float, far_step: float, slope: Vector, stiffness: Vector) -> None:
        """Take a step. Add the slope at the new point and the diagonal of D, for a cone only its diagonal part."""


class Smooth(Atom):
    """A differentiable part, which has no pairs. Subclasses define the derivatives."""

    v: Vector
    dv: Vector

    def __init__(self, at: Indices | None, v: Vector) -> None:
        self.at, self.v, self.dv = at, v.copy(), np.zeros_like(v)

    @abstractmethod
    def slope(self) -> Vector:
        """Return the derivative at v."""

    @abstractmethod
    def stiffness(self) -> Vector:
        """Return the second derivative at v."""

    def curved(self) -> bool:
        return bool(np.any(self.stiffness()))

    def aim(self, mu: float, corrected: bool, right: Vector) -> None:
        pass

    def recentre(self, mu: float, near_step: float, far_step: float, right: Vector) -> None:
        pass

    def follow(self, dv: Vector, rest: Vector) -> None:
        self.dv = dv[self.own]
        rest[self.own] -= self.stiffness() * self.dv

    def longest(self) -> tuple[float, float]:
        return 1.0, 1.0

    def product(self, near_step: float, far_step: float) -> float:
        return 0.0

    def move(self, near_step: float, far_step: float, slope: Vector, stiffness: Vector) -> None:
        self.v = self.v + near_step * self.dv
        slope[self.own] += self.slope()
        stiffness[self.own] += self.stiffness()


@stored
class Quadratic(Smooth):
    """<c, v> + 1/2 sum q v^2."""

    linear: Vector
    quadratic: Vector

    def __init__(self, at: Indices | None, v: Vector, linear: Vector, quadratic: Vector) -> None:
        super().__init__(at, v)
        self.linear, self.quadratic = linear, quadratic

    def slope(self) -> Vector:
        return self.linear + self.quadratic * self.v

    def stiffness(self) -> Vector:
        return self.quadratic


@stored
class Entropy(Smooth):
    r"""The conjugate of the logistic loss: :math:`s (p \log p + (1 - p) \log(1 - p))` at v = -label s p, 0 < p < 1."""

    labels: Vector
    weight: Vector

    def __init__(self, at: Indices | None, v: Vector, labels: Vector, weight: Vector) -> None:
        super().__init__(at, v)
        self.labels, self.weight = labels, weight

    def _shares(self, step: float = 0.0) -> tuple[Vector, Vector]:
        taken = -self.labels * (self.v + step * self.dv)
        return taken / self.weight, (self.weight - taken) / self.weight

    def slope(self) -> Vector:
        p, rest = self._shares()
        slope: Vector = -self.labels * (np.log(p) - np.log(rest))
        return slope

    def stiffness(self) -> Vector:
        p, rest = self._shares()
        return 1.0 / (self.weight * p * rest)

    def longest(self) -> tuple[float, float]:
        taken, change = -self.labels * self.v, -self.labels * self.dv
        fastest = min(fastest_change(taken, change), fastest_change(self.weight - taken, -change))
        return longest_step(fastest), 1.0


class Paired(Atom):
    """An atom of pairs, whose loops are compiled (``native/barrier.hpp``)."""

    ahead: tuple[float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0)
    """The fastest relative changes of near and far in the last direction, and the sums of near_change * far,
    near * far_change and near_change * far_change."""

    def longest(self) -> tuple[float, float]:
        return longest_step(self.ahead[0]), longest_step(self.ahead[1])

    def product(self, near_step: float, far_step: float) -> float:
        _, _, by_near, by_far, by_both = self.ahead
        return self.total + near_step * by_near + far_step * by_far + near_step * far_step * by_both


@stored
class Bound(Paired):
    r"""v >= bound for side = 1, v <= bound for side = -1; near is the distance, far the multiplier.

    The slope is -side far. A change dv changes near by side dv, and far by (lacking - far side dv) / near.
    """

    side: int
    pair: Vector

    def __init__(self, at: Indices | None, side: int, distance: Vector, multiplier: Vector) -> None:
        self.at, self.side = at, side
        self.pair = pairs_of(distance, multiplier)
        self.degree = distance.size

    def pairs(self) -> tuple[Vector, ...]:
        return (self.pair,)

    def aim(self, mu: float, corrected: bool, right: Vector) -> None:
        _native.aim_bounds(self.pair, self.at, self.side, mu, corrected, right)

    def recentre(self, mu: float, near_step: float, far_step: float, right: Vector) -> None:
        _native.recentre_bounds(self.pair, self.at, self.side, mu, near_step, far_step, right)

    def follow(self, dv: Vector, rest: Vector) -> None:
        self.ahead = _native.follow_bounds(self.pair, self.at, self.side, dv, rest)

    def move(self, near_step: float, far_step: float, slope: Vector, stiffness: Vector) -> None:
        self.total = _native.move_bounds(self.pair, self.at, self.side, near_step, far_step, slope, stiffness)


@stored
class Kink(Paired):
    r"""A slope k that jumps from left to right at v = 0: v = p - n with p against right - k, and n against k - left.

    With :math:`1 / D = p / (\text{right} - k) + n / (k - \text{left})`, a change dv changes k by D dv + e, p by
    (lacking + p dk) / (right - k), and n by (lacking - n dk) / (k - left). If ``absorbs``, k changes by all that the
    other atoms leave to it.
    """

    left: Vector
    right: Vector
    absorbs: bool
    up: Vector
    down: Vector

    def __init__(
        self,
        at: Indices | None,
        left: Vector,
        right: Vector,
        positive: Vector,
        negative: Vector,
        k: Vector,
        absorbs: bool = True,
    ) -> None:
        self.at, self.left, self.right, self.absorbs = at, left, right, absorbs
        self.up, self.down = pairs_of(positive, right - k), pairs_of(negative, k - left)
        self.degree = 2 * left.size

    def pairs(self) -> tuple[Vector, ...]:
        return self.up, self.down

    def aim(self, mu: float, corrected: bool, right: Vector) -> None:
        _native.aim_kinks(self.up, self.down, self.at, mu, corrected, right)

    def recentre(self, mu: float, near_step: float, far_step: float, right: Vector) -> None:
        _native.recentre_kinks(self.up, self.down, self.at, mu, near_step, far_step, right)

    def follow(self, dv: Vector, rest: Vector) -> None:
        self.ahead = _native.follow_kinks(self.up, self.down, self.at, dv, self.absorbs, rest)

    def move(self, near_step: float, far_step: float, slope: Vector, stiffness: Vector) -> None:
        ends = self.left, self.right
        self.total = _native.move_kinks(self.up, self.down, self.at, *ends, near_step, far_step, slope, stiffness)


@stored
@dataclass(frozen=True)
class Cones:
    """The arithmetic of second-order cones, on one number (head) and one vector (tail) per group."""

    start: Indices
    group: Indices

    def sums(self, v: Vector) -> Vector:
        """Return the sum over each group."""
        return np.add.reduceat(v, self.start)

    def room(self, head: Vector, tail: Vector) -> Vector:
        """Return head^2 - |tail|^2, computed without cancellation."""
        norm = np.sqrt(self.sums(tail * tail))
        return (head - norm) * (head + norm)

    def longest(self, head: Vector, tail: Vector, d_head: Vector, d_tail: Vector) -> float:
        """Return the longest step up to 1 that stays in all cones: the least positive root of a quadratic."""
        a = d_head * d_head - self.sums(d_tail * d_tail)
        b = head * d_head - self.sums(tail * d_tail)
        c = self.room(head, tail)
        root = np.sqrt(np.maximum(b * b - a * c, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.stack([c / (-b + root), c / (-b - root)])
        ends = ends[:, b * b - a * c >= 0]
        step = float(np.min(ends[(ends > 0) & np.isfinite(ends)], initial=1.0))
        return min(step, longest_step(fastest_change(head, d_head)))


@stored
class Norm(Atom):
    r"""sum_g w_g ||v_g||: near (t, v_g), far (w_g, -k_g) with k the slope, both in the second-order cone.

    The slope changes by all that the atoms before it leave to it. With the Nesterov-Todd point (b, q) of the pair and
    its size eta, :math:`D = \eta^{-2}(I - 2qq'/(1 + 2|q|^2))`.
    """

    at: Indices
    cones: Cones
    weight: Vector
    t: Vector
    v: Vector
    k: Vector
    dt: Vector
    dv: Vector
    dk: Vector
    b: Vector
    q: Vector
    eta: Vector
    q_square: Vector
    head: Vector
    tail: Vector
    _pull: tuple[Vector, Vector]

    def __init__(self, at: Indices, start: Indices, weight: Vector, t: Vector, v: Vector, k: Vector) -> None:
        sizes = np.diff(np.append(start, at.size))
        self.at = at
        self.cones = Cones(start, np.repeat(np.arange(start.size), sizes))
        self.weight, self.t, self.v, self.k = weight, t, v.copy(), k
        self.dt, self.dv, self.dk = np.zeros_like(t), np.zeros_like(v), np.zeros_like(v)
        self.degree = start.size
        self.rescale()

    def rescale(self) -> None:
        """Compute the Nesterov-Todd point of the present pair."""
        cones, wide = self.cones, self.cones.group
        near, far = np.sqrt(cones.room(self.t, self.v)), np.sqrt(cones.room(self.weight, self.k))
        gamma = np.sqrt(0.5 * (1.0 + (self.t * self.weight - cones.sums(self.v * self.k)) / (near * far)))
        self.b = (self.t / near + self.weight / far) / (2.0 * gamma)
        self.q = (self.v / near[wide] + self.k / far[wide]) / (2.0 * gamma)[wide]
        self.eta = np.sqrt(near / far)
        self.q_square = cones.sums(self.q * self.q)
        self.head, self.tail = self._scaled(self.weight, -self.k)

    def _scaled(self, head: Vector, tail: Vector, inverse: bool = False) -> tuple[Vector, Vector]:
        """Return the product with the Nesterov-Todd scaling, or with its inverse."""
        sign, eta = (-1.0, 1.0 / self.eta) if inverse else (1.0, self.eta)
        inner = self.cones.sums(self.q * tail)
        along = sign * head + inner / (1.0 + self.b)
        wide = self.cones.group
        return eta * (self.b * head + sign * inner), eta[wide] * (tail + self.q * along[wide])

    def aim(self, mu: float, corrected: bool, right: Vector) -> None:
        cones, wide = self.cones, self.cones.group
        head = mu - self.head**2 - cones.sums(self.tail**2)
        tail = -2.0 * self.head[wide] * self.tail
        if corrected:
            near = self._scaled(self.dt, self.dv, inverse=True)
            far = self._scaled(np.zeros_like(self.dt), -self.dk)
            head = head - near[0] * far[0] - cones.sums(near[1] * far[1])
            tail = tail - near[0][wide] * far[1] - far[0][wide] * near[1]
        # divide by the scaled point in the algebra of the cone
        room = cones.room(self.head, self.tail)
        first = (self.head * head - cones.sums(self.tail * tail)) / room
        rest = (tail - self.tail * first[wide]) / self.head[wide]
        self._pull = self._scaled(first, rest)
        right[self.at] += self._stiff(self._pull[1])

    def recentre(self, mu: float, near_step: float, far_step: float, right: Vector) -> None:
        right[self.at] += self._stiff(self._pull[1])

    def _spread(self) -> Vector:
        return (self.eta**-2)[self.cones.group]

    def _stiff(self, v: Vector) -> Vector:
        inner = 2.0 * self.cones.sums(self.q * v) / (1.0 + 2.0 * self.q_square)
        product: Vector = self._spread() * (v - self.q * inner[self.cones.group])
        return product

    def follow(self, dv: Vector, rest: Vector) -> None:
        pulled = dv[self.at] - self._pull[1]
        self.dv, self.dk = dv[self.at], rest[self.at]
        self.dt = self._pull[0] + 2.0 * self.b / (1.0 + 2.0 * self.q_square) * self.cones.sums(self.q * pulled)
        rest[self.at] = 0.0

    def longest(self) -> tuple[float, float]:
        none = np.zeros_like(self.weight)
        return (
            self.cones.longest(self.t, self.v, self.dt, self.dv),
            self.cones.longest(self.weight, self.k, none, self.dk),
        )

    def product(self, near_step: float, far_step: float) -> float:
        t, v, k = self.t + near_step * self.dt, self.v + near_step * self.dv, self.k + far_step * self.dk
        return float(t @ self.weight - v @ k)

    def move(self, near_step: float, far_step: float, slope: Vector, stiffness: Vector) -> None:
        self.t = self.t + near_step * self.dt
        self.v = self.v + near_step * self.dv
        self.k = self.k + far_step * self.dk
        self.rescale()
        self.total = self.product(0.0, 0.0)
        slope[self.at] += self.k
        stiffness[self.at] += self._spread()
