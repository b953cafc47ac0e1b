import cvxpy as cp
import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "cvxpy"
    requirements = ["pip::cvxpy"]
    parameters = {"solver": ["CLARABEL", "SCS"]}
    sampling_strategy = "run_once"

    def set_objective(self, X, y, lmbd, groups):
        self.beta = cp.Variable(X.shape[1])
        loss = cp.sum(cp.pos(1 - cp.multiply(y, X @ self.beta))) / len(y)
        penalty = sum(np.sqrt(len(group)) * cp.norm(self.beta[group]) for group in groups)
        self.problem = cp.Problem(cp.Minimize(loss + lmbd * penalty))

    def run(self, _):
        self.problem.solve(solver=self.solver)

    def get_result(self):
        return {"beta": self.beta.value}
