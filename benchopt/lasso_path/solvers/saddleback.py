import numpy as np
from benchopt import BaseSolver

import saddleback as sb


class Solver(BaseSolver):
    name = "saddleback"
    requirements = ["pip::saddleback"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lambdas, fit_intercept):
        self.lambdas, self.fit_intercept = lambdas, fit_intercept
        # the best intercept of a squared loss makes the residuals sum to 0, which centring does
        self.X_mean, self.y_mean = (X.mean(axis=0), y.mean()) if fit_intercept else (0.0, 0.0)
        self.X, self.y = X - self.X_mean, y - self.y_mean

    def run(self, tol):
        results = sb.path(sb.L1(1.0), self.X, sb.Squared(self.y), alphas=self.lambdas, tol=tol)
        self.betas = np.column_stack([result.x for result in results])

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        if not self.fit_intercept:
            return {"coefs": self.betas}
        return {"coefs": np.vstack([self.betas, self.y_mean - self.X_mean @ self.betas])}
