import warnings

import numpy as np
from benchopt import BaseSolver
from skglm import GeneralizedLinearEstimator
from skglm.datafits import Huber, Quadratic
from skglm.penalties import WeightedL1
from skglm.solvers import AndersonCD


class Solver(BaseSolver):
    """Coordinate descent on the differences: u is their cumulated sum, and the first one has no penalty."""

    name = "skglm"
    requirements = ["pip::skglm"]
    sampling_strategy = "tolerance"

    def set_objective(self, A, reg, y, c, delta, data_fit):
        self.cumulated = np.cumsum(A[:, ::-1], axis=1)[:, ::-1].copy(order="F")
        self.y = y
        weights = np.ones(A.shape[1])
        weights[0] = 0.0
        self.penalty = WeightedL1(reg / len(y), weights)
        self.loss = Quadratic() if data_fit == "quad" else Huber(delta)

    def warm_up(self):
        self.run_once(1.0)  # compiles

    def run(self, tol):
        solver = AndersonCD(tol=tol, max_iter=1000, fit_intercept=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = GeneralizedLinearEstimator(self.loss, self.penalty, solver).fit(self.cumulated, self.y)
        self.u = np.cumsum(model.coef_)

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"u": self.u}
