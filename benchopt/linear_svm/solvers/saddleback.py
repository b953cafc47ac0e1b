from benchopt import BaseSolver

import saddleback as sb


class Solver(BaseSolver):
    name = "saddleback"
    requirements = ["pip::saddleback"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, C):
        self.problem = sb.Problem(sb.SquaredL2(1.0), X, sb.Hinge(y, scale=C))

    def run(self, tol):
        self.x = sb.solve(self.problem, tol=tol).x

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"beta": self.x}
