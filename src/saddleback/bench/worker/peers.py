"""The libraries that are compared, and how each solves each kind of task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from . import cone_programs as cones
from . import coordinate_descent as descent
from . import linear_programs as programs
from . import ours
from . import support_vectors as vectors
from .answer import Solver
from .two_slopes import SLOPES


@dataclass(frozen=True)
class Peer:
    """A library in the benchmark.

    Attributes
    ----------
    name : the name in the tables.
    packages : distributions whose versions are reported; all must be installed.
    solvers : a solver per kind of task.
    tightest : smallest tolerance that makes sense for it.
    certifies : whether it stops on the certificate itself, so that its tolerance is the target.
    exact_zeros : whether coefficients that are not part of its answer are exactly 0.
    """

    name: str
    packages: tuple[str, ...]
    solvers: Mapping[str, Solver]
    tightest: float = 1e-12
    certifies: bool = False
    exact_zeros: bool = True


PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "saddleback",
            ("saddleback",),
            dict.fromkeys(("lasso", "group-lasso", "lp", *cones.OBJECTIVES), ours.solve)
            | {"path": ours.path, "lasso-cv": ours.cross_validation},
            certifies=True,
        ),
        Peer(
            "celer",
            ("celer",),
            {
                "lasso": partial(descent.lasso_of, "celer"),
                "group-lasso": partial(descent.group_lasso_of, "celer"),
                "path": descent.celer_path,
            },
        ),
        Peer(
            "skglm",
            ("skglm",),
            {
                "lasso": partial(descent.lasso_of, "skglm"),
                "group-lasso": partial(descent.group_lasso_of, "skglm"),
                "path": descent.skglm_path,
            },
        ),
        Peer(
            "adelie",
            ("adelie",),
            {
                "lasso": descent.adelie_lasso,
                "group-lasso": descent.adelie_group_lasso,
                "path": descent.adelie_path,
            },
            tightest=1e-24,  # it compares squares of changes
        ),
        Peer(
            "scikit-learn",
            ("scikit-learn",),
            {
                "lasso": descent.sklearn_lasso,
                "path": descent.sklearn_path,
                "lasso-cv": descent.sklearn_cv,
                "quantile": programs.sklearn_quantile,
            },
        ),
        Peer("LIBSVM", ("scikit-learn",), {"svm-intercept": vectors.libsvm}),
        Peer(
            "LIBLINEAR",
            ("scikit-learn",),
            {"svm": vectors.liblinear_svm, "squared-hinge": vectors.liblinear_squared_hinge},
        ),
        Peer(
            "CVXPY+Clarabel",
            ("cvxpy", "clarabel"),
            dict.fromkeys(cones.OBJECTIVES, cones.penalised_loss(cones.clarabel))
            | {"lp": cones.linear_program(cones.clarabel)},
            exact_zeros=False,
        ),
        Peer(
            "CVXPY+SCS",
            ("cvxpy", "scs"),
            dict.fromkeys(("quantile", "group-hinge"), cones.penalised_loss(cones.scs)),
            exact_zeros=False,
        ),
        Peer(
            "HiGHS",
            ("highspy",),
            {"lp": programs.highs("choose")}
            | dict.fromkeys(SLOPES, programs.through_primal(programs.highs("simplex"))),
        ),
        Peer("HiGHS IPM", ("highspy",), dict.fromkeys(SLOPES, programs.through_dual(programs.highs("ipm")))),
        Peer(
            "PDLP",
            ("ortools",),
            {"lp": programs.pdlp}
            | dict.fromkeys(("svm", "svm-intercept"), vectors.pdlp_svm)
            | dict.fromkeys(SLOPES, programs.through_dual(programs.pdlp)),
            exact_zeros=False,
        ),
    )
}
"""In the order of the tables."""
