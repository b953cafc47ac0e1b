"""Losses of several terms as one function of the rows of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..common.arrays import Indices, Vector
from .calculus import BlockSum, hstack, parts_of
from .contract import Convex
from .piecewise import PiecewiseQuadratic
from .traits import Smooth, SumOverRows, curvature, curvature_at, in_units


def one_above_the_other(losses: Sequence[Convex], sizes: Sequence[int]) -> Convex:
    """Return the sum of losses, each of neighbouring rows, as one function of all rows.

    Losses whose conjugates belong to the family in ``piecewise.py`` give a loss of the same kind.
    """
    losses = [loss.as_loss() if isinstance(loss, PiecewiseQuadratic) else loss for loss in losses]
    if len(losses) == 1:
        return losses[0]
    dual = hstack([loss.conjugate() for loss in losses], sizes)
    if isinstance(dual, PiecewiseQuadratic):
        return dual.conjugate()
    if all(isinstance(loss, SumOverRows) for loss in losses):
        return RowSum(losses, sizes)
    return BlockSum(losses, sizes, [True] * len(sizes))


class RowSum(BlockSum, SumOverRows, Smooth):
    """A sum of losses of different kinds, each of which is a sum over its rows."""

    functions: Sequence[SumOverRows]

    def __init__(self, losses: Sequence[Convex], sizes: Sequence[int]) -> None:
        super().__init__(losses, sizes, [True] * len(sizes))

    def in_units(self, unit: Vector) -> RowSum:
        return RowSum(self._each(in_units, unit), self.sizes)

    def _joined(self, call: Callable[[SumOverRows], Vector]) -> Vector:
        return np.concatenate([call(loss) for loss in self.functions])

    def restrict(self, keep: Indices) -> SumOverRows:
        of_part = np.searchsorted(self.start, keep, side="right") - 1
        runs = np.split(np.arange(keep.size), np.flatnonzero(np.diff(of_part)) + 1) if keep.size else []
        parts = [self.functions[of_part[run[0]]].restrict(keep[run] - self.start[of_part[run[0]]]) for run in runs]
        return parts[0] if len(parts) == 1 else RowSum(parts, [run.size for run in runs])

    def minimiser(self) -> Vector:
        return self._joined(lambda loss: loss.minimiser())

    def distance_to_kink(self, u: Vector) -> Vector:
        own = zip(self.functions, self.stretches, strict=True)
        return np.concatenate([loss.distance_to_kink(u[stretch]) for loss, stretch in own])

    def row_weights(self) -> Vector:
        return self._joined(lambda loss: loss.row_weights())

    def row_signature(self) -> Vector:
        """Return the signatures of the losses, after the number of the loss: rows of different losses are different."""
        signatures = [loss.row_signature() for loss in self.functions]
        widest = max(signature.shape[1] for signature in signatures)
        return np.concatenate(
            [
                np.pad(np.insert(signature, 0, i, axis=1), ((0, 0), (0, widest - signature.shape[1])))
                for i, signature in enumerate(signatures)
            ]
        )

    def with_row_weights(self, factors: Vector) -> SumOverRows:
        own = zip(self.functions, self.stretches, strict=True)
        return RowSum([loss.with_row_weights(factors[stretch]) for loss, stretch in own], self.sizes)

    def curvature(self) -> Vector | None:
        own = [curvature(loss) for loss in self.functions]
        known = [each for each in own if each is not None]
        return np.concatenate(known) if len(known) == len(own) else None

    def curvature_at(self, x: Vector) -> Vector:
        return np.concatenate(self._each(curvature_at, x))


def without_rows(loss: Convex, rows: slice) -> tuple[Convex | None, Convex | None]:
    """Return a loss of several terms as one of neighbouring rows and one of the others; None if it has no parts."""
    if isinstance(loss, SumOverRows):
        every = np.arange(loss.row_weights().size)
        return loss.restrict(every[rows]), loss.restrict(np.delete(every, rows))
    parts = parts_of(loss)
    own = [part for part, at in parts if at == rows]
    others = [(part, at.stop - at.start) for part, at in parts if at != rows]
    if not own or not others:
        return None, None
    return own[0], one_above_the_other(*zip(*others, strict=True))
