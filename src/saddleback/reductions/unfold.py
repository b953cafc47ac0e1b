r"""A total variation becomes a loss of the differences of x, if the other loss has kinks.

:math:`f(x) + \alpha \|Dx\|_1 + g(Ax)` is a problem with one more row per difference. Under a smooth loss the exact prox
of ``functions/total_variation.py`` is faster. If g has kinks too, the methods for such problems (multipliers, the
finish, linear programs) are much faster, and they need terms that are sums over coordinates and rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ..common.arrays import Vector
from ..functions import L1
from ..functions.calculus import BlockSum, parts_of
from ..functions.piecewise import PiecewiseQuadratic
from ..functions.points import DensePoint, Point
from ..functions.row_sum import one_above_the_other
from ..functions.total_variation import LineVariation, nearest_subgradient
from ..functions.traits import is_smooth
from ..model.index_map import IndexMap
from ..model.model import Model
from ..operators import Above, Compressed, Differences, Operator, Stacked
from ..operators.stacked import parts_of as blocks_of
from .contract import Reduction


@dataclass(frozen=True)
class Unfolded(Reduction):
    """The problem with the differences of some parts of x as further rows.

    ``original`` is the problem before, and ``variations`` are its total variations, each with its columns.
    """

    model: Model
    original: Model
    variations: Sequence[tuple[LineVariation, slice]]

    def kept(self) -> IndexMap:
        m, n = self.model.A.shape
        return IndexMap((m, n), np.arange(m), np.arange(n))

    def restore_x(self, x: Point, u: Callable[[], Vector]) -> Point:
        return x

    def restore_u(self, x: Point, u: Vector) -> Vector:
        return self._own_rows(u)

    def restore_y(self, y: Point) -> Point:
        return DensePoint(self._own_rows(y.vector()))

    def restore_ray(self, dx: Vector, dy: Vector) -> tuple[Vector, Vector]:
        return dx, self._own_rows(dy)

    def reduce_x(self, x: Vector) -> Vector:
        return x

    def reduce_y(self, y: Vector) -> Vector:
        """Return y with the q of each total variation: its subgradient D'q, with cumulated sums -q, nearest to -A'y."""
        z = -self.original.A.rmatvec(y)
        slopes = ((z[own] - part.linear, part.alpha) for part, own in self.variations)
        return np.concatenate([y, *(-np.cumsum(nearest_subgradient(each, alpha))[:-1] for each, alpha in slopes)])

    def _own_rows(self, vector: Vector) -> Vector:
        return vector[: self.original.A.shape[0]]


def unfold_variation(model: Model) -> Reduction | None:
    """Return the problem with total variations as losses of differences; None if it has none, or a smooth loss."""
    parts = parts_of(model.f)
    variations = {j: part for j, (part, _) in enumerate(parts) if isinstance(part, LineVariation) and part.varies}
    if not variations or is_smooth(model.g) or not isinstance(model.g_star, PiecewiseQuadratic):
        return None
    traits = model.A.traits
    in_memory = traits.device is None and traits.holders is None and traits.panels is None
    if not (traits.entries_known and in_memory):
        return None
    heights = [part.linear.size - 1 for part in variations.values()]
    operators = [
        _above(A, [Differences(A.shape[1]) if i == j else None for i in variations], heights)
        for j, A in enumerate(blocks_of(model.A))
    ]
    losses = [L1(part.alpha).bind((height,)) for part, height in zip(variations.values(), heights, strict=True)]
    functions = [part.without_variation() if isinstance(part, LineVariation) else part for part, _ in parts]
    split = [A.traits.splits for A in operators]
    reduced = replace(
        model,
        f=functions[0] if split == [True] else BlockSum(functions, [A.shape[1] for A in operators], split),
        A=operators[0] if len(operators) == 1 else Stacked(operators),
        g=one_above_the_other([model.g, *losses], [model.A.shape[0], *heights]),
    )
    return Unfolded(reduced, model, [(part, parts[j][1]) for j, part in variations.items()])


def _above(A: Operator, differences: Sequence[Operator | None], heights: Sequence[int]) -> Operator:
    """Return an operator above differences. An identity is a sparse matrix there, whose columns can be split."""
    if isinstance(A, Above):
        return Above([*A.rows, *differences], [*A.heights, *heights])
    if A.traits.identity_scales is not None:
        A = Compressed(sparse.csc_array(A.entries(compressed=True)))
    return Above([A, *differences], [A.shape[0], *heights])
