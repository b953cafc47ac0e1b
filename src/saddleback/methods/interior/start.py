"""The starting point of the interior-point method."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...common.arrays import Blocks, Vector
from ...functions.traits import subgradient_scale
from ...model.model import Model
from .barrier import Barrier, Guess, Stiffness, barrier_at, normalised
from .structure import structure_of
from .system import factored

UNIT = 0.1
"""Distance of the start from a one-sided bound, in the units of the data."""

SLACK = 1e-8
"""How much least squares may violate a constraint, relative to the row."""

AMPLE = 10.0
"""Distances from the bounds, relative to the least-squares solution: the least-norm x is smaller than a solution."""


class Place(NamedTuple):
    """A pair of points with u = Ax and z = -A'y, the units of x and y, and the size of the products."""

    x: Vector
    y: Vector
    u: Vector
    z: Vector
    x_unit: Vector
    y_unit: Vector
    mu: float

    def of_penalty(self, model: Model) -> Barrier:
        """Return the barrier of f at this pair."""
        assert model.penalty_form is not None
        return barrier_at(model.penalty_form, model.blocks, Guess(self.x, self.z, self.mu, self.x_unit))

    def of_loss(self, model: Model) -> Barrier:
        """Return the barrier of g* at this pair."""
        assert model.loss_form is not None
        return barrier_at(model.loss_form, Blocks.scalars(self.u.size), Guess(self.y, self.u, self.mu, self.y_unit))

    def barriers(self, model: Model) -> tuple[Barrier, Barrier]:
        """Return the barriers of f and g* at this pair."""
        return self.of_penalty(model), self.of_loss(model)


def started(model: Model, x: Vector, y: Vector, u: Vector, z: Vector) -> tuple[Barrier, Barrier]:
    """Return the barriers of f and g* near (x, y), given u = Ax and z = -A'y.

    The products of f start as large as the mean product of g*, whose size follows from the residuals.
    """
    if not model.mostly_losses:
        return _linear_program(model)
    objective = abs(model.f.finite_value(x) + model.g.finite_value(u))
    least = model.trivial_bound - model.constant  # if that is not 0, the objective may be 0 far from a solution
    objective = max(objective, abs(least)) if np.isfinite(least) else objective
    mu = max(objective, 1e-6 * model.value_at_zero) / (2 * sum(model.A.shape))
    place = Place(x, y, u, z, *_units(model, mu), mu)
    g = place.of_loss(model)
    return (place._replace(mu=g.product() / g.degree) if g.degree else place).of_penalty(model), g


def _linear_program(model: Model) -> tuple[Barrier, Barrier]:
    """Return the barriers at Mehrotra's (1992) start for a linear program.

    x is the least-norm point, in the units of its columns, that meets the constraints, and y is the least-squares
    solution of -A'y = f'. Both are moved away from their bounds. The products are at least as large as the residuals:
    otherwise they would have to grow again.
    """
    place = _least_squares(model)
    f, g = place.barriers(model)
    off_u, off_z = model.A.matvec(f.v) - g.slope, -model.A.rmatvec(g.v) - f.slope
    missed = max(float(np.mean(np.abs(off_u) * place.y_unit)), float(np.mean(np.abs(off_z) * place.x_unit)))
    return place._replace(mu=max(place.mu, missed)).barriers(model)


def _least_squares(model: Model) -> Place:
    f = model.penalty_form
    assert f is not None
    (left, right, quadratic, _, _), weight, norm = normalised(f, model.blocks)
    columns, rows = (np.sqrt(np.where(sums > 0, sums, 1.0)) for sums in model.A.sums(2))
    nearest = model.f.domain.project(np.zeros(columns.size))
    image = model.A.matvec(nearest)
    slack = SLACK * rows**2 / np.mean(rows**2)  # dimensionless: it relates lengths of Ax to each other
    system = factored(model.A, Stiffness(columns**2, None), Stiffness(slack, None), structure_of(model))
    x = nearest + system.refined(np.zeros_like(columns), image - model.g.domain.project(image)).dx
    y = system.refined(-0.5 * (left + right) - quadratic * x, np.zeros_like(rows)).dy
    u, z = model.A.matvec(x), -model.A.rmatvec(y)
    jump = 0.5 * (right - left)  # the largest change of the slope at a kink or by a norm
    if norm is not None:
        jump[norm[0]] += np.repeat(weight, np.diff(np.append(norm[1], norm[0].size)))
    size = AMPLE * (float(np.mean(np.abs(x) * columns)) or model.target_norm or 1.0)
    slope = AMPLE * (float(np.mean((np.abs(z) + jump) / columns)) or 1.0)
    x_unit = size / columns  # the unit of y makes its products with Ax as large as those of x with z
    return Place(x, y, u, z, x_unit, size * slope / (rows * x_unit.mean()), size * slope)


def _units(model: Model, mu: float) -> tuple[Vector, Vector]:
    """Return the units of x and y; where the data give none, they follow from mu and the size of the slopes."""
    units = []
    for unit, slope in zip(
        (model.x_unit, model.y_unit), (subgradient_scale(model.f), subgradient_scale(model.g_star)), strict=True
    ):
        size = float(np.abs(slope).mean())
        units.append(UNIT * np.where(unit > 0, unit, mu / size if size > 0 else 1.0))
    return units[0], units[1]
