"""A problem spread over processes: each holds some columns of A, and all functions."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from ...common.arrays import Blocks, Indices, Vector
from ...functions import Convex, Loss
from ...functions.calculus import hstack
from ...functions.penalties import Penalty
from ...io.column_files import ColumnFile
from ...operators import Sharded, as_operator
from ...problem import Problem
from .communicator import Communicator, MPICommunicator, SerialCommunicator
from .operator import nothing

Shard = Callable[[int, int], Problem]
"""The problem of the columns of a process, given its rank and the number of processes."""


def gathered(source: Problem | Shard, team: Communicator) -> Problem:
    """Return the whole problem, with its matrix distributed over the processes.

    Parameters
    ----------
    source : the whole problem, or a function that returns the part of each process.
    team : the processes.
    """
    if isinstance(team, SerialCommunicator):
        if not isinstance(source, Problem):
            lacking = ", and a function needs comm=" if callable(source) else ""
            raise TypeError(f"problem is {type(source).__name__}: expected a saddleback.Problem{lacking}")
        return source.refreshed()
    if isinstance(source, Problem):
        return _divided(source, team)
    if not callable(source):
        raise TypeError(
            f"problem is {type(source).__name__}: expected a saddleback.Problem, or a function shard(rank, size)"
        )
    part = source(team.rank, team.size)
    if not isinstance(part, Problem):
        raise TypeError(f"shard({team.rank}, {team.size}) is {type(part).__name__}: expected a saddleback.Problem")
    return _joined(part, team)


def _divided(problem: Problem, ranks: MPICommunicator) -> Problem:
    """Return a problem that all processes have as a whole, with the columns of A divided among them."""
    if problem.model.A.traits.holders is not None:
        return problem  # each process has already read its part
    problem = problem.refreshed()
    model = problem.model
    A, blocks = model.A, model.blocks
    if not A.traits.splits:
        raise TypeError("comm: A has a block that is no matrix, and cannot be spread over processes; leave comm out")
    if np.any(np.diff(blocks.order.reshape(-1, A.traits.tasks), axis=1) != 1):
        raise TypeError("comm: a group holds some entries of a row of the matrix variable x; expected all or none")
    m, n = A.shape
    places = division(blocks, A.sums(0)[0] if A.traits.stored < m * n else np.ones(n), ranks.size, A.traits.tasks)
    own = places[ranks.rank]
    local = A.restrict(np.arange(A.shape[0]), own) if own.size else nothing(A.shape[0])
    whole = copy(problem)
    whole.model = replace(model, A=Sharded(local, places, ranks))
    return whole


def division(blocks: Blocks, work: Vector, parts: int, tasks: int = 1) -> list[Indices]:
    """Return the columns of each part, block by block: parts of neighbouring blocks with nearly equal work.

    Parameters
    ----------
    blocks : blocks, which are not split.
    work : work per column, such as its number of entries.
    parts : number of parts.
    tasks : number of tasks; all tasks of a column are in the same part.
    """
    possible = np.flatnonzero(blocks.start % tasks == 0)
    done = np.concatenate([[0.0], np.cumsum(work[blocks.order])])[blocks.start[possible]]
    middles = 0.5 * (done[1:] + done[:-1])
    cuts = possible[np.searchsorted(middles, np.arange(parts + 1) * done[-1] / parts)]
    cuts[0], cuts[-1] = possible[0], possible[-1]
    return [blocks.order[blocks.start[a] : blocks.start[b]] for a, b in pairwise(cuts)]


def read_by_parts(penalty: Penalty, file: ColumnFile, loss: Loss, ranks: MPICommunicator) -> Problem:
    """Return the problem with the matrix of a file, of which each process reads its columns.

    If the columns of a group are not neighbours, or if the loss has several columns, each process reads all columns and
    keeps its own.
    """
    rows, columns = file.shape
    several = loss.shape is not None and len(loss.shape) > 1
    blocks = penalty.bind((columns,)).blocks()
    if several or not blocks.contiguous:
        return _divided(Problem(penalty, file[0:columns], loss), ranks)
    places = division(blocks, np.ones(columns), ranks.size)
    own = places[ranks.rank]
    local = as_operator(file[own[0] : own[-1] + 1], "A") if own.size else nothing(rows)
    return Problem(penalty, Sharded(local, places, ranks), loss)


def _joined(part: Problem, ranks: MPICommunicator) -> Problem:
    """Return the problem of the columns of all processes side by side, from the part of this one."""
    model = part.model
    if not model.A.traits.splits:
        raise TypeError("shard: A has a block that is no matrix; give the columns of this process as a matrix")
    probe = np.random.default_rng(0).standard_normal(model.A.shape[0])
    told = model.g.finite_value(probe), float(probe @ model.g.domain.project(probe))
    mine = (part.terms, part.x_shapes, part.is_list, part.y_shapes, model.linear_norm, told)
    parts = ranks.all(mine)
    terms, shapes, lists, y_shapes, linear_norms, values = (list(column) for column in zip(*parts, strict=True))
    for what, found in (("shape", y_shapes), ("values", values)):
        if any(other != found[0] for other in found):
            raise ValueError(f"shard: the losses of the processes differ in their {what}; expected the same on each")
    if any(lists) or any(shape[0][1:] != shapes[0][0][1:] for shape in shapes):
        raise ValueError("shard: expected one penalty and one matrix a process, not lists of them")
    functions = [bound for own, own_shapes in zip(terms, shapes, strict=True) for bound in _bound(own, own_shapes)]
    sizes = [int(np.prod(shape[0])) for shape in shapes]
    first = np.cumsum(sizes) - sizes
    places = [a + function.blocks().order for a, function in zip(first, functions, strict=True)]
    A = model.A
    if not model.blocks.contiguous:  # a process holds its columns block by block
        A = A.restrict(np.arange(A.shape[0]), model.blocks.order)
    whole = copy(part)
    whole.x_shapes = [(sum(shape[0][0] for shape in shapes), *shapes[0][0][1:])]
    whole.model = replace(
        model,
        f=hstack(functions, sizes),
        A=Sharded(A, places, ranks),
        linear_norm=float(np.linalg.norm(linear_norms)),
    )
    return whole


def _bound(terms: list[Any], shapes: list[Any]) -> list[Convex]:
    return [term.bind(shape) for term, shape in zip(terms, shapes, strict=True)]
