"""The crossover: whether it pays, and what it has found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..common.arrays import Vector
from ..functions.traits import zero_slack
from ..machine.blas_threads import single_threaded
from ..model.model import Model
from .face import Face, face_of
from .rounding import balanced, proximal_step
from .walk import AMPLE, CANDIDATES, Walk

ROUNDING = (1e-1, 1e-2, 1e-3, 1e-4)
"""Lengths of the steps that decide which blocks are next to 0, relative to x, in the order in which to try."""

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
    """The work of a solve: passes over A, steps of an interior point, and Newton steps; 0 if there were none.

    ``sparse`` says whether the steps of the interior point have factored a sparse matrix. They are then counted among
    the passes.
    """

    passes: float
    interior_steps: int
    newton_steps: int = 0
    sparse: bool = False

    def share(self, stored: int, rows: int, columns: int) -> float:
        """Return the most multiply-adds of a crossover, in a factorisation, for a matrix of this size.

        A step of an interior point, or a Newton step, factors a matrix from at least these rows and columns, unless
        that is sparse.
        """
        short, long = sorted((rows, columns))
        steps = self.newton_steps + (0 if self.sparse else self.interior_steps)
        in_steps = 0.5 * steps * float(short) ** 2 * long
        return max(SHARE * (ADVANTAGE * 2.0 * stored * self.passes + in_steps), SMALL)


class Solution(NamedTuple):
    """A primal point x with u = Ax, and a dual point y with z = -A'y, next to which x is nearly a solution."""

    x: Vector
    u: Vector
    y: Vector
    z: Vector


@dataclass(frozen=True)
class Crossing:
    """What a crossover has found.

    Attributes
    ----------
    x : the point on a smaller face; None if there is none.
    at_vertex : whether the point, x or else the one before, is known to be a vertex of its face. Where f is curved,
        whether all blocks next to 0 are at 0.
    better : whether the point is of use only if its error is not larger than before.
    said : sentence on what was done or why nothing was; empty if there was nothing to do.
    """

    x: Vector | None = None
    at_vertex: bool = False
    better: bool = False
    said: str = ""


def applies(model: Model) -> bool:
    """Return whether A has columns that can be told apart, so that x may have a face."""
    traits = model.A.traits
    return traits.splits and traits.entries_known and traits.tasks == 1 and traits.identity_scales is None


def crossings(model: Model, at: Solution, room: float, work: Work) -> Iterator[Crossing]:
    """Yield points on smaller faces than that of x, the best first, and at last whether there is nothing to do.

    Parameters
    ----------
    model : Model
    at : Solution
    room : float
        By how much the objective may grow.
    work : Work
        Of the solve so far, which bounds that of the crossover.
    """
    if model.loss_is_curved and not work.interior_steps and _most_columns(model, at) <= at.u.size:
        yield Crossing()  # as ``presumably_a_vertex`` says, without the search for the kinks next to x
        return
    face = face_of(model, at.x, at.u, at.y) if _may_move(model) else None
    if face is None:
        yield Crossing()
        return
    if face.others and work.interior_steps:  # other methods put blocks at 0 themselves
        yield from _rounded(face, at, work)
    yield from _walked(face, at, room, work)


def _may_move(model: Model) -> bool:
    """Return whether some column may move along its face or to a kink: not if f is a parabola in all of them."""
    form = model.penalty_form
    curved = form is not None and bool(np.all(form.parameters.quadratic > 0))
    return not (curved and model.f.domain.everything and zero_slack(model.f, np.zeros(model.A.shape[1])) is None)


def _most_columns(model: Model, at: Solution) -> int:
    """Return the most columns that a face may have: those in which x is not 0 or has no kink at 0."""
    slack = zero_slack(model.f, at.z)
    if slack is None:
        return at.x.size
    smooth = np.isneginf(slack)
    counted = np.count_nonzero(at.x) + (model.blocks.sizes[smooth].sum() if smooth.any() else 0)
    return min(int(counted), at.x.size)


def _rounded(face: Face, at: Solution, work: Work) -> Iterator[Crossing]:
    """Yield x with all blocks at 0 that are next to it, balanced by the others."""
    model, rows = face.model, face.held
    for length in ROUNDING:
        target = proximal_step(model, at.x, at.z, length)
        leaving, staying = np.flatnonzero((target == 0) & (at.x != 0)), np.flatnonzero((target != 0) & (at.x != 0))
        most = work.share(model.A.traits.stored, rows.size, staying.size)
        if not leaving.size or _refusal(face, staying.size, float(rows.size) ** 2 * (staying.size + rows.size), most):
            return
        said = f"crossover: {leaving.size} of {leaving.size + staying.size} columns went to 0, balanced by the others"
        with single_threaded():
            x = balanced(model, at.x, leaving, staying, rows)
        yield Crossing(x, at_vertex=True, said=said)


def _walked(face: Face, at: Solution, room: float, work: Work) -> Iterator[Crossing]:
    """Yield a vertex of the face, or a point on the way to one."""
    if not face.x.size or face.presumably_a_vertex:
        yield Crossing()
        return
    short, long = sorted((face.held.size, face.x.size))
    choice = float(short) ** 2 * (min(long, AMPLE * short) + short)
    most = work.share(face.model.A.traits.stored, short, long)
    if refusal := _refusal(face, face.x.size, choice, most):
        yield Crossing(said=refusal if face.x.size > face.held.size else "")
        return
    with single_threaded():  # for the same bits at any number of threads
        walk = Walk(face, room)
        walk.go(int((most - choice) / (ADVANTAGE * _step_cost(face))))
        exact = walk.exact() if work.interior_steps and not walk.dimension else None
    left = int(np.count_nonzero((walk.x > face.of_x.low) & (walk.x < face.of_x.high)))
    steps = "1 step" if walk.steps == 1 else f"{walk.steps} steps"
    said = f"crossover: {left} of {face.x.size} columns are left between their kinks, after {steps}"
    found = Crossing(at_vertex=not (walk.dimension or face.others), said=said if left < face.x.size else "")
    if exact is not None:
        yield replace(found, x=_with(at.x, face, exact), better=True)
    yield replace(found, x=_with(at.x, face, walk.x)) if left < face.x.size else found


def _with(x: Vector, face: Face, of_face: Vector) -> Vector:
    """Return x with other values in the columns of a face."""
    moved = x.copy()
    moved[face.columns] = of_face
    return moved


def _refusal(face: Face, columns: int, multiply_adds: float, most: float) -> str:
    """Return why the work on some columns and the held rows is too much; empty if it is not."""
    rows, traits = face.held.size, face.model.A.traits
    needed = 8.0 * max(rows * columns, min(traits.stored, face.u.size * columns))
    if needed > (memory := min(MEMORY, traits.budget)):
        return f"no crossover: {columns} columns take {needed / 1e9:.2g} GB, and {memory / 1e9:.2g} are allowed"
    if multiply_adds > most:
        return f"no crossover: {rows} rows and {columns} columns take more than {SHARE:.0%} of the work of the solve"
    return ""


def _step_cost(face: Face) -> float:
    """Return the multiply-adds of a step."""
    m, k = face.u.size, face.x.size
    r = min(face.held.size, k)
    return float(4 * r * r + face.entries + CANDIDATES * m + OVERHEAD)
