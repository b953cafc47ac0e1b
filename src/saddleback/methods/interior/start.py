"""Where an interior point starts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...common.arrays import Blocks, Vector
from ...functions.traits import subgradient_scale
from ...model.model import Model
from .barrier import Barrier, Guess, Stiffness, barrier_at, normalised
from .system import factored

UNIT = 0.1
"""Distance from a bound without a counterpart, in the units of the data."""

SLACK = 1e-8
"""What least squares may miss a constraint by, relative to the row."""

AMPLE = 10.0
"""How much larger than the least squares the distances from the bounds are: the least x is smaller than a solution."""


class Place(NamedTuple):
    """A pair of points with u = Ax and z = -A'y, the units of x and y, and the size of the products."""

    x: Vector
    y: Vector
    u: Vector
    z: Vector
    x_unit: Vector
    y_unit: Vector
    mu: float

    def barriers(self, model: Model) -> tuple[Barrier, Barrier]:
        """Return the barriers of f and g* there."""
        f, g = model.penalty_form, model.loss_form
        assert f is not None
        assert g is not None
        return (
            barrier_at(f, model.blocks, Guess(self.x, self.z, self.mu, self.x_unit)),
            barrier_at(g, Blocks.scalars(self.u.size), Guess(self.y, self.u, self.mu, self.y_unit)),
        )


def started(model: Model, x: Vector, y: Vector, u: Vector, z: Vector) -> tuple[Barrier, Barrier]:
    """Return the barriers of f and g* near (x, y), given u = Ax and z = -A'y.

    The products begin as large as those of the dual bounds, where the residuals tell their size.
    """
    if not model.surely_solvable:
        return _linear_program(model)
    objective = abs(model.f.finite_value(x) + model.g.finite_value(u))
    mu = max(objective, 1e-6 * model.value_at_zero) / (2 * sum(model.A.shape))
    place = Place(x, y, u, z, *_units(model, mu), mu)
    f, g = place.barriers(model)
    return (place._replace(mu=g.product() / g.degree).barriers(model)[0], g) if g.degree else (f, g)


def _linear_program(model: Model) -> tuple[Barrier, Barrier]:
    """Return the barriers where Mehrotra (1992) starts a linear program.

    That is the least x, in the units of its columns, that meets the constraints, and the y that best explains f, both
    moved away from their bounds. Products that are small where the constraints are not met would have to grow again.
    """
    place = _least_squares(model)
    f, g = place.barriers(model)
    off_u, off_z = model.A.matvec(f.v) - g.slope(), -model.A.rmatvec(g.v) - f.slope()
    missed = max(float(np.mean(np.abs(off_u) * place.y_unit)), float(np.mean(np.abs(off_z) * place.x_unit)))
    return place._replace(mu=max(place.mu, missed)).barriers(model)


def _least_squares(model: Model) -> Place:
    f = model.penalty_form
    assert f is not None
    (left, right, quadratic, _, _), weight, norm = normalised(f, model.blocks)
    columns, rows = (np.sqrt(np.where(sums > 0, sums, 1.0)) for sums in model.A.sums(2))
    nearest = model.f.domain.project(np.zeros(columns.size))
    image = model.A.matvec(nearest)
    slack = SLACK * rows**2 / np.mean(rows**2)  # without a unit: it weighs lengths of Ax against lengths of Ax
    system = factored(model.A, Stiffness(columns**2, None), Stiffness(slack, None))
    x = nearest + system.refined(np.zeros_like(columns), image - model.g.domain.project(image)).dx
    y = system.refined(-0.5 * (left + right) - quadratic * x, np.zeros_like(rows)).dy
    u, z = model.A.matvec(x), -model.A.rmatvec(y)
    jump = 0.5 * (right - left)  # by which a kink may change the slope, and a norm
    if norm is not None:
        jump[norm[0]] += np.repeat(weight, np.diff(np.append(norm[1], norm[0].size)))
    size = AMPLE * (float(np.mean(np.abs(x) * columns)) or model.target_norm or 1.0)
    slope = AMPLE * (float(np.mean((np.abs(z) + jump) / columns)) or 1.0)
    x_unit = size / columns  # and y such that its products with Ax are as large as those of x with z
    return Place(x, y, u, z, x_unit, size * slope / (rows * x_unit.mean()), size * slope)


def _units(model: Model, mu: float) -> tuple[Vector, Vector]:
    """Return the units of x and y, from mu and the slopes against them where the data have none."""
    units = []
    for unit, slope in zip(
        (model.x_unit, model.y_unit), (subgradient_scale(model.f), subgradient_scale(model.g_star)), strict=True
    ):
        size = float(np.abs(slope).mean())
        units.append(UNIT * np.where(unit > 0, unit, mu / size if size > 0 else 1.0))
    return units[0], units[1]
