"""Write a problem for CVXPY: every function of the catalogue in the words of its formula."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from ..common.arrays import Vector
from ..functions import (
    L1,
    SLOPE,
    Absolute,
    Box,
    ElasticNet,
    EpsilonInsensitive,
    Equality,
    GroupLInf,
    Hinge,
    Huber,
    Interval,
    Isotonic,
    L1Ball,
    Linear,
    LInf,
    Logistic,
    Loss,
    NonNegative,
    Norm2,
    Nuclear,
    Pinball,
    Poisson,
    Simplex,
    SparseGroup,
    Squared,
    SquaredHinge,
    SquaredL2,
    Term,
    TotalVariation1D,
    Zero,
)
from ..functions.group import partition
from ..functions.ordered import OrderedLoss
from ..functions.penalties import Sum
from ..functions.terms import broadcast_parameter
from ..operators import Above, Operator, ScaledIdentity, Tasks
from ..operators.stacked import parts_of

if TYPE_CHECKING:
    from ..problem import Problem

LARGEST_FROM_PRODUCTS = 10_000_000
"""Most entries of a matrix that is computed from the products of a linear operator, one product per column."""


class Written(NamedTuple):
    """A function for CVXPY: an expression, and the constraints of its domain."""

    value: Any = 0.0
    constraints: tuple[Any, ...] = ()


def write(problem: Problem) -> Any:
    """Return the problem for CVXPY; see ``Problem.to_cvxpy``."""
    names = [f"x[{j}]" for j in range(len(problem.terms))] if problem.is_list else ["x"]
    variables = [cp.Variable(shape, name=name) for shape, name in zip(problem.x_shapes, names, strict=True)]
    parts = [written(term, x) for term, x in zip(problem.terms, variables, strict=True)]
    rows = zip(*map(rows_of, parts_of(problem.model.A)), strict=True)  # one operator per block in each row
    for loss, shape, row in zip(problem.losses, problem.y_shapes, rows, strict=True):
        products = [product(operator, x) for operator, x in zip(row, variables, strict=True) if operator is not None]
        parts.append(written(loss, cp.reshape(sum(products), shape, order="C")))
    return cp.Problem(cp.Minimize(sum(part.value for part in parts)), [c for part in parts for c in part.constraints])


@singledispatch
def rows_of(operator: Operator) -> Sequence[Operator | None]:
    """Return the operators, one above the other, that make up an operator: one per loss, or None for zeros."""
    return [operator]


@rows_of.register
def _(operator: Above) -> Sequence[Operator | None]:
    return operator.rows


@singledispatch
def product(operator: Operator, x: Any) -> Any:
    """Return A x as a flat expression, for a variable in the shape of the user."""
    return matrix(operator) @ _flat(x)


@product.register
def _(operator: ScaledIdentity, x: Any) -> Any:
    return operator.scale * _flat(x)


@product.register
def _(operator: Tasks, x: Any) -> Any:
    columns = cp.reshape(x, (operator.single.shape[1], operator.tasks), order="C")
    return _flat(matrix(operator.single) @ columns)


def matrix(operator: Operator) -> Any:
    """Return the entries of an operator, as a dense or a sparse matrix."""
    rows, columns = operator.shape
    if not operator.traits.entries_known and rows * columns > LARGEST_FROM_PRODUCTS:
        raise ValueError(
            f"A has a LinearOperator of {rows} x {columns}, whose entries are not known: CVXPY needs its matrix, which "
            f"is computed from products up to {LARGEST_FROM_PRODUCTS:.0e} entries; give A as a matrix"
        )
    return operator.entries(compressed=operator.traits.stored < rows * columns / 2)


# --- functions of the catalogue --------------------------------------------------------------------------------------


@singledispatch
def written(term: Term, x: Any) -> Written:
    """Return the function of an expression x in the shape of its variable."""
    raise TypeError(
        f"{term.name} cannot be written for CVXPY, since only its value and prox are known: expected functions of the "
        "catalogue"
    )


@written.register
def _(term: Squared, x: Any) -> Written:
    return _sum(term, cp.square(x - term.b) / 2)


@written.register
def _(term: Absolute, x: Any) -> Written:
    return _sum(term, cp.abs(x - term.b))


@written.register
def _(term: Pinball, x: Any) -> Written:
    r = term.b - x
    return _sum(term, cp.maximum(term.quantile * r, (term.quantile - 1.0) * r))


@written.register
def _(term: Huber, x: Any) -> Written:
    return _sum(term, cp.huber(x - term.b, term.delta) / 2)


@written.register
def _(term: EpsilonInsensitive, x: Any) -> Written:
    return _sum(term, cp.pos(cp.abs(x - term.b) - term.epsilon))


@written.register
def _(term: Hinge, x: Any) -> Written:
    return _sum(term, cp.pos(1.0 - cp.multiply(term.labels, x)))


@written.register
def _(term: SquaredHinge, x: Any) -> Written:
    return _sum(term, cp.square(cp.pos(1.0 - cp.multiply(term.labels, x))) / 2)


@written.register
def _(term: Logistic, x: Any) -> Written:
    return _sum(term, cp.logistic(-cp.multiply(term.labels, x)))


@written.register
def _(term: Poisson, x: Any) -> Written:
    return _sum(term, cp.exp(x) - cp.multiply(term.counts, x))


@written.register
def _(term: Norm2, x: Any) -> Written:
    roots = 1.0 if term.sample_weight is None else np.sqrt(_each("sample_weight", term.sample_weight, x))
    return Written(term.scale * cp.norm(_flat(cp.multiply(roots, x - term.b)), 2))


@written.register
def _(term: Equality, x: Any) -> Written:
    return Written(constraints=(x == term.b,))


@written.register
def _(term: Interval, x: Any) -> Written:
    return _between(x, term.lower, term.upper)


@written.register
def _(term: Zero, x: Any) -> Written:
    return Written()


@written.register
def _(term: Linear, x: Any) -> Written:
    return Written(cp.sum(cp.multiply(_each("c", term.c, x), x)))


@written.register
def _(term: Box, x: Any) -> Written:
    return _between(x, term.lower, term.upper)


@written.register
def _(term: NonNegative, x: Any) -> Written:
    return Written(constraints=(x >= 0,))


@written.register
def _(term: L1, x: Any) -> Written:
    if term.weights is None:
        return Written(term.alpha * cp.norm1(x))
    return Written(term.alpha * cp.sum(cp.multiply(_each("weights", term.weights, x), cp.abs(x))))


@written.register
def _(term: SquaredL2, x: Any) -> Written:
    return Written(term.alpha / 2 * cp.sum_squares(x))


@written.register
def _(term: ElasticNet, x: Any) -> Written:
    return Written(term.alpha * (term.l1_ratio * cp.norm1(x) + (1.0 - term.l1_ratio) / 2 * cp.sum_squares(x)))


@written.register
def _(term: SparseGroup, x: Any) -> Written:
    entrywise = term.l1_ratio * cp.norm1(x) if term.l1_ratio > 0 else 0.0
    return Written(term.alpha * (entrywise + (1.0 - term.l1_ratio) * _norms(term, x, 2)))


@written.register
def _(term: Nuclear, x: Any) -> Written:
    return Written(term.alpha * cp.normNuc(cp.reshape(x, term.matrix, order="C")))


@written.register
def _(term: LInf, x: Any) -> Written:
    return Written(term.alpha * cp.norm_inf(x))


@written.register
def _(term: GroupLInf, x: Any) -> Written:
    return Written(term.alpha * _norms(term, x, "inf"))


@written.register
def _(term: L1Ball, x: Any) -> Written:
    return Written(constraints=(cp.norm1(x) <= term.radius,))


@written.register
def _(term: Simplex, x: Any) -> Written:
    return Written(constraints=(x >= 0, cp.sum(x) == term.total))


@written.register
def _(term: Isotonic, x: Any) -> Written:
    return Written(constraints=(x[1:] >= x[:-1],) if x.size > 1 else ())


@written.register
def _(term: SLOPE, x: Any) -> Written:
    return Written(term.alpha * cp.dotsort(cp.abs(_flat(x)), term.weights))


@written.register
def _(term: OrderedLoss, x: Any) -> Written:
    return Written(term.scale * cp.dotsort(_flat(x - term.b), term.scores_of(x.size)))


@written.register
def _(term: TotalVariation1D, x: Any) -> Written:
    return Written(term.alpha * cp.norm1(x[1:] - x[:-1]))


@written.register
def _(term: Sum, x: Any) -> Written:
    parts = [written(part, x) for part in term.terms]
    return Written(sum(part.value for part in parts), tuple(c for part in parts for c in part.constraints))


def _sum(loss: Loss, values: Any) -> Written:
    """Return scale * sum_i w_i values_i."""
    if loss.sample_weight is not None:
        values = cp.multiply(_each("sample_weight", loss.sample_weight, values), values)
    return Written(loss.scale * cp.sum(values))


def _norms(term: SparseGroup | GroupLInf, x: Any, order: int | str) -> Any:
    """Return sum_g weights_g ||x_g||, in one expression for all groups of a size: one per group takes CVXPY long."""
    rows = cp.reshape(x, (x.shape[0], x.size // x.shape[0]), order="C")
    groups = partition(term.groups, x.shape[0])
    weights = term.weights_of(groups)
    norms, counted = 0.0, weights > 0
    for size in np.unique(groups.sizes[counted]):
        alike = np.flatnonzero(counted & (groups.sizes == size))
        entries = cp.reshape(rows[groups.columns(alike)], (alike.size, size * rows.shape[1]), order="C")
        norms = norms + weights[alike] @ cp.norm(entries, order, axis=1)
    return norms


def _between(x: Any, lower: ArrayLike, upper: ArrayLike) -> Written:
    """Return bounds without those that are infinite, which CVXPY does not accept."""
    flat, low, high = _flat(x), _each("lower", lower, x).ravel(), _each("upper", upper, x).ravel()
    below, above = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
    bounds = [flat[below] >= low[below]] if below.size else []
    return Written(constraints=(*bounds, flat[above] <= high[above]) if above.size else tuple(bounds))


def _each(name: str, parameter: ArrayLike, x: Any) -> Vector:
    """Return a parameter with one value per entry of an expression, in its shape."""
    return np.array(broadcast_parameter(name, parameter, x.shape)).reshape(x.shape)


def _flat(x: Any) -> Any:
    return x if x.ndim == 1 else cp.reshape(x, (x.size,), order="C")
