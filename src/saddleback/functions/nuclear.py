"""The nuclear norm: singular value thresholding and its dual, the spectral ball."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector, squeeze_constant
from ..common.chunks import panels_of_rows
from ..common.rebuildable import stored
from ..common.rounded import UNIT, Rounded
from .conjugates import Ball, Indicator
from .contract import ROUNDING, Convex, Ray
from .domains import Everywhere, PartlyFixed
from .excess import LOST, Contact, Gauge, Near, collapsed, contact_of_norms, lengths
from .kinks import Kinks
from .points import BufferedPoint, DensePoint
from .singular import PROVED, Memory, Pairs, enclosed_norms, nuclear_norm, spectral_norm, threshold_singular_values
from .traits import InUnits, Kinked, Lipschitz, Movable, Remembers, Scaled

MOST_WORK = 2**24
"""Largest size of a matrix times its smaller side for which singular values are verified: it takes milliseconds."""


@stored
@dataclass
class LowRank(BufferedPoint):
    """A matrix in row-major order, stored as its singular pairs."""

    pairs: Pairs
    array: Vector | None = None

    def vector(self) -> Vector:
        return np.ravel(self.pairs.matrix()) if self.array is None else self.array

    def write(self, memory: Vector) -> None:
        self.pairs.matrix(self._shaped(memory))

    def extrapolate(self, vector: Vector, share: float) -> None:
        matrix, left = self._shaped(vector), self.pairs.left * self.pairs.values
        for rows in panels_of_rows(matrix):
            back = left[rows] @ self.pairs.right
            back -= matrix[rows]
            back *= share
            matrix[rows] -= back

    def inner(self, other: Vector) -> float:
        left, values, right = self.pairs
        return float(np.sum(((left * values).T @ self._shaped(other)) * right))

    def release_buffer(self) -> bool:
        self.array = None
        return True

    def _shaped(self, vector: Vector) -> Vector:
        return vector.reshape(self.pairs.left.shape[0], self.pairs.right.shape[1])


class NuclearNorm(Convex, Lipschitz, Kinked, Scaled, InUnits, Movable, Remembers):
    r""":math:`\alpha \sum_i \sigma_i(X)`, whose conjugate is the indicator of :math:`\|Y\|_2 \le \alpha`.

    ``memory`` holds the singular vectors of the last call; a function that runs share has no memory.
    """

    domain = Everywhere()
    diagonal_steps = False

    def __init__(self, alpha: float, shape: tuple[int, int], memory: Memory | None = None) -> None:
        self.alpha = alpha
        self.shape = shape
        self.memory = memory

    def with_memory(self) -> NuclearNorm:
        return NuclearNorm(self.alpha, self.shape, Memory())

    def moved(self, place: ToDevice) -> NuclearNorm:
        return self

    def memories(self) -> list[Memory]:
        return [] if self.memory is None else [self.memory]

    def blocks(self) -> Blocks:
        return Blocks.single(self.shape[0] * self.shape[1])

    def in_units(self, unit: Vector) -> NuclearNorm:
        return NuclearNorm(self.alpha * float(unit[0]), self.shape, self.memory)

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        return self.alpha * factor * nuclear_norm(x.reshape(self.shape), self.memory)

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        return self.prox_point(v, step).vector()

    def prox_point(self, v: Vector, step: Step) -> BufferedPoint:
        """Return the prox as the kind of point that takes the least memory."""
        threshold = self.alpha * float(np.max(squeeze_constant(step)))
        pairs = threshold_singular_values(v.reshape(self.shape), threshold, self.memory)
        factors = pairs.left.size + pairs.right.size
        return LowRank(pairs) if factors < v.size else DensePoint(np.ravel(pairs.matrix()))

    def recession(self, direction: Vector) -> Ray:
        value = self.finite_value(direction)
        return Ray(value, np.zeros_like(direction), value)

    def subgradient(self, x: Vector) -> Vector:
        left, values, right = np.linalg.svd(x.reshape(self.shape), full_matrices=False)
        kept = values > ROUNDING * values[0]
        return self.alpha * np.ravel(left[:, kept] @ right[kept])

    @property
    def bounds_rounding(self) -> bool:
        """Whether matrices of all sizes have bounds: those of robust PCA are as large as the data."""
        return False

    def contact(self, point: Rounded, slope: Rounded) -> Contact | None:
        """Return the contact, by verified singular values; None for a matrix that is too large."""
        if min(self.shape) * self.shape[0] * self.shape[1] > MOST_WORK:
            return None
        x, z = collapsed(point), collapsed(slope)
        of_x, of_z = (enclosed_norms(each.value.reshape(self.shape)) for each in (x, z))
        if of_x is None or of_z is None:
            return None
        one = self.blocks()
        x_off, z_off = (lengths(one, each.error).most for each in (x, z))
        gauge = Gauge(
            most=(of_z.most + z_off) * (1 + 2 * UNIT),
            least=np.array([of_z.least]),
            end=np.array([self.alpha]),
            size=lengths(one, slope.size).value,
        )
        error = self.alpha * (of_x.error + 2 * UNIT * of_x.total) + LOST * (of_x.total > 0)
        norms = Near(np.array([self.alpha * of_x.total]), np.array([error]))
        moved = self.alpha * np.sqrt(min(self.shape)) * x_off * (1 + 8 * UNIT) + LOST * (x_off > 0)
        return contact_of_norms(x, z, one, norms, moved, gauge)

    def rise(self, distance: float) -> float:
        return self.alpha * float(np.sqrt(min(self.shape))) * distance

    def subgradient_scale(self) -> Vector:
        return np.full(self.shape[0] * self.shape[1], self.alpha / np.sqrt(max(self.shape)))

    def conjugate(self) -> Indicator:
        return Indicator(self, SpectralBall(self))

    def kinks(self, z: Vector, rest: NuclearNorm) -> Kinks:
        left, values, right = np.linalg.svd(z.reshape(self.shape), full_matrices=False)
        unit = self.alpha - rest.alpha
        slope = np.ravel(np.outer(left[:, 0], right[0])) / unit
        return Kinks(values[:1] / unit, slope, np.zeros(z.size, dtype=np.int64))


class SpectralBall(Ball, PartlyFixed):
    r""":math:`\|Y\|_2 \le \alpha`."""

    symmetric = True

    def __init__(self, norm: NuclearNorm) -> None:
        self.norm = norm

    def holds(self, x: Vector) -> bool:
        return self._spectral_norm(x) <= self.norm.alpha * (1.0 + ROUNDING + PROVED)

    def project(self, x: Vector) -> Vector:
        # by Moreau's identity, x minus its thresholding is the projection
        return x if self.holds(x) else x - self.norm.prox(x, 1.0)

    def largest_multiple(self, x: Vector) -> float:
        length = self._spectral_norm(x)
        return 1.0 if length <= self.norm.alpha else self.norm.alpha / length

    def has_zero(self) -> bool:
        return True

    def fixed(self) -> Indices:
        return np.arange(self.norm.shape[0] * self.norm.shape[1] if self.norm.alpha == 0 else 0)

    def _spectral_norm(self, y: Vector) -> float:
        return spectral_norm(y.reshape(self.norm.shape))
