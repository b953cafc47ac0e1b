"""Whether any point satisfies the constraints of a linear program, whatever it costs.

Where a linear program has no solution one side of it goes away for ever, and drags the other along. Without the
costs the constraints alone decide, and a few hundred passes tell what thousands do not: a point that satisfies them,
or a direction that proves that there is none.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .certificate import excluded
from .functions._base import Vector
from .functions.coordinate import Coordinate
from .linear_program import LinearProgram
from .methods import R2HPDHG, Start
from .problem import Model


class FeasibilitySearch:
    """A run of r2hpdhg on the constraints alone, as far as it was asked to go.

    Attributes
    ----------
    x : its point.
    passes : its work.
    """

    def __init__(self, model: Model, program: LinearProgram) -> None:
        free = np.zeros(program.cost.size)
        self.model = replace(model, f=Coordinate(free, free, free, program.lower, program.upper), linear_norm=0.0)
        self.method = R2HPDHG()
        start = Start(self.model.f.project(free), np.zeros(program.row_lower.size))
        self.state = self.method.init(self.model, start)

    @property
    def x(self) -> Vector:
        return self.state.x

    @property
    def passes(self) -> float:
        return self.state.passes

    def advance(self, passes: float) -> None:
        """Go on until so many passes were made in all."""
        while self.state.passes < passes:
            self.state.ripe = False
            self.state = self.method.advance(self.state, passes - self.state.passes)

    def excluded(self) -> float:
        """Return the size up to which the direction of y proves that there is no feasible point."""
        ((dx, dy),) = self.method.candidates(self.state).rays
        return excluded(self.model, np.zeros_like(dx), dy).primal
