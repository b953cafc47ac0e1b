"""Write a problem for CVXPY: every function of the catalogue in the words of its formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    ByColumns,
    ElasticNet,
    EpsilonInsensitive,
    Equality,
    Expectile,
    Gamma,
    GroupElasticNet,
    GroupLInf,
    Hinge,
    Huber,
    HuberisedHinge,
    Interval,
    Isotonic,
    KullbackLeibler,
    L1Ball,
    Linear,
    LInf,
    Logistic,
    Loss,
    MulticlassHinge,
    Multinomial,
    NonNegative,
    Norm2,
    Nuclear,
    Pinball,
    Poisson,
    Simplex,
    SmoothedPinball,
    SparseGroup,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    SquaredL2,
    Term,
    TotalVariation1D,
    Tweedie,
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
    quantile = _each("quantile", term.quantile, x)
    return _sum(term, cp.maximum(cp.multiply(quantile, r), cp.multiply(quantile - 1.0, r)))


@written.register
def _(term: SmoothedPinball, x: Any) -> Written:
    r, delta = term.b - x, _each("delta", term.delta, x)
    above, below = _each("quantile", term.quantile, x), 1.0 - _each("quantile", term.quantile, x)
    value = cp.multiply(_inverse(delta), _huber(r, delta * above, cp.pos) + _huber(-r, delta * below, cp.pos))
    if np.any(delta == 0):
        value = value + cp.multiply(delta == 0, cp.maximum(cp.multiply(above, r), cp.multiply(-below, r)))
    return _sum(term, value)


@written.register
def _(term: Huber, x: Any) -> Written:
    return _sum(term, _huber(x - term.b, _each("delta", term.delta, x)))


@written.register
def _(term: EpsilonInsensitive, x: Any) -> Written:
    return _sum(term, cp.pos(cp.abs(x - term.b) - term.epsilon))


@written.register
def _(term: SquaredEpsilonInsensitive, x: Any) -> Written:
    return _sum(term, cp.square(cp.pos(cp.abs(x - term.b) - term.epsilon)) / 2)


@written.register
def _(term: Expectile, x: Any) -> Written:
    r, below = term.b - x, _each("expectile", term.expectile, x)
    squares = cp.multiply(below, cp.square(cp.pos(r))) + cp.multiply(1.0 - below, cp.square(cp.pos(-r)))
    return _sum(term, squares / 2)


@written.register
def _(term: Hinge, x: Any) -> Written:
    return _sum(term, cp.pos(1.0 - cp.multiply(term.labels, x)))


@written.register
def _(term: SquaredHinge, x: Any) -> Written:
    return _sum(term, cp.square(cp.pos(1.0 - cp.multiply(term.labels, x))) / 2)


@written.register
def _(term: HuberisedHinge, x: Any) -> Written:
    r, delta = 1.0 - cp.multiply(term.labels, x), _each("delta", term.delta, x)
    value = cp.multiply(_inverse(delta), _huber(r, delta, cp.pos))
    return _sum(term, value + cp.multiply(delta == 0, cp.pos(r)) if np.any(delta == 0) else value)


@written.register
def _(term: Logistic, x: Any) -> Written:
    return _sum(term, cp.logistic(-cp.multiply(term.labels, x)))


@written.register
def _(term: Poisson, x: Any) -> Written:
    return _sum(term, cp.exp(x) - cp.multiply(term.counts, x))


@written.register
def _(term: Multinomial, x: Any) -> Written:
    rows = cp.reshape(x, term.shape, order="C")
    totals = np.sum(term.counts, axis=1)
    return _sum(term, cp.multiply(totals, cp.log_sum_exp(rows, axis=1)) - _row_sums(term.counts, rows))


@written.register
def _(term: MulticlassHinge, x: Any) -> Written:
    rows = cp.reshape(x, term.shape, order="C")
    own = np.eye(rows.shape[1])[term.labels]
    return _sum(term, cp.max(1.0 - own + rows, axis=1) - _row_sums(own, rows))


@written.register
def _(term: Gamma, x: Any) -> Written:
    return _sum(term, cp.multiply(term.b, cp.exp(-x)) + x)


@written.register
def _(term: Tweedie, x: Any) -> Written:
    up, down = 2.0 - term.power, term.power - 1.0
    return _sum(term, cp.multiply(term.b / down, cp.exp(-down * x)) + cp.exp(up * x) / up)


@written.register
def _(term: KullbackLeibler, x: Any) -> Written:
    """Write logarithms of rows with a positive factor alone: CVXPY bounds the argument of any logarithm."""
    weight = term.scale * _each("sample_weight", 1.0 if term.sample_weight is None else term.sample_weight, x).ravel()
    flat, factor = _flat(x), weight * term.b.ravel()
    counted, logarithmic = np.flatnonzero(weight), np.flatnonzero(factor)
    if counted.size == 0:
        return Written()
    logarithms = factor[logarithmic] @ cp.log(flat[logarithmic]) if logarithmic.size else 0.0
    return Written(weight[counted] @ flat[counted] - logarithms, (flat[counted] >= 0,))


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
    if term.weights is None:
        return Written(term.alpha * (term.l1_ratio * cp.norm1(x) + (1.0 - term.l1_ratio) / 2 * cp.sum_squares(x)))
    each = term.l1_ratio * cp.abs(x) + (1.0 - term.l1_ratio) / 2 * cp.square(x)
    return Written(term.alpha * cp.sum(cp.multiply(_each("weights", term.weights, x), each)))


@written.register
def _(term: SparseGroup, x: Any) -> Written:
    entrywise = term.l1_ratio * cp.norm1(x) if term.l1_ratio > 0 else 0.0
    return Written(term.alpha * (entrywise + (1.0 - term.l1_ratio) * _norms(term, x, 2)))


@written.register
def _(term: GroupElasticNet, x: Any) -> Written:
    groups = partition(term.groups, x.shape[0])
    weights = _each("weights", groups.spread(term.weights_of(groups)), x)
    squares = (1.0 - term.l1_ratio) / 2 * cp.sum(cp.multiply(weights, cp.square(x)))
    return Written(term.alpha * (term.l1_ratio * _norms(term, x, 2) + squares))


@written.register
def _(term: ByColumns, x: Any) -> Written:
    parts = [written(own, x[columns]) for own, columns in zip(term.terms, term.columns, strict=True)]
    value = sum(part.value for part in parts)
    return Written(value, tuple(constraint for part in parts for constraint in part.constraints))


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


def _huber(x: Any, delta: Vector, part: Callable[[Any], Any] = lambda x: x) -> Any:
    """Return x^2 / 2 up to delta, then the line that goes on, for all x or a part of it, such as that above 0."""
    if np.all(delta == delta.flat[0]):
        return cp.huber(part(x), float(delta.flat[0])) / 2
    # CVXPY's function has a single delta
    return cp.multiply(delta**2 / 2, cp.huber(part(cp.multiply(_inverse(delta), x)), 1.0))


def _inverse(delta: Vector) -> Vector:
    """Return 1 / delta; 0 for 0."""
    return np.divide(1.0, delta, out=np.zeros_like(delta), where=delta > 0)


def _norms(term: SparseGroup | GroupElasticNet | GroupLInf, x: Any, order: int | str) -> Any:
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


def _row_sums(factors: Vector, rows: Any) -> Any:
    return cp.sum(cp.multiply(factors, rows), axis=1)


def _flat(x: Any) -> Any:
    return x if x.ndim == 1 else cp.reshape(x, (x.size,), order="C")
