"""Solutions of the problems of a linear model for many weights of the samples, or many losses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import saddleback as sb

from ..common.arrays import Vector
from .design import Design
from .fit import Fit, Target


def for_weights(fit: Fit, k: int, weights: Vector, options: dict[str, Any]) -> list[sb.Result]:
    """Return the solutions of problem k for other weights of the given samples, one row of weights per solution.

    The intercept has a column, since the means of the columns depend on the weights.
    """
    X, before = fit.samples.X, fit.samples.weight
    given = np.stack([fit.samples.from_given(row) for row in weights])
    factors = given * (fit.total / given.sum(axis=1, keepdims=True))
    one = replace(fit, design=Design(X, before, fit.design.intercept))
    problem = sb.Problem(*one.terms(fit.targets[k]))
    results = sb.solve_many(problem, weights=factors if before is None else factors / before, **options)
    return [replace(result, x=one.design.to_given(result.x, fit.targets[k].shift)) for result in results]


def reweighted(fit: Fit, target: Target, factors: Vector, options: dict[str, Any]) -> list[sb.Result]:
    """Return the solutions with other weights of the samples, one row of factors for each, for the data as given.

    The design must have a column for the intercept, since the best constant depends on the weights.
    """
    if not fit.further(target):
        return _many(fit, target, options, weights=factors)
    weights = factors if fit.samples.weight is None else factors * fit.samples.weight
    losses = [fit.objective.loss_term(target.values, own, fit.total) for own in weights]
    return with_losses(fit, target, losses, options)


def with_losses(fit: Fit, target: Target, losses: list[Any], options: dict[str, Any]) -> list[sb.Result]:
    """Return the solutions with other losses of the samples, for the data as given."""
    further = [term for _, term in fit.further(target)]
    return _many(fit, target, options, losses=[[loss, *further] for loss in losses] if further else losses)


def _many(fit: Fit, target: Target, options: dict[str, Any], **changes: Any) -> list[sb.Result]:
    results = sb.solve_many(sb.Problem(*fit.terms(target)), **changes, **options)
    if results[-1].status is sb.Status.INTERRUPTED:
        raise KeyboardInterrupt
    return [fit.to_given(result, target) for result in results]
