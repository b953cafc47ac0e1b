r"""A Newton step along the coordinates where the penalty is smooth.

Near a solution the zeros of x, its bounds and its signs no longer change, and on the other coordinates, S, the problem
is smooth:

.. math::

    (A_S' D A_S + f''_S)\, d = -(A_S' y + f'_S), \qquad D = g''(Ax), \quad y = g'(Ax).

Coordinate descent finds S. A Newton step then replaces the hundreds of sweeps that descent would need if columns are
correlated. For a group norm, :math:`f'' = w\,(I - xx'/\|x\|^2) / \|x\|`: a diagonal minus a matrix of rank one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..common.arrays import Blocks, Indices, Vector
from ..functions.normal_form import NormalForm
from ..operators import Operator

ADVANTAGE = 20
"""How much faster a multiply-add is in a factorisation than in a pass, which waits for memory."""


@dataclass(frozen=True)
class Smooth:
    """A penalty along the coordinates where it is smooth at a point.

    Attributes
    ----------
    free : these coordinates.
    gradient : gradient of the penalty along them.
    extra, along, group : its Hessian, diag(extra) - sum_g e_g e_g' where e_g holds the entries of ``along`` in group g.
    kinked : whether the penalty has a kink at 0, which the coordinate may not pass.
    """

    free: Indices
    gradient: Vector
    extra: Vector
    along: Vector
    group: Indices
    kinked: NDArray[np.bool_]

    def hessian(self, d: Vector) -> Vector:
        """Return the product of the Hessian with a direction along the free coordinates."""
        within = np.bincount(self.group, self.along * d, 1)
        return self.extra * d - self.along * within[self.group]

    def added_to(self, matrix: Vector) -> Vector:
        """Return the sum of a matrix, of which the lower triangle is used and overwritten, and the Hessian."""
        at = np.arange(self.free.size)
        matrix[at, at] += self.extra
        if not self.along.any():
            return matrix
        together = self.group[:, None] == self.group
        return matrix - np.where(together, np.outer(self.along, self.along), 0.0)


def smooth_part(penalty: NormalForm, blocks: Blocks, x: Vector) -> Smooth:
    """Return the penalty near x: slopes, quadratic terms and group norms."""
    left, right, quadratic, lower, upper = penalty.parameters
    kinked = left != right
    free = (x > lower) & (x < upper) & ((x != 0) | ~kinked)
    grouped = bool((penalty.group_weight > 0).any())
    if grouped:
        of_column = blocks.of_columns
        norms = np.sqrt(np.bincount(of_column, x * x, len(blocks)))
        free &= ((norms > 0) | (penalty.group_weight == 0))[of_column]
    at = free.nonzero()[0]
    point = x[at]
    gradient = np.where(point > 0, right[at], left[at]) + quadratic[at] * point
    if not grouped:
        return Smooth(at, gradient, quadratic[at], np.zeros(at.size), np.zeros(at.size, dtype=np.int64), kinked[at])
    present, group = np.unique(of_column[at], return_inverse=True)
    weight, norm = penalty.group_weight[present], norms[present]
    ratio = np.divide(weight, norm, out=np.zeros_like(norm), where=norm > 0)[group]
    unit = np.divide(point, norm[group], out=np.zeros_like(point), where=norm[group] > 0)
    along = np.sqrt(ratio) * unit
    return Smooth(at, gradient + weight[group] * unit, quadratic[at] + ratio, along, group.astype(np.int64), kinked[at])


def newton_system(
    image: Callable[[Vector], Vector], products: Callable[[Vector], Vector], part: Smooth, weight: Vector
) -> Callable[[Vector], Vector]:
    """Return d -> (A_S' D A_S + f'') d, from d -> A_S d and y -> A_S'y over the free columns S.

    D is diag(weight), or has the matrices ``weight`` on its diagonal, each for as many neighbouring rows.
    """
    if weight.ndim == 1:
        return lambda d: products(weight * image(d)) + part.hessian(d)
    return lambda d: products((weight @ image(d).reshape(*weight.shape[:2], 1)).ravel()) + part.hessian(d)


def weighted_gram(A: Operator, weight: Vector, columns: Indices) -> Any:
    """Return A_S' D A_S for the columns S, with D as in ``newton_system``."""
    if weight.ndim == 1:
        return A.gram(weight, columns)
    own = A.entries(columns)
    count, size, _ = weight.shape
    return own.T @ (weight @ own.reshape(count, size, columns.size)).reshape(own.shape)


def placed(A: Operator, weight: Vector) -> Vector:
    """Return the weights of a Gram matrix on the device of A, so that the matrix is computed and stays there."""
    there: Vector = weight if A.traits.device is None else A.traits.device.place(weight)
    return there


def gram_multiplications(entries: float, size: float, length: float) -> float:
    """Return the multiplications for the Gram matrix of ``size`` vectors, and for its Cholesky factor.

    The vectors have ``length`` coordinates, and ``entries`` nonzeros in all that are evenly spread.
    """
    return 0.5 * entries**2 / max(length, 1.0) + size**3 / 6.0


OVERHEAD = 1e6
"""Multiplications that take as long as the part of a step that does not depend on the size of the problem."""


def step_overhead(A: Operator) -> float:
    """Return the passes over A that take as long as the fixed part of a step that factors a matrix."""
    return OVERHEAD / (2.0 * float(max(A.traits.stored, 1)))


def factorisation_passes(A: Operator, multiplications: float) -> float:
    """Return the passes over A that take as long as a factorisation with this number of multiplications."""
    return multiplications / (2.0 * float(max(A.traits.stored, 1)) * ADVANTAGE)
