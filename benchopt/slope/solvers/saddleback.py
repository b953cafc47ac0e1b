import numpy as np
from benchopt import BaseSolver

import saddleback as sb


class Solver(BaseSolver):
    name = "saddleback"
    requirements = ["pip::saddleback"]
    sampling_strategy = "tolerance"

    def skip(self, X, y, alphas, fit_intercept):
        return fit_intercept, "this solver is written without an intercept"

    def set_objective(self, X, y, alphas, fit_intercept):
        self.problem = sb.Problem(sb.SLOPE(alphas), X, sb.Squared(y, scale=1.0 / len(y)))

    def run(self, tol):
        self.x = sb.solve(self.problem, tol=tol).x

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"beta": np.append(0.0, self.x)}
