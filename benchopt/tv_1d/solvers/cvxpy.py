import cvxpy as cp
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "cvxpy"
    requirements = ["pip::cvxpy"]
    parameters = {"solver": ["CLARABEL"]}
    sampling_strategy = "run_once"

    def set_objective(self, A, reg, y, c, delta, data_fit):
        self.u = cp.Variable(A.shape[1])
        residual = y - A @ self.u
        loss = 0.5 * (cp.sum_squares(residual) if data_fit == "quad" else cp.sum(cp.huber(residual, delta)))
        self.problem = cp.Problem(cp.Minimize(loss + reg * cp.norm1(cp.diff(self.u))))

    def run(self, _):
        self.problem.solve(solver=self.solver)

    def get_result(self):
        return {"u": self.u.value}
