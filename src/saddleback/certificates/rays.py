r"""Rays: proofs that a problem has no solution, checked with bounds on the rounding errors of their products.

A dual ray e with :math:`\sigma_{dom f}(-A'e) + \sigma_{dom g}(e) < 0` separates the constraints: no x is feasible. A
primal ray d with :math:`f_\infty(d) + g_\infty(Ad) < 0` is a direction along which the objective falls without bound
from every feasible point. docs/theory.md has the proofs, and says what still holds after rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..common.arrays import Indices, Vector
from ..functions.contract import Ray
from ..linear_programs.exact_rays import proves_exactly
from ..linear_programs.program import as_linear_program, at_hand
from ..model.model import Model
from ..operators import Operator
from ..problem import Problem
from ..result import Status
from ..steps.strengths import operator_norm

UNIT = 2.0**-53
"""Relative rounding of one operation in float64."""

TINY = float(np.finfo(np.float64).tiny)
"""Largest error that an underflow can cause."""

FAR = 1e6
"""If a ray leaves its cone within the rounding error, it must still exclude all solutions up to this size, in the units
of the data."""

SMALLEST = 1e-9
"""The value of a direction, relative to the data, must be below minus this number; other directions are ignored."""

SHARES = (1e-3, 1e-5, 1e-7, 1e-9, 0.0)
"""Refining a ray sets those of its entries, and of the entries of its image, to 0 that are below this relative size."""

REFINEMENTS = 3
"""Corrections per entry of ``SHARES``: the first removes the error of the ray, the others that of the correction."""

ROUND = 9
"""Decimals to which the entries of a ray are rounded, since the rounded ray may be a proof too."""

MOST_MOVED = 0.9
"""Maximum relative change of an entry by a correction; beyond it the result has little to do with the ray."""

MOST_NAMED = 6
"""Maximum number of rows or variables that a message names."""

MOST_WEEDED = 6
"""Maximum number of entries of a ray for which each is tried as 0, to remove rows that the proof does not need."""

MOST_SOLVED = 4_000_000
"""Maximum number of entries of the dense system of a correction; a ray that needs more is not refined."""


@dataclass(frozen=True)
class RayCertificate:
    r"""What a ray proves, and how clearly.

    Attributes
    ----------
    proves : Status or None
        ``Status.INFEASIBLE`` for a dual ray, ``Status.UNBOUNDED`` for a primal one (the objective falls without bound
        from every feasible point, if there is one), or None for a ray that proves nothing.
    value : float
        :math:`\sigma_{dom f}(-A'e) + \sigma_{dom g}(e)` or :math:`f_\infty(d) + g_\infty(Ad)`, for the ray scaled
        to a largest entry of 1. A proof needs ``value + rounding < 0``.
    rounding : float
        Bound on the rounding error of ``value``.
    violation : float
        The largest distance by which an entry of the image, -A'e or Ad, leaves the cone on which the value is finite,
        as a multiple of the bound on the rounding error of that entry. A proof needs at most 1.
    radius : float
        Size of x (or y), in the units of the data, up to which solutions are excluded in spite of the violation;
        infinite if there is none.
    exact : bool
        Whether rational arithmetic confirms the proof: an exact ray next to this one proves the same. It is tried for
        linear programs whose ray has few entries.
    """

    proves: Status | None
    value: float
    rounding: float
    violation: float
    radius: float
    exact: bool = False


class Side(NamedTuple):
    """One of the two kinds of rays, dual or primal, and the functions that check it.

    Attributes
    ----------
    status : what the ray proves.
    own, other : the recession functions of the ray and of its image, with the violations of their cones.
    image : the map from the ray to its image.
    absolute : the same map with |A| in place of A.
    block : the dense part of the map, from some entries of the ray to some entries of the image.
    lengths : lengths of the rows (or columns) of A that the ray multiplies.
    unit : expected sizes of the variables that the image multiplies.
    scale : size of the targets (or costs).
    terms : number of terms in the sum of a product.
    """

    status: Status
    own: Callable[[Vector], Ray]
    image: Callable[[Vector], Vector]
    absolute: Callable[[Vector], Vector]
    other: Callable[[Vector], Ray]
    block: Callable[[Indices, Indices], Vector]
    lengths: Vector
    unit: Vector
    scale: float
    terms: int

    def rounding(self, ray: Vector) -> Vector:
        """Return a bound on the rounding error of the image of a ray, entry by entry."""
        return _gamma(self.terms) * self.absolute(np.abs(ray)) + self.terms * TINY


def sides(model: Model) -> tuple[Side, Side]:
    """Return the dual and the primal side of a problem."""
    A = model.A
    m, n = A.shape
    (x_unit, targets), (y_unit, costs) = model.ray_units

    def absolute_rmatvec(e: Vector) -> Vector:
        return A.sums(1, weights=(None, e))[0] if A.traits.entries_known else _by_norm(A, n, e)

    def absolute_matvec(d: Vector) -> Vector:
        return A.sums(1, weights=(d, None))[1] if A.traits.entries_known else _by_norm(A, m, d)

    dual = Side(
        Status.INFEASIBLE,
        model.g_star.recession,
        lambda e: -A.rmatvec(e),
        absolute_rmatvec,
        model.f_star.recession,
        lambda rows, columns: -A.entries(columns)[rows].T,
        model.row_lengths,
        x_unit,
        targets,
        m,
    )
    primal = Side(
        Status.UNBOUNDED,
        model.f.recession,
        A.matvec,
        absolute_matvec,
        model.g.recession,
        lambda columns, rows: A.entries(columns)[rows],
        model.column_lengths,
        y_unit,
        costs,
        n,
    )
    return dual, primal


def _by_norm(A: Operator, size: int, vector: Vector) -> Vector:
    """Return a bound on the products with |A| for a matrix whose entries are not known."""
    norm = np.sqrt(operator_norm(A.matvec, A.rmatvec, A.shape[1])[0])
    return np.full(size, norm * float(np.linalg.norm(vector)))


class Judged(NamedTuple):
    """A certificate with the image of the ray, the bound on its rounding error, and its violation of the cone."""

    certificate: RayCertificate
    image: Vector
    rounding: Vector
    violation: Vector


def excluded(side: Side, direction: Vector) -> float:
    """Return the size of x (or y), in the units of the data, up to which a direction excludes solutions.

    It measures how close a direction is to a ray. It is no proof: a proof needs an image inside its cone.
    """
    scaled = _scaled(direction)
    inside = _into_cone(side, scaled / float(np.linalg.norm(scaled)))
    ray = side.other(side.image(inside))
    value = side.own(inside).value + ray.value
    if side.scale == 0 or not value < -SMALLEST * side.scale:
        return 0.0
    total = float(np.abs(ray.violation * side.unit).sum())
    return -value / total if total > 0 else np.inf


def judge(side: Side, ray: Vector) -> Judged:
    """Return what a ray in its own cone proves in floating point."""
    own = side.own(ray)
    image = side.image(ray)
    rounding = side.rounding(ray)
    other = side.other(image)
    # recession functions are sublinear: an error of the image changes them by at most their value at the error
    moved = side.other(rounding).size + side.other(-rounding).size
    summed = _gamma(ray.size + image.size) * (own.size + other.size)
    value, error = own.value + other.value, moved + summed + TINY
    violation = np.abs(other.violation)
    beyond = float(np.max(violation / rounding, initial=0.0))
    leaves = float(np.sum(violation * side.unit))
    margin = -(value + error)
    radius = np.inf if leaves == 0 else max(margin, 0.0) / leaves
    inside = not np.any(own.violation)
    proved = inside and margin > 0 and beyond <= 1.0 and radius >= FAR
    return Judged(
        RayCertificate(side.status if proved else None, value, error, beyond, radius), image, rounding, other.violation
    )


def _gamma(terms: int) -> float:
    """Return the bound n u / (1 - n u) on the relative error of a sum of n products, in any order."""
    error = (terms + 2) * UNIT
    return error / (1.0 - error)


def prove(model: Model, side: Side, ray: Vector) -> tuple[Vector, RayCertificate] | None:
    """Return a proof next to this ray, with 0 in the entries that do not matter; None if there is no proof.

    Candidates are checked in floating point first. Those that pass are checked in exact arithmetic too, if it is cheap.
    """
    found = next(_proofs(model, side, refined(side, ray)), None)
    tried: set[int] = set()
    while found is not None:
        support = np.flatnonzero(found[0])
        left = [i for i in support[np.argsort(np.abs(found[0][support]))].tolist() if i not in tried]
        if support.size > MOST_WEEDED or not left:
            break
        tried.add(left[0])
        found = next(_proofs(model, side, _without(side, found[0], left[0])), found)
    return found


def _proofs(model: Model, side: Side, candidates: Iterable[Vector]) -> Iterator[tuple[Vector, RayCertificate]]:
    """Yield the candidates that are proofs, with their certificates."""
    for candidate in candidates:
        judged = judge(side, candidate)
        exactly = None if judged.certificate.proves is None else _exactly(model, side, candidate, judged)
        if judged.certificate.proves is not None and exactly is not False:
            yield candidate, replace(judged.certificate, exact=bool(exactly))


def _without(side: Side, ray: Vector, entry: int) -> Iterator[Vector]:
    """Yield rays with one entry set to 0 and the others corrected, so that the image returns to its cone."""
    kept = np.setdiff1d(np.flatnonzero(ray), [entry])
    none = np.zeros(side.unit.size, dtype=bool)
    fewer = np.zeros_like(ray)
    fewer[kept] = ray[kept]
    yield from _corrections(side, fewer, kept, none, 0.0)


def _exactly(model: Model, side: Side, ray: Vector, judged: Judged) -> bool | None:
    """Return whether rational arithmetic confirms a ray of a linear program; None if it is not tried."""
    program = as_linear_program(model) if at_hand(model.A) else None
    if program is None:
        return None
    zero = np.flatnonzero((np.abs(judged.image) <= judged.rounding) & _limits(side, judged.image.size)[1])
    return proves_exactly(program, model.A, side.status is Status.INFEASIBLE, ray, zero)


def refined(side: Side, ray: Vector) -> Iterator[Vector]:
    """Yield rays next to an approximate one, with small entries of the ray and of its image set to 0."""
    ray = _scaled(ray)
    both, either = _limits(side, side.unit.size)
    weight = np.abs(ray) * np.where(side.lengths > 0, side.lengths, side.lengths.max() or 1.0)
    for share in SHARES:
        kept = np.flatnonzero((weight > 0) & (weight >= share * weight.max()))
        fewer = np.zeros_like(ray)
        fewer[kept] = ray[kept]
        for limits in (both, either):
            yield from _corrections(side, fewer, kept, limits, share)


def _corrections(side: Side, ray: Vector, kept: Indices, limits: NDArray[np.bool_], share: float) -> Iterator[Vector]:
    """Yield a ray, and the rays after each correction of the image entries that should be 0."""
    ray = _into_cone(side, ray)
    for _ in range(REFINEMENTS):
        if not np.any(ray):
            return
        ray = _scaled(ray)
        yield _into_cone(side, np.round(ray, ROUND))  # if the data are round numbers, so is a ray
        yield ray
        moved = _corrected(side, ray, kept, limits, share)
        if moved is None:
            return
        ray = _into_cone(side, moved)


def _corrected(side: Side, ray: Vector, kept: Indices, limits: NDArray[np.bool_], share: float) -> Vector | None:
    """Return the ray after the least relative change, by least squares, that makes small entries of its image 0."""
    image = side.image(ray)
    small = np.abs(image) <= share * side.absolute(np.abs(ray))
    off = np.flatnonzero((limits & small) | (np.abs(side.other(image).violation) > 0))
    if not off.size or off.size * kept.size > MOST_SOLVED:
        return None
    step = np.abs(ray[kept])
    block = side.block(kept, off) * step
    length = np.linalg.norm(block, axis=1)
    length[length == 0] = 1.0
    change = np.linalg.lstsq(block / length[:, None], image[off] / length, rcond=1e-13)[0]
    if np.abs(change).max() > MOST_MOVED:
        return None
    moved = ray.copy()
    moved[kept] -= step * change
    return moved


def _limits(side: Side, size: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of the image entries that must be 0, and of those that are restricted to one sign or to 0."""
    ones = np.ones(size)
    above, below = side.other(ones).violation != 0, side.other(-ones).violation != 0
    return above & below, above | below


def _scaled(ray: Vector) -> Vector:
    largest = float(np.abs(ray).max())
    return ray / largest if largest > 0 else ray


def _into_cone(side: Side, ray: Vector) -> Vector:
    return ray - side.own(ray).violation


def certify_ray(problem: Problem, ray: Any) -> RayCertificate:
    """Return what a ray proves; the ray may be ``result.ray`` or come from another library.

    Parameters
    ----------
    problem : Problem
        The problem that may have no solution.
    ray : array-like or list of array-like
        In the shape of y, a direction that separates the constraints, in the sign of ``result.y``; or in the shape of
        x, a direction along which the objective falls without bound. If the shapes of x and y are the same, both
        readings are tried.

    Returns
    -------
    RayCertificate
        Its ``proves`` is a ``Status``, or None for a ray that proves nothing. The ray is scaled, and entries that leave
        its cone by rounding are projected back; nothing else is changed.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem is {type(problem).__name__}: expected a saddleback.Problem")
    problem = problem.refreshed()
    readings = _readings(problem, ray)
    dual, primal = sides(problem.model)
    found = []
    for side, vector in ((dual, readings[0]), (primal, readings[1])):
        if vector is None or not np.any(vector):
            continue
        scaled = _scaled(vector)
        inside = _into_cone(side, scaled)
        judged = judge(side, inside if np.allclose(inside, scaled, rtol=0.0, atol=1e-9) else scaled)
        certificate = judged.certificate
        if certificate.proves is not None:
            exactly = _exactly(problem.model, side, inside, judged)
            certificate = replace(certificate, exact=bool(exactly))
            if exactly is False:
                certificate = replace(certificate, proves=None)
        found.append(certificate)
    nothing = RayCertificate(None, 0.0, 0.0, 0.0, 0.0)
    return max(found, key=lambda each: (each.proves is not None, -each.value), default=nothing)


def _readings(problem: Problem, ray: Any) -> tuple[Vector | None, Vector | None]:
    """Return a ray as a direction of y and as one of x, each None if the shape does not fit; raise if neither fits."""
    (y, no_y), (x, no_x) = _tried(problem.flatten_y, ray), _tried(problem.flatten_x, ray)
    if y is None and x is None:
        raise ValueError(f"ray is neither a direction of y ({no_y}) nor one of x ({no_x})")
    return y, x if x is None else x.vector()


def _tried(flatten: Callable[[Any, str], Any], ray: Any) -> tuple[Any, str]:
    """Return the flattened ray and an empty string, or None and the message why the shape does not fit."""
    try:
        return flatten(ray, "ray"), ""
    except (TypeError, ValueError) as error:
        return None, str(error)


def ray_of_empty_rows(model: Model) -> Vector:
    """Return a dual ray of a problem with an empty row that 0 does not satisfy."""
    rows = model.A.sums(1)[1]
    return _scaled(np.where(rows == 0, -model.g.domain.project(np.zeros(rows.size)), 0.0))


def explanation(problem: Problem, status: Status, ray: Vector) -> str:
    """Return a description of a proof, to be placed after a colon: its first letter is small.

    It names the rows and bounds that contradict each other, or the variables that move without bound, and the margin.
    """
    infeasible = status is Status.INFEASIBLE
    judged = judge(sides(problem.model)[0 if infeasible else 1], ray)
    involved = np.flatnonzero(ray)
    if infeasible:
        held = np.flatnonzero(np.abs(judged.image) > judged.rounding)
        verb = "cannot hold" if involved.size == 1 and not held.size else "cannot hold together"
        bounds = f" with the bounds on {_listed('variable', held, problem.column_name)}" if held.size else ""
        said = f"{_listed('row', involved, problem.row_name)} {verb}{bounds}"
    else:
        said = f"the objective falls along {_listed('variable', involved, problem.column_name)}"
    margin, rounding = -judged.certificate.value, judged.certificate.rounding
    return f"{said}. The ray proves it with a margin of {margin:.2g}, of which rounding takes at most {rounding:.1e}."


def _listed(kind: str, places: Indices, name: Callable[[int], str]) -> str:
    """Return the names of the first few rows or variables, and the count of the others."""
    first = [name(i) for i in places[:MOST_NAMED].tolist()]
    more = f" and {places.size - MOST_NAMED} more" if places.size > MOST_NAMED else ""
    return f"{kind}{'' if places.size == 1 else 's'} {', '.join(first)}{more}"
