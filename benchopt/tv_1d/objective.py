import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """Loss of y - A u + reg sum |u_(i+1) - u_i|, with the interface of benchopt/benchmark_tv_1d.

    The loss is 1/2 ||.||^2 (``quad``) or that of Huber. ``c`` is the level of the best constant signal.
    """

    name = "Total variation, 1-D"
    min_benchopt_version = "1.8"
    parameters = {"reg": [0.1], "delta": [0.9], "data_fit": ["quad", "huber"]}

    def set_data(self, A, y):
        self.A, self.y = A, y
        level = A @ np.ones(A.shape[1])
        self.c = level @ y / (level @ level)
        # the largest dual variable of a difference at the best constant signal of the squared loss
        self.scaled = self.reg * np.abs(np.cumsum(A.T @ (y - level * self.c))).max()

    def evaluate_result(self, u):
        residual = np.abs(self.y - self.A @ u)
        if self.data_fit == "quad":
            loss = 0.5 * residual @ residual
        else:
            loss = np.where(residual < self.delta, 0.5 * residual**2, self.delta * (residual - 0.5 * self.delta)).sum()
        return {"value": loss + self.scaled * np.abs(np.diff(u)).sum()}

    def get_one_result(self):
        return {"u": np.full(self.A.shape[1], self.c)}

    def get_objective(self):
        return {
            "A": self.A,
            "reg": self.scaled,
            "y": self.y,
            "c": self.c,
            "delta": self.delta,
            "data_fit": self.data_fit,
        }
