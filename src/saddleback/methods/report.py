"""The report of a method: the choices that it made and the steps that it counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..common.rebuildable import stored


@stored
@dataclass(kw_only=True)
class Report:
    """Choices and counts of a method, reported as ``Result.settings``. A field that does not apply is None.

    Your own method may add fields in a subclass.

    Attributes
    ----------
    n_blocks, blocks_per_iteration : int
        J and K. J / K iterations make a pass; if both are None, one iteration does.
    rows_per_iteration : int
        Rows that an iteration updates, in methods that draw rows.
    step : str or float
        The rule of the step sizes, or the step size.
    sigma_rule : str
        Which of the published dual strengths is used.
    backend, dual : str
        The kernels, and whether they update y in all rows ("eager") or in those that an iteration needs ("lazy").
    primal_weight : float
        Current ratio between the step sizes of x and y, relative to that of the data.
    primal_regularisation, dual_regularisation : float
        Quadratic terms that were added to make the problem strongly convex.
    rho : float
        Current penalty parameter of an augmented Lagrangian.
    restarts, momentum_restarts, newton_steps, finish_steps : int
        Numbers of restarts and steps. ``finish_steps`` counts the steps of an interior point.
    working_set, working_set_columns, rows : int
        Blocks, columns and rows of the subproblem that the method works on.
    highs : str
        How HiGHS ended.
    continued_by : list of str
        Methods that continued from the point of this one.
    """

    n_blocks: int | None = None
    blocks_per_iteration: int | None = None
    rows_per_iteration: int | None = None
    step: str | float | None = None
    sigma_rule: str | None = None
    backend: str | None = None
    dual: str | None = None
    primal_weight: float | None = None
    primal_regularisation: float | None = None
    dual_regularisation: float | None = None
    rho: float | None = None
    restarts: int | None = None
    momentum_restarts: int | None = None
    newton_steps: int | None = None
    finish_steps: int | None = None
    working_set: int | None = None
    working_set_columns: int | None = None
    rows: int | None = None
    highs: str | None = None
    continued_by: list[str] | None = None

    @property
    def adapts(self) -> bool:
        """Whether the method adapts its step sizes, by restarts, by Newton steps or otherwise."""
        paced = self.primal_weight, self.newton_steps, self.momentum_restarts, self.rho, self.finish_steps
        return any(value is not None for value in paced)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that apply, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def updated(self, inner: Report) -> Report:
        """Return this report, updated by all fields that the report of an inner method has."""
        return replace(self, **inner.as_dict())
