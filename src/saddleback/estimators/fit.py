"""Data that are ready for a solve: the problems of a linear model, and the way back from their solutions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import saddleback as sb

from ..certificates.bounds import decisions
from ..common.arrays import Indices, Vector
from ..functions.group import partition
from ..machine.blas_threads import single_threaded
from .constraints import Rows
from .design import Design
from .objective import Objective
from .path import Path, coefficients
from .samples import Samples
from .table import Table


class Target(NamedTuple):
    """The targets or labels of one problem, minus a constant that is added to the intercept later."""

    values: Vector
    shift: Vector


@dataclass(frozen=True)
class Fit:
    """Data that are ready for a solve: one problem, or one per class or target.

    ``total`` is the weight of all samples.
    """

    objective: Objective
    samples: Samples
    design: Design
    targets: list[Target]
    total: float
    constraints: Sequence[Rows] = ()

    def with_alpha(self, alpha: float) -> Fit:
        """Return the fit with another strength of the penalty."""
        return replace(self, objective=replace(self.objective, alpha=alpha))

    def with_ratio(self, l1_ratio: float) -> Fit:
        """Return the fit with another share of the L1 norm in the penalty."""
        return replace(self, objective=replace(self.objective, l1_ratio=l1_ratio))

    def selected(self, coef: Vector) -> Indices:
        """Return the features that coefficients select: those that are not 0 for some task, and groups as a whole."""
        used = np.any(coef.reshape(coef.shape[0], -1), axis=1)
        for group in self.groups():
            used[group] = np.any(used[group])
        return np.flatnonzero(used)

    def groups(self) -> Sequence[Indices]:
        """Return the groups of features that the penalty selects as a whole; one per feature if it has no groups."""
        objective = self.objective
        return list(partition(objective.groups if objective.selects_groups else 1, self.design.n_features))

    def without_penalty(self, kept: Indices) -> Fit:
        """Return the fit of some features without a penalty, under the same bounds and constraints."""
        low, high = (bound if bound is None else bound[kept] for bound in (self.objective.lower, self.objective.upper))
        X = self.samples.X.columns(kept)
        return replace(
            self,
            objective=replace(self.objective, penalty=None, groups=None, weights=None, lower=low, upper=high, parts=()),
            samples=self.samples._replace(X=X),
            design=Design(X, self.samples.weight, self.design.intercept, self.objective.mean_is_best),
            constraints=[rows._replace(C=rows.C[:, kept]) for rows in self.constraints],
        )

    def mean_losses(self, X: Table, targets: Sequence[Target], weight: Vector | None, path: Path) -> Vector:
        """Return the mean loss of samples at every alpha of a path, one row per problem."""
        total = float(X.shape[0] if weight is None else weight.sum())
        found = []
        for target, along in zip(targets, path.by_problem(), strict=True):
            coefs, intercepts = (np.stack(parts, axis=-1) for parts in zip(*map(coefficients, along), strict=True))
            with single_threaded():  # threads would still wait for work in the next fold
                scores = (X @ coefs.reshape(X.shape[1], -1)).reshape(-1, *coefs.shape[1:])
            scores = np.moveaxis(scores + (intercepts - target.shift[..., None]), -1, 0)
            function = self.objective.loss_term(target.values, weight, total).bind(target.values.shape)
            found.append([function.value(np.ascontiguousarray(u).ravel()) for u in scores])
        return np.array(found)

    def least_loss(self, target: Target) -> float:
        """Return the mean loss of a perfect fit to the samples."""
        shape = target.values.shape
        function = self.objective.loss_term(target.values, self.samples.weight, self.total).bind(shape)
        return -float(function.conjugate().value(np.zeros(target.values.size)))

    def terms(self, target: Target) -> tuple[Any, Any, Any]:
        """Return penalty, A and loss of one problem; lists of rows and losses if there are constraints."""
        penalty, A = self.design.parts(self.objective.penalty_term(), sb.Zero())
        loss = self.objective.loss_term(target.values, self.samples.weight, self.total)
        further = self.further(target)
        if not further:
            return penalty, A, loss
        rows = [[C, None] if self.design.column else C for C, _ in further]
        return penalty, [A, *rows], [loss, *(term for _, term in further)]

    @property
    def has_further_losses(self) -> bool:
        """Whether a problem has other losses than that of the samples: constraints, or penalties with a matrix."""
        return bool(self.further(self.targets[0]))

    def further(self, target: Target) -> list[tuple[Any, Any]]:
        """Return the matrices and losses of the constraints, and of the parts of the penalty that need a matrix."""
        tasks = target.values.shape[1:]
        own = self.objective.further_terms((self.design.n_features, *tasks))
        return [rows.term(tasks) for rows in self.constraints] + own

    def solve(self, target: Target, start: sb.Result | None, options: dict[str, Any]) -> sb.Result:
        """Return the solution for the data as given, from a result for similar data or from 0."""
        x0 = None if start is None else self._from_given(start, target)
        return self.to_given(self.solved(target, x0, options), target)

    def solved(self, target: Target, x0: Any, options: dict[str, Any]) -> sb.Result:
        """Return the solution for the data of the design."""
        if self.objective.convex:
            return sb.solve(sb.Problem(*self.terms(target)), x0=x0, **options)
        return sb.reweighted(*self.terms(target), x0=None if self.objective.weighs_once else x0, **options)

    def alpha_max(self, target: Target) -> float:
        """Return the smallest alpha with all coefficients 0."""
        if self.objective.overlapping:
            raise ValueError("alphas=None: the largest alpha is not known for groups that overlap; pass alphas")
        penalty, *others = self.terms(target)
        at_zero = [term.majoriser() for term in penalty] if isinstance(penalty, list) else penalty.majoriser()
        return sb.alpha_max(at_zero, *others)

    def multipliers(self, results: Sequence[sb.Result]) -> list[Vector]:
        """Return the multipliers of each constraint; one row per problem or task if there are several."""
        found = []
        for i in range(1, 1 + len(self.constraints)):
            parts = [result.y[i].T for result in results]
            found.append(parts[0] if len(parts) == 1 else np.stack(parts))
        return found

    def kept(self) -> Fit:
        """Return the fit with data of which nobody else has the memory; data in a file as they are."""
        weight = None if self.samples.weight is None else self.samples.weight.copy()
        others = replace(self, samples=self.samples._replace(weight=weight))
        own = self.design.centred or not self.samples.X.in_memory
        return others if own else replace(others, design=self.design.with_rows(self.design.matrix.copy()))

    @property
    def entries(self) -> int:
        """The number of entries of X."""
        return self.design.n_rows * self.design.n_features

    def decided(self, k: int, result: sb.Result) -> Any:
        """Return which coefficients of problem k are in every solution; None for data in files and other objectives.

        A penalty that is not convex has no dual problem, and data in a file are not read again for this.
        """
        target = self.targets[k]
        given = self._from_given(result, target) if self.objective.convex and self.samples.X.in_memory else None
        if given is None:
            return None
        found = sb.bounds(sb.Problem(*self.terms(target)), given.x, given.y)
        low, high = (end[0] if isinstance(end, list) else end for end in (found.lower, found.upper))
        if self.objective.joint and low.shape[1] == 2:  # a model of two classes has the differences of coefficients
            low, high = low[:, 1:] - high[:, :1], high[:, 1:] - low[:, :1]
        return decisions(low, high)

    def posed(self, coefs: Sequence[Vector], intercepts: Sequence[Any]) -> Iterator[tuple[sb.Problem, Any]]:
        """Yield each problem with the point that belongs to coefficients for the given data."""
        for target, coef, intercept in zip(self.targets, coefs, intercepts, strict=True):
            x = [coef, np.reshape(intercept, (1, *coef.shape[1:]))] if self.design.intercept else coef
            yield sb.Problem(*self.terms(target)), self.design.from_given(x, target.shift)

    def to_given(self, result: sb.Result, target: Target) -> sb.Result:
        """Return a solution for the data of the design as one for the data as given."""
        x = self.design.to_given(result.x, target.shift)
        if self.objective.joint and self.design.intercept:  # the loss does not change if all intercepts do alike
            x = [x[0], x[1] - np.mean(x[1])]
        return replace(
            result,
            x=x,
            y=self._on_samples(result.y, self.samples.to_given),
            problem=None,  # which is that of the centred data
        )

    def _from_given(self, result: sb.Result, target: Target) -> sb.Result | None:
        """Return a result as a start for this problem; only x if the rows differ, None if the columns differ."""
        coef, intercept = coefficients(result)
        if coef.shape != (self.design.n_features, *target.values.shape[1:]):
            return None
        x = [coef, intercept.reshape(1, *coef.shape[1:])] if self.design.intercept else coef
        given = self.samples.y.shape[0] if self.samples.row_of is None else self.samples.row_of.size
        tasks = target.values.shape[1:]
        further = [term.shape or (C.shape[0], *tasks) for C, term in self.further(target)]
        before = result.y if isinstance(result.y, list) else [result.y]
        if result.y is None or before[0].shape[0] != given or [part.shape for part in before[1:]] != further:
            zeros = [np.zeros(target.values.shape), *map(np.zeros, further)]
            y = zeros if further else zeros[0]
        else:
            y = self._on_samples(result.y, self.samples.from_given)
        return replace(result, x=self.design.from_given(x, target.shift), y=y)

    @staticmethod
    def _on_samples(y: Any, change: Callable[[Vector], Vector]) -> Any:
        """Return a dual point after a change of the part that belongs to the samples."""
        return [change(y[0]), *y[1:]] if isinstance(y, list) else change(y)
