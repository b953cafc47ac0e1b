"""The cases of the benchmark: problems, required accuracy, and libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from . import data
from .worker.task import Task


@dataclass(frozen=True)
class Instance:
    """One problem of a case, generated when it is needed."""

    label: str
    make: Callable[[], Task]


@dataclass(frozen=True)
class Settings:
    """Which sizes of a case are run, and the folder of real data."""

    quick: bool = False
    data: Path | None = None


@dataclass(frozen=True)
class Case:
    """A family of problems that libraries solve side by side.

    Attributes
    ----------
    name, about : the name, and a description in one line.
    peers : libraries besides saddleback; those that return no dual point come last.
    instances : the problems.
    target : certified error at which a problem counts as solved.
    cap : seconds after which a solve is stopped.
    slow : whether a solve takes minutes in some libraries. Such a case is left out of a quick run unless requested by
        name; there is no untimed first solve, and no tolerance looser than the target is tried.
    needs_data : the folder of real data that it reads, or None.
    """

    name: str
    about: str
    peers: tuple[str, ...]
    instances: Callable[[Settings], Iterator[Instance]]
    target: float = 1e-6
    cap: float = 60.0
    slow: bool = False
    needs_data: str | None = None


def generated(
    make: Callable[..., Task], full: Mapping[str, Any], quick: Mapping[str, Any], seeds: int = 5
) -> Callable[[Settings], Iterator[Instance]]:
    """Return the problems of a generator with several seeds; in a quick run, one seed and a smaller size."""

    def instances(settings: Settings) -> Iterator[Instance]:
        size = {**full, **quick} if settings.quick else full
        for seed in range(1 if settings.quick else seeds):
            yield Instance(f"seed {seed}", partial(make, seed, **size))

    return instances


def netlib(settings: Settings) -> Iterator[Instance]:
    """Yield every linear program of the folder ``netlib``."""
    assert settings.data is not None
    for path in sorted((settings.data / "netlib").glob("*.mps.gz")):
        yield Instance(path.name.removesuffix(".mps.gz"), partial(data.linear_program, path))


def memset(settings: Settings) -> Iterator[Instance]:
    """Yield the splice-site problems of the folder ``memset``."""
    assert settings.data is not None
    sites = 500 if settings.quick else None
    for alpha in (1e-4, 1e-5, 1e-6):
        make = partial(data.memset, settings.data, alpha=alpha, sites=sites)
        yield Instance(f"lambda {alpha:.0e}", make)


def lasso_cv(settings: Settings) -> Iterator[Instance]:
    """Yield cross-validations on data of common shapes."""
    for rows, columns in ((300, 40),) if settings.quick else ((1000, 200), (10_000, 100), (500, 5000)):
        make = partial(data.lasso_cv, 0, m=rows, n=columns, nonzeros=20, n_alphas=100, folds=5)
        yield Instance(f"{rows:,} x {columns:,}", make)


def quantile_l1(settings: Settings) -> Iterator[Instance]:
    """Yield a quantile regression with and without an intercept."""
    size = {"m": 1000, "n": 50, "nonzeros": 10} if settings.quick else {"m": 20_000, "n": 500, "nonzeros": 50}
    for intercept in (False, True):
        make = partial(data.quantile, 0, **size, quantile=0.9, alpha=0.02, intercept=intercept)
        yield Instance("with intercept" if intercept else "no intercept", make)


def quantile_rows(settings: Settings) -> Iterator[Instance]:
    """Yield a quantile regression with few columns: with as many rows as scikit-learn can solve, and with a million."""
    for rows in (1000, 6000) if settings.quick else (10_000, 1_000_000):
        make = partial(data.quantile, 0, m=rows, n=50, nonzeros=25, quantile=0.8, alpha=0.01, intercept=True)
        yield Instance(f"{rows:,} rows", make)


LASSO_PEERS = ("skglm", "celer", "adelie", "scikit-learn")
MIDDLE = {"m": 1000, "n": 5000, "nonzeros": 500}
SMALL = {"m": 300, "n": 1500, "nonzeros": 100}

CASES = {
    case.name: case
    for case in (
        Case(
            "lasso-large",
            "Lasso, 5000 x 20000 dense, 2000 true coefficients, 0.1 lambda_max",
            LASSO_PEERS,
            generated(data.lasso, {"m": 5000, "n": 20000, "nonzeros": 2000}, {"m": 800, "n": 4000, "nonzeros": 300}),
        ),
        Case(
            "lasso",
            "Lasso, 1000 x 5000 dense, 500 true coefficients, 0.1 lambda_max",
            LASSO_PEERS,
            generated(data.lasso, MIDDLE, SMALL),
            cap=20.0,
        ),
        Case(
            "lasso-correlated-0.5",
            "the same with columns that correlate by 0.5",
            LASSO_PEERS,
            generated(data.correlated_lasso, {**MIDDLE, "correlation": 0.5}, SMALL),
            cap=20.0,
        ),
        Case(
            "lasso-correlated-0.9",
            "the same with columns that correlate by 0.9",
            LASSO_PEERS,
            generated(data.correlated_lasso, {**MIDDLE, "correlation": 0.9}, SMALL),
            cap=20.0,
        ),
        Case(
            "lasso-small-alpha",
            "Lasso, 1000 x 5000 dense, 0.01 lambda_max",
            LASSO_PEERS,
            generated(data.lasso, {**MIDDLE, "alpha_ratio": 0.01}, SMALL),
            cap=20.0,
        ),
        Case(
            "lasso-sparse",
            "Lasso, 20,000 x 100,000 CSC with 20 entries per column, 0.1 lambda_max",
            ("skglm", "celer", "scikit-learn"),
            generated(
                data.sparse_lasso,
                {"m": 20_000, "n": 100_000, "column_entries": 20, "nonzeros": 2000},
                {"m": 2000, "n": 10_000, "nonzeros": 200},
            ),
        ),
        Case(
            "group-lasso",
            "squared loss, 2000 x 20000 dense, groups of 10 with weight sqrt(10), 0.1 lambda_max",
            ("skglm", "celer", "adelie"),
            generated(
                data.group_lasso,
                {"m": 2000, "n": 20000, "group_size": 10, "nonzero_groups": 100},
                {"m": 400, "n": 2000, "nonzero_groups": 20},
            ),
        ),
        Case(
            "path",
            "Lasso path of 100 alphas down to 0.001 lambda_max, 1000 x 5000 dense, every one certified",
            LASSO_PEERS,
            generated(
                data.lasso_path, {**MIDDLE, "n_alphas": 100, "eps": 1e-3}, {**SMALL, "n_alphas": 20, "eps": 1e-2}, 1
            ),
            target=1e-4,
            cap=120.0,
        ),
        Case(
            "lasso-cv",
            "the choice of one of 100 alphas for a Lasso by 5 folds; what was chosen is certified",
            ("scikit-learn",),
            lasso_cv,
            target=1e-5,
        ),
        Case(
            "quantile-l1",
            "quantile regression, 20,000 x 500 dense, quantile 0.9, L1 penalty with some 45 coefficients",
            ("CVXPY+Clarabel", "scikit-learn"),
            quantile_l1,
            cap=300.0,
            slow=True,
        ),
        Case(
            "quantile",
            "quantile regression, 200,000 x 100 dense, quantile 0.9, no penalty, an intercept",
            ("scikit-learn",),
            generated(
                data.quantile,
                {"m": 200_000, "n": 100, "nonzeros": 50, "quantile": 0.9, "alpha": 0.0, "intercept": True},
                {"m": 6000, "n": 10, "nonzeros": 5},
                1,
            ),
            cap=600.0,
            slow=True,
        ),
        Case(
            "quantile-rows",
            "quantile regression, 10,000 and 1,000,000 x 50 dense, quantile 0.8, L1 penalty, an intercept",
            ("scikit-learn",),
            quantile_rows,
            target=1e-4,
            cap=40.0,
            slow=True,
        ),
        Case(
            "lp",
            "linear programs of Netlib",
            ("HiGHS", "CVXPY+Clarabel", "PDLP"),
            netlib,
            cap=30.0,
            slow=True,
            needs_data="netlib",
        ),
        Case(
            "memset",
            "MEMset Donor splice sites, hinge loss, 63 groups of 2604 one-hot columns",
            ("CVXPY+Clarabel",),
            memset,
            target=1e-8,
            cap=180.0,
            slow=True,
            needs_data="memset",
        ),
    )
}
"""In the order of the tables."""
