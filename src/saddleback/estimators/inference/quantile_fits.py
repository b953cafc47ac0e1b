"""The data and the further fits from which the standard errors of quantile regressions are computed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

import saddleback as sb

from ...common.arrays import Indices, Vector
from ..certified import calling_level
from ..many_weights import with_losses
from .checks import check_name, checked_level, cluster_numbers
from .quantile_errors import BANDWIDTHS, KERNELS, KINDS, Evidence, bandwidth

INTERPOLATED = 1e-10
"""Largest residual, relative to the targets, of a sample that a fit interpolates."""


@dataclass(frozen=True)
class ErrorOptions:
    """How standard errors are estimated, checked for samples of some number."""

    kind: str
    bandwidth: str
    kernel: str | None
    clusters: Indices | None
    level: float

    @classmethod
    def checked(
        cls, n: int, kind: str, bandwidth: str, kernel: str | None, clusters: Any, level: float
    ) -> ErrorOptions:
        """Return the options, or raise if one is not known or does not belong to the kind."""
        check_name("kind", kind, KINDS)
        check_name("bandwidth", bandwidth, BANDWIDTHS)
        chosen = KINDS[kind]
        if kernel is not None:
            check_name("kernel", kernel, KERNELS)
            if chosen.kernel is None:
                readers = [name for name, other in KINDS.items() if other.kernel is not None]
                raise ValueError(f"kernel={kernel!r}: kind={kind!r} has no kernel; it belongs to {readers}")
        if chosen.clustered != (clusters is not None):
            found = "clusters were given" if clusters is not None else "clusters is None"
            raise ValueError(f"kind={kind!r}, but {found}: pass kind='cluster' together with clusters")
        numbers = None if clusters is None else cluster_numbers(clusters, n)
        return cls(kind, bandwidth, kernel or chosen.kernel, numbers, checked_level(level))

    def neighbours(self, quantile: float, n: int) -> list[float]:
        """Return the further quantiles that have to be fitted."""
        h = bandwidth(self.bandwidth, quantile, n)
        return [quantile - h, quantile + h] if KINDS[self.kind].neighbours else []


@dataclass(frozen=True)
class QuantileData:
    """Samples of a quantile regression.

    Attributes
    ----------
    ready : the problem to solve, of ``LinearModel._prepare``.
    design : samples by coefficients, with a column of ones first if there is an intercept; centred then if dense.
    centre : what was subtracted from its columns.
    matrix, target : the samples as given.
    intercept : whether the model has one.
    options : options of the solves.
    """

    ready: Any
    design: Any
    centre: Vector
    matrix: Any
    target: Vector
    intercept: bool
    options: dict[str, Any]

    @classmethod
    def of(cls, model: Any, X: Any, y: Any) -> QuantileData:
        """Return the checked data of a model that has not been fitted, and set its names of features."""
        table, target, _ = model._check_data(X, y, None)
        if not table.in_memory:
            raise TypeError("X is in a file: standard errors need it in memory, as an array or a sparse matrix")
        matrix = table.matrix.astype(np.float64)
        ready = model._prepare(table, target, None)
        if not model.fit_intercept:
            return cls(ready, matrix, np.zeros(matrix.shape[1]), matrix, target, False, model._options(model._clock()))
        ones = np.ones((matrix.shape[0], 1))
        if sparse.issparse(matrix):
            centre, design = np.zeros(matrix.shape[1]), sparse.hstack([ones, matrix], format="csr")
        else:
            centre = matrix.mean(axis=0)
            design = np.hstack([ones, matrix - centre])
        return cls(ready, design, centre, matrix, target, True, model._options(model._clock()))

    def solved(self, quantiles: Sequence[float]) -> dict[float, sb.Result]:
        """Return the fits of some quantiles, each from that of the next lower one."""
        objective, (target,) = self.ready.objective, self.ready.targets
        ordered = sorted(set(quantiles))
        losses = [
            replace(objective, loss="quantile", quantile=each).loss_term(
                target.values, self.ready.samples.weight, self.ready.total
            )
            for each in ordered
        ]
        results = with_losses(self.ready, target, losses, self.options) if losses else []
        if len(results) < len(losses):
            raise TimeoutError(
                f"time_limit={self.options['time_limit']:.3g} was enough for {len(results)} of {len(losses)} "
                "quantiles: raise it"
            )
        return dict(zip(ordered, results, strict=True))

    def predicted(self, coefficients: Vector) -> Vector:
        """Return the predictions for all samples; the intercept is the first coefficient if there is one."""
        found: Vector = (
            self.matrix @ coefficients[1:] + coefficients[0] if self.intercept else self.matrix @ coefficients
        )
        return found

    def residual(self, coefficients: Vector) -> Vector:
        """Return the residuals, exactly 0 for the samples that are interpolated."""
        residual = self.target - self.predicted(coefficients)
        residual[np.abs(residual) <= INTERPOLATED * np.max(np.abs(self.target))] = 0.0
        return residual

    def evidence(self, coefficients: Vector, quantile: float, how: ErrorOptions, sides: Sequence[Vector]) -> Evidence:
        """Return what a covariance is computed from; ``sides`` are the coefficients of the neighbouring quantiles."""
        difference = self.predicted(sides[1]) - self.predicted(sides[0]) if sides else None
        return Evidence(
            self.design,
            self.target,
            self.residual(coefficients),
            quantile,
            bandwidth(how.bandwidth, quantile, self.target.size),
            None if how.kernel is None else KERNELS[how.kernel],
            difference,
            how.clusters,
        )

    def covariance(self, coefficients: Vector, quantile: float, how: ErrorOptions, sides: Sequence[Vector]) -> Vector:
        """Return the covariance of the coefficients, for the columns as given."""
        n, p = self.design.shape
        if n <= p:
            raise ValueError(f"X has {n} samples for {p} coefficients: standard errors need more samples than that")
        evidence = self.evidence(coefficients, quantile, how, sides)
        if evidence.difference is not None and np.any(evidence.difference <= 0):
            warnings.warn(
                f"the quantiles that are fitted beside {quantile:g} cross in {np.sum(evidence.difference <= 0)} of {n} "
                "samples, whose density is taken to be 0: standard errors may be wrong",
                UserWarning,
                stacklevel=calling_level(),
            )
        found = KINDS[how.kind].covariance(evidence)
        back = np.eye(p)
        if self.intercept:
            back[0, 1:] = -self.centre
        return back @ found @ back.T

    def degrees(self, how: ErrorOptions) -> int:
        """Return the degrees of freedom of the t distribution."""
        n, p = self.design.shape
        return n - p if how.clusters is None else int(how.clusters.max())
