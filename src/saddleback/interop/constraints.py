"""The constraints of CVXPY as functions of the catalogue."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..common.arrays import Vector
from ..functions import Equality, Interval
from .affine import Affine, Reader
from .atoms import Move, Row, affine_argument, as_multiple, outermost_atoms, refusal, spread
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
    if len(heads) != 1 or type(heads[0]).__name__ not in ("abs", "norm_inf"):
        raise refusal(source, "expected a constraint on an affine expression, or bounds on abs(...) or norm_inf(...)")
    factor, least = as_multiple(source, expression, heads[0])
    affine, bound = affine_argument(reader, heads[0]), spread(heads[0], -least / factor)
    if np.any(bound < 0):
        raise refusal(source, "an absolute value cannot be negative")
    return between(affine, -bound, bound)


def between(affine: Affine, lower: Vector, upper: Vector) -> Row:
    """Return lower <= affine <= upper as a term."""
    low, high = lower - affine.constant, upper - affine.constant
    found, move = affine.entries(), None
    if found is not None:
        ends = np.sort([low / found.factors, high / found.factors], axis=0)
        move = Move(found.variable, partial(Block.add_bounds, index=found.places, lower=ends[0], upper=ends[1]))
    return Row(Equality(low) if np.array_equal(low, high) else Interval(low, high), affine, move)
