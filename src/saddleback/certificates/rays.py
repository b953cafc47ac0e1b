r"""Rays: proofs that a problem has no solution, in the units of each row and each column.

A dual ray e with :math:`\sigma_{dom f}(-A'e) + \sigma_{dom g}(e) < 0` separates the constraints: no x is feasible. A
primal ray d with :math:`f_\infty(d) + g_\infty(Ad) < 0` is a direction along which the objective falls without bound
from every feasible point. Entries of -A'e, or of Ad, that leave their cone by rounding are made 0 exactly: a real ray
next to the given one does that (``balance.py``), and the sum is bounded for all rays within that distance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..common.arrays import Indices, Vector
from ..common.rounded import TINY, UNIT, Rounded
from ..functions import Convex
from ..linear_programs.exact_rays import proves_exactly
from ..linear_programs.program import as_linear_program, at_hand
from ..model.model import Model
from ..operators import Adjoint, Operator
from ..problem import Problem
from ..result import Status
from .balance import Columns, Limits, balance
from .certificate import ROUNDINGS

NEAR = 2.0**-8
"""Distance of an entry of the image from its cone, relative to its terms, that leaves a ray of others their own."""

MARGIN = 2.0**-20
"""Part of its terms that the value of a ray must be below 0, where nothing can be made 0 exactly."""

RESOLVED = 2.0**-30
"""Part of its terms that the value of a direction must be below 0; other directions are ignored."""

SHARES = (1e-3, 1e-5, 1e-7, 1e-9, 0.0)
"""Entries of a ray that are smaller than this, relative to the largest, are tried as 0."""

ROUND = 9
"""Decimals to which the entries of a ray are rounded, since the rounded ray may be a proof too."""

MOST_NAMED = 6
"""Maximum number of rows or variables that a message names."""

MOST_WEEDED = 6
"""Maximum number of entries of a ray for which each is tried as 0, to remove rows that the proof does not need."""

MOST_SOLVED = 4_000_000
"""Maximum number of entries of the dense system that makes entries of an image 0."""

TRIES = 4
"""How often entries are added to those that are made 0."""


@dataclass(frozen=True)
class RayCertificate:
    r"""What a ray proves, and how clearly.

    Attributes
    ----------
    proves : Status or None
        ``Status.INFEASIBLE`` for a dual ray, ``Status.UNBOUNDED`` for a primal one (the objective falls without bound
        from every feasible point, if there is one), or None for a ray that proves nothing.
    value : float
        :math:`\sigma_{dom f}(-A'e) + \sigma_{dom g}(e)` or :math:`f_\infty(d) + g_\infty(Ad)`, for the ray times the
        power of two that brings its largest entry into [1, 2). A proof needs ``value + rounding < 0``.
    rounding : float
        Bound on the difference between ``value`` and that of the exact ray.
    violation : float
        The largest distance by which an entry of the image, -A'e or Ad, leaves the cone on which the value is finite,
        relative to the sum of the absolute values of its terms.
    exact : bool
        Whether the proof is a theorem: an exact ray next to this one proves it. If the entries of A, or the functions,
        are not known well enough, a violation within the rounding of its products is allowed, and this is False.
    """

    proves: Status | None
    value: float
    rounding: float
    violation: float
    exact: bool = False


@dataclass(frozen=True)
class Side:
    """One of the two kinds of rays, dual or primal.

    Attributes
    ----------
    status : what the ray proves.
    A : the map from the ray to its image: -A', or A.
    own, other : the functions whose recession functions the ray and its image enter.
    block : the entries between some entries of the ray and some of the image, one column for each of the latter.
    by_entries : whether the cones of the ray, and of the image, are known entry by entry.
    """

    status: Status
    A: Operator
    own: Convex
    other: Convex
    block: Callable[[Indices, Indices], Vector]
    by_entries: tuple[bool, bool]

    def image(self, ray: Vector, radius: Vector | None = None) -> Rounded:
        """Return the image of all rays within a radius of a ray."""
        return self.A.matvec_rounded(ray, radius, precise=True)


def sides(model: Model) -> tuple[Side, Side]:
    """Return the dual and the primal side of a problem."""
    A, f, g, f_star, g_star = model.A, model.f, model.g, model.f_star, model.g_star
    m, n = A.shape
    known = A.traits.entries_known
    dual = Side(
        Status.INFEASIBLE,
        Adjoint(A),
        g_star,
        f_star,
        lambda rows, columns: -A.entries(columns)[rows],
        (_is_sum(g_star, m), known and (f.domain.everything or _is_sum(f_star, n))),
    )
    primal = Side(
        Status.UNBOUNDED,
        A,
        f,
        g,
        lambda columns, rows: A.entries(columns)[rows].T,
        (_is_sum(f, n), known and (g_star.domain.everything or _is_sum(g, m))),
    )
    return dual, primal


def _is_sum(function: Convex, size: int) -> bool:
    return len(function.blocks()) == size


def excluded(model: Model, side: Side, direction: Vector) -> float:
    """Return the size of x (or y) up to which a direction excludes solutions, in units in which the data are of size 1.

    It measures how close a direction is to a ray. It is no proof: a proof needs an image inside its cone.
    """
    inside = _into_cone(side, direction)
    unit, lengths = _units(model, side)
    image = side.A.matvec(inside)
    own, other = side.own.recession(inside), side.other.recession(image)
    value, size = own.value + other.value, own.size + other.size
    if not value < -RESOLVED * size:
        return 0.0
    violation = np.abs(other.violation)
    reach = lengths * float(np.max(np.abs(inside) / unit))
    left = float(np.sum(np.divide(violation, reach, out=np.zeros_like(violation), where=violation > 0)))
    return -value / (size * left) if left > 0 else np.inf


def _units(model: Model, side: Side) -> tuple[Vector, Vector]:
    """Return the canonical units of the entries of a ray, and the sums of |A| times them."""
    rows, columns = model.units_of_directions
    return rows if side.status is Status.INFEASIBLE else columns


class Judged(NamedTuple):
    """What a ray proves, with the ray in floating point that was corrected, and the image of the exact one."""

    certificate: RayCertificate
    ray: Vector
    image: Rounded


def judge(side: Side, ray: Vector, near: float = 1.0) -> Judged:
    """Return what a ray in its own cone proves, or a real ray next to it.

    Entries of the image are made 0 if their distance from their cone, relative to their terms, is at most ``near``.
    """
    inside = not np.any(side.own.recession(ray).violation)
    image, radius = side.image(ray), None
    if inside and side.by_entries[1]:
        ray, radius, image = _held(side, ray, image, near)
    own, other = side.own.recession(ray), side.other.recession(image.high)
    reach = image.error + np.abs(image.low)
    moved = side.other.recession(reach).size + side.other.recession(-reach).size
    if radius is not None:
        moved += side.own.recession(radius).size + side.own.recession(-radius).size
    value, size, terms = own.value + other.value, own.size + other.size, ray.size + image.high.size
    error = (moved + (terms + 4) * UNIT * size) * (1 + (terms + 4) * UNIT) + terms * TINY
    violation = np.abs(other.violation)
    settled = side.by_entries[1] and not _leaving(side, image).size
    # a ray in floating point is balanced up to the rounding of its entries, however well its image is known
    slight = np.maximum(reach, ROUNDINGS * UNIT * image.size)
    rounded = not all(side.by_entries) and bool(np.all(violation <= slight)) and value + error < -MARGIN * size
    proved = inside and value + error < 0 and (settled or rounded)
    beyond = np.divide(violation, image.size, out=np.zeros_like(violation), where=violation > 0)
    exact, worst = proved and settled and side.by_entries[0], float(np.max(beyond, initial=0.0))
    return Judged(RayCertificate(side.status if proved else None, value, error, worst, exact), ray, image)


def _held(side: Side, ray: Vector, image: Rounded, near: float) -> tuple[Vector, Vector | None, Rounded]:
    """Return a ray with its radius, and the image, whose entries that left their cone by little are 0 exactly."""
    radius, zero = None, np.zeros(0, dtype=np.int64)
    for _ in range(TRIES):
        support = np.flatnonzero(ray)
        out = _leaving(side, image)
        far = np.abs(image.high[out]) > near * image.size[out]
        surely = np.abs(image.high[out]) > image.error[out]
        zero = np.union1d(zero, out[surely] if np.any(surely) else out)
        if not out.size or np.any(far) or zero.size * support.size > MOST_SOLVED:
            break
        block = np.asarray(side.block(support, zero))
        y, error = _balanced(side, ray, support, block)
        ray, radius = np.zeros_like(ray), np.zeros_like(ray)
        ray[support] = y
        if error is None:
            return ray, None, side.image(ray)
        radius[support] = error
        image = _at_zero(side.image(ray, radius), zero)
    return ray, radius, image


def _balanced(side: Side, ray: Vector, support: Indices, block: Vector) -> tuple[Vector, Vector | None]:
    """Return the nonzero entries of a ray near the given one, and a radius within which a block times it is 0.

    If none is proved, the radius is None.
    """
    above, below = _limits(side.own, ray.size)
    lower, upper = np.where(below[support], 0.0, -np.inf), np.where(above[support], 0.0, np.inf)
    y = ray[support]
    found = balance(Columns.of(block, np.zeros(block.shape[1])), y, Limits(lower, upper, np.abs(y)))
    if found is None:
        return y, None
    return found.y, found.radius if found.proved and side.by_entries[0] else None


def _at_zero(image: Rounded, places: Indices) -> Rounded:
    """Return an image with some entries that are known to be 0."""
    high, low, error = (np.array(each) for each in image[:3])
    high[places] = low[places] = error[places] = 0.0
    return Rounded(high, low, error, image.size)


def _leaving(side: Side, image: Rounded) -> Indices:
    """Return the entries of an image that may be outside of their cone."""
    above, below = _limits(side.other, image.high.size)
    at = image.high + image.low
    reach = image.error + UNIT * np.abs(at)
    return np.flatnonzero((above & (at + reach > 0)) | (below & (at - reach < 0)))


def _limits(function: Convex, size: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of the entries that must not be positive, and not negative, where the recession function is finite.

    It has to be a sum over entries.
    """
    ones = np.ones(size)
    return function.recession(ones).violation != 0, function.recession(-ones).violation != 0


def prove(model: Model, side: Side, ray: Vector) -> Vector | None:
    """Return a proof next to this ray, with 0 in the entries that do not matter; None if there is no proof."""
    unit, _ = _units(model, side)
    ray = ray / unit
    small = [share * float(np.max(np.abs(ray))) for share in SHARES]
    found = next(_proofs(model, side, [np.where(np.abs(ray) >= least, ray, 0.0) * unit for least in small]), None)
    tried: set[int] = set()
    while found is not None:
        support = np.flatnonzero(found)
        left = [i for i in support[np.argsort(np.abs(found[support] / unit[support]))].tolist() if i not in tried]
        if support.size > MOST_WEEDED or not left:
            break
        tried.add(left[0])
        found = next(_proofs(model, side, [np.where(np.arange(ray.size) == left[0], 0.0, found)]), found)
    return found


def _proofs(model: Model, side: Side, candidates: Iterable[Vector]) -> Iterator[Vector]:
    """Yield the proofs next to candidates; if the data are round numbers, so may be a proof."""
    unit, _ = _units(model, side)
    for candidate in candidates:
        exact = _judged(model, side, candidate)
        in_units = exact.ray / unit
        largest = float(np.max(np.abs(in_units)))
        if largest > 0:
            rounded = _judged(model, side, np.round(in_units / largest, ROUND) * unit)
            for judged in (rounded, exact):
                proof = near_one(judged.ray)
                # the ray that is returned has to prove it by itself
                if judged.certificate.proves is not None and _judged(model, side, proof).certificate.proves is not None:
                    yield proof


def _judged(model: Model, side: Side, ray: Vector, near: float = 1.0) -> Judged:
    """Return what a ray proves: in floating point, or in exact arithmetic if it is cheap."""
    judged = judge(side, near_one(_into_cone(side, ray)), near)
    certificate, image = judged.certificate, judged.image
    program = as_linear_program(model) if at_hand(model.A) else None
    if certificate.proves is not None or program is None or not certificate.value < 0:
        return judged
    zero, dual = _leaving(side, image), side.status is Status.INFEASIBLE
    own = np.abs(image.high[zero]) <= (judged.ray.size + 4) * UNIT * image.size[zero]
    if not (np.all(own) and proves_exactly(program, model.A, dual, judged.ray, zero)):
        return judged
    return judged._replace(certificate=replace(certificate, proves=side.status, exact=True))


def near_one(ray: Vector) -> Vector:
    """Return a ray times the power of two that brings its largest entry into [1, 2)."""
    largest = float(np.abs(ray).max(initial=0.0))
    return np.ldexp(ray, 1 - np.frexp(largest)[1]) if largest > 0 else ray


def _into_cone(side: Side, ray: Vector) -> Vector:
    return ray - side.own.recession(ray).violation


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
        Its ``proves`` is a ``Status``, or None for a ray that proves nothing. Entries of the ray that are outside of
        its cone are projected on it. A ray whose image leaves its cone by little stands for an exact ray next to it.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem is {type(problem).__name__}: expected a saddleback.Problem")
    problem = problem.refreshed()
    found = [
        _judged(problem.model, side, vector, NEAR).certificate
        for side, vector in zip(sides(problem.model), _readings(problem, ray), strict=True)
        if vector is not None
    ]
    return max(found, key=lambda each: (each.proves is not None, -each.value))


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
    """Return a dual ray of a problem with an empty row that 0 does not satisfy: of one such row, if that is enough."""
    rows = model.A.sums(1)[1]
    ray = np.where(rows == 0, -model.g.domain.project(np.zeros(rows.size)), 0.0)
    if _is_sum(model.g, rows.size):
        ray[np.arange(rows.size) != np.flatnonzero(ray)[0]] = 0.0
    return near_one(ray)


def explanation(problem: Problem, status: Status, ray: Vector) -> str:
    """Return a description of a proof, to be placed after a colon: its first letter is small.

    It names the rows and bounds that contradict each other, or the variables that move without bound, and the margin.
    """
    infeasible = status is Status.INFEASIBLE
    certificate, _, image = _judged(problem.model, sides(problem.model)[0 if infeasible else 1], ray, NEAR)
    involved = np.flatnonzero(ray)
    if infeasible:
        held = np.flatnonzero(np.abs(image.high) > image.error)
        verb = "cannot hold" if involved.size == 1 and not held.size else "cannot hold together"
        bounds = f" with the bounds on {_listed('variable', held, problem.column_name)}" if held.size else ""
        said = f"{_listed('row', involved, problem.row_name)} {verb}{bounds}"
    else:
        said = f"the objective falls along {_listed('variable', involved, problem.column_name)}"
    of_rounding = f"of which rounding takes at most {certificate.rounding:.1e}"
    assumed = "" if certificate.exact else ", if the rounding of products is what is assumed of them"
    return f"{said}. The ray proves it with a margin of {-certificate.value:.2g}, {of_rounding}{assumed}."


def _listed(kind: str, places: Indices, name: Callable[[int], str]) -> str:
    """Return the names of the first few rows or variables, and the count of the others."""
    first = [name(i) for i in places[:MOST_NAMED].tolist()]
    more = f" and {places.size - MOST_NAMED} more" if places.size > MOST_NAMED else ""
    return f"{kind}{'' if places.size == 1 else 's'} {', '.join(first)}{more}"
