"""Many problems with one matrix: other losses, other weights of the rows, or other alphas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..common.checks import finite
from ..common.checks import weights as checked_weights
from ..engine.interrupts import Interrupts
from ..engine.options import Options
from ..engine.session import Session
from ..functions import Loss
from ..problem import Problem
from ..result import Result, Status
from .path import along


def solve_many(
    problem: Problem,
    *,
    losses: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    alphas: ArrayLike | None = None,
    **options: Any,
) -> list[Result]:
    """Solve many problems that share their matrix, each with its own certificate.

    What depends on A alone is computed once, and every solve starts from the solution of a similar problem. Exactly one
    of ``losses``, ``weights`` and ``alphas`` says how the problems differ.

    Parameters
    ----------
    problem : Problem
        The problem from which the others differ.
    losses : sequence of losses, optional
        The loss of each problem, in the place of the loss of ``problem``; for a problem with a list of losses, one list
        per problem.
    weights : array-like of shape (problems, rows), optional
        The weights of the rows in each problem, such as the counts of a bootstrap. They multiply the ``sample_weight``
        of the loss.
    alphas : array-like, optional
        The alpha of each problem, in any order, as in ``path``.
    **options : dict
        Options of ``solve``, for every problem; ``x0`` and ``y0`` for the first solve.

    Returns
    -------
    list of Result
        One per problem, in the order in which they were given. If a solve is interrupted, or a callback returns True,
        the list ends with it; with ``alphas``, the solved ones are then the largest.

    Examples
    --------
    >>> import numpy as np, saddleback as sb
    >>> problem = sb.Problem(sb.L1(1.0), np.eye(3), sb.Squared([3.0, -0.5, 1.0]))
    >>> results = sb.solve_many(problem, weights=[[1.0, 1.0, 1.0], [2.0, 0.0, 1.0]], tol=1e-12)
    >>> [round(float(result.x[0]), 5) for result in results]
    [2.0, 2.5]
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem is {type(problem).__name__}: expected a saddleback.Problem")
    given = {"losses": losses, "weights": weights, "alphas": alphas}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise TypeError(f"solve_many got {' and '.join(named) or 'none'} of losses, weights and alphas: expected one")
    problem = problem.refreshed().columnar()
    x0, y0 = options.pop("x0", None), options.pop("y0", None)
    if alphas is not None:
        return _for_alphas(problem, alphas, x0, y0, options)
    others = _with_losses(problem, losses) if weights is None else _with_weights(problem, weights)
    results: list[Result] = []
    with Session(Options.of(options)) as session, Interrupts(session.team):
        if weights is not None and x0 is None:
            x0 = session.solve(problem, None, y0)  # the weights of most problems are close to those of this one
            y0 = None
        for other in others:
            result = session.solve(other, x0, y0)
            results.append(result)
            if result.status is Status.INTERRUPTED or session.stopped:
                break
            if weights is None:
                x0, y0 = result, None
    return results


def _for_alphas(problem: Problem, alphas: ArrayLike, x0: Any, y0: Any, options: dict[str, Any]) -> list[Result]:
    values = finite("alphas", alphas)
    results = along(problem, values, x0, y0, options)
    order = np.argsort(-values, kind="stable")[: len(results)]
    return [results[place] for place in np.argsort(order, kind="stable")]


def _with_losses(problem: Problem, losses: Any) -> Iterator[Problem]:
    if not isinstance(losses, (list, tuple)) or not losses:
        raise TypeError(f"losses is {type(losses).__name__}: expected a list with at least one loss")
    return (problem.with_loss(loss) for loss in losses)


def _with_weights(problem: Problem, weights: ArrayLike) -> Iterator[Problem]:
    loss = problem.loss
    if not isinstance(loss, Loss) or loss.shape is None:
        raise TypeError(f"weights: the loss is {type(loss).__name__}: expected one loss of the catalogue with weights")
    factors = checked_weights("weights", weights)
    if factors.ndim != 2 or factors.shape[1] != loss.shape[0] or not factors.shape[0]:
        raise ValueError(
            f"weights has shape {factors.shape}: expected one row per problem, with a weight for each of the "
            f"{loss.shape[0]} rows of A"
        )
    return (problem.with_loss(_weighted(loss, own)) for own in factors)


def _weighted(loss: Loss, factors: Any) -> Loss:
    """Return a loss whose weights are multiplied by factors, one per row."""
    assert loss.shape is not None
    by_row = factors.reshape(-1, *[1] * (len(loss.shape) - 1))
    before = 1.0 if loss.sample_weight is None else loss.sample_weight
    other = copy(loss)
    other._weigh(np.broadcast_to(by_row * before, loss.shape), loss.scale)
    return other
