r"""The proximal method of multipliers, for a loss and a penalty that both have kinks.

Around the current :math:`y_k` the saddle function gets the term :math:`-\frac{\mu}{2}\|y - y_k\|^2`. The loss becomes
its Moreau envelope, which is smooth (Rockafellar 1976):

.. math::

    x_{k+1} \approx \arg\min_x f(x) + \max_y \langle y, Ax \rangle - g^*(y) - \tfrac{\mu}{2}\|y - y_k\|^2,

and :math:`y_{k+1}` is the maximiser at :math:`Ax_{k+1}`. Rows in which the loss is smooth already get no such term, so
that the smooth part of a loss with constraints stays as it is. Where g* has slopes, a quadratic term and bounds, the
envelope is the conjugate of a function of the same family. It is minimised by Newton steps along the coordinates S
where the penalty is smooth, with the rows D in which y is inside its bounds (Li, Sun and Toh 2018). The matrix
:math:`A_S' D A_S` has the size of the answer, and not that of the problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..certificates.candidates import Candidates
from ..common.arrays import Vector
from ..common.cached import cached_property
from ..common.conjugate_gradients import Product, conjugate_gradients
from ..common.rebuildable import derived, stored
from ..functions.contract import Convex
from ..functions.normal_form import GroupNorm, Piecewise
from ..functions.piecewise import PiecewiseQuadratic
from ..functions.traits import curvature_at, is_smooth, subgradient_scale, zero_slack
from ..machine.factors import factor, solved
from ..model.model import Model
from ..operators import Operator
from ..places.newton import (
    ADVANTAGE,
    Smooth,
    factorisation_passes,
    gram_multiplications,
    newton_system,
    placed,
    smooth_part,
    step_overhead,
)
from .contract import Method, Start, State, all_blocks
from .report import Report

EASY, HARD, MU_FACTOR = 3, 6, 2.0
"""mu falls by a factor after an envelope that took few Newton steps, and rises after one that took many: the smaller mu
is, the fewer envelopes are needed, and the more rows change sides during a step."""

ENOUGH = 0.1
"""An envelope is minimised well enough if a Newton step promises less than this share of the distance that y has moved,
which is about what the next y gains."""

FEW, SHARE = 20, 1.0
"""Coordinates that may leave a kink or a bound in one step: a few, or a share of those that are free."""

NUDGE = 1e-3
"""Part of a proximal step by which they leave it, so that they have a sign and a direction."""

LENGTHS = (1.0, 0.4, 0.15)
"""Lengths of a Newton step, in the order in which to try."""

SUFFICIENT = 0.1
"""Share of the promised decrease that makes a step acceptable."""

DAMPING, MORE, LESS, LEAST = 1e-5, 20.0, 0.1, 1e-11
"""Levenberg's damping relative to the diagonal: its first value, how it changes after a step that failed or went the
whole way, and its least value."""

TRIES = 10
"""Dampings to try before the step is given up."""

ACCURACY, TYPICAL, MOST = 0.01, 50, 200
"""Relative residual of conjugate gradients, their typical number of steps, by which they are compared with a
factorisation, and their most steps."""

RANGE = 1e10
"""Largest factor between mu and the one that the data suggest, in both directions: beyond it all is rounding."""

MEMORY = 2e9
"""Most bytes of the matrix of a Newton step."""

USUAL_STEPS, FEWEST_STEPS = 150, 20
"""Newton steps that are usually enough, and those for a solution with very few nonzeros, to which each nonzero adds
one."""

STALLED = 5
"""Envelopes without any step after which nothing more can be gained."""


@stored
@dataclass(kw_only=True)
class MultipliersState(State):
    """The point, u = Ax, and the envelope.

    Attributes
    ----------
    centre : ndarray
        y_k.
    mu : float
        The weight of the proximal term, in the rows where the loss is not smooth.
    squares : tuple of ndarray
        The sums of squares of each column over the rows with a proximal term, and over the others, there weighted by
        the curvature of the loss.
    unit : float
        The mu that the data suggest.
    damping : float
        Levenberg's damping of the next Newton step.
    steps, newton_steps : int
        Newton steps on this envelope and in all.
    factorisations : float
        Passes that take as long as the factorisations of the last step. They do not count as passes, which are visits
        of columns, but they do in the prediction of the time to the end.
    stalled : int
        Envelopes in a row on which no step could be taken.
    """

    model: Model
    u: Vector
    centre: Vector
    mu: float
    squares: tuple[Vector, Vector]
    unit: float
    damping: float = DAMPING
    steps: int = 0
    newton_steps: int = 0
    factorisations: float = 0.0
    stalled: int = 0

    def report(self) -> Report:
        return replace(self.choices, newton_steps=self.newton_steps, primal_weight=self.mu / self.unit)

    def envelope(self) -> Convex:
        """Return the Moreau envelope of the loss around y_k, less the constant mu/2 ||y_k||^2."""
        return envelope(self.model, self.centre, self.mu)

    def column_squares(self) -> Vector:
        """Return mu times the diagonal of A' D A if all rows were inside their bounds."""
        kinked, curved = self.squares
        return kinked + self.mu * curved

    def distance(self) -> float:
        """Return how far y has moved on this envelope: the proximal term, and in smooth rows the curvature of g*."""
        form = self.model.loss_form
        assert form is not None
        quadratic = form.parameters.quadratic
        return 0.5 * float(np.sum(np.where(quadratic > 0, quadratic, self.mu) * (self.y - self.centre) ** 2))


@dataclass(frozen=True)
class Multipliers(Method[MultipliersState]):
    r"""The proximal method of multipliers, with Newton steps of the size of the answer: no options.

    With :math:`g_\mu(u) = \max_y \langle y, u \rangle - g^*(y) - \frac{\mu}{2}\|y - y_k\|^2`, an iteration is a Newton
    step on :math:`f(x) + g_\mu(Ax)`. When that is minimised well enough, :math:`y_{k+1}` is the maximiser at Ax
    (Rockafellar 1976; Li, Sun and Toh 2018). docs/theory/methods.md has the choice of mu and the details of the step.
    """

    name = "multipliers"
    layers = ("working_set", "fallback", "finish")
    needs_float64 = True
    merges_rows = True
    expensive_steps = True

    def missing(self, model: Model) -> str | None:
        traits = model.A.traits
        if not (traits.splits and traits.reads_columns and traits.entries_known and traits.tasks == 1):
            return "A is not a matrix in memory that acts on a vector"
        penalty, loss = model.penalty_form, model.loss_form
        if loss is None or not all(isinstance(atom, Piecewise) for atom in loss.atoms):
            return "its loss is not made of slopes, quadratic terms and bounds"
        if penalty is None or not all(isinstance(atom, Piecewise | GroupNorm) for atom in penalty.atoms):
            return "its penalty is not made of slopes, quadratic terms, bounds and group norms"
        return None

    def init(self, model: Model, start: Start) -> MultipliersState:
        model = model.columnar().merged()
        x = model.f.domain.project(start.x)
        moved = not np.array_equal(x, start.x)
        u, cost = replace(start, x=x, u=None if moved else start.u).image(model)
        unit = _unit(model)
        return MultipliersState(
            x=x.copy(),
            y=start.y.copy(),
            passes=cost,
            choices=all_blocks(model, backend=None if model.A.traits.device is None else "torch"),
            model=model,
            u=u,
            centre=model.g_star.domain.project(start.y).copy(),
            mu=float(np.clip(start.weight, 1.0 / RANGE, RANGE)) * unit,
            squares=_squares(model),
            unit=unit,
        )

    def extend(self, state: MultipliersState, model: Model, start: Start) -> MultipliersState:
        """Go on with the same y: that of the start may have been scaled for a certificate."""
        extended = self.init(model, replace(start, y=state.centre))
        return replace(extended, mu=state.mu, unit=state.unit, damping=state.damping)

    def advance(self, state: MultipliersState, passes: float) -> MultipliersState:
        with np.errstate(all="ignore"):  # a step that overflows is one that fails
            self._step(state)
        return state

    def _step(self, state: MultipliersState) -> None:
        """Take a Newton step on the envelope, and go on to the next envelope if this one is minimised."""
        model, envelope, before = state.model, state.envelope(), state.passes
        state.factorisations = 0.0
        y = envelope.subgradient(state.u)
        z = -model.A.rmatvec(y)
        state.passes += 0.5
        start = _nudged(state, z)
        promised = self._newton(state, envelope, start, z)
        state.y = envelope.subgradient(state.u) if promised else y
        state.steps += 1
        cost = state.passes - before + state.factorisations + step_overhead(model.A)
        state.expected = cost * min(USUAL_STEPS, FEWEST_STEPS + int(np.count_nonzero(state.x)))
        if promised is None or promised <= ENOUGH * state.distance():
            still = not promised and np.array_equal(state.y, state.centre)
            state.stalled = state.stalled + 1 if still else 0
            self._update(state, failed=promised is None)

    @staticmethod
    def _update(state: MultipliersState, failed: bool) -> None:
        """Go on to the envelope around the y of this one."""
        state.centre = state.y.copy()
        if state.stalled == 0:
            factor = MU_FACTOR if failed or state.steps > HARD else 1.0 / MU_FACTOR if state.steps <= EASY else 1.0
            state.mu = float(np.clip(factor * state.mu, state.unit / RANGE, state.unit * RANGE))
        state.steps = 0
        state.wants_certificate = True
        if state.stalled >= STALLED:
            state.ended = "the multipliers gave up: no step lowers the objective any more"

    def _newton(self, state: MultipliersState, envelope: Convex, start: Vector, z: Vector) -> float | None:
        """Take a Newton step from a nudged point; return the decrease that it promised, or None if no step succeeds."""
        model, x = state.model, state.x
        assert model.penalty_form is not None
        part = smooth_part(model.penalty_form, model.blocks, start)
        right = z[part.free] - part.gradient
        if not np.any(right) and np.array_equal(start, x):
            return 0.0
        system = _System(state, part, curvature_at(envelope, state.u))
        before = model.f.finite_value(x) + envelope.finite_value(state.u)
        crosses = np.zeros(x.size, dtype=bool)
        crosses[part.free[part.kinked]] = True
        for _ in range(TRIES):
            d = np.zeros(x.size)
            d[part.free] = system.solve(right, state.damping)
            promised = 0.5 * float(right @ d[part.free])
            along = model.A.matvec(d[part.free], part.free)
            state.passes += 0.5 * part.free.size / x.size
            for length in LENGTHS:
                straight = start + length * d
                candidate = np.where(crosses & (straight * start < 0), 0.0, straight)
                candidate = model.f.domain.project(candidate)
                u = state.u + length * along
                stopped = np.flatnonzero((candidate != straight) | (start != x))
                if stopped.size:
                    u += model.A.matvec((candidate - x - length * d)[stopped], stopped)
                    state.passes += 0.5 * stopped.size / x.size
                now = model.f.finite_value(candidate) + envelope.finite_value(u)
                if now < before - SUFFICIENT * length * promised:
                    state.x, state.u = candidate, u
                    state.newton_steps += 1
                    state.damping = max(LESS * state.damping, LEAST) if length == 1.0 else state.damping
                    return promised
            state.damping = max(MORE * state.damping, DAMPING)
        state.damping = DAMPING
        return None

    def candidates(self, state: MultipliersState) -> Candidates:
        state.u = state.model.A.matvec(state.x)  # rounding adds up in u
        state.passes += 0.5 * np.count_nonzero(state.x) / state.x.size
        return Candidates([(state.x.copy(), state.u.copy())], [(state.y.copy(), None)])


def pays(model: Model) -> bool:
    """Return whether the multipliers are the way to begin with.

    They are for A in memory or on a device, a loss that is not smooth and a penalty that makes coordinates 0. With
    groups, block passes are as fast, but for constraints such as those that make copies of columns equal. Constraints
    may be among the rows of the loss, but not most of them: for linear programs and the like other ways are faster.
    """
    traits, penalty = model.A.traits, model.penalty_form
    return bool(
        traits.holders is None
        and traits.panels is None
        and Multipliers().missing(model) is None
        and not is_smooth(model.g)
        and model.mostly_losses
        and penalty is not None
        and not (model.g.domain.everything and np.any(penalty.group_weight))
        and zero_slack(model.f, np.zeros(model.A.shape[1])) is not None
    )


def envelope(model: Model, centre: Vector, mu: Vector | float) -> Convex:
    """Return the Moreau envelope of the loss around a centre, in the rows where it has kinks or constraints."""
    form = model.loss_form
    assert form is not None
    left, right, quadratic, lower, upper = form.parameters
    weight = np.where(quadratic > 0, 0.0, mu)
    shift = weight * centre
    return PiecewiseQuadratic(left - shift, right - shift, quadratic + weight, lower, upper).conjugate()


@derived
def enveloped(model: Model, centre: Vector, mu: Vector | float) -> Model:
    """Return the problem with the Moreau envelope of its loss."""
    return Model(model.f, model.A, envelope(model, centre, mu), model.linear_norm, model.constant)


def _unit(model: Model) -> float:
    """Return the size of u relative to that of y in the rows with a proximal term: with this mu both move alike."""
    form = model.loss_form
    assert form is not None
    kinked = form.parameters.quadratic == 0
    if not np.any(kinked):
        kinked[:] = True

    def size(of_rows: Vector | float) -> float:
        return float(np.linalg.norm(np.broadcast_to(of_rows, kinked.shape)[kinked]))

    targets = size(subgradient_scale(model.g_star)) or size(model.row_lengths) or 1.0
    slopes = size(subgradient_scale(model.g))
    if not 0 < slopes < np.inf:  # a constraint: y balances the penalty
        lengths = np.sqrt(_squares(model)[0])
        balance = np.broadcast_to(np.abs(subgradient_scale(model.f)), lengths.shape)
        penalised = (lengths > 0) & (balance > 0)
        ratio = float(np.median(balance[penalised] / lengths[penalised])) if np.any(penalised) else 1.0
        slopes = ratio * float(np.sqrt(np.count_nonzero(kinked)))
    return targets / slopes


def _squares(model: Model) -> tuple[Vector, Vector]:
    """Return the sums of squares of the columns over the rows with kinks, and over the smooth ones with curvatures."""
    form = model.loss_form
    assert form is not None
    quadratic = form.parameters.quadratic
    smooth = quadratic > 0
    if not np.any(smooth):
        return model.column_lengths**2, np.zeros(model.A.shape[1])
    curvature = np.divide(1.0, quadratic, out=np.zeros(quadratic.size), where=smooth)
    return model.A.sums(2, weights=(None, (~smooth).astype(np.float64)))[0], model.A.sums(2, weights=(None, curvature))[
        0
    ]


def _nudged(state: MultipliersState, z: Vector) -> Vector:
    """Return x with coordinates moved a little off their kink or bound, if a proximal step moves them.

    If these are many, the ones that promise most are taken. Groups that the proximal step makes 0 are put there: a
    Newton step does not see the kink of a norm.
    """
    model, x, mu = state.model, state.x, state.mu
    penalty, blocks = model.penalty_form, model.blocks
    assert penalty is not None
    squares = state.column_squares()
    of_block = blocks.of_columns
    if len(blocks) < x.size:
        squares = np.bincount(of_block, squares, len(blocks)).astype(np.float64)[of_block]
    step = mu / np.maximum(squares, 1e-300)
    target = model.f.prox(x + step * z, step)
    start = x.copy()
    if np.any(penalty.group_weight > 0):
        left = (np.bincount(of_block, target != 0, len(blocks)) == 0) & (penalty.group_weight > 0)
        start[left[of_block]] = 0.0
    free = np.zeros(x.size, dtype=bool)
    free[smooth_part(penalty, blocks, start).free] = True
    change = np.where(free | (start != x), 0.0, target - x)
    gain = np.bincount(of_block, change**2 / step, len(blocks))
    entering = np.flatnonzero(gain)
    room = max(FEW, int(SHARE * np.count_nonzero(free)))
    if entering.size > room:
        entering = entering[np.argpartition(-gain[entering], room)[:room]]
    chosen = np.zeros(len(blocks), dtype=bool)
    chosen[entering] = True
    return start + NUDGE * np.where(chosen[of_block], change, 0.0)


class _System:
    """The matrix A_S' D A_S + f'' of a Newton step, in the form of the smaller side."""

    def __init__(self, state: MultipliersState, part: Smooth, weight: Vector) -> None:
        self.state, self.part = state, part
        self.rows = np.flatnonzero(weight)
        self.weight = weight[self.rows]
        self.diagonal = state.column_squares()[part.free] / state.mu
        self.across = self.rows.size < part.free.size and not np.any(part.along)
        self.size = self.rows.size if self.across else part.free.size
        A = state.model.A
        entries = A.traits.stored / max(A.shape[0] * A.shape[1], 1) * self.rows.size * part.free.size
        self.share = entries / max(A.traits.stored, 1)
        length = part.free.size if self.across else self.rows.size
        self.multiplications = gram_multiplications(entries, self.size, length)
        cheaper = self.multiplications <= ADVANTAGE * TYPICAL * 2.0 * entries
        bound = min(MEMORY, A.traits.budget)
        self.fits = 16.0 * entries <= bound  # the rows and columns, of which a system is made, may be copied
        self.direct = cheaper and self.fits and 16.0 * self.size**2 <= bound
        self.matrix: Vector | None = None

    @cached_property
    def A(self) -> Operator:
        """The rows and columns of the system, in separate memory."""
        return self.state.model.A.restrict(self.rows, self.part.free)

    def solve(self, right: Vector, damping: float) -> Vector:
        """Return the Newton direction with a damping relative to the diagonal."""
        extra = self.part.extra + np.maximum(damping * self.diagonal, 1e-300)
        if right.size == 0 or (self.rows.size == 0 and not np.any(self.part.along)):
            return right / extra
        found = self._factored(right, extra) if self.direct else None
        return self._iterated(right, extra) if found is None else found

    def _factored(self, right: Vector, extra: Vector) -> Vector | None:
        matrix: Vector
        if self.across:  # by the formula of Sherman, Morrison and Woodbury
            matrix = self.A.gram(placed(self.A, 1.0 / extra), side="rows")
            at = np.arange(self.size)
            matrix[at, at] += 1.0 / self.weight
        else:
            if self.matrix is None:
                self.matrix = self.A.gram(placed(self.A, self.weight))
            matrix = replace(self.part, extra=extra).added_to(self.matrix.copy())
        found = factor(matrix)
        self.state.passes += 0.5 * self.share
        self.state.factorisations += factorisation_passes(self.state.model.A, self.multiplications)
        if found is None:
            return None
        if not self.across:
            return solved(found, right)
        first = right / extra
        return first - self.A.rmatvec(solved(found, self.A.matvec(first))) / extra

    def _iterated(self, right: Vector, extra: Vector) -> Vector:
        part = replace(self.part, extra=extra)
        if self.fits:
            product = newton_system(self.A.matvec, self.A.rmatvec, part, self.weight)
        else:
            whole, free, rows = self.state.model.A, part.free, self.rows
            weight = np.zeros(whole.shape[0])
            weight[rows] = self.weight
            product = newton_system(lambda d: whole.matvec(d, free), lambda v: whole.rmatvec(v, free), part, weight)
        d, steps = conjugate_gradients(Product(product, self.diagonal + extra), right, ACCURACY, MOST)
        self.state.passes += steps * self.share
        return d
