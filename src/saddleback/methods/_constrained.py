r"""The separable problem under a linear constraint, and block steps on its augmented Lagrangian.

GS-ADMM and PDMM are for :math:`\min \sum_j F_j(w_j)` subject to :math:`\sum_j B_j w_j = b`. An equality is such a
constraint as it is, B = A and w = x; under any other loss w = (x, u), with u a block of its own, F = f + g and
B = [A, -I], b = 0. In either case y, the multiplier, is a slope of the loss at Ax.

A block takes a proximal step on :math:`F_j(w_j) + \langle y, B_j w_j \rangle + \tfrac\rho2 \|Bw - b\|^2` with the
strength :math:`\rho \|B_j\|^2`, which is its exact minimisation where :math:`B_j'B_j` is a multiple of the identity:
for single columns, and for the identities of the paper's robust PCA.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..certificates.candidates import Candidates
from ..common.arrays import Indices, Vector
from ..common.rebuildable import derived, stored
from ..functions import Equality
from ..functions.calculus import BlockSum
from ..model.model import Model
from ..operators import ScaledIdentity, Stacked
from ..steps.strengths import block_squares, data_weight, uniform_strengths
from ._balance import Balance
from .contract import Start, State, affine_gradient, all_blocks, gradient
from .report import Report


@stored
@dataclass(kw_only=True)
class ConstrainedState(State):
    """w, of which x is the first stretch, the residual Bw - b, and ||B_j||^2 for every column."""

    model: Model
    split: Model
    w: Vector
    b: Vector
    residual: Vector
    rho: float
    squares: Vector
    balance: Balance

    def report(self) -> Report:
        return replace(self.choices, rho=self.rho)

    @property
    def image(self) -> Vector:
        """Ax."""
        u = self.w[self.x.size :]
        return self.residual + self.b + (u if u.size else 0.0)


@derived
def constrained(model: Model) -> Model:
    """Return the problem under a linear constraint, as one whose loss is that equality."""
    if target(model) is not None:
        return model
    m, n = model.A.shape
    f = BlockSum([model.f, model.g], [n, m], [True, False])
    A = Stacked([model.A, ScaledIdentity(m, -1.0)])
    return Model(f, A, Equality(np.zeros(m)).bind((m,)), model.linear_norm)


def target(model: Model) -> Vector | None:
    """Return b where the loss of a problem is the equality Ax = b."""
    affine = affine_gradient(model.g)
    return affine.b if affine is not None and not np.any(affine.weight) else None


def first_state(model: Model, start: Start, rho: float | None) -> dict[str, Any]:
    """Return the fields of a first state; rho from the units of the data where it is not given."""
    split = constrained(model)
    b = target(split)
    assert b is not None
    squares, passes = block_squares(split)
    balance = Balance(rho is None)
    if rho is None:
        uniform = uniform_strengths(model)
        rho = data_weight(model, uniform, 1.0) / float(uniform.dual[0])
        passes += uniform.passes
    image, cost = start.image(model)
    w = np.concatenate([start.x, image]) if split is not model else start.x.copy()
    return {
        "x": w[: start.x.size],
        "y": start.y.copy(),
        "passes": passes + cost,
        "choices": all_blocks(model),
        "model": model,
        "split": split,
        "w": w,
        "b": b,
        "residual": split.A.matvec(w) - b,
        "rho": rho,
        "squares": squares,
        "balance": balance,
    }


def step_blocks(state: ConstrainedState, drawn: Indices, y: Vector) -> None:
    """Take the steps of some blocks, all from the same point, against y."""
    split = state.split
    against = y + state.rho * state.residual
    for columns, blocks in split.blocks.pieces(drawn):
        step = 1.0 / (state.rho * state.squares[columns])
        before = state.w[columns]
        after = split.f.prox(before - step * split.A.rmatvec(against, columns), step, blocks)
        state.residual += split.A.matvec(after - before, columns)
        state.w[columns] = after
    state.passes += float(split.blocks.sizes[drawn] @ (split.blocks.start[drawn] < state.x.size)) / state.x.size


def remembered(state: ConstrainedState) -> Vector | None:
    """Return w before an iteration after which rho is to be corrected; None before any other."""
    return state.w.copy() if state.balance.due() else None


def balance(state: ConstrainedState, before: Vector | None) -> None:
    """Correct rho where that is due, given the w before the last iteration.

    What is 0 at a solution: Bw - b, relative to Ax, and the last steps times their strengths, relative to B'y.
    """
    if before is None:
        return
    pull = state.split.A.rmatvec(state.y)
    state.passes += 0.5
    primal = np.linalg.norm(state.residual) / (np.linalg.norm(state.image) or 1.0)
    dual = state.rho * np.linalg.norm(state.squares * (state.w - before)) / (np.linalg.norm(pull) or 1.0)
    state.rho *= state.balance.factor(float(primal), float(dual))


def offered(state: ConstrainedState) -> Candidates:
    """Return the point and the multiplier."""
    # rounding adds up in the residual over the iterations
    state.residual = state.split.A.matvec(state.w) - state.b
    state.passes += 0.5
    image = state.image
    return Candidates([(state.x.copy(), image)], [(state.y.copy(), None), *gradient(state.model, image)])
