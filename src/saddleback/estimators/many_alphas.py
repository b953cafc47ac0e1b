"""Solutions of the problems of a linear model for many alphas, each from the one before it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import saddleback as sb

from ..batches.form import certificate_of
from ..engine.clock import Clock
from ..machine.threads import limited
from ..paths.path import ENDED
from ..places.mpi.communicator import SERIAL
from . import rotation
from .fit import Fit, Target
from .samples import Samples
from .table import Dense


def compressed(fit: Fit, problems: int) -> Fit:
    """Return an equivalent fit on fewer rows, if that pays for the number of problems to solve."""
    parts = [fit.design.matrix, *(target.values.reshape(fit.design.n_rows, -1) for target in fit.targets)]
    # the mean is the best constant for the losses that depend only on the sum of squared residuals
    possible = fit.objective.mean_is_best and fit.samples.X.dense and not fit.design.column
    possible = possible and fit.objective.convex and not fit.has_further_losses
    ends = np.cumsum([part.shape[1] for part in parts])
    if not possible or not rotation.pays(fit.design.n_rows, ends[-1], problems * len(fit.targets)):
        return fit
    X, *values = np.split(rotation.rotated(parts, fit.samples.weight), ends[:-1], axis=1)
    targets = [
        Target(value.reshape(-1, *target.values.shape[1:]), target.shift)
        for value, target in zip(values, fit.targets, strict=True)
    ]
    samples = Samples(Dense(X), np.concatenate(values, axis=1), None)
    return replace(fit, samples=samples, design=fit.design.with_rows(X), targets=targets)


def path(fit: Fit, k: int, few: Fit, options: dict[str, Any]) -> list[sb.Result]:
    """Return the solutions of problem k for many alphas, for the data as given; ``few`` is the fit to solve for."""
    clock = Clock(options["time_limit"], SERIAL)
    results = (
        _along(few, few.targets[k], options, clock)
        if fit.objective.overlapping or not fit.objective.convex
        else sb.path(*few.terms(few.targets[k]), **options)
    )
    if results[-1].status is sb.Status.INTERRUPTED:
        raise KeyboardInterrupt
    if few is not fit:
        with limited(options["threads"]):
            results = _on_all_rows(fit, k, few, results, options, clock)
    return [fit.to_given(result, fit.targets[k]) for result in results]


def _along(fit: Fit, target: Target, options: dict[str, Any], clock: Clock) -> list[sb.Result]:
    """Return the solutions for many alphas, each from the one before it, of penalties that ``sb.path`` refuses.

    They are not on x alone, or not convex.
    """
    options = {name: value for name, value in options.items() if name not in ("n_alphas", "eps")}
    results: list[sb.Result] = []
    for alpha in np.sort(np.asarray(options.pop("alphas"), dtype=np.float64))[::-1]:
        one = fit.with_alpha(float(alpha))
        start = results[-1] if results else None
        result = one.solved(target, start, options | {"time_limit": clock.share()})
        results.append(replace(result, settings={**result.settings, "alpha": float(alpha)}))
        if result.status in ENDED:
            break
    return results


def _on_all_rows(
    fit: Fit, k: int, few: Fit, results: list[sb.Result], options: dict[str, Any], clock: Clock
) -> list[sb.Result]:
    """Return solutions that were found on fewer rows with their dual points and certificates on all of them.

    Each dual point is the same multiple of the residuals on all rows, times their weights, as on the fewer ones.
    """
    problem, weight, A = sb.Problem(*fit.terms(fit.targets[k])), fit.samples.weight, fit.design.matrix
    points = np.stack([result.x for result in results])
    inside, images = (np.moveaxis(np.tensordot(each.design.matrix, points, (1, 1)), 1, 0) for each in (few, fit))
    inside, duals = inside - few.targets[k].values, images - fit.targets[k].values
    for dual, small, result in zip(duals, inside, results, strict=True):
        dual *= np.vdot(small, result.y) / (np.vdot(small, small) or 1.0)
    if weight is not None:
        duals *= weight.reshape((-1,) + (1,) * (duals.ndim - 2))
    slopes = -np.moveaxis(np.tensordot(duals, A, (1, 0)), -1, 1)
    found = []
    for result, *parts in zip(results, points, duals, images, slopes, strict=True):
        one = problem.with_alpha(result.settings["alpha"])
        certificate, y = certificate_of(one, *map(np.ravel, parts))
        result = replace(result, y=one.shape_y(y), certificate=certificate)
        if result.status is sb.Status.OPTIMAL and certificate.error > options["tol"]:  # by rounding alone
            others = {name: value for name, value in options.items() if name not in ("alphas", "n_alphas", "eps")}
            again = sb.solve(one, x0=result, **others | {"time_limit": clock.share()})
            result = replace(again, settings={**again.settings, "alpha": result.settings["alpha"]})
        found.append(result)
    return found
