r"""A Newton step along the coordinates where the penalty is smooth.

Near a solution the zeros of x, its bounds and its signs no longer change, and on the other coordinates, S, the problem
is smooth:

.. math::

    (A_S' D A_S + f''_S)\, d = -(A_S' y + f'_S), \qquad D = g''(Ax), \quad y = g'(Ax).

Coordinate descent finds S. A Newton step then replaces the hundreds of sweeps that descent would need if columns are
correlated. For a group norm, :math:`f'' = w\,(I - xx'/\|x\|^2) / \|x\|`: a diagonal minus a matrix of rank one.
If a penalty holds coordinates at equal absolute values, it is smooth along ties C of coordinates, and :math:`A_S C'`
takes the place of :math:`A_S`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..common.arrays import Blocks, Indices, Vector
from ..functions.calculus import parts_of
from ..functions.contract import Convex
from ..functions.normal_form import NormalForm
from ..functions.traits import Tied
from ..model.model import Model
from ..operators import Operator

ADVANTAGE = 20
"""How much faster a multiply-add is in a factorisation than in a pass, which waits for memory."""


@dataclass(frozen=True)
class Smooth:
    """A penalty along the directions in which it is smooth at a point: single coordinates, or ties of several ones.

    Attributes
    ----------
    free : the coordinates that these directions move.
    gradient : gradient of the penalty along the directions.
    extra, along, group : its Hessian, diag(extra) - sum_g e_g e_g' where e_g holds the entries of ``along`` in group g.
    kinked : whether the penalty has a kink at 0, which the coordinate may not pass.
    basis : a sparse matrix with a row per direction, which says how it moves each coordinate; None for the identity.
    """

    free: Indices
    gradient: Vector
    extra: Vector
    along: Vector
    group: Indices
    kinked: NDArray[np.bool_]
    basis: Any = None

    def spread(self, d: Vector) -> Vector:
        """Return the change of the free coordinates for a step d along the directions."""
        change: Vector = d if self.basis is None else self.basis.T @ d
        return change

    def gathered(self, slopes: Vector) -> Vector:
        """Return the slopes along the directions, given those along the free coordinates."""
        along: Vector = slopes if self.basis is None else self.basis @ slopes
        return along

    def summed(self, values: Vector) -> Vector:
        """Return the sum of the values of the free coordinates that each direction moves."""
        sums: Vector = values if self.basis is None else abs(self.basis) @ values
        return sums

    def gram(self, matrix: Any) -> Any:
        """Return the Gram matrix of the directions, given that of the free coordinates, in the lower triangle."""
        if self.basis is None:
            return matrix
        whole = np.tril(matrix) + np.tril(matrix, -1).T
        return self.basis @ (self.basis @ whole).T

    def hessian(self, d: Vector) -> Vector:
        """Return the product of the Hessian with a direction along the free coordinates."""
        within = np.bincount(self.group, self.along * d, 1)
        return self.extra * d - self.along * within[self.group]

    def added_to(self, matrix: Vector) -> Vector:
        """Return the sum of a matrix, of which the lower triangle is used and overwritten, and the Hessian."""
        at = np.arange(self.gradient.size)
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


def directions(model: Model, x: Vector) -> Smooth:
    """Return the penalty of a problem along the directions in which it is smooth at x."""
    if model.penalty_form is not None:
        return smooth_part(model.penalty_form, model.blocks, x)
    found = [(_directions(part, x[own]), own.start or 0) for part, own in parts_of(model.f)]
    if len(found) == 1:
        return found[0][0]
    parts = [part for part, _ in found]
    groups = np.cumsum([0, *(int(part.group.max(initial=0)) + 1 for part in parts)])
    return Smooth(
        np.concatenate([part.free + first for part, first in found]),
        np.concatenate([part.gradient for part in parts]),
        np.concatenate([part.extra for part in parts]),
        np.concatenate([part.along for part in parts]),
        np.concatenate([part.group + first for part, first in zip(parts, groups[:-1], strict=True)]),
        np.concatenate([part.kinked for part in parts]),
        sparse.block_diag(
            [sparse.eye_array(part.free.size) if part.basis is None else part.basis for part in parts], "csr"
        ),
    )


def _directions(penalty: Convex, x: Vector) -> Smooth:
    form = penalty.normal_form()
    if form is not None:
        return smooth_part(form, penalty.blocks(), x)
    assert isinstance(penalty, Tied)
    entries, group, sign, slope = penalty.ties(x)
    none, together = np.zeros(slope.size), np.zeros(slope.size, dtype=np.int64)
    basis = sparse.csr_array((sign, (group, np.arange(group.size))), shape=(slope.size, group.size))
    return Smooth(entries, slope, none, none, together, np.ones(entries.size, dtype=bool), basis)


def has_directions(model: Model) -> bool:
    """Return whether the directions in which the penalty is smooth are known at any x."""
    if model.penalty_form is not None:
        return model.penalty_form.closed
    forms = [(part.normal_form(), part) for part, _ in parts_of(model.f)]
    return all(isinstance(part, Tied) and part.holds_entries() if form is None else form.closed for form, part in forms)


def pattern(model: Model, x: Vector) -> NDArray[np.bool_]:
    """Return which entries of x are not 0, and then, if the penalty has ties, which of them are tied to others."""
    free: NDArray[np.bool_] = x != 0
    if model.penalty_form is not None:
        return free
    tied = np.zeros_like(free)
    for part, own in parts_of(model.f):
        if isinstance(part, Tied):
            entries, group, *_ = part.ties(x[own])
            tied[own][entries] = (np.bincount(group) > 1)[group]
    return np.concatenate([free, tied])


def newton_system(
    image: Callable[[Vector], Vector], products: Callable[[Vector], Vector], part: Smooth, weight: Vector
) -> Callable[[Vector], Vector]:
    """Return d -> (A_S' D A_S + f'') d, from d -> A_S d and y -> A_S'y over the free columns S.

    D is diag(weight), or has the matrices ``weight`` on its diagonal, each for as many neighbouring rows.
    """

    def curved(u: Vector) -> Vector:
        return weight * u if weight.ndim == 1 else (weight @ u.reshape(*weight.shape[:2], 1)).ravel()

    return lambda d: part.gathered(products(curved(image(part.spread(d))))) + part.hessian(d)


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
