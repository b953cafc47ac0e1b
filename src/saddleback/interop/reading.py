"""Read a problem of CVXPY: its terms, the penalty of each variable, and the rows of the other terms."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import cvxpy as cp
import numpy as np
from scipy import sparse

from ..functions import Interval
from ..io.problem_files import LoadedProblem
from ..problem import Problem
from .affine import Affine, Reader
from .atoms import Row, parts, refusal
from .blocks import Block
from .constraints import between, constraint

SIGNS = {"nonneg": (0.0, np.inf), "pos": (0.0, np.inf), "nonpos": (-np.inf, 0.0), "neg": (-np.inf, 0.0)}
"""Attributes of a variable that are bounds."""


class CvxpyProblem(LoadedProblem):
    """A problem that was read from CVXPY.

    Attributes
    ----------
    variables : the variables of CVXPY, in the order of the blocks of x.
    sign, offset : the objective in the sense of CVXPY is ``sign * value + offset``.
    """

    variables: Sequence[Any] = ()

    def assign(self, x: Sequence[Any]) -> None:
        """Write the blocks of x into the variables of CVXPY."""
        for variable, block in zip(self.variables, x, strict=True):
            variable.value = np.asarray(block).reshape(variable.shape)


def read(source: Any) -> CvxpyProblem:
    """Return a problem of CVXPY as a ``Problem``; see ``from_cvxpy``."""
    _check(source)
    variables = source.variables()
    reader = Reader(variables)
    sign = -1.0 if isinstance(source.objective, cp.Maximize) else 1.0
    objective = parts(reader, sign * source.objective.expr)
    rows = [*objective.rows, *_attributes(reader), *(constraint(reader, each) for each in source.constraints)]
    blocks = [Block(variable.size) for variable in variables]
    for j, matrix in objective.rest.matrices.items():
        blocks[j].linear += np.ravel(matrix.toarray() if sparse.issparse(matrix) else matrix)
    rows, blocks = _move(rows, blocks)
    problem = CvxpyProblem.of(_assembled(blocks, rows))
    problem.variables = variables
    problem.sign, problem.offset = sign, sign * float(objective.rest.constant[0])
    return problem


def _check(source: Any) -> None:
    if not isinstance(source, cp.Problem):
        raise TypeError(f"problem is {type(source).__name__}: expected a cvxpy.Problem")
    if not source.is_dcp():
        raise ValueError("the problem is not convex by the rules of CVXPY (problem.is_dcp() is False)")
    for parameter in source.parameters():
        if parameter.value is None:
            raise ValueError(f"the parameter {parameter.name()} has no value: set parameter.value first")
    if not source.variables():
        raise ValueError("the problem has no variables")
    for variable in source.variables():
        if not variable.size:
            raise ValueError(f"the variable {variable.name()} has no entries: leave it out")
        for name, value in variable.attributes.items():
            if name not in SIGNS and name != "bounds" and value is not False and value is not None:
                raise refusal(variable, f"the attribute {name} of a variable is not in the catalogue")


def _attributes(reader: Reader) -> list[Row]:
    """Return the bounds among the attributes of the variables."""
    rows = []
    for variable in reader.variables:
        affine = reader.affine(variable)
        bounds = [SIGNS[name] for name in SIGNS if variable.attributes[name]]
        bounds += [] if variable.attributes.get("bounds") is None else [variable.attributes["bounds"]]
        for low, high in bounds:
            ends = (np.broadcast_to(getattr(end, "value", end), variable.shape).ravel() for end in (low, high))
            rows.append(between(affine, *ends))
    return rows


def _move(rows: list[Row], blocks: list[Block]) -> tuple[list[Row], list[Block]]:
    """Move terms of single variables to the penalties, as long as these can be added and a term is left."""
    kept = list(rows)
    movable = [(row, row.move) for row in rows if row.move is not None]
    for row, move in sorted(movable, key=lambda pair: pair[1].order):
        trial = deepcopy(blocks[move.variable])
        if len(kept) > 1 and move.add(trial) and _can_be_added(trial):
            blocks[move.variable] = trial
            kept = [other for other in kept if other is not row]
    return kept, blocks


def _can_be_added(block: Block) -> bool:
    try:
        block.penalty()
    except TypeError:
        return False
    return True


def _assembled(blocks: list[Block], rows: list[Row]) -> Problem:
    """Return the problem with one list of matrices per term."""
    if not rows:  # a problem needs a term on A x
        rows = [Row(Interval([-np.inf], [np.inf]), Affine({}, np.zeros(1)))]
    matrices = [[row.affine.matrices.get(j) for j in range(len(blocks))] for row in rows]
    for j, block in enumerate(blocks):
        if all(own[j] is None for own in matrices):
            matrices[0][j] = sparse.csr_array((rows[0].affine.size, block.size))
    penalties = [block.penalty() for block in blocks]
    if len(rows) == 1:
        return Problem(penalties, matrices[0], rows[0].term)
    return Problem(penalties, matrices, [row.term for row in rows])
