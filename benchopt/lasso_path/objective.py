import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """Lassos for a decreasing sequence of lmbd, with the interface of benchopt/benchmark_lasso_path.

    The value is the sum over the sequence of 1/2 ||y - X b||^2 + lmbd ||b||_1.
    """

    name = "Lasso path"
    min_benchopt_version = "1.8"
    parameters = {"fit_intercept": [False], "n_lambda": [100]}

    def set_data(self, X, y):
        self.X, self.y = X, y
        centred = y - y.mean() if self.fit_intercept else y
        self.lambdas = np.abs(X.T @ centred).max() * np.geomspace(1.0, 1e-2, self.n_lambda)

    def evaluate_result(self, coefs):
        betas = coefs[: self.X.shape[1]]
        residuals = self.y[:, None] - self.X @ betas - (coefs[-1] if self.fit_intercept else 0.0)
        values = 0.5 * (residuals**2).sum(axis=0) + self.lambdas * np.abs(betas).sum(axis=0)
        return {"value": values.sum()}

    def get_one_result(self):
        return {"coefs": np.zeros((self.X.shape[1] + self.fit_intercept, len(self.lambdas)))}

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lambdas": self.lambdas, "fit_intercept": self.fit_intercept}
