import numpy as np
from benchopt import BaseSolver
from sklearn.linear_model import Lasso


class Solver(BaseSolver):
    name = "scikit-learn"
    requirements = ["pip::scikit-learn"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lmbd, fit_intercept):
        self.X, self.y, self.alpha, self.fit_intercept = X, y, lmbd / len(y), fit_intercept

    def run(self, tol):
        self.model = Lasso(self.alpha, fit_intercept=self.fit_intercept, tol=tol, max_iter=100_000).fit(self.X, self.y)

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"beta": np.append(self.model.coef_, [self.model.intercept_] * self.fit_intercept)}
