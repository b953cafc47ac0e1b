"""The libraries that are compared: how each solves each kind of task, given one of its tolerances.

A solver takes a task and a tolerance and returns an ``Answer``. All of it is timed, so it contains no conversion of
data that the library does not make itself. The import at its head costs nothing after the untimed first call. Limits on
iterations are so high that the tolerance ends a solve.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from .task import Task

MANY = 1_000_000
"""A limit on iterations that no solve reaches."""

OUTER = 1000
"""The same for celer and skglm, whose iterations solve a working set and which allocate an array of this size."""


@dataclass(frozen=True)
class Answer:
    """The answer of a library: x, its y if it returns one, and what it reports.

    For a path x has one column per alpha; for a cross-validation the last entry of x is the chosen alpha.
    """

    x: Any
    y: Any = None
    info: Mapping[str, Any] = field(default_factory=dict)


Solver = Callable[[Task, float], Answer]


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
    """

    name: str
    packages: tuple[str, ...]
    solvers: Mapping[str, Solver]
    tightest: float = 1e-12
    certifies: bool = False


# --- saddleback -------------------------------------------------------------------------------------------------------


def _saddleback(task: Task, tol: float) -> Answer:
    import saddleback as sb
    from saddleback.bench.judging import problem_of

    result = sb.solve(problem_of(task), tol=tol)
    told = {name: result.settings[name] for name in ("working_set", "rows", "finish_steps") if name in result.settings}
    return Answer(result.x, result.y, {"passes": result.passes, "method": result.method, **told})


def _saddleback_path(task: Task, tol: float) -> Answer:
    import saddleback as sb

    results = sb.path(sb.L1(1.0), task["A"], sb.Squared(task["b"]), alphas=task["alphas"], tol=tol)
    x, y = (np.column_stack([getattr(result, name) for result in results]) for name in ("x", "y"))
    return Answer(x, y, {"passes": sum(result.passes for result in results)})


def _chosen(model: Any, task: Task) -> Answer:
    """Return the coefficients that a fitted cross-validation has chosen, followed by their alpha."""
    return Answer(np.append(model.coef_, model.alpha_ * task.shape[0]), info={"alpha": float(model.alpha_)})


def _saddleback_cv(task: Task, tol: float) -> Answer:
    from saddleback.estimators import LassoCV

    model = LassoCV(n_alphas=int(task["n_alphas"]), cv=int(task["folds"]), tol=tol, fit_intercept=False)
    return _chosen(model.fit(task["A"], task["b"]), task)


# --- coordinate descent on the squared loss; their objectives are divided by the number of rows -----------------------


def _lasso_of(library: str, task: Task, tol: float) -> Answer:
    estimators = import_module(library)
    model = estimators.Lasso(task["alpha"] / task.shape[0], tol=tol, max_iter=OUTER, fit_intercept=False)
    return Answer(model.fit(task["A"], task["b"]).coef_)


def _group_lasso_of(library: str, task: Task, tol: float) -> Answer:
    model = import_module(library).GroupLasso(
        groups=task["group_size"],
        alpha=task["alpha"] / task.shape[0],
        weights=task["weights"],
        tol=tol,
        max_iter=OUTER,
        fit_intercept=False,
    )
    return Answer(model.fit(task["A"], task["b"]).coef_)


def _celer_path(task: Task, tol: float) -> Answer:
    from celer import celer_path

    alphas = task["alphas"] / task.shape[0]
    # with pruning, as in celer's estimators
    return Answer(celer_path(task["A"], task["b"], "lasso", alphas=alphas, tol=tol, max_iter=OUTER, prune=1)[1])


def _skglm_path(task: Task, tol: float) -> Answer:
    from skglm import Lasso

    model = Lasso(tol=tol, max_iter=OUTER, fit_intercept=False, warm_start=True)
    return Answer(model.path(task["A"], task["b"], task["alphas"] / task.shape[0])[1])


def _sklearn_lasso(task: Task, tol: float) -> Answer:
    from sklearn.linear_model import Lasso

    model = Lasso(task["alpha"] / task.shape[0], tol=tol, max_iter=MANY, fit_intercept=False, copy_X=False)
    return Answer(model.fit(task["A"], task["b"]).coef_)


def _sklearn_cv(task: Task, tol: float) -> Answer:
    from sklearn.linear_model import LassoCV

    model = LassoCV(
        alphas=int(task["n_alphas"]), cv=int(task["folds"]), tol=tol, fit_intercept=False, max_iter=MANY, copy_X=False
    )
    return _chosen(model.fit(task["A"], task["b"]), task)


def _sklearn_path(task: Task, tol: float) -> Answer:
    from sklearn.linear_model import lasso_path

    alphas = task["alphas"] / task.shape[0]
    return Answer(lasso_path(task["A"], task["b"], alphas=alphas, tol=tol, max_iter=MANY, copy_X=False)[1])


def _adelie(task: Task, tol: float, alphas: Any, **groups: Any) -> Any:
    import adelie

    state = adelie.grpnet(
        adelie.matrix.dense(task["A"], method="naive", n_threads=_cores()),
        adelie.glm.gaussian(task["b"]),
        lmda_path=np.atleast_1d(alphas) / task.shape[0],
        tol=tol,
        max_iters=MANY,
        n_threads=_cores(),
        intercept=False,
        early_exit=False,
        progress_bar=False,
        **groups,
    )
    return state.betas.toarray()


def _adelie_lasso(task: Task, tol: float) -> Answer:
    return Answer(_adelie(task, tol, task["alpha"])[0])


def _adelie_group_lasso(task: Task, tol: float) -> Answer:
    start = np.arange(0, task.shape[1], task["group_size"])
    return Answer(_adelie(task, tol, task["alpha"], groups=start, penalty=task["weights"])[0])


def _adelie_path(task: Task, tol: float) -> Answer:
    return Answer(_adelie(task, tol, task["alphas"]).T)


def _cores() -> int:
    return os.cpu_count() or 1


# --- linear and cone programs -----------------------------------------------------------------------------------------


def _sklearn_quantile(task: Task, tol: float) -> Answer:
    from sklearn.linear_model import QuantileRegressor

    model = QuantileRegressor(
        quantile=task["quantile"],
        alpha=task["alpha"] / task.shape[0],
        fit_intercept=bool(task["intercept"]),
        solver="highs",
        solver_options=_feasibility(tol),
    )
    if not task["intercept"]:
        return Answer(model.fit(task["A"], task["b"]).coef_)
    model.fit(task["A"][:, :-1], task["b"])
    return Answer(np.append(model.coef_, model.intercept_))


def _highs_lp(task: Task, tol: float) -> Answer:
    import highspy

    lp = highspy.HighsLp()
    A = task["A"]
    lp.num_row_, lp.num_col_ = A.shape
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = task["c"], task["lower"], task["upper"]
    lp.row_lower_, lp.row_upper_ = task["row_lower"], task["row_upper"]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = A.indptr, A.indices, A.data
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    for name, value in _feasibility(tol).items():
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    solver.run()
    solution = solver.getSolution()
    # a row's dual is the change of the optimum with its bounds, which is minus a subgradient of their indicator
    return Answer(np.array(solution.col_value), -np.array(solution.row_dual))


def _pdlp_lp(task: Task, tol: float) -> Answer:
    from ortools.pdlp import solvers_pb2
    from ortools.pdlp.python import pdlp

    program = pdlp.QuadraticProgram()
    program.resize_and_initialize(task.shape[1], task.shape[0])
    program.objective_vector = task["c"]
    program.constraint_matrix = task["A"]
    program.variable_lower_bounds, program.variable_upper_bounds = task["lower"], task["upper"]
    program.constraint_lower_bounds, program.constraint_upper_bounds = task["row_lower"], task["row_upper"]
    parameters = solvers_pb2.PrimalDualHybridGradientParams()
    criteria = parameters.termination_criteria.simple_optimality_criteria
    criteria.eps_optimal_absolute = criteria.eps_optimal_relative = tol
    found = pdlp.primal_dual_hybrid_gradient(program, parameters)
    return Answer(found.primal_solution, -found.dual_solution)  # signs as in HiGHS


def _feasibility(tol: float) -> dict[str, float]:
    """Return the two tolerances of HiGHS, which accepts none below 1e-10."""
    return dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), max(tol, 1e-10))


Minimise = Callable[[Any], Any]


def _clarabel(tol: float) -> Minimise:
    return lambda problem: problem.solve("CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)


def _scs(tol: float) -> Minimise:
    return lambda problem: problem.solve("SCS", eps_abs=tol, eps_rel=tol, max_iters=MANY)


def _through_cvxpy(program: Callable[[Task, Minimise], Answer], solver: Callable[[float], Minimise]) -> Solver:
    return lambda task, tol: program(task, solver(tol))


def _cvxpy_quantile(task: Task, minimise: Minimise) -> Answer:
    import cvxpy as cp

    m, n = task.shape
    x, above, below = cp.Variable(n), cp.Variable(m, nonneg=True), cp.Variable(m, nonneg=True)
    fit = task["A"] @ x + above - below == task["b"]
    loss = task["quantile"] * cp.sum(above) + (1 - task["quantile"]) * cp.sum(below)
    penalty = task["alpha"] * cp.norm1(x[: n - int(task["intercept"])])
    minimise(cp.Problem(cp.Minimize(loss + penalty), [fit]))
    return Answer(x.value, fit.dual_value)


def _cvxpy_group_hinge(task: Task, minimise: Minimise) -> Answer:
    import cvxpy as cp

    m, n = task.shape
    x, missing = cp.Variable(n), cp.Variable(m, nonneg=True)
    margin = missing + cp.multiply(task["labels"], task["A"] @ x) >= 1
    ends = np.cumsum(task["groups"])
    norms = [cp.norm2(x[end - size : end]) for end, size in zip(ends, task["groups"], strict=True)]
    penalty = task["alpha"] * np.sqrt(task["groups"]) @ cp.hstack(norms)
    minimise(cp.Problem(cp.Minimize(cp.sum(missing) / m + penalty), [margin]))
    return Answer(x.value, -task["labels"] * margin.dual_value)


def _cvxpy_lp(task: Task, minimise: Minimise) -> Answer:
    import cvxpy as cp

    A = task["A"].tocsr()
    low, high, below, above = (task[name] for name in ("row_lower", "row_upper", "lower", "upper"))
    x = cp.Variable(task.shape[1])
    equal, at_least, at_most = low == high, (low < high) & np.isfinite(low), (low < high) & np.isfinite(high)
    rows = [
        (equal, 1.0, A[equal] @ x == low[equal]),
        (at_least, -1.0, A[at_least] @ x >= low[at_least]),
        (at_most, 1.0, A[at_most] @ x <= high[at_most]),
    ]
    rows = [(mine, sign, constraint) for mine, sign, constraint in rows if np.any(mine)]
    bounds = [x[np.isfinite(below)] >= below[np.isfinite(below)], x[np.isfinite(above)] <= above[np.isfinite(above)]]
    minimise(cp.Problem(cp.Minimize(task["c"] @ x), [*(constraint for _, _, constraint in rows), *bounds]))
    y = np.zeros(task.shape[0])
    for mine, sign, constraint in rows:
        y[mine] += sign * constraint.dual_value
    return Answer(x.value, y)


PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "saddleback",
            ("saddleback",),
            dict.fromkeys(("lasso", "group-lasso", "quantile", "group-hinge", "lp"), _saddleback)
            | {"path": _saddleback_path, "lasso-cv": _saddleback_cv},
            certifies=True,
        ),
        Peer(
            "celer",
            ("celer",),
            {
                "lasso": partial(_lasso_of, "celer"),
                "group-lasso": partial(_group_lasso_of, "celer"),
                "path": _celer_path,
            },
        ),
        Peer(
            "skglm",
            ("skglm",),
            {
                "lasso": partial(_lasso_of, "skglm"),
                "group-lasso": partial(_group_lasso_of, "skglm"),
                "path": _skglm_path,
            },
        ),
        Peer(
            "adelie",
            ("adelie",),
            {"lasso": _adelie_lasso, "group-lasso": _adelie_group_lasso, "path": _adelie_path},
            tightest=1e-24,  # it compares squares of changes
        ),
        Peer(
            "scikit-learn",
            ("scikit-learn",),
            {
                "lasso": _sklearn_lasso,
                "path": _sklearn_path,
                "lasso-cv": _sklearn_cv,
                "quantile": _sklearn_quantile,
            },
        ),
        Peer(
            "CVXPY+Clarabel",
            ("cvxpy", "clarabel"),
            {
                "quantile": _through_cvxpy(_cvxpy_quantile, _clarabel),
                "group-hinge": _through_cvxpy(_cvxpy_group_hinge, _clarabel),
                "lp": _through_cvxpy(_cvxpy_lp, _clarabel),
            },
        ),
        Peer(
            "CVXPY+SCS",
            ("cvxpy", "scs"),
            {
                "quantile": _through_cvxpy(_cvxpy_quantile, _scs),
                "group-hinge": _through_cvxpy(_cvxpy_group_hinge, _scs),
            },
        ),
        Peer("HiGHS", ("highspy",), {"lp": _highs_lp}),
        Peer("PDLP", ("ortools",), {"lp": _pdlp_lp}),
    )
}
"""In the order of the tables."""
