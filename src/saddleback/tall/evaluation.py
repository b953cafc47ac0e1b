r"""What a reading computes: the objective, its slopes and curvature at a point, and some rows to keep.

With :math:`z_i = a_i'x` and :math:`y_i` the slope of the loss :math:`g_i` at :math:`z_i`, one visit of each row gives

.. math::

    \sum_i g_i(z_i), \qquad \sum_i y_i a_i, \qquad \sum_i g_i(z_i) - y_i z_i, \qquad \sum_i g_i''(z_i)\, a_i a_i'

and the rows that the next step treats one by one. The last sum, the curvature, takes longer than all others. If the
rows that are kept are a large sample, they give it with a small error, and only its diagonal is summed over all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..common.arrays import Indices, Vector
from ..functions import Loss
from ..functions.traits import SumOverRows, curvature_at, is_smooth, rise_within, subgradient_scale
from ..model.model import RESOLVED, infimum
from .frame import Frame, Room, weighted_gram
from .native_evaluation import evaluate_rows, readable
from .rows import Chunk, block_height, blocks, joined, merged
from .survey import Sample, check_entries

LEAST_KEPT = 1000
"""Number of rows of a chunk that may be kept in any case."""


class MakeLoss(Protocol):
    """The loss of some rows, from their targets and weights."""

    def __call__(self, target: NDArray[Any], /, *, sample_weight: Vector | None) -> Loss:
        """Return the loss of some rows."""
        ...


@dataclass
class Evaluation:
    """Sums over rows at a point.

    Attributes
    ----------
    value : the loss.
    tangents : g_i(z_i) - y_i z_i: the loss of the tangents at z = 0.
    lowest : the smallest values of the losses.
    pull : A'y.
    diagonal : the diagonal of A'DA with the second derivatives D, if the rows to keep are a sample.
    curvature : A'DA; empty if it was not asked for.
    squares : sums of squares of y, of z and of the data of the loss.
    rise : how much the loss changes if z changes by what the data resolve.
    kept : the rows that were kept, each part with its slopes y.
    """

    value: float
    tangents: float
    lowest: float
    pull: Vector
    diagonal: Vector
    curvature: NDArray[np.float64]
    squares: Vector
    rise: float
    kept: list[tuple[Chunk, Vector]] = field(default_factory=list)

    def __add__(self, other: Evaluation) -> Evaluation:
        return Evaluation(
            self.value + other.value,
            self.tangents + other.tangents,
            self.lowest + other.lowest,
            self.pull + other.pull,
            self.diagonal + other.diagonal,
            self.curvature + other.curvature,
            self.squares + other.squares,
            self.rise + other.rise,
            self.kept + other.kept,
        )

    @property
    def kept_rows(self) -> int:
        """Number of rows that were kept."""
        return sum(len(chunk) for chunk, _ in self.kept)

    def curvature_of_sample(self, make_loss: MakeLoss, frame: Frame, x: Vector) -> NDArray[np.float64]:
        """Return A'DA at x, estimated from the rows that were kept, with the diagonal of all rows."""
        size = frame.size
        gram = np.zeros((size, size))
        for chunk, _ in self.kept:
            design = frame.design(chunk.X)
            gram += weighted_gram(design, curvature_at(bound(make_loss, chunk), design @ x))
        own = np.diag(gram)
        # a column that is 0 in the sample has no other entry than that on the diagonal
        scale = np.sqrt(np.divide(self.diagonal, own, out=np.zeros(size), where=own > 0))
        gram *= np.outer(scale, scale)
        np.fill_diagonal(gram, self.diagonal)
        return gram


@dataclass(frozen=True)
class Evaluate:
    """The visit of a reading: evaluate all rows at x, and keep some.

    Attributes
    ----------
    loss : the loss of some rows.
    frame : the columns of x.
    x : the point.
    curved : whether to add up the curvature, if there is a sample.
    sample : which rows to keep, if they are a sample, as for a smooth loss.
    width : otherwise, rows are kept if their distance from a kink, relative to their leverage, is at most this.
    most : largest share of the rows of a chunk that is kept.
    """

    loss: MakeLoss
    frame: Frame
    x: Vector
    curved: bool
    sample: Sample | None = None
    width: float = 0.0
    most: float = 1.0

    def __call__(self, chunk: Chunk) -> Evaluation:
        """Return the sums over the rows of a chunk."""
        chosen = None if self.sample is None else self.sample.keep(chunk)
        total = self._compiled(chunk, chosen) or self._in_blocks(chunk, chosen)
        if not np.isfinite(total.value + total.pull.sum()):
            check_entries(chunk)  # if it finds nothing, the loss is too large at this point
        most = max(LEAST_KEPT, int(self.most * len(chunk)))
        if self.sample is None and total.kept_rows > most:
            total.kept = [self._fewer(total.kept, most)]
        return total

    def _compiled(self, chunk: Chunk, chosen: Indices | None) -> Evaluation | None:
        """Return the sums that the compiled core computes; None if it cannot."""
        if not readable(chunk.X):
            return None
        loss = self.loss(chunk.target, sample_weight=chunk.weight)
        found = evaluate_rows(loss, chunk.X, self.frame, self.x, self.curved, chosen, self.width)
        if found is None:
            return None
        near = found.near if chosen is None else chosen
        return Evaluation(
            value=found.value,
            tangents=found.tangents,
            lowest=0.0,
            pull=found.pull,
            diagonal=found.diagonal,
            curvature=found.curvature,
            squares=found.squares,
            rise=found.rise,
            kept=[(chunk.part(near), found.y)] if near.size else [],
        )

    def _in_blocks(self, chunk: Chunk, chosen: Indices | None) -> Evaluation:
        """Return the sums in numpy, for any rows and any loss: the specification of the compiled core."""
        total: Evaluation | None = None
        height = min(block_height(self.frame.size), len(chunk))
        # new memory for every block would have to be cleared by the operating system each time
        rooms = np.empty((2, height * self.frame.size))
        for start, block in blocks(chunk, self.frame.size):
            here = (
                None if chosen is None else chosen[slice(*np.searchsorted(chosen, (start, start + len(block))))] - start
            )
            found = self._block(block, here, rooms)
            total = found if total is None else total + found
        assert total is not None
        return total

    def _fewer(self, kept: list[tuple[Chunk, Vector]], most: int) -> tuple[Chunk, Vector]:
        """Return kept rows with equal ones merged, and if these are still too many, those closest to a kink.

        Many rows are on a kink if the targets and all columns have few values.
        """
        rows, y = merged(joined([chunk for chunk, _ in kept]), np.concatenate([y for _, y in kept]))
        if len(rows) <= most:
            return rows, y
        far = bound(self.loss, rows).distance_to_kink(self.frame.design(rows.X) @ self.x)
        nearest = np.sort(np.argpartition(far, most)[:most])
        return rows.part(nearest), y[nearest]

    def _block(self, block: Chunk, chosen: Indices | None, rooms: Room) -> Evaluation:
        design = self.frame.design(block.X, rooms[0])
        z = design @ self.x
        loss = bound(self.loss, block)
        y = loss.subgradient(z)
        value = loss.finite_value(z)
        near = self._near(loss, z, design, rooms[1]) if chosen is None else chosen
        data = np.broadcast_to(subgradient_scale(loss.conjugate()), z.shape)
        kept = block.part(near)
        second = np.zeros(0) if chosen is None else curvature_at(loss, z)
        return Evaluation(
            value=value,
            tangents=value - float(y @ z),
            lowest=lowest(loss, z.size),
            pull=design.T @ y,
            diagonal=second if chosen is None else self.frame.squares(design, rooms[1]).T @ second,
            curvature=weighted_gram(design, second, rooms[1]) if self.curved else np.zeros((0, 0)),
            squares=np.array([y @ y, z @ z, data @ data]),
            rise=rise_within(loss, RESOLVED * np.maximum(np.abs(z), data)),
            kept=[(kept, y[near])] if near.size else [],
        )

    def _near(self, loss: SumOverRows, z: Vector, design: Any, room: Room) -> Indices:
        return np.flatnonzero(loss.distance_to_kink(z) <= self.width * self.frame.leverage(design, room))


def bound(loss: MakeLoss, chunk: Chunk) -> SumOverRows:
    """Return the loss of the rows of a chunk."""
    made = loss(chunk.target, sample_weight=chunk.weight).bind((len(chunk),))
    if not isinstance(made, SumOverRows):
        raise TypeError(f"loss {type(made).__name__} is not a sum over rows: a tall problem needs one that is")
    return made


def has_no_kinks(loss: MakeLoss) -> bool:
    """Return whether a loss is smooth, which is tested with one row of target 1."""
    made = bound(loss, Chunk(0, 0, np.zeros((1, 1)), np.ones(1)))
    probes = (np.array([u]) for u in (-1.0, 0.0, 0.5))
    return is_smooth(made) or not any(np.any(made.distance_to_kink(u) > 0) for u in probes)


def lowest(loss: SumOverRows, size: int) -> float:
    """Return the smallest value of a loss; -inf if it has none."""
    return infimum(loss.conjugate(), np.zeros(size))
