"""Coordinates next to an active kink or bound go there, by a short step of the proximal map."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from ..common.arrays import Indices, Vector
from ..functions.traits import zero_slack
from ..model.model import Model
from .face import part_of

LONGEST_STEP = 1e150
"""Slopes smaller than x by this factor count as 0: the square of a step along them would overflow."""

DUST = 1e-6
"""Size of a block, relative to the largest one, up to which it may be dust."""

RIDGE = 1e-13
"""What is added to the diagonal of a Gram matrix, relative to its trace: rows may be dependent."""


def proximal_step(model: Model, x: Vector, z: Vector, length: float) -> Vector:
    """Return prox(x + t z): coordinates at active kinks and bounds move onto them, and the others by little.

    ``length`` is that of t z relative to x. Returns x itself if nothing can move it.
    """
    held = np.ones(x.size, dtype=bool)
    held[model.unpenalised] = False  # these have no kink or bound, and their z is only rounding
    size, slope = float(np.abs(x).max()), float(np.max(np.abs(z[held]), initial=0.0))
    if not np.any(x[held]) or slope * LONGEST_STEP <= size:
        return x
    step = length * size / slope
    return np.where(held, model.f.prox(x + step * z, step), x)


def without_dust(model: Model, x: Vector) -> Vector:
    """Return x with the blocks at 0 that contribute next to nothing to Ax and have a kink there.

    A Newton step can leave columns at 1e-7 that belong at 0. If a vertex is degenerate, nothing else shows that they
    do. Returns x itself if there are none.
    """
    if model.loss_is_curved or not np.any(x):  # under a curved loss methods put blocks at 0 themselves
        return x
    slack = zero_slack(model.f, np.zeros_like(x))
    if slack is None:
        return x
    of_block = model.blocks.of_columns
    sizes = np.sqrt(np.bincount(of_block, (x * model.column_lengths) ** 2, len(model.blocks)))
    dust = ((sizes <= DUST * sizes.max()) & (slack > 0))[of_block] & (x != 0)
    return np.where(dust, 0.0, x) if np.any(dust) else x


def balanced(model: Model, x: Vector, leaving: Indices, staying: Indices, rows: Indices) -> Vector:
    r"""Return x with some columns, N, at 0, and others, K, moved such that Ax stays in some rows, R.

    Of all ways that is the shortest one relative to x_K: with X = diag(\|x_K\|) it is

    .. math::

        d_K = X W' v, \qquad W W' v = A_{RN}\, x_N, \qquad W = A_{RK} X.

    If there are fewer columns than rows, Ax moves as little as possible. Next to a solution d_K changes the objective
    in second order only.
    """
    sizes = np.abs(x[staying])
    scaled = part_of(model.A, rows, staying) * sizes
    missing = model.A.matvec(x[leaving], leaving)[rows]
    if rows.size <= staying.size:
        way = scaled.T @ _solved(scaled @ scaled.T, missing)
    else:
        way = _solved(scaled.T @ scaled, scaled.T @ missing)
    moved = x.copy()
    moved[leaving] = 0.0
    moved[staying] += sizes * way
    return model.f.domain.project(moved)


def _solved(gram: Vector, right: Vector) -> Vector:
    """Return the solution of a linear system with a Gram matrix, which is used up."""
    if not right.size:
        return right
    gram.flat[:: right.size + 1] += RIDGE * gram.trace()
    _, solution, failed = lapack.dposv(gram, right)
    return np.zeros_like(right) if failed else solution  # without a way the certificate refuses the point
