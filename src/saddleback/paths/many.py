"""Many problems with one matrix: other losses, other weights of the rows, or other alphas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..batches.chord import Chord
from ..batches.form import Certifier, Matrix, Together, form_of, in_batches
from ..batches.near_kinks import NearKinks
from ..common.arrays import Vector
from ..common.checks import finite
from ..common.checks import weights as checked_weights
from ..engine.clock import Clock
from ..engine.interrupts import Interrupts
from ..engine.options import Options
from ..engine.session import Session
from ..functions import Loss
from ..problem import Problem
from ..result import Result
from .path import ENDED, along


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
        Options of ``solve``, for every problem; ``x0`` and ``y0`` for the first solve. ``time_limit`` is for all
        together.

    Returns
    -------
    list of Result
        One per problem, in the order in which they were given. If a solve is interrupted, a callback returns True, or
        the time limit ends a solve, the list ends with it; with ``alphas``, the solved ones are then the largest.

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
    factors = None if weights is None else _factors(problem, weights)
    with Session(Options.of(options)) as session, Interrupts(session.team) as interrupts:
        results = (
            _for_losses(problem, losses, session, x0, y0)
            if factors is None
            else _for_weights(problem, factors, session, x0, y0)
        )
        found: list[Result] = []
        for result in results:
            found.append(result)
            if result.status in ENDED or session.stopped or interrupts.requested:
                break
    return found


def _for_alphas(problem: Problem, alphas: ArrayLike, x0: Any, y0: Any, options: dict[str, Any]) -> list[Result]:
    values = finite("alphas", alphas)
    results = along(problem, values, x0, y0, Session(Options.of(options)))
    order = np.argsort(-values, kind="stable")[: len(results)]
    return [results[place] for place in np.argsort(order, kind="stable")]


def _for_losses(problem: Problem, losses: Any, session: Session, x0: Any, y0: Any) -> Iterator[Result]:
    """Yield the results, each from the solution before it."""
    if not isinstance(losses, (list, tuple)) or not losses:
        raise TypeError(f"losses is {type(losses).__name__}: expected a list with at least one loss")
    for loss in losses:
        result = session.solve(problem.with_loss(loss), x0, y0)
        yield result
        x0, y0 = result, None


def _for_weights(problem: Problem, factors: Matrix, session: Session, x0: Any, y0: Any) -> Iterator[Result]:
    """Yield the results, each from the solution for the given weights."""
    loss = problem.loss
    base = session.solve(problem, x0, y0)

    def other(own: Vector) -> Problem:
        return problem.with_loss(_weighted(loss, own))

    solver = batch_solver(problem, base, session) if session.options.any_method else None
    results = repeat(None, len(factors)) if solver is None else in_batches(factors, other, solver)
    for own, result in zip(factors, results, strict=True):
        yield session.solve(other(own), base) if result is None else result


def batch_solver(problem: Problem, base: Result, session: Session) -> Together | None:
    """Return what solves problems with other weights together, near one that was solved; None if nothing does."""
    model, form = problem.model, form_of(problem.model)
    if form is None or not base.status.solved:
        return None
    certified = Certifier(session.options.tol, Clock(None, session.team))
    if model.loss_form is not None and NearKinks.suits(form, model.loss_form.parameters):
        near = NearKinks(problem, base, form, certified)
        return near if near.pays else None
    return Chord(problem, base, form, certified) if Chord.suits(problem, base, form) else None


def _factors(problem: Problem, weights: ArrayLike) -> Matrix:
    loss = problem.loss
    if not isinstance(loss, Loss) or loss.shape is None:
        raise TypeError(f"weights: the loss is {type(loss).__name__}: expected one loss of the catalogue with weights")
    factors = checked_weights("weights", weights)
    if factors.ndim != 2 or factors.shape[1] != loss.shape[0] or not factors.shape[0]:
        raise ValueError(
            f"weights has shape {factors.shape}: expected one row per problem, with a weight for each of the "
            f"{loss.shape[0]} rows of A"
        )
    return factors


def _weighted(loss: Loss, factors: Any) -> Loss:
    """Return a loss whose weights are multiplied by factors, one per row."""
    before = np.asarray(1.0 if loss.sample_weight is None else loss.sample_weight)
    by_row = factors.reshape(-1, *[1] * max(before.ndim - 1, 0))
    other = copy(loss)
    other._weigh(by_row * before, loss.scale)
    return other
