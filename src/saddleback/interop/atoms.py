"""The atoms of CVXPY as functions of the catalogue, each of an affine expression."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.affine_atom import AffAtom

from ..common.arrays import Indices, Vector
from ..functions import (
    SLOPE,
    Absolute,
    EpsilonInsensitive,
    Expectile,
    GroupL2,
    Huber,
    KullbackLeibler,
    LInf,
    Logistic,
    MulticlassHinge,
    Multinomial,
    Norm2,
    Nuclear,
    OrderedSum,
    Pinball,
    Poisson,
    SmoothedPinball,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    Term,
)
from .affine import Affine, Reader, replace
from .blocks import Block

ROUNDING = 1e-12
"""Largest difference, relative to the largest entry, of expressions that are multiples of each other."""

COUPLED, ENTRYWISE, SQUARE = range(3)
"""The order in which terms go to the penalty of a variable: fewer terms can be added to one that couples entries."""


@dataclass(frozen=True)
class Move:
    """How a term on entries of one variable becomes part of the penalty of that variable."""

    variable: int
    add: Callable[[Block], bool]
    order: int = ENTRYWISE


@dataclass(frozen=True)
class Row:
    """A function of the catalogue of A x; the constant of the affine expression is in the function."""

    term: Term
    affine: Affine
    move: Move | None = None


@dataclass(frozen=True)
class Parts:
    """A scalar expression: the sum of some terms and an affine expression."""

    rest: Affine
    rows: list[Row] = field(default_factory=list)

    def __add__(self, other: Parts) -> Parts:
        return Parts(self.rest + other.rest, self.rows + other.rows)


NOTHING = Affine({}, np.zeros(1))


def parts(reader: Reader, expression: Any) -> Parts:
    """Return a convex scalar expression as a sum of terms; raise a ValueError if it is none."""
    heads = list({id(head): head for head in outermost_atoms(expression)}.values())
    holders = [cp.Variable(head.shape) for head in heads]
    wide = Reader([*reader.variables, *holders])
    new = {id(head): holder for head, holder in zip(heads, holders, strict=True)}
    affine = wide.affine(replace(expression, new))
    first = len(reader.variables)
    total = Parts(Affine({j: A for j, A in affine.matrices.items() if j < first}, affine.constant))
    for j, head in enumerate(heads, first):
        if j in affine.matrices:
            total = total + _rule(head)(reader, head, np.ravel(_dense(affine.matrices[j])))
    return total


def outermost_atoms(expression: Any) -> Iterator[Any]:
    """Yield the atoms of which an expression is an affine function, and which are not affine themselves."""
    if expression.is_affine():
        return
    if not isinstance(expression, AffAtom):
        yield expression
        return
    for part in expression.args:
        yield from outermost_atoms(part)


def _rule(head: Any) -> Callable[[Reader, Any, Vector], Parts]:
    rule = RULES.get(type(head).__name__)
    if rule is None:
        raise refusal(head, f"{type(head).__name__} is not in the catalogue of losses and penalties")
    return rule


def refusal(expression: Any, reason: str) -> ValueError:
    """Return the error for an expression that cannot be read."""
    text = " ".join(str(expression).split())  # matrices are shown in several lines
    shown = text if len(text) <= 120 else text[:117] + "..."
    return ValueError(f"the expression {shown} cannot be read: {reason}")


def affine_argument(reader: Reader, head: Any, expression: Any = None) -> Affine:
    """Return the argument of an atom, or raise if it is not affine."""
    expression = head.args[0] if expression is None else expression
    if not expression.is_affine():
        raise refusal(head, "expected an atom of an affine expression")
    if expression.is_complex():
        raise refusal(head, "expected real numbers")
    return reader.affine(expression)


def _without_constant(head: Any, affine: Affine) -> Affine:
    if np.any(affine.constant):
        raise refusal(head, f"{type(head).__name__} is known for linear expressions only, and this one has a constant")
    return affine


# --- atoms that are sums over entries ---------------------------------------------------------------------------------


def _absolute(reader: Reader, head: Any, weights: Vector) -> Parts:
    weights, inner = spread(head, weights), head.args[0]
    if not inner.is_affine() and inner.is_nonneg():
        return parts(reader, cp.sum(cp.multiply(weights.reshape(inner.shape), inner)))
    affine = affine_argument(reader, head)
    found, move = affine.entries(), None
    if found is not None and not np.any(affine.constant):
        move = Move(
            found.variable, partial(Block.add_absolute, index=found.places, weight=weights * abs(found.factors))
        )
    return Parts(NOTHING, [Row(Absolute(-affine.constant, **_weighting(weights)), affine, move)])


def _sum_of_squares(reader: Reader, head: Any, weights: Vector) -> Parts:
    if not head.args[1].is_constant():
        raise refusal(head, "the denominator is not constant")
    return _squares(reader, head.args[0], spread(head, weights) / float(np.squeeze(head.args[1].value)))


def _power(reader: Reader, head: Any, weights: Vector) -> Parts:
    if float(np.squeeze(head.p.value)) != 2.0:
        raise refusal(head, "expected the power 2")
    return _squares(reader, head.args[0], weights)


def _squares(reader: Reader, inner: Any, weights: Vector) -> Parts:
    """Return the weighted squares of an affine expression, of its absolute value, norm, or positive part."""
    name = type(inner).__name__
    if inner.is_affine():
        return _affine_squares(reader.affine(inner), weights)
    is_absolute = name in ("abs", "norm1", "norm_inf") and inner.args[0].size == inner.size
    if is_absolute or (name in EUCLIDEAN and float(inner.p) == 2.0):
        return _squares(reader, inner.args[0], spread(inner, weights))
    affine = _positive_part(reader, inner)
    if affine is None:
        within = _argument_above_zero(inner)
        if within is None:
            raise refusal(inner, "expected the square of an affine expression, of a norm or of a positive part")
        return _beyond(reader, inner, within, 2.0 * weights, power=2)
    if np.any(affine.constant <= 0):
        return Parts(NOTHING, [Row(Expectile(affine.constant, 1.0, **_weighting(2.0 * weights)), -affine)])
    scaled = affine if np.all(affine.constant == 1) else affine.times(1.0 / affine.constant)
    loss = SquaredHinge(-np.ones(affine.size), **_weighting(2.0 * weights * affine.constant**2))
    return Parts(NOTHING, [Row(loss, scaled)])


def _affine_squares(affine: Affine, weights: Vector) -> Parts:
    found, move = affine.entries(), None
    # with a target it stays a loss: as a square and a linear term it would lack a constant, which is part of the gap
    if found is not None and not np.any(affine.constant) and _alike(curvature := 2.0 * weights * found.factors**2):
        add = partial(Block.add_square, index=found.places, curvature=float(curvature[0]))
        move = Move(found.variable, add, SQUARE)
    return Parts(NOTHING, [Row(Squared(-affine.constant, **_weighting(2.0 * weights)), affine, move)])


def _huber(reader: Reader, head: Any, weights: Vector) -> Parts:
    delta, positive = float(head.M.value), _positive_part(reader, head.args[0])
    if positive is not None:
        loss = SmoothedPinball(positive.constant, 1.0, delta, **_weighting(2.0 * delta * weights))  # of b - u
        return Parts(NOTHING, [Row(loss, -positive)])
    affine = affine_argument(reader, head)
    return Parts(NOTHING, [Row(Huber(-affine.constant, delta, **_weighting(2.0 * weights)), affine)])


def _logistic(reader: Reader, head: Any, weights: Vector) -> Parts:
    affine = _without_constant(head, affine_argument(reader, head))
    return Parts(NOTHING, [Row(Logistic(-np.ones(affine.size), **_weighting(weights)), affine)])


def _logarithm(reader: Reader, head: Any, weights: Vector) -> Parts:
    """Return c log(u) with c <= 0 as the Kullback-Leibler loss of the count 1 and the weight -c, plus c u."""
    affine = _without_constant(head, affine_argument(reader, head))
    loss = KullbackLeibler(np.ones(affine.size), **_weighting(-weights))
    return Parts(_inner(weights, affine), [Row(loss, affine)])


def _exponential(reader: Reader, head: Any, weights: Vector) -> Parts:
    affine = affine_argument(reader, head)
    loss = Poisson(np.zeros(affine.size), **_weighting(weights * np.exp(affine.constant)))
    return Parts(NOTHING, [Row(loss, affine)])


# --- maxima -----------------------------------------------------------------------------------------------------------


def _maximum(reader: Reader, head: Any, weights: Vector) -> Parts:
    if len(head.args) != 2:
        raise refusal(head, "expected the maximum of two expressions")
    first, second = (arg if arg.shape == head.shape else arg + np.zeros(head.shape) for arg in head.args)
    if first.is_affine() and second.is_affine():
        return _larger(reader.affine(first), reader.affine(second), weights)
    if first.is_affine():
        first, second = second, first
    if _is_zero(second):
        return _beyond(reader, head, first, weights)
    raise refusal(head, "expected the maximum of two affine expressions")


def _minimum(reader: Reader, head: Any, weights: Vector) -> Parts:
    if len(head.args) != 2 or not all(arg.is_affine() for arg in head.args):
        raise refusal(head, "expected the minimum of two affine expressions")
    wide = (arg if arg.shape == head.shape else arg + np.zeros(head.shape) for arg in head.args)
    first, second = (-reader.affine(arg) for arg in wide)
    return _larger(first, second, -weights)


def _larger(first: Affine, second: Affine, weights: Vector) -> Parts:
    """Return the weighted maxima of two affine expressions.

    With d the first minus the second, the maximum is the second plus the positive part of d. If the first is q d, it is
    the pinball loss of d with the quantile q.
    """
    difference = first + -second
    share, rest = _share(first, difference), NOTHING
    if share is None or not 0.0 <= share <= 1.0:
        share, rest = 1.0, _inner(weights, second)
    loss = Pinball(difference.constant, share, **_weighting(weights))  # of b - u
    return Parts(rest, [Row(loss, -difference)])


def _log_sum_exp(reader: Reader, head: Any, weights: Vector) -> Parts:
    """Return the loss of the first class, log sum_k exp(u_k) - u_0, plus u_0."""
    classes = _classes(head)
    affine = _without_constant(head, affine_argument(reader, head)).rows(classes.ravel())
    loss = Multinomial(np.zeros(len(classes)), classes.shape[1], **_weighting(weights))
    return Parts(_inner(weights, affine.rows(np.arange(len(classes)) * classes.shape[1])), [Row(loss, affine)])


def _max(reader: Reader, head: Any, weights: Vector) -> Parts:
    """Return the multiclass hinge of a class plus its entry; its constant is smaller by 1 than those of the others."""
    classes = _classes(head)
    affine = affine_argument(reader, head).rows(classes.ravel())
    constants = affine.constant.reshape(classes.shape)
    label = np.argmin(constants, axis=1)
    common = np.max(constants, axis=1, keepdims=True)
    if not np.array_equal(constants, common - np.eye(classes.shape[1])[label]):
        raise refusal(head, "expected constants that are equal, except for one in each maximum that is smaller by 1")
    loss = MulticlassHinge(label, classes.shape[1], **_weighting(weights))
    own = affine.rows(np.arange(len(classes)) * classes.shape[1] + label)
    return Parts(_inner(weights, own), [Row(loss, affine)])


def _classes(head: Any) -> Indices:
    """Return the entries of the argument of each maximum, one row per maximum; raise if a maximum has one entry."""
    found = members(head)
    if found[0].size < 2:
        raise refusal(head, "expected a maximum of at least two entries")
    return np.stack(found)


def _share(part: Affine, whole: Affine) -> float | None:
    """Return the q with part = q whole, or None if there is none."""
    size = whole.inner(whole)
    if size == 0:
        return None
    share = part.inner(whole) / size
    error = part + whole.times(-share)
    return share if error.inner(error) <= ROUNDING**2 * size else None


def _beyond(reader: Reader, head: Any, inner: Any, weights: Vector, power: int = 1) -> Parts:
    """Return the positive parts of absolute values minus constants, or half the squares of them."""
    heads = list(outermost_atoms(inner))
    if len(heads) != 1 or type(heads[0]).__name__ != "abs":
        raise refusal(head, "expected the positive part of an affine expression, or of abs(...) minus a constant")
    factor, least = as_multiple(head, inner, heads[0])
    if np.any(least > 0):
        raise refusal(head, "the constant that is subtracted from abs(...) is negative")
    affine, epsilon, weights = affine_argument(reader, heads[0]), -least / factor, weights * factor**power
    loss = EpsilonInsensitive if power == 1 else SquaredEpsilonInsensitive
    one = float(epsilon[0]) if _alike(epsilon) else epsilon
    return Parts(NOTHING, [Row(loss(-affine.constant, one, **_weighting(weights)), affine)])


def as_multiple(whole: Any, expression: Any, head: Any) -> tuple[Vector, Vector]:
    """Return factors and constants with expression = factors * head + constants, or raise if it is anything else."""
    holder = cp.Variable(head.shape)
    inside = Reader([holder, *expression.variables()]).affine(replace(expression, {id(head): holder}))
    found = inside.entries()
    if found is None or found.variable != 0 or not np.array_equal(found.places, np.arange(holder.size)):
        raise refusal(whole, f"expected {type(head).__name__}(...) times a number plus a constant")
    return found.factors, inside.constant


def _positive_part(reader: Reader, expression: Any) -> Affine | None:
    """Return the affine expression of which this is the positive part, or None if it is none."""
    inner = _argument_above_zero(expression)
    return None if inner is None or not inner.is_affine() else reader.affine(inner)


def _argument_above_zero(expression: Any) -> Any:
    """Return the expression of which this is the positive part, or None if it is none."""
    if type(expression).__name__ != "maximum" or len(expression.args) != 2:
        return None
    first, second = expression.args
    inner, zero = (second, first) if first.is_constant() else (first, second)
    return inner if _is_zero(zero) and inner.shape == expression.shape else None


# --- norms ------------------------------------------------------------------------------------------------------------


def _norm(reader: Reader, head: Any, weights: Vector) -> Parts:
    if float(head.p) != 2.0:
        raise refusal(head, "expected the norms with p = 1, 2 or inf")
    affine, groups = affine_argument(reader, head), members(head)
    if np.any(affine.constant):
        own = ((group, affine.rows(group), weight) for group, weight in zip(groups, weights, strict=True))
        return Parts(NOTHING, [Row(Norm2(-rows.constant, scale=float(w)), rows) for _, rows, w in own])
    term = GroupL2(1.0, [group.tolist() for group in groups], weights)
    found, move = affine.entries(), None
    if found is not None and all(_alike(np.abs(found.factors[group])) for group in groups):
        factors = [abs(found.factors[group[0]]) for group in groups]
        inside = [found.places[group] for group in groups]
        add = partial(Block.add_norms, groups=inside, weights=(weights * factors).tolist())
        move = Move(found.variable, add, COUPLED)
    return Parts(NOTHING, [Row(term, affine, move)])


def _largest(reader: Reader, head: Any, weights: Vector) -> Parts:
    affine = _without_constant(head, affine_argument(reader, head))
    own = zip((affine.rows(group) for group in members(head)), weights, strict=True)
    return Parts(NOTHING, [_coupled(rows, weight, LInf) for rows, weight in own])


def _nuclear(reader: Reader, head: Any, weights: Vector) -> Parts:
    affine = _without_constant(head, affine_argument(reader, head))
    return Parts(NOTHING, [_coupled(affine, weights[0], partial(Nuclear, shape=head.args[0].shape))])


def _sorted_sum(reader: Reader, head: Any, weights: Vector) -> Parts:
    given = np.ravel(_dense(head.args[1].value))
    return _ordered(reader, head, np.append(given, np.zeros(head.args[0].size - given.size)), weights[0])


def _sum_largest(reader: Reader, head: Any, weights: Vector) -> Parts:
    if getattr(head, "axis", None) is not None:
        raise refusal(head, "expected sum_largest of all entries, without an axis")
    return _ordered(reader, head, np.clip(float(head.k) - np.arange(head.args[0].size), 0.0, 1.0), weights[0])


def _ordered(reader: Reader, head: Any, scores: Vector, weight: float) -> Parts:
    """Return the ordered sum of an affine expression, or the sorted L1 norm if it is one of absolute values."""
    inner, falling = head.args[0], np.sort(scores)[::-1]
    if type(inner).__name__ == "abs":
        affine = _without_constant(head, affine_argument(reader, inner))
        return Parts(NOTHING, [_coupled(affine, weight, partial(SLOPE, falling))])
    affine = affine_argument(reader, head)
    return Parts(NOTHING, [Row(OrderedSum(-affine.constant, falling[::-1], float(weight)), affine)])


def _coupled(affine: Affine, weight: float, norm: Callable[[float], Any]) -> Row:
    found, move = affine.entries(), None
    if found is not None and _alike(found.factors):
        penalty = norm(float(weight * abs(found.factors[0])))
        move = Move(found.variable, partial(Block.add_coupled, index=found.places, penalty=penalty), COUPLED)
    return Row(norm(float(weight)), affine, move)


def _quadratic_form(reader: Reader, head: Any, weights: Vector) -> Parts:
    affine, matrix = affine_argument(reader, head), weights[0] * _dense(head.args[1].value)
    if np.count_nonzero(matrix) == np.count_nonzero(np.diag(matrix)):
        return _affine_squares(affine, np.diag(matrix))
    values, vectors = np.linalg.eigh(matrix)
    kept = values > values.size * np.finfo(float).eps * values[-1]
    root = (vectors[:, kept] * np.sqrt(values[kept])).T
    product = Affine({j: root @ A for j, A in affine.matrices.items()}, root @ affine.constant)
    return _affine_squares(product, np.ones(product.size))


# --- weights and axes -------------------------------------------------------------------------------------------------


def members(head: Any) -> list[Indices]:
    """Return the entries of the argument that belong to each entry of the result of an atom along an axis."""
    number = spread(head, np.arange(head.size))
    order = np.argsort(number, kind="stable")
    return np.split(order, np.cumsum(np.bincount(number, minlength=head.size))[:-1])


def spread(head: Any, values: Vector) -> Vector:
    """Return one value per entry of the argument of an atom, from those per entry of its result."""
    shape, axis = head.args[0].shape, getattr(head, "axis", None)
    if head.shape == shape:
        return values
    if axis is None:
        return np.full(head.args[0].size, values[0])
    axes = axis if isinstance(axis, tuple) else (axis,)
    kept = values.reshape([1 if d in axes else size for d, size in enumerate(shape)])
    return np.broadcast_to(kept, shape).ravel()


def _inner(weights: Vector, affine: Affine) -> Affine:
    """Return the scalar <weights, affine>."""
    matrices = {j: np.atleast_2d(weights @ A) for j, A in affine.matrices.items()}
    return Affine(matrices, np.array([weights @ affine.constant]))


def _weighting(weights: Vector) -> dict[str, Any]:
    return {"scale": float(weights[0])} if _alike(weights) else {"sample_weight": weights}


def _alike(values: Vector) -> bool:
    return bool(np.all(values == values[0]))


def _is_zero(expression: Any) -> bool:
    return bool(expression.is_constant() and not np.any(_dense(expression.value)))


def _dense(value: Any) -> Any:
    return value.toarray() if hasattr(value, "toarray") else np.asarray(value)


EUCLIDEAN = ("Pnorm", "PnormApprox", "pnorm")

RULES: dict[str, Callable[[Reader, Any, Vector], Parts]] = {
    "abs": _absolute,
    "norm1": _absolute,
    "quad_over_lin": _sum_of_squares,
    "QuadForm": _quadratic_form,
    "huber": _huber,
    "logistic": _logistic,
    "exp": _exponential,
    "log": _logarithm,
    "maximum": _maximum,
    "minimum": _minimum,
    "norm_inf": _largest,
    "log_sum_exp": _log_sum_exp,
    "max": _max,
    "normNuc": _nuclear,
    "dotsort": _sorted_sum,
    "sum_largest": _sum_largest,
    **dict.fromkeys(("Power", "PowerApprox", "power"), _power),
    **dict.fromkeys(EUCLIDEAN, _norm),
}
"""The atoms that can be read, by the name of their class; a class has other names in other versions of CVXPY."""
