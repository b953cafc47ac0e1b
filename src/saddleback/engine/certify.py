"""The certificate of any point, with or without a dual point."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..certificates.certificate import certified
from ..certificates.probes import probe_certificate
from ..common.arrays import Vector
from ..common.checks import SQUARABLE
from ..functions.points import DensePoint
from ..functions.traits import is_smooth
from ..machine.threads import limited
from ..operators.deferred_points import image
from ..problem import Problem
from ..result import Certificate
from .solve import solve

ENOUGH = 1e-6
"""Error up to which the gradient of a smooth loss is taken as the dual point."""

SEARCH_TOL = 1e-8
"""Tolerance of the solve that looks for a dual point."""

SEARCH_PASSES = 5_000
"""Pass limit of that solve."""


def certify(problem: Problem, x: Any, y: Any = None) -> Certificate:
    """Return the certificate of any points, such as those of another library.

    Parameters
    ----------
    problem : Problem
        The problem that the points are meant to solve.
    x : array-like or list of array-like
        Primal point, in the shape of the problem.
    y : array-like, optional
        Dual point, in the shape of the data of the loss: a subgradient of the loss at Ax. It is moved into the domain
        of the dual and, if the penalty allows it, scaled until it is feasible. By default y is the gradient at Ax, if
        the loss is smooth and this proves x to be within 1e-6 of an optimum. Otherwise the problem is solved, starting
        from x, to 1e-8 or for 5000 passes, and y is the dual point of that solution.

    Returns
    -------
    Certificate
        What x and y say of the optimum: bounds on it where the certificate is ``proved`` and ``attained``.

    Examples
    --------
    >>> import numpy as np, saddleback as sb
    >>> problem = sb.Problem(sb.L1(1.0), np.eye(3), sb.Absolute([3.0, -0.5, 1.0], scale=2.0))
    >>> round(sb.certify(problem, [3.0, 0.0, 1.0]).gap, 6)
    0.5
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem is {type(problem).__name__}: expected a saddleback.Problem")
    with limited(None), np.errstate(all="ignore"):  # as in a solve: a point far away has values of inf
        return _certified(problem.refreshed(), x, y)


def _certified(problem: Problem, x: Any, y: Any) -> Certificate:
    if y is not None:
        return _certificate(problem, x, problem.flatten_y(y))
    if is_smooth(problem.model.g):
        u = image(problem.model.A, problem.flatten_x(x)).vector()
        found = _certificate(problem, x, problem.model.g.subgradient(u))
        if found.error <= ENOUGH:
            return found
    problem.flatten_x(x, "x", SQUARABLE)  # refuses entries that are too large for a solve to start from
    solution = solve(problem, x0=x, tol=SEARCH_TOL, max_passes=SEARCH_PASSES)
    return _certificate(problem, x, problem.flatten_y(solution.y))


def _certificate(problem: Problem, x: Any, y: Vector) -> Certificate:
    gap = certified(problem.model, problem.flatten_x(x), DensePoint(y))
    probe_certificate(problem.model, gap)
    return gap.certificate
