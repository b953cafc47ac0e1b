"""The public face of intervals that contain every optimum; ``intervals.py`` finds them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..common.arrays import Vector
from ..common.cached import cached_property
from ..functions.points import DensePoint
from ..machine.threads import limited
from ..problem import Problem
from .intervals import Ends, Intervals

EVERY, NONE, UNDECIDED = "in every solution", "in none", "undecided at this gap"
DECISIONS = np.array([UNDECIDED, EVERY, NONE], dtype=object)


class Bounds:
    """Intervals that contain the value of every optimum.

    The coefficients are enclosed at once; groups, fitted values and residuals when they are first read.

    Attributes
    ----------
    lower, upper : ndarray or list of ndarray
        The ends of the interval of each coefficient, in the shape of x; infinite where nothing is known.
    groups : tuple of (ndarray, ndarray), list or None
        The ends of the interval of the norm of each group, in the order of the groups; None for a penalty without
        groups. A list with one entry per penalty if x is a list.
    fitted : tuple of (ndarray, ndarray) or list
        The ends of the interval of each fitted value, the entries of Ax, in the shape of y.
    residuals : tuple of (ndarray, ndarray), list or None
        Those of b - Ax; None for a loss without targets b.
    decided : ndarray or list of ndarray
        For each coefficient "in every solution" if its interval excludes 0, "in none" if it is 0 in every optimum, and
        otherwise "undecided at this gap".
    gap : float
        What the gap of the points can be at most, with rounding. It is infinite unless x and y are proved to be
        feasible: then the gap says nothing about the optimum.
    unique : bool
        Whether the optimum is proved to be a single vertex, as for linear programs and for losses and penalties with
        kinks alone.
    """

    def __init__(self, problem: Problem, intervals: Intervals) -> None:
        self._problem, self._intervals = problem, intervals
        self.unique = intervals.vertex is not None
        self.lower, self.upper = (problem.shape_x(DensePoint(end)) for end in intervals.columns)

    @cached_property
    def gap(self) -> float:
        """What the gap of the points can be at most, with rounding."""
        with exact():
            return self._intervals.gap

    @cached_property
    def decided(self) -> Any:
        """Whether each coefficient is in every solution, in none, or undecided."""
        return _split(decisions(*self._intervals.columns), self._problem)

    @cached_property
    def groups(self) -> Any:
        """The ends of the intervals of the norms of the groups."""
        with exact():
            found = self._intervals.group_norms()
        return found if self._problem.is_list else found[0]

    @cached_property
    def fitted(self) -> Any:
        """The ends of the intervals of the fitted values."""
        with exact():
            low, high = (self._problem.shape_y(end) for end in self._intervals.rows)
        return [Ends(*each) for each in zip(low, high, strict=True)] if self._problem.has_rows else Ends(low, high)

    @cached_property
    def residuals(self) -> Any:
        """The ends of the intervals of the residuals."""
        targets = [getattr(term, "b", None) for term in self._problem.losses]
        found = [
            None if b is None else Ends(np.nextafter(b - own.upper, -np.inf), np.nextafter(b - own.lower, np.inf))
            for b, own in zip(targets, self.fitted if self._problem.has_rows else [self.fitted], strict=True)
        ]
        return found if self._problem.has_rows else found[0]

    def count(self, decision: str) -> int:
        """Return the number of coefficients with a decision, one of the three texts of ``decided``."""
        blocks = self.decided if isinstance(self.decided, list) else [self.decided]
        return sum(int(np.count_nonzero(block == decision)) for block in blocks)

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.count(decision)} {decision}" for decision in (EVERY, NONE, UNDECIDED))
        return f"Bounds({counts}; gap={self.gap:.2g}{', a single optimum' if self.unique else ''})"

    def __getstate__(self) -> dict[str, Any]:
        known = {name: getattr(self, name) for name in ("gap", "decided", "groups", "fitted", "residuals")}
        return {name: value for name, value in vars(self).items() if not name.startswith("_")} | known


def bounds(problem: Problem, x: Any, y: Any) -> Bounds:
    """Return intervals that contain every optimum, given any primal and dual point.

    Parameters
    ----------
    problem : Problem
        The problem that the points are meant to solve.
    x : array-like or list of array-like
        Primal point, in the shape of the problem.
    y : array-like or list of array-like
        Dual point, in the shape of the data of the loss, such as ``result.y``.

    Returns
    -------
    Bounds
        Narrow if the gap of the points is small; always valid, also with the rounding of all operations.

    Examples
    --------
    >>> import numpy as np, saddleback as sb
    >>> problem = sb.Problem(sb.L1(1.0), np.eye(3), sb.Squared([3.0, -0.5, 1.5]))
    >>> result = sb.solve(problem, tol=1e-9)
    >>> sb.bounds(problem, result.x, result.y).decided.tolist()
    ['in every solution', 'in none', 'in every solution']
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem is {type(problem).__name__}: expected a saddleback.Problem")
    problem = problem.refreshed()
    model, point, dual = problem.model, problem.flatten_x(x), problem.flatten_y(y)
    if model.A.traits.holders is not None:
        raise TypeError("bounds need all columns: the columns of this problem are on several processes")
    with exact():
        return Bounds(problem, Intervals(model, point.vector(), dual))


def decisions(low: Vector, high: Vector) -> Any:
    """Return the decision for each coefficient from the ends of its interval."""
    kinds = ((low > 0) | (high < 0)) + 2 * ((low == 0) & (high == 0)).astype(np.int8)
    return DECISIONS[kinds]


@contextmanager
def exact() -> Iterator[None]:
    """Use all threads of this library and one of the BLAS, and accept infinite values, as in a solve."""
    with limited(None), np.errstate(all="ignore"):
        yield


def _split(values: Any, problem: Problem) -> Any:
    """Return values per coefficient in the shape of x."""
    ends = np.cumsum([int(np.prod(shape)) for shape in problem.x_shapes])
    parts = [part.reshape(shape) for part, shape in zip(np.split(values, ends[:-1]), problem.x_shapes, strict=True)]
    return parts if problem.is_list else parts[0]
