r"""Norms of overlapping groups become norms of disjoint groups, of copies of the columns.

In :math:`f(x) + g(Ax) + \sum_g w_g \|x_g\|` each group gets its own copy v_g of its entries of x. The copies of an
entry have to be equal, which is one more row per further copy, and each of them gets the same share of the column of A
and of f:

.. math::

    \min_v\; \sum_g w_g \|v_g\| + f(Sv) + g(ASv) \quad \text{subject to } Cv = 0,

where S takes the mean of the copies. The penalty is again a sum over blocks that may be 0, so that working sets find
the few groups that are not, and zeros are exact. A dual point of this problem gives one of the problem before, without
an error in its equations: the slopes of the copies of an entry add up to that of the entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ..common.arrays import Blocks, Indices, Vector, summed_by
from ..functions import Equality
from ..functions.calculus import BlockSum, parts_of
from ..functions.group import GroupNorms
from ..functions.normal_form import PiecewiseParameters
from ..functions.piecewise import PiecewiseQuadratic, shrink
from ..functions.points import DensePoint, Point
from ..functions.row_sum import one_above_the_other, without_rows
from ..model.index_map import IndexMap
from ..model.model import Model
from ..operators import Above, Compressed, Dense, Operator, Stacked
from ..operators.gram import slices
from ..operators.stacked import parts_of as blocks_of
from .contract import Reduction

LARGEST = 2e9
"""Most bytes of the copied columns."""

MOST = 0.5
"""Largest share of the groups that may be about to leave 0 at x = 0. If more of them do, working sets gain nothing, and
block passes on x itself are faster."""

DENSE = 0.5
"""Share of the entries of A from which on it is copied as a dense matrix."""


@dataclass(frozen=True)
class Copies:
    """Which entry of x each copy is, and the rows that make the copies of an entry equal.

    Attributes
    ----------
    of : the entry of each copy.
    n : number of entries of x.
    share : one over the number of copies, for each copy.
    order : the copies, those of an entry next to each other.
    again : where in ``order`` the next copy is of the same entry.
    """

    of: Indices
    n: int
    share: Vector
    order: Indices
    again: Indices

    @classmethod
    def made(cls, of: Indices, n: int) -> Copies:
        """Return the copies of some entries."""
        order = np.argsort(of, kind="stable")
        again = np.flatnonzero(np.diff(of[order]) == 0)
        return cls(of, n, 1.0 / np.bincount(of, minlength=n)[of], order, again)

    def means(self, v: Vector) -> Vector:
        """Return the mean of the copies of each entry, and 0 if one of them is 0."""
        zero = summed_by(self.of, (v == 0).astype(np.float64), self.n) > 0
        return np.where(zero, 0.0, summed_by(self.of, self.share * v, self.n))

    def differences(self, scale: float) -> Compressed:
        """Return C: each copy minus the next one of the same entry, times a scale."""
        rows, ones = np.arange(self.again.size), np.full(self.again.size, scale)
        places = np.concatenate([self.order[self.again], self.order[self.again + 1]])
        entries = np.concatenate([ones, -ones]), (np.tile(rows, 2), places)
        return Compressed(sparse.csc_array(entries, shape=(rows.size, self.of.size)))

    def multipliers(self, slopes: Vector, scale: float) -> Vector:
        """Return y of the rows of C with C'y = the mean of the slopes of an entry minus each of them."""
        missing = self.share * summed_by(self.of, slopes, self.n)[self.of] - slopes
        return np.cumsum(missing[self.order])[self.again] / scale


@dataclass(frozen=True)
class Copied(Reduction):
    """The problem of the copies.

    Attributes
    ----------
    original : the problem before.
    copies : the copies.
    own : the columns of the original problem that are copied, and those of their copies.
    rows : the rows of the original problem that hold the entries of the groups.
    slopes : the left and right slopes of f at 0, shared among the copies.
    scale : that of the rows that make copies equal.
    """

    model: Model
    original: Model
    copies: Copies
    own: tuple[slice, slice]
    rows: slice
    slopes: tuple[Vector, Vector]
    scale: float
    passes: float = 0.0

    def kept(self) -> IndexMap:
        m, n = self.model.A.shape
        return IndexMap((m, n), np.arange(m), np.arange(n))

    def reduce_x(self, x: Vector) -> Vector:
        before, _ = self.own
        return np.concatenate([x[: before.start], x[before][self.copies.of], x[before.stop :]])

    def reduce_y(self, y: Vector) -> Vector:
        slopes = np.zeros(self.copies.of.size)
        slopes[: self._height] = y[self.rows]
        return np.concatenate([np.delete(y, self.rows), self.copies.multipliers(slopes, self.scale)])

    def restore_x(self, x: Point, u: Callable[[], Vector]) -> Point:
        return DensePoint(self._means(x.vector()))

    def restore_u(self, x: Point, u: Vector) -> Vector:
        return self.original.A.matvec(self._means(x.vector()))

    def restore_y(self, y: Point) -> Point:
        """Return y with the slopes of the norms: what the slopes of f leave of the slopes of the copies."""
        slopes = -self.model.A.rmatvec(y.vector())[self.own[1]]
        return DensePoint(self._with_rows(y.vector(), shrink(slopes, *self.slopes)[: self._height]))

    def restore_ray(self, dx: Vector, dy: Vector) -> tuple[Vector, Vector]:
        """Return the ray; norms are finite everywhere and contradict nothing."""
        return self._means(dx), self._with_rows(dy, np.zeros(self._height))

    @property
    def _height(self) -> int:
        return int(self.rows.stop - self.rows.start)

    def _means(self, v: Vector) -> Vector:
        _, after = self.own
        return np.concatenate([v[: after.start], self.copies.means(v[after]), v[after.stop :]])

    def _with_rows(self, y: Vector, own: Vector) -> Vector:
        """Return the vector of all rows of the original problem."""
        others = y[: self.original.A.shape[0] - self._height]
        return np.concatenate([others[: self.rows.start], own, others[self.rows.start :]])


def copy_groups(model: Model) -> Reduction | None:
    """Return the problem with disjoint groups of copies; None if there is no norm of groups that are mostly 0."""
    blocks = [part for part in blocks_of(model.A) if isinstance(part, Above)]
    functions = [f for f, _ in parts_of(model.f)]
    found = _group_rows(blocks) if _in_memory(model) else None
    if found is None or not len(blocks_of(model.A)) == len(blocks) == len(functions):
        return None
    j, i, of = found
    rows, n, f = blocks[j].stretches[i], blocks[j].shape[1], functions[j]
    norms, others = without_rows(model.g, rows)
    if not (isinstance(norms, GroupNorms) and others is not None and isinstance(f, PiecewiseQuadratic)):
        return None
    if (
        norms.has_squares
        or np.any(f.quadratic)
        or np.any(np.isfinite(f.upper))
        or np.any(np.isfinite(f.lower) & (f.lower != 0))
    ):
        return None
    free = np.setdiff1d(np.arange(n), of)
    copies = Copies.made(np.concatenate([of, free]), n)
    piece = _shared(f, copies)
    functions[j] = penalty = _with_free(norms, free.size).plus(piece)
    operators = [block.without(i) for block in blocks]
    height, equal = operators[j].shape[0], copies.again.size
    if _copied_bytes(operators[j], copies) > min(LARGEST, model.A.traits.budget):
        return None
    slopes = -operators[j].rmatvec(others.subgradient(np.zeros(height)))
    slack = penalty.zero_slack(copies.share * slopes[copies.of])
    if slack is None or np.count_nonzero(slack[: len(norms.partition)] < 0) > MOST * len(norms.partition):
        return None
    operators[j] = copied_columns(operators[j], copies)
    scale = float(np.sqrt(np.mean(operators[j].sums(2)[0]))) or 1.0  # rows as long as the columns on the average
    losses, heights = [others], [height]
    if equal:
        C = copies.differences(scale)
        operators = [Above([A, C if k == j else None], [height, equal]) for k, A in enumerate(operators)]
        losses, heights = [others, Equality(np.zeros(equal)).bind((equal,))], [height, equal]
    widths = [A.shape[1] for A in operators]
    reduced = replace(
        model,
        f=functions[0] if len(functions) == 1 else BlockSum(functions, widths, [True] * len(functions)),
        A=operators[0] if len(operators) == 1 else Stacked(operators),
        g=one_above_the_other(losses, heights),
        fit=model.mostly_losses,  # equal copies are no constraints of the user
    )
    first = sum(widths[:j])
    own = slice(first, first + n), slice(first, first + copies.of.size)
    bounds = np.where(piece.lower == 0, -np.inf, piece.left), piece.right
    return Copied(reduced, model, copies, own, rows, bounds, scale, passes=0.5)


def _in_memory(model: Model) -> bool:
    traits = model.A.traits
    here = traits.device is None and traits.holders is None and traits.panels is None
    return here and traits.entries_known and traits.reads_columns and traits.tasks == 1


def _group_rows(blocks: Sequence[Above]) -> tuple[int, int, Indices] | None:
    """Return the block and the row of an operator that repeats entries of x, and which ones; None if there is none.

    No other block may have an operator in this row, and each needs one in another row.
    """
    for i in range(len(blocks[0].rows) if blocks else 0):
        present = [j for j, block in enumerate(blocks) if block.rows[i] is not None]
        if len(present) != 1 or any(all(A is None for A in block.other_rows(i)) for block in blocks):
            continue
        of = _repeated(blocks[present[0]].rows[i])
        if of is not None:
            return present[0], i, of
    return None


def _repeated(A: Operator | None) -> Indices | None:
    """Return the column of the only entry of each row of A if all of these are 1."""
    if A is None or not (A.traits.splits and A.traits.stored == A.shape[0]):
        return None
    matrix = sparse.csr_array(A.entries(compressed=True))
    if not (np.all(matrix.data == 1) and np.array_equal(matrix.indptr, np.arange(A.shape[0] + 1))):
        return None
    return np.asarray(matrix.indices, dtype=np.int64)


def _is_sparse(A: Operator) -> bool:
    return A.traits.stored < DENSE * A.shape[0] * A.shape[1]


def _copied_bytes(A: Operator, copies: Copies) -> float:
    """Return the bytes of the copied columns: a value per entry, and its row if A is sparse."""
    (m, n), size = A.shape, copies.of.size
    return 16.0 * A.traits.stored * size / n if _is_sparse(A) else 8.0 * m * size


def copied_columns(A: Operator, copies: Copies) -> Operator:
    """Return A S: the columns of A as often as they are copied, each times its share."""
    size, m = copies.of.size, A.shape[0]
    if _is_sparse(A):
        entries = A.entries(copies.of, compressed=True)
        return Compressed(sparse.csc_array(entries @ sparse.diags_array(copies.share)))
    array = np.empty((m, size), order="F")
    for own in slices(size, m):
        np.multiply(A.entries(copies.of[own]), copies.share[own], out=array[:, own])
    return Dense(array)


def _shared(f: PiecewiseQuadratic, copies: Copies) -> PiecewiseParameters:
    """Return the slopes of f, shared among the copies, and its bounds."""
    left, right, quadratic, lower, upper = (parameter[copies.of] for parameter in f.parameters())
    return PiecewiseParameters(copies.share * left, copies.share * right, quadratic, lower, upper)


def _with_free(norms: GroupNorms, n: int) -> GroupNorms:
    """Return the norms with further entries that are in no group."""
    none = np.zeros(n)
    joined = norms.hstack(GroupNorms(Blocks.scalars(n), none, none, none)) if n else norms
    assert joined is not None
    return joined
