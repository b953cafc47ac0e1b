"""The choice of alpha, by cross-validation or by an information criterion: one implementation for all models.

The path on all data gives the alphas and, at the end, the model. Either one path per fold, over the same alphas,
measures how well they predict: by the loss of the model on the held-out samples. Or a criterion judges the path itself
(``criteria.py``).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

import saddleback as sb

from ..common.arrays import Vector
from ..engine.clock import Clock
from ..places.mpi.communicator import SERIAL
from . import criteria, many_alphas
from .certified import calling_level, furthest
from .displays import CVDisplay, given_axes
from .fit import Fit
from .linear import LinearModel
from .path import Path, coefficients
from .table import Table

RULES = ("best", "1se")

Folds = list[tuple[Any, Any]]
"""The samples to fit and those to judge by, for every fold."""


class AlphaGridWarning(UserWarning):
    """The choice of alpha has taken an end of its grid, so that the best alpha may lie outside."""


class FoldsError(ValueError):
    """The samples cannot be divided into folds.

    Attributes
    ----------
    reason : why.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}: expected other folds, as cv, or a model without cross-validation")
        self.reason = reason


class Pair(NamedTuple):
    """The places of an l1_ratio and an alpha in their grids."""

    ratio: int
    alpha: int


class Judged(NamedTuple):
    """How the models of a fold predict its held-out samples.

    ``losses`` are means, with one row per l1_ratio and one column per alpha that the time has allowed; ``weight`` is
    the weight of the samples. ``least_certain`` is the result that is furthest from its optimum.
    """

    losses: Vector
    weight: float
    least_certain: sb.Result


def _smallest(values: Vector) -> Pair:
    ratio, alpha = divmod(int(np.argmin(values)), values.shape[1])
    return Pair(ratio, alpha)


class CrossValidated(LinearModel):
    """Base of the models that choose alpha themselves."""

    least_samples = 2

    eps: float
    n_alphas: int
    alphas: Any
    cv: Any
    rule: str
    criterion: str | None
    relaxed: bool
    warm_start = False  # a path always starts from the null model

    def fit_files(self, path: Any, target: str, weights: str | None = None, columns: Any = None) -> Any:
        """Refuse: folds of rows in files are not available."""
        raise TypeError(
            f"{type(self).__name__} needs its data in memory: choose alpha on a sample of the rows, and call "
            "fit_files of the model without cross-validation"
        )

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Choose alpha and fit the model; parameters as in the model without cross-validation."""
        clock = self._clock()
        table, y, weight = self._check_data(X, y, sample_weight)
        self._check_choice()
        folds = self._folds(table, y, weight) if self.criterion is None else None
        ready, (given, count) = self._prepare(table, y, weight), self._grid()
        fits = [ready.with_ratio(ratio) for ratio in self._ratios()]
        rounds = 0 if folds is None else -(-len(folds) // effective_n_jobs(self.n_jobs))
        parts = len(fits) * (1 + rounds) + bool(self.relaxed)  # of about the same work
        paths = [self._path(fit, given, count, self.eps, clock.part(parts - k)) for k, fit in enumerate(fits)]
        judged = []
        if folds is not None:
            limit = clock.share(rounds + bool(self.relaxed))
            judged = self._judged(folds, table, y, weight, [path.alphas for path in paths], ready, limit)
        reached = min([path.alphas.size for path in paths] + [each.losses.shape[1] for each in judged])
        asked = count if given is None else np.size(given)
        if reached < asked:
            self._cut_short(reached, asked, "values of alpha")
        paths = [path.first(reached) for path in paths]
        chosen = self._by_folds(judged, paths) if judged else self._by_criterion(fits, paths)
        fit, self.path_ = fits[chosen.ratio], paths[chosen.ratio]
        self.alphas_ = self._by_ratio([path.alphas for path in paths])
        self.alpha_ = float(self.path_.alphas[chosen.alpha])
        if hasattr(self, "l1_ratio"):
            self.l1_ratio_ = float(fit.objective.l1_ratio) if fit.objective.has_ratio else None
        results = penalised = [along[chosen.alpha] for along in self.path_.by_problem()]
        if self.relaxed:
            results = [self._relaxed(fit, k, result, clock.part(len(results) - k)) for k, result in enumerate(results)]
            self._warn(results)
        self._store(results, table.dtype)
        self.constraint_multipliers_ = ready.multipliers(results)
        self._select(fit.with_alpha(self.alpha_), penalised)
        self._warn_of_grid(chosen.alpha, reached < asked)
        return self

    def _check_choice(self) -> None:
        """Raise if the parameters of the choice are unknown, or contradict each other."""
        if self.rule not in RULES:
            raise ValueError(f"rule={self.rule!r} is not known: expected one of {list(RULES)}")
        if self.criterion is None:
            return
        if self.criterion not in criteria.NAMES:
            raise ValueError(
                f"criterion={self.criterion!r} is not known: expected None for folds, or one of {list(criteria.NAMES)}"
            )
        if self.rule != "best" or self.cv is not None:
            useless = "cv" if self.rule == "best" else "rule"
            raise ValueError(
                f"{useless}={getattr(self, useless)!r} is about folds, and criterion={self.criterion!r} needs none: "
                f"leave out one of {useless} and criterion"
            )
        objective = self._objective()
        if objective.likelihood is None:
            known = [f"{name!r}" for name, choice in self.losses.items() if choice.likelihood is not None]
            raise ValueError(
                f"criterion={self.criterion!r} needs the likelihood of the loss, and loss={objective.loss!r} has none: "
                f"leave criterion out, or use loss={' or '.join(known)}"
            )

    def _ratios(self) -> list[float]:
        """Return the values of ``l1_ratio`` to try; one value if the penalty does not read it."""
        objective = self._objective()
        if not objective.has_ratio or np.ndim(objective.l1_ratio) == 0:
            return [objective.l1_ratio]
        if np.ndim(objective.l1_ratio) != 1 or not len(objective.l1_ratio):
            raise ValueError(f"l1_ratio={objective.l1_ratio!r}: expected a number, or a list of numbers")
        return [float(ratio) for ratio in objective.l1_ratio]

    def _by_ratio(self, found: Any) -> Any:
        """Return an array with one row per l1_ratio; without that axis if ``l1_ratio`` is a number."""
        return np.asarray(found) if np.ndim(self._objective().l1_ratio) else np.asarray(found)[0]

    def _judged(
        self,
        folds: Folds,
        table: Table,
        y: Any,
        weight: Vector | None,
        alphas: Sequence[Vector],
        ready: Fit,
        limit: float | None,
    ) -> list[Judged]:
        """Return how the models of every fold predict the samples that they have not seen."""
        worker = self._unfitted(cv=None)  # given folds may be a generator, which cannot be pickled
        for known in ("classes_", "feature_names_in_"):  # a fold may lack a class, and has no names
            if hasattr(self, known):
                setattr(worker, known, getattr(self, known))
        merged = ready.samples.row_of is not None
        found: list[Judged] = Parallel(n_jobs=self.n_jobs)(
            delayed(worker._held_out)(table, y, weight, train, test, alphas, merged, limit) for train, test in folds
        )
        return found

    def _by_folds(self, judged: list[Judged], paths: list[Path]) -> Pair:
        """Return the choice by the losses on held-out samples."""
        parts, totals, least_certain = zip(*judged, strict=True)
        self._warn([result for path in paths for result in path.flat()] + list(least_certain))
        losses = np.stack([part[:, : paths[0].alphas.size] for part in parts], axis=-1)
        # folds are weighted by their samples, so that repeated and weighted samples choose the same alpha
        mean = np.average(losses, axis=-1, weights=totals)
        counted = np.count_nonzero(totals)
        if self.rule == "1se" and counted < 2:
            raise ValueError("rule='1se' needs the spread of the losses over folds: expected two folds or more")
        spread = np.average((losses - mean[..., None]) ** 2, axis=-1, weights=totals)
        error = np.sqrt(spread / max(counted - 1, 1))
        self.loss_path_, self.mean_loss_, self.loss_std_error_ = map(self._by_ratio, (losses, mean, error))
        self.criterion_path_ = None
        best = _smallest(mean)
        if self.rule == "best":
            return best
        return best._replace(alpha=int(np.argmax(mean[best.ratio] <= mean[best] + error[best])))

    def _folds(self, table: Table, y: Any, weight: Vector | None) -> Folds:
        """Return the samples to fit and those to judge by, for every fold."""
        try:
            folds = list(check_cv(self.cv, y, classifier=is_classifier(self)).split(table.for_folds(), y))
        except ValueError as error:
            raise FoldsError(
                f"{table.shape[0]} samples cannot be divided into folds ({str(error).rstrip('.')})"
            ) from None
        if weight is not None and not all(np.any(weight[train]) for train, _ in folds):
            raise FoldsError("all samples with a positive weight are in one fold, so that the others give no model")
        return folds

    def _held_out(
        self,
        X: Table,
        y: NDArray[Any],
        weight: Vector | None,
        train: Any,
        test: Any,
        alphas: Sequence[Vector],
        merged: bool,
        limit: float | None,
    ) -> Judged:
        """Return how the models of a fold predict its held-out samples.

        ``merged`` says whether some samples are equal, and ``limit`` how many seconds a fold may take.
        """
        clock = Clock(limit, SERIAL)
        train, test = (np.arange(len(y))[part] for part in (train, test))
        of_train, of_test = (None if weight is None else weight[part] for part in (train, test))
        ready = self._prepare(X.rows(train), y[train], of_train, merged=merged)
        few = many_alphas.compressed(ready, sum(each.size for each in alphas))
        paths = [
            self._path(few.with_ratio(ratio), each, each.size, self.eps, clock.part(len(alphas) - k))
            for k, (ratio, each) in enumerate(zip(self._ratios(), alphas, strict=True))
        ]
        reached = min(path.alphas.size for path in paths)
        paths = [path.first(reached) for path in paths]
        least_certain = furthest([result for path in paths for result in path.flat()])
        if of_test is not None and not np.any(of_test):
            return Judged(np.zeros((len(alphas), reached)), 0.0, least_certain)
        held_out, targets = X.rows(test), self._targets(y[test], of_test, ready.design)
        losses = [ready.mean_losses(held_out, targets, of_test, path).sum(axis=0) for path in paths]
        return Judged(np.stack(losses), float(len(test) if of_test is None else of_test.sum()), least_certain)

    def _by_criterion(self, fits: list[Fit], paths: list[Path]) -> Pair:
        """Return the choice by an information criterion; with several problems, by the sum of theirs."""
        self._warn([result for path in paths for result in path.flat()])
        values = np.stack([self._criterion(fit, path) for fit, path in zip(fits, paths, strict=True)])
        if not np.any(values < np.inf):
            raise ValueError(
                f"criterion={self.criterion!r}: all models of the path have as many coefficients as there are "
                "samples; pass larger alphas"
            )
        self.loss_path_ = self.mean_loss_ = self.loss_std_error_ = None
        self.criterion_path_ = self._by_ratio(values)
        return _smallest(values)

    def _criterion(self, fit: Fit, path: Path) -> Vector:
        """Return the criterion at every alpha of a path."""
        assert self.criterion is not None
        assert fit.objective.likelihood is not None
        total = np.zeros(path.alphas.size)
        losses = fit.mean_losses(fit.samples.X, fit.targets, fit.samples.weight, path)
        for own, target, along in zip(losses, fit.targets, path.by_problem(), strict=True):
            tasks = max(target.values[0].size, 1)
            coefs = [coefficients(result)[0] for result in along]
            used = [np.any(coef.reshape(coef.shape[0], -1), axis=1) for coef in coefs]
            size = criteria.Sizes(
                fit.total * tasks,
                np.array([np.count_nonzero(coef) for coef in coefs]) + tasks * fit.design.intercept,
                np.array([sum(np.any(each[group]) for group in fit.groups()) for each in used]),
                len(fit.groups()),
            )
            mean = np.maximum(own - fit.least_loss(target), 0.0) / tasks
            total += criteria.values(self.criterion, fit.objective.likelihood, mean, size, fit.objective.of_loss)
        return total

    def _relaxed(self, fit: Fit, k: int, result: sb.Result, clock: Clock) -> sb.Result:
        """Return the fit without a penalty of the features that a solution of problem k selects."""
        coef, _ = coefficients(result)
        kept, n = fit.selected(coef), fit.samples.y.shape[0]
        if not kept.size:
            return result  # nothing is penalised
        if kept.size + fit.design.intercept >= n:
            also = " and an intercept" if fit.design.intercept else ""
            raise ValueError(
                f"relaxed=True: alpha={self.alpha_:.3g} selects {kept.size} features, and {n} different samples do not "
                f"determine {kept.size} coefficients{also} without a penalty. Choose a larger alpha: pass rule='1se' "
                "or larger alphas"
            )
        found = self._solve_one(fit.without_penalty(kept), fit.targets[k], None, self._options(clock))
        own, intercept = coefficients(found)
        whole = np.zeros(coef.shape)
        whole[kept] = own
        x = [whole, intercept.reshape(1, *coef.shape[1:])] if fit.design.intercept else whole
        return replace(found, x=x)

    def _warn_of_grid(self, best: int, cut: bool) -> None:
        """Warn if the chosen alpha is an end of the grid, which may be cut, beyond which there are other models."""
        last = self.path_.alphas.size - 1
        if last < 2 or best not in (0, last):  # a grid of two has only ends
            return
        if best == last and cut:  # the grid goes on
            return
        if best == 0 and not np.any(self.path_.coefs[..., 0]):  # a larger alpha would give the same model
            return
        end, advice = ("smallest", "lower eps or pass alphas") if best == last else ("largest", "pass larger alphas")
        warnings.warn(
            f"{type(self).__name__}: the best alpha, {self.alpha_:.3g}, is the {end} of the grid: {advice}",
            AlphaGridWarning,
            stacklevel=calling_level(),
        )

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
        """Solve for many alphas, with the chosen l1_ratio if there is a choice; parameters as in the other models."""
        if len(self._ratios()) == 1:
            return super().path(X, y, sample_weight, alphas=alphas, n_alphas=n_alphas, eps=eps)
        if not hasattr(self, "l1_ratio_"):
            raise ValueError("l1_ratio is a list, and a path has one l1_ratio: call fit first, which chooses it")
        one: CrossValidated = self._unfitted(l1_ratio=self.l1_ratio_)
        return one.path(X, y, sample_weight, alphas=alphas, n_alphas=n_alphas, eps=eps)

    def plot(self, ax: Any = None) -> Any:
        """Draw the path, and the losses on held-out samples or the criterion, against alpha.

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
        CVDisplay.from_estimator(self, ax=axes[-1])
        for axis in axes[:-1]:
            axis.axvline(self.alpha_, color="black", linestyle=":")
        return axes

    def _grid(self) -> tuple[ArrayLike | None, int]:
        """Return the given alphas, and how many to choose if none are given."""
        if self.alphas is None:
            return None, self.n_alphas
        return (None, int(self.alphas)) if np.ndim(self.alphas) == 0 else (self.alphas, self.n_alphas)

    def _threads(self) -> int | None:
        return None  # n_jobs is for the folds
