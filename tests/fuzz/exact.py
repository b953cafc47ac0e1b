"""Optima in rational arithmetic of small problems that are linear programs: also fits with two slopes per row."""

from __future__ import annotations

from fractions import Fraction
from functools import singledispatch
from typing import Any

import exact_simplex
import numpy as np

import saddleback as sb

from . import functions as own
from .certificate import Statement

MOST_ROWS, MOST_COLUMNS = 8, 14
"""Sizes of the programs that are solved: the numbers of a table grow with every pivot."""


class Inexact(Exception):
    """A problem that is no linear program, or whose program has numbers that are rounded."""


def exact_float(value: Fraction) -> float:
    """Return a rational number that is one in float64."""
    number = float(value)
    if Fraction(number) != value:
        raise Inexact
    return number


def number(value: Any) -> float:
    """Return a number of float64, which may be infinite."""
    return float(value)


class Program:
    """Columns with costs and bounds, and rows with bounds."""

    def __init__(self) -> None:
        self.columns: list[tuple[Any, float, float, float]] = []
        self.bounds: list[tuple[float, float]] = []

    def column(self, entries: Any, cost: float, lower: float, upper: float) -> None:
        """Add a variable."""
        self.columns.append((entries, cost, lower, upper))

    def verdict(self) -> tuple[str, Fraction | None]:
        """Return the verdict of the simplex method."""
        if len(self.bounds) > MOST_ROWS or len(self.columns) > MOST_COLUMNS + 2 * len(self.bounds):
            raise Inexact
        A, costs, lower, upper = zip(*self.columns, strict=True)
        low, high = zip(*self.bounds, strict=True)
        found: tuple[str, Fraction | None] = exact_simplex.verdict(costs, lower, upper, np.column_stack(A), low, high)
        return found


@singledispatch
def add(function: Any, program: Program, A: Any) -> None:
    """Add the columns of a penalty, or the rows and further columns of a loss."""
    raise Inexact


@add.register
def _(function: own.Separable, program: Program, A: Any) -> None:
    if np.any(function.curvature):
        raise Inexact
    for j in range(A.shape[1]):
        slope, linear = Fraction(number(function.slope[j])), Fraction(number(function.linear[j]))
        lower, upper = number(function.lower[j]), number(function.upper[j])
        entries = np.asarray(A[:, j], dtype=float)
        if slope == 0:
            program.column(entries, float(linear), lower, upper)
        elif lower <= 0 <= upper:
            program.column(entries, exact_float(slope + linear), 0.0, upper)
            program.column(-entries, exact_float(slope - linear), 0.0, -lower)
        else:
            raise Inexact


@add.register
def _(function: own.Interval, program: Program, A: Any) -> None:
    program.bounds += list(zip(map(number, function.lower), map(number, function.upper), strict=True))


@add.register
def _(function: own.Tilted, program: Program, A: Any) -> None:
    epsilons = np.broadcast_to(function.epsilon, function.b.shape)
    for i, (b, strength, epsilon) in enumerate(zip(function.b, function.strength, epsilons, strict=True)):
        target, width = Fraction(number(b)), Fraction(number(epsilon))
        program.bounds.append((exact_float(target - width), exact_float(target + width)))
        row = np.eye(function.b.size)[i]
        for sign, side in ((-1.0, function.right), (1.0, function.left)):
            cost = exact_float(Fraction(number(strength)) * Fraction(number(side)))
            program.column(sign * row, cost, 0.0, np.inf)


@add.register
def _(function: own.Hinge, program: Program, A: Any) -> None:
    for i, (label, strength) in enumerate(zip(map(number, function.z), map(number, function.strength), strict=True)):
        program.bounds.append((1.0, np.inf) if label > 0 else (-np.inf, -1.0))
        program.column(label * np.eye(function.z.size)[i], strength, 0.0, np.inf)


def optimum(statement: Statement) -> tuple[str, Fraction | None] | None:
    """Return the verdict and the optimum of a problem; None if it is no small program with numbers of float64."""
    program = Program()
    if statement.matrices[0].shape[0] > MOST_ROWS or sum(A.shape[1] for A in statement.matrices) > MOST_COLUMNS:
        return None
    try:
        for penalty, A in zip(statement.penalties, statement.matrices, strict=True):
            add(penalty, program, A)
        add(statement.loss, program, statement.matrices[0])
        return program.verdict()
    except Inexact:
        return None


def refuted(
    status: sb.Status,
    certificate: sb.Certificate,
    exact: tuple[str, Fraction | None],
    tol: float,
    explained: float = 0.0,
) -> str:
    """Return what exact arithmetic refutes of a result; empty if it agrees.

    An objective up to ``explained`` counts as 0.
    """
    verdict, value = exact
    if status is sb.Status.UNBOUNDED and verdict == exact_simplex.INFEASIBLE and not certificate.attained:
        return ""  # equations that only rounding contradicts
    if status in (sb.Status.INFEASIBLE, sb.Status.UNBOUNDED) and status.name != verdict:
        return f"{status.name}, and {verdict} in exact arithmetic"
    if certificate.attained and verdict == exact_simplex.INFEASIBLE:
        return "a feasible point of a problem without one"
    if certificate.proved and verdict == exact_simplex.UNBOUNDED:
        return "a bound of a problem without one"
    if value is None:
        return ""
    if certificate.proved and Fraction(certificate.dual_value) > value:
        return f"the bound {certificate.dual_value!r} is above the optimum {float(value)!r}"
    if certificate.attained and Fraction(certificate.primal_value) < value:
        return f"the value {certificate.primal_value!r} is below the optimum {float(value)!r}"
    if status is sb.Status.OPTIMAL and certificate.attained and certificate.proved:
        scale = max(abs(certificate.primal_value), abs(certificate.dual_value), certificate.floor)
        if certificate.primal_value - float(value) > max(tol * (1 + 1e-6) * scale, explained):
            return f"OPTIMAL at {certificate.primal_value!r}, and the optimum is {float(value)!r}"
    return ""
