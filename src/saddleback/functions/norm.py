"""The Euclidean norm as a loss: square-root Lasso and its kin."""

from __future__ import annotations

import numpy as np

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector
from .contract import ROUNDING, Function, Ray
from .group import shrink_norms


class WeightedNorm(Function):
    r""":math:`s \sqrt{\sum_i w_i (u_i - b_i)^2}`; the conjugate is <b, y> where :math:`\sum_i y_i^2 / w_i \le s^2`.

    A row of weight 0 does not count: its dual variable is 0.
    """

    def __init__(self, b: Vector, weight: Vector, scale: float) -> None:
        self.b = b
        self.weight = weight
        self.scale = scale
        self.counted = weight > 0
        self.root = np.sqrt(weight)

    def blocks(self) -> Blocks:
        return Blocks.single(self.b.size)

    def placed(self, place: ToDevice) -> WeightedNorm:
        return WeightedNorm(place(self.b), place(self.weight), self.scale)

    def value(self, x: Vector) -> float:
        return self.finite_value(x)

    def finite_value(self, x: Vector) -> float:
        return self.scale * float(np.linalg.norm(self.root * (x - self.b)))

    def project(self, x: Vector) -> Vector:
        return x

    def prox(self, v: Vector, step: Step) -> Vector:
        """Shrink the norm of q = root (u - b), which turns the strengths 1 / step into 1 / (step w)."""
        result = v.copy()
        rows = self.counted
        if not np.any(rows):
            return result
        root, step = self.root[rows], np.broadcast_to(step, v.shape)[rows]
        strength = 1.0 / (step * root * root)
        pull = strength * root * (v - self.b)[rows]
        short = shrink_norms(pull, strength, np.array([self.scale]), np.array([0]))
        result[rows] = self.b[rows] + short / root
        return result

    def prox_blocks(self, blocks: Indices, v: Vector, step: Vector) -> Vector:
        return self.prox(v, step)

    def subgradient(self, x: Vector) -> Vector:
        norm = float(np.linalg.norm(self.root * (x - self.b)))
        return self.weight * (x - self.b) * (self.scale / norm if norm > 0 else 0.0)

    def recession(self, direction: Vector) -> Ray:
        value = self.scale * float(np.linalg.norm(self.root * direction))
        return Ray(value, np.zeros_like(direction), value)

    def conjugate(self, y: Vector) -> float:
        inside = self.project_conjugate(y)
        if np.any(np.abs(y - inside) > ROUNDING * (1.0 + np.abs(inside))):
            return np.inf
        return float(self.b @ inside)

    def project_conjugate(self, y: Vector) -> Vector:
        """Scale into the ellipsoid: not the nearest point, but one that keeps the direction of y."""
        return self.scaling_factor(y) * np.where(self.counted, y, 0.0)

    def conjugate_recession(self, direction: Vector) -> Ray:
        return Ray(0.0, direction)

    def scaling_factor(self, y: Vector) -> float:
        """Return the largest t <= 1 that brings the counted rows of t y into the ellipsoid."""
        norm = float(np.linalg.norm(y[self.counted] / self.root[self.counted]))
        return 1.0 if norm <= self.scale else self.scale / norm

    def scaling(self, y: Vector) -> float:
        return self.scaling_factor(y) if np.all(y[~self.counted] == 0) else 0.0

    def unpenalised(self) -> Indices:
        return np.flatnonzero(~self.counted)

    def curvature_at(self, x: Vector) -> Vector:
        """Return scale w / ||u - b||, which bounds the second derivative: its steps are those of least squares."""
        norm = float(np.linalg.norm(self.root * (x - self.b)))
        return self.weight * (self.scale / norm if norm > 0 else 0.0)

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        at_kink = np.linalg.norm(self.root * (x - self.b)) <= np.linalg.norm(self.root * tolerance)
        gradient = np.where(at_kink & self.counted, np.nan, self.subgradient(x))
        return gradient, gradient

    def finite_everywhere(self) -> bool:
        return True

    def typical_point(self) -> Vector:
        return np.abs(self.b)

    def rise(self, distance: float) -> float:
        return self.scale * float(self.root.max()) * distance

    def typical_slope(self) -> Vector:
        return self.root * (self.scale / float(np.sqrt(max(int(np.sum(self.counted)), 1))))
