import cvxpy as cp
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "cvxpy"
    requirements = ["pip::cvxpy"]
    parameters = {"solver": ["CLARABEL"]}
    sampling_strategy = "run_once"

    def set_objective(self, X, y, lmbd):
        self.beta = cp.Variable(X.shape[1])
        loss = cp.sum(cp.pos(1 - cp.multiply(y, X @ self.beta)))
        self.problem = cp.Problem(cp.Minimize(loss / len(y) + lmbd * cp.norm1(self.beta)))

    def run(self, _):
        self.problem.solve(solver=self.solver)

    def get_result(self):
        return {"beta": self.beta.value}
