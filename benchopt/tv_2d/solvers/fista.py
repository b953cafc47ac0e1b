import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    """Accelerated projected gradient on the dual (Beck and Teboulle, 2009), in NumPy."""

    name = "dual FISTA"
    sampling_strategy = "callback"

    def skip(self, A, reg, delta, data_fit, y, isotropy):
        probe = np.random.default_rng(0).standard_normal(y.shape)
        if data_fit != "lsq" or not np.array_equal(A @ probe, probe):
            return True, "the dual has this form for denoising with squared loss only"
        return False, None

    def set_objective(self, A, reg, delta, data_fit, y, isotropy):
        self.y, self.reg, self.isotropic = y, reg, isotropy == "isotropic"

    def _image(self, p):
        """Y minus the adjoint of the gradient."""
        vertical, horizontal = p[0, :-1], p[1, :, :-1]
        u = self.y.copy()
        u[:-1] += vertical
        u[1:] -= vertical
        u[:, :-1] += horizontal
        u[:, 1:] -= horizontal
        return u

    def _project(self, p):
        size = np.sqrt((p**2).sum(axis=0)) if self.isotropic else np.abs(p)
        return p / np.maximum(1.0, size / self.reg)

    def run(self, callback):
        p = q = np.zeros((2, *self.y.shape))
        t = 1.0
        self.u = self.y
        while callback():
            u = self._image(q)
            ahead = np.zeros_like(p)
            ahead[0, :-1], ahead[1, :, :-1] = np.diff(u, axis=0), np.diff(u, axis=1)
            last, p = p, self._project(q + ahead / 8.0)
            last_t, t = t, (1.0 + np.sqrt(1.0 + 4.0 * t**2)) / 2.0
            q = p + (last_t - 1.0) / t * (p - last)
            self.u = self._image(p)

    def get_result(self):
        return {"u": self.u}
