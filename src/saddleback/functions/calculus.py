"""Functions made of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector
from ..common.cached import cached_property
from ..common.canonical_units import FIXED
from ..common.rounded import Rounded
from .conjugates import Conjugate
from .contract import Convex, Domain, Ray
from .domains import Product, Translated
from .enclosures import shifted
from .excess import Excess, all_bounds, collapsed, largest_proved, linear_bounds, total
from .kinks import Kinks
from .normal_form import NormalForm, PiecewiseParameters
from .points import BlockPoint
from .traits import (
    Addable,
    Coupled,
    Enclosed,
    InUnits,
    Joinable,
    Kinked,
    KnownByProx,
    Lipschitz,
    Movable,
    Remembers,
    Scaled,
    curvature_between,
    distance_from_leaving,
    enclosure,
    in_units,
    kinks,
    memories,
    moved,
    parts_at_zero,
    restrict_parts,
    rise,
    rise_within,
    subdifferential,
    subgradient_scale,
    unit_indices,
    with_memory,
    with_slopes,
    zero_slack,
)

T = TypeVar("T")


class Tilted(Convex, Lipschitz, Addable, Kinked, Scaled, InUnits, Movable, Remembers, Enclosed):
    """f + <c, x> for a function that has no parameter for a linear term."""

    def __init__(self, base: Convex, linear: Vector) -> None:
        self.base = base
        self.linear = linear
        self.diagonal_steps = base.diagonal_steps

    def blocks(self) -> Blocks:
        return self.base.blocks()

    @property
    def domain(self) -> Domain:
        return self.base.domain

    def value(self, x: Vector) -> float:
        return self.base.value(x) + float(self.linear @ x)

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        return self.base.finite_value(x, factor) + factor * float(self.linear @ x)

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        linear = self.linear if blocks is None else self.linear[self.blocks().columns(blocks)]
        return self.base.prox(v - step * linear, step, blocks)

    def recession(self, direction: Vector) -> Ray:
        ray = self.base.recession(direction)
        terms = self.linear * (direction - ray.violation)
        return Ray(ray.value + float(np.sum(terms)), ray.violation, ray.size + float(np.sum(np.abs(terms))))

    def subgradient(self, x: Vector) -> Vector:
        return self.base.subgradient(x) + self.linear

    def subgradient_scale(self) -> Vector:
        return np.abs(self.linear) + subgradient_scale(self.base)

    def rise(self, distance: float) -> float:
        return rise(self.base, distance) + float(np.linalg.norm(self.linear)) * distance

    def conjugate(self) -> TiltedConjugate:
        return TiltedConjugate(self)

    def restrict_blocks(self, blocks: Indices) -> Tilted:
        return Tilted(self.base.restrict_blocks(blocks), self.linear[self.blocks().columns(blocks)])

    def unit_indices(self) -> Indices:
        return unit_indices(self.base, self.linear.size)

    def in_units(self, unit: Vector) -> Tilted:
        return Tilted(in_units(self.base, unit), self.linear * unit)

    def moved(self, place: ToDevice) -> Tilted:
        return Tilted(moved(self.base, place), place(self.linear))

    def plus(self, piece: PiecewiseParameters) -> Tilted:
        return Tilted(self.base, self.linear + piece.left)

    def kinks(self, z: Vector, rest: Tilted) -> Kinks:
        return kinks(self.base, z - self.linear, rest.base)

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        low, high = subdifferential(self.base, x, tolerance)
        return low + self.linear, high + self.linear

    def excess(self, point: Vector, radius: Vector | None, slope: Rounded) -> Excess:
        known, at = self.base.excess(point, radius, self._untilted(slope)), Rounded.around(point, radius)
        value = all_bounds(known.value, linear_bounds(self.linear, collapsed(at)))
        return known._replace(value=value, multiple=self._multiple(known, point, slope))

    def _untilted(self, slope: Rounded) -> Rounded:
        with np.errstate(all="ignore"):  # numbers out of range are left to the base
            return slope.plus(Rounded.around(-self.linear))

    def _multiple(self, known: Excess, point: Vector, slope: Rounded) -> float:
        """Return the largest multiple of a slope that is proved to be in the domain of the conjugate."""
        if known.slope_inside or known.multiple == 1.0:
            return 1.0
        return largest_proved(
            self.conjugate().domain.largest_multiple(slope.high),
            lambda t: self.base.excess(point, None, self._untilted(slope.times(t))).slope_inside,
        )

    def enclosure(self, low: Vector, high: Vector, excess: float) -> tuple[Vector, Vector]:
        return enclosure(self.base, *shifted(low, high, self.linear), excess)

    def longest(self, low: Vector, high: Vector, excess: float) -> Vector | None:
        own = shifted(low, high, self.linear)
        return self.base.longest(*own, excess) if isinstance(self.base, Enclosed) else None

    def with_slopes(self, low: Vector, high: Vector) -> tuple[Vector, Vector]:
        return with_slopes(self.base, *shifted(low, high, self.linear))

    def curvature_between(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        return curvature_between(self.base, lower, upper)

    def with_memory(self) -> Tilted:
        base = with_memory(self.base)
        return self if base is self.base else Tilted(base, self.linear)

    def memories(self) -> Sequence[Any]:
        return memories(self.base)


class TiltedConjugate(Conjugate[Tilted], KnownByProx):
    """The conjugate of f + <c, x>, which is f*(y - c)."""

    @cached_property
    def base(self) -> Convex:
        """The conjugate of f."""
        return self.of.base.conjugate()

    @property
    def domain(self) -> Domain:
        return Translated(self.base.domain, self.of.linear, self.value)

    def value(self, x: Vector) -> float:
        return self.base.value(x - self.of.linear)

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        return self.base.finite_value(factor * x - self.of.linear)

    def recession(self, direction: Vector) -> Ray:
        return self.base.recession(direction)

    def near(self, x: Vector, subgradient: Vector) -> tuple[Vector, float]:
        point, value = self.base.near(x - self.of.linear, subgradient)
        return point + self.of.linear, value

    def excess(self, point: Vector, radius: Vector | None, slope: Rounded) -> Excess:
        at = collapsed(self.of._untilted(Rounded.around(point, radius)))
        known = self.base.excess(at.value, at.error if np.any(at.error) else None, slope)
        return known._replace(conjugate=all_bounds(known.conjugate, linear_bounds(self.of.linear, collapsed(slope))))


class BlockSum(Convex, Lipschitz, Addable, Kinked, Coupled, Scaled, InUnits, KnownByProx, Movable, Remembers, Enclosed):
    """A sum of functions, each of neighbouring coordinates of one long vector.

    Parameters
    ----------
    functions : Sequence[Convex]
        The functions, in order.
    sizes : Sequence[int]
        Number of coordinates of each.
    split : Sequence[bool]
        Whether a function keeps its own blocks, or counts as one block.
    """

    def __init__(self, functions: Sequence[Convex], sizes: Sequence[int], split: Sequence[bool]) -> None:
        self.functions = functions
        self.sizes = sizes
        self.split = split
        self.start = np.concatenate([[0], np.cumsum(sizes)])
        self.stretches = [slice(a, b) for a, b in zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True)]

    @cached_property
    def own_blocks(self) -> list[Blocks]:
        """The blocks of each function."""
        known = zip(self.functions, self.sizes, self.split, strict=True)
        return [function.blocks() if fine else Blocks.single(size) for function, size, fine in known]

    @cached_property
    def own_parts(self) -> list[Blocks]:
        """The parts of each function that may each be 0."""
        finer = [parts_at_zero(function) for function in self.functions]
        return [
            part if fine and part is not None else own
            for part, own, fine in zip(finer, self.own_blocks, self.split, strict=True)
        ]

    @cached_property
    def first_block(self) -> Indices:
        """The index of the first block of each function, and the number of blocks."""
        return firsts(self.own_blocks)

    @cached_property
    def _blocks(self) -> Blocks:
        return self._side_by_side(self.own_blocks)

    def _side_by_side(self, partitions: Sequence[Blocks]) -> Blocks:
        """Return one partition of all coordinates, given that of each function."""
        shifted = list(zip(partitions, self.start[:-1], strict=True))
        contiguous = all(blocks.contiguous for blocks in partitions)
        return Blocks(
            None if contiguous else np.concatenate([blocks.order + a for blocks, a in shifted]),
            np.concatenate([*(blocks.start[:-1] + a for blocks, a in shifted), self.start[-1:]]),
        )

    def blocks(self) -> Blocks:
        return self._blocks

    def parts_at_zero(self) -> Blocks | None:
        finer = any(own is not blocks for own, blocks in zip(self.own_parts, self.own_blocks, strict=True))
        return self._side_by_side(self.own_parts) if finer else None

    def parts(self) -> Sequence[tuple[Convex, slice]]:
        """Return the functions, each with its coordinates."""
        return list(zip(self.functions, self.stretches, strict=True))

    def _each(self, call: Callable[..., T], *vectors: Vector | Step) -> list[T]:
        """Call a function of each part with its slice of each vector."""
        return [
            call(part, *(v if isinstance(v, (int, float)) else v[own] for v in vectors)) for part, own in self.parts()
        ]

    def _with(self, functions: Sequence[Convex]) -> BlockSum:
        """Return the sum of other functions of the same coordinates; itself if they are the same."""
        same = all(new is old for new, old in zip(functions, self.functions, strict=True))
        return self if same else BlockSum(functions, self.sizes, self.split)

    @cached_property
    def domain(self) -> Domain:
        return Product([(part.domain, own) for part, own in self.parts()])

    def value(self, x: Vector) -> float:
        return float(sum(self._each(lambda part, x: part.value(x), x)))

    def finite_value(self, x: Vector, factor: float = 1.0) -> float:
        return float(sum(self._each(lambda part, x: part.finite_value(x, factor), x)))

    def prox(self, v: Vector, step: Step, blocks: Indices | None = None) -> Vector:
        if blocks is None:
            return np.concatenate(self._each(lambda part, v, step: part.prox(v, step), v, step))
        if blocks.size == 1:  # a single block, such as a matrix, needs no copy
            return self._prox_of(int(np.searchsorted(self.first_block, blocks[0], side="right")) - 1, blocks, v, step)
        sizes = self.blocks().sizes[blocks]
        step = np.broadcast_to(step, v.shape)
        result = np.empty_like(v)
        for i in range(len(self.functions)):
            mine = (blocks >= self.first_block[i]) & (blocks < self.first_block[i + 1])
            if np.any(mine):
                entries = np.repeat(mine, sizes)
                result[entries] = self._prox_of(i, blocks[mine], v[entries], step[entries])
        return result

    def _prox_of(self, i: int, blocks: Indices, v: Vector, step: Step) -> Vector:
        """Return the prox of one function on some of its blocks."""
        return self.functions[i].prox(v, step, blocks - self.first_block[i] if self.split[i] else None)

    def recession(self, direction: Vector) -> Ray:
        rays = self._each(lambda part, d: part.recession(d), direction)
        violation = np.concatenate([ray.violation for ray in rays])
        return Ray(sum(ray.value for ray in rays), violation, sum(ray.size for ray in rays))

    def subgradient(self, x: Vector) -> Vector:
        return np.concatenate(self._each(lambda part, x: part.subgradient(x), x))

    def subgradient_scale(self) -> Vector:
        own = zip(self.functions, self.sizes, strict=True)
        return np.concatenate([np.broadcast_to(subgradient_scale(part), (size,)) for part, size in own])

    def unit_indices(self) -> Indices:
        indices, first = [], 0
        for part, size in zip(self.functions, self.sizes, strict=True):
            own = unit_indices(part, size)
            indices.append(np.where(own == FIXED, FIXED, own + first))
            first += int(np.max(own, initial=FIXED)) + 1
        return np.concatenate(indices)

    def in_units(self, unit: Vector) -> BlockSum:
        return BlockSum(self._each(in_units, unit), self.sizes, self.split)

    def rise(self, distance: float) -> float:
        return sum(rise(part, distance) for part in self.functions)

    def rise_within(self, distances: Vector) -> float:
        return sum(self._each(rise_within, distances))

    def conjugate(self) -> BlockSum:
        return BlockSum([part.conjugate() for part in self.functions], self.sizes, self.split)

    def near(self, x: Vector, subgradient: Vector) -> tuple[Vector, float]:
        points, values = zip(*self._each(lambda part, x, own: part.near(x, own), x, subgradient), strict=True)
        unchanged = all(np.array_equal(point, x[own]) for point, (_, own) in zip(points, self.parts(), strict=True))
        return x if unchanged else BlockPoint(points).vector(), float(sum(values))

    def excess(self, point: Vector, radius: Vector | None, slope: Rounded) -> Excess:
        return total(
            part.excess(point[own], None if radius is None else radius[own], slope.part(own))
            for part, own in self.parts()
        )

    def restrict_blocks(self, blocks: Indices) -> BlockSum:
        return self._restricted(blocks, self.own_blocks, lambda part, mine: part.restrict_blocks(mine))

    def restrict_parts(self, parts: Indices) -> BlockSum:
        return self._restricted(parts, self.own_parts, restrict_parts)

    def _restricted(
        self, chosen: Indices, partitions: Sequence[Blocks], restrict: Callable[[Convex, Indices], Convex]
    ) -> BlockSum:
        """Return the sum over some of the blocks or parts, given their partitions."""
        first = firsts(partitions)
        of_part = np.searchsorted(first, chosen, side="right") - 1
        parts, sizes = [], []
        for run in np.split(np.arange(chosen.size), np.flatnonzero(np.diff(of_part)) + 1):
            i = of_part[run[0]]
            mine, own = chosen[run] - first[i], partitions[i]
            whole = np.array_equal(own.columns(mine), np.arange(own.order.size))
            parts.append(self.functions[i] if whole else restrict(self.functions[i], mine))
            sizes.append(int(own.sizes[mine].sum()))
        return BlockSum(parts, sizes, [True] * len(parts))

    def without(self, part: int) -> BlockSum:
        """Return the sum without one of its parts."""
        rest = [i for i in range(len(self.functions)) if i != part]
        return BlockSum([self.functions[i] for i in rest], [self.sizes[i] for i in rest], [self.split[i] for i in rest])

    def moved(self, place: ToDevice) -> BlockSum:
        return self._with([moved(part, place) for part in self.functions])

    def normal_form(self) -> NormalForm | None:
        forms = [part.normal_form() if split else None for part, split in zip(self.functions, self.split, strict=True)]
        known = [form for form in forms if form is not None]
        return NormalForm(tuple(atom for form in known for atom in form.atoms)) if len(known) == len(forms) else None

    def plus(self, piece: PiecewiseParameters) -> BlockSum:
        return self._with(
            [plus(part, PiecewiseParameters(*(own[stretch] for own in piece))) for part, stretch in self.parts()]
        )

    def zero_slack(self, z: Vector) -> Vector | None:
        slacks = self._each(zero_slack, z)
        if not all(self.split) or all(slack is None for slack in slacks):
            return None
        return np.concatenate(
            [
                np.full(len(blocks), -np.inf) if slack is None else slack
                for slack, blocks in zip(slacks, self.own_blocks, strict=True)
            ]
        )

    def distance_from_leaving(self, z: Vector, lengths: Vector) -> Vector:
        own = np.split(lengths, firsts(self.own_parts)[1:-1])
        parts = zip(self.parts(), own, strict=True)
        return np.concatenate([distance_from_leaving(part, z[stretch], mine) for (part, stretch), mine in parts])

    def kinks(self, z: Vector, rest: BlockSum) -> Kinks:
        alphas, slopes, parts, known = [], [], [], 0
        for (part, stretch), other in zip(self.parts(), rest.functions, strict=True):
            own = kinks(part, z[stretch], other)
            alphas.append(own.alpha)
            slopes.append(own.slope)
            parts.append(np.where(own.part >= 0, own.part + known, -1))
            known += own.alpha.size
        return Kinks(np.concatenate(alphas), np.concatenate(slopes), np.concatenate(parts))

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        return self._ends(subdifferential, x, tolerance)

    def _ends(self, call: Callable[..., tuple[Vector, Vector]], *vectors: Vector | Step) -> tuple[Vector, Vector]:
        """Return the ends of intervals, given a function that returns those of each part."""
        low, high = zip(*self._each(call, *vectors), strict=True)
        return np.concatenate(low), np.concatenate(high)

    def enclosure(self, low: Vector, high: Vector, excess: float) -> tuple[Vector, Vector]:
        return self._ends(enclosure, low, high, excess)

    def with_slopes(self, low: Vector, high: Vector) -> tuple[Vector, Vector]:
        return self._ends(with_slopes, low, high)

    def curvature_between(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        return self._ends(curvature_between, lower, upper)

    def with_memory(self) -> BlockSum:
        return self._with([with_memory(part) for part in self.functions])

    def memories(self) -> Sequence[Any]:
        return [memory for part in self.functions for memory in memories(part)]


def firsts(partitions: Sequence[Blocks]) -> Indices:
    """Return the index of the first block of each partition, and the number of all blocks."""
    return np.concatenate([[0], np.cumsum([len(blocks) for blocks in partitions])])


def parts_of(function: Convex) -> Sequence[tuple[Convex, slice]]:
    """Return the functions, each of neighbouring coordinates, of which a function is the sum; or just itself."""
    return function.parts() if isinstance(function, BlockSum) else [(function, slice(None))]


def plus(function: Convex, piece: PiecewiseParameters) -> Convex:
    """Return the sum of a function and a member of the family in ``piecewise.py`` that its ``Term`` accepts."""
    return function.plus(piece) if isinstance(function, Addable) else Tilted(function, piece.left)


def hstack(functions: Sequence[Convex], sizes: Sequence[int]) -> Convex:
    """Return functions, each of neighbouring coordinates of one vector, as a single one if they are of one kind."""
    whole: Convex | None = functions[0]
    for function in functions[1:]:
        whole = whole.hstack(function) if isinstance(whole, Joinable) else None
    return whole or BlockSum(functions, sizes, [True] * len(sizes))
