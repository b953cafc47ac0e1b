from benchopt import BaseSolver

import saddleback as sb


class Solver(BaseSolver):
    name = "saddleback"
    requirements = ["pip::saddleback"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lmbd, groups):
        self.problem = sb.Problem(sb.GroupL2(lmbd, groups), X, sb.Hinge(y, scale=1.0 / len(y)))

    def run(self, tol):
        self.x = sb.solve(self.problem, tol=tol).x

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"beta": self.x}
