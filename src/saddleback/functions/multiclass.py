r"""Losses of several classes: each row of u = Ax has one value per class, and the loss is a sum over rows.

With one weight :math:`s_i` and one point :math:`p_i` of the simplex per row, they are

.. math::

    g(u) = \sum_i s_i (\phi_i(u_i) - \langle p_i, u_i \rangle),

where :math:`\phi_i` is a maximum over the classes, or a smooth one. The domain of :math:`\phi_i^*` is the simplex, so
that a dual point is :math:`y_i = s_i (\pi_i - p_i)` with shares :math:`\pi_i` in the simplex, and

.. math::

    g^*(y) = \sum_i s_i \phi_i^*(\pi_i), \qquad \pi_i = p_i + y_i / s_i.
"""

from __future__ import annotations

from abc import abstractmethod
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector, multiple
from ..common.cached import cached_property
from ..common.checks import finite, nonnegative, scalar, weights
from ..common.rounded import UNIT, Rounded
from ..common.sums import Equations, Sums
from ..places.torch import device_of
from .conjugates import Conjugate
from .contract import ROUNDING, Convex, Domain, Ray
from .domains import Everywhere, PartlyFixed
from .excess import (
    LOST,
    Contact,
    Near,
    Side,
    assumed_side,
    bounds_of,
    collapsed,
    convex_bounds,
    relative_entropy,
    sum_up,
)
from .losses import Loss
from .traits import Kinked, Lipschitz, Movable, Scaled, Smooth

NEWTON_STEPS = 100

SLIGHTLY = 2.0**-20
"""Relative margin of bounds on small changes, for the rounding of the changes themselves."""


class _ClassLoss(Loss):
    """A loss of m x q values, given the class of every row."""

    labels: Any

    def _classes(self, labels: ArrayLike, n_classes: int | None) -> Vector:
        """Return the classes of the rows as an m x q matrix of zeros and ones."""
        self.device = device_of(labels)
        given = np.atleast_1d(finite("labels", labels))
        if given.ndim != 1:
            raise ValueError(f"labels has shape {given.shape}: expected one class for every row")
        classes = given.astype(np.int64)
        if classes.min() < 0 or not np.array_equal(classes, given):
            wrong = given[(given < 0) | (given != classes)][0]
            raise ValueError(
                f"labels has the value {wrong:g}: expected integers from 0 to the number of classes minus 1 "
                "(for other classes use np.unique(labels, return_inverse=True)[1])"
            )
        found = int(classes.max()) + 1
        count = max(found, 2) if n_classes is None else int(scalar("n_classes", n_classes, low=2.0))
        if found > count:
            raise ValueError(f"labels has the value {found - 1}: expected integers below n_classes={count}")
        self.labels = classes
        self.shape = (classes.size, count)
        return np.eye(count)[classes]

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise if the variable is neither an m x q matrix nor such a matrix in row-major order."""
        assert self.shape is not None
        if shape != (prod(self.shape),):
            self._fits(shape)


class Multinomial(_ClassLoss):
    """log(sum_k exp(u_k)) - u_z in each row of u, with the class z of the row: the softmax log loss.

    It is the negative log-likelihood of classes with the probabilities exp(u_k) / sum_l exp(u_l). With counts c it is
    N log(sum_k exp(u_k)) - sum_k c_k u_k, where N is the sum of the counts of the row.

    Parameters
    ----------
    labels : array-like
        Class of every row, an integer from 0 to q - 1; or an m x q matrix of counts, at least 0, which need not be
        integers.
    n_classes : int, optional
        Number of classes q; by default the largest label plus 1, or the number of columns of the counts.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(
        self,
        labels: ArrayLike,
        n_classes: int | None = None,
        sample_weight: ArrayLike | None = None,
        scale: float = 1.0,
    ) -> None:
        self.counts = self._counts(labels, n_classes) if np.ndim(labels) == 2 else self._classes(labels, n_classes)
        self._weigh(sample_weight, scale)

    def _counts(self, counts: ArrayLike, n_classes: int | None) -> Vector:
        self.device = device_of(counts)
        given = nonnegative("labels", counts)
        if given.shape[1] < 2 or n_classes not in (None, given.shape[1]):
            expected = "at least 2" if n_classes is None else f"n_classes={n_classes}"
            raise ValueError(f"labels has {given.shape[1]} columns of counts: expected {expected}")
        self.labels = None
        self.shape = given.shape
        return given

    def bind(self, shape: tuple[int, ...]) -> SoftmaxLoss:
        self._check_shape(shape)
        totals = _total(self.counts)
        shares = self.counts / np.where(totals > 0, totals, 1.0)[:, None]
        shares[totals == 0] = 1.0 / self.counts.shape[1]
        return SoftmaxLoss(shares, weights("counts * sample_weight", totals * self._weights(totals.shape)))


class MulticlassHinge(_ClassLoss):
    """max_k (1[k != z] + u_k) - u_z in each row of u, with the class z of the row (Crammer and Singer, 2001).

    Parameters
    ----------
    labels : array-like
        Class of every row, an integer from 0 to q - 1.
    n_classes : int, optional
        Number of classes q; by default the largest label plus 1.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(
        self,
        labels: ArrayLike,
        n_classes: int | None = None,
        sample_weight: ArrayLike | None = None,
        scale: float = 1.0,
    ) -> None:
        self._classes(labels, n_classes)
        self._weigh(sample_weight, scale)

    def bind(self, shape: tuple[int, ...]) -> MaximumLoss:
        self._check_shape(shape)
        assert self.shape is not None
        return MaximumLoss(np.eye(self.shape[1])[self.labels], self._weights(self.labels.shape))


class SumOverClasses(Convex, Lipschitz, Kinked, Scaled, Movable):
    """The sum of this file.

    Parameters
    ----------
    target : p, one row per row of u.
    weight : s, one per row.
    """

    domain = Everywhere()

    def __init__(self, target: Vector, weight: Vector) -> None:
        self.target = target
        self.weight = weight

    @abstractmethod
    def maximum(self, u: Vector) -> Vector:
        """Return phi per row."""

    @abstractmethod
    def shares(self, u: Vector) -> Vector:
        """Return a subgradient of phi, a point of the simplex, per row."""

    @abstractmethod
    def conjugate_of_maximum(self, shares: Vector) -> Vector:
        """Return phi* per row."""

    @abstractmethod
    def prox_of_maximum(self, v: Vector, reach: Vector) -> Vector:
        """Return the minimiser of phi(u) + 1/2 sum_k (u_k - v_k)^2 / reach_k per row."""

    @abstractmethod
    def row_values(self, u: Near) -> Near:
        """Return the values of the rows, without the weights, if each target is a single class."""

    @abstractmethod
    def conjugate_terms(self, shares: Vector) -> Near:
        """Return the terms of phi* at exact shares."""

    @abstractmethod
    def row_excess(self, u: Near, shares: tuple[Vector, ...]) -> Near:
        """Return the largest excess of each row between the ends of its shares, without the weight."""

    def contact(self, point: Rounded, slope: Rounded) -> Contact | None:
        """Return the contact if each target is a single class."""
        if not self._single:
            return None
        u, y = (Near(*map(self.rows, collapsed(each))) for each in (point, slope))
        shares, weight = self._shares(y), self.spread(self.weight)
        gap, simplices = self._weighted(self.row_excess(u, shares)), self.conjugate().domain
        projected = simplices.project(slope.high)

        def conjugate(ends: Vector) -> Near:
            terms = self.conjugate_terms(self.rows(ends))
            return Near(weight * terms.value.ravel(), weight * terms.error.ravel() + np.where(weight > 0, LOST, 0.0))

        return Contact(
            sum_up(np.maximum(gap.value + gap.error, 0.0) * (1 + 2 * UNIT)),
            float(np.sum(np.maximum(gap.value, 0.0))),
            bounds_of(self._weighted(self.row_values(u))),
            convex_bounds(conjugate, [end.ravel() for end in shares]),
            Side(),
            Side() if self._in_simplices(y) else assumed_side(simplices, slope, projected, u.value.ravel()),
        )

    def _in_simplices(self, y: Near) -> bool:
        """Return whether all shares are proved not to be negative, given that the rows of y add to 0."""
        weight = self.weight[:, None]
        share = np.where(weight > 0, weight * self.target + y.value, -np.abs(y.value))
        return bool(np.all(share >= y.error + 2 * UNIT * np.abs(share)))

    @cached_property
    def _single(self) -> bool:
        """Whether each target is a single class."""
        return bool(np.all((self.target == 0) | (self.target == 1)) and np.all(_total(self.target) == 1))

    def _weighted(self, rows: Near) -> Near:
        """Return rows times their weights."""
        value = self.weight * rows.value
        error = self.weight * rows.error * (1 + 4 * UNIT) + 2 * UNIT * np.abs(value)
        return Near(value, error + np.where(self.weight > 0, LOST, 0.0))

    def _shares(self, y: Near) -> tuple[Vector, ...]:
        """Return ends of the intervals of p + y / s, from 0 to 1; p in rows of weight 0."""
        counted = self.weight[:, None] > 0
        weight = np.where(counted, self.weight[:, None], 1.0)
        shares = (weight * self.target + np.where(counted, y.value, 0.0)) / weight
        errors = np.where(counted, y.error / weight + 2 * UNIT * np.abs(shares), 0.0) * (1 + 4 * UNIT)
        return tuple(np.clip(end, 0.0, 1.0) for end in Near(shares, errors).ends())

    def rows(self, flat: Vector) -> Vector:
        """Return a flat vector as a matrix with one column per class."""
        return flat.reshape(self.target.shape)

    def blocks(self) -> Blocks:
        return Blocks.scalars(self.target.size, self.target.shape[1])

    def restrict_blocks(self, blocks: Indices) -> SumOverClasses:
        return type(self)(self.target[blocks], self.weight[blocks])

    def moved(self, place: ToDevice) -> SumOverClasses:
        return type(self)(place(self.target), place(self.weight))

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        u = self.rows(multiple(x, factor))
        return float(self.weight @ (self.maximum(u) - _total(self.target * u)))

    def subgradient(self, x: Vector) -> Vector:
        return (self.weight[:, None] * (self.shares(self.rows(x)) - self.target)).ravel()

    def subgradient_scale(self) -> Vector:
        scale: Vector = self.spread(self.weight)
        return scale

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        """Return the prox of phi at v + step s p, with the step s step."""
        if blocks is not None:
            return self.restrict_blocks(blocks).prox(v, step)
        counted = self.weight[:, None] > 0
        reach = np.where(counted, self.rows(np.broadcast_to(step, v.shape)) * self.weight[:, None], 1.0)
        found = self.prox_of_maximum(self.rows(v) + reach * self.target, reach)
        return np.where(counted, found, self.rows(v)).ravel()

    def recession(self, direction: Vector) -> Ray:
        d = self.rows(direction)
        largest, mean = _largest(d), _total(self.target * d)
        size = float(self.weight @ (np.abs(largest) + _total(self.target * np.abs(d))))
        return Ray(float(self.weight @ (largest - mean)), np.zeros_like(direction), size)

    def conjugate(self) -> OnSimplices:
        return OnSimplices(self)

    def rise(self, distance: float) -> float:
        # the infimum may not be attained, but no two points of a simplex are further apart than sqrt(2)
        return float(np.sqrt(2.0) * np.linalg.norm(self.weight)) * distance

    def rise_within(self, distances: Vector) -> float:
        return float(np.sqrt(2.0) * self.weight @ np.linalg.norm(self.rows(distances), axis=1))

    def spread(self, of_rows: Any) -> Any:
        """Return one value per entry of u, given one per row."""
        return np.repeat(of_rows, self.target.shape[1])


class SoftmaxLoss(SumOverClasses, Smooth):
    r""":math:`\sum_i s_i (\log \sum_k e^{u_{ik}} - \langle p_i, u_i \rangle)`."""

    def maximum(self, u: Vector) -> Vector:
        largest = _largest(u)
        return largest + np.log(_total(np.exp(u - largest[:, None])))

    def shares(self, u: Vector) -> Vector:
        exponential = np.exp(u - _largest(u)[:, None])
        return exponential / _total(exponential)[:, None]

    def conjugate_of_maximum(self, shares: Vector) -> Vector:
        return _total(shares * np.log(np.where(shares > 0, shares, 1.0)))

    def row_values(self, u: Near) -> Near:
        """Return sum_k p_k (max u - u_k) + log(1 + sum of the other exponentials): no term is negative."""
        off = _largest(u.value)[:, None] - u.value
        others = np.exp(-off)
        others[np.arange(len(others)), np.argmin(off, axis=1)] = 0.0
        below, smooth = _total(self.target * off), np.log1p(_total(others))
        error = UNIT * ((32.0 + off.shape[1]) * smooth + 2.0 * _total(others * off) + 2.0 * below)
        return Near(below + smooth, error + self._moved(u, np.abs(self.shares(u.value) - self.target)))

    def conjugate_terms(self, shares: Vector) -> Near:
        terms = shares * np.log(np.where(shares > 0, shares, 1.0))
        return Near(terms, 12 * UNIT * np.abs(terms))

    def row_excess(self, u: Near, shares: tuple[Vector, ...]) -> Near:
        """Return the divergence of the shares from those at u, which have relative errors of ``rounding``."""
        touching, off = self.shares(u.value), _largest(u.value)[:, None] - u.value
        logarithm = -off - np.log(_total(np.exp(-off)))[:, None]
        rounding = UNIT * (touching.shape[1] + off + _total(touching * off)[:, None])
        terms, errors, distances = [], [], []
        for share in shares:
            term, size = relative_entropy(share, touching, logarithm)
            distance = np.abs(touching - share)
            terms.append(term)
            errors.append(24 * UNIT * size + 2.0 * rounding * distance + rounding * rounding * share)
            distances.append(distance)
        value = _total(np.max(terms, axis=0))
        error = _total(np.max(errors, axis=0)) * (1 + SLIGHTLY) + touching.shape[1] * UNIT * value
        return Near(value, error + self._moved(u, np.max(distances, axis=0)))

    @staticmethod
    def _moved(u: Near, slopes: Vector) -> Vector:
        """Return how far rows with these slopes may rise within the errors of u: no curvature is above 1/2."""
        linear, squares = _total((slopes + (32 + slopes.shape[1]) * UNIT) * u.error), _total(u.error * u.error)
        rise: Vector = (linear + 0.5 * squares) * (1 + SLIGHTLY)
        return rise

    def prox_of_maximum(self, v: Vector, reach: Vector) -> Vector:
        r"""Solve :math:`u_k + t_k e^{u_k - L} = v_k` for all k, with L the logarithm of the sum of exponentials.

        With :math:`z_k = v_k + \log t_k - L` and :math:`q_k + e^{q_k} = z_k` it is :math:`u_k = q_k + L - \log t_k`,
        and L is the root of :math:`\sum_k e^{q_k} / t_k = 1`. The left side is convex and decreasing in L: Newton's
        method never overshoots from a point below the root, which max_k(v_k - t_k) is, since one term is 1 there.
        """
        log_reach = np.log(reach)
        level, root = _largest(v - reach), None
        for _ in range(NEWTON_STEPS):
            root = root_of_sum_with_exponential(v + log_reach - level[:, None], root)
            exponential = np.exp(root)
            excess = _total(exponential / reach) - 1.0
            change = excess / _total(exponential / (1.0 + exponential) / reach)
            level = level + change
            if np.all(np.abs(change) <= 4e-16 * (1.0 + np.abs(level))):
                break
        root = root_of_sum_with_exponential(v + log_reach - level[:, None], root)
        return root + level[:, None] - log_reach

    def curvature(self) -> Vector:
        """Return s / 2: the matrix diag(pi) - pi pi' has no eigenvalue above 1/2 (Boehning, 1992)."""
        bound: Vector = self.spread(0.5 * self.weight)
        return bound

    def curvature_at(self, x: Vector) -> Vector:
        """Return 2 s pi (1 - pi): s (diag(pi) - pi pi') is the Laplacian of a graph, at most twice its diagonal."""
        shares = self.shares(self.rows(x))
        return (2.0 * self.weight[:, None] * shares * (1.0 - shares)).ravel()

    def hessian_at(self, x: Vector) -> Vector:
        """Return s (diag(pi) - pi pi') per row."""
        shares = self.shares(self.rows(x))
        unit = np.eye(shares.shape[1])
        return (self.weight[:, None] * shares)[:, :, None] * (unit - shares[:, None, :])

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        gradient = self.subgradient(x)
        return gradient, gradient


class MaximumLoss(SumOverClasses):
    r""":math:`\sum_i s_i (\max_k (1 - p_{ik} + u_{ik}) - \langle p_i, u_i \rangle)`, with unit vectors p."""

    def maximum(self, u: Vector) -> Vector:
        return _largest(u + (1.0 - self.target))

    def shares(self, u: Vector) -> Vector:
        moved = u + (1.0 - self.target)
        largest = np.where(moved == _largest(moved)[:, None], 1.0, 0.0)
        return largest / _total(largest)[:, None]

    def conjugate_of_maximum(self, shares: Vector) -> Vector:
        return _total(shares * self.target) - 1.0

    def row_values(self, u: Near) -> Near:
        largest, own = self.maximum(u.value), _total(self.target * u.value)
        error = 4 * UNIT * (np.abs(largest) + np.abs(own) + 1.0)
        return Near(largest - own, error + (_largest(u.error) + _total(self.target * u.error)) * (1 + SLIGHTLY))

    def conjugate_terms(self, shares: Vector) -> Near:
        return Near(self.target * (shares - 1.0), 2 * UNIT * self.target)

    def row_excess(self, u: Near, shares: tuple[Vector, ...]) -> Near:
        """Return sum_k pi_k (max_l v_l - v_k) with v = 1 - p + u: no term is negative."""
        moved, most = u.value + (1.0 - self.target), np.maximum.reduce(shares)
        largest = _largest(moved)[:, None]
        error = 4 * UNIT * (np.abs(largest) + np.abs(moved) + 1.0) + u.error + _largest(u.error)[:, None]
        value = _total(most * (largest - moved))
        return Near(value, (_total(most * error) + moved.shape[1] * UNIT * value) * (1 + SLIGHTLY))

    def prox_of_maximum(self, v: Vector, reach: Vector) -> Vector:
        margin = 1.0 - self.target
        return np.minimum(v, _level(v + margin, reach)[:, None] - margin)

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        """Return the gradient; nan in the rows in which another class is as large as the largest."""
        moved, room = self.rows(x) + (1.0 - self.target), self.rows(tolerance)
        near = moved >= _largest(moved - room)[:, None] - room
        alone = (_total(np.where(near, 1.0, 0.0)) == 1) | (self.weight == 0)
        gradient = np.where(self.spread(alone), self.subgradient(x), np.nan)
        return gradient, gradient


class Simplices(Domain, PartlyFixed):
    """The set of all y with p + y / s in the simplex in each row; y = 0 in rows of weight 0."""

    def __init__(self, loss: SumOverClasses) -> None:
        self.loss = loss

    def shares(self, y: Vector) -> Vector:
        """Return p + y / s per row, which is in the simplex if y is in the set; p in rows of weight 0."""
        counted = self.loss.weight > 0
        divisor = np.where(counted, self.loss.weight, np.inf)
        return self.loss.target + self.loss.rows(y) / divisor[:, None]

    def project(self, x: Vector) -> Vector:
        shares, weight = self.shares(x), self.loss.weight
        outside = (_largest(-shares) > self._rounding) | (np.abs(_total(shares) - 1.0) > self._rounding)
        outside = np.where(weight > 0, outside, _largest(np.abs(self.loss.rows(x))) > 0)
        if not np.any(outside):
            return x
        inside = np.maximum(shares - _level(shares, np.ones_like(shares))[:, None], 0.0)
        inside = inside / _total(inside)[:, None]
        return np.where(self.loss.spread(outside), (weight[:, None] * (inside - self.loss.target)).ravel(), x)

    @cached_property
    def _rounding(self) -> float:
        """Rounding of a sum over the classes."""
        return 4.0 * float(np.finfo(float).eps) * float(self.loss.target.shape[1])

    def largest_multiple(self, x: Vector) -> float:
        """Return 0 unless each row sums to 0: p + t y / s sums to 1 for t = 0 alone otherwise."""
        y, weight, target = self.loss.rows(x), self.loss.weight[:, None], self.loss.target
        unit = weight[:, 0] + _total(np.abs(y))
        if np.any(np.abs(_total(y)) > ROUNDING * unit) or np.any((weight == 0) & (y != 0)):
            return 0.0
        below = y + weight * target < -ROUNDING * weight
        if not np.any(below):
            return 1.0
        return float(np.min(np.where(below, weight * target / np.where(below, -y, 1.0), 1.0)))

    def has_zero(self) -> bool:
        return True

    def hull(self, size: int) -> tuple[Vector, Vector]:
        weight = self.loss.weight[:, None]
        return (-weight * self.loss.target).ravel(), (weight * (1.0 - self.loss.target)).ravel()

    def fixed(self) -> Indices:
        return np.flatnonzero(self.loss.spread(self.loss.weight == 0))

    def fixed_sums(self, size: int) -> Equations:
        rows, classes = self.loss.target.shape
        nothing = np.zeros(rows)
        return Equations(Sums(np.arange(size), classes * np.arange(rows + 1)), nothing, nothing)


class OnSimplices(Conjugate[SumOverClasses], Scaled):
    r"""The conjugate of the sum: :math:`\sum_i s_i \phi_i^*(p_i + y_i / s_i)`."""

    @cached_property
    def domain(self) -> Simplices:
        return Simplices(self.of)

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        shares = np.maximum(self.domain.shares(self.domain.project(multiple(x, factor))), 0.0)
        return float(self.of.weight @ self.of.conjugate_of_maximum(shares))

    def recession(self, direction: Vector) -> Ray:
        return Ray(0.0, direction)

    def subgradient_scale(self) -> Vector:
        return np.where(self.of.spread(self.of.weight) > 0, 1.0, 0.0)


def _largest(rows: Vector) -> Vector:
    """Return the largest value of each row."""
    largest: Vector = rows.max(axis=1)
    return largest


def _total(rows: Vector) -> Vector:
    """Return the sum of each row."""
    total: Vector = rows.sum(axis=1)
    return total


def _level(v: Vector, reach: Vector) -> Vector:
    r"""Return the root t of :math:`\sum_k \max(0, v_k - t) / r_k = 1` in each row.

    The left side is convex, decreasing and piecewise linear. Newton's method from max_k(v_k - r_k), where one term is
    1, rises to the root in at most as many steps as there are classes.
    """
    level = _largest(v - reach)
    for _ in range(v.shape[1]):
        above = np.where(v > level[:, None], 1.0 / reach, 0.0)
        risen = (_total(above * v) - 1.0) / _total(above)
        if not np.any(risen > level):
            break
        level = np.maximum(level, risen)
    return level


def root_of_sum_with_exponential(z: Vector, start: Vector | None = None) -> Vector:
    """Return the root p of p + exp(p) = z.

    The left side is convex and increasing: Newton's method never overshoots from a point above the root, which
    min(z, log z) is for z > 1, and z otherwise. ``start`` is another such point.
    """
    point = np.where(z > 1.0, np.log(np.maximum(z, 1.0)), z) if start is None else np.minimum(z, start)
    for _ in range(NEWTON_STEPS):
        exponential = np.exp(point)
        change = (point + exponential - z) / (1.0 + exponential)
        point = point - change
        if np.all(np.abs(change) <= 4e-16 * (1.0 + np.abs(point))):
            break
    return point
