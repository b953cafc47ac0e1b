import warnings

import numpy as np
from benchopt import BaseSolver
from skglm import GeneralizedLinearEstimator
from skglm.datafits import Quadratic
from skglm.penalties import SLOPE
from skglm.solvers import FISTA


class Solver(BaseSolver):
    name = "skglm"
    requirements = ["pip::skglm"]
    sampling_strategy = "tolerance"

    def skip(self, X, y, alphas, fit_intercept):
        return fit_intercept, "its FISTA has no intercept"

    def set_objective(self, X, y, alphas, fit_intercept):
        self.X, self.y, self.penalty = X, y, SLOPE(alphas)

    def warm_up(self):
        self.run_once(1.0)  # compiles

    def run(self, tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solver = FISTA(max_iter=10_000, tol=tol, opt_strategy="fixpoint")
            self.coef = GeneralizedLinearEstimator(Quadratic(), self.penalty, solver).fit(self.X, self.y).coef_

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"beta": np.append(0.0, self.coef)}
