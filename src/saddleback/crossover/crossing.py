"""The crossover: whether it pays, and what it has found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..common.arrays import Vector
from ..machine.blas_threads import single_threaded
from ..model.model import Model
from .face import Face, face_of
from .walk import AMPLE, CANDIDATES, Walk

SHARE = 0.25
"""Most of the work of a solve that a crossover may add."""

ADVANTAGE = 8.0
"""How much faster a multiply-add is in a factorisation than in a pass or a step of the walk, which wait for memory."""

SMALL = 1e8
"""Multiply-adds of a factorisation that take no time worth counting."""

OVERHEAD = 5e4
"""Multiply-adds, in a pass, that take as long as what a step takes beside its products."""

MEMORY = 2e9
"""Most bytes of the columns that may move."""


class Work(NamedTuple):
    """The work of a solve: passes over A, and steps of an interior point, 0 if there was none."""

    passes: float
    interior_steps: int

    def multiply_adds(self, face: Face) -> float:
        """Return the work in multiply-adds of a factorisation.

        A step of an interior point forms and factors a matrix from the columns of the face and at least the held rows.
        """
        short, long = sorted((face.held.size, face.x.size))
        in_passes = ADVANTAGE * 2.0 * face.model.A.traits.stored * self.passes
        return in_passes + 0.5 * self.interior_steps * float(short) ** 2 * long


@dataclass(frozen=True)
class Crossing:
    """What a crossover has found.

    Attributes
    ----------
    x : the point on a smaller face; None if there is none.
    at_vertex : whether the point, x or else the one before, is known to be a vertex of its face.
    said : sentence on what was done or why nothing was; empty if there was nothing to do.
    """

    x: Vector | None = None
    at_vertex: bool = False
    said: str = ""


def cross(model: Model, x: Vector, u: Vector, y: Vector, room: float, work: Work) -> Crossing:
    """Move x to a vertex of the face on which it lies, or towards one.

    Parameters
    ----------
    model : Model
    x, u, y : ndarray
        A primal point, its image Ax, and a dual point next to which it is nearly a solution.
    room : float
        By how much the objective may grow.
    work : Work
        Of the solve so far, which bounds that of the crossover.
    """
    traits = model.A.traits
    if not (traits.splits and traits.entries_known and traits.tasks == 1 and traits.identity_scales is None):
        return Crossing()
    face = face_of(model, x, u, y)
    if face is None or not face.x.size or face.presumably_a_vertex:
        return Crossing()
    most = max(SHARE * work.multiply_adds(face), SMALL)
    if refusal := _too_much(face, most):
        return Crossing(said=f"no crossover: {refusal}" if face.x.size > face.held.size else "")
    with single_threaded():  # for the same bits at any number of threads
        walk = Walk(face, room)
        walk.go(int((most - _choice(face)) / (ADVANTAGE * _step_cost(face))))
    at_vertex = not (walk.dimension or face.others)
    left = int(np.count_nonzero((walk.x > face.of_x.low) & (walk.x < face.of_x.high)))
    if left == face.x.size:
        return Crossing(at_vertex=at_vertex)
    moved = x.copy()
    moved[face.columns] = walk.x
    steps = "1 step" if walk.steps == 1 else f"{walk.steps} steps"
    said = f"crossover: {left} of {face.x.size} columns are left between their kinks, after {steps}"
    return Crossing(moved, at_vertex, said)


def _too_much(face: Face, most: float) -> str:
    """Return why the crossover costs too much; empty if it does not."""
    r, k = face.held.size, face.x.size
    needed = 8.0 * max(r * k, min(face.model.A.traits.stored, face.u.size * k))
    if needed > (memory := min(MEMORY, face.model.A.traits.budget)):
        return f"its {k} columns take {needed / 1e9:.2g} GB, and {memory / 1e9:.2g} are allowed"
    if _choice(face) > most:
        return f"a basis of {r} rows and {k} columns takes more than {SHARE:.0%} of the work of the solve"
    return ""


def _choice(face: Face) -> float:
    """Return the multiply-adds that the choice of a basis and its inverse take."""
    short, long = sorted((face.held.size, face.x.size))
    return float(short) ** 2 * (min(long, AMPLE * short) + short)


def _step_cost(face: Face) -> float:
    """Return the multiply-adds of a step."""
    m, k = face.u.size, face.x.size
    r = min(face.held.size, k)
    entries = m * k if isinstance(face.matrix, np.ndarray) else face.matrix.nnz
    return float(4 * r * r + entries + CANDIDATES * m + OVERHEAD)
