import numpy as np
from benchopt import BaseSolver

import saddleback as sb


class Solver(BaseSolver):
    name = "saddleback"
    requirements = ["pip::saddleback"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lmbd, groups):
        penalty = sb.GroupL2(lmbd, groups, weights=np.ones(len(groups)))
        self.problem = sb.Problem(penalty, X, sb.Squared(y, scale=1.0 / len(y)))

    def run(self, tol):
        self.x = sb.solve(self.problem, tol=tol).x

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"w": self.x}
