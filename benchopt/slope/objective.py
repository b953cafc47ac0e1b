import numpy as np
from benchopt import BaseObjective
from scipy import stats


class Objective(BaseObjective):
    """||y - X b||^2 / (2 n) + sum_i alphas_i |b|_(i), with the interface of benchopt/benchmark_slope.

    The intercept stands before the coefficients; it is 0 without ``fit_intercept``.
    """

    name = "SLOPE"
    min_benchopt_version = "1.8"
    parameters = {"reg": [0.5, 0.1], "q": [0.1], "fit_intercept": [False]}

    def set_data(self, X, y):
        self.X, self.y = X, y
        n_features = X.shape[1]
        weights = stats.norm.ppf(1.0 - np.arange(1, n_features + 1) * self.q / (2 * n_features))
        centred = y - self.fit_intercept * y.mean()
        slopes = np.sort(np.abs(X.T @ centred))[::-1] / len(y)
        self.alphas = self.reg * (np.cumsum(slopes) / np.cumsum(weights)).max() * weights

    def evaluate_result(self, beta):
        residual = self.y - self.X @ beta[1:] - beta[0]
        penalty = self.alphas @ np.sort(np.abs(beta[1:]))[::-1]
        return {"value": residual @ residual / (2 * len(self.y)) + penalty}

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1] + 1)}

    def get_objective(self):
        return {"X": self.X, "y": self.y, "alphas": self.alphas, "fit_intercept": self.fit_intercept}
