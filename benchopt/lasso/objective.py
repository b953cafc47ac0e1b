import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """1/2 ||y - X b||^2 + lmbd ||b||_1, with the interface of benchopt/benchmark_lasso."""

    name = "Lasso"
    min_benchopt_version = "1.8"
    parameters = {"reg": [0.1], "fit_intercept": [False]}

    def set_data(self, X, y):
        self.X, self.y = X, y
        centred = y - y.mean() if self.fit_intercept else y
        self.lmbd = self.reg * np.abs(X.T @ centred).max()

    def evaluate_result(self, beta):
        coef = beta[: self.X.shape[1]]
        residual = self.y - self.X @ coef - (beta[-1] if self.fit_intercept else 0.0)
        return {"value": 0.5 * residual @ residual + self.lmbd * np.abs(coef).sum(), "nonzeros": np.count_nonzero(coef)}

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1] + self.fit_intercept)}

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lmbd": self.lmbd, "fit_intercept": self.fit_intercept}
