import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """mu ||L||_* + lmbd ||S||_1 + 1/2 ||X - L - S||_F^2 (Zhou, Li, Wright, Candes and Ma, 2010)."""

    name = "Robust PCA"
    min_benchopt_version = "1.8"
    parameters = {"reg": [0.15]}

    def set_data(self, X):
        self.X = X
        self.mu, self.lmbd = self.reg * np.linalg.norm(X, 2), self.reg * np.abs(X).max()

    def evaluate_result(self, L, S):
        value = self.mu * np.linalg.norm(L, "nuc") + self.lmbd * np.abs(S).sum()
        return {"value": value + 0.5 * np.linalg.norm(self.X - L - S) ** 2, "rank": np.linalg.matrix_rank(L)}

    def get_one_result(self):
        return {"L": np.zeros(self.X.shape), "S": np.zeros(self.X.shape)}

    def get_objective(self):
        return {"X": self.X, "mu": self.mu, "lmbd": self.lmbd}
