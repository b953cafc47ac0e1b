"""The cases whose loss has kinks: what this library is made for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from . import data
from .case import Case, Instance, Settings, generated, real, sized

DENSE = {"m": 1000, "n": 5000, "nonzeros": 100}, {"m": 5000, "n": 20_000, "nonzeros": 400}
SPARSE = tuple({"m": m, "n": 2 * m, "nonzeros": m // 250, "column_entries": 20} for m in (2000, 100_000))
QUICK_DENSE = {"m": 100, "n": 400, "nonzeros": 10}
QUICK_SPARSE = {"m": 400, "n": 800, "nonzeros": 10, "column_entries": 5}

CAP = 20.0
"""Seconds per solve: enough for HiGHS on 1000 x 5000, and the cases end in a quarter of an hour."""

PROGRAMS = ("HiGHS", "HiGHS IPM", "PDLP", "CVXPY+Clarabel")
"""Solvers of linear and cone programs."""


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


def l1_cases(name: str, about: str, *others: str, **values: Any) -> Iterator[Case]:
    """Yield the cases of a loss with two slopes and an L1 penalty, on dense and on sparse data.

    Parameters
    ----------
    name, about : name and description of the loss.
    *others : libraries besides ``PROGRAMS``.
    **values : values of the task.
    """
    peers = (*PROGRAMS, *others)
    yield Case(
        f"{name}-l1",
        f"{about}, L1 penalty, 1000 x 5000 and 5000 x 20000 dense, 0.3 alpha_max",
        peers,
        sized(data.two_slopes, *DENSE, quick=QUICK_DENSE, ratio=0.3, **values),
        cap=CAP,
        slow=True,
        grows=True,
    )
    yield Case(
        f"{name}-l1-sparse",
        f"{about}, L1 penalty, 2000 x 4000 and 100,000 x 200,000 CSC with 20 entries per column, 0.3 alpha_max",
        peers,
        sized(data.two_slopes, *SPARSE, quick=QUICK_SPARSE, ratio=0.3, **values),
        cap=30.0,
        slow=True,
        grows=True,
    )


KINKED = (
    *l1_cases("hinge", "hinge loss", kind="hinge"),
    Case(
        "hinge-l1-real",
        "hinge loss, L1 penalty, 0.01 alpha_max: a9a (32,561 x 123), BASEHOCK (1,993 x 4,862) and MEMset "
        "(16,830 x 2,604)",
        PROGRAMS,
        real(data.real, "a9a", "BASEHOCK", "MEMset", kind="hinge", ratio=0.01),
        cap=CAP,
        slow=True,
        needs_data=("libsvm", "highdim", "memset"),
    ),
    *l1_cases("absolute", "absolute loss", kind="absolute"),
    Case(
        "absolute-l1-real",
        "absolute loss, L1 penalty, an intercept, 0.1 alpha_max: riboflavin (71 x 4,088) and BASEHOCK (1,993 x 4,862)",
        PROGRAMS,
        real(data.real, "riboflavin", "BASEHOCK", kind="absolute", ratio=0.1, intercept=True),
        cap=CAP,
        slow=True,
        needs_data=("highdim",),
    ),
    *l1_cases("pinball", "pinball loss for the quantile 0.8", "scikit-learn", kind="quantile", quantile=0.8),
    Case(
        "pinball-l1-real",
        "pinball loss for the quantile 0.8, L1 penalty, an intercept, 0.1 alpha_max: riboflavin (71 x 4,088)",
        (*PROGRAMS, "scikit-learn"),
        real(data.real, "riboflavin", kind="quantile", quantile=0.8, ratio=0.1, intercept=True),
        cap=CAP,
        slow=True,
        needs_data=("highdim",),
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
        "memset",
        "MEMset Donor splice sites, hinge loss, 63 groups of 2604 one-hot columns",
        ("CVXPY+Clarabel",),
        memset,
        target=1e-8,
        cap=40.0,
        slow=True,
        needs_data=("memset",),
    ),
    Case(
        "svm",
        "linear SVM with an intercept without a penalty, C = 1: a9a (32,561 x 123) and BASEHOCK (1,993 x 4,862)",
        ("LIBSVM", "PDLP", "CVXPY+Clarabel"),
        real(data.svm, "a9a", "BASEHOCK", alpha=1.0, intercept=True),
        target=1e-4,  # LIBSVM has its kernel matrix in float32
        cap=CAP,
        slow=True,
        needs_data=("libsvm", "highdim"),
    ),
    Case(
        "svm-liblinear",
        "the same with an intercept that has the penalty of the other columns, as in LIBLINEAR",
        ("PDLP", "CVXPY+Clarabel", "LIBLINEAR"),
        real(data.svm, "a9a", "BASEHOCK", alpha=1.0, intercept=False),
        target=1e-4,
        cap=CAP,
        slow=True,
        needs_data=("libsvm", "highdim"),
    ),
    Case(
        "lp",
        "linear programs of Netlib",
        ("HiGHS", "CVXPY+Clarabel", "PDLP"),
        netlib,
        cap=30.0,
        slow=True,
        needs_data=("netlib",),
    ),
)
"""In the order of the tables."""
