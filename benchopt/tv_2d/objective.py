import numpy as np
from benchopt import BaseObjective


def gradient(u):
    """Differences to the next pixel in each direction, 0 at the edge."""
    return np.diff(u, axis=0, append=u[-1:]), np.diff(u, axis=1, append=u[:, -1:])


class Objective(BaseObjective):
    """Loss of y - A u + reg TV(u) for an image u, with the interface of benchopt/benchmark_tv_2d."""

    name = "Total variation, 2-D"
    min_benchopt_version = "1.8"
    parameters = {"reg": [0.2], "delta": [0.9], "isotropy": ["anisotropic", "isotropic"], "data_fit": ["lsq"]}

    def set_data(self, A, y):
        self.A, self.y = A, y

    def evaluate_result(self, u):
        residual = np.abs(self.y - self.A @ u)
        if self.data_fit == "lsq":
            loss = 0.5 * (residual**2).sum()
        else:
            loss = np.where(residual < self.delta, 0.5 * residual**2, self.delta * (residual - 0.5 * self.delta)).sum()
        vertical, horizontal = gradient(u)
        if self.isotropy == "isotropic":
            variation = np.hypot(vertical, horizontal).sum()
        else:
            variation = np.abs(vertical).sum() + np.abs(horizontal).sum()
        return {"value": loss + self.reg * variation}

    def get_one_result(self):
        return {"u": np.zeros(self.y.shape)}

    def get_objective(self):
        return {
            "A": self.A,
            "reg": self.reg,
            "delta": self.delta,
            "data_fit": self.data_fit,
            "y": self.y,
            "isotropy": self.isotropy,
        }
