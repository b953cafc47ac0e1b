"""Problems with optima that are known exactly: they are built backwards, from small integers and powers of two.

x* and y* come first. Columns are integers, and their products with y* are exact. The penalty then gets weights, and the
loss targets, for which -A'y* is a slope at x*, and y* one at Ax*. So x* is an optimum, without any rounding, and it
remains one in other units: rows, columns and the objective times powers of two. Equal and dependent columns give
further optima, also without rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import saddleback as sb

LOSSES: dict[str, Callable[..., Any]] = {
    "Squared": lambda b, w, unit: sb.Squared(b, sample_weight=w / unit**2),
    "Absolute": lambda b, w, unit: sb.Absolute(b, sample_weight=w / unit),
    "Pinball": lambda b, w, unit: sb.Pinball(b, 0.75, sample_weight=w / unit),
    "Huber": lambda b, w, unit: sb.Huber(b, 2.0 * unit, sample_weight=w / unit**2),
    "EpsilonInsensitive": lambda b, w, unit: sb.EpsilonInsensitive(b, 0.5 * unit, sample_weight=w / unit),
}

STRAIGHT = ("Absolute", "Pinball", "EpsilonInsensitive")


@dataclass(frozen=True)
class Known:
    """A problem with optima, one per row of ``optima``, and a dual optimum."""

    loss: str
    A: np.ndarray
    b: np.ndarray
    weight: np.ndarray
    penalty: np.ndarray
    box: float
    optima: np.ndarray
    y: np.ndarray
    row_unit: np.ndarray
    column_unit: np.ndarray

    @property
    def problem(self) -> sb.Problem:
        """The problem, as a user states it."""
        penalty = sb.L1(1.0, weights=self.penalty)
        bounds = self.box / self.column_unit
        return sb.Problem(
            penalty if self.box == np.inf else penalty + sb.Box(-bounds, bounds),
            self.A,
            LOSSES[self.loss](self.b, self.weight, self.row_unit),
        )

    def in_units(self, rows: np.ndarray, columns: np.ndarray, objective: float) -> Known:
        """Return the same problem with rows, columns and the objective times powers of two."""
        return replace(
            self,
            A=self.A * rows[:, None] * columns,
            b=self.b * rows,
            weight=self.weight * objective,
            penalty=self.penalty * columns * objective,
            optima=self.optima / columns,
            y=self.y / rows * objective,
            row_unit=self.row_unit * rows,
            column_unit=self.column_unit * columns,
        )


def known(rng: np.random.Generator, free: int = 0) -> Known:
    """Return a random problem; with ``free`` columns without a penalty, beside a few others."""
    loss = str(rng.choice(list(LOSSES)))
    count = int(rng.integers(1, 8))
    vertex = loss in STRAIGHT and rng.random() < 0.5  # no entry is in a corner by chance
    support = int(rng.integers(0, count + 1))
    m = int(rng.integers(3, 12)) + int(rng.integers(1, 3)) * free + support * vertex
    dual = LOSSES[loss](np.zeros(m), np.ones(m), np.ones(m)).bind((m,)).of
    y = np.clip(rng.integers(-3, 4, m) / 4.0, dual.lower, dual.upper)
    if vertex:
        y = np.where(rng.random(m) < 0.5, dual.lower, dual.upper)
        y[: free + support] = rng.choice([-0.125, 0.125], free + support)
    y[0] = 0.125  # inside of all domains

    columns, penalty, x = [], [], []
    density = rng.choice([0.0, 0.05, 0.3, 1.0])
    pivots = np.flatnonzero(np.isin(np.abs(y), [0.125, 0.25, 0.5, 1.0]))  # dividing by these is exact
    for _ in range(free):
        column = rng.integers(-2, 3, m).astype(float) * (rng.random(m) < density)
        column[rng.integers(m)] += 1.0
        if columns and np.any(y == 0) and rng.random() < 0.1:  # nearly the same as another column
            column = columns[-1].copy()
            column[rng.choice(np.flatnonzero(y == 0))] += 2.0 ** -rng.integers(3, 30)
        row = int(rng.choice(pivots))
        column[row] -= column @ y / y[row]
        columns.append(column)
        penalty.append(0.0)
        x.append(float(rng.integers(-3, 4)))
    box = float(rng.choice([np.inf, 2.0, 3.0]))
    for k in range(count):
        column = rng.integers(-2, 3, m).astype(float) * (rng.random(m) < rng.choice([0.3, 1.0]))
        if vertex and k < support:
            column[0] += 1.0 - 2.0 * (column @ y > 0)  # so that its product with y is not 0
        z = -float(column @ y)
        at_end = z != 0 and box < np.inf and rng.random() < 0.2 and not (vertex and k < support)
        used = z != 0 and (k < support if vertex else rng.random() < 0.5) and not at_end
        columns.append(column)
        x.append(
            np.sign(z) * box if at_end else np.sign(z) * float(rng.integers(1, int(min(box, 4.0)))) if used else 0.0
        )
        beyond = 0.0 if used else float(rng.choice([0.25, 0.5, 1.0] if vertex else [0.0, 0.25, 0.5, 1.0]))
        penalty.append(abs(z) / 2 if at_end else abs(z) + beyond)
        if penalty[-1] == 0.0:
            penalty[-1] = 0.25
    x = np.array(x)
    if box < np.inf:
        x[:free] = np.clip(x[:free], -1.0, 1.0)  # free columns have no price for a bound
    others: list[np.ndarray] = []
    for _ in range(0 if vertex else int(rng.choice([0, 0, 1, 2]))):  # copies, which share what their original has
        j, sign = int(rng.integers(len(columns))), float(rng.choice([-1.0, 1.0]))
        if abs(x[j]) == box:
            continue  # it has too small a weight for any other value
        columns.append(sign * columns[j])
        penalty.append(penalty[j])
        x = np.append(x, 0.0)
        moves = (x[j], 0.5 * x[j]) if penalty[j] > 0 else (x[j] - 1.0, 0.5)
        for moved in moves:
            other = x.copy()
            other[j] -= moved
            other[-1] += sign * moved
            others.append(other)
    if free > 2 and not vertex and rng.random() < 0.5:  # a sum of two columns
        columns.append(columns[0] + columns[1])
        penalty.append(0.0)
        x = np.append(x, 0.0)
        others.append(x + np.concatenate([[-0.5, -0.5], np.zeros(x.size - 3), [0.5]]))
    A = np.column_stack(columns)
    optima = np.array([x, *(np.append(other, np.zeros(x.size - other.size)) for other in others)])
    optima = optima[np.all(np.abs(optima) <= box, axis=1)]

    at_slope = np.where(y < 0, dual.left, dual.right) + dual.quadratic * y
    beyond = rng.integers(int(vertex), 3, m) * (
        np.where(y >= dual.upper, 1.0, 0.0) - np.where(y <= dual.lower, 1.0, 0.0)
    )
    between = np.where((y == 0) & (dual.quadratic == 0), dual.left + (dual.right - dual.left) * 0.5, at_slope)
    b = A @ x - (between + beyond)
    ones = np.ones(m)
    return Known(loss, A, b, ones, np.array(penalty), box, optima, y, ones, np.ones(x.size))


def uncoupled(rng: np.random.Generator, free: int) -> Known:
    """Return a problem with one entry per row and column, in which a norm over all columns sees the longest alone."""
    x = rng.integers(1, 4, free + 1).astype(float)
    penalty, ones = np.append(np.zeros(free), 1.0), np.ones(free + 1)
    A = np.eye(free + 1)
    return Known("Squared", A, x + penalty, ones, penalty, np.inf, x[None], -penalty, ones, ones)


def random_units(rng: np.random.Generator, size: int, largest: int) -> np.ndarray:
    """Return powers of two, of which some are equal."""
    return 2.0 ** rng.integers(-largest, largest + 1, size)


@dataclass(frozen=True)
class KnownProgram:
    """min cost'x with x >= 0 and lower <= Ax <= upper, its optima, one per row, and a dual optimum."""

    A: np.ndarray
    cost: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    optima: np.ndarray
    y: np.ndarray

    @property
    def problem(self) -> sb.Problem:
        """The program, as a user states it."""
        return sb.Problem(sb.Linear(self.cost) + sb.NonNegative(), self.A, sb.Interval(self.lower, self.upper))

    def in_units(self, rows: np.ndarray, columns: np.ndarray, objective: float) -> KnownProgram:
        """Return the same program with rows, columns and the objective times powers of two."""
        return KnownProgram(
            self.A * rows[:, None] * columns,
            self.cost * columns * objective,
            self.lower * rows,
            self.upper * rows,
            self.optima / columns,
            self.y / rows * objective,
        )


def known_program(rng: np.random.Generator) -> KnownProgram:
    """Return a random program; half of them have a vertex whose rows and columns are in no corner by chance."""
    m, n = int(rng.integers(1, 9)), int(rng.integers(1, 12))
    vertex, size = rng.random() < 0.5, int(rng.integers(0, min(m, n) + 1))
    A = rng.integers(-3, 4, (m, n)).astype(float) * (rng.random((m, n)) < rng.choice([0.4, 1.0]))
    x, y = rng.integers(0, 4, n).astype(float), rng.integers(-2, 3, m).astype(float)
    if vertex:
        x[:size], x[size:] = rng.integers(1, 4, size), 0.0
        y[:size], y[size:] = rng.choice([-2.0, -1.0, 1.0], size), 0.0
    cost = -(A.T @ y) + np.where(x > 0, 0.0, rng.integers(int(vertex), 3, n))
    optima = [x]
    if rng.random() < 0.3:  # a copy of a column at the same cost
        j = int(rng.integers(n))
        A, cost, x = np.column_stack([A, A[:, j]]), np.append(cost, cost[j]), np.append(x, 0.0)
        other = x.copy()
        other[[j, -1]] = x[[-1, j]]
        optima = [x, other]
    u = A @ x
    below, above = (rng.integers(int(vertex), 3, m) for _ in range(2))
    lower = np.where(y < 0, u, np.where(rng.random(m) < 0.2, -np.inf, u - below))
    upper = np.where(y > 0, u, np.where(rng.random(m) < 0.2, np.inf, u + above))
    equal = (y != 0) & (rng.random(m) < 0.3)
    return KnownProgram(A, cost, np.where(equal, u, lower), np.where(equal, u, upper), np.array(optima), y)
