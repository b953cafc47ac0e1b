"""Constraints on the coefficients of a linear model, as rows of its problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import saddleback as sb

from ..common.arrays import Vector
from ..common.checks import real


def _differences(n: int) -> Any:
    return sparse.diags_array([-np.ones(n - 1), np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n), format="csr")


WORDS = {
    "sum-to-one": lambda n: sb.LinearConstraint(np.ones((1, n)), 1.0, 1.0),
    "zero-sum": lambda n: sb.LinearConstraint(np.ones((1, n)), 0.0, 0.0),
    "monotone": lambda n: sb.LinearConstraint(_differences(n), 0.0, np.inf),
    "decreasing": lambda n: sb.LinearConstraint(_differences(n), -np.inf, 0.0),
}
"""The constraints that have a name, for n coefficients; "monotone" is w_1 <= w_2 <= ... ."""


class Rows(NamedTuple):
    """The constraint lower <= C w <= upper with one bound per row, and its name in messages."""

    C: Any
    lower: Vector
    upper: Vector
    name: str

    def term(self, tasks: tuple[int, ...]) -> tuple[Any, Any]:
        """Return the matrix and the loss of the constraint, the same for every task."""
        low, high = (
            np.broadcast_to(bound.reshape(-1, *(1,) * len(tasks)), (bound.size, *tasks))
            for bound in (self.lower, self.upper)
        )
        return self.C, sb.Interval(low, high)


def as_rows(given: Any, names: Sequence[str] | None, n_features: int) -> list[Rows]:
    """Return what was given as ``constraints``: None, one constraint or a list of them, each an object or a word."""
    if given is None:
        return []
    several = list(given) if isinstance(given, (list, tuple)) else [given]
    if n_features == 1:  # a single coefficient is monotone
        several = [each for each in several if each not in ("monotone", "decreasing")]
    return [_rows(each, f"constraints[{i}]", names, n_features) for i, each in enumerate(several)]


def _rows(given: Any, name: str, names: Sequence[str] | None, n: int) -> Rows:
    constraint = _of_word(given, name, n) if isinstance(given, str) else given
    if all(hasattr(given, part) for part in ("A", "lb", "ub")):  # that of scipy.optimize
        constraint = sb.LinearConstraint(given.A, given.lb, given.ub)
    if not isinstance(constraint, sb.LinearConstraint):
        raise TypeError(
            f"{name} is {type(given).__name__}: expected sb.LinearConstraint(C, lower, upper) or one of {list(WORDS)}"
        )
    C = constraint.C
    if isinstance(C, Mapping):
        C = in_columns(C, name, names, n, 0.0)[None, :]
    if C.shape[1] != n:
        raise ValueError(f"{name} has {C.shape[1]} columns, but X has {n}: expected one column per feature")
    low, high = (np.broadcast_to(bound, C.shape[:1]) for bound in (constraint.lower, constraint.upper))
    return Rows(C, low, high, name if not isinstance(given, str) else f"{name} ({given!r})")


def _of_word(word: str, name: str, n: int) -> sb.LinearConstraint:
    if word not in WORDS:
        close = get_close_matches(word, WORDS, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(f"{name}={word!r} is not known{hint}: expected one of {list(WORDS)}, or a LinearConstraint")
    return WORDS[word](n)


def in_columns(values: Any, argument: str, names: Sequence[str] | None, n: int, missing: float) -> Vector:
    """Return one value per column: from a dict of some columns, one value per column, or one for all."""
    if not isinstance(values, Mapping):
        array = real(argument, values)
        if array.ndim > 1 or array.size not in (1, n):
            raise ValueError(f"{argument} has shape {array.shape}, but X has {n} columns: expected one value for each")
        return np.broadcast_to(array, (n,))
    if names is None:
        raise ValueError(f"{argument} has names of columns, but X has none: pass a DataFrame, or an array")
    found = np.full(n, missing)
    place = {name: i for i, name in enumerate(names)}
    for name, value in values.items():
        if name not in place:
            close = get_close_matches(str(name), place, n=1)
            hint = f": did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"{argument} has the column {name!r}, which X does not have{hint}")
        found[place[name]] = value
    return found


def check_feasible(constraints: Sequence[Rows], lower: Vector, upper: Vector) -> None:
    """Raise if no coefficients between two bounds satisfy all constraints, with the names of those that contradict."""
    nearest = np.clip(0.0, lower, upper)
    if all(np.all((rows.lower <= (u := rows.C @ nearest)) & (u <= rows.upper)) for rows in constraints):
        return
    matrices, losses = zip(*(rows.term(()) for rows in constraints), strict=True)
    result = sb.solve(sb.Problem(sb.Box(lower, upper), list(matrices), list(losses)))
    if result.status is not sb.Status.INFEASIBLE:
        return
    largest = max(float(np.max(np.abs(part))) for part in result.ray)
    involved = [
        f"{rows.name} in row{'s' * (places.size > 1)} {', '.join(map(str, places[:5]))}"
        for rows, part in zip(constraints, result.ray, strict=True)
        if (places := np.flatnonzero(np.abs(part) > 1e-6 * largest)).size
    ]
    bounded = np.any(np.isfinite(lower) | np.isfinite(upper))
    among = " and the bounds of the coefficients (lower, upper, positive)" if bounded else ""
    raise ValueError(f"no coefficients satisfy {' and '.join(involved)}{among}: relax one of them")
