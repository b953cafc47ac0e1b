"""A problem and the same problem in other units, which have to be judged alike: units do not exist.

Powers of two multiply rows, columns and the objective, so that nothing is rounded. Both problems are stated from the
numbers of ``functions.py``, which are rounded to float64 before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import singledispatch
from typing import Any

import numpy as np
from scipy import sparse

import saddleback as sb

from . import functions as own
from .certificate import Statement
from .functions import Array, Real

LARGEST = 40
"""Largest exponent of a unit of a row, a column or the objective."""

DECIDED = 2.0**-28
"""Share of the objective by which two values of the same point may differ: each is known to 2^-29 or better."""

STORAGES: dict[str, Callable[[Any], Any]] = {
    "F": np.asfortranarray,
    "C": np.ascontiguousarray,
    "csc": sparse.csc_array,
    "csr": sparse.csr_array,
}


@dataclass(frozen=True)
class Units:
    """Factors of the rows, of the columns of each block, and of the objective."""

    rows: Array
    columns: Sequence[Array]
    objective: Real

    @classmethod
    def drawn(cls, rng: np.random.Generator, statement: Statement) -> Units:
        """Return random units; entries of one group have the same."""

        def factors(together: Any) -> Array:
            exponents = rng.integers(-LARGEST, LARGEST + 1, together.size)
            return np.where(together == own.FIXED, Real(1), np.ldexp(Real(1), exponents[together]))

        objective = np.ldexp(Real(1), 2 * int(rng.integers(-LARGEST // 2, LARGEST // 2 + 1)))
        columns = [factors(penalty.together()) for penalty in statement.penalties]
        return cls(factors(statement.loss.together()), columns, objective)

    def statement(self, given: Statement) -> Statement:
        """Return a problem in these units."""
        blocks = zip(given.penalties, given.matrices, self.columns, strict=True)
        parts = [(penalty.in_units(units, self.objective), A * units) for penalty, A, units in blocks]
        matrices = [self.rows[:, None] * A for _, A in parts]
        return Statement([penalty for penalty, _ in parts], matrices, given.loss.in_units(self.rows, self.objective))

    def point(self, x: Sequence[Any], y: Any) -> tuple[list[Any], Any]:
        """Return a pair of points in these units."""
        there = [np.asarray(part / units, dtype=float) for part, units in zip(x, self.columns, strict=True)]
        return there, np.asarray(y / self.rows * self.objective, dtype=float)


def in_float64(given: Any) -> Any:
    """Return a statement or a function whose numbers are those of float64."""
    if isinstance(given, Statement):
        matrices = [_rounded(A) for A in given.matrices]
        return Statement([in_float64(each) for each in given.penalties], matrices, in_float64(given.loss))
    numbers = {each.name: getattr(given, each.name) for each in fields(given)}
    return replace(given, **{name: _rounded(v) for name, v in numbers.items() if isinstance(v, (np.ndarray, Real))})


def _rounded(values: Any) -> Any:
    return Real(float(values)) if np.ndim(values) == 0 else values.astype(float).astype(Real)


@singledispatch
def term(function: Any) -> Any:
    """Return the term of the library for a function of ``functions.py``."""
    raise NotImplementedError(type(function).__name__)


def plain(values: Any) -> Any:
    """Return numbers in float64."""
    return np.asarray(values, dtype=float)


def total(terms: Sequence[Any]) -> Any:
    """Return the sum of some terms."""
    return sum(terms[1:], start=terms[0]) if terms else sb.Zero()


@term.register
def _(function: own.Separable) -> Any:
    slope, curvature, linear, lower, upper = map(plain, vars(function).values())
    parts: list[Any] = []
    if np.any(slope):
        parts.append(sb.L1(1.0, slope))
    if np.any(curvature):
        parts.append(sb.ElasticNet(1.0, 0.0, curvature))
    if np.any(linear):
        parts.append(sb.Linear(linear))
    if np.any(np.isfinite(lower) | np.isfinite(upper)):
        parts.append(sb.Box(lower, upper))
    return total(parts)


@term.register
def _(function: own.Grouped) -> Any:
    parts = [sb.GroupL2(1.0, [g.tolist() for g in function.groups], plain(function.weights))]
    if np.any(function.slope):
        parts.append(sb.L1(1.0, plain(function.slope)))
    if np.any(function.linear):
        parts.append(sb.Linear(plain(function.linear)))
    return total([*parts, *([sb.NonNegative()] if function.sign else [])])


@term.register
def _(function: own.Nuclear) -> Any:
    linear = [sb.Linear(plain(function.linear).reshape(function.shape))] if np.any(function.linear) else []
    return total([sb.Nuclear(float(function.alpha), function.shape), *linear])


@term.register
def _(function: own.Squared) -> Any:
    return sb.Squared(plain(function.b), plain(function.strength))


@term.register
def _(function: own.Huber) -> Any:
    return sb.Huber(plain(function.b), plain(function.delta), plain(function.strength))


@term.register
def _(function: own.Tilted) -> Any:
    b, strength, epsilon = plain(function.b), plain(function.strength), plain(function.epsilon)
    if function.left == function.right:
        strength = strength * float(function.left)
        return sb.EpsilonInsensitive(b, epsilon, strength) if np.any(epsilon) else sb.Absolute(b, strength)
    return sb.Pinball(b, float(function.left), strength)


@term.register(own.Hinge)
@term.register(own.SquaredHinge)
@term.register(own.Logistic)
def _(function: own.Labels) -> Any:
    return getattr(sb, type(function).__name__)(plain(function.z), plain(function.strength))


@term.register
def _(function: own.Norm2) -> Any:
    return sb.Norm2(plain(function.b), plain(function.weight), float(function.scale))


@term.register
def _(function: own.Interval) -> Any:
    lower, upper = plain(function.lower), plain(function.upper)
    return sb.Equality(lower) if np.array_equal(lower, upper) else sb.Interval(lower, upper)


def problem(statement: Statement, storage: str) -> sb.Problem:
    """Return a problem for the library, with the matrices in one storage."""
    matrices = [STORAGES[storage](plain(A)) for A in statement.matrices]
    penalties = [term(penalty) for penalty in statement.penalties]
    if len(penalties) == 1:
        return sb.Problem(penalties[0], matrices[0], term(statement.loss))
    return sb.Problem(penalties, matrices, term(statement.loss))


def certified(problem: sb.Problem, statement: Statement, x: Sequence[Any], y: Any) -> sb.Certificate:
    """Return the certificate of flat points."""
    blocks = [plain(part).reshape(penalty.shape) for part, penalty in zip(x, statement.penalties, strict=True)]
    return sb.certify(problem, blocks if problem.is_list else blocks[0], plain(y))


def disagreement(
    here: sb.Certificate, there: sb.Certificate, objective: float, tol: float, same_points: bool = True
) -> str:
    """Return how the certificates of a problem and of its twin disagree; empty if they do not.

    Two pairs of points disagree if one of them proves what the other one refutes. For the same pair in both units all
    figures agree within the rounding that they state.
    """
    for one, factor, other in ((here, objective, there), (there, 1 / objective, here)):
        if one.proved and other.attained and one.dual_value * factor > other.primal_value:
            return f"the bound {one.dual_value * factor!r} is above the value {other.primal_value!r}"
    if not same_points:
        return ""
    scale = max(abs(here.primal_value), abs(here.dual_value))
    slack = DECIDED + 2 * (here.rounding + there.rounding)
    for name in ("primal_value", "dual_value"):
        first, second = getattr(here, name), getattr(there, name) / objective
        if first != second and not abs(first - second) <= slack * max(scale, here.floor):
            return f"{name} {first!r} and {second!r}"
    for name in ("relative_gap", "primal_infeasibility", "dual_infeasibility"):
        first, second = getattr(here, name), getattr(there, name)
        if first != second and not abs(first - second) <= slack + 1e-9 * max(first, second):
            return f"{name} {first!r} and {second!r}"
    if (here.proved, here.forgiven) != (there.proved, there.forgiven):
        return f"proved {here.proved} and {there.proved}, forgiven {here.forgiven} and {there.forgiven}"
    if here.within(tol) is not there.within(tol) and not abs(here.error - tol) <= slack + 1e-9 * tol:
        return f"within {tol}: {here.within(tol)} and {there.within(tol)}, error {here.error!r} and {there.error!r}"
    return ""


def refuted(here: sb.Result, there: sb.Result) -> str:
    """Return how the statuses of a problem and of its twin contradict each other; empty if they do not."""
    for one, other in ((here, there), (there, here)):
        certificate = other.certificate
        if one.status is sb.Status.INFEASIBLE and certificate.attained:
            return "INFEASIBLE, and a feasible point in other units"
        if one.status is sb.Status.UNBOUNDED and certificate.proved:
            return "UNBOUNDED, and a bound in other units"
        if one.ray is not None and other.status is sb.Status.OPTIMAL:
            return f"{one.status.name}, and OPTIMAL in other units"
    return ""
