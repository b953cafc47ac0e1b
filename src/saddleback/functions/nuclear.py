"""The nuclear norm: singular value thresholding and its dual, the spectral ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector, squeeze_constant
from ..common.chunks import panels_of_rows
from ..common.rebuildable import stored
from .calculus import Tilted
from .contract import ROUNDING, Function, Kinks, Ray, Slopes
from .points import Held, Whole
from .singular import PROVED, Memory, Pairs, nuclear_norm, spectral_norm, threshold_singular_values


@stored
@dataclass
class LowRank(Held):
    """A matrix, row by row, that is known by its singular pairs."""

    pairs: Pairs
    array: Vector | None = None

    def vector(self) -> Vector:
        return np.ravel(self.pairs.matrix()) if self.array is None else self.array

    def write(self, memory: Vector) -> None:
        self.pairs.matrix(self._shaped(memory))

    def drive_away(self, vector: Vector, share: float) -> None:
        matrix, left = self._shaped(vector), self.pairs.left * self.pairs.values
        for rows in panels_of_rows(matrix):
            back = left[rows] @ self.pairs.right
            back -= matrix[rows]
            back *= share
            matrix[rows] -= back

    def inner(self, other: Vector) -> float:
        left, values, right = self.pairs
        return float(np.sum(((left * values).T @ self._shaped(other)) * right))

    def fold(self) -> bool:
        self.array = None
        return True

    def _shaped(self, vector: Vector) -> Vector:
        return vector.reshape(self.pairs.left.shape[0], self.pairs.right.shape[1])


class NuclearNorm(Function):
    r""":math:`\alpha \sum_i \sigma_i(X)`, whose conjugate is the indicator of :math:`\|Y\|_2 \le \alpha`.

    ``memory`` holds where the singular vectors were found last; what is shared between runs has none.
    """

    scalar_step = True
    even = True

    def __init__(self, alpha: float, shape: tuple[int, int], memory: Memory | None = None) -> None:
        self.alpha = alpha
        self.shape = shape
        self.memory = memory

    def with_memory(self) -> NuclearNorm:
        return NuclearNorm(self.alpha, self.shape, Memory())

    def placed(self, place: ToDevice) -> NuclearNorm:
        return self

    def memories(self) -> list[Any]:
        return [] if self.memory is None else [self.memory]

    def blocks(self) -> Blocks:
        return Blocks.single(self.shape[0] * self.shape[1])

    def value(self, x: Vector) -> float:
        return self.finite_value(x)

    def finite_value(self, x: Vector) -> float:
        return self.alpha * nuclear_norm(x.reshape(self.shape), self.memory)

    def project(self, x: Vector) -> Vector:
        return x

    def prox(self, v: Vector, step: Step) -> Vector:
        return self.prox_point(v, step).vector()

    def prox_blocks(self, blocks: Indices, v: Vector, step: Vector) -> Vector:
        return self.prox(v, step)

    def prox_point(self, v: Vector, step: Step) -> Held:
        threshold = self.alpha * float(np.max(squeeze_constant(step)))
        pairs = threshold_singular_values(v.reshape(self.shape), threshold, self.memory)
        factors = pairs.left.size + pairs.right.size
        return LowRank(pairs) if factors < v.size else Whole(np.ravel(pairs.matrix()))

    def block_prox_point(self, block: int, v: Vector, step: Vector) -> Held:
        return self.prox_point(v, step)

    def recession(self, direction: Vector) -> Ray:
        value = self.finite_value(direction)
        return Ray(value, np.zeros_like(direction), value)

    def subgradient(self, x: Vector) -> Vector:
        left, values, right = np.linalg.svd(x.reshape(self.shape), full_matrices=False)
        kept = values > ROUNDING * values[0]
        return self.alpha * np.ravel(left[:, kept] @ right[kept])

    def conjugate_near(self, y: Vector, x: Vector) -> tuple[Vector, float]:
        return self.project_conjugate(y), 0.0

    def conjugate_scaled(self, y: Vector, t: float, x: Vector) -> float:
        return 0.0

    def conjugate(self, y: Vector) -> float:
        return 0.0 if self._spectral_norm(y) <= self.alpha * (1.0 + ROUNDING + PROVED) else np.inf

    def project_conjugate(self, y: Vector) -> Vector:
        # Moreau: what thresholding takes away is the projection on the spectral ball
        return y if self.conjugate(y) == 0 else y - self.prox(y, 1.0)

    def conjugate_recession(self, direction: Vector) -> Ray:
        return Ray(0.0, direction)

    def scaling(self, y: Vector) -> float:
        norm = self._spectral_norm(y)
        return 1.0 if norm <= self.alpha else self.alpha / norm

    def bounded_below(self) -> bool:
        return True

    def finite_everywhere(self) -> bool:
        return True

    def unpenalised(self) -> Indices:
        return np.arange(self.shape[0] * self.shape[1] if self.alpha == 0 else 0)

    def plus(self, piece: Slopes) -> Function:
        return Tilted(self, piece.left)

    def kinks(self, z: Vector, rest: NuclearNorm) -> Kinks:
        left, values, right = np.linalg.svd(z.reshape(self.shape), full_matrices=False)
        unit = self.alpha - rest.alpha
        slope = np.ravel(np.outer(left[:, 0], right[0])) / unit
        return Kinks(values[:1] / unit, slope, np.zeros(z.size, dtype=np.int64))

    def typical_slope(self) -> Vector:
        return np.full(self.shape[0] * self.shape[1], self.alpha / np.sqrt(max(self.shape)))

    def _spectral_norm(self, y: Vector) -> float:
        return spectral_norm(y.reshape(self.shape))
