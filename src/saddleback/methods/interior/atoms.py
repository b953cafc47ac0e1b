r"""The atoms of a function for the interior-point method: kinks, bounds, cones and smooth parts.

An atom is a part of a convex function F of a vector v. Each atom has a slope, and the slopes of all atoms add up to a
slope of F. An atom that is not smooth holds pairs of positive numbers: *near*, which moves with v, and *far*, which
moves with the slope. Their products are 0 at a solution, and mu on the central path. A Newton step on near * far = mu
gives the change of the slope as a function of the change of v,

.. math::

    d\,\mathrm{slope} = D\, dv + e,

and the linear system needs only D and e. For a bound, D = far / near; for a kink, one over the sum of near / far on
both sides; for a norm, the inverse square of the Nesterov-Todd scaling. All other changes are computed from dv, not
from the change of the slope, in which digits cancel. Only the slopes of kinks and norms are corrected afterwards, so
that the sum of all slopes agrees with the other variable: they absorb the difference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ...common.arrays import Indices, Vector
from ...common.rebuildable import stored

CENTRAL = 0.1
"""Products between CENTRAL * mu and mu / CENTRAL need no correction."""


def longest_step(positive: Vector, change: Vector) -> float:
    """Return the largest step up to 1 that keeps a positive vector positive."""
    fastest = float(np.fmin.reduce(change / positive, initial=0.0))
    return 1.0 if fastest >= -1.0 else -1.0 / fastest


@stored
class Pair:
    """Positive vectors ``near`` and ``far`` whose products should become mu; ``lacking`` is the missing part."""

    near: Vector
    far: Vector
    near_change: Vector
    far_change: Vector
    lacking: Vector

    def __init__(self, near: Vector, far: Vector) -> None:
        self.near, self.far = near, far
        self.near_change, self.far_change = np.zeros_like(near), np.zeros_like(far)
        self.lacking = np.zeros_like(near)

    def aim(self, mu: float, corrected: bool) -> None:
        """Set ``lacking`` to mu minus the products, and minus the second-order term of the last direction if asked."""
        self.lacking = mu - self.near * self.far
        if corrected:
            self.lacking -= self.near_change * self.far_change

    def recentre(self, mu: float, near_step: float, far_step: float) -> None:
        """Correct the aim of products that a step would leave far from mu: Gondzio's correction."""
        after = (self.near + near_step * self.near_change) * (self.far + far_step * self.far_change)
        wanted = np.clip(after, CENTRAL * mu, mu / CENTRAL) - after
        self.lacking = self.lacking + np.maximum(wanted, -mu / CENTRAL)

    def longest(self) -> tuple[float, float]:
        """Return the longest steps of near and far that keep all numbers positive."""
        return longest_step(self.near, self.near_change), longest_step(self.far, self.far_change)

    def product(self, near_step: float = 0.0, far_step: float = 0.0) -> float:
        """Return the sum of the products after a step."""
        if near_step == far_step == 0:
            return float(self.near @ self.far)
        return float((self.near + near_step * self.near_change) @ (self.far + far_step * self.far_change))

    def move(self, near_step: float, far_step: float) -> None:
        """Take a step."""
        self.near = self.near + near_step * self.near_change
        self.far = self.far + far_step * self.far_change


class Atom(ABC):
    """A part of a function, along some of its coordinates."""

    at: Indices
    """The coordinates, in the order of all vectors that the atom takes and returns."""

    degree: int = 0
    """Number of products."""

    def pairs(self) -> tuple[Pair, ...]:
        """Return the pairs of single numbers."""
        return ()

    @abstractmethod
    def slope(self) -> Vector:
        """Return the present slope."""

    @abstractmethod
    def stiffness(self) -> Vector:
        """Return the diagonal of D; for a cone, only its diagonal part."""

    @abstractmethod
    def aim(self, mu: float, corrected: bool) -> None:
        """Aim at products of mu; if ``corrected``, with the second-order term of the last direction."""

    @abstractmethod
    def offset(self) -> Vector:
        """Return e for the present aim."""

    @abstractmethod
    def follow(self, dv: Vector) -> None:
        """Compute the changes that follow from a change of v."""

    @abstractmethod
    def slope_change(self) -> Vector:
        """Return the change of the slope that ``follow`` has computed."""

    @abstractmethod
    def longest(self) -> tuple[float, float]:
        """Return the longest steps up to 1, near and far, that stay inside the domain."""

    @abstractmethod
    def product(self, near_step: float = 0.0, far_step: float = 0.0) -> float:
        """Return the sum of the products after a step."""

    @abstractmethod
    def move(self, near_step: float, far_step: float) -> None:
        """Take a step."""


class Smooth(Atom):
    """A differentiable part, which has no pairs. Subclasses define the derivatives."""

    v: Vector
    dv: Vector

    def __init__(self, at: Indices, v: Vector) -> None:
        self.at, self.v, self.dv = at, v.copy(), np.zeros_like(v)

    def aim(self, mu: float, corrected: bool) -> None:
        pass

    def offset(self) -> Vector:
        return np.zeros_like(self.v)

    def follow(self, dv: Vector) -> None:
        self.dv = dv

    def slope_change(self) -> Vector:
        return self.stiffness() * self.dv

    def longest(self) -> tuple[float, float]:
        return 1.0, 1.0

    def product(self, near_step: float = 0.0, far_step: float = 0.0) -> float:
        return 0.0

    def move(self, near_step: float, far_step: float) -> None:
        self.v = self.v + near_step * self.dv


@stored
class Quadratic(Smooth):
    """<c, v> + 1/2 sum q v^2."""

    linear: Vector
    quadratic: Vector

    def __init__(self, at: Indices, v: Vector, linear: Vector, quadratic: Vector) -> None:
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

    def __init__(self, at: Indices, v: Vector, labels: Vector, weight: Vector) -> None:
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
        step = min(longest_step(taken, change), longest_step(self.weight - taken, -change))
        return step, 1.0


@stored
class Bound(Atom):
    """v >= bound for side = 1, v <= bound for side = -1; near is the distance, far the multiplier."""

    side: int
    pair: Pair

    def __init__(self, at: Indices, side: int, distance: Vector, multiplier: Vector) -> None:
        self.at, self.side = at, side
        self.pair = Pair(distance, multiplier)
        self.degree = at.size

    def slope(self) -> Vector:
        return -self.side * self.pair.far

    def stiffness(self) -> Vector:
        return self.pair.far / self.pair.near

    def aim(self, mu: float, corrected: bool) -> None:
        self.pair.aim(mu, corrected)

    def pairs(self) -> tuple[Pair, ...]:
        return (self.pair,)

    def offset(self) -> Vector:
        return -self.side * self.pair.lacking / self.pair.near

    def follow(self, dv: Vector) -> None:
        pair = self.pair
        pair.near_change = self.side * dv
        pair.far_change = (pair.lacking - pair.far * pair.near_change) / pair.near

    def slope_change(self) -> Vector:
        return -self.side * self.pair.far_change

    def longest(self) -> tuple[float, float]:
        return self.pair.longest()

    def product(self, near_step: float = 0.0, far_step: float = 0.0) -> float:
        return self.pair.product(near_step, far_step)

    def move(self, near_step: float, far_step: float) -> None:
        self.pair.move(near_step, far_step)


@stored
class Kink(Atom):
    """A slope that jumps from left to right at v = 0: v = p - n with p against right - k, and n against k - left."""

    left: Vector
    right: Vector
    up: Pair
    down: Pair

    def __init__(self, at: Indices, left: Vector, right: Vector, positive: Vector, negative: Vector, k: Vector) -> None:
        self.at, self.left, self.right = at, left, right
        self.up, self.down = Pair(positive, right - k), Pair(negative, k - left)
        self.degree = 2 * at.size

    def slope(self) -> Vector:
        # computed from the nearer end of the interval, which loses fewer digits
        return np.where(self.up.far < self.down.far, self.right - self.up.far, self.left + self.down.far)

    def _give(self) -> Vector:
        return self.up.near / self.up.far + self.down.near / self.down.far

    def _pull(self) -> Vector:
        return self.up.lacking / self.up.far - self.down.lacking / self.down.far

    def stiffness(self) -> Vector:
        return 1.0 / self._give()

    def aim(self, mu: float, corrected: bool) -> None:
        self.up.aim(mu, corrected)
        self.down.aim(mu, corrected)

    def pairs(self) -> tuple[Pair, ...]:
        return self.up, self.down

    def offset(self) -> Vector:
        return -self._pull() / self._give()

    def follow(self, dv: Vector) -> None:
        dk = (dv - self._pull()) / self._give()
        self.up.far_change, self.down.far_change = -dk, dk
        self.up.near_change = (self.up.lacking + self.up.near * dk) / self.up.far
        self.down.near_change = (self.down.lacking - self.down.near * dk) / self.down.far

    def slope_change(self) -> Vector:
        return self.down.far_change

    def absorb(self, difference: Vector) -> None:
        """Add a difference to the change of the slope."""
        self.up.far_change = self.up.far_change - difference
        self.down.far_change = self.down.far_change + difference

    def longest(self) -> tuple[float, float]:
        (near_up, far_up), (near_down, far_down) = self.up.longest(), self.down.longest()
        return min(near_up, near_down), min(far_up, far_down)

    def product(self, near_step: float = 0.0, far_step: float = 0.0) -> float:
        return self.up.product(near_step, far_step) + self.down.product(near_step, far_step)

    def move(self, near_step: float, far_step: float) -> None:
        self.up.move(near_step, far_step)
        self.down.move(near_step, far_step)


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
        return min(step, longest_step(head, d_head))


@stored
class Norm(Atom):
    r"""sum_g w_g ||v_g||: near (t, v_g), far (w_g, -k_g) with k the slope, both in the second-order cone.

    With the Nesterov-Todd point (b, q) of the pair and its size eta, :math:`D = \eta^{-2}(I - 2qq'/(1 + 2|q|^2))`.
    """

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

    def slope(self) -> Vector:
        return self.k

    def stiffness(self) -> Vector:
        return (self.eta**-2)[self.cones.group]

    def aim(self, mu: float, corrected: bool) -> None:
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

    def offset(self) -> Vector:
        return -self._stiff(self._pull[1])

    def _stiff(self, v: Vector) -> Vector:
        inner = 2.0 * self.cones.sums(self.q * v) / (1.0 + 2.0 * self.q_square)
        product: Vector = self.stiffness() * (v - self.q * inner[self.cones.group])
        return product

    def follow(self, dv: Vector) -> None:
        rest = dv - self._pull[1]
        self.dv, self.dk = dv, self._stiff(rest)
        self.dt = self._pull[0] + 2.0 * self.b / (1.0 + 2.0 * self.q_square) * self.cones.sums(self.q * rest)

    def slope_change(self) -> Vector:
        return self.dk

    def absorb(self, difference: Vector) -> None:
        """Add a difference to the change of the slope."""
        self.dk = self.dk + difference

    def longest(self) -> tuple[float, float]:
        none = np.zeros_like(self.weight)
        return (
            self.cones.longest(self.t, self.v, self.dt, self.dv),
            self.cones.longest(self.weight, self.k, none, self.dk),
        )

    def product(self, near_step: float = 0.0, far_step: float = 0.0) -> float:
        t, v, k = self.t + near_step * self.dt, self.v + near_step * self.dv, self.k + far_step * self.dk
        return float(t @ self.weight - v @ k)

    def move(self, near_step: float, far_step: float) -> None:
        self.t = self.t + near_step * self.dt
        self.v = self.v + near_step * self.dv
        self.k = self.k + far_step * self.dk
        self.rescale()
