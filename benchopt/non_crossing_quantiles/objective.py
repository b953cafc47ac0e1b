import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """Sum over quantiles of the mean pinball loss, for linear quantiles that do not cross at the samples.

    ``coefs`` has one row per quantile, the intercept last. The value is that of quantiles whose intercepts were raised
    until none crosses the one below; ``crossing`` is the largest distance by which two of them crossed.
    """

    name = "Non-crossing quantiles"
    min_benchopt_version = "1.8"
    parameters = {"n_quantiles": [7]}

    def set_data(self, X, y):
        self.X, self.y = X, y
        self.quantiles = np.arange(1, self.n_quantiles + 1) / (self.n_quantiles + 1)

    def evaluate_result(self, coefs):
        fitted = self.X @ coefs[:, :-1].T + coefs[:, -1]
        crossing = max(0.0, (fitted[:, :-1] - fitted[:, 1:]).max())
        for k in range(1, len(coefs)):
            fitted[:, k] += max(0.0, (fitted[:, k - 1] - fitted[:, k]).max())
        residual = self.y[:, None] - fitted
        pinball = np.maximum(self.quantiles * residual, (self.quantiles - 1.0) * residual)
        return {"value": pinball.mean(axis=0).sum(), "crossing": crossing}

    def get_one_result(self):
        return {"coefs": np.zeros((self.n_quantiles, self.X.shape[1] + 1))}

    def get_objective(self):
        return {"X": self.X, "y": self.y, "quantiles": self.quantiles}
