"""Robust principal components: a matrix as the sum of a low-rank, a sparse and, where there is noise, a small part."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse_matrices
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

import saddleback as sb

from ..common.checks import SQUARABLE, Lent
from ..common.chunks import panels_of_rows
from ..functions.singular import low_rank_pairs, spectral_norm
from ..places.torch import on_host
from .certified import Certified, calling_level

Matrix = NDArray[Any]

SHARE = 0.15
"""Weights under noise, relative to the largest entry (row, column) and the largest singular value of X (Parikh and
Boyd, 2014)."""

ABOVE = 2.0
"""Weight of outlying rows or columns in an exact decomposition, relative to that at which L is 0. For k rows that have
length 1 and lie evenly in r directions the latter is sqrt(r/k), and Xu et al. (2012) recover L with 11/7 of it."""

ROW_TOL = 1e-12
"""Relative gap of the split of a new row."""

FLOOR = 1e-12
"""Least ridge of the online update, relative to the sum of the squares of the codes."""

NOISES = ("gaussian", None)
SPARSITIES = ("entry", "row", "column")


class RobustPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Certified):
    r"""Principal components that a few wild entries, rows or columns cannot move.

    With samples in the rows of X, splits X = L + S + N into a low-rank, a sparse and a small part,

    .. math::

        \min\; \mu \|L\|_* + \lambda\, p(S) + \tfrac12 \|N\|_F^2 \quad\text{with}\quad L + S + N = X,

    where p sums the absolute values of entries, or the norms of rows or of columns. With ``noise=None`` there is no N.
    Entries that are missing (NaN, or given as ``missing``) are left out of the constraint: S is 0 there, and L fills
    them in.

    ``transform`` splits new rows in the same way with the components held: as :math:`\|L\|_*` is the least
    :math:`\frac12 (\|Z\|_F^2 + \|W\|_F^2)` over L = ZW, a row has the code z with the least
    :math:`\frac{\mu}{2} \|z\|^2` plus its part of the other two terms, where W are the components times the roots of
    their singular values. It returns the coordinates of zW in the components.

    Parameters
    ----------
    noise : "gaussian" or None, default="gaussian"
        None is the exact decomposition of Candes, Li, Ma and Wright (2011).
    sparsity : "entry", "row" or "column", default="entry"
        "row" is for outlying samples, "column" for outlying features.
    sparse_weight : float or "auto", default="auto"
        lambda. "auto" is, under noise, 0.15 times the largest entry (or norm of a row or column) of X. Without noise it
        is :math:`1/\sqrt{\max(m, n) q}` with q the share of entries that are there, or for rows and columns
        :math:`\min(2/s, 1/\sqrt{s})` with s the largest singular value of X once all of them have length 1: from 1 on
        S is 0, and up to 1/s L is (Xu, Caramanis and Sanghavi, 2012, have 11/(7s) if the rest lies evenly in a
        subspace).
    low_rank_weight : float or "auto", default="auto"
        mu. "auto" is 0.15 times the largest singular value of X under noise, and 1 without.
    non_negative : bool, default=False
        Whether L must be non-negative. That needs one block more, and takes longer.
    tol : float, default=1e-6
        Certified relative gap to reach.
    max_iter : float, default=10000
        Most work, in passes. ``n_iter_`` may exceed it by a few.
    time_limit : float, default=None
        Most seconds for a ``fit``. A fit that ends there warns with the gap that it has reached.
    n_jobs : int, default=None
        Most threads; None and -1 take as many as the process may keep busy (see ``saddleback.solve``).
    verbose : bool, default=False
        Whether to show a progress bar.
    random_state : int or RandomState, default=None
        Seed of the random draws, for methods that have any. None is 0.
    device : str, default=None
        Device of torch on which X is split, such as "cuda". None is the host. New rows are split on the host, one at a
        time. Not with ``non_negative``.

    Attributes
    ----------
    low_rank_, sparse_, noise_ : arrays of shape (n_samples, n_features)
        L, S and N; N is 0 where an entry is missing. After ``partial_fit``, those of its rows.
    components_ : array of shape (rank_, n_features)
        The right singular vectors of L, one per row.
    singular_values_ : array of shape (rank_,)
        The singular values of L that are not 0.
    rank_ : int
        Their number.
    sparse_weight_, low_rank_weight_ : float
        The weights used.
    result_ : Result
        What ``saddleback.solve`` returned. The problem has the block L under Huber's loss if entries are sparse and the
        rest is noise, and L and S without noise. Otherwise it has S and L, and more blocks if L is non-negative; for
        outlying columns they are transposed. x and y are in the type of X, and x may be ``low_rank_`` itself: the
        certificate is that of the points before they were rounded to that type.
    certificate_ : Certificate
        How far the objective is from its minimum at most: ``relative_gap``, ``gap``, ``primal_value``, ``dual_value``.
    dual_gap_ : float
        The certified gap of the objective.
    n_passes_ : float
        Work done, in passes.
    n_iter_ : int
        ``n_passes_`` rounded up.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if X had names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from saddleback.estimators import RobustPCA
    >>> X = np.outer(np.arange(1.0, 7.0), np.ones(5))
    >>> X[2, 3] = 40.0
    >>> pca = RobustPCA(noise=None).fit(X)
    >>> pca.rank_, bool(abs(pca.low_rank_[2, 3] - 3.0) < 1e-3)
    (1, True)
    """

    def __init__(
        self,
        noise: str | None = "gaussian",
        sparsity: str = "entry",
        *,
        sparse_weight: Any = "auto",
        low_rank_weight: Any = "auto",
        non_negative: bool = False,
        tol: float = 1e-6,
        max_iter: float = 10_000,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        self.noise = noise
        self.sparsity = sparsity
        self.sparse_weight = sparse_weight
        self.low_rank_weight = low_rank_weight
        self.non_negative = non_negative
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.device = device

    # --- all samples at once --------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, missing: Any = None) -> RobustPCA:
        """Split X, samples by features.

        Parameters
        ----------
        X : array-like
            The data; NaN marks a missing entry.
        y : None
            Not used.
        missing : array-like of bool, optional
            In the shape of X, True for entries to leave out, in addition to NaN in X.
        """
        self._check_parameters()
        data = self._validated(X, missing, reset=True)
        largest = float(max(data.values.max(), -data.values.min()))
        if largest > SQUARABLE:
            raise ValueError(f"X has entries up to {largest:.3g}, whose squares overflow: scale it down")
        turned = data.transposed() if self.sparsity == "column" else data
        self.sparse_weight_, self.low_rank_weight_ = self._weights(turned)
        result = self._solve(self._problem(turned), **self._method(turned))
        result = replace(result, y=_rounded(result.y, data.values.dtype))
        pairs = low_rank_pairs(self._parts(result, turned)[0])
        result = replace(result, x=_rounded(result.x, data.values.dtype))
        low_rank, sparse = self._parts(result, turned)
        if self.non_negative:  # of L and its copy, the copy is non-negative to the last bit
            low_rank = result.x[2].reshape(low_rank.shape)
        if self.sparsity == "column":
            pairs, low_rank, sparse = pairs.transposed(), low_rank.T, None if sparse is None else sparse.T
        self._describe(pairs.right, pairs.values, data.values.dtype)
        self._split(data, low_rank, sparse)
        self._outlying: Matrix = np.any(self.sparse_, axis=0)
        self._judgement([result])
        if self.rank_ == 0 and np.any(data.values) and result.status.solved:
            warnings.warn(
                f"RobustPCA: the low-rank part is 0, as low_rank_weight={self.low_rank_weight_:.3g} is too large "
                f"beside sparse_weight={self.sparse_weight_:.3g} for these data: pass less of it, or more of the other",
                UserWarning,
                stacklevel=calling_level(),
            )
        self._online: _Online | None = None
        self._stop_if_interrupted([result])
        return self

    def fit_transform(self, X: Any, y: Any = None, missing: Any = None) -> Any:
        """Split X, and return the coordinates of its low-rank part in the components."""
        self.fit(X, missing=missing)
        return self.low_rank_ @ self.components_.T

    @property
    def _in_one_block(self) -> bool:
        """Whether the least over S and N has a formula, so that L is all that is solved for."""
        return self.noise == "gaussian" and self.sparsity == "entry" and not self.non_negative

    @property
    def _in_two_blocks(self) -> bool:
        """Whether L and S make up all of X."""
        return self.noise is None and not self.non_negative

    def _method(self, data: _Data) -> dict[str, Any]:
        """Return the method and its options: of two blocks, one of multipliers asks for the fewest thresholdings.

        With sparse entries its penalty is half of that of Candes et al. (2011), section 5, which is 1 / (4 mean |X|) in
        the units of their sparse weight: over a dozen problems a half took the fewest passes.
        """
        if not self._in_two_blocks:
            return {}
        size = float(np.abs(data.values).sum(dtype=np.float64))
        if self.sparsity != "entry" or size == 0:
            return {"method": "gs-admm"}
        there = data.values.size if data.observed is None else int(data.observed.sum())
        unit = self.sparse_weight_ * np.sqrt(max(data.values.shape) * there / data.values.size)
        return {"method": "gs-admm", "rho": 0.5 * unit * there / (4.0 * size)}

    def _problem(self, data: _Data) -> sb.Problem:
        """Return the problem over S and L, with the sparse groups in rows, or over L alone."""
        B, observed, shape = data.values.view(Lent), data.observed, data.values.shape
        if self._in_one_block:
            weight = None if observed is None else observed.astype(np.float64)
            huber = sb.Huber(B, self.sparse_weight_, weight)
            return sb.Problem(sb.Nuclear(self.low_rank_weight_, shape), sb.Identity(), huber)
        if self.sparsity == "entry":
            sparse: Any = sb.L1(self.sparse_weight_)
        else:  # a group holds a row: one of a matrix variable, or as many entries of a flat one
            sparse = sb.GroupL2(self.sparse_weight_, shape[1] if self.non_negative else 1, np.ones(shape[0]))
        nuclear = sb.Nuclear(self.low_rank_weight_, shape)
        if self.non_negative:
            return self._non_negative(sparse, nuclear, data)
        if self._in_two_blocks:  # with S last, y is within its bounds: what is to be scaled is a spectral norm alone
            return sb.Problem([nuclear, sparse], [sb.Identity(), sb.Identity()], _equality(B, observed))
        loss = sb.Squared(B, None if observed is None else observed.astype(np.float64))
        return sb.Problem([sparse, nuclear], [sb.Identity(), sb.Identity()], loss)

    def _non_negative(self, sparse: Any, nuclear: Any, data: _Data) -> sb.Problem:
        """Return the problem over S, L, P >= 0 and N with the constraints S + L + N = X and L - P = 0."""
        size = data.values.size
        identity = sparse_matrices.eye_array(size, format="csc")
        observed = None if data.observed is None else np.concatenate([data.observed.ravel(), np.ones(size, dtype=bool)])
        target = np.concatenate([data.values.ravel(), np.zeros(size)])
        blocks: list[tuple[Any, float, float]] = [
            (sparse, 1.0, 0.0),
            (nuclear, 1.0, 1.0),
            (sb.NonNegative(), 0.0, -1.0),
        ]
        if self.noise == "gaussian":
            blocks.append((sb.SquaredL2(1.0), 1.0, 0.0))
        operators = [sparse_matrices.vstack([upper * identity, lower * identity], "csc") for _, upper, lower in blocks]
        return sb.Problem([term for term, _, _ in blocks], operators, _equality(target, observed))

    def _parts(self, result: sb.Result, data: _Data) -> tuple[Matrix, Matrix | None]:
        """Return L, and S where it is a block of its own."""
        if self._in_one_block:
            return result.x, None
        order = (0, 1) if self._in_two_blocks else (1, 0)
        low_rank, sparse = (result.x[i].reshape(data.values.shape) for i in order)
        return low_rank, sparse if data.observed is None else sparse * data.observed

    def _large(self, rest: Matrix) -> Matrix:
        """Return what of X - L is more than noise, entry by entry."""
        large: Matrix = rest - np.clip(rest, -self.sparse_weight_, self.sparse_weight_)
        return large

    def _weights(self, data: _Data) -> tuple[float, float]:
        B = data.values
        sparse, low_rank = self.sparse_weight, self.low_rank_weight
        if _is_auto(low_rank):
            low_rank = SHARE * spectral_norm(B) if self.noise == "gaussian" else 1.0
        if _is_auto(sparse):
            if self.noise == "gaussian":
                sparse = SHARE * float(max(B.max(), -B.min()) if self.sparsity == "entry" else _lengths(B).max())
            elif self.sparsity == "entry":
                share = 1.0 if data.observed is None else max(float(data.observed.mean()), 1.0 / B.size)
                sparse = low_rank / np.sqrt(share * max(B.shape))
            else:
                largest = max(spectral_norm(_directions(B)), 1.0)
                sparse = low_rank * min(ABOVE / largest, 1.0 / np.sqrt(largest))
        return float(sparse), float(low_rank)

    def _describe(self, components: Matrix, values: Matrix, dtype: Any) -> None:
        self.rank_ = values.size
        self.singular_values_ = values.astype(dtype)
        self.components_ = _fixed_signs(components).astype(dtype)

    def _split(self, data: _Data, low_rank: Matrix, sparse: Matrix | None) -> None:
        """Set the three parts of X, given L, and S unless it is what of the rest is more than noise."""
        self.low_rank_ = _rounded(low_rank, data.values.dtype)
        self.sparse_, self.noise_ = np.empty_like(self.low_rank_), np.empty_like(self.low_rank_)
        for rows in panels_of_rows(low_rank):  # no more in float64 than need be
            rest = np.subtract(data.values[rows], self.low_rank_[rows], dtype=np.float64)
            if data.observed is not None:
                rest *= data.observed[rows]
            own = self._large(rest) if sparse is None else sparse[rows]
            self.sparse_[rows], self.noise_[rows] = own, rest - own

    # --- new samples ----------------------------------------------------------------------------------------------

    def transform(self, X: Any, missing: Any = None) -> Any:
        """Return the coordinates in the components of the low-rank part of new rows, split as in the fit."""
        check_is_fitted(self)
        data = self._validated(X, missing, reset=False)
        roots = np.sqrt(self.singular_values_.astype(np.float64))
        codes, _ = self._codes(data, self.components_.T.astype(np.float64) * roots)
        return (codes * roots).astype(data.values.dtype)

    def inverse_transform(self, X: Any) -> Any:
        """Return the low-rank rows that have the given coordinates."""
        check_is_fitted(self)
        return np.asarray(X) @ self.components_

    def _codes(self, data: _Data, basis: Matrix) -> tuple[Matrix, Matrix]:
        """Return the codes z of rows, and their sparse parts, for L = z basis'."""
        codes = np.array([self._code(data.row(i), basis) for i in range(data.values.shape[0])])
        rest = data.values - codes @ basis.T
        if data.observed is not None:
            rest *= data.observed
        if self.sparsity == "column":
            return codes, rest * self._outlying
        if self.noise is None:
            return codes, rest
        if self.sparsity == "entry":
            return codes, self._large(rest)
        norms = np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return codes, rest * np.maximum(1.0 - self.sparse_weight_ / norms, 0.0)

    def _code(self, data: _Data, basis: Matrix) -> Matrix:
        """Return the code of one row: a ridge regression on the basis under the loss that the sparse part leaves."""
        there = np.ones(basis.shape[0], dtype=bool) if data.observed is None else data.observed[0]
        if self.sparsity == "column":  # what lies in outlying columns says nothing
            there = there & ~self._outlying
        row, own, weight = data.values[0][there], basis[there], self.sparse_weight_
        if own.size == 0:
            return np.zeros(basis.shape[1])
        ridge = sb.SquaredL2(self.low_rank_weight_)
        if self.sparsity == "row" and self.noise == "gaussian":
            outlier = sb.GroupL2(weight, row.size, [1.0])
            return np.asarray(self._solve_row(sb.Problem([ridge, outlier], [own, sb.Identity()], sb.Squared(row))).x[0])
        loss: Any
        if self.sparsity == "column":
            loss = sb.Squared(row)
        elif self.sparsity == "row":
            loss = sb.Norm2(row, scale=weight)
        else:
            loss = sb.Huber(row, weight) if self.noise == "gaussian" else sb.Absolute(row, scale=weight)
        return np.asarray(self._solve_row(sb.Problem(ridge, own, loss)).x)

    def partial_fit(self, X: Any, y: Any = None, missing: Any = None) -> RobustPCA:
        r"""Go on from what was fitted with more samples, at a price that does not grow with their number.

        The first call is ``fit``. Later ones give every new row its code z and sparse part as ``transform`` does, and
        then take the basis W that minimises :math:`\frac{\mu}{2} \|W\|_F^2 + \frac12 \sum_t \|x_t - s_t - z_t W\|^2`
        over all rows so far, of which only the sums of z'z and z'(x - s) are kept (Feng, Xu and Yan, 2013). The rank
        stays what it was; the certificate is that of the first rows.
        """
        if not hasattr(self, "components_"):
            return self.fit(X, missing=missing)
        data = self._validated(X, missing, reset=False)
        weight = self.low_rank_weight_ if self.noise == "gaussian" else 0.0
        online = self._online or _Online.of(self.components_, self.singular_values_, weight)
        codes, sparse = self._codes(data, online.basis)
        low_rank = codes @ online.basis.T
        clean = (
            data.values - sparse if data.observed is None else np.where(data.observed, data.values - sparse, low_rank)
        )
        self._online = online.with_rows(codes, clean, weight)
        left, roots, _ = np.linalg.svd(self._online.basis, full_matrices=False)
        self._describe(left.T, roots**2, data.values.dtype)
        self._split(data, low_rank, sparse)
        return self

    # --- what all of them need ------------------------------------------------------------------------------------

    def _validated(self, X: Any, missing: Any, reset: bool) -> _Data:
        X = on_host(X)
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan", reset=reset)
        if missing is None and not np.isnan(X.min()):  # which is NaN where any entry is
            return _Data(X, None)
        gone = np.isnan(X)
        if missing is not None:
            missing = np.asarray(missing)
            if missing.shape != X.shape or missing.dtype != bool:
                raise ValueError(
                    f"missing has shape {missing.shape} and dtype {missing.dtype}: expected booleans of shape {X.shape}"
                )
            gone = gone | missing
        if np.all(gone):
            raise ValueError("X has no entry that is there: all are NaN or marked as missing")
        return _Data(np.where(gone, X.dtype.type(0), X), ~gone) if np.any(gone) else _Data(X, None)

    def _solve(self, problem: sb.Problem, **method: Any) -> sb.Result:
        result = sb.solve(problem, **self._options(self._clock()), **method)
        self._warn([result])
        return result

    def _solve_row(self, problem: sb.Problem) -> sb.Result:
        """Solve for one row so accurately, where that is cheap, that it does not show which rows it came with."""
        accurate = self.noise == "gaussian" and self.sparsity != "row"
        tol = min(self.tol, ROW_TOL) if accurate else self.tol
        result = sb.solve(problem, **self._options(self._clock()) | {"tol": tol, "time_limit": None, "device": None})
        if result.status is sb.Status.INTERRUPTED:
            raise KeyboardInterrupt  # the other rows have no code yet
        if result.certificate.error > self.tol:
            self._warn([result])
        return result

    def _check_parameters(self) -> None:
        if self.noise not in NOISES:
            raise ValueError(f"noise={self.noise!r}: expected 'gaussian', or None for an exact decomposition")
        if self.sparsity not in SPARSITIES:
            raise ValueError(f"sparsity={self.sparsity!r}: expected one of {', '.join(SPARSITIES)}")
        if self.non_negative and self.device is not None:
            raise ValueError(
                f"device={self.device!r} with non_negative=True, whose blocks cannot be moved: leave one of them out"
            )
        for name in ("sparse_weight", "low_rank_weight"):
            value = getattr(self, name)
            if not _is_auto(value) and not (isinstance(value, (int, float, np.number)) and 0 < value < np.inf):
                raise ValueError(f"{name}={value!r}: expected 'auto' or a positive number")

    @property
    def _n_features_out(self) -> int:
        return self.rank_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = True
        return tags


class _Data(NamedTuple):
    """Values, in the type they came in, with 0 where none was observed, and which entries were (None for all)."""

    values: Matrix
    observed: Matrix | None

    def transposed(self) -> _Data:
        """Return the data with samples in columns."""
        return _Data(self.values.T, None if self.observed is None else self.observed.T)

    def row(self, i: int) -> _Data:
        """Return one row."""
        return _Data(self.values[i : i + 1], None if self.observed is None else self.observed[i : i + 1])


class _Online(NamedTuple):
    """What is kept of all rows so far: W', and the sums of z'z and (x - s)'z over their codes."""

    basis: Matrix
    codes: Matrix
    products: Matrix

    @classmethod
    def of(cls, components: Matrix, values: Matrix, weight: float) -> _Online:
        """Return what is kept of a fit, where each factor of L = ZW has the roots of the singular values."""
        values = values.astype(np.float64)
        basis = components.T.astype(np.float64) * np.sqrt(values)
        return cls(basis, np.diag(values), basis * (values + weight))

    def with_rows(self, codes: Matrix, clean: Matrix, weight: float) -> _Online:
        """Return what is kept with more rows, and the best basis for all of them."""
        squares, products = self.codes + codes.T @ codes, self.products + clean.T @ codes
        ridge = max(weight, FLOOR * float(np.trace(squares)))
        basis = np.linalg.solve(squares + ridge * np.eye(squares.shape[0]), products.T).T
        return _Online(basis, squares, products)


def _equality(B: Matrix, observed: Matrix | None) -> Any:
    """Return the loss that holds the observed entries to their values."""
    if observed is None:
        return sb.Equality(B)
    return sb.Interval(np.where(observed, B, -np.inf), np.where(observed, B, np.inf))


def _rounded(values: Any, dtype: Any) -> Any:
    """Return an array, or a list of them, in the type of the data: itself where it has it."""
    if isinstance(values, list):
        return [_rounded(block, dtype) for block in values]
    return values.astype(dtype, copy=False)


def _lengths(matrix: Matrix) -> Matrix:
    """Return the lengths of the rows."""
    return np.concatenate([np.linalg.norm(matrix[rows].astype(np.float64), axis=1) for rows in panels_of_rows(matrix)])


def _directions(matrix: Matrix) -> Matrix:
    """Return the rows with length 1, those that are 0 as they are."""
    lengths, directions = _lengths(matrix), np.empty_like(matrix)
    for rows in panels_of_rows(matrix):
        directions[rows] = matrix[rows] / np.where(lengths[rows] > 0, lengths[rows], 1.0)[:, None]
    return directions


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _fixed_signs(rows: Matrix) -> Matrix:
    """Return singular vectors with their largest entry positive, so that the same data gives the same signs."""
    largest = np.argmax(np.abs(rows), axis=1)
    signs: Matrix = np.sign(rows[np.arange(rows.shape[0]), largest])
    return rows * signs[:, None]
