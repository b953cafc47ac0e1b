r"""Penalties that are concave in |x|: they shrink large entries less than an L1 norm does.

Each is :math:`\sum_j \alpha_j^2\, P(|x_j| / \alpha_j)` with :math:`\alpha_j = \alpha\, w_j`, or with norms of groups
in the place of :math:`|x_j|`. P is increasing and concave with slope 1 at 0. So its tangent at any point v lies above
it, and the weighted L1 or group norm

.. math::

    \alpha \sum_j w_j\, P'(|v_j| / \alpha_j)\, |x_j|

majorises the penalty up to a constant, with equality at x = v: the local linear approximation of Zou and Li (2008).

The majoriser at 0 has the kink of the penalty. What the penalty adds to it is its bend: a concave function of the
sizes, differentiable also at 0.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from ..common.arrays import Blocks, Indices, Vector
from ..common.cached import twin
from ..common.checks import LARGEST_PRODUCT, nonnegative, scalar
from .group import Groups, partition
from .penalties import ADDED_TO_OTHERS, L1, GroupL2, Regulariser
from .terms import broadcast_parameter


class Concave(Regulariser):
    """A penalty that is not convex, with convex majorisers; ``saddleback.reweighted`` uses it."""

    least_gamma = 0.0
    """A number that gamma has to exceed."""

    def __init__(
        self, alpha: float, gamma: float, weights: ArrayLike | None = None, groups: Groups | None = None
    ) -> None:
        self.alpha = scalar("alpha", alpha, largest=LARGEST_PRODUCT)
        self.gamma = scalar("gamma", gamma)
        if not self.gamma > self.least_gamma:
            raise ValueError(f"gamma={gamma}: expected a number above {self.least_gamma:g} for {self.name}")
        self.weights = None if weights is None else nonnegative("weights", weights)
        self.groups = groups
        self.accepts = frozenset(ADDED_TO_OTHERS) if groups is None else GroupL2.accepts  # as its majorisers

    @property
    def convex(self) -> bool:
        return False

    @abstractmethod
    def unit_value(self, t: Vector) -> Vector:
        """Return P(t), for t >= 0."""

    @abstractmethod
    def unit_slope(self, t: Vector) -> Vector:
        """Return P'(t), which is 1 at 0 and falls."""

    @abstractmethod
    def unit_curvature(self, t: Vector) -> Vector:
        """Return P''(t), which is at most 0."""

    def times(self, factor: float) -> NoReturn:
        """Refuse: most multiples are of another form."""
        raise TypeError(f"{self.name} cannot be multiplied by a number: change alpha and gamma")

    def bind(self, shape: tuple[int, ...]) -> NoReturn:
        """Refuse: a problem has convex functions alone."""
        raise TypeError(
            f"{self.name} is not convex, so that no certificate can prove a minimum: call "
            "sb.reweighted(penalty, A, loss), which solves convex problems until they no longer change x"
        )

    def value(self, x: ArrayLike) -> float:
        """Return the value at x."""
        sizes, weights = self._sizes(np.asarray(x, dtype=np.float64))
        slopes = self.alpha * weights
        return float(np.sum(np.square(slopes) * self.unit_value(_quotients(sizes, slopes))))

    def majoriser(self, x: ArrayLike | None = None) -> L1 | GroupL2:
        """Return the weighted L1 or group norm with the slopes of the penalty at x, by default at 0."""
        weights = self.weights if x is None else self._reweighted(np.asarray(x, dtype=np.float64))
        return L1(self.alpha, weights) if self.groups is None else GroupL2(self.alpha, self.groups, weights)

    def below_majoriser(self, x: Vector, v: Vector) -> float:
        return self.value(x) - self.majoriser(v).value(x)

    def steeper(self, factor: float) -> Concave:
        other = twin(self)
        other.alpha = min(factor * self.alpha, LARGEST_PRODUCT)
        return other

    def bends(self, shape: tuple[int, ...]) -> list[Bend]:
        return [Bend(self, self.alpha * self._sizes(np.zeros(shape))[1].ravel())]

    def _reweighted(self, x: Vector) -> Vector:
        sizes, weights = self._sizes(x)
        return weights * self.unit_slope(_quotients(sizes, self.alpha * weights))

    def _sizes(self, x: Vector) -> tuple[Vector, Vector]:
        """Return |x| and the weights of the entries, or the norms and the weights of the groups."""
        if self.groups is None:
            weights = np.ones(()) if self.weights is None else self.weights
            return np.abs(x), broadcast_parameter("weights", weights, x.shape).reshape(x.shape)
        columns: Blocks = partition(self.groups, x.shape[0])
        squares = np.square(x).reshape(x.shape[0], -1).sum(axis=1)
        return np.sqrt(columns.sums(squares)), GroupL2(1.0, self.groups, self.weights).weights_of(columns)


@dataclass(frozen=True)
class Bend:
    r"""What a penalty adds to its majoriser at 0: :math:`\sum_j \alpha_j^2 P(t_j / \alpha_j) - \alpha_j t_j`.

    It is a function of the sizes t of blocks, |x_j| or norms of groups.

    Attributes
    ----------
    penalty : Concave
        Has P.
    slopes : array
        alpha_j of each block; 0 for a block without this penalty.
    """

    penalty: Concave
    slopes: Vector

    def of_blocks(self, blocks: Indices) -> Bend:
        """Return the part of some blocks."""
        return Bend(self.penalty, self.slopes[blocks])

    def among(self, count: int, places: Indices | slice) -> Bend:
        """Return the same among more blocks, of which those of the penalty have some places."""
        slopes = np.zeros(count)
        slopes[places] = self.slopes
        return Bend(self.penalty, slopes)

    def value(self, sizes: Vector) -> float:
        """Return the sum over all blocks."""
        units = self.penalty.unit_value(_quotients(sizes, self.slopes))
        return float(np.sum(self.slopes * (self.slopes * units - sizes)))

    def slope(self, sizes: Vector) -> Vector:
        """Return the derivative by each size."""
        return self.slopes * (self.penalty.unit_slope(_quotients(sizes, self.slopes)) - 1.0)

    def curvature(self, sizes: Vector) -> Vector:
        """Return the second derivative by each size."""
        curvature = self.penalty.unit_curvature(_quotients(sizes, self.slopes))
        return np.where(self.slopes > 0, curvature, 0.0)


class MCP(Concave):
    r"""The minimax concave penalty, :math:`\sum_j \alpha |x_j| - x_j^2 / (2 \gamma)` as far as :math:`\gamma\alpha`.

    It is constant beyond gamma * alpha (Zhang, 2010), so that large entries are not shrunk. With weights, alpha is
    multiplied by that of the entry or group; with groups, :math:`|x_j|` is the norm of a group. It is not convex:
    ``saddleback.reweighted`` minimises it, and says what that proves.

    Parameters
    ----------
    alpha : float
        Slope at 0, at least 0.
    gamma : float, default 3.0
        Above 0: the smaller, the less are entries shrunk. As gamma grows, the penalty tends to the L1 norm.
    weights : array-like, optional
        One value per column, or per group, at least 0. By default 1 for columns, and the square root of its number of
        columns for a group.
    groups : int, list of int, or list of lists of int, optional
        As in ``GroupL2``; by default each entry on its own.
    """

    def __init__(
        self, alpha: float, gamma: float = 3.0, weights: ArrayLike | None = None, groups: Groups | None = None
    ) -> None:
        super().__init__(alpha, gamma, weights, groups)

    def unit_value(self, t: Vector) -> Vector:
        near = np.minimum(t, self.gamma)
        return near - near * near / (2.0 * self.gamma)

    def unit_slope(self, t: Vector) -> Vector:
        return np.maximum(0.0, 1.0 - t / self.gamma)

    def unit_curvature(self, t: Vector) -> Vector:
        return np.where(t < self.gamma, -1.0 / self.gamma, 0.0)


class SCAD(Concave):
    r"""The smoothly clipped absolute deviation of Fan and Li (2001).

    The slope in :math:`|x_j|` is alpha up to alpha, falls linearly to 0 at gamma * alpha, and is 0 beyond. With
    weights, alpha is multiplied by that of the entry or group; with groups, :math:`|x_j|` is the norm of a group. It is
    not convex: ``saddleback.reweighted`` minimises it, and says what that proves.

    Parameters
    ----------
    alpha : float
        Slope at 0, at least 0.
    gamma : float, default 3.7
        Above 2: the smaller, the less are entries shrunk.
    weights : array-like, optional
        One value per column, or per group, at least 0. By default 1 for columns, and the square root of its number of
        columns for a group.
    groups : int, list of int, or list of lists of int, optional
        As in ``GroupL2``; by default each entry on its own.
    """

    least_gamma = 2.0

    def __init__(
        self, alpha: float, gamma: float = 3.7, weights: ArrayLike | None = None, groups: Groups | None = None
    ) -> None:
        super().__init__(alpha, gamma, weights, groups)

    def unit_value(self, t: Vector) -> Vector:
        beyond = np.clip(t, 1.0, self.gamma) - 1.0
        return np.minimum(t, 1.0) + beyond - beyond * beyond / (2.0 * (self.gamma - 1.0))

    def unit_slope(self, t: Vector) -> Vector:
        return np.clip((self.gamma - t) / (self.gamma - 1.0), 0.0, 1.0)

    def unit_curvature(self, t: Vector) -> Vector:
        return np.where((t > 1.0) & (t < self.gamma), -1.0 / (self.gamma - 1.0), 0.0)


class LogSum(Concave):
    r"""The logarithm penalty, :math:`\gamma\alpha^2 \sum_j \log(1 + |x_j| / (\gamma\alpha))`.

    Its majorisers are those of the reweighted L1 norm of Candès, Wakin and Boyd (2008): the weight of an entry is
    :math:`1 / (1 + |x_j| / (\gamma\alpha))`. With weights, alpha is multiplied by that of the entry or group; with
    groups, :math:`|x_j|` is the norm of a group. It is not convex: ``saddleback.reweighted`` minimises it, and says
    what that proves.

    Parameters
    ----------
    alpha : float
        Slope at 0, at least 0.
    gamma : float, default 3.0
        Above 0: the smaller, the less are entries shrunk. An entry of gamma * alpha has half the slope.
    weights : array-like, optional
        One value per column, or per group, at least 0. By default 1 for columns, and the square root of its number of
        columns for a group.
    groups : int, list of int, or list of lists of int, optional
        As in ``GroupL2``; by default each entry on its own.
    """

    def __init__(
        self, alpha: float, gamma: float = 3.0, weights: ArrayLike | None = None, groups: Groups | None = None
    ) -> None:
        super().__init__(alpha, gamma, weights, groups)

    def unit_value(self, t: Vector) -> Vector:
        return self.gamma * np.log1p(t / self.gamma)

    def unit_slope(self, t: Vector) -> Vector:
        return 1.0 / (1.0 + t / self.gamma)

    def unit_curvature(self, t: Vector) -> Vector:
        return -1.0 / (self.gamma * np.square(1.0 + t / self.gamma))


class Adaptive(LogSum):
    r"""The adaptive L1 or group norm: weights that a first solution gives, once.

    It is :math:`\alpha \sum_j |x_j| / (1 + |v_j| / (\gamma\alpha))`, where v is the solution for the L1 norm with the
    same alpha, or the x0 of ``saddleback.reweighted``. This is the adaptive Lasso of Zou (2006) with weights that stay
    finite where v is 0. The second problem is convex, and the result is certified for it.

    Parameters
    ----------
    alpha : float
        Weight of an entry that is 0 in v, at least 0.
    gamma : float, default 3.0
        Above 0: an entry of gamma * alpha in v has half the weight.
    weights : array-like, optional
        Further weights: one value per column, or per group, at least 0. By default 1 for columns, and the square root
        of its number of columns for a group.
    groups : int, list of int, or list of lists of int, optional
        As in ``GroupL2``; by default each entry on its own.
    """

    rounds = 2


def _quotients(sizes: Vector, slopes: Vector) -> Vector:
    """Return sizes / slopes; 0 for a slope of 0, where there is no penalty."""
    with np.errstate(over="ignore"):
        quotients: Vector = np.divide(sizes, slopes, out=np.zeros_like(sizes), where=slopes > 0)
    return quotients
