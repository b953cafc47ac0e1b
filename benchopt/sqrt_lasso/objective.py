import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """||y - X b||_2 + lmbd ||b||_1, with the interface of benchopt/benchmark_sqrt_lasso."""

    name = "Square-root Lasso"
    min_benchopt_version = "1.8"
    parameters = {"reg": [0.5, 0.1]}

    def set_data(self, X, y):
        self.X, self.y = X, y
        self.lmbd = self.reg * np.abs(X.T @ y).max() / np.linalg.norm(y)

    def evaluate_result(self, beta):
        return {"value": np.linalg.norm(self.y - self.X @ beta) + self.lmbd * np.abs(beta).sum()}

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1])}

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lmbd": self.lmbd}
