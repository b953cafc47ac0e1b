r"""Dual repair: move a dual point until it is nearly feasible, instead of scaling it until it is feasible.

If loss and penalty both have kinks, -A'y violates the domain of f* slightly in many blocks. Scaling y back into the
domain loses as much of the dual value as the worst block demands. The smallest change that makes y feasible,

.. math::

    \min_d \tfrac12 \|R^{-1} d\|^2 \quad\text{subject to}\quad A_V' d = z_V - \Pi(z)_V, \qquad z = -A'y,

over the blocks V outside of the domain, loses less. R is the slack of y in each row (``functions/domains.py``), so that
a row moves less the closer y is to its bound. A few conjugate gradient steps solve this roughly. Then y is projected
onto its bounds, and the repair is repeated from there.
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
    """A dual point y, z = -A'y, and the passes that the repair took."""

    y: Vector
    z: Vector
    passes: float


def repair(model: Model, y: Vector, z: Vector) -> Repaired:
    """Return a dual point near y that violates the domain of f* less, given z = -A'y."""
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
