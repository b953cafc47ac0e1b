"""The interface to HiGHS, the simplex code that scipy ships.

It states a linear program, and the two programs that prove that it has no solution.

HiGHS treats bounds and costs of 1e20 as infinite, drops entries below 1e-9 and has absolute tolerances. Therefore it
gets every program in canonical units, whatever the units of the user are, and its answer is scaled back exactly.
"""

from __future__ import annotations

import math
import time
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from ..common.arrays import Indices, Vector
from ..model.model import Model
from .program import LinearProgram, as_linear_program, at_hand

LARGE_DATA = 1e12
"""Size of bounds above which all of them are scaled."""

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

TIGHTEST, LOOSEST = 1e-10, 1e-9
"""Smallest tolerance that HiGHS accepts, and largest tolerance that is passed to it."""

MARGIN = 1e-3
"""Tolerance of HiGHS relative to that of the run."""

STATES = {0: "optimal", 1: "limit", 2: "infeasible", 3: "unbounded", 4: "undecided"}


class Program(NamedTuple):
    """A linear program with its matrix in CSC format, in its own units.

    The solution of the user's program is 2^columns x and 2^rows y, where (x, y) is that of this one.
    """

    bounds: LinearProgram
    A: Any
    rows: Indices
    columns: Indices


class Answer(NamedTuple):
    """The answer of HiGHS: how it ended, a vertex x and its dual y (in our sign) if any, its iterations and time."""

    state: str
    x: Vector | None
    y: Vector | None
    iterations: int
    seconds: float


def pays(model: Model) -> bool:
    """Return whether HiGHS should solve a linear program: A is in memory and of moderate size."""
    return _is_small(model) and in_range(stated(model))


def fits(model: Model) -> bool:
    """Return whether a problem is a linear program of a size for HiGHS."""
    return _is_small(model) and as_linear_program(model) is not None


def _is_small(model: Model) -> bool:
    return at_hand(model.A) and model.A.traits.stored * min(model.A.shape) <= MOST_WORK


def stated(model: Model) -> Program:
    """Return the linear program that a model is, in units that do not depend on those of the user."""
    p = as_linear_program(model)
    assert p is not None
    A = model.A.entries(compressed=True).tocoo()
    of_rows, of_columns = model.balanced_units
    A.data = np.ldexp(A.data, of_rows[A.row] + of_columns[A.col])
    cost = np.ldexp(p.cost, of_columns)
    lower, upper = np.ldexp(p.lower, -of_columns), np.ldexp(p.upper, -of_columns)
    row_lower, row_upper = np.ldexp(p.row_lower, of_rows), np.ldexp(p.row_upper, of_rows)
    target, price = _unit(lower, upper, row_lower, row_upper), int(np.frexp(np.abs(cost).max(initial=0.0))[1])
    bounds = LinearProgram(
        np.ldexp(cost, -price), *(np.ldexp(each, -target) for each in (lower, upper, row_lower, row_upper))
    )
    return Program(bounds, sparse.csc_matrix(A), of_rows + price, of_columns + target)


def conflict(program: Program) -> Program:
    """Return the elastic program, which always has a solution: min sum of s + t, row_lower <= Ax + s - t <= row_upper.

    If the value is positive, the dual solution proves that the constraints cannot all hold.
    """
    p, n = program.bounds, program.A.shape[1]
    below, above = np.isfinite(p.row_lower), np.isfinite(p.row_upper)
    slack = sparse.identity(p.row_lower.size, format="csc")
    A = sparse.hstack([program.A, slack[:, below], -slack[:, above]], format="csc")
    extra = A.shape[1] - n
    bounds = LinearProgram(
        np.concatenate([np.zeros(n), np.ones(extra)]),
        np.concatenate([p.lower, np.zeros(extra)]),
        np.concatenate([p.upper, np.full(extra, np.inf)]),
        p.row_lower,
        p.row_upper,
    )
    return Program(bounds, A, program.rows, np.concatenate([program.columns, np.zeros(extra, dtype=np.int64)]))


def falling(program: Program) -> Program:
    """Return the program of directions, which always has a solution: min c'd over the recession cone and a cube."""
    p = program.bounds
    bounds = LinearProgram(
        p.cost,
        np.where(np.isfinite(p.lower), 0.0, -1.0),
        np.where(np.isfinite(p.upper), 0.0, 1.0),
        np.where(np.isfinite(p.row_lower), 0.0, -np.inf),
        np.where(np.isfinite(p.row_upper), 0.0, np.inf),
    )
    return program._replace(bounds=bounds)


def _unit(*bounds: Vector) -> int:
    """Return the exponent by which to divide bounds: that of the largest, if they are all small or some are huge."""
    largest = max(float(np.abs(each[np.isfinite(each)]).max(initial=0.0)) for each in bounds)
    return 0 if largest == 0 or 1.0 <= largest <= LARGE_DATA else math.frexp(largest)[1]


def in_range(program: Program) -> bool:
    """Return whether a program is within the range of HiGHS."""
    p, A = program.bounds, program.A
    data = np.concatenate([p.cost, p.lower, p.upper, p.row_lower, p.row_upper])
    entries = np.abs(A.data[A.data != 0])
    small = entries.size and (entries.min() < 1e-8 or entries.max() > 1e14)
    return not small and bool(np.all(np.abs(data[np.isfinite(data)]) < INFINITE))


def run(program: Program, tol: float, seconds: float = LONGEST) -> Answer:
    """Return the answer of HiGHS for a program within some seconds, solved to a small part of a tolerance."""
    begin = time.perf_counter()
    p, A, rows, columns = program
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
    return Answer(state, np.ldexp(found.x, columns), np.ldexp(y, rows), int(found.nit), taken)


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
