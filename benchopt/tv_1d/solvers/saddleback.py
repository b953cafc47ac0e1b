from benchopt import BaseSolver

import saddleback as sb


class Solver(BaseSolver):
    name = "saddleback"
    requirements = ["pip::saddleback"]
    sampling_strategy = "tolerance"

    def set_objective(self, A, reg, y, c, delta, data_fit):
        loss = sb.Squared(y) if data_fit == "quad" else sb.Huber(y, delta)
        self.problem = sb.Problem(sb.Zero(), [A, sb.Differences(A.shape[1])], [loss, sb.L1(reg)])

    def run(self, tol):
        self.x = sb.solve(self.problem, tol=tol).x

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"u": self.x}
