"""The cases that are compared: small programs, each with a name, that use public names only.

A case is a function of a folder, in which it may write files. It returns a ``Result``, an array, a number, a string, or
a list or dictionary of these, which ``worker.py`` flattens into named arrays. Names that one of the two commits may
lack are looked up inside a function, so that only its case fails there. The name of a case begins with the part of the
library that it tests, followed by the variant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import saddleback as sb
from saddleback import estimators

from . import problems as some

TWO_THREADS = 2


@dataclass(frozen=True)
class Case:
    """A name, the program to run, the optional package that it needs, and its number of processes."""

    name: str
    run: Callable[[Path], Any]
    needs: str = ""
    processes: int = 1


def solves(problem: Callable[[], sb.Problem], **options: Any) -> Callable[[Path], sb.Result]:
    """Return a program that solves a problem, by default in one thread with at most 400 passes."""
    return lambda folder: sb.solve(problem(), **{"threads": 1, "max_passes": 400} | options)


BLOCKS = 8
METHODS: dict[str, tuple[Callable[[], sb.Problem], dict[str, Any]]] = {
    "sp-bcd": (some.quantile, {"layers": False}),
    "sp-bcd K": (some.quantile, {"layers": False, "blocks_per_iteration": BLOCKS, "seed": 3}),
    "sp-bcd l1": (some.group_hinge, {"step": "l1", "finish": False}),
    "descent": (some.smooth, {"layers": False}),
    "multipliers": (some.quantile, {"layers": False}),
    "alternating": (some.robust_pca, {"eliminate": True}),
    "sp-bcd-published": (some.quantile, {"blocks_per_iteration": BLOCKS}),
    "sp-bcd-published skip": (some.group_hinge, {"step": "remark", "sigma_rule": "skip", "max_passes": 100}),
    "pure-cd": (some.group_hinge, {}),
    "pdhg": (some.quantile, {}),
    "pdhg extrapolation": (some.robust_pca, {"extrapolation": 0.0, "primal_weight": 0.5}),
    "pdhg-diagonal": (some.group_hinge, {"alpha": 0}),
    "r2hpdhg": (some.linear_program, {"layers": False}),
    "r2hpdhg quantile": (some.quantile, {}),
    "spdc": (some.group_hinge, {"rows_per_iteration": 5}),
    "admm": (some.quantile, {}),
    "admm constrained": (some.robust_pca, {}),
    "gs-admm": (partial(some.robust_pca, True), {"max_passes": 200}),
    "pdmm": (some.intercept, {"max_passes": 200}),
    "ista": (some.smooth, {}),
    "fista": (some.smooth, {}),
    "fista smoothing": (some.group_hinge, {"smoothing": 1e-2}),
    "dual-fista": (some.image, {}),
    "fobos": (some.group_hinge, {"max_passes": 100}),
    "osga": (some.quantile, {"max_passes": 100}),
    "finish": (some.quantile, {}),
    "highs": (some.linear_program, {}),
}
"""Every method of ``saddleback.methods()`` on a problem that it can treat."""

ROWS, COLUMNS = 48, 24
A = some.normal(ROWS, COLUMNS)
B, Z, W = some.target(A), some.labels(A), some.row_weights(ROWS)
C = some.row_weights(COLUMNS) - 1.0
CLASSES = np.digitize(B, [-1.0, 1.0])

LOSSES: dict[str, Callable[[], Any]] = {
    "Squared": lambda: sb.Squared(B, W, 0.5),
    "Absolute": lambda: sb.Absolute(B, W),
    "Pinball": lambda: sb.Pinball(B, 0.8, W, 2.0),
    "Huber": lambda: sb.Huber(B, 0.4, W),
    "EpsilonInsensitive": lambda: sb.EpsilonInsensitive(B, 0.2),
    "Hinge": lambda: sb.Hinge(Z, W),
    "SquaredHinge": lambda: sb.SquaredHinge(Z),
    "Logistic": lambda: sb.Logistic(Z, W, 1.5),
    "Norm2": lambda: sb.Norm2(B, W, 3.0),
    "Poisson": lambda: sb.Poisson(np.floor(np.abs(B)), W, 0.5),
    "Interval": lambda: sb.Interval(B - 3.0, B + 3.0),
    "Pinball per row": lambda: sb.Pinball(B, 0.5 * W / W.max()),
    "SmoothedPinball": lambda: sb.SmoothedPinball(B, 0.8, 0.3, W),
    "SquaredEpsilonInsensitive": lambda: sb.SquaredEpsilonInsensitive(B, 0.2),
    "Expectile": lambda: sb.Expectile(B, 0.8, W),
    "HuberisedHinge": lambda: sb.HuberisedHinge(Z, 0.5, W),
    "Gamma": lambda: sb.Gamma(np.exp(0.3 * B), W, 0.5),
    "Tweedie": lambda: sb.Tweedie(np.floor(np.abs(B)), 1.5, W, 0.5),
    "KullbackLeibler": lambda: sb.KullbackLeibler(np.floor(np.abs(B)), W, 0.5),
    "TopK": lambda: sb.TopK(B, 5, 0.1),
    "CVaR": lambda: sb.CVaR(B, 0.9),
    "Wilcoxon": lambda: sb.Wilcoxon(B),
    "Gini": lambda: sb.Gini(B, 10.0),
    "OrderedSum": lambda: sb.OrderedSum(B, np.linspace(-1.0, 1.0, ROWS) ** 3),
}
PENALTIES: dict[str, Callable[[], Any]] = {
    "Zero": lambda: sb.Zero(),
    "L1": lambda: sb.L1(2.0, W[:COLUMNS]),
    "SquaredL2": lambda: sb.SquaredL2(2.0),
    "ElasticNet": lambda: sb.ElasticNet(2.0, 0.3),
    "GroupL2": lambda: sb.GroupL2(2.0, [2, 4, 6, 12]),
    "SparseGroup": lambda: sb.SparseGroup(2.0, 4, 0.4),
    "Nuclear": lambda: sb.Nuclear(2.0, (4, 6)),
    "LInf": lambda: sb.LInf(2.0),
    "GroupLInf": lambda: sb.GroupLInf(2.0, [2, 4, 6, 12]),
    "L1Ball": lambda: sb.L1Ball(1.5),
    "SLOPE": lambda: sb.SLOPE(np.linspace(2.0, 0.5, COLUMNS)),
    "Simplex": lambda: sb.Simplex(),
    "Isotonic": lambda: sb.Isotonic(),
    "TotalVariation1D": lambda: sb.TotalVariation1D(2.0),
    "TotalVariation1D sum": lambda: sb.TotalVariation1D(2.0) + sb.L1(1.0),
    "Box": lambda: sb.Box(-0.2, 0.5),
    "NonNegative": lambda: sb.NonNegative() + sb.L1(1.0),
    "Linear": lambda: sb.Linear(C) + sb.Box(-1.0, 2.0),
    "sum": lambda: sb.L1(1.0) + sb.SquaredL2(1.5) + sb.Box(-1.0, C + 2.0),
    "group sum": lambda: sb.GroupL2(2.0, 4) + sb.NonNegative() + sb.Linear(0.1 * C),
    "group squares": lambda: sb.GroupL2(2.0, 4) + sb.SquaredL2(0.5),
    "ElasticNet weighted": lambda: sb.ElasticNet(2.0, 0.3, W[:COLUMNS]),
    "GroupElasticNet": lambda: sb.GroupElasticNet(2.0, 4, 0.5),
    "ByColumns": lambda: sb.ByColumns(
        [(sb.GroupL2(2.0, 4), np.arange(1, COLUMNS, 3)), (sb.L1(2.0), [i for i in range(COLUMNS) if i % 3 != 1])]
    ),
    "own": lambda: some.Ridge(1.0),
    "Nuclear sum": lambda: sb.Nuclear(2.0, (4, 6)) + sb.Linear(0.1 * C.reshape(4, 6)),
}
FIRM: dict[str, Callable[[], Any]] = {"Absolute": lambda: sb.Absolute(B), "Squared": lambda: sb.Squared(B)}


def terms(penalty: Callable[[], Any], loss: Callable[[], Any]) -> Callable[[], sb.Problem]:
    """Return a function that makes the problem of a penalty and a loss."""
    return lambda: sb.Problem(penalty(), A, loss())


MANY_ROWS, MANY_COLUMNS = 5200, 6
LAYERS: dict[str, tuple[Callable[[], sb.Problem], dict[str, Any]]] = {
    "none": (some.lasso, {"method": "sp-bcd", "restarts": False, "working_set": False, "finish": False}),
    "restarts": (some.quantile, {"method": "sp-bcd", "restarts": True, "working_set": False, "finish": False}),
    "working set": (some.lasso, {"method": "sp-bcd", "restarts": False, "working_set": True, "finish": False}),
    "working set, restarts": (lambda: some.quantile(some.wide(60, 800), 6.0), {"method": "sp-bcd", "finish": False}),
    "working set, float64": (some.lasso, {"tol": 1e-9}),
    "working set, groups": (lambda: some.group_hinge(some.scattered(80, 2400, 0.05)), {"finish": False}),
    "finish": (some.quantile, {"method": "sp-bcd", "finish": True}),
    "finish, later": (some.group_hinge, {"method": "sp-bcd", "tol": 1e-9}),
    "finish, no memory": (some.quantile, {"method": "sp-bcd", "finish": True, "finish_memory": 100.0}),
    "finish, descent": (some.smooth, {"method": "descent", "finish": True}),
    "finish, linear program": (some.linear_program, {"method": "r2hpdhg", "finish": True}),
    "finish, working set": (lambda: some.quantile(some.wide(60, 800), 6.0), {"method": "finish"}),
    "settled rows": (lambda: some.quantile(some.normal(MANY_ROWS, MANY_COLUMNS)), {"method": "finish"}),
    "pure-cd": (some.lasso, {"method": "pure-cd", "restarts": True, "working_set": True}),
    "partial singular values": (partial(some.robust_pca, shape=(450, 420)), {"max_passes": 40}),
    "eliminated blocks": (some.robust_pca, {"eliminate": True, "method": "sp-bcd"}),
    "no elimination": (some.robust_pca, {"eliminate": False, "max_passes": 200}),
    "merged rows": (some.repeated_rows, {}),
    "no solution": (some.infeasible, {"method": "r2hpdhg"}),
    "no solution, highs": (some.infeasible, {}),
    "no least value": (some.unbounded, {"method": "sp-bcd"}),
}
"""Restarts, working sets, the finish, reductions and proofs of no solution, separately and together."""

BACKENDS: dict[str, tuple[Callable[[], sb.Problem], dict[str, Any]]] = {
    "numpy sp-bcd": (some.group_hinge, {"method": "sp-bcd", "backend": "numpy", "max_passes": 60}),
    "numpy lazy": (some.long_rows, {"method": "sp-bcd", "backend": "numpy", "dual": "lazy", "blocks_per_iteration": 2,
                                    "max_passes": 4}),
    "numpy descent": (some.lasso, {"method": "descent", "backend": "numpy"}),
    "numpy pure-cd": (some.group_hinge, {"method": "pure-cd", "backend": "numpy", "max_passes": 20}),
    "native sp-bcd": (some.group_hinge, {"method": "sp-bcd", "backend": "native", "max_passes": 60}),
    "native lazy": (some.long_rows, {"method": "sp-bcd", "backend": "native", "dual": "lazy",
                                     "blocks_per_iteration": 2, "max_passes": 40}),
    "native eager": (some.long_rows, {"method": "sp-bcd", "backend": "native", "dual": "eager", "max_passes": 60}),
    "native descent": (some.lasso, {"method": "descent", "backend": "native"}),
    "native pure-cd": (some.long_rows, {"method": "pure-cd", "backend": "native", "max_passes": 60}),
}  # fmt: skip

ON_DEVICE: dict[str, tuple[Callable[[], sb.Problem], dict[str, Any]]] = {
    "sp-bcd": (some.quantile, {"method": "sp-bcd"}),
    "sparse": (some.group_hinge, {"method": "sp-bcd", "backend": "torch", "max_passes": 60}),
    "descent": (some.lasso, {}),
    "alternating": (some.robust_pca, {}),
    "r2hpdhg": (some.linear_program, {"method": "r2hpdhg"}),
    "intercept": (some.intercept, {}),
}
"""With A on the CPU device of torch."""

OPERATORS: dict[str, Callable[[], Any]] = {
    "C order": lambda: np.ascontiguousarray(A),
    "F order": lambda: np.asfortranarray(A),
    "float32": lambda: A.astype(np.float32),
    "strided": lambda: np.repeat(A, 2, axis=1)[:, ::2],
    "integers": lambda: np.round(3 * A).astype(np.int64),
    "CSC": lambda: some.scattered(ROWS, COLUMNS, 0.3),
    "CSR": lambda: some.scattered(ROWS, COLUMNS, 0.3).tocsr(),
    "CSC float32": lambda: some.scattered(ROWS, COLUMNS, 0.3).astype(np.float32),
    "LinearOperator": lambda: aslinearoperator(A),
    "wide CSR": lambda: some.scattered(40, 800, 0.1).tocsr(),
}
"""Kinds of A, for a smooth loss, and for a loss with kinks with the default method and with the block method."""


def over_operator(make: Callable[[], Any], smooth: bool, **options: Any) -> Callable[[Path], Any]:
    """Return a program that solves with a kind of A."""

    def run(folder: Path) -> sb.Result:
        matrix = make()
        b = some.target(A, seed=3)[: matrix.shape[0]]
        loss = sb.Squared(b) if smooth else sb.Absolute(b)
        return sb.solve(sb.Problem(sb.L1(1.0), matrix, loss), threads=1, max_passes=400, **options)

    return run


def stacked(folder: Path) -> sb.Result:
    """Solve with blocks of different kinds side by side."""
    blocks = [A, some.scattered(ROWS, 10, 0.3), sb.Identity(), np.ones((ROWS, 1))]
    penalties = [sb.L1(2.0), sb.GroupL2(1.0, 5), sb.L1(0.7), sb.Zero()]
    return sb.solve(sb.Problem(penalties, blocks, sb.Huber(B, 0.5)), threads=1, max_passes=400)


def identity(folder: Path) -> list[sb.Result]:
    """Solve with A = I, for a vector and for a matrix."""
    one = sb.Problem(sb.L1(0.5), sb.Identity(), sb.Huber(B, 0.3))
    matrix = sb.Problem(sb.Nuclear(2.0, A.shape), sb.Identity(), sb.Squared(A))
    return [sb.solve(problem, threads=1) for problem in (one, matrix)]


def tensor(folder: Path) -> sb.Result:
    """Solve with a tensor as A."""
    import torch

    return sb.solve(sb.Problem(sb.L1(2.0), torch.from_numpy(A), sb.Squared(B)), threads=1)


STREAMED: dict[str, tuple[Any, ...]] = {
    "by columns": (lambda: some.wide(200, 600), "F", "descent"),
    "by rows": (lambda: some.wide(200, 600), "C", "auto"),
    "sp-bcd": (lambda: some.wide(200, 600), "F", "sp-bcd"),
    "r2hpdhg": (lambda: some.wide(200, 100), "C", "r2hpdhg"),
    "no working set": (lambda: some.wide(200, 600), "F", "descent", {"working_set": False, "finish": False}),
}


def streamed(
    make: Callable[[], Any], order: str, method: str, options: Mapping[str, Any] = MappingProxyType({})
) -> Callable[[Path], Any]:
    """Return a program that solves with A in a file."""

    def run(folder: Path) -> sb.Result:
        matrix = make()
        np.save(folder / "A.npy", np.asarray(matrix, order="F" if order == "F" else "C"))
        b = some.target(matrix)
        loss = sb.Squared(b) if method in ("descent", "auto") else sb.Pinball(b, 0.4)
        A = sb.Streamed(folder / "A.npy", memory=4e5)
        alpha = 0.3 * sb.alpha_max(sb.L1(1.0), matrix, loss)
        return sb.solve(sb.Problem(sb.L1(alpha), A, loss), method, threads=1, max_passes=60, **options)

    return run


def streamed_zarr(folder: Path) -> sb.Result:
    """Solve with A in a Zarr array of square chunks."""
    import zarr

    matrix = some.wide(200, 600)
    stored: Any = zarr.open(str(folder / "A.zarr"), mode="w", shape=matrix.shape, chunks=(50, 50), dtype="f8")
    stored[:] = matrix
    A = sb.Streamed(folder / "A.zarr", memory=4e5)
    return sb.solve(sb.Problem(sb.L1(20.0), A, sb.Squared(some.target(matrix))), threads=1, max_passes=100)


def mapped(folder: Path) -> sb.Result:
    """Solve with A in a memory-mapped file."""
    np.save(folder / "A.npy", A)
    return sb.solve(sb.Problem(sb.L1(2.0), np.load(folder / "A.npy", mmap_mode="r"), sb.Absolute(B)), threads=1)


def resumed(problem: Callable[[], sb.Problem], **options: Any) -> Callable[[Path], Any]:
    """Return a program that stops after a few passes, resumes from its checkpoint, and also runs without a stop."""

    def run(folder: Path) -> dict[str, Any]:
        chosen = {"threads": 1, "max_passes": 400} | options
        stopped = sb.solve(problem(), **chosen | {"max_passes": 20, "checkpoint": folder / "run"})
        return {
            "stopped": stopped,
            "resumed": sb.solve(problem(), **chosen, resume=folder / "run"),
            "whole": sb.solve(problem(), **chosen),
        }

    return run


CHECKPOINTS: dict[str, tuple[Callable[[], sb.Problem], dict[str, Any]]] = {
    "sp-bcd": (some.quantile, {"method": "sp-bcd", "finish": False, "tol": 1e-8}),
    "working set": (lambda: some.quantile(some.wide(60, 800), 6.0), {"method": "sp-bcd", "finish": False}),
    "finish": (some.group_hinge, {"method": "sp-bcd", "finish": True, "tol": 1e-12}),
    "descent": (lambda: some.lasso(some.wide(60, 600) + 1.0, 0.01), {"tol": 1e-12}),
    "r2hpdhg": (some.equality, {"method": "r2hpdhg", "finish": False}),
    "alternating": (some.robust_pca, {"tol": 1e-12}),
}


def path(penalty: Any, loss: Callable[[Any], Any], **options: Any) -> Callable[[Path], Any]:
    """Return a program that solves for a few alphas."""
    return lambda folder: sb.path(penalty, A, loss(Z), **{"threads": 1, "n_alphas": 6, "eps": 0.05} | options)


def largest_alphas(folder: Path) -> dict[str, float]:
    """Compute ``alpha_max`` for many losses and penalties."""
    ones = np.ones((ROWS, 1))
    skipped = ("Interval", "Poisson")  # no intercept satisfies the first; the second has its own case
    chosen = {name: sb.alpha_max(sb.L1(1.0), A, loss(), ones) for name, loss in LOSSES.items() if name not in skipped}
    groups = {name: sb.alpha_max(sb.GroupL2(1.0, 4), A, loss()) for name, loss in FIRM.items()}
    chosen["columns without a penalty"] = sb.alpha_max(sb.L1(1.0), A, sb.Squared(B), [0, 3])
    return {**chosen, **{f"groups {name}": alpha for name, alpha in groups.items()}}


def warm_started(folder: Path) -> list[sb.Result]:
    """Solve from the answer to a similar problem, and from a point."""
    first = sb.solve(some.quantile(), threads=1, tol=1e-4)
    near = some.quantile(alpha=3.9)
    return [sb.solve(near, threads=1, x0=first), sb.solve(near, threads=1, x0=first.x, y0=first.y, method="pdhg")]


def watched(folder: Path) -> dict[str, Any]:
    """Solve with a callback that stops the run, and keep everything that it receives."""
    seen: list[Any] = []

    def callback(info: sb.Info) -> bool:
        seen.append(np.concatenate([[info.passes], info.x, info.y, info.current.x, info.current.y]))
        return len(seen) == 4

    result = sb.solve(some.quantile(), "sp-bcd", finish=False, callback=callback, check_every=2, threads=1)
    return {"result": result, "seen": seen}


def proved(folder: Path) -> list[Any]:
    """Prove that two linear programs have no solution."""
    results = [sb.solve(problem(), threads=1) for problem in (some.infeasible, some.unbounded)]
    return [*results, *(result.ray for result in results)]


def from_file(folder: Path) -> list[sb.Result]:
    """Solve problems that were read from files."""
    np.savez(folder / "p.npz", A=A, labels=Z, loss="Hinge", penalty="L1", alpha=2.0)
    (folder / "p.mps").write_text(
        "NAME small\nROWS\n N cost\n L first\n G second\nCOLUMNS\n x cost -1.0 first 1.0\n x second 1.0\n"
        " z cost -2.0 first 3.0\nRHS\n RHS first 4.0 second 0.5\nBOUNDS\n UP BND x 3.0\nENDATA\n"
    )
    return [sb.solve(sb.read_problem(folder / name), threads=1) for name in ("p.npz", "p.mps")]


def certified(folder: Path) -> dict[str, float]:
    """Certify points that are not the result of a solve."""
    result = sb.solve(some.quantile(), "pdhg", threads=1, max_passes=40)
    certificate = sb.certify(some.quantile(), result.x + 0.01, 0.9 * result.y)
    return {name: float(getattr(certificate, name)) for name in ("primal_value", "dual_value", "relative_gap")}


X = A + 1.0
LONG_X = some.normal(600, 10)
LONG_Y = some.target(LONG_X)
MODELS: dict[str, tuple[Callable[[], Any], Any]] = {
    "Lasso": (lambda: estimators.Lasso(0.1), B),
    "ElasticNet": (lambda: estimators.ElasticNet(0.1, positive=True), B),
    "GroupLasso": (lambda: estimators.GroupLasso(0.1, groups=4), B),
    "SparseGroupLasso": (lambda: estimators.SparseGroupLasso(0.1, groups=4), B),
    "MultiTaskLasso": (lambda: estimators.MultiTaskLasso(0.1), np.stack([B, B[::-1]], axis=1)),
    "QuantileRegressor": (lambda: estimators.QuantileRegressor(quantile=0.3, alpha=0.05), B),
    "SparseRegressor": (lambda: estimators.SparseRegressor("huber", "elasticnet", 0.1, delta=0.5), B),
    "FusedLasso": (lambda: estimators.FusedLasso(0.1, 0.05), B),
    "JointQuantileRegressor": (lambda: estimators.JointQuantileRegressor([0.3, 0.5], alpha=0.01), B),
    "SparseClassifier": (lambda: estimators.SparseClassifier("hinge", alpha=0.02), Z),
    "three classes": (lambda: estimators.SparseClassifier("logistic", alpha=0.02), CLASSES),
    "three classes together": (lambda: estimators.SparseClassifier("multinomial", "group", alpha=0.02), CLASSES),
    "SparseSVC": (lambda: estimators.SparseSVC(0.02), Z),
    "SparseLogisticRegression": (lambda: estimators.SparseLogisticRegression(0.02), Z),
    "LassoCV": (lambda: estimators.LassoCV(n_alphas=8, cv=3), B),
    "GroupLassoCV": (lambda: estimators.GroupLassoCV(groups=4, n_alphas=6, cv=3), B),
    "SparseRegressorCV": (lambda: estimators.SparseRegressorCV("huber", n_alphas=4, cv=3), B),
    "QuantileRegressorCV": (lambda: estimators.QuantileRegressorCV(quantile=0.3, n_alphas=4, cv=3), B),
    "SparseClassifierCV": (lambda: estimators.SparseClassifierCV("logistic", n_alphas=4, cv=3), Z),
    "ElasticNetCV": (lambda: estimators.ElasticNetCV(l1_ratio=[0.5, 0.9], n_alphas=6, cv=3), B),
    "MultiTaskLassoCV": (lambda: estimators.MultiTaskLassoCV(n_alphas=6, cv=3), np.stack([B, B[::-1]], axis=1)),
    "SparseLogisticRegressionCV": (lambda: estimators.SparseLogisticRegressionCV(criterion="bic", n_alphas=4), Z),
    "one standard error": (lambda: estimators.LassoCV(n_alphas=8, cv=3, rule="1se", relaxed=True), B),
}
FITTED = ("coef_", "intercept_", "dual_coef_", "alpha_", "alphas_", "mse_path_", "scores_", "n_iter_", "passes_")


def fits(make: Callable[[], Any], y: Any, X: Any = X, **extra: Any) -> Callable[[Path], Any]:
    """Return a program that fits an estimator and keeps its fitted attributes."""

    def run(folder: Path) -> dict[str, Any]:
        model = make().set_params(n_jobs=1).fit(X, y, **extra)
        return {name: getattr(model, name) for name in FITTED if hasattr(model, name)} | {"predicted": model.predict(X)}

    return run


def low_rank(folder: Path) -> dict[str, Any]:
    """Fit a robust PCA to data with missing entries, then to more rows, and transform other rows."""
    M = some.normal(20, 3) @ some.normal(3, 15, seed=1)
    M[some.normal(20, 15, seed=2) > 1.5] += 6.0
    M[some.normal(20, 15, seed=3) > 1.8] = np.nan
    model = estimators.RobustPCA(n_jobs=1).fit(M)
    found = {name: getattr(model, name) for name in ("low_rank_", "sparse_", "singular_values_", "components_")}
    codes = model.partial_fit(np.nan_to_num(M[:6])).transform(np.nan_to_num(M[6:9]))
    return found | {"later": model.components_, "codes": codes}


def signals(folder: Path) -> dict[str, Any]:
    """Fit a piecewise linear signal, and remove noise from a picture."""
    signal = estimators.TrendFilter(1, alpha=2.0, n_jobs=1).fit(some.normal(60, 1)[:, 0])
    picture = estimators.TotalVariationDenoiser(0.3, n_jobs=1).fit_transform(some.normal(12, 10))
    return {"signal": signal.signal_, "knots": signal.knots_, "picture": picture}


def stability(folder: Path) -> dict[str, Any]:
    """Select features on random halves."""
    chosen = estimators.StabilitySelection(estimators.Lasso(0.2, n_jobs=1), n_pairs=3).fit(X, B)
    return {"shares": chosen.selection_probabilities_, "bound": chosen.false_selection_bound_}


def estimator_path(folder: Path) -> dict[str, Any]:
    """Compute the path of an estimator."""
    found = estimators.Lasso(n_jobs=1).path(X, B, n_alphas=5)
    return {"alphas": found.alphas, "coefs": found.coefs, "results": found.flat()}


def together(problem: Callable[[], sb.Problem], **options: Any) -> Callable[[Path], Any]:
    """Return a program that solves on all MPI processes."""

    def run(folder: Path) -> sb.Result:
        from mpi4py import MPI

        return sb.solve(problem(), threads=1, max_passes=200, comm=MPI.COMM_WORLD, **options)

    return run


def shares(folder: Path) -> sb.Result:
    """Solve on all processes, each of which reads its own columns from a file."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        np.save(folder / "A.npy", np.asfortranarray(A))
    path = comm.bcast(str(folder / "A.npy"))

    def shard(rank: int, size: int) -> sb.Problem:
        file = sb.ColumnFile(path)
        return sb.Problem(sb.L1(2.0), file[file.share(rank, size)], sb.Squared(B))

    result = sb.solve(shard, threads=1, comm=comm)
    comm.Barrier()  # the first process deletes the folder when it ends
    return result


WIDE_SPARSE = partial(some.scattered, 400, 3000, 0.05)
THREADED: dict[str, Callable[[Path], Any]] = {
    "descent": solves(lambda: some.lasso(some.wide(400, 2000)), threads=TWO_THREADS),
    "descent, sparse": solves(lambda: some.lasso(WIDE_SPARSE()), threads=TWO_THREADS),
    "sp-bcd": solves(
        lambda: some.quantile(some.wide(300, 1500), 15.0), method="sp-bcd", threads=TWO_THREADS, finish=False
    ),
    "sp-bcd, sparse": solves(lambda: some.group_hinge(WIDE_SPARSE()), threads=TWO_THREADS, max_passes=60),
    "finish": solves(lambda: some.quantile(some.normal(1500, 60)), method="finish", threads=TWO_THREADS),
    "r2hpdhg": solves(lambda: some.linear_program(150, 400), method="r2hpdhg", threads=TWO_THREADS),
    "alternating": solves(some.robust_pca, threads=TWO_THREADS),
    "logistic": solves(lambda: some.smooth(some.wide(300, 1500)), threads=TWO_THREADS),
    "estimator": fits(lambda: estimators.LassoCV(n_alphas=8, cv=3), B),
}

TOGETHER: dict[str, tuple[Callable[[], sb.Problem], dict[str, Any]]] = {
    "descent": (some.lasso, {}),
    "sp-bcd": (some.quantile, {"method": "sp-bcd"}),
    "sparse groups": (some.group_hinge, {}),
    "r2hpdhg": (some.linear_program, {"method": "r2hpdhg"}),
    "numpy": (some.lasso, {"backend": "numpy"}),
}

ALONE: dict[str, Callable[[Path], Any]] = {
    "operator stacked": stacked,
    "operator identity": identity,
    "operator memory-mapped": mapped,
    "problem intercept": solves(some.intercept),
    "problem intercept, pinball": solves(lambda: some.intercept(partial(sb.Pinball, quantile=0.7))),
    "problem tasks": solves(some.several_tasks),
    "problem tasks, l1": solves(lambda: some.several_tasks(False), method="sp-bcd"),
    "problem equality": solves(some.equality),
    "problem several terms": solves(some.several_terms),
    "path l1": path(sb.L1(1.0), sb.Squared),
    "path groups, hinge": path(sb.GroupL2(1.0, 4), sb.Hinge, finish=False),
    "path elastic net": path(sb.ElasticNet(1.0, 0.5), sb.Logistic, alphas=[0.5, 2.0, 1.0]),
    "path wide": lambda folder: sb.path(sb.L1(1.0), some.wide(), sb.Squared(some.target(some.wide())), n_alphas=8),
    "reweighted MCP": lambda folder: sb.reweighted(sb.MCP(2.0), A, sb.Squared(B), threads=1),
    "reweighted SCAD": lambda folder: sb.reweighted(sb.SCAD(2.0, groups=4), A, sb.Squared(B), threads=1),
    "reweighted LogSum": lambda folder: sb.reweighted(sb.LogSum(2.0), A, sb.Absolute(B), threads=1),
    "reweighted Adaptive": lambda folder: sb.reweighted(sb.Adaptive(2.0), A, sb.Logistic(Z), threads=1),
    "alpha_max": largest_alphas,
    "Multinomial": lambda folder: sb.solve(sb.Problem(sb.GroupL2(1.0, 1), A, sb.Multinomial(CLASSES, 3, W)), threads=1),
    "MulticlassHinge": lambda folder: sb.solve(sb.Problem(sb.L1(1.0), A, sb.MulticlassHinge(CLASSES, 3, W)), threads=1),
    "alpha_max Poisson": lambda folder: sb.alpha_max(sb.L1(1.0), A, LOSSES["Poisson"](), np.ones((ROWS, 1))),
    "warm start": warm_started,
    "callback": watched,
    "certify": certified,
    "rays": proved,
    "estimator RobustPCA": low_rank,
    "estimator StabilitySelection": stability,
    "estimator signals": signals,
    "estimator path": estimator_path,
    "estimator LassoCV, many rows": fits(lambda: estimators.LassoCV(n_alphas=20, cv=3), LONG_Y, LONG_X),
    "estimator weights, sparse": fits(
        lambda: estimators.SparseRegressor("absolute", alpha=0.05), B, sparse.csr_matrix(np.round(X)), sample_weight=W
    ),
}  # fmt: skip


def named(
    kind: str, table: dict[str, tuple[Callable[[], sb.Problem], dict[str, Any]]], **options: Any
) -> dict[str, Callable[[Path], Any]]:
    """Return the programs of a table of problems and options."""
    return {f"{kind} {name}": solves(problem, **options | own) for name, (problem, own) in table.items()}


def _programs() -> dict[str, Callable[[Path], Any]]:
    """Return the programs that run in one process and need no optional package."""
    programs = {
        f"method {name}": solves(problem, **{"method": name.split()[0]} | own)
        for name, (problem, own) in METHODS.items()
    }
    programs |= {f"loss {name}": solves(terms(lambda: sb.L1(1.0), loss)) for name, loss in LOSSES.items()}
    drawn = {"method": "sp-bcd", "finish": False, "blocks_per_iteration": BLOCKS, "max_passes": 60}
    for name, loss in LOSSES.items():
        programs[f"loss {name}, sp-bcd"] = solves(terms(lambda: sb.ElasticNet(1.0, 0.5), loss), **drawn)
    for kind, loss in FIRM.items():
        programs |= {f"penalty {name}, {kind}": solves(terms(penalty, loss)) for name, penalty in PENALTIES.items()}
    programs |= named("layer", LAYERS) | named("backend", BACKENDS)
    for name, make in OPERATORS.items():
        programs |= {
            f"operator {name}": over_operator(make, False),
            f"operator {name}, smooth": over_operator(make, True),
            f"operator {name}, sp-bcd": over_operator(make, False, method="sp-bcd", finish=False),
        }
    programs |= {f"streamed {name}": streamed(*given) for name, given in STREAMED.items()}
    programs |= {f"checkpoint {name}": resumed(problem, **own) for name, (problem, own) in CHECKPOINTS.items()}
    programs |= {f"estimator {name}": fits(*given) for name, given in MODELS.items()}
    programs |= {f"2 threads {name}": program for name, program in THREADED.items()}
    return programs | ALONE


def _cases() -> list[Case]:
    cases = [Case(name, run) for name, run in _programs().items()]
    on_device = named("torch", ON_DEVICE, device="cpu") | {"torch tensor": tensor}
    cases += [Case(name, run, needs="torch") for name, run in on_device.items()]
    cases.append(Case("streamed zarr", streamed_zarr, needs="zarr"))
    cases.append(Case("files", from_file, needs="highspy"))
    mpi = {f"mpi {name}": together(problem, **own) for name, (problem, own) in TOGETHER.items()}
    mpi |= {"mpi shares": shares}
    return cases + [Case(name, run, needs="mpi4py.MPI", processes=2) for name, run in mpi.items()]


CASES = {case.name: case for case in _cases()}
