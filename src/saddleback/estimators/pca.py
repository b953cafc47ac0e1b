"""Robust principal components: a matrix as the sum of a low-rank, a sparse and a small part."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

import saddleback as sb

from .certified import Certified, furthest
from .samples import Vector

SHARE = 0.15
"""Default strengths, relative to the largest entry and the largest singular value of X (Parikh and Boyd, 2014)."""

ROW_TOL = 1e-12
"""Relative gap of the split of a new row, so small that it does not show which rows it came with."""


class RobustPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Certified):
    r"""Principal components that a few wild entries cannot move.

    Splits X = L + S + N into a low-rank, a sparse and a small part:

    .. math::

        \min\; \mu \|L\|_* + \lambda \|S\|_1 + \tfrac12 \|N\|_F^2 \quad\text{with}\quad L + S + N = X.

    ``transform`` splits new rows in the same way, with the components held: as :math:`\|L\|_*` is the least
    :math:`\frac12 (\|Z\|_F^2 + \|W\|_F^2)` over L = ZW, a row x has the code z with the least :math:`\frac{\mu}{2}
    \|z\|^2 + \lambda \|s\|_1 + \frac12 \|x - zW - s\|^2`, where W are the components of the fit times the roots of
    their singular values. It returns the coordinates of its low-rank part zW in the components. For the rows of the
    fit that is their row of ``low_rank_``, so that ``fit_transform(X)`` and ``fit(X).transform(X)`` agree.

    Parameters
    ----------
    nuclear_alpha : mu; 0.15 times the largest singular value of X by default. A larger one gives a lower rank.
    sparse_alpha : lambda; 0.15 times the largest entry of abs(X) by default. Entries further from the low-rank part
        than that go to the sparse part.
    max_iter : most work, in passes.
    tol : certified relative gap to reach.
    random_state : seed of the draws; None is 0.

    Attributes
    ----------
    low_rank_, sparse_, noise_ : L, S and N.
    components_ : the right singular vectors of L, one a row.
    singular_values_ : those of L that are not 0.
    rank_ : how many they are.
    nuclear_alpha_, sparse_alpha_ : the strengths used.
    result_, certificate_, dual_gap_, n_passes_, n_iter_ : what the solver tells, as in ``SparseRegressor``.
    """

    def __init__(
        self,
        nuclear_alpha: float | None = None,
        sparse_alpha: float | None = None,
        *,
        max_iter: float = 10_000,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.nuclear_alpha = nuclear_alpha
        self.sparse_alpha = sparse_alpha
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> RobustPCA:
        """Split X, samples by features; y is not used."""
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        B = np.asarray(X, dtype=np.float64)
        nuclear, sparse = self.nuclear_alpha, self.sparse_alpha
        self.nuclear_alpha_ = float(SHARE * np.linalg.norm(B, 2) if nuclear is None else nuclear)
        self.sparse_alpha_ = float(SHARE * np.abs(B).max() if sparse is None else sparse)
        penalties = [sb.SquaredL2(1.0), sb.L1(self.sparse_alpha_), sb.Nuclear(self.nuclear_alpha_, B.shape)]
        result = sb.solve(sb.Problem(penalties, [sb.Identity()] * 3, sb.Equality(B)), **self._options())
        self._warn([result])
        _, outliers, low_rank = result.x
        _, values, right = np.linalg.svd(low_rank, full_matrices=False)
        self.rank_ = int(np.sum(values > values[0] * max(B.shape) * np.finfo(np.float64).eps))
        self.singular_values_ = values[: self.rank_].astype(X.dtype)
        self.components_ = _fixed_signs(right[: self.rank_]).astype(X.dtype)
        self.low_rank_ = low_rank.astype(X.dtype)
        self.sparse_ = outliers.astype(X.dtype)
        self.noise_ = (B - low_rank - outliers).astype(X.dtype)
        self._judgement([result])
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Split X, and return the coordinates of its low-rank part in the components."""
        self.fit(X)
        return self.low_rank_ @ self.components_.T

    def transform(self, X: Any) -> Any:
        """Return the coordinates in the components of the low-rank part of new rows, split as in the fit."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        if self.rank_ == 0:
            return np.zeros((X.shape[0], 0), dtype=X.dtype)
        roots = np.sqrt(self.singular_values_.astype(np.float64))
        basis = self.components_.T.astype(np.float64) * roots
        # the best sparse part turns the squares into Huber's loss; every row is a problem of its own
        penalty = sb.SquaredL2(self.nuclear_alpha_)
        options = self._options() | {"tol": min(self.tol, ROW_TOL)}
        problems = (sb.Problem(penalty, basis, sb.Huber(row, delta=self.sparse_alpha_)) for row in X)
        results = [sb.solve(problem, **options) for problem in problems]
        worst = furthest(results)
        if worst.certificate.error > self.tol:
            self._warn([worst])
        return (np.array([result.x for result in results]) * roots).astype(X.dtype)

    def inverse_transform(self, X: Any) -> Any:
        """Return the low-rank rows that have the given coordinates."""
        check_is_fitted(self)
        return np.asarray(X) @ self.components_

    @property
    def _n_features_out(self) -> int:
        return self.rank_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _fixed_signs(rows: Vector) -> Vector:
    """Return singular vectors with their largest entry positive, so that the same data gives the same signs."""
    largest = np.argmax(np.abs(rows), axis=1)
    signs: Vector = np.sign(rows[np.arange(rows.shape[0]), largest])
    return rows * signs[:, None]
