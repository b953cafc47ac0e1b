"""Working sets: iterate on the blocks that matter, and check all of them before the result is accepted.

If the penalty makes most blocks 0, nearly all work on them is wasted. The method runs on a subproblem, stored
contiguously, of the blocks that are active or nearly active. When the subproblem is solved much more accurately than
the whole problem, the products with the other columns give the distance of each block from leaving 0, and the closest
blocks are added. A set should hold the active blocks, and more than half as many of the blocks with the least slack. A
run ends only on the certificate of the whole problem, so a block that is left out costs time but never correctness.
A block here is a part of x that may be 0 on its own: if a penalty couples its columns, a single column.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..certificates.candidates import Candidates, evaluate
from ..certificates.sides import Admitted, DualSide, admit, bound, pair, primal_side
from ..common.arrays import Indices, Vector
from ..common.rebuildable import derived, stored
from ..functions.points import DensePoint, Point
from ..functions.traits import couples, distance_from_leaving, is_smooth, restrict_parts, zero_slack
from ..methods.contract import Layer, Method, Start, State, diverged
from ..methods.report import Report
from ..model.index_map import IndexMap
from ..model.model import Model
from ..operators import Operator
from ..operators.stacked import hstack
from ..places.files.operator import memories

Mask = NDArray[np.bool_]

SMALLEST = 100
"""Smallest number of blocks in a working set."""

WORTHWHILE = 4
"""A working set pays if the problem has at least this many times the blocks of the smallest working set."""

GROWTH = 1.6
"""Size of a working set, relative to the number of active blocks."""

LARGEST_GROWTH, CHEAP = 4.0, 0.03
"""The same for a set of at most the share CHEAP of all blocks, for which the subproblem costs next to nothing."""

FILLED, FAST_GROWTH = 0.9, 8.0
LEAP = 0.12
"""A set of which more than the share FILLED is active was much too small: the next one is FAST_GROWTH times as large,
up to the share LEAP of all blocks."""

FIRST, SHORT = 0.25, 0.1
"""Share of the blocks about to leave 0 that the first set holds, up to the share LEAP of all blocks, if the loss is
smooth and at most the share SHORT of the entries of A is stored. Descent on short columns then costs less than another
choice of blocks."""

SHRINK = 0.5
"""A set is packed again if the blocks that it needs are less than this share of it."""

LARGEST = 0.5
"""A set with at least this share of all blocks is replaced by the whole problem, without packing."""

INNER = 0.1
"""Accuracy to which the subproblem is solved, relative to the error of the whole problem."""

SINGLE = 1e-7
"""Smallest tolerance for which the subproblem is stored in float32, until that turns out to be too inaccurate."""

LARGEST_SINGLE = 1e60
"""Largest squared length of a column for which its entries are safely within the range of float32."""

FEW = 0.1
"""Largest share of the columns in a working set for which reading them once more per check, to save the last reading of
all columns, pays."""

INSIDE = 1.0 - 1e-13
"""Factor by which a dual point is moved inside its bounds, so that rounding does not move it out again."""

ROUNDING = 1e-14
"""Errors below this are rounding; no subproblem is solved more accurately."""

SAMPLE = 2000
"""Size of the sample of blocks from which the threshold for small distances is estimated."""

FIRST_LOOK = 6.0
LOOK_GROWTH = 0.3
"""The error of the subproblem is computed every max(FIRST_LOOK, LOOK_GROWTH * round) of its passes."""


@stored
class Counts(NamedTuple):
    """Steps on earlier working sets, to which those on the present one are added."""

    restarts: int | None = None
    newton_steps: int | None = None
    finish_steps: int | None = None

    def plus(self, report: Report) -> Counts:
        """Return the sum with the counts of a report."""
        pairs = zip(self, (report.restarts, report.newton_steps, report.finish_steps), strict=True)
        return Counts(*(now if before is None else before + (now or 0) for before, now in pairs))


@stored
@dataclass
class Subproblem:
    """The problem of the working set: its blocks and columns in the whole problem, and the state of the method on it.

    ``share`` is the cost of a pass over it relative to a pass over the whole problem. ``round`` counts its passes since
    the set was last chosen, and its error is next computed when ``round`` reaches ``look``. ``single`` says whether it
    is stored in float32.
    """

    model: Model
    blocks: Indices
    columns: Indices
    share: float
    state: Any
    single: bool
    round: float = 0.0
    look: float = FIRST_LOOK

    def holds(self, blocks: Indices, n_blocks: int) -> Mask:
        """Return which of the blocks are in the set."""
        inside = np.zeros(n_blocks, dtype=bool)
        inside[self.blocks] = True
        return inside[blocks]


@stored
class Products:
    """z = -A'y for a sequence of y, without the products of columns that are known to be inactive.

    Let y_last be the last y for which all products were computed. A block with slack s there has the distance
    s / ||A_j|| from leaving 0, and stays at 0 while ||y - y_last|| is smaller. Its z then adds nothing to the dual
    value, so that the last z can be kept.

    Attributes
    ----------
    z : -A'y at the present y, exact for the blocks that may be active.
    distance : how far y would have to move for each block to leave 0, exact for the same blocks.
    passes : work so far.
    """

    model: Model
    norms: Vector
    passes: float
    reference: tuple[Vector, Vector, Vector] | None
    z: Vector
    distance: Vector

    def __init__(self, model: Model) -> None:
        self.model = model
        self.norms = np.maximum(block_norms(model, model.A.sums(2)[0]), 1e-300)
        self.passes = 0.0
        self.reference = None
        self.z = self.distance = np.empty(0)
        if model.A.first_adjoint is not None:
            self._refer(*model.A.first_adjoint)

    def at(self, y: Vector) -> None:
        """Compute z and the distances for another y."""
        if self.reference is None or not self._nearby(*self.reference, y):
            self._refer(y, self.model.A.rmatvec(y))

    def _refer(self, y: Vector, product: Vector) -> None:
        """Make y, with its full product A'y, the reference for the next ones."""
        self.z = -product
        self.distance = distance_from_leaving(self.model.f, self.z, self.norms)
        self.passes += 0.5
        self.reference = y, self.z, self.distance

    def _nearby(self, y_last: Vector, z_last: Vector, distance_last: Vector, y: Vector) -> bool:
        """Compute the products of the blocks that may be active at y; return False if they are too many."""
        moved = float(np.linalg.norm(y - y_last))
        if moved == 0:
            return True
        if not self.model.A.traits.reads_columns:  # some columns cost as much as all of them
            return False
        near = np.flatnonzero(distance_last <= (1.0 + 1e-9) * moved)
        if near.size == 0:  # all stay at 0
            self.z, self.distance = z_last, distance_last
            return True
        if near.size > LARGEST * distance_last.size:
            return False
        model = self.model
        columns = model.parts.columns(near)
        self.z, self.distance = z_last.copy(), distance_last.copy()
        self.z[columns] = z = model.A.rmatvec(-y, columns)
        self.distance[near] = distance_from_leaving(restrict_parts(model.f, near), z, self.norms[near])
        self.passes += 0.5 * columns.size / self.z.size
        return True


def block_norms(model: Model, squares: Vector) -> Vector:
    """Return the norm of each block, given the square of each column."""
    ordered = squares[model.parts.order]
    if len(model.parts) < ordered.size:
        ordered = np.add.reduceat(ordered, model.parts.start[:-1])
    norms: Vector = np.sqrt(ordered)
    return norms


@stored
@dataclass(kw_only=True)
class WorkingSetState(State):
    """The whole problem, the subproblem, and the best pair of the subproblem with its error in the whole problem."""

    model: Model
    start: Start
    products: Products
    subproblem: Subproblem | None
    u: Vector | None
    z: Vector | None
    error: float
    single: bool
    counts: Counts = field(default_factory=Counts)

    def report(self) -> Report:
        assert self.subproblem is not None
        inner: Report = self.subproblem.state.report()
        return replace(
            inner,
            **self.counts.plus(inner)._asdict(),
            n_blocks=len(self.model.parts),
            working_set=int(self.subproblem.blocks.size),
            working_set_columns=int(self.subproblem.columns.size),
        )


@dataclass(frozen=True)
class WorkingSet(Layer[WorkingSetState]):
    """A method on a working set: a small part of the blocks."""

    def applies(self, model: Model) -> bool:
        return pays(model)

    def for_model(self, model: Model) -> Method[Any]:
        # the method inside gets its own layers for each working set
        return self if self.applies(model) else self.method.for_model(model)

    def init(self, model: Model, start: Start) -> WorkingSetState:
        model = model.columnar()
        products = Products(model)
        state = WorkingSetState(
            x=start.x.copy(),
            y=start.y.copy(),
            passes=products.passes,
            u=None,
            z=None,
            model=model,
            start=start,
            products=products,
            subproblem=None,
            error=np.inf,
            single=start.tol >= SINGLE
            and not self.method.needs_float64
            and model.A.traits.reads_columns  # otherwise an exact set saves readings of A
            and bool(np.all(model.A.sums(2)[0] < LARGEST_SINGLE)),
        )
        self._choose(state, start.y)
        return state

    def change_loss(self, state: WorkingSetState, model: Model, start: Start) -> WorkingSetState:
        """Keep the set, its columns and the products that tell the slack of the others: all depend on f and A alone."""
        before = state.subproblem
        assert before is not None
        model = model.columnar()
        state.products.model = state.model = model
        state.products.passes = 0.0
        state.counts = state.counts.plus(before.state.report())
        state = replace(
            state, x=start.x.copy(), y=start.y.copy(), u=None, z=None, start=start, error=np.inf, passes=0.0, ended=""
        )
        part = model if before.blocks.size == len(model.parts) else model.of_parts(before.blocks, before.model.A)
        kept = replace(before, model=part, round=0.0, look=FIRST_LOOK)
        kept.state = self._method(part).init(part, self._start(state, kept, start.y))
        state.passes += kept.share * kept.state.passes
        state.subproblem = kept
        self._choose(state, start.y)
        return state

    def advance(self, state: WorkingSetState, passes: float) -> WorkingSetState:
        goal = state.passes + passes
        while True:  # at least one call of the method, however few passes are asked for
            subproblem = state.subproblem
            assert subproblem is not None
            before = subproblem.state.passes
            ahead = min(subproblem.look - subproblem.round, (goal - state.passes) / subproblem.share)
            subproblem.state = self._method(subproblem.model).advance(subproblem.state, ahead)
            done = subproblem.state.passes - before
            subproblem.round += done
            state.passes += done * subproblem.share
            expected = subproblem.state.expected
            state.expected = None if expected is None else expected * subproblem.share
            if diverged(subproblem.model, subproblem.state.x, subproblem.state.y):
                state.x[subproblem.columns], state.y = subproblem.state.x, subproblem.state.y
                return state
            stuck = done == 0  # without progress this loop would not end
            if (
                subproblem.round >= subproblem.look
                or stuck
                or subproblem.state.wants_certificate
                or subproblem.state.ended
            ):
                subproblem.state.wants_certificate = False
                self._look(state, subproblem)
            if subproblem.state.ended and state.subproblem is subproblem:
                self._choose(state, state.y)
                state.ended = subproblem.state.ended if state.subproblem is subproblem else ""
                return state
            if stuck or state.wants_certificate or state.passes >= goal or self.method.expensive_steps:
                return state

    def _method(self, subproblem: Model) -> Method[Any]:
        """Return the method with the layers that apply to the subproblem."""
        return self.method.for_model(subproblem)

    def _look(self, state: WorkingSetState, subproblem: Subproblem) -> None:
        """Evaluate the candidates of the method on the subproblem; choose a new set if the best pair is good enough."""
        if self.method.sparse_iterates and self._leap(state, subproblem):
            return
        model = subproblem.model
        offer = self._method(model).candidates(subproblem.state)
        if is_smooth(model.g):  # the gradient at the current point is the best dual point; averages lag behind
            offer = self._with_gradient(state, subproblem, offer)
        state.passes += 0.5 * subproblem.share * sum(u is None for _, u in offer.primal)
        state.passes += 0.5 * subproblem.share * sum(z is None for _, z in offer.dual)
        certificate, primal, dual = evaluate(model, offer)
        subproblem.look = subproblem.round + max(FIRST_LOOK, LOOK_GROWTH * subproblem.round)
        state.x[:] = 0.0
        state.x[subproblem.columns] = primal.x
        state.y, state.u, state.z = dual.y, None, None
        if certificate.error <= self._target(state):
            subproblem.round, subproblem.look = 0.0, FIRST_LOOK
            self._choose(state, dual.y)
        else:
            subproblem.state.goal = self._end(state) / certificate.error

    @staticmethod
    def _with_gradient(state: WorkingSetState, subproblem: Subproblem, offer: Candidates) -> Candidates:
        """Return the first primal point of an offer, with the gradient of the loss there as its dual point."""
        x, u = offer.primal[0]
        if u is None:
            u = subproblem.model.A.matvec(x)
            state.passes += 0.5 * subproblem.share
        return Candidates([(x, u)], [(subproblem.model.g.subgradient(u), None)])

    def _leap(self, state: WorkingSetState, subproblem: Subproblem) -> bool:
        """Enlarge a set that is nearly all active, by the last known slacks; return whether that was done."""
        n_blocks, size = len(state.model.parts), subproblem.blocks.size
        larger = int(min(FAST_GROWTH * size, LEAP * n_blocks))
        if larger <= size:
            return False
        state.x[:] = 0.0
        state.x[subproblem.columns] = subproblem.state.x
        if np.count_nonzero(self._active(state)) <= FILLED * size:
            return False
        distance = state.products.distance.copy()
        distance[subproblem.blocks] = np.inf
        added = closest(distance, larger - size)
        state.u, state.z = None, None
        state.subproblem = self._extend(state, subproblem, added, subproblem.state.y)
        return True

    @staticmethod
    def _active(state: WorkingSetState) -> Mask:
        """Return which blocks of x are not 0."""
        blocks = state.model.parts
        active: Mask = state.x != 0 if blocks.contiguous else (state.x != 0)[blocks.order]
        return active if len(blocks) == active.size else np.logical_or.reduceat(active, blocks.start[:-1])

    def _target(self, state: WorkingSetState) -> float:
        """Return the error at which the subproblem is solved well enough, given the error of the whole problem."""
        factor = min(INNER, state.error**2) if self.method.superlinear else INNER
        return max(factor * state.error, self._end(state))

    @staticmethod
    def _end(state: WorkingSetState) -> float:
        """Return the smallest error of the subproblem that the run can need."""
        return max(0.5 * state.start.tol, ROUNDING)

    def _choose(self, state: WorkingSetState, y: Vector) -> None:
        """Evaluate the point in the whole problem, and choose the blocks of the next subproblem."""
        model, subproblem, target = state.model, state.subproblem, self._target(state)
        state.u = u = self._image(state)
        if is_smooth(model.g) or not np.any(y):  # at the start of a run the gradient at x says more than y = 0
            y = model.g.subgradient(u)
        before, active = state.products.passes, self._active(state)
        image = DensePoint(u)
        point = admit(model, y, image)
        if subproblem is not None and subproblem.share <= FEW and memories(model.A):
            point = self._within(state, subproblem, point, image)
        state.error, dual = self._judge(state, point, image, active)
        state.passes += 0.5 * np.count_nonzero(state.x) / state.x.size + state.products.passes - before
        state.y, state.z = dual.y, dual.scale * state.products.z
        state.wants_certificate = state.error <= state.start.tol
        sparse = self.method.sparse_iterates
        wanted = self._wanted(state, active if sparse else significant(state))
        added = wanted if subproblem is None else wanted[~subproblem.holds(wanted, len(model.parts))]
        shrinks = sparse and subproblem is not None and wanted.size < SHRINK * subproblem.blocks.size
        if subproblem is not None and not added.size and couples(model.f):
            added = self._together(state, subproblem)
            shrinks &= not added.size
        if subproblem is None or shrinks:
            state.subproblem = self._pack(state, wanted, dual.y)
        elif added.size:
            state.subproblem = self._extend(state, subproblem, added, dual.y)
        elif subproblem.single and state.error > max(2.0 * target, state.start.tol):
            state.single = False
            state.subproblem = self._pack(state, wanted, dual.y)
        assert state.subproblem is not None
        state.subproblem.state.goal = min(1.0, self._end(state) / max(state.error, ROUNDING))

    @staticmethod
    def _image(state: WorkingSetState) -> Vector:
        """Return A x; from the packed columns of the set if A can only be read as a whole."""
        A, subproblem = state.model.A, state.subproblem
        if subproblem is None or A.traits.reads_columns:
            return A.matvec(state.x)
        return subproblem.model.A.matvec(state.x[subproblem.columns])

    @staticmethod
    def _within(state: WorkingSetState, subproblem: Subproblem, point: Admitted, u: Point) -> Admitted:
        """Return a dual point scaled so that it is feasible for the columns of the set.

        If it is then feasible for all columns, it is not scaled again. Its A'y, for which a file is read, is then that
        of the returned point, and the certificate need not read the file again.
        """
        A = state.model.A
        z = A.rmatvec(-point.y, subproblem.columns) if A.traits.reads_columns else subproblem.model.A.rmatvec(-point.y)
        state.passes += 0.5 * subproblem.share
        scale = bound(subproblem.model, point, DensePoint(state.x[subproblem.columns]), u, z).scale
        return replace(point, y=INSIDE * scale * point.y, conjugate_g=None) if scale < 1 else point

    @staticmethod
    def _judge(state: WorkingSetState, point: Admitted, u: Point, active: Mask) -> tuple[float, DualSide]:
        """Return the error in the whole problem, and the dual side of its certificate.

        Blocks that are 0 and have slack add nothing to the primal or dual value, and are left out of the arithmetic.
        """
        model, products = state.model, state.products
        products.at(point.y)
        rest = np.flatnonzero((products.distance <= 0) | active)
        if 0 < rest.size < LARGEST * len(model.parts):
            columns = model.parts.columns(rest)
            part = model.part(restrict_parts(model.f, rest), model.A, columns)
            x = DensePoint(state.x[columns])
            dual = bound(part, point, x, u, products.z[columns])
            primal = primal_side(part, x, u)
            if not (np.any(dual.z_violation) or np.any(primal.x_violation) or np.any(primal.u_violation)):
                return pair(part, primal, dual).error, dual
        whole = DensePoint(state.x)
        dual = bound(model, point, whole, u, products.z)
        return pair(model, primal_side(model, whole, u), dual).error, dual

    @staticmethod
    def _wanted(state: WorkingSetState, active: Mask) -> Indices:
        """Return the active blocks and those closest to becoming active."""
        n_blocks = len(state.model.parts)
        distance = np.where(active, -np.inf, state.products.distance)
        count = int(np.count_nonzero(np.isneginf(distance)))
        least = smallest(state.model)
        size = int(max(least, GROWTH * count, min(LARGEST_GROWTH * count, CHEAP * n_blocks)))
        if state.subproblem is not None and count > FILLED * state.subproblem.blocks.size:
            size = max(size, int(min(FAST_GROWTH * count, LEAP * n_blocks)))
        elif state.subproblem is None and is_smooth(state.model.g) and has_short_columns(state.model):
            size = max(size, int(min(FIRST * np.count_nonzero(distance < 0), LEAP * n_blocks)))
        if size >= LARGEST * n_blocks:
            return np.arange(n_blocks)
        return closest(distance, size)

    @staticmethod
    def _together(state: WorkingSetState, subproblem: Subproblem) -> Indices:
        """Return parts of a coupled penalty that may leave 0 together, at most as many as the set holds.

        All of them may be farther from leaving 0 than those in the set, if only the sum over all parts is too large.
        """
        if state.error <= state.start.tol:
            return np.empty(0, dtype=np.int64)
        distance = state.products.distance.copy()
        distance[subproblem.blocks] = np.inf
        return closest(distance, min(int(np.count_nonzero(distance <= 0)), subproblem.blocks.size))

    def _pack(self, state: WorkingSetState, blocks: Indices, y: Vector) -> Subproblem:
        """Return the subproblem of these blocks."""
        model = state.model
        if blocks.size == len(model.parts):
            subproblem = Subproblem(model, blocks, np.arange(state.x.size), 1.0, None, False)
        else:
            blocks = np.sort(blocks) if couples(model.f) else blocks
            columns = model.parts.columns(blocks)
            part = model.of_parts(blocks, model.packed(columns, state.single))
            subproblem = Subproblem(part, blocks, columns, columns.size / state.x.size, None, state.single)
        subproblem.state = self._method(subproblem.model).init(subproblem.model, self._start(state, subproblem, y))
        return self._counted(state, subproblem, 1.0)

    def _extend(self, state: WorkingSetState, before: Subproblem, added: Indices, y: Vector) -> Subproblem:
        """Return the subproblem with some blocks added at its end."""
        model = state.model
        blocks = np.concatenate([before.blocks, added])
        if blocks.size >= LARGEST * len(model.parts):
            return self._pack(state, np.arange(len(model.parts)), y)
        if couples(model.f):
            return self._pack(state, blocks, y)
        new = model.parts.columns(added)
        columns = np.concatenate([before.columns, new])
        A = beside(before.model.A, model.packed(new, before.single, before.model.A))
        part = model.of_parts(blocks, A)
        subproblem = Subproblem(part, blocks, columns, columns.size / state.x.size, None, before.single)
        subproblem.state = self._method(subproblem.model).extend(
            before.state, subproblem.model, self._start(state, subproblem, y)
        )
        return self._counted(state, subproblem, new.size / columns.size)

    @staticmethod
    def _start(state: WorkingSetState, subproblem: Subproblem, y: Vector) -> Start:
        """Return where the method starts on the subproblem."""
        start, weight = state.start, state.start.weight
        if state.subproblem is not None:
            found = state.subproblem.state.report().primal_weight
            weight = weight if found is None else found
        drawn = None if start.drawn is None else min(start.drawn, subproblem.blocks.size)
        kept = start.kept or IndexMap(state.model.A.shape, *(np.arange(size) for size in state.model.A.shape))
        kept = kept._replace(columns=kept.columns[subproblem.columns])
        return replace(start, x=state.x[subproblem.columns], u=state.u, y=y, drawn=drawn, weight=weight, kept=kept)

    @staticmethod
    def _counted(state: WorkingSetState, subproblem: Subproblem, packed: float) -> Subproblem:
        """Return the new subproblem after its work of packing and starting has been counted."""
        state.passes += subproblem.share * (subproblem.state.passes + 0.5 * packed)
        if state.subproblem is not None:
            state.counts = state.counts.plus(state.subproblem.state.report())
        return subproblem

    def candidates(self, state: WorkingSetState) -> Candidates:
        if state.start.exact and state.error <= state.start.tol:  # the result needs products with A itself
            return Candidates([(state.x.copy(), None)], [(state.y.copy(), None)])
        return Candidates([(state.x.copy(), state.u)], [(state.y.copy(), state.z)])


def significant(state: WorkingSetState) -> Mask:
    """Return which blocks of x are large compared with their slack, each relative to its own scale.

    The iterates of an interior point have no zeros: a block that is 0 at the solution is small there and has slack.
    """
    model, products = state.model, state.products
    sizes = block_norms(model, state.x**2)
    largest = distance_from_leaving(model.f, np.zeros_like(state.x), np.ones(len(model.parts)))
    inside = sizes[sizes > 0]
    mean = float(np.mean(inside)) if inside.size else 0.0
    small = sizes * largest < mean * products.distance * products.norms
    return (sizes > 0) & ~((largest > 0) & small)  # a block without a kink at 0 has no slack to compare with


def closest(distance: Vector, size: int) -> Indices:
    """Return the ``size`` blocks with the least distance, closest first, so that blocks that stay at 0 are adjacent."""
    sample = np.sort(distance[:: max(1, distance.size // SAMPLE)])
    bound = sample[min(sample.size - 1, 2 * size * sample.size // distance.size + 8)]
    near = np.flatnonzero(distance <= bound)  # sorting all distances would dominate the cost
    if near.size < size:
        near = np.arange(distance.size)
    blocks: Indices = near[np.argsort(distance[near], kind="stable")[:size]]
    return blocks


def has_short_columns(model: Model) -> bool:
    """Return whether few of the entries of A are stored."""
    rows, columns = model.A.shape
    return model.A.traits.stored <= SHORT * rows * columns


def smallest(model: Model) -> int:
    """Return the smallest number of blocks in a working set: as many as cost no more than a kernel launch."""
    return max(SMALLEST, model.A.traits.launch_cost * len(model.parts) // max(model.A.traits.stored, 1))


@derived
def beside(first: Operator, second: Operator) -> Operator:
    """Return [A_1, A_2]."""
    return hstack(first, second)


def pays(model: Model) -> bool:
    """Return whether working sets pay: many blocks that may be 0, columns that can be packed, any set feasible."""
    return bool(
        len(model.parts) >= WORTHWHILE * smallest(model)
        and model.A.traits.splits
        and model.A.traits.entries_known
        and np.all(model.parts.sizes % model.A.traits.tasks == 0)
        and model.feasible_at_zero
        and model.f_star.domain.has_zero()
        and zero_slack(model.f, np.zeros(model.A.shape[1])) is not None
    )
