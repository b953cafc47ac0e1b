r"""The separable problem under a linear constraint, and block steps on its augmented Lagrangian.

GS-ADMM and PDMM solve :math:`\min \sum_j F_j(w_j)` subject to :math:`\sum_j B_j w_j = b`. If the loss is an equality,
the problem has this form already, with B = A and w = x. Under any other loss w = (x, u), where u is one more block,
F = f + g, B = [A, -I] and b = 0. In both cases the multiplier y is a slope of the loss at Ax.

A block takes a proximal step on :math:`F_j(w_j) + \langle y, B_j w_j \rangle + \tfrac\rho2 \|Bw - b\|^2` with the
strength :math:`\rho \|B_j\|^2`. This minimises exactly over the block if :math:`B_j'B_j` is a multiple of the identity,
as for single columns and for the identities of the paper's robust PCA.
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
    """w, which begins with x, the residual Bw - b, and ||B_j||^2 per column."""

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
    """Return the problem under a linear constraint, as a model whose loss is that equality."""
    if target(model) is not None:
        return model
    m, n = model.A.shape
    f = BlockSum([model.f, model.g], [n, m], [True, False])
    A = Stacked([model.A, ScaledIdentity(m, -1.0)])
    return Model(f, A, Equality(np.zeros(m)).bind((m,)), model.linear_norm)


def target(model: Model) -> Vector | None:
    """Return b if the loss of a problem is the equality Ax = b, and otherwise None."""
    affine = affine_gradient(model.g)
    return affine.b if affine is not None and not np.any(affine.weight) else None


def first_state(model: Model, start: Start, rho: float | None) -> dict[str, Any]:
    """Return the fields of a first state; rho comes from the units of the data if it is not given."""
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
    """Update some blocks, all from the same point and with the multiplier y."""
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
    """Return a copy of w if rho has to be corrected after the next iteration, and otherwise None."""
    return state.w.copy() if state.balance.due() else None


def balance(state: ConstrainedState, before: Vector | None) -> None:
    """Correct rho if that is due, given w before the last iteration.

    The two residuals are Bw - b, relative to Ax, and the last steps times their strengths, relative to B'y.
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
    # rounding errors accumulate in the residual over the iterations
    state.residual = state.split.A.matvec(state.w) - state.b
    state.passes += 0.5
    image = state.image
    return Candidates([(state.x.copy(), image)], [(state.y.copy(), None), *gradient(state.model, image)])
