import numpy as np
import scipy.sparse as sparse
from benchopt import BaseSolver
from scipy.optimize import linprog


class Solver(BaseSolver):
    """The linear program in the coefficients and the positive and negative residuals, by HiGHS."""

    name = "HiGHS"
    requirements = ["pip::scipy"]
    sampling_strategy = "run_once"

    def set_objective(self, X, y, quantiles):
        design = np.column_stack([X, np.ones(len(y))])
        self.shape = (len(quantiles), design.shape[1])
        residuals = sparse.eye_array(len(quantiles) * len(y))
        fitted = sparse.kron(sparse.eye_array(len(quantiles)), design)
        self.equalities = sparse.hstack([fitted, residuals, -residuals])
        self.targets = np.tile(y, len(quantiles))
        drops = sparse.kron(
            sparse.diags_array([1.0, -1.0], offsets=[0, 1], shape=(len(quantiles) - 1, len(quantiles))), design
        )
        self.inequalities = sparse.hstack([drops, sparse.csr_array((drops.shape[0], 2 * len(self.targets)))])
        weights = np.repeat(quantiles, len(y)) / len(y)
        self.costs = np.concatenate([np.zeros(fitted.shape[1]), weights, 1.0 / len(y) - weights])
        self.bounds = [(None, None)] * fitted.shape[1] + [(0.0, None)] * (2 * len(self.targets))

    def run(self, _):
        found = linprog(
            self.costs,
            A_ub=self.inequalities,
            b_ub=np.zeros(self.inequalities.shape[0]),
            A_eq=self.equalities,
            b_eq=self.targets,
            bounds=self.bounds,
            method="highs",
        )
        self.coefs = found.x[: self.shape[0] * self.shape[1]].reshape(self.shape)

    def get_result(self):
        return {"coefs": self.coefs}
