r"""The share of each term in the objective and in the gap.

With z = -A'y the gap is a sum of terms that are not negative, by the inequality of Fenchel and Young:

.. math::

    P(x) - D(y) = \sum_j \left[ f_j(x_j) + f_j^*(z_j) - \langle x_j, z_j \rangle \right] +
    \sum_r \left[ g_r(u_r) + g_r^*(y_r) - \langle u_r, y_r \rangle \right].

A term with a large share is the one that is not yet optimal.
"""

from __future__ import annotations

import numpy as np

from ..common.arrays import Vector
from ..functions.contract import Convex
from ..functions.points import Point
from ..functions.traits import near
from ..operators.deferred_points import forward
from ..problem import Problem
from ..result import Share


def shares(problem: Problem, x: Point, dual: Point) -> dict[str, Share]:
    """Return the share of each penalty and each loss, by name; no shares for a problem with a single loss."""
    if not problem.has_rows:
        return {}
    y = dual.vector()
    u, z = forward(problem.model.A, x), -problem.model.A.rmatvec(y)
    found, first = {}, 0
    for j, (term, shape) in enumerate(zip(problem.terms, problem.x_shapes, strict=True)):
        own = slice(first, first := first + int(np.prod(shape)))
        name = f"penalty[{j}]" if problem.is_list else "penalty"
        found[name] = _share(term.name, term.bind(shape), x.segment(own), z[own])
    for r, (term, shape, own) in enumerate(zip(problem.losses, problem.y_shapes, problem.rows, strict=True)):
        found[f"loss[{r}]"] = _share(term.name, term.bind(shape), u[own], y[own])
    return found


def _share(name: str, function: Convex, point: Vector, slope: Vector) -> Share:
    value = function.finite_value(point)
    inside, conjugate = near(function.conjugate(), slope, point)
    gap = value + conjugate - float(point @ inside)
    return Share(name, float(value), max(float(gap), 0.0))
