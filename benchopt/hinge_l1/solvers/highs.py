import numpy as np
from benchopt import BaseSolver
from scipy.optimize import linprog


class Solver(BaseSolver):
    """The linear program in the positive and negative parts of b and one slack per sample, by HiGHS."""

    name = "HiGHS"
    requirements = ["pip::scipy"]
    sampling_strategy = "run_once"

    def set_objective(self, X, y, lmbd):
        n_samples, self.n_features = X.shape
        margins = y[:, None] * X
        self.costs = np.append(np.full(2 * self.n_features, lmbd), np.full(n_samples, 1.0 / n_samples))
        self.rows = np.hstack([-margins, margins, -np.eye(n_samples)])

    def run(self, _):
        x = linprog(self.costs, A_ub=self.rows, b_ub=np.full(len(self.rows), -1.0), method="highs").x
        self.beta = x[: self.n_features] - x[self.n_features : 2 * self.n_features]

    def get_result(self):
        return {"beta": self.beta}
