import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """Mean hinge loss + lmbd ||b||_1, without an intercept; labels are -1 and 1."""

    name = "Hinge loss with L1 penalty"
    min_benchopt_version = "1.8"
    parameters = {"reg": [0.3, 0.1]}

    def set_data(self, X, y):
        self.X, self.y = X, y
        self.lmbd = self.reg * np.abs(X.T @ y).max() / len(y)

    def evaluate_result(self, beta):
        loss = np.maximum(1.0 - self.y * (self.X @ beta), 0.0).mean()
        return {"value": loss + self.lmbd * np.abs(beta).sum(), "nonzeros": np.count_nonzero(beta)}

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1])}

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lmbd": self.lmbd}
