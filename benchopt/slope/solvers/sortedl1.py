import warnings

import numpy as np
from benchopt import BaseSolver
from sortedl1 import Slope


class Solver(BaseSolver):
    name = "sortedl1"
    requirements = ["pip::sortedl1"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, alphas, fit_intercept):
        self.X, self.y, self.alphas, self.fit_intercept = X, y, alphas, fit_intercept

    def run(self, tol):
        model = Slope(
            lam=self.alphas,
            alpha=1.0,
            fit_intercept=self.fit_intercept,
            centering="none",
            scaling="none",
            tol=tol,
            max_iter=100_000,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(self.X, self.y)
        self.beta = np.append(model.intercept_ if self.fit_intercept else 0.0, np.ravel(model.coef_))

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"beta": self.beta}
