"""Points that a method offers to the certificate, and their evaluation: the only place where points are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from ..common.arrays import Vector
from ..functions.points import DensePoint, Point
from ..model.model import Model
from ..result import Certificate
from .sides import DualSide, PrimalSide, best_pair, dual_side, primal_side, trivial_side


class Candidates(NamedTuple):
    """Points that a method offers to the certificate.

    Parameters
    ----------
    primal : sequence of (ndarray, ndarray or None)
        Each x with its image u = Ax, or with None if the image is not known.
    dual : sequence of (ndarray, ndarray or None)
        Each y with its image z = -A'y, or with None if the image is not known.
    rays : sequence of (ndarray, ndarray), optional
        Directions of x and y that may prove that there is no solution.
    kept : pair of sequences of Point, optional
        The first x and the first y in a form that needs less memory.
    """

    primal: Sequence[tuple[Vector, Vector | None]]
    dual: Sequence[tuple[Vector, Vector | None]]
    rays: Sequence[tuple[Vector, Vector]] = ()
    kept: tuple[Sequence[Point], Sequence[Point]] = ((), ())


def evaluate(
    model: Model,
    offer: Candidates,
    image: Callable[[Point], Point] | None = None,
    primals: Sequence[PrimalSide] = (),
    duals: Sequence[DualSide] = (),
    trivial: bool = False,
) -> tuple[Certificate, PrimalSide, DualSide]:
    """Return the certificate of the best pair among the offered and the known points, and the two sides of the pair.

    Parameters
    ----------
    model : Model
        The problem.
    offer : Candidates
        Points that a method offers.
    image : callable, optional
        Computes Ax for an x that comes without it. By default one product with A.
    primals, duals : sequences of sides
        Sides of points that are known already. Among equal pairs the first wins, and these come before the offer.
    trivial : bool
        Whether y = 0 is compared as well, if its bound is better than those of all feasible dual points.
    """
    product = image or (lambda x: DensePoint(model.A.matvec(x.vector())))
    of_x, of_y = offer.kept
    offered = [(kept or DensePoint(x), u) for (x, u), kept in zip_longest(offer.primal, of_x)]
    points = [(x, product(x) if u is None else DensePoint(u)) for x, u in offered]
    new = [primal_side(model, x, u) for x, u in points]
    bounds = [*duals, *(dual_side(model, y, *points[0], z, kept) for (y, z), kept in zip_longest(offer.dual, of_y))]
    if trivial and -np.inf < model.trivial_bound > max(-np.inf if side.distance else side.value for side in bounds):
        bounds.append(trivial_side(model))
    return best_pair(model, [*primals, *new], bounds)
