import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    """ADMM for L + S + N = X with the noise N as a third block, in NumPy (Boyd and others, 2011)."""

    name = "ADMM"
    sampling_strategy = "callback"

    def set_objective(self, X, mu, lmbd):
        self.X, self.mu, self.lmbd = X, mu, lmbd

    def run(self, callback):
        # with the noise eliminated the two blocks are L and a copy of it under Huber's loss
        rho = 1.0
        copy = dual = np.zeros(self.X.shape)
        self.L = self.S = copy
        while callback():
            U, values, V = np.linalg.svd(copy - dual, full_matrices=False)
            self.L = U * np.maximum(values - self.mu / rho, 0.0) @ V
            # prox of Huber's loss around X with slope at most lmbd
            target = self.L + dual
            copy = target - np.clip((target - self.X) / (1.0 + rho), -self.lmbd / rho, self.lmbd / rho)
            dual = dual + self.L - copy
            rest = self.X - self.L
            self.S = np.sign(rest) * np.maximum(np.abs(rest) - self.lmbd, 0.0)

    def get_result(self):
        return {"L": self.L, "S": self.S}
