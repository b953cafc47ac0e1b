from benchopt import BaseSolver

import saddleback as sb


class Solver(BaseSolver):
    name = "saddleback"
    requirements = ["pip::saddleback"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, mu, lmbd):
        penalties = [sb.Nuclear(mu, X.shape), sb.L1(lmbd)]
        self.problem = sb.Problem(penalties, [sb.Identity(), sb.Identity()], sb.Squared(X))

    def run(self, tol):
        self.L, self.S = sb.solve(self.problem, tol=tol).x

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"L": self.L, "S": self.S}
