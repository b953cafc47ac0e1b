"""The interface to HiGHS, the simplex code that scipy ships.

It states a linear program, and the two programs that prove that it has no solution.

HiGHS treats bounds and costs of 1e20 as infinite, drops entries below 1e-9 and has absolute tolerances. A program
outside of its range is first scaled by powers of 2.
"""

from __future__ import annotations

import time
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from ..common.arrays import Vector
from ..model.model import Model
from .program import LinearProgram, as_linear_program, at_hand

SMALL_ENTRY, LARGE_ENTRY = 1e-7, 1e9
"""Sizes of the entries of A beyond which rows and columns are scaled."""

LARGE_DATA = 1e12
"""Size of bounds and costs above which they are scaled."""

INFINITE = 1e19
"""Size of bounds and costs that HiGHS may treat as infinite."""

MOST_WORK = 10_000_000
"""Entries of A times its smaller side, up to which HiGHS is expected to be faster than r2hpdhg and the finish.
On random sparse programs, the worst for a simplex method, it is twice as fast at half of that, and 10 times slower at
twice."""

SMALL = 10_000
"""Entries of A up to which HiGHS runs in the thread of the caller, since a separate thread would cost more. Ctrl-C is
recorded meanwhile, and takes effect when HiGHS ends."""

LONGEST = 600.0
"""Seconds that HiGHS may take if there is no time limit. It cannot be stopped from outside."""

GRACE = 1.0
"""Seconds to wait for HiGHS after its time limit, which it checks only from time to time."""

ROUNDS = 6
"""Rounds of geometric scaling."""

TIGHTEST, LOOSEST = 1e-10, 1e-9
"""Smallest tolerance that HiGHS accepts, and largest tolerance that is passed to it."""

MARGIN = 1e-3
"""Tolerance of HiGHS relative to that of the run."""

STATES = {0: "optimal", 1: "limit", 2: "infeasible", 3: "unbounded", 4: "undecided"}


class Scaling(NamedTuple):
    """Powers of 2: x = columns * target * x', y = rows * price * y' for the solution (x', y') of the scaled program."""

    rows: Vector
    columns: Vector
    target: float
    price: float

    @property
    def plain(self) -> bool:
        """Whether it changes nothing."""
        return self.target == self.price == 1.0 and bool(np.all(self.rows == 1.0) and np.all(self.columns == 1.0))

    def applied(self, program: Program) -> Program:
        """Return the scaled program."""
        p, A = program.bounds, program.A
        if self.plain:
            return program
        bounds = LinearProgram(
            p.cost * self.columns / self.price,
            p.lower / self.columns / self.target,
            p.upper / self.columns / self.target,
            p.row_lower * self.rows / self.target,
            p.row_upper * self.rows / self.target,
        )
        return Program(bounds, sparse.csc_matrix(sparse.diags(self.rows) @ A @ sparse.diags(self.columns)))


class Program(NamedTuple):
    """A linear program with its matrix in CSC format, and its scaling; None to compute the scaling."""

    bounds: LinearProgram
    A: Any
    scale: Scaling | None = None


class Answer(NamedTuple):
    """The answer of HiGHS: how it ended, a vertex x and its dual y (in our sign) if any, its iterations and time."""

    state: str
    x: Vector | None
    y: Vector | None
    iterations: int
    seconds: float


def pays(model: Model) -> bool:
    """Return whether HiGHS should solve a linear program: A is in memory and of moderate size."""
    return at_hand(model.A) and model.A.traits.stored * min(model.A.shape) <= MOST_WORK and in_range(stated(model))


def stated(model: Model) -> Program:
    """Return the linear program that a model is."""
    bounds = as_linear_program(model)
    assert bounds is not None
    return Program(bounds, model.A.entries(compressed=True))


def conflict(program: Program) -> Program:
    """Return the elastic program, which always has a solution: min sum of s + t, row_lower <= Ax + s - t <= row_upper.

    Rows and columns are scaled geometrically first. If the value is positive, the dual solution proves that the
    constraints cannot all hold.
    """
    p, n = program.bounds, program.A.shape[1]
    rows, columns = _geometric(program.A)
    below, above = np.isfinite(p.row_lower), np.isfinite(p.row_upper)
    slack = sparse.diags(1.0 / rows, format="csc")
    A = sparse.hstack([program.A, slack[:, below], -slack[:, above]], format="csc")
    extra = A.shape[1] - n
    bounds = LinearProgram(
        np.concatenate([np.zeros(n), np.ones(extra)]),
        np.concatenate([p.lower, np.zeros(extra)]),
        np.concatenate([p.upper, np.full(extra, np.inf)]),
        p.row_lower,
        p.row_upper,
    )
    target = _unit(np.concatenate([p.lower / columns, p.upper / columns, p.row_lower * rows, p.row_upper * rows]))
    return Program(bounds, A, Scaling(rows, np.concatenate([columns, np.ones(extra)]), target, 1.0))


def falling(program: Program) -> Program:
    """Return the program of directions, which always has a solution: min c'd over the recession cone and a box.

    The box is the unit cube after rows and columns have been scaled geometrically.
    """
    p = program.bounds
    rows, columns = _geometric(program.A)
    largest = float(np.abs(p.cost * columns).max(initial=0.0))
    bounds = LinearProgram(
        p.cost,
        np.where(np.isfinite(p.lower), 0.0, -columns),
        np.where(np.isfinite(p.upper), 0.0, columns),
        np.where(np.isfinite(p.row_lower), 0.0, -np.inf),
        np.where(np.isfinite(p.row_upper), 0.0, np.inf),
    )
    return Program(bounds, program.A, Scaling(rows, columns, 1.0, largest or 1.0))


def scaling(program: Program) -> Scaling:
    """Return the scaling that brings a program into the range of HiGHS; ones if none is needed."""
    p, A = program.bounds, program.A
    rows, columns = np.ones(A.shape[0]), np.ones(A.shape[1])
    entries = np.abs(A.data[A.data != 0])
    if entries.size and (entries.min() < SMALL_ENTRY or entries.max() > LARGE_ENTRY):
        rows, columns = _geometric(A)
    target = _unit(np.concatenate([p.lower / columns, p.upper / columns, p.row_lower * rows, p.row_upper * rows]))
    return Scaling(rows, columns, target, _unit(p.cost * columns))


def _geometric(A: Any) -> tuple[Vector, Vector]:
    """Return scales of rows and columns that bring the logarithms of the entries close to 0, in alternation."""
    used = A.tocoo()
    used.eliminate_zeros()
    logs = np.log2(np.abs(used.data))
    rows, columns = np.zeros(A.shape[0]), np.zeros(A.shape[1])
    for _ in range(ROUNDS):
        rows = -_means(used.row, logs + columns[used.col], rows.size)
        columns = -_means(used.col, logs + rows[used.row], columns.size)
    return np.exp2(np.round(rows)).astype(np.float64), np.exp2(np.round(columns)).astype(np.float64)


def _means(places: Any, values: Vector, size: int) -> Vector:
    return np.bincount(places, values, size) / np.maximum(np.bincount(places, minlength=size), 1)


def _unit(values: Vector) -> float:
    """Return the power of 2 by which to divide data: the largest of them, if they are all small or some are huge."""
    finite = np.abs(values[np.isfinite(values)])
    largest = float(finite.max(initial=0.0))
    if largest == 0 or 1.0 <= largest <= LARGE_DATA:
        return 1.0
    return float(np.exp2(np.floor(np.log2(largest))))


def in_range(program: Program) -> bool:
    """Return whether the scaled program is within the range of HiGHS."""
    p, A, _ = scaling(program).applied(program)
    data = np.concatenate([p.cost, p.lower, p.upper, p.row_lower, p.row_upper])
    entries = np.abs(A.data[A.data != 0])
    small = entries.size and (entries.min() < 1e-8 or entries.max() > 1e14)
    return not small and bool(np.all(np.abs(data[np.isfinite(data)]) < INFINITE))


def run(program: Program, tol: float, seconds: float = LONGEST) -> Answer:
    """Return the answer of HiGHS for a program within some seconds, solved to a small part of a tolerance."""
    begin = time.perf_counter()
    scale = program.scale or scaling(program)
    p, A, _ = scale.applied(program)
    by_row = sparse.csr_matrix(A)
    equal = p.row_lower == p.row_upper
    above, below = (np.flatnonzero(np.isfinite(bound) & ~equal) for bound in (p.row_upper, p.row_lower))
    tolerance = float(np.clip(MARGIN * tol, TIGHTEST, LOOSEST))
    options = {
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
        "time_limit": float(seconds),
    }
    found = linprog(
        p.cost,
        sparse.vstack([by_row[above], -by_row[below]]) if above.size + below.size else None,
        np.concatenate([p.row_upper[above], -p.row_lower[below]]) if above.size + below.size else None,
        by_row[equal] if np.any(equal) else None,
        p.row_upper[equal] if np.any(equal) else None,
        np.column_stack([p.lower, p.upper]),
        "highs",
        options=options,
    )
    taken = time.perf_counter() - begin
    state = STATES[found.status]
    if found.x is None or found.status > 1 or not np.all(np.isfinite(found.x)):
        return Answer(state, None, None, int(found.nit), taken)
    # a marginal is the change of the optimum with its bound: minus a subgradient of the indicator
    y = np.zeros(A.shape[0])
    y[equal] = -found.eqlin.marginals
    np.subtract.at(y, above, found.ineqlin.marginals[: above.size])
    np.add.at(y, below, found.ineqlin.marginals[above.size :])
    x, y = found.x * scale.columns * scale.target, y * scale.rows * scale.price
    return Answer(state, x, y, int(found.nit), taken)


class Running:
    """A run of HiGHS, in a thread unless it is small, so that the clock and the keyboard can be checked meanwhile.

    HiGHS stops only at its time limit, which is always finite. A caller with the same limit waits for it there. After
    Ctrl-C, or in a run that was resumed under a shorter limit, HiGHS continues until its limit. The interpreter waits
    for it before it exits: a daemon thread that returns from HiGHS while the interpreter is being finalised aborts the
    process.
    """

    def __init__(self, program: Program, tol: float, seconds: float) -> None:
        self._answer: Answer | None = None
        self._error: Exception | None = None
        self._thread: Thread | None = None
        seconds = seconds if np.isfinite(seconds) else LONGEST
        self._end = time.perf_counter() + seconds
        if program.A.nnz <= SMALL:
            self._answer = run(program, tol, seconds)
        else:
            self._thread = Thread(target=self._work, args=(program, tol, seconds), daemon=False)
            self._thread.start()

    def _work(self, program: Program, tol: float, seconds: float) -> None:
        try:
            self._answer = run(program, tol, seconds)
        except Exception as error:  # raised by ``answer``
            self._error = error

    def answer(self, seconds: float) -> Answer | None:
        """Wait for the answer, and return None if it takes longer; near its time limit wait for HiGHS to end."""
        if self._thread is not None:
            left = self._end - time.perf_counter()
            self._thread.join(seconds if left > seconds else max(left, 0.0) + GRACE)
        if self._error is not None:
            raise self._error
        return self._answer
