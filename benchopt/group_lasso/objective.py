import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """||y - X w||^2 / (2 n) + lmbd sum_g ||w_g||, with the interface of mathurinm/benchmark_group_lasso.

    ``groups`` is a list with the columns of each group.
    """

    name = "Group Lasso"
    min_benchopt_version = "1.8"
    parameters = {"reg": [0.1]}

    def set_data(self, X, y, groups):
        self.X, self.y, self.groups = X, y, groups
        self.lmbd = self.reg * self._norms(X.T @ y).max() / len(y)

    def _norms(self, w):
        return np.array([np.linalg.norm(w[group]) for group in self.groups])

    def evaluate_result(self, w):
        residual = self.y - self.X @ w
        return {"value": residual @ residual / (2 * len(self.y)) + self.lmbd * self._norms(w).sum()}

    def get_one_result(self):
        return {"w": np.zeros(self.X.shape[1])}

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lmbd": self.lmbd, "groups": self.groups}
