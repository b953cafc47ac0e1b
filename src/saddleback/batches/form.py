"""What a problem has to be for its neighbours with other weights to be solved in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..certificates.sides import dual_side, pair, primal_side
from ..common.arrays import Vector
from ..engine.clock import Clock
from ..engine.diagnosis import message
from ..functions.points import DensePoint
from ..functions.traits import SumOverRows
from ..model.model import Model
from ..problem import Problem
from ..result import Certificate, History, Result, Status
from ..tall.rows import in_order

Matrix = NDArray[np.float64]

TOGETHER = 32
"""Problems that are solved together: enough for fast products, few enough for their numbers to stay in the cache. It
does not depend on the number of threads, so that results do not either."""

LEAST_ROWS = 20
"""Smallest number of rows per column for which solutions with other weights are taken to be close."""

DENSE = 0.5
"""Smallest share of entries that a product with A reads; a matrix with fewer is sparse."""

MOST_COLUMNS = 400
"""Largest number of columns: a matrix of this size is solved for every problem and step."""


@dataclass(frozen=True)
class Form:
    """A dense problem with few columns, whose penalty is an L1 norm and a square.

    Attributes
    ----------
    A : the matrix.
    alpha : the weight of the absolute value of each column.
    quadratic : that of half of its square.
    """

    A: Matrix
    alpha: Vector
    quadratic: Vector


def form_of(model: Model) -> Form | None:
    """Return the parts of a problem; None if it has another form."""
    (rows, columns), traits, penalty = model.A.shape, model.A.traits, model.penalty_form
    elsewhere = traits.panels is not None or traits.device is not None or traits.holders is not None
    is_dense = traits.entries_known and traits.tasks == 1 and traits.stored >= DENSE * rows * columns
    if elsewhere or not is_dense or penalty is None or not isinstance(model.g, SumOverRows):
        return None
    if rows < LEAST_ROWS * columns or columns > MOST_COLUMNS or np.any(penalty.group_weight):
        return None
    left, right, quadratic, lower, upper = penalty.parameters
    free = np.all(lower == -np.inf) and np.all(upper == np.inf)
    return Form(model.A.entries(), right, quadratic) if free and np.array_equal(left, -right) else None


class Together(Protocol):
    """Solves some problems together."""

    def __call__(self, factors: Matrix, problems: list[Problem]) -> Iterator[Result | None]:
        """Yield the result of each problem; None for one that could not be certified."""
        ...


def in_batches(factors: Matrix, other: Callable[[Vector], Problem], together: Together) -> Iterator[Result | None]:
    """Yield the results of problems whose weights are multiplied by factors.

    ``other`` returns the problem for some factors.
    """
    parts = np.split(factors, range(TOGETHER, len(factors), TOGETHER))

    def solved(part: int) -> list[Result | None]:
        with np.errstate(all="ignore"):  # of this thread: what overflows fails its certificate
            return list(together(parts[part], [other(own) for own in parts[part]]))

    for results in in_order(solved, range(len(parts)), _native.thread_limit()):
        yield from results


def certificate_of(problem: Problem, x: Vector, y: Vector, u: Vector, z: Vector) -> tuple[Certificate, Vector]:
    """Return the certificate of x and y with known u = Ax and z = -A'y, and the feasible dual point behind it."""
    model, place, image = problem.model, DensePoint(x), DensePoint(u)
    dual = dual_side(model, y, place, image, z)
    return pair(model, primal_side(model, place, image), dual), dual.y


@dataclass(frozen=True)
class Certifier:
    """Makes results of points that a batch has found, if their certificates are within a tolerance."""

    tol: float
    clock: Clock

    def __call__(
        self, problem: Problem, x: Vector, y: Vector, u: Vector, z: Vector, passes: float, work: str
    ) -> Result | None:
        """Return the result for x and y with u = Ax and z = -A'y, after some work; None if it is not within tol."""
        certificate, y = certificate_of(problem, x, y, u, z)
        if not certificate.error <= self.tol:
            return None
        history = History()
        history.add(passes, self.clock.seconds(), certificate)
        return Result(
            x=problem.shape_x(DensePoint(x)),
            y=problem.shape_y(y),
            status=Status.OPTIMAL,
            message=message(Status.OPTIMAL, certificate, self.tol, work, "batch"),
            certificate=certificate,
            passes=passes,
            seconds=self.clock.seconds(),
            history=history,
            method="batch",
            settings={},
        )
