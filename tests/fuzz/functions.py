"""The catalogue of penalties and losses, written without the library from the formulas of its documentation.

Everything is evaluated in numpy's longdouble. On x86 it has more range and digits than float64, so that a check
measures the rounding errors of the library and not its own.

A penalty has its terms, the violation of its domain, and its conjugate. A loss also has a bound on its slope within
``off`` of a point, and how far it can rise if its data change by some distances (``rise``). The conjugate is evaluated
at the projection of its argument on the domain, and returns the violation.

Units are factors of rows, of columns and of the objective. ``together`` says which entries have to have the same one,
as a number per entry, or that they have none at all (``FIXED``); ``in_units`` returns the function in other units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Real = np.longdouble
Array = NDArray[np.longdouble]

FIXED = -1
"""Group of the entries that have a unit by definition, such as exponents."""


def largest_share(missed: Array, size: Array) -> Real:
    """Return the largest violation relative to a size; 0 of 0 is 0."""
    with np.errstate(divide="ignore"):
        shares = np.divide(np.abs(missed), size, out=np.zeros_like(missed), where=missed != 0)
    return np.max(shares, initial=Real(0))


@dataclass
class Conjugate:
    """Terms of a conjugate at the projection on its domain, the violation, and the point that attains the supremum."""

    terms: Array
    missed: Array
    attained: Array


def soft(v: Array, threshold: Array) -> Array:
    """Return the soft threshold of v."""
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0)


@dataclass
class Separable:
    """sum_d slope_d |x_d| + curvature_d / 2 x_d^2 + linear_d x_d, for lower <= x <= upper."""

    slope: Array
    curvature: Array
    linear: Array
    lower: Array
    upper: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of x."""
        return self.linear.shape

    def terms(self, x: Array) -> Array:
        return np.concatenate([self.slope * np.abs(x), self.curvature / 2 * x * x, self.linear * x])

    def missed(self, x: Array) -> Array:
        return x - self.project(x)

    def project(self, x: Array) -> Array:
        return np.clip(x, self.lower, self.upper)

    def unpenalised(self) -> NDArray[np.int64]:
        """Return the coordinates that have no more than a linear term."""
        free = (self.slope == 0) & (self.curvature == 0)
        return np.flatnonzero(free & np.isneginf(self.lower) & np.isposinf(self.upper))

    def conjugate(self, z: Array) -> Conjugate:
        w = z - self.linear
        curved = self.curvature > 0
        flat_up = ~curved & np.isposinf(self.upper) & (w > self.slope)
        flat_down = ~curved & np.isneginf(self.lower) & (w < -self.slope)
        missed = np.where(flat_up, w - self.slope, np.where(flat_down, w + self.slope, 0))
        w = np.where(flat_up, self.slope, np.where(flat_down, -self.slope, w))
        with np.errstate(invalid="ignore", divide="ignore"):
            free = np.where(curved, soft(w, self.slope) / np.where(curved, self.curvature, 1), 0)
            # without curvature the maximum is at an end of the box, or at the kink
            free = np.where(
                ~curved & (w > self.slope), self.upper, np.where(~curved & (w < -self.slope), self.lower, free)
            )
        best = self.project(free)
        terms = np.concatenate([w * best, -self.slope * np.abs(best), -self.curvature / 2 * best * best])
        return Conjugate(terms, missed, best)

    def violation(self, missed: Array, size: Array) -> Real:
        """Return the largest violation of a slope, relative to its terms."""
        return largest_share(missed, size + np.abs(self.linear) + self.slope)

    def together(self) -> NDArray[np.int64]:
        return np.arange(self.linear.size)

    def in_units(self, units: Array, objective: Real) -> Separable:
        slopes = {name: getattr(self, name) * units * objective for name in ("slope", "linear")}
        bounds = {name: getattr(self, name) / units for name in ("lower", "upper")}
        return Separable(**slopes, **bounds, curvature=self.curvature * units**2 * objective)


@dataclass
class Grouped:
    """sum_d slope_d |x_d| + sum_g weight_g ||x_g|| + linear_d x_d, with x >= 0 if ``sign`` is set."""

    slope: Array
    linear: Array
    groups: Sequence[NDArray[np.int64]]
    weights: Array
    sign: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of x."""
        return self.linear.shape

    def terms(self, x: Array) -> Array:
        norms = np.array([weight * norm(x[g]) for g, weight in zip(self.groups, self.weights, strict=True)], dtype=Real)
        return np.concatenate([self.slope * np.abs(x), norms, self.linear * x])

    def missed(self, x: Array) -> Array:
        return x - self.project(x)

    def project(self, x: Array) -> Array:
        return np.maximum(x, 0) if self.sign else x

    def unpenalised(self) -> NDArray[np.int64]:
        members = [g for g, weight in zip(self.groups, self.weights, strict=True) if weight == 0 and not self.sign]
        free = np.concatenate([np.empty(0, dtype=np.int64), *members])
        return free[self.slope[free] == 0]

    def conjugate(self, z: Array) -> Conjugate:
        """Return 0 on the domain; the violation of z is the prox of the penalty, without its linear term, at z."""
        w = z - self.linear
        w = np.maximum(w - self.slope, 0) if self.sign else soft(w, self.slope)
        missed = np.zeros_like(w)
        for g, weight in zip(self.groups, self.weights, strict=True):
            length = norm(w[g])
            if length > weight:
                missed[g] = w[g] * (1 - weight / length)
        return Conjugate(np.zeros_like(w), missed, np.zeros_like(w))

    def violation(self, missed: Array, size: Array) -> Real:
        """Return the largest violation of a group, relative to its terms."""
        size = size + np.abs(self.linear) + self.slope
        lengths = [(norm(missed[g]), norm(size[g]) + w) for g, w in zip(self.groups, self.weights, strict=True)]
        return largest_share(*np.array(lengths, dtype=Real).T)

    def together(self) -> NDArray[np.int64]:
        found = np.zeros(self.linear.size, dtype=np.int64)
        for number, g in enumerate(self.groups):
            found[g] = number
        return found

    def in_units(self, units: Array, objective: Real) -> Grouped:
        slopes = {name: getattr(self, name) * units * objective for name in ("slope", "linear")}
        weights = self.weights * np.array([units[g[0]] for g in self.groups]) * objective
        return replace(self, **slopes, weights=weights)


@dataclass
class Nuclear:
    """alpha * the sum of the singular values of x, as a matrix of the given shape, + <linear, x>."""

    alpha: Real
    shape: tuple[int, int]
    linear: Array

    def terms(self, x: Array) -> Array:
        return np.concatenate([self.alpha * self._factors(x)[1], self.linear * x])

    def missed(self, x: Array) -> Array:
        return np.zeros_like(x)

    def project(self, x: Array) -> Array:
        return x

    def unpenalised(self) -> NDArray[np.int64]:
        return np.arange(self.linear.size if self.alpha == 0 else 0)

    def conjugate(self, z: Array) -> Conjugate:
        U, s, Vt = self._factors(z - self.linear)
        missed = ((U * np.maximum(s - self.alpha, 0)) @ Vt).ravel()
        return Conjugate(np.zeros_like(z), missed, np.zeros_like(z))

    def violation(self, missed: Array, size: Array) -> Real:
        """Return the violation of the matrix, relative to its terms."""
        return largest_share(np.array([norm(missed)]), np.array([norm(size + np.abs(self.linear)) + self.alpha]))

    def together(self) -> NDArray[np.int64]:
        return np.zeros(self.linear.size, dtype=np.int64)

    def in_units(self, units: Array, objective: Real) -> Nuclear:
        factor = units[0] * objective
        return replace(self, alpha=self.alpha * factor, linear=self.linear * factor)

    def _factors(self, x: Array) -> tuple[Array, Array, Array]:
        scale = np.max(np.abs(x), initial=Real(0)) or Real(1)  # LAPACK has no longdouble
        U, s, Vt = np.linalg.svd(np.asarray((x / scale).reshape(self.shape), dtype=float), full_matrices=False)
        return U.astype(Real), s.astype(Real) * scale, Vt.astype(Real)


def norm(v: Array) -> Real:
    """Return the Euclidean norm, without overflow."""
    scale = np.max(np.abs(v), initial=Real(0))
    return scale * np.sqrt(np.sum((v / scale) ** 2)) if scale > 0 else Real(0)


@dataclass
class Target:
    """A loss of the residual u - b: strength_i * l(u_i - b_i)."""

    b: Array
    strength: Array

    degree = 1

    def missed(self, u: Array) -> Array:
        return np.zeros_like(u)

    def data(self) -> Array:
        return np.abs(self.b)

    def together(self) -> NDArray[np.int64]:
        return np.arange(self.b.size)

    def in_units(self, units: Array, objective: Real) -> Target:
        return replace(self, b=self.b * units, strength=self.strength * objective / units**self.degree)


@dataclass
class Squared(Target):
    """(u - b)^2 / 2."""

    degree = 2

    def terms(self, u: Array) -> Array:
        return self.strength * (u - self.b) ** 2 / 2

    def slope(self, u: Array, off: Array) -> Array:
        return self.strength * (np.abs(u - self.b) + off)

    def rise(self, distances: Array) -> Real:
        return np.sum(self.strength * distances**2 / 2)

    def conjugate(self, y: Array) -> Conjugate:
        return _quadratic(self, y, -np.inf, np.inf)


@dataclass
class Huber(Target):
    """(u - b)^2 / 2 up to delta, then linear."""

    delta: Real | Array

    degree = 2

    def terms(self, u: Array) -> Array:
        r = np.abs(u - self.b)
        return self.strength * np.where(r <= self.delta, r**2 / 2, self.delta * (r - self.delta / 2))

    def slope(self, u: Array, off: Array) -> Array:
        return self.strength * np.minimum(np.abs(u - self.b) + off, self.delta)

    def rise(self, distances: Array) -> Real:
        return np.sum(self.strength * np.minimum(distances**2 / 2, self.delta * distances))

    def conjugate(self, y: Array) -> Conjugate:
        return _quadratic(self, y, -self.delta, self.delta)

    def in_units(self, units: Array, objective: Real) -> Huber:
        return replace(self, **vars(super().in_units(units, objective)) | {"delta": self.delta * units})


def _quadratic(loss: Target, y: Array, lower: Real | Array, upper: Real | Array) -> Conjugate:
    """Return b y + y^2 / 2s on s [lower, upper]; a row of strength 0 allows only y = 0."""
    counted = loss.strength > 0
    with np.errstate(invalid="ignore"):
        inside = np.where(counted, np.clip(y, loss.strength * lower, loss.strength * upper), 0)
    squares = inside * inside / np.where(counted, 2 * loss.strength, 1)
    return Conjugate(np.concatenate([loss.b * inside, squares]), y - inside, np.zeros_like(y))


@dataclass
class Tilted(Target):
    """max(right (r - epsilon), -left (r + epsilon), 0) of r = u - b: absolute, pinball and epsilon-insensitive."""

    left: Real
    right: Real
    epsilon: Real | Array

    def terms(self, u: Array) -> Array:
        r = u - self.b
        return self.strength * np.maximum(
            np.maximum(self.right * (r - self.epsilon), -self.left * (r + self.epsilon)), 0
        )

    def slope(self, u: Array, off: Array) -> Array:
        return self.strength * np.maximum(self.left, self.right)

    def rise(self, distances: Array) -> Real:
        return np.sum(self.strength * max(self.left, self.right) * distances)

    def conjugate(self, y: Array) -> Conjugate:
        inside = np.clip(y, -self.strength * self.left, self.strength * self.right)
        terms = np.concatenate([self.b * inside, self.epsilon * np.abs(inside)])
        return Conjugate(terms, y - inside, np.zeros_like(y))

    def in_units(self, units: Array, objective: Real) -> Tilted:
        return replace(self, **vars(super().in_units(units, objective)) | {"epsilon": self.epsilon * units})


@dataclass
class Labels:
    """A loss of the margin z u, with labels z of -1 and +1."""

    z: Array
    strength: Array

    def missed(self, u: Array) -> Array:
        return np.zeros_like(u)

    def data(self) -> Array:
        return np.abs(self.z)

    def together(self) -> NDArray[np.int64]:
        return np.full(self.z.size, FIXED)

    def in_units(self, units: Array, objective: Real) -> Labels:
        return replace(self, strength=self.strength * objective)


@dataclass
class Hinge(Labels):
    """max(0, 1 - z u)."""

    def terms(self, u: Array) -> Array:
        return self.strength * np.maximum(0, 1 - self.z * u)

    def slope(self, u: Array, off: Array) -> Array:
        return self.strength

    def rise(self, distances: Array) -> Real:
        return np.sum(self.strength * distances)

    def conjugate(self, y: Array) -> Conjugate:
        inside = self.z * np.clip(self.z * y, -self.strength, 0)
        return Conjugate(self.z * inside, y - inside, np.zeros_like(y))


@dataclass
class SquaredHinge(Labels):
    """max(0, 1 - z u)^2 / 2."""

    def terms(self, u: Array) -> Array:
        return self.strength * np.maximum(0, 1 - self.z * u) ** 2 / 2

    def slope(self, u: Array, off: Array) -> Array:
        return self.strength * np.maximum(0, 1 + off - self.z * u)

    def rise(self, distances: Array) -> Real:
        return np.sum(self.strength * distances**2 / 2)

    def conjugate(self, y: Array) -> Conjugate:
        counted = self.strength > 0
        inside = np.where(counted, self.z * np.minimum(self.z * y, 0), 0)
        squares = inside * inside / np.where(counted, 2 * self.strength, 1)
        return Conjugate(np.concatenate([self.z * inside, squares]), y - inside, np.zeros_like(y))


@dataclass
class Logistic(Labels):
    """log(1 + exp(-z u))."""

    def terms(self, u: Array) -> Array:
        return self.strength * np.logaddexp(0, -self.z * u)

    def slope(self, u: Array, off: Array) -> Array:
        return self.strength

    def rise(self, distances: Array) -> Real:
        return np.sum(self.strength * distances)

    def conjugate(self, y: Array) -> Conjugate:
        """Return s (p log p + (1 - p) log(1 - p)) at p = -z y / s in [0, 1]."""
        counted = self.strength > 0
        p = np.clip(np.where(counted, -self.z * y / np.where(counted, self.strength, 1), 0), 0, 1)
        terms = self.strength * np.concatenate([entropy(p), entropy(1 - p)]).reshape(2, -1)
        return Conjugate(terms.ravel(), y + self.z * self.strength * p, np.zeros_like(y))


def entropy(p: Array) -> Array:
    """Return p log p, 0 at 0."""
    return p * np.log(np.where(p > 0, p, 1))


@dataclass
class Norm2:
    """scale * sqrt(sum_i weight_i (u_i - b_i)^2)."""

    b: Array
    weight: Array
    scale: Real

    def terms(self, u: Array) -> Array:
        return np.atleast_1d(self.scale * norm(np.sqrt(self.weight) * (u - self.b)))

    def missed(self, u: Array) -> Array:
        return np.zeros_like(u)

    def data(self) -> Array:
        return np.abs(self.b)

    def slope(self, u: Array, off: Array) -> Array:
        return self.scale * np.sqrt(self.weight)

    def rise(self, distances: Array) -> Real:
        return self.scale * norm(np.sqrt(self.weight) * distances)

    def together(self) -> NDArray[np.int64]:
        return np.zeros(self.b.size, dtype=np.int64)

    def in_units(self, units: Array, objective: Real) -> Norm2:
        return replace(self, b=self.b * units, scale=self.scale * objective / units[0])

    def conjugate(self, y: Array) -> Conjugate:
        """Return b y on the ellipsoid sum y_i^2 / weight_i <= scale^2; only rounding may leave the ellipsoid."""
        counted = self.weight > 0
        inside = np.where(counted, y, 0)
        length = norm(inside / np.sqrt(np.where(counted, self.weight, 1)))
        if length > self.scale:
            inside = inside * (self.scale / length)
        return Conjugate(self.b * inside, y - inside, np.zeros_like(y))


@dataclass
class Interval:
    """0 if lower <= u <= upper; an Equality has equal bounds."""

    lower: Array
    upper: Array

    def terms(self, u: Array) -> Array:
        return np.zeros_like(u)

    def missed(self, u: Array) -> Array:
        return u - np.clip(u, self.lower, self.upper)

    def data(self) -> Array:
        return np.maximum(*(np.where(np.isfinite(side), np.abs(side), 0) for side in (self.lower, self.upper)))

    def slope(self, u: Array, off: Array) -> Array:
        return np.zeros_like(u)

    def rise(self, distances: Array) -> Real:
        return Real(0)

    def together(self) -> NDArray[np.int64]:
        return np.arange(self.lower.size)

    def in_units(self, units: Array, objective: Real) -> Interval:
        return Interval(self.lower * units, self.upper * units)

    def conjugate(self, y: Array) -> Conjugate:
        bound = np.where(y > 0, self.upper, self.lower)
        inside = np.where(np.isfinite(bound), y, 0)
        return Conjugate(np.where(np.isfinite(bound), bound, 0) * inside, y - inside, np.zeros_like(y))


Penalty = Separable | Grouped | Nuclear
Loss = Squared | Huber | Tilted | Hinge | SquaredHinge | Logistic | Norm2 | Interval
