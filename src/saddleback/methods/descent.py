r"""Block coordinate descent with Newton steps, for a loss with a Lipschitz gradient.

For such a loss y is not a separate variable: :math:`y = \nabla g(Ax)` is the limit of the block method as sigma goes to
0 (``docs/theory/methods.md``). The blocks are visited in order, in panels of neighbouring columns. A panel is read
from memory once, and each of its blocks is minimised exactly, with the panel's Gram matrix. Once a sweep changes few
zeros, a Newton step on the other coordinates (``places/newton.py``) follows, and is kept if the objective falls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..certificates.candidates import Candidates
from ..common.arrays import Vector
from ..common.rebuildable import stored
from ..functions.traits import hessian_at, is_smooth
from ..machine.factors import factor, solved
from ..model.model import Model
from ..places.choose import BackendName, descent_kernel_for, extended
from ..places.contract import DescentKernel
from ..places.newton import Smooth, directions, has_directions, pattern, weighted_gram
from .contract import Method, Start, State
from .report import Report

PANEL = 16
"""Columns per panel. Wider panels need fewer barriers, but their Gram matrix costs more than it saves."""

LARGEST_BLOCK = 64
"""Largest number of columns in a block: above it, the Gram matrix of the block costs more than it saves."""

REFRESH = 20.0
"""Passes after which u = Ax is recomputed from x."""

SWEEPS = 2
"""Sweeps after which the set of zero coordinates is compared with the previous one."""

SETTLED = 0.05
"""A Newton step is worth its cost if at most this share of the nonzeros came or went in the last SWEEPS sweeps."""

FINAL = 0.003
"""If at most this share changed, the zeros are taken as final, and Newton's system is worth an accurate solution."""

NEWTON_TOLERANCE, TIGHTEST = 0.1, 0.001
"""Largest and smallest relative residual to which Newton's system is solved."""

SMALL, EXACT = 1e5, 1e-6
"""Entries of the free columns up to which the system is solved as accurately as EXACT, which takes less time than
another certificate."""

ACCURACY = 0.1
"""Relative residual that suffices for the error to fall by a factor ``goal``, divided by sqrt(goal): the error falls
with the square of the residual, times a factor of about 10 that comes from the conditioning."""

NEWTON_STEPS = 50
HALVINGS = 6

ROUNDING = 1e-15
"""A step that lowers the objective by less than this share of it is taken all the same, unless the objective rises by
more: the objective cannot tell, but the gradient may still shrink. It counts as the last one for now."""

DAMPING, MOST_DAMPING = 1e-4, 1e8
"""First and largest damping after a Newton step that failed, relative to the diagonal. With the largest, the step is a
gradient step shorter than that of any coordinate: if it fails too, only rounding is left."""

MOST_REST = 64
"""Largest number of sweeps between a Newton step that failed and the next attempt."""

DIRECT, DIRECT_MOST = 10, 400
"""Newton's system is factored, instead of solved by conjugate gradients, up to this many free coordinates: in general,
and if conjugate gradients were slow on the last system."""


@stored
@dataclass(kw_only=True)
class DescentState(State):
    """The point with u = Ax, and the outcome of the Newton steps so far.

    The next Newton step is tried after ``rest`` sweeps, and the one after it ``backoff`` sweeps later if it fails.
    ``free`` is the ``pattern`` of x after the last sweeps. ``stiff`` says that conjugate gradients did not solve the
    last system within NEWTON_STEPS steps, or that no diagonal is known for them. ``damping`` is added to the next
    system, as in Levenberg's method: it helps if free columns are dependent or if the loss is far from quadratic.
    ``fresh`` is the number of passes at which u was last computed from x.
    """

    model: Model
    u: Vector
    kernel: DescentKernel
    free: NDArray[np.bool_]
    rest: int = 0
    backoff: int = SWEEPS
    stiff: bool = False
    damping: float = 0.0
    fresh: float = 0.0
    newton_steps: int = 0

    def report(self) -> Report:
        self.choices.newton_steps = self.newton_steps  # a copy per call would take longer than a tiny step
        return self.choices


@dataclass(frozen=True)
class Descent(Method[DescentState]):
    """Coordinate descent in panels, with Newton steps if they are worthwhile.

    Parameters
    ----------
    backend : {"auto", "numpy", "native", "torch"}, default "auto"
        The kernels to run on.
    """

    name = "descent"
    layers = ("working_set", "constraints", "finish")
    superlinear = True
    warmup_passes = 24.0  # a Newton step asks for an earlier certificate, unless the run is long
    backend: BackendName = "auto"

    def missing(self, model: Model) -> str | None:
        traits = model.A.traits
        if not (traits.splits and traits.reads_columns):
            return "A is not a dense or sparse matrix"
        penalty, loss = model.penalty_form, model.loss_form
        if not is_smooth(model.g) or not (loss is None or loss.closed):
            return "its loss has no Lipschitz gradient in closed form"
        elsewhere = traits.panels is not None or traits.holders is not None
        by_rows = loss is not None and traits.tasks == 1
        if not by_rows and elsewhere:
            return "its loss is not one that the kernels for files and processes know"
        if not has_directions(model) or (penalty is None and elsewhere):
            return "its penalty is not one that the kernels know"
        if not (model.fit or model.f_star.domain.has_zero()):
            return "its penalty is unbounded below"
        if penalty is not None and model.blocks.sizes.max() > LARGEST_BLOCK:
            return f"a block has {model.blocks.sizes.max()} columns, more than {LARGEST_BLOCK}"
        return None

    def init(self, model: Model, start: Start) -> DescentState:
        model = model.columnar()
        return self._first(model, start, descent_kernel_for(model, self.backend, PANEL))

    def extend(self, state: DescentState, model: Model, start: Start) -> DescentState:
        return self._first(model, start, extended(state.kernel, model))

    @staticmethod
    def _first(model: Model, start: Start, kernel: DescentKernel) -> DescentState:
        x = model.f.domain.project(start.x)
        if x is not start.x:
            start = replace(start, x=x, u=start.u if np.array_equal(x, start.x) else None)
        u, cost = start.image(model)
        return DescentState(
            x=start.x,
            y=model.g.subgradient(u),
            u=u,
            passes=kernel.passes + cost,
            choices=Report(
                blocks_per_iteration=max(1, PANEL * len(model.blocks) // max(PANEL, start.x.size)),
                n_blocks=len(model.blocks),
                backend=kernel.name,
            ),
            model=model,
            kernel=kernel,
            free=pattern(model, start.x),
            stiff=model.penalty_form is None,  # the strength of columns is not that of ties
        )

    def advance(self, state: DescentState, passes: float) -> DescentState:
        goal = state.passes + passes
        while True:  # at least one sweep, however few passes are asked for
            state.passes += state.kernel.sweep(SWEEPS, state.x, state.u, state.y) / state.x.size
            state.rest -= SWEEPS
            found = pattern(state.model, state.x)
            changes = np.count_nonzero(found != state.free)
            state.free = found
            size = np.count_nonzero(state.x)
            if state.rest <= 0 and changes <= max(1.0, SETTLED * size):
                enough = ACCURACY * np.sqrt(state.goal) if changes <= FINAL * size else NEWTON_TOLERANCE
                enough = min(max(enough, TIGHTEST), NEWTON_TOLERANCE) if size * state.u.size > SMALL else EXACT
                with np.errstate(over="ignore", invalid="ignore"):  # a step that overflows is one that fails
                    self._newton(state, float(enough))
            if state.wants_certificate or state.passes >= goal:
                return state

    def _newton(self, state: DescentState, tolerance: float) -> None:
        """Take a Newton step if the objective falls; otherwise wait twice as many sweeps as before until the next."""
        model, x = state.model, state.x
        part = directions(model, x)
        if state.damping:
            part = replace(part, extra=part.extra + state.damping * part.summed(state.kernel.strength[part.free]))
        share = part.free.size / x.size
        if share == 0:
            state.wants_certificate = True  # the sweeps have left no free coordinate
            return
        pull = part.gathered(state.kernel.products(part.free, state.y)) + part.gradient
        d, visits = self._direction(state, part, -pull, tolerance)
        state.passes += share * (visits + 0.5)
        before = model.f.finite_value(x) + model.g.finite_value(state.u)
        slack = ROUNDING * abs(before)
        settled = -(pull @ d) <= slack
        for halving in range(1 if settled else HALVINGS):
            moved = x[part.free] + 0.5**halving * part.spread(d)
            moved[part.kinked & (moved * x[part.free] < 0)] = 0.0
            candidate = x.copy()
            candidate[part.free] = moved
            candidate = model.f.domain.project(candidate)
            u = state.u + state.kernel.image(part.free, candidate[part.free] - x[part.free])
            state.passes += 0.5 * share
            if model.f.finite_value(candidate) + model.g.finite_value(u) < (before + slack if settled else before):
                state.x[:], state.u[:], state.y[:] = candidate, u, model.g.subgradient(u)
                state.free = pattern(model, state.x)
                state.newton_steps += 1
                if settled:
                    break
                state.backoff = SWEEPS
                state.wants_certificate = halving == 0
                if state.wants_certificate:
                    state.damping = 0.1 * state.damping if state.damping > 0.1 * DAMPING else 0.0
                return
        state.wants_certificate = state.backoff == SWEEPS  # the first time: the point may already be optimal
        state.damping = min(max(DAMPING, 10.0 * state.damping), MOST_DAMPING)
        state.rest, state.backoff = state.backoff, min(2 * state.backoff, MOST_REST)

    @staticmethod
    def _direction(state: DescentState, part: Smooth, right: Vector, tolerance: float) -> tuple[Vector, float]:
        """Return Newton's direction, and how many visits of each free column it took."""
        weight = hessian_at(state.model.g, state.u)
        size = right.size
        strength = part.summed(state.kernel.strength[part.free])
        small = size <= min(DIRECT_MOST if state.stiff else DIRECT, state.u.size)
        if small and 8.0 * size**2 <= state.model.A.traits.budget:
            matrix = part.added_to(part.gram(weighted_gram(state.model.A, weight, part.free)))
            # keeps the step finite where the loss is flat or columns are linearly dependent
            matrix[np.diag_indices(size)] += 1e-12 * np.maximum(strength, 1e-300)
            found = factor(matrix)
            if found is not None:
                return solved(found, right), 0.25 * size
        diagonal = np.maximum(strength + part.extra, 1e-300)
        d, steps = state.kernel.solve(part, weight, right, diagonal, tolerance, NEWTON_STEPS)
        state.stiff = steps == NEWTON_STEPS
        return d, float(steps)

    def candidates(self, state: DescentState) -> Candidates:
        if state.passes >= state.fresh + REFRESH:  # rounding errors accumulate in u
            state.u[:] = state.model.A.matvec(state.x)
            state.y[:] = state.model.g.subgradient(state.u)
            state.passes += 0.5 * np.count_nonzero(state.x) / state.x.size
            state.fresh = state.passes
        return Candidates([(state.x.copy(), None)], [(state.y.copy(), None)])
