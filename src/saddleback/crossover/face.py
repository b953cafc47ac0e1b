"""The face of a problem on which a point lies: which columns may move, and which rows are held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from ..common.arrays import Indices, Vector
from ..common.cached import cached_property
from ..functions.normal_form import NormalForm
from ..model.model import Model
from ..operators import Operator
from .linear_pieces import LinearPieces, held_rows, pieces_of_loss, pieces_of_penalty

SPARSE = 0.2
"""Share of entries that are stored below which columns are kept as a sparse matrix."""

LEAST_WEIGHT = 1e-5
"""Least weight of a column in the choice of a basis, relative to the largest."""

FREE_WEIGHT = 10.0
"""Weight of a column that no kink can hold, relative to the largest of the others."""


@dataclass(frozen=True)
class Face:
    """A point x with u = Ax, seen from the columns S in which x is strictly between two kinks or bounds.

    Attributes
    ----------
    columns : S.
    x, u : the point, in S and in all rows.
    of_x, of_u : the kinks next to each of them.
    held : rows in which u has to stay: where g is curved, or a kink of g holds u.
    others : whether x is not 0 in columns in which f is curved, and which therefore have no face to move on.
    """

    model: Model
    columns: Indices
    x: Vector
    u: Vector
    of_x: LinearPieces
    of_u: LinearPieces
    held: Indices
    others: bool

    @property
    def presumably_a_vertex(self) -> bool:
        """Whether the face has a dimension above 0 only if the loss is curved and columns of A are dependent."""
        return self.x.size <= self.held.size and bool(np.all(self.of_u.curved[self.held]))

    @cached_property
    def goal(self) -> Vector:
        """The nearest kink of each column of S; x itself if there is none."""
        kink = self.of_x.nearest(self.x)
        return np.where(np.isfinite(kink), kink, self.x)

    def weight(self) -> Vector:
        """Return, for each column of S, how much it ought to stay where it is: its distance from the nearest kink."""
        distance = np.abs(self.x - self.goal)
        largest = max(float(distance.max(initial=0.0)), np.finfo(float).tiny)
        return np.where(
            np.isinf(self.of_x.nearest(self.x)), FREE_WEIGHT * largest, np.maximum(distance, LEAST_WEIGHT * largest)
        )

    @cached_property
    def matrix(self) -> Any:
        """The columns S of A: a dense array, or a CSC matrix. Only a walk of more than 0 steps needs all their rows."""
        return self.model.A.entries(self.columns, compressed=self._is_sparse)

    @property
    def _is_sparse(self) -> bool:
        A = self.model.A
        return A.traits.stored < SPARSE * A.shape[0] * A.shape[1]

    @property
    def entries(self) -> float:
        """The number of entries of the columns S, if these are like the others."""
        A = self.model.A
        stored = float(A.traits.stored) if self._is_sparse else float(A.shape[0]) * A.shape[1]
        return stored * self.columns.size / A.shape[1]

    def part(self, rows: Indices, columns: Indices) -> Vector:
        """Return some rows of some columns of S as a dense array."""
        return part_of(self.model.A, rows, self.columns[columns])

    def column(self, column: int) -> Vector:
        """Return a column of S as a vector."""
        found = self.matrix[:, [column]]
        return np.asarray(found if isinstance(found, np.ndarray) else found.toarray())[:, 0]


def face_of(model: Model, x: Vector, u: Vector, y: Vector) -> Face | None:
    """Return the face on which a point lies, of which y is the dual; None for functions that are not known as data."""
    f, g = model.penalty_form, model.loss_form
    if not (_is_closed(f) and _is_closed(g)):
        return None
    of_x, of_u = pieces_of_penalty(f, x), pieces_of_loss(g, model.g.subgradient(u), u)
    S = np.flatnonzero(~of_x.curved & (x > of_x.low) & (x < of_x.high))
    held = np.flatnonzero(held_rows(model, u, y, of_u))
    return Face(model, S, x[S], u, of_x.at(S), of_u, held, bool(np.any(x[of_x.curved])))


def _is_closed(form: NormalForm | None) -> TypeGuard[NormalForm]:
    return form is not None and form.closed


def part_of(A: Operator, rows: Indices, columns: Indices) -> Vector:
    """Return some rows of some columns of A as a dense array."""
    down, across = np.argsort(rows), np.argsort(columns)  # operators take rows and columns in increasing order
    part = np.empty((rows.size, columns.size))
    if part.size:
        part[np.ix_(down, across)] = A.restrict(rows[down], columns[across]).entries()
    return part
