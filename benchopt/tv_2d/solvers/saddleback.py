import numpy as np
from benchopt import BaseSolver

import saddleback as sb


class Solver(BaseSolver):
    name = "saddleback"
    requirements = ["pip::saddleback"]
    sampling_strategy = "tolerance"

    def skip(self, A, reg, delta, data_fit, y, isotropy):
        probe = np.random.default_rng(0).standard_normal(y.shape)
        return not np.array_equal(A @ probe, probe), "this solver is written for denoising, where A is the identity"

    def set_objective(self, A, reg, delta, data_fit, y, isotropy):
        self.shape = y.shape
        loss = sb.Squared(y.ravel()) if data_fit == "lsq" else sb.Huber(y.ravel(), delta)
        D = sb.Differences(shape=y.shape)
        norm = sb.GroupL2(reg, D.groups) if isotropy == "isotropic" else sb.L1(reg)
        self.problem = sb.Problem(sb.Zero(), [sb.Identity(), D], [loss, norm])

    def run(self, tol):
        self.x = sb.solve(self.problem, tol=tol).x

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"u": self.x.reshape(self.shape)}
