"""The methods of the linear models that say how certain their coefficients are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

import saddleback as sb

from ...common.arrays import Vector
from ...common.checks import finite, integer
from ...engine.clock import Clock
from .. import many_weights
from ..certified import furthest, seed_of
from ..formulas import Formulated
from ..objective import Objective
from ..path import coefficients
from .asymptotic import QuantileInference
from .checks import check_name, cluster_numbers
from .process import QuantileProcess
from .quantile_errors import density, gram, inverse
from .quantile_fits import ErrorOptions, QuantileData
from .resampling import WEIGHTS, WILD, Bootstrap, drawn_weights, leverage_corrected, wild_targets
from .summary import Summary

SAME = 1e-4
"""Largest relative difference of two values of the objective that belong to the same data."""

GRID = np.linspace(0.05, 0.95, 19)
"""The quantiles of a process by default."""


class Inferential(Formulated, ABC):
    """The part of the linear models that says how certain their coefficients are."""

    constraints: Any
    selected_: Any

    @abstractmethod
    def _objective(self) -> Objective:
        """Return the objective that the parameters describe."""

    def summary(self, X: Any = None, y: Any = None, **options: Any) -> Summary:
        """Return a table of the coefficients and of what is known of the fit.

        Parameters
        ----------
        X, y : array-like, optional
            The data of the fit, for standard errors and intervals. They are defined for quantile regression without a
            penalty; for other models the table has a sentence instead.
        **options : dict
            Options of ``inference``: ``kind``, ``bandwidth``, ``kernel``, ``clusters`` and ``level``.

        Returns
        -------
        Summary
            ``print`` shows it, ``to_frame()`` is a DataFrame.
        """
        check_is_fitted(self)
        obstacle = self._obstacle()
        if options and X is None:
            raise TypeError(f"summary got {', '.join(options)} without data: pass X and y too")
        if options and obstacle:
            raise ValueError(obstacle)
        if X is not None and not obstacle:
            return self.inference(X, y, **options).summary()
        note = obstacle or "Standard errors need the data: summary(X, y)."
        columns = {"coefficient": self._estimates()} | self._decisions()
        return Summary(type(self).__name__, self._facts(), self._names(), columns, note)

    def inference(
        self,
        X: Any,
        y: Any = None,
        *,
        kind: str = "nid",
        bandwidth: str = "hall-sheather",
        kernel: str | None = None,
        clusters: ArrayLike | None = None,
        level: float = 0.95,
    ) -> QuantileInference:
        """Return standard errors and intervals of a quantile regression without a penalty.

        Parameters
        ----------
        X, y : array-like
            The data of the fit; after ``fit_formula``, X may be the table, without y.
        kind : str, default "nid"
            How the covariance is estimated: "iid" (errors with one distribution), "nid" (Hendricks and Koenker; errors
            whose distribution depends on the features), "kernel" (Powell; the same), "robust" (one density, as the
            default of statsmodels) or "cluster" (errors that depend on each other within clusters).
        bandwidth : str, default "hall-sheather"
            How far from the quantile the density is estimated: "hall-sheather", "bofinger" or "chamberlain".
        kernel : str, optional
            "epanechnikov" (the default of "iid" and "robust"), "gaussian" (that of "kernel"), "biweight", "cosine",
            "parzen" or "uniform".
        clusters : array-like, optional
            The cluster of every sample, for ``kind="cluster"``.
        level : float, default 0.95
            Level of the intervals.

        Returns
        -------
        QuantileInference
            Covariance, standard errors, t values, p values and intervals.
        """
        check_is_fitted(self)
        if obstacle := self._obstacle():
            raise ValueError(obstacle)
        data, _ = self._quantile_data(X, y)
        how = ErrorOptions.checked(data.target.size, kind, bandwidth, kernel, clusters, level)
        own, quantile = self._estimates(), self._quantile()
        value = self._objective().loss_term(data.target, None, float(data.target.size)).bind(data.target.shape)
        self._check_same(float(value.value(data.predicted(own))), data.target)
        sides = data.solved(how.neighbours(quantile, data.target.size))
        if sides:
            self._warn(list(sides.values()))
        return self._inferred(data, own, quantile, how, [self._flat([side]) for side in sides.values()], self._facts())

    def bootstrap(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        n_boot: int = 200,
        kind: str = "pairs",
        clusters: ArrayLike | None = None,
        random_state: Any = 0,
    ) -> Bootstrap:
        """Return the coefficients of fits to changed data, which show how much they vary; the model is not changed.

        All parameters of the model stay as they are, also an alpha that was chosen by cross-validation.

        Parameters
        ----------
        X, y, sample_weight : array-like
            The data of the fit; after ``fit_formula``, X may be the table, without y.
        n_boot : int, default 200
            Number of fits.
        kind : str, default "pairs"
            "pairs" draws samples with replacement, "multiplier" draws exponential weights, "mammen" draws weights of
            two values, and "wild" draws targets (for quantile regression alone, with or without a penalty).
        clusters : array-like, optional
            The cluster of every sample: samples of one cluster are drawn together.
        random_state : int or RandomState, default 0
            Seed of the draws.

        Returns
        -------
        Bootstrap
            Coefficients per draw, standard errors and intervals.
        """
        check_is_fitted(self)
        draws = integer("n_boot", n_boot, least=2)
        check_name("kind", kind, [*WEIGHTS, WILD])
        clock = self._clock()
        X, y = self._data(X, y)
        other = self._unfitted()
        table, checked, weight = other._check_data(X, y, sample_weight)
        ready = other._prepare(table, checked, weight, merged=False)
        ready = replace(ready, objective=self._chosen(ready.objective), design=ready.design.with_column())
        rng, n = np.random.default_rng(seed_of(random_state)), table.shape[0]
        if kind == WILD:
            results = [self._wild(ready, rng, draws, clusters, X, y, clock)]
        else:
            units = np.arange(n) if clusters is None else cluster_numbers(clusters, n)
            factors = np.vstack([np.ones(n), drawn_weights(kind, rng, draws, units, weight)])
            count = len(ready.targets)
            results = [
                many_weights.reweighted(ready, target, factors, self._options(clock, count - k))
                for k, target in enumerate(ready.targets)
            ]
        results = self._within_time(results, 1 + draws)
        for given, own in zip(results, self._results(), strict=True):
            self._check_same(given[0].objective, ready.targets[0].values, own)
        self._warn([result for along in results for result in along])
        found = np.stack([self._flat(each) for each in zip(*results, strict=True)])
        return Bootstrap(self._names(), self._estimates(), found[1:], kind, results, type(self).__name__, self._facts())

    def quantile_process(
        self,
        X: Any,
        y: Any = None,
        quantiles: ArrayLike | None = None,
        *,
        kind: str | None = "nid",
        bandwidth: str = "hall-sheather",
        kernel: str | None = None,
        clusters: ArrayLike | None = None,
        level: float = 0.95,
    ) -> QuantileProcess:
        """Fit a grid of quantiles with the parameters of the model; the model is not changed.

        Parameters
        ----------
        X, y : array-like
            As in ``fit``; after ``fit_formula``, X may be the table, without y.
        quantiles : array-like, optional
            The quantiles, strictly between 0 and 1; by default 0.05, 0.1, ..., 0.95.
        kind : str, optional
            How standard errors are estimated, as in ``inference``. None is without standard errors, for models with a
            penalty.
        bandwidth, kernel, clusters, level : optional
            As in ``inference``.

        Returns
        -------
        QuantileProcess
            The coefficients at each quantile, with intervals; ``plot()`` draws them.
        """
        if self._quantile() is None:
            raise ValueError(f"loss={self._objective().loss!r}: expected a quantile regression, loss='quantile'")
        if kind is not None and (obstacle := self._obstacle()):
            raise ValueError(f"{obstacle} Pass kind=None for coefficients alone.")
        grid = GRID if quantiles is None else np.unique(finite("quantiles", quantiles))
        if np.ndim(grid if quantiles is None else quantiles) != 1 or not np.all((grid > 0) & (grid < 1)):
            raise ValueError(f"quantiles={quantiles!r}: expected a list of numbers strictly between 0 and 1")
        data, other = self._quantile_data(X, y)
        n, how = data.target.size, None
        if kind is not None:
            how = ErrorOptions.checked(n, kind, bandwidth, kernel, clusters, level)
        elif kernel is not None or clusters is not None:
            raise ValueError("kernel or clusters were given with kind=None: pass a kind of standard errors")
        beside = {each: [] if how is None else how.neighbours(each, n) for each in grid.tolist()}
        solved = data.solved([each for own, sides in beside.items() for each in (own, *sides)])
        self._warn(list(solved.values()))
        flat = {each: other._flat([result]) for each, result in solved.items()}
        inferred = [
            other._inferred(data, flat[own], own, how, [flat[side] for side in sides], {})
            for own, sides in beside.items()
            if how is not None
        ]
        along = grid.tolist()
        return QuantileProcess(
            grid,
            other._names(),
            np.stack([flat[each] for each in along]),
            [solved[each] for each in along],
            inferred,
            level,
        )

    # What the methods share -----------------------------------------------------------------------------------------

    def _quantile(self) -> Any:
        return self._objective().quantile_of_loss

    def _obstacle(self) -> str:
        """Return why the model has no standard errors; an empty string if it has them."""
        objective = self._chosen(self._objective())
        instead = "bootstrap(X, y) shows how much the coefficients vary from sample to sample."
        if objective.penalised:
            return (
                "There are no standard errors, since a penalty pulls coefficients towards 0, and the formulas for "
                f"estimates without a penalty do not hold; {instead}"
            )
        if objective.positive or objective.bounded or self.constraints is not None:
            return f"There are no standard errors, since coefficients at a bound are not normal; {instead}"
        if objective.quantile_of_loss is None:
            return f"There are no formulas for standard errors with loss={objective.loss!r}; {instead}"
        return ""

    def _chosen(self, objective: Objective) -> Objective:
        """Return the objective with the alpha and the l1_ratio that were chosen by cross-validation, if any were."""
        ratio = getattr(self, "l1_ratio_", None)
        objective = objective if ratio is None else replace(objective, l1_ratio=ratio)
        return replace(objective, alpha=self.alpha_) if hasattr(self, "alpha_") else objective

    def _results(self) -> list[sb.Result]:
        return self.result_ if isinstance(self.result_, list) else [self.result_]

    def _estimates(self) -> Vector:
        """Return all coefficients of the fit in one vector."""
        return self._flat(self._results())

    def _decisions(self) -> dict[str, Any]:
        """Return the column of a summary that says which features are in every solution, if there is a penalty."""
        if not self._chosen(self._objective()).penalised:
            return {}
        rows = self.selected_.reshape(-1, self.n_features_in_)
        if self.fit_intercept:
            rows = np.column_stack([np.full(len(rows), "", dtype=object), rows])
        return {"selected": rows.ravel()}

    def _flat(self, results: Sequence[sb.Result]) -> Vector:
        """Return the coefficients of some results, one per problem, in one vector: those of ``_names``."""
        parts = []
        for result in results:
            coef, intercept = coefficients(result)
            rows = coef.T.reshape(-1, coef.shape[0])
            parts.append(np.column_stack([intercept.reshape(-1, 1), rows]) if self.fit_intercept else rows)
        return np.concatenate([part.ravel() for part in parts])

    def _names(self) -> list[str]:
        """Return the names of all coefficients: the intercept and the features of each class or target in turn."""
        names = getattr(self, "feature_names_in_", None)
        own = [f"feature {j}" for j in range(self.n_features_in_)] if names is None else [str(name) for name in names]
        own = ["intercept", *own] if self.fit_intercept else own
        count = 1 if not hasattr(self, "coef_") else self.coef_.reshape(-1, self.n_features_in_).shape[0]
        if count == 1:
            return own
        classes = getattr(self, "classes_", None)
        titles = [f"target {k}" for k in range(count)] if classes is None else [f"class {name}" for name in classes]
        return [f"{title}: {name}" for title in titles for name in own]

    def _facts(self) -> dict[str, str]:
        """Return what a summary says of the fit; of several problems, that of the least certain."""
        objective, result = self._chosen(self._objective()), furthest(self._results())
        dual = result.y[0] if isinstance(result.y, list) else result.y
        problems = len(self._results())
        return {
            "loss": objective.loss_text,
            "penalty": objective.penalty_text + ("" if objective.convex else ", which is not convex"),
            **({} if dual is None else {"samples": str(len(dual))}),  # rows in chunks have no dual point
            "sparsity": f"{np.count_nonzero(self.coef_)} of {self.coef_.size} coefficients are not 0",
            **({} if problems == 1 else {"problems": f"{problems}; the least certain of them:"}),
            "status": result.status.name,
            "objective": f"{result.settings.get('objective', result.certificate.primal_value):.8g}",
            "certificate": f"relative gap {result.relative_gap:.1e}"
            + ("" if objective.convex else " of the last convex problem; a global minimum is not proved"),
        }

    def _quantile_data(self, X: Any, y: Any) -> tuple[QuantileData, Any]:
        """Return the data of a quantile regression, and a model with their names that has not been fitted."""
        X, y = self._data(X, y)
        other = self._unfitted()
        return QuantileData.of(other, X, y), other

    def _inferred(
        self, data: QuantileData, own: Vector, quantile: float, how: ErrorOptions, sides: list[Vector], facts: Any
    ) -> QuantileInference:
        covariance = data.covariance(own, quantile, how, sides)
        return QuantileInference(
            self._names(), own, covariance, data.degrees(how), how.kind, how.level, type(self).__name__, facts
        )

    def _within_time(self, results: list[list[sb.Result]], asked: int) -> list[list[sb.Result]]:
        """Return as many fits of every problem as the time has allowed, and warn if those are not all."""
        done = min(len(along) - (along[-1].status is sb.Status.TIME_LIMIT) for along in results)
        if done == asked:
            return results
        if done < 3:
            raise TimeoutError(f"time_limit={self.time_limit} was enough for {max(done - 1, 0)} draws: raise it")
        self._cut_short(done - 1, asked - 1, "draws")
        return [along[:done] for along in results]

    def _wild(self, ready: Any, rng: Any, draws: int, clusters: Any, X: Any, y: Any, clock: Clock) -> list[sb.Result]:
        """Return the fits to wild targets, after that to the targets as given."""
        quantile = self._quantile()
        if quantile is None:
            raise ValueError(f"kind='wild' is for quantile regression: loss={ready.objective.loss!r} has 'pairs'")
        if clusters is not None:
            raise ValueError("clusters were given with kind='wild', whose targets are independent: pass kind='pairs'")
        if ready.samples.weight is not None:
            raise ValueError("sample_weight was given with kind='wild', which has none: pass kind='pairs'")
        data, _ = self._quantile_data(X, y)
        own = self._estimates()
        residual = data.residual(own)
        if not ready.objective.penalised:
            how = ErrorOptions.checked(data.target.size, "iid", "hall-sheather", None, None, 0.95)
            hat = np.einsum("ij,ji->i", *(data.design @ inverse(gram(data.design)), data.design.T))
            residual = leverage_corrected(residual, hat, quantile, density(data.evidence(own, quantile, how, [])))
        (target,) = ready.targets
        drawn = np.vstack([data.target, wild_targets(rng, draws, data.predicted(own), residual, quantile)])
        losses = [ready.objective.loss_term(each - target.shift, None, ready.total) for each in drawn]
        found: list[sb.Result] = many_weights.with_losses(ready, target, losses, self._options(clock))
        return found

    def _check_same(self, value: float, target: Vector, result: sb.Result | None = None) -> None:
        """Raise if an objective of the given data is not that of the fit: then they are other data."""
        result = result or self._results()[0]
        fitted = result.certificate.primal_value
        tolerance = 1e-9 * float(np.max(np.abs(target)))
        if result.status.solved and not np.isclose(value, fitted, SAME + 10 * self.tol, tolerance):
            raise ValueError(
                f"X and y are not the data of the fit: the objective there was {fitted:.6g}, and is {value:.6g} here; "
                "pass the same samples, with the same sample_weight if there was one, and without an offset"
            )
