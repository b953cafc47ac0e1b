import numpy as np
from benchopt import BaseSolver

import saddleback as sb


class Solver(BaseSolver):
    name = "saddleback"
    requirements = ["pip::saddleback"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lmbd, fit_intercept):
        penalties, blocks = [sb.L1(lmbd)], [X]
        if fit_intercept:
            penalties, blocks = [*penalties, sb.Zero()], [*blocks, np.ones(len(y))]
        self.problem = sb.Problem(penalties, blocks, sb.Squared(y))

    def run(self, tol):
        self.x = sb.solve(self.problem, tol=tol).x

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"beta": np.concatenate([np.ravel(block) for block in self.x])}
