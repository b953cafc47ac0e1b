"""A penalty or loss as the user writes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..common.arrays import Step, Vector, constant

if TYPE_CHECKING:
    from ..places.torch.device import Device
    from .concave import Bend
    from .contract import Convex


class Term(ABC):
    """A penalty or loss as the user states it; ``bind`` makes a ``Convex`` of it for a variable of known shape."""

    shape: tuple[int, ...] | None = None
    """Shape of the variable, if the term knows it."""

    rounds: int | None = None
    """After how many convex problems of ``saddleback.reweighted`` the weights are final; None if x has to settle."""

    device: Device | None = None
    """Device of the data of the term, if they were tensors."""

    def __repr__(self) -> str:
        shown = {
            name: f"array{value.shape}" if isinstance(value, np.ndarray) and value.ndim else value
            for name, value in vars(self).items()
            if value is not None and name not in ("shape", "device", "kind", "accepts")
        }
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in shown.items())})"

    __array_ufunc__ = None  # products with numbers of numpy are left to the term

    @property
    def name(self) -> str:
        """The name of the term in messages."""
        return type(self).__name__

    @property
    def convex(self) -> bool:
        """Whether the term is convex; a problem has convex terms alone."""
        return True

    def __mul__(self, factor: object) -> Any:
        if not isinstance(factor, Real):
            return NotImplemented
        return self.times(float(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: object) -> Any:
        if not isinstance(divisor, Real):
            return NotImplemented
        return self.times(1.0 / float(divisor))

    def __neg__(self) -> Term:
        return self.times(-1.0)

    def times(self, factor: float) -> Term:
        """Return the term times a factor that is at least 0."""
        raise TypeError(f"{self.name} cannot be multiplied by a number: multiply its value and the step of its prox")

    def has_alpha(self) -> bool:
        """Return whether the term has a weight alpha that can be replaced."""
        return False

    def with_alpha(self, alpha: float) -> Term:
        """Return the term with another alpha; the term itself if it has none."""
        return self

    def majoriser(self, x: ArrayLike | None = None) -> Term:
        """Return a convex term that is, up to a constant, at least this one everywhere and equal to it at x, or at 0.

        For a convex term that is the term itself.
        """
        return self

    def below_majoriser(self, x: Vector, v: Vector) -> float:
        """Return the value at x minus that of the majoriser at v; 0 for a convex term."""
        return 0.0

    def steeper(self, factor: float) -> Term:
        """Return the term with alpha times a factor if it is not convex; otherwise the term itself."""
        return self

    def bends(self, shape: tuple[int, ...]) -> list[Bend]:
        """Return what the term adds to its majoriser at 0, over the blocks of that; nothing for a convex term."""
        return []

    def linear(self, shape: tuple[int, ...]) -> Vector:
        """Return the linear part c of the term, for the scale of the dual infeasibility."""
        return constant(0.0, prod(shape))

    @abstractmethod
    def bind(self, shape: tuple[int, ...]) -> Convex:
        """Return the function of a flattened variable of that shape, or raise if the parameters do not fit."""

    def value(self, x: ArrayLike) -> float:
        """Return the value at x, infinite outside the domain."""
        point = np.asarray(x, dtype=np.float64)
        return self.bind(point.shape).value(point.ravel())

    def conjugate(self, y: ArrayLike) -> float:
        """Return the conjugate at y, sup_x <x, y> - f(x), infinite outside its domain."""
        point = np.asarray(y, dtype=np.float64)
        return self.bind(point.shape).conjugate().value(point.ravel())

    def prox(self, v: ArrayLike, step: ArrayLike) -> Vector:
        """Return argmin_x f(x) + 1/2 sum (x - v)^2 / step, with a scalar step or one per coordinate."""
        point, steps = self._point_and_step(v, step)
        return self.bind(point.shape).prox(point.ravel(), steps).reshape(point.shape)

    def prox_conjugate(self, v: ArrayLike, step: ArrayLike) -> Vector:
        """Return the prox of the conjugate."""
        point, steps = self._point_and_step(v, step)
        return self.bind(point.shape).conjugate().prox(point.ravel(), steps).reshape(point.shape)

    @staticmethod
    def _point_and_step(v: ArrayLike, step: ArrayLike) -> tuple[Vector, Step]:
        point = np.asarray(v, dtype=np.float64)
        steps = np.asarray(step, dtype=np.float64)
        if not np.all(steps > 0):
            raise ValueError("step must be positive everywhere")
        if steps.shape not in ((), point.shape):
            raise ValueError(f"step has shape {steps.shape}: expected a number or shape {point.shape}")
        return point, float(steps) if steps.ndim == 0 else steps.ravel()


def broadcast_parameter(name: str, parameter: ArrayLike, shape: tuple[int, ...], dtype: Any = np.float64) -> Vector:
    """Return a parameter with one value per coordinate of a variable of that shape, flattened.

    A vector given for a matrix variable holds one value per row.
    """
    array = np.asarray(parameter, dtype=dtype)
    if array.shape not in ((), shape, shape[:1]):
        raise ValueError(
            f"{name} has shape {array.shape}, but the variable it belongs to has shape {shape}: "
            f"expected a scalar, shape {shape}, or one value for each of its {shape[0] if shape else 1} rows"
        )
    if array.ndim == 0:
        return constant(array, prod(shape))
    if array.shape != shape:
        array = array.reshape(array.shape + (1,) * (len(shape) - array.ndim))
    return np.broadcast_to(array, shape).ravel()
