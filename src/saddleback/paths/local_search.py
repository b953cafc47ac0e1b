r"""A lower point of an objective with a penalty that is not convex, if the loss is smooth.

Let :math:`F(x) = f(x) + h(x) + g(Ax)`, where f is the majoriser at 0, which has the kinks, and h the bend of the
penalty, concave and differentiable. A search repeats two steps:

1. The gradient of the loss tells which blocks are about to leave 0. These and the blocks that are not 0 are the
   columns W of the search.
2. The loss is replaced by its quadratic model at x, which is the loss itself if that is a sum of squares. On W, with
   the Gram matrix, a proximal gradient step changes which blocks are 0, and a Newton step moves the others.

Newton's system has the curvature of h, and may be indefinite. Conjugate gradients then end at a direction in which the
model curves downwards, and the step goes on along it as long as F falls. Nothing is certified here: a search gives the
rounds of ``reweighted`` a point at which to continue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ..common.arrays import Blocks, Indices, Vector
from ..common.cached import cached_property
from ..functions import Term
from ..functions.concave import Bend
from ..functions.contract import Convex
from ..functions.traits import hessian_at, zero_slack
from ..methods import Descent
from ..model.model import Model
from ..operators import Operator
from ..places.newton import factorisation_passes, smooth_part
from ..problem import Problem

MOST_COLUMNS = 2000
"""Largest number of columns of a search: for more, products with their Gram matrix take longer than a round."""

SHORT = 0.1
"""Largest share of the entries of A that is stored for which columns are read in compressed form."""

FEWEST_ENTERING = 100
"""Number of blocks that may leave 0 at once; more if more are not 0."""

SEARCHES = 30
"""Most changes of the set of columns in one search."""

STEPS = 30
"""Most Newton steps on one set of columns."""

SHARE = 1e-2
"""The steps on a set of columns end with one that lowers the model by at most this share of what all have."""

ACCURACY, CG_STEPS = 0.3, 50
"""Relative residual to which Newton's system is solved, and most steps of conjugate gradients."""

FLAT = 1e-8
"""Curvature along a direction, relative to the largest, up to which the direction counts as flat."""

SHORTEST, LONGEST = 1e-3, 1e3
"""Shortest step along a Newton direction, below which it is given up, and longest step where F curves downwards."""

EIGENVALUE_STEPS, SAFETY = 8, 1.2
"""Power iterations for the largest eigenvalue of the Gram matrix, and a factor on their result."""

NEGLIGIBLE = 1e-8
"""A search ends if the objective falls by at most this share of it."""

RATIO, MOST_ALPHAS = 0.7, 30
"""Ratio of two neighbouring alphas on the way down to the alpha of the problem, and most alphas on this way."""

Stops = Callable[[], bool]


class Gram:
    """A_S' D A_S for a set S of columns that grows, with the D of a quadratic model of the loss.

    Attributes
    ----------
    passes : work so far.
    """

    def __init__(self, A: Operator) -> None:
        self.A = A
        self.passes = 0.0
        self.compressed = A.traits.stored < SHORT * A.shape[0] * A.shape[1]
        self._reset(np.empty(0))

    def _reset(self, weight: Vector) -> None:
        self.weight = weight
        self.columns = np.empty(0, dtype=np.int64)
        self.position = np.full(self.A.shape[1], -1)
        self.matrix = np.empty((0, 0))

    def of(self, columns: Indices, weight: Vector) -> Vector:
        """Return the matrix of some columns; only products with columns that were not in S before are computed."""
        if not np.array_equal(weight, self.weight):
            self._reset(weight)
        new = columns[self.position[columns] < 0]
        if new.size:
            self._extend(new)
        at = self.position[columns]
        part: Vector = self.matrix[np.ix_(at, at)]
        return part

    def _extend(self, new: Indices) -> None:
        before = self.columns.size
        self.columns = np.concatenate([self.columns, new])
        self.position[new] = np.arange(before, self.columns.size)
        every, own = (self.A.entries(columns, self.compressed) for columns in (self.columns, new))
        products = every.T @ (own.multiply(self.weight[:, None]) if self.compressed else self.weight[:, None] * own)
        products = products.toarray() if self.compressed else products
        larger = np.empty((self.columns.size, self.columns.size))
        larger[:before, :before] = self.matrix
        larger[:, before:] = products
        larger[before:, :before] = products[:before].T
        self.matrix = larger
        self.passes += factorisation_passes(self.A, float(self.A.shape[0] * new.size * self.columns.size))


@dataclass(frozen=True)
class Part:
    """The objective on some blocks, with a quadratic model of the loss.

    Attributes
    ----------
    f : majoriser at 0.
    bends : what the penalties add to it.
    origin : x at which the model touches the loss.
    pull : gradient of the loss there.
    gram : Hessian of the model.
    """

    f: Convex
    bends: list[Bend]
    origin: Vector
    pull: Vector
    gram: Vector

    @cached_property
    def blocks(self) -> Blocks:
        """The blocks of the columns."""
        return self.f.blocks()

    def value(self, x: Vector) -> float:
        """Return the value, up to that of the loss at the origin."""
        d = x - self.origin
        model = float(self.pull @ d + 0.5 * (d @ (self.gram @ d)))
        return model + self.f.finite_value(x) + bend_value(self.bends, sizes_of(self.blocks, x))

    def gradient(self, x: Vector) -> Vector:
        """Return the gradient of all but f."""
        sizes = sizes_of(self.blocks, x)
        slopes = sum_over(self.bends, Bend.slope, sizes)
        return self.pull + self.gram @ (x - self.origin) + self.blocks.spread(slopes) * self._units(x, sizes)

    def _units(self, x: Vector, sizes: Vector) -> Vector:
        """Return x divided by the sizes of its blocks; 0 where a block is 0."""
        spread = self.blocks.spread(sizes)
        units: Vector = np.divide(x, spread, out=np.zeros_like(x), where=spread > 0)
        return units

    def newton_system(self, x: Vector) -> tuple[Indices, Vector, Callable[[Vector], Vector]]:
        """Return the coordinates along which the objective is smooth at x, its gradient and its Hessian there."""
        form = self.f.normal_form()
        assert form is not None
        part = smooth_part(form, self.blocks, x)
        free = part.free
        sizes = sizes_of(self.blocks, x)
        slopes = sum_over(self.bends, Bend.slope, sizes)
        ratios = np.divide(slopes, sizes, out=np.zeros_like(sizes), where=sizes > 0)
        curvatures = sum_over(self.bends, Bend.curvature, sizes)
        block, unit = self.blocks.of_columns[free], self._units(x, sizes)[free]
        across, along = ratios[block], (curvatures - ratios)[block] * unit

        def hessian(d: Vector) -> Vector:
            within = np.bincount(block, unit * d, sizes.size)
            whole = np.zeros(x.size)  # a copy of the free part of the matrix would take longer than its products
            whole[free] = d
            image: Vector = (self.gram @ whole)[free]
            image += part.hessian(d) + across * d + along * within[block]
            return image

        return free, self.gradient(x)[free] + part.gradient, hessian


class LocalSearch:
    """Searches for lower points of one objective.

    Attributes
    ----------
    fits : False from the time at which too many columns matter.
    """

    def __init__(self, problem: Problem, terms: list[Term]) -> None:
        self.problem, self.terms = problem, terms
        self.gram = Gram(problem.model.A)
        self.halves = 0.0
        self.fits = True
        self.point, self.image = np.empty(0), np.empty(0)
        self._pose(1.0)

    @property
    def passes(self) -> float:
        """The work so far."""
        return self.gram.passes + self.halves

    def _pose(self, factor: float) -> None:
        """Make the penalties that are not convex steeper by a factor."""
        terms, shapes = [term.steeper(factor) for term in self.terms], self.problem.x_shapes
        convex = [term.majoriser() for term in terms]
        self.model: Model = self.problem.with_terms(convex).model
        counts = [len(term.bind(shape).blocks()) for term, shape in zip(convex, shapes, strict=True)]
        ends = list(accumulate(counts))
        self.bends = [
            bend.among(ends[-1], slice(end - count, end))
            for term, shape, count, end in zip(terms, shapes, counts, ends, strict=True)
            for bend in term.bends(shape)
        ]

    def start(self, stops: Stops) -> Vector:
        """Return a point that is found with steeper penalties first, so that few blocks leave 0 at a time."""
        x = self.model.f.domain.project(np.zeros(self.model.A.shape[1]))
        factor = self._steepest(x)
        if factor > 1:
            x = self._at(factor, x, stops)  # the columns without a penalty
            factor = self._steepest(x)
        steps = min(int(np.ceil(np.log(max(factor, 1.0)) / -np.log(RATIO))), MOST_ALPHAS)
        for k in range(steps - 1, 0, -1):
            if not self.fits or stops():
                break
            x = self._at(factor ** (k / steps), x, stops)
        return self.lowered(x, stops)

    def _at(self, factor: float, x: Vector, stops: Stops) -> Vector:
        """Return a point with a lower objective if the penalties are steeper by a factor."""
        self._pose(factor)
        x = self.lowered(x, stops, 1)
        self._pose(1.0)
        return x

    def _steepest(self, x: Vector) -> float:
        """Return a factor on the penalties that lets no block leave 0, up to what is added to them."""
        z, blocks = self._gradient(x), self.model.blocks
        pulls = sizes_of(blocks, z)
        slopes = np.sum([bend.slopes for bend in self.bends], axis=0)
        return float(np.max(pulls / slopes, initial=0.0, where=slopes > 0))

    def _gradient(self, x: Vector) -> Vector:
        """Return the gradient of the loss, and keep it with A x: it does not depend on alpha."""
        if x is not self.point:
            A = self.model.A
            self.halves += 0.5 * (1.0 + np.count_nonzero(x) / x.size)
            self.point, self.image = x, A.matvec(x)
            self.pull: Vector = A.rmatvec(self.model.g.subgradient(self.image))
        return self.pull

    def _value(self, x: Vector) -> float:
        self._gradient(x)
        sizes = sizes_of(self.model.blocks, x)
        return self.model.f.finite_value(x) + bend_value(self.bends, sizes) + self.model.g.finite_value(self.image)

    def lowered(self, x: Vector, stops: Stops, searches: int = SEARCHES) -> Vector:
        """Return a point with a lower objective; x itself if none is found.

        ``stops`` says whether time or passes are used up.
        """
        value = self._value(x)
        for _ in range(searches):
            moved = x if stops() else self._moved(x)
            there = self._value(moved)
            if not there < value:  # the quadratic model may be too far from the loss
                return x
            x, value, fall = moved, there, value - there
            if fall <= NEGLIGIBLE * abs(value):
                break
        return x

    def _moved(self, x: Vector) -> Vector:
        """Return a minimiser of the quadratic model, roughly; x itself if too many columns matter, or none."""
        pull = self._gradient(x)
        chosen = self._chosen(x, -pull)
        if chosen.size == 0:
            return x
        columns = self.model.blocks.columns(chosen)
        copied = 8.0 * columns.size * self.image.size
        self.fits = columns.size <= MOST_COLUMNS and copied <= self.model.A.traits.budget
        if not self.fits:
            return x
        gram = self.gram.of(columns, hessian_at(self.model.g, self.image))
        bends = [bend.of_blocks(chosen) for bend in self.bends]
        part = Part(self.model.f.restrict_blocks(chosen), bends, x[columns], pull[columns], gram)
        moved = x.copy()
        moved[columns] = minimised(part)
        return moved

    def _chosen(self, x: Vector, z: Vector) -> Indices:
        """Return the blocks that are not 0, and those that are about to leave 0 with the largest slopes."""
        slack = zero_slack(self.model.f, z)
        assert slack is not None
        active = sizes_of(self.model.blocks, x) > 0
        entering = np.flatnonzero(~active & (slack < 0))
        most = max(FEWEST_ENTERING, int(np.count_nonzero(active)))
        if entering.size > most:
            entering = entering[np.argpartition(slack[entering], most)[:most]]
        return np.union1d(np.flatnonzero(active), entering)


def sizes_of(blocks: Blocks, x: Vector) -> Vector:
    """Return the norm of each block of x."""
    if blocks.contiguous and len(blocks) == x.size:
        return np.abs(x)
    norms: Vector = np.sqrt(blocks.sums(np.square(x)))
    return norms


def sum_over(bends: list[Bend], derivative: Callable[[Bend, Vector], Vector], sizes: Vector) -> Vector:
    """Return the sum of a derivative of the bends by each size."""
    return sum((derivative(bend, sizes) for bend in bends), np.zeros(sizes.size))


def bend_value(bends: list[Bend], sizes: Vector) -> float:
    """Return the sum of the bends."""
    return sum(bend.value(sizes) for bend in bends)


def minimised(part: Part) -> Vector:
    """Return a point with a lower value than the origin, at which the value hardly falls any more."""
    x = part.origin
    first = value = part.value(x)
    step = 1.0 / max(SAFETY * largest_eigenvalue(part.gram), 1e-300)
    for _ in range(STEPS):
        before = value
        moved = part.f.prox(x - step * part.gradient(x), step)
        if (there := part.value(moved)) < value:
            x, value = moved, there
        x, value = newton_step(part, x, value)
        if before - value <= SHARE * (first - value):
            break
    return x


def newton_step(part: Part, x: Vector, value: float) -> tuple[Vector, float]:
    """Return the point after a Newton step, and its value; the same point if none is lower."""
    free, slope, hessian = part.newton_system(x)
    d, curved_down = conjugate_gradients(hessian, -slope)

    def at(length: float) -> tuple[Vector, float]:
        moved = x.copy()
        moved[free] += length * d
        moved[moved * x < 0] = 0.0
        moved = part.f.domain.project(moved)
        return moved, part.value(moved)

    length = 1.0
    there = at(length)
    while not there[1] < value:
        length *= 0.25
        if length < SHORTEST:
            return x, value
        there = at(length)
    while curved_down and length < LONGEST and (beyond := at(2.0 * length))[1] < there[1]:
        length, there = 2.0 * length, beyond
    return there


def conjugate_gradients(product: Callable[[Vector], Vector], right: Vector) -> tuple[Vector, bool]:
    """Return a direction that solves a system roughly, and whether the system curves downwards along its last part."""
    d, residual, direction = np.zeros_like(right), right.copy(), right.copy()
    size = float(residual @ residual)
    enough = ACCURACY**2 * size
    largest = 0.0
    for _ in range(CG_STEPS):
        if size <= enough:
            break
        image = product(direction)
        curvature, squares = float(direction @ image), float(direction @ direction)
        largest = max(largest, curvature / squares)
        if curvature <= FLAT * largest * squares:
            return d + direction, True
        length = size / curvature
        d += length * direction
        residual -= length * image
        size, before = float(residual @ residual), size
        direction = residual + size / before * direction
    return d, False


def largest_eigenvalue(matrix: Vector) -> float:
    """Return the largest eigenvalue of a symmetric matrix that is not negative, roughly."""
    v = np.ones(matrix.shape[0])
    length = 0.0
    for _ in range(EIGENVALUE_STEPS):
        v /= max(float(np.linalg.norm(v)), 1e-300)
        v = matrix @ v
        length = float(np.linalg.norm(v))
    return length


def search_for(problem: Problem, terms: list[Term]) -> LocalSearch | None:
    """Return a search for a problem with the majorisers at 0.

    None if its loss is not smooth, a penalty couples columns without a norm, or A is not at hand.
    """
    model = problem.model
    if model.penalty_form is None:
        return None
    apart = model.A.traits.device is not None or model.A.traits.holders is not None or model.A.traits.panels is not None
    if apart or Descent().missing(model) is not None or zero_slack(model.f, np.zeros(model.A.shape[1])) is None:
        return None
    if hessian_at(model.g, np.zeros(model.A.shape[0])).ndim > 1:
        return None
    return LocalSearch(problem, terms)
