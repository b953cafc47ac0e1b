"""Different penalties for different columns, as one penalty on x."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatch
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector, constant
from ..common.cached import cached_property, twin
from ..common.checks import shown
from ..common.rounded import Rounded
from ..common.sums import Equations
from .calculus import hstack, plus
from .contract import Convex, Domain, Ray
from .domains import PartlyFixed, bounded, fixed, fixed_sums, sums_inside
from .excess import Excess
from .group import GroupNorms, partition_of_entries
from .kinks import Kinks
from .normal_form import GroupNorm, NormalForm, Piecewise, PiecewiseParameters
from .penalties import Penalty, Piece, Sum
from .traits import (
    Addable,
    Enclosed,
    InUnits,
    Kinked,
    KnownByProx,
    Lipschitz,
    Movable,
    Remembers,
    Scaled,
    SumOverCoordinates,
    curvature_between,
    enclosure,
    in_units,
    kinks,
    memories,
    moved,
    rise,
    rise_within,
    subdifferential,
    subgradient_scale,
    unit_indices,
    with_memory,
    with_slopes,
    zero_slack,
)

if TYPE_CHECKING:
    from .concave import Bend

Array = TypeVar("Array", bound=NDArray[Any])

OF_ALL_PARTS = frozenset({"linear", "sign", "box"})
"""The kinds of ``Piece`` that may be added to all parts at once, if each of them accepts it."""


class ByColumns(Penalty):
    """f_1(x at some columns) + f_2(x at other columns) + ...: a separate penalty for each set of columns.

    It is the same as a list of penalties with a list of matrices, without a copy of the columns: A stays one matrix,
    and x one vector in the order of its columns.

    Parameters
    ----------
    parts : list of (penalty, list of int)
        Each penalty with the indices of its columns; every column of A is in exactly one list. A penalty sees its
        columns in the order of the list: ``groups`` and ``weights`` count within it. If x is a matrix, columns of A are
        rows of x. A path gives its alpha to all penalties that have one.

    Examples
    --------
    >>> import numpy as np, saddleback as sb
    >>> penalty = sb.ByColumns([(sb.L1(1.0), [0, 3]), (sb.GroupL2(2.0, 2), [1, 4]), (sb.Zero(), [2])])
    >>> round(float(penalty.value([1.0, 3.0, 7.0, -1.0, 4.0])), 4)  # 2 + 2 sqrt(2) 5
    16.1421
    """

    def __init__(self, parts: Iterable[tuple[Penalty, ArrayLike]]) -> None:
        pairs = [_checked(part, f"parts[{i}]") for i, part in enumerate(parts)]
        if not pairs:
            raise ValueError("parts is empty: expected a list of pairs (penalty, columns)")
        self.terms, self.columns = [term for term, _ in pairs], [columns for _, columns in pairs]
        found, counts = np.unique(np.concatenate(self.columns), return_counts=True)
        if np.any(counts > 1):
            raise ValueError(f"parts has the column {found[counts > 1][0]} twice: expected each column in one part")
        self.accepts = OF_ALL_PARTS.intersection(*map(_accepted, self.terms))
        self.rounds = min((term.rounds for term in self.terms if term.rounds is not None), default=None)

    def __repr__(self) -> str:
        pairs = zip(self.terms, self.columns, strict=True)
        return f"ByColumns([{', '.join(f'({term!r}, {shown(columns.tolist())})' for term, columns in pairs)}])"

    def has_alpha(self) -> bool:
        return any(term.has_alpha() for term in self.terms)

    def with_alpha(self, alpha: float) -> ByColumns:
        return self._with([term.with_alpha(alpha) for term in self.terms])

    def times(self, factor: float) -> ByColumns:
        return self._with([term.times(factor) for term in self.terms])

    @property
    def convex(self) -> bool:
        return all(term.convex for term in self.terms)

    def majoriser(self, x: ArrayLike | None = None) -> ByColumns:
        points = [None] * len(self.terms) if x is None else self._each(np.asarray(x, dtype=np.float64))
        return self._with([term.majoriser(own) for term, own in zip(self.terms, points, strict=True)])

    def steeper(self, factor: float) -> ByColumns:
        return self._with([term.steeper(factor) for term in self.terms])

    def bends(self, shape: tuple[int, ...]) -> list[Bend]:
        found, blocks = [], self.majoriser().bind(shape).blocks()
        ends = np.cumsum([columns.size * prod(shape[1:]) for columns in self.columns])
        for term, columns, own in zip(self.terms, self.columns, np.split(self._entries(shape), ends[:-1]), strict=True):
            part = (columns.size, *shape[1:])
            of_part = term.majoriser().bind(part).blocks()
            places = blocks.of_columns[own[of_part.order[of_part.start[:-1]]]]
            found += [bend.among(len(blocks), places) for bend in term.bends(part)]
        return found

    def below_majoriser(self, x: Vector, v: Vector) -> float:
        parts = zip(self.terms, self._each(x), self._each(v), strict=True)
        return sum(term.below_majoriser(own, at) for term, own, at in parts)

    def value(self, x: ArrayLike) -> float:
        point = np.asarray(x, dtype=np.float64)
        self._check(point.shape)
        return sum(term.value(own) for term, own in zip(self.terms, self._each(point), strict=True))

    def linear(self, shape: tuple[int, ...]) -> Vector:
        self._check(shape)
        parts = self._for_parts(shape, lambda term, own: term.linear(own))
        some = any(np.any(part) for part in parts)
        return _put(np.concatenate(parts), self._entries(shape)) if some else constant(0.0, prod(shape))

    def bind(self, shape: tuple[int, ...]) -> Convex:
        self._check(shape)
        functions = self._for_parts(shape, lambda term, own: term.bind(own))
        sizes = [columns.size * prod(shape[1:]) for columns in self.columns]
        return rearranged(hstack(functions, sizes), self._entries(shape))

    def _with(self, terms: list[Any]) -> ByColumns:
        other = twin(self)
        other.terms = terms
        return other

    def _each(self, x: Vector) -> list[Vector]:
        """Return the rows of x of each part."""
        return [x[columns] for columns in self.columns]

    def _for_parts(self, shape: tuple[int, ...], call: Any) -> list[Any]:
        """Call a function of each penalty and the shape of its part of x."""
        return [call(term, (columns.size, *shape[1:])) for term, columns in zip(self.terms, self.columns, strict=True)]

    def _entries(self, shape: tuple[int, ...]) -> Indices:
        """Return the entries of a flat variable of that shape, one part after the other."""
        sizes = [0, *(columns.size for columns in self.columns)]
        return partition_of_entries(Blocks(np.concatenate(self.columns), np.cumsum(sizes)), shape).order

    def _check(self, shape: tuple[int, ...]) -> None:
        """Raise if the parts do not have each column of a variable of that shape."""
        found = np.concatenate(self.columns)
        if found.max() >= shape[0]:
            raise ValueError(f"parts has the column {found.max()}, but there are {shape[0]} columns: expected less")
        missing = np.setdiff1d(np.arange(shape[0]), found)
        if missing.size:
            raise ValueError(
                f"parts has no penalty for the column{'s' * (missing.size > 1)} {shown(missing.tolist())}: expected "
                "each column in one part; give Zero() to columns without a penalty"
            )


def _checked(part: Any, name: str) -> tuple[Penalty, Indices]:
    """Return a part as a penalty and its columns."""
    if not isinstance(part, (tuple, list)) or len(part) != 2 or not isinstance(part[0], Penalty):
        raise TypeError(f"{name} is {shown(part)}: expected a pair of a penalty, such as sb.L1(0.1), and its columns")
    term, given = part
    columns = np.asarray(given)
    if columns.ndim != 1 or not columns.size or columns.dtype.kind not in "iu" or columns.min() < 0:
        raise ValueError(f"{name} has the columns {shown(given)}: expected a list of indices that are at least 0")
    return term, columns.astype(np.int64)


def _accepted(term: Any) -> frozenset[str]:
    """Return which kinds of ``Piece`` may be added to a penalty."""
    if isinstance(term, Piece):
        return OF_ALL_PARTS
    if isinstance(term, Sum):
        return OF_ALL_PARTS.intersection(*map(_accepted, term.terms))
    accepts: frozenset[str] = term.accepts
    return accepts


def _put(values: Array, order: Indices) -> Array:
    """Return the array that has these values at ``order``."""
    result: Array = np.empty_like(values)
    result[order] = values
    return result


@singledispatch
def rearranged(function: Convex, order: Indices) -> Convex:
    """Return f(x[order])."""
    return Rearranged(function, order)


@rearranged.register
def _(function: SumOverCoordinates, order: Indices) -> Convex:
    return function.restrict(np.argsort(order))


@rearranged.register
def _(function: GroupNorms, order: Indices) -> Convex:
    return function.rearranged(order)


class Rearranged(Convex, Lipschitz, Addable, Kinked, Scaled, InUnits, KnownByProx, Movable, Remembers, Enclosed):
    """f(x[order]), for a function f of the coordinates in another order; its blocks are those of f."""

    def __init__(self, base: Convex, order: Indices) -> None:
        self.base = base
        self.order = order
        self.diagonal_steps = base.diagonal_steps

    def _back(self, values: Array) -> Array:
        """Return values that f has in its order in the order of x."""
        return _put(values, self.order)

    def _ends(self, ends: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
        return self._back(ends[0]), self._back(ends[1])

    def _step(self, step: Step) -> Step:
        return step if isinstance(step, (int, float)) or step.size == 1 else step[self.order]

    @cached_property
    def _blocks(self) -> Blocks:
        own = self.base.blocks()
        return Blocks(self.order[own.order], own.start)

    def blocks(self) -> Blocks:
        return self._blocks

    @cached_property
    def domain(self) -> Domain:
        return RearrangedSet(self.base.domain, self.order)

    def unit_indices(self) -> Indices:
        return self._back(unit_indices(self.base, self.order.size))

    def in_units(self, unit: Vector) -> Rearranged:
        return Rearranged(in_units(self.base, unit[self.order]), self.order)

    def value(self, x: Vector) -> float:
        return self.base.value(x[self.order])

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        return self.base.finite_value(x[self.order], factor)

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        if blocks is not None:  # blocks come one after the other, in the order of f and of x
            return self.base.prox(v, step, blocks)
        return self._back(self.base.prox(v[self.order], self._step(step)))

    def recession(self, direction: Vector) -> Ray:
        ray = self.base.recession(direction[self.order])
        return ray._replace(violation=self._back(ray.violation))

    def subgradient(self, x: Vector) -> Vector:
        return self._back(self.base.subgradient(x[self.order]))

    def subgradient_scale(self) -> Vector:
        return self._back(np.broadcast_to(subgradient_scale(self.base), self.order.shape))

    def rise(self, distance: float) -> float:
        return rise(self.base, distance)

    def rise_within(self, distances: Vector) -> float:
        return rise_within(self.base, distances[self.order])

    def conjugate(self) -> Rearranged:
        return Rearranged(self.base.conjugate(), self.order)

    def near(self, x: Vector, subgradient: Vector) -> tuple[Vector, float]:
        point, value = self.base.near(x[self.order], subgradient[self.order])
        return self._back(point), value

    def excess(self, point: Vector, radius: Vector | None, slope: Rounded) -> Excess:
        own = None if radius is None else radius[self.order]
        return self.base.excess(point[self.order], own, slope.part(self.order))

    def restrict_blocks(self, blocks: Indices) -> Rearranged:
        rest = self.base.restrict_blocks(blocks)
        return Rearranged(rest, np.arange(self.blocks().sizes[blocks].sum()))

    def moved(self, place: ToDevice) -> Rearranged:
        return Rearranged(moved(self.base, place), place(self.order))

    def normal_form(self) -> NormalForm | None:
        form = self.base.normal_form()
        if form is None or not all(isinstance(atom, Piecewise | GroupNorm) for atom in form.atoms):
            return None
        parameters = PiecewiseParameters(*map(self._back, form.parameters))
        return NormalForm((GroupNorm(parameters, form.group_weight),))

    def plus(self, piece: PiecewiseParameters) -> Rearranged:
        return Rearranged(plus(self.base, PiecewiseParameters(*(own[self.order] for own in piece))), self.order)

    def zero_slack(self, z: Vector) -> Vector | None:
        return zero_slack(self.base, z[self.order])

    def kinks(self, z: Vector, rest: Rearranged) -> Kinks:
        own = kinks(self.base, z[self.order], rest.base)
        return own._replace(slope=self._back(own.slope), part=self._back(own.part))

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        return self._ends(subdifferential(self.base, x[self.order], tolerance[self.order]))

    def enclosure(self, low: Vector, high: Vector, excess: float) -> tuple[Vector, Vector]:
        return self._ends(enclosure(self.base, low[self.order], high[self.order], excess))

    def with_slopes(self, low: Vector, high: Vector) -> tuple[Vector, Vector]:
        return self._ends(with_slopes(self.base, low[self.order], high[self.order]))

    def curvature_between(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        return self._ends(curvature_between(self.base, lower[self.order], upper[self.order]))

    def with_memory(self) -> Rearranged:
        base = with_memory(self.base)
        return self if base is self.base else Rearranged(base, self.order)

    def memories(self) -> Sequence[Any]:
        return memories(self.base)


class RearrangedSet(Domain, PartlyFixed):
    """The points x with x[order] in a set."""

    def __init__(self, base: Domain, order: Indices) -> None:
        self.base = base
        self.order = order

    @property
    def everything(self) -> bool:
        return self.base.everything

    def project(self, x: Vector) -> Vector:
        own = x[self.order]
        inside = self.base.project(own)
        return x if inside is own else _put(inside, self.order)

    def largest_multiple(self, x: Vector) -> float:
        return self.base.largest_multiple(x[self.order])

    def has_zero(self) -> bool:
        return self.base.has_zero()

    def fixed(self) -> Indices:
        return np.sort(self.order[fixed(self.base)])

    def fixed_sums(self, size: int) -> Equations:
        return fixed_sums(self.base, size).at(self.order)

    def sums_inside(self, slope: Rounded) -> Equations:
        return sums_inside(self.base, slope.part(self.order)).at(self.order)

    def box(self, size: int) -> tuple[Vector, Vector]:
        low, high = self.base.box(size)
        return _put(low, self.order), _put(high, self.order)


@bounded.register
def _(domain: RearrangedSet, size: int) -> Any:
    return _put(bounded(domain.base, size), domain.order)
