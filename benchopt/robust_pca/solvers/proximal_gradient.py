import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    """Accelerated proximal gradient on both parts (Lin, Ganesh, Wright, Wu, Chen and Ma, 2009), in NumPy."""

    name = "proximal gradient"
    sampling_strategy = "callback"

    def set_objective(self, X, mu, lmbd):
        self.X, self.mu, self.lmbd = X, mu, lmbd

    def run(self, callback):
        self.L = self.S = L_bar = S_bar = np.zeros(self.X.shape)
        t = 1.0
        while callback():
            slope = L_bar + S_bar - self.X
            U, values, V = np.linalg.svd(L_bar - slope / 2.0, full_matrices=False)
            L = U * np.maximum(values - self.mu / 2.0, 0.0) @ V
            outside = S_bar - slope / 2.0
            S = np.sign(outside) * np.maximum(np.abs(outside) - self.lmbd / 2.0, 0.0)
            last_t, t = t, (1.0 + np.sqrt(1.0 + 4.0 * t**2)) / 2.0
            L_bar, S_bar = L + (last_t - 1.0) / t * (L - self.L), S + (last_t - 1.0) / t * (S - self.S)
            self.L, self.S = L, S

    def get_result(self):
        return {"L": self.L, "S": self.S}
