"""The constraints of CVXPY as functions of the catalogue."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..common.arrays import Vector
from ..functions import Equality, Interval, L1Ball
from .affine import Affine, Reader
from .atoms import COUPLED, Move, Row, affine_argument, as_multiple, outermost_atoms, refusal, spread
from .blocks import Block


def constraint(reader: Reader, source: Any) -> Row:
    """Return a constraint as a term."""
    kind = type(source).__name__
    if kind not in ("Equality", "Zero", "Inequality", "NonPos", "NonNeg"):
        raise refusal(source, f"constraints of the kind {kind} are not in the catalogue; expected ==, <= and >=")
    expression = source.expr
    if not expression.is_affine():
        return _bounded(reader, source, expression)
    affine = reader.affine(expression)
    if kind in ("Equality", "Zero"):
        return between(affine, np.zeros(affine.size), np.zeros(affine.size))
    none = np.full(affine.size, np.inf)
    return (
        between(affine, 0.0 * affine.constant, none)
        if kind == "NonNeg"
        else between(affine, -none, np.zeros(affine.size))
    )


def _bounded(reader: Reader, source: Any, expression: Any) -> Row:
    """Return a bound on absolute values."""
    heads = list(outermost_atoms(expression))
    if len(heads) != 1 or type(heads[0]).__name__ not in ("abs", "norm_inf", "norm1"):
        raise refusal(
            source, "expected a constraint on an affine expression, or bounds on abs(...), norm_inf(...) or norm1(...)"
        )
    factor, least = as_multiple(source, expression, heads[0])
    affine, bound = affine_argument(reader, heads[0]), spread(heads[0], -least / factor)
    if np.any(bound < 0):
        raise refusal(source, "an absolute value cannot be negative")
    if type(heads[0]).__name__ == "norm1" and affine.size > heads[0].size:
        return _in_l1_ball(heads[0], affine, float(bound[0]))
    return between(affine, -bound, bound)


def _in_l1_ball(head: Any, affine: Affine, radius: float) -> Row:
    if head.size > 1 or np.any(affine.constant):
        raise refusal(head, "a bound on norm1 is known for a single norm of a linear expression only")
    found, move = affine.entries(), None
    if found is not None and np.all(np.abs(found.factors) == abs(found.factors[0])):
        penalty = L1Ball(radius / abs(float(found.factors[0])))
        move = Move(found.variable, partial(Block.add_coupled, index=found.places, penalty=penalty), COUPLED)
    return Row(L1Ball(radius), affine, move)


def between(affine: Affine, lower: Vector, upper: Vector) -> Row:
    """Return lower <= affine <= upper as a term."""
    low, high = lower - affine.constant, upper - affine.constant
    found, move = affine.entries(), None
    if found is not None:
        ends = np.sort([low / found.factors, high / found.factors], axis=0)
        move = Move(found.variable, partial(Block.add_bounds, index=found.places, lower=ends[0], upper=ends[1]))
    return Row(Equality(low) if np.array_equal(low, high) else Interval(low, high), affine, move)
