r"""Constraints beside a smooth loss: multipliers around a method for smooth losses.

The loss is :math:`g(u) = g_0(u_0) + \iota(u_1)`, with a smooth :math:`g_0` and constraints on the rows :math:`u_1`. The
constraints are replaced by their Moreau envelope around multipliers :math:`y_k`, as in ``methods/multipliers.py``. That
is a smooth loss, which the method minimises, with working sets of all columns. So the columns are chosen with
multipliers that all columns have shaped, and any set of them is feasible. The slopes of the envelope at the solution
are the next multipliers. The error falls by about the factor SOFT each time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..certificates.candidates import Candidates, evaluate
from ..common.arrays import Vector
from ..common.rebuildable import stored
from ..functions.normal_form import Piecewise
from ..methods.contract import Layer, Method, Start, State
from ..methods.multipliers import enveloped
from ..methods.report import Report
from ..model.model import Model

SOFT = 0.03
"""How soft an envelope is, relative to what x gives way by if a multiplier changes. Softer envelopes are easier to
minimise, and more of them are needed."""

FEW = 100
"""Most rows of constraints. Among many of them, such as those that make copies of columns equal, some give way much
less than their own columns suggest, and the multipliers converge slowly. Newton steps on all of them are faster."""

KEY = "strengths of the smooth rows"
"""The key in ``Model.of_data`` under which the strengths are kept."""

INNER, LAST = 0.03, 0.3
"""Accuracy to which an envelope is minimised, relative to the error before it, and to that at which the run ends."""


@stored
@dataclass(kw_only=True)
class ConstraintsState(State):
    """The problem, and the state of the method on it.

    Attributes
    ----------
    smooth : the problem with an envelope.
    centre : y_k in the rows of the constraints, and 0 in the others.
    inner : state of the method.
    solved : whether the point is a solution, as far as the products with A are known.
    """

    model: Model
    start: Start
    centre: Vector
    smooth: Model
    inner: Any
    solved: bool = False

    def report(self) -> Report:
        inner: Report = self.inner.report()
        return inner


@dataclass(frozen=True)
class Constraints(Layer[ConstraintsState]):
    """A method for smooth losses, and multipliers of constraints beside such a loss."""

    def applies(self, model: Model) -> bool:
        return pays(model)

    def for_model(self, model: Model) -> Method[Any]:
        # the method inside gets its own layers for the envelope
        return self if self.applies(model) else self.method.for_model(model)

    def missing(self, model: Model) -> str | None:
        return self.method.missing(softened(model) if self.applies(model) else model)

    def _method(self, state: ConstraintsState) -> Method[Any]:
        return self.method.for_model(state.smooth)

    def init(self, model: Model, start: Start) -> ConstraintsState:
        model = model.columnar()
        centre = np.where(model.hard_rows, model.g_star.domain.project(start.y), 0.0)
        smooth = softened(model, start.x, centre)
        state = ConstraintsState(
            x=start.x, y=start.y, model=model, start=start, centre=centre, smooth=smooth, inner=None
        )
        self._begin(state, start)
        return state

    def _begin(self, state: ConstraintsState, start: Start) -> None:
        """Begin to minimise the envelope."""
        state.inner = self._method(state).init(state.smooth, start)
        state.follow(state.inner, 0.0)

    def advance(self, state: ConstraintsState, passes: float) -> ConstraintsState:
        before = state.inner.passes
        state.inner = self._method(state).advance(state.inner, passes)
        settled = state.inner.wants_certificate or bool(state.inner.ended)
        state.follow(state.inner, before)
        state.wants_certificate = False
        if settled:
            self._update(state)
        return state

    def _update(self, state: ConstraintsState) -> None:
        """Go on to the next multipliers, unless the point is a solution with the present ones."""
        model, tol = state.model, state.start.tol
        offer = self._method(state).candidates(state.inner)
        state.passes += 0.5 * sum(image is None for _, image in [*offer.primal, *offer.dual])
        certificate, primal, _ = evaluate(model, offer)
        if certificate.error <= tol:
            state.wants_certificate = state.solved = True
            return
        x, u = primal.x.copy(), primal.u
        y = state.smooth.g.subgradient(u)
        state.centre = np.where(model.hard_rows, y, 0.0)
        state.smooth = softened(model, x, state.centre)
        accuracy = max(INNER * certificate.error, LAST * tol)
        start = replace(state.start, x=x, y=y, u=u.copy(), tol=accuracy, exact=False)
        state.inner = self._method(state).change_loss(state.inner, state.smooth, start)
        state.follow(state.inner, 0.0)

    def candidates(self, state: ConstraintsState) -> Candidates:
        offer = self._method(state).candidates(state.inner)
        if not state.solved:
            return offer
        return Candidates([(x, None) for x, _ in offer.primal], [(y, None) for y, _ in offer.dual])


def pays(model: Model) -> bool:
    """Return whether the loss is smooth apart from a few constraints, which are not most of its rows."""
    form = model.loss_form
    known = model.A.traits.entries_known and model.A.traits.tasks == 1
    if not known or form is None or not all(isinstance(atom, Piecewise) for atom in form.atoms):
        return False
    hard = model.hard_rows
    few = 0 < np.count_nonzero(hard) <= FEW
    return bool(few and np.all(hard | (form.parameters.quadratic > 0)) and model.mostly_losses)


def softened(model: Model, x: Vector | None = None, centre: Vector | None = None) -> Model:
    """Return the problem with an envelope of its constraints around a centre, 0 by default, as soft as x suggests.

    If y_1 changes by t, x gives way by about S A_1't with the inverses S of the strengths of the columns that are not
    0, and A_1 x by A_1 S A_1't.
    """
    rows, n = model.A.shape
    hard = np.flatnonzero(model.hard_rows)
    columns = np.arange(n) if x is None or not np.any(x) else np.flatnonzero(x)
    strength = _strengths(model)[columns]
    way = model.A.restrict(hard, columns).sums(2, weights=(1.0 / strength, None))[1]
    usual = np.broadcast_to(model.row_lengths, (rows,))[hard] ** 2 / float(np.mean(strength))
    mu = np.zeros(rows)
    mu[hard] = SOFT * np.maximum(np.where(way > 0, way, usual), 1e-300)
    return enveloped(model, np.zeros(rows) if centre is None else centre, mu)


def _strengths(model: Model) -> Vector:
    """Return the second derivatives of the smooth rows along the columns, found once; the constraints have no part."""
    kept: Vector | None = model.of_data.get(KEY)
    if kept is None:
        assert model.loss_form is not None
        quadratic = np.array(model.loss_form.parameters.quadratic)
        curvature = np.divide(1.0, quadratic, out=np.zeros_like(quadratic), where=quadratic > 0)
        kept = np.maximum(model.A.sums(2, weights=(None, curvature))[0], 1e-300)
        model.of_data[KEY] = kept
    return kept
