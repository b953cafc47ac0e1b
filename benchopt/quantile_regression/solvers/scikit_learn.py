import numpy as np
from benchopt import BaseSolver
from sklearn.linear_model import QuantileRegressor


class Solver(BaseSolver):
    """A linear program, solved by HiGHS."""

    name = "scikit-learn"
    requirements = ["pip::scikit-learn"]
    sampling_strategy = "run_once"

    def set_objective(self, X, y, lmbd, quantile, fit_intercept):
        self.X, self.y = X, y
        self.model = QuantileRegressor(quantile=quantile, alpha=lmbd, fit_intercept=fit_intercept, solver="highs")

    def run(self, _):
        self.model.fit(self.X, self.y)

    def get_result(self):
        return {"params": np.append(self.model.coef_, [self.model.intercept_] * self.model.fit_intercept)}
