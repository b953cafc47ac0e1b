import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """1/2 ||y - X b||^2 + lmbd ||b||_1 subject to C b = 0.

    The value is that of the nearest b that keeps the constraints; ``violation`` is the distance to it.
    """

    name = "Lasso with linear constraints"
    min_benchopt_version = "1.8"
    parameters = {"reg": [0.3, 0.1]}

    def set_data(self, X, y, C):
        self.X, self.y, self.C = X, y, C
        self.lmbd = self.reg * np.abs(X.T @ y).max()

    def evaluate_result(self, beta):
        correction = np.linalg.lstsq(self.C, self.C @ beta, rcond=None)[0]
        feasible = beta - correction
        residual = self.y - self.X @ feasible
        value = 0.5 * residual @ residual + self.lmbd * np.abs(feasible).sum()
        return {"value": value, "violation": np.linalg.norm(correction)}

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1])}

    def get_objective(self):
        return {"X": self.X, "y": self.y, "C": self.C, "lmbd": self.lmbd}
