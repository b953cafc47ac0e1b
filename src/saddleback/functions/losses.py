r"""The losses g of u = Ax.

Every loss is :math:`\text{scale} \sum_i w_i\, \ell_i(u_i)`, with ``sample_weight`` w (all 1 by default, not
normalised). Data b are copied, unless they are read-only (``b.flags.writeable`` is False), as with memory maps: these
are not copied, and stay in float32 if they are float32.

A separable loss is defined by its conjugate, which is piecewise linear-quadratic on an interval and so a member of the
family in ``piecewise.py``; with :math:`s_i = \text{scale}\, w_i`:

=========================  =========================================  ================================================
loss                       l(u)                                       conjugate at y, and its domain
=========================  =========================================  ================================================
Squared                    (u - b)^2 / 2                              b y + y^2 / 2s
Absolute                   abs(u - b)                                 b y on [-s, s]
Pinball                    q r for r = b - u >= 0, (q - 1) r else     b y on [-s q, s (1 - q)]
SmoothedPinball            the same, r^2 / 2 delta around its kink    b y + delta y^2 / 2s on [-s q, s (1 - q)]
Huber                      (u - b)^2 / 2 up to delta, then linear     b y + y^2 / 2s on [-s delta, s delta]
EpsilonInsensitive         max(0, abs(u - b) - epsilon)               b y + epsilon abs(y) on [-s, s]
SquaredEpsilonInsensitive  max(0, abs(u - b) - epsilon)^2 / 2         b y + epsilon abs(y) + y^2 / 2s
Hinge                      max(0, 1 - z u)                            z y, with z y in [-s, 0]
SquaredHinge               max(0, 1 - z u)^2 / 2                      z y + y^2 / 2s, with z y <= 0
HuberisedHinge             r = max(0, 1 - z u), r^2 / 2 delta first   z y + delta y^2 / 2s, with z y in [-s, 0]
Equality                   0 if u = b                                 b y
Interval                   0 if lower <= u <= upper                   upper y for y > 0, lower y for y < 0
=========================  =========================================  ================================================

The losses that are not of this kind are in files of their own: ``logistic.py``, ``tweedie.py``, ``expectile.py``,
``kullback_leibler.py`` and ``norm.py``.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..common.arrays import Vector
from ..common.checks import (
    LARGEST,
    bounds,
    data,
    finite,
    multiple,
    positive_multiple,
    scalar,
    weights,
    within,
)
from ..common.chunks import double
from ..places.torch import device_of
from .contract import Convex
from .logistic import LogisticLoss
from .norm import WeightedNorm
from .piecewise import PiecewiseQuadratic
from .terms import Term, broadcast_parameter


class Loss(Term):
    """A term on u = Ax. ``2 * g`` and ``g / n`` multiply its ``scale``."""

    sample_weight: Vector | None
    scale: float

    def _weigh(self, sample_weight: ArrayLike | None, scale: float) -> None:
        self.sample_weight = None if sample_weight is None else weights("sample_weight", sample_weight)
        self.scale = float(weights("scale", scalar("scale", scale)))

    def _weights(self, shape: tuple[int, ...]) -> Vector:
        """Return scale * sample_weight with one value per entry of u."""
        each = broadcast_parameter("sample_weight", 1.0 if self.sample_weight is None else self.sample_weight, shape)
        return weights("scale * sample_weight", self.scale * each)

    def __add__(self, other: object) -> Loss:
        if not isinstance(other, Loss):
            return NotImplemented
        raise TypeError(
            f"{self.name} and {other.name} cannot be added: give lists of losses and matrices, as in "
            f"Problem(penalty, [A, A], [{self.name}(...), {other.name}(...)])"
        )

    def times(self, factor: float) -> Loss:
        other = copy(self)
        other.scale = float(weights("scale", multiple(self.name, factor) * self.scale))
        return other

    def _per_row(self, name: str, value: ArrayLike, high: float = LARGEST) -> float | Vector:
        """Return a parameter from 0 to a largest value: a number for all rows, or an array in the shape of the data.

        An array may have one value per row of a matrix.
        """
        array = within(name, value, high)
        if array.ndim == 0:
            return float(array)
        assert self.shape is not None
        return np.array(broadcast_parameter(name, array, self.shape)).reshape(self.shape)

    def _fits(self, shape: tuple[int, ...]) -> None:
        if self.shape is not None and self.shape != shape:
            raise ValueError(f"{type(self).__name__} has data of shape {self.shape}, but A x has shape {shape}")


class Dual(NamedTuple):
    """Conjugate of a separable loss before ``scale`` and ``sample_weight``: see the table above."""

    left: ArrayLike
    right: ArrayLike
    quadratic: ArrayLike
    lower: ArrayLike
    upper: ArrayLike


class SeparableLoss(Loss):
    """A loss whose conjugate is a member of the family in ``piecewise.py``."""

    def __init__(self, sample_weight: ArrayLike | None, scale: float) -> None:
        self._weigh(sample_weight, scale)

    @abstractmethod
    def dual(self) -> Dual:
        """Return the conjugate for weight 1."""

    def bind(self, shape: tuple[int, ...]) -> Convex:
        self._fits(shape)
        dual = self.dual()
        left = broadcast_parameter("b", dual.left, shape, np.asarray(dual.left).dtype)
        right = left if dual.right is dual.left else broadcast_parameter("b", dual.right, shape)
        if self.sample_weight is None and self.scale > 0:  # only the data differ between rows
            bounds = (
                broadcast_parameter("bound", self.scale * np.asarray(bound), shape)
                for bound in (dual.lower, dual.upper)
            )
            quadratic = broadcast_parameter("quadratic", np.asarray(dual.quadratic) / self.scale, shape)
            return PiecewiseQuadratic(left, right, quadratic, *bounds).conjugate()
        weight = self._weights(shape)
        counted = weight > 0
        curved = broadcast_parameter("quadratic", dual.quadratic, shape)
        quadratic = np.divide(curved, weight, out=np.zeros_like(weight), where=counted)
        # the dual variable of a row of weight 0 is 0
        lower = np.where(counted, weight * np.where(counted, broadcast_parameter("lower", dual.lower, shape), 0.0), 0.0)
        upper = np.where(counted, weight * np.where(counted, broadcast_parameter("upper", dual.upper, shape), 0.0), 0.0)
        return PiecewiseQuadratic(left, right, quadratic, lower, upper).conjugate()


class TargetLoss(Loss):
    """A loss with a target b of every row."""

    def __init__(self, b: ArrayLike, sample_weight: ArrayLike | None, scale: float) -> None:
        self._weigh(sample_weight, scale)
        self.device = device_of(b)
        self.b = np.atleast_1d(data("b", b))
        self.shape = self.b.shape


class _SeparableTargetLoss(TargetLoss, SeparableLoss):
    """A loss with a target of every row, and a conjugate of the family."""


class _LabelLoss(SeparableLoss):
    def __init__(self, labels: ArrayLike, sample_weight: ArrayLike | None, scale: float) -> None:
        super().__init__(sample_weight, scale)
        self.device = device_of(labels)
        self.labels = signs(labels)
        self.shape = self.labels.shape

    def _below(self, size: float) -> tuple[Vector, Vector]:
        """Return the interval of y with -size <= z y <= 0."""
        positive = self.labels > 0
        return np.where(positive, -size, 0.0), np.where(positive, 0.0, size)


class Squared(_SeparableTargetLoss):
    """(u - b)^2 / 2.

    Parameters
    ----------
    b : array-like
        Target of every row; one column per task if x is a matrix.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(self, b: ArrayLike, sample_weight: ArrayLike | None = None, scale: float = 1.0) -> None:
        super().__init__(b, sample_weight, scale)

    def dual(self) -> Dual:
        return Dual(self.b, self.b, 1.0, -np.inf, np.inf)


class Absolute(_SeparableTargetLoss):
    """abs(u - b).

    Parameters
    ----------
    b : array-like
        Target of every row; one column per task if x is a matrix.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(self, b: ArrayLike, sample_weight: ArrayLike | None = None, scale: float = 1.0) -> None:
        super().__init__(b, sample_weight, scale)

    def dual(self) -> Dual:
        return Dual(self.b, self.b, 0.0, -1.0, 1.0)


class Pinball(_SeparableTargetLoss):
    """q r if r = b - u >= 0, (q - 1) r otherwise, with q the quantile.

    Parameters
    ----------
    b : array-like
        Target of every row; one column per task if x is a matrix.
    quantile : float or array-like, default 0.5
        The quantile q, from 0 to 1; one value for all rows, or one per row.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(
        self, b: ArrayLike, quantile: ArrayLike = 0.5, sample_weight: ArrayLike | None = None, scale: float = 1.0
    ) -> None:
        super().__init__(b, sample_weight, scale)
        self.quantile = self._per_row("quantile", quantile, high=1.0)

    def dual(self) -> Dual:
        return Dual(self.b, self.b, 0.0, -self.quantile, 1.0 - self.quantile)


class SmoothedPinball(_SeparableTargetLoss):
    """The pinball loss with a parabola in place of its kink, the Huber loss of quantile regression.

    With r = b - u and the quantile q it is q r - delta q^2 / 2 for r >= delta q, (q - 1) r - delta (1 - q)^2 / 2 for
    r <= -delta (1 - q), and r^2 / (2 delta) between. This is the Moreau envelope of ``Pinball``: the smallest value of
    its loss at v plus (u - v)^2 / (2 delta). With delta = 0 it is ``Pinball`` itself.

    Parameters
    ----------
    b : array-like
        Target of every row; one column per task if x is a matrix.
    quantile : float or array-like, default 0.5
        The quantile q, from 0 to 1; one value for all rows, or one per row.
    delta : float or array-like, default 1.0
        Width of the parabola; one value for all rows, or one per row.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(
        self,
        b: ArrayLike,
        quantile: ArrayLike = 0.5,
        delta: ArrayLike = 1.0,
        sample_weight: ArrayLike | None = None,
        scale: float = 1.0,
    ) -> None:
        super().__init__(b, sample_weight, scale)
        self.quantile = self._per_row("quantile", quantile, high=1.0)
        self.delta = self._per_row("delta", weights("delta", delta))

    def dual(self) -> Dual:
        return Dual(self.b, self.b, self.delta, -self.quantile, 1.0 - self.quantile)


class Huber(_SeparableTargetLoss):
    """(u - b)^2 / 2 if abs(u - b) <= delta, delta (abs(u - b) - delta / 2) otherwise.

    Parameters
    ----------
    b : array-like
        Target of every row; one column per task if x is a matrix.
    delta : float or array-like, default 1.0
        Residual above which the loss is linear; one value for all rows, or one per row.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(
        self, b: ArrayLike, delta: ArrayLike = 1.0, sample_weight: ArrayLike | None = None, scale: float = 1.0
    ) -> None:
        super().__init__(b, sample_weight, scale)
        self.delta = self._per_row("delta", delta)

    def dual(self) -> Dual:
        return Dual(self.b, self.b, 1.0, -self.delta, self.delta)


class EpsilonInsensitive(_SeparableTargetLoss):
    """max(0, abs(u - b) - epsilon).

    Parameters
    ----------
    b : array-like
        Target of every row; one column per task if x is a matrix.
    epsilon : float or array-like, default 0.1
        Residual up to which the loss is 0; one value for all rows, or one per row.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(
        self, b: ArrayLike, epsilon: ArrayLike = 0.1, sample_weight: ArrayLike | None = None, scale: float = 1.0
    ) -> None:
        super().__init__(b, sample_weight, scale)
        self.epsilon = self._per_row("epsilon", epsilon)

    def dual(self) -> Dual:
        b = double(self.b)
        return Dual(b - self.epsilon, b + self.epsilon, 0.0, -1.0, 1.0)


class SquaredEpsilonInsensitive(EpsilonInsensitive):
    """max(0, abs(u - b) - epsilon)^2 / 2.

    Parameters
    ----------
    b : array-like
        Target of every row; one column per task if x is a matrix.
    epsilon : float or array-like, default 0.1
        Residual up to which the loss is 0; one value for all rows, or one per row.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def dual(self) -> Dual:
        return super().dual()._replace(quadratic=1.0, lower=-np.inf, upper=np.inf)


class Hinge(_LabelLoss):
    """max(0, 1 - z u) with labels z of -1 and +1.

    Parameters
    ----------
    labels : array-like
        Class of every row, -1 or +1.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(self, labels: ArrayLike, sample_weight: ArrayLike | None = None, scale: float = 1.0) -> None:
        super().__init__(labels, sample_weight, scale)

    def dual(self) -> Dual:
        return Dual(self.labels, self.labels, 0.0, *self._below(1.0))


class SquaredHinge(_LabelLoss):
    """max(0, 1 - z u)^2 / 2 with labels z of -1 and +1.

    Parameters
    ----------
    labels : array-like
        Class of every row, -1 or +1.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(self, labels: ArrayLike, sample_weight: ArrayLike | None = None, scale: float = 1.0) -> None:
        super().__init__(labels, sample_weight, scale)

    def dual(self) -> Dual:
        return Dual(self.labels, self.labels, 1.0, *self._below(np.inf))


class HuberisedHinge(_LabelLoss):
    """The hinge loss with a parabola in place of its kink, with labels z of -1 and +1.

    With r = 1 - z u it is 0 for r <= 0, r^2 / (2 delta) for r <= delta, and r - delta / 2 above. With delta = 0 it is
    ``Hinge``.

    Parameters
    ----------
    labels : array-like
        Class of every row, -1 or +1.
    delta : float or array-like, default 1.0
        Width of the parabola; one value for all rows, or one per row.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(
        self,
        labels: ArrayLike,
        delta: ArrayLike = 1.0,
        sample_weight: ArrayLike | None = None,
        scale: float = 1.0,
    ) -> None:
        super().__init__(labels, sample_weight, scale)
        self.delta = self._per_row("delta", weights("delta", delta))

    def dual(self) -> Dual:
        return Dual(self.labels, self.labels, self.delta, *self._below(1.0))


class Logistic(Loss):
    """log(1 + exp(-z u)) with labels z of -1 and +1.

    Parameters
    ----------
    labels : array-like
        Class of every row, -1 or +1.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(self, labels: ArrayLike, sample_weight: ArrayLike | None = None, scale: float = 1.0) -> None:
        self.device = device_of(labels)
        self.labels = signs(labels)
        self.shape = self.labels.shape
        self._weigh(sample_weight, scale)

    def bind(self, shape: tuple[int, ...]) -> Convex:
        self._fits(shape)
        return LogisticLoss(self.labels.ravel(), self._weights(shape))


class Norm2(Loss):
    """scale * sqrt(sum_i w_i (u_i - b_i)^2): not separable.

    Parameters
    ----------
    b : array-like
        Target of every row; one column per task if x is a matrix.
    sample_weight : array-like, optional
        Weight of every row, at least 0; all 1 by default.
    scale : float, default 1.0
        Factor of the whole loss, such as 1 / m for a mean.
    """

    def __init__(self, b: ArrayLike, sample_weight: ArrayLike | None = None, scale: float = 1.0) -> None:
        self.device = device_of(b)
        self.b = np.atleast_1d(finite("b", b))
        self.shape = self.b.shape
        self._weigh(sample_weight, scale)

    def bind(self, shape: tuple[int, ...]) -> Convex:
        self._fits(shape)
        weight = 1.0 if self.sample_weight is None else self.sample_weight
        return WeightedNorm(self.b.ravel(), broadcast_parameter("sample_weight", weight, shape), self.scale)


class Equality(_SeparableTargetLoss):
    """0 if u = b, infinite otherwise.

    Parameters
    ----------
    b : array-like
        Right-hand side of every row; one column per task if x is a matrix.
    """

    def __init__(self, b: ArrayLike) -> None:
        super().__init__(b, None, 1.0)

    def times(self, factor: float) -> Equality:
        positive_multiple(self.name, factor)
        return self

    def dual(self) -> Dual:
        return Dual(self.b, self.b, 0.0, -np.inf, np.inf)


class Interval(SeparableLoss):
    """0 if lower <= u <= upper, infinite otherwise.

    Only ``inf`` is infinite: 1e20 is a finite bound.

    Parameters
    ----------
    lower, upper : array-like
        Bounds of every row. They may be equal or infinite.
    """

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        super().__init__(None, 1.0)
        self.device = device_of(lower, upper)
        low, high = bounds(lower, upper)
        self.lower, self.upper = np.broadcast_arrays(low, high)
        self.shape = self.lower.shape or None  # scalar bounds hold for any number of rows

    def times(self, factor: float) -> Interval:
        positive_multiple(self.name, factor)
        return self

    def dual(self) -> Dual:
        bounded_below, bounded_above = np.isfinite(self.lower), np.isfinite(self.upper)
        return Dual(
            np.where(bounded_below, self.lower, np.where(bounded_above, self.upper, 0.0)),
            np.where(bounded_above, self.upper, np.where(bounded_below, self.lower, 0.0)),
            0.0,
            np.where(bounded_below, -np.inf, 0.0),
            np.where(bounded_above, np.inf, 0.0),
        )


def signs(labels: ArrayLike) -> Vector:
    """Return labels as float64, or raise if they are not -1 and +1."""
    array = np.atleast_1d(finite("labels", labels))
    found = np.unique(array)
    if not np.all(np.isin(found, (-1.0, 1.0))):
        shown = ", ".join(f"{value:g}" for value in found[:5]) + (", ..." if found.size > 5 else "")
        raise ValueError(
            f"labels has the values {shown}: expected the two classes -1 and +1 "
            "(for classes a and b use np.where(labels == b, 1, -1))"
        )
    return array
