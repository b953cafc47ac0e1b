import warnings

import numpy as np
from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning

from saddleback.estimators import JointQuantileRegressor


class Solver(BaseSolver):
    name = "saddleback"
    requirements = ["pip::saddleback"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, quantiles):
        self.X, self.y, self.quantiles = X, y, quantiles

    def run(self, tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model = JointQuantileRegressor(self.quantiles, tol=tol).fit(self.X, self.y)

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"coefs": np.column_stack([self.model.coef_, self.model.intercept_])}
