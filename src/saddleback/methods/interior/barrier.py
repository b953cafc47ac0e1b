r"""A built-in function as the sum of its atoms.

Both f(x) and g*(y) consist of kinks, bounds and quadratic terms per coordinate and of group norms
(``functions/piecewise.py``, ``functions/group.py``), or are an entropy. So one class serves both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ...common.arrays import Blocks, Indices, Vector
from ...common.cached import cached_property
from ...common.rebuildable import stored
from ...functions.normal_form import LogisticEntropy, NormalForm, PiecewiseParameters
from .atoms import FAR, Atom, Bound, Entropy, Kink, Norm, Quadratic

INSIDE = 0.1
"""Distance of the slope of a kink or norm from its bounds at the start, relative to the distance between them."""


@dataclass(frozen=True)
class Stiffness:
    r"""D = diag(d) + sum_g e_g (I - 2 q_g q_g' / (1 + 2 |q_g|^2)): the derivative of the slope with respect to v.

    ``diagonal`` is d plus e, infinite where v is fixed; ``norm`` is the atom with the groups, or None.
    """

    diagonal: Vector
    norm: Norm | None

    @cached_property
    def finite(self) -> Any:
        """Mask of the coordinates that are not fixed; None if no coordinate is fixed."""
        finite = np.isfinite(self.diagonal)
        return None if np.all(finite) else finite

    def product(self, v: Vector) -> Vector:
        """Return D v; 0 in the fixed coordinates, which do not move."""
        result = (self.diagonal if self.finite is None else np.where(self.finite, self.diagonal, 0.0)) * v
        if self.norm is not None:
            result[self.norm.at] -= self.norm.q * (self._along() * self._inner(v))[self.norm.cones.group]
        return result

    def add_to(self, matrix: Vector) -> None:
        """Add D, restricted to the coordinates that are not fixed, to the lower triangle of a matrix."""
        free = np.flatnonzero(np.isfinite(self.diagonal))
        matrix[np.arange(free.size), np.arange(free.size)] += self.diagonal[free]
        if self.norm is None:
            return
        place = np.cumsum(np.isfinite(self.diagonal)) - 1
        along = self._along()
        for g, members in enumerate(np.split(np.arange(self.norm.at.size), self.norm.cones.start[1:])):
            members = members[np.isfinite(self.diagonal[self.norm.at[members]])]
            at, q = place[self.norm.at[members]], self.norm.q[members]
            matrix[np.ix_(at, at)] -= along[g] * np.outer(q, q)

    def inverse(self) -> Inverse:
        """Return the inverse of D, if it exists. No digits cancel, however close v is to the boundary of a cone."""
        with np.errstate(divide="ignore"):
            diagonal = 1.0 / self.diagonal
        if self.norm is None:
            return Inverse(diagonal, None, np.zeros(0), np.zeros(0))
        norm, e = self.norm, self.norm.eta**-2
        total = self.diagonal[norm.at]
        rest = total - e[norm.cones.group]
        scale = 2.0 * e / (1.0 + 2.0 * norm.cones.sums(norm.q * norm.q * rest / total))
        return Inverse(diagonal, norm, norm.q / total, scale)

    def _along(self) -> Vector:
        assert self.norm is not None
        return 2.0 * self.norm.eta**-2 / (1.0 + 2.0 * self.norm.q_square)

    def _inner(self, v: Vector) -> Vector:
        assert self.norm is not None
        return self.norm.cones.sums(self.norm.q * v[self.norm.at])


@dataclass(frozen=True)
class Inverse:
    """diag(d) + sum_g scale_g p_g p_g'."""

    diagonal: Vector
    norm: Norm | None
    p: Vector
    scale: Vector

    def product(self, v: Vector) -> Vector:
        """Return the product with a vector."""
        result = self.diagonal * v
        if self.norm is not None:
            inner = self.scale * self.norm.cones.sums(self.p * v[self.norm.at])
            result[self.norm.at] += self.p * inner[self.norm.cones.group]
        return result

    def directions(self) -> Any:
        """Return the vectors p_g as the columns of a sparse matrix."""
        assert self.norm is not None
        entries = (self.p, (self.norm.at, self.norm.cones.group))
        return sparse.csc_array(entries, shape=(self.diagonal.size, self.scale.size))


@stored
class Barrier:
    """A function F at a point v inside its domain, with a slope there.

    Attributes
    ----------
    v : the point.
    slope, diagonal : the sums of the slopes of all atoms, and of the diagonals of their D.
    degree : number of pairs (near, far).
    """

    v: Vector
    atoms: list[Atom]
    fixed: Indices
    dv: Vector
    slope: Vector
    diagonal: Vector
    degree: int
    norm: Norm | None

    def __init__(self, v: Vector, atoms: list[Atom], fixed: Indices, norm: Norm | None = None) -> None:
        self.v, self.atoms, self.fixed, self.norm = v, atoms, fixed, norm
        self.dv = np.zeros_like(v)
        self.degree = sum(atom.degree for atom in atoms)
        self.move(0.0, 0.0)

    @cached_property
    def curved(self) -> bool:
        """Whether the slope of some smooth atom depends on v, so that x and y must take the same step."""
        return any(atom.curved() for atom in self.atoms)

    @property
    def pairs(self) -> list[Vector]:
        """The arrays of pairs of all atoms."""
        return [pair for atom in self.atoms for pair in atom.pairs()]

    def missed(self, slope: Vector) -> Vector:
        """Return the given slope minus the sum of the slopes; 0 where v is fixed, since any slope is right there."""
        lacking = slope - self.slope
        lacking[self.fixed] = 0.0
        return lacking

    def stiffness(self) -> Stiffness:
        """Return D."""
        diagonal = self.diagonal
        if self.fixed.size:
            diagonal = diagonal.copy()
            diagonal[self.fixed] = np.inf
        return Stiffness(diagonal, self.norm)

    def aim(self, mu: float, corrected: bool, missed: Vector) -> Vector:
        """Aim at products of mu; if ``corrected``, with the second-order term of the last direction.

        Returns ``missed`` - e.
        """
        right = missed.copy()
        for atom in self.atoms:
            atom.aim(mu, corrected, right)
        return right

    def recentre(self, mu: float, near_step: float, far_step: float, missed: Vector) -> Vector:
        """Correct the aim of products that a step along the last direction would leave far from mu.

        Returns ``missed`` - e.
        """
        right = missed.copy()
        for atom in self.atoms:
            atom.recentre(mu, near_step, far_step, right)
        return right

    def follow(self, dv: Vector, slope_change: Vector) -> None:
        """Compute all changes that follow from a change of v, such that the slopes change by the given sum.

        ``slope_change`` is overwritten with what no atom can absorb.
        """
        self.dv = dv
        for atom in self.atoms:
            atom.follow(dv, slope_change)

    def longest(self) -> tuple[float, float]:
        """Return the longest steps up to 1, of v and of its slope, that stay inside the domain."""
        steps = [atom.longest() for atom in self.atoms]
        return min((near for near, _ in steps), default=1.0), min((far for _, far in steps), default=1.0)

    def product(self, near_step: float = 0.0, far_step: float = 0.0) -> float:
        """Return the sum of all products after a step."""
        if near_step == far_step == 0:
            return sum(atom.total for atom in self.atoms)
        return sum(atom.product(near_step, far_step) for atom in self.atoms)

    def move(self, near_step: float, far_step: float) -> None:
        """Take a step."""
        self.v = self.v + near_step * self.dv
        self.slope, self.diagonal = np.zeros_like(self.v), np.zeros_like(self.v)
        for atom in self.atoms:
            atom.move(near_step, far_step, self.slope, self.diagonal)


@dataclass(frozen=True)
class Guess:
    """A proposal for the start of a barrier.

    Attributes
    ----------
    v, slope : the point and its desired slope; both are moved inside the domain if necessary.
    mu : size of the products.
    unit : distance of v from a one-sided bound.
    """

    v: Vector
    slope: Vector
    mu: float
    unit: Vector


def barrier_at(function: NormalForm, blocks: Blocks, guess: Guess) -> Barrier:
    """Return the barrier of a function near a guess.

    Between two bounds v starts in the middle, however good the guess is: near a bound the steps of an interior point
    are short, and from the middle it is back in a few steps.
    """
    match function.atoms:
        case (LogisticEntropy(labels, weight),):
            return _entropy_at(labels, weight)
    slopes, weight, norm = normalised(function, blocks)
    left, right, quadratic, lower, upper = slopes
    mu, fixed = guess.mu, lower == upper
    boxed = np.isfinite(lower) & np.isfinite(upper)
    length = np.where(boxed, 0.5 * (upper - lower), guess.unit)
    v = np.clip(guess.v, lower + length, upper - length)
    linear = np.where(left == right, left, 0.0)
    rest = guess.slope - linear - quadratic * v
    atoms: list[Atom] = []
    if np.any(smooth := ((linear != 0) | (quadratic != 0)) & ~fixed):
        at, own = _chosen(smooth)
        atoms.append(Quadratic(at, v[own], linear[own], quadratic[own]))
    kinked = (left < right) & ~fixed
    in_group = np.zeros(v.size, dtype=bool)
    if norm is not None:
        in_group[norm[0]] = True
    kinks = []
    for absorbs, mask in ((False, kinked & in_group), (True, kinked & ~in_group)):
        if np.any(mask):
            at, own = _chosen(mask)
            kinks.append(_kink_at(at, left[own], right[own], v[own], rest[own], mu, absorbs))
            rest[own] -= right[own] - kinks[-1].up[FAR]
    norms = None
    if norm is not None:
        order, start = norm
        norms = _norm_at(order, start, weight, v[order], rest[order], mu)
        rest[order] -= norms.k
    # the multipliers of a box start at the mean slope that they may have to balance
    spare = float(np.mean(np.abs(rest[boxed & ~fixed]))) if np.any(boxed & ~fixed) else 0.0
    for side, bound in ((1, lower), (-1, upper)):
        if not np.any(bounded := np.isfinite(bound) & ~fixed):
            continue
        at, own = _chosen(bounded)
        distance = np.maximum(side * (v[own] - bound[own]), length[own])  # the difference is 0 if v is very large
        multiplier = np.maximum(-side * rest[own], 0.0) + np.where(boxed[own] & (spare > 0), spare, mu / distance)
        atoms.append(Bound(at, side, distance, multiplier))
    # those that absorb what the others leave come last
    atoms += [kink for kink in kinks if not kink.absorbs]
    atoms += [] if norms is None else [norms]
    atoms += [kink for kink in kinks if kink.absorbs]
    return Barrier(v, atoms, np.flatnonzero(fixed), norms)


def _chosen(mask: Any) -> tuple[Indices | None, Indices | slice]:
    """Return the coordinates in a mask, None if they are all, and the same as an index."""
    if np.all(mask):
        return None, slice(None)
    at = np.flatnonzero(mask)
    return at, at


def _kink_at(
    at: Indices | None, left: Vector, right: Vector, v: Vector, slope: Vector, mu: float, absorbs: bool
) -> Kink:
    """Return a kink with its slope inside the interval, and v = p - n."""
    width = right - left
    k = np.clip(slope, left + INSIDE * width, right - INSIDE * width)
    p = np.maximum(v, 0.0) + 2.0 * mu / width
    return Kink(at, left, right, p, p - v, k, absorbs)


def _norm_at(at: Indices, start: Indices, weight: Vector, v: Vector, slope: Vector, mu: float) -> Norm:
    """Return norms with their slopes inside the balls, and t > ||v||."""
    sizes = np.diff(np.append(start, at.size))
    pull, most = np.sqrt(np.add.reduceat(slope * slope, start)), (1.0 - INSIDE) * weight
    k = slope * np.repeat(most / np.maximum(pull, most), sizes)
    size = np.sqrt(np.add.reduceat(v * v, start))
    t = np.maximum((1.0 + INSIDE) * size + mu / weight, (mu + np.add.reduceat(v * k, start)) / weight)
    return Norm(at, start, weight, t, v, k)


def normalised(
    function: NormalForm, blocks: Blocks
) -> tuple[PiecewiseParameters, Vector, tuple[Indices, Indices] | None]:
    """Return parameters with finite slopes that jump only inside the bounds, and the groups that have a norm.

    An infinite slope is a bound at 0; the norm of one coordinate is a kink.
    """
    left, right, quadratic, lower, upper = (parameter.copy() for parameter in function.parameters)
    lower[np.isneginf(left)] = np.maximum(lower, 0.0)[np.isneginf(left)]
    upper[np.isposinf(right)] = np.minimum(upper, 0.0)[np.isposinf(right)]
    left, right = np.where(lower >= 0, right, left), np.where(upper <= 0, left, right)
    unused = (lower >= 0) & (upper <= 0)
    left[unused] = right[unused] = 0.0
    left, right = np.where(lower >= 0, right, left), np.where(upper <= 0, left, right)
    weighted = function.group_weight > 0
    alone = weighted & (blocks.sizes == 1)
    at = blocks.order[blocks.start[:-1][alone]]
    left[at] -= function.group_weight[alone]
    right[at] += function.group_weight[alone]
    grouped = np.flatnonzero(weighted & ~alone)
    if grouped.size == 0:
        return PiecewiseParameters(left, right, quadratic, lower, upper), np.zeros(0), None
    sizes = blocks.sizes[grouped]
    norm = (blocks.columns(grouped), np.cumsum(sizes) - sizes)
    return PiecewiseParameters(left, right, quadratic, lower, upper), function.group_weight[grouped], norm


def _entropy_at(labels: Vector, weight: Vector) -> Barrier:
    v = -0.5 * labels * weight
    at, own = _chosen(weight > 0)
    return Barrier(v, [Entropy(at, v[own], labels[own], weight[own])], np.flatnonzero(weight == 0))
