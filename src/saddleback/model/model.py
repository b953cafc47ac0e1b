"""The problem over flat vectors, min_x f(x) + g(Ax), as methods, certificates and reductions see it."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..common.arrays import Blocks, Indices, Vector, constant, length, map_constants
from ..common.cached import cached_property
from ..common.canonical_units import Exponents, canonical_units, geometric_units
from ..common.rebuildable import derived
from ..common.sums import Equations
from ..functions import Convex
from ..functions.calculus import BlockSum, parts_of, plus
from ..functions.domains import bounded, fixed, fixed_sums
from ..functions.normal_form import NormalForm, Piecewise, PiecewiseParameters
from ..functions.points import Point
from ..functions.traits import (
    KnownByProx,
    SumOverRows,
    is_smooth,
    moved,
    parts_at_zero,
    restrict_parts,
    rise,
    rise_within,
    subgradient_scale,
    unit_indices,
)
from ..functions.traits import memories as memories_of
from ..functions.traits import with_memory as with_own_memory
from ..operators import Adjoint, Operator
from ..operators.deferred_points import zeros
from ..operators.memory import bytes_in_memory
from ..operators.merged import merged
from ..operators.sparse import both_ways
from ..places.files.operator import memories, with_memory
from ..places.mpi.operator import collected
from ..steps.sampling import Strata
from .ranges import length_of

if TYPE_CHECKING:
    from ..places.torch.device import Device

Shape = tuple[int, ...]


RESOLVED = 2.0**-31
"""Distance of u from b, relative to the size of the data, at which the loss defines the floor of the relative gap."""

ROUNDING = 2.0**-51
"""Rounding of a row of Ax - b, relative to the sum of the absolute values of its terms."""

MOST_STORED = 1_000_000
"""Number of entries above which canonical units take long to find."""

T = TypeVar("T")


class shared(Generic[T]):
    """A property that depends on A and the loss alone: it is computed once for all problems of a path."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, model: Model, owner: type | None = None) -> T:
        known = model.of_data
        if self.name not in known:
            known[self.name] = self.compute(model)
        value: T = known[self.name]
        vars(model)[self.name] = value  # later look-ups find it without this descriptor
        return value


DESCENT_KERNEL = "descent kernel"
"""The key in ``of_data`` under which a problem for many solves keeps a descent kernel with measured panels."""


@dataclass(frozen=True)
class Model:
    """The problem over flat vectors, as methods, certificates and reductions see it.

    Attributes
    ----------
    f, A, g : penalty, operator and loss.
    linear_norm : ||c|| of the linear terms of f, the scale of the dual infeasibility.
    constant : the constant part of the objective, which a reduction has separated from f and g.
    fit : whether the problem has mostly losses, if its rows do not show it: those of a reduction or of a part of a
        problem may be others than the user's. None if they do.
    """

    f: Convex
    A: Operator
    g: Convex
    linear_norm: float
    constant: float = 0.0
    fit: bool | None = None

    def part(self, f: Convex, A: Operator, columns: Indices | None = None) -> Model:
        """Return the problem of some of the columns, by default of all, with the same loss.

        It inherits the properties that depend only on the loss, and P(0): the omitted columns of x are 0.
        """
        inherited = ("loss_bounded_below", "target_norm", "value_at_zero", "penalty_vanishes_at_zero")
        part = Model(f, A, self.g, self.linear_norm, self.constant, self.fit)
        part.__dict__.update({name: getattr(self, name) for name in inherited})
        part.__dict__["column_lengths"] = self.column_lengths if columns is None else self.column_lengths[columns]
        return part

    def with_penalty(self, f: Convex, linear_norm: float) -> Model:
        """Return the problem with another alpha or other weights in its penalty: with the same f(0) and blocks."""
        other = Model(f, self.A, self.g, linear_norm, self.constant, self.fit)
        vars(other).update(of_data=self.of_data, blocks=self.blocks, penalty_at_zero=self.penalty_at_zero)
        return other

    def with_loss(self, g: Convex) -> Model:
        """Return the problem with another loss."""
        other = Model(self.f, self.A, g, self.linear_norm, self.constant, self.fit)
        vars(other)["blocks"] = self.blocks
        if DESCENT_KERNEL in self.of_data:
            other.of_data[DESCENT_KERNEL] = None
        return other

    @derived
    def of_parts(self, parts: Indices, A: Operator) -> Model:
        """Return the problem of some of the parts that may be 0; A contains the columns of these parts."""
        return self.part(restrict_parts(self.f, parts), A, self.parts.columns(parts))

    @derived
    def packed(self, columns: Indices, single: bool, beside: Operator | None = None) -> Operator:
        """Return a copy of some columns of A, in float32 if ``single`` and that saves memory.

        If memory is limited, the copy shares the limit with ``beside``, an earlier copy that remains in use.
        """
        return self.A.pack(columns, single, 0.0 if beside is None else bytes_in_memory(beside))

    @derived
    def in_panels(self) -> Model:
        """Return the problem with one block per panel of A, which is read at once; the same problem without panels.

        A panel that would cut a block ends with that block. If the columns of a block are not neighbours, the problem
        is returned without change.
        """
        ends = self.A.traits.panels
        if ends is None or (self.A.traits.reads_columns and not np.array_equal(self.blocks.order, np.arange(ends[-1]))):
            return self
        inside = ends[:-1] if self.A.traits.reads_columns else ends[:1]
        firsts = np.unique(np.append(np.searchsorted(self.blocks.start, inside), len(self.blocks)))
        runs = [np.arange(a, b) for a, b in pairwise(firsts.tolist())]
        parts = [self.f] if len(runs) == 1 else [self.f.restrict_blocks(run) for run in runs]
        sizes = np.diff(self.blocks.start[firsts]).tolist()
        return self.part(BlockSum(parts, sizes, [False] * len(parts)), self.A)

    @derived
    def dual(self) -> Model:
        """Return the dual problem, min_y g*(y) + f*(-A'y), whose dual variable is x."""
        return Model(self.g_star, Adjoint(self.A), self.f_star, 0.0)

    @derived
    def rowwise(self) -> Model:
        """Return the problem with the rows of A contiguous in memory."""
        return self._on(self.A.ordered("rows"))

    @derived
    def columnar(self) -> Model:
        """Return the problem with the columns of A contiguous in memory, and with everything computed so far."""
        return self._on(self.A.ordered("columns"))

    @derived
    def both_ways(self) -> Model:
        """Return the problem with a sparse A stored by rows and by columns: many products, which take less time."""
        return self._on(both_ways(self.A))

    def collected(self) -> Model:
        """Return the problem with all columns of A in this process, and with everything computed so far."""
        return self._on(collected(self.A))

    @derived
    def merged(self) -> Model:
        """Return the problem with A in one matrix, if its parts are all dense or all sparse and not too large."""
        return self._on(merged(self.A))

    def _on(self, A: Operator) -> Model:
        """Return the problem with an operator that has the same entries.

        The new operator takes over the sums of squares. Its layout could sum them in another order, and results must
        not depend on which of the two operators computes them first.
        """
        if A is self.A:
            return self
        if A.traits.entries_known and "_squares" in vars(self.A):
            vars(A).setdefault("_squares", self.A.sums(2))
        other = copy(self)
        object.__setattr__(other, "A", A)
        return other

    @derived
    def sample(self, rows: Indices) -> Model:
        """Return the problem of a sample of the rows, with row weights that make up for the omitted rows."""
        assert isinstance(self.g, SumOverRows)
        g = self.g.restrict(rows).with_row_weights(np.full(rows.size, self.A.shape[0] / rows.size))
        return replace(self, A=self.A.restrict(rows, np.arange(self.A.shape[1])), g=g)

    @derived
    def rows_part(self, rows: Indices, pull: Vector) -> Model:
        """Return the problem of some of the rows, where the other rows are replaced by the linear term <pull, x>.

        It inherits whether a solution surely exists and whether it has mostly losses, which its own functions would not
        show.
        """
        assert isinstance(self.g, SumOverRows)
        part = Model(
            plus(self.f, PiecewiseParameters.zero(pull.size)._replace(left=pull, right=pull)),
            self.A.restrict(rows, np.arange(pull.size)),
            self.g.restrict(rows),
            self.linear_norm,
            fit=self.mostly_losses,
        )
        part.__dict__["surely_solvable"] = self.surely_solvable
        return part

    def with_memory(self) -> Model:
        """Return the problem for one run, in which functions and operator may cache data that speed up later calls."""
        f, g = with_own_memory(self.f), with_own_memory(self.g)
        model = self if f is self.f and g is self.g else replace(self, f=f, g=g)
        return model._on(with_memory(self.A))

    def placed(self, A: Operator, device: Device) -> Model:
        """Return the problem with A on a device; if A consists of identities, the vectors are moved there as well."""
        if A.traits.identity_scales is None:
            return replace(self, A=A)
        return replace(self, f=moved(self.f, device.place), A=A, g=moved(self.g, device.place))

    def memories(self) -> list[Any]:
        """Return the caches of the functions and of the operator, in a fixed order."""
        return [*memories_of(self.f), *memories(self.A), *memories_of(self.g)]

    @cached_property
    def of_data(self) -> dict[str, Any]:
        """The properties that depend only on A and the loss, by name: the problems of a path share this dictionary.

        Kernels keep A in memory and are not plain data. They are stored only if the key ``DESCENT_KERNEL`` exists.
        """
        return {}

    @cached_property
    def f_star(self) -> Convex:
        """The conjugate of the penalty."""
        return self.f.conjugate()

    @shared
    def g_star(self) -> Convex:
        """The conjugate of the loss."""
        return self.g.conjugate()

    @cached_property
    def penalty_form(self) -> NormalForm | None:
        """The normal form of the penalty, or None."""
        return self.f.normal_form()

    @shared
    def loss_form(self) -> NormalForm | None:
        """The normal form of the conjugate of the loss; None if it has none, or is made of atoms of different kinds."""
        form = self.g_star.normal_form()
        alike = form is not None and (len(form.atoms) == 1 or all(isinstance(atom, Piecewise) for atom in form.atoms))
        return form if alike else None

    @cached_property
    def blocks(self) -> Blocks:
        """The J blocks of columns that a method may draw."""
        return self.f.blocks()

    @cached_property
    def parts(self) -> Blocks:
        """The parts of the columns that may each be 0: the blocks, or finer ones if the penalty couples them."""
        finer = parts_at_zero(self.f)
        return self.blocks if finer is None else finer

    @cached_property
    def strata(self) -> Strata:
        """The blocks that are drawn from independently: all of them, or those whose columns one process holds."""
        blocks, holders = self.blocks, self.A.traits.holders
        if holders is None:
            return Strata([np.arange(len(blocks))])
        of_block = holders.of_column[blocks.order[blocks.start[:-1]]]
        return Strata([np.flatnonzero(of_block == rank) for rank in range(holders.processes)], holders.own)

    @cached_property
    def unpenalised(self) -> Indices:
        """Columns along which f is linear, whose dual constraint is an equation."""
        return fixed(self.f_star.domain)

    @cached_property
    def unpenalised_sums(self) -> Equations:
        """Sums of columns along which f is linear, unpenalised columns among them."""
        return fixed_sums(self.f_star.domain, int(self.blocks.start[-1]))

    @property
    def nothing(self) -> Vector:
        """X = 0."""
        return self._nothing(self.A.shape[1])

    @cached_property
    def penalty_at_zero(self) -> float:
        """f(0)."""
        return self.f.value(self._nothing(self.A.shape[1]))

    @cached_property
    def penalty_vanishes_at_zero(self) -> bool:
        """Whether f(0) = f*(0) = 0. Then f* is 0 on the segment from 0 to any point where it is 0."""
        return self.penalty_at_zero == 0 and self.f_star.domain.has_zero() and self.penalty_infimum == 0

    @cached_property
    def penalty_infimum(self) -> float:
        """The infimum of f; -inf if it is not finite or not known."""
        return infimum(self.f_star, self._nothing(self.A.shape[1]))

    @shared
    def loss_is_curved(self) -> bool:
        """Whether the loss is a parabola in every row."""
        if self.loss_form is None:
            return False
        left, right, quadratic, lower, upper = self.loss_form.parameters
        return bool(np.all((quadratic > 0) & (left == right) & np.isinf(lower) & np.isinf(upper)))

    @shared
    def loss_at_zero(self) -> tuple[float, float]:
        """g(0) and inf g, which is -inf if it is not finite or not known."""
        zero = self._nothing(self.A.shape[0])
        return self.g.value(zero), infimum(self.g_star, zero)

    @shared
    def loss_bounded_below(self) -> bool:
        """Whether 0 is in the domain of g*, so that a dual point may be scaled towards it."""
        return self.g_star.domain.has_zero()

    @cached_property
    def surely_solvable(self) -> bool:
        """Whether every x is feasible for the loss and the objective has a bound: no ray can prove anything."""
        return self.g.domain.everything and self.loss_bounded_below and self.f_star.domain.has_zero()

    @cached_property
    def mostly_losses(self) -> bool:
        """Whether 0 is dual feasible, and at least half of the rows are not constraints.

        Such a problem is a fit with some constraints, rather than a linear program.
        """
        if self.fit is not None or self.surely_solvable:
            return self.fit is not False
        form = self.loss_form
        if form is None or not (self.loss_bounded_below and self.f_star.domain.has_zero()):
            return False
        return bool(2 * np.count_nonzero(self.hard_rows) <= self.hard_rows.size)

    @cached_property
    def hard_rows(self) -> NDArray[np.bool_]:
        """Whether each row of a loss with a normal form is a constraint: y has no bound on some side, and no cost."""
        assert self.loss_form is not None
        _, _, quadratic, lower, upper = self.loss_form.parameters
        hard: NDArray[np.bool_] = (quadratic == 0) & (np.isinf(lower) | np.isinf(upper))
        return hard

    @cached_property
    def feasible_at_zero(self) -> bool:
        """Whether Ax = 0 satisfies the constraints of a loss that does not consist of constraints for the most part."""
        return self.g.domain.everything or (
            self.mostly_losses and bool(np.isfinite(self.g.value(np.zeros(self.A.shape[0]))))
        )

    @cached_property
    def has_linear_rows(self) -> bool:
        """Whether the loss is a sum over rows that is linear in some row near 0."""
        return isinstance(self.g, SumOverRows) and bool(np.any(self.g.distance_to_kink(np.zeros(self.A.shape[0])) > 0))

    @cached_property
    def rays_prove_nothing(self) -> bool:
        """Whether no ray can prove anything.

        That is so if the problem is surely solvable, and also if a block has a penalty that is finite everywhere and an
        identity as its part of A, so that Ax can take any value.
        """
        onto = self.A.traits.identity_scales is not None and any(f.domain.everything for f, _ in parts_of(self.f))
        return self.surely_solvable or (onto and self.loss_bounded_below and self.f_star.domain.has_zero())

    @shared
    def target_norm(self) -> float:
        """||b||, the size of the data of the loss."""
        return length_of(self.g_star, self.A.shape[0])

    @shared
    def constrained(self) -> NDArray[np.bool_] | None:
        """Whether each row of A has a constraint; None if all or none of them have one.

        Above identities there is a single loss, which counts as one of all rows.
        """
        if self.g.domain.everything or self.A.traits.identity_scales is not None:
            return None
        rows = bounded(self.g.domain, self.A.shape[0])
        return None if np.all(rows) else rows

    @shared
    def constraint_norm(self) -> float:
        """||b|| in the rows of the constraints, the scale of the primal infeasibility.

        The data of other losses say nothing about it: their units may be far larger.
        """
        if self.constrained is None:
            return self.target_norm
        return length(np.broadcast_to(subgradient_scale(self.g_star), self.constrained.shape)[self.constrained])

    @cached_property
    def x_unit(self) -> Vector:
        """The unit of x per column: ||b|| / ||A_j||, so that the column alone is as long as the targets b.

        Measured in it, x does not depend on the units of A and b. It is 0 for an empty column. Columns of an operator
        whose entries are not known count as having length 1.
        """
        return _quotients(self.target_norm, self.column_lengths)

    @cached_property
    def y_unit(self) -> Vector:
        """The unit of y per row: ||c|| divided by the length of the row, so that the row alone is as long as c."""
        return _quotients(self.linear_norm, self.row_lengths)

    def multiplier_unit(self, y: Vector) -> Vector:
        """Return the unit of y per row with a constraint: like ``y_unit``, for what the constraint balances.

        That is c, and the slopes of the losses in the other rows: the length of (y_i ||a_i||) estimates that of A'y.
        """
        if self.constrained is None:
            return self.y_unit
        slopes = length(np.where(self.constrained, 0.0, y * self.row_lengths))
        return _quotients(float(np.hypot(self.linear_norm, slopes)), self.row_lengths)

    @cached_property
    def size(self) -> float:
        """An estimate of the largest entry of x and y at a solution, at least 1.

        The entries of x are estimated by ``x_unit``. Those of y are estimated by a slope of the loss, and by the y with
        which one column balances the penalty.
        """
        nothing = self._nothing(self.A.shape[0])
        slope = self.g.subgradient(nothing) if is_smooth(self.g) else subgradient_scale(self.g)
        balance = np.abs(subgradient_scale(self.f)) * _quotients(1.0, self.column_lengths)
        return max(1.0, *(float(np.max(np.abs(each))) for each in (self.x_unit, slope, balance)))

    @cached_property
    def choices(self) -> tuple[Indices, Indices]:
        """The index of the unit of each row and of each column: some share one, and some have no choice."""
        return unit_indices(self.g, self.A.shape[0]), unit_indices(self.f, self.A.shape[1])

    @property
    def has_cheap_units(self) -> bool:
        """Whether canonical units can be found, and soon: the entries of A are in memory, and not too many."""
        traits = self.A.traits
        return traits.entries_known and traits.at_hand and traits.device is None and traits.stored <= MOST_STORED

    @cached_property
    def canonical_units(self) -> Exponents:
        """The exponents of rows and columns with which the data do not depend on the units of the user."""
        m, n = self.A.shape
        of_rows = np.broadcast_to(subgradient_scale(self.g_star), (m,))
        of_columns = np.broadcast_to(subgradient_scale(self.f), (n,))
        return canonical_units(self.A.entries(compressed=True), of_rows, of_columns, *self.choices)

    @cached_property
    def balanced_units(self) -> Exponents:
        """Such exponents with which, besides, the entries of A are close to 1."""
        return geometric_units(self.A.entries(compressed=True), self.canonical_units, *self.choices)

    @cached_property
    def units_of_directions(self) -> tuple[tuple[Vector, Vector], tuple[Vector, Vector]]:
        """The units of y and x in which a direction is compared with others, each with the sums of |A| times them.

        They are the canonical ones, or 1 if those would take long to find.
        """
        A = self.A
        if not A.traits.entries_known:
            return (np.ones(A.shape[0]), self.column_lengths), (np.ones(A.shape[1]), self.row_lengths)
        exponents = self.canonical_units if self.has_cheap_units else (np.zeros(k, int) for k in A.shape)
        rows, columns = (np.ldexp(1.0, each) for each in exponents)
        of_columns, of_rows = A.sums(1, weights=(columns, rows))
        return (rows, of_columns), (columns, of_rows)

    def reach(self, x: Point, u: Vector) -> float:
        """Return the largest of ||b||, ||u|| and sum_j |x_j| ||A_j||, the size of the terms of Ax - b.

        Rounding the data, or the terms of Ax, changes u - b by at most a relative rounding of this size.
        """
        largest = max(self.target_norm, length(u))
        if self.A.traits.entries_known and self.A.traits.identity_scales is None:
            largest = max(largest, float(np.abs(x.vector()) @ self.column_lengths))
        return largest

    def resolved_rise(self, x: Point, u: Vector) -> float:
        """Return how much the loss can rise above its minimum if each row of u - b changes by 2^-31 of b or u.

        Under identities vectors are as large as the data, and the length of all rows stands for the single ones.
        """
        if self.A.traits.identity_scales is not None:
            return rise(self.g, RESOLVED * self.reach(x, u))
        return rise_within(self.g, RESOLVED * np.maximum(np.abs(u), subgradient_scale(self.g_star)))

    def rounding_rise(self, x: Point, u: Vector) -> float:
        """Return how much the loss can rise above its minimum by the rounding of u - b, whose terms are those of Ax.

        If the entries of A are not known, or x holds some of the columns only, the length of all rows stands for the
        single ones.
        """
        size = np.abs(x.vector())
        known = self.A.traits.entries_known and self.A.traits.identity_scales is None
        if not known or size.size < self.A.shape[1]:
            return rise(self.g, ROUNDING * self.reach(x, u))
        terms = self.A.sums(1, weights=(size, None))[1]
        return rise_within(self.g, ROUNDING * np.maximum(terms, subgradient_scale(self.g_star)))

    @shared
    def column_lengths(self) -> Vector:
        """The lengths of the columns of A; 1 if the entries of A are not known."""
        return (
            map_constants(np.sqrt, self.A.sums(2)[0]) if self.A.traits.entries_known else constant(1.0, self.A.shape[1])
        )

    @shared
    def row_lengths(self) -> Vector:
        """The lengths of the rows of A; 1 if the entries of A are not known."""
        return (
            map_constants(np.sqrt, self.A.sums(2)[1]) if self.A.traits.entries_known else constant(1.0, self.A.shape[0])
        )

    def _nothing(self, size: int) -> Vector:
        """Return a vector of zeros that takes no memory, on the device of the problem's vectors."""
        here = self.A.traits.device is None or self.A.traits.identity_scales is None
        return constant(0.0, size) if here else np.broadcast_to(zeros(self.A, 1), (size,))

    @cached_property
    def unpenalised_part(self) -> Vector:
        """A_0, the unpenalised columns, or sums of columns: kept, since every certificate of a run reads them."""
        sums = self.unpenalised_sums.sums
        if sums.are_entries:
            columns: Vector = self.A.entries(sums.places)
            return columns
        return np.column_stack([self.A.matvec(np.ones(own.size), own) for own in sums])

    @cached_property
    def only_estimated(self) -> bool:
        """Whether certificates are estimates, in little memory.

        Under identities vectors are as large as the data. They are given up for a proof only where there is one: the
        rounding of every penalty has to be bounded.
        """
        identities = self.A.traits.identity_scales is not None
        return identities and not all(f.bounds_rounding for f, _ in parts_of(self.f))

    @cached_property
    def trivial_bound(self) -> float:
        """The bound inf f + inf g, which y = 0 proves; -inf if it is not finite or not known."""
        if self.A.traits.identity_scales is not None or not (self.loss_bounded_below and self.f_star.domain.has_zero()):
            return -np.inf  # under identities vectors are as large as the data, and y = 0 is never a solution
        return self.constant + self.penalty_infimum + self.loss_at_zero[1]

    @cached_property
    def objective_at_zero(self) -> float:
        """P(0), infinite if x = 0 is not feasible."""
        return self.penalty_at_zero + self.loss_at_zero[0] + self.constant

    @cached_property
    def value_at_zero(self) -> float:
        """|P(0)|, or 1 if that is 0 or infinite."""
        value = abs(self.objective_at_zero)
        return value if np.isfinite(value) and value > 0 else 1.0


def infimum(conjugate: Convex, zero: Vector) -> float:
    """Return inf f = -f*(0); -inf if that is not finite or not known."""
    if not conjugate.domain.has_zero():
        return -np.inf
    if not isinstance(conjugate, KnownByProx):
        return -conjugate.finite_value(zero)
    at, value = conjugate.near(zero, zero)
    return -np.inf if np.any(at) else -value


def _quotients(scale: float, lengths: Vector) -> Vector:
    """Return scale / lengths, 0 for a length of 0."""

    def quotient(length: Any) -> Any:
        return np.divide(scale, length, out=np.zeros_like(length), where=length > 0)

    return map_constants(quotient, lengths)
