"""Fitting a linear model: the common part of all linear estimators.

An estimator states its objective; this module checks the data, makes the problem, solves it, and turns the result into
fitted attributes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

import saddleback as sb

from ..checkpoints import compare
from ..common.arrays import Vector
from ..common.checks import distinct_names
from ..engine.clock import Clock
from ..paths.path import grid
from ..places.mpi.communicator import communicator_of
from ..tall.dask_rows import DaskRows, is_dask, predicted
from ..tall.rows import ArrayRows
from . import by_columns, many_alphas, tall_fit
from . import constraints as of_constraints
from .constraints import check_feasible, in_columns
from .design import Design
from .encoding import encoded, has_categories
from .fit import Fit, Target
from .groups import by_index, group_names, in_order, named
from .objective import Objective
from .path import Path, coefficients
from .samples import Samples, distinct
from .selection import Selection
from .table import Table, checked_samples
from .tall_fit import TallFit
from .tall_model import FromRows


class LinearModel(FromRows, ABC):
    """Base of the linear estimators."""

    warm_start: bool

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
        clock = self._clock()
        if is_dask(X):
            return self._fit_rows(DaskRows(X, y, sample_weight), clock)
        table, y, weight = self._check_data(X, y, sample_weight)
        return self._fit_table(clock, table, y, weight)

    @property
    def coef_by_name_(self) -> dict[str, Any]:
        """The coefficients by the names of the features; one per class or target if there are several."""
        check_is_fitted(self)
        coef = self.coef_.reshape(-1, self.n_features_in_)
        names = getattr(self, "feature_names_in_", None)
        named = list(map(str, range(self.n_features_in_) if names is None else names))
        distinct_names("coef_by_name_", named)
        return dict(zip(named, coef[0].tolist() if coef.shape[0] == 1 else coef.T, strict=True))

    @property
    def selected_(self) -> Any:
        """For each coefficient "in every solution", "in none" or "undecided at this gap", in the shape of ``coef_``."""
        check_is_fitted(self)
        return self._selection.decided()

    def _select(self, ready: Fit | TallFit, results: Sequence[sb.Result]) -> None:
        """Prepare to decide which coefficients are in every solution."""
        self._selection = Selection(ready, results, self.coef_)

    def _fit_table(self, clock: Clock, table: Table, y: Any, weight: Vector | None, total: float | None = None) -> Any:
        """Fit the model to checked data; ``total`` is as in ``_prepare``."""
        here = total is None and self.comm is None and self.device is None and not self.warm_start
        if here and tall_fit.pays(table, y) and self._can_be_tall(table, y, clock):
            targets = [ArrayRows(table.matrix, own, weight, checked=True) for own in self._columns(y)]
            total = float(y.size if weight is None else weight.sum())
            ready = TallFit(self._with_indices(table.shape[1]), targets, total, self.fit_intercept)
            return self._fit(table.dtype, ready, clock)
        return self._fit(table.dtype, self._prepare(table, y, weight, total), clock)

    def _fit(self, dtype: Any, ready: Fit | TallFit, clock: Clock) -> Any:
        """Solve the problems of checked data, and set the fitted attributes."""
        results = self._solve(ready, clock)
        self._warn(results)
        self._store(results, dtype)
        self.constraint_multipliers_ = ready.multipliers(results)
        self._select(ready, results)
        self._stop_if_interrupted(results)
        return self

    def _without_offset(
        self, table: Table, y: Any, weight: Vector | None, offset: ArrayLike
    ) -> tuple[Any, Vector | None, float | None]:
        """Return targets, weights and the weight of all samples for which no offset gives the same coefficients."""
        raise ValueError(f"offset was given, and {type(self).__name__} has none: leave it out")

    def _posed(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, offset: ArrayLike | None
    ) -> Iterator[tuple[sb.Problem, Any]]:
        """Yield the problems that the model solves for data, each with the point of the fitted model."""
        check_is_fitted(self)
        other = self._unfitted()
        table, y, weight = other._check_data(X, y, sample_weight)
        given = (y, weight) if offset is None else other._without_offset(table, y, weight, offset)
        ready: Fit = other._prepare(table, *given)
        ready = replace(ready, objective=self._chosen(ready.objective))
        single = len(ready.targets) == 1
        coefs = [self.coef_.reshape(-1, self.n_features_in_).T] if single else list(self.coef_)
        if single and ready.targets[0].values.ndim == 1:
            coefs = [coefs[0][:, 0]]
        intercepts = [self.intercept_] if single else list(np.broadcast_to(self.intercept_, len(coefs)))
        return ready.posed(coefs, intercepts)

    def _solve(self, ready: Fit | TallFit, clock: Clock) -> list[sb.Result]:
        """Return the result of every problem; problems share the time limit."""
        starts: Iterable[sb.Result | None] = [None] * len(ready.targets)
        if self.warm_start and hasattr(self, "result_"):
            before = self.result_ if isinstance(self.result_, list) else [self.result_]
            starts = before if len(before) == len(ready.targets) else starts
        results: list[sb.Result] = []
        for target, start in zip(ready.targets, starts, strict=True):
            if results and results[-1].status is sb.Status.INTERRUPTED:
                raise KeyboardInterrupt  # the model would have no coefficients for the other targets
            options = self._options(clock, len(ready.targets) - len(results))
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
            The solutions with their certificates. If the time limit ends it, those up to there.
        """
        clock, other, X = self._clock(), self._unfitted(), self._features(X)
        ready = other._prepare(*other._check_data(X, y, sample_weight))
        along: Path = other._path(ready, alphas, n_alphas, eps, clock)
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
        objective = replace(
            objective,
            lower=None if objective.lower is None else in_columns(objective.lower, "lower", names, n_features, -np.inf),
            upper=None if objective.upper is None else in_columns(objective.upper, "upper", names, n_features, np.inf),
        )
        if objective.by_columns:
            encoding = self._encoding()
            return by_columns.with_indices(objective, names, n_features, {} if encoding is None else encoding.groups)
        weighed = ("groups", group_names(objective.groups)) if objective.grouped else ("columns of X", names)
        return replace(
            objective,
            groups=by_index(objective.groups, names, n_features),
            weights=in_order(objective.weights, *weighed),
        )

    def _grouped_objective(self) -> Objective:
        """Return the objective; ``groups=None`` is one group per term of a formula, if there is one."""
        objective, encoding = self._objective(), self._encoding()
        grouped = objective.grouped and not objective.by_columns
        if encoding is None or not hasattr(self, "groups") or not grouped or objective.groups is not None:
            return objective
        return replace(objective, groups=encoding.groups)

    def _path(self, ready: Fit, alphas: ArrayLike | None, n_alphas: int, eps: float, clock: Clock) -> Path:
        """Return the solutions for many alphas: the same for all problems, as far as the time lasts."""
        options: dict[str, Any] = {"alphas": alphas, "n_alphas": n_alphas, "eps": eps}
        shares = grid(1.0, n_alphas, eps) if alphas is None else np.asarray(alphas)
        few = many_alphas.compressed(ready, shares.size)
        if alphas is None:
            largest = max(ready.alpha_max(target) for target in ready.targets)
            # any grid if all coefficients are 0; one grid for all classes; that of the data as given
            if largest == 0 or len(ready.targets) > 1 or few is not ready or not ready.objective.convex:
                options["alphas"] = (largest or 1.0) * shares
        count = len(ready.targets)
        results = [many_alphas.path(ready, k, few, self._options(clock, count - k) | options) for k in range(count)]
        reached = min(map(len, results))
        results = [along[:reached] for along in results]
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
        names, known = getattr(self, "feature_names_in_", None), self._grouped_objective()
        groups = ready.objective.groups if known.by_columns else known.groups
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
