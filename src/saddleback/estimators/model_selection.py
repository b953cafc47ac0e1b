"""The choice of alpha by cross-validation: one implementation for all models.

The path on all data gives the alphas and, at the end, the model. One path per fold, over the same alphas, measures how
well they predict: the loss of the model on the held-out samples.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

import saddleback as sb

from ..common.arrays import Vector
from ..machine.blas_threads import single_threaded
from .certified import calling_level, furthest
from .classification import LinearClassifier
from .documentation import FITTED, IN_CROSS_VALIDATION, OF_CLASSIFIERS, OF_CROSS_VALIDATION, documented, entries
from .linear import LinearModel
from .objective import Objective
from .path import given_axes
from .regression import LinearRegressor
from .table import Table

MSE = entries("""
mse_path_ : array of shape (n_alphas, n_folds)
    Mean squared error on the held-out samples of each fold, twice ``loss_path_``.
""")


class AlphaGridWarning(UserWarning):
    """Cross-validation has chosen an end of its grid, so that the best alpha may lie outside."""


class CrossValidated(LinearModel):
    """Base of the models that choose alpha themselves."""

    least_samples = 2

    eps: float
    n_alphas: int
    alphas: Any
    cv: Any
    warm_start = False  # a path always starts from the null model

    def fit_files(self, path: Any, target: str, weights: str | None = None, columns: Any = None) -> Any:
        """Refuse: folds of rows in files are not available."""
        raise TypeError(
            f"{type(self).__name__} needs its data in memory: choose alpha on a sample of the rows, and call "
            "fit_files of the model without cross-validation"
        )

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Choose alpha and fit the model; parameters as in the model without cross-validation."""
        table, y, weight = self._check_data(X, y, sample_weight)
        given, count = self._grid()
        ready = self._prepare(table, y, weight)
        path = self._path(ready, given, count, self.eps)
        folds = check_cv(self.cv, y, classifier=is_classifier(self)).split(table.for_folds(), y)
        worker = self._unfitted(cv=None)  # given folds may be a generator, which cannot be pickled
        for known in ("classes_", "feature_names_in_"):  # a fold may lack a class, and has no names
            if hasattr(self, known):
                setattr(worker, known, getattr(self, known))
        judged = Parallel(n_jobs=self.n_jobs)(
            delayed(worker._held_out)(table, y, weight, train, test, path.alphas) for train, test in folds
        )
        losses, totals, least_certain = zip(*judged, strict=True)
        self._warn([*path.flat(), *least_certain])
        self.path_ = path
        self.alphas_ = path.alphas
        self.loss_path_ = np.stack(losses, axis=1)
        # folds are weighted by their samples, so that repeated and weighted samples choose the same alpha
        self.mean_loss_ = np.average(self.loss_path_, axis=1, weights=totals)
        best = int(np.argmin(self.mean_loss_))
        self.alpha_ = float(path.alphas[best])
        chosen = [along[best] for along in path.by_problem()]
        self._store(chosen, table.dtype)
        self.constraint_multipliers_ = ready.multipliers(chosen)
        self._select(ready.with_alpha(self.alpha_).selected(chosen))
        self._warn_of_grid(best)
        return self

    def _held_out(
        self, X: Table, y: NDArray[Any], weight: Vector | None, train: Any, test: Any, alphas: Vector
    ) -> tuple[Vector, float, sb.Result]:
        """Return the mean loss on held-out samples for every alpha, their weight, and the least certain result."""
        train, test = (np.arange(len(y))[part] for part in (train, test))
        of_train, of_test = (None if weight is None else weight[part] for part in (train, test))
        ready = self._prepare(X.rows(train), y[train], of_train)
        path = self._path(ready.compressed(alphas.size), alphas, alphas.size, self.eps)
        coefs = path.coefs.reshape(-1, *path.coefs.shape[-2:])
        intercepts = path.intercepts.reshape(-1, alphas.size)
        loss = np.zeros(alphas.size)
        if of_test is not None and not np.any(of_test):
            return loss, 0.0, furthest(path.flat())
        total = float(len(y[test]) if of_test is None else of_test.sum())
        held_out = X.rows(test)
        targets = self._targets(y[test], of_test, ready.design)
        for target, coef, intercept in zip(targets, coefs, intercepts, strict=True):
            with single_threaded():  # threads would still wait for work in the next fold
                scores = (held_out @ coef + intercept - target.shift).T
            function = ready.objective.loss_term(target.values, of_test, total).bind(target.values.shape)
            loss += [function.value(np.ascontiguousarray(u)) for u in scores]
        return loss, total, furthest(path.flat())

    def _warn_of_grid(self, best: int) -> None:
        """Warn if the chosen alpha is an end of the grid beyond which there are other models."""
        last = self.alphas_.size - 1
        if last < 2 or best not in (0, last):  # a grid of two has only ends
            return
        if best == 0 and not np.any(self.path_.coefs[..., 0]):  # a larger alpha would give the same model
            return
        end, advice = ("smallest", "lower eps or pass alphas") if best == last else ("largest", "pass larger alphas")
        warnings.warn(
            f"{type(self).__name__}: the best alpha, {self.alpha_:.3g}, is the {end} of the grid: {advice}",
            AlphaGridWarning,
            stacklevel=calling_level(),
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the path and the loss on held-out samples against alpha.

        Parameters
        ----------
        ax : array of matplotlib axes, optional
            One per panel of ``path_.plot()`` and one for the loss; new ones by default.

        Returns
        -------
        array of matplotlib axes
            The last one has the loss.
        """
        axes = given_axes(ax, self.path_.n_panels + 1, "one per class or target, and one for the loss")
        self.path_.plot(axes[:-1])
        name, factor = self._objective().drawn_loss
        axes[-1].semilogx(self.alphas_, factor * self.loss_path_, color="0.8", linewidth=1)
        axes[-1].semilogx(self.alphas_, factor * self.mean_loss_, marker=".", label="mean over folds")
        axes[-1].set(xlabel="alpha", ylabel=f"{name} on held-out samples")
        axes[-1].invert_xaxis()
        axes[-1].grid(alpha=0.3)
        for axis in axes:
            axis.axvline(self.alpha_, color="black", linestyle=":", label=f"chosen: {self.alpha_:.3g}")
        axes[-1].legend()
        return axes

    def _grid(self) -> tuple[ArrayLike | None, int]:
        """Return the given alphas, and how many to choose if none are given."""
        if self.alphas is None:
            return None, self.n_alphas
        return (None, int(self.alphas)) if np.ndim(self.alphas) == 0 else (self.alphas, self.n_alphas)

    def _threads(self) -> int | None:
        return None  # n_jobs is for the folds


@documented(OF_CROSS_VALIDATION | FITTED, IN_CROSS_VALIDATION)
class SparseRegressorCV(CrossValidated, LinearRegressor):
    """``SparseRegressor`` with alpha chosen by cross-validation.

    Losses and penalties are those of ``SparseRegressor``, and so is the objective. What is compared on held-out samples
    is the loss of the model. ``plot()`` draws the path and the losses.
    """

    passes_parameter = "max_passes"

    def __init__(
        self,
        loss: str = "squared",
        penalty: str = "l1",
        *,
        l1_ratio: float = 0.5,
        groups: Any = None,
        weights: ArrayLike | Mapping[Any, float] | None = None,
        quantile: float = 0.5,
        delta: float = 1.0,
        epsilon: float = 0.1,
        eps: float = 1e-2,
        n_alphas: int = 20,
        alphas: ArrayLike | None = None,
        cv: Any = None,
        fit_intercept: bool = True,
        positive: bool = False,
        lower: Any = None,
        upper: Any = None,
        constraints: Any = None,
        tol: float = 1e-5,
        max_passes: float = 10_000,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = False,
        device: Any = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.groups = groups
        self.weights = weights
        self.quantile = quantile
        self.delta = delta
        self.epsilon = epsilon
        self.eps = eps
        self.n_alphas = n_alphas
        self.alphas = alphas
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.lower = lower
        self.upper = upper
        self.constraints = constraints
        self.tol = tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def _objective(self) -> Objective:
        return Objective(
            self.loss,
            self.penalty,
            l1_ratio=self.l1_ratio,
            groups=self.groups,
            weights=self.weights,
            quantile=self.quantile,
            delta=self.delta,
            epsilon=self.epsilon,
            positive=self.positive,
            lower=self.lower,
            upper=self.upper,
        )


@documented(OF_CROSS_VALIDATION | OF_CLASSIFIERS, IN_CROSS_VALIDATION)
class SparseClassifierCV(CrossValidated, LinearClassifier):
    """``SparseClassifier`` with alpha chosen by cross-validation: one alpha for all classes.

    Losses and penalties are those of ``SparseClassifier``, and so is the objective. What is compared on held-out
    samples is the loss of the model. ``plot()`` draws the path and the losses.
    """

    passes_parameter = "max_passes"

    def __init__(
        self,
        loss: str = "hinge",
        penalty: str = "l1",
        *,
        l1_ratio: float = 0.5,
        groups: Any = None,
        weights: ArrayLike | Mapping[Any, float] | None = None,
        class_weight: Any = None,
        eps: float = 1e-2,
        n_alphas: int = 20,
        alphas: ArrayLike | None = None,
        cv: Any = None,
        fit_intercept: bool = True,
        positive: bool = False,
        lower: Any = None,
        upper: Any = None,
        constraints: Any = None,
        tol: float = 1e-5,
        max_passes: float = 10_000,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = False,
        device: Any = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.groups = groups
        self.weights = weights
        self.class_weight = class_weight
        self.eps = eps
        self.n_alphas = n_alphas
        self.alphas = alphas
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.lower = lower
        self.upper = upper
        self.constraints = constraints
        self.tol = tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def _objective(self) -> Objective:
        return Objective(
            self.loss,
            self.penalty,
            l1_ratio=self.l1_ratio,
            groups=self.groups,
            weights=self.weights,
            positive=self.positive,
            lower=self.lower,
            upper=self.upper,
        )


@documented(OF_CROSS_VALIDATION | MSE | FITTED, IN_CROSS_VALIDATION)
class LassoCV(CrossValidated, LinearRegressor):
    """``Lasso`` with alpha chosen by cross-validation; the objective is that of scikit-learn.

    ``plot()`` draws the path and the mean squared errors on held-out samples.
    """

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        n_alphas: int = 100,
        alphas: ArrayLike | None = None,
        fit_intercept: bool = True,
        max_iter: float = 10_000,
        time_limit: float | None = None,
        tol: float = 1e-6,
        cv: Any = None,
        verbose: Any = False,
        n_jobs: int | None = None,
        positive: bool = False,
        lower: Any = None,
        upper: Any = None,
        constraints: Any = None,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        self.eps = eps
        self.n_alphas = n_alphas
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.tol = tol
        self.cv = cv
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.lower = lower
        self.upper = upper
        self.constraints = constraints
        self.random_state = random_state
        self.device = device

    def _objective(self) -> Objective:
        return Objective(positive=self.positive, lower=self.lower, upper=self.upper)

    @property
    def mse_path_(self) -> Vector:
        """Mean squared errors on held-out samples: the loss without its half."""
        return 2.0 * self.loss_path_


@documented(OF_CROSS_VALIDATION | MSE | FITTED, IN_CROSS_VALIDATION)
class GroupLassoCV(LassoCV):
    """``GroupLasso`` with alpha chosen by cross-validation.

    ``plot()`` draws the path and the mean squared errors on held-out samples.
    """

    def __init__(
        self,
        *,
        groups: Any = None,
        weights: ArrayLike | Mapping[Any, float] | None = None,
        eps: float = 1e-3,
        n_alphas: int = 100,
        alphas: ArrayLike | None = None,
        fit_intercept: bool = True,
        max_iter: float = 10_000,
        time_limit: float | None = None,
        tol: float = 1e-6,
        cv: Any = None,
        verbose: Any = False,
        n_jobs: int | None = None,
        positive: bool = False,
        lower: Any = None,
        upper: Any = None,
        constraints: Any = None,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        super().__init__(
            eps=eps,
            n_alphas=n_alphas,
            alphas=alphas,
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            time_limit=time_limit,
            tol=tol,
            cv=cv,
            verbose=verbose,
            n_jobs=n_jobs,
            positive=positive,
            lower=lower,
            upper=upper,
            constraints=constraints,
            random_state=random_state,
            device=device,
        )
        self.groups = groups
        self.weights = weights

    def _objective(self) -> Objective:
        return Objective(
            penalty="group",
            groups=self.groups,
            weights=self.weights,
            positive=self.positive,
            lower=self.lower,
            upper=self.upper,
        )


@documented(OF_CROSS_VALIDATION | FITTED, IN_CROSS_VALIDATION)
class QuantileRegressorCV(CrossValidated, LinearRegressor):
    """``QuantileRegressor`` with alpha chosen by cross-validation, by the quantile loss.

    ``plot()`` draws the path and the losses on held-out samples.
    """

    def __init__(
        self,
        *,
        quantile: float = 0.5,
        eps: float = 1e-2,
        n_alphas: int = 20,
        alphas: ArrayLike | None = None,
        fit_intercept: bool = True,
        max_iter: float = 10_000,
        time_limit: float | None = None,
        tol: float = 1e-5,
        cv: Any = None,
        verbose: Any = False,
        n_jobs: int | None = None,
        positive: bool = False,
        lower: Any = None,
        upper: Any = None,
        constraints: Any = None,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        self.quantile = quantile
        self.eps = eps
        self.n_alphas = n_alphas
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.tol = tol
        self.cv = cv
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.lower = lower
        self.upper = upper
        self.constraints = constraints
        self.random_state = random_state
        self.device = device

    def _objective(self) -> Objective:
        return Objective("quantile", quantile=self.quantile, positive=self.positive, lower=self.lower, upper=self.upper)
