"""Functions made of functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.arrays import Blocks, Indices, Step, ToDevice, Vector
from .contract import Compiled, Function, Kinks, Ray, Slopes
from .points import Apart, Held

if TYPE_CHECKING:
    from .user import UserFunction

BISECTIONS = 60


class Tilted(Function):
    """f + <c, x> for a function that has no room for a linear term of its own: the conjugate is shifted by c."""

    def __init__(self, base: Function, linear: Vector) -> None:
        self.base = base
        self.linear = linear
        self.scalar_step = base.scalar_step

    def blocks(self) -> Blocks:
        return self.base.blocks()

    def user_functions(self) -> Sequence[tuple[UserFunction, slice, Vector | float]]:
        return [(own, where, linear + self.linear[where]) for own, where, linear in self.base.user_functions()]

    def value(self, x: Vector) -> float:
        return self.base.value(x) + float(self.linear @ x)

    def finite_value(self, x: Vector) -> float:
        return self.base.finite_value(x) + float(self.linear @ x)

    def project(self, x: Vector) -> Vector:
        return self.base.project(x)

    def prox(self, v: Vector, step: Step) -> Vector:
        return self.base.prox(v - step * self.linear, step)

    def prox_blocks(self, blocks: Indices, v: Vector, step: Vector) -> Vector:
        linear = self.linear[self.blocks().columns(blocks)]
        return self.base.prox_blocks(blocks, v - step * linear, step)

    def recession(self, direction: Vector) -> Ray:
        ray = self.base.recession(direction)
        terms = self.linear * (direction - ray.violation)
        return Ray(ray.value + float(np.sum(terms)), ray.violation, ray.size + float(np.sum(np.abs(terms))))

    def subgradient(self, x: Vector) -> Vector:
        return self.base.subgradient(x) + self.linear

    def conjugate(self, y: Vector) -> float:
        return self.base.conjugate(y - self.linear)

    def bounded_below(self) -> bool:
        return not self.base.scaling(-self.linear) < 1.0  # nan where it is not known

    def conjugate_near(self, y: Vector, x: Vector) -> tuple[Vector, float]:
        point, value = self.base.conjugate_near(y - self.linear, x)
        return point + self.linear, value

    def conjugate_scaled(self, y: Vector, t: float, x: Vector) -> float:
        return self.base.conjugate_scaled(t * y - self.linear, 1.0, x)

    def project_conjugate(self, y: Vector) -> Vector:
        return self.base.project_conjugate(y - self.linear) + self.linear

    def conjugate_recession(self, direction: Vector) -> Ray:
        return self.base.conjugate_recession(direction)

    def scaling(self, y: Vector) -> float:
        known = not np.isnan(self.base.scaling(y - self.linear))
        return scaling_by_bisection(self, y) if known else np.nan

    def unpenalised(self) -> Indices:
        return self.base.unpenalised()

    def plus(self, piece: Slopes) -> Function:
        return Tilted(self.base, self.linear + piece.left)

    def finite_everywhere(self) -> bool:
        return self.base.finite_everywhere()

    def strong_convexity(self) -> float:
        return self.base.strong_convexity()

    def kinks(self, z: Vector, rest: Tilted) -> Kinks:
        return self.base.kinks(z - self.linear, rest.base)

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        low, high = self.base.subdifferential(x, tolerance)
        return low + self.linear, high + self.linear

    def with_memory(self) -> Tilted:
        base = self.base.with_memory()
        return self if base is self.base else Tilted(base, self.linear)

    def placed(self, place: ToDevice) -> Tilted:
        return Tilted(self.base.placed(place), place(self.linear))

    def memories(self) -> list[Any]:
        return self.base.memories()

    def typical_slope(self) -> Vector:
        return np.abs(self.linear) + self.base.typical_slope()


class BlockSum(Function):
    """A sum of functions, each of its own stretch of one long vector.

    Parameters
    ----------
    parts : the functions, in order.
    sizes : how many coordinates each has.
    split : whether a part keeps its own blocks, or counts as one.
    """

    def __init__(self, parts: Sequence[Function], sizes: Sequence[int], split: Sequence[bool]) -> None:
        self.parts = parts
        self.sizes = sizes
        self.split = split
        self.start = np.concatenate([[0], np.cumsum(sizes)])
        self.stretches = [slice(a, b) for a, b in zip(self.start[:-1], self.start[1:], strict=True)]
        self.own_blocks = [
            part.blocks() if fine else Blocks.single(size) for part, size, fine in zip(parts, sizes, split, strict=True)
        ]
        placed = list(zip(self.own_blocks, self.start[:-1], strict=True))
        self.all_blocks = Blocks(
            None
            if all(blocks.contiguous for blocks in self.own_blocks)
            else np.concatenate([blocks.order + a for blocks, a in placed]),
            np.concatenate([*(blocks.start[:-1] + a for blocks, a in placed), self.start[-1:]]),
        )
        self.even = all(part.even for part in parts)
        self.first_block = np.concatenate([[0], np.cumsum([len(blocks) for blocks in self.own_blocks])])

    def blocks(self) -> Blocks:
        return self.all_blocks

    def apart(self) -> Sequence[tuple[Function, slice]]:
        return list(zip(self.parts, self.stretches, strict=True))

    def user_functions(self) -> Sequence[tuple[UserFunction, slice, Vector | float]]:
        return [
            (own, slice(*(first + end for end in where.indices(size)[:2])), linear)
            for part, first, size in zip(self.parts, self.start[:-1].tolist(), self.sizes, strict=True)
            for own, where, linear in part.user_functions()
        ]

    def _each(self, method: str, *vectors: Vector | Step) -> list[Any]:
        """Call a method of every part with its stretch of each vector."""
        return [
            getattr(part, method)(*(v if isinstance(v, (int, float)) else v[stretch] for v in vectors))
            for part, stretch in zip(self.parts, self.stretches, strict=True)
        ]

    def value(self, x: Vector) -> float:
        return float(sum(self._each("value", x)))

    def finite_value(self, x: Vector) -> float:
        return float(sum(self._each("finite_value", x)))

    def project(self, x: Vector) -> Vector:
        return x if self.finite_everywhere() else np.concatenate(self._each("project", x))

    def prox(self, v: Vector, step: Step) -> Vector:
        return np.concatenate(self._each("prox", v, step))

    def prox_blocks(self, blocks: Indices, v: Vector, step: Vector) -> Vector:
        if blocks.size == 1:  # nothing to take apart: a matrix block is best not copied
            i = int(np.searchsorted(self.first_block, blocks[0], side="right")) - 1
            local = blocks - self.first_block[i]
            part = self.parts[i]
            return part.prox_blocks(local, v, step) if self.split[i] else part.prox(v, step)
        sizes = self.all_blocks.sizes[blocks]
        result = np.empty_like(v)
        for i, part in enumerate(self.parts):
            mine = (blocks >= self.first_block[i]) & (blocks < self.first_block[i + 1])
            if np.any(mine):
                entries = np.repeat(mine, sizes)
                local = blocks[mine] - self.first_block[i]
                if self.split[i]:
                    result[entries] = part.prox_blocks(local, v[entries], step[entries])
                else:
                    result[entries] = part.prox(v[entries], step[entries])
        return result

    def prox_point(self, v: Vector, step: Step) -> Held:
        return self.parts[0].prox_point(v, step) if len(self.parts) == 1 else super().prox_point(v, step)

    def block_prox_point(self, block: int, v: Vector, step: Vector) -> Held:
        i = int(np.searchsorted(self.first_block, block, side="right")) - 1
        part = self.parts[i]
        if not self.split[i]:
            return part.prox_point(v, step)
        return part.block_prox_point(block - int(self.first_block[i]), v, step)

    def recession(self, direction: Vector) -> Ray:
        return _sum_of_rays(self._each("recession", direction))

    def subgradient(self, x: Vector) -> Vector:
        return np.concatenate(self._each("subgradient", x))

    def conjugate(self, y: Vector) -> float:
        return float(sum(self._each("conjugate", y)))

    def bounded_below(self) -> bool:
        return all(part.bounded_below() for part in self.parts)

    def conjugate_near(self, y: Vector, x: Vector) -> tuple[Vector, float]:
        points, values = zip(*self._each("conjugate_near", y, x), strict=True)
        return Apart(points).vector(), float(sum(values))

    def conjugate_scaled(self, y: Vector, t: float, x: Vector) -> float:
        return float(sum(self._each("conjugate_scaled", y, t, x)))

    def project_conjugate(self, y: Vector) -> Vector:
        return Apart(self._each("project_conjugate", y)).vector()

    def conjugate_recession(self, direction: Vector) -> Ray:
        return _sum_of_rays(self._each("conjugate_recession", direction))

    def scaling(self, y: Vector) -> float:
        return float(np.min(self._each("scaling", y)))  # nan, where one part has none, is kept

    def unpenalised(self) -> Indices:
        return np.concatenate([part.unpenalised() + a for part, a in zip(self.parts, self.start[:-1], strict=True)])

    def is_linear(self) -> bool:
        return all(part.is_linear() for part in self.parts)

    def finite_everywhere(self) -> bool:
        return all(part.finite_everywhere() for part in self.parts)

    def strong_convexity(self) -> float:
        return min(part.strong_convexity() for part in self.parts)

    def zero_slack(self, z: Vector) -> Vector | None:
        slacks = self._each("zero_slack", z)
        if not all(self.split) or all(slack is None for slack in slacks):
            return None
        return np.concatenate(
            [
                np.full(len(blocks), -np.inf) if slack is None else slack
                for slack, blocks in zip(slacks, self.own_blocks, strict=True)
            ]
        )

    def kinks(self, z: Vector, rest: BlockSum) -> Kinks:
        alphas, slopes, parts, known = [], [], [], 0
        for part, other, stretch in zip(self.parts, rest.parts, self.stretches, strict=True):
            own = part.kinks(z[stretch], other)
            alphas.append(own.alpha)
            slopes.append(own.slope)
            parts.append(np.where(own.part >= 0, own.part + known, -1))
            known += own.alpha.size
        return Kinks(np.concatenate(alphas), np.concatenate(slopes), np.concatenate(parts))

    def subdifferential(self, x: Vector, tolerance: Vector) -> tuple[Vector, Vector]:
        low, high = zip(*self._each("subdifferential", x, tolerance), strict=True)
        return np.concatenate(low), np.concatenate(high)

    def plus(self, piece: Slopes) -> BlockSum:
        parts = [
            part.plus(Slopes(*(parameter[stretch] for parameter in piece)))
            for part, stretch in zip(self.parts, self.stretches, strict=True)
        ]
        return BlockSum(parts, self.sizes, self.split)

    def restrict_blocks(self, blocks: Indices) -> BlockSum:
        of_part = np.searchsorted(self.first_block, blocks, side="right") - 1
        parts, sizes = [], []
        for run in np.split(np.arange(blocks.size), np.flatnonzero(np.diff(of_part)) + 1):
            i = of_part[run[0]]
            mine = blocks[run] - self.first_block[i]
            own = self.own_blocks[i]
            whole = np.array_equal(own.columns(mine), np.arange(own.order.size))
            parts.append(self.parts[i] if whole else self.parts[i].restrict_blocks(mine))
            sizes.append(int(self.own_blocks[i].sizes[mine].sum()))
        return BlockSum(parts, sizes, [True] * len(parts))

    def without(self, part: int) -> BlockSum:
        """Return the sum without one of its parts."""
        rest = [i for i in range(len(self.parts)) if i != part]
        return BlockSum([self.parts[i] for i in rest], [self.sizes[i] for i in rest], [self.split[i] for i in rest])

    def with_memory(self) -> BlockSum:
        parts = [part.with_memory() for part in self.parts]
        same = all(new is old for new, old in zip(parts, self.parts, strict=True))
        return self if same else BlockSum(parts, self.sizes, self.split)

    def placed(self, place: ToDevice) -> BlockSum:
        return BlockSum([part.placed(place) for part in self.parts], self.sizes, self.split)

    def memories(self) -> list[Any]:
        return [memory for part in self.parts for memory in part.memories()]

    def admissible(self, strength: Vector) -> Vector:
        return np.concatenate(self._each("admissible", strength))

    def typical_slope(self) -> Vector:
        slopes = [part.typical_slope() for part in self.parts]
        sizes = np.diff(self.start)
        return np.concatenate([np.broadcast_to(s, (size,)) for s, size in zip(slopes, sizes, strict=True)])

    def compiled(self) -> Compiled | None:
        parts = [part.compiled() for part in self.parts]
        if not all(self.split) or any(part is None for part in parts):
            return None
        known = [part for part in parts if part is not None]
        return Compiled(
            Slopes(*(np.concatenate(column) for column in zip(*(part.slopes for part in known), strict=True))),
            np.concatenate([part.group_weight for part in known]),
            tuple(
                (first + int(a), stop + int(a), function)
                for part, a in zip(known, self.start[:-1], strict=True)
                for first, stop, function in part.callables
            ),
        )


def side_by_side(functions: Sequence[Function], sizes: Sequence[int]) -> Function:
    """Return functions, each of its own stretch of one vector, as a single one where they are of one kind."""
    whole: Function | None = functions[0]
    for function in functions[1:]:
        whole = None if whole is None else whole.beside(function)
    return whole or BlockSum(functions, sizes, [True] * len(sizes))


def _sum_of_rays(rays: Sequence[Ray]) -> Ray:
    violation = np.concatenate([ray.violation for ray in rays])
    return Ray(sum(ray.value for ray in rays), violation, sum(ray.size for ray in rays))


def scaling_by_bisection(function: Function, y: Vector) -> float:
    """Return the largest t in [0, 1] with a finite conjugate at t y, by halving an interval."""
    if np.isfinite(function.conjugate(y)):
        return 1.0
    if not np.isfinite(function.conjugate(np.zeros_like(y))):
        return np.nan
    inside, outside = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (inside + outside)
        if np.isfinite(function.conjugate(middle * y)):
            inside = middle
        else:
            outside = middle
    return inside
