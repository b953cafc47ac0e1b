import cvxpy as cp
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "cvxpy"
    requirements = ["pip::cvxpy"]
    parameters = {"solver": ["CLARABEL", "OSQP"]}
    sampling_strategy = "run_once"

    def set_objective(self, X, y, C, lmbd):
        self.beta = cp.Variable(X.shape[1])
        objective = 0.5 * cp.sum_squares(y - X @ self.beta) + lmbd * cp.norm1(self.beta)
        self.problem = cp.Problem(cp.Minimize(objective), [C @ self.beta == 0])

    def run(self, _):
        self.problem.solve(solver=self.solver)

    def get_result(self):
        return {"beta": self.beta.value}
