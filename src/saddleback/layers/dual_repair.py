r"""A dual point, moved until it is nearly feasible rather than scaled until it is.

If loss and penalty both have kinks, -A'y violates the domain of f* slightly in many blocks. Scaling y back into it
loses as much of the dual value as the worst block demands. The smallest change that makes y feasible instead,

.. math::

    \min_d \tfrac12 \|R^{-1} d\|^2 \quad\text{subject to}\quad A_V' d = z_V - \Pi(z)_V, \qquad z = -A'y,

over the blocks V that are outside, moves a row the less the closer y is to a bound there (R, ``conjugate_room``). It is
found by a few conjugate gradient steps, since what is hard to reach is not worth reaching, and taken again from where
the bounds of y put it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..common.arrays import Indices, Vector
from ..common.conjugate_gradients import Product, conjugate_gradients
from ..common.rebuildable import stored
from ..functions.domains import slack
from ..model.model import Model

ROUNDS = 5
STEPS = 5
TOLERANCE = 1e-3


@stored
class Repaired(NamedTuple):
    """A dual point, z = -A'y, and what it cost in passes."""

    y: Vector
    z: Vector
    passes: float


def repair(model: Model, y: Vector, z: Vector) -> Repaired:
    """Return a dual point near y, given z = -A'y, that leaves the domain of f* by less."""
    A, n = model.A, z.size
    passes = 0.0
    for _ in range(ROUNDS):
        excess = z - model.f_star.domain.project(z)
        outside = np.flatnonzero(excess)
        if outside.size == 0:
            break
        room = slack(model.g_star.domain, y) ** 2

        def image(w: Vector, outside: Indices = outside) -> Vector:
            everywhere = np.zeros(n)
            everywhere[outside] = w
            return A.matvec(everywhere)

        def product(w: Vector, outside: Indices = outside, room: Vector = room) -> Vector:
            return A.rmatvec(room * image(w), outside)

        w, steps = conjugate_gradients(Product(product, np.ones(outside.size)), excess[outside], TOLERANCE, STEPS)
        y = model.g_star.domain.project(y + room * image(w))
        z = A.rmatvec(-y)
        passes += 0.5 + (steps + 0.5) * outside.size / n
    return Repaired(y, z, passes)
