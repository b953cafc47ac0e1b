"""The cases with a smooth loss."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from . import data
from .case import Case, Instance, Settings, generated, real


def lasso_cv(settings: Settings) -> Iterator[Instance]:
    """Yield cross-validations on data of common shapes."""
    for rows, columns in ((300, 40),) if settings.quick else ((1000, 200), (10_000, 100), (500, 5000)):
        make = partial(data.lasso_cv, 0, m=rows, n=columns, nonzeros=20, n_alphas=100, folds=5)
        yield Instance(f"{rows:,} x {columns:,}", make)


LASSO_PEERS = ("skglm", "celer", "adelie", "scikit-learn")
MIDDLE = {"m": 1000, "n": 5000, "nonzeros": 500}
SMALL = {"m": 300, "n": 1500, "nonzeros": 100}

SMOOTH = (
    Case(
        "lasso-large",
        "Lasso, 5000 x 20000 dense, 2000 true coefficients, 0.1 alpha_max",
        LASSO_PEERS,
        generated(data.lasso, {"m": 5000, "n": 20000, "nonzeros": 2000}, {"m": 800, "n": 4000, "nonzeros": 300}),
    ),
    Case(
        "lasso",
        "Lasso, 1000 x 5000 dense, 500 true coefficients, 0.1 alpha_max",
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
        "Lasso, 1000 x 5000 dense, 0.01 alpha_max",
        LASSO_PEERS,
        generated(data.lasso, {**MIDDLE, "alpha_ratio": 0.01}, SMALL),
        cap=20.0,
    ),
    Case(
        "lasso-sparse",
        "Lasso, 20,000 x 100,000 CSC with 20 entries per column, 0.1 alpha_max",
        ("skglm", "celer", "scikit-learn"),
        generated(
            data.sparse_lasso,
            {"m": 20_000, "n": 100_000, "column_entries": 20, "nonzeros": 2000},
            {"m": 2000, "n": 10_000, "nonzeros": 200},
        ),
    ),
    Case(
        "group-lasso",
        "squared loss, 2000 x 20000 dense, groups of 10 with weight sqrt(10), 0.1 alpha_max",
        ("skglm", "celer", "adelie"),
        generated(
            data.group_lasso,
            {"m": 2000, "n": 20000, "group_size": 10, "nonzero_groups": 100},
            {"m": 400, "n": 2000, "nonzero_groups": 20},
        ),
    ),
    Case(
        "path",
        "Lasso path of 100 alphas down to 0.001 alpha_max, 1000 x 5000 dense, every one certified",
        LASSO_PEERS,
        generated(data.lasso_path, {**MIDDLE, "n_alphas": 100, "eps": 1e-3}, {**SMALL, "n_alphas": 20, "eps": 1e-2}, 1),
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
        "squared-hinge-l1",
        "squared hinge loss, L1 penalty, 0.01 alpha_max: a9a (32,561 x 123), BASEHOCK (1,993 x 4,862) and MEMset "
        "(16,830 x 2,604)",
        ("LIBLINEAR", "CVXPY+Clarabel"),
        real(data.real, "a9a", "BASEHOCK", "MEMset", kind="squared-hinge", ratio=0.01),
        cap=20.0,
        slow=True,
        needs_data=("libsvm", "highdim", "memset"),
    ),
)
"""In the order of the tables."""
