import cvxpy as cp
import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "cvxpy"
    requirements = ["pip::cvxpy"]
    parameters = {"solver": ["CLARABEL"]}
    sampling_strategy = "run_once"

    def set_objective(self, X, y, lmbd, quantile, fit_intercept):
        self.fit_intercept = fit_intercept
        self.coef, self.intercept = cp.Variable(X.shape[1]), cp.Variable()
        residual = y - X @ self.coef - (self.intercept if fit_intercept else 0.0)
        pinball = cp.maximum(quantile * residual, (quantile - 1.0) * residual)
        self.problem = cp.Problem(cp.Minimize(cp.sum(pinball) / len(y) + lmbd * cp.norm1(self.coef)))

    def run(self, _):
        self.problem.solve(solver=self.solver)

    def get_result(self):
        return {"params": np.append(self.coef.value, [self.intercept.value] * self.fit_intercept)}
