"""Linear programs with HiGHS and PDLP, and two ways to state a loss with two slopes and an L1 penalty as one.

The primal form has the positive and the negative parts of x and of the residuals as variables, so that its matrix has
the columns of A twice. The dual form has y as its variables and A' as its matrix:

    min b'y   subject to   |A'y|_j <= alpha_j,   -under <= y <= over.

Its multipliers are x. It has half the entries. An interior point and PDHG are faster on it; the simplex method is
faster on the primal form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .answer import Answer, Solver, cores
from .task import Task
from .two_slopes import slopes, weights


def through_primal(solver: Solver) -> Solver:
    """Return the solver of tasks with two slopes that gives a solver of linear programs their primal form."""

    def solve(task: Task, tol: float) -> Answer:
        found = solver(primal_program(task), tol)
        positive, negative = found.x[: 2 * task.shape[1]].reshape(2, -1)
        return Answer(positive - negative, found.y)

    return solve


def through_dual(solver: Solver) -> Solver:
    """Return the solver of tasks with two slopes that gives a solver of linear programs their dual form."""

    def solve(task: Task, tol: float) -> Answer:
        found = solver(dual_program(task), tol)
        return Answer(-found.y, found.x)

    return solve


def primal_program(task: Task) -> Task:
    """Return A (p - q) + below - above = b with the weights of an L1 penalty and the slopes as costs."""
    m, n = task.shape
    rows, cost = slopes(task), weights(task)
    A, unit = sparse.csc_matrix(task["A"]), sparse.identity(m, format="csc")
    return Task(
        "lp",
        {
            "A": sparse.hstack([A, -A, unit, -unit], format="csc"),
            "c": np.concatenate([cost, cost, rows.under, rows.over]),
            "lower": np.zeros(2 * (n + m)),
            "upper": np.full(2 * (n + m), np.inf),
            "row_lower": rows.b,
            "row_upper": rows.b,
        },
    )


def dual_program(task: Task) -> Task:
    """Return the linear program of the dual point y."""
    rows, bound = slopes(task), weights(task)
    return Task(
        "lp",
        {
            "A": _transposed(task["A"]),
            "c": rows.b,
            "lower": -rows.under,
            "upper": rows.over,
            "row_lower": -bound,
            "row_upper": bound,
        },
    )


def _transposed(A: Any) -> Any:
    """Return A' in rows, without a copy of the entries."""
    if sparse.issparse(A):
        return A.T
    m, n = A.shape
    indices = np.tile(np.arange(m, dtype=np.int32), n)
    return sparse.csr_matrix((A.ravel(order="K"), indices, np.arange(n + 1, dtype=np.int32) * m), shape=(n, m))


def highs(method: str) -> Solver:
    """Return the solver of linear programs by a method of HiGHS: "choose", "simplex" or "ipm"."""

    def solve(task: Task, tol: float) -> Answer:
        import highspy

        lp = highspy.HighsLp()
        A = task["A"]
        lp.num_row_, lp.num_col_ = A.shape
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = task["c"], task["lower"], task["upper"]
        lp.row_lower_, lp.row_upper_ = task["row_lower"], task["row_upper"]
        formats = highspy.MatrixFormat
        lp.a_matrix_.format_ = formats.kRowwise if A.format == "csr" else formats.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = A.indptr, A.indices, A.data
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("solver", method)
        for name, value in feasibility(tol).items():
            solver.setOptionValue(name, value)
        solver.passModel(lp)
        solver.run()
        solution = solver.getSolution()
        # a row's dual is the change of the optimum with its bounds, which is minus a subgradient of their indicator
        return Answer(np.array(solution.col_value), -np.array(solution.row_dual))

    return solve


def pdlp(task: Task, tol: float) -> Answer:
    """Solve a linear program with PDLP, or a quadratic one with a diagonal matrix."""
    from ortools.pdlp import solvers_pb2
    from ortools.pdlp.python import pdlp

    program = pdlp.QuadraticProgram()
    program.resize_and_initialize(task.shape[1], task.shape[0])
    program.objective_vector = task["c"]
    if "diagonal" in task.values:
        program.set_objective_matrix_diagonal(task["diagonal"])
    program.constraint_matrix = task["A"]
    program.variable_lower_bounds, program.variable_upper_bounds = task["lower"], task["upper"]
    program.constraint_lower_bounds, program.constraint_upper_bounds = task["row_lower"], task["row_upper"]
    parameters = solvers_pb2.PrimalDualHybridGradientParams()
    parameters.num_threads = cores()
    criteria = parameters.termination_criteria.simple_optimality_criteria
    criteria.eps_optimal_absolute = criteria.eps_optimal_relative = tol
    found = pdlp.primal_dual_hybrid_gradient(program, parameters)
    return Answer(found.primal_solution, -found.dual_solution)  # signs as in HiGHS


def sklearn_quantile(task: Task, tol: float) -> Answer:
    """Solve a quantile regression with scikit-learn, which gives the primal form to HiGHS."""
    from sklearn.linear_model import QuantileRegressor

    model = QuantileRegressor(
        quantile=task["quantile"],
        alpha=task["alpha"] / task.shape[0],
        fit_intercept=bool(task["intercept"]),
        solver="highs",
        solver_options=feasibility(tol),
    )
    if not task["intercept"]:
        return Answer(model.fit(task["A"], task["b"]).coef_)
    model.fit(task["A"][:, :-1], task["b"])
    return Answer(np.append(model.coef_, model.intercept_))


def feasibility(tol: float) -> dict[str, float]:
    """Return the two tolerances of HiGHS, which accepts none below 1e-10."""
    return dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), max(tol, 1e-10))
