"""Fits of a linear model to far more samples than features, which are read in chunks (docs/scaling.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import saddleback as sb

from ..common.arrays import Vector
from ..tall.problem import TallProblem
from ..tall.rows import Rows
from ..tall.survey import Look, Survey, named_error
from .objective import Objective
from .path import coefficients
from .table import Table

LEAST_ROWS, LEAST_PER_COLUMN = 100_000, 200
"""Smallest number of samples in memory, and per feature, for which reading them a few times is expected to be cheaper
than a solve with all of them."""


@dataclass(frozen=True)
class TallFit:
    """Rows that are ready for a solve: one problem, or one per class.

    ``targets`` are the rows with the targets of each problem, and ``total`` is the weight of all samples.
    """

    objective: Objective
    targets: Sequence[Rows]
    total: float
    intercept: bool

    def solve(self, target: Rows, start: sb.Result | None, options: dict[str, Any]) -> sb.Result:
        """Return the solution of one problem, from a result for similar data or from that of a sample."""
        problem = self.problem(target)
        x0 = None if start is None else _from_given(start, target.n_columns, self.intercept)
        return sb.solve(problem, x0=x0, **options)

    def problem(self, target: Rows) -> TallProblem:
        """Return one problem."""
        loss = partial(_loss, self.objective, self.total)
        return TallProblem(self.objective.penalty_term(), target, loss, self.intercept)

    def kept(self) -> TallFit:
        """Return the fit itself: a decision reads no data."""
        return self

    @property
    def entries(self) -> int:
        """The number of entries of X that a decision would read: none."""
        return 0

    def decided(self, k: int, result: sb.Result) -> None:
        """Return nothing: rows in chunks are not read again to decide which coefficients are in every solution."""

    def multipliers(self, results: list[sb.Result]) -> list[Vector]:
        """Return the multipliers of the constraints: there are none."""
        return []


def _from_given(start: sb.Result, n_features: int, intercept: bool) -> Any:
    """Return the point of a result as a start; None if it has other columns."""
    coef, constant = coefficients(start)
    if coef.shape != (n_features,):
        return None
    return [coef, constant] if intercept else coef


def _loss(objective: Objective, total: float, target: NDArray[Any], sample_weight: Vector | None) -> Any:
    return objective.loss_term(target, sample_weight, total)


def surveyed(rows: Rows, objective: Objective, intercept: bool, seed: int, labelled: bool) -> Survey:
    """Return what is known of rows after the first reading, which a solve with the same seed uses again."""
    rule = TallProblem(sb.Zero(), rows, partial(_loss, objective, 1.0), intercept).sample(seed)
    with named_error(rows):
        return rows.survey(Look(rule, labelled, rows.checked))


def lacking(objective: Objective, n_features: int, constraints: Any, device: Any) -> str:
    """Return what a fit to rows in chunks does not have, of what a model asks for; empty if it has all."""
    asked = {
        "constraints": constraints is not None,
        "groups that overlap": objective.overlapping,
        f"penalty={objective.penalty!r}, which is not convex": not objective.convex,
        "a penalty on more than the single coefficients or groups": bool(objective.further_terms((n_features,))),
        "loss='sqrt', which is no sum over samples": objective.loss == "sqrt",
        f"loss={objective.loss!r}, one problem for all classes": objective.joint,
        "device": device is not None,
    }
    return ", ".join(name for name, is_asked in asked.items() if is_asked)


def pays(table: Table, y: NDArray[Any]) -> bool:
    """Return whether samples in memory are so many that a fit in chunks is expected to be cheaper."""
    n, p = table.shape
    return table.dense and y.ndim == 1 and n >= max(LEAST_ROWS, LEAST_PER_COLUMN * p)


@dataclass(frozen=True)
class OneAgainstTheRest:
    """Signs and weights from classes: +1 for one of the classes, -1 for the others."""

    positive: Any
    class_weight: tuple[tuple[Any, float], ...] = ()

    def __call__(self, target: NDArray[Any], weight: Vector | None) -> tuple[NDArray[Any], Vector | None]:
        """Return the signs and the weights of some rows."""
        signs = np.where(target == self.positive, 1.0, -1.0)
        if self.class_weight:
            factors = np.zeros(target.shape)
            for label, factor in self.class_weight:
                factors[target == label] = factor
            weight = factors if weight is None else weight * factors
        return signs, weight
