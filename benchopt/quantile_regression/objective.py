import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """Mean pinball loss + lmbd ||b||_1, with the interface of benchopt/benchmark_quantile_regression.

    The parameters are the coefficients, followed by the intercept if there is one.
    """

    name = "Quantile regression"
    min_benchopt_version = "1.8"
    parameters = {"reg": [0.1], "quantile": [0.8], "fit_intercept": [True]}

    def set_data(self, X, y):
        self.X, self.y = X, y
        null = np.quantile(y, self.quantile) if self.fit_intercept else 0.0
        slopes = np.where(y > null, self.quantile, self.quantile - 1.0)
        self.lmbd = self.reg * np.abs(X.T @ slopes).max() / len(y)

    def evaluate_result(self, params):
        coef = params[: self.X.shape[1]]
        residual = self.y - self.X @ coef - (params[-1] if self.fit_intercept else 0.0)
        pinball = np.maximum(self.quantile * residual, (self.quantile - 1.0) * residual)
        return {"value": pinball.mean() + self.lmbd * np.abs(coef).sum()}

    def get_one_result(self):
        return {"params": np.zeros(self.X.shape[1] + self.fit_intercept)}

    def get_objective(self):
        return {
            "X": self.X,
            "y": self.y,
            "lmbd": self.lmbd,
            "quantile": self.quantile,
            "fit_intercept": self.fit_intercept,
        }
