import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """Mean hinge loss + lmbd sum_g sqrt(d_g) ||b_g||, without an intercept; labels are -1 and 1.

    ``groups`` is a list with the columns of each group, and d_g is the size of a group.
    """

    name = "Hinge loss with group penalty"
    min_benchopt_version = "1.8"
    parameters = {"reg": [0.3, 0.1]}

    def set_data(self, X, y, groups):
        self.X, self.y, self.groups = X, y, groups
        slopes = X.T @ y / len(y)
        self.lmbd = self.reg * max(np.linalg.norm(slopes[group]) / np.sqrt(len(group)) for group in groups)

    def evaluate_result(self, beta):
        loss = np.maximum(1.0 - self.y * (self.X @ beta), 0.0).mean()
        penalty = sum(np.sqrt(len(group)) * np.linalg.norm(beta[group]) for group in self.groups)
        return {"value": loss + self.lmbd * penalty}

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1])}

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lmbd": self.lmbd, "groups": self.groups}
