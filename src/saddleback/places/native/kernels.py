"""The compiled kernels."""

from __future__ import annotations

import numpy as np

from ... import _native
from ...common.arrays import Indices, Vector
from ...functions.normal_form import CompiledProx, LogisticEntropy, NormalForm, PiecewiseParameters
from ...model.model import Model
from ...operators.above import Above
from ...operators.contract import Operator
from ...operators.dense import Dense
from ...operators.sparse import Compressed, Transposed
from ...operators.stacked import leaves, parts_of
from ...steps.strengths import Strengths
from ..array_steps import dual_half, existing
from ..contract import Exchange, Iterate, PureIterate


class NativeBlockKernel:
    """The block method on dense and column-compressed matrices, with the proxes of the catalogue fused in."""

    name = "native"

    def __init__(self, model: Model, lazy: bool, exchange: Exchange | None = None) -> None:
        self.model = model
        self.lazy = lazy
        self.exchange = exchange
        self.fused = model.loss_form is not None
        self.kernel = make_kernel(model)

    def sweep(self, draws: Indices, strengths: Strengths, extrapolation: float, at: Iterate) -> None:
        if self.fused:
            draws = np.ascontiguousarray(draws)
            sides = strengths.primal, strengths.dual
            vectors = at.x, at.y, at.u, at.averages.x, at.averages.y
            self.kernel.sweep(draws, *sides, extrapolation, *vectors, lazy=self.lazy, exchange=self.exchange)
            return
        change = np.empty_like(at.u)
        for drawn in draws:
            self.kernel.primal_step(existing(self.model, drawn), strengths.primal, at.x, at.y, change)
            if self.exchange is not None:
                self.exchange(change)
            dual_half(self.model.g_star, strengths, extrapolation, change, at)


class NativePureCDKernel:
    """PURE-CD in the compiled kernel; the cost is proportional to the entries that an iteration touches."""

    name = "native"

    def __init__(self, model: Model) -> None:
        self.kernel = make_kernel(model)

    def sweep(self, draws: Indices, strengths: Strengths, theta: Vector, at: PureIterate) -> None:
        self.kernel.sweep_pure(
            np.ascontiguousarray(draws), strengths.primal, strengths.dual, theta,
            at.x, at.memory, at.y, at.u, at.averages.x, at.averages.y,
        )  # fmt: skip


def readable(A: Operator) -> bool:
    """Return whether the core can read an operator: dense and sparse matrices, side by side or above each other."""
    return all(isinstance(part, Dense | Compressed | Transposed) for part in leaves(A))


def matrices(A: Operator) -> list[_native.Matrix]:
    """Return the matrices side by side that make up an operator that the core can read, with contiguous columns."""
    return [part.native for part in parts_of(A) if isinstance(part, Dense | Compressed | Transposed | Above)]


def make_kernel(model: Model) -> _native.Kernel:
    """Return the compiled kernel of a problem that the core accepts."""
    penalty = model.penalty_form
    assert penalty is not None
    proxes = penalty.compiled_proxes()
    callables = [(own.start, own.stop, prox.address, prox.data, prox.takes_data) for own, prox in proxes]
    return _native.Kernel(*columns_and_penalty(model), row_loss(model), callables)


def columns_and_penalty(model: Model) -> tuple[list[_native.Matrix], Indices, Indices, PiecewiseParameters, Vector]:
    """Return the arguments with which every kernel begins: matrices, blocks, slopes and group weights."""
    penalty = model.penalty_form
    assert penalty is not None
    blocks = model.blocks
    return matrices(model.A), blocks.start, blocks.order, penalty.parameters, penalty.group_weight


def row_loss(model: Model) -> _native.RowLoss:
    """Return the compiled loss of a problem; a zero loss if it has none, for kernels without dual steps."""
    match model.loss_form:
        case None:
            return _native.RowLoss.coordinate(*PiecewiseParameters.zero(model.A.shape[0]).contiguous())
        case NormalForm((LogisticEntropy(labels, weight),)):
            return _native.RowLoss.logistic(labels, weight)
        case NormalForm((CompiledProx(rows, address, data, takes_data),)):
            return _native.RowLoss.callable(rows, address, data, takes_data)
        case form:
            return _native.RowLoss.coordinate(*form.parameters)
