"""The regularisation path: one problem and many alphas, each solved from an extrapolation of the last two solutions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..common.arrays import Vector
from ..common.checks import LARGEST_PRODUCT, finite, scalar, shown
from ..engine.interrupts import Interrupts
from ..engine.options import Options
from ..engine.session import Session
from ..functions.points import DensePoint
from ..machine.threads import limited
from ..places.torch import open_device
from ..problem import Problem
from ..result import Result, Status
from .alpha_max import Threshold, threshold
from .gram_path import on_gram_matrix
from .vertex_path import along_vertices

REACH = 2.0
"""Maximum length of the extrapolation, relative to the step between the last two solutions."""


ENDED = (Status.INTERRUPTED, Status.TIME_LIMIT)
"""How a solve ends that leaves no time for the next ones."""

MOST_ALPHAS = 1_000_000
"""Maximum number of alphas on the default grid; a larger number is taken for a mistake."""


def path(
    penalty: Any,
    A: Any,
    loss: Any,
    alphas: ArrayLike | None = None,
    n_alphas: int = 100,
    eps: float = 1e-3,
    **options: Any,
) -> list[Result]:
    """Solve a problem for many alphas, the largest first, each from an extrapolation of the last two solutions.

    Parameters
    ----------
    penalty, A, loss : object
        As in ``Problem``. Each value replaces the alpha of the penalty; in a list, of all penalties that have one. The
        alpha of a sum is the sum of those of its terms, which keep their proportions.
    alphas : array-like, optional
        The values, in any order; by default ``alpha_max * np.geomspace(1, eps, n_alphas)``, from the smallest alpha
        with x = 0 downwards.
    n_alphas : int, default 100
        Number of the default values.
    eps : float, default 1e-3
        The last default value relative to the first.
    **options : dict
        Options of ``solve``, for every value; ``x0`` and ``y0`` for the first. ``time_limit`` is for all together.

    Returns
    -------
    list of Result
        One per value, with its certificate and with the value as ``settings["alpha"]``. If a solve is interrupted, a
        callback returns True, or the time limit ends a solve, its result is the last. Ctrl-C interrupts the current
        solve, or the next one if none is running.

    Examples
    --------
    >>> import numpy as np, saddleback as sb
    >>> results = sb.path(sb.L1(1.0), np.eye(3), sb.Squared([3.0, -0.5, 1.0]), alphas=[1.0, 2.0], tol=1e-12)
    >>> [(result.settings["alpha"], round(float(result.x[0]), 5)) for result in results]
    [(2.0, 1.0), (1.0, 2.0)]
    """
    problem = Problem(penalty, A, loss).columnar()
    if not any(term.has_alpha() for term in problem.terms):
        raise ValueError(f"penalty={penalty!r} has no alpha that a path could change: expected a penalty with one")
    x0, y0 = options.pop("x0", None), options.pop("y0", None)
    first, session = None, Session(Options.of(options))
    if alphas is None:
        with limited(session.team.threads(session.options.threads)):
            first = threshold(problem)
        alphas = grid(first.alpha, n_alphas, eps)
    return along(problem, alphas, x0, y0, session, first)


def along(
    problem: Problem, alphas: ArrayLike, x0: Any, y0: Any, session: Session, first: Threshold | None = None
) -> list[Result]:
    """Solve a problem for many alphas, the largest first; x0 and y0 are the start of the first solve.

    ``first`` is a solution at the largest alpha, for a start that is not given.
    """
    values = _descending(alphas)
    anywhere = x0 is None and y0 is None
    if first is not None:
        x0 = problem.shape_x(DensePoint(first.x)) if x0 is None else x0
        y0 = problem.shape_y(first.y) if y0 is None else y0
    if session.options.device is not None:
        problem = problem.placed(open_device(session.options.device))  # once for all alphas
    trusted = False
    with session, Interrupts(session.team) as interrupts:
        results = _all_at_once(problem, values, session.options, interrupts) if anywhere else []
        if results and first is not None and not np.array_equal(problem.flatten_x(results[0].x).vector(), first.x):
            # there are several solutions at the first alpha, and this is the one to begin with
            results[0] = session.solve(problem.with_alpha(values[0]), x0, y0, alpha=float(values[0]))
        for alpha in values[len(results) :]:
            if results:
                x0, y0 = _start(results[-2:], alpha), None
            result = session.solve(problem.with_alpha(alpha), x0, y0, trusted, alpha=float(alpha))
            trusted = bool(results) and _is_near(result.x, x0.x, session.options.tol)
            results.append(result)
            if result.status in ENDED or session.stopped:
                break
    return results


def _all_at_once(problem: Problem, alphas: Vector, options: Options, interrupts: Interrupts) -> list[Result]:
    """Return results for the first of the alphas that need no solve for each: all, some, or none."""
    return on_gram_matrix(problem, alphas, options) or along_vertices(problem, alphas, options, interrupts)


def _start(last: list[Result], alpha: float) -> Result:
    """Return the start for an alpha: the line through the last two solutions, extrapolated to this alpha.

    Solutions of a piecewise quadratic problem move along straight lines between the alphas at which a coefficient
    becomes zero or nonzero. A coefficient that would change its sign is set to 0.
    """
    if len(last) == 1:
        return last[0]
    before, now = (result.settings["alpha"] for result in last)
    if before == now or abs(alpha - now) > REACH * abs(now - before):
        return last[1]
    x = _ahead(last[0].x, last[1].x, (alpha - now) / (now - before))
    return replace(last[1], x=x)


def _ahead(before: Any, now: Any, share: float) -> Any:
    if isinstance(now, list):
        return [_ahead(*ends, share) for ends in zip(before, now, strict=True)]
    ahead = now + share * (now - before)
    ahead[ahead * now <= 0] = 0.0
    return ahead


def _is_near(x: Any, start: Any, tol: float) -> bool:
    """Return whether a start was equal to the solution up to ``tol``; then the next start may be a solution too."""
    if isinstance(x, list):
        return all(_is_near(*ends, tol) for ends in zip(x, start, strict=True))
    return bool(abs(x - start).max() <= tol * abs(x).max())


def grid(largest: float, n_alphas: int, eps: float) -> Vector:
    """Return the default values, from the largest downwards."""
    if isinstance(n_alphas, bool) or not isinstance(n_alphas, (int, np.integer)) or not 1 <= n_alphas <= MOST_ALPHAS:
        raise ValueError(
            f"n_alphas={shown(n_alphas)}: expected an integer that is at least 1 and at most {MOST_ALPHAS}"
        )
    if not 0 < scalar("eps", eps) < 1:
        raise ValueError(f"eps={eps}: expected a number between 0 and 1, the last alpha relative to the first")
    if largest == 0:
        raise ValueError(
            "alpha_max is 0: the columns without a penalty fit the loss perfectly, and x = 0 for every alpha; "
            "give alphas to solve for some all the same"
        )
    return largest * np.geomspace(1.0, eps, n_alphas)


def _descending(alphas: ArrayLike) -> Vector:
    values = finite("alphas", alphas, LARGEST_PRODUCT)
    if values.ndim != 1 or not np.all(values > 0):
        found = f"shape {values.shape}" if values.ndim != 1 else f"the value {values.min()}"
        raise ValueError(f"alphas has {found}: expected a list of positive numbers")
    return np.sort(values)[::-1]
