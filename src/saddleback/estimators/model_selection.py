"""The models that choose alpha: by cross-validation, or by an information criterion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from ..common.arrays import Vector
from .classification import LinearClassifier
from .cross_validation import CrossValidated
from .documentation import FITTED, IN_CROSS_VALIDATION, OF_CLASSIFIERS, OF_CROSS_VALIDATION, RATIO, documented, entries
from .objective import Objective, PenaltyName
from .regression import OF_TASKS, LinearRegressor, SeveralTasks

MSE = entries("""
mse_path_ : array of shape (n_alphas, n_folds)
    Mean squared error on the held-out samples of each fold: ``loss_path_`` without its half.
""")


@documented(OF_CROSS_VALIDATION | RATIO | FITTED, IN_CROSS_VALIDATION)
class SparseRegressorCV(CrossValidated, LinearRegressor):
    """``SparseRegressor`` with alpha chosen by cross-validation.

    Losses and penalties are those of ``SparseRegressor``, and so is the objective. What is compared on held-out samples
    is the loss of the model. ``plot()`` draws the path and the losses.
    """

    passes_parameter = "max_passes"

    def __init__(
        self,
        loss: str = "squared",
        penalty: PenaltyName = "l1",
        *,
        l1_ratio: float | Sequence[float] = 0.5,
        gamma: float | None = None,
        groups: Any = None,
        weights: ArrayLike | Mapping[Any, float] | None = None,
        quantile: float = 0.5,
        expectile: float = 0.5,
        delta: float = 1.0,
        epsilon: float = 0.1,
        power: float = 1.5,
        eps: float = 1e-2,
        n_alphas: int = 20,
        alphas: ArrayLike | None = None,
        cv: Any = None,
        rule: str = "best",
        criterion: str | None = None,
        relaxed: bool = False,
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
        self.gamma = gamma
        self.groups = groups
        self.weights = weights
        self.quantile = quantile
        self.expectile = expectile
        self.delta = delta
        self.epsilon = epsilon
        self.power = power
        self.eps = eps
        self.n_alphas = n_alphas
        self.alphas = alphas
        self.cv = cv
        self.rule = rule
        self.criterion = criterion
        self.relaxed = relaxed
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
            gamma=self.gamma,
            groups=self.groups,
            weights=self.weights,
            quantile=self.quantile,
            expectile=self.expectile,
            delta=self.delta,
            epsilon=self.epsilon,
            power=self.power,
            positive=self.positive,
            lower=self.lower,
            upper=self.upper,
        )


@documented(OF_CROSS_VALIDATION | RATIO | OF_CLASSIFIERS, IN_CROSS_VALIDATION)
class SparseClassifierCV(CrossValidated, LinearClassifier):
    """``SparseClassifier`` with alpha chosen by cross-validation: one alpha for all classes.

    Losses and penalties are those of ``SparseClassifier``, and so is the objective. What is compared on held-out
    samples is the loss of the model. ``plot()`` draws the path and the losses.
    """

    passes_parameter = "max_passes"

    def __init__(
        self,
        loss: str = "hinge",
        penalty: PenaltyName = "l1",
        *,
        l1_ratio: float | Sequence[float] = 0.5,
        gamma: float | None = None,
        groups: Any = None,
        weights: ArrayLike | Mapping[Any, float] | None = None,
        delta: float = 1.0,
        class_weight: Any = None,
        eps: float = 1e-2,
        n_alphas: int = 20,
        alphas: ArrayLike | None = None,
        cv: Any = None,
        rule: str = "best",
        criterion: str | None = None,
        relaxed: bool = False,
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
        self.gamma = gamma
        self.groups = groups
        self.weights = weights
        self.delta = delta
        self.class_weight = class_weight
        self.eps = eps
        self.n_alphas = n_alphas
        self.alphas = alphas
        self.cv = cv
        self.rule = rule
        self.criterion = criterion
        self.relaxed = relaxed
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
            gamma=self.gamma,
            groups=self.groups,
            weights=self.weights,
            delta=self.delta,
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
        rule: str = "best",
        criterion: str | None = None,
        relaxed: bool = False,
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
        self.rule = rule
        self.criterion = criterion
        self.relaxed = relaxed
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
    def mse_path_(self) -> Vector | None:
        """Mean squared errors on held-out samples: the loss without its half."""
        return None if self.loss_path_ is None else 2.0 * self.loss_path_


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
        rule: str = "best",
        criterion: str | None = None,
        relaxed: bool = False,
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
            rule=rule,
            criterion=criterion,
            relaxed=relaxed,
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


@documented(OF_CROSS_VALIDATION | RATIO | MSE | FITTED, IN_CROSS_VALIDATION)
class ElasticNetCV(LassoCV):
    """``ElasticNet`` with alpha, and l1_ratio if it is a list, chosen by cross-validation.

    The objective is that of scikit-learn. ``plot()`` draws the path and the mean squared errors on held-out samples.
    """

    def __init__(
        self,
        *,
        l1_ratio: float | Sequence[float] = 0.5,
        eps: float = 1e-3,
        n_alphas: int = 100,
        alphas: ArrayLike | None = None,
        fit_intercept: bool = True,
        max_iter: float = 10_000,
        time_limit: float | None = None,
        tol: float = 1e-6,
        cv: Any = None,
        rule: str = "best",
        criterion: str | None = None,
        relaxed: bool = False,
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
            rule=rule,
            criterion=criterion,
            relaxed=relaxed,
            verbose=verbose,
            n_jobs=n_jobs,
            positive=positive,
            lower=lower,
            upper=upper,
            constraints=constraints,
            random_state=random_state,
            device=device,
        )
        self.l1_ratio = l1_ratio

    def _objective(self) -> Objective:
        return Objective(
            penalty="elasticnet",
            l1_ratio=self.l1_ratio,
            positive=self.positive,
            lower=self.lower,
            upper=self.upper,
        )


@documented(OF_CROSS_VALIDATION | MSE | OF_TASKS, IN_CROSS_VALIDATION)
class MultiTaskLassoCV(SeveralTasks, LassoCV):
    """``MultiTaskLasso`` with alpha chosen by cross-validation; the objective is that of scikit-learn.

    ``loss_path_`` is half the sum of the squared errors of all tasks, and ``mse_path_`` their mean. ``plot()`` draws
    the path, one panel per task, and the losses on held-out samples.
    """

    def _objective(self) -> Objective:
        return Objective(penalty="group", positive=self.positive, lower=self.lower, upper=self.upper)

    @property
    def mse_path_(self) -> Vector | None:
        """Mean squared errors on held-out samples, as in scikit-learn: the mean over samples and tasks."""
        return None if self.loss_path_ is None else 2.0 * self.loss_path_ / self.coef_.shape[0]


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
        rule: str = "best",
        criterion: str | None = None,
        relaxed: bool = False,
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
        self.rule = rule
        self.criterion = criterion
        self.relaxed = relaxed
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


@documented(OF_CROSS_VALIDATION | RATIO | OF_CLASSIFIERS, IN_CROSS_VALIDATION)
class SparseLogisticRegressionCV(CrossValidated, LinearClassifier):
    """``SparseLogisticRegression`` with alpha, and l1_ratio if it is a list, chosen by cross-validation.

    What is compared on held-out samples is the logistic loss. ``plot()`` draws the path and the losses.
    """

    def __init__(
        self,
        *,
        l1_ratio: float | Sequence[float] = 1.0,
        class_weight: Any = None,
        eps: float = 1e-2,
        n_alphas: int = 20,
        alphas: ArrayLike | None = None,
        fit_intercept: bool = True,
        max_iter: float = 10_000,
        time_limit: float | None = None,
        tol: float = 1e-5,
        cv: Any = None,
        rule: str = "best",
        criterion: str | None = None,
        relaxed: bool = False,
        verbose: Any = False,
        n_jobs: int | None = None,
        positive: bool = False,
        lower: Any = None,
        upper: Any = None,
        constraints: Any = None,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        self.l1_ratio = l1_ratio
        self.class_weight = class_weight
        self.eps = eps
        self.n_alphas = n_alphas
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.tol = tol
        self.cv = cv
        self.rule = rule
        self.criterion = criterion
        self.relaxed = relaxed
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.lower = lower
        self.upper = upper
        self.constraints = constraints
        self.random_state = random_state
        self.device = device

    def _objective(self) -> Objective:
        return Objective(
            "logistic",
            "elasticnet",
            l1_ratio=self.l1_ratio,
            positive=self.positive,
            lower=self.lower,
            upper=self.upper,
        )
