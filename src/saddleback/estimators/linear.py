"""Fitting a linear model: the common part of all linear estimators.

An estimator states its objective; this module checks the data, makes the problem, solves it, and turns the result into
fitted attributes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted

import saddleback as sb

from ..checkpoints import compare
from ..common.arrays import Indices, Vector
from ..common.checks import unmasked
from ..functions.group import partition
from ..machine.blas_threads import single_threaded
from ..machine.threads import limited
from ..paths.path import grid
from ..places.mpi.communicator import communicator_of
from ..places.torch import on_host
from ..tall.dask_rows import DaskRows, is_dask, predicted
from ..tall.from_user import as_rows
from ..tall.rows import ArrayRows, Rows
from ..tall.spread import spread
from . import constraints as of_constraints
from . import rotation, tall_fit
from .constraints import check_feasible, in_columns
from .design import Design
from .encoding import encoded, has_categories
from .groups import by_index, group_names, in_order, named
from .inference.methods import Inferential
from .objective import Choice, Objective
from .path import Path, coefficients
from .samples import Samples, distinct
from .table import Dense, Table, checked_samples
from .tall_fit import TallFit

LEAST_SECONDS = 1e-6
"""Time limit of a problem if the others have used up the time: it ends at its first certificate."""


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
    constraints: Sequence[of_constraints.Rows] = ()

    def with_alpha(self, alpha: float) -> Fit:
        """Return the fit with another strength of the penalty."""
        return replace(self, objective=replace(self.objective, alpha=alpha))

    def compressed(self, problems: int) -> Fit:
        """Return an equivalent fit on fewer rows, if that pays for the number of problems to solve."""
        parts = [self.design.matrix, *(target.values.reshape(self.design.n_rows, -1) for target in self.targets)]
        # the mean is the best constant for the losses that depend only on the sum of squared residuals
        possible = self.objective.mean_is_best and self.samples.X.dense and not self.design.column
        possible = possible and self.objective.convex and not self.has_further_losses
        ends = np.cumsum([part.shape[1] for part in parts])
        if not possible or not rotation.pays(self.design.n_rows, ends[-1], problems * len(self.targets)):
            return self
        X, *values = np.split(rotation.rotated(parts, self.samples.weight), ends[:-1], axis=1)
        targets = [
            Target(value.reshape(-1, *target.values.shape[1:]), target.shift)
            for value, target in zip(values, self.targets, strict=True)
        ]
        samples = Samples(Dense(X), np.concatenate(values, axis=1), None)
        return replace(self, samples=samples, design=self.design.with_rows(X), targets=targets)

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
        objective, n_features = self.objective, self.design.n_features
        whole = objective.grouped and objective.groups is not None
        whole = whole and not objective.has_ratio and not objective.overlapping
        return list(partition(objective.groups if whole else 1, n_features))

    def without_penalty(self, kept: Indices) -> Fit:
        """Return the fit of some features without a penalty, under the same bounds and constraints."""
        low, high = (bound if bound is None else bound[kept] for bound in (self.objective.lower, self.objective.upper))
        X = self.samples.X.columns(kept)
        return replace(
            self,
            objective=replace(self.objective, penalty=None, groups=None, weights=None, lower=low, upper=high),
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
        further = self._further(target)
        if not further:
            return penalty, A, loss
        rows = [[C, None] if self.design.column else C for C, _ in further]
        return penalty, [A, *rows], [loss, *(term for _, term in further)]

    @property
    def has_further_losses(self) -> bool:
        """Whether a problem has other losses than that of the samples: constraints, or penalties with a matrix."""
        return bool(self._further(self.targets[0]))

    def _further(self, target: Target) -> list[tuple[Any, Any]]:
        """Return the matrices and losses of the constraints, and of the parts of the penalty that need a matrix."""
        tasks = target.values.shape[1:]
        own = self.objective.further_terms((self.design.n_features, *tasks))
        return [rows.term(tasks) for rows in self.constraints] + own

    def solve(self, target: Target, start: sb.Result | None, options: dict[str, Any]) -> sb.Result:
        """Return the solution for the data as given, from a result for similar data or from 0."""
        x0 = None if start is None else self._from_given(start, target)
        return self._to_given(self._solved(target, x0, options), target)

    def _solved(self, target: Target, x0: Any, options: dict[str, Any]) -> sb.Result:
        """Return the solution for the data of the design."""
        if self.objective.convex:
            return sb.solve(sb.Problem(*self.terms(target)), x0=x0, **options)
        return sb.reweighted(*self.terms(target), x0=None if self.objective.weighs_once else x0, **options)

    def path(self, k: int, few: Fit, options: dict[str, Any]) -> list[sb.Result]:
        """Return the solutions of problem k for many alphas, for the data as given; ``few`` is the fit to solve for."""
        results = (
            few.along(few.targets[k], options)
            if self.objective.overlapping or not self.objective.convex
            else sb.path(*few.terms(few.targets[k]), **options)
        )
        if results[-1].status is sb.Status.INTERRUPTED:
            raise KeyboardInterrupt
        if few is not self:
            with limited(options["threads"]):
                results = self._on_all_rows(k, few, results, options)
        return [self._to_given(result, self.targets[k]) for result in results]

    def for_weights(self, k: int, weights: Vector, options: dict[str, Any]) -> list[sb.Result]:
        """Return the solutions of problem k for other weights of the given samples, one row of weights per solution.

        The intercept has a column, since the means of the columns depend on the weights.
        """
        X, before = self.samples.X, self.samples.weight
        given = np.stack([self.samples.from_given(row) for row in weights])
        factors = given * (self.total / given.sum(axis=1, keepdims=True))
        one = replace(self, design=Design(X, before, self.design.intercept))
        problem = sb.Problem(*one.terms(self.targets[k]))
        results = sb.solve_many(problem, weights=factors if before is None else factors / before, **options)
        return [replace(result, x=one.design.to_given(result.x, self.targets[k].shift)) for result in results]

    def along(self, target: Target, options: dict[str, Any]) -> list[sb.Result]:
        """Return the solutions for many alphas, each from the one before it, of penalties that ``sb.path`` refuses.

        They are not on x alone, or not convex.
        """
        options = {name: value for name, value in options.items() if name not in ("n_alphas", "eps")}
        results: list[sb.Result] = []
        for alpha in np.sort(np.asarray(options.pop("alphas"), dtype=np.float64))[::-1]:
            one = self.with_alpha(float(alpha))
            start = results[-1] if results else None
            result = one._solved(target, start, options)
            results.append(replace(result, settings={**result.settings, "alpha": float(alpha)}))
            if result.status is sb.Status.INTERRUPTED:
                break
        return results

    def reweighted(self, target: Target, factors: Vector, options: dict[str, Any]) -> list[sb.Result]:
        """Return the solutions with other weights of the samples, one row of factors for each, for the data as given.

        The design must have a column for the intercept, since the best constant depends on the weights.
        """
        if not self._further(target):
            return self._many(target, options, weights=factors)
        weights = factors if self.samples.weight is None else factors * self.samples.weight
        return self.with_losses(
            target, [self.objective.loss_term(target.values, own, self.total) for own in weights], options
        )

    def with_losses(self, target: Target, losses: list[Any], options: dict[str, Any]) -> list[sb.Result]:
        """Return the solutions with other losses of the samples, for the data as given."""
        further = [term for _, term in self._further(target)]
        return self._many(target, options, losses=[[loss, *further] for loss in losses] if further else losses)

    def _many(self, target: Target, options: dict[str, Any], **changes: Any) -> list[sb.Result]:
        results = sb.solve_many(sb.Problem(*self.terms(target)), **changes, **options)
        if results[-1].status is sb.Status.INTERRUPTED:
            raise KeyboardInterrupt
        return [self._to_given(result, target) for result in results]

    def _on_all_rows(self, k: int, few: Fit, results: list[sb.Result], options: dict[str, Any]) -> list[sb.Result]:
        """Return solutions that were found on fewer rows with their dual points and certificates on all of them.

        Each dual point is the same multiple of the residuals on all rows, times their weights, as on the fewer ones.
        """
        problem, weight = sb.Problem(*self.terms(self.targets[k])), self.samples.weight
        found = []
        for result in results:
            one = problem.with_alpha(result.settings["alpha"])
            inside, residual = (fit.design.matrix @ result.x - fit.targets[k].values for fit in (few, self))
            y = np.vdot(inside, result.y) / (np.vdot(inside, inside) or 1.0) * residual
            if weight is not None:
                y *= weight.reshape((-1,) + (1,) * (y.ndim - 1))
            result = replace(result, y=y, certificate=sb.certify(one, result.x, y))
            if result.status is sb.Status.OPTIMAL and result.certificate.error > options["tol"]:  # by rounding alone
                others = {name: value for name, value in options.items() if name not in ("alphas", "n_alphas", "eps")}
                again = sb.solve(one, x0=result, **others)
                result = replace(again, settings={**again.settings, "alpha": result.settings["alpha"]})
            found.append(result)
        return found

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

    def posed(self, coefs: Sequence[Vector], intercepts: Sequence[Any]) -> Iterator[tuple[sb.Problem, Any]]:
        """Yield each problem with the point that belongs to coefficients for the given data."""
        for target, coef, intercept in zip(self.targets, coefs, intercepts, strict=True):
            x = [coef, np.reshape(intercept, (1, *coef.shape[1:]))] if self.design.intercept else coef
            yield sb.Problem(*self.terms(target)), self.design.from_given(x, target.shift)

    def _to_given(self, result: sb.Result, target: Target) -> sb.Result:
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
        further = [term.shape or (C.shape[0], *tasks) for C, term in self._further(target)]
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


class LinearModel(Inferential, ABC):
    """Base of the linear estimators."""

    warm_start: bool

    losses: Mapping[str, Choice]
    """The losses of the model by their names."""

    least_samples = 1
    """Smallest number of samples of a fit."""

    @abstractmethod
    def _targets(self, y: Any, weight: Vector | None, design: Design) -> list[Target]:
        """Return the targets of every problem to solve, from the y that ``_check_data`` has returned."""

    @abstractmethod
    def _columns(self, y: Any) -> list[Vector]:
        """Return the targets of every problem without a shift, from the y that ``_check_data`` has returned."""

    @abstractmethod
    def _check_data(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[Table, Any, Vector | None]:
        """Return checked X, y and weights."""

    @abstractmethod
    def _store(self, results: list[sb.Result], dtype: Any) -> None:
        """Set the fitted attributes from the results, one per problem."""

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, memory map, Zarr array or Streamed
            Samples by features; copied at most once and never changed. A memory map, a Zarr array or ``sb.Streamed``
            stays in its file, which is read panel by panel unless it is small (docs/scaling.md).
        y : array-like
            The targets.
        sample_weight : array-like, optional
            One value per sample, at least 0. The loss is divided by their sum.

        Returns
        -------
        self : object
            If Ctrl-C or the time limit ends a fit early, the model is the best point so far, and a warning says how far
            it is from the optimum. With several problems, one per class or column of y, Ctrl-C before the last one
            raises KeyboardInterrupt. So does Ctrl-C in a fit that scikit-learn runs, such as those of a search; the
            model keeps the point in that case too.
        """
        if is_dask(X):
            return self._fit_rows(DaskRows(X, y, sample_weight))
        table, y, weight = self._check_data(X, y, sample_weight)
        return self._fit_table(table, y, weight)

    def fit_files(
        self, path: Any, target: str, weights: str | None = None, columns: Sequence[str] | None = None
    ) -> Any:
        """Fit the model to tables in files, which are read a few times and need not fit into memory.

        Parameters
        ----------
        path : str, path, list of these, pyarrow Dataset or DataFrame
            A Parquet or Arrow file, a folder of them or a pattern such as "data/*.parquet". A DataFrame of pandas or
            polars, or a Table of pyarrow, is accepted too, and so is a row-major .npy file or a Zarr array.
        target : str or array-like
            Name of the column with the targets; for a .npy file or a Zarr array, the targets.
        weights : str, optional
            Name of the column with the weights of the samples.
        columns : sequence of str, optional
            Names of the features; by default all other columns. Columns of categories or strings become one feature
            per value, named "column=value".

        Returns
        -------
        self : object
            The fitted model, with the names of the features in ``feature_names_in_``.
        """
        return self._fit_rows(as_rows(path, target, weights, columns))

    @property
    def coef_by_name_(self) -> dict[str, Any]:
        """The coefficients by the names of the features; one per class or target if there are several."""
        check_is_fitted(self)
        coef = self.coef_.reshape(-1, self.n_features_in_)
        names = getattr(self, "feature_names_in_", None)
        named = map(str, range(self.n_features_in_) if names is None else names)
        return dict(zip(named, coef[0].tolist() if coef.shape[0] == 1 else coef.T, strict=True))

    def _fit_rows(self, rows: Rows) -> Any:
        """Fit the model to rows that are read in chunks."""
        self.n_features_in_ = rows.n_columns
        if rows.named:
            self.feature_names_in_ = np.array(rows.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        objective = self._with_indices(rows.n_columns)
        missing = tall_fit.lacking(objective, rows.n_columns, self.constraints, self.device)
        if missing:
            raise ValueError(
                f"{type(self).__name__} has {missing}: a fit to rows in chunks cannot have that; fit to data in memory"
            )
        self._objective().check(self.losses)
        with communicator_of(self.comm) as team:
            rows = spread(rows, team)
        targets, total = self._row_targets(rows)
        return self._fit(np.float64, TallFit(objective, targets, total, self.fit_intercept))

    @abstractmethod
    def _row_targets(self, rows: Rows) -> tuple[list[Rows], float]:
        """Return the rows with the targets of every problem, and the weight of all samples."""

    def _fit_table(self, table: Table, y: Any, weight: Vector | None) -> Any:
        """Fit the model to checked data."""
        here = self.comm is None and self.device is None and not self.warm_start
        if here and tall_fit.pays(table, y) and self._can_be_tall(table, y):
            targets = [ArrayRows(table.matrix, own, weight, checked=True) for own in self._columns(y)]
            total = float(y.size if weight is None else weight.sum())
            return self._fit(
                table.dtype, TallFit(self._with_indices(table.shape[1]), targets, total, self.fit_intercept)
            )
        return self._fit(table.dtype, self._prepare(table, y, weight))

    def _can_be_tall(self, table: Table, y: Any) -> bool:
        """Return whether a fit to rows in chunks has all that the model asks for."""
        n_features = table.shape[1]
        return not tall_fit.lacking(self._with_indices(n_features), n_features, self.constraints, None)

    def _fit(self, dtype: Any, ready: Fit | TallFit) -> Any:
        """Solve the problems of checked data, and set the fitted attributes."""
        results = self._solve(ready)
        self._warn(results)
        self._store(results, dtype)
        self.constraint_multipliers_ = ready.multipliers(results)
        self._stop_if_interrupted(results)
        return self

    def _posed(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Iterator[tuple[sb.Problem, Any]]:
        """Yield the problems that the model solves for data, each with the point of the fitted model."""
        check_is_fitted(self)
        other = self._unfitted()
        ready: Fit = other._prepare(*other._check_data(X, y, sample_weight))
        if hasattr(self, "alpha_"):
            ready = ready.with_alpha(self.alpha_)
        single = len(ready.targets) == 1
        coefs = [self.coef_.reshape(-1, self.n_features_in_).T] if single else list(self.coef_)
        if single and ready.targets[0].values.ndim == 1:
            coefs = [coefs[0][:, 0]]
        intercepts = [self.intercept_] if single else list(np.broadcast_to(self.intercept_, len(coefs)))
        return ready.posed(coefs, intercepts)

    def _solve(self, ready: Fit | TallFit) -> list[sb.Result]:
        """Return the result of every problem; problems share the time limit."""
        starts: Iterable[sb.Result | None] = [None] * len(ready.targets)
        if self.warm_start and hasattr(self, "result_"):
            before = self.result_ if isinstance(self.result_, list) else [self.result_]
            starts = before if len(before) == len(ready.targets) else starts
        options, begun = self._options(), perf_counter()
        results: list[sb.Result] = []
        for target, start in zip(ready.targets, starts, strict=True):
            if results and results[-1].status is sb.Status.INTERRUPTED:
                raise KeyboardInterrupt  # the model would have no coefficients for the other targets
            if self.time_limit is not None:
                rest = self.time_limit - (perf_counter() - begun)
                options["time_limit"] = max(rest / (len(ready.targets) - len(results)), LEAST_SECONDS)
            results.append(self._solve_one(ready, target, start, options))
        return results

    def _solve_one(self, ready: Any, target: Any, start: sb.Result | None, options: dict[str, Any]) -> sb.Result:
        """Return the result of one problem."""
        result: sb.Result = ready.solve(target, start, options)
        return result

    def path(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        alphas: ArrayLike | None = None,
        n_alphas: int = 100,
        eps: float = 1e-3,
    ) -> Path:
        """Solve for many alphas, the largest first, each from the solution before it; the model is not changed.

        Parameters
        ----------
        X, y, sample_weight : array-like
            As in ``fit``.
        alphas : array-like, optional
            The values; by default ``n_alphas`` of them from the smallest alpha with all coefficients 0, which is exact,
            down to ``eps`` times it.
        n_alphas : int, default 100
            Number of the default values.
        eps : float, default 1e-3
            The last default value relative to the first.

        Returns
        -------
        Path
            The solutions with their certificates.
        """
        other, X = self._unfitted(), self._features(X)
        along: Path = other._path(other._prepare(*other._check_data(X, y, sample_weight)), alphas, n_alphas, eps)
        self._warn(along.flat())
        return along

    def _prepare(self, X: Table, y: Any, weight: Vector | None, total: float | None = None, merged: bool = True) -> Fit:
        """Return checked data as problems to solve, the same on all processes; ``total`` is the weight of all samples.

        By default it is the sum of the weights. ``merged`` says whether equal samples become one row.
        """
        with communicator_of(self.comm) as team:
            compare(team, {"X": X.sample()})
        objective, names = self._with_indices(X.shape[1]), getattr(self, "feature_names_in_", None)
        constraints = of_constraints.as_rows(self.constraints, names, X.shape[1])
        if constraints:
            low, high = (np.broadcast_to(bound, X.shape[1]) for bound in objective.box)
            check_feasible(constraints, np.maximum(low, 0.0) if objective.positive else low, high)
        samples = distinct(X, y, weight) if merged else Samples(X, y, weight)
        design = Design(samples.X, samples.weight, self.fit_intercept, objective.mean_is_best)
        if total is None:
            total = float(samples.y.shape[0] if samples.weight is None else samples.weight.sum())
        return Fit(objective, samples, design, self._targets(samples.y, samples.weight, design), total, constraints)

    def _with_indices(self, n_features: int) -> Objective:
        """Return the objective with indices of columns in place of their names."""
        objective, names = self._grouped_objective(), getattr(self, "feature_names_in_", None)
        weighed = ("groups", group_names(objective.groups)) if objective.grouped else ("columns of X", names)
        return replace(
            objective,
            groups=by_index(objective.groups, names, n_features),
            weights=in_order(objective.weights, *weighed),
            lower=None if objective.lower is None else in_columns(objective.lower, "lower", names, n_features, -np.inf),
            upper=None if objective.upper is None else in_columns(objective.upper, "upper", names, n_features, np.inf),
        )

    def _grouped_objective(self) -> Objective:
        """Return the objective; ``groups=None`` is one group per term of a formula, if there is one."""
        objective, encoding = self._objective(), self._encoding()
        if encoding is None or not hasattr(self, "groups") or not objective.grouped or objective.groups is not None:
            return objective
        return replace(objective, groups=encoding.groups)

    def _path(self, ready: Fit, alphas: ArrayLike | None, n_alphas: int, eps: float) -> Path:
        options = self._options() | {"alphas": alphas, "n_alphas": n_alphas, "eps": eps}
        shares = grid(1.0, n_alphas, eps) if alphas is None else np.asarray(alphas)
        few = ready.compressed(shares.size)
        if alphas is None:
            largest = max(ready.alpha_max(target) for target in ready.targets)
            # any grid if all coefficients are 0; one grid for all classes; that of the data as given
            if largest == 0 or len(ready.targets) > 1 or few is not ready or not ready.objective.convex:
                options["alphas"] = (largest or 1.0) * shares
        results = [ready.path(k, few, options) for k in range(len(ready.targets))]
        pairs = [[coefficients(result) for result in along] for along in results]
        coefs = np.stack([np.stack([coef.T for coef, _ in along], axis=-1) for along in pairs])
        intercepts = np.stack([np.stack([intercept for _, intercept in along], axis=-1) for along in pairs])
        gaps = np.array([[result.certificate.gap for result in along] for along in results])
        values = np.array([result.settings["alpha"] for result in results[0]])
        single = len(results) == 1
        return Path(
            values,
            coefs[0] if single else coefs,
            intercepts[0] if single else intercepts,
            gaps[0] if single else gaps,
            results[0] if single else results,
            **self._labels(ready),
        )

    def _labels(self, ready: Fit) -> dict[str, Any]:
        """Return the names of features, groups and targets for a picture of a path."""
        names, groups = getattr(self, "feature_names_in_", None), self._grouped_objective().groups
        grouped = ready.objective.grouped and groups is not None and not ready.objective.overlapping
        return {
            "feature_names": None if names is None else list(names),
            "groups": named(groups, names, ready.design.n_features) if grouped else [],
            "panels": self._panels(ready),
            "piecewise_constant": ready.objective.piecewise_constant,
        }

    def _panels(self, ready: Fit) -> list[str]:
        """Return the titles of the panels, one per class or target; an empty list if there is only one."""
        columns = [target.values.shape[1] if target.values.ndim == 2 else 1 for target in ready.targets]
        return [f"target {i}" for i in range(sum(columns))] if sum(columns) > 1 else []

    def _scores(self, X: Any) -> Any:
        """Return X coef_' + intercept_, lazily for an array or a DataFrame of Dask."""
        check_is_fitted(self)
        if is_dask(X):
            return predicted(X, self._scores, outputs=None if self.coef_.ndim == 1 else self.coef_.shape[0])
        X, names = self._features(X), getattr(self, "feature_names_in_", None)
        if names is not None and has_categories(X, names):
            return np.asarray(encoded(X, names) @ self.coef_.T + self.intercept_)
        return checked_samples(self, X) @ self.coef_.T + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def check_weight(sample_weight: ArrayLike | None, X: Table) -> Vector | None:
    """Return sample weights as float64; None if they are all equal."""
    if sample_weight is None:
        return None
    weight: Vector = check_array(
        on_host(unmasked("sample_weight", sample_weight)),
        ensure_2d=False,
        dtype=np.float64,
        input_name="sample_weight",
        ensure_non_negative=True,
    )
    if weight.ndim == 0:
        weight = np.full(X.shape[0], float(weight))
    if weight.ndim != 1:
        raise ValueError(f"sample_weight has shape {weight.shape}: expected one value per sample")
    check_consistent_length(X, weight)
    if not np.any(weight):
        raise ValueError("sample_weight is zero everywhere: expected at least one positive weight")
    return weight
