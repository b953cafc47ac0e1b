import cvxpy as cp
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "cvxpy"
    requirements = ["pip::cvxpy"]
    parameters = {"solver": ["CLARABEL"]}
    sampling_strategy = "run_once"

    def set_objective(self, A, reg, delta, data_fit, y, isotropy):
        self.u = cp.Variable(y.shape)
        residual = cp.vec(y - A @ self.u, order="C")
        loss = 0.5 * (cp.sum_squares(residual) if data_fit == "lsq" else cp.sum(cp.huber(residual, delta)))
        if isotropy == "isotropic":
            # a pixel of the last row or column has a difference in one direction only
            last = cp.norm1(cp.diff(self.u[-1, :])) + cp.norm1(cp.diff(self.u[:, -1]))
            variation = cp.tv(self.u) + last
        else:
            variation = cp.sum(cp.abs(cp.diff(self.u, axis=0))) + cp.sum(cp.abs(cp.diff(self.u, axis=1)))
        self.problem = cp.Problem(cp.Minimize(loss + reg * variation))

    def run(self, _):
        self.problem.solve(solver=self.solver)

    def get_result(self):
        return {"u": self.u.value}
