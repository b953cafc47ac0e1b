import numpy as np
from benchopt import BaseSolver
from skglm import Lasso


class Solver(BaseSolver):
    name = "skglm"
    requirements = ["pip::skglm"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lmbd, fit_intercept):
        self.X, self.y, self.alpha, self.fit_intercept = X, y, lmbd / len(y), fit_intercept

    def warm_up(self):
        self.run_once(1.0)  # compiles

    def run(self, tol):
        self.model = Lasso(self.alpha, fit_intercept=self.fit_intercept, tol=tol).fit(self.X, self.y)

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"beta": np.append(self.model.coef_, [self.model.intercept_] * self.fit_intercept)}
