r"""Total variations in the coordinates in which they are L1 norms.

Let w be the first entry of x followed by its differences, so that x is the cumulated sum Tw. Then

.. math::

    \alpha \sum_i |x_{i+1} - x_i| + \langle c, x \rangle + g(Ax)
    = \alpha \sum_{i > 0} |w_i| + \langle T'c, w \rangle + g(ATw),

and x is constant if w is 0 in the penalised columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.sparse.linalg import LinearOperator

from ..common.arrays import Vector
from ..functions.calculus import BlockSum, parts_of
from ..functions.contract import Convex
from ..functions.total_variation import LineVariation
from ..model.model import Model
from ..operators import Abstract, Operator, Stacked
from ..operators.stacked import parts_of as blocks_of


def in_jumps(model: Model) -> Model:
    """Return the problem with w in the place of each x that has a total variation and no other kinks."""
    parts = list(_parts(model))
    if not any(changes for _, _, changes in parts):
        return model
    functions = [f.of_jumps() if isinstance(f, LineVariation) and changes else f for f, _, changes in parts]
    operators = [_times_sums(A) if changes else A for _, A, changes in parts]
    sizes = [A.shape[1] for A in operators]
    return replace(model, f=BlockSum(functions, sizes, [True] * len(sizes)), A=Stacked(operators))


def from_jumps(model: Model, w: Vector) -> Vector:
    """Return x, given the solution of the problem that ``in_jumps`` returns."""
    ends = np.cumsum([A.shape[1] for _, A, _ in _parts(model)])[:-1]
    own = zip(_parts(model), np.split(w, ends), strict=True)
    return np.concatenate([np.cumsum(part) if changes else part for (_, _, changes), part in own])


def _parts(model: Model) -> Iterator[tuple[Convex, Operator, bool]]:
    """Yield the blocks of x with their columns of A, and whether each is replaced by its jumps."""
    for (f, _), A in zip(parts_of(model.f), blocks_of(model.A), strict=True):
        yield f, A, isinstance(f, LineVariation) and f.bare


def _times_sums(A: Operator) -> Operator:
    """Return A T, by its products."""

    def product(w: Vector) -> Vector:
        return A.matvec(np.cumsum(w))

    def adjoint(y: Vector) -> Vector:
        return np.cumsum(A.rmatvec(y)[::-1])[::-1]

    return Abstract(LinearOperator(A.shape, product, adjoint, dtype=np.float64))
