import cvxpy as cp
import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "cvxpy"
    requirements = ["pip::cvxpy"]
    parameters = {"solver": ["CLARABEL"]}
    sampling_strategy = "run_once"

    def set_objective(self, X, y, quantiles):
        design = np.column_stack([X, np.ones(len(y))])
        self.coefs = cp.Variable((len(quantiles), design.shape[1]))
        fitted = design @ self.coefs.T
        residual = y[:, None] - fitted
        above, below = np.tile(quantiles, (len(y), 1)), np.tile(quantiles - 1.0, (len(y), 1))
        pinball = cp.maximum(cp.multiply(above, residual), cp.multiply(below, residual))
        self.problem = cp.Problem(cp.Minimize(cp.sum(pinball) / len(y)), [fitted[:, 1:] >= fitted[:, :-1]])

    def run(self, _):
        self.problem.solve(solver=self.solver)

    def get_result(self):
        return {"coefs": self.coefs.value}
